//! Checks the four conditions under which the schedules of circulant graphs are correct.
//!
//! The conditions, over one phase of `q` rounds and for ranks `r` in `0..p`:
//!
//! 1. `send[r][k] == recv[(r + skip[k]) mod p][k]`: every sent block is the block that its receiver
//!    expects.
//! 2. A rank other than the root receives its base block and `q - 1` different blocks of the
//!    previous phase: all of `-1..=-q` except `baseblock(r) - q`.
//! 3. A rank other than the root sends only blocks that it received in an earlier round of the
//!    phase, or its base block of the previous phase.
//! 4. The root, rank 0, sends block `k` in round `k`.
//!
//! [`check`] checks all ranks of many graphs; [`sample`] checks some ranks of some very large
//! graphs. Both use all cores.
//!
//! ```
//! use oneport::plan::circulant::prove;
//! let outcome = prove::check(2..=100, &prove::Options::default(), |_| ());
//! assert_eq!((outcome.ranks, outcome.violations.len()), (5049, 0));
//! ```

use std::fmt;
use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;

use serde::Serialize;

use super::schedule::{Circulant, block};
use super::tables::Tables;
use crate::run::system::Gate;

/// Stack size of each thread except the first.
const STACK_BYTES: usize = 2 << 20;

/// A violated condition.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Violation {
    /// Number of ranks `p` of the graph.
    pub ranks: usize,
    /// The rank `r`.
    pub rank: usize,
    /// The number of the condition, 1 to 4.
    pub condition: u8,
    /// The round, except for condition 2.
    pub round: Option<usize>,
    /// Description of the violation.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation {
            ranks,
            rank,
            condition,
            message,
            ..
        } = self;
        write!(
            f,
            "p = {ranks}, rank {rank}, condition {condition}: {message}"
        )
    }
}

/// Threads and limits of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Number of threads; 0 means one per core.
    pub threads: usize,
    /// Number of violations to report in full; further violations are only counted.
    pub max_violations: usize,
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
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Outcome {
    /// Number of graphs that were checked.
    pub graphs: u64,
    /// Number of ranks that were checked, over all graphs.
    pub ranks: u64,
    /// The violations, ordered by number of ranks.
    pub violations: Vec<Violation>,
    /// Number of violations beyond these.
    pub more: u64,
}

impl Outcome {
    /// Whether no condition is violated.
    pub fn ok(&self) -> bool {
        self.violations.is_empty()
    }
}

/// Graphs with more ranks are checked rank by rank, without tables.
const MAX_IN_TABLES: usize = 1 << 22;
/// Ranks of such a graph that a thread checks at a time.
const CHUNK: usize = 1 << 10;
/// Number of ranks of each graph that [`sample`] checks.
pub const SAMPLED_RANKS: usize = 100;

/// Checks all ranks of the graphs over each number of ranks in `sizes`. Calls `progress` with the
/// number of ranks that have been checked since the last call.
///
/// Takes `O(q)` time per rank and `2 p q` bytes per thread for up to 2^22 ranks; for more ranks,
/// `O(q^2)` time per rank and no memory.
///
/// # Panics
/// When `sizes` contains 0, or a number above
/// [`MAX_RANKS`](crate::plan::circulant::schedule::MAX_RANKS).
pub fn check(
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
/// When `max_ranks` is 0 or more than [`MAX_RANKS`](crate::plan::circulant::schedule::MAX_RANKS).
pub fn sample(
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
        let mut random = Random::new(seed, i as u64);
        let magnitude = random.below(u64::from(max_ranks.ilog2()) + 1);
        let power = 1usize << magnitude;
        let p = match i % 4 {
            0 => (power - 1 + random.below(3) as usize).clamp(1, max_ranks),
            _ => (power + random.below(power as u64) as usize).min(max_ranks),
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
                    let skip = graph.skips()[random.below(graph.rounds() as u64) as usize];
                    (skip - 1 + random.below(3) as usize) % p
                }
                _ => random.below(p as u64) as usize,
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
        let mut gate = Gate::new();
        let others: Vec<_> = (1..threads)
            .map_while(|_| {
                let pass = gate.wait(STACK_BYTES).ok()?;
                let thread = Builder::new().stack_size(STACK_BYTES);
                let work = move || {
                    drop(pass);
                    one()
                };
                thread.spawn_scoped(scope, work).ok()
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

/// Checks one rank of the graph and returns the first violated condition, if any. Constructs the
/// schedules of the rank's receivers for this purpose: `O(q^2)` time, no memory.
///
/// # Panics
/// When `r` is not a rank.
pub fn check_rank(graph: &Circulant, r: usize) -> Option<Violation> {
    let mut room = [[0i8; usize::BITS as usize]; 3];
    let q = graph.rounds();
    let [recv, send, theirs] = &mut room;
    graph.recv_into(r, &mut recv[..q]);
    graph.send_into(r, &mut send[..q]);
    for (k, place) in theirs[..q].iter_mut().enumerate() {
        let mut receiver = [0; usize::BITS as usize];
        graph.recv_into((r + graph.skips()[k]) % graph.ranks(), &mut receiver[..q]);
        *place = receiver[k];
    }
    violated(graph, r, &recv[..q], &send[..q], |_, k| theirs[k])
}

/// Returns the first violated condition of each rank that has one. The tables may come from any
/// source.
///
/// # Panics
/// When the tables do not have the length that `graph` needs.
pub fn violations(graph: &Circulant, tables: &Tables) -> impl Iterator<Item = Violation> {
    let (p, q) = (graph.ranks(), graph.rounds());
    let Tables { recv, send } = tables;
    assert_eq!(
        (recv.len(), send.len()),
        (p * q, p * q),
        "tables of {p} ranks"
    );
    (0..p).filter_map(move |r| {
        let rank = r * q..(r + 1) * q;
        violated(graph, r, &recv[rank.clone()], &send[rank], |receiver, k| {
            recv[receiver * q + k]
        })
    })
}

/// The first condition that rank `r` violates; `received(rank, round)` is the block that `rank`
/// receives in `round`.
fn violated(
    graph: &Circulant,
    r: usize,
    recv: &[i8],
    send: &[i8],
    received: impl Fn(usize, usize) -> i8,
) -> Option<Violation> {
    let (p, q) = (graph.ranks(), graph.rounds());
    let fail = |condition, round, message| {
        Some(Violation {
            ranks: p,
            rank: r,
            condition,
            round,
            message,
        })
    };
    for (k, (&sent, skip)) in send.iter().zip(graph.skips()).enumerate() {
        let receiver = if r + skip >= p {
            r + skip - p
        } else {
            r + skip
        };
        let arrives = received(receiver, k);
        if sent != arrives {
            return fail(
                1,
                Some(k),
                format!("sends block {sent} in round {k}, but rank {receiver} receives {arrives}"),
            );
        }
    }
    if r == 0 {
        let wrong = send.iter().enumerate().find(|&(k, &sent)| sent != block(k));
        return wrong.and_then(|(k, sent)| {
            fail(
                4,
                Some(k),
                format!("the root sends block {sent} in round {k}"),
            )
        });
    }
    // Bit `q + v` stands for block `v`. An invalid block number sets an unused bit or none.
    let q = block(q);
    let bit = |v: i8| 1u128.checked_shl(u32::try_from(v.checked_add(q)?).ok()?);
    let base = block(graph.baseblock(r));
    let old_base = bit(base - q).unwrap_or(0);
    let expected = (((1 << q) - 1) & !old_base) | bit(base).unwrap_or(0);
    let mut found = 0;
    for &v in recv {
        found |= bit(v).unwrap_or(0);
    }
    if found != expected {
        let message = format!(
            "receives blocks {recv:?}, not {base} and all of -1..=-{q} but {}",
            base - q
        );
        return fail(2, None, message);
    }
    let mut known = old_base;
    for (k, (&sent, &arrives)) in send.iter().zip(recv).enumerate() {
        if bit(sent).is_none_or(|sent| known & sent == 0) {
            let message = format!("sends block {sent} in round {k}, which it does not have");
            return fail(3, Some(k), message);
        }
        known |= bit(arrives).unwrap_or(0);
    }
    None
}

/// Pseudo-random numbers (splitmix64), determined by seed and stream.
struct Random(u64);

impl Random {
    fn new(seed: u64, stream: u64) -> Random {
        let mut random = Random(seed ^ stream.wrapping_mul(0xd134_2543_de82_ef95));
        random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, which must not be 0.
    fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[test]
    fn each_condition_can_fail() {
        let graph = Circulant::new(9);
        let right = Tables::new(&graph);
        let first = |tables: &Tables| {
            let mut found: Vec<_> = violations(&graph, tables).collect();
            found.sort_unstable_by_key(|v| v.condition);
            found.first().map(|v| (v.condition, v.rank, v.round))
        };
        assert_eq!(first(&right), None);
        // Rank 2 sends another block to rank 5 in round 2.
        let mut tables = right.clone();
        tables.send[2 * 4 + 2] -= 1;
        assert_eq!(first(&tables), Some((1, 2, Some(2))));
        // The block that passes from 2 to 5 in round 2 is changed on both sides.
        tables.recv[5 * 4 + 2] -= 1;
        assert_eq!(first(&tables), Some((2, 5, None)));
        // The blocks that pass from 4 to 6 in round 1 and from 3 to 6 in round 2 are exchanged.
        let mut tables = right.clone();
        tables.recv.swap(6 * 4 + 1, 6 * 4 + 2);
        (tables.send[4 * 4 + 1], tables.send[3 * 4 + 2]) =
            (tables.recv[6 * 4 + 1], tables.recv[6 * 4 + 2]);
        assert_eq!(first(&tables).map(|f| f.0), Some(3));
        // The root exchanges the blocks of its last rounds, and all other ranks do so consistently.
        let mut tables = right.clone();
        for k in [2, 3] {
            tables.send[k] = 5 - block(k);
            tables.recv[graph.skips()[k] * 4 + k] = 5 - block(k);
        }
        let conditions: Vec<_> = violations(&graph, &tables)
            .map(|v| (v.rank, v.condition))
            .collect();
        assert!(conditions.contains(&(0, 4)), "{conditions:?}");
        for out_of_range in [i8::MIN, i8::MAX, 5] {
            tables.recv[4] = out_of_range;
            assert!(first(&tables).is_some());
        }
    }

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
