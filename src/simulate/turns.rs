//! What a native run takes on so many cores: an estimate that no model time is.
//!
//! Ranks are dealt to the cores in turn, and each core goes round its ranks. A rank that has its turn goes as far as it can, and what it does takes
//! its core's time: messages that it offers or takes, copies, combinations. Then the core switches to the next rank, whether that can go on
//! or not, as yielding ranks do. The order in which a core goes round is the system's: the estimate is the mean over a few orders.
//!
//! The one worker of a core in a folded run takes turns at its ranks by itself: at those that can go on, and almost for nothing.

use std::collections::HashSet;

use super::sequence::{self, Sequence, own_event};
use super::{Prepared, later};
use crate::cost::{CostModel, Ports, bytes};
use crate::error::Result;
use crate::schedule::{Event, LocalOrder, OrderScratch, Schedule, Span, Step};

/// The cores of a native run, and what they take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Crowd {
    /// Number of cores.
    pub cores: usize,
    /// What a message costs a rank that need not wait.
    pub overhead: f64,
    /// Until another rank of the same core has its turn.
    pub switch: f64,
    /// Longest message, in bytes, whose sender goes on without waiting for its receiver. A schedule with a longer one has everybody wait.
    pub eager: u64,
    /// Longest of these, in bytes, that is copied where its sender overwrites it later, so that it need not wait for its receiver there.
    pub copied: u64,
    /// Whether one worker a core takes turns at a contiguous part of the ranks, and only at those that can go on (a folded run). Otherwise ranks are
    /// dealt to the cores in turn, and each core goes round all of its own.
    pub folded: bool,
}

impl Crowd {
    /// The core of `rank`, one of `ranks`.
    fn core(&self, rank: usize, ranks: usize) -> usize {
        if self.folded {
            // The last of them whose first rank is not beyond this one.
            ((rank + 1) * self.cores.min(ranks) - 1) / ranks
        } else {
            rank % self.cores
        }
    }
}

/// How long `schedule` takes, in the unit of `cost`; infinite where that would be long to find out.
///
/// Time: `O(s)` for each time that a core goes round, for `s` ranks, at most a few dozen times the number of steps in all.
///
/// # Errors
/// As [`Prepared::new`].
pub(crate) fn time_in_turns(
    schedule: &Schedule,
    cost: &CostModel,
    element_bytes: u64,
    crowd: &Crowd,
) -> Result<f64> {
    let prepared = Prepared::new(schedule, cost.overlap)?;
    let mut scratch = OrderScratch::default();
    let mut programs = Vec::with_capacity(schedule.ranks());
    for steps in schedule.programs() {
        let mut order = LocalOrder::default();
        order.analyse(steps, schedule.ports(), cost.overlap, &mut scratch)?;
        programs.push((steps, order));
    }
    let buffers = schedule
        .layout()
        .iter()
        .map(|l| bytes(l.len, element_bytes))
        .fold(0, u64::saturating_add);
    let takes = Takes {
        cost,
        element_bytes,
        crowd,
        resident: buffers / crowd.cores.clamp(1, schedule.ranks().max(1)) as u64,
        ranks: schedule.ranks(),
        fresh: if crowd.cores < schedule.ranks() {
            vec![false; prepared.nodes().len()]
        } else {
            fresh(&prepared, &programs)
        },
    };
    let steps: usize = schedule.programs().iter().map(Vec::len).sum();
    let most_turns = 64 * (steps + schedule.ranks());
    let sends = schedule.programs().iter().flatten().filter(|s| s.is_send());
    let longest = sends.map(|s| bytes(s.len(), element_bytes)).max();
    let eager = longest.is_none_or(|n| n <= crowd.eager);
    // Who begins matters the more the fewer there are.
    let orders = if schedule.ranks() <= 16 { 12 } else { 6 };
    let mut sum = 0.0;
    for order in 0..orders {
        let mut cores = Core::all(schedule.ranks(), crowd, order);
        // The second repetition begins where the first has ended.
        for repetition in 0..2 {
            let time = if eager {
                let ranks = Eager::new(&prepared, &programs, &takes, schedule.ports())?;
                rounds(ranks, &mut cores, crowd, most_turns)
            } else {
                let ranks = Meeting::new(&prepared, &programs, &takes, schedule.ports());
                rounds(ranks, &mut cores, crowd, most_turns)
            };
            if repetition > 0 {
                sum += time;
            }
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "a few")]
    let mean = sum / orders as f64;
    Ok(mean)
}

type Programs<'a> = [(&'a Vec<Step>, LocalOrder)];

/// A number like any other for each rank in each order.
fn shuffled(rank: usize, order: usize) -> u64 {
    // The finishing steps of SplitMix64: each a permutation, so no two ranks get the same.
    let mut word =
        (rank as u64).wrapping_add((order as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Messages from this many bytes on are long: both partners copy them where both can.
const SHARED: u64 = 32 << 10;

/// How much longer a byte takes that the sender has itself just received or combined, if its core's own caches still hold it: the line has to be taken
/// from them, and what it overwrites is held there too. As measured with caches of a megabyte. Where ranks share cores, this is lost in their turns.
const FRESH: f64 = 4.0;
const FRESH_UP_TO: u64 = 1 << 20;

/// How a message is taken from another core.
#[derive(Clone, Copy, PartialEq)]
enum How {
    /// Its sender helps to copy.
    Helped,
    /// By the receiver alone.
    Alone,
    /// Another rank of the same core has taken the same before: it is in the core's cache.
    Again,
}

/// By node: whether it is a message of something that its sender has written before.
fn fresh(prepared: &Prepared, programs: &Programs<'_>) -> Vec<bool> {
    let mut fresh = vec![false; prepared.nodes().len()];
    for (rank, (steps, _)) in programs.iter().enumerate() {
        let mut written = Written::default();
        for (i, step) in steps.iter().enumerate() {
            if step.is_send()
                && let Some(node) = prepared.node(rank, own_event(i, step))
            {
                fresh[node] = step.reads().iter().any(|s| written.meets(*s));
            }
            step.writes().iter().for_each(|s| written.add(*s));
        }
    }
    fresh
}

/// Parts of a buffer, ascending and apart: where each starts and ends.
#[derive(Default)]
struct Written(std::collections::BTreeMap<usize, usize>);

impl Written {
    fn add(&mut self, span: Span) {
        let (mut start, mut end) = (span.offset, span.end());
        while let Some((&from, &to)) = self.0.range(..=end).next_back()
            && to >= start
        {
            self.0.remove(&from);
            (start, end) = (start.min(from), end.max(to));
        }
        self.0.insert(start, end);
    }

    fn meets(&self, span: Span) -> bool {
        let before = self.0.range(..span.end()).next_back();
        before.is_some_and(|(_, &end)| end > span.offset)
    }
}

/// What the parts of a transfer, and computations, take a core.
struct Takes<'a> {
    cost: &'a CostModel,
    element_bytes: u64,
    crowd: &'a Crowd,
    /// Bytes of all buffers of a core's ranks: where they exceed its caches, no part of them is found there.
    resident: u64,
    ranks: usize,
    /// By node: whether its sender has received, or made, some of what it sends.
    fresh: Vec<bool>,
}

impl Takes<'_> {
    fn bytes(&self, step: &Step) -> u64 {
        bytes(step.len(), self.element_bytes)
    }

    fn core(&self, rank: usize) -> usize {
        self.crowd.core(rank, self.ranks)
    }

    /// What `of` says of `bytes` that lie among all the others of the core: as a part of so many.
    fn among(&self, bytes: u64, of: impl Fn(u64) -> f64) -> f64 {
        if bytes >= self.resident {
            return of(bytes);
        }
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let part = bytes as f64 / self.resident as f64;
        later(of(bytes), part * of(self.resident))
    }

    /// Offering a message, which may be copied for that.
    fn put(&self, rank: usize, step: &Step, copied: bool) -> f64 {
        let bytes = self.bytes(step);
        if !copied {
            return self.crowd.overhead;
        }
        // Where long messages are put, others have been meanwhile.
        let cold = if bytes < SHARED { 1.0 } else { 2.0 };
        self.crowd.overhead + cold * self.among(bytes, |b| self.cost.copy(rank, b))
    }

    /// Taking a message from where it stands, where its sender has received it itself if it is `fresh`.
    fn take(&self, from: usize, rank: usize, step: &Step, how: How, fresh: bool) -> f64 {
        let bytes = self.bytes(step);
        let near = self.crowd.overhead + self.among(bytes, |b| self.cost.copy(rank, b));
        let moved = if how == How::Again || self.core(from) == self.core(rank) {
            near
        } else {
            // The model's long messages are copied by both partners.
            let alone = if how == How::Helped || bytes < SHARED {
                1.0
            } else {
                2.0
            };
            let transfer = self.among(bytes, |b| self.cost.transfer(from, rank, b));
            let lines = transfer - self.cost.transfer(from, rank, 0);
            // Both partners copy the same halves each time.
            let taken_back = if fresh && how != How::Helped && bytes <= FRESH_UP_TO {
                (FRESH - 1.0) * alone * later(lines, 0.0)
            } else {
                0.0
            };
            later(near, alone * transfer) + taken_back
        };
        match step {
            Step::RecvCombine { .. } => moved + self.among(bytes, |b| self.cost.combine(rank, b)),
            _ => moved,
        }
    }

    fn local(&self, rank: usize, step: &Step) -> f64 {
        match step {
            Step::Copy { .. } => self.among(self.bytes(step), |b| self.cost.copy(rank, b)),
            _ => self.cost.combine_local(rank, self.bytes(step)),
        }
    }
}

/// Ranks that can be given turns.
trait Ranks {
    /// `rank` goes on from `now` as far as it can, and says when it stops; whether it did anything.
    fn turn(&mut self, rank: usize, now: &mut f64) -> bool;

    fn is_done(&self, rank: usize) -> bool;
}

/// The ranks of a core, in the order in which it goes round.
struct Core {
    ranks: Vec<usize>,
    /// When it begins, in parts of a turn, of which it is a small one: the cores have met.
    late: f64,
    /// Whose turn is next.
    next: usize,
    /// Who was the last to be done.
    last: usize,
    now: f64,
    left: usize,
    /// Turns in which nothing was done, one after another.
    idle: usize,
}

impl Core {
    fn all(ranks: usize, crowd: &Crowd, order: usize) -> Vec<Core> {
        #[expect(clippy::cast_precision_loss, reason = "an arbitrary part")]
        let part = |word: u64| word as f64 / u64::MAX as f64;
        let core = |core| {
            let mut mine: Vec<usize> = (0..ranks)
                .filter(|&r| crowd.core(r, ranks) == core)
                .collect();
            if !crowd.folded {
                mine.sort_by_key(|&r| shuffled(r, order));
            }
            Core {
                ranks: mine,
                late: 0.3 * part(shuffled(core, order)),
                next: 0,
                last: 0,
                now: 0.0,
                left: 0,
                idle: 0,
            }
        };
        (0..crowd.cores.min(ranks)).map(core).collect()
    }

    /// Until it looks at a rank again.
    fn turn(&self, crowd: &Crowd) -> f64 {
        if self.ranks.len() > 1 {
            crowd.switch
        } else {
            crowd.overhead
        }
    }
}

/// Goes round until all ranks are done: when the last one is. All meet before: who was done last is the first on its core to go on from there, gives the
/// core up to all others in turn, and the last of these need not give it up when everybody has come.
fn rounds(mut ranks: impl Ranks, cores: &mut [Core], crowd: &Crowd, most_turns: usize) -> f64 {
    for core in &mut *cores {
        core.left = core.ranks.iter().filter(|&&r| !ranks.is_done(r)).count();
        let n = core.ranks.len();
        (core.now, core.idle) = (core.late * core.turn(crowd), 0);
        core.next = (core.last + n - 1) % n;
    }
    let mut makespan = 0.0;
    for _ in 0..most_turns {
        let unfinished = cores.iter_mut().filter(|c| c.left > 0);
        let Some(core) = unfinished.min_by(|a, b| a.now.total_cmp(&b.now)) else {
            return makespan;
        };
        let rank = core.ranks[core.next];
        let moved = !ranks.is_done(rank) && ranks.turn(rank, &mut core.now);
        if moved {
            core.idle = 0;
            makespan = later(makespan, core.now);
            if ranks.is_done(rank) {
                core.left -= 1;
                core.last = core.next;
            }
        } else {
            core.idle += 1;
        }
        core.next = (core.next + 1) % core.ranks.len();
        // A worker takes no turns at ranks that cannot go on, but looks out for others that can.
        if moved || !crowd.folded || core.idle > core.ranks.len() {
            core.now += core.turn(crowd);
        }
        if core.idle > core.ranks.len() {
            // Nothing changes here until another core does something.
            let at = core.now;
            let others = cores.iter().filter(|c| c.now > at);
            let next = others.map(|c| c.now).fold(f64::INFINITY, f64::min);
            if let Some(core) = cores.iter_mut().find(|c| c.left > 0 && c.now == at)
                && next.is_finite()
            {
                core.now = next;
            }
        }
    }
    f64::INFINITY
}

/// Ranks that do not wait for their receivers.
struct Eager {
    acts: Vec<Vec<Act>>,
    next: Vec<usize>,
    /// By rank.
    cores: Vec<usize>,
    /// By node: what its sender sends.
    sent: Vec<(usize, Span)>,
    /// What each core has taken.
    cached: HashSet<(usize, usize, Span)>,
    /// By node: when its message stands ready.
    put: Vec<f64>,
    /// By node: when its message has been taken.
    taken: Vec<f64>,
}

struct Act {
    kind: Kind,
    /// Nodes whose messages must have been taken.
    after: Vec<usize>,
    takes: f64,
}

enum Kind {
    /// Offers the message of a node.
    Put(usize),
    /// Takes the message of a node, which takes less time if it is the second on this core to do so.
    Take(usize, f64),
    Local,
}

impl Eager {
    fn new(
        prepared: &Prepared,
        programs: &Programs<'_>,
        takes: &Takes<'_>,
        ports: Ports,
    ) -> Result<Eager> {
        let simulation = prepared.try_simulate(takes.cost, takes.element_bytes)?;
        let mut sent = vec![(0, Span::new(0, 0)); prepared.nodes().len()];
        let acts = programs.iter().enumerate().map(|(rank, (steps, order))| {
            let peer = |i: usize| steps[i].peer().unwrap_or(rank);
            let copied = takes.crowd.copied;
            let sequence = Sequence::new(rank, steps, order, &simulation, ports, copied, peer);
            let sequence = sequence.unwrap_or_default();
            let mut last = std::collections::HashMap::new();
            let node = |i: usize| prepared.node(rank, own_event(i, &steps[i])).unwrap_or(0);
            let act = |(k, act): (usize, &sequence::Act)| {
                let i = act.step as usize;
                let (step, own) = (&steps[i], node(i));
                let mut after: Vec<usize> = sequence
                    .before(k)
                    .iter()
                    .map(|&s| node(s as usize))
                    .collect();
                let (kind, takes) = match step {
                    Step::Send { to, .. } => {
                        after.extend(last.insert(*to, own));
                        sent[own] = (
                            rank,
                            step.reads().first().copied().unwrap_or(Span::new(0, 0)),
                        );
                        (Kind::Put(own), takes.put(rank, step, act.copied))
                    }
                    Step::Recv { from, .. } | Step::RecvCombine { from, .. } => {
                        let fresh = takes.fresh[own];
                        let again = takes.take(*from, rank, step, How::Again, fresh);
                        (
                            Kind::Take(own, again),
                            takes.take(*from, rank, step, How::Alone, fresh),
                        )
                    }
                    _ => (Kind::Local, takes.local(rank, step)),
                };
                Act { kind, after, takes }
            };
            sequence.acts().iter().enumerate().map(act).collect()
        });
        let acts = acts.collect();
        Ok(Eager {
            acts,
            cores: (0..programs.len()).map(|r| takes.core(r)).collect(),
            sent,
            cached: HashSet::new(),
            next: vec![0; programs.len()],
            put: vec![f64::INFINITY; prepared.nodes().len()],
            taken: vec![f64::INFINITY; prepared.nodes().len()],
        })
    }
}

impl Ranks for Eager {
    fn turn(&mut self, rank: usize, now: &mut f64) -> bool {
        let before = self.next[rank];
        while let Some(act) = self.acts[rank].get(self.next[rank]) {
            let free = act.after.iter().map(|&node| self.taken[node]);
            let free = free.fold(0.0, later);
            let (ready, done) = match act.kind {
                Kind::Put(node) => (free, Some(&mut self.put[node])),
                Kind::Take(node, _) => (later(free, self.put[node]), Some(&mut self.taken[node])),
                Kind::Local => (free, None),
            };
            if ready > *now {
                break;
            }
            *now += match act.kind {
                Kind::Take(node, again) => {
                    let (from, span) = self.sent[node];
                    let first = self.cached.insert((self.cores[rank], from, span));
                    if first { act.takes } else { again }
                }
                _ => act.takes,
            };
            if let Some(done) = done {
                *done = *now;
            }
            self.next[rank] += 1;
        }
        self.next[rank] > before
    }

    fn is_done(&self, rank: usize) -> bool {
        self.next[rank] == self.acts[rank].len()
    }
}

/// Ranks that wait for each other at every message.
struct Meeting<'a> {
    prepared: &'a Prepared,
    programs: &'a Programs<'a>,
    takes: &'a Takes<'a>,
    /// For each rank, the steps of its port lists, and last its local ones.
    lists: Vec<Vec<List>>,
    /// For each rank, by event: whether it has happened as far as the rank knows.
    happened: Vec<Vec<bool>>,
    left: Vec<usize>,
    /// Until when each rank copies or combines.
    busy: Vec<f64>,
    /// By node: when its message is offered, and when it has been taken.
    offered: Vec<f64>,
    taken: Vec<f64>,
}

#[derive(Default)]
struct List {
    steps: Vec<usize>,
    next: usize,
    open: bool,
}

impl<'a> Meeting<'a> {
    fn new(
        prepared: &'a Prepared,
        programs: &'a Programs<'a>,
        takes: &'a Takes<'a>,
        ports: Ports,
    ) -> Meeting<'a> {
        let lists = programs.iter().map(|(steps, _)| {
            let mut lists: Vec<List> = (0..=ports.lists()).map(|_| List::default()).collect();
            for (i, step) in steps.iter().enumerate() {
                let list = step.port().map(|port| ports.list(step.is_send(), port));
                lists[list.unwrap_or(ports.lists())].steps.push(i);
            }
            lists
        });
        Meeting {
            prepared,
            programs,
            takes,
            lists: lists.collect(),
            happened: programs
                .iter()
                .map(|p| vec![false; 2 * p.0.len()])
                .collect(),
            left: programs.iter().map(|p| p.0.len()).collect(),
            busy: vec![0.0; programs.len()],
            offered: vec![f64::INFINITY; prepared.nodes().len()],
            taken: vec![f64::INFINITY; prepared.nodes().len()],
        }
    }

    /// Takes a list of `rank` one step further.
    fn advance(&mut self, rank: usize, list: usize, now: &mut f64) -> bool {
        let (steps, order) = &self.programs[rank];
        let List { next, open, .. } = self.lists[rank][list];
        let Some(&i) = self.lists[rank][list].steps.get(next) else {
            return false;
        };
        let step = &steps[i];
        let happened = |events: &[Event]| events.iter().all(|e| self.happened[rank][e.index()]);
        if !open && !happened(order.before_start(i)) {
            return false;
        }
        let node = self.prepared.node(rank, own_event(i, step)).unwrap_or(0);
        match step {
            Step::Send { .. } if !open => {
                self.offered[node] = *now;
                self.lists[rank][list].open = true;
                return true;
            }
            Step::Send { .. } if self.taken[node] > *now => return false,
            Step::Send { .. } => {}
            Step::Recv { from, .. } | Step::RecvCombine { from, .. } => {
                if self.offered[node] > *now {
                    return false;
                }
                // Who has a core and nothing to do helps.
                let helped =
                    self.takes.crowd.cores >= self.programs.len() && self.busy[*from] <= *now;
                let how = if helped { How::Helped } else { How::Alone };
                let fresh = self.takes.fresh[node];
                *now += self.takes.take(*from, rank, step, how, fresh);
                self.taken[node] = *now;
                self.busy[rank] = *now;
                if helped {
                    self.busy[*from] = *now;
                }
            }
            _ => {
                *now += self.takes.local(rank, step);
                self.busy[rank] = *now;
            }
        }
        let events = &mut self.happened[rank];
        events[Event::transferred(i).index()] = true;
        events[Event::computed(i).index()] = true;
        let list = &mut self.lists[rank][list];
        list.open = false;
        list.next += 1;
        self.left[rank] -= 1;
        true
    }
}

impl Ranks for Meeting<'_> {
    fn turn(&mut self, rank: usize, now: &mut f64) -> bool {
        let mut went_on = false;
        for list in 0..self.lists[rank].len() {
            while self.advance(rank, list, now) {
                went_on = true;
            }
        }
        went_on
    }

    fn is_done(&self, rank: usize) -> bool {
        self.left[rank] == 0
    }
}
