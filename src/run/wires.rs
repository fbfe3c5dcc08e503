//! What all ranks of a scope share: the run's context, and the wires between them.

use super::context::RunContext;
use super::transfer::{Lazy, Wire};
use super::wait::TeamState;
use crate::machine::Linear;

/// What all ranks of a scope share.
#[derive(Debug)]
pub(super) struct ScopeContext<'t> {
    pub(super) run: RunContext<'t>,
    pub(super) state: &'t TeamState,
    pub(super) wires: WireTable,
    /// The cost model as one line, if it is homogeneous.
    pub(super) line: Option<Linear>,
    pub(super) record: bool,
    /// The number of this run in the team's life.
    pub(super) number: u64,
}

/// Wires between all pairs of ranks, made on first use: among thousands of ranks, few pairs ever
/// communicate.
#[derive(Debug)]
pub(super) struct WireTable {
    rows: Vec<Lazy<Box<[Lazy<Wire>]>>>,
}

impl WireTable {
    pub(super) fn new(ranks: usize) -> Self {
        WireTable {
            rows: (0..ranks).map(|_| Lazy::new()).collect(),
        }
    }

    pub(super) fn ranks(&self) -> usize {
        self.rows.len()
    }

    /// The wire between two different ranks.
    pub(super) fn wire(&self, a: usize, b: usize) -> &Wire {
        let (low, high) = (a.min(b), a.max(b));
        let row = self.rows[low].get(|| (low + 1..self.rows.len()).map(|_| Lazy::new()).collect());
        row[high - low - 1].get(Wire::new)
    }
}
