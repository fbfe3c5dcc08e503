//! What messages carry: segments, the different parts of the vector, and blocks, for collectives in
//! which every rank has a block of its own.

use oneport::check::Options;
use oneport::error::Result;
use oneport::internal::{Held, History, Matching};
use oneport::schedule::collective::Extent;
use oneport::schedule::{Schedule, Spans, Step};

/// By step (numbered over all ranks): the ranks whose blocks the step moves, in order, without
/// repetition; empty if it moves none. `None` if the collective has no blocks, or the schedule does
/// not complete.
///
/// A block belongs to the rank that contributes it (gather, allgather, alltoall) or to the rank
/// that receives it (scatter, reduce_scatter). The checker's symbols tell which blocks a message
/// carries, wherever in the buffers they are.
pub(crate) fn blocks(schedule: &Schedule) -> Option<Vec<Vec<usize>>> {
    if !schedule.collective().kind().has_blocks() {
        return None;
    }
    let history = schedule.check_recorded(&Options::default()).1?;
    let matching = Matching::new(schedule, |_| {}).ok()?;
    let owners = Owners::of(schedule);
    let mut of_step = Vec::with_capacity(schedule.steps());
    for (rank, program) in schedule.programs().iter().enumerate() {
        let written =
            (0..program.len()).map(|i| owners.of_runs(&history, history.written(rank, i)));
        of_step.extend(written);
    }
    // A send moves what its receiver writes.
    for number in 0..of_step.len() {
        if of_step[number].is_empty()
            && let Some(mate) = matching.mate(number)
        {
            of_step[number] = of_step[mate].clone();
        }
    }
    Some(of_step)
}

/// Number of elements of the block of every rank; `None` if the collective has no blocks of one
/// rank each.
pub(crate) fn block_lens(schedule: &Schedule) -> Option<Vec<usize>> {
    let kind = schedule.collective().kind();
    let contributed = match (kind.row().input.1, kind.row().output.1) {
        (Extent::Block, _) if kind.has_data() => true,
        (_, Extent::Block) => false,
        _ => return None,
    };
    let layouts = schedule.layout().iter();
    let spans = layouts.map(|l| if contributed { &l.input } else { &l.output });
    Some(spans.map(|s| s.iter().map(|s| s.len).sum()).collect())
}

/// Whose block an element belongs to.
pub(super) enum Owners {
    /// The contributing rank's.
    Contributor,
    /// By rank: where its block ends in the vector that is distributed.
    Ends(Vec<usize>),
}

impl Owners {
    pub(super) fn of(schedule: &Schedule) -> Owners {
        let distributes = schedule.collective().kind().row().output.1 == Extent::Block;
        match block_lens(schedule).filter(|_| distributes) {
            None => Owners::Contributor,
            Some(lens) => {
                let ends = lens.iter().scan(0, |end, len| {
                    *end += len;
                    Some(*end)
                });
                Owners::Ends(ends.collect())
            }
        }
    }

    /// The borders between blocks inside a run, as positions in the rank's buffer.
    pub(super) fn borders<'o>(&'o self, run: &'o Held) -> impl Iterator<Item = usize> + 'o {
        let ends: &[usize] = match self {
            Owners::Contributor => &[],
            Owners::Ends(ends) => ends,
        };
        let inside = run.index..run.index.saturating_add(run.span.len);
        let ends = ends.iter().filter(move |end| inside.contains(*end));
        ends.map(|end| run.span.offset + (end - run.index))
    }

    pub(super) fn of_runs(&self, history: &History, runs: &[Held]) -> Vec<usize> {
        let mut owners = Vec::new();
        for run in runs {
            let content = &history.contents()[run.content];
            match self {
                _ if content.count == 0 => {}
                Owners::Contributor => owners.push(content.first_rank),
                Owners::Ends(ends) => {
                    let first = ends.partition_point(|&end| end <= run.index);
                    let last =
                        ends.partition_point(|&end| end < run.index.saturating_add(run.span.len));
                    owners.extend((first..=last).filter(|&r| {
                        // Ranks with an empty block between the two own nothing.
                        ends.get(r).is_some_and(|&end| r == 0 || end > ends[r - 1])
                    }));
                }
            }
        }
        owners.sort_unstable();
        owners.dedup();
        owners
    }
}

/// Numbers with runs shortened: `0, 3-5, 9`.
pub(crate) fn ranges(numbers: &[usize]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let words = runs.map(|run| match run {
        [a] => a.to_string(),
        [a, b] => format!("{a}, {b}"),
        _ => format!("{}-{}", run[0], run[run.len() - 1]),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// The distinct segments of a schedule in order, and for every step (numbered over all ranks) the
/// index of its segment.
///
/// The segment of a message is the one its *sender* names, so both ends show the same; the segment
/// of a local step is the one it writes.
pub(crate) fn segments(schedule: &Schedule) -> Result<(Vec<Spans>, Vec<Option<usize>>)> {
    let matching = Matching::new(schedule, |_| {})?;
    let steps: Vec<&Step> = schedule.programs().iter().flatten().collect();
    let moved = |(number, step): (usize, &&Step)| {
        let spans = match step {
            Step::Send { spans, .. } => spans,
            Step::Recv { spans, .. } | Step::RecvCombine { spans, .. } => {
                match matching.mate(number).map(|mate| steps[mate]) {
                    Some(Step::Send { spans, .. }) => spans,
                    _ => spans,
                }
            }
            Step::Copy { dst, .. } | Step::Combine { dst, .. } => dst,
        };
        let mut key = Spans::new();
        spans.iter().for_each(|&span| key.append(span));
        key
    };
    let moved: Vec<Spans> = steps.iter().enumerate().map(moved).collect();
    Ok(distinct(&moved, |spans| spans.is_empty()))
}

/// The distinct values in order, but for empty ones, and the index of each value among them.
pub(crate) fn distinct<T: Ord + Clone>(
    values: &[T],
    is_empty: impl Fn(&T) -> bool,
) -> (Vec<T>, Vec<Option<usize>>) {
    let mut sorted: Vec<&T> = values.iter().filter(|value| !is_empty(value)).collect();
    sorted.sort_unstable();
    sorted.dedup();
    let place = |value: &T| sorted.binary_search(&value).ok();
    let places = values.iter().map(place).collect();
    (sorted.into_iter().cloned().collect(), places)
}
