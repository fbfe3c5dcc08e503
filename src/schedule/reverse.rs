//! Time reversal of a schedule: a broadcast becomes a reduction, a scatter a gather, and vice
//! versa.

use super::{Order, Schedule, Spans, Step};
use crate::error::{Error, Result};

impl Schedule {
    /// The schedule reversed in time: broadcast ↔ reduce, scatter ↔ gather, allgather ↔
    /// reduce_scatter.
    ///
    /// Every program is read from its end. Sends become receives and receives become sends; input
    /// and output are exchanged. Data that was copied to several places is now combined from them:
    /// if the reversed collective reduces, a send becomes a [`Step::RecvCombine`] with
    /// [`Order::by_rank`], and a copy a [`Step::Combine`] with [`Order::MineFirst`]. This keeps the
    /// operand order if every message carries the contributions of consecutive ranks adjacent to
    /// the receiver's. If it does not reduce, combining steps become plain ones. Ports stay, and
    /// reversed rounds still list sends before receives. Shared ports out become ports in, and vice
    /// versa.
    ///
    /// The reverse of a correct schedule need not be correct: a broadcast that sends an element
    /// twice to the same rank becomes a reduction that counts its contribution twice.
    /// [`Schedule::check`] finds that.
    ///
    /// Time and memory are linear in the size of the schedule.
    ///
    /// # Example
    /// ```
    /// use oneport::{Collective, Request};
    /// let reduce = Request::reduce(8, 100).plan("binomial")?;
    /// let broadcast = reduce.reversed()?;
    /// assert_eq!(*broadcast.collective(), Collective::Broadcast { root: 0 });
    /// assert!(broadcast.check().is_correct());
    /// # Ok::<(), oneport::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) if the collective has no reverse: allreduce,
    /// alltoall, multicast and scan.
    pub fn reversed(&self) -> Result<Schedule> {
        self.clone().into_reversed()
    }

    /// As [`Schedule::reversed`], but in place, so that a long schedule is not stored twice.
    #[doc(hidden)]
    pub fn into_reversed(mut self) -> Result<Schedule> {
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
        self.reverse_shared_ports();
        Ok(self)
    }
}

/// The step of `rank` in the reversed schedule; `combine` if the reversed collective reduces.
pub(crate) fn reversed_step(rank: usize, step: Step, combine: bool) -> Step {
    match step {
        Step::Send { to, spans, port } if combine => {
            Step::recv_combine(to, spans, Order::by_rank(rank, to)).on_port(port)
        }
        Step::Send { to, spans, port } => Step::recv(to, spans).on_port(port),
        Step::Recv { from, spans, port }
        | Step::RecvCombine {
            from, spans, port, ..
        } => Step::send(from, spans).on_port(port),
        Step::Copy { src, dst } if combine => Step::combine(dst, src, Order::MineFirst),
        Step::Copy { src, dst } | Step::Combine { src, dst, .. } => Step::copy(dst, src),
    }
}
