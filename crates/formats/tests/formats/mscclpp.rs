//! MSCCL++ plans: read, and judged as a literal interpreter judges them, right or broken.

#![allow(clippy::print_stdout, reason = "the counts and verdicts are printed")]

mod interpreter;

use std::path::{Path, PathBuf};
use std::process::Command;

use oneport::error::ErrorKind;
use oneport::schedule::collective::Holders;
use oneport::{CostModel, Error, Kind, Schedule, Step};
use oneport_formats::msccl::ReadOptions;
use oneport_formats::mscclpp::{read, write};
use serde_json::{Value, json};

use self::interpreter::Interpreter;
use crate::grid;

fn read_plan(plan: &Value) -> Result<Schedule, Error> {
    read(&plan.to_string(), &ReadOptions::default())
}

fn at(kind: &str, index: usize) -> Value {
    json!({"type": kind, "index": index, "size": 1})
}

fn remote(id: usize, index: usize) -> Value {
    json!({"buffer_id": id, "index": index, "size": 1})
}

fn nop() -> Value {
    json!({"name": "nop"})
}

/// An operation on channels of memory.
fn on(name: &str, channels: &[usize]) -> Value {
    json!({"name": name, "channel_ids": channels, "channel_type": "memory"})
}

fn moves(name: &str, kind: &str, src: Vec<Value>, dst: Vec<Value>) -> Value {
    json!({"name": name, "src_buff": src, "dst_buff": dst, "channel_type": kind, "channel_ids": [0]})
}

/// A plan for `p` GPUs; `blocks` gives the operations of a GPU's thread blocks. Each thread block
/// has a memory and a port channel to every other GPU, and buffer `kind` of each, in the order of
/// ranks from its own on.
fn plan(
    collective: &str,
    p: usize,
    sizes: [usize; 3],
    in_place: bool,
    kind: &str,
    blocks: impl Fn(usize) -> Vec<Vec<Value>>,
) -> Value {
    let gpu = |rank: usize| {
        let peers: Vec<usize> = (1..p).map(|d| (rank + d) % p).collect();
        let blocks = blocks(rank);
        let buffers = peers.iter().map(
            |peer| json!({"rank": peer, "type": kind, "access_channel_types": ["memory", "port"]}),
        );
        let buffers: Vec<Value> = buffers.collect();
        let ids: Vec<usize> = (0..peers.len()).collect();
        let all: Vec<usize> = blocks.iter().flat_map(|_| peers.clone()).collect();
        let kinds = ["memory", "port"];
        let of_block = |(id, ops): (usize, &Vec<Value>)| {
            let own: Vec<usize> = ids.iter().map(|i| id * peers.len() + i).collect();
            let channels = kinds.map(|kind| json!({"channel_type": kind, "channel_ids": own}));
            let refs =
                kinds.map(|kind| json!({"access_channel_type": kind, "remote_buffer_ids": ids}));
            json!({"id": id, "ops": ops, "channels": channels, "remote_buffer_refs": refs})
        };
        let switch = json!({"channel_type": "switch", "buffer_type": "i",
            "rank_groups": [{"size": p, "ranks": (0..p).collect::<Vec<_>>()}]});
        let mut channels: Vec<Value> = kinds
            .iter()
            .map(|kind| json!({"channel_type": kind, "connected_to": all}))
            .collect();
        channels.push(switch);
        json!({"id": rank, "input_chunks": sizes[0], "output_chunks": sizes[1], "scratch_chunks": sizes[2],
            "threadblocks": blocks.iter().enumerate().map(of_block).collect::<Vec<_>>(),
            "channels": channels, "remote_buffers": buffers,
            "semaphores": [{"init_value": 0}, {"init_value": 0}]})
    };
    let protocol = if kind == "s" { "LL" } else { "Simple" };
    json!({"name": "own", "collective": collective, "protocol": protocol, "inplace": in_place,
        "reuse_resources": false, "gpus": (0..p).map(gpu).collect::<Vec<_>>()})
}

/// Right plans, of all kinds of synchronisation.
fn plans() -> Vec<(&'static str, Value)> {
    let mut plans = Vec::new();
    for p in [2, 3] {
        let peers: Vec<usize> = (0..p - 1).collect();
        // Everybody puts its block into all outputs.
        let puts = |kind: &'static str| {
            plan("allgather", p, [1, p, 0], true, "o", |rank| {
                let put = |d: usize| {
                    json!({"name": "put", "src_buff": [at("o", rank)], "dst_buff": [remote(d, rank)],
                        "channel_type": kind, "channel_ids": [d]})
                };
                let sync = |name| json!({"name": name, "channel_ids": peers, "channel_type": kind});
                let mut ops = vec![on("rlxsignal", &peers), on("rlxwait", &peers), nop()];
                ops.extend(peers.iter().map(|&d| put(d)));
                ops.extend([nop(), sync("signal"), sync("wait"), nop()]);
                vec![ops]
            })
        };
        plans.push(("allgather", puts("memory")));
        plans.push(("allgather over ports", puts("port")));
        // Each reduces its chunk out of all inputs and writes it back, in two thread blocks that a
        // semaphore or a barrier orders.
        let reduced = |between: [Vec<Value>; 2]| {
            plan("allreduce", p, [p, p, 0], true, "i", move |rank| {
                let all: Vec<usize> = (0..p - 1).collect();
                let inputs = |rank: usize| {
                    let others = (0..p - 1).map(move |d| remote(d, rank));
                    std::iter::once(at("i", rank))
                        .chain(others)
                        .collect::<Vec<Value>>()
                };
                let reduce = moves("rres", "memory", inputs(rank), inputs(rank));
                let mut first = vec![on("signal", &all), on("wait", &all), nop(), reduce, nop()];
                first.extend(between[0].clone());
                let mut second = between[1].clone();
                second.extend([nop(), on("signal", &all), on("wait", &all), nop()]);
                vec![first, second]
            })
        };
        let semaphore = |name: &str| json!({"name": name, "semaphore_ids": [0]});
        let barrier = || vec![json!({"name": "barrier", "barrier_id": 0, "num_threadblocks": 2})];
        plans.push((
            "allreduce, semaphore",
            reduced([
                vec![semaphore("sem_release")],
                vec![semaphore("sem_acquire")],
            ]),
        ));
        plans.push(("allreduce, barrier", reduced([barrier(), barrier()])));
        // Packets: scatter, reduce, gather.
        plans.push((
            "allreduce, packets",
            plan("allreduce", p, [p, p, 2 * p], true, "s", |rank| {
                let peer = |d: usize| (rank + 1 + d) % p;
                let put = |d: usize| {
                    moves(
                        "ppkt",
                        "memory",
                        vec![at("i", peer(d))],
                        vec![remote(d, rank)],
                    )
                };
                let unpack = |d: usize| {
                    moves(
                        "upkt",
                        "memory",
                        vec![at("s", p + peer(d))],
                        vec![at("i", peer(d))],
                    )
                };
                let mut src = vec![at("i", rank)];
                src.extend(peers.iter().map(|&d| at("s", peer(d))));
                let mut dst = vec![at("i", rank)];
                dst.extend(peers.iter().map(|&d| remote(d, p + rank)));
                let mut ops: Vec<Value> = peers.iter().map(|&d| put(d)).collect();
                ops.push(nop());
                ops.push(moves("respkt", "memory", src, dst));
                ops.extend(peers.iter().map(|&d| unpack(d)));
                vec![ops]
            }),
        ));
        // A switch reduces and stores.
        let mut switched = plan("allreduce", p, [p, p, 0], true, "i", |rank| {
            let through = json!({"switch_channel_id": 0, "index": rank, "size": 1});
            let reduce = moves("glres", "switch", vec![through.clone()], vec![through]);
            vec![vec![
                on("rlxsignal", &peers),
                on("rlxwait", &peers),
                nop(),
                reduce,
                nop(),
                on("signal", &peers),
                on("wait", &peers),
            ]]
        });
        for gpu in switched["gpus"].as_array_mut().unwrap() {
            let channel = json!({"channel_type": "switch", "channel_ids": [0]});
            gpu["threadblocks"][0]["channels"]
                .as_array_mut()
                .unwrap()
                .push(channel);
        }
        plans.push(("allreduce, switch", switched));
        // A pipeline of two thread blocks: the first copies, the second sends.
        plans.push((
            "allgather, pipeline",
            plan("allgather", p, [1, p, 0], false, "o", |rank| {
                let put = |d: usize| moves("put", "memory", vec![at("o", rank)], vec![remote(d, rank)]);
                let pipeline = |ops: Vec<Value>| {
                    json!({"name": "pipeline", "iter_context": {"unit_size": 16, "num_chunks": 1}, "ops": ops})
                };
                let copy = moves("copy", "memory", vec![at("i", 0)], vec![at("o", rank)]);
                let started = vec![on("rlxsignal", &peers), on("rlxwait", &peers), nop()];
                let mut puts = vec![semaphore("sem_acquire"), nop()];
                puts.extend(peers.iter().map(|&d| put(d)));
                puts.extend([nop(), on("signal", &peers), on("wait", &peers), nop()]);
                vec![
                    vec![pipeline(vec![copy, nop(), semaphore("sem_release")])],
                    started.into_iter().chain([pipeline(puts)]).collect(),
                ]
            }),
        ));
    }
    plans
}

#[test]
fn right_plans_are_proved() {
    for (name, plan) in plans() {
        let schedule = read_plan(&plan).unwrap_or_else(|error| panic!("{name}: {error}"));
        let report = schedule.check();
        assert!(report.is_correct(), "{name}: {report}");
        assert!(Interpreter::new(&plan, 2).is_right(), "{name}");
        assert_eq!(schedule.name(), Some("own"));
    }
}

/// The operations of a plan, each as GPU, thread block, and number.
fn operations(plan: &Value) -> Vec<[usize; 3]> {
    let mut all = Vec::new();
    for (g, gpu) in plan["gpus"].as_array().unwrap().iter().enumerate() {
        for (b, block) in gpu["threadblocks"].as_array().unwrap().iter().enumerate() {
            all.extend((0..block["ops"].as_array().unwrap().len()).map(|op| [g, b, op]));
        }
    }
    all
}

/// Plans with one change: an operation left out, moved ahead of the one before it, or with another
/// place, channel or count.
fn mutants(plan: &Value) -> Vec<Value> {
    let mut all = Vec::new();
    for [g, b, op] in operations(plan) {
        let ops = |plan: &mut Value, change: &mut dyn FnMut(&mut Vec<Value>)| {
            change(
                plan["gpus"][g]["threadblocks"][b]["ops"]
                    .as_array_mut()
                    .unwrap(),
            );
        };
        let mut add = |change: &mut dyn FnMut(&mut Vec<Value>)| {
            let mut mutant = plan.clone();
            ops(&mut mutant, change);
            if mutant != *plan {
                all.push(mutant);
            }
        };
        add(&mut |ops| drop(ops.remove(op)));
        add(&mut |ops| ops.insert(op, ops[op].clone()));
        if op > 0 {
            add(&mut |ops| ops.swap(op - 1, op));
        }
        for key in ["src_buff", "dst_buff"] {
            add(&mut |ops| {
                let index = ops[op].pointer_mut(&format!("/{key}/0/index"));
                if let Some(index) = index {
                    *index = json!(index.as_u64().unwrap() ^ 1);
                }
            });
        }
        for name in ["signal", "wait"] {
            add(&mut |ops| {
                // What another thread block wrote before is beyond the interpreter, which delays
                // all that comes after it.
                let others = ["barrier", "sem_acquire", "pipeline"];
                let mut earlier = ops[..op].iter();
                let has_others = earlier.any(|op| others.iter().any(|name| op["name"] == *name));
                if ops[op]["name"] == name && !(name == "signal" && has_others) {
                    ops[op]["name"] = json!(format!("rlx{name}"));
                }
            });
        }
        add(&mut |ops| {
            if let Some(blocks) = ops[op].get_mut("num_threadblocks") {
                *blocks = json!(blocks.as_u64().unwrap() + 1);
            }
        });
        add(&mut |ops| {
            if let Some(channels) = ops[op].get_mut("channel_ids") {
                channels.as_array_mut().unwrap().truncate(1);
            }
        });
    }
    for g in 0..plan["gpus"].as_array().unwrap().len() {
        let mut mutant = plan.clone();
        if let Some(initial) = mutant["gpus"][g].pointer_mut("/semaphores/0/init_value") {
            *initial = json!(1);
            all.push(mutant);
        }
    }
    all
}

/// Whether the reader and the checker call a plan right. `None` if it is no plan.
fn verdict(plan: &Value) -> Option<bool> {
    match read_plan(plan) {
        Ok(schedule) => Some(schedule.check().is_correct()),
        Err(error) if matches!(error.kind(), ErrorKind::Wrong(_)) => Some(false),
        Err(_) => None,
    }
}

/// The plans that the programs of a checkout of MSCCL++ print, for two, four and eight GPUs where
/// these can be chosen, and those that it holds. Programs that its own language refuses print none.
fn plans_of_checkout(checkout: &Path) -> Vec<(String, Value)> {
    // The language is all of the package that these need; the rest has to be built.
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mscclpp_language");
    let package = library.join("mscclpp");
    std::fs::create_dir_all(&package).unwrap();
    std::fs::write(package.join("__init__.py"), "").unwrap();
    let language = package.join("language");
    let _ = std::fs::remove_file(&language);
    std::os::unix::fs::symlink(checkout.join("python/mscclpp/language"), &language).unwrap();
    let folders = [
        "python/mscclpp/language/tests",
        "test/executor-tests",
        "test/execution-files",
    ];
    let mut files: Vec<PathBuf> = folders.iter().map(|f| checkout.join(f)).collect();
    let mut plans = Vec::new();
    while let Some(path) = files.pop() {
        let name = path.strip_prefix(checkout).unwrap().display().to_string();
        let ends = |end: &str| name.ends_with(end);
        if path.is_dir() {
            files.extend(path.read_dir().unwrap().map(|entry| entry.unwrap().path()));
        } else if ends(".json") {
            let text = std::fs::read_to_string(&path).unwrap();
            plans.push((name, serde_json::from_str(&text).unwrap()));
        } else if ends(".py") {
            let text = std::fs::read_to_string(&path).unwrap();
            let has = |option: &str| text.contains(&format!("\"{option}\""));
            let by_number = has("--num_gpus") || has("--gpus_per_node");
            let numbers: &[usize] = if by_number { &[2, 4, 8] } else { &[2] };
            for &gpus in numbers {
                let nodes = if has("--num_gpus") && gpus > 2 { 2 } else { 1 };
                let of_node = gpus / nodes;
                let given = [
                    ("--name", "own".to_string()),
                    ("--num_gpus", gpus.to_string()),
                    ("--gpus_per_node", of_node.to_string()),
                    ("--tbg_size", "2".into()),
                    ("--nnodes", "2".into()),
                ];
                let mut program = Command::new("python3");
                program.arg(&path).env("PYTHONPATH", &library);
                program.env("PYTHONDONTWRITEBYTECODE", "1");
                for (option, value) in given.iter().filter(|(option, _)| has(option)) {
                    program.args([option, &&**value]);
                }
                let printed = program.output().unwrap();
                match serde_json::from_slice(&printed.stdout) {
                    Ok(plan) => plans.push((format!("{name} for {gpus}"), plan)),
                    Err(_) => println!("{name} for {gpus}: prints no plan"),
                }
            }
        }
    }
    plans.sort_by(|a, b| a.0.cmp(&b.0));
    plans
}

/// Plans that others wrote: those of a checkout of MSCCL++.
#[test]
fn plans_of_others_are_judged_as_an_interpreter_does() {
    let Some(checkout) = crate::checkout("ONEPORT_MSCCLPP") else {
        return;
    };
    let plans = plans_of_checkout(Path::new(&checkout));
    let (mut judged, mut right, mut differ, mut unread) = (0, 0, Vec::new(), Vec::new());
    for (name, plan) in &plans {
        match read_plan(plan).map(|schedule| schedule.check()) {
            Ok(report) if report.is_correct() => {}
            Ok(report) => println!("{name}: {}", report.errors[0]),
            Err(error) => println!("{name}: {error}"),
        }
        // `glre` is none of the operations that the executor knows.
        if verdict(plan).is_none() && !plan.to_string().contains("\"glre\"") {
            unread.push(name);
        }
        // The interpreter takes the cube of the number of operations.
        if operations(plan).len() > 100 {
            continue;
        }
        let all = mutants(plan);
        let some = all.iter().step_by(all.len().div_ceil(40).max(1));
        for (i, plan) in std::iter::once(plan).chain(some).enumerate() {
            let Some(verdict) = verdict(plan) else {
                continue;
            };
            let why = read_plan(plan).map(|s| s.check().to_string());
            let expected = Interpreter::new(plan, 8).is_right();
            if verdict != expected {
                differ.push(format!("{name}, mutant {i}: {why:?}\n{plan}"));
            }
            judged += 1;
            right += usize::from(verdict);
        }
    }
    println!(
        "{} plans; {judged} plans and mutants, {right} of them right",
        plans.len()
    );
    assert!(
        differ.is_empty(),
        "{} differ: {}",
        differ.len(),
        differ.join("\n\n")
    );
    assert!(unread.is_empty(), "{unread:?}");
    assert!(
        plans.len() > 100 && judged > 2000,
        "{} {judged}",
        plans.len()
    );
}

#[test]
fn mutants_are_judged_as_an_interpreter_does() {
    let (mut judged, mut right) = (0, 0);
    for (name, plan) in plans() {
        for mutant in mutants(&plan) {
            let Some(verdict) = verdict(&mutant) else {
                continue;
            };
            let expected = Interpreter::new(&mutant, 2).is_right();
            let why = read_plan(&mutant).map(|s| s.check().to_string());
            assert_eq!(verdict, expected, "{name}: {why:?}\n{mutant}");
            judged += 1;
            right += usize::from(verdict);
        }
    }
    println!("{judged} mutants, {right} of them right");
    assert!(
        judged > 1000 && right > 20 && judged - right > 300,
        "{judged} {right}"
    );
}

/// Written and read back, all algorithms are as they were, and a plan that is written again is the
/// same.
#[test]
fn written_schedules_are_read_back() {
    let cost = CostModel::new(3.0, 1.0).gamma(2.0);
    let (mut written, mut equal, mut early) = (0, 0, 0);
    for (name, schedule) in grid() {
        let row = schedule.collective().kind().row();
        let text = match write(&schedule, "x") {
            Ok(written) => written.text,
            Err(error) => {
                let rooted = [row.input.0, row.output.0] != [Holders::Every; 2];
                let others = matches!(
                    schedule.collective().kind(),
                    Kind::Scan | Kind::Exscan | Kind::Barrier
                );
                let empty = schedule.programs().iter().flatten().any(Step::is_empty);
                let unequal = error.to_string().contains("blocks of equal size");
                assert!(rooted || others || empty || unequal, "{name}: {error}");
                continue;
            }
        };
        let read = |text: &str, chunk: usize| {
            let options = ReadOptions {
                chunk,
                ..ReadOptions::default()
            };
            read(text, &options).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"))
        };
        let largest = |s: &Schedule| {
            let sends = s.programs().iter().flatten().filter(|s| s.is_send());
            sends.map(Step::len).max().unwrap_or(1)
        };
        let chunk = largest(&schedule) / largest(&read(&text, 1));
        let back = read(&text, chunk).with_element_bytes(4);
        let report = back.check();
        assert!(report.is_correct(), "{name}: {report}\n{text}");
        assert_eq!(report.keeps_order, schedule.check().keeps_order, "{name}");
        assert_eq!(back.ports(), schedule.ports(), "{name}");
        assert_eq!(back.collective(), schedule.collective(), "{name}");
        let time = |s: &Schedule| s.simulate(&cost).unwrap().makespan();
        assert_eq!(time(&back), time(&schedule), "{name}\n{text}");
        assert_eq!(write(&back, "x").unwrap().text, text, "{name}");
        equal += usize::from(back.programs() == schedule.programs());
        early += usize::from(signals_early(&serde_json::from_str(&text).unwrap()));
        written += 1;
    }
    println!("{written} written, {equal} with equal programs, {early} with early signals");
    assert!(written > 900 && equal > 800, "{written} {equal}");
    assert!(early * 100 > written * 95, "{written} {early}");
}

/// In place, a copy of the own block onto itself races with no read of it.
#[test]
fn copies_of_a_chunk_onto_itself_change_nothing() {
    let copied = |index: usize| {
        plan("allgather", 2, [1, 2, 0], true, "o", |rank| {
            let to = (rank + index) % 2;
            let copy = moves("copy", "none", vec![at("o", to)], vec![at("o", to)]);
            let put = moves("put", "memory", vec![at("o", rank)], vec![remote(0, rank)]);
            let all = [0];
            let ops = vec![
                on("rlxsignal", &all),
                on("rlxwait", &all),
                nop(),
                put,
                nop(),
                on("signal", &all),
                on("wait", &all),
            ];
            vec![ops, vec![copy]]
        })
    };
    for (index, right) in [(0, true), (1, false)] {
        let plan = copied(index);
        assert_eq!(verdict(&plan), Some(right), "{index}");
        assert_eq!(Interpreter::new(&plan, 2).is_right(), right, "{index}");
    }
}

/// Whether the operations of a plan are signalled at once, before its thread block waits again.
fn signals_early(plan: &Value) -> bool {
    operations(plan).iter().all(|&[g, b, i]| {
        let ops = &plan["gpus"][g]["threadblocks"][b]["ops"];
        let signals = ["signal", "sem_release"].map(Value::from);
        let early = ["nop", "signal", "sem_release"].map(Value::from);
        !signals.contains(&ops[i]["name"]) || i == 0 || early.contains(&ops[i - 1]["name"])
    })
}

#[test]
fn a_written_exchange() {
    let schedule = oneport::Request::allreduce(2, 4)
        .plan("recursive-doubling")
        .unwrap();
    let plan: Value = serde_json::from_str(&write(&schedule, "x").unwrap().text).unwrap();
    assert_eq!(plan["inplace"], true);
    for gpu in plan["gpus"].as_array().unwrap() {
        let sizes =
            ["input", "output", "scratch"].map(|name| gpu[format!("{name}_chunks")].clone());
        assert_eq!(sizes, [1, 1, 1]);
        let ops = gpu["threadblocks"][0]["ops"].as_array().unwrap();
        let names: Vec<&str> = ops.iter().map(|op| op["name"].as_str().unwrap()).collect();
        let start = ["signal", "wait", "nop"];
        let exchange = ["put", "nop", "signal", "wait", "nop", "re"];
        assert_eq!(names, [&start[..], &exchange].concat());
    }
}

#[test]
fn what_mscclpp_lacks_is_refused() {
    let broadcast = oneport::Request::broadcast(4, 8).plan("binomial").unwrap();
    let unequal = oneport::Request::allgather(3, 1)
        .blocks(vec![1, 2, 3])
        .plan("ring");
    for (schedule, expected) in [
        (broadcast, "MSCCL++ has no broadcast"),
        (unequal.unwrap(), "MSCCL++ has blocks of equal size only"),
    ] {
        let error = write(&schedule, "x").unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// The ports of a plan that oneport wrote may be damaged.
#[test]
fn wrong_ports_are_refused() {
    let ring = oneport::Request::allgather(3, 1).plan("ring").unwrap();
    let plan: Value = serde_json::from_str(&write(&ring, "x").unwrap().text).unwrap();
    assert_eq!(read_plan(&plan).unwrap().ports(), ring.ports());
    for (ports, ported) in [("bo", 1), ("bi", 0), ("uni", 1 << 30)] {
        let mut plan = plan.clone();
        (plan["ports"], plan["ported"]) = (ports.into(), ported.into());
        let error = read_plan(&plan).unwrap_err().to_string();
        let names = oneport::Ports::NAMES.join(", ");
        let expected = format!(
            "\"ports\": {ports:?}, \"ported\": {ported}: ports are {names}, at least one and at most 4096"
        );
        assert!(error.contains(&expected), "{error}");
    }
}

/// Without any one of its signals, semaphores and `nop`s, a written plan is wrong. A literal
/// interpreter agrees.
#[test]
fn written_plans_synchronise_no_more_than_they_must() {
    let (mut written, mut dropped) = (0, 0);
    for (name, schedule) in grid() {
        let Ok(text) = write(&schedule, "x") else {
            continue;
        };
        let plan: Value = serde_json::from_str(&text.text).unwrap();
        let all = operations(&plan);
        if schedule.ranks() > 6 || all.len() > 60 || written > 120 {
            continue;
        }
        assert_eq!(verdict(&plan), Some(true), "{name}");
        assert!(Interpreter::new(&plan, 2).is_right(), "{name}\n{plan}");
        written += 1;
        let op = |plan: &Value, [g, b, i]: [usize; 3]| {
            plan["gpus"][g]["threadblocks"][b]["ops"][i]["name"]
                .as_str()
                .unwrap()
                .to_string()
        };
        for at in &all {
            let name_of = op(&plan, *at);
            if !["nop", "wait", "sem_acquire"].contains(&&*name_of) {
                continue;
            }
            let mut mutant = plan.clone();
            let [g, b, i] = *at;
            let ops = mutant["gpus"][g]["threadblocks"][b]["ops"].as_array_mut();
            ops.unwrap().remove(i);
            assert_eq!(
                verdict(&mutant),
                Some(false),
                "{name}: {name_of} {at:?}\n{plan}"
            );
            let expected = Interpreter::new(&mutant, 2).is_right();
            assert!(!expected, "{name}: {name_of} {at:?}\n{plan}");
            dropped += 1;
        }
    }
    println!("{written} plans, {dropped} operations left out");
    assert!(written > 60 && dropped > 500, "{written} {dropped}");
}
