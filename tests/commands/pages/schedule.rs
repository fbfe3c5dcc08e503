//! Tests of the page of a schedule.

use std::path::Path;

use oneport::plan::registry;
use oneport::report::{Caption, Unit, page};
use oneport::rules::{Event, NodeKind};
use oneport::simulate::Simulation;
use oneport::{CostModel, Ports, Request, Schedule};
use serde_json::Value;

use super::held::{Inputs, held_at};
use super::{Browser, VIEWS, audit, folder, tab_order};
use crate::support::run::{failure, oneport};

/// Draws a page with the binary; returns its path and the schedule that it shows.
fn drawn(name: &str, arguments: &str) -> (std::path::PathBuf, Schedule) {
    let path = folder().join(format!("{name}.html"));
    let draw = format!("draw {arguments} -o {}", path.display());
    oneport(&draw).assert().success();
    let costs = ["--alpha", "--beta", "--gamma"];
    let mut words = arguments.split(' ').collect::<Vec<_>>();
    words.retain(|w| !w.is_empty());
    while let Some(at) = words.iter().position(|w| costs.contains(w)) {
        words.drain(at..at + 2);
    }
    let plan = match words.iter().position(|&w| w == "--schedule") {
        Some(at) => std::fs::read_to_string(words[at + 1]).unwrap(),
        None => {
            let plan = format!("plan {} --format json", words.join(" "));
            let output = oneport(&plan).assert().success().get_output().clone();
            String::from_utf8(output.stdout).unwrap()
        }
    };
    (path, Schedule::from_json(&plan).unwrap())
}

/// What the page shows.
const SHOWN: &str = "({
  clock: document.getElementById('clock').textContent,
  arrows: [...document.querySelectorAll('#messages .message')].map(m => +m.dataset.node).length,
  rows: [...document.querySelectorAll('#ranks tbody tr')].map(row => ({
    ports: [...row.cells].slice(1, -1).map(cell => cell.textContent),
    cells: [...row.querySelectorAll('i')].map(cell => cell.title),
  })),
  cursor: +document.getElementById('cursor').getAttribute('transform').match(/[0-9.]+/)[0],
})";

/// Reads `3` or `3-7` as first and last.
fn range(text: &str) -> (usize, usize) {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    (first.parse().unwrap(), last.parse().unwrap())
}

/// What a buffer holds as its cells say, such as `elements 4-7: x0..x3+x6 [4-7]`, by position.
fn told(cells: &Value, len: usize) -> Vec<Inputs> {
    let mut held = vec![Inputs::new(); len];
    for cell in cells.as_array().unwrap() {
        let (place, content) = cell.as_str().unwrap().split_once(": ").unwrap();
        let (first, last) = range(place.rsplit(' ').next().unwrap());
        if content == "nothing" {
            continue;
        }
        let (words, indices) = content.split_once(" [").unwrap();
        let (index, end) = range(indices.trim_end_matches(']'));
        assert_eq!(end - index, last - first, "{cell}");
        for (i, inputs) in held[first..=last].iter_mut().enumerate() {
            for word in words.split('+') {
                let (low, high) = word.split_once("..").unwrap_or((word, word));
                let rank = |w: &str| w.trim_start_matches('x').parse::<usize>().unwrap();
                inputs.extend((rank(low)..=rank(high)).map(|r| (r, index + i)));
            }
        }
    }
    held
}

/// What the ports of every rank do at a time, as the page's table says it: a column for each port
/// list and one for computations.
fn ports_at(schedule: &Schedule, simulation: &Simulation, time: f64) -> Vec<Vec<String>> {
    let lists = schedule.ports().lists();
    let mut ports = vec![vec![Vec::new(); lists + 1]; schedule.ranks()];
    let prepared = simulation.prepared();
    for (rank, program) in schedule.programs().iter().enumerate() {
        for (i, step) in program.iter().enumerate() {
            for event in [Event::transferred(i), Event::computed(i)] {
                let Some(node) = prepared.node(rank, event) else {
                    continue;
                };
                if !(simulation.start(node) <= time && time < simulation.finish(node)) {
                    continue;
                }
                let kind = prepared.nodes()[node].kind;
                let (column, words) = match (kind, step.peer(), step.port()) {
                    (NodeKind::Transfer, Some(peer), Some(port)) => {
                        let arrow = if step.is_send() { "→" } else { "←" };
                        let list = schedule.ports().list(step.is_send(), port);
                        (list, format!("{arrow} {peer}"))
                    }
                    (NodeKind::Copy, ..) => (lists, "copy".to_string()),
                    _ => (lists, "combine".to_string()),
                };
                ports[rank][column].push(words);
            }
        }
    }
    let joined = |row: Vec<Vec<String>>| row.iter().map(|words| words.join(", ")).collect();
    ports.into_iter().map(joined).collect()
}

/// Steps through a loaded page and compares it with the simulator at about `samples` instants.
fn compare(browser: &mut Browser, schedule: &Schedule, simulation: &Simulation, samples: usize) {
    let nodes = 0..simulation.prepared().nodes().len();
    let mut instants: Vec<f64> = nodes
        .flat_map(|n| [simulation.start(n), simulation.finish(n)])
        .collect();
    instants.push(0.0);
    instants.sort_by(f64::total_cmp);
    instants.dedup();
    let last = instants.len() - 1;
    browser.press("Home");
    let mut cursor = -1.0;
    let every = (instants.len() / samples).max(1);
    for (i, &time) in instants.iter().enumerate() {
        if i % every == 0 || i == last {
            let shown = browser.eval(SHOWN);
            let clock = shown["clock"].as_str().unwrap();
            assert!(clock.ends_with(&format!("event {i} of {last}")), "{clock}");
            let told_time = clock.split(' ').nth(1).unwrap().parse::<f64>().unwrap();
            assert!(
                (told_time - time).abs() <= 1e-6 * time,
                "{clock} is not {time}"
            );
            let ports = ports_at(schedule, simulation, time);
            let held = held_at(schedule, simulation, time);
            for (rank, row) in shown["rows"].as_array().unwrap().iter().enumerate() {
                assert_eq!(
                    row["ports"],
                    serde_json::json!(ports[rank]),
                    "rank {rank} at {time}"
                );
                let told = told(&row["cells"], held[rank].len());
                assert_eq!(told, held[rank], "the buffer of rank {rank} at {time}");
            }
            let receiving = ports
                .iter()
                .flatten()
                .filter(|words| words.starts_with('←'))
                .count();
            assert_eq!(shown["arrows"], receiving, "messages at {time}");
            let x = shown["cursor"].as_f64().unwrap();
            assert!(x > cursor, "the line of the chart stands still at {time}");
            cursor = x;
        }
        browser.press("ArrowRight");
    }
    // Backwards, the buffers are what they were.
    browser.press("Home");
    let shown = browser.eval(SHOWN);
    for (rank, held) in held_at(schedule, simulation, 0.0).iter().enumerate() {
        assert_eq!(&told(&shown["rows"][rank]["cells"], held.len()), held);
    }
}

const CASES: [(&str, &str, [f64; 3]); 6] = [
    (
        "reduce",
        "reduce -p 8 -a bi-greedy --bytes 4 --segments 4 --alpha 1 --beta 1 --gamma 1",
        [1.0, 1.0, 1.0],
    ),
    (
        "gather",
        "gather -p 9 -a binary --sizes 3,0,2,5,1,4,0,7,2 --alpha 10 --beta 1",
        [10.0, 1.0, 0.0],
    ),
    (
        "uni",
        "broadcast -p 7 -a uni-greedy --ports uni --bytes 12 --segments 3 --alpha 2 --beta 1",
        [2.0, 1.0, 0.0],
    ),
    (
        "alltoall",
        "alltoall -p 6 -a bruck --bytes 2 --alpha 3 --beta 1",
        [3.0, 1.0, 0.0],
    ),
    (
        "scatter",
        "scatter -p 16 -a oblivious --bytes 4 --alpha 3 --beta 1",
        [3.0, 1.0, 0.0],
    ),
    (
        "allreduce",
        "allreduce -p 12 -a ring --bytes 48 --alpha 3 --beta 1 --gamma 0.5",
        [3.0, 1.0, 0.5],
    ),
];

#[test]
fn the_page_shows_what_simulator_and_checker_say() {
    let Some(mut browser) = Browser::start("the page of a schedule") else {
        return;
    };
    for (name, arguments, [alpha, beta, gamma]) in CASES {
        let (path, schedule) = drawn(name, arguments);
        let cost = CostModel::new(alpha, beta).gamma(gamma).gamma_copy(gamma);
        let simulation = schedule.simulate(&cost).unwrap();
        for (view, size, dark) in VIEWS {
            browser.load(&path, size, dark);
            browser.press("ArrowRight");
            let audit = audit(&mut browser, view, &path);
            let selected = audit["selected"].as_str().unwrap();
            assert!(
                selected.contains("Proved:") && selected.contains("Gantt chart"),
                "{selected}"
            );
        }
        compare(&mut browser, &schedule, &simulation, 40);
        assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
    }
}

#[test]
fn a_schedule_from_a_file_is_shown_with_its_errors() {
    let Some(mut browser) = Browser::start("the page of a wrong schedule") else {
        return;
    };
    // Rank 1 sends on what it has not yet received, and rank 2 gets nothing.
    let wrong = r#"{ "ranks": 3, "ports": "bi", "collective": {"kind": "broadcast", "root": 0},
      "layout": [ {"len": 4, "input": [[0,4]], "output": [[0,4]]},
                  {"len": 4, "input": [], "output": [[0,4]]}, {"len": 4, "input": [], "output": [[0,4]]} ],
      "programs": [ [ {"send": {"to": 1, "spans": [[0,4]]}} ],
                    [ {"send": {"to": 2, "spans": [[0,4]]}}, {"recv": {"from": 0, "spans": [[0,4]]}} ],
                    [ {"recv": {"from": 1, "spans": [[0,4]]}} ] ] }"#;
    let file = folder().join("wrong.json");
    std::fs::write(&file, wrong).unwrap();
    let (path, _) = drawn("wrong", &format!("--schedule {}", file.display()));
    browser.load(&path, VIEWS[0].1, false);
    browser.press("End");
    let alert = browser.eval("document.querySelector('[role=alert]').textContent");
    assert!(alert.as_str().unwrap().contains("rank 2"), "{alert}");
    let cell =
        browser.eval("document.querySelectorAll('#ranks tbody tr')[2].querySelector('i').title");
    assert_eq!(cell, "elements 0-3: nothing");
    audit(&mut browser, "1280-light", &path);
}

#[test]
fn the_keyboard_alone_suffices() {
    let Some(mut browser) = Browser::start("the keys of a page") else {
        return;
    };
    let (path, schedule) = drawn("keys", CASES[0].1);
    browser.load(&path, VIEWS[0].1, false);
    let order = tab_order(&mut browser);
    for id in [
        "first",
        "back",
        "play",
        "next",
        "last",
        "slider",
        "speed",
        "critical",
        "ranks-box",
        "chart",
    ] {
        assert!(
            order.iter().any(|o| o == id),
            "{id} is not reached: {order:?}"
        );
    }
    browser.eval("document.activeElement.blur()");
    let text = |browser: &mut Browser, id: &str| {
        let text = browser.eval(&format!("document.getElementById('{id}').textContent"));
        text.as_str().unwrap().to_string()
    };
    browser.press("ArrowDown");
    assert_eq!(text(&mut browser, "chosen"), "1");
    // Its second step: what it is, when, and what it waited for.
    browser.press(".");
    browser.press(".");
    let details = text(&mut browser, "details");
    assert!(
        details.contains("rank 1, step 1:") && details.contains("byte"),
        "{details}"
    );
    assert_eq!(schedule.ranks(), 8);
    browser.press("c");
    assert_eq!(
        browser.eval("document.body.classList.contains('lit')"),
        false
    );
    browser.press("Home");
    browser.press(" ");
    assert_eq!(browser.eval("state.playing"), true);
    let moved = "new Promise(done => setTimeout(() => done(state.time), 400))";
    assert!(browser.eval(moved).as_f64().unwrap() > 0.0);
    browser.press(" ");
    assert_eq!(browser.eval("state.playing"), false);
    browser.press("End");
    assert!(text(&mut browser, "clock").starts_with("time 18 of 18"));
    browser.point_at("#chart rect.receives");
    let tip = text(&mut browser, "tip");
    for word in [
        "rank ",
        "step ",
        "receives segment",
        " to ",
        "starts at once",
    ] {
        assert!(tip.contains(word), "{tip}");
    }
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}

#[test]
fn pages_of_64_ranks_are_small_and_reproducible() {
    let cost = CostModel::new(1000.0, 0.1).gamma(0.03);
    let (mut pages, mut refused) = (0, Vec::new());
    for algorithm in registry::all() {
        for ports in [Ports::UNI, Ports::BI] {
            let request = Request::new(algorithm.collective, 64, 64 * 16)
                .ports(ports)
                .segment_count(64);
            let Ok(schedule) = algorithm.plan(&request) else {
                continue;
            };
            let caption = Caption::new(algorithm.name);
            let make = || page(&schedule, &cost, 1, Unit::Nanoseconds, &caption);
            let name = format!("{} {}", algorithm.collective.name(), algorithm.name);
            let (one, other) = match (make(), make()) {
                (Ok(one), Ok(other)) => (one, other),
                // Each of 64 blocks in 64 segments.
                (Err(e), _) => {
                    assert!(
                        e.to_string().contains("fewer ranks or segments"),
                        "{name}: {e}"
                    );
                    refused.push(name);
                    continue;
                }
                _ => panic!("{name} is refused only the second time"),
            };
            assert!(one == other, "{name} gives different bytes");
            assert!(one.len() < 1_000_000, "{name}: {} bytes", one.len());
            assert!(one.contains("Proved:"), "{name}");
            pages += 1;
        }
    }
    assert!(pages > 60, "{pages}");
    let blocks_in_segments = [
        "allgather circulant-blocks",
        "reduce_scatter circulant-blocks",
    ];
    assert_eq!(refused, blocks_in_segments);
}

#[test]
fn a_page_of_64_ranks_and_64_segments_is_smooth() {
    let Some(mut browser) = Browser::start("a page of 64 ranks") else {
        return;
    };
    let (path, schedule) = drawn(
        "large",
        "reduce -p 64 -a chain --bytes 64KiB --segments 64 --alpha 1us --beta 0.1ns",
    );
    let simulation = schedule.simulate(&CostModel::new(1000.0, 0.1)).unwrap();
    browser.load(&path, VIEWS[0].1, false);
    // An event takes a frame or two even here; a second would be unusable.
    let step = "(() => { const t = performance.now(); for (let i = 0; i < 20; i++) move(1); return (performance.now() - t) / 20; })()";
    let milliseconds = browser.eval(step).as_f64().unwrap();
    assert!(milliseconds < 500.0, "{milliseconds} ms an event");
    compare_last(&mut browser, &schedule, &simulation);
    for (view, size, dark) in [VIEWS[0], VIEWS[3]] {
        browser.load(&path, size, dark);
        browser.eval("goTo(40)");
        browser.screenshot(&path.with_extension(format!("{view}.png")));
    }
}

/// Compares the buffers at the end.
fn compare_last(browser: &mut Browser, schedule: &Schedule, simulation: &Simulation) {
    browser.press("End");
    let shown = browser.eval(SHOWN);
    let held = held_at(schedule, simulation, simulation.makespan());
    for (rank, held) in held.iter().enumerate() {
        assert_eq!(
            &told(&shown["rows"][rank]["cells"], held.len()),
            held,
            "rank {rank}"
        );
    }
}

#[test]
fn what_is_no_page_is_refused() {
    let cases = [
        ("draw reduce -p 65 -o x.html", "64"),
        ("draw reduce -p 4 --dark -o x.html", "--dark"),
        ("draw reduce -p 4 --as gantt -o x.html", "FILE.svg"),
        ("draw reduce -p 4 --as page -o x.svg", "FILE.html"),
        ("draw reduce -p 4 --json -o x.html", "FILE.json"),
        (
            "draw reduce -p 4 --critical-path -o x.html",
            "--critical-path",
        ),
        (
            "draw reduce -p 64 -a chain --bytes 64KiB --segments 4096 -o x.html",
            "25000",
        ),
    ];
    for (arguments, word) in cases {
        let message = failure(&mut oneport(arguments), 2);
        assert!(message.contains(word), "{arguments}: {message}");
        assert!(!Path::new("x.html").exists());
    }
}
