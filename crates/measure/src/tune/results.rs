//! What a sweep returns: its rows, and the library's own function beside them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Summary;
use crate::interleave::MeasuredRun;
use oneport::run::Processes;

/// One measured combination of vector size, algorithm and segment size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Size of the vector.
    pub bytes: u64,
    /// The algorithm's name.
    pub algorithm: String,
    /// Bytes of a segment.
    pub segment: u64,
    /// Number of segments; the last may be smaller.
    pub segments: usize,
    /// The measured time, in nanoseconds.
    #[serde(flatten)]
    pub wall: Summary,
    /// The time in the cost model, in its unit; NaN for a library's own function.
    pub model_time: f64,
    /// Whether this is the fastest of all rows of its vector size.
    pub best: bool,
    /// Whether this is the fastest of its vector size and algorithm.
    pub best_segment: bool,
    /// Whether the repetitions establish that the best row of this vector size is at least as fast.
    /// For the best row itself: whether they establish that against the other segment sizes of its
    /// algorithm and the best of every other algorithm.
    pub settled: bool,
}

/// The library's own function at one vector size, interleaved with the best of each algorithm. It
/// is never the best: it is no algorithm of this crate.
#[derive(Debug, Clone, PartialEq)]
pub struct LibraryRow {
    /// Its row, with the function in place of an algorithm.
    pub trial: Trial,
    /// The first wrong element, if there is one.
    pub error: Option<String>,
}

impl LibraryRow {
    pub(super) fn new(bytes: u64, run: &MeasuredRun) -> Option<LibraryRow> {
        let trial = Trial {
            bytes,
            algorithm: run.function.unwrap_or_default().into(),
            segment: bytes,
            segments: 1,
            wall: Summary::of(&run.times())?,
            model_time: f64::NAN,
            best: false,
            best_segment: true,
            settled: true,
        };
        Some(LibraryRow {
            trial,
            error: run.error.clone(),
        })
    }
}

/// Result of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct TuningResult {
    /// Rows by size, algorithm and segment size.
    pub rows: Vec<Trial>,
    /// By size: the library's own function, if there is a library.
    pub library: Vec<LibraryRow>,
    /// Where the times come from: these processes, or threads of this process if there are none.
    pub processes: Option<Processes>,
    /// As [`Measure::percent_by_others`](super::Measure::percent_by_others).
    pub percent_by_others: Option<u64>,
    /// Whether the observer stopped the sweep.
    pub interrupted: bool,
    /// Whether the budget was spent before everything was settled.
    pub budget_spent: bool,
    /// Time spent.
    pub elapsed: Duration,
}

impl TuningResult {
    /// The fastest row of each size.
    pub fn winners(&self) -> impl Iterator<Item = &Trial> {
        self.rows.iter().filter(|row| row.best)
    }

    /// Rows, each the fastest of its size and algorithm, that other sizes of the algorithm
    /// contradict: something else may have used the cores meanwhile. A longer vector took less than
    /// half the time, or a shorter one less than half of what is proportional to its length.
    pub fn disturbed(&self) -> impl Iterator<Item = &Trial> {
        let contradict = |row: &Trial, other: &Trial| {
            let longer = (row.bytes as f64 / other.bytes.max(1) as f64).max(1.0);
            row.wall.median as f64 > 2.0 * longer * other.wall.median as f64
        };
        let best = || self.rows.iter().filter(|row| row.best_segment);
        best().filter(move |row| {
            let same = || best().filter(|other| other.algorithm == row.algorithm);
            let shorter = same().rfind(|other| other.bytes < row.bytes);
            let longer = same().find(|other| other.bytes > row.bytes);
            let mut neighbours = shorter.into_iter().chain(longer);
            neighbours.any(|other| contradict(row, other))
        })
    }

    /// The rows, and those of the library's own function after the rows of each size.
    pub fn with_library(&self) -> Vec<Trial> {
        let library = self.library.iter().map(|row| &row.trial);
        let mut rows: Vec<Trial> = self.rows.iter().chain(library).cloned().collect();
        rows.sort_by_key(|row| row.bytes);
        rows
    }
}
