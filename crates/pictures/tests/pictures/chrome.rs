//! Tests of traces in the format of Chrome and Perfetto.

use std::collections::HashMap;

use oneport::plan::{Request, registry};
use oneport::{CostModel, Kind, Ports, Span, Step};
use oneport_pictures::{Trace, Unit};
use serde_json::Value;

/// By (pid, tid): start and duration of each event, in the order written; and the names of the
/// threads.
type Lanes = HashMap<(u64, u64), Vec<(f64, f64)>>;

fn read(text: &str) -> (Lanes, HashMap<(u64, u64), String>) {
    let value: Value = serde_json::from_str(text).unwrap();
    let (mut lanes, mut names) = (Lanes::new(), HashMap::new());
    for e in value["traceEvents"].as_array().unwrap() {
        let key = (e["pid"].as_u64().unwrap(), e["tid"].as_u64().unwrap());
        match e["ph"].as_str().unwrap() {
            "X" => lanes
                .entry(key)
                .or_default()
                .push((e["ts"].as_f64().unwrap(), e["dur"].as_f64().unwrap())),
            _ if e["name"] == "thread_name" => {
                names.insert(key, e["args"]["name"].as_str().unwrap().to_string());
            }
            _ => {}
        }
    }
    (lanes, names)
}

#[test]
fn lanes_do_not_overlap_and_sum_to_the_busy_time() {
    let cost = CostModel::new(2.0, 1.0).gamma(1.0);
    for (ports, name) in [(Ports::UNI, "uni-greedy"), (Ports::BI, "bi-greedy")] {
        let request = Request::reduce(9, 20)
            .ports(ports)
            .segment_count(5)
            .cost(cost.clone());
        let schedule = registry::find(Kind::Reduce, name)
            .unwrap()
            .plan(&request)
            .unwrap();
        let trace = Trace::model(&schedule, &cost, Unit::Plain).unwrap();
        let (lanes, names) = read(&trace.to_chrome_json("test").unwrap());
        let busy = schedule.simulate(&cost).unwrap().port_busy(&schedule);
        for (rank, of_rank) in busy.iter().enumerate() {
            for (list, busy) in of_rank.iter().enumerate() {
                let lane = &trace.ports.list_name(list);
                let named = |key: &&(u64, u64)| {
                    let name = names[key].trim_start_matches("port ");
                    key.0 == rank as u64 && name == lane
                };
                let key = *names.keys().find(named).unwrap();
                let lane = lanes.get(&key).cloned().unwrap_or_default();
                assert_eq!(lane.iter().map(|e| e.1).sum::<f64>(), *busy);
            }
        }
        for lane in lanes.values() {
            assert!(
                lane.windows(2).all(|w| w[0].0 + w[0].1 <= w[1].0),
                "{lane:?}"
            );
        }
        assert!(lanes.keys().all(|key| names.contains_key(key)));
        // Each lane has its own number, different from all process numbers (Perfetto would
        // merge them).
        let mut numbers: Vec<u64> = names.keys().map(|&(_, tid)| tid).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), names.len());
        assert!(numbers.iter().all(|&tid| tid >= 9));
    }
}

#[test]
fn fractional_nanoseconds_stay_adjacent() {
    for (unit, alpha, beta, shown) in [
        (Unit::Nanoseconds, 3.3, 0.7, 1.0),
        (Unit::Plain, 1.0 / 3.0, 1.0 / 7.0, 1e3),
        (Unit::Plain, 1.5e-4, 1e-5 / 3.0, 1e6),
        (Unit::Plain, 1e-6, 1e-7 / 3.0, 1e9),
    ] {
        let cost = CostModel::new(alpha, beta);
        let request = Request::broadcast(7, 31).segment_count(6);
        let chain = registry::find(Kind::Broadcast, "chain").unwrap();
        let schedule = chain.plan(&request).unwrap();
        let trace = Trace::model(&schedule, &cost, unit).unwrap();
        let (lanes, _) = read(&trace.to_chrome_json("test").unwrap());
        let whole = |us: f64| {
            let ns = us * 1e3;
            assert!((ns - ns.round()).abs() < 1e-6, "{us}");
            ns.round() as u64
        };
        let mut last = 0;
        for lane in lanes.values() {
            let mut before = 0;
            for &(start, time) in lane {
                assert!(before <= whole(start));
                before = whole(start) + whole(time);
                last = last.max(before);
            }
        }
        assert_eq!(last, (trace.end() * shown).round() as u64);
    }
}

#[test]
fn arrows_lead_from_sends_to_their_receives() {
    let request = Request::reduce(9, 20).ports(Ports::BI).segment_count(5);
    let schedule = request.plan("bi-greedy").unwrap();
    let cost = CostModel::new(2.0, 1.0).gamma(1.0);
    let trace = Trace::model(&schedule, &cost, Unit::Plain).unwrap();
    let value: Value = serde_json::from_str(&trace.to_chrome_json("test").unwrap()).unwrap();
    let events = value["traceEvents"].as_array().unwrap();
    // The activity at the thread and time of an arrow's end, and where the end is written.
    let ends = |kind: &str| -> HashMap<u64, (&Value, usize)> {
        let arrows = events.iter().enumerate().filter(|(_, e)| e["ph"] == kind);
        let named = arrows.map(|(i, arrow)| {
            let same = |e: &&Value| ["pid", "tid", "ts"].iter().all(|key| e[key] == arrow[key]);
            let mut activities = events[..i].iter().filter(|e| e["ph"] == "X");
            let activity = activities.find(same).expect("an activity before its arrow");
            (arrow["id"].as_u64().unwrap(), (activity, i))
        });
        named.collect()
    };
    let (starts, ends) = (ends("s"), ends("f"));
    assert_eq!(starts.len(), schedule.stats().unwrap().messages);
    assert_eq!(ends.len(), starts.len());
    for (message, (send, start)) in starts {
        let (receive, end) = ends[&message];
        assert!(start < end, "an arrow starts before it ends");
        assert_eq!(
            (&send["args"]["peer"], &receive["args"]["peer"]),
            (&receive["pid"], &send["pid"])
        );
        for key in ["ts", "dur"] {
            assert_eq!(send[key], receive[key]);
        }
        assert_eq!(send["args"]["segment"], receive["args"]["segment"]);
    }
}

#[test]
fn golden() {
    let span = Span::new(0, 4);
    let mut b = oneport::Schedule::builder(2, Ports::BI, oneport::Collective::Reduce { root: 1 });
    b.layout(0, 4, [span], None);
    b.layout(1, 4, [span], Some(span));
    b.step(0, Step::send(1, span));
    b.step(1, Step::recv_combine(0, span, oneport::Order::TheirsFirst));
    let schedule = b.build().unwrap();
    let cost = CostModel::new(1000.0, 0.5).gamma(125.0);
    let trace = Trace::model(&schedule, &cost, Unit::Nanoseconds).unwrap();
    let expected = r#"{"displayTimeUnit":"ns","otherData":{"clock":"model","title":"pair","unit":"us"},"traceEvents":[
{"args":{"name":"rank 0"},"name":"process_name","ph":"M","pid":0,"tid":3},
{"args":{"sort_index":0},"name":"process_sort_index","ph":"M","pid":0,"tid":3},
{"args":{"name":"port out"},"name":"thread_name","ph":"M","pid":0,"tid":3},
{"args":{"sort_index":0},"name":"thread_sort_index","ph":"M","pid":0,"tid":3},
{"args":{"name":"port in"},"name":"thread_name","ph":"M","pid":0,"tid":4},
{"args":{"sort_index":1},"name":"thread_sort_index","ph":"M","pid":0,"tid":4},
{"args":{"name":"rank 1"},"name":"process_name","ph":"M","pid":1,"tid":6},
{"args":{"sort_index":1},"name":"process_sort_index","ph":"M","pid":1,"tid":6},
{"args":{"name":"port out"},"name":"thread_name","ph":"M","pid":1,"tid":6},
{"args":{"sort_index":0},"name":"thread_sort_index","ph":"M","pid":1,"tid":6},
{"args":{"name":"port in"},"name":"thread_name","ph":"M","pid":1,"tid":7},
{"args":{"sort_index":1},"name":"thread_sort_index","ph":"M","pid":1,"tid":7},
{"args":{"name":"compute"},"name":"thread_name","ph":"M","pid":1,"tid":8},
{"args":{"sort_index":2},"name":"thread_sort_index","ph":"M","pid":1,"tid":8},
{"args":{"bytes":4,"peer":1,"segment":0,"step":0},"cat":"transfer","dur":1.002,"name":"send to 1","ph":"X","pid":0,"tid":3,"ts":0},
{"args":{"bytes":4,"peer":0,"segment":0,"step":0},"cat":"transfer","dur":1.002,"name":"receive from 0","ph":"X","pid":1,"tid":7,"ts":0},
{"cat":"message","id":0,"name":"message","ph":"s","pid":0,"tid":3,"ts":0},
{"bp":"e","cat":"message","id":0,"name":"message","ph":"f","pid":1,"tid":7,"ts":0},
{"args":{"bytes":4,"peer":0,"segment":0,"step":0,"waits_for":"rank 1, step 0","why":"data"},"cat":"compute","dur":0.5,"name":"combine","ph":"X","pid":1,"tid":8,"ts":1.002}
]}
"#;
    assert_eq!(trace.to_chrome_json("pair").unwrap(), expected);
}
