//! Tests of drawings and traces: their structure, and the commands that write them.

mod commands;
mod svg;
mod trees;

use std::collections::HashMap;
use std::path::Path;

use oneport::plan::registry;
use oneport::run::{Clock, Operator, Run, Team, inputs};
use oneport::{Collective, CostModel, Kind, Ports, Request, Schedule, Span, Step};
use oneport_pictures::{Caption, Trace, Traffic, Tree, Unit, What, gantt, traffic, tree};

use self::svg::{Extent, assert_inside, extent, overlap, read};

/// Schedules of every algorithm for a few sizes and port models.
fn planned() -> impl Iterator<Item = (String, Schedule)> {
    let cases = [(1, 4, 2), (2, 0, 1), (5, 12, 3), (8, 7, 7), (9, 40, 4)];
    registry::all().iter().flat_map(move |algorithm| {
        let cases = cases
            .into_iter()
            .flat_map(|c| [(c, Ports::UNI), (c, Ports::BI)]);
        cases.filter_map(move |((p, n, q), ports)| {
            let request = Request::new(algorithm.collective, p, n)
                .ports(ports)
                .segment_count(q);
            let name = algorithm.name();
            let what = format!("{:?} {name} p={p} n={n} {ports:?}", algorithm.collective);
            Some((what, algorithm.plan(&request).ok()?))
        })
    })
}

/// Returns the class and the extent of every box of a Gantt chart.
fn boxes(text: &str) -> Vec<(String, Extent)> {
    let elements = read(text);
    assert_inside(&elements);
    let classes = ["send", "receive", "receive-combine", "combine", "copy"];
    let groups = elements.iter().enumerate();
    groups
        .filter(|(_, e)| e.name == "g" && classes.contains(&e.class()))
        .map(|(i, e)| {
            let children = elements.iter().filter(|r| r.parent == Some(i));
            let title = children.clone().find(|t| t.name == "title");
            assert!(title.is_some_and(|t| t.text.starts_with("rank ")), "{e:?}");
            let bounds = children.filter(|r| r.name == "rect").map(extent);
            let bounds =
                bounds.reduce(|a, b| (a.0.min(b.0), a.1.min(b.1), a.2.max(b.2), a.3.max(b.3)));
            (e.class().to_string(), bounds.expect("a box"))
        })
        .collect()
}

fn assert_no_overlap(extents: &[Extent], what: &str) {
    let mut sorted = extents.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (i, a) in sorted.iter().enumerate() {
        let candidates = sorted[i + 1..].iter().take_while(|b| b.0 < a.2);
        for b in candidates {
            assert!(!overlap(*a, *b), "{what}: {a:?} and {b:?}");
        }
    }
}

#[test]
fn gantt_charts_have_one_box_per_step_without_overlap() {
    let cost = CostModel::new(1.0, 0.5).gamma(0.25).gamma_copy(0.125);
    for (what, schedule) in planned() {
        for overlap in [false, true] {
            let cost = cost.clone().overlap(overlap);
            let trace = Trace::model(&schedule, &cost, Unit::Plain).unwrap();
            let text = gantt(&trace, &Caption::new(what.clone()).line("a <line> & more")).unwrap();
            let boxes = boxes(&text);
            let count = |class: &str| boxes.iter().filter(|b| b.0 == class).count();
            let steps = |matches: fn(&Step) -> bool| {
                let all = schedule.programs().iter().flatten();
                all.filter(|s| !s.is_empty() && matches(s)).count()
            };
            assert_eq!(count("send"), steps(Step::is_send), "{what}");
            let receives = |s: &Step| s.peer().is_some() && !s.is_send();
            assert_eq!(count("receive"), steps(receives), "{what}");
            assert_eq!(
                count("combine") + count("copy"),
                steps(Step::computes),
                "{what}"
            );
            let extents: Vec<_> = boxes.iter().map(|b| b.1).collect();
            assert_no_overlap(&extents, &what);
        }
    }
}

#[test]
fn the_critical_path_has_frames_and_lasts_from_start_to_end() {
    let cost = CostModel::new(1.0, 0.5).gamma(0.25).gamma_copy(0.125);
    for (what, schedule) in planned() {
        let trace = Trace::model(&schedule, &cost, Unit::Plain).unwrap();
        let caption = Caption::new(what.clone());
        assert!(!gantt(&trace, &caption).unwrap().contains("critical"));
        let critical = trace
            .activities
            .iter()
            .filter(|a| a.critical && a.end > a.start);
        let mut times: Vec<(f64, f64)> = critical.clone().map(|a| (a.start, a.end)).collect();
        times.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut reached = 0.0;
        for (start, end) in times {
            assert!(
                start <= reached,
                "{what}: nothing critical from {reached} to {start}"
            );
            reached = f64::max(reached, end);
        }
        assert_eq!(reached, trace.end(), "{what}");
        let mut framed = trace.clone();
        framed.critical_path = true;
        let framed = gantt(&framed, &caption).unwrap();
        let frames = framed.matches("class=\"critical\"").count();
        // One more is in the legend.
        let expected = critical.count();
        assert_eq!(frames, expected + usize::from(expected > 0), "{what}");
    }
}

#[test]
fn messages_of_blocks_have_the_colour_of_their_first() {
    // Blocks of 1, 2, 0 and 4 elements; rank 2 passes on the last.
    let mut b = Schedule::builder(4, Ports::BI, Collective::Scatter { root: 0 });
    let blocks = [(0, 1), (1, 2), (3, 0), (3, 4)].map(Span::from);
    b.layout(0, 7, [Span::new(0, 7)], Some(blocks[0]));
    b.layout(1, 2, None, Some(Span::new(0, 2)));
    b.layout(2, 4, None, Some(Span::new(0, 0)));
    b.layout(3, 4, None, Some(Span::new(0, 4)));
    b.step(0, Step::send(2, blocks[3]));
    b.step(0, Step::send(1, blocks[1]));
    b.step(1, Step::recv(0, Span::new(0, 2)));
    b.step(2, Step::recv(0, Span::new(0, 4)));
    b.step(2, Step::send(3, Span::new(0, 4)));
    b.step(3, Step::recv(2, Span::new(0, 4)));
    let schedule = b.build().unwrap();
    for schedule in [schedule.reversed().unwrap(), schedule] {
        let trace = Trace::model(&schedule, &CostModel::new(1.0, 1.0), Unit::Plain).unwrap();
        assert_eq!(trace.blocks, [vec![1], vec![3]]);
        let text = gantt(&trace, &Caption::new("blocks")).unwrap();
        let scatters = schedule.collective().kind() == Kind::Scatter;
        let peer = if scatters {
            "receive from 2"
        } else {
            "send to 2"
        };
        let title = format!("<title>rank 3, step 0: {peer}");
        let group = text.split("<g ").find(|g| g.contains(&title));
        assert!(group.expect("a box").contains("class=\"r3\""), "{text}");
        // The legend names what is in the chart, and nothing else.
        let (chart, legend) = text.split_once("a message carries:").expect("a legend");
        let named = |block: &str| legend.contains(&format!(">{block}</text>"));
        assert_eq!(["0", "1", "2", "3"].map(named), [false, true, false, true]);
        assert!(chart.contains(">send (to)<") && !chart.contains(">combine<"));
    }
}

/// A `k`-ported star: the root copies its vector, sends it to `k` ranks at once and then sends an
/// empty message.
fn star(k: usize) -> Schedule {
    let span = Span::new(0, 4);
    let mut b = Schedule::builder(
        k + 1,
        Ports::BI.with_k(k),
        Collective::Broadcast { root: 0 },
    );
    b.layout(0, 8, [span], Some(span));
    b.step(0, Step::copy(span, Span::new(4, 4)));
    for r in 1..=k {
        b.layout(r, 4, None, Some(span));
        b.step(0, Step::send(r, span).on_port(r - 1));
        b.step(r, Step::recv(0, span));
    }
    b.step(0, Step::send(1, Span::new(0, 0)));
    b.step(1, Step::recv(0, Span::new(0, 0)));
    b.build().unwrap()
}

#[test]
fn every_port_has_a_lane_and_empty_messages_have_no_box() {
    let cost = CostModel::new(1.0, 1.0).gamma_copy(1.0);
    let trace = Trace::model(&star(3), &cost, Unit::Plain).unwrap();
    let text = gantt(&trace, &Caption::new("star")).unwrap();
    let boxes = boxes(&text);
    assert_eq!(boxes.len(), 7);
    let extents: Vec<_> = boxes.iter().map(|b| b.1).collect();
    assert_no_overlap(&extents, "star");
    // The three simultaneous sends are stacked, one lane below the other.
    let sends: Vec<_> = boxes.iter().filter(|b| b.0 == "send").collect();
    assert!(
        sends
            .windows(2)
            .all(|w| w[0].1.0 == w[1].1.0 && w[0].1.1 < w[1].1.1)
    );
    assert!(
        text.contains("take no time: 1 × send, 1 × receive."),
        "{text}"
    );
    assert!(text.contains(">out 2</text>"), "{text}");
}

#[test]
fn every_shared_port_has_a_row() {
    let cost = CostModel::new(1.0, 1.0);
    let nodes = [vec![0, 1], vec![2, 3]];
    let plain = star(3);
    let shared = plain.clone().with_node_ports(&nodes, 1, &cost).unwrap();
    let draw = |schedule: &Schedule| {
        let trace = Trace::model(schedule, &cost, Unit::Plain).unwrap();
        gantt(&trace, &Caption::new("star")).unwrap()
    };
    // Two messages leave node 0 and enter node 1.
    let text = draw(&shared);
    let all = boxes(&text);
    assert_eq!(all.len(), boxes(&draw(&plain)).len() + 4);
    let extents: Vec<_> = all.iter().map(|b| b.1).collect();
    assert_no_overlap(&extents, "shared");
    for name in ["node 0 out", "node 0 in", "node 1 out", "node 1 in"] {
        assert!(text.contains(&format!(">{name}</text>")), "{text}");
    }
}

#[test]
fn zero_costs_give_an_empty_chart_and_excessive_costs_an_error() {
    let trace = Trace::model(&star(2), &CostModel::new(0.0, 0.0), Unit::Plain).unwrap();
    assert_eq!(boxes(&gantt(&trace, &Caption::default()).unwrap()).len(), 0);
    let trace = Trace::model(&star(2), &CostModel::new(f64::MAX, f64::MAX), Unit::Plain);
    assert!(trace.is_err());
}

#[test]
fn traffic_has_one_cell_per_communicating_pair() {
    for (what, schedule) in planned() {
        let flows = Traffic::new(&schedule.clone().with_element_bytes(4));
        let elements = read(&traffic(&flows, &Caption::new(what.clone())).unwrap());
        assert_inside(&elements);
        let p = schedule.ranks();
        let pairs = (0..p).flat_map(|a| (0..p).map(move |b| (a, b)));
        let communicating = pairs
            .clone()
            .filter(|&(a, b)| flows.messages(a, b) > 0)
            .count();
        let cells = elements.iter().filter(|e| e.class() == "flow").count();
        assert_eq!(cells, communicating, "{what}");
        let bytes: u64 = pairs.map(|(a, b)| flows.bytes(a, b)).sum();
        let stats = schedule.stats().unwrap();
        assert_eq!(bytes, stats.elements as u64 * 4, "{what}");
    }
}

#[test]
fn drawings_equal_the_golden_files() {
    let span = Span::new(0, 4);
    let mut b = Schedule::builder(2, Ports::BI, Collective::Reduce { root: 1 });
    b.layout(0, 4, [span], None);
    b.layout(1, 4, [span], Some(span));
    b.step(0, Step::send(1, span));
    b.step(1, Step::recv_combine(0, span, oneport::Order::TheirsFirst));
    let schedule = b.build().unwrap();
    let cost = CostModel::new(2.0, 0.5).gamma(0.25);
    let trace = Trace::model(&schedule, &cost, Unit::Plain).unwrap();
    let caption = Caption::new("pair").line("one message");
    let drawings = [
        ("gantt.svg", gantt(&trace, &caption).unwrap()),
        (
            "tree.svg",
            tree(&Tree::of(&schedule).unwrap().unwrap(), &caption).unwrap(),
        ),
        (
            "traffic.svg",
            traffic(&Traffic::new(&schedule), &caption).unwrap(),
        ),
    ];
    for (name, text) in drawings {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/golden")
            .join(name);
        if std::env::var_os("ONEPORT_BLESS").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(text, expected, "{name} (ONEPORT_BLESS=1 rewrites it)");
    }
}

/// Asserts that the activities of a lane do not overlap. Returns the number of all activities.
fn assert_lanes(trace: &Trace) -> usize {
    let mut lanes: HashMap<_, Vec<(f64, f64)>> = HashMap::new();
    for a in &trace.activities {
        assert!(
            0.0 <= a.start && a.start <= a.end && a.end <= trace.end(),
            "{a:?}"
        );
        lanes
            .entry((a.rank, trace.list(a)))
            .or_default()
            .push((a.start, a.end));
    }
    for lane in lanes.values_mut() {
        lane.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        assert!(lane.windows(2).all(|w| w[0].1 <= w[1].0), "{lane:?}");
    }
    trace.activities.len()
}

#[test]
fn a_run_records_every_step() {
    for (name, ports, p) in [
        ("chain", Ports::BI, 3),
        ("uni-greedy", Ports::UNI, 4),
        ("butterfly", Ports::BI, 4),
    ] {
        let request = Request::reduce(p, 1000).ports(ports).segment_count(4);
        let schedule = request.plan(name).unwrap();
        let sum = Operator::<i64>::named("sum").unwrap();
        let data = inputs(schedule.collective(), schedule.layout(), &sum);
        let mut team = Team::new(p).unwrap();
        let run = Run::new(&schedule).op(&sum).inputs(&data).repetitions(3);
        let plain = run.on(&mut team).unwrap();
        assert!(plain.step_times.is_none());
        let outcome = run.trace(true).on(&mut team).unwrap();
        assert_eq!(outcome.outputs, plain.outputs);
        let times = outcome.step_times.expect("recorded times");
        let trace = Trace::wall(&schedule, &times).unwrap();
        assert_eq!(assert_lanes(&trace), schedule.steps(), "{name}");
        assert!(trace.end() > 0.0);
        for a in trace.activities.iter().filter(|a| a.what == What::Send) {
            // A send and its matching receive overlap in time.
            let partner = trace.activities.iter().find(|b| {
                (Some(b.rank), b.peer) == (a.peer, Some(a.rank))
                    && b.segment == a.segment
                    && b.what != What::Send
            });
            let partner = partner.expect("a partner");
            assert!(partner.bytes == a.bytes && partner.start <= a.end && a.start <= partner.end);
        }
        boxes(&gantt(&trace, &Caption::new(name)).unwrap());
    }
}

#[test]
fn activities_of_a_paced_run_end_no_earlier_than_in_the_model() {
    let request = Request::reduce(3, 12).segment_count(3).element_bytes(4);
    let schedule = request.plan("chain").unwrap();
    for overlap in [false, true] {
        let sum = Operator::<i32>::named("sum").unwrap();
        let data = inputs(schedule.collective(), schedule.layout(), &sum);
        let cost = CostModel::new(2e6, 0.0).gamma(5e4).overlap(overlap);
        let mut team = Team::new(3).unwrap();
        let outcome = Run::new(&schedule)
            .op(&sum)
            .inputs(&data)
            .clock(Clock::Paced)
            .cost(cost.clone())
            .trace(true)
            .on(&mut team)
            .unwrap();
        let times = outcome.step_times.expect("recorded times");
        let trace = Trace::wall(&schedule, &times).unwrap();
        assert_eq!(assert_lanes(&trace), schedule.steps());
        let model = Trace::model(&schedule, &cost, Unit::Nanoseconds).unwrap();
        for a in &trace.activities {
            let matching = model.activities.iter();
            let mut matching = matching.filter(|m| (m.rank, m.step) == (a.rank, a.step));
            let end = matching.next().expect("a transfer").end;
            assert!(a.end >= end.round(), "{a:?}, {end} in the model");
        }
    }
}
