//! Short messages that do not wait for their receivers.
//!
//! Where ranks share cores, a sender that waits for its receiver gives up its core twice: once for the receiver to run, once to go on. A short
//! message may as well be put down where the receiver finds it (the eager protocol, as message passing libraries call it): one buffer for
//! each direction between two partners, free again when its message has been taken in.
//!
//! Only the wall-clock profits. What a schedule means stays what the rules of time say, so
//! * a schedule is run like that only if it cannot deadlock when everybody waits: it is proved before;
//! * the model clock, to which both ends of a transfer contribute, is carried by a repetition of its own, in which everybody waits.

use super::element::Element;
use super::program::Program;
use super::transfer::{INLINE_BYTES, Slots};
use crate::schedule::Schedule;
use crate::simulate::Prepared;

/// Longest message where ranks share cores: switching to another rank takes about as long as copying this twice.
pub(crate) const LONGEST_CROWDED: usize = 8 << 10;
/// Longest message where every rank has a core: beyond this the second copy takes longer than the answer.
const LONGEST_ALONE: usize = 1 << 10;
/// Most memory for all buffers of a run.
const MOST_BYTES: usize = 64 << 20;

/// The buffers of a run.
#[derive(Debug)]
pub(super) struct Eager {
    pub(super) slots: Slots,
    /// For each rank and step, the slot of the message that it sends.
    slot: Vec<Vec<u32>>,
}

impl Eager {
    /// Buffers for `schedule`, unless a message is long, or it could deadlock. `crowded` says whether ranks share cores.
    pub(super) fn of<T: Element>(
        schedule: &Schedule,
        program: &Program<'_>,
        overlap: bool,
        crowded: bool,
    ) -> Option<Eager> {
        let longest = if crowded {
            LONGEST_CROWDED
        } else {
            LONGEST_ALONE
        };
        let bytes = |elements: usize| elements.saturating_mul(size_of::<T>());
        let sends = || schedule.programs().iter().flatten().filter(|s| s.is_send());
        if sends().any(|s| bytes(s.len()) > longest) {
            return None;
        }
        Prepared::new(schedule, overlap).ok()?;
        // The longest message of each lane, in lines of memory.
        let mut lines = vec![[0u32; 2]; program.wires.len()];
        let lane = |rank: usize, i: usize| {
            let program = &program.ranks[rank];
            let peer = program.steps[i]
                .peer()
                .filter(|_| program.steps[i].is_send())?;
            Some((program.wire[i] as usize, usize::from(rank > peer)))
        };
        for (rank, steps) in schedule.programs().iter().enumerate() {
            for (i, step) in steps.iter().enumerate() {
                if let Some((wire, way)) = lane(rank, i)
                    && bytes(step.len()) > INLINE_BYTES
                {
                    let needed = Slots::lines(bytes(step.len()));
                    lines[wire][way] = lines[wire][way].max(needed);
                }
            }
        }
        let mut first = vec![[0u32; 2]; lines.len()];
        let mut end = 0u32;
        for (lines, first) in lines.iter().flatten().zip(first.iter_mut().flatten()) {
            *first = end;
            end = end.checked_add(*lines)?;
        }
        if Slots::bytes(end) > MOST_BYTES {
            return None;
        }
        let slot_of = |rank, i| lane(rank, i).map_or(0, |(wire, way)| first[wire][way]);
        let slots_of =
            |(rank, steps): (usize, &Vec<_>)| (0..steps.len()).map(|i| slot_of(rank, i)).collect();
        Some(Eager {
            slots: Slots::new(end),
            slot: schedule
                .programs()
                .iter()
                .enumerate()
                .map(slots_of)
                .collect(),
        })
    }

    /// The slot of the message that step `i` of `rank` sends.
    #[inline]
    pub(super) fn slot(&self, rank: usize, i: usize) -> u32 {
        self.slot[rank][i]
    }
}
