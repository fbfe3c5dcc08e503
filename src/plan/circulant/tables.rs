//! The schedules of all ranks of a circulant graph, for what needs them all at once.

use super::schedule::Circulant;

/// Receive and send schedules of all ranks of a graph, one after another.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tables {
    /// `recv[r * q + k]`.
    pub recv: Vec<i8>,
    /// `send[r * q + k]`.
    pub send: Vec<i8>,
}

impl Tables {
    /// The schedules of `graph`.
    pub fn new(graph: &Circulant) -> Tables {
        let mut tables = Tables::default();
        tables.construct(graph);
        tables
    }

    /// As [`Tables::new`], in the memory of other tables.
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
