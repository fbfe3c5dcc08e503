//! Model time of programs given on demand: steps are timed as they come and then forgotten.
//!
//! Every rank has a *window* on its program: steps that have been taken from it and are not done yet. A step is *open* when all that it
//! waits for by rules 1 to 3 is done, whose ends are then known: the time from which it may run. A send and a receive that are both open
//! and belong together (rule 4) are done, at both ranks, which lets later steps open. What is open stands in *slots*, one for each port, in
//! which partners find each other; the partner that comes first finds in its slot when the transfer ended. A queue holds the ranks where
//! something may have changed.
//!
//! What remains of done steps is the time from which each port is free, and for each part of the buffer when it was last read and written
//! ([`Accesses`]), as long as that is later than what all ports imply. Memory is thus linear in the number of ranks for programs in which all
//! of a rank's ports are busy at about the same time; otherwise it is what rule 2 needs, one entry for each part of a buffer that steps
//! tell apart.
//!
//! A window is as wide as needed for one step on each port, but not wider than a limit. When all ranks are stuck, windows that the limit
//! kept narrow are widened: programs that first list many steps for one port are timed, too, and only what can never run is an error.
//!
//! On one-ported ranks, steps with the same partner are all on one port, and open in order: rule 4 needs no counting. Otherwise they are
//! numbered.

use std::collections::{HashMap, VecDeque};

use smallvec::{SmallVec, smallvec};

use super::accesses::{Accesses, Times, advance};
use super::{Node, Work};
use crate::cost::{CostModel, OneLine, Ports};
use crate::error::{Error, Result};
use crate::schedule::matching::rank_u32;
use crate::schedule::{Programs, Span, Spans, Step, total_len};

/// Times and counts of programs given on demand.
#[derive(Debug, Clone, PartialEq)]
pub struct Timed {
    /// When the last rank finishes: the makespan.
    pub time: f64,
    /// When each rank finishes its last step.
    pub rank_times: Vec<f64>,
    /// Messages on the longest chain of messages that wait for each other, as in [`Stats`](crate::schedule::Stats).
    pub rounds: usize,
    /// Messages that carry something.
    pub messages: usize,
    /// Elements sent by all ranks together.
    pub elements: usize,
}

/// Times `programs` under `cost`, with elements of `element_bytes` bytes (1 for times per element): to the last bit what
/// [`Prepared`](super::Prepared) and [`Schedule::stats`](crate::Schedule::stats) say of the stored schedule.
///
/// Takes time linear in the number of steps for programs whose windows stay narrow (see the module's documentation in the source).
///
/// # Errors
/// As [`Prepared::new`](super::Prepared::new) and [`Prepared::try_simulate`](super::Prepared::try_simulate), and when a step leaves its buffer or names a
/// rank or port that does not exist.
pub fn on_demand(programs: &impl Programs, cost: &CostModel, element_bytes: u64) -> Result<Timed> {
    cost.validate()?;
    cost.covers(programs.ranks())?;
    let rounds = CostModel::new(1.0, 0.0);
    let (times, finished) = if cost.overlap {
        // Rounds are counted without overlap, under which other steps wait for each other.
        let (run, times) = run(programs, [(cost, element_bytes)])?;
        let (_, [rounds]) = self::run(programs, [(&rounds, 1)])?;
        ([times[0], rounds], run)
    } else {
        let (run, times) = run(programs, [(cost, element_bytes), (&rounds, 1)])?;
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
    programs: &impl Programs,
    costs: [(&CostModel, u64); N],
) -> Result<(Finished, Times<N>)> {
    let mut run = Run::new(programs, costs)?;
    run.all()?;
    Ok((run.finished, run.makespan))
}

/// Steps that a window holds at first: one on each port of a one-ported rank, and one between them.
const NARROW: usize = 3;

/// All ranks on their way through their programs.
struct Run<'a, I, const N: usize> {
    ports: Ports,
    overlap: bool,
    /// Whether there may be pairs of ranks without a link.
    platform: bool,
    lanes: [Lane<'a>; N],
    ranks: Vec<Rank<I, N>>,
    /// By rank and port list, as far as used. Apart from the ranks: partners look at nothing else.
    slots: Vec<SmallVec<[Slot<N>; 2]>>,
    queue: VecDeque<u32>,
    limit: usize,
    makespan: Times<N>,
    finished: Finished,
}

/// A cost model.
struct Lane<'a> {
    cost: &'a CostModel,
    /// The same, where it is one line.
    line: Option<OneLine>,
    element_bytes: u64,
}

/// One rank on its way through its program.
struct Rank<I, const N: usize> {
    program: I,
    /// Steps taken from it.
    taken: u32,
    ended: bool,
    queued: bool,
    /// Elements of the buffer.
    len: usize,
    window: SmallVec<[Pending<N>; NARROW]>,
    /// By port list: from when on it is free. Lists that no step has used yet may lie beyond the end.
    free: SmallVec<[Times<N>; 2]>,
    /// The end of the last step that held up all others.
    barrier: Times<N>,
    accesses: Accesses<N>,
    /// Transfers taken from the program, by partner and direction, if the rank has several ports.
    #[expect(
        clippy::box_collection,
        reason = "keeps ranks small: most have one port"
    )]
    counts: Option<Box<HashMap<(u32, bool), u32>>>,
}

/// The transfer on one port that is open, or that the partner has done.
#[derive(Clone, Copy)]
struct Slot<const N: usize> {
    state: SlotState,
    sends: bool,
    peer: u32,
    /// How many with the same partner and direction come before, if ranks have several ports.
    number: u32,
    elements: usize,
    /// From when on it may run; when it ended.
    time: Times<N>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SlotState {
    Empty,
    Open,
    Done,
}

/// A step that is not done, in as few bytes as possible: all ranks' windows pass through the processor's caches.
struct Pending<const N: usize> {
    /// What a send reads; what any other step writes.
    spans: Spans,
    /// What a local step reads.
    source: Option<Box<Spans>>,
    /// The rank at the other end of a transfer.
    peer: u32,
    index: u32,
    /// As in its slot.
    number: u32,
    /// The port list of a transfer.
    list: u16,
    kind: Kind,
    state: State,
    /// When it may start, once it is open; when its transfer ended, once that is done.
    from: Times<N>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Send,
    Recv,
    RecvCombine,
    Copy,
    Combine,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Waits,
    Open,
    /// A combining receive whose message has come.
    Transferred,
}

impl<'a, I: Iterator<Item = Step>, const N: usize> Run<'a, I, N> {
    fn new<P: Programs<Program<'a> = I>>(
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
        let lists = if ports.k() == 1 { ports.lists() } else { 0 };
        let rank = |r| Rank {
            program: programs.program_of(r),
            taken: 0,
            ended: false,
            queued: true,
            len: programs.layout_of(r).len,
            window: SmallVec::new(),
            free: smallvec![[0.0; N]; lists],
            barrier: [0.0; N],
            accesses: Accesses::default(),
            counts: (ports.k() > 1).then(Box::default),
        };
        Ok(Run {
            ports,
            overlap: costs[0].0.overlap,
            platform: costs[0].0.links().is_some(),
            lanes: costs.map(|(cost, element_bytes)| Lane {
                cost,
                line: cost.one_line(),
                element_bytes,
            }),
            ranks: (0..p).map(rank).collect(),
            slots: vec![SmallVec::new(); p],
            queue: (0..rank_u32(p)?).collect(),
            limit: NARROW,
            makespan: [0.0; N],
            finished: Finished {
                rank_times: vec![0.0; p],
                messages: 0,
                elements: 0,
            },
        })
    }

    fn all(&mut self) -> Result<()> {
        loop {
            while let Some(rank) = self.queue.pop_front() {
                self.ranks[rank as usize].queued = false;
                self.go_on(rank as usize)?;
            }
            if !self.widen() {
                break;
            }
        }
        match self.ranks.iter().position(|r| !r.window.is_empty()) {
            Some(rank) => Err(self.stuck(rank)),
            None => Ok(()),
        }
    }

    /// Widens windows that the limit keeps narrow: false if there is none.
    fn widen(&mut self) -> bool {
        let limit = self.limit;
        for (rank, state) in (0..).zip(&mut self.ranks) {
            if !state.ended && state.window.len() >= limit {
                state.queued = true;
                self.queue.push_back(rank);
            }
        }
        self.limit = limit.saturating_mul(2);
        !self.queue.is_empty()
    }

    /// Takes `rank` as far as it gets.
    fn go_on(&mut self, rank: usize) -> Result<()> {
        loop {
            self.take_done(rank);
            self.fill(rank)?;
            let mut place = 0;
            loop {
                if place == self.ranks[rank].window.len() {
                    return Ok(());
                }
                if self.try_step(rank, place)? {
                    break;
                }
                place += 1;
            }
        }
    }

    /// Removes what partners have done from the window.
    fn take_done(&mut self, rank: usize) {
        for list in 0..self.slots[rank].len() {
            let slot = &mut self.slots[rank][list];
            if slot.state == SlotState::Done {
                slot.state = SlotState::Empty;
                let time = slot.time;
                let open = |p: &Pending<N>| p.state == State::Open && usize::from(p.list) == list;
                let place = self.ranks[rank].window.iter().position(open);
                self.transferred(rank, place.expect("a slot belongs to a step"), time);
            }
        }
    }

    /// Takes steps from the program until there is one for each port.
    fn fill(&mut self, rank: usize) -> Result<()> {
        let p = self.ranks.len();
        let state = &mut self.ranks[rank];
        while !state.ended && state.window.len() < self.limit {
            let alone = |last: &Pending<N>| !self.overlap && last.kind.computes();
            if state.window.last().is_some_and(alone) || state.every_port_waits(self.ports) {
                return Ok(());
            }
            let Some(step) = state.program.next() else {
                state.ended = true;
                return Ok(());
            };
            let index = state.taken as usize;
            let mut pending = Pending::new(step, index, p, state.len, self.ports)
                .map_err(|e| Error::wrong(format!("rank {rank}, step {index}: {e}")))?;
            if let Some(counts) = &mut state.counts
                && pending.kind.is_transfer()
            {
                let sends = pending.kind == Kind::Send;
                let count = counts.entry((pending.peer, sends)).or_default();
                pending.number = *count;
                *count += 1;
            }
            state.window.push(pending);
            state.taken = state.taken.saturating_add(1);
        }
        Ok(())
    }

    /// Opens the step at `place` of the window and does it, if it can be: whether it left the window, or changed it.
    fn try_step(&mut self, rank: usize, place: usize) -> Result<bool> {
        let state = &mut self.ranks[rank];
        match state.window[place].state {
            State::Open => return Ok(false),
            State::Transferred => {
                if place > 0 {
                    return Ok(false);
                }
                let mut from = state.window[0].from;
                advance(&mut from, &state.all_free());
                self.compute(rank, 0, from);
                return Ok(true);
            }
            State::Waits => {}
        }
        let Some(from) = state.opens(place, self.overlap) else {
            return Ok(false);
        };
        let pending = &mut state.window[place];
        (pending.state, pending.from) = (State::Open, from);
        if !pending.kind.is_transfer() {
            self.compute(rank, place, from);
            return Ok(true);
        }
        let mine = Slot {
            state: SlotState::Open,
            sends: pending.kind == Kind::Send,
            peer: pending.peer,
            number: pending.number,
            elements: total_len(&pending.spans),
            time: from,
        };
        let list = usize::from(pending.list);
        match self.meet(rank, mine)? {
            Some(time) => {
                self.transferred(rank, place, time);
                Ok(true)
            }
            None => {
                let slots = &mut self.slots[rank];
                if list >= slots.len() {
                    let empty = Slot {
                        state: SlotState::Empty,
                        ..mine
                    };
                    slots.resize(list + 1, empty);
                }
                slots[list] = mine;
                Ok(false)
            }
        }
    }

    /// Does the transfer that opens at `rank` if it is open at its partner, too: when it ends.
    fn meet(&mut self, rank: usize, mine: Slot<N>) -> Result<Option<Times<N>>> {
        let (me, peer) = (rank as u32, mine.peer as usize);
        let matching = |s: &&mut Slot<N>| {
            s.state == SlotState::Open
                && s.peer == me
                && s.sends != mine.sends
                && s.number == mine.number
        };
        let Some(theirs) = self.slots[peer].iter_mut().find(matching) else {
            return Ok(None);
        };
        let (from, to, sent, expected) = if mine.sends {
            (rank, peer, mine.elements, theirs.elements)
        } else {
            (peer, rank, theirs.elements, mine.elements)
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
        let mut time = mine.time;
        advance(&mut time, &theirs.time);
        let node = Node {
            work: Work::Transfer,
            from: from as u32,
            to: to as u32,
            elements: sent as u64,
        };
        spend(&self.lanes, &node, &mut time);
        theirs.time = time;
        theirs.state = SlotState::Done;
        self.finished.messages += usize::from(sent > 0);
        self.finished.elements = self.finished.elements.saturating_add(sent);
        if peer != rank && !std::mem::replace(&mut self.ranks[peer].queued, true) {
            self.queue.push_back(mine.peer);
        }
        Ok(Some(time))
    }

    /// One side of a transfer that ended at `time`.
    fn transferred(&mut self, rank: usize, place: usize, time: Times<N>) {
        self.end(rank, &time);
        let state = &mut self.ranks[rank];
        let pending = &mut state.window[place];
        let (list, combines) = (usize::from(pending.list), pending.kind.computes());
        pending.state = State::Transferred;
        pending.from = time;
        state.set_free(list, time);
        if !combines {
            state.remove(place, time, self.ports, self.overlap);
        } else if self.overlap {
            self.compute(rank, place, time);
        }
    }

    /// Does the computation of the step at `place`, from `time` on.
    fn compute(&mut self, rank: usize, place: usize, mut time: Times<N>) {
        let step = &self.ranks[rank].window[place];
        let me = rank as u32;
        let node = Node {
            work: if step.kind == Kind::Copy {
                Work::Copy
            } else {
                Work::Combine
            },
            from: me,
            to: me,
            elements: total_len(&step.spans) as u64,
        };
        spend(&self.lanes, &node, &mut time);
        self.end(rank, &time);
        let state = &mut self.ranks[rank];
        if self.overlap {
            state.remove(place, time, self.ports, self.overlap);
        } else {
            // Everything before has ended, and everything after starts later.
            state.window.remove(place);
            state.barrier = time;
            state.free.fill(time);
            state.accesses.clear();
        }
    }

    fn end(&mut self, rank: usize, time: &Times<N>) {
        advance(&mut self.makespan, time);
        let finished = &mut self.finished.rank_times[rank];
        *finished = super::later(*finished, time[0]);
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
        let (peer, sends) = (pending.peer as usize, pending.kind == Kind::Send);
        let theirs = &self.ranks[peer];
        let mut matching = theirs
            .window
            .iter()
            .filter(|p| p.is_transfer(!sends, rank as u32));
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

/// Adds what `node` takes.
#[inline]
fn spend<const N: usize>(lanes: &[Lane<'_>; N], node: &Node, time: &mut Times<N>) {
    for (time, lane) in time.iter_mut().zip(lanes) {
        *time += match &lane.line {
            Some(line) => node.time_by(line, lane.element_bytes),
            None => node.time(lane.cost, lane.element_bytes),
        };
    }
}

impl Kind {
    fn is_transfer(self) -> bool {
        matches!(self, Kind::Send | Kind::Recv | Kind::RecvCombine)
    }

    fn computes(self) -> bool {
        !matches!(self, Kind::Send | Kind::Recv)
    }

    /// As [`Step::name`].
    fn name(self) -> &'static str {
        match self {
            Kind::Send => "send",
            Kind::Recv => "recv",
            Kind::RecvCombine => "recv_combine",
            Kind::Copy => "copy",
            Kind::Combine => "combine",
        }
    }
}

impl<const N: usize> Pending<N> {
    /// # Errors
    /// What [`Schedule::new`](crate::Schedule::new) and the analysis of programs would refuse.
    fn new(step: Step, index: usize, p: usize, len: usize, ports: Ports) -> Result<Pending<N>> {
        let sends = step.is_send();
        let (kind, peer, port, spans, source) = match step {
            Step::Send { to, spans, port } => (Kind::Send, to, port, spans, None),
            Step::Recv { from, spans, port } => (Kind::Recv, from, port, spans, None),
            Step::RecvCombine {
                from, spans, port, ..
            } => (Kind::RecvCombine, from, port, spans, None),
            Step::Copy { src, dst } => (Kind::Copy, 0, 0, dst, Some(Box::new(src))),
            Step::Combine { src, dst, .. } => (Kind::Combine, 0, 0, dst, Some(Box::new(src))),
        };
        let name = kind.name();
        if peer >= p {
            return Err(Error::malformed(format!(
                "{name}: peer {peer} is not one of {p} ranks"
            )));
        }
        if port >= ports.k() {
            return Err(Error::wrong(format!(
                "{name}: port {port}, but the rank has {} (numbered from 0)",
                ports.k()
            )));
        }
        let mut all = spans.iter().chain(source.iter().flat_map(|s| s.iter()));
        if let Some(s) = all.find(|s| s.end() > len) {
            return Err(Error::malformed(format!(
                "{name}: span [{}, {}] leaves the buffer of {len} elements",
                s.offset, s.len
            )));
        }
        let too_many = |_| Error::usage("more than 2^32 steps of a rank, or 2^15 ports");
        Ok(Pending {
            spans,
            source,
            peer: rank_u32(peer)?,
            index: u32::try_from(index).map_err(too_many)?,
            number: 0,
            list: u16::try_from(ports.list(sends, port)).map_err(too_many)?,
            kind,
            state: State::Waits,
            from: [0.0; N],
        })
    }

    /// Whether it is a transfer with `peer` in this direction that has not taken place.
    fn is_transfer(&self, sends: bool, peer: u32) -> bool {
        self.peer == peer
            && self.kind.is_transfer()
            && (self.kind == Kind::Send) == sends
            && self.state != State::Transferred
    }

    /// As [`Step::reads`].
    fn reads(&self) -> &[Span] {
        match (&self.source, self.kind) {
            (Some(source), _) => source,
            (None, Kind::Send) => &self.spans,
            _ => &[],
        }
    }

    /// As [`Step::writes`].
    fn writes(&self) -> &[Span] {
        if self.kind == Kind::Send {
            &[]
        } else {
            &self.spans
        }
    }

    /// Rule 2: whether `later` waits for it.
    fn holds_up(&self, later: &Self) -> bool {
        let meet = |a: &[Span], b: &[Span]| a.iter().any(|x| b.iter().any(|y| x.overlaps(*y)));
        meet(self.writes(), later.reads())
            || meet(self.writes(), later.writes())
            || meet(self.reads(), later.writes())
    }
}

impl<I, const N: usize> Rank<I, N> {
    /// Whether each port of a one-ported rank has a step that waits.
    fn every_port_waits(&self, ports: Ports) -> bool {
        if ports.k() > 1 {
            return false;
        }
        let lists = self.window.iter().filter(|p| p.kind.is_transfer());
        let seen = lists.fold(0u32, |seen, p| seen | 1 << p.list);
        seen == (1 << ports.lists()) - 1
    }

    /// From when on the step at `place` may run, if all that it waits for is done.
    fn opens(&self, place: usize, overlap: bool) -> Option<Times<N>> {
        let step = &self.window[place];
        let transfer = step.kind.is_transfer();
        if !overlap && !transfer {
            return (place == 0).then(|| self.all_free());
        }
        for earlier in &self.window[..place] {
            let held_up = (!overlap && earlier.kind.computes())
                || (transfer && earlier.kind.is_transfer() && earlier.list == step.list)
                || earlier.holds_up(step);
            if held_up {
                return None;
            }
        }
        let mut from = if transfer {
            let free = self.free.get(usize::from(step.list));
            free.copied().unwrap_or(self.barrier)
        } else {
            [0.0; N]
        };
        for span in step.reads() {
            self.accesses.wait(*span, false, &mut from);
        }
        for span in step.writes() {
            self.accesses.wait(*span, true, &mut from);
        }
        Some(from)
    }

    /// From when on all ports are free.
    fn all_free(&self) -> Times<N> {
        let mut time = self.barrier;
        for free in &self.free {
            advance(&mut time, free);
        }
        time
    }

    fn set_free(&mut self, list: usize, time: Times<N>) {
        if list >= self.free.len() {
            self.free.resize(list + 1, self.barrier);
        }
        self.free[list] = time;
    }

    /// The step at `place` is done at `time`: notes what it used, where that is not implied by the ports.
    fn remove(&mut self, place: usize, time: Times<N>, ports: Ports, overlap: bool) {
        let step = self.window.remove(place);
        if !overlap {
            // Every later step starts on some port that is not free before this.
            let mut implied = if self.free.len() < ports.lists() {
                self.barrier
            } else {
                [f64::INFINITY; N]
            };
            for free in &self.free {
                for lane in 0..N {
                    if free[lane] < implied[lane] {
                        implied[lane] = free[lane];
                    }
                }
            }
            if (0..N).all(|lane| time[lane] <= implied[lane]) {
                return;
            }
            self.accesses.forget(&implied);
        }
        for span in step.reads() {
            self.accesses.note(*span, false, &time);
        }
        for span in step.writes() {
            self.accesses.note(*span, true, &time);
        }
    }
}
