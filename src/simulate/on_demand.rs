//! Model time of programs given on demand: steps are timed as they come and then forgotten.
//!
//! Every rank has a *window* on its program: steps that have been taken from it and are not done yet. A step is *open* when all that it
//! waits for by rules 1 to 3 is done, whose ends are then known: the time from which it may run. A send and a receive that are both open
//! and belong together (rule 4) are done, at both ranks, which lets later steps open. A queue holds the ranks where something may
//! have changed.
//!
//! What remains of done steps is the time from which each port is free, and for each part of the buffer when it was last read and written
//! ([`Accesses`]), as long as that is later than what all ports imply. Memory is thus linear in the number of ranks for programs in which all
//! of a rank's ports are busy at about the same time; otherwise it is what rule 2 needs, one entry for each part of a buffer that steps
//! tell apart.
//!
//! A window is as wide as needed for one step on each port, but not wider than a limit. When all ranks are stuck, windows that the limit
//! kept narrow are widened: programs that first list many steps for one port are timed, too, and only what can never run is an error.
//!
//! Rule 4 without counting: of the steps of rank `a` for rank `b` that are not done, and those of `b` for `a`, the first belong together, the
//! second ones, and so on, since what is done was done on both sides. On one-ported ranks it is always the first ones.

use std::collections::VecDeque;

use smallvec::{SmallVec, smallvec};

use super::accesses::{Accesses, Times, advance};
use super::{Node, Work};
use crate::cost::{CostModel, OneLine, Ports};
use crate::error::{Error, Result};
use crate::schedule::matching::rank_u32;
use crate::schedule::{Programs, Span, Step};

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
    lanes: [Lane<'a>; N],
    ranks: Vec<Rank<I, N>>,
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
    taken: usize,
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
}

/// A step that is not done.
struct Pending<const N: usize> {
    step: Step,
    index: usize,
    state: State,
    /// When it may start, once it is open; when its transfer ended, once that is done.
    from: Times<N>,
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
        };
        Ok(Run {
            ports,
            overlap: costs[0].0.overlap,
            lanes: costs.map(|(cost, element_bytes)| Lane {
                cost,
                line: cost.one_line(),
                element_bytes,
            }),
            ranks: (0..p).map(rank).collect(),
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

    /// Takes steps from the program until there is one for each port.
    fn fill(&mut self, rank: usize) -> Result<()> {
        let p = self.ranks.len();
        let state = &mut self.ranks[rank];
        while !state.ended && state.window.len() < self.limit {
            let alone = |last: &Pending<N>| !self.overlap && last.step.computes();
            if state.window.last().is_some_and(alone) || state.every_port_waits(self.ports) {
                return Ok(());
            }
            let Some(step) = state.program.next() else {
                state.ended = true;
                return Ok(());
            };
            valid(&step, p, state.len, self.ports)
                .map_err(|e| Error::wrong(format!("rank {rank}, step {}: {e}", state.taken)))?;
            state.window.push(Pending {
                step,
                index: state.taken,
                state: State::Waits,
                from: [0.0; N],
            });
            state.taken += 1;
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
        let Some(from) = state.opens(place, self.ports, self.overlap) else {
            return Ok(false);
        };
        let pending = &mut state.window[place];
        (pending.state, pending.from) = (State::Open, from);
        let Some(peer) = pending.step.peer() else {
            self.compute(rank, place, from);
            return Ok(true);
        };
        match self.partner(rank, place, peer) {
            Some(other) => {
                self.transfer((rank, place), (peer, other))?;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// Where the open partner of a step stands in the window of `peer`.
    fn partner(&self, rank: usize, place: usize, peer: usize) -> Option<usize> {
        let window = &self.ranks[rank].window;
        let sends = window[place].step.is_send();
        let before = |p: &&Pending<N>| p.is_transfer(sends, peer);
        let number = window[..place].iter().filter(before).count();
        let mut theirs = self.ranks[peer].window.iter().enumerate();
        let (other, partner) = theirs
            .by_ref()
            .filter(|(_, p)| p.is_transfer(!sends, rank))
            .nth(number)?;
        (partner.state == State::Open).then_some(other)
    }

    /// Does the transfer of two open steps that belong together.
    fn transfer(&mut self, mine: (usize, usize), theirs: (usize, usize)) -> Result<()> {
        let ends = [mine, theirs];
        let [a, b] = ends.map(|(rank, place)| &self.ranks[rank].window[place]);
        let mut time = a.from;
        advance(&mut time, &b.from);
        let (from, to) = if a.step.is_send() {
            (mine, theirs)
        } else {
            (theirs, mine)
        };
        let [sent, expected] = [from, to].map(|(r, place)| self.ranks[r].window[place].step.len());
        if sent != expected {
            return Err(Error::wrong(format!(
                "rank {}, step {}: sends {sent} elements to rank {}, whose step {} expects {expected}",
                from.0,
                self.ranks[from.0].window[from.1].index,
                to.0,
                self.ranks[to.0].window[to.1].index
            )));
        }
        self.finished.messages += usize::from(sent > 0);
        self.finished.elements = self.finished.elements.saturating_add(sent);
        let node = Node {
            work: Work::Transfer,
            from: rank_u32(from.0)?,
            to: rank_u32(to.0)?,
            elements: sent as u64,
        };
        if sent > 0 && !self.lanes[0].cost.linked(from.0, to.0) {
            return Err(Error::usage(format!(
                "rank {} sends to rank {}, between which the costs have no link",
                from.0, to.0
            )));
        }
        self.lanes
            .each_ref()
            .map(|lane| lane.time(&node))
            .add_to(&mut time);
        self.end(from.0, &time);
        self.end(to.0, &time);
        // From the last place on, if both are of one rank: the places before stay what they are.
        let mut ends = ends;
        ends.sort_unstable_by_key(|&(_, place)| std::cmp::Reverse(place));
        for (rank, place) in ends {
            self.transferred(rank, place, time);
        }
        self.enqueue(theirs.0)
    }

    /// One side of a transfer that ended at `time`.
    fn transferred(&mut self, rank: usize, place: usize, time: Times<N>) {
        let state = &mut self.ranks[rank];
        let pending = &mut state.window[place];
        let list = list_of(&pending.step, self.ports).unwrap_or(0);
        let combines = pending.step.computes();
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
        let step = &self.ranks[rank].window[place].step;
        let me = rank as u32;
        let node = Node {
            work: if matches!(step, Step::Copy { .. }) {
                Work::Copy
            } else {
                Work::Combine
            },
            from: me,
            to: me,
            elements: step.len() as u64,
        };
        self.lanes
            .each_ref()
            .map(|lane| lane.time(&node))
            .add_to(&mut time);
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

    fn enqueue(&mut self, rank: usize) -> Result<()> {
        if !std::mem::replace(&mut self.ranks[rank].queued, true) {
            self.queue.push_back(rank_u32(rank)?);
        }
        Ok(())
    }

    /// Why nothing goes on, seen from `rank`, whose window is not empty.
    fn stuck(&self, rank: usize) -> Error {
        let pending = &self.ranks[rank].window[0];
        let (index, name) = (pending.index, pending.step.name());
        let Some(peer) = pending.step.peer() else {
            return Error::wrong(format!(
                "deadlock: rank {rank}, step {index} ({name}) never runs"
            ));
        };
        let theirs = &self.ranks[peer];
        let sends = pending.step.is_send();
        let alone = theirs.ended && !theirs.window.iter().any(|p| p.is_transfer(!sends, rank));
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

impl Lane<'_> {
    #[inline]
    fn time(&self, node: &Node) -> f64 {
        match &self.line {
            Some(line) => node.time_by(line, self.element_bytes),
            None => node.time(self.cost, self.element_bytes),
        }
    }
}

impl<const N: usize> Pending<N> {
    /// Whether it is a transfer with `peer` in this direction that has not taken place.
    fn is_transfer(&self, sends: bool, peer: usize) -> bool {
        self.state != State::Transferred
            && self.step.peer() == Some(peer)
            && self.step.is_send() == sends
    }
}

impl<I, const N: usize> Rank<I, N> {
    /// Whether each port of a one-ported rank has a step that waits.
    fn every_port_waits(&self, ports: Ports) -> bool {
        let waits = |sends| {
            let mut steps = self.window.iter().map(|p| &p.step);
            steps.any(|s| s.peer().is_some() && s.is_send() == sends)
        };
        match ports {
            Ports::BI => waits(true) && waits(false),
            Ports::UNI => waits(true) || waits(false),
            _ => false,
        }
    }

    /// From when on the step at `place` may run, if all that it waits for is done.
    fn opens(&self, place: usize, ports: Ports, overlap: bool) -> Option<Times<N>> {
        let step = &self.window[place].step;
        let list = list_of(step, ports);
        if !overlap && list.is_none() {
            return (place == 0).then(|| self.all_free());
        }
        for earlier in &self.window[..place] {
            let held_up = (!overlap && earlier.step.computes())
                || (list.is_some() && list == list_of(&earlier.step, ports))
                || conflict(&earlier.step, step);
            if held_up {
                return None;
            }
        }
        let mut from = match list {
            Some(list) => self.free.get(list).copied().unwrap_or(self.barrier),
            None => [0.0; N],
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
        let step = self.window.remove(place).step;
        if !overlap {
            // Every later step starts on some port that is not free before this.
            let mut implied = if self.free.len() < ports.lists() {
                self.barrier
            } else {
                [f64::INFINITY; N]
            };
            for free in &self.free {
                for (i, f) in implied.iter_mut().zip(free) {
                    *i = i.min(*f);
                }
            }
            if time.iter().zip(&implied).all(|(t, i)| t <= i) {
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

fn list_of(step: &Step, ports: Ports) -> Option<usize> {
    Some(ports.list(step.is_send(), step.port()?))
}

/// Rule 2: whether the later step waits for the earlier one.
fn conflict(earlier: &Step, later: &Step) -> bool {
    let meet = |a: &[Span], b: &[Span]| a.iter().any(|x| b.iter().any(|y| x.overlaps(*y)));
    meet(earlier.writes(), later.reads())
        || meet(earlier.writes(), later.writes())
        || meet(earlier.reads(), later.writes())
}

/// What [`Schedule::new`](crate::Schedule::new) and the analysis of programs would refuse.
fn valid(step: &Step, p: usize, len: usize, ports: Ports) -> Result<()> {
    let name = step.name();
    if let Some(peer) = step.peer().filter(|&peer| peer >= p) {
        return Err(Error::malformed(format!(
            "{name}: peer {peer} is not one of {p} ranks"
        )));
    }
    if let Some(port) = step.port().filter(|&port| port >= ports.k()) {
        return Err(Error::wrong(format!(
            "{name}: port {port}, but the rank has {} (numbered from 0)",
            ports.k()
        )));
    }
    let spans = step.reads().iter().chain(step.writes());
    if let Some(s) = spans.into_iter().find(|s| s.end() > len) {
        return Err(Error::malformed(format!(
            "{name}: span [{}, {}] leaves the buffer of {len} elements",
            s.offset, s.len
        )));
    }
    Ok(())
}

/// Adds times to others.
trait AddTo<const N: usize> {
    fn add_to(self, time: &mut Times<N>);
}

impl<const N: usize> AddTo<N> for Times<N> {
    fn add_to(self, time: &mut Times<N>) {
        for (t, d) in time.iter_mut().zip(self) {
            *t += d;
        }
    }
}
