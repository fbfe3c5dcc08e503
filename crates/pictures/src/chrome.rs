//! Writes traces in Chrome's trace event format, which Perfetto and other viewers open.
//!
//! A rank is a process, and each of its ports is a thread. A rank that computes has one more
//! thread, or several if it computes several things at once.
//!
//! The numbers respect some assumptions of Perfetto. It takes thread numbers to be unique among all
//! processes (threads with the same number share a lane, in which overlapping events are lost),
//! thread 0 to be the idle thread, and the thread with its process's number to be the main thread.
//! It counts whole nanoseconds, so other times could overlap by one.

use std::collections::{HashMap, VecDeque};

use serde_json::{Value, json};

use super::trace::{Activity, Source, Trace, Unit, What};
use oneport::error::{Error, Result};

/// Maximal number of events of a trace in JSON: viewers take seconds per hundred thousand events.
pub const MAX_EVENTS: usize = 1_000_000;

/// What is written of an activity, in the order at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Activity,
    ArrowStart,
    ArrowEnd,
}

impl Trace {
    /// Writes the trace as JSON in the trace event format, with one `pid` per rank and one `tid`
    /// per port, both named, and with step, peer, bytes and segment in `args`. Arrows (flow events)
    /// lead from every send to its receive.
    ///
    /// `ts` and `dur` are in microseconds, rounded to the nanosecond. If the model has no unit, one
    /// time unit is written as a microsecond, or as a millisecond or a second if times are short;
    /// `otherData` names the scale.
    ///
    /// # Errors
    /// When there are more than [`MAX_EVENTS`] events.
    pub fn to_chrome_json(&self, title: &str) -> Result<String> {
        let events = self.activities().len();
        if events > MAX_EVENTS {
            return Err(Error::usage(format!(
                "{events} events are more than the {MAX_EVENTS} that a trace can have: take fewer ranks or segments"
            )));
        }
        let threads = Threads::of(self);
        let mut lines = Vec::with_capacity(events + 8 * self.ranks());
        for rank in 0..self.ranks() {
            self.name_threads(rank, &threads, &mut lines);
        }
        let (nanoseconds, unit) = self.scale();
        let messages = self.messages();
        let whole = |i: usize| (self.activities()[i].start * nanoseconds).round();
        // Viewers attach an arrow to the activity that is under way, and know its start before its
        // end: at every time the activities come first, and then the starts of arrows.
        let mut order: Vec<(f64, Event, usize)> = Vec::with_capacity(events);
        for (i, activity) in self.activities().iter().enumerate() {
            order.push((whole(i), Event::Activity, i));
            if messages[i].is_some() {
                let sends = activity.what == What::Send;
                let end = if sends {
                    Event::ArrowStart
                } else {
                    Event::ArrowEnd
                };
                order.push((whole(i), end, i));
            }
        }
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        for (_, kind, i) in order {
            let activity = &self.activities()[i];
            let thread = match (self.list(activity), threads.lanes[i]) {
                (Some(list), _) => list,
                (None, lane) => threads.lists + lane.unwrap_or(0),
            };
            let tid = threads.number(activity.rank, thread);
            let line = match (kind, messages[i]) {
                (Event::Activity, _) | (_, None) => event(activity, tid, nanoseconds),
                (_, Some(message)) => arrow(activity, tid, nanoseconds, message),
            };
            lines.push(line.to_string());
        }
        let metadata = json!({
            "title": title,
            "clock": match self.source() { Source::Model => "model", Source::Wall => "wall" },
            "unit": unit,
        });
        Ok(format!(
            "{{\"displayTimeUnit\":\"ns\",\"otherData\":{metadata},\"traceEvents\":[\n{}\n]}}\n",
            lines.join(",\n")
        ))
    }

    /// By activity: the number of the message that it sends or receives, the same at both ends. The
    /// `n`-th send from one rank to another meets the `n`-th receive. `None` for computations, for
    /// messages that take no time (viewers attach no arrow to them), and without a partner.
    fn messages(&self) -> Vec<Option<usize>> {
        let mut sends: HashMap<(usize, usize), VecDeque<usize>> = HashMap::new();
        let mut receives = sends.clone();
        for (i, a) in self.activities().iter().enumerate() {
            match (a.port, a.peer, a.what) {
                (None, ..) | (_, None, _) => {}
                (_, Some(to), What::Send) => sends.entry((a.rank, to)).or_default().push_back(i),
                (_, Some(from), _) => receives.entry((from, a.rank)).or_default().push_back(i),
            }
        }
        let mut messages = vec![None; self.activities().len()];
        for (pair, sent) in sends {
            for (send, receive) in sent
                .into_iter()
                .zip(receives.remove(&pair).unwrap_or_default())
            {
                let timed = |i: usize| self.activities()[i].time() > 0.0;
                if timed(send) && timed(receive) {
                    (messages[send], messages[receive]) = (Some(send), Some(send));
                }
            }
        }
        messages
    }

    /// Writes the names and the order of a rank's process and threads.
    fn name_threads(&self, rank: usize, threads: &Threads, lines: &mut Vec<String>) {
        let mut name = |what: &str, tid: usize, args: Value| {
            let line = json!({"name": what, "ph": "M", "pid": rank, "tid": tid, "args": args});
            lines.push(line.to_string());
        };
        let first = threads.number(rank, 0);
        let process = format!("rank {rank}");
        name("process_name", first, json!({"name": process}));
        name("process_sort_index", first, json!({"sort_index": rank}));
        let computing = threads.computing[rank];
        for thread in 0..threads.lists + computing {
            let title = match thread.checked_sub(threads.lists) {
                None => match self.list_name(thread) {
                    port if port.starts_with("port") => port,
                    direction => format!("port {direction}"),
                },
                Some(0) if computing == 1 => "compute".to_string(),
                Some(n) => format!("compute {n}"),
            };
            let tid = threads.number(rank, thread);
            name("thread_name", tid, json!({"name": title}));
            name("thread_sort_index", tid, json!({"sort_index": thread}));
        }
    }

    /// The number of nanoseconds in the trace per unit of time, and its description. A unit without
    /// a name becomes a microsecond; if the shortest time would then have an error above a percent,
    /// it becomes a millisecond or a second.
    fn scale(&self) -> (f64, &'static str) {
        if self.unit() == Unit::Nanoseconds {
            return (1.0, "us");
        }
        let times = self.activities().iter().map(Activity::time);
        let shortest = times.filter(|&t| t > 0.0).fold(f64::INFINITY, f64::min);
        let fine = |scale: f64| shortest * scale >= 100.0 || self.end() * scale >= 1e15;
        match (fine(1e3), fine(1e6)) {
            (true, _) => (1e3, "one time unit is shown as 1 us"),
            (_, true) => (1e6, "one time unit is shown as 1 ms"),
            _ => (1e9, "one time unit is shown as 1 s"),
        }
    }
}

/// The threads of every rank: first one for each port list, then one for each lane of computations.
struct Threads {
    ranks: usize,
    /// Number of port lists of a rank.
    lists: usize,
    /// By activity: the lane of a computation, from 0.
    lanes: Vec<Option<usize>>,
    max_lanes: usize,
    /// By rank: its number of lanes.
    computing: Vec<usize>,
}

impl Threads {
    fn of(trace: &Trace) -> Threads {
        let (lanes, max_lanes) = trace.compute_lanes();
        let mut computing = vec![0; trace.ranks()];
        for (a, lane) in trace.activities().iter().zip(&lanes) {
            computing[a.rank] = computing[a.rank].max(lane.map_or(0, |l| l + 1));
        }
        Threads {
            ranks: trace.ranks(),
            lists: trace.lists(),
            lanes,
            max_lanes,
            computing,
        }
    }

    /// The number of a rank's thread: unique, and larger than all ranks, which are the numbers of
    /// the processes.
    fn number(&self, rank: usize, thread: usize) -> usize {
        self.ranks + rank * (self.lists + self.max_lanes) + thread + 1
    }
}

/// The event of an activity on the thread numbered `tid`; a unit of time has `nanoseconds`
/// nanoseconds.
fn event(activity: &Activity, tid: usize, nanoseconds: f64) -> Value {
    let name = match (activity.what, activity.peer) {
        (What::Send, Some(peer)) => format!("send to {peer}"),
        (What::Receive | What::ReceiveCombine, Some(peer)) => {
            format!("{} from {peer}", activity.what.name())
        }
        _ => activity.what.name().to_string(),
    };
    let mut args = json!({"step": activity.step, "bytes": activity.bytes});
    if let Some(peer) = activity.peer {
        args["peer"] = json!(peer);
    }
    if let Some(segment) = activity.segment {
        args["segment"] = json!(segment);
    }
    let category = match activity.port {
        Some(_) => "transfer",
        None => "compute",
    };
    // Round both ends instead of the duration, so that adjacent events stay adjacent.
    let whole = |t: f64| (t * nanoseconds).round();
    let (start, end) = (whole(activity.start), whole(activity.end));
    json!({
        "name": name, "cat": category, "ph": "X",
        "ts": microseconds(start), "dur": microseconds(end - start),
        "pid": activity.rank, "tid": tid, "args": args
    })
}

/// The end of the arrow from a send to its receive that lies in this activity, on the thread
/// numbered `tid`: at its start, because both start together.
fn arrow(activity: &Activity, tid: usize, nanoseconds: f64, message: usize) -> Value {
    let start = microseconds((activity.start * nanoseconds).round());
    let mut arrow = json!({
        "name": "message", "cat": "message", "id": message, "ts": start,
        "pid": activity.rank, "tid": tid, "ph": "s"
    });
    if activity.what != What::Send {
        arrow["ph"] = json!("f");
        // Ends in the activity at that time, not in the next one.
        arrow["bp"] = json!("e");
    }
    arrow
}

/// Whole nanoseconds in microseconds, as an integer where that is exact.
fn microseconds(nanoseconds: f64) -> Value {
    match nanoseconds / 1e3 {
        t if t.fract() == 0.0 && t.abs() < 9e15 => json!(t as i64),
        t => json!(t),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use oneport::plan::{Request, registry};
    use oneport::{CostModel, Kind, Ports, Span, Step};

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
                    let lane = &trace.list_name(list);
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
        let mut b =
            oneport::Schedule::builder(2, Ports::BI, oneport::Collective::Reduce { root: 1 });
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
{"args":{"bytes":4,"peer":0,"segment":0,"step":0},"cat":"compute","dur":0.5,"name":"combine","ph":"X","pid":1,"tid":8,"ts":1.002}
]}
"#;
        assert_eq!(trace.to_chrome_json("pair").unwrap(), expected);
    }
}
