//! Traces: the activities of every rank over time, in model time or in recorded wall-clock.

use std::collections::{BTreeMap, BTreeSet};

use super::MAX_BOXES;
use super::blocks::{blocks, distinct, segments};
use super::svg::Unit;
use oneport::check::{Options, Report};
use oneport::error::{Error, Result};
use oneport::internal::Matching;
use oneport::machine::{CostModel, Ports};
use oneport::rules::{End, Event};
use oneport::schedule::{Schedule, Spans, Step};
use oneport::simulate::explain::WaitReason;
use oneport::simulate::{Prepared, Simulation};

/// The origin of a [`Trace`]'s times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The cost model.
    Model,
    /// The wall-clock of a run.
    Wall,
}

/// The kind of an [`Activity`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum What {
    /// A port out carries a message.
    Send,
    /// A port in carries a message.
    Receive,
    /// A port in carries a message that is combined while it arrives, as in a run.
    ReceiveCombine,
    /// Elements are combined.
    Combine,
    /// Elements are copied within the rank's buffer.
    Copy,
}

impl What {
    pub(crate) const ALL: [What; 5] = [
        What::Send,
        What::Receive,
        What::ReceiveCombine,
        What::Combine,
        What::Copy,
    ];

    /// The kind in words.
    pub fn name(self) -> &'static str {
        match self {
            What::Send => "send",
            What::Receive => "receive",
            What::ReceiveCombine => "receive and combine",
            What::Combine => "combine",
            What::Copy => "copy",
        }
    }
}

/// An activity that occupies a port or a rank from `start` to `end`.
#[derive(Debug, Clone, PartialEq)]
pub struct Activity {
    /// The rank.
    pub rank: usize,
    /// The step, an index into the rank's program.
    pub step: usize,
    /// The kind of the activity.
    pub what: What,
    /// The rank at the other end of a transfer.
    pub peer: Option<usize>,
    /// The number of the port that a transfer uses.
    pub port: Option<usize>,
    /// Number of bytes moved or combined.
    pub bytes: u64,
    /// Index into [`Trace::segments`] of the segment moved or combined; `None` for an empty
    /// message.
    pub segment: Option<usize>,
    /// Start time, in the trace's unit.
    pub start: f64,
    /// End time, in the trace's unit.
    pub end: f64,
    /// Index into [`Trace::blocks`] of the blocks moved; `None` if the collective has none.
    pub blocks: Option<usize>,
    /// Whether the activity is on the critical path, in model time: see
    /// [`Simulation::critical_path`](oneport::simulate::Simulation::critical_path).
    pub critical: bool,
    /// Why it starts no earlier, in model time, and the rank and event that it waits for; `None` if
    /// for nothing, or only for its rank's arrival.
    pub why: Option<(WaitReason, (usize, Event))>,
}

impl Activity {
    /// The event that it ends with.
    pub(crate) fn event(&self) -> Event {
        match self.port {
            Some(_) => Event::transferred(self.step),
            None => Event::computed(self.step),
        }
    }

    /// Duration of the activity.
    pub fn time(&self) -> f64 {
        self.end - self.start
    }
}

/// A step that waits for ever, in a schedule that does not complete: the first of its rank on its
/// port, or a computation that all later steps of its rank wait for.
#[derive(Debug, Clone, PartialEq)]
pub struct Wait {
    /// The rank.
    pub rank: usize,
    /// The step, an index into the rank's program.
    pub step: usize,
    /// What the step waits to do.
    pub what: What,
    /// The rank at the other end of a transfer.
    pub peer: Option<usize>,
    /// The number of the port that a transfer keeps.
    pub port: Option<usize>,
    /// The end of what its rank did before on this port, in the trace's unit.
    pub since: f64,
    /// Whether it is part of a cycle of steps that wait for each other.
    pub in_cycle: bool,
    /// The step of its rank that it waits for, if it does, and why.
    pub behind: Option<(usize, WaitReason)>,
    /// Whether no step of its peer meets it.
    pub alone: bool,
}

impl Wait {
    /// Whether others may wait for ever because of it.
    pub(crate) fn is_cause(&self) -> bool {
        self.in_cycle || self.alone
    }

    /// The port list on which a transfer waits: see [`Ports::list`].
    pub(crate) fn list(&self, ports: Ports) -> Option<usize> {
        Some(ports.list(self.what == What::Send, self.port?))
    }
}

/// The activities of every rank over time: see the [module documentation](crate).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Trace {
    /// Number of ranks.
    pub ranks: usize,
    /// The port model.
    pub ports: Ports,
    /// The origin of the times.
    pub source: Source,
    /// The unit of the times.
    pub unit: Unit,
    /// The distinct segments (lists of spans) that messages carry, as named by their senders, in
    /// order.
    pub segments: Vec<Spans>,
    /// The distinct sets of blocks that messages carry, as the ranks that the blocks belong to, in
    /// order. Only for collectives with a block for each rank, for schedules that complete, and for
    /// traces that fit a chart ([`MAX_BOXES`](super::MAX_BOXES)).
    pub blocks: Vec<Vec<usize>>,
    /// The activities, by rank and step.
    pub activities: Vec<Activity>,
    /// The ports that ranks share, by name, with the indices of the activities that use them, in
    /// their order.
    pub shared_ports: Vec<(String, Vec<usize>)>,
    /// Whether charts frame the critical path: see [`Activity::critical`].
    pub critical_path: bool,
    /// The steps that wait for ever, by rank and step: none of a schedule that completes.
    pub waits: Vec<Wait>,
    /// Groups of steps, such as trees, whose colours steps have instead of those of their segments:
    /// the names of the groups, and by rank and step the number of its group.
    pub groups: Option<(Vec<String>, Vec<Vec<usize>>)>,
}

impl Trace {
    /// Traces the model times of `schedule` under `cost`.
    ///
    /// A transfer occupies a port at both ends from its start to its end. A combining receive is a
    /// transfer followed by a combination. Of a schedule that does not complete, it traces what
    /// takes place before all that is left waits for ever: see [`Trace::waits`].
    ///
    /// # Errors
    /// As [`Schedule::simulate`], but for steps without partners and cycles; and when the makespan
    /// is not finite.
    pub fn model(schedule: &Schedule, cost: &CostModel, unit: Unit) -> Result<Trace> {
        let simulation = simulated(schedule, cost)?;
        let overlap = cost.overlaps();
        let options = Options {
            overlap,
            ..Options::default()
        };
        Trace::simulated(schedule, &simulation, unit, || {
            schedule.check_with(&options)
        })
    }

    /// Traces the times of a simulation of `schedule`; `check` checks it, if not all steps take
    /// place.
    ///
    /// # Errors
    /// When the makespan is not finite, or there are more steps than can be numbered.
    pub(crate) fn simulated(
        schedule: &Schedule,
        simulation: &Simulation,
        unit: Unit,
        check: impl FnOnce() -> Report,
    ) -> Result<Trace> {
        if !simulation.makespan().is_finite() {
            return Err(Error::usage(
                "the model time is not finite: a link that the schedule uses is missing, or costs are too large",
            ));
        }
        let prepared = simulation.prepared();
        let critical: BTreeSet<usize> = simulation.critical_path().into_iter().collect();
        // Those that take place; their times follow.
        let mut trace = Trace::build(schedule, (Source::Model, unit), |rank, i, step| {
            let part = |event, what| prepared.node(rank, event).map(|_| (what, (0.0, 0.0)));
            let transfer = |_| part(Event::transferred(i), kind_of(step, Source::Model));
            let compute = || part(Event::computed(i), compute_of(step));
            let computed = step.computes().then(compute).flatten();
            [step.peer().and_then(transfer), computed]
        })?;
        let reasons = simulation.reasons(schedule);
        for a in &mut trace.activities {
            let Some(node) = prepared.node(a.rank, a.event()) else {
                continue;
            };
            let end = [End::Receiver, End::Sender][usize::from(a.what == What::Send)];
            a.start = simulation.start_at(node, end);
            a.end = simulation.finish_at(node, end);
            a.critical = critical.contains(&node);
            let (side, reason, wait) = reasons.binding(node, end);
            let partner = reasons.at((node, side)).0 != a.rank;
            let partner = partner.then_some((WaitReason::Partner, (node, side)));
            let awaited = partner.or(wait.map(|wait| (reason, wait)));
            let why = awaited.map(|(reason, end)| (reason, reasons.at(end)));
            a.why = why.filter(|_| a.start > 0.0);
        }
        trace.waits = trace.found_waits(schedule, prepared)?;
        if !trace.waits.is_empty() {
            let report = check();
            let cycles = report.errors.iter().flat_map(|error| &error.cycle);
            let steps = cycles.flat_map(|link| {
                let before = link.waits_for_rank.unwrap_or(link.rank);
                [(link.rank, link.step), (before, link.waits_for_step)]
            });
            let steps: BTreeSet<(usize, usize)> = steps.collect();
            for wait in &mut trace.waits {
                wait.in_cycle = steps.contains(&(wait.rank, wait.step));
            }
        }
        Ok(trace)
    }

    /// The waits of a schedule of whose steps `prepared` has those that take place.
    fn found_waits(&self, schedule: &Schedule, prepared: &Prepared) -> Result<Vec<Wait>> {
        let matching = Matching::new(schedule, |_| {})?;
        let mut waits = Vec::new();
        let mut ends = vec![BTreeMap::new(); self.ranks];
        for a in &self.activities {
            let end = ends[a.rank].entry(self.list(a)).or_insert(0.0);
            *end = f64::max(*end, a.end);
        }
        for (rank, program) in schedule.programs().iter().enumerate() {
            let first = waits.len();
            let mut lists = BTreeSet::new();
            for (i, step) in program.iter().enumerate() {
                let transfer = step.peer().map(|_| Event::transferred(i));
                let compute = step.computes().then(|| Event::computed(i));
                let stands = |&event: &Event| prepared.node(rank, event).is_none();
                let Some(event) = transfer.into_iter().chain(compute).find(stands) else {
                    continue;
                };
                let computes = event.is_computed();
                // A computation keeps all ports, and waits behind those that wait on any.
                if computes && waits.len() > first {
                    break;
                }
                let port = step.port().filter(|_| !computes);
                let list = port.map(|port| self.ports.list(step.is_send(), port));
                if !lists.insert(list) {
                    continue;
                }
                let before = ends[rank].iter();
                let before = before.filter(|(l, _)| list.is_none() || l.is_none() || **l == list);
                let mate = matching.mate(matching.first_step[rank] as usize + i);
                waits.push(Wait {
                    rank,
                    step: i,
                    what: [kind_of(step, Source::Model), compute_of(step)][usize::from(computes)],
                    peer: step.peer(),
                    port,
                    since: before.map(|(_, &end)| end).fold(0.0, f64::max),
                    in_cycle: false,
                    behind: prepared.behind(schedule, rank, event),
                    alone: !computes && mate.is_none(),
                });
                if computes {
                    break;
                }
            }
        }
        Ok(waits)
    }

    /// The time up to which pictures show: beyond the end, there is room for what waits for ever.
    pub(crate) fn shown(&self) -> f64 {
        match self.end() {
            end if self.waits.is_empty() => end,
            0.0 => 1.0,
            end => end * 1.12,
        }
    }

    /// Traces steps that start and end at the given model times, by rank and step.
    ///
    /// # Errors
    /// When there are more steps than can be numbered.
    ///
    /// # Panics
    /// When a step has no times.
    pub fn of_times(schedule: &Schedule, times: &[Vec<(f64, f64)>]) -> Result<Trace> {
        let of_step = |rank: usize, i: usize, step: &Step| {
            [Some((kind_of(step, Source::Model), times[rank][i])), None]
        };
        Trace::build(schedule, (Source::Model, Unit::Plain), of_step)
    }

    /// Traces the wall-clock of a run. `step_times` holds, by rank and step, the times in
    /// nanoseconds when the step opened its port (or started to compute) and when it ended, as in
    /// [`Outcome::step_times`](oneport::run::Outcome::step_times).
    ///
    /// The earlier of two partners waits for the other, so a transfer starts when both have opened
    /// their ports. A step without times takes no time.
    ///
    /// # Errors
    /// When there are more steps than can be numbered.
    pub fn wall(schedule: &Schedule, step_times: &[Vec<(u64, u64)>]) -> Result<Trace> {
        let matching = Matching::new(schedule, |_| {})?;
        // The times of all steps in one list, numbered as in the matching.
        let times_in_order: Vec<(u64, u64)> = step_times.iter().flatten().copied().collect();
        Trace::build(
            schedule,
            (Source::Wall, Unit::Nanoseconds),
            |rank, i, step| {
                let number = matching.first_step[rank] as usize + i;
                let (opened, end) = times_in_order.get(number).copied().unwrap_or_default();
                let mate = matching
                    .mate(number)
                    .and_then(|mate| times_in_order.get(mate));
                let theirs = mate.map_or(0, |times| times.0);
                let start = opened.max(theirs).min(end);
                let times = (start as f64, end as f64);
                [Some((kind_of(step, Source::Wall), times)), None]
            },
        )
    }

    fn build(
        schedule: &Schedule,
        (source, unit): (Source, Unit),
        parts: impl Fn(usize, usize, &Step) -> [Option<(What, (f64, f64))>; 2],
    ) -> Result<Trace> {
        let (segments, of_step) = segments(schedule)?;
        let small = schedule.steps() <= MAX_BOXES;
        let blocks = small.then(|| blocks(schedule)).flatten();
        let (blocks, blocks_of_step) = distinct(&blocks.unwrap_or_default(), Vec::is_empty);
        let mut activities = Vec::with_capacity(schedule.steps());
        let mut number = 0;
        for (rank, program) in schedule.programs().iter().enumerate() {
            for (i, step) in program.iter().enumerate() {
                for (what, (start, end)) in parts(rank, i, step).into_iter().flatten() {
                    let moves = !matches!(what, What::Combine | What::Copy);
                    activities.push(Activity {
                        rank,
                        step: i,
                        what,
                        peer: step.peer(),
                        port: step.port().filter(|_| moves),
                        bytes: (step.len() as u64).saturating_mul(schedule.element_bytes()),
                        segment: of_step[number],
                        start,
                        end,
                        blocks: blocks_of_step.get(number).copied().flatten(),
                        critical: false,
                        why: None,
                    });
                }
                number += 1;
            }
        }
        let first = |&step: &(usize, usize)| {
            activities.partition_point(|a: &Activity| (a.rank, a.step) < step)
        };
        let shared = schedule.shared_ports().iter();
        let shared = shared.map(|port| (port.name.clone(), port.steps.iter().map(first).collect()));
        let shared_ports = shared.collect();
        Ok(Trace {
            ranks: schedule.ranks(),
            ports: schedule.ports(),
            source,
            unit,
            segments,
            blocks,
            activities,
            shared_ports,
            critical_path: false,
            waits: Vec::new(),
            groups: None,
        })
    }

    /// The number and the name of an activity's group.
    pub(crate) fn group(&self, activity: &Activity) -> Option<(usize, &str)> {
        let (names, of_steps) = self.groups.as_ref()?;
        let group = *of_steps.get(activity.rank)?.get(activity.step)?;
        Some((group, names.get(group)?))
    }

    /// The time when the last activity ends.
    pub fn end(&self) -> f64 {
        self.activities.iter().map(|a| a.end).fold(0.0, f64::max)
    }

    /// The port list that an activity occupies, with the number of [`Ports::list`]; `None` for
    /// computations.
    pub fn list(&self, activity: &Activity) -> Option<usize> {
        let port = activity.port?;
        Some(self.ports.list(activity.what == What::Send, port))
    }

    /// Number of port lists that a picture shows: up to the last port that a rank of this trace
    /// uses, and at least those of one port.
    pub fn lists(&self) -> usize {
        let waiting = self.waits.iter().filter_map(|wait| wait.port);
        let used = self.activities.iter().filter_map(|a| a.port);
        let used = used.chain(waiting).max();
        self.ports.with_k(used.unwrap_or(0) + 1).lists()
    }

    /// Assigns every computation a lane of its rank (from 0), so that no two computations in a lane
    /// overlap. Returns the lanes by activity, and the maximal number of lanes of a rank. With
    /// overlap, a rank may compute several things at once.
    pub fn compute_lanes(&self) -> (Vec<Option<usize>>, usize) {
        let computes = |&i: &usize| self.activities[i].port.is_none();
        let mut by_start: Vec<usize> = (0..self.activities.len()).filter(computes).collect();
        by_start.sort_by(|&i, &j| {
            let (a, b) = (&self.activities[i], &self.activities[j]);
            a.start.total_cmp(&b.start).then(a.end.total_cmp(&b.end))
        });
        let mut free: Vec<Vec<f64>> = vec![Vec::new(); self.ranks];
        let mut lanes = vec![None; self.activities.len()];
        for i in by_start {
            let (a, of_rank) = (&self.activities[i], &mut free[self.activities[i].rank]);
            let lane = of_rank.iter().take_while(|&&end| end > a.start).count();
            of_rank.resize(of_rank.len().max(lane + 1), 0.0);
            of_rank[lane] = a.end;
            lanes[i] = Some(lane);
        }
        let max_lanes = free.iter().map(Vec::len).max().unwrap_or(0);
        (lanes, max_lanes)
    }
}

/// The times of all steps, or of those that take place before the others wait for ever.
pub(crate) fn simulated(schedule: &Schedule, cost: &CostModel) -> Result<Simulation> {
    Prepared::reachable(schedule, cost.overlaps())?.simulate(cost)
}

/// What a step does first; a combining receive combines afterwards, in the model.
fn kind_of(step: &Step, source: Source) -> What {
    match step {
        Step::Send { .. } => What::Send,
        Step::RecvCombine { .. } if source == Source::Wall => What::ReceiveCombine,
        Step::Recv { .. } | Step::RecvCombine { .. } => What::Receive,
        Step::Copy { .. } | Step::Combine { .. } => compute_of(step),
    }
}

fn compute_of(step: &Step) -> What {
    match step {
        Step::Copy { .. } => What::Copy,
        _ => What::Combine,
    }
}
