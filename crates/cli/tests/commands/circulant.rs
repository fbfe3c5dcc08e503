//! Tests of circulant schedules: golden tables, and runs at scale.

use assert_cmd::Command;
use serde_json::Value;

fn oneport(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oneport"));
    command.args(arguments.split_whitespace());
    command
}

fn text(arguments: &str) -> String {
    let output = oneport(arguments).assert().success().get_output().clone();
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn json(arguments: &str) -> Value {
    serde_json::from_str(&text(&format!("{arguments} --json"))).expect("one JSON object")
}

/// Returns the standard error of a command that exits with `code`.
fn failure(arguments: &str, code: i32) -> String {
    let output = oneport(arguments).assert().code(code).get_output().clone();
    String::from_utf8(output.stderr).expect("UTF-8")
}

/// The golden files hold tables 1 to 4 of the paper, except for the root's base block, which table
/// 2 prints as -1.
#[test]
fn tables_equal_those_of_the_paper() {
    for (p, golden) in [
        (20, include_str!("../golden/circulant-20.txt")),
        (31, include_str!("../golden/circulant-31.txt")),
        (32, include_str!("../golden/circulant-32.txt")),
        (33, include_str!("../golden/circulant-33.txt")),
    ] {
        let printed = text(&format!(
            "plan broadcast -p {p} --algorithm circulant --table"
        ));
        assert_eq!(printed, golden);
    }
}

#[test]
fn tables_are_available_as_json() {
    let table = json("plan reduce -p 9 --algorithm circulant --table");
    assert_eq!(table["ranks"], 9);
    assert_eq!(table["skips"], serde_json::json!([1, 2, 3, 5, 9]));
    assert_eq!(
        table["recv"][3],
        serde_json::json!([-4, -1, -1, -1, -1, 3, 0, 1, 2])
    );
    assert_eq!(
        table["send"][0],
        serde_json::json!([0, -4, -3, -2, -4, -1, -4, -3, -2])
    );
    let message = failure("plan broadcast -p 9 --algorithm chain --table", 2);
    assert!(message.contains("--algorithm circulant"), "{message}");
    assert!(failure("plan --table", 2).contains("COLLECTIVE"));
    // Algorithms 7 and 8 follow no broadcast schedules.
    let message = failure("plan allreduce -p 9 -a census --table", 2);
    assert!(
        message.contains("choose --algorithm circulant"),
        "{message}"
    );
    for collective in ["allgather", "reduce_scatter"] {
        let message = failure(&format!("plan {collective} -p 9 -a circulant --table"), 2);
        assert!(
            message.contains("choose --algorithm circulant-blocks"),
            "{message}"
        );
        text(&format!(
            "plan {collective} -p 9 -a circulant-blocks --table"
        ));
    }
    failure("plan broadcast -a circulant --table --format json", 2);
    // One rank, of more than any table has.
    let one = json("plan broadcast -p 1000000007 -a circulant --table --rank 12345");
    assert_eq!(
        (&one["rank"], one["recv"].as_array().map(Vec::len)),
        (&12345.into(), Some(30))
    );
    let all = json("plan broadcast -p 9 -a circulant --table");
    let last = json("plan broadcast -p 9 -a circulant --table --rank 8");
    for k in 0..4 {
        assert_eq!(last["recv"][k], serde_json::json!([all["recv"][k][8]]));
        assert_eq!(last["send"][k], serde_json::json!([all["send"][k][8]]));
    }
    let printed = text("plan broadcast -p 9 -a circulant --table --rank 8");
    assert!(
        printed.starts_with("Process r      8\nBaseblock      2\n"),
        "{printed}"
    );
    let message = failure("plan broadcast -p 9 -a circulant --table --rank 9", 2);
    assert!(
        message.contains("rank 9 is not one of 9 ranks"),
        "{message}"
    );
    failure("plan broadcast -p 9 -a circulant --rank 8", 2);
    failure("plan broadcast -p 2000000 -a circulant --table", 2);
}

/// A schedule that is too long to be stored can still be timed.
#[test]
fn many_ranks_are_simulated() {
    let timed = json(
        "simulate broadcast -p 40000 --bytes 64KiB --segments 16 -a circulant --alpha 10 --beta 1",
    );
    assert_eq!(timed["rounds"], 16 - 1 + 16);
    assert_eq!(timed["time"], (16 - 1 + 16) * (10 + 4096));
    assert_eq!(timed["closed_form"], timed["time"]);
    assert_eq!(timed["messages"], 39_999 * 16);
    assert_eq!(timed["bytes"], 39_999 * 65536u64);
    assert_eq!(
        (&timed["ranks"], &timed["segments"]),
        (&40_000.into(), &16.into())
    );
    assert!(timed["lower_bound"].as_f64().unwrap() >= 65536.0);
    let summary = text(
        "simulate reduce -p 30000 --root 7 --bytes 1KiB --segments 20 -a circulant --gamma 1ns",
    );
    assert!(summary.contains("rounds       34"), "{summary}");
    let both = json(
        "simulate allreduce -p 20000 --bytes 3000 --segments 60 -a circulant --gamma 1 --alpha 10 --beta 1",
    );
    let rounds = 60 - 1 + 15;
    assert_eq!(
        (&both["rounds"], &both["root"]),
        (&(2 * rounds).into(), &Value::Null)
    );
    assert_eq!(both["time"], rounds * (2 * (10 + 50) + 50));
    assert_eq!(both["messages"], 2 * 19_999 * 60);
    // Segments that are asked for are made, though one message would be faster.
    let many = json("simulate allreduce -p 1024 --segments 30");
    assert_eq!(many["segments"], 30, "{many}");
    // Here an algorithm that uses many segments is the best, and `auto` selects it.
    let request = "broadcast -p 300 --bytes 3001 --segments 300 --alpha 0 --beta 1";
    let (chosen, compared) = (
        json(&format!("simulate {request}")),
        json(&format!("compare {request}")),
    );
    let best = &compared["rows"][0];
    assert_eq!(
        (&chosen["algorithm"], &chosen["time"]),
        (&best["algorithm"], &best["time"])
    );
    assert_eq!(chosen["closed_form"], Value::Null);
    // A number of ranks above the limit is refused.
    let message = failure(
        "simulate broadcast -p 999999999999 --segments 64 -a circulant",
        2,
    );
    assert!(message.starts_with("error: "), "{message}");
}

/// The irregular allgather needs every rank's receive schedule, which a small regular allgather can
/// collect.
#[test]
fn receive_schedules_can_be_allgathered() {
    use oneport::internal::circulant::{schedule::Circulant, tables::Tables};
    use oneport::plan::registry;
    use oneport::run::{Operator, Run, Team};
    use oneport::{Kind, Request};
    for p in [2, 5, 9, 20] {
        let graph = Circulant::new(p);
        let request = Request::allgather(p, graph.rounds());
        let allgather = registry::find(Kind::Allgather, "circulant").unwrap();
        let schedule = allgather.plan(&request).unwrap();
        let recv_schedules: Vec<Vec<i64>> = (0..p).map(|r| graph.recv_schedule(r)).collect();
        let sum = Operator::<i64>::named("sum").unwrap();
        let mut team = Team::new(p).unwrap();
        let outcome = Run::new(&schedule)
            .op(&sum)
            .inputs(&recv_schedules)
            .on(&mut team)
            .unwrap();
        let all: Vec<i64> = Tables::new(&graph)
            .recv
            .into_iter()
            .map(i64::from)
            .collect();
        assert!(outcome.outputs.iter().all(|output| *output == all), "p={p}");
        let rounds = schedule.stats().unwrap().rounds;
        assert_eq!(rounds, graph.rounds());
    }
}

/// The block sizes are those of the paper: `m_r = (r mod 3) floor(m/p)`, and the rest at the last
/// rank. Splitting the blocks into more parts pipelines the largest one.
#[test]
fn more_parts_speed_up_an_irregular_allgather() {
    use oneport::plan::registry;
    use oneport::{CostModel, Kind, Request};
    let (p, m) = (36, 36_000);
    let mut sizes: Vec<usize> = (0..p - 1).map(|r| r % 3 * (m / p)).collect();
    sizes.push(m - sizes.iter().sum::<usize>());
    let largest = sizes.iter().copied().max().unwrap();
    let algorithm = registry::find(Kind::Allgather, "circulant-blocks").unwrap();
    let time = |parts: usize| {
        let request = Request::new(algorithm.collective, p, largest)
            .segment_count(parts)
            .blocks(sizes.clone())
            .cost(CostModel::new(100.0, 1.0));
        let timed = algorithm
            .planned(&request)
            .and_then(|planned| planned.timed(request.get_cost(), |_| ()))
            .unwrap();
        assert_eq!(timed.rounds, parts - 1 + 6);
        let bound = (parts + 5) as f64 * (100.0 + (m / parts + p) as f64);
        assert!(timed.time <= bound, "{} {bound}", timed.time);
        timed.time
    };
    let times = [1, 2, 4, 8].map(time);
    assert!(times.iter().all(|t| *t >= 34_000.0));
    assert!(times[3] <= times[0], "{times:?}");
}

/// The irregular allgather of the paper, `m_r = (r mod 3) floor(m / p)`: 7 segments take less than
/// the 12 that a search by halves finds.
#[test]
fn the_best_number_of_parts_of_unequal_blocks() {
    let sizes: Vec<String> = (0..20).map(|r| (r % 3 * 200_000).to_string()).collect();
    let command = format!(
        "simulate allgather --sizes {} -a circulant-blocks",
        sizes.join(",")
    );
    let time = |segments: usize| {
        let timed = json(&format!("{command} --segments {segments}"));
        timed["time"].as_f64().unwrap()
    };
    let best = json(&command);
    let least = (1..=60).map(time).fold(f64::INFINITY, f64::min);
    assert_eq!(best["time"].as_f64().unwrap(), least);
    assert!(least <= time(7));
    // Theorem 3: m is all blocks together, 3.8 million bytes.
    let timed = json(&format!("{command} --segments 10 --alpha 100 --beta 1"));
    let published = &timed["published"];
    let theorem = published["table"].as_str().unwrap();
    assert!(theorem.contains("Theorem 3"), "{theorem}");
    assert_eq!(published["time"], (4 + 10) * (100 + 380_000));
    let at_best = 4.0 * 100.0 + 2.0 * (4.0 * 100.0 * 3.8e6f64).sqrt() + 3.8e6;
    assert!((published["best_time"].as_f64().unwrap() - at_best).abs() < 1e-3);
    assert!(timed["time"].as_f64() <= published["time"].as_f64());
}

#[test]
fn published_times_of_circulant_broadcasts_are_those_of_theorem_2() {
    let costs = "-p 20 --bytes 100 --alpha 1000 --beta 0.1";
    for (collective, theorem) in [
        ("broadcast", "(Theorem 2; Träff 2022)"),
        ("reduce", "(Theorem 2, reversed; Träff 2022)"),
    ] {
        let shown = text(&format!(
            "simulate {collective} {costs} -a circulant --segments 4"
        ));
        let line = shown.lines().find(|l| l.starts_with("published")).unwrap();
        assert!(line.contains(theorem), "{line}");
        // The formula's optimum of 500 bytes is more than there are.
        assert!(
            line.ends_with("with segments of 100 bytes, the best of this vector"),
            "{line}"
        );
        let long = costs.replace("--bytes 100", "--bytes 1000000");
        let shown = text(&format!(
            "simulate {collective} {long} -a circulant --segments 4"
        ));
        assert!(
            shown.contains("with segments of 50000 bytes, the best\n"),
            "{shown}"
        );
    }
}

/// The paper's lower bound: 16 rounds for 12 blocks on 20 ranks, which `simulate` and `check` name.
#[test]
fn schedules_are_judged_by_their_number_of_blocks() {
    let costs = "--alpha 1 --beta 0.001 --bytes 1200 --segments 12 -p 20";
    let of = |algorithm: &str| json(&format!("simulate broadcast {costs} -a {algorithm}"));
    let optimal = of("circulant");
    let blocks = &optimal["lower_bounds"]["whole_blocks"];
    assert_eq!(
        (&blocks["blocks"], &blocks["rounds"]),
        (&12.into(), &16.into())
    );
    assert_eq!(blocks["time"], optimal["time"]);
    assert_eq!(optimal["bound_by"], "path");
    // A chain of as many blocks is judged by the same time.
    assert_eq!(of("chain")["lower_bounds"]["whole_blocks"], *blocks);
    assert_eq!(
        json(&format!("simulate allreduce {costs}"))["lower_bounds"].get("whole_blocks"),
        None
    );
    let text = text(&format!("simulate broadcast {costs} -a circulant"));
    let line = "17.6 (time is 1 times that), 16 rounds: of all schedules that cut the vector into 12 blocks";
    assert!(text.contains(line), "{text}");
}
