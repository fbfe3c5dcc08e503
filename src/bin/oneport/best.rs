//! The segmentation with the least model time.

use std::collections::HashMap;

use anyhow::Result;
use oneport::Request;
use oneport::plan::Segments;
use oneport::plan::registry::Algorithm;

use crate::task::{affordable, model_time};

/// Schedules of more transfers than this are not tried while searching.
const MOST_TRANSFERS: usize = 1 << 22;

/// The best number of equal segments for the request's cost model: doubled until the time rises, then adjusted by
/// smaller and smaller steps.
pub(crate) fn segments(algorithm: &Algorithm, request: &Request) -> Result<Segments> {
    let elements = request.elements();
    let most = (MOST_TRANSFERS / request.ranks).clamp(1, elements.max(1));
    affordable(algorithm, request.ranks, 1)?;
    let mut search = Search {
        algorithm,
        request: request.clone(),
        tried: HashMap::new(),
    };
    let mut best = 1;
    let mut least = search.time(1)?;
    let mut count = 2;
    while count <= most {
        let time = search.time(count)?;
        if time >= least && count > 2 * best {
            break;
        }
        if time < least {
            (best, least) = (count, time);
        }
        count = count.saturating_mul(2);
    }
    let mut step = best / 2;
    while step > 0 {
        for candidate in [best.saturating_sub(step), best + step] {
            if !(1..=most).contains(&candidate) {
                continue;
            }
            let time = search.time(candidate)?;
            if time < least {
                (best, least) = (candidate, time);
            }
        }
        step /= 2;
    }
    Ok(Segments::of_count(elements, best)?)
}

struct Search<'a> {
    algorithm: &'a Algorithm,
    request: Request,
    /// Times by the size of the first segment: different counts can mean the same segments.
    tried: HashMap<usize, f64>,
}

impl Search<'_> {
    fn time(&mut self, count: usize) -> Result<f64> {
        let segments = Segments::of_count(self.request.elements(), count)?;
        let size = segments.sizes().first().copied().unwrap_or(0);
        if let Some(&time) = self.tried.get(&size) {
            return Ok(time);
        }
        self.request.segments = segments;
        let time = model_time(self.algorithm, &self.request)?;
        self.tried.insert(size, time);
        Ok(time)
    }
}
