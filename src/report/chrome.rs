//! The trace event format of Chrome, which Perfetto and others open.
//!
//! A rank is a process, each of its ports a thread; a rank that computes has one thread more (several, where it computes several things at once).

use serde_json::{Value, json};

use super::trace::{Source, Trace, Unit, What};
use crate::error::{Error, Result};

/// Traces of more events are refused: viewers take seconds for each hundred thousand.
pub const MOST_EVENTS: usize = 1_000_000;

impl Trace {
    /// The trace as JSON in the trace event format: `ts` and `dur` in microseconds (one unit of a model without units is
    /// one microsecond), one `pid` a rank, one `tid` a port, with the names of both; `args` holds step, peer, bytes and segment.
    ///
    /// # Errors
    /// When there are more than [`MOST_EVENTS`] events.
    pub fn to_chrome_json(&self, title: &str) -> Result<String> {
        let events = self.activities().len();
        if events > MOST_EVENTS {
            return Err(Error::usage(format!(
                "{events} events are more than the {MOST_EVENTS} that a trace can have: take fewer ranks or segments"
            )));
        }
        let lists = self.lists();
        let (lanes, _) = self.compute_lanes();
        let mut computing = vec![0; self.ranks()];
        for (a, lane) in self.activities().iter().zip(&lanes) {
            computing[a.rank] = computing[a.rank].max(lane.map_or(0, |l| l + 1));
        }
        let mut lines = Vec::with_capacity(events + 8 * self.ranks());
        for (rank, &computing) in computing.iter().enumerate() {
            let mut name = |what: &str, tid: usize, args: Value| {
                lines.push(
                    json!({"name": what, "ph": "M", "pid": rank, "tid": tid, "args": args})
                        .to_string(),
                );
            };
            name("process_name", 0, json!({"name": format!("rank {rank}")}));
            name("process_sort_index", 0, json!({"sort_index": rank}));
            for tid in 0..lists + computing {
                let thread = match tid.checked_sub(lists) {
                    None => match self.list_name(tid) {
                        port if port.starts_with("port") => port,
                        direction => format!("port {direction}"),
                    },
                    Some(0) if computing == 1 => "compute".to_string(),
                    Some(n) => format!("compute {n}"),
                };
                name("thread_name", tid, json!({"name": thread}));
                name("thread_sort_index", tid, json!({"sort_index": tid}));
            }
        }
        let microseconds = |t: f64| match self.unit() {
            Unit::Nanoseconds => t / 1e3,
            Unit::Plain => t,
        };
        let mut order: Vec<usize> = (0..events).collect();
        order.sort_by(|&a, &b| {
            let start = |i: usize| self.activities()[i].start;
            start(a).total_cmp(&start(b)).then(a.cmp(&b))
        });
        for i in order {
            let a = &self.activities()[i];
            let tid = match (self.list(a), lanes[i]) {
                (Some(list), _) => list,
                (None, lane) => lists + lane.unwrap_or(0),
            };
            let name = match (a.what, a.peer) {
                (What::Send, Some(peer)) => format!("send to {peer}"),
                (What::Receive | What::ReceiveCombine, Some(peer)) => {
                    format!("{} from {peer}", a.what.name())
                }
                _ => a.what.name().to_string(),
            };
            let mut args = json!({"step": a.step, "bytes": a.bytes});
            if let Some(peer) = a.peer {
                args["peer"] = json!(peer);
            }
            if let Some(segment) = a.segment {
                args["segment"] = json!(segment);
            }
            let (start, time) = (microseconds(a.start), microseconds(a.time()));
            lines.push(
                json!({
                    "name": name, "cat": if a.port.is_some() { "transfer" } else { "compute" }, "ph": "X",
                    "ts": whole(start), "dur": whole(time), "pid": a.rank, "tid": tid, "args": args
                })
                .to_string(),
            );
        }
        let about = json!({
            "title": title,
            "clock": match self.source() { Source::Model => "model", Source::Wall => "wall" },
            "unit": match self.unit() { Unit::Nanoseconds => "us", Unit::Plain => "one time unit is shown as 1 us" },
        });
        Ok(format!(
            "{{\"displayTimeUnit\":\"ns\",\"otherData\":{about},\"traceEvents\":[\n{}\n]}}\n",
            lines.join(",\n")
        ))
    }
}

/// A number that is written whole where it is whole.
fn whole(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 {
        json!(value as i64)
    } else {
        json!(value)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::plan::{Request, Segments, registry};
    use crate::{CostModel, Kind, Ports, Span, Step};

    /// By (pid, tid): start and duration of each event, in the order written; and the threads' names.
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
    fn lanes_do_not_overlap_and_sum_to_what_ports_are_busy() {
        let cost = CostModel::new(2.0, 1.0).gamma(1.0);
        for (ports, name) in [(Ports::UNI, "uni-greedy"), (Ports::BI, "bi-greedy")] {
            let mut request = Request::new(9, 20);
            request.ports = ports;
            request.segments = Segments::of_count(20, 5).unwrap();
            request.cost = cost.clone();
            let schedule = registry::find(Kind::Reduce, name)
                .unwrap()
                .plan(&request)
                .unwrap();
            let trace = Trace::model(&schedule, &cost, 1, Unit::Plain).unwrap();
            let (lanes, names) = read(&trace.to_chrome_json("test").unwrap());
            let prepared = crate::simulate::Prepared::new(&schedule, false).unwrap();
            let busy = prepared.simulate(&cost, 1).port_busy(&schedule);
            for (rank, of_rank) in busy.iter().enumerate() {
                for (list, busy) in of_rank.iter().enumerate() {
                    let key = (rank as u64, list as u64);
                    assert!(names[&key].starts_with("port"), "{names:?}");
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
        }
    }

    #[test]
    fn golden() {
        let span = Span::new(0, 4);
        let mut b = crate::Schedule::builder(2, Ports::BI, crate::Collective::Reduce { root: 1 });
        b.layout(0, 4, [span], None);
        b.layout(1, 4, [span], Some(span));
        b.step(0, Step::send(1, span));
        b.step(1, Step::recv_combine(0, span, crate::Order::TheirsFirst));
        let schedule = b.build().unwrap();
        let cost = CostModel::new(1000.0, 0.5).gamma(125.0);
        let trace = Trace::model(&schedule, &cost, 1, Unit::Nanoseconds).unwrap();
        let expected = r#"{"displayTimeUnit":"ns","otherData":{"clock":"model","title":"pair","unit":"us"},"traceEvents":[
{"args":{"name":"rank 0"},"name":"process_name","ph":"M","pid":0,"tid":0},
{"args":{"sort_index":0},"name":"process_sort_index","ph":"M","pid":0,"tid":0},
{"args":{"name":"port out"},"name":"thread_name","ph":"M","pid":0,"tid":0},
{"args":{"sort_index":0},"name":"thread_sort_index","ph":"M","pid":0,"tid":0},
{"args":{"name":"port in"},"name":"thread_name","ph":"M","pid":0,"tid":1},
{"args":{"sort_index":1},"name":"thread_sort_index","ph":"M","pid":0,"tid":1},
{"args":{"name":"rank 1"},"name":"process_name","ph":"M","pid":1,"tid":0},
{"args":{"sort_index":1},"name":"process_sort_index","ph":"M","pid":1,"tid":0},
{"args":{"name":"port out"},"name":"thread_name","ph":"M","pid":1,"tid":0},
{"args":{"sort_index":0},"name":"thread_sort_index","ph":"M","pid":1,"tid":0},
{"args":{"name":"port in"},"name":"thread_name","ph":"M","pid":1,"tid":1},
{"args":{"sort_index":1},"name":"thread_sort_index","ph":"M","pid":1,"tid":1},
{"args":{"name":"compute"},"name":"thread_name","ph":"M","pid":1,"tid":2},
{"args":{"sort_index":2},"name":"thread_sort_index","ph":"M","pid":1,"tid":2},
{"args":{"bytes":4,"peer":1,"segment":0,"step":0},"cat":"transfer","dur":1.002,"name":"send to 1","ph":"X","pid":0,"tid":0,"ts":0},
{"args":{"bytes":4,"peer":0,"segment":0,"step":0},"cat":"transfer","dur":1.002,"name":"receive from 0","ph":"X","pid":1,"tid":1,"ts":0},
{"args":{"bytes":4,"peer":0,"segment":0,"step":0},"cat":"compute","dur":0.5,"name":"combine","ph":"X","pid":1,"tid":2,"ts":1.002}
]}
"#;
        assert_eq!(trace.to_chrome_json("pair").unwrap(), expected);
    }
}
