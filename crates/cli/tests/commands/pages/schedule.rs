//! Tests of the page of a schedule.

use std::path::Path;

use oneport::machine::Eager;
use oneport::plan::registry;
use oneport::rules::{End, Event, NodeKind};
use oneport::simulate::Simulation;
use oneport::{CostModel, Ports, Request, Schedule};
use oneport_pictures::{Caption, Shown, Unit, page};
use serde_json::Value;

use super::held::{Inputs, held_at};
use super::{Browser, VIEWS, audit, folder, tab_order};
use crate::support::cases::cases;
use crate::support::run::{failure, oneport};

/// Draws a page with the binary; returns its path and the schedule that it shows.
pub(super) fn drawn(name: &str, arguments: &str) -> (std::path::PathBuf, Schedule) {
    let path = folder().join(format!("{name}.html"));
    let draw = format!("draw {arguments} -o {}", path.display());
    oneport(&draw).assert().success();
    let words: Vec<&str> = arguments.split(' ').collect();
    let plan = match words.iter().position(|&w| w == "--schedule") {
        Some(at) => std::fs::read_to_string(words[at + 1]).unwrap(),
        None => {
            let request = arguments.split(" --alpha").next().unwrap();
            let plan = format!("plan {request} --format json");
            let output = oneport(&plan).assert().success().get_output().clone();
            String::from_utf8(output.stdout).unwrap()
        }
    };
    (path, Schedule::from_json(&plan).unwrap())
}

/// The model that arguments name; copying costs what combining does. A late rank is `RANK:TIME`.
pub(super) fn cost(arguments: &str) -> CostModel {
    let words: Vec<&str> = arguments.split(' ').collect();
    let [alpha, beta, gamma] = ["--alpha", "--beta", "--gamma"].map(|option| {
        let at = words.iter().position(|&word| word == option);
        at.map_or(0.0, |at| words[at + 1].parse().unwrap())
    });
    let mut cost = CostModel::new(alpha, beta).gamma(gamma).gamma_copy(gamma);
    for pair in words.windows(2) {
        cost = match (pair[0], pair[1]) {
            ("--latency", time) => cost.latency(time.parse().unwrap()),
            ("--eager", "all") => cost.eager(Eager::All),
            ("--arrivals", late) => {
                let (rank, time) = late.split_once(':').unwrap();
                let ranks = words.iter().position(|&word| word == "-p").unwrap() + 1;
                let mut arrivals = vec![0.0; words[ranks].parse().unwrap()];
                arrivals[rank.parse::<usize>().unwrap()] = time.parse().unwrap();
                cost.arrivals(arrivals)
            }
            _ => cost,
        };
    }
    cost
}

/// What the page shows; the contents of the buffers, as it tells them of the chosen rank.
const SHOWN: &str = "(() => {
  const texts = (all, selector) => [...all.querySelectorAll(selector)].map(e => e.textContent);
  const rows = [...document.querySelectorAll('#ranks tbody tr')].map((row, rank) => {
    player.choose(rank);
    return { ports: [...row.cells].slice(1, -1).map(cell => cell.textContent), boxes: texts(row, 'i'),
             holds: texts(document, '#holds li').filter(text => text !== 'nothing') };
  });
  const cursor = document.getElementById('cursor').getAttribute('transform');
  return { clock: document.getElementById('clock').textContent, rows, cursor: +cursor.match(/[0-9.]+/)[0],
           arrows: document.querySelectorAll('#messages .message').length };
})()";

/// Reads `3` or `3-7` as first and last.
fn range(text: &str) -> (usize, usize) {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    (first.parse().unwrap(), last.parse().unwrap())
}

/// What a buffer holds as the page tells it, such as `elements 4-7: x0..x3+x6 [4-7]`, by position.
/// Every box of the buffer names contributions that the page tells, if it has text.
fn told(row: &Value, len: usize) -> Vec<Inputs> {
    let mut held = vec![Inputs::new(); len];
    let mut all_words = vec![""];
    for text in row["holds"].as_array().unwrap() {
        let (place, content) = text.as_str().unwrap().split_once(": ").unwrap();
        let (first, last) = range(place.rsplit(' ').next().unwrap());
        if content == "nothing" {
            continue;
        }
        let (words, indices) = content.split_once(" [").unwrap();
        all_words.push(words);
        let (index, end) = range(indices.trim_end_matches(']'));
        assert_eq!(end - index, last - first, "{text}");
        for (i, inputs) in held[first..=last].iter_mut().enumerate() {
            for word in words.split('+') {
                let (low, high) = word.split_once("..").unwrap_or((word, word));
                let rank = |w: &str| {
                    w.trim_start_matches('x')
                        .parse::<usize>()
                        .unwrap_or_else(|_| panic!("{text}"))
                };
                inputs.extend((rank(low)..=rank(high)).map(|r| (r, index + i)));
            }
        }
    }
    for text in row["boxes"].as_array().unwrap() {
        let words = text.as_str().unwrap().split(" [").next().unwrap();
        assert!(
            all_words.contains(&words),
            "{words} is not among {all_words:?}"
        );
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
                let sends = step.is_send() && !event.is_computed();
                let end = if sends { End::Sender } else { End::Receiver };
                let ends = simulation.finish_at(node, end);
                if !(simulation.start_at(node, end) <= time && time < ends) {
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
pub(super) fn compare(
    browser: &mut Browser,
    schedule: &Schedule,
    simulation: &Simulation,
    samples: usize,
) {
    let nodes = 0..simulation.prepared().nodes().len();
    let mut instants: Vec<f64> = nodes
        .flat_map(|n| {
            let ends = [End::Sender, End::Receiver];
            ends.map(|end| [simulation.start_at(n, end), simulation.finish_at(n, end)])
        })
        .flatten()
        .collect();
    instants.push(0.0);
    instants.sort_by(f64::total_cmp);
    instants.dedup();
    let last = instants.len() - 1;
    browser.press("Home");
    let (mut cursor, mut before) = (-1.0, -1.0);
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
                let told = told(row, held[rank].len());
                assert_eq!(told, held[rank], "the buffer of rank {rank} at {time}");
            }
            // On their way from the start at the sender to the end at the receiver.
            let nodes = simulation.prepared().nodes().iter().enumerate();
            let messages = nodes.filter(|&(n, node)| {
                let under_way = simulation.start(n) <= time && time < simulation.finish(n);
                node.kind == NodeKind::Transfer && under_way
            });
            assert_eq!(shown["arrows"], messages.count(), "messages at {time}");
            let x = shown["cursor"].as_f64().unwrap();
            // Instants that are closer than a tenth of a pixel are at one place.
            let is_later = time - before > instants[last] * 1e-4;
            let moves = x > cursor || x == cursor && !is_later;
            assert!(
                moves,
                "the line of the chart is at {x} after {cursor}, at {time} after {before}"
            );
            (cursor, before) = (x, time);
        }
        browser.press("ArrowRight");
    }
    // Backwards, the buffers are what they were.
    browser.press("Home");
    let shown = browser.eval(SHOWN);
    for (rank, held) in held_at(schedule, simulation, 0.0).iter().enumerate() {
        assert_eq!(&told(&shown["rows"][rank], held.len()), held);
    }
}

pub(super) const CASES: [&str; 9] = [
    "reduce -p 8 -a bi-greedy --bytes 4 --segments 4 --alpha 1 --beta 1 --gamma 1",
    "gather -p 9 -a binary --sizes 3,0,2,5,1,4,0,7,2 --alpha 10 --beta 1",
    "broadcast -p 7 -a uni-greedy --ports uni --bytes 12 --segments 3 --alpha 2 --beta 1",
    "alltoall -p 6 -a bruck --bytes 2 --alpha 3 --beta 1",
    "scatter -p 16 -a oblivious --bytes 4 --alpha 3 --beta 1",
    "allreduce -p 12 -a ring --bytes 48 --alpha 3 --beta 1 --gamma 0.5",
    "broadcast -p 8 -a binomial --bytes 4 --alpha 1 --beta 1 --latency 3 --eager all",
    "reduce -p 9 -a chain --bytes 6 --segments 3 --alpha 1 --beta 1 --gamma 1 --latency 2 --arrivals 3:11",
    "alltoall -p 5 -a pairwise --bytes 2 --ports uni --alpha 1 --beta 1 --latency 4 --eager all --arrivals 1:9",
];

#[test]
fn the_page_shows_what_simulator_and_checker_say() {
    let Some(mut browser) = Browser::start("the page of a schedule") else {
        return;
    };
    for (i, arguments) in CASES.into_iter().enumerate() {
        let kind = arguments.split(' ').next().unwrap();
        let (path, schedule) = drawn(&format!("{kind}-{i}"), arguments);
        let simulation = schedule.simulate(&cost(arguments)).unwrap();
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
    let shown = browser.eval(SHOWN);
    let holds = serde_json::json!(["elements 0-3: nothing"]);
    assert_eq!(shown["rows"][2]["holds"], holds);
    assert_eq!(shown["rows"][2]["boxes"], serde_json::json!([""]));
    // Its cells are red, those of the others are not.
    let red = "[...document.querySelectorAll('#ranks tbody tr')].map(row => row.querySelectorAll('i.ends-wrong').length)";
    assert_eq!(browser.eval(red), serde_json::json!([0, 0, 1]));
    let note = "document.body.textContent.includes('a red one where they end wrong')";
    assert_eq!(browser.eval(note), true);
    audit(&mut browser, "1280-light", &path);
}

/// A cell of a buffer may start with a part that no message starts with.
#[test]
fn a_legend_has_the_parts_of_buffers_too() {
    let Some(mut browser) = Browser::start("the legend of a page") else {
        return;
    };
    let file = folder().join("parts.json");
    let (all, tail) = (serde_json::json!([[0, 4]]), serde_json::json!([[2, 1]]));
    let schedule = serde_json::json!({
        "ranks": 2, "ports": "bi", "collective": {"kind": "broadcast", "root": 0},
        "layout": [{"len": 4, "input": all, "output": all}, {"len": 4, "input": [], "output": all}],
        "programs": [
            [{"send": {"to": 1, "spans": all}}, {"send": {"to": 1, "spans": tail}}],
            [{"recv": {"from": 0, "spans": all}}, {"recv": {"from": 0, "spans": tail}}],
        ],
    });
    std::fs::write(&file, schedule.to_string()).unwrap();
    let (path, _) = drawn("parts", &format!("--schedule {}", file.display()));
    browser.load(&path, VIEWS[0].1, false);
    let named = browser
        .eval("[...document.querySelectorAll('.legend li')].map(li => li.textContent).slice(1)");
    let parts = [
        "part 0 (elements 0-1)",
        "part 1 (element 2)",
        "part 2 (element 3)",
    ];
    assert_eq!(named, serde_json::json!(parts));
}

#[test]
fn the_keyboard_alone_suffices() {
    let Some(mut browser) = Browser::start("the keys of a page") else {
        return;
    };
    let (path, schedule) = drawn("keys", CASES[0]);
    browser.load(&path, VIEWS[0].1, false);
    let order = tab_order(&mut browser);
    let controls = [
        "first", "back", "play", "next", "last", "slider", "speed", "critical",
    ];
    let regions = ["picture", "holds", "ranks-box", "chart"];
    for id in controls.into_iter().chain(regions) {
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
        details.contains("step 1: ") && details.contains("byte"),
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
    assert_eq!(browser.eval("player.state.playing"), true);
    let moved = "new Promise(done => setTimeout(() => done(player.state.time), 400))";
    assert!(browser.eval(moved).as_f64().unwrap() > 0.0);
    browser.press(" ");
    assert_eq!(browser.eval("player.state.playing"), false);
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
fn pages_of_64_ranks_and_64_segments_are_small_and_reproducible() {
    let cost = CostModel::new(1234.5, 0.0987).gamma(0.03);
    let mut pages = 0;
    for algorithm in registry::all().iter().step_by(cases(3, 1)) {
        for ports in [Ports::UNI, Ports::BI] {
            let request = Request::new(algorithm.collective, 64, 64 * 16);
            let request = request.ports(ports).segment_count(64);
            let Ok(schedule) = algorithm.plan(&request) else {
                continue;
            };
            let caption = Caption::new(algorithm.name());
            let shown = Shown {
                name: "",
                schedule: &schedule,
                cost: &cost,
            };
            let make = || page(&[shown], Unit::Nanoseconds, &caption);
            let name = format!("{} {}", algorithm.collective.name(), algorithm.name());
            let one = match make() {
                Ok(one) => one,
                // Only what nobody can watch: each of 64 blocks in 64 segments, in two phases.
                Err(e) => {
                    let steps = schedule.steps();
                    assert!(steps > 100_000, "{name}: {steps} steps: {e}");
                    continue;
                }
            };
            assert!(one.len() < 1_000_000, "{name}: {} bytes", one.len());
            assert!(one.contains("Proved:"), "{name}");
            // Of some, since it takes as long again.
            if pages % 5 == 0 {
                assert!(make().unwrap() == one, "{name} gives different bytes");
            }
            pages += 1;
        }
    }
    assert!(pages > cases(30, 60), "{pages}");
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
    let step = "(() => { const t = performance.now(); for (let i = 0; i < 20; i++) player.move(1); return (performance.now() - t) / 20; })()";
    let milliseconds = browser.eval(step).as_f64().unwrap();
    assert!(milliseconds < 500.0, "{milliseconds} ms an event");
    compare_last(&mut browser, &schedule, &simulation);
    for (view, size, dark) in [VIEWS[0], VIEWS[3]] {
        browser.load(&path, size, dark);
        browser.eval("player.goTo(40)");
        browser.screenshot(&path.with_extension(format!("{view}.png")));
    }
}

#[test]
fn cells_too_many_for_boxes_are_painted() {
    let Some(mut browser) = Browser::start("a page of many cells") else {
        return;
    };
    let arguments = "reduce -p 6 -a chain --bytes 600 --segments 300 --alpha 1 --beta 1";
    let (path, schedule) = drawn("cells", arguments);
    let simulation = schedule.simulate(&cost(arguments)).unwrap();
    for (view, size, dark) in VIEWS {
        browser.load(&path, size, dark);
        browser.eval("player.goTo(150)");
        audit(&mut browser, view, &path);
    }
    compare(&mut browser, &schedule, &simulation, 10);
    // The height of the last cell of the root: one of 6 contributions, all of them at the end, and
    // the line of the output.
    let painted = "(() => { const canvas = document.querySelector('#ranks canvas'), { width, height } = canvas; \
                   const { data } = canvas.getContext('2d').getImageData(width - 1, 0, 1, height); \
                   return [width, [...Array(height).keys()].filter(y => data[4 * y + 3] === 255).length]; })()";
    assert_eq!(browser.eval(painted), serde_json::json!([300, 3 + 1]));
    browser.press("End");
    assert_eq!(browser.eval(painted), serde_json::json!([300, 14 + 1]));
    browser.point_at("#ranks tbody tr:nth-child(2) td.buffer div");
    let tip = browser.eval("document.getElementById('tip').textContent");
    assert_eq!(tip, "rank 1, elements 300-301: x1..x5 [300-301]");
}

/// Compares the buffers at the end.
fn compare_last(browser: &mut Browser, schedule: &Schedule, simulation: &Simulation) {
    browser.press("End");
    let shown = browser.eval(SHOWN);
    let held = held_at(schedule, simulation, simulation.makespan());
    for (rank, held) in held.iter().enumerate() {
        assert_eq!(&told(&shown["rows"][rank], held.len()), held, "rank {rank}");
    }
}

#[test]
fn what_is_no_page_is_refused() {
    let cases = [
        ("draw reduce -p 65 -o x.html", "at most 64 ranks"),
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

#[test]
fn schedules_side_by_side_have_one_clock_and_one_axis() {
    let Some(mut browser) = Browser::start("a page of several schedules") else {
        return;
    };
    let path = folder().join("several.html");
    let draw =
        "draw broadcast -p 8 -a binomial,circulant,chain --bytes 8 --segments 4 --alpha 2 --beta 1";
    oneport(&format!("{draw} -o {}", path.display()))
        .assert()
        .success();
    for (view, size, dark) in VIEWS {
        browser.load(&path, size, dark);
        browser.eval("player.goTo(5)");
        audit(&mut browser, view, &path);
        let tops = "[0, 1, 2].map(i => document.querySelectorAll('.picture')[i].closest('section').offsetTop)";
        let tops = browser.eval(tops);
        let beside = tops[0] == tops[1] && tops[1] == tops[2];
        assert_eq!(beside, size.0 > 1000, "{view}: {tops}");
        // The panel begins folded where it would take the room of the schedules.
        let is_open = "document.getElementById('panel').open";
        assert_eq!(browser.eval(is_open), size.0 > 1000, "{view}");
        browser.press("p");
        assert_eq!(browser.eval(is_open), size.0 <= 1000, "{view}");
    }
    browser.load(&path, VIEWS[0].1, false);
    let shown = "(() => { const all = s => [...document.querySelectorAll(s)]; return {
        lines: all('.gantt .cursor').map(c => c.getAttribute('transform')),
        bars: all('.gantt').map(g => Math.max(...[...g.querySelectorAll('.plot rect[data-node]')]
            .map(r => +r.getAttribute('x') + +r.getAttribute('width')))),
        facts: all('main .facts').map(f => f.textContent), clock: document.getElementById('clock').textContent }; })()";
    browser.press("End");
    let shown = browser.eval(shown);
    assert_eq!(shown["lines"][0], shown["lines"][1], "{shown}");
    assert_eq!(shown["lines"][1], shown["lines"][2], "{shown}");
    // 3 messages of 8 elements, and 7 + 3 of 2 each.
    let times = [3 * (2 + 8), 0, 10 * (2 + 2)];
    let bars = [0, 2].map(|i| shown["bars"][i].as_f64().unwrap() / f64::from(times[i]));
    assert!((bars[0] / bars[1] - 1.0).abs() < 0.01, "{shown}");
    for (i, facts) in [
        (0, ["30 time units", "3 rounds", "7 messages"]),
        (2, ["40 time units", "10 rounds", "28 messages"]),
    ] {
        let text = shown["facts"][i].as_str().unwrap();
        assert!(facts.iter().all(|fact| text.contains(fact)), "{text}");
    }
    let clock = shown["clock"].as_str().unwrap();
    assert!(clock.starts_with("time 40 of 40, event"), "{clock}");
    // A click on a rank tells of it in the window, whatever is scrolled.
    browser.press("Home");
    browser.point_at(".picture .rank[data-rank=\"5\"] circle");
    let tip = browser.eval("document.getElementById('tip').textContent");
    let tip = tip.as_str().unwrap();
    assert!(
        tip.starts_with("rank 5 waits until 20 for its step 0: receives"),
        "{tip}"
    );
    let bottom = "(() => { const box = document.querySelector('.details').getBoundingClientRect(); \
                  return [box.bottom <= innerHeight + 1, box.height > 60]; })()";
    assert_eq!(browser.eval(bottom), serde_json::json!([true, true]));
    // A step of another schedule chooses that schedule.
    browser.press("s");
    browser.press("s");
    browser.press(".");
    let chosen = browser.eval("document.getElementById('chosen').textContent");
    assert_eq!(chosen, "0 of chain (4 segments)");
    assert_eq!(browser.eval("player.state.schedule"), 2);
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}

#[test]
fn a_deadlock_is_shown_with_what_waits() {
    let Some(mut browser) = Browser::start("the page of a deadlock") else {
        return;
    };
    // Ranks 0 and 1 exchange their blocks, and then both want to receive what the other sends last.
    let wrong = r#"{ "ranks": 2, "ports": "uni", "collective": {"kind": "allgather"},
      "layout": [ {"len": 4, "input": [[0,2]], "output": [[0,4]]}, {"len": 4, "input": [[2,2]], "output": [[0,4]]} ],
      "programs": [ [ {"send": {"to": 1, "spans": [[0,1]]}}, {"recv": {"from": 1, "spans": [[2,2]]}},
                      {"send": {"to": 1, "spans": [[1,1]]}} ],
                    [ {"recv": {"from": 0, "spans": [[0,1]]}}, {"recv": {"from": 0, "spans": [[1,1]]}},
                      {"send": {"to": 0, "spans": [[2,2]]}} ] ] }"#;
    let file = folder().join("deadlock.json");
    std::fs::write(&file, wrong).unwrap();
    let path = folder().join("deadlock.html");
    let draw = format!(
        "draw --schedule {} --alpha 1 --beta 1 -o {}",
        file.display(),
        path.display()
    );
    oneport(&draw).assert().success();
    browser.load(&path, VIEWS[0].1, false);
    browser.press("End");
    audit(&mut browser, "1280-light", &path);
    let shown = browser.eval(SHOWN);
    assert_eq!(shown["rows"][0]["ports"][0], "← 1 waits");
    assert_eq!(shown["rows"][1]["ports"][0], "← 0 waits");
    // What has arrived before is there.
    let holds = serde_json::json!(["element 0: x0 [0]", "elements 2-3: x1 [0-1]"]);
    assert_eq!(shown["rows"][1]["holds"], holds);
    let count = |browser: &mut Browser, selector: &str| {
        browser.eval(&format!("document.querySelectorAll('{selector}').length"))
    };
    assert_eq!(count(&mut browser, "#messages .waits.cause"), 2);
    assert_eq!(count(&mut browser, "#chart .waits.cause"), 2);
    let facts = browser.eval("document.querySelector('.facts').textContent");
    let facts = facts.as_str().unwrap();
    assert!(
        facts.contains("nothing moves after 2 time units"),
        "{facts}"
    );
}

#[test]
fn narrow_windows_show_what_scrolls_and_keep_the_controls() {
    let Some(mut browser) = Browser::start("a page on a phone") else {
        return;
    };
    let (path, _) = drawn("phone", CASES[0]);
    browser.load(&path, VIEWS[2].1, false);
    let cut = "[...document.querySelectorAll('.cut')].map(box => box.id)";
    assert_eq!(browser.eval(cut), serde_json::json!(["chart"]));
    // Buffers have a line of their own.
    let widths = "['td.buffer', '#ranks'].map(s => document.querySelector(s).clientWidth)";
    let widths = browser.eval(widths);
    assert_eq!(widths[0], widths[1]);
    let top = "(() => { scrollTo(0, 900); const box = document.getElementById('controls'); \
               return [scrollY, box.getBoundingClientRect().top]; })()";
    assert_eq!(browser.eval(top), serde_json::json!([900, 0]));
    let end = "new Promise(done => { const box = document.getElementById('chart'); box.scrollLeft = 1e5; \
               requestAnimationFrame(() => requestAnimationFrame(() => done(box.classList.contains('cut')))); })";
    assert_eq!(browser.eval(end), false);
}
