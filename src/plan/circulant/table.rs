//! A printable table of the circulant schedules of all ranks, or of one, laid out as in the paper.
//!
//! One column per rank, starting with the root. The rows are the ranks, the base blocks, the rounds
//! of the receive schedule and the rounds of the send schedule. A bar stands before each rank that
//! is a skip. The root receives no block; its base block is printed as 0.

use std::fmt;

use serde::Serialize;

use super::schedule::{Circulant, MAX_RANKS};
use super::tables::Tables;
use crate::error::{Error, Result};

/// The schedules of all ranks, or of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Table {
    /// Number of ranks, `p`.
    pub ranks: usize,
    /// The only rank that has a column, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<usize>,
    /// `skip[0]` to `skip[q]`, which is `p`.
    pub skips: Vec<usize>,
    /// Base block of each column's rank, 0 for the root.
    pub baseblocks: Vec<usize>,
    /// Receive schedules: `recv[round][column]`.
    pub recv: Vec<Vec<i8>>,
    /// Send schedules: `send[round][column]`.
    pub send: Vec<Vec<i8>>,
}

/// Makes the table of so many ranks: of all, or of one.
pub type MakeTable = fn(usize, Option<usize>) -> Result<Table>;

/// Maximum number of columns: a wider table is unreadable.
const MAX_COLUMNS: usize = 1 << 20;

impl Table {
    /// The schedules of all `ranks` ranks, in `O(p log p)` time and memory, or of `rank` among
    /// them, in `O(log p)`.
    pub fn new(ranks: usize, rank: Option<usize>) -> Result<Table> {
        let max = if rank.is_some() {
            MAX_RANKS
        } else {
            MAX_COLUMNS
        };
        if ranks == 0 || ranks > max {
            return Err(Error::usage(format!(
                "a table of the schedules of {ranks} ranks: it can have 1 to {max}"
            )));
        }
        if let Some(rank) = rank.filter(|&rank| rank >= ranks) {
            return Err(Error::usage(format!(
                "rank {rank} is not one of {ranks} ranks (numbered from 0)"
            )));
        }
        let graph = Circulant::new(ranks);
        let columns = rank.map_or(0..ranks, |rank| rank..rank + 1);
        let q = graph.rounds();
        let Tables { recv, send } = Tables::of(&graph, columns.clone());
        let rows = |table: &[i8]| -> Vec<Vec<i8>> {
            (0..q)
                .map(|k| table.iter().skip(k).step_by(q).copied().collect())
                .collect()
        };
        let baseblock = |rank| if rank == 0 { 0 } else { graph.baseblock(rank) };
        Ok(Table {
            ranks,
            rank,
            skips: graph.skips().to_vec(),
            baseblocks: columns.map(baseblock).collect(),
            recv: rows(&recv),
            send: rows(&send),
        })
    }

    /// The ranks of the columns.
    fn columns(&self) -> std::ops::Range<usize> {
        self.rank.map_or(0..self.ranks, |rank| rank..rank + 1)
    }

    fn row<T: fmt::Display>(
        &self,
        f: &mut fmt::Formatter<'_>,
        label: &str,
        row: &[T],
    ) -> fmt::Result {
        let width = (self.ranks - 1).to_string().len().max(2);
        write!(f, "{label:13}")?;
        for (r, number) in self.columns().zip(row) {
            let is_skip = self.skips.binary_search(&r).is_ok();
            let bar = if is_skip { " |" } else { " " };
            write!(f, "{bar}{number:>width$}")?;
        }
        writeln!(f)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranks: Vec<usize> = self.columns().collect();
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
