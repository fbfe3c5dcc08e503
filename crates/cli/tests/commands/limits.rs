//! Tests of memory limits: a command that does not fit is refused in one line before it starts, and
//! one that fits succeeds.
//!
//! A shell limits the address space (`ulimit -v`) before it starts the binary.
#![cfg(target_os = "linux")]

use std::process::{Command, Output};

use oneport::plan::{Segments, registry};
use oneport::{Kind, Ports, Request, Span, Step};
use serde_json::Value;

use crate::support::cases::cases;

/// Runs the binary with an address space of `kib` KiB.
fn limited(kib: u64, arguments: &str) -> Output {
    Command::new("sh")
        .arg("-c")
        .arg("ulimit -v \"$1\" && shift && exec \"$@\"")
        .arg("sh")
        .arg(kib.to_string())
        .arg(env!("CARGO_BIN_EXE_oneport"))
        .args(arguments.split_whitespace())
        .output()
        .expect("a shell")
}

/// The minimum address space in KiB, rounded up to MiB, in which the binary can print its help:
/// the base of the limits below.
fn min_kib() -> u64 {
    let suffices = |mib: &u64| limited(mib << 10, "--help").status.success();
    let enough = (0..12)
        .map(|i| 1 << i)
        .find(suffices)
        .expect("2 GiB suffice");
    let (mut low, mut high) = (enough / 2, enough);
    while high - low > 1 {
        let middle = low.midpoint(high);
        if suffices(&middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high << 10
}

/// Asserts that a command was refused with one error line, empty standard output and no signal.
/// Returns its standard error.
fn refused(output: &Output, arguments: &str) -> String {
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments}: {output:?}");
    assert!(output.stdout.is_empty(), "{arguments}: {message}");
    let errors: Vec<_> = message
        .lines()
        .filter(|l| !l.starts_with("note: "))
        .collect();
    assert_eq!(errors.len(), 1, "{arguments}: {message}");
    assert!(errors[0].starts_with("error: "), "{arguments}: {message}");
    message
}

const KIB_PER_MIB: u64 = 1 << 10;

#[test]
fn a_command_that_does_not_fit_is_refused_in_one_line() {
    let kib = min_kib() + 100 * KIB_PER_MIB;
    for (arguments, expected) in [
        (
            "plan reduce -p 4096 -a chain --segments 1000 --bytes 1MiB",
            "of memory",
        ),
        ("plan gather -p 20000 -a optimal", "of memory"),
        (
            "plan reduce_scatter -p 3000 -a recursive-halving",
            "of memory",
        ),
        (
            "simulate reduce -p 4096 -a binary --segments 1000 --bytes 1MiB",
            "of memory",
        ),
        ("check alltoall -p 2000 -a pairwise --bytes 1", "of memory"),
        ("compare scan -p 400000 --bytes 8", "of memory"),
        ("run broadcast -p 4 --bytes 100MiB", "the run needs about"),
        (
            "run broadcast -p 4 -a chain --segments 100000 --bytes 1MiB",
            "of memory",
        ),
        (
            "run broadcast -p 2000 -a binomial --bytes 1",
            "cannot start thread",
        ),
    ] {
        let message = refused(&limited(kib, arguments), arguments);
        assert!(message.contains(expected), "{arguments}: {message}");
        assert!(
            message.contains("limit of the address space"),
            "{arguments}: {message}"
        );
    }
}

/// Under any limit, a command either succeeds or is refused in one line.
#[test]
fn no_command_aborts_under_any_limit() {
    let min_kib = min_kib();
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let [file, svg, json] =
        ["limits-in.json", "limits.svg", "limits.json"].map(|name| folder.join(name));
    let plan = "plan reduce -p 8 -a chain --segments 3000 --bytes 64KiB -o";
    let planned = limited(4 << 20, &format!("{plan} {}", file.display()));
    assert!(planned.status.success(), "{planned:?}");
    let stored = [
        format!("simulate --schedule {} -v", file.display()),
        format!("draw --schedule {} -o {}", file.display(), svg.display()),
        format!("draw --schedule {} -o {}", file.display(), json.display()),
    ];
    let stored = stored.iter().map(String::as_str);
    let some = vec![4, 16, 32, 64, 128];
    for extra_mib in cases(some, vec![2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 256]) {
        let kib = min_kib + extra_mib * KIB_PER_MIB;
        for arguments in [
            "plan reduce -p 64 -a chain --segments 400 --bytes 1MiB --format rounds",
            "plan reduce -p 64 -a chain --segments 400 --bytes 1MiB --json",
            "compare reduce -p 300 --bytes 64KiB",
            "compare alltoall -p 100 --bytes 8 --ports uni",
            "compare scatter -p 1000",
            "compare alltoall -p 500 -a bruck --bytes 8",
            "compare reduce_scatter -p 600 -a recursive-halving --bytes 600",
            "run reduce -p 8 --bytes 1MiB --repetitions 2",
            "run allreduce -p 32 --bytes 1KiB --repetitions 2",
            "run allgather -p 12 --bytes 64KiB --workers cores --repetitions 2",
            "simulate broadcast -p 20000 -a circulant --segments 60 --bytes 1MiB",
            "steady --generate random:30:150",
        ]
        .into_iter()
        .chain(stored.clone())
        {
            let output = limited(kib, arguments);
            let name = format!("{arguments} with {kib} KiB");
            if output.status.success() {
                assert!(
                    !output.stdout.is_empty() || name.starts_with("draw"),
                    "{name}"
                );
            } else {
                refused(&output, &name);
            }
        }
    }
}

#[test]
fn a_team_and_its_data_fit_into_200_mib() {
    // The C library tries to reserve 64 MiB of address space for each of the first threads.
    let arguments = "run reduce -p 64 --bytes 64KiB --repetitions 2";
    let output = limited(min_kib() + 200 * KIB_PER_MIB, arguments);
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("verified"));
}

/// Schedules with a million transfers are timed in memory that could not store them.
#[test]
fn timed_transfers_are_not_stored() {
    let kib = min_kib() + 100 * KIB_PER_MIB;
    for (kind, algorithm) in [
        ("broadcast", "van-de-geijn-ring"),
        ("reduce", "van-de-geijn-ring"),
        ("allreduce", "ring"),
        ("allgather", "ring"),
        ("reduce_scatter", "ring"),
        ("alltoall", "pairwise"),
    ] {
        let arguments = format!("compare {kind} -p 1000 -a {algorithm} --bytes 1000 --json");
        let output = limited(kib, &arguments);
        assert!(output.status.success(), "{arguments}: {output:?}");
        let table: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let row = &table["rows"][0];
        assert_eq!(row["algorithm"], algorithm);
        assert!(row["messages"].as_u64() >= Some(999_000), "{row}");
    }
}

/// Programs that use one direction of a port at a time are stored to be timed on ports for calls.
#[test]
fn transfers_on_ports_for_calls_are_stored() {
    let kib = min_kib() + 100 * KIB_PER_MIB;
    for (segments, expected) in [
        (1_000_000, "limit of 200000000 steps"),
        (50_000, "of memory"),
    ] {
        let arguments = format!(
            "simulate broadcast -a chain -p 1024 --bytes 1000000 --segments {segments} --ports telephone"
        );
        let message = refused(&limited(kib, &arguments), &arguments);
        assert!(message.contains(expected), "{arguments}: {message}");
    }
}

/// Where the best segments need too much memory, fewer are taken, and a note says so.
#[test]
fn searches_keep_to_segments_that_fit() {
    let kib = min_kib() + 300 * KIB_PER_MIB;
    for command in [
        // By a formula, by one that bounds the times of 60 ranks, and by uni-greedy's own search.
        "simulate broadcast -p 64 -a chain --ranks-table",
        "simulate broadcast -p 60 -a binary",
        "simulate reduce -p 64 -a uni-greedy --ports uni",
    ] {
        let arguments = format!("{command} --bytes 10MB --alpha 0.001 --beta 1");
        let output = limited(kib, &arguments);
        assert!(output.status.success(), "{arguments}: {output:?}");
        let notes = String::from_utf8_lossy(&output.stderr);
        assert!(
            notes.contains("may have better segments"),
            "{arguments}: {notes}"
        );
    }
}

/// Schedules of a million ranks are too large to plan, with or without a limit of memory.
#[test]
fn a_million_ranks_are_refused() {
    let arguments = "compare scan -p 1000000 --bytes 1";
    let message = refused(
        &limited(min_kib() + 100 * KIB_PER_MIB, arguments),
        arguments,
    );
    assert!(message.contains("no algorithm can be planned"), "{message}");
    let output = Command::new(env!("CARGO_BIN_EXE_oneport"))
        .args("compare gather -p 1000000 --bytes 1 -a optimal".split(' '))
        .output()
        .unwrap();
    let message = refused(&output, "gather");
    assert!(message.contains("of memory"), "{message}");
    let output = Command::new(env!("CARGO_BIN_EXE_oneport"))
        .args("compare allgather -p 1000000 --bytes 1 -a ring".split(' '))
        .output()
        .unwrap();
    let message = refused(&output, "allgather");
    assert!(message.contains("steps"), "{message}");
}

/// The memory that is estimated before planning is at least what the schedule uses.
#[test]
fn memory_estimates_are_not_too_low() {
    /// The memory that the estimate provides for a step.
    const BYTES_PER_STEP: usize = 200;
    for algorithm in registry::all() {
        for p in cases(vec![2, 3, 17, 64], vec![2, 3, 17, 64, 200, 256]) {
            for q in [1, 20] {
                for ports in [Ports::UNI, Ports::BI] {
                    let mut request = Request::new(algorithm.collective, p, 1000).ports(ports);
                    if algorithm.segmented {
                        request = request.segments(Segments::of_count(1000, q).unwrap());
                    } else if q > 1 {
                        continue;
                    }
                    let Ok(schedule) = algorithm.plan(&request) else {
                        continue;
                    };
                    let steps = schedule.programs().iter().flatten();
                    // The step itself stores one span.
                    let spans = steps.map(|s| s.reads().len() + s.writes().len() - 1);
                    let spans = spans.sum::<usize>() * size_of::<Span>();
                    let held = schedule.steps() * size_of::<Step>() + spans;
                    let tables = usize::try_from((algorithm.tables)(p)).unwrap();
                    let provided = 2 * (algorithm.transfers)(p, q) * BYTES_PER_STEP + tables;
                    assert!(
                        held <= provided,
                        "{} {} p={p} q={q}: {held} bytes held, {provided} provided",
                        algorithm.collective.name(),
                        algorithm.name()
                    );
                }
            }
        }
    }
}

/// Under any limit, files of other tools and the largest of their exports are written, read or
/// refused in one line.
#[test]
fn files_of_other_tools_never_abort() {
    let min_kib = min_kib();
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = |name: &str| folder.join(name).display().to_string();
    let [json, xml, goal] = ["limits-f.json", "limits-f.xml", "limits-f.goal"].map(path);
    let [out, small] = ["limits-out", "limits-small.xml"].map(path);
    let [plan, small_plan] = ["limits-plan.json", "limits-small-plan.json"].map(path);
    let ring = path("limits-ring.json");
    for arguments in [
        format!("plan broadcast -p 3 -a chain --segments 8000 --bytes 8000 -o {json}"),
        format!("export msccl --schedule {json} -o {xml}"),
        format!("export goal --schedule {json} -o {goal}"),
        format!("plan allgather -p 90 -a ring --bytes 1 -o {ring}"),
        format!("export mscclpp --schedule {ring} -o {plan}"),
    ] {
        let made = limited(4 << 20, &arguments);
        assert!(made.status.success(), "{arguments}: {made:?}");
    }
    // As little text for a step as there may be.
    let steps = |what: &str| -> String {
        let step = |s| format!("<step s=\"{s}\" type=\"{what}\" cnt=\"1\"/>");
        (0..30_000).map(step).collect()
    };
    let text = format!(
        "<algo coll=\"allreduce\" ngpus=\"1\"><gpu id=\"0\" i_chunks=\"1\" o_chunks=\"1\" s_chunks=\"0\">\
         <tb id=\"0\">{}</tb></gpu></algo>",
        steps("nop")
    );
    std::fs::write(&small, text).unwrap();
    let text = format!(
        r#"{{"collective":"","inplace":true,"gpus":[{{"id":0,"input_chunks":1,"output_chunks":1,"scratch_chunks":1,
        "threadblocks":[{{"id":0,"ops":[{}]}}]}}]}}"#,
        vec![r#"{"name":"nop"}"#; 30_000].join(",")
    );
    std::fs::write(&small_plan, text).unwrap();
    let commands = [
        format!("import msccl {xml} -o {out}"),
        format!("import msccl {small} -o {out}"),
        format!("import goal {goal} -o {out}"),
        format!("import mscclpp {plan} -o {out}"),
        format!("import mscclpp {small_plan} -o {out}"),
        format!("export mscclpp --schedule {ring} -o {out}"),
        format!("check --schedule {xml}"),
        format!("check --schedule {goal}"),
        format!("check --schedule {json}"),
        format!("export msccl --schedule {json} -o {out}"),
    ];
    let mut refusals = 0;
    let some = vec![1, 4, 16, 32, 1024];
    for extra_mib in cases(some, vec![1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 1024]) {
        for arguments in &commands {
            let output = limited(min_kib + extra_mib * KIB_PER_MIB, arguments);
            // The small file is no allreduce.
            let failed = output.status.code() == Some(1) && arguments.contains("small");
            if !output.status.success() && !failed {
                assert!(extra_mib < 1024, "{output:?}");
                refused(&output, arguments);
                refusals += 1;
            }
        }
    }
    assert!(refusals > commands.len(), "{refusals}");
}

/// Streamed programs equal the materialized schedule.
#[test]
fn streamed_programs_equal_the_materialized_schedule() {
    let mut streamed = Vec::new();
    for algorithm in registry::all().iter().filter(|a| a.is_streamed()) {
        streamed.push((algorithm.collective, algorithm.to_string()));
        for p in [1, 2, 5, 8, 13] {
            for ports in [Ports::UNI, Ports::BI, Ports::BI.with_k(2)] {
                let request = Request::new(algorithm.collective, p, 60)
                    .segment_count(4)
                    .ports(ports)
                    .root(p / 2);
                if algorithm.accepts(&request).is_err() {
                    continue;
                }
                let planned = algorithm.planned(&request).unwrap();
                let schedule = algorithm.plan(&request).unwrap();
                let mut steps = schedule.programs().iter().flatten();
                let several = steps.any(|s| s.port() > Some(0));
                assert_eq!(planned.uses_several_ports(), several);
                assert!(planned.layouts().eq(schedule.layout().iter().cloned()));
                let timed = planned.timed(request.get_cost(), |_| ()).unwrap();
                let simulation = schedule.simulate(request.get_cost()).unwrap();
                assert_eq!(timed.rank_times, simulation.rank_times());
            }
        }
    }
    for (kind, name) in [
        (Kind::Broadcast, "chain"),
        (Kind::Alltoall, "bruck"),
        (Kind::ReduceScatter, "ring"),
    ] {
        assert!(
            streamed.contains(&(kind, name.to_string())),
            "{kind} {name}"
        );
    }
}

/// The programs of an algorithm that another one plans, here for blocks of one size, are streamed,
/// too, if that one's are.
#[test]
fn what_another_algorithm_plans_is_streamed_as_it_streams_it() {
    let kib = min_kib() + 100 * KIB_PER_MIB;
    let [time, of_pairwise] = ["birkhoff", "pairwise"].map(|algorithm| {
        let arguments = format!("simulate alltoall -p 1500 --bytes 64 -a {algorithm} --json");
        let output = limited(kib, &arguments);
        assert!(output.status.success(), "{output:?}");
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        answer["time"].as_f64().unwrap()
    });
    assert_eq!(time, of_pairwise);
}

/// A short file may describe the pairs of many ranks.
#[test]
fn costs_of_many_pairs_are_refused_where_memory_does_not_suffice() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join("limits_levels.json");
    let levels =
        r#"{"levels": [{"groups": [[4095]], "alpha": 1, "beta": 1}, {"alpha": 2, "beta": 1}]}"#;
    std::fs::write(&path, levels).unwrap();
    let arguments = format!(
        "simulate broadcast -p 4096 --bytes 8 --costs {}",
        path.display()
    );
    let output = limited(min_kib() + (400 << 10), &arguments);
    let message = refused(&output, &arguments);
    assert!(message.contains("the pairs of 4096 ranks"), "{message}");
    assert!(message.contains("of memory"), "{message}");
    let trials = "compare reduce -p 4 --bytes 8 --arrivals random:exp,1us --trials 1000000000000";
    let message = refused(&limited(4 << 20, trials), trials);
    assert!(message.contains("of memory"), "{message}");
}
