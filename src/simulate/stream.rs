//! Model time of streamed programs: steps are timed as they are generated and then dropped.
//!
//! Every rank has a [`window`] on its program: the steps that have been taken from the program and
//! have not finished. A step is *open* when everything it waits for by rules 1 to 3 has finished;
//! the finishing times are then known, and with them the time from which the step may run. When a
//! matching send and receive (rule 4) are both open, both finish, which may open later steps of
//! both ranks. Open transfers are kept in [`slots`], one for each port, in which partners find each
//! other. The side that opened first finds the end of the transfer in its slot. A [`worklist`]
//! holds the ranks whose state may have changed. They are visited in order of their numbers, so
//! that ranks with similar programs are visited one after another.
//!
//! For finished steps only two things are kept: the time from which each port is free, and for each
//! part of the buffer the times of its last read and write ([`OnlineOrder`]), as long as these are
//! later than the times implied by all ports. Memory is therefore linear in the number of ranks for
//! programs that keep all of a rank's ports busy at about the same time. For other programs it is
//! the size that rule 2 needs: one entry for each part of a buffer that the steps distinguish.
//!
//! Steps of very many spans ([`Pending::is_heavy`]) would make the windows large. After such a
//! transfer both partners drop their steps at once, and the rank takes no further step while
//! another one is open, until its next visit.
//!
//! A window is as wide as needed to hold one step for each port, but not wider than a limit. When
//! all ranks are stuck, the limit is raised and the windows that it restricted are widened. So
//! programs that first list many steps for one port can be timed, too, and only steps that can
//! never run are an error.
//!
//! On one-ported ranks all steps with the same partner use the same port and open in order, so rule
//! 4 needs no counting. On other ranks the transfers are numbered.

mod model;
mod slots;
mod uniform;
mod window;
mod worklist;

use self::model::{Model, arrival, end, ends};
use self::slots::{DONE, EMPTY, PortSlots};
use self::window::{Act, INITIAL_WINDOW, Pending, StepState, StreamRank};
use self::worklist::Worklist;
use crate::error::{Error, ErrorKind, Result};
use crate::machine::numbers::{id, truncated};
use crate::machine::{CostClass, CostModel, Machine, Ports};
use crate::rules::matching::rank_u32;
use crate::rules::online::{OnlineOrder, PortTimes, Unfinished, may_combine};
use crate::rules::{Node, NodeKind, Times, advance, max_time};
use crate::schedule::{DynScheduleSource, ScheduleSource};

/// Times and counts of streamed programs; times are in the unit of the cost model.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Timed {
    /// The makespan: the time when the last rank finishes.
    pub time: f64,
    /// By rank: the time when it finishes its last step.
    pub rank_times: Vec<f64>,
    /// Number of messages on the longest chain of dependent messages, as in
    /// [`Stats`](super::Stats).
    pub rounds: usize,
    /// Number of non-empty messages.
    pub messages: usize,
    /// Elements sent by all ranks together.
    pub elements: usize,
}

/// Times `programs` under `cost`, with elements of `element_bytes` bytes (1 gives times per
/// element). The results equal, to the last bit, those of [`Schedule::simulate`] and
/// [`Schedule::stats`] for the stored schedule.
///
/// `watch` is called from time to time with the number of transfers that have ended since the last
/// call. With [`CostModel::overlap`] every transfer is timed twice, because rounds are counted
/// without overlap; a schedule that deadlocks then has the rounds that it has with overlap.
///
/// The time is linear in the number of steps for programs whose windows stay narrow (see the
/// module's documentation in the source). Programs for ports where a transfer waits for more than
/// its list (those for calls), or with shared ports, are stored, and timed by the graph of their
/// steps, in linear time.
///
/// ```
/// use oneport::{CostModel, Request, simulate};
/// let request = Request::broadcast(8, 12).segment_count(4);
/// let schedule = request.plan("chain")?;
/// let timed = simulate::stream(&schedule, &CostModel::new(10.0, 1.0), 1, |_| ())?;
/// assert_eq!((timed.time, timed.rounds, timed.messages), (130.0, 10, 28));
/// # Ok::<(), oneport::Error>(())
/// ```
///
/// # Errors
/// As [`Schedule::simulate`], and when a step leaves its buffer or names a rank or port that does
/// not exist.
///
/// [`Schedule::simulate`]: crate::Schedule::simulate
/// [`Schedule::stats`]: crate::Schedule::stats
pub fn stream(
    programs: &impl ScheduleSource,
    cost: &CostModel,
    element_bytes: u64,
    mut watch: impl FnMut(u64),
) -> Result<Timed> {
    let timed = stream_within(programs, cost, element_bytes, f64::INFINITY, &mut watch)?;
    Ok(timed.expect("no time is larger than infinity"))
}

/// As [`stream`]; `None` if the time is larger than `limit`: as soon as that turns out, or where it
/// takes the graph of all steps, after that.
pub(crate) fn stream_within(
    programs: &dyn DynScheduleSource,
    cost: &CostModel,
    element_bytes: u64,
    limit: f64,
    watch: &mut dyn FnMut(u64),
) -> Result<Option<Timed>> {
    cost.validate()?;
    cost.covers(programs.ranks())?;
    let ranks = programs.ranks();
    programs.collective().fits_ranks(ranks)?;
    if !programs.ports().waits_by_list() || !programs.shared_ports().is_empty() {
        // Windows know lists alone: which steps share a port for calls depends on their partners.
        // Transfers that wait for ports of several ranks fall far behind those of other ports, so
        // that windows would have to hold most of a program.
        let schedule = programs.materialize()?.with_element_bytes(element_bytes);
        let timed = schedule.timed_by_graph(cost, watch)?;
        return Ok((timed.time <= limit).then_some(timed));
    }
    let alike = match cost.class() {
        (CostClass::Linear(_) | CostClass::Pieces(_), Machine::Ideal) => programs.is_uniform(),
        (CostClass::Links(_), _) | (_, Machine::Delayed) => false,
    };
    if ranks > 2 && alike && !cost.overlaps() {
        let two = uniform::Two(programs);
        let mut of_all = |transfers| watch(transfers * ranks as u64 / 2);
        let timed = timed_ranks(&two, cost, element_bytes, limit, &mut of_all)?;
        return Ok(timed.map(|timed| uniform::of_all(timed, ranks)));
    }
    timed_ranks(programs, cost, element_bytes, limit, watch)
}

fn timed_ranks(
    programs: &dyn DynScheduleSource,
    cost: &CostModel,
    element_bytes: u64,
    limit: f64,
    watch: &mut dyn FnMut(u64),
) -> Result<Option<Timed>> {
    let collective = programs.collective();
    let cost = &*collective.kind().costs(cost);
    let rounds = CostModel::new(1.0, 0.0);
    let timed = if cost.overlaps() {
        // Without overlap the dependencies differ. A schedule that needs overlap to end has the
        // rounds that it has then.
        let counted = |overlap, watch: &mut dyn FnMut(u64)| {
            let rounds = rounds.clone().overlap(overlap);
            run(programs, [(&rounds, 1)], f64::INFINITY, watch)
        };
        match run(programs, [(cost, element_bytes)], limit, watch)? {
            None => None,
            Some((run, [time])) => counted(false, watch)
                .or_else(|_| counted(true, watch))?
                .map(|(_, [rounds])| (run, [time, rounds])),
        }
    } else {
        let costs = [(cost, element_bytes), (&rounds, 1)];
        run(programs, costs, limit, watch)?
    };
    Ok(timed.map(|(finished, times)| Timed {
        time: times[0],
        rank_times: finished.rank_times,
        rounds: truncated(times[1]),
        messages: finished.messages,
        elements: if collective.kind().has_data() {
            finished.elements
        } else {
            0
        },
    }))
}

/// Results of a run besides the makespans.
struct Finished {
    /// Times under the first cost model.
    rank_times: Vec<f64>,
    messages: usize,
    elements: usize,
}

fn run<const N: usize>(
    programs: &dyn DynScheduleSource,
    costs: [(&CostModel, u64); N],
    limit: f64,
    watch: &mut dyn FnMut(u64),
) -> Result<Option<(Finished, Times<N>)>> {
    let mut run = StreamRun::new(programs, costs)?;
    if !run.all(limit, watch)? {
        return Ok(None);
    }
    // A rank may arrive after all steps that others take.
    let finished = run.finished();
    Ok(Some(finished).filter(|(_, times)| times[0] <= limit))
}

/// Number of rank visits between two calls of `watch`.
const VISITS_PER_REPORT: u32 = 1 << 16;

/// The state of a run: all ranks with the progress in their programs.
struct StreamRun<'a, const N: usize> {
    ports: Ports,
    overlap: bool,
    /// Whether some pairs of ranks may have no link.
    platform: bool,
    models: [Model<'a>; N],
    ranks: Vec<StreamRank<'a, N>>,
    /// Stored apart from the ranks, because partners access nothing else.
    slots: PortSlots<N>,
    work: Worklist,
    /// Steps that a window holds.
    max_window: usize,
    /// With overlap, by rank: the end of the last computation.
    computed: Vec<Times<N>>,
    /// Number of transfers that have ended, and the number of non-empty ones among them.
    transfers: u64,
    messages: usize,
    elements: usize,
    /// When the last transfer or computation ended.
    latest: f64,
}

impl<'a, const N: usize> StreamRun<'a, N> {
    fn new(programs: &'a dyn DynScheduleSource, costs: [(&'a CostModel, u64); N]) -> Result<Self> {
        let p = programs.ranks();
        rank_u32(p)?;
        let ports = programs.ports();
        if p == 0 {
            return Err(Error::malformed("a schedule needs at least one rank"));
        }
        ports.validate()?;
        let overlap = costs[0].0.overlaps();
        let rank = |r| StreamRank::new(programs.program_of(r), programs.buffer_len(r), ports);
        let models = costs.map(Model::from);
        Ok(StreamRun {
            ports,
            overlap,
            platform: models[0].cost.links().is_some(),
            ranks: (0..p).map(rank).collect(),
            slots: PortSlots::new(ports, (0..p).map(|rank| arrival(&models, rank))),
            models,
            work: Worklist::all(p),
            max_window: INITIAL_WINDOW,
            computed: vec![[0.0; N]; if overlap { p } else { 0 }],
            transfers: 0,
            messages: 0,
            elements: 0,
            latest: 0.0,
        })
    }

    /// Runs all steps, or until one ends later than `limit`; returns whether none does.
    fn all(&mut self, limit: f64, watch: &mut dyn FnMut(u64)) -> Result<bool> {
        let (mut visits, mut reported) = (0u32, 0);
        loop {
            while let Some(rank) = self.work.take() {
                self.progress(rank)?;
                if self.latest > limit {
                    return Ok(false);
                }
                visits = visits.wrapping_add(1);
                if visits.is_multiple_of(VISITS_PER_REPORT) {
                    watch(self.transfers - reported);
                    reported = self.transfers;
                }
            }
            if !self.widen() {
                break;
            }
        }
        watch(self.transfers - reported);
        match self.ranks.iter().position(|r| !r.window.is_empty()) {
            Some(rank) => Err(self.stuck(rank)),
            None => Ok(true),
        }
    }

    /// Lets the ranks that paused go on; without any, widens the windows that are full.
    /// Returns false if there are none of these either.
    fn widen(&mut self) -> bool {
        if self.insert_where(|state| state.paused) {
            return true;
        }
        let full = self.max_window;
        self.max_window = full.saturating_mul(2);
        self.insert_where(|state| state.window.len() >= full)
    }

    /// Puts those ranks whose programs have not ended on the work-list for which `condition` holds;
    /// returns whether there are any.
    fn insert_where(&mut self, condition: impl Fn(&StreamRank<'a, N>) -> bool) -> bool {
        let mut any = false;
        for (rank, state) in self.ranks.iter().enumerate() {
            if !state.ended && condition(state) {
                self.work.insert(rank);
                any = true;
            }
        }
        any
    }

    /// Runs `rank` as far as possible.
    fn progress(&mut self, rank: usize) -> Result<()> {
        let p = self.ranks.len();
        self.ranks[rank].paused = false;
        self.take_done(rank);
        // Steps only wait for earlier steps, so no step before `place` can progress.
        let mut place = 0;
        loop {
            let state = &mut self.ranks[rank];
            if place < state.window.len() {
                place += usize::from(self.try_step(rank, place)?);
                continue;
            }
            let took_step = state.take(self.max_window, p, self.ports, self.overlap);
            let place_in_program = state.taken();
            if !took_step
                .map_err(|e| Error::wrong(format!("rank {rank}, step {place_in_program}: {e}")))?
            {
                return Ok(());
            }
        }
    }

    /// Removes the steps that partners have finished from the window.
    #[inline]
    fn take_done(&mut self, rank: usize) {
        while let Some((list, slot)) = self.slots.find(rank, DONE) {
            slot.key = EMPTY;
            let time = slot.time;
            let open = |p: &Pending| p.state == StepState::Open && p.list() == list;
            let place = self.ranks[rank].window.iter().position(open);
            self.transferred(rank, place.expect("a slot belongs to a step"), time);
        }
    }

    /// Opens the step at `place` of the window and runs it, if possible. Returns whether the step
    /// is still in the window and cannot progress further.
    #[inline]
    fn try_step(&mut self, rank: usize, place: usize) -> Result<bool> {
        let state = &mut self.ranks[rank];
        match state.window.as_slice()[place].state {
            StepState::Open => return Ok(true),
            StepState::Transferred => {
                if !may_combine(place, self.overlap) {
                    return Ok(true);
                }
                let list = state.window.as_slice()[place].list();
                let received = self.slots.get(rank, list).time;
                let ports = self.slots.of(rank);
                let from = OnlineOrder::combining_start(&ports, received, self.overlap);
                self.compute(rank, place, from);
                return Ok(false);
            }
            StepState::Waits => {}
        }
        if !state.may_open(place, self.overlap) {
            return Ok(true);
        }
        let step = &mut state.window.as_mut_slice()[place];
        if !step.kind.is_transfer() {
            let ports = self.slots.of(rank);
            let arrival = arrival(&self.models, rank);
            let from = (state.order).local_start(&ports, step.access(), self.overlap, arrival);
            self.compute(rank, place, from);
            return Ok(false);
        }
        let list = step.list();
        let free = self.slots.get(rank, list).time;
        let time = state.order.transfer_start(free, step.access());
        step.state = StepState::Open;
        let (peer, elements) = (step.peer(), step.elements());
        let (key, partner_key) = (step.key(), step.partner_key(id(rank)));
        let (sends, heavy) = (step.kind == Act::Send, step.is_heavy());
        let Some((_, theirs)) = self.slots.find(peer, partner_key) else {
            let mine = self.slots.get(rank, list);
            (mine.time, mine.elements, mine.key) = (time, elements, key);
            return Ok(true);
        };
        let sides = [(rank, elements), (peer, theirs.elements)];
        let [sender, receiver] = if sends { sides } else { [sides[1], sides[0]] };
        let links = self.platform.then_some(self.models[0].cost);
        let node = transfer(sender, receiver, links)?;
        let [mine, other] = ends(&self.models, &node, sends, &time, &theirs.time);
        theirs.time = other;
        theirs.key = DONE;
        self.transfers += 1;
        self.messages += usize::from(elements > 0);
        self.elements = self.elements.saturating_add(elements);
        self.latest = max_time(self.latest, max_time(mine[0], other[0]));
        self.slots.get(rank, list).time = mine;
        // The peer can be the rank itself: its other slot is then handled at its next visit.
        self.work.insert(peer);
        let progressed = self.transferred(rank, place, mine);
        if heavy && peer != rank {
            self.take_done(peer);
            self.ranks[rank].paused = true;
        }
        Ok(!progressed)
    }

    /// Ends one side of a transfer at `time`, which frees its port. Returns whether the step can
    /// progress further or has left the window.
    #[inline]
    fn transferred(&mut self, rank: usize, place: usize, time: Times<N>) -> bool {
        let state = &mut self.ranks[rank];
        let step = &mut state.window.as_mut_slice()[place];
        if !step.kind.computes() {
            let step = state.window.remove(place);
            let ports = self.slots.of(rank);
            let order = &mut state.order;
            order.transferred(&ports, step.access(), self.overlap, &time);
        } else if may_combine(place, self.overlap) {
            let ports = self.slots.of(rank);
            let from = OnlineOrder::combining_start(&ports, time, self.overlap);
            self.compute(rank, place, from);
        } else {
            step.state = StepState::Transferred;
            return false;
        }
        true
    }

    /// Runs the computation of the step at `place`, starting at `time`.
    #[inline]
    fn compute(&mut self, rank: usize, place: usize, time: Times<N>) {
        let state = &mut self.ranks[rank];
        let step = &state.window.as_slice()[place];
        let me = id(rank);
        let node = Node {
            kind: match step.kind {
                Act::Copy => NodeKind::Copy,
                Act::Combine => NodeKind::CombineLocal,
                _ => NodeKind::Combine,
            },
            from: me,
            to: me,
            elements: step.elements() as u64,
        };
        let time = end(&self.models, &node, time);
        self.latest = max_time(self.latest, time[0]);
        if self.overlap {
            advance(&mut self.computed[rank], &time);
        }
        let step = state.window.remove(place);
        let mut ports = self.slots.of(rank);
        let order = &mut state.order;
        order.computed(&mut ports, step.access(), self.overlap, &time);
    }

    /// The finishing times of each rank and of the last one.
    fn finished(mut self) -> (Finished, Times<N>) {
        let mut makespan = [0.0; N];
        let end = |rank| {
            let mut end = self.slots.of(rank).all_free();
            if let Some(computed) = self.computed.get(rank) {
                advance(&mut end, computed);
            }
            advance(&mut makespan, &end);
            end[0]
        };
        let finished = Finished {
            rank_times: (0..self.ranks.len()).map(end).collect(),
            messages: self.messages,
            elements: self.elements,
        };
        (finished, makespan)
    }

    /// The reason why no rank progresses, for `rank`, whose window is not empty.
    fn stuck(&self, rank: usize) -> Error {
        let pending = &self.ranks[rank].window[0];
        let (index, name) = (pending.index, pending.kind.name());
        if !pending.kind.is_transfer() {
            return Error::wrong(format!(
                "deadlock: rank {rank}, step {index} ({name}) never runs"
            ));
        }
        let (peer, sends) = (pending.peer(), pending.kind == Act::Send);
        let theirs = &self.ranks[peer];
        let mut matching = theirs.window.iter().filter(|p| p.is_transfer(!sends, rank));
        let alone = theirs.ended && matching.next().is_none();
        Error::wrong(if alone {
            format!(
                "rank {rank}, step {index} ({name}): rank {peer} has no matching {}",
                if sends { "receive" } else { "send" }
            )
        } else {
            format!(
                "deadlock: rank {rank} waits at step {index} ({name}) for rank {peer}, which never becomes ready"
            )
        })
    }
}

/// The transfer between two sides, each a rank and a number of elements: over one of the links,
/// where there are any.
#[inline]
fn transfer(
    (from, sent): (usize, usize),
    (to, expected): (usize, usize),
    links: Option<&CostModel>,
) -> Result<Node> {
    if sent != expected {
        return Err(Error::wrong(format!(
            "rank {from} sends {sent} elements to rank {to}, which expects {expected}"
        )));
    }
    if links.is_some_and(|links| sent > 0 && !links.linked(from, to)) {
        return Err(ErrorKind::NoLink { from, to }.into());
    }
    Ok(Node {
        kind: NodeKind::Transfer,
        from: id(from),
        to: id(to),
        elements: sent as u64,
    })
}
