//! Schedules of one's own beside the algorithms, over numbers of ranks and sizes, in model time.

use oneport::check::Options;
use oneport::plan::choose::with_best_segments;
use oneport::plan::registry;
use oneport::{Error, ErrorKind, Request, Result, Schedule};
pub use oneport_pictures::Sweep;
use oneport_pictures::{Players, SweepRow, Unit};

/// A schedule for a number of ranks and a number of elements: built, read, or recorded from a rank
/// program.
pub type OwnPlanner<'a> = &'a dyn Fn(usize, usize) -> Result<Schedule>;

/// Times all algorithms for `request`, each with its best segments, and the named schedules of
/// `own`, at each of `ranks` and of `elements`, which replace those of the request. If its root is
/// free, own schedules may have any. Algorithms that [refuse](oneport::plan::refusal::Refusal) a
/// request have no row there; what a search left out stands in the row. [`Sweep::page`] makes a
/// page of it, `oneport_pictures::plot` a plot.
///
/// Takes the time of [`with_best_segments`] for each algorithm and point.
///
/// # Errors
/// - The request has blocks, which are of one number of ranks, or is invalid for one of the
///   numbers, such as targets or arrivals of other ranks: [`Error::is_usage`].
/// - An own schedule cannot be built, answers another request, or is wrong: [`ErrorKind::Wrong`]
///   with the first thing that [`Schedule::check`] finds. Of [`Request::same_bits`] it is not
///   judged.
///
/// ```
/// use oneport::{CostModel, Request, Schedule};
/// let star = |p, m| {
///     let mut b = Schedule::broadcast(p, m);
///     for rank in 1..p {
///         b.transfer(0, rank, 0..m);
///     }
///     b.build()
/// };
/// let request = Request::broadcast(2, 1).cost(CostModel::new(10.0, 1.0));
/// let sweep = oneport_measure::compare(&request, &[4, 8], &[1, 100], &[("star", &star)])?;
/// let at_most = sweep.at(sweep.points()[2]);
/// assert_eq!((at_most[0].value(), at_most.last().unwrap().value()), (33.0, 77.0));
/// # Ok::<(), oneport::Error>(())
/// ```
pub fn compare(
    request: &Request,
    ranks: &[usize],
    elements: &[usize],
    own: &[(&str, OwnPlanner<'_>)],
) -> Result<Sweep> {
    let cost = request.get_cost();
    let kind = request.get_collective();
    let mut rows = Vec::new();
    for (&p, &m) in ranks
        .iter()
        .flat_map(|p| elements.iter().map(move |m| (p, m)))
    {
        let asked = at(request, p, m)?;
        let bytes = m as u64 * request.get_element_bytes();
        let mut add = |name: &str, schedule: &Schedule, segment, left_out, own| {
            let timed = schedule.timed(cost, |_| ())?;
            let row = SweepRow::timed(name.into(), p, bytes, &timed, request.get_element_bytes());
            rows.push(SweepRow {
                own,
                bound: schedule.lower_bound(cost).largest,
                segment,
                left_out,
                ..row
            });
            Ok::<(), Error>(())
        };
        for algorithm in registry::candidates(kind, cost, p) {
            let Ok(choice) = with_best_segments(algorithm, &asked) else {
                continue;
            };
            let segments = choice.request.get_segments();
            let largest = segments.sizes().iter().max().copied().unwrap_or(0);
            let several = algorithm.segmented && segments.count() > 1;
            let segment = several.then(|| largest as u64 * request.get_element_bytes());
            let left_out = choice.left_out.iter().map(ToString::to_string).collect();
            add(&algorithm.name(), &choice.plan()?, segment, left_out, false)?;
        }
        for &(name, plan) in own {
            let schedule = plan(p, m)?.with_element_bytes(request.get_element_bytes());
            let wrong = |why: String| ErrorKind::Wrong(format!("{name}, {p} ranks: {why}")).into();
            let answered = Request::like(&schedule)?
                .cost(cost.clone())
                .keep_order(request.get_keep_order())
                .same_bits(request.get_same_bits());
            let asked = if asked.get_free_root() {
                asked.clone().free_root(false).root(answered.get_root())
            } else {
                asked.clone()
            };
            if answered != asked {
                return Err(wrong("it answers another request".into()));
            }
            let options = Options {
                keep_order: request.get_keep_order(),
                overlap: cost.overlaps(),
                ..Options::default()
            };
            if let Some(error) = schedule.check_with(&options).errors.first() {
                return Err(wrong(error.to_string()));
            }
            add(name, &schedule, None, Vec::new(), true)?;
        }
    }
    Ok(Sweep {
        unit: Unit::Nanoseconds,
        rows,
        players: Players::default(),
    })
}

/// The request for other numbers of ranks and elements.
fn at(request: &Request, ranks: usize, elements: usize) -> Result<Request> {
    if request.get_blocks().is_some() {
        return Err(Error::usage("blocks have one number of ranks and one size"));
    }
    let asked = Request::new(request.get_collective(), ranks, elements)
        .root(request.get_root())
        .free_root(request.get_free_root())
        .targets(request.get_targets().map(<[usize]>::to_vec))
        .ports(request.get_ports())
        .keep_order(request.get_keep_order())
        .same_bits(request.get_same_bits())
        .element_bytes(request.get_element_bytes())
        .cost(request.get_cost().clone());
    asked.validate()?;
    Ok(asked)
}
