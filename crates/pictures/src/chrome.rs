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

use super::svg::Unit;
use super::trace::{Activity, Source, Trace, What};
use oneport::error::{Error, Result};
use oneport::internal::numbers::truncated_i64;

/// Maximal number of events of a trace in JSON: viewers take seconds per hundred thousand events.
pub const MAX_EVENTS: usize = 1_000_000;

impl Trace {
    /// Writes the trace as JSON in the trace event format, with one `pid` per rank and one `tid`
    /// per port, both named, and with step, peer, bytes, segment and the reason why it starts
    /// no earlier in `args`. Arrows (flow events) lead from every send to its receive.
    ///
    /// `ts` and `dur` are in microseconds, rounded to the nanosecond. If the model has no unit, one
    /// time unit is written as a microsecond, or as a millisecond or a second if times are short;
    /// `otherData` names the scale.
    ///
    /// # Errors
    /// When there are more than [`MAX_EVENTS`] events.
    pub fn to_chrome_json(&self, title: &str) -> Result<String> {
        let events = self.activities.len();
        if events > MAX_EVENTS {
            return Err(Error::usage(format!(
                "{events} events are more than the {MAX_EVENTS} that a trace can have: take fewer ranks or segments"
            )));
        }
        let threads = RankThreads::of(self);
        let mut lines = Vec::with_capacity(events + 8 * self.ranks);
        for rank in 0..self.ranks {
            self.name_threads(rank, &threads, &mut lines);
        }
        let (nanoseconds, unit) = self.scale();
        let messages = self.messages();
        // Viewers attach an arrow to the activity that is under way, and know its start before its
        // end: at every time the activities come first, and then the starts of arrows.
        let mut order: Vec<(f64, u8, usize)> = Vec::with_capacity(events);
        for (i, activity) in self.activities.iter().enumerate() {
            let start = (activity.start * nanoseconds).round();
            order.push((start, 0, i));
            let end = if activity.what == What::Send { 1 } else { 2 };
            order.extend(messages[i].map(|_| (start, end, i)));
        }
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        for (_, kind, i) in order {
            let activity = &self.activities[i];
            let thread = match (self.list(activity), threads.lanes[i]) {
                (Some(list), _) => list,
                (None, lane) => threads.lists + lane.unwrap_or(0),
            };
            let tid = threads.number(activity.rank, thread);
            let line = match messages[i].filter(|_| kind > 0) {
                None => event(activity, tid, nanoseconds),
                Some(message) => arrow(activity, tid, nanoseconds, message),
            };
            lines.push(line.to_string());
        }
        let metadata = json!({
            "title": title,
            "clock": match self.source { Source::Model => "model", Source::Wall => "wall" },
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
        for (i, a) in self.activities.iter().enumerate() {
            match (a.port, a.peer, a.what) {
                (None, ..) | (_, None, _) => {}
                (_, Some(to), What::Send) => sends.entry((a.rank, to)).or_default().push_back(i),
                (_, Some(from), _) => receives.entry((from, a.rank)).or_default().push_back(i),
            }
        }
        let mut messages = vec![None; self.activities.len()];
        for (pair, sent) in sends {
            for (send, receive) in sent
                .into_iter()
                .zip(receives.remove(&pair).unwrap_or_default())
            {
                let timed = |i: usize| self.activities[i].time() > 0.0;
                if timed(send) && timed(receive) {
                    (messages[send], messages[receive]) = (Some(send), Some(send));
                }
            }
        }
        messages
    }

    /// Writes the names and the order of a rank's process and threads.
    fn name_threads(&self, rank: usize, threads: &RankThreads, lines: &mut Vec<String>) {
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
                None => match self.ports.list_name(thread) {
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
        if self.unit == Unit::Nanoseconds {
            return (1.0, "us");
        }
        let times = self.activities.iter().map(Activity::time);
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
struct RankThreads {
    ranks: usize,
    /// Number of port lists of a rank.
    lists: usize,
    /// By activity: the lane of a computation, from 0.
    lanes: Vec<Option<usize>>,
    max_lanes: usize,
    /// By rank: its number of lanes.
    computing: Vec<usize>,
}

impl RankThreads {
    fn of(trace: &Trace) -> RankThreads {
        let (lanes, max_lanes) = trace.compute_lanes();
        let mut computing = vec![0; trace.ranks];
        for (a, lane) in trace.activities.iter().zip(&lanes) {
            computing[a.rank] = computing[a.rank].max(lane.map_or(0, |l| l + 1));
        }
        RankThreads {
            ranks: trace.ranks,
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
    if let Some((reason, (rank, event))) = activity.why {
        args["why"] = json!(format!("{reason:?}").to_lowercase());
        args["waits_for"] = json!(format!("rank {rank}, step {}", event.step()));
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
        t if t.fract() == 0.0 && t.abs() < 9e15 => json!(truncated_i64(t)),
        t => json!(t),
    }
}
