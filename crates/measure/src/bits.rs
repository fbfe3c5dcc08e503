//! In which trees a black box sums floats up, found by probing it: the method of FPRev
//! (arXiv 2411.00442).
//!
//! One rank contributes a number so large that it swallows a sum of ones, another one its negative,
//! and each of the others contributes 1. What is combined with either of the two before they meet
//! is lost, what is combined later is counted. So the result is the number of ranks outside of the
//! smallest subtree that has both. These numbers for all pairs, `p (p - 1) / 2` probes for all
//! elements at once, determine the tree.

use std::cmp::{max, min};
use std::collections::{BTreeMap, HashMap};

use oneport::run::{Element, Op, Place, Run};
use oneport::{Collective, Kind, Order, Ports, Request, Result, Schedule, Span, Step};

/// What probes have found.
#[derive(Debug, Clone, PartialEq)]
pub struct Revealed {
    /// By rank: its output elements from the first one on, in runs of one tree. Each run is the
    /// number of its elements and the index of the tree in [`Revealed::trees`].
    pub outputs: Vec<Vec<(usize, usize)>>,
    /// The different trees; `None` where the results of the probes are those of no tree.
    pub trees: Vec<Option<SumTree>>,
    /// Whether an earlier round of probes has found something else: this is what the last one has.
    pub varies: bool,
}

/// A tree in which contributions are summed up: which partial results are added, in an order in
/// which that is possible. A partial result has the name of the least rank in it, and `[a, b]` adds
/// that of `b` to that of `a`. At last 0 names the sum.
pub type SumTree = Vec<[usize; 2]>;

/// Probes a black box, which sums up what `ranks` ranks contribute, in so many rounds. It is given
/// the contributions, one by rank, which all elements of the rank's vector have, and returns the
/// outputs of all ranks. A box that adds in the order of arrival, or changes with the number of
/// calls, gives several rounds different trees.
///
/// # Errors
/// Those of the black box.
///
/// ```
/// // From the last rank to the first, for rank 0 alone.
/// let backwards = |x: &[f32]| {
///     let sum = x.iter().rev().fold(0.0, |sum, x| x + sum);
///     Ok(vec![vec![sum], vec![], vec![]])
/// };
/// let found = oneport_measure::bits::reveal(3, 1, backwards)?;
/// assert_eq!(found.trees, [Some(vec![[1, 2], [0, 1]])]);
/// # Ok::<(), oneport::Error>(())
/// ```
pub fn reveal<T: Copy + Into<f64>>(
    ranks: usize,
    rounds: usize,
    mut black_box: impl FnMut(&[f32]) -> Result<Vec<Vec<T>>>,
) -> Result<Revealed> {
    // It swallows ones, be the sum of 24 or of 113 bits.
    let large = 2f32.powi(126);
    let mut found: Option<Findings> = None;
    let mut varies = false;
    for _ in 0..rounds {
        let mut round: Option<Findings> = None;
        for [a, b] in pairs(ranks) {
            let mut inputs = vec![1.0; ranks];
            (inputs[a], inputs[b]) = (large, -large);
            let outputs = black_box(&inputs)?;
            let before = || Findings::unknown(outputs.iter().map(Vec::len));
            round = Some(round.unwrap_or_else(before).refined(&outputs));
        }
        varies |= found.is_some() && found != round;
        found = round;
    }
    let found = found.unwrap_or_else(|| Findings::unknown(std::iter::empty()));
    let trees = found.results.iter();
    Ok(Revealed {
        outputs: found.outputs,
        trees: trees.map(|results| tree(ranks, results)).collect(),
        varies,
    })
}

/// Probes what `run` makes of a run of `schedule`, such as
/// [`Run::by_library`](oneport::run::Run::by_library), as [`reveal`] does. Over MPI, only the first
/// process finds something.
///
/// # Errors
/// Those of the runs.
pub fn reveal_on<T: Element + From<f32> + Into<f64>, P: Place>(
    place: &mut P,
    schedule: &Schedule,
    rounds: usize,
    run: impl for<'r> Fn(Run<'r, T>) -> Run<'r, T>,
) -> Result<Revealed> {
    let layout = schedule.layout();
    let inputs: Vec<usize> = layout.iter().map(|l| len(&l.input)).collect();
    let outputs: Vec<usize> = layout.iter().map(|l| len(&l.output)).collect();
    // A process has its own output alone.
    let gather = match place.processes() {
        None => None,
        Some(_) => {
            let request = Request::gather(schedule.ranks(), 0).blocks(Some(outputs.clone()));
            Some(request.plan("linear")?)
        }
    };
    let longest = inputs.iter().max().copied().unwrap_or(0);
    let mut vectors: Vec<(f32, Vec<T>)> = Vec::new();
    reveal(schedule.ranks(), rounds, |values| {
        for &value in values {
            if vectors.iter().all(|(known, _)| *known != value) {
                vectors.push((value, vec![T::from(value); longest]));
            }
        }
        let vector = |(value, &len): (&f32, &usize)| {
            let of_value = vectors.iter().find(|(known, _)| known == value);
            of_value.map_or(&[][..], |(_, vector)| &vector[..len])
        };
        let inputs: Vec<&[T]> = values.iter().zip(&inputs).map(vector).collect();
        let summed = Run::new(schedule).op(Op::SUM).inputs(&inputs);
        let mut own = run(summed).on(place)?.outputs;
        let Some(gather) = &gather else {
            return Ok(own);
        };
        for (output, &len) in own.iter_mut().zip(&outputs) {
            output.resize(len, T::from(0.0));
        }
        let gathered = Run::new(gather).inputs(&own).on(place)?;
        let mut rest = &gathered.outputs[0][..];
        let of_rank = |&len: &usize| match rest.split_at_checked(len) {
            Some((output, others)) => {
                rest = others;
                output.to_vec()
            }
            None => Vec::new(),
        };
        Ok(outputs.iter().map(of_rank).collect())
    })
}

impl Revealed {
    /// A schedule for the same collective whose ranks sum up in these trees: each rank that has an
    /// output gets all contributions to it. The proof of the schedule
    /// ([`Report::bits`](oneport::check::Report::bits)) says what there is to say of the trees.
    /// `None` if some results are those of no tree.
    ///
    /// # Errors
    /// It would have too many steps.
    pub fn schedule(&self, collective: &Collective) -> Result<Option<Schedule>> {
        let trees: Option<Vec<&SumTree>> = self.trees.iter().map(Option::as_ref).collect();
        let Some(trees) = trees else {
            return Ok(None);
        };
        let ranks = self.outputs.len();
        let lens = self.outputs.iter();
        let lens: Vec<usize> = lens
            .map(|runs| runs.iter().map(|run| run.0).sum())
            .collect();
        // The blocks of a reduce-scatter follow each other in the vector.
        let has_blocks = collective.kind() == Kind::ReduceScatter;
        let mut begins = vec![0; ranks];
        for rank in 1..ranks {
            begins[rank] = begins[rank - 1] + if has_blocks { lens[rank - 1] } else { 0 };
        }
        let ends = begins.iter().zip(&lens).map(|(begin, len)| begin + len);
        let vector = ends.max().unwrap_or(0);
        let span = |offset, len| Some(Span::new(offset, len)).filter(|_| len > 0);
        let spans = |offset, len| span(offset, len).into_iter().collect::<Vec<_>>();
        let mut b = Schedule::builder(ranks, Ports::BI, collective.clone());
        for rank in 0..ranks {
            // Behind the own vector a copy of each contribution to the output, which is at last
            // where that of rank 0 was.
            let len = lens[rank];
            let copy = |of: usize| vector + of * len;
            b.layout(rank, copy(ranks), spans(0, vector), spans(copy(0), len));
            for distance in 1..ranks {
                let to = (rank + distance) % ranks;
                let from = (rank + ranks - distance) % ranks;
                if let Some(theirs) = span(begins[to], lens[to]) {
                    b.step(rank, Step::send(to, theirs));
                }
                if let Some(copied) = span(copy(from), len) {
                    b.step(rank, Step::recv(from, copied));
                }
            }
            if let Some(own) = span(begins[rank], len) {
                b.step(rank, Step::copy(own, Span::new(copy(rank), len)));
            }
            let mut begin = 0;
            for &(len, tree) in &self.outputs[rank] {
                for part in trees[tree] {
                    let [into, from] = part.map(|of| Span::new(copy(of) + begin, len));
                    b.step(rank, Step::combine(from, into, Order::MineFirst));
                }
                begin += len;
            }
        }
        b.build().map(Some)
    }
}

/// What the probes of a round tell apart so far.
#[derive(PartialEq)]
struct Findings {
    /// As [`Revealed::outputs`], with indices of `results`.
    outputs: Vec<Vec<(usize, usize)>>,
    /// The different results of all probes: how many ranks were counted, if that is what came out.
    results: Vec<Vec<Option<usize>>>,
}

impl Findings {
    /// Before the first probe of outputs of these lengths.
    fn unknown(lens: impl Iterator<Item = usize>) -> Findings {
        Findings {
            outputs: lens.map(|len| vec![(len, 0)]).collect(),
            results: vec![Vec::new()],
        }
    }

    /// With one more probe.
    fn refined<T: Copy + Into<f64>>(self, outputs: &[Vec<T>]) -> Findings {
        let (mut known, mut results) = (HashMap::new(), Vec::new());
        let ranks = outputs.len();
        let mut refined = |runs: &[(usize, usize)], output: &[T]| {
            let (mut finer, mut begin) = (Vec::new(), 0);
            for &(len, before) in runs {
                let part = &output[begin..begin + len];
                for same in part.chunk_by(|&a, &b| a.into().to_bits() == b.into().to_bits()) {
                    let result = (0..ranks).find(|&count| count as f64 == same[0].into());
                    let number = *known.entry((before, result)).or_insert_with(|| {
                        let earlier = self.results[before].iter().copied();
                        results.push(earlier.chain([result]).collect());
                        results.len() - 1
                    });
                    finer.push((same.len(), number));
                }
                begin += len;
            }
            finer
        };
        let of_ranks = self.outputs.iter().zip(outputs);
        let outputs = of_ranks.map(|(runs, output)| refined(runs, output));
        Findings {
            outputs: outputs.collect(),
            results,
        }
    }
}

/// The tree with these results of the probes of all pairs, if there is one.
fn tree(ranks: usize, results: &[Option<usize>]) -> Option<SumTree> {
    // By pair: the number of ranks in the smallest subtree that has both.
    let mut sizes = Vec::new();
    for (pair, outside) in pairs(ranks).zip(results) {
        sizes.push((ranks - (*outside)?, pair));
    }
    sizes.sort_unstable();
    let mut subtrees: Vec<Vec<usize>> = (0..ranks).map(|rank| vec![rank]).collect();
    let mut named: Vec<usize> = (0..ranks).collect();
    let (mut met, mut tree) = (BTreeMap::new(), Vec::new());
    for (size, [a, b]) in sizes {
        let (into, from) = (min(named[a], named[b]), max(named[a], named[b]));
        if into != from {
            for &a in &subtrees[into] {
                let pairs = subtrees[from].iter().map(|&b| [min(a, b), max(a, b)]);
                met.extend(pairs.map(|pair| (pair, subtrees[into].len() + subtrees[from].len())));
            }
            let moved = std::mem::take(&mut subtrees[from]);
            moved.iter().for_each(|&rank| named[rank] = into);
            subtrees[into].extend(moved);
            tree.push([into, from]);
        }
        if met[&[a, b]] != size {
            return None;
        }
    }
    Some(tree)
}

fn pairs(ranks: usize) -> impl Iterator<Item = [usize; 2]> {
    (0..ranks).flat_map(move |a| (a + 1..ranks).map(move |b| [a, b]))
}

fn len(spans: &[Span]) -> usize {
    spans.iter().map(|span| span.len).sum()
}
