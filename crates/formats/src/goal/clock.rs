//! The whole numbers in a file, and whether LogGOPSim computes the model's time from them.

use std::borrow::Cow;

use super::{GoalForm, GoalOptions};
use crate::computation;
use oneport::error::{Error, Result};
use oneport::internal::numbers::{bytes, id, truncated};
use oneport::machine::{CostModel, Eager};
use oneport::rules::{End, NodeKind};
use oneport::schedule::{Schedule, Step};
use oneport::simulate::Simulation;

/// The largest time that LogGOPSim's flags take.
const MAX_TIME: f64 = i32::MAX as f64;

/// The whole numbers that stand for times and sizes.
pub(super) struct GoalClock {
    cost: CostModel,
    element_bytes: u64,
    form: GoalForm,
    /// Whether a host of LogGOPSim does nothing else while it sends.
    sends_occupy: bool,
    /// Number of units in one time unit of the model.
    scale: f64,
    pub(super) unit: String,
    /// Time of the first message, in the uniform form that of all.
    message: f64,
}

impl GoalClock {
    pub(super) fn new(schedule: &Schedule, options: &GoalOptions) -> Result<GoalClock> {
        let (form, ports) = (options.form, schedule.ports());
        let (uniform, timed) = (form == GoalForm::Uniform, form == GoalForm::Timed);
        let by_list = ports.waits_by_list();
        let refuse = |why: &str| {
            let form = if uniform { "uniform" } else { "timed" };
            let other = if uniform && by_list { "timed" } else { "bytes" };
            Err(Error::usage(format!(
                "the {form} form of GOAL: {why}; the {other} form may take it"
            )))
        };
        // Tokens have no bytes.
        let kind = schedule.collective().kind();
        let sends = schedule.programs().iter().flatten().filter(|s| s.is_send());
        let length = |send: &Step| if kind.has_data() { send.len() } else { 1 };
        let lengths: Vec<usize> = sends.map(length).collect();
        let mut clock = GoalClock {
            cost: kind.costs(&options.cost).into_owned(),
            element_bytes: schedule.element_bytes(),
            form,
            sends_occupy: timed && !ports.can_relay(),
            scale: 1.0,
            unit: String::new(),
            message: 0.0,
        };
        if form == GoalForm::Bytes {
            return Ok(clock);
        }
        let why = clock.refuses(schedule, &lengths)?;
        if !why.is_empty() {
            return refuse(&why);
        }
        let message = clock.transfer(lengths.first().copied().unwrap_or(1));
        let cost = &clock.cost;
        let mut times: Vec<f64> = clock.computations(schedule).collect();
        times.extend((0..schedule.ranks()).map(|rank| cost.arrival(rank)));
        times.push(cost.latency_between(0, 0));
        let rounds = uniform && message > 0.0 && times.iter().all(|&t| t == 0.0);
        times.push(message);
        times.extend(lengths.iter().map(|&n| clock.transfer(n)));
        let fits = |scale: &f64| {
            times.iter().all(|t| {
                let n = (t * scale).round();
                (t * scale - n).abs() <= 1e-12 * n && n <= MAX_TIME
            })
        };
        if let Some(scale) = (0..10).map(|k| 10f64.powi(k)).find(fits) {
            clock.scale = scale;
            clock.unit = format!("{scale} here is 1 time unit of the model");
        } else if rounds {
            // Rounds have whole times in any case.
            clock.scale = 1.0 / message;
            clock.unit = format!("1 here is one message, {message} time units of the model");
        } else {
            let delays = if cost.is_ideal() { "" } else { ", the delays" };
            return refuse(&format!(
                "LogGOPSim counts whole time units, and a message of {message}{delays} and the computations here \
                 are whole in no decimal unit (choose alpha, beta and gamma so that they are)"
            ));
        }
        clock.message = message;
        Ok(clock)
    }

    /// Why LogGOPSim cannot have the times of a schedule whose messages have these lengths; empty
    /// if it can.
    fn refuses(&self, schedule: &Schedule, lengths: &[usize]) -> Result<Cow<'static, str>> {
        let (uniform, timed) = (self.form == GoalForm::Uniform, self.form == GoalForm::Timed);
        let (cost, ports) = (&self.cost, schedule.ports());
        let latency = cost.latency_between(0, 0);
        let first = lengths.first().copied().unwrap_or(1);
        let differs = lengths.iter().find(|&&n| n != first).filter(|_| uniform);
        let why = if !ports.waits_by_list() {
            let ports = ports.in_words();
            return Ok(Cow::Owned(format!("LogGOPSim's hosts do not have {ports}")));
        } else if uniform && !ports.can_relay() {
            let ports = ports.in_words();
            return Ok(Cow::Owned(format!(
                "LogGOPSim's hosts send and receive at once, those with {ports} do not"
            )));
        } else if cost.links().is_some() {
            "LogGOPSim has one L and one g, these costs differ between ranks"
        } else if cost.overlaps() {
            "a calc of LogGOPSim occupies its host, here computation overlaps communication"
        } else if let Some(other) = differs {
            return Ok(Cow::Owned(format!(
                "all messages take the same time, here some have {first} elements and others {other} \
                 (choose sizes that all segments and blocks divide)"
            )));
        } else if first == 0 {
            "every message takes time, here all are empty"
        } else if lengths.contains(&0) {
            "every message takes time, here some are empty"
        } else if uniform && (latency > 0.0 || cost.sends_eagerly() != Eager::None) {
            "it has neither latency nor eager sends"
        } else if timed && ports.k() > 1 {
            "a host of LogGOPSim takes one message at a time, these have several ports"
        } else {
            return Ok(Cow::Owned(other_port_numbers(schedule)?));
        };
        Ok(Cow::Borrowed(why))
    }

    /// Time of a message of `n` elements.
    fn transfer(&self, n: usize) -> f64 {
        self.cost.transfer(0, 0, bytes(n, self.element_bytes))
    }

    /// Time of the computation of a step.
    pub(super) fn computation(&self, rank: usize, step: &Step) -> f64 {
        computation(&self.cost, rank, step, self.element_bytes)
    }

    pub(super) fn computations(&self, schedule: &Schedule) -> impl Iterator<Item = f64> {
        let ranks = schedule.programs().iter().enumerate();
        ranks.flat_map(move |(rank, program)| {
            program.iter().map(move |step| self.computation(rank, step))
        })
    }

    /// Time by which a rank is late.
    pub(super) fn late(&self, rank: usize) -> u64 {
        self.count(self.cost.arrival(rank))
    }

    fn latency(&self) -> u64 {
        self.count(self.cost.latency_between(0, 0))
    }

    pub(super) fn count(&self, time: f64) -> u64 {
        truncated((time * self.scale).round()) as u64
    }

    /// The size of the message of a step.
    pub(super) fn size(&self, step: &Step) -> u64 {
        match self.form {
            GoalForm::Uniform => 1,
            GoalForm::Timed => self.count(self.transfer(step.len())) + 1,
            GoalForm::Bytes => bytes(step.len(), self.element_bytes),
        }
    }

    pub(super) fn flags(&self) -> String {
        let (t, l) = (self.count(self.message), self.latency());
        let occupy = u8::from(self.sends_occupy);
        match self.form {
            GoalForm::Timed => format!("-L {l} -g 0 -o 0 -G 1 -O {occupy} -S {MAX_TIME}"),
            _ => format!("-L {t} -g {t} -o 0 -G 0 -O 0 -S 0"),
        }
    }

    /// Whether LogGOPSim computes the model's time. In the timed form decides whether a host does
    /// nothing else while it sends.
    pub(super) fn remark(&mut self, schedule: &Schedule, simulation: &Simulation) -> String {
        let timed = self.form == GoalForm::Timed;
        let mut differs = self.differs(schedule, simulation);
        if differs && timed && !self.sends_occupy {
            self.sends_occupy = true;
            differs = self.differs(schedule, simulation);
            self.sends_occupy = !differs;
        }
        let may = "may compute another time than the model";
        let (does, why) = match (differs, timed) {
            (false, false) => (
                "computes the model's time",
                "no sender waits for its receiver",
            ),
            (false, true) => (
                "computes the model's time",
                "all starts when it does in the model",
            ),
            (true, false) => (may, "in the model senders wait for their receivers"),
            (true, true) => (
                may,
                "no sender waits, and messages are taken as they arrive",
            ),
        };
        format!("LogGOPSim {does}: {why}")
    }

    /// Whether LogGOPSim may start something at another time than the model, even if it starts all
    /// before it when the model does.
    fn differs(&self, schedule: &Schedule, simulation: &Simulation) -> bool {
        let (prepared, timed) = (simulation.prepared(), self.form == GoalForm::Timed);
        let arrival = |rank: u32| self.late(rank as usize);
        let start = |node, end| self.count(simulation.start_at(node, end));
        let finish = |node, end| self.count(simulation.finish_at(node, end));
        // What takes its turn at a host of LogGOPSim: the rank, its start, whether it is a message,
        // the time from which on it is ready, since when it is queued, and until when it keeps
        // others waiting.
        let late = |rank| (rank, 0, false, 0, (0, 0), arrival(rank));
        let mut turns: Vec<_> = (0..id(schedule.ranks())).map(late).collect();
        for (n, node) in prepared.nodes().iter().enumerate() {
            let transfer = node.kind == NodeKind::Transfer;
            for (end, rank) in [(End::Sender, node.from), (End::Receiver, node.to)] {
                let (sends, message) = (end == End::Sender, transfer && end == End::Receiver);
                let mut ready = arrival(rank);
                let mut queued = (0, if ready > 0 { LATER } else { 0 });
                if message {
                    // LogGOPSim takes one that has arrived, whether its receive is due or not.
                    let sent = start(n, End::Sender);
                    let first = schedule.programs()[node.from as usize].first();
                    let first =
                        first.is_some_and(|s| s.is_send() && s.peer() == Some(rank as usize));
                    let first = first && sent == 0 && arrival(node.from) == 0;
                    queued = (sent, if first { node.from as usize + 1 } else { LATER });
                    ready = sent + self.latency();
                }
                for (wait, of) in prepared.waits_at(n, end).filter(|_| !message) {
                    // LogGOPSim is done with a message at once; it only keeps the port.
                    let at_once = of == End::Sender && !sends && timed && !self.sends_occupy;
                    let begin = start(wait, of);
                    ready = ready.max(if at_once { begin } else { finish(wait, of) });
                    queued = queued.max((begin, LATER));
                }
                if transfer || !sends {
                    let begin = start(n, end);
                    if !timed && begin != ready {
                        return true;
                    }
                    let occupies = !sends || self.sends_occupy;
                    let free = if occupies { finish(n, end) } else { begin };
                    turns.push((rank, begin, message, ready, queued, free));
                }
            }
        }
        turns.sort_unstable();
        let mut hosts = turns.chunk_by(|a, b| a.0 == b.0);
        timed
            && hosts.any(|turns| {
                let mut free = 0;
                turns
                    .iter()
                    .enumerate()
                    .any(|(k, &(_, start, message, ready, queued, end))| {
                        let others = turns[..k].iter().rev().take_while(|other| other.1 >= ready);
                        let mut others = others.filter(|other| message || other.2);
                        let at_once = start == ready.max(free);
                        free = end.max(free);
                        !at_once || others.any(|other| other.4 >= queued)
                    })
            })
    }
}

/// Queued later than what is queued from the beginning: before or after others of the same time.
const LATER: usize = usize::MAX;

/// LogGOPSim charges the receiver's port of the sender's number. Explains where that differs.
fn other_port_numbers(schedule: &Schedule) -> Result<String> {
    if schedule.ports().k() == 1 {
        return Ok(String::new());
    }
    let matching = oneport::internal::Matching::new(schedule, |_| ())?;
    let steps: Vec<&Step> = schedule.programs().iter().flatten().collect();
    for (number, step) in steps.iter().enumerate() {
        let mate = matching.mate(number).map(|mate| steps[mate]);
        if let (Some(port), Some(other)) = (step.port(), mate.and_then(|m| m.port()))
            && port != other
        {
            return Ok(format!(
                "LogGOPSim has a message use ports of the same number at both ends, here one uses port {port} and port {other} instead"
            ));
        }
    }
    Ok(String::new())
}
