//! The registry's rows of a tree: one for the gather, one for the scatter.

use super::{GatherProblem, GatherTree};
use crate::plan::prelude::*;
use crate::simulate;

pub(super) type PlanTree = fn(&GatherProblem) -> Result<GatherTree>;

pub(super) fn gather(request: &Request, tree: PlanTree) -> Result<Schedule> {
    planned(request, &request.cost, tree, GatherTree::gather)
}

/// The schedule along the tree for these costs; where copies overlap communication, that along the
/// tree for free copies if it is faster: trees are planned for copies that overlap nothing.
fn planned(
    request: &Request,
    tree_cost: &CostModel,
    tree: PlanTree,
    along: fn(&GatherTree, &[usize], Ports) -> Result<Schedule>,
) -> Result<Schedule> {
    let plan = |cost: CostModel| {
        let tree = tree(&GatherProblem::of(&request.clone().cost(cost))?)?;
        along(&tree, &request.block_sizes(), request.ports)
    };
    let schedule = plan(tree_cost.clone())?;
    if !request.cost.overlaps() {
        return Ok(schedule);
    }
    let bytes = request.element_bytes;
    let time = |schedule: &Schedule| -> Result<f64> {
        Ok(simulate::stream(schedule, &request.cost, bytes, |_| ())?.time)
    };
    let free = plan(tree_cost.clone().gamma_copy(0.0))?;
    Ok(if time(&free)? < time(&schedule)? {
        free
    } else {
        schedule
    })
}

/// Along links the other way: a scatter's messages go where a gather's come from.
pub(super) fn scatter(request: &Request, tree: PlanTree) -> Result<Schedule> {
    let reversed = request.cost.clone().reversed_links()?;
    planned(request, &reversed, tree, GatherTree::scatter)
}

/// The time of the tree, where it is that of the schedule: copies overlap nothing, links are the
/// same in both directions.
pub(super) fn time(request: &Request, tree: PlanTree) -> Option<f64> {
    let problem = GatherProblem::of(request).ok()?;
    Some(problem.time(&tree(&problem).ok()?))
}

pub(super) fn table_of_pairs(ranks: usize) -> u64 {
    const BYTES: u64 = 6;
    (ranks as u64).saturating_pow(2).saturating_mul(BYTES)
}

/// Rows for the gather and the scatter by the same tree: their names, the algorithm's name, the
/// function that makes the tree, and fields of [`Row`](crate::plan::registry::Row).
macro_rules! tree_rows {
    ($gather:ident, $scatter:ident: $name:literal, $tree:path { $($field:ident: $value:expr),* $(,)? }) => {
        pub(in crate::plan) const $gather: crate::plan::registry::Row =
            crate::plan::registry::Row {
                ports: crate::plan::registry::PortModels::Each,
                transfers: |p, _| p,
                formula: crate::plan::registry::ClosedForm::OfPlan(|request| {
                    crate::plan::gather::row::time(request, $tree)
                }),
                $($field: $value,)*
                ..crate::plan::registry::Row {
                    best_root: crate::plan::registry::BestRoot::Search,
                    ..crate::plan::registry::row::new($name, crate::Kind::Gather, |request| {
                        crate::plan::gather::row::gather(request, $tree)
                    })
                }
            };
        pub(in crate::plan) const $scatter: crate::plan::registry::Row =
            crate::plan::registry::Row {
                collective: crate::Kind::Scatter,
                planner: crate::plan::registry::Planner::Direct(|request| {
                    crate::plan::gather::row::scatter(request, $tree)
                }),
                ..$gather
            };
    };
}
pub(super) use tree_rows;
