//! What a sweep returns: its rows, and the library's own function beside them.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Summary;
use super::summary::MIN_FOR_CONFIDENCE;
use crate::interleave::MeasuredRun;
use oneport::run::Processes;
use oneport_pictures::svg::number;

/// One measured combination of vector size, algorithm and segment size.
#[derive(Debug, Clone, PartialEq, schemars::JsonSchema, Serialize, Deserialize)]
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

/// In which state a library performs its own function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LibraryState {
    /// As it was launched.
    AsLaunched,
    /// As it has to be in order to obey a file of rules, but without the file.
    ForRules,
}

impl LibraryState {
    pub(super) const ALL: [LibraryState; 2] = [LibraryState::AsLaunched, LibraryState::ForRules];
}

/// End of the name of a function that was performed [for rules](LibraryState::ForRules).
const FOR_RULES: &str = " for rules";

/// The library's own function at one vector size, interleaved with the best of each algorithm. It
/// is never the best: it is no algorithm of this crate.
#[derive(Debug, Clone, PartialEq)]
pub struct LibraryRow {
    /// Its row, with the function in place of an algorithm.
    pub trial: Trial,
    /// Its row in the state [for rules](LibraryState::ForRules), if the library has one.
    pub for_rules: Option<Trial>,
    /// The first wrong element, if there is one.
    pub error: Option<String>,
}

impl LibraryRow {
    pub(super) fn new(bytes: u64, runs: &[(LibraryState, MeasuredRun)]) -> Option<LibraryRow> {
        let row = |wanted| {
            let (state, run) = runs.iter().find(|(state, _)| *state == wanted)?;
            let end = match state {
                LibraryState::AsLaunched => "",
                LibraryState::ForRules => FOR_RULES,
            };
            Some(Trial {
                bytes,
                algorithm: format!("{}{end}", run.function.unwrap_or_default()),
                segment: bytes,
                segments: 1,
                wall: Summary::of(&run.times())?,
                model_time: f64::NAN,
                best: false,
                best_segment: true,
                settled: true,
            })
        };
        Some(LibraryRow {
            trial: row(LibraryState::AsLaunched)?,
            for_rules: row(LibraryState::ForRules),
            error: runs.iter().find_map(|(_, run)| run.error.clone()),
        })
    }

    /// The library's rows among those of a file, where model times are NaN, at these sizes.
    pub(super) fn all_of(rows: &[Trial], sizes: &[u64]) -> Vec<LibraryRow> {
        let own = |bytes: u64, for_rules: bool| {
            let wanted = move |row: &&Trial| {
                row.is_of_library()
                    && row.bytes == bytes
                    && row.algorithm.ends_with(FOR_RULES) == for_rules
            };
            rows.iter().find(wanted).cloned()
        };
        let row = |&bytes: &u64| {
            Some(LibraryRow {
                trial: own(bytes, false)?,
                for_rules: own(bytes, true),
                error: None,
            })
        };
        sizes.iter().filter_map(row).collect()
    }

    fn trials(&self) -> impl Iterator<Item = &Trial> {
        [&self.trial].into_iter().chain(&self.for_rules)
    }
}

impl Trial {
    /// Its median over that of another row, to three digits.
    pub fn over(&self, other: &Trial) -> String {
        let ratio = self.wall.median as f64 / other.wall.median.max(1) as f64;
        number(ratio, 3)
    }

    /// Whether it is a row of a library's own function: these have no model time.
    pub fn is_of_library(&self) -> bool {
        self.model_time.is_nan()
    }

    /// Whether it takes less time than `other`, by more than `tolerance` and more than the
    /// confidence intervals allow.
    pub fn beats(&self, other: &Trial, tolerance: f64) -> bool {
        let [mine, others] = [self.wall, other.wall];
        let enough = mine.repetitions.min(others.repetitions) >= MIN_FOR_CONFIDENCE;
        enough
            && mine.clearly(&others) == Ordering::Less
            && mine.median as f64 * (1.0 + tolerance) < others.median as f64
    }
}

/// The rows, and those of the library's own function after the rows of each size. A wrong result
/// has no time that could be used later.
pub(super) fn with_library(rows: &[Trial], library: &[LibraryRow]) -> Vec<Trial> {
    let right = library.iter().filter(|row| row.error.is_none());
    let library = right.flat_map(LibraryRow::trials);
    let mut all: Vec<Trial> = rows.iter().chain(library).cloned().collect();
    all.sort_by_key(|row| row.bytes);
    all
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
    /// The tree in which the winners add, if the caller has chosen them by that.
    pub tree: Option<String>,
}

impl TuningResult {
    /// The result of an earlier sweep, from its rows.
    pub fn of_rows(rows: &[Trial]) -> TuningResult {
        let sizes: BTreeSet<u64> = rows.iter().map(|row| row.bytes).collect();
        let sizes: Vec<u64> = sizes.into_iter().collect();
        TuningResult {
            rows: rows
                .iter()
                .filter(|row| !row.is_of_library())
                .cloned()
                .collect(),
            library: LibraryRow::all_of(rows, &sizes),
            processes: None,
            percent_by_others: None,
            interrupted: false,
            budget_spent: false,
            elapsed: Duration::ZERO,
            tree: None,
        }
    }

    /// The fastest row of each size.
    pub fn winners(&self) -> impl Iterator<Item = &Trial> {
        self.rows.iter().filter(|row| row.best)
    }

    /// By size: the fastest row of each algorithm, and behind them those of the library's own
    /// function.
    pub fn leaders(&self) -> Vec<&Trial> {
        let leaders = self.rows.iter().filter(|row| row.best_segment);
        let library = self.library.iter().flat_map(LibraryRow::trials);
        let mut rows: Vec<&Trial> = leaders.chain(library).collect();
        rows.sort_by_key(|row| row.bytes);
        rows
    }

    /// Rows, each the fastest of its size and algorithm, that other sizes of the algorithm
    /// contradict: something else may have used the cores meanwhile. A longer vector took less than
    /// half the time, or a shorter one less than half of what is proportional to its length. Of two
    /// rows that contradict each other, the slow one is disturbed, unless more sizes contradict the
    /// fast one.
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
            let fast_is_odd = |slow: &Trial, fast: &Trial| {
                let against_slow = same().filter(|other| contradict(slow, other)).count();
                let against_fast = same().filter(|other| contradict(other, fast)).count();
                contradict(slow, fast).then_some(against_fast > against_slow)
            };
            let mut neighbours = shorter.into_iter().chain(longer);
            neighbours.any(|other| {
                fast_is_odd(row, other) == Some(false) || fast_is_odd(other, row) == Some(true)
            })
        })
    }

    /// Whether something may have [disturbed](Self::disturbed) a row, or others that it is compared
    /// with, in words.
    pub fn disturbance(&self, row: &Trial) -> &'static str {
        let mut here = self.disturbed().filter(|other| other.bytes == row.bytes);
        let mut any = false;
        let itself = here.any(|other| {
            any = true;
            other.algorithm == row.algorithm
        });
        if itself && row.best_segment {
            "disturbed"
        } else if row.best && any {
            "others disturbed"
        } else {
            ""
        }
    }

    /// The fastest of the other algorithms at the size of a row, and how many times longer it
    /// takes: `chain x 1.2`.
    pub fn next(&self, row: &Trial) -> Option<String> {
        let others = self.rows.iter().filter(|other| {
            other.bytes == row.bytes && other.best_segment && other.algorithm != row.algorithm
        });
        let next = others.min_by_key(|other| other.wall.median)?;
        Some(format!("{} x {}", next.algorithm, next.over(row)))
    }

    /// How many times longer than a row the library's own function takes.
    pub fn library_over(&self, row: &Trial) -> Option<String> {
        Some(self.library_at(row.bytes)?.trial.over(row))
    }

    /// The rows, and those of the library's own function after the rows of each size.
    pub fn with_library(&self) -> Vec<Trial> {
        with_library(&self.rows, &self.library)
    }

    /// The library's own function at a size.
    pub fn library_at(&self, bytes: u64) -> Option<&LibraryRow> {
        self.library.iter().find(|row| row.trial.bytes == bytes)
    }

    /// Whether a row beats the library's own function, in the state for rules, too. If the library
    /// was not measured, it does not.
    pub fn beats_library(&self, row: &Trial, tolerance: f64) -> bool {
        let library = self.library_at(row.bytes);
        library.is_some_and(|own| own.trials().all(|own| row.beats(own, tolerance)))
    }

    /// The sizes at which the library takes longer in the state for rules than as it was launched,
    /// with the ratio of these times.
    pub fn slower_for_rules(&self, tolerance: f64) -> impl Iterator<Item = (u64, f64)> {
        self.library.iter().filter_map(move |own| {
            let (trial, other) = (&own.trial, own.for_rules.as_ref()?);
            let ratio = other.wall.median as f64 / trial.wall.median.max(1) as f64;
            trial
                .beats(other, tolerance)
                .then_some((trial.bytes, ratio))
        })
    }
}
