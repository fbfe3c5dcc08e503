//! A lower bound on the time of every reduction of whole segments, in order or not.
//!
//! It holds for given segments only: a schedule that splits the vector differently may be
//! faster. Bounds that hold for every schedule are in [`crate::simulate::bounds`].
//!
//! The proofs read a reduction backwards in time, as a broadcast from the root. A reduction needs
//! at least `q(p - 1)` transfers. In each of them the sender first prepares for `tp`, and then both
//! partners are busy for `tc`. A rank prepares nothing and sends nothing before it has received
//! something (before it is *informed*), and it does one thing at a time.

use std::collections::VecDeque;

/// A lower bound on the makespan of every unidirectional reduction of these whole segments, in
/// order or not.
///
/// It is the largest of three bounds. It is rounded up if all times are whole numbers, because then
/// every makespan, a sum of them, is one too. Let `tc` and `tp` be the minimum times over all
/// segments. An informed rank informs another one at most every `tc + tp`. This gives the earliest
/// times `e_0 = 0, e_1, .., e_(p-1)` at which `k` ranks besides the root can be informed.
///
/// * *Work.* All transfers and preparations together keep ranks busy for `(p - 1) sum(2tc + tp)`.
///   The `k`-th rank to be informed is idle until its first reception starts, at `e_k - tc` or
///   later. For odd `p` one rank is also idle during the last `tc`. That is later than all the idle
///   times counted so far: preparations are over then, transfers occupy ranks in pairs, and
///   `e_(p-1) - tc` has passed. The `p` ranks share the sum.
/// * *Pairs.* Transfers take `(p - 1) sum(tc)` together, and at most `floor(p/2)` are in progress
///   at once. The `k`-th of these needs a `k`-th informed and prepared rank, which exists from
///   `e_(k-1) + tp` on. The sum of the transfers and of these times is shared by `floor(p/2)`
///   pairs.
/// * *Root.* It sends each segment at least once. When it starts to prepare for the last segment
///   that it has not sent yet, it has spent at least `tc + tp` on each of the others. That last
///   segment must still reach all ranks, which takes `e_(p-1)`.
///
/// With unit segments and `combine_time = 0` it is the number of rounds that the
/// [module](super) states. Segment `i` takes `transfer_time[i]` and `combine_time[i]`, in the
/// caller's unit of time. Takes `O(p + q)` time.
pub fn lower_bound(p: usize, transfer_time: &[f64], combine_time: &[f64]) -> f64 {
    let q = transfer_time.len().min(combine_time.len());
    if p < 2 || q == 0 {
        return 0.0;
    }
    let (transfer_time, combine_time) = (&transfer_time[..q], &combine_time[..q]);
    let min = |times: &[f64]| times.iter().copied().fold(f64::INFINITY, f64::min);
    let (tc, tp) = (min(transfer_time), min(combine_time));
    let (transfer_sum, combine_sum) = (
        transfer_time.iter().sum::<f64>(),
        combine_time.iter().sum::<f64>(),
    );
    let steps = transfer_time.iter().zip(combine_time);
    let longest = steps.map(|(tc, tp)| tc + tp).fold(0.0, f64::max);
    let half = p / 2;
    let (ranks, others, pairs) = (p as f64, (p - 1) as f64, half as f64);

    let informed = informed_at(p, tc + tp);
    let uninformed: f64 = informed[1..].iter().map(|e| e - tc).sum();
    let unpaired = if p.is_multiple_of(2) { 0.0 } else { tc };
    let work = (others * (2.0 * transfer_sum + combine_sum) + uninformed + unpaired) / ranks;
    let ramp: f64 = informed[..half].iter().map(|e| e + tp).sum();
    let pairs = (others * transfer_sum + ramp) / pairs;
    let root = transfer_sum + combine_sum - longest + informed[p - 1];

    // The sums above may have rounding errors; the bound must stay below the exact value.
    let bound = work.max(pairs).max(root) * (1.0 - 1e-12);
    let mut times = transfer_time.iter().chain(combine_time);
    if times.all(|t| t.fract() == 0.0) {
        bound.ceil()
    } else {
        bound
    }
}

/// The earliest times at which 0, 1, .., `p - 1` ranks besides the root can be informed, if every
/// informed rank informs one more rank every `step`.
fn informed_at(p: usize, step: f64) -> Vec<f64> {
    let mut informed = vec![0.0];
    // All steps are equal, so a queue keeps the next times sorted.
    let mut next = VecDeque::from([step]);
    while informed.len() < p
        && let Some(t) = next.pop_front()
    {
        informed.push(t);
        next.extend([t + step, t + step]);
    }
    informed
}
