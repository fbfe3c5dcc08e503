//! What carries the messages of rank programs: memory that ranks share, or an MPI library.

use std::fmt;
use std::time::Instant;

use super::failure::{Failure, TransferAt, port_busy};
use super::transfer::{Combiner, Due, Lazy, RankMemory, Received, RecvOp, Sent, Wire};
use super::tuning::CACHED_PARTNERS;
use super::wait::{Missed, Precision, Stop, TeamState, Waiter};
use crate::error::Error;
use crate::schedule::Span;

/// The buffer of one rank of a scope.
pub(crate) type ScopeBuffer<'t> = RankMemory<'t, 't>;

/// How a rank program reaches the other ranks. At most one send and one receive are open.
///
/// Unlike the [carrier](super::exec::Carrier) of a stored program, it does not own the rank's
/// buffer, which the program may read while a send is open. What an open send reads is not written
/// meanwhile.
pub(crate) trait Link<'t>: fmt::Debug {
    /// Opens a send to another rank. `ready` is the model time from which it may start.
    fn open_send(
        &mut self,
        memory: &ScopeBuffer<'t>,
        to: usize,
        spans: &[Span],
        ready: f64,
    ) -> Result<(), Error>;

    /// The state of the open send.
    fn poll_send(&mut self, memory: &ScopeBuffer<'t>, combiner: Combiner<'_>) -> Sent;

    /// Receives the message of another rank, if it has come.
    fn receive(
        &mut self,
        memory: &mut ScopeBuffer<'t>,
        from: usize,
        spans: &[Span],
        op: RecvOp<'_>,
        due: Due,
    ) -> Received;

    /// Waits a little. It fails when the deadline has passed, or the partner can never come.
    fn wait(&mut self, memory: &ScopeBuffer<'t>, waits: Waits) -> Result<(), Failure>;

    /// To be called after progress: the next wait starts from the beginning.
    fn progressed(&mut self);

    /// Waits for all ranks to call it, as the next step, which `at` names.
    fn barrier(&mut self, at: TransferAt) -> Result<(), Failure>;

    /// Waits until `instant`: a paced clock says so.
    fn pace(&mut self, instant: Instant, precision: Precision);

    /// Ends the program, none of whose transfers is open.
    fn settle(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// The link of a rank. That between threads is called directly: a message of a few bytes takes as
/// long as some indirect calls.
#[derive(Debug)]
pub(crate) enum AnyLink<'t> {
    Team(TeamLink<'t>),
    #[cfg(feature = "mpi")]
    Other(Box<dyn Link<'t> + 't>),
}

/// Calls a method of the link of a rank.
macro_rules! call {
    ($any:expr, $link:ident => $call:expr) => {
        match &mut $any {
            $crate::run::link::AnyLink::Team($link) => $call,
            #[cfg(feature = "mpi")]
            $crate::run::link::AnyLink::Other($link) => $call,
        }
    };
}
pub(super) use call;

/// What a rank waits for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waits {
    pub(crate) at: TransferAt,
    /// The name of the step.
    pub(crate) what: &'static str,
    /// Whether it is a send through the rank's only port.
    pub(crate) holds_port: bool,
}

impl Waits {
    pub(crate) fn timeout(self) -> Error {
        self.at.timeout(self.what)
    }

    /// The error when the partner sends to this rank at the same time, each through its only port.
    pub(crate) fn head_on(self) -> Error {
        port_busy(self.at.rank, 0, self.at.step + 1)
    }

    fn sends(self) -> bool {
        self.what == "send"
    }
}

/// Ranks that are threads of a team.
#[derive(Debug)]
pub(crate) struct TeamLink<'t> {
    rank: usize,
    /// The number of this run in the team's life.
    run: u64,
    state: &'t TeamState,
    waiter: Waiter<'t>,
    wires: &'t WireTable,
    /// A cache of wires to recent partners, indexed by the partner's rank modulo their number.
    partners: [Option<(usize, &'t Wire)>; CACHED_PARTNERS],
}

impl<'t> TeamLink<'t> {
    pub(super) fn new(
        waiter: Waiter<'t>,
        state: &'t TeamState,
        wires: &'t WireTable,
        (rank, run): (usize, u64),
    ) -> Self {
        TeamLink {
            rank,
            run,
            state,
            waiter,
            wires,
            partners: [None; CACHED_PARTNERS],
        }
    }

    /// The wire to `peer`, another rank.
    #[inline]
    fn wire(&mut self, peer: usize) -> &'t Wire {
        match self.partners[peer % CACHED_PARTNERS] {
            Some((known, wire)) if known == peer => wire,
            _ => {
                let wire = self.wires.wire(self.rank, peer);
                self.partners[peer % CACHED_PARTNERS] = Some((peer, wire));
                wire
            }
        }
    }

    /// Fails if the partner can never come.
    #[cold]
    fn check_partner(&self, waits: Waits) -> Result<(), Failure> {
        let peer = waits.at.peer;
        let wire = self.wires.wire(self.rank, peer);
        // A rank that sees that the partner has left, or has offered a message, also sees what the
        // partner did before that. So both conditions are evaluated only afterwards.
        let waiting = || matches!(wire.lane(self.rank, peer).sent(), Sent::Waiting);
        let offered = || wire.lane(peer, self.rank).is_offered();
        if self.state.has_left(peer, self.run) {
            let nothing = if waits.sends() { waiting() } else { !offered() };
            if nothing {
                return Err(waits.at.partner_left().into());
            }
        }
        if waits.holds_port && offered() && waiting() {
            return Err(waits.head_on().into());
        }
        Ok(())
    }
}

impl<'t> Link<'t> for TeamLink<'t> {
    #[inline]
    fn open_send(
        &mut self,
        memory: &ScopeBuffer<'t>,
        to: usize,
        spans: &[Span],
        ready: f64,
    ) -> Result<(), Error> {
        let wire = self.wire(to);
        memory.lend(wire, to, spans, ready);
        self.state.wake(to);
        Ok(())
    }

    #[inline]
    fn poll_send(&mut self, memory: &ScopeBuffer<'t>, combiner: Combiner<'_>) -> Sent {
        memory.poll_send(0, combiner)
    }

    #[inline]
    fn receive(
        &mut self,
        memory: &mut ScopeBuffer<'t>,
        from: usize,
        spans: &[Span],
        op: RecvOp<'_>,
        due: Due,
    ) -> Received {
        let wire = self.wire(from);
        let received = memory.receive(wire, from, spans, op, due);
        if let Received::Done(_) = received {
            self.state.wake(from);
        }
        received
    }

    #[inline]
    fn wait(&mut self, memory: &ScopeBuffer<'t>, waits: Waits) -> Result<(), Failure> {
        if let Err(stop) = self.waiter.pause(None) {
            return Err(self.waiter.failure(stop, || waits.timeout()));
        }
        if self.waiter.long() {
            self.check_partner(waits)?;
        }
        let sends = waits.sends();
        let lane = self.wire(waits.at.peer).lane(waits.at.peer, self.rank);
        self.waiter
            .spin(|| (!sends && lane.is_offered()) || memory.send_has_progress(0));
        Ok(())
    }

    #[inline]
    fn progressed(&mut self) {
        self.waiter.progressed();
    }

    fn barrier(&mut self, at: TransferAt) -> Result<(), Failure> {
        let toward = |peer| TransferAt { peer, ..at };
        match self.state.barrier(&mut self.waiter) {
            Ok(()) => Ok(()),
            Err(Missed::Aborted) => {
                let error = || at.timeout("barrier");
                Err(self.waiter.failure(Stop::Aborted, error))
            }
            Err(Missed::Late(peer)) => Err(toward(peer).timeout("barrier").into()),
            Err(Missed::Left(peer)) => Err(toward(peer).partner_left().into()),
        }
    }

    fn pace(&mut self, instant: Instant, precision: Precision) {
        self.state.pace(self.rank, instant, precision);
    }
}

/// Wires between all pairs of ranks, made on first use: among thousands of ranks, few pairs ever
/// communicate.
#[derive(Debug)]
pub(super) struct WireTable {
    rows: Vec<Lazy<Box<[Lazy<Wire>]>>>,
}

impl WireTable {
    pub(super) fn new(ranks: usize) -> Self {
        WireTable {
            rows: (0..ranks).map(|_| Lazy::new()).collect(),
        }
    }

    /// The wire between two different ranks.
    fn wire(&self, a: usize, b: usize) -> &Wire {
        let (low, high) = (a.min(b), a.max(b));
        let row = self.rows[low].get(|| (low + 1..self.rows.len()).map(|_| Lazy::new()).collect());
        row[high - low - 1].get(Wire::new)
    }
}
