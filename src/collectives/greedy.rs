//! Greedy reduction: every rank computes each transfer when it is due, and performs those that name
//! it.
//!
//! - Source: Lowery & Langou, Algorithm 1 and figure 2 (unidirectional), Algorithm 2
//!   (bidirectional).
//! - Symbols: `p` ranks, `q` segments.

use super::request;
use crate::error::{Error, Result};
use crate::plan::pipeline::{bi_greedy, uni_greedy};
use crate::plan::{Request, Transfer};
use crate::run::{Element, Endpoint, PortModel};
use crate::schedule::{Order, Step};

/// Reduces the vectors of all ranks, which are the first elements of their buffers, to the root of
/// `asked`. Those of the other ranks are overwritten. Returns the number of transfers of this rank.
///
/// The ports are those of the endpoint: unidirectional ranks follow Algorithm 1, which is optimal
/// among all reductions that take the segments in order, bidirectional ones Algorithm 2. Segments,
/// root, costs and bytes of an element come from `asked`, a reduction that is the same on all
/// ranks; its costs decide which ranks are paired.
///
/// # Complexity
/// The time of `uni-greedy` and `bi-greedy`. A rank keeps the states of `p` ranks and no table of
/// transfers; it computes all `q (p - 1)` of them, one after another, and takes part in its own.
///
/// # Errors
/// See [`collectives`](crate::collectives). The operator has to commute.
///
/// # Example
/// ```
/// use oneport::collectives::greedy_reduce;
/// use oneport::run::{Endpoint, Operator, ScopeOptions, Team, Unidirectional};
/// use oneport::{CostModel, Request};
///
/// let cost = CostModel::new(50.0, 1.0).gamma(0.5);
/// let asked = Request::reduce(5, 100).segment_elems(30).cost(cost.clone()).element_bytes(4);
/// let mut options = ScopeOptions::new(Operator::named("sum")?);
/// options.cost = cost;
/// let mut buffers = vec![vec![2i32; 100]; 5];
/// Team::new(5)?.scope(&mut buffers, &options, |e: &mut Endpoint<i32, Unidirectional>| {
///     greedy_reduce(e, &asked)
/// })?;
/// assert_eq!(buffers[0], [10; 100]);
/// # Ok::<(), oneport::Error>(())
/// ```
pub fn greedy_reduce<T: Element, P: PortModel>(
    endpoint: &mut Endpoint<'_, T, P>,
    asked: &Request,
) -> Result<usize> {
    let asked = request(asked.clone(), endpoint)?;
    let (me, ranks) = (endpoint.rank(), endpoint.ranks());
    if asked.ranks() != ranks || asked.get_keep_order() {
        return Err(Error::usage(format!(
            "rank {me}: a greedy reduction of {} ranks{} for {ranks} ranks that combine in any order",
            asked.ranks(),
            if asked.get_keep_order() {
                " in order"
            } else {
                ""
            }
        )));
    }
    let segments = asked.get_segments().spans();
    let real = |v: u32| (v as usize + asked.get_root()) % ranks;
    let mut performed = 0;
    let mut perform = |step: Step| {
        performed += 1;
        endpoint.perform(step, 0)
    };
    let half = |t: &Transfer, sends: bool| {
        let (from, to, segment) = (real(t.from), real(t.to), segments[t.segment as usize]);
        if sends {
            (from == me).then(|| Step::send(to, segment))
        } else {
            let order = Order::by_rank(me, from);
            (to == me).then(|| Step::recv_combine(from, segment, order))
        }
    };
    if P::PORTS.can_relay() {
        // In each round a rank sends before it receives.
        for round in bi_greedy::rounds(ranks, segments.len()) {
            let sends = round.iter().filter_map(|t| half(t, true));
            let receives = round.iter().filter_map(|t| half(t, false));
            sends.chain(receives).try_for_each(&mut perform)?;
        }
    } else {
        for t in uni_greedy::transfers(&asked) {
            let own = half(&t, true).or_else(|| half(&t, false));
            own.into_iter().try_for_each(&mut perform)?;
        }
    }
    Ok(performed)
}
