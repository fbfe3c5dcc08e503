//! Time reversal: a broadcast becomes a reduction, a scatter a gather, and the other way round.

use super::{Layout, Order, Schedule, Step};
use crate::error::{Error, Result};

impl Schedule {
    /// The schedule run backwards: broadcast ↔ reduce, scatter ↔ gather, allgather ↔ reduce_scatter.
    ///
    /// Every program is read from its end; sends become receives and receives sends, input and output change places. What
    /// was copied into several places is combined from them: where the reversed collective reduces, a send becomes a
    /// [`Step::RecvCombine`] and a copy a [`Step::Combine`], with [`Order::by_rank`]: operand order is kept where every message carries
    /// the contributions of consecutive ranks next to the receiver's. Reversed rounds still list sends before receives.
    ///
    /// # Errors
    /// When the collective has no reverse, or the schedule holds a step that has none (a combination in a gather).
    pub fn reversed(&self) -> Result<Schedule> {
        let collective = self.collective().reversed().ok_or_else(|| {
            Error::usage(format!(
                "a schedule for {} has no reverse",
                self.collective().kind().name()
            ))
        })?;
        let combine = collective.kind().reduces();
        let layout = self
            .layout()
            .iter()
            .map(|l| Layout {
                len: l.len,
                input: l.output.clone(),
                output: l.input.clone(),
            })
            .collect();
        let programs = self
            .programs()
            .iter()
            .enumerate()
            .map(|(rank, program)| {
                program
                    .iter()
                    .rev()
                    .map(|step| reversed_step(rank, step, combine))
                    .collect()
            })
            .collect();
        Schedule::new(self.ports(), collective, layout, programs)
    }
}

fn reversed_step(rank: usize, step: &Step, combine: bool) -> Step {
    match step.clone() {
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
