//! Measures the library's own functions again, beside the best rows of an earlier sweep: whether
//! the library does something else since then.

use super::{LibraryState, Measure, Summary, Sweep, Trial};
use oneport::error::{Error, Result};
use oneport::plan::{Segments, registry};

/// The library's own function at one size, in the earlier sweep and now.
#[derive(Debug, Clone, PartialEq)]
pub struct VerifiedRow {
    /// Size of the vector.
    pub bytes: u64,
    /// The fastest row of the earlier sweep.
    pub best: Trial,
    /// Its time now, in nanoseconds.
    pub best_now: Summary,
    /// The row of the library's function in the earlier sweep.
    pub library: Trial,
    /// Its time now, in nanoseconds.
    pub library_now: Summary,
    /// The first wrong element of the library's result, if there is one.
    pub error: Option<String>,
}

impl VerifiedRow {
    /// The library's time over that of the best row, in the earlier sweep and now.
    pub fn ratios(&self) -> [f64; 2] {
        let ratio =
            |library: Summary, best: Summary| library.median as f64 / best.median.max(1) as f64;
        [
            ratio(self.library.wall, self.best.wall),
            ratio(self.library_now, self.best_now),
        ]
    }

    /// How the library's time, as a multiple of the best row's, has changed as far as the
    /// confidence intervals tell.
    pub fn change(&self) -> Change {
        /// Two sweeps of the same differ by less.
        const MIN_CHANGE: f64 = 1.1;
        /// An interval that allows more is no evidence that nothing has changed.
        const MAX_SAME: f64 = 1.3;
        let [(low, high), (low_now, high_now)] = [
            (self.library.wall, self.best.wall),
            (self.library_now, self.best_now),
        ]
        .map(|(library, best)| {
            let over = |library: u64, best: u64| library as f64 / best.max(1) as f64;
            (over(library.low, best.high), over(library.high, best.low))
        });
        let [ratio, ratio_now] = self.ratios();
        match () {
            () if high_now < low && ratio > ratio_now * MIN_CHANGE => Change::Faster,
            () if low_now > high && ratio_now > ratio * MIN_CHANGE => Change::Slower,
            () if high_now < low * MAX_SAME && low_now * MAX_SAME > high => Change::Same,
            () => Change::Unclear,
        }
    }
}

/// What has become of the library since an earlier sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It is faster by more than a tenth.
    Faster,
    /// It has changed by less than a third, as far as the intervals tell.
    Same,
    /// It is slower by more than a tenth.
    Slower,
    /// The intervals are so wide that it may be any of these.
    Unclear,
}

impl Change {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Change::Faster => "faster",
            Change::Same => "same",
            Change::Slower => "slower",
            Change::Unclear => "cannot tell",
        }
    }
}

/// Measures the library's own function and the best row of each size in `rows`, in turns. `rows`
/// are those of an earlier sweep with the parameters of `sweep`; the model times of the library's
/// rows are NaN. Sizes without a row of the library are left out.
///
/// # Errors
/// If there is no size to measure, or a measurement fails.
pub fn verify(
    sweep: &Sweep,
    rows: &[Trial],
    measure: &mut dyn Measure,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Vec<VerifiedRow>> {
    const BATCHES: usize = 10;
    const REPETITIONS: usize = 10;
    let mut verified = Vec::new();
    let kind = (sweep.algorithms.first()).map(|algorithm| algorithm.collective);
    let kind = kind.ok_or_else(|| Error::usage("nothing to verify: there is no algorithm"))?;
    let of = |bytes, library: bool| {
        let wanted = move |row: &&Trial| {
            if library {
                row.is_of_library()
            } else {
                row.best
            }
        };
        rows.iter().find(|row| row.bytes == bytes && wanted(row))
    };
    for (i, &bytes) in sweep.bytes.iter().enumerate() {
        let (Some(best), Some(library)) = (of(bytes, false), of(bytes, true)) else {
            continue;
        };
        let algorithm = registry::find(kind, &best.algorithm)?;
        let size = sweep.request.get_element_bytes().max(1);
        let elements = |bytes: u64| usize::try_from(bytes / size).unwrap_or(usize::MAX);
        let request = sweep.request.clone();
        let segments = Segments::of_size(elements(bytes), elements(best.segment).max(1))?;
        let request = request.segments(segments);
        let (mut ours, mut theirs, mut error) = (Vec::new(), Vec::new(), None);
        for batch in 0..BATCHES {
            progress(i * BATCHES + batch, sweep.bytes.len() * BATCHES);
            ours.extend(measure.measure(&algorithm, &request, REPETITIONS)?);
            if let Some(run) = measure.measure_library(
                &algorithm,
                &request,
                REPETITIONS,
                LibraryState::AsLaunched,
            )? {
                theirs.extend(run.times());
                error = error.or(run.error);
            }
        }
        if let (Some(best_now), Some(library_now)) = (Summary::of(&ours), Summary::of(&theirs)) {
            verified.push(VerifiedRow {
                bytes,
                best: best.clone(),
                best_now,
                library: library.clone(),
                library_now,
                error,
            });
        }
    }
    if verified.is_empty() {
        return Err(Error::usage(
            "no size has a time of the library: it is measured over MPI alone",
        ));
    }
    Ok(verified)
}
