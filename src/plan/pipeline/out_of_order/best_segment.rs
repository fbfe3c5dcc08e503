//! Searches for the best segments for out-of-order, which has to be planned to be timed.

use super::{costs, lower_bound, quick_time, time};
use crate::budget::out_of_order::{ALL_SPLITS, LIMITS, LIMITS_OF_PHASE, Limits, MAX_COMPARED};
use crate::budget::{search, size};
use crate::plan::pipeline::uni_greedy::{best_size, best_uni_greedy};
use crate::plan::prelude::*;
use crate::plan::segments::{Split, equal_size};

/// Finds good segments for out-of-order, never slower than uni-greedy with its best size.
///
/// Quick plans are made in the order of a lower bound of their times ([`lower_bound`], which most
/// plans come close to), starting with uni-greedy's best size, until the bound exceeds the best
/// time found or the steps of [`LIMITS`] are spent, which is said. Tried are equal sizes for all
/// counts up to 64, and beyond into counts 1.6% apart. For few elements a comparison of all splits
/// follows. `None` where times are not finite.
pub(super) fn best(variant: &Variant, max_transfers: usize) -> Result<Option<Best>> {
    let mut variant = variant.clone();
    variant.request = variant.algorithm.effective(&variant.request).into_owned();
    let request = &variant.request;
    let phases = if request.kind == Kind::Allreduce {
        2
    } else {
        1
    };
    let max_transfers = max_transfers.min(size::MAX_TRANSFERS) / phases;
    let Some((split, mut is_limited)) = best_split(request, &LIMITS, max_transfers)? else {
        return Ok(None);
    };
    // The full plan takes more effort than the quick plan of the comparison, and may be shorter.
    let timed = |segments: Segments| {
        let time = variant.with_segments(segments.clone()).time_or_infinity()?;
        Ok::<_, Error>((time, segments))
    };
    let (m, costs) = (request.elements(), |s| {
        (request.transfer_time(s), request.combine_time(s))
    });
    let mut best = timed(split.segments(m)?)?;
    let balanced = best_uni_greedy(request.ranks, m, variant.max_segments(usize::MAX), costs)?;
    // Balanced splits are not among those that the search compares.
    if is_better(balanced.time.value(), best.0) {
        let transfers = balanced.segments.count().saturating_mul(request.ranks);
        if transfers <= MAX_COMPARED.min(max_transfers) {
            let balanced = timed(balanced.segments)?;
            if is_better(balanced.0, best.0) {
                best = balanced;
            }
        } else {
            is_limited = true;
        }
    }
    let method = if is_limited {
        Method::LimitedSearch
    } else {
        Method::Search
    };
    let (time, segments, method) = try_all_splits(variant, best, method)?;
    Ok(Some(Best {
        segments,
        time: Time::Exact(time),
        method,
    }))
}

/// Plans all splits of few elements, in the order of a lower bound of their times, until the bound
/// exceeds the best time found or [`MAX_COMPARED`] transfers are planned. Returns the best.
fn try_all_splits(
    mut variant: Variant,
    first: (f64, Segments),
    method: Method,
) -> Result<(f64, Segments, Method)> {
    let (mut least, mut best) = first;
    let m = variant.request.elements();
    if m > ALL_SPLITS {
        return Ok((least, best, method));
    }
    let is_allreduce = variant.algorithm.collective == Kind::Allreduce;
    let phase = is_allreduce.then(|| broadcast_phase(&variant.request.without_computation()));
    let phase = phase.flatten().and_then(|own| time(&own));
    let mut splits = Vec::new();
    for split in Split::all(m) {
        variant.request.segments = split.segments(m)?;
        let request = &variant.request;
        let bound = |request: &Request| {
            let (transfer_time, combine_time) = costs(request);
            lower_bound(request.ranks, &transfer_time, &combine_time)
        };
        // Bounds hold for the times that plans are made for.
        let mut min_time = 0.0;
        if request.closed_forms_hold() {
            min_time = bound(request);
            if is_allreduce {
                let broadcast = bound(&request.without_computation());
                min_time += phase.map_or(broadcast, |own| own.min(broadcast));
            }
        }
        splits.push((min_time, split));
    }
    splits.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut compared = 0;
    for (bound, split) in splits {
        if bound >= least {
            break;
        }
        compared += split.count.saturating_mul(variant.request.ranks);
        if compared > MAX_COMPARED {
            return Ok((least, best, Method::LimitedSearch));
        }
        variant.request.segments = split.segments(m)?;
        let time = variant.time_or_infinity()?;
        if is_better(time, least) {
            (least, best) = (time, variant.request.segments.clone());
        }
    }
    Ok((least, best, Method::Exhaustive))
}

/// The request for the second phase of an allreduce with segments of its own. Without computation
/// few plans are needed, because most of them reach the lower bound. `None` where times are not
/// finite, or if its plan would be too long.
pub(super) fn broadcast_phase(request: &Request) -> Option<Request> {
    let (split, _) = best_split(request, &LIMITS_OF_PHASE, usize::MAX).ok()??;
    let segments = split.segments(request.elements()).ok()?;
    let transfers = split.count.saturating_mul(request.ranks);
    (transfers <= LIMITS_OF_PHASE.transfers).then(|| request.clone().segments(segments))
}

/// The best split by quick plans, and whether the limits, or a memory for `max_transfers` transfers
/// of several segments, left out others that may be better. `None` where times are not finite.
fn best_split(
    request: &Request,
    limits: &Limits,
    max_transfers: usize,
) -> Result<Option<(Split, bool)>> {
    let mut request = request.clone();
    let (p, m) = (request.ranks, request.elements());
    let time = |s: usize| (request.transfer_time(s), request.combine_time(s));
    let (tc, tp) = time(m);
    if !(tc.is_finite() && tp.is_finite()) {
        return Ok(None);
    }
    let (greedy_time, first) = best_size(p, m, search::MAX_SEGMENTS, time);
    let mut splits: Vec<(f64, Split)> = Vec::new();
    let mut count = 1;
    let max_planned = limits.transfers.min(max_transfers);
    let is_too_long = |count: usize| count > 1 && count.saturating_mul(p) > max_planned;
    while count <= m && !is_too_long(count) {
        let split = Split::of_size(m, equal_size(m, count));
        if splits.last().is_none_or(|&(_, last)| last != split) {
            request.segments = split.segments(m)?;
            let (transfer_time, combine_time) = costs(&request);
            splits.push((lower_bound(p, &transfer_time, &combine_time), split));
        }
        count += (count / 64).max(1);
    }
    // Bounds are convex in the number of segments: more have larger ones if these do.
    let more = splits
        .last()
        .map(|&(bound, _)| bound)
        .filter(|_| count <= m);
    splits.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.size.cmp(&a.1.size)));
    let mut is_limited = first.count > 1 && first.count.saturating_mul(p) > max_transfers;
    let mut best = if is_limited {
        (f64::INFINITY, Split::of_count(m, 1))
    } else {
        (greedy_time, first)
    };
    let (mut spent, mut longest_plan) = (0, 0);
    for (bound, split) in std::iter::once((0.0, first)).chain(splits) {
        if bound >= best.0 {
            break;
        }
        if spent + longest_plan > limits.steps {
            is_limited = true;
            break;
        }
        if is_too_long(split.count) {
            continue;
        }
        request.segments = split.segments(m)?;
        let (time, steps) = quick_time(&request);
        if time < best.0 {
            best = (time, split);
        }
        spent += steps;
        longest_plan = longest_plan.max(steps);
    }
    is_limited |= more.is_some_and(|bound| bound < best.0);
    Ok(Some((best.1, is_limited)))
}
