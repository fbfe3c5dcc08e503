//! Time reversal: a broadcast becomes a reduction, a scatter a gather, and the other way round.

use super::{Order, Schedule, Spans, Step};
use crate::error::{Error, Result};

impl Schedule {
    /// The schedule run backwards: broadcast ↔ reduce, scatter ↔ gather, allgather ↔
    /// reduce_scatter.
    ///
    /// Every program is read from its end; sends become receives and receives sends, input and
    /// output change places. What was copied into several places is combined from them: where
    /// the reversed collective reduces, a send becomes a [`Step::RecvCombine`] and a copy a [`Step::Combine`], with [`Order::by_rank`]: operand order is kept where every message carries
    /// the contributions of consecutive ranks next to the receiver's. Reversed rounds still list
    /// sends before receives.
    ///
    /// # Errors
    /// When the collective has no reverse, or the schedule holds a step that has none (a
    /// combination in a gather).
    pub fn reversed(&self) -> Result<Schedule> {
        self.clone().into_reversed()
    }

    /// As [`Schedule::reversed`], in place: long schedules are not held twice.
    pub(crate) fn into_reversed(mut self) -> Result<Schedule> {
        self.collective = self.collective.reversed().ok_or_else(|| {
            Error::usage(format!(
                "a schedule for {} has no reverse",
                self.collective.kind().name()
            ))
        })?;
        let combine = self.collective.kind().reduces();
        for l in &mut self.layout {
            std::mem::swap(&mut l.input, &mut l.output);
        }
        for (rank, program) in self.programs.iter_mut().enumerate() {
            program.reverse();
            for step in program {
                let forwards = std::mem::replace(step, Step::send(0, Spans::new()));
                *step = reversed_step(rank, forwards, combine);
            }
        }
        Ok(self)
    }
}

/// What a step of `rank` becomes when its schedule is run backwards; `combine` where the reversed
/// collective reduces.
pub(crate) fn reversed_step(rank: usize, step: Step, combine: bool) -> Step {
    match step {
        Step::Send { to, spans, port } if combine => Step::RecvCombine {
            from: to,
            spans,
            order: Order::by_rank(rank, to),
            port,
        },
        Step::Send { to, spans, port } => Step::Recv {
            from: to,
            spans,
            port,
        },
        Step::Recv { from, spans, port }
        | Step::RecvCombine {
            from, spans, port, ..
        } => Step::Send {
            to: from,
            spans,
            port,
        },
        Step::Copy { src, dst } if combine => Step::combine(dst, src, Order::MineFirst),
        Step::Copy { src, dst } | Step::Combine { src, dst, .. } => Step::copy(dst, src),
    }
}
