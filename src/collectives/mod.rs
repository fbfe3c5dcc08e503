//! Collectives as functions on an [`Endpoint`]: every rank computes its own part.
//!
//! Nobody makes a plan for all ranks. Each rank gives only what it knows, and the functions
//! compute, or find out from the others, what it has to do. They run wherever rank programs do, on
//! threads ([`Team::scope`]) and on processes (`World::scope`), and work on spans of the rank's
//! buffer.
//!
//! | function | a rank computes | rounds |
//! |---|---|---|
//! | [`broadcast`], [`reduce`], [`allreduce`] in `n` blocks | its own schedule, `O(log p)` | `ceil(log2 p) + n - 1`; allreduce twice that |
//! | [`allgather`], [`reduce_scatter`] | spans from the sizes of all blocks | `ceil(log2 p)` |
//! | [`allgatherv`], [`reduce_scatterv`] in `n` parts | the receive schedules of `p` roots, `O(p log p)` | `ceil(log2 p) + n - 1` |
//! | [`greedy_reduce`] | each transfer when it is due | as `uni-greedy` and `bi-greedy` |
//! | [`GatherPart`]: gather and scatter | control messages of three numbers | `ceil(log2 p)`, after at most `2 ceil(log2 p) - 1` |
//!
//! The steps that they record are those of the planner of the same name, so all that is known of
//! it holds: proof, model time, bounds. All ranks call a function with the same arguments, except
//! for what is a rank's own. A last send may still be open when a function returns: the endpoint
//! waits for it before it needs the port or writes the span.
//!
//! # Errors
//! All fail as described at [`Endpoint`]; with [`ErrorKind::Usage`] if there are no blocks or not
//! as many as ranks, the root is not one of the ranks, the vector leaves the buffer, or an operator
//! does not commute that has to.
//!
//! # Example
//! ```
//! use oneport::collectives::{allreduce, broadcast};
//! use oneport::run::{Endpoint, Operator, ScopeOptions, Team};
//! let mut buffers: Vec<Vec<i64>> = (0..5).map(|rank| vec![rank; 100]).collect();
//! let options = ScopeOptions::new(Operator::named("sum")?);
//! let outcome = Team::new(5)?.scope(&mut buffers, &options, |e: &mut Endpoint<i64>| {
//!     let rounds = allreduce(e, 0..100, 4)?;
//!     e.data_mut()?[99] = e.rank() as i64;
//!     broadcast(e, 3, 99..100, 1)?;
//!     Ok(rounds)
//! })?;
//! assert_eq!(outcome.results, [2 * (3 + 4 - 1); 5]);
//! assert_eq!((buffers[0][0], buffers[0][99]), (10, 3));
//! # Ok::<(), oneport::Error>(())
//! ```
//!
//! [`Endpoint`]: crate::run::Endpoint
//! [`Team::scope`]: crate::run::Team::scope
//! [`ErrorKind::Usage`]: crate::ErrorKind::Usage

mod circulant;
mod gather;
mod greedy;

pub use circulant::{
    RankSchedule, allgather, allgatherv, allreduce, broadcast, reduce, reduce_scatter,
    reduce_scatterv,
};
pub use gather::GatherPart;
pub use greedy::greedy_reduce;

use crate::error::{Error, Result};
use crate::plan::Request;
use crate::run::{Element, Endpoint, PortModel};

/// What a rank asks a planner for, so that it plans the rank's own part.
fn request<T: Element, P: PortModel>(
    request: Request,
    endpoint: &Endpoint<'_, T, P>,
) -> Result<Request> {
    let request = request.ports(P::PORTS);
    request.validate()?;
    let (rank, commutes) = (endpoint.rank(), endpoint.operator().commutes());
    if request.get_collective().reduces() && !commutes {
        return Err(Error::usage(format!(
            "rank {rank}: the operands are combined in any order, and {} does not commute",
            endpoint.operator().name()
        )));
    }
    Ok(request)
}
