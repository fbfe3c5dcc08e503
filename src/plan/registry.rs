//! The registry of algorithms: one row per algorithm, from the list in `plan/mod.rs`.
//!
//! `oneport list`, the table of `docs/algorithms.md`, the generic test suite and the benches all
//! read it. An algorithm of the list is therefore listed, checked, simulated, run and benchmarked
//! like all others.

mod algorithm;
mod composition;
mod multicast;
mod planner;
mod ports;
pub(in crate::plan) mod row;

pub use self::algorithm::Algorithm;
#[doc(hidden)]
pub use self::composition::split_outside;
pub(in crate::plan) use self::composition::{Composition, Scope, Shape};
pub use self::planner::Planned;
pub(in crate::plan) use self::planner::Planner;
pub(in crate::plan) use self::row::{BestRoot, BestSegment, ClosedForm};
pub use self::row::{MadeFor, Nodes, PortModels, Row};
pub(in crate::plan) use super::build::reduction::Reduction;
use super::{ALGORITHMS, COMPOSITIONS};
use crate::error::{Error, Result};
use crate::machine::CostModel;
use crate::schedule::collective::Kind;

static ALL: [Algorithm; ALGORITHMS.len()] = of_rows(ALGORITHMS);
static COMPOSED: [Algorithm; COMPOSITIONS.len()] = of_rows(COMPOSITIONS);

/// The algorithms of these rows, without parts.
const fn of_rows<const N: usize>(rows: &'static [Row]) -> [Algorithm; N] {
    const FIRST: Algorithm = Algorithm::of(&ALGORITHMS[0]);
    let mut all = [FIRST; N];
    let mut i = 0;
    while i < N {
        all[i].row = &rows[i];
        i += 1;
    }
    all
}

/// All algorithms that need no nodes.
pub fn all() -> &'static [Algorithm] {
    &ALL
}

/// The algorithms for one collective.
pub fn of(collective: Kind) -> impl Iterator<Item = &'static Algorithm> {
    ALL.iter().filter(move |a| a.collective == collective)
}

/// The compositions for one collective: algorithms for machines with
/// [nodes](crate::CostModel::nodes) that do one phase after another, each within the nodes or
/// between them and by an algorithm of its own, which they choose by model time.
pub fn compositions(collective: Kind) -> impl Iterator<Item = &'static Algorithm> {
    COMPOSED.iter().filter(move |a| a.collective == collective)
}

/// The candidates for one collective on `ranks` ranks with these costs: the algorithms [`of`] the
/// collective that are made for such machines and, where the costs show nodes, its
/// [`compositions`].
pub fn candidates(
    collective: Kind,
    cost: &CostModel,
    ranks: usize,
) -> impl Iterator<Item = &'static Algorithm> + use<'_> {
    let composed = cost.nodes(ranks).map(|_| compositions(collective));
    of(collective)
        .chain(composed.into_iter().flatten())
        .filter(|a| a.is_made_for(cost))
}

/// Finds the algorithm with this name, by a linear search. One for unidirectional ports that is
/// found so is planned for one bidirectional port, too, where others are at least as fast: on an
/// ideal machine.
///
/// The name of a [composition](compositions) may be followed by the algorithms of its phases, those
/// between nodes and those within: `hier(binomial,chain)`. Each is one name for all phases whose
/// collective has it, or one for each phase, as in `chain+binomial`; `auto` and phases without such
/// an algorithm take the one of the smallest model time.
///
/// ```
/// use oneport::machine::Links;
/// use oneport::{CostModel, Request};
/// let links = Links::from_json(r#"{"levels": [
///     {"groups": [[0, 1, 2], [3, 4, 5]], "alpha": 3, "beta": 1},
///     {"alpha": 20, "beta": 4}]}"#)?;
/// let cost = CostModel::heterogeneous(links)?;
/// let request = Request::broadcast(6, 10).cost(cost.clone());
/// let schedule = request.plan("hier(binomial,binomial)")?;
/// assert_eq!(schedule.simulate(&cost)?.makespan(), (20.0 + 40.0) + 2.0 * (3.0 + 10.0));
/// # Ok::<(), oneport::Error>(())
/// ```
///
/// # Errors
/// An unknown name; the message lists the valid ones.
pub fn find(collective: Kind, name: &str) -> Result<Algorithm> {
    let rows = || of(collective).chain(compositions(collective));
    if let Some(found) = rows().find(|a| a.row.name == name) {
        return Ok(Algorithm {
            is_named: true,
            ..found.clone()
        });
    }
    if let Some((base, parts)) = composition::split(name)
        && let Some(base) = compositions(collective).find(|a| a.row.name == base)
    {
        return composition::parse(base, parts);
    }
    let names: Vec<_> = rows().map(|a| a.row.name).collect();
    Err(Error::usage(if names.is_empty() {
        format!("no algorithm for {} is registered", collective.name())
    } else {
        format!(
            "unknown algorithm '{name}' for {}: choose one of {}",
            collective.name(),
            names.join(", ")
        )
    }))
}
