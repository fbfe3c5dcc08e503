//! Tests of `export` and `import`, and of other tools with the files that they write and
//! read.
//!
//! Tools are not part of this project. Tests that use them find them by these variables, and say so
//! where they are not set:
//!
//! | variable | names |
//! |---|---|
//! | `ONEPORT_LOGGOPSIM` | a folder with `txt2bin` and `LogGOPSim` |
//! | `ONEPORT_MSCCL_VERIFIER` | a folder with `allgather-verifier` and `alltoall-verifier` |
//! | `ONEPORT_MSCCL_XML` | a folder with right algorithms in MSCCL XML, of any tool |
//! | `ONEPORT_PUBLISHED` | a folder with the checkouts of docs/published.md |
//! | `ONEPORT_SMPIRUN` | SimGrid's `smpirun` |
//! | `ONEPORT_DOT` | Graphviz's `dot` |

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use oneport::plan::registry;

use crate::support::cases::cases;
use crate::support::run::{failure, json, oneport, text};

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the folder of the test");
    folder
}

/// Where a tool is, if the environment says so.
fn tool(variable: &str) -> Option<PathBuf> {
    let path = std::env::var_os(variable).map(PathBuf::from);
    if path.is_none() {
        // Past the test harness, which would keep it to itself.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: {variable} is not set: nothing was compared with that tool"
        );
    }
    path
}

/// What a tool prints to both streams.
fn printed(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

/// Options that plan each algorithm for bidirectional ports, over `p` ranks.
fn plans(p: usize) -> impl Iterator<Item = String> {
    let bidirectional = registry::all()
        .iter()
        .filter(|a| a.ports.allow(oneport::Ports::BI));
    bidirectional.map(move |a| {
        let kind = a.collective.name();
        let vector = if a.collective.has_data() {
            format!("--bytes {} --segments 2", 8 * p)
        } else {
            String::new()
        };
        format!(
            "{kind} -p {p} -a {} {vector} --alpha 1000 --beta 2",
            a.name()
        )
    })
}

/// Plans over `p` ranks with options for late ranks, latency and eager sends, some for either kind
/// of ports.
fn delayed_plans(p: usize) -> impl Iterator<Item = String> {
    plans(p).enumerate().flat_map(move |(i, plan)| {
        let late = format!("--arrivals {}:{}", i % p, 1 + 700 * (i % 6));
        let latency = [1, 300, 1000, 1700, 5000][i % 5];
        [
            late.clone(),
            format!("--latency {latency}"),
            format!("--latency {latency} --eager all"),
            format!("--eager all --ports uni {late}"),
            format!("--latency {latency} --eager all --ports uni"),
            format!("--latency {latency} --eager all {late}"),
        ]
        .map(|delays| format!("{plan} {delays}"))
        .into_iter()
        .skip(i % 3)
        .step_by(3)
    })
}

#[test]
fn schedules_survive_a_round_trip() {
    let folder = folder("formats_round_trip");
    for plan in plans(5).step_by(cases(4, 1)) {
        let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
        let wanted = json(&format!("simulate {plan}"));
        for (format, options) in [("goal", "--form bytes"), ("msccl", ""), ("mscclpp", "")] {
            let file = path(format);
            let output = oneport(&format!("export {format} {plan} {options} -o {file}"))
                .output()
                .unwrap();
            if !output.status.success() {
                let message = String::from_utf8_lossy(&output.stderr);
                let lacks = message.contains("error: MSCCL has ")
                    || message.contains("error: MSCCL++ has ");
                assert!(format.starts_with("msccl") && lacks, "{plan}: {message}");
                continue;
            }
            let checked = json(&format!("check --schedule {file}"));
            assert_eq!(checked["ok"], true, "{plan} {format}");
            // A chunk of MSCCL has the elements that all messages are multiples of.
            let sent = |v: &serde_json::Value| v["bytes"].as_u64().unwrap();
            let units = json(&format!("simulate --schedule {file} --alpha 1000 --beta 2"));
            let chunk = sent(&wanted) / sent(&units).max(1);
            let options = if format.starts_with("msccl") {
                format!("--chunk {chunk}")
            } else {
                String::new()
            };
            text(&format!(
                "import {format} {file} {options} -o {}",
                path("back.json")
            ));
            let back = json(&format!(
                "simulate --schedule {} --alpha 1000 --beta 2",
                path("back.json")
            ));
            assert_eq!(back["time"], wanted["time"], "{plan} {format}");
            assert_eq!(back["messages"], wanted["messages"], "{plan} {format}");
        }
    }
}

#[test]
fn imported_algorithms_run() {
    let folder = folder("formats_run");
    let file = folder.join("ring.xml").to_string_lossy().into_owned();
    text(&format!("export msccl allreduce -p 4 -a ring -o {file}"));
    let run = json(&format!("run --schedule {file} --dtype f32"));
    assert_eq!(run["verified"], true);
    let stdin = oneport("check --schedule -")
        .write_stdin(fs::read(&file).unwrap())
        .assert()
        .success();
    let printed = String::from_utf8(stdin.get_output().stdout.clone()).unwrap();
    assert!(printed.contains("correct"), "{printed}");
}

#[test]
fn broken_files_give_one_message_and_no_file() {
    let folder = folder("formats_broken");
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    fs::write(path("bad.goal"), "num_ranks 2\nrank 0 {\nsend 1b to 1\n").unwrap();
    fs::write(path("bad.xml"), "<algo name=\"x\"").unwrap();
    for (arguments, why) in [
        (
            format!("import goal {} -o {}", path("bad.goal"), path("out")),
            "bad.goal: line 4: expected send",
        ),
        (
            format!("check --schedule {}", path("bad.goal")),
            "bad.goal: line 4: expected send",
        ),
        (
            format!("import msccl {} -o {}", path("bad.xml"), path("out")),
            "bad.xml: not XML",
        ),
        (
            format!("run --schedule {}", path("bad.xml")),
            "bad.xml: not XML",
        ),
        (format!("import goal {}", path("none")), "cannot read"),
        (
            format!("export msccl scan -p 4 -o {}", path("out")),
            "MSCCL has no scan",
        ),
        (
            format!(
                "export goal gather -p 4 -a oblivious --form uniform -o {}",
                path("out")
            ),
            "all messages take the same time",
        ),
        (
            format!("export simgrid broadcast -p 4 --bytes 0 -o {}", path("out")),
            "an empty message takes a latency",
        ),
        ("schema draw".into(), "invalid value 'draw'"),
        (
            format!("tune broadcast --export ompi={}", path("out")),
            "'ompi=/",
        ),
    ] {
        let message = failure(&mut oneport(&arguments), 2);
        assert!(message.contains(why), "{arguments}: {message}");
        assert!(!folder.join("out").exists(), "{arguments}");
    }
}

/// Seven files are not spread among others, and a folder is made as other files are: in one that is
/// there.
#[test]
fn simgrid_files_get_a_folder_of_their_own() {
    let folder = folder("formats_simgrid_folder");
    let export = |to: &str| {
        let to = folder.join(to);
        let options = "export simgrid broadcast -p 2 -a linear --bytes 8 -o";
        oneport(&format!("{options} {}", to.display()))
    };
    fs::create_dir(folder.join("empty")).unwrap();
    fs::create_dir(folder.join("full")).unwrap();
    fs::write(folder.join("full/mine"), "mine").unwrap();
    fs::write(folder.join("file"), "mine").unwrap();
    for to in ["new", "empty"] {
        export(to).assert().success();
        assert!(fs::read_dir(folder.join(to)).unwrap().count() > 2);
        let again = failure(&mut export(to), 2);
        assert!(
            again.contains("is not empty: name a new or an empty folder"),
            "{again}"
        );
    }
    for (to, why) in [
        ("full", "is not empty"),
        ("file", "cannot write"),
        ("none/new", "No such file"),
    ] {
        let message = failure(&mut export(to), 2);
        assert!(message.contains(why), "{message}");
    }
    assert_eq!(fs::read_dir(folder.join("full")).unwrap().count(), 1);
    assert!(!folder.join("none").exists());
    export("full --force").assert().success();
    assert_eq!(
        fs::read_to_string(folder.join("full/mine")).unwrap(),
        "mine"
    );
}

#[test]
fn a_tuning_result_becomes_a_selection_file() {
    let folder = folder("formats_selection");
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let tune = format!(
        "tune broadcast -p 2 --bytes 1KiB,64KiB --budget 0.1s --export openmpi={} --export openmpi-json={} --export intel={} \
         --export mpich={}",
        file("ompi"),
        file("json"),
        file("intel"),
        file("mpich")
    );
    text(&tune);
    let classic = fs::read_to_string(file("ompi")).unwrap();
    let rules: Vec<&str> = classic.lines().filter(|l| !l.starts_with('#')).collect();
    assert_eq!(
        rules[..3],
        ["1 # collectives", "7 # bcast", "1 # communicator sizes"]
    );
    assert!(
        rules[5] == "0 0 0 0" && classic.contains("modelled, not measured over MPI"),
        "{classic}"
    );
    let value: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(file("json")).unwrap()).unwrap();
    assert_eq!(value["collectives"]["bcast"][0]["comm_size_min"], 2);
    assert!(
        fs::read_to_string(file("intel"))
            .unwrap()
            .contains("export I_MPI_ADJUST_BCAST=\"")
    );
    let mpich = fs::read_to_string(file("mpich")).unwrap();
    assert!(mpich.starts_with("/* bcast over 2 ranks; times: modelled, not measured over MPI"));
    assert!(mpich.contains("\"algorithm=MPIR_Bcast_intra_") && mpich.contains("collective=iscan"));
}

/// What cannot be written is refused before anything is measured.
#[test]
fn an_export_without_an_algorithm_of_the_library_is_refused_before_the_sweep() {
    let folder = folder("formats_selection_refused");
    let file = folder.join("out").to_string_lossy().into_owned();
    for (tune, why) in [
        (
            "reduce_scatter -a circulant",
            "Open MPI has none of these algorithms for",
        ),
        (
            "scan -a chain",
            "Open MPI has no selection rules for scan here",
        ),
    ] {
        let tune = format!("tune {tune} -p 2 --bytes 1KiB --budget 100s --export openmpi={file}");
        let message = failure(&mut oneport(&tune), 2);
        assert!(
            message.contains(why) && message.contains("cannot write"),
            "{message}"
        );
        assert!(!folder.join("out").exists());
    }
}

/// The model's times are not doubtful because the machine is busy, and what is said once is enough.
#[test]
fn notes_of_several_files_are_said_once() {
    let folder = folder("formats_selection_notes");
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let tune = format!(
        "tune broadcast -p 2 --bytes 1KiB,2KiB --budget 0 --export openmpi={} --export intel={} --rules {}",
        file("ompi"),
        file("intel"),
        file("rules")
    );
    let output = oneport(&tune).output().unwrap();
    let notes = String::from_utf8(output.stderr).unwrap();
    assert_eq!(notes.matches("times: modelled").count(), 1, "{notes}");
    assert!(!notes.contains("DOUBTFUL"), "{notes}");
    let doubtful: Vec<&str> = notes
        .lines()
        .filter(|l| l.contains("doubtful winners"))
        .collect();
    assert_eq!(doubtful.len(), 1, "{notes}");
    assert!(
        doubtful[0].contains("rules has") && !doubtful[0].contains("ompi"),
        "{notes}"
    );
}

/// A file of measurements over MPI, and the command that made it.
const SWEEP: &str = "\
# oneport tune, version 1
# collective: allreduce
# ranks: 2
# root: 0
# ports: 1 bi
# dtype: f32
# op: sum
# ordered: false
# clock: native
# costs: alpha 1000 beta 0.1 gamma 0 gamma_copy 0
# cores: all
# algorithms: ring recursive-doubling
# sizes: 8 64 512
# machine: a processor that this machine lacks, 999 cores
# processes: Open MPI v5.0.11, 2 processes on 1 host
bytes,algorithm,segment,segments,wall,min,p99,max,low,high,repetitions,model_time,best,best_segment,settled
8,ring,8,1,600,590,620,620,590,610,100,2000,false,true,true
8,recursive-doubling,8,1,550,540,570,570,540,560,100,1000,true,true,true
8,MPI_Allreduce,8,1,500,490,520,520,490,510,100,NaN,false,true,true
64,ring,64,1,400,390,420,420,390,410,100,2000,true,true,true
64,recursive-doubling,64,1,450,440,470,470,440,460,100,1000,false,true,true
64,MPI_Allreduce,64,1,500,490,520,520,490,510,100,NaN,false,true,true
512,ring,512,1,600,590,620,620,590,610,100,2000,false,true,true
512,recursive-doubling,512,1,495,490,520,520,480,510,100,1000,true,true,true
512,MPI_Allreduce,512,1,500,490,520,520,490,510,100,NaN,false,true,true
";

const OF_SWEEP: &str = "tune allreduce -p 2 --bytes 8,64,512 --dtype f32 -a ring,recursive-doubling --engine threads \
     --alpha 1us --beta 0.1ns";

/// The library decides where it was as fast; another machine does not matter if nothing is
/// measured.
#[test]
fn rules_name_what_beats_the_library_in_a_sweep_of_another_machine() {
    let folder = folder("formats_selection_csv");
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    fs::write(file("sweep.csv"), SWEEP).unwrap();
    let csv = file("sweep.csv");
    let tune = format!("{OF_SWEEP} --csv {csv} --export openmpi={}", file("om"));
    let printed = text(&tune);
    assert!(printed.contains("library / best"), "{printed}");
    let winner = |size: &str| {
        let (_, best) = printed.split_once("the best of each size").unwrap();
        let line = best
            .lines()
            .find(|line| line.trim_start().starts_with(size));
        line.unwrap().to_string()
    };
    assert!(
        winner("8 B").ends_with("0.909  library faster"),
        "{printed}"
    );
    assert!(winner("64 B").ends_with("1.25  best"), "{printed}");
    assert!(winner("512 B").ends_with("1.01  best"), "{printed}");
    let rules = fs::read_to_string(file("om")).unwrap();
    let rules: Vec<&str> = rules.lines().filter(|line| !line.contains('#')).collect();
    assert_eq!(rules, ["0 0 0 0", "64 4 2 0", "512 0 0 0"]);
    assert_eq!(fs::read_to_string(&csv).unwrap(), SWEEP);
}

/// A file that is not written has no winners to doubt.
#[test]
fn doubts_are_said_of_files_that_are_written() {
    let folder = folder("formats_selection_doubts");
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    // The winner at 8 bytes may as well be the other one.
    let unsettled = SWEEP.replace("570,570,540,560", "570,570,500,620");
    let never_beaten = unsettled.replace("500,490,520,520,490,510", "100,90,120,120,90,110");
    assert!(unsettled != SWEEP && never_beaten != unsettled);
    for (name, sweep, is_written) in [("some", unsettled, true), ("none", never_beaten, false)] {
        let csv = file(&format!("{name}.csv"));
        fs::write(&csv, sweep).unwrap();
        let tune = format!("{OF_SWEEP} --csv {csv} --export openmpi={}", file(name));
        let output = oneport(&tune).output().unwrap();
        let notes = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{notes}");
        assert_eq!(folder.join(name).exists(), is_written, "{notes}");
        assert_eq!(notes.contains("is not written"), !is_written, "{notes}");
        assert_eq!(notes.contains("doubtful winners"), is_written, "{notes}");
    }
}

/// Times of one library are no reason for rules of another, and what is missing cannot be measured
/// in another place.
#[test]
fn a_sweep_of_another_machine_must_be_complete_and_of_this_library() {
    let folder = folder("formats_selection_elsewhere");
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    fs::write(file("sweep.csv"), SWEEP).unwrap();
    let csv = file("sweep.csv");
    for (options, why) in [
        (
            format!("--export intel={}", file("out")),
            "but the library is Open MPI v5.0.11",
        ),
        (
            format!("--bytes 8,1024 --export openmpi={}", file("out")),
            "ring of 1 KiB is not in the file",
        ),
        (
            format!("-p 4 --export openmpi={}", file("out")),
            "machine is a processor that this machine lacks",
        ),
    ] {
        let options = format!("{} {options} --csv {csv}", OF_SWEEP);
        let mut words: Vec<&str> = options.split_whitespace().collect();
        // The last of two equal options counts here; the command takes each once.
        for option in ["--bytes", "-p"] {
            let places: Vec<usize> = (0..words.len()).filter(|&i| words[i] == option).collect();
            if places.len() > 1 {
                words.drain(places[0]..places[0] + 2);
            }
        }
        let message = failure(&mut oneport(&words.join(" ")), 2);
        assert!(message.contains(why), "{message}");
        assert!(!folder.join("out").exists());
    }
    assert_eq!(fs::read_to_string(file("sweep.csv")).unwrap(), SWEEP);
}

/// LogGOPSim's time is the model's where the file says so.
#[test]
fn loggopsim_computes_the_models_time() {
    let Some(tools) = tool("ONEPORT_LOGGOPSIM") else {
        return;
    };
    let folder = folder("formats_loggopsim");
    let (goal, bin) = (folder.join("x.goal"), folder.join("x.bin"));
    let mut equal = 0;
    let timed = |plan: String| format!("{plan} --form timed");
    let ranks = || [2, 5, 8, 13].into_iter();
    let delayed = ranks()
        .flat_map(delayed_plans)
        .chain(ranks().flat_map(plans));
    for plan in ranks().flat_map(plans).chain(delayed.map(timed)) {
        let export = oneport(&format!("export goal {plan} -o {}", goal.display()))
            .output()
            .unwrap();
        if !export.status.success() {
            continue;
        }
        let file = fs::read_to_string(&goal).unwrap();
        let after = |start: &str| {
            file.lines()
                .find_map(|l| l.strip_prefix(start))
                .map(str::to_string)
        };
        if after("// LogGOPSim computes").is_none() {
            continue;
        }
        let flags = after("// LogGOPSim -L").unwrap();
        let time = after("// the model's time is ").unwrap();
        let time: u64 = time.split(';').next().unwrap().parse().unwrap();
        let out = printed(
            Command::new(tools.join("txt2bin"))
                .arg("-i")
                .arg(&goal)
                .arg("-o")
                .arg(&bin),
        );
        assert_eq!(out, "", "{plan}");
        let mut simulator = Command::new(tools.join("LogGOPSim"));
        simulator
            .arg("-f")
            .arg(&bin)
            .arg("-L")
            .args(flags.split_whitespace());
        let out = printed(&mut simulator);
        let hosts = out
            .lines()
            .filter(|l| l.starts_with("Host "))
            .filter_map(|l| l.split(": ").nth(1));
        let found = hosts.filter_map(|t| t.trim().parse::<u64>().ok()).max();
        assert_eq!(found, Some(time), "{plan}: {out}");
        equal += 1;
    }
    assert!(equal > 400, "{equal}");
}

/// A public verifier executes the files with threads.
#[test]
fn the_verifier_accepts_written_algorithms() {
    let Some(tools) = tool("ONEPORT_MSCCL_VERIFIER") else {
        return;
    };
    let folder = folder("formats_verifier");
    let file = folder.join("x.xml");
    for plan in [2, 3, 4, 6].into_iter().flat_map(plans) {
        let kind = plan.split(' ').next().unwrap();
        if !matches!(kind, "allgather" | "alltoall") {
            continue;
        }
        text(&format!("export msccl {plan} -o {}", file.display()));
        // The verifier of alltoall wants it to be called so.
        let xml = fs::read_to_string(&file).unwrap();
        fs::write(
            &file,
            xml.replace("coll=\"alltoall\"", "coll=\"allreduce\""),
        )
        .unwrap();
        let out = printed(
            Command::new(tools.join(format!("{kind}-verifier")))
                .arg(&file)
                .arg("2"),
        );
        assert!(out.contains("All tests passed"), "{plan}: {out}");
    }
}

/// Algorithms of other tools are right, with as many ports as they need and with one.
#[test]
fn algorithms_of_other_tools_are_imported() {
    let Some(folder) = tool("ONEPORT_MSCCL_XML") else {
        return;
    };
    let mut read = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let file = entry.unwrap().path();
        for ported in ["", "--ported 1"] {
            let checked = json(&format!("check --schedule {} {ported}", file.display()));
            assert_eq!(
                checked["ok"],
                true,
                "{} {ported}: {}",
                file.display(),
                checked["errors"]
            );
            read += 1;
        }
        let run = json(&format!(
            "run --schedule {} --repetitions 1",
            file.display()
        ));
        assert_eq!(run["verified"], true, "{}", file.display());
    }
    assert!(read > 0);
}

/// All schedules below a folder: MSCCL XML, plans of MSCCL++ and flows of TE-CCL.
fn schedules_below(folder: &Path) -> Vec<PathBuf> {
    let (mut open, mut found) = (vec![folder.to_path_buf()], Vec::new());
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(
                fs::read_dir(path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        } else if path.extension().is_some_and(|e| e == "xml" || e == "json") {
            let text = fs::read_to_string(&path).unwrap();
            let marks = ["<algo", "\"gpus\"", "\"3-Epochs_Required\""];
            if marks.iter().any(|mark| text.contains(mark)) {
                found.push(path);
            }
        }
    }
    found
}

/// The table of docs/published.md is what `check` finds in the checkouts.
#[test]
fn published_schedules_have_the_verdicts_of_the_page() {
    let Some(published) = tool("ONEPORT_PUBLISHED") else {
        return;
    };
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/published.md");
    let page = fs::read_to_string(page).unwrap();
    let mut judged = 0;
    for row in page.lines().filter(|line| line.starts_with("| [")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let counts: Vec<usize> = cells[4..8].iter().map(|n| n.parse().unwrap()).collect();
        let files = schedules_below(&published.join(cells[2].trim_matches('`')));
        assert!(!files.is_empty(), "{row}");
        let mut check = oneport("check --json");
        for file in &files {
            check.arg("--schedule").arg(file);
        }
        let output = check.output().unwrap();
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let count = |name: &str| answer["counts"][name].as_u64().unwrap() as usize;
        let found = [
            files.len(),
            count("correct"),
            count("wrong"),
            count("unreadable"),
        ];
        assert_eq!(found[..], counts[..], "{row}");
        judged += files.len();
    }
    assert!(judged > 400, "{judged}");
}

/// SimGrid's time on the crossbar is the model's, as far as it prints it: to a microsecond. On the
/// other networks messages share links and pass several: it is no shorter.
#[test]
fn simgrid_computes_the_models_time() {
    let Some(smpirun) = tool("ONEPORT_SMPIRUN") else {
        return;
    };
    let folder = folder("formats_simgrid");
    let ranks = || [2, 5, 8].into_iter();
    let crossbar = ranks()
        .flat_map(plans)
        .chain(ranks().flat_map(delayed_plans));
    let mut delayed = 0;
    let others = ["fat-tree", "torus", "dragonfly"];
    let others = others
        .into_iter()
        .flat_map(|n| plans(8).map(move |p| (n, p)));
    for (network, plan) in crossbar.map(|p| ("crossbar", p)).chain(others) {
        let target = folder.join("x");
        let _ = fs::remove_dir_all(&target);
        let options = format!("--network {network} -o {}", target.display());
        let export = oneport(&format!("export simgrid {plan} {options}"))
            .output()
            .unwrap();
        // Where latency or eager sends would take another time there.
        let ideal = !plan.contains("--arrivals") && !plan.contains("--latency");
        if !export.status.success() && !ideal {
            continue;
        }
        delayed += usize::from(!ideal);
        assert!(export.status.success(), "{plan}");
        let notes = String::from_utf8(export.stderr).unwrap();
        let command = notes
            .lines()
            .find_map(|l| l.strip_prefix("note: smpirun "))
            .unwrap();
        let out = printed(
            Command::new(&smpirun)
                .current_dir(&target)
                .args(command.split_whitespace()),
        );
        let time = out
            .rsplit("Simulation time ")
            .next()
            .unwrap()
            .split_whitespace()
            .next()
            .unwrap();
        let found: f64 = time
            .parse::<f64>()
            .unwrap_or_else(|_| panic!("{plan}: {out}"))
            * 1e6;
        let wanted = json(&format!("simulate {plan}"))["time"].as_f64().unwrap();
        let ok = match network {
            "crossbar" => (found - wanted).abs() <= 1.0,
            _ => found >= wanted - 1.0,
        };
        assert!(ok, "{network} {plan}: {found} {wanted}");
    }
    assert!(delayed > 400, "{delayed}");
}

#[test]
fn graphviz_draws_both_graphs() {
    let Some(dot) = tool("ONEPORT_DOT") else {
        return;
    };
    let folder = folder("formats_dot");
    let file = folder.join("x.dot");
    for rounds in ["", "--rounds"] {
        text(&format!(
            "export dot reduce -p 9 -a binary --segments 2 {rounds} -o {}",
            file.display()
        ));
        let out = printed(Command::new(&dot).arg("-Tplain").arg(&file));
        assert!(out.starts_with("graph ") && !out.contains("Error"), "{out}");
    }
}
