//! A printable table of the circulant schedules of all ranks, laid out as in the paper.
//!
//! One column per rank, starting with the root. The rows are the ranks, the base blocks, the rounds
//! of the receive schedule and the rounds of the send schedule. A bar stands before each rank that
//! is a skip. The root receives no block; its base block is printed as 0.

use std::fmt;

use serde::Serialize;

use super::schedule::Circulant;
use super::tables::Tables;
use crate::error::{Error, Result};

/// The schedules of all ranks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Table {
    /// Number of ranks, `p`.
    pub ranks: usize,
    /// `skip[0]` to `skip[q]`, which is `p`.
    pub skips: Vec<usize>,
    /// Base block of each rank, 0 for the root.
    pub baseblocks: Vec<usize>,
    /// Receive schedules: `recv[round][rank]`.
    pub recv: Vec<Vec<i8>>,
    /// Send schedules: `send[round][rank]`.
    pub send: Vec<Vec<i8>>,
}

/// Maximum number of columns: a wider table is unreadable.
const MAX_RANKS: usize = 1 << 20;

impl Table {
    /// The schedules over `ranks` ranks, in `O(p log p)` time and memory.
    pub fn new(ranks: usize) -> Result<Table> {
        if ranks == 0 || ranks > MAX_RANKS {
            return Err(Error::usage(format!(
                "a table of the schedules of {ranks} ranks: it can have 1 to {MAX_RANKS}"
            )));
        }
        let graph = Circulant::new(ranks);
        let q = graph.rounds();
        let Tables { recv, send } = Tables::new(&graph);
        let rows = |table: &[i8]| -> Vec<Vec<i8>> {
            (0..q)
                .map(|k| (0..ranks).map(|r| table[r * q + k]).collect())
                .collect()
        };
        Ok(Table {
            ranks,
            skips: graph.skips().to_vec(),
            baseblocks: std::iter::once(0)
                .chain((1..ranks).map(|r| graph.baseblock(r)))
                .collect(),
            recv: rows(&recv),
            send: rows(&send),
        })
    }

    fn row<T: fmt::Display>(
        &self,
        f: &mut fmt::Formatter<'_>,
        label: &str,
        row: &[T],
    ) -> fmt::Result {
        let width = (self.ranks - 1).to_string().len().max(2);
        write!(f, "{label:13}")?;
        let mut skips = self.skips.iter().peekable();
        for (r, number) in row.iter().enumerate() {
            let bar = skips.next_if(|&&s| s == r).map_or(" ", |_| " |");
            write!(f, "{bar}{number:>width$}")?;
        }
        writeln!(f)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranks: Vec<usize> = (0..self.ranks).collect();
        self.row(f, "Process r", &ranks)?;
        self.row(f, "Baseblock", &self.baseblocks)?;
        for (label, rounds) in [("Recv schedule", &self.recv), ("Send schedule", &self.send)] {
            for (k, round) in rounds.iter().enumerate() {
                self.row(f, if k == 0 { label } else { "" }, round)?;
            }
        }
        Ok(())
    }
}
