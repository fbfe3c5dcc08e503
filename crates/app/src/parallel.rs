//! Evaluates candidates on all cores. Only planning and timing in the model: runs have threads of
//! their own.

use std::cmp::Reverse;

use oneport::internal::system;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Items of less work together, in steps to simulate, are evaluated one by one: a millisecond.
const MIN_WORK: u64 = 1 << 15;

/// Applies `each` to all items, several at a time, and returns the results in order. Items of more
/// `work` start earlier.
///
/// `each` gets the number of items that are evaluated at a time: what one may use of the memory is
/// that part. Where it is refused because of that, and `again` says so, it is evaluated again by
/// itself.
///
/// Little work is not worth the threads. A process with limits of its own evaluates one item at a
/// time, because the C library reserves much of the address space for each thread.
pub(crate) fn map<'t, T: Sync, R: Send>(
    items: &'t [T],
    work: impl Fn(&T) -> u64,
    each: impl Fn(&'t T, usize) -> R + Sync,
    again: impl Fn(&R) -> bool,
) -> Vec<R> {
    let work: Vec<u64> = items.iter().map(work).collect();
    let Some((pool, order)) = pool_of(&work) else {
        return items.iter().map(|item| each(item, 1)).collect();
    };
    let threads = pool.current_num_threads();
    let evaluate = |&i: &usize| (i, each(&items[i], threads));
    let parts = pool.install(|| order.par_iter().with_max_len(1).map(evaluate).collect());
    drop(pool);
    let mut results: Vec<(usize, R)> = parts;
    results.sort_unstable_by_key(|(i, _)| *i);
    let settled = |(i, result): (usize, R)| {
        if again(&result) {
            each(&items[i], 1)
        } else {
            result
        }
    };
    results.into_iter().map(settled).collect()
}

/// Threads for items of so much work, and the order in which these start, unless they are evaluated
/// one by one.
fn pool_of(work: &[u64]) -> Option<(ThreadPool, Vec<usize>)> {
    let all = work.iter().copied().fold(0, u64::saturating_add);
    if work.len() < 2 || all < MIN_WORK || system::has_own_limits() {
        return None;
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = cores.min(work.len());
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.ok().filter(|_| threads > 1)?;
    let mut order: Vec<usize> = (0..work.len()).collect();
    order.sort_by_key(|&i| Reverse(work[i]));
    Some((pool, order))
}
