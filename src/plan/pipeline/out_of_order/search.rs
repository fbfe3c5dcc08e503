//! The search over several out-of-order plans for the shortest one.

use super::bounds::lower_bound;
use super::broadcast::{Broadcast, four_rank_broadcast, reversed};
use crate::budget::out_of_order::Effort;
use crate::machine::numbers::truncated;
use crate::plan::Transfer;
use crate::plan::pipeline::uni_greedy::Greedy;
use crate::rules::max_time;

/// A reduction plan: its transfers with their starting times, sorted by these.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) plan: Vec<(f64, Transfer)>,
    pub(super) makespan: f64,
    /// Elementary steps spent on finding it. One step takes one or two nanoseconds.
    pub(super) steps: u64,
}

/// The shortest plan found within `effort`.
pub(super) fn best(p: usize, transfer_time: &[f64], combine_time: &[f64], effort: Effort) -> Plan {
    let q = transfer_time.len().min(combine_time.len());
    let q = if p < 2 { 0 } else { q };
    let (transfer_time, combine_time) = (&transfer_time[..q], &combine_time[..q]);
    let mut best = Plan::run(
        p,
        uni_greedy(p, transfer_time, combine_time),
        transfer_time,
        combine_time,
    );
    let is_valid = |t: &f64| t.is_finite() && *t >= 0.0;
    if q > 0 && transfer_time.iter().chain(combine_time).all(is_valid) {
        if p == 4 {
            best.improve(Plan::run(
                p,
                backwards(four_rank_broadcast(q)),
                transfer_time,
                combine_time,
            ));
        }
        search(p, transfer_time, combine_time, effort, &mut best);
    }
    // The sort is stable: if transfers take no time at all, program order decides.
    best.plan.sort_by(|a, b| a.0.total_cmp(&b.0));
    best
}

/// Tries several caps and seeds: each cap twice, then only the most successful one.
fn search(p: usize, transfer_time: &[f64], combine_time: &[f64], effort: Effort, best: &mut Plan) {
    /// Noise below 1 only breaks ties. More noise moves a few ranks out of an unfavourable period.
    const NOISE: [f64; 4] = [0.9, 2.0, 0.9, 5.0];
    if Broadcast::min_steps(p, transfer_time.len()) > effort.first {
        return;
    }
    let goal = lower_bound(p, transfer_time, combine_time);
    let caps = concurrency_caps(p, transfer_time, combine_time);
    let mut best_cap = (f64::INFINITY, caps[0]);
    for attempt in 0..effort.attempts {
        if best.makespan <= goal {
            return;
        }
        let pass = attempt / caps.len();
        let cap = if pass < 2 {
            caps[attempt % caps.len()]
        } else {
            best_cap.1
        };
        let noise = NOISE[pass % NOISE.len()];
        let mut budget = effort.first;
        let broadcast = Broadcast::new(p, transfer_time, combine_time);
        let plan = broadcast.plan(cap, noise, attempt as u64, &mut budget);
        let steps = effort.first - budget;
        best.steps += steps;
        let Some(plan) = plan else { return };
        let candidate = Plan::run(p, backwards(plan), transfer_time, combine_time);
        if candidate.makespan < best_cap.0 {
            best_cap = (candidate.makespan, cap);
        }
        best.improve(candidate);
        if best.steps + steps > effort.all {
            return;
        }
    }
}

/// The caps on concurrent transfers worth trying, the most promising first: the average of a plan
/// without idle time, its neighbours, and the largest possible number.
fn concurrency_caps(p: usize, transfer_time: &[f64], combine_time: &[f64]) -> Vec<usize> {
    let transfer_sum: f64 = transfer_time.iter().sum();
    let cycle = 2.0 * transfer_sum + combine_time.iter().sum::<f64>();
    let share = if cycle > 0.0 {
        transfer_sum / cycle
    } else {
        0.5
    };
    let average = p as f64 * share;
    let (below, above) = (average.floor(), average.ceil());
    let mut caps = Vec::new();
    for cap in [average.round(), below, above, above + 1.0, p as f64 / 2.0] {
        let cap = truncated(cap).clamp(1, p / 2);
        if !caps.contains(&cap) {
            caps.push(cap);
        }
    }
    caps
}

impl Plan {
    /// Times a plan by the rules: a transfer starts when both partners are free.
    fn run(
        p: usize,
        plan: impl IntoIterator<Item = Transfer>,
        transfer_time: &[f64],
        combine_time: &[f64],
    ) -> Plan {
        let mut free_at = vec![0.0f64; p];
        let plan = plan.into_iter().map(|transfer| {
            let segment = transfer.segment as usize;
            let (from, to) = (transfer.from as usize, transfer.to as usize);
            let start = max_time(free_at[from], free_at[to]);
            free_at[from] = start + transfer_time[segment];
            free_at[to] = free_at[from] + combine_time[segment];
            (start, transfer)
        });
        let plan = plan.collect();
        Plan {
            plan,
            makespan: free_at.into_iter().fold(0.0, max_time),
            steps: 0,
        }
    }

    fn improve(&mut self, other: Plan) {
        if other.makespan < self.makespan {
            self.plan = other.plan;
            self.makespan = other.makespan;
        }
    }
}

/// The plan of [`uni_greedy`](crate::plan::pipeline::uni_greedy).
fn uni_greedy(p: usize, transfer_time: &[f64], combine_time: &[f64]) -> Vec<Transfer> {
    let mut greedy = Greedy::new(p);
    let mut plan = Vec::with_capacity(transfer_time.len() * p.saturating_sub(1));
    for (&tc, &tp) in transfer_time.iter().zip(combine_time) {
        greedy.next_segment(tc, tp);
        plan.extend(greedy.by_ref());
    }
    plan
}

/// Converts the plan of a broadcast to the plan of a reduction.
pub(super) fn backwards(mut broadcast: Vec<Transfer>) -> Vec<Transfer> {
    broadcast.reverse();
    broadcast.iter_mut().for_each(|t| *t = reversed(*t));
    broadcast
}
