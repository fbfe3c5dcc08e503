//! The executors of all ranks without threads and data: an estimate polls them on virtual cores,
//! and says when their messages arrive.

use super::ahead::{AheadExecutor, RunAhead};
use super::carrier::{Carrier, HalfTransfer};
use super::executor::{Peers, RankExecutor};
use super::options::Clock;
use super::program::Program;
use super::rendezvous::RendezvousExecutor;
use crate::error::Result;
use crate::machine::CostModel;
use crate::run::context::{RunContext, both_copy};
use crate::run::failure::Failure;
use crate::run::transfer::{Combiner, Copying, Due, Received, RecvOp, Sent, Slots};
use crate::run::tuning::DEADLINE;
use crate::schedule::{Schedule, Span, total_len};

/// A schedule prepared for a native run without data.
#[derive(Debug)]
pub struct VirtualRun<'s> {
    program: Program<'s>,
    ahead: Option<RunAhead>,
    context: RunContext<'s>,
}

/// What becomes of the messages of the rank that is polled: when they arrive, and how long its core
/// is busy with them. Each is named by the rank's step, and `peer` is the rank at its other end.
pub trait VirtualCarrier {
    /// Offers a message whose sender waits until it has been taken.
    fn offer(&mut self, step: usize, peer: usize);

    /// Offers a message whose sender does not wait, `copied` if the sender overwrites it.
    fn send(&mut self, step: usize, peer: usize, copied: bool);

    /// Whether no message that has been offered on the lane of this one is still to be taken.
    fn is_free(&mut self, step: usize, peer: usize) -> bool;

    /// Takes the message if it has come; whether it has.
    fn take(&mut self, step: usize, peer: usize) -> bool;

    /// Copies, or `combines`, this number of elements of the rank's buffer.
    fn local(&mut self, elements: usize, combines: bool);
}

/// The executors of all ranks of a [`VirtualRun`].
#[derive(Debug)]
pub struct VirtualRanks<'r>(Executors<'r>);

#[derive(Debug)]
enum Executors<'r> {
    Ahead(Vec<AheadExecutor<'r>>),
    Rendezvous(Vec<RendezvousExecutor<'r>>),
}

impl<'s> VirtualRun<'s> {
    /// Prepares `schedule`, whose ranks share `cores` cores. Senders do not wait if a team could
    /// run the schedule so, and messages of up to `copied` bytes that are overwritten are copied;
    /// for `None` all transfers are rendezvous.
    ///
    /// # Errors
    /// When a step is not sound on its own.
    pub fn new(
        schedule: &'s Schedule,
        cost: &'s CostModel,
        copied: Option<u64>,
        cores: usize,
    ) -> Result<Self> {
        let element_bytes = usize::try_from(schedule.element_bytes()).unwrap_or(usize::MAX);
        let combiner = Combiner::without_data(element_bytes);
        let program = Program::new(schedule, cost.overlaps())?;
        let ahead = copied
            .and_then(|copied| RunAhead::of(schedule, &program, combiner.elements, cost, copied));
        let copying = Copying {
            shared: both_copy(schedule.ranks(), cores),
            streams_from: usize::MAX,
        };
        let (ports, native) = (schedule.ports(), Clock::Native);
        let context = RunContext::new(combiner, cost, ports, native, DEADLINE, copying);
        Ok(VirtualRun {
            program,
            ahead,
            context,
        })
    }

    /// Whether senders do not wait for their receivers.
    pub fn runs_ahead(&self) -> bool {
        self.ahead.is_some()
    }

    /// Whether an idle sender helps to copy a long message.
    pub fn both_copy(&self) -> bool {
        self.context.copying.shared
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.program.ranks.len()
    }

    /// Number of lanes, each of which has one message at a time.
    pub fn lanes(&self) -> usize {
        2 * self.program.wires.len()
    }

    /// The lane on which the message of a step of `rank`, half of a transfer with `peer`, travels.
    pub fn lane(&self, rank: usize, step: usize, peer: usize) -> usize {
        let program = &self.program.ranks[rank];
        let up = (peer > rank) == program.steps[step].is_send();
        2 * program.wire[step] as usize + usize::from(up)
    }

    /// The executors.
    pub fn executors(&self) -> VirtualRanks<'_> {
        let (program, context) = (&self.program, &self.context);
        let ranks = 0..program.ranks.len();
        VirtualRanks(match &self.ahead {
            Some(ahead) => {
                let executor = |rank| AheadExecutor::new(rank, ahead, program, context);
                Executors::Ahead(ranks.map(executor).collect())
            }
            None => {
                let executor = |rank| RendezvousExecutor::new(rank, program, context, None);
                Executors::Rendezvous(ranks.map(executor).collect())
            }
        })
    }
}

impl VirtualRanks<'_> {
    /// Goes back to the beginning of all programs.
    pub fn begin(&mut self) {
        match &mut self.0 {
            Executors::Ahead(all) => all.iter_mut().for_each(AheadExecutor::begin),
            Executors::Rendezvous(all) => all.iter_mut().for_each(RendezvousExecutor::begin),
        }
    }

    /// Lets `rank` make as much progress as possible, and returns whether it has made any. It fails
    /// as [`Run::on`](crate::run::Run::on).
    pub fn poll(&mut self, rank: usize, virtual_carrier: &mut dyn VirtualCarrier) -> Result<bool> {
        let mut carrier = DataLess {
            virtual_carrier,
            has_progressed: false,
        };
        let polled = match &mut self.0 {
            Executors::Ahead(all) => all[rank].poll(&mut carrier, &()),
            Executors::Rendezvous(all) => all[rank].poll(&mut carrier, &()),
        };
        polled.map_err(|failure| match failure {
            Failure::Own(error) => error,
            Failure::Aborted => unreachable!("no message was refused"),
        })?;
        Ok(carrier.has_progressed)
    }

    /// Whether `rank` has finished its program.
    pub fn is_done(&self, rank: usize) -> bool {
        match &self.0 {
            Executors::Ahead(all) => all[rank].is_done(),
            Executors::Rendezvous(all) => all[rank].is_done(),
        }
    }
}

/// The messages of one poll.
struct DataLess<'c> {
    virtual_carrier: &'c mut dyn VirtualCarrier,
    has_progressed: bool,
}

/// Model times mean nothing here: all messages may start at 0.
impl<'r> Carrier<'r> for DataLess<'_> {
    fn open_send(&mut self, transfer: HalfTransfer<'r>, _: f64) {
        self.has_progressed = true;
        self.virtual_carrier.offer(transfer.step, transfer.peer);
    }

    fn poll_send(&mut self, transfer: HalfTransfer<'r>, _: Combiner<'_>) -> Sent {
        if !self.is_free(transfer) {
            return Sent::Waiting;
        }
        self.has_progressed = true;
        Sent::Done(0.0)
    }

    fn open_receive(&mut self, _: HalfTransfer<'r>) {}

    fn receive(&mut self, transfer: HalfTransfer<'r>, _: RecvOp<'_>, due: Due) -> Received {
        if !self.virtual_carrier.take(transfer.step, transfer.peer) {
            return Received::Nothing;
        }
        self.has_progressed = true;
        Received::Done(due.ends(0.0)[1])
    }

    fn is_free(&mut self, transfer: HalfTransfer<'r>) -> bool {
        self.virtual_carrier.is_free(transfer.step, transfer.peer)
    }

    fn send(&mut self, transfer: HalfTransfer<'r>, _: f64, copy_to: Option<(&Slots, u32)>) {
        self.has_progressed = true;
        let (step, peer) = (transfer.step, transfer.peer);
        self.virtual_carrier.send(step, peer, copy_to.is_some());
    }

    fn local(&mut self, dst: &[Span], _: &[Span], op: RecvOp<'_>) {
        self.has_progressed = true;
        let combines = matches!(op, RecvOp::Reduce(..));
        self.virtual_carrier.local(total_len(dst), combines);
    }
}

/// Ranks are polled anyway.
impl Peers for () {
    fn wake(&self, _: usize) {}

    fn has_left(&self, _: usize, _: u64) -> bool {
        false
    }
}
