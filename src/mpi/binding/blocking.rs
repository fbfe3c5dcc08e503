//! Messages by the library's functions that return when a message is done, to compare with.

use super::abi::Handle;
use super::communicator::{Communicator, count, counted};
use crate::error::{Error, Result};
use crate::run::engine::RankMemory;
use crate::schedule::Step;

/// Refuses steps that [`Communicator::messages`] does not perform: all but transfers of one span,
/// of as many elements as the library counts.
pub(super) fn ensure_message(step: &Step) -> Result<()> {
    match step {
        Step::Send { spans, .. } | Step::Recv { spans, .. } if spans.len() == 1 => {
            count(step.len()).map(|_| ())
        }
        _ => Err(Error::usage(format!(
            "{}: only messages of one span each are sent and received by blocking calls",
            step.name()
        ))),
    }
}

impl Communicator {
    /// Performs `steps`, which [`ensure_message`] accepts, one after another on the buffer of this
    /// rank.
    #[inline]
    pub(super) fn messages(
        &self,
        steps: &[Step],
        dtype: Handle,
        memory: &RankMemory<'_, '_>,
    ) -> Result<()> {
        let (mpi, comm) = (self.mpi, self.handle);
        let ignore = mpi.constants.status_ignore();
        for step in steps {
            let (Step::Send {
                to: peer, spans, ..
            }
            | Step::Recv {
                from: peer, spans, ..
            }) = step
            else {
                continue;
            };
            let [span] = spans[..] else { continue };
            let (at, n, peer) = (
                memory.address(span).cast::<std::ffi::c_void>(),
                counted(span.len),
                counted(*peer),
            );
            let (name, code) = if step.is_send() {
                // SAFETY: `n` elements of the datatype, in bounds of the buffer.
                let code =
                    unsafe { (mpi.functions.send)(at.cast_const(), n, dtype, peer, 0, comm) };
                ("MPI_Send", code)
            } else {
                // SAFETY: as above.
                let code = unsafe { (mpi.functions.recv)(at, n, dtype, peer, 0, comm, ignore) };
                ("MPI_Recv", code)
            };
            mpi.ok(name, code)?;
        }
        Ok(())
    }
}
