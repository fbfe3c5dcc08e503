//! When the two ends of a transfer start and end: rule 4 of [`crate::rules`].

use super::max_time;
use crate::machine::TransferCost;

/// The two ends of a transfer. A computation takes place at the end [`End::Receiver`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// At the rank that sends.
    Sender,
    /// At the rank that receives.
    Receiver,
}

impl End {
    pub(crate) const BOTH: [End; 2] = [End::Sender, End::Receiver];
}

impl TransferCost {
    /// When a transfer starts at its sender and at its receiver, if rules 1 to 3 let them start at
    /// these times.
    #[inline]
    pub(crate) fn starts(self, sender: f64, receiver: f64) -> [f64; 2] {
        if self.eager {
            [sender, max_time(sender + self.latency, receiver)]
        } else {
            let start = max_time(sender, receiver + self.latency);
            [start, start + self.latency]
        }
    }

    /// How much later than `side` is ready `end` can start because of it, compared with the other
    /// side; `None` if `end` does not wait for it.
    pub(crate) fn lead(self, end: End, side: End) -> Option<f64> {
        match (self.eager, end, side) {
            (true, End::Sender, End::Receiver) => None,
            (false, _, End::Receiver) | (true, End::Receiver, End::Sender) => Some(self.latency),
            _ => Some(0.0),
        }
    }

    /// When it ends there.
    #[inline]
    pub fn ends(self, sender: f64, receiver: f64) -> [f64; 2] {
        self.starts(sender, receiver)
            .map(|start| start + self.port_time)
    }
}
