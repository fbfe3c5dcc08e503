//! Times of the compared algorithms, each with its best segment size: from the printed tables, and
//! as executed.

use oneport::plan::choose::with_best_segments;
use oneport::plan::segments::Published;
use oneport::plan::{Segments, registry};
use oneport::{CostModel, Kind, Ports, Request};

/// A request for `p` ranks and `m` elements.
pub(crate) fn request(
    p: usize,
    m: usize,
    ports: Ports,
    alpha: f64,
    beta: f64,
    gamma: f64,
) -> Request {
    Request::reduce(p, m)
        .ports(ports)
        .cost(CostModel::new(alpha, beta).gamma(gamma))
}

/// What the paper's table prints for a reduction.
fn published(algorithm: &str, request: &Request) -> Option<Published> {
    registry::find(Kind::Reduce, algorithm)
        .ok()?
        .published(request)
}

/// Time by the printed formula at its best segment size, clamped to the vector.
pub(crate) fn printed(algorithm: &str, request: &Request) -> f64 {
    published(algorithm, request).map_or(f64::NAN, |p| p.clamped.1)
}

/// The executed time at the best segment size.
///
/// A binary tree that is not full has no closed form. It is simulated at sizes near the best size
/// of the printed formula.
pub(crate) fn executed(algorithm: &str, request: &Request) -> f64 {
    let time = || -> oneport::Result<f64> {
        let row = registry::find(Kind::Reduce, algorithm)?;
        if algorithm != "binary" || (request.ranks() + 1).is_power_of_two() {
            return Ok(with_best_segments(&row, request)?.time);
        }
        let m = request.elements();
        let around = published(algorithm, request).map_or(1.0, |p| p.clamped.0);
        let mut best = f64::INFINITY;
        for size in [0.7, 0.85, 1.0, 1.2].map(|f| ((around * f) as usize).clamp(1, m)) {
            let segments = Segments::of_size(m, size)?;
            best = best.min(row.time(&request.clone().segments(segments))?);
        }
        Ok(best)
    };
    time().expect("the request is one that the algorithm takes")
}

/// Applies `f` to all items on two threads, keeping their order.
pub(crate) fn in_parallel<T: Sync, R: Send>(items: &[T], f: impl Fn(&T) -> R + Sync) -> Vec<R> {
    // Alternating items, since neighbours take similar times.
    let half = |which: usize| {
        items
            .iter()
            .skip(which)
            .step_by(2)
            .map(&f)
            .collect::<Vec<_>>()
    };
    let (even, odd) = std::thread::scope(|scope| {
        let odd = scope.spawn(|| half(1));
        (half(0), odd.join().expect("the other half"))
    });
    let mut odd = odd.into_iter();
    let mut all = Vec::with_capacity(items.len());
    for r in even {
        all.push(r);
        all.extend(odd.next());
    }
    all
}
