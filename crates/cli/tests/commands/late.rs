//! Tests of late ranks, latency and eager sends, and of why ranks wait.

use std::fs;

use super::options::{folder, json_in};
use crate::support::run::{failure, json, oneport, text};

#[test]
fn late_ranks_latency_and_eager_sends_are_timed() {
    let time = |options: &str| {
        let found = json(&format!(
            "simulate reduce -p 8 -a binomial --bytes 1 --alpha 1 --beta 0 {options}"
        ));
        let after = found["after_last_arrival"].as_f64();
        (found["time"].as_f64().unwrap(), after)
    };
    assert_eq!(time(""), (3.0, None));
    assert_eq!(
        time("--arrivals none --eager none --latency 0"),
        (3.0, None)
    );
    assert_eq!(time("--arrivals last:10"), (13.0, Some(3.0)));
    // A sweep over arrivals has the field in all rows.
    assert_eq!(time("--arrivals last:0"), (3.0, Some(3.0)));
    assert_eq!(time("--arrivals 0:20,1:10"), (23.0, Some(3.0)));
    assert_eq!(time("--latency 2 --eager all"), (9.0, None));
    let drawn = |seed: u32| time(&format!("--arrivals random:exp,20,seed={seed}"));
    assert_eq!(drawn(1), time("--arrivals random:exp,20"));
    assert_ne!(drawn(1), drawn(2));
    let folder = folder("arrivals");
    let file = folder.join("late.json");
    std::fs::write(&file, r#"{"arrivals": [20, 10, 0, 0, 0, 0, 0, 0]}"#).unwrap();
    let from_file = format!("--arrivals {}", file.display());
    assert_eq!(time(&from_file), (23.0, Some(3.0)));
    let table = folder.join("late.csv");
    fs::write(
        &table,
        "rank,arrivals\n0,20\n1,10ns\n2,0\n3,0\n4,0\n5,0\n6,0\n7,0\n",
    )
    .unwrap();
    let column = time(&format!("--arrivals {}", table.display()));
    assert_eq!(column, (23.0, Some(3.0)));
    for (wrong, word) in [
        ("at\n0\n", "no column arrivals"),
        ("arrivals\n-1\n", "not negative"),
    ] {
        fs::write(&table, wrong).unwrap();
        let late = format!("simulate barrier -p 1 --arrivals {}", table.display());
        let error = failure(&mut oneport(&late), 2);
        assert!(error.contains(word), "{error}");
    }
    let late = "simulate reduce -p 4 -a binomial --bytes 1 --alpha 1 --beta 0 --arrivals 3:5";
    let found = json(&format!("{late} --explain"));
    let chain = found["explain"]["chain"].as_array().unwrap();
    let steps = chain
        .iter()
        .map(|link| (link["rank"].as_u64(), link["reason"].as_str()));
    let steps: Vec<_> = steps
        .map(|(rank, reason)| (rank.unwrap(), reason.unwrap()))
        .collect();
    let data = [(2, "data"), (2, "data"), (2, "partner"), (3, "arrival")];
    assert_eq!(steps, data);
    assert_eq!(found["explain"]["slack"], serde_json::json!([0, 6, 0, 1]));
    let step = text(&format!("{late} --explain 3:0"));
    assert!(
        step.contains("rank 3, step 0 (send to 2), 5 to 6: rank 3 arrives at 5"),
        "{step}"
    );
    let options = "reduce -p 3 -a binomial --bytes 64 --eager all --latency 5us --arrivals 1:1ms";
    let [timed, native, paced] = ["simulate", "run", "run --clock paced"]
        .map(|command| json(&format!("{command} {options}")));
    for run in [native, paced] {
        assert_eq!(run["verified"], true);
        assert_eq!(run["model_time"], timed["time"]);
        assert_eq!(run["after_last_arrival"], timed["after_last_arrival"]);
    }
    let measured = json(
        &format!("compare {options} -a linear,binomial --engine threads")
            .replace("-a binomial", ""),
    );
    for row in measured["rows"].as_array().unwrap() {
        let [all, after] = ["model_time", "after_last_arrival"].map(|key| row[key].as_f64());
        assert!((all.unwrap() - 1e6 - after.unwrap()).abs() < 1e-6);
        assert!(row["wall"]["median"].as_u64().unwrap() > 0);
    }
}

#[test]
fn late_ranks_are_swept() {
    let folder = folder("late");
    let reduce = "reduce -p 8 --bytes 1 --alpha 1 --beta 0 -a linear,binomial";
    let files = "-o late.csv -o late.svg -o late.html";
    let all = json_in(&folder, &format!("compare {reduce} --late 0,1,10 {files}"));
    // The root receives in order: the last one costs least, and another one holds up all after it.
    let found = |name: &str, late: f64| {
        let mut rows = all["rows"].as_array().unwrap().iter();
        let row = rows.find(|row| row["algorithm"] == name && row["late"] == late);
        ["model_time", "least_time"].map(|time| row.unwrap()[time].as_f64().unwrap())
    };
    assert_eq!(
        [0.0, 1.0, 10.0].map(|d| found("linear", d)),
        [[7.0, 7.0], [7.0, 6.0], [7.0, 1.0]]
    );
    for late in [0.0, 1.0, 10.0] {
        let [worst, least] = found("binomial", late);
        let after = (0..8).map(|rank| {
            let one = json(&format!(
                "simulate {} --arrivals {rank}:{late}",
                reduce.replace("linear,", "")
            ));
            one["after_last_arrival"]
                .as_f64()
                .unwrap_or_else(|| one["time"].as_f64().unwrap())
        });
        let after: Vec<f64> = after.collect();
        let bounds = [
            after.iter().copied().fold(0.0, f64::max),
            after.iter().copied().fold(99.0, f64::min),
        ];
        assert_eq!(bounds, [worst, least], "{late}");
    }
    // Which rank it is: the first of those whose delay costs most, and least.
    let ranks_of = |all: &serde_json::Value, name: &str, late: f64| {
        let rows = all["rows"].as_array().unwrap().iter();
        let mut rows = rows.filter(|row| row["late"] == late);
        let row = rows.find(|row| row["algorithm"] == name).unwrap();
        ["late_rank", "least_rank"].map(|of| row[of].clone())
    };
    assert_eq!(ranks_of(&all, "linear", 10.0), [0, 7]);
    assert_eq!(
        ranks_of(&all, "linear", 0.0),
        [(); 2].map(|()| serde_json::Value::Null)
    );
    let broadcast = "compare broadcast -p 8 --bytes 1 --alpha 1 --beta 0 --late 0,10";
    assert_eq!(ranks_of(&json(broadcast), "binomial", 10.0), [0, 1]);
    // The least of each algorithm that the table shows, and the rank.
    let shown = text(&format!("{broadcast} -a linear,binomial"));
    let title = "late by  fastest   time  late rank  least  late rank  x binomial  least binomial  x linear  least linear";
    assert!(shown.contains(title), "{shown}");
    let csv = fs::read_to_string(folder.join("late.csv")).unwrap();
    assert!(
        csv.contains(",late,late_rank,least_time,least_rank,"),
        "{csv}"
    );
    let again = text(&format!("compare {reduce} --late 0..16"));
    assert_eq!(again.matches("  binomial").count(), 17, "{again}");
    // Those that are made for late ranks are planned anew for each late rank.
    let all = json("compare allreduce -p 4 --bytes 300 --alpha 0 --beta 1 --late 1000");
    let mut rows = all["rows"].as_array().unwrap().iter();
    let straggler = rows.find(|row| row["algorithm"] == "straggler").unwrap();
    let times = ["model_time", "least_time"].map(|of| straggler[of].as_f64().unwrap());
    assert_eq!(times, [400.0, 400.0]);
    // So are those that take parts by their times then.
    let scan = "scan -p 5 --bytes 3 --alpha 2 --beta 1 --gamma 1 --ports uni -a gossip";
    let all = json(&format!("compare {scan} --late 0,7"));
    let row = &all["rows"].as_array().unwrap()[1];
    let after = (0..5).map(|rank| json(&format!("simulate {scan} --arrivals {rank}:7")));
    let after: Vec<f64> = after
        .map(|one| one["after_last_arrival"].as_f64().unwrap())
        .collect();
    let [most, least] = [f64::max, f64::min].map(|of| after.iter().copied().reduce(of).unwrap());
    assert_eq!(
        ["model_time", "least_time"].map(|of| row[of].as_f64().unwrap()),
        [most, least]
    );
    let svg = fs::read_to_string(folder.join("late.svg")).unwrap();
    assert!(
        svg.contains("one rank is late by")
            && svg.matches("stroke-dasharray=\"1.5 2\"").count() == 2
    );
    // All arrive at 5: nothing but the ideal time is left.
    let trials = json(&format!(
        "compare {reduce} --arrivals random:uniform,5,5 --trials 20"
    ));
    for (row, time) in trials["rows"].as_array().unwrap().iter().zip([3.0, 7.0]) {
        let times = ["model_time", "least_time", "p95_time", "worst_time"];
        assert_eq!(times.map(|of| row[of].as_f64().unwrap()), [time; 4]);
    }
    let unknown = "compare reduce -p 8 --bytes 1 --late 1 -a binomail";
    assert!(failure(&mut oneport(unknown), 2).contains("did you mean 'binomial'"));
    for (options, error) in [
        ("--late 1 --engine threads", "leave --engine out"),
        ("--late 2..1", "does not start with its smaller end"),
        ("--late 1 --arrivals last:1", "cannot be used with"),
        ("--late 1 --trials 3", "cannot be used with"),
        ("--trials 3 --arrivals last:1", "--trials draws arrivals"),
        ("--trials 0 --arrivals random:exp,1", "--trials is 0"),
    ] {
        let command = format!("compare {reduce} {options}");
        let found = failure(&mut oneport(&command), 2);
        assert!(found.contains(error), "{options}: {found}");
    }
}

/// What would take long to be planned for each late rank is timed as planned once, on ports other
/// than those that it is planned for, too.
#[test]
fn long_compositions_are_planned_once_for_all_late_ranks() {
    let folder = folder("late-once");
    let request = "-p 64 --bytes 64 --ports telephone -a composed";
    let plan = format!("plan allreduce {request} -o once.json");
    oneport(&plan).current_dir(&folder).assert().success();
    let compare = format!("compare allreduce {request} --schedule once.json --late 5us,9us --json");
    let run = oneport(&compare).current_dir(&folder).assert().success();
    let said = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert_eq!(said.matches("under all arrivals").count(), 1, "{said}");
    let all: serde_json::Value = serde_json::from_slice(&run.get_output().stdout).unwrap();
    let rows = all["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4, "{all}");
    for late in [5e3, 9e3] {
        let rows: Vec<_> = rows.iter().filter(|row| row["late"] == late).collect();
        assert_eq!(rows.len(), 2, "{all}");
        for field in ["model_time", "least_time", "late_rank"] {
            assert_eq!(rows[0][field], rows[1][field], "{field} of {late}: {all}");
        }
    }
}

/// A schedule that ends with `--overlap` alone, as `check` and `run` know.
#[test]
fn a_schedule_that_needs_overlap_is_timed_with_it() {
    let folder = folder("needs-overlap");
    let file = folder.join("allreduce.json");
    let spans = |of: [usize; 2]| serde_json::json!([of]);
    let send = |of, to: usize| serde_json::json!({"send": {"to": to, "spans": spans(of)}});
    let recv = |of, from: usize| serde_json::json!({"recv": {"from": from, "spans": spans(of)}});
    let combine = |of, from: usize, order: &str| serde_json::json!({"recv_combine": {"from": from, "spans": spans(of), "order": order}});
    // Each rank sends while it combines: its receive waits for the send of the other rank.
    let program = |other: usize, order: &str, mine: [usize; 2], theirs: [usize; 2]| {
        serde_json::json!([
            combine(mine, other, order),
            send(theirs, other),
            send(mine, other),
            recv(theirs, other)
        ])
    };
    let vector = serde_json::json!({"len": 4, "input": [[0, 4]], "output": [[0, 4]]});
    let schedule = serde_json::json!({
        "ranks": 2, "ports": "bi", "collective": {"kind": "allreduce"}, "layout": [vector, vector],
        "programs": [program(1, "mine_first", [0, 2], [2, 2]), program(0, "theirs_first", [2, 2], [0, 2])],
    });
    fs::write(&file, schedule.to_string()).unwrap();
    let file = file.display();
    let costs = "--alpha 10 --beta 1 --gamma 1 --overlap";
    assert_eq!(
        json(&format!("check --schedule {file} --overlap"))["ok"],
        true
    );
    oneport(&format!("simulate --schedule {file}"))
        .assert()
        .code(1);
    let found = json(&format!("simulate --schedule {file} {costs} -v --explain"));
    // Both combine after 12 and 2, and send the result.
    assert_eq!((&found["time"], &found["rounds"]), (&26.into(), &2.into()));
    let all = json(&format!("compare --schedule {file} {costs}"));
    let name = file.to_string();
    let rows = all["rows"].as_array().unwrap().iter();
    let own = rows.filter(|row| name.ends_with(row["algorithm"].as_str().unwrap()));
    assert_eq!(own.map(|row| &row["time"]).collect::<Vec<_>>(), [26]);
    let run = json(&format!("run --schedule {file} {costs} --rendezvous"));
    assert_eq!(
        (&run["verified"], &run["model_time"]),
        (&true.into(), &26.into())
    );
}

/// `--explain` and `--critical-path` account for all of the time.
#[test]
fn reasons_and_critical_paths_hold_latency_and_arrivals() {
    let pieces = |arguments: &str| -> Vec<(String, f64, f64)> {
        let found = json(&format!("simulate {arguments} --critical-path"));
        let path = found["critical_path"].as_array().unwrap().iter();
        let piece = path.map(|piece| {
            let [start, end] = ["start", "end"].map(|of| piece[of].as_f64().unwrap());
            (piece["work"].as_str().unwrap().to_string(), start, end)
        });
        let path: Vec<_> = piece.collect();
        assert_eq!(path[0].1, 0.0, "{arguments}");
        assert!(
            path.windows(2).all(|pair| pair[0].2 == pair[1].1),
            "{arguments}: {path:?}"
        );
        assert_eq!(path.last().unwrap().2, found["time"].as_f64().unwrap());
        path
    };
    let chain = "broadcast -p 2 -a chain --bytes 4 --segments 2 --alpha 1 --beta 1 --latency 5";
    // The second segment is asked for, and on its way: twice the latency.
    let path = pieces(chain);
    assert!(
        path.contains(&("latency".to_string(), 13.0, 23.0)),
        "{path:?}"
    );
    let explained = text(&format!("simulate {chain} --explain"));
    let reason =
        "13 by step 0 (receive from 0); word of it and the message are on their way for 10";
    assert!(
        explained.contains(&format!("its port is kept until {reason}")),
        "{explained}"
    );
    let late = "reduce -p 4 -a binomial --bytes 1 --alpha 1 --beta 0";
    pieces(&format!("{late} --arrivals 3:5"));
    pieces(&format!("{late} --arrivals 3:5 --latency 2 --eager all"));
    assert_eq!(
        pieces(&format!("{late} --arrivals 3:5"))[0],
        ("arrival".to_string(), 0.0, 5.0)
    );
    // A rank without steps arrives last.
    let folder = folder("no-steps");
    let file = folder.join("idle.json");
    let schedule = r#"{ "ranks": 3, "ports": "bi", "collective": {"kind": "multicast", "root": 0, "targets": [1]},
      "layout": [ {"len": 1, "input": [[0,1]], "output": []}, {"len": 1, "input": [], "output": [[0,1]]},
                  {"len": 0, "input": [], "output": []} ],
      "programs": [ [ {"send": {"to": 1, "spans": [[0,1]]}} ], [ {"recv": {"from": 0, "spans": [[0,1]]}} ], [] ] }"#;
    fs::write(&file, schedule).unwrap();
    let idle = format!(
        "--schedule {} --alpha 1 --beta 1 --arrivals 2:20",
        file.display()
    );
    assert_eq!(pieces(&idle), [("arrival".to_string(), 0.0, 20.0)]);
    let found = json(&format!("simulate {idle} --explain"));
    assert_eq!(
        found["explain"]["arrival"],
        serde_json::json!({"rank": 2, "time": 20})
    );
    assert_eq!(found["explain"]["chain"], serde_json::json!([]));
    let words = text(&format!("simulate {idle} --explain"));
    assert!(
        words.contains("rank 2 arrives at 20 and has no steps"),
        "{words}"
    );
}

/// The best root is found by times with the arrivals.
#[test]
fn a_free_root_counts_on_late_ranks() {
    let gather =
        "simulate gather -p 3 --bytes 2 --alpha 1 --beta 1 --arrivals last:20 -a rank-ordered";
    let times = ["0", "1", "2", "free"]
        .map(|root| json(&format!("{gather} --root {root}"))["time"].clone());
    assert_eq!(times, [23, 23, 26, 23]);
}
