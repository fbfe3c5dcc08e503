//! The circulant schedules of all ranks, for uses that need all of them at once.

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

    /// As [`Tables::new`], reusing the memory of this table.
    pub fn construct(&mut self, graph: &Circulant) {
        let (p, q) = (graph.ranks(), graph.rounds());
        for table in [&mut self.recv, &mut self.send] {
            table.clear();
            table.resize(p * q, 0);
        }
        for r in 0..p {
            graph.recv_into(r, &mut self.recv[r * q..][..q]);
            graph.send_into(r, &mut self.send[r * q..][..q]);
        }
    }
}
