//! Searches for the best size of equal segments for out-of-order, which has to be planned to be
//! timed.

use super::{costs, lower_bound, quick_time};
use crate::error::Result;
use crate::plan::pipeline::uni_greedy::best_uni_greedy;
use crate::plan::registry::Algorithm;
use crate::plan::segments::{Best, Method, even_size, executed_time};
use crate::plan::{Request, Segments};

/// Limits of a search.
struct Limits {
    /// Of the transfers of a reduction that is planned for the comparison.
    transfers: usize,
    /// Of the elementary steps of all plans together.
    steps: u64,
}

/// About 0.2 s.
const LIMITS: Limits = Limits {
    transfers: 1 << 20,
    steps: 100_000_000,
};

/// About 20 ms: the search for the second phase of an allreduce is a part of its plan.
const LIMITS_OF_PHASE: Limits = Limits {
    transfers: 1 << 15,
    steps: 10_000_000,
};

/// Memory of the schedule of that phase at most, in bytes: two steps of 200 for each transfer.
pub(super) const MAX_BYTES_OF_PHASE: u64 = 2 * 200 * LIMITS_OF_PHASE.transfers as u64;

/// Finds a good segment size for out-of-order, never slower than uni-greedy with its best size.
///
/// Quick plans are made in the order of a lower bound of their times ([`lower_bound`], which most
/// plans come close to), starting with uni-greedy's best size, until the bound exceeds the best
/// time found or the steps of [`LIMITS`] are spent. Tried are even splits into all counts up to 64,
/// and beyond into counts 1.6% apart. `None` where times are not finite.
pub(super) fn best(algorithm: &Algorithm, request: &Request) -> Result<Option<Best>> {
    let request = algorithm.effective(request).into_owned();
    let size = best_size(&request, &LIMITS)?;
    size.map(|s| timed(algorithm, &request, s)).transpose()
}

/// The request for the second phase of an allreduce with segments of its own. Without computation
/// few plans are needed, because most of them reach the lower bound. `None` where times are not
/// finite, or if its plan would be too long.
pub(super) fn broadcast_phase(request: &Request) -> Option<Request> {
    let size = best_size(request, &LIMITS_OF_PHASE).ok()??;
    let transfers = request
        .elements()
        .div_ceil(size)
        .saturating_mul(request.ranks);
    (transfers <= LIMITS_OF_PHASE.transfers).then(|| request.clone().segment_elems(size))
}

/// The segment size with the time that it takes.
fn timed(algorithm: &Algorithm, request: &Request, segment: usize) -> Result<Best> {
    let segments = Segments::of_size(request.elements(), segment)?;
    // The full plan takes more effort than the quick plan of the comparison, and may be shorter.
    let time = executed_time(algorithm, &request.clone().segments(segments))?;
    Ok(Best {
        segment,
        time,
        executed: true,
        method: Method::Search,
    })
}

/// The best size for a reduction.
fn best_size(request: &Request, limits: &Limits) -> Result<Option<usize>> {
    let mut request = request.clone();
    let (p, m) = (request.ranks, request.elements());
    let time = |s: usize| (request.transfer_time(s), request.combine_time(s));
    let (tc, tp) = time(m);
    if !(tc.is_finite() && tp.is_finite()) {
        return Ok(None);
    }
    let greedy = best_uni_greedy(p, m, time);
    let mut sizes = Vec::new();
    let mut count = 1;
    while count <= m && count.saturating_mul(p) <= limits.transfers {
        let size = even_size(m, count);
        if sizes.last().is_none_or(|&(_, s)| s != size) {
            request.segments = Segments::of_size(m, size)?;
            let (transfer_time, combine_time) = costs(&request);
            sizes.push((lower_bound(p, &transfer_time, &combine_time), size));
        }
        count += (count / 64).max(1);
    }
    sizes.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
    let mut best = (greedy.time, greedy.segment);
    let (mut spent, mut longest_plan) = (0, 0);
    for (bound, size) in std::iter::once((0.0, greedy.segment)).chain(sizes) {
        if bound >= best.0 || spent + longest_plan > limits.steps {
            break;
        }
        if m.div_ceil(size).saturating_mul(p) > limits.transfers {
            continue;
        }
        request.segments = Segments::of_size(m, size)?;
        let (time, steps) = quick_time(&request);
        if time < best.0 {
            best = (time, size);
        }
        spent += steps;
        longest_plan = longest_plan.max(steps);
    }
    Ok(Some(best.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Links;
    use crate::plan::registry;
    use crate::plan::segments::best_segment;
    use crate::{CostModel, Kind, Ports};

    #[test]
    fn never_slower_than_uni_greedy_with_its_best_size() {
        for kind in [Kind::Reduce, Kind::Broadcast] {
            let [out_of_order, greedy] =
                ["out-of-order", "uni-greedy"].map(|name| registry::find(kind, name).unwrap());
            for (p, m, alpha, gamma) in [
                (2, 40, 10.0, 1.0),
                (5, 300, 3.0, 0.0),
                (16, 1000, 20.0, 1.0),
                (17, 5000, 100.0, 0.5),
                (64, 4000, 0.0, 1.0),
                (100, 20_000, 1000.0, 1.0),
            ] {
                let mut r = Request::new(kind, p, m)
                    .ports(Ports::UNI)
                    .cost(CostModel::new(alpha, 1.0).gamma(gamma));
                let found = best_segment(out_of_order, &r).unwrap();
                let reference = best_segment(greedy, &r).unwrap();
                assert!(
                    found.time <= reference.time,
                    "{found:?}, {reference:?}, {r:?}"
                );
                r = r.segments(Segments::of_size(m, found.segment).unwrap());
                assert_eq!(executed_time(out_of_order, &r).unwrap(), found.time);
            }
        }
    }

    #[test]
    fn overlap_and_missing_links() {
        let out_of_order = registry::find(Kind::Reduce, "out-of-order").unwrap();
        let mut r = Request::reduce(3, 20)
            .ports(Ports::UNI)
            .cost(CostModel::new(5.0, 1.0).gamma(1.0).overlap(true));
        let found = best_segment(out_of_order, &r).unwrap();
        r = r.segments(Segments::of_size(20, found.segment).unwrap());
        assert_eq!(executed_time(out_of_order, &r).unwrap(), found.time);
        let links = vec![
            vec![Some(0.0), None, Some(1.0)],
            vec![Some(1.0); 3],
            vec![Some(1.0); 3],
        ];
        r = r.cost(
            CostModel::heterogeneous(Links {
                alpha: links.clone(),
                beta: links,
                gamma: vec![],
                gamma_copy: vec![],
            })
            .unwrap(),
        );
        assert!(best_segment(out_of_order, &r).is_ok());
    }
}
