//! Fuzz test of answers: what one command says of the time of a request, all commands say, to the
//! last bit, however the request is worded.

use std::collections::BTreeMap;
use std::process::Output;

use serde_json::Value;

use super::seeds;
use crate::support::random::Random;
use crate::support::run::oneport;

/// The number of requests unless the environment sets one.
const DEFAULT_REQUESTS: u64 = 25;

/// Options that a request may have: how many of ten have one, and its forms. `R` stands for a
/// number up to that of the ranks.
const OPTIONS: [(usize, &[&str]); 12] = [
    (10, &["--ports bi", "--ports uni", "--ports telephone"]),
    (3, &["--ported 2", "--ported 3"]),
    (
        10,
        &["--alpha 1us", "--alpha 10us", "--alpha 100ns", "--alpha 0"],
    ),
    (10, &["--beta 1ns", "--beta 0.1ns", "--beta 0.3ns"]),
    (4, &["--gamma 0.5ns", "--gamma 2ns"]),
    (3, &["--gamma-copy 0.2ns"]),
    (2, &["--overlap"]),
    (2, &["--latency 3us", "--latency 500ns"]),
    (2, &["--eager all", "--eager 1KiB"]),
    (
        2,
        &[
            "--arrivals last:20us",
            "--arrivals 0:5us",
            "--arrivals random:exp,10us,seed=3",
        ],
    ),
    (3, &["--node-ports 1 --nodes R", "--node-ports 2 --nodes R"]),
    (2, &["--segments 1", "--segments 3", "--segments unequal"]),
];

/// A request as the options of commands.
fn request(random: &mut Random) -> String {
    let kinds = [
        "broadcast",
        "reduce",
        "allreduce",
        "allgather",
        "reduce_scatter",
        "alltoall",
        "gather",
        "scatter",
        "scan",
        "exscan",
        "barrier",
        "multicast",
    ];
    let kind = *random.pick(&kinds);
    let ranks = *random.pick(&[2, 3, 4, 5, 6, 7, 8, 9, 12]);
    let mut request = format!("{kind} -p {ranks}");
    if kind != "barrier" {
        let sizes = ["1", "8", "100", "1KiB", "5000", "64KiB"];
        request += &format!(" --bytes {}", random.pick(&sizes));
    }
    if kind == "multicast" {
        request += " --targets 1";
    }
    let reduces = ["reduce", "allreduce", "reduce_scatter", "scan", "exscan"].contains(&kind);
    let own: &[(usize, &[&str])] = match kind {
        "broadcast" | "gather" | "scatter" => &[(4, &["--root free", "--root 1"])],
        _ if reduces => &[
            (3, &["--dtype f32", "--dtype u8"]),
            (2, &["--ordered"]),
            (2, &["--same-bits"]),
        ],
        _ => &[],
    };
    for (often, forms) in OPTIONS.iter().chain(own) {
        if random.below(10) < *often && !(kind == "barrier" && forms[0].starts_with("--segments")) {
            let node = (1 + random.below(ranks)).to_string();
            let form = random.pick(forms).replace('R', &node);
            request += &format!(" {form}");
        }
    }
    request
}

/// What a command prints as JSON, unless it refuses the request.
fn answer(command: &str) -> Option<Value> {
    let output = oneport(command).arg("--json").output().expect("an output");
    let Output {
        status,
        stdout,
        stderr,
    } = output;
    let said = String::from_utf8_lossy(&stderr);
    match status.code() {
        Some(0) => Some(serde_json::from_slice(&stdout).expect("one JSON object")),
        Some(1 | 2) if !said.contains("panicked") => None,
        _ => panic!("{command}: {status}\n{said}"),
    }
}

/// By algorithm: the times of rows, but for those of the other size of a sweep.
fn times(rows: &Value, field: &str) -> Vec<(String, Value)> {
    let rows = rows["rows"].as_array().expect("rows").iter();
    let rows = rows.filter(|row| field == "time" || row["bytes"] != 77);
    let time = |row: &Value| {
        (
            row["algorithm"].as_str().expect("a name").into(),
            row[field].clone(),
        )
    };
    rows.map(time).collect()
}

#[test]
fn commands_agree_on_times() {
    let seeds = seeds(DEFAULT_REQUESTS);
    let (mut compared, all) = (0, seeds.end - seeds.start);
    // By command: times that are those of `compare`.
    let mut equal: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in seeds {
        let random = &mut Random::new(seed);
        let request = request(random);
        let rerun = format!("ONEPORT_FUZZ_SEED={seed} cargo test --test commands fuzz::agree");
        let Some(found) = answer(&format!("compare {request}")) else {
            continue;
        };
        let expected = times(&found, "time");
        let mut check = |kind, command: String, found: Vec<(String, Value)>| {
            for (name, time) in found {
                let Some((_, expected)) = expected.iter().find(|(other, _)| *other == name) else {
                    continue;
                };
                *equal.entry(kind).or_default() += 1;
                assert_eq!(
                    time, *expected,
                    "{name}\ncompare {request}\n{command}\n{rerun}"
                );
            }
        };
        compared += 1;
        // Beside another size.
        if let Some((before, after)) = request.split_once("--bytes ") {
            let (size, rest) = after.split_once(' ').unwrap_or((after, ""));
            let command = format!("compare {before}--bytes {size},77 {rest}");
            if let Some(found) = answer(&command) {
                check("sweep", command, times(&found, "model_time"));
            }
        }
        // Late by nothing.
        if !request.contains("--arrivals") {
            for late in ["--late 0", "--trials 2 --arrivals random:uniform,0,0"] {
                let command = format!("compare {request} {late}");
                let found = answer(&command).unwrap_or_else(|| panic!("{command} is refused"));
                check("late", command, times(&found, "model_time"));
            }
        }
        // One algorithm by itself, simulated and run.
        let (name, _) = random.pick(&expected);
        for kind in ["simulate", "run --repetitions 1 --warmup 0"] {
            let command = format!("{kind} {request} -a {name}");
            if let Some(found) = answer(&command) {
                let found = vec![(name.clone(), found["model_time"].clone())];
                check(kind, command, found);
            }
        }
    }
    println!("{compared} of {all} requests can be planned; equal times: {equal:?}");
    assert!(all < 10 || compared > all / 2, "{compared} of {all}");
    let least = equal.values().min().copied().unwrap_or(0);
    assert!(
        all < 10 || equal.len() == 4 && least as u64 > all / 3,
        "{equal:?}"
    );
}
