//! The circulant schedules of all ranks, for uses that need all of them at once.

use std::ops::Range;

use super::schedule::Circulant;

/// Receive and send schedules of all `p` ranks of a graph, `p q` bytes each; `q` is the number of
/// rounds in a phase.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tables {
    /// Receive schedules: rank `r` has `recv[r * q + k]` in round `k`.
    pub recv: Vec<i8>,
    /// Send schedules: rank `r` has `send[r * q + k]` in round `k`.
    pub send: Vec<i8>,
}

impl Tables {
    /// Computes the schedules of `graph`, in `O(p log p)` time.
    pub fn new(graph: &Circulant) -> Tables {
        let mut tables = Tables::default();
        tables.construct(graph);
        tables
    }

    /// The schedules of `ranks` alone: the first of them has the first `q` numbers of each table.
    pub(crate) fn of(graph: &Circulant, ranks: Range<usize>) -> Tables {
        let mut tables = Tables::default();
        tables.fill(graph, ranks);
        tables
    }

    /// As [`Tables::new`], reusing the memory of this table.
    pub fn construct(&mut self, graph: &Circulant) {
        self.fill(graph, 0..graph.ranks());
    }

    fn fill(&mut self, graph: &Circulant, ranks: Range<usize>) {
        let q = graph.rounds();
        for table in [&mut self.recv, &mut self.send] {
            table.clear();
            table.resize(ranks.len() * q, 0);
        }
        for (column, r) in ranks.enumerate() {
            graph.recv_into(r, &mut self.recv[column * q..][..q]);
            graph.send_into(r, &mut self.send[column * q..][..q]);
        }
    }
}
