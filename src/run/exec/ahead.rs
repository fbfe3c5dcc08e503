//! Native runs in which senders do not wait for their receivers.
//!
//! Where ranks share cores, a sender that waits for its receiver gives up its core twice: once for
//! the receiver to run, and once more to continue. Instead it may leave the message in place and
//! continue. It has to wait only before it overwrites the message, or sends to the same rank again.
//! A short message that will be overwritten is copied to a slot where the receiver finds it
//! (message passing libraries call this the eager protocol); there is one slot for each direction
//! between two partners.
//!
//! A rank that waits only for messages can perform its steps one after another: see [`Sequence`].
//!
//! Where every rank has a core, both partners of a long message copy it, if its sender has nothing
//! else to do: the receiver asks for help and starts; the sender looks when it waits itself, and at
//! its end. A root that sends to many ranks thus delays none of them, and helps one after another.
//!
//! Only the wall-clock time improves. The rules of time still define what a schedule means:
//!
//! - A schedule runs so only if it cannot deadlock when all transfers are rendezvous. This is
//!   proved before the run.
//! - The model clock needs both ends of each transfer, so a separate repetition carries it, in
//!   which all transfers are rendezvous.

use std::time::Instant;

use super::carrier::{Carrier, HalfTransfer};
use super::executor::{Peers, RankExecutor};
use super::program::{Program, RankProgram};
use super::sequence::Sequence;
use crate::error::Error;
use crate::machine::{CostModel, Ports, TransferCost};
use crate::run::context::RunContext;
use crate::run::failure::{Failure, TransferAt};
use crate::run::placement::Workers;
use crate::run::transfer::{Due, Elements, RankMemory, Received, RecvOp, Slots, Wire, fetch_lanes};
use crate::run::tuning::{
    AHEAD_SPINS, FETCHED_WIRES, MAX_AHEAD_BYTES, MAX_SLOT_BYTES, MAX_WORKER_COPIED_BYTES, SPINS,
    max_copied_bytes,
};
use crate::run::wait::TeamState;
use crate::schedule::{Schedule, Spans, Step, total_len};
use crate::simulate::{Prepared, Simulation};

/// The longest message, in bytes, that is copied if its sender overwrites it, with `ranks` ranks on
/// `cores` cores.
///
/// A message that stays where it is may have any length: its sender does not wait. Where every rank
/// has a core, a rank that has nothing else to do helps the receivers of its long messages, so
/// these are not copied. Where ranks share cores, each wait costs switches between ranks, which
/// take the longer the more ranks a core has. Copying messages that will be overwritten saves some
/// of these waits, but the copies must stay in the caches.
pub fn longest_copied(workers: Workers, ranks: usize, cores: usize) -> u64 {
    match workers {
        _ if ranks <= cores => MAX_AHEAD_BYTES,
        Workers::Ranks => max_copied_bytes((ranks / cores.max(1)) as u64),
        // A rank that waits does not occupy the worker.
        Workers::Cores => MAX_WORKER_COPIED_BYTES,
    }
}

/// The form that runs ahead of a run: of all ranks, or of one.
#[derive(Debug)]
pub(crate) struct RunAhead {
    slots: Slots,
    first: usize,
    ranks: Vec<AheadRank>,
}

/// The form that runs ahead of one rank's program.
#[derive(Debug)]
struct AheadRank {
    sequence: Sequence,
    /// By step: the slot of its message, if it is a send whose message is copied.
    slot: Vec<u32>,
}

impl RunAhead {
    /// The form that runs ahead of `schedule`, where messages of up to `copied` bytes that are
    /// overwritten are copied. `None` if the schedule could deadlock or has shared ports, whose
    /// grants only rendezvous take, or memory would not suffice.
    pub(super) fn of(
        schedule: &Schedule,
        program: &Program<'_>,
        elements: Elements,
        cost: &CostModel,
        copied: u64,
    ) -> Option<RunAhead> {
        if !schedule.shared_ports().is_empty() {
            return None;
        }
        let prepared = Prepared::new(schedule, cost.overlaps()).ok()?;
        // Steps are ordered by a model in which both ends of a transfer wait for each other: no
        // rank can then wait in a cycle.
        let simulation = prepared.simulate_bytes(&cost.rendezvous(), elements.bytes as u64);
        let simulation = simulation.ok()?;
        // If the copies would take too much memory, no message is copied.
        [copied, 0].into_iter().find_map(|copied| {
            RunAhead::with(schedule.ports(), program, elements, &simulation, copied)
        })
    }

    /// The form that runs ahead of the program of `rank` alone, for a carrier that lets any number
    /// of messages be in flight. No message is copied.
    #[cfg(feature = "mpi")]
    pub(crate) fn of_rank(
        rank: usize,
        program: &Program<'_>,
        simulation: &Simulation,
        ports: Ports,
        open_early: impl FnOnce(&mut Sequence),
    ) -> Option<RunAhead> {
        let own = &program.ranks[rank];
        // Each message has a lane of its own.
        let lane = |i: usize| i;
        let (steps, order) = (own.steps, &own.order);
        let mut sequence = Sequence::new(rank, steps, order, simulation, ports, 0, lane)?;
        open_early(&mut sequence);
        let slot = vec![0; steps.len()];
        Some(RunAhead {
            slots: Slots::new(0),
            first: rank,
            ranks: vec![AheadRank { sequence, slot }],
        })
    }

    fn rank(&self, rank: usize) -> &AheadRank {
        &self.ranks[rank - self.first]
    }

    /// The order in which `rank` executes its steps.
    #[cfg(feature = "mpi")]
    pub(crate) fn sequence(&self, rank: usize) -> &Sequence {
        &self.rank(rank).sequence
    }

    /// The form that runs ahead of a schedule, in which overwritten messages of up to `copied`
    /// bytes are copied.
    fn with(
        ports: Ports,
        program: &Program<'_>,
        elements: Elements,
        simulation: &Simulation,
        copied: u64,
    ) -> Option<RunAhead> {
        let sequence = |(rank, program): (usize, &RankProgram<'_>)| {
            let (steps, order) = (program.steps, &program.order);
            let wire = |i: usize| program.wire[i] as usize;
            Sequence::new(rank, steps, order, simulation, ports, copied, wire)
        };
        let ranks = || program.ranks.iter().enumerate();
        let sequences: Vec<Sequence> = ranks().map(sequence).collect::<Option<_>>()?;
        let (slots, lines) = slots_of_lanes(program, elements, &sequences)?;
        if Slots::bytes(lines) > MAX_SLOT_BYTES {
            return None;
        }
        let rank = |((rank, program), sequence): ((usize, &RankProgram<'_>), Sequence)| {
            let mut slot = vec![0; program.steps.len()];
            for (i, lane) in copies(rank, program, &sequence) {
                slot[i] = slots[lane];
            }
            AheadRank { sequence, slot }
        };
        Some(RunAhead {
            slots: Slots::new(lines),
            first: 0,
            ranks: ranks().zip(sequences).map(rank).collect(),
        })
    }
}

/// The steps of `rank` whose messages are copied, and the number of the lane of each.
fn copies(
    rank: usize,
    program: &RankProgram<'_>,
    sequence: &Sequence,
) -> impl Iterator<Item = (usize, usize)> {
    let copied = sequence.actions().iter().filter(|a| a.copied);
    copied.map(move |action| {
        let i = action.step as usize;
        let up = program.steps[i].peer() > Some(rank);
        (i, 2 * program.wire[i] as usize + usize::from(up))
    })
}

/// By lane: the cache line at which its slot starts, and the number of lines of all slots. A slot
/// has room for the longest copied message of its lane. `None` if there are too many lines.
fn slots_of_lanes(
    program: &Program<'_>,
    elements: Elements,
    sequences: &[Sequence],
) -> Option<(Vec<u32>, u32)> {
    let mut lines = vec![0u32; 2 * program.wires.len()];
    for (rank, (program, sequence)) in program.ranks.iter().zip(sequences).enumerate() {
        for (i, lane) in copies(rank, program, sequence) {
            let bytes = program.steps[i].len() * elements.bytes;
            if bytes > elements.max_inline_bytes {
                lines[lane] = lines[lane].max(Slots::lines(bytes));
            }
        }
    }
    let mut end = 0u32;
    for slot in &mut lines {
        let lines = std::mem::replace(slot, end);
        end = end.checked_add(lines)?;
    }
    Some((lines, end))
}

/// One rank's progress through its sequence.
#[derive(Debug)]
pub(crate) struct AheadExecutor<'r> {
    rank: usize,
    own: &'r AheadRank,
    slots: &'r Slots,
    program: &'r RankProgram<'r>,
    wires: &'r [Wire],
    context: &'r RunContext<'r>,
    next: usize,
    /// The step whose partner it waited for last. This is an earlier send, not the action's own
    /// step, when the action would overwrite a message in flight.
    awaited_step: usize,
    /// The send with whose message it helps its receiver.
    helping: Option<usize>,
}

/// What a rank waits for.
#[derive(Debug)]
enum Awaited<'r> {
    /// A message.
    Offer(HalfTransfer<'r>),
    /// A free lane: the receiver has taken the last message.
    Room(HalfTransfer<'r>),
}

impl Awaited<'_> {
    /// Whether `rank`, which shares memory with the others, need not wait any longer.
    #[inline]
    fn has_come(&self, rank: usize) -> bool {
        match self {
            Awaited::Offer(t) => t.wire.lane(t.peer, rank).is_offered(),
            Awaited::Room(t) => t.wire.lane(rank, t.peer).is_free(),
        }
    }
}

impl<'r> AheadExecutor<'r> {
    /// An executor of `rank`, at the beginning of its sequence.
    pub(crate) fn new(
        rank: usize,
        ahead: &'r RunAhead,
        program: &'r Program<'r>,
        context: &'r RunContext<'r>,
    ) -> Self {
        AheadExecutor {
            rank,
            own: ahead.rank(rank),
            slots: &ahead.slots,
            program: &program.ranks[rank],
            wires: &program.wires,
            context,
            next: 0,
            awaited_step: 0,
            helping: None,
        }
    }

    /// Goes back to the beginning.
    pub(super) fn begin(&mut self) {
        self.next = 0;
    }

    /// A rank whose only step is one receive, like most ranks of a broadcast, spins briefly: its
    /// sender started at about the same time, so the message is likely to arrive in a fraction of
    /// the time that giving up the core takes.
    #[inline]
    fn spin_briefly(&self, state: &TeamState) {
        if let [action] = self.own.sequence.actions()
            && let i = action.step as usize
            && let Step::Recv { from, .. } = &self.program.steps[i]
            && !state.share_a_core(self.rank, *from)
        {
            let lane = self.wire(i).lane(*from, self.rank);
            for _ in 0..AHEAD_SPINS {
                if lane.is_offered() {
                    break;
                }
                std::hint::spin_loop();
            }
        }
    }

    /// Performs as many actions as possible. Returns what the rank waits for then, or `None` if the
    /// program is finished.
    ///
    /// It need not check whether a partner has left: a rank leaves when its program is finished,
    /// and then all messages that it sends have been offered. The carrier keeps spans in flight
    /// unmodified until they are received.
    #[inline]
    fn progress<C: Carrier<'r>>(
        &mut self,
        carrier: &mut C,
        peers: &impl Peers,
    ) -> Result<Option<Awaited<'r>>, Failure> {
        let context = self.context;
        let sequence = &self.own.sequence;
        if C::HAS_WIRES {
            (1..FETCHED_WIRES).for_each(|k| self.fetch_wire(self.next + k));
        }
        while let Some(action) = sequence.actions().get(self.next) {
            if C::HAS_WIRES {
                self.fetch_wire(self.next + FETCHED_WIRES);
            }
            let i = action.step as usize;
            let step = &self.program.steps[i];
            // A message that has come is copied when its receive is opened: the partner would wait
            // for this rank's own message meanwhile, so that leaves first if it can.
            let sends_first = step.is_send() && sequence.before(self.next).is_empty();
            if !sends_first {
                self.open_receives(carrier);
            }
            for &sent in sequence.before(self.next) {
                if let Some(transfer) = self.transfer(sent as usize)
                    && !carrier.is_free(transfer)
                {
                    self.awaited_step = sent as usize;
                    return Ok(Some(Awaited::Room(transfer)));
                }
            }
            match step {
                Step::Send { to, spans, .. } => {
                    let transfer = self.transfer_of(i, *to, spans);
                    if !carrier.is_free(transfer) {
                        self.open_receives(carrier);
                        self.awaited_step = i;
                        return Ok(Some(Awaited::Room(transfer)));
                    }
                    let slot = || (self.slots, self.own.slot[i]);
                    carrier.send(transfer, f64::NAN, action.copied.then(slot));
                    self.open_receives(carrier);
                    peers.wake(*to);
                }
                Step::Recv { from, spans, .. } | Step::RecvCombine { from, spans, .. } => {
                    let op = match step {
                        Step::RecvCombine { order, .. } => RecvOp::Reduce(context.combiner, *order),
                        _ => RecvOp::Copy,
                    };
                    let transfer = self.transfer_of(i, *from, spans);
                    if !self.take(carrier, transfer, op)? {
                        self.awaited_step = i;
                        return Ok(Some(Awaited::Offer(transfer)));
                    }
                    peers.wake(*from);
                }
                Step::Copy { src, dst } => carrier.local(dst, src, RecvOp::Copy),
                Step::Combine { src, dst, order } => {
                    carrier.local(dst, src, RecvOp::Reduce(context.combiner, *order));
                }
            }
            self.next += 1;
        }
        Ok(None)
    }

    /// Opens the receives that are to be opened by now.
    #[inline]
    fn open_receives(&self, carrier: &mut impl Carrier<'r>) {
        for &receive in self.own.sequence.opens(self.next) {
            if let Some(transfer) = self.transfer(receive as usize) {
                carrier.open_receive(transfer);
            }
        }
    }

    /// Prefetches the wire of action `k`, if it has one: its partner has written it, and to wait
    /// for the lines of several partners one after another would take longer.
    #[inline]
    fn fetch_wire(&self, k: usize) {
        if let Some(action) = self.own.sequence.actions().get(k)
            && let i = action.step as usize
            && self.program.steps[i].peer().is_some()
        {
            fetch_lanes(self.wire(i));
        }
    }

    /// Step `i`, if it is half of a transfer.
    #[inline]
    fn transfer(&self, i: usize) -> Option<HalfTransfer<'r>> {
        match &self.program.steps[i] {
            Step::Send {
                to: peer, spans, ..
            }
            | Step::Recv {
                from: peer, spans, ..
            }
            | Step::RecvCombine {
                from: peer, spans, ..
            } => Some(self.transfer_of(i, *peer, spans)),
            _ => None,
        }
    }

    #[inline]
    fn transfer_of(&self, step: usize, peer: usize, spans: &'r Spans) -> HalfTransfer<'r> {
        HalfTransfer {
            step,
            // Messages sent ahead belong to no port list.
            list: 0,
            peer,
            wire: self.wire(step),
            spans,
        }
    }

    fn wire(&self, i: usize) -> &'r Wire {
        &self.wires[self.program.wire[i] as usize]
    }

    /// Receives the message of `transfer`, if it has come.
    #[inline]
    fn take(
        &self,
        carrier: &mut impl Carrier<'r>,
        transfer: HalfTransfer<'r>,
        op: RecvOp<'_>,
    ) -> Result<bool, Failure> {
        /// Another repetition carries the model clock.
        const NO_CLOCK: Due = Due {
            ready: 0.0,
            cost: TransferCost::rendezvous(0.0),
        };
        match carrier.receive(transfer, op, NO_CLOCK) {
            Received::Done(_) => Ok(true),
            Received::Nothing => Ok(false),
            // The sender reports its own error.
            Received::Poisoned => Err(Failure::Aborted),
            Received::Length(found) => {
                let at = TransferAt {
                    rank: self.rank,
                    step: transfer.step,
                    peer: transfer.peer,
                    port: 0,
                };
                Err(at.wrong_length(total_len(transfer.spans), found).into())
            }
        }
    }

    /// Copies pieces of a message for a receiver that asks for it; false if none does.
    #[inline]
    fn help(&mut self, memory: &RankMemory<'_, 'r>) -> bool {
        self.helping = memory.asked();
        if let Some(step) = self.helping {
            memory.help_with(step, self.context.combiner);
            self.helping = None;
            return true;
        }
        false
    }

    /// Helps the receivers of its last long messages, which have nobody else to help them. It does
    /// not wait for receivers that take none: they do without it.
    #[inline]
    fn help_to_the_end(&mut self, memory: &RankMemory<'_, 'r>) {
        let mut polls = 0;
        while self.context.copying.shared && polls < SPINS && memory.may_be_asked() {
            polls = if self.help(memory) { 0 } else { polls + 1 };
            std::hint::spin_loop();
        }
    }
}

impl<'r> RankExecutor<'r> for AheadExecutor<'r> {
    fn rank(&self) -> usize {
        self.rank
    }

    fn run(
        &mut self,
        memory: &mut RankMemory<'_, 'r>,
        state: &TeamState,
        _: Instant,
        run: u64,
    ) -> Result<(), Failure> {
        let mut waiter = self.context.waiter(state, self.rank);
        self.spin_briefly(state);
        let mut before = 0;
        while let Some(awaited) = self.progress(memory, state)? {
            if self.next > before {
                before = self.next;
                waiter.progressed();
            }
            if self.help(memory) {
                waiter.progressed();
                continue;
            }
            let paused = waiter.pause(None);
            paused.map_err(|stop| waiter.failure(stop, || self.timeout_error()))?;
            waiter.spin(|| awaited.has_come(self.rank) || memory.asked().is_some());
        }
        waiter.progressed();
        self.help_to_the_end(memory);
        state.leave(self.rank, run);
        Ok(())
    }

    fn poll(&mut self, carrier: &mut impl Carrier<'r>, peers: &impl Peers) -> Result<(), Failure> {
        self.progress(carrier, peers)?;
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.next == self.own.sequence.actions().len()
    }

    fn step(&self) -> usize {
        let next = self.own.sequence.actions().get(self.next);
        let next = next.map(|action| action.step as usize);
        self.helping.or(next).unwrap_or(0)
    }

    /// A worker has other ranks to run: receivers do without its help.
    fn wants_help(&self, _: &RankMemory<'_, 'r>) -> bool {
        false
    }

    /// No partner can be missing: the schedule was proved free of deadlocks before the run.
    fn check_partners(
        &mut self,
        _: &mut RankMemory<'_, 'r>,
        _: &impl Peers,
        _: u64,
    ) -> Result<bool, Failure> {
        Ok(false)
    }

    fn timeout_error(&self) -> Error {
        let i = self.awaited_step;
        let step = &self.program.steps[i];
        TransferAt::of(self.rank, i, step).timeout(step.name())
    }
}
