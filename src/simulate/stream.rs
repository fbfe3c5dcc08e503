//! Model time of programs given on demand: steps are timed as they come and then forgotten.
//!
//! Every rank has a [`window`] on its program: steps that have been taken from it and are not done
//! yet. A step is *open* when all that it waits for by rules 1 to 3 is done, whose ends are then
//! known: the time from which it may run. A send and a receive that are both open and belong
//! together (rule 4) are done, at both ranks, which lets later steps open. What is open stands in
//! [`slots`], one for each port, in which partners find each other; the partner that comes first
//! finds in its slot when the transfer ended. A [`worklist`] holds the ranks where something may
//! have changed; they are visited in turn, so that ranks which do alike things come one after
//! another.
//!
//! What remains of done steps is the time from which each port is free, and for each part of the
//! buffer when it was last read and written ([`Accesses`](super::accesses::Accesses)), as long as
//! that is later than what all ports imply. Memory is thus linear in the number of
//! ranks for programs in which all of a rank's ports are busy at about the same time; otherwise it
//! is what rule 2 needs, one entry for each part of a buffer that steps tell apart.
//!
//! A window is as wide as needed for one step on each port, but not wider than a limit. When all
//! ranks are stuck, windows that the limit kept narrow are widened: programs that first list many
//! steps for one port are timed, too, and only what can never run is an error.
//!
//! On one-ported ranks, steps with the same partner are all on one port, and open in order: rule 4
//! needs no counting. Otherwise they are numbered.

mod slots;
mod window;
mod worklist;

use self::slots::{DONE, EMPTY, Slots};
use self::window::{Kind, NARROW, Pending, Rank, State};
use self::worklist::Worklist;
use super::accesses::{Times, advance};
use super::{Node, Work};
use crate::cost::{CostModel, OneLine, Ports};
use crate::error::{Error, Result};
use crate::schedule::matching::rank_u32;
use crate::schedule::{ScheduleSource, Step};

/// Times and counts of programs given on demand.
#[derive(Debug, Clone, PartialEq)]
pub struct Timed {
    /// When the last rank finishes: the makespan.
    pub time: f64,
    /// When each rank finishes its last step.
    pub rank_times: Vec<f64>,
    /// Messages on the longest chain of messages that wait for each other, as in
    /// [`Stats`](crate::schedule::Stats).
    pub rounds: usize,
    /// Messages that carry something.
    pub messages: usize,
    /// Elements sent by all ranks together.
    pub elements: usize,
}

/// Times `programs` under `cost`, with elements of `element_bytes` bytes (1 for times per element):
/// to the last bit what [`Prepared`](super::Prepared) and
/// [`Schedule::stats`](crate::Schedule::stats) say of the stored schedule.
///
/// Takes time linear in the number of steps for programs whose windows stay narrow (see the
/// module's documentation in the source).
///
/// # Errors
/// As [`Prepared::new`](super::Prepared::new) and
/// [`Prepared::try_simulate`](super::Prepared::try_simulate), and when a step leaves its buffer or
/// names a rank or port that does not exist.
pub fn stream(
    programs: &impl ScheduleSource,
    cost: &CostModel,
    element_bytes: u64,
) -> Result<Timed> {
    stream_watched(programs, cost, element_bytes, |_| ())
}

/// As [`stream`]; `watch` hears now and then how many more transfers have ended. With
/// [`CostModel::overlap`] all are timed twice: rounds are counted without.
///
/// # Errors
/// As [`stream`].
pub fn stream_watched(
    programs: &impl ScheduleSource,
    cost: &CostModel,
    element_bytes: u64,
    mut watch: impl FnMut(u64),
) -> Result<Timed> {
    cost.validate()?;
    cost.covers(programs.ranks())?;
    programs.collective().fits_ranks(programs.ranks())?;
    let rounds = CostModel::new(1.0, 0.0);
    let (times, finished) = if cost.overlap {
        // Without overlap, other steps wait for each other.
        let (run, times) = run(programs, [(cost, element_bytes)], &mut watch)?;
        let (_, [rounds]) = self::run(programs, [(&rounds, 1)], &mut watch)?;
        ([times[0], rounds], run)
    } else {
        let costs = [(cost, element_bytes), (&rounds, 1)];
        let (run, times) = run(programs, costs, &mut watch)?;
        (times, run)
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count of steps"
    )]
    let rounds = times[1] as usize;
    Ok(Timed {
        time: times[0],
        rank_times: finished.rank_times,
        rounds,
        messages: finished.messages,
        elements: finished.elements,
    })
}

/// What a run leaves behind, besides the makespans.
struct Finished {
    /// Under the first cost model.
    rank_times: Vec<f64>,
    messages: usize,
    elements: usize,
}

fn run<const N: usize>(
    programs: &impl ScheduleSource,
    costs: [(&CostModel, u64); N],
    watch: &mut dyn FnMut(u64),
) -> Result<(Finished, Times<N>)> {
    let mut run = Run::new(programs, costs)?;
    run.all(watch)?;
    Ok(run.finished())
}

/// How often ranks are visited between two calls of who watches.
const WATCHED: u32 = 1 << 16;

/// All ranks on their way through their programs.
struct Run<'a, I, const N: usize> {
    ports: Ports,
    overlap: bool,
    /// Whether there may be pairs of ranks without a link.
    platform: bool,
    lanes: [Lane<'a>; N],
    ranks: Vec<Rank<I, N>>,
    /// Apart from the ranks: partners look at nothing else.
    slots: Slots<N>,
    work: Worklist,
    limit: usize,
    /// With overlap: by rank, the end of the last computation.
    computed: Vec<Times<N>>,
    /// Transfers that have ended, and those among them that carry something.
    transfers: u64,
    messages: usize,
    elements: usize,
}

/// A cost model.
struct Lane<'a> {
    cost: &'a CostModel,
    /// The same, where it is one line.
    line: Option<OneLine>,
    element_bytes: u64,
}

impl<'a, I: Iterator<Item = Step>, const N: usize> Run<'a, I, N> {
    fn new<P: ScheduleSource<Program<'a> = I>>(
        programs: &'a P,
        costs: [(&'a CostModel, u64); N],
    ) -> Result<Self> {
        let p = programs.ranks();
        rank_u32(p)?;
        let ports = programs.ports();
        if p == 0 || ports.k() == 0 {
            return Err(Error::malformed(
                "a schedule needs at least one rank, and each rank one port",
            ));
        }
        let overlap = costs[0].0.overlap;
        let rank = |r| Rank::new(programs.program_of(r), programs.buffer_len(r), ports);
        Ok(Run {
            ports,
            overlap,
            platform: costs[0].0.links().is_some(),
            lanes: costs.map(|(cost, element_bytes)| Lane {
                cost,
                line: cost.one_line(),
                element_bytes,
            }),
            ranks: (0..p).map(rank).collect(),
            slots: Slots::new(p, ports),
            work: Worklist::all(p),
            limit: NARROW,
            computed: vec![[0.0; N]; if overlap { p } else { 0 }],
            transfers: 0,
            messages: 0,
            elements: 0,
        })
    }

    fn all(&mut self, watch: &mut dyn FnMut(u64)) -> Result<()> {
        let (mut visits, mut told) = (0u32, 0);
        loop {
            while let Some(rank) = self.work.take() {
                self.progress(rank)?;
                visits = visits.wrapping_add(1);
                if visits.is_multiple_of(WATCHED) {
                    watch(self.transfers - told);
                    told = self.transfers;
                }
            }
            if !self.widen() {
                break;
            }
        }
        watch(self.transfers - told);
        match self.ranks.iter().position(|r| !r.window.is_empty()) {
            Some(rank) => Err(self.stuck(rank)),
            None => Ok(()),
        }
    }

    /// Widens windows that the limit keeps narrow: false if there is none.
    fn widen(&mut self) -> bool {
        let mut any = false;
        for (rank, state) in self.ranks.iter().enumerate() {
            if !state.ended && state.window.len() >= self.limit {
                self.work.insert(rank);
                any = true;
            }
        }
        self.limit = self.limit.saturating_mul(2);
        any
    }

    /// Takes `rank` as far as it gets.
    fn progress(&mut self, rank: usize) -> Result<()> {
        let p = self.ranks.len();
        self.take_done(rank);
        // Steps wait for earlier ones only, so none before `place` can go on.
        let mut place = 0;
        loop {
            let state = &mut self.ranks[rank];
            if place < state.window.len() {
                place += usize::from(self.try_step(rank, place)?);
                continue;
            }
            let took = state.take(self.limit, p, self.ports, self.overlap);
            let place_in_program = state.taken();
            if !took
                .map_err(|e| Error::wrong(format!("rank {rank}, step {place_in_program}: {e}")))?
            {
                return Ok(());
            }
        }
    }

    /// Removes what partners have done from the window.
    #[inline]
    fn take_done(&mut self, rank: usize) {
        while let Some((list, slot)) = self.slots.find(rank, DONE) {
            slot.key = EMPTY;
            let time = slot.time;
            let open = |p: &Pending| p.state == State::Open && p.list() == list;
            let place = self.ranks[rank].window.iter().position(open);
            self.transferred(rank, place.expect("a slot belongs to a step"), time);
        }
    }

    /// Opens the step at `place` of the window and does it, if it can be: whether it is still there
    /// and can do no more.
    #[inline]
    fn try_step(&mut self, rank: usize, place: usize) -> Result<bool> {
        let state = &mut self.ranks[rank];
        match state.window[place].state {
            State::Open => return Ok(true),
            State::Transferred => {
                if place > 0 {
                    return Ok(true);
                }
                let from = self.slots.all_free(rank);
                self.compute(rank, 0, from);
                return Ok(false);
            }
            State::Waits => {}
        }
        if !state.comes_first(place, self.overlap) {
            return Ok(true);
        }
        let step = &mut state.window[place];
        if !step.kind.is_transfer() {
            let mut from = [0.0; N];
            if self.overlap {
                state.wait_for_data(place, &mut from);
            } else {
                from = self.slots.all_free(rank);
            }
            self.compute(rank, place, from);
            return Ok(false);
        }
        step.state = State::Open;
        let (peer, elements) = (step.peer(), step.elements());
        let (key, partner_key) = (step.key(), step.partner_key(rank as u32));
        let sends = step.kind == Kind::Send;
        let list = step.list();
        let mut time = self.slots.get(rank, list).time;
        state.wait_for_data(place, &mut time);
        let Some((_, theirs)) = self.slots.find(peer, partner_key) else {
            let mine = self.slots.get(rank, list);
            (mine.time, mine.elements, mine.key) = (time, elements, key);
            return Ok(true);
        };
        advance(&mut time, &theirs.time);
        let (from, to, sent, expected) = if sends {
            (rank, peer, elements, theirs.elements)
        } else {
            (peer, rank, theirs.elements, elements)
        };
        if sent != expected {
            return Err(Error::wrong(format!(
                "rank {from} sends {sent} elements to rank {to}, which expects {expected}"
            )));
        }
        if self.platform && sent > 0 && !self.lanes[0].cost.linked(from, to) {
            return Err(Error::usage(format!(
                "rank {from} sends to rank {to}, between which the costs have no link"
            )));
        }
        let node = Node {
            work: Work::Transfer,
            from: from as u32,
            to: to as u32,
            elements: sent as u64,
        };
        let time = end(&self.lanes, &node, time);
        theirs.time = time;
        theirs.key = DONE;
        self.transfers += 1;
        self.messages += usize::from(sent > 0);
        self.elements = self.elements.saturating_add(sent);
        self.slots.get(rank, list).time = time;
        // Messages of a rank to itself, too: its own other slot is looked at when it is its turn
        // again.
        self.work.insert(peer);
        Ok(!self.transferred(rank, place, time))
    }

    /// One side of a transfer that ended at `time`, from which on its port is free: whether the
    /// step can go on or has left the window.
    #[inline]
    fn transferred(&mut self, rank: usize, place: usize, time: Times<N>) -> bool {
        let step = &mut self.ranks[rank].window[place];
        if !step.kind.computes() {
            self.remove(rank, place, &time);
        } else if self.overlap {
            self.compute(rank, place, time);
        } else {
            step.state = State::Transferred;
            return place == 0;
        }
        true
    }

    /// Does the computation of the step at `place`, from `time` on.
    #[inline]
    fn compute(&mut self, rank: usize, place: usize, time: Times<N>) {
        let state = &mut self.ranks[rank];
        let step = &state.window[place];
        let me = rank as u32;
        let node = Node {
            work: match step.kind {
                Kind::Copy => Work::Copy,
                Kind::Combine => Work::CombineLocal,
                _ => Work::Combine,
            },
            from: me,
            to: me,
            elements: step.elements() as u64,
        };
        let time = end(&self.lanes, &node, time);
        if self.overlap {
            advance(&mut self.computed[rank], &time);
            self.remove(rank, place, &time);
        } else {
            // Everything before has ended, and everything after starts later.
            state.window.remove(place);
            state.accesses.clear();
            self.slots.hold_up(rank, &time);
        }
    }

    /// The step at `place` is done at `time`: notes what it used, where that is not implied by the
    /// ports.
    #[inline]
    fn remove(&mut self, rank: usize, place: usize, time: &Times<N>) {
        let state = &mut self.ranks[rank];
        let step = state.window.remove(place);
        if !self.overlap {
            let implied = self.slots.some_free(rank);
            state.accesses.forget(&implied, step.is_long());
            if time
                .iter()
                .zip(&implied)
                .all(|(time, implied)| time <= implied)
            {
                return;
            }
        }
        state.note(&step, time);
    }

    /// When each rank, and the last one, finishes.
    fn finished(self) -> (Finished, Times<N>) {
        let mut makespan = [0.0; N];
        let end = |rank| {
            let mut end = self.slots.all_free(rank);
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

    /// Why nothing goes on, seen from `rank`, whose window is not empty.
    fn stuck(&self, rank: usize) -> Error {
        let pending = &self.ranks[rank].window[0];
        let (index, name) = (pending.index, pending.kind.name());
        if !pending.kind.is_transfer() {
            return Error::wrong(format!(
                "deadlock: rank {rank}, step {index} ({name}) never runs"
            ));
        }
        let (peer, sends) = (pending.peer(), pending.kind == Kind::Send);
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
                "deadlock: rank {rank}, step {index} ({name}) and rank {peer} wait in vain, for each other or for others that do"
            )
        })
    }
}

/// When `node` ends that starts at `time`.
#[inline]
fn end<const N: usize>(lanes: &[Lane<'_>; N], node: &Node, time: Times<N>) -> Times<N> {
    std::array::from_fn(|i| {
        let lane = &lanes[i];
        time[i]
            + match &lane.line {
                Some(line) => node.time_by(line, lane.element_bytes),
                None => node.time(lane.cost, lane.element_bytes),
            }
    })
}
