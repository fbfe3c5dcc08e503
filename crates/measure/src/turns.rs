//! Several runs in turns, so that a disturbance affects all of them.

use oneport::error::Result;
use oneport::run::{Element, Outcome, Place, Run};

/// Number of turns of each run, unless it has fewer repetitions.
const TURNS: usize = 10;

/// Carries out several runs in turns: a part of the repetitions of each, then the next part of
/// each. Returns the outcome of each, with the times of all its turns.
///
/// `progress` is called with the number of finished turns and their total. The repetitions that are
/// not timed ([`Run::warmup`]) precede every turn.
///
/// ```
/// use oneport_measure::in_turns;
/// use oneport::run::{Op, Run, Teams};
/// use oneport::Request;
///
/// let (binomial, chain) = (
///     Request::reduce(2, 1000).plan("binomial")?,
///     Request::reduce(2, 1000).plan("chain")?,
/// );
/// let run = |schedule| Run::<f32>::new(schedule).op(Op::SUM).verified().repetitions(25);
/// let runs = [run(&binomial), run(&chain)];
/// let outcomes = in_turns(&mut Teams::default(), &runs, |_, _| {})?;
/// assert!(outcomes.iter().all(|outcome| outcome.is_verified() && outcome.wall.count() == 25));
/// # Ok::<(), oneport::Error>(())
/// ```
///
/// # Errors
/// As [`Run::on`], of the first run that fails.
pub fn in_turns<T: Element>(
    place: &mut impl Place,
    runs: &[Run<'_, T>],
    mut progress: impl FnMut(usize, usize),
) -> Result<Vec<Outcome<T>>> {
    let repetitions = runs.iter().map(|run| run.get_repetitions());
    let turns = repetitions.max().unwrap_or(0).clamp(1, TURNS);
    let mut outcomes: Vec<Option<Outcome<T>>> = runs.iter().map(|_| None).collect();
    for turn in 0..turns {
        for (i, (run, sum)) in runs.iter().zip(&mut outcomes).enumerate() {
            progress(turn * runs.len() + i, turns * runs.len());
            let all = run.get_repetitions();
            let part = all * (turn + 1) / turns - all * turn / turns;
            if part == 0 && all > 0 {
                continue;
            }
            let outcome = run.clone().repetitions(part).on(place)?;
            match sum {
                None => *sum = Some(outcome),
                Some(sum) => sum.add(outcome)?,
            }
        }
    }
    progress(turns * runs.len(), turns * runs.len());
    Ok(outcomes.into_iter().flatten().collect())
}
