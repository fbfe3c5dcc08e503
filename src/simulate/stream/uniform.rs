//! Uniform programs, in which all ranks do the same: two ranks that exchange with each other have
//! the times of all.

use super::Timed;
use crate::machine::Ports;
use crate::schedule::collective::Collective;
use crate::schedule::{DynScheduleSource, Layout, ScheduleSource, Step};

/// Two ranks with the program of rank 0, for [uniform](ScheduleSource::is_uniform) programs. On
/// ports that cannot relay, where half of the ranks receive first, rank 1 does.
pub(super) struct Two<'a>(pub(super) &'a dyn DynScheduleSource);

impl<'a> ScheduleSource for Two<'a> {
    type Program<'b>
        = UniformSide<'a>
    where
        Self: 'b;

    fn ranks(&self) -> usize {
        2
    }

    fn ports(&self) -> Ports {
        self.0.ports()
    }

    fn collective(&self) -> Collective {
        self.0.collective()
    }

    fn layout_of(&self, _rank: usize) -> Layout {
        self.0.layout_of(0)
    }

    fn buffer_len(&self, _rank: usize) -> usize {
        self.0.buffer_len(0)
    }

    fn program_of(&self, rank: usize) -> Self::Program<'_> {
        UniformSide {
            steps: self.0.program_of(0),
            peer: 1 - rank,
            receives_first: rank == 1 && !self.0.ports().can_relay(),
            sent: None,
        }
    }
}

/// The program of one of the two.
pub(super) struct UniformSide<'a> {
    steps: Box<dyn Iterator<Item = Step> + 'a>,
    peer: usize,
    receives_first: bool,
    /// The send that comes after the receive of its round.
    sent: Option<Step>,
}

impl Iterator for UniformSide<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        if let Some(sent) = self.sent.take() {
            return Some(sent);
        }
        let step = self.steps.next()?.with_peer(|_| self.peer);
        if !(self.receives_first && step.is_send()) {
            return Some(step);
        }
        match self.steps.next() {
            None => Some(step),
            Some(received) => {
                self.sent = Some(step);
                Some(received.with_peer(|_| self.peer))
            }
        }
    }
}

/// The result of `ranks` ranks, from that of two.
pub(super) fn of_all(timed: Timed, ranks: usize) -> Timed {
    Timed {
        rank_times: vec![timed.rank_times[0]; ranks],
        messages: timed.messages / 2 * ranks,
        elements: (timed.elements / 2).saturating_mul(ranks),
        // The same on all ranks.
        time: timed.time,
        rounds: timed.rounds,
    }
}
