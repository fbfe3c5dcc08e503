//! What ranks know: facts, who has which at the start, who needs which at the end, and which follow
//! from others.

use oneport::schedule::collective::{Extent, Operands};

use crate::problem::Problem;

/// The facts of a problem, numbered from 0: inputs, items, or partial results.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) count: usize,
    /// By rank, by fact.
    pub(crate) start: Vec<Vec<bool>>,
    pub(crate) need: Vec<Vec<bool>>,
    /// A fact and two of which it is the combination; those of short intervals first.
    pub(crate) merges: Vec<[usize; 3]>,
    /// By fact, if they are partial results: the first and the last rank.
    pub(crate) intervals: Vec<(usize, usize)>,
    /// Elements of a fact.
    pub(crate) unit: usize,
}

impl Facts {
    /// Numbers of facts and of merges.
    pub(crate) fn counts(problem: &Problem) -> (usize, usize) {
        let (p, q) = (problem.ranks, problem.items.unwrap_or(1));
        let row = problem.collective.kind().row();
        match [row.input.1, row.output.1] {
            _ if problem.same_bits && problem.items.is_some() => (2 * p - 1, p - 1),
            _ if row.combines.is_some() && problem.items.is_some() => {
                (p * (p + 1) / 2, (p.pow(3) - p) / 6)
            }
            [Extent::Whole, Extent::Whole] if row.combines.is_none() => (q, 0),
            // Without items a message carries all that a rank has for others.
            [Extent::Pairs, _] if problem.items.is_some() => ((p * p).saturating_mul(q), 0),
            _ => (p.saturating_mul(q), 0),
        }
    }

    /// All choices of facts of a collective that is not a [reversed](Problem::reversed) one: there
    /// are several if all ranks combine in one tree, which can have any shape.
    pub(crate) fn choices(problem: &Problem) -> Vec<Facts> {
        match problem.items {
            Some(_) if problem.same_bits => {
                let shapes = shapes(problem.ranks).into_iter();
                let in_tree = |shape: Shape| Facts::of_intervals(problem, &|i| shape.contains(&i));
                shapes.map(in_tree).collect()
            }
            Some(_) if problem.collective.kind().reduces() => {
                vec![Facts::of_intervals(problem, &|_| true)]
            }
            _ => vec![Facts::of_inputs(problem)],
        }
    }

    fn of_inputs(problem: &Problem) -> Facts {
        let (p, q) = (problem.ranks, problem.items.unwrap_or(1));
        let (collective, row) = (&problem.collective, problem.collective.kind().row());
        let by_items = problem.items.is_some();
        let ((givers, given), (takers, taken)) = (row.input, row.output);
        let by_pairs = given == Extent::Pairs && by_items;
        let count = Facts::counts(problem).0;
        let start = |rank: usize, fact: usize| {
            collective.includes(givers, rank)
                && match given {
                    Extent::Whole if row.combines.is_none() => true,
                    Extent::Pairs if by_pairs => rank == fact / (p * q),
                    _ => rank == fact / q,
                }
        };
        let need = |rank: usize, fact: usize| {
            collective.includes(takers, rank)
                && match (row.combines, taken) {
                    (Some(Operands::UpToOwn), _) => fact <= rank,
                    (Some(Operands::BeforeOwn), _) => fact < rank,
                    (None, Extent::Block) => rank == fact / q,
                    (None, Extent::Pairs) if by_pairs => rank == fact / q % p,
                    _ => true,
                }
        };
        Facts {
            count,
            start: table(p, count, start),
            need: table(p, count, need),
            merges: Vec::new(),
            intervals: Vec::new(),
            unit: if given == Extent::Pairs && !by_items {
                p
            } else {
                1
            },
        }
    }

    /// The sums over those intervals of ranks that may be computed.
    fn of_intervals(problem: &Problem, may_be: &dyn Fn((usize, usize)) -> bool) -> Facts {
        let p = problem.ranks;
        let of_length = |length: usize| (0..p - length).map(move |first| (first, first + length));
        let intervals = (0..p).flat_map(of_length);
        let intervals: Vec<_> = intervals.filter(|&interval| may_be(interval)).collect();
        let at = |first, last| intervals.iter().position(|&i| i == (first, last));
        let mut merges = Vec::new();
        for (fact, &(first, last)) in intervals.iter().enumerate() {
            for middle in first..last {
                if let (Some(left), Some(right)) = (at(first, middle), at(middle + 1, last)) {
                    merges.push([fact, left, right]);
                }
            }
        }
        let needed = |rank: usize| match problem.collective.kind().row().combines {
            Some(Operands::UpToOwn) => Some((0, rank)),
            Some(Operands::BeforeOwn) => rank.checked_sub(1).map(|last| (0, last)),
            _ => Some((0, p - 1)),
        };
        Facts {
            count: intervals.len(),
            start: table(p, intervals.len(), |rank, fact| {
                intervals[fact] == (rank, rank)
            }),
            need: table(p, intervals.len(), |rank, fact| {
                needed(rank) == Some(intervals[fact])
            }),
            merges,
            intervals,
            unit: 1,
        }
    }

    /// By rank: the ranks whose inputs it needs.
    pub(crate) fn sources(&self, rank: usize) -> Vec<usize> {
        let needed = (0..self.count).filter(|&fact| self.need[rank][fact]);
        let p = self.start.len();
        let mut ranks: Vec<usize> = if self.intervals.is_empty() {
            needed
                .filter_map(|fact| (0..p).find(|&from| self.start[from][fact]))
                .collect()
        } else {
            needed
                .flat_map(|fact| self.intervals[fact].0..=self.intervals[fact].1)
                .collect()
        };
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    }
}

/// The intervals of ranks that a tree adds up, single ranks among them.
type Shape = Vec<(usize, usize)>;

/// A tree over so many ranks of each shape, even ones first: these mostly take the fewest rounds.
/// The ranks are alike, so they stand in rank order, and of two parts the one with more ranks comes
/// first.
fn shapes(ranks: usize) -> Vec<Shape> {
    if ranks == 1 {
        return vec![vec![(0, 0)]];
    }
    let mut all = Vec::new();
    for second in (1..=ranks / 2).rev() {
        let first = ranks - second;
        let (lefts, rights) = (shapes(first), shapes(second));
        for (number, left) in lefts.iter().enumerate() {
            // Equal halves in one order alone.
            let skipped = if first == second { number } else { 0 };
            for right in &rights[skipped..] {
                let moved = right.iter().map(|(a, b)| (a + first, b + first));
                let parts = left.iter().copied().chain(moved);
                all.push(parts.chain([(0, ranks - 1)]).collect());
            }
        }
    }
    all
}

fn table(p: usize, count: usize, holds: impl Fn(usize, usize) -> bool) -> Vec<Vec<bool>> {
    let row = |rank| (0..count).map(|fact| holds(rank, fact)).collect();
    (0..p).map(row).collect()
}
