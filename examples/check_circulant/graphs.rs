//! Proves many circulant graphs on several threads: all ranks of a range of graphs, or samples of
//! graphs of all magnitudes.

use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;

use oneport::internal::circulant::schedule::Circulant;
use oneport::internal::circulant::tables::Tables;
use oneport::random::Generator;

use super::prove::{Violation, check_rank, violations};

/// Stack size of each thread except the first.
const STACK_BYTES: usize = 2 << 20;

/// Threads and limits of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Options {
    /// Number of threads; 0 means one per core.
    pub(super) threads: usize,
    /// Number of violations to report in full; further violations are only counted.
    pub(super) max_violations: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            threads: 0,
            max_violations: 20,
        }
    }
}

/// Result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Outcome {
    /// Number of graphs that were checked.
    pub(super) graphs: u64,
    /// Number of ranks that were checked, over all graphs.
    pub(super) ranks: u64,
    /// The violations, ordered by number of ranks.
    pub(super) violations: Vec<Violation>,
    /// Number of violations beyond these.
    pub(super) more: u64,
}

impl Outcome {
    /// Whether no condition is violated.
    pub(super) fn ok(&self) -> bool {
        self.violations.is_empty()
    }
}

/// Graphs with more ranks are checked rank by rank, without tables.
const MAX_IN_TABLES: usize = 1 << 22;
/// Ranks of such a graph that a thread checks at a time.
const CHUNK: usize = 1 << 10;
/// Number of ranks of each graph that [`sample`] checks.
pub(super) const SAMPLED_RANKS: usize = 100;

/// Checks all ranks of the graphs over each number of ranks in `sizes`. Calls `progress` with the
/// number of ranks that have been checked since the last call.
///
/// Takes `O(q)` time per rank and `2 p q` bytes per thread for up to 2^22 ranks; for more ranks,
/// `O(q^2)` time per rank and no memory.
///
/// # Panics
/// When `sizes` contains 0, or a number above
/// `MAX_RANKS`.
pub(super) fn check(
    sizes: RangeInclusive<usize>,
    options: &Options,
    progress: impl Fn(u64) + Sync,
) -> Outcome {
    let (first, last) = sizes.into_inner();
    // The largest graphs come first, so that no thread starts a large one at the end.
    let next = Mutex::new((last, 0));
    let take = || {
        let mut next = next
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let (p, start) = *next;
        if p < first || p == 0 {
            return None;
        }
        let end = if p > MAX_IN_TABLES {
            p.min(start + CHUNK)
        } else {
            p
        };
        *next = if end == p { (p - 1, 0) } else { (p, end) };
        Some((p, start..end))
    };
    work(options, |tables, sum| {
        let Some((p, ranks)) = take() else {
            return ControlFlow::Break(());
        };
        let graph = Circulant::new(p);
        if p > MAX_IN_TABLES {
            let found = ranks.clone().filter_map(|r| check_rank(&graph, r));
            sum.extend(options, found);
        } else {
            tables.construct(&graph);
            sum.extend(options, violations(&graph, tables));
        }
        sum.graphs += u64::from(ranks.end == p);
        sum.ranks += ranks.len() as u64;
        progress(ranks.len() as u64);
        ControlFlow::Continue(())
    })
}

/// Checks [`SAMPLED_RANKS`] ranks each (all, if there are fewer) of `count` graphs over at most
/// `max_ranks` ranks: powers of two and their neighbours, and random numbers of all magnitudes. The
/// same `seed` gives the same graphs. Calls `progress` with the number of graphs that have been
/// checked since the last call.
///
/// # Panics
/// When `max_ranks` is 0 or more than `MAX_RANKS`.
pub(super) fn sample(
    count: usize,
    max_ranks: usize,
    seed: u64,
    options: &Options,
    progress: impl Fn(u64) + Sync,
) -> Outcome {
    assert!(max_ranks > 0, "a graph of 0 ranks");
    let next = AtomicUsize::new(0);
    work(options, |_, sum| {
        let i = next.fetch_add(1, Ordering::Relaxed);
        if i >= count {
            return ControlFlow::Break(());
        }
        let mut random = sample_numbers(seed, i as u64);
        let magnitude = random.below(max_ranks.ilog2() as usize + 1);
        let power = 1usize << magnitude;
        let p = match i % 4 {
            0 => (power - 1 + random.below(3)).clamp(1, max_ranks),
            _ => (power + random.below(power)).min(max_ranks),
        };
        let graph = Circulant::new(p);
        let ranks = p.min(SAMPLED_RANKS);
        for j in 0..ranks {
            let r = match j {
                _ if ranks == p => j,
                0 => 0,
                1 => p - 1,
                // Neighbours of a skip.
                2..20 => {
                    let skip = graph.skips()[random.below(graph.rounds())];
                    (skip - 1 + random.below(3)) % p
                }
                _ => random.below(p),
            };
            sum.extend(options, check_rank(&graph, r));
        }
        sum.graphs += 1;
        sum.ranks += ranks as u64;
        progress(1);
        ControlFlow::Continue(())
    })
}

/// Calls `unit` repeatedly on every thread until it breaks, with the thread's tables and partial
/// result.
fn work(
    options: &Options,
    unit: impl Fn(&mut Tables, &mut Outcome) -> ControlFlow<()> + Sync,
) -> Outcome {
    let threads = match options.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let one = || {
        let (mut tables, mut sum) = (Tables::default(), Outcome::default());
        while unit(&mut tables, &mut sum).is_continue() {}
        sum
    };
    let mut all: Vec<Outcome> = std::thread::scope(|scope| {
        // If fewer threads start, each does more of the work.
        let others: Vec<_> = (1..threads)
            .map_while(|_| {
                let thread = Builder::new().stack_size(STACK_BYTES);
                thread.spawn_scoped(scope, one).ok()
            })
            .collect();
        let first = one();
        let joined = others.into_iter().map(std::thread::ScopedJoinHandle::join);
        let joined = joined.map(|r| r.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        std::iter::once(first).chain(joined).collect()
    });
    let mut outcome = Outcome::default();
    let mut violations = Vec::new();
    for sum in &mut all {
        outcome.graphs += sum.graphs;
        outcome.ranks += sum.ranks;
        outcome.more += sum.more;
        violations.append(&mut sum.violations);
    }
    violations.sort_unstable();
    outcome.extend(options, violations);
    outcome
}

impl Outcome {
    fn extend(&mut self, options: &Options, found: impl IntoIterator<Item = Violation>) {
        for violation in found {
            if self.violations.len() < options.max_violations {
                self.violations.push(violation);
            } else {
                self.more += 1;
            }
        }
    }
}

/// The random numbers of the sample with this number.
fn sample_numbers(seed: u64, sample: u64) -> Generator {
    let mut random = Generator::new(seed ^ sample.wrapping_mul(0xd134_2543_de82_ef95));
    random.next_u64();
    random
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[test]
    fn all_threads_together_check_every_rank_once() {
        for threads in [1, 3] {
            let options = Options {
                threads,
                ..Options::default()
            };
            let progress = AtomicU64::new(0);
            let outcome = check(2..=300, &options, |n| {
                progress.fetch_add(n, Ordering::Relaxed);
            });
            assert_eq!((outcome.graphs, outcome.ranks), (299, 300 * 301 / 2 - 1));
            assert_eq!((progress.into_inner(), outcome.ok()), (outcome.ranks, true));
        }
        assert_eq!(
            check(RangeInclusive::new(5, 4), &Options::default(), |_| ()),
            Outcome::default()
        );
    }

    #[test]
    fn samples_cover_all_magnitudes() {
        let outcome = sample(300, 1 << 40, 1, &Options::default(), |_| ());
        assert_eq!((outcome.graphs, outcome.ok()), (300, true));
        assert!(outcome.ranks > 10_000);
        assert!(sample(10, 1, 0, &Options::default(), |_| ()).ok());
    }

    #[test]
    fn violations_beyond_the_limit_are_counted() {
        let options = Options {
            max_violations: 3,
            ..Options::default()
        };
        let graph = Circulant::new(20);
        let mut tables = Tables::new(&graph);
        tables.recv.fill(0);
        let mut outcome = Outcome::default();
        outcome.extend(&options, violations(&graph, &tables));
        assert_eq!((outcome.violations.len(), outcome.more), (3, 17));
        assert!(!outcome.ok());
        assert_eq!(
            outcome.violations[1].to_string(),
            "p = 20, rank 1, condition 1: sends block -5 in round 0, but rank 2 receives 0"
        );
    }
}
