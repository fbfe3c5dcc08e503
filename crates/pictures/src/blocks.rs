//! The blocks that messages carry, for collectives in which every rank has a block of its own.

use oneport::check::Options;
use oneport::internal::{Held, History};
use oneport::internal::{Matching, NONE};
use oneport::schedule::Schedule;
use oneport::schedule::collective::Extent;

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
    for (number, &mate) in matching.mates.iter().enumerate() {
        if of_step[number].is_empty() && mate != NONE {
            of_step[number] = of_step[mate as usize].clone();
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
