//! The data of a run: what fills the buffers before each repetition, and what must come out.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::digest::digest;
use super::inexact::each_tree_output;
use super::oracle::{each_output, purpose};
use super::values::{Purpose, Samples, scrambled};
use crate::check::bits::OutputTrees;
use crate::error::{Error, Result};
use crate::run::element::Element;
use crate::run::failure::{panic_message, panicked};
use crate::run::operator::Operator;
use crate::run::sync::Mutex;
use crate::run::tuning::{MAX_TEST_DIGESTS, MAX_TEST_ELEMENTS};
#[cfg(feature = "mpi")]
use crate::schedule::Order;
use crate::schedule::collective::Collective;
use crate::schedule::{Layout, Schedule, Span, total_len};

/// The first wrong element of a run's outputs: in the first repetition with a wrong output, of the
/// first rank that has one.
///
/// It shows a value. Which step is wrong, or which contribution is missing, is told by
/// [`Schedule::check`], to which its text points; the text for `{:#}` does not.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Mismatch<T> {
    /// The repetition, counted from 0 and including those that are not timed.
    pub repetition: usize,
    /// The rank.
    pub rank: usize,
    /// The element's index in the rank's output, with its spans packed.
    pub index: usize,
    /// The right value.
    pub expected: T,
    /// The value in the output, which differs in at least one bit.
    pub found: T,
}

impl<T: fmt::Debug> fmt::Display for Mismatch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mismatch {
            repetition,
            rank,
            index,
            expected,
            found,
        } = self;
        write!(
            f,
            "rank {rank}, output element {index}: expected {expected:?}, found {found:?} (repetition {repetition})"
        )?;
        if f.alternate() {
            Ok(())
        } else {
            f.write_str("; Schedule::check tells which step of a schedule is wrong")
        }
    }
}

/// The input data of a run, and what is needed to verify its outputs.
#[derive(Debug)]
pub(crate) struct RunData<'d, T> {
    collective: &'d Collective,
    layout: &'d [Layout],
    operator: &'d Operator<T>,
    purpose: Purpose,
    /// Given by the caller and the same in each repetition. Without them there are test data.
    inputs: Option<&'d [&'d [T]]>,
    /// Number of data sets, which follow each other.
    sets: usize,
    /// Digests of the expected outputs, for each data set, rank by rank, if outputs are verified.
    digests: Option<Vec<u64>>,
    /// The trees in which the right outputs are combined; without them in rank order.
    trees: Option<&'d OutputTrees<'d>>,
    results: &'d RunResults<T>,
}

/// A wrong output: the repetition, and the output's contents.
pub(crate) type Wrong<T> = (usize, Vec<T>);

/// What a rank leaves behind.
#[derive(Debug)]
pub(super) struct RankOutput<T> {
    /// The contents of its output spans after the last repetition.
    pub(super) output: Vec<T>,
    /// Its first wrong output.
    pub(super) wrong: Option<Wrong<T>>,
}

/// The data that a run leaves behind.
#[derive(Debug)]
pub(crate) struct RunResults<T> {
    /// By rank: its output, once it has finished here.
    ranks: Box<[Mutex<Option<RankOutput<T>>>]>,
    mismatch: Mutex<Option<Mismatch<T>>>,
}

impl<T> RunResults<T> {
    /// Of a run that has not begun.
    pub(crate) fn new(ranks: usize) -> Self {
        RunResults {
            ranks: (0..ranks).map(|_| Mutex::new(None)).collect(),
            mismatch: Mutex::new(None),
        }
    }

    /// By rank its output, empty if it has not finished here, and the first wrong element that was
    /// kept.
    pub(crate) fn take(&self) -> (Vec<Vec<T>>, Option<Mismatch<T>>) {
        let finished = self.ranks.iter().map(|rank| rank.lock().take());
        let outputs = finished.map(|rank| rank.map_or_else(Vec::new, |rank| rank.output));
        (outputs.collect(), self.mismatch.lock().take())
    }
}

impl<'d, T: Element> RunData<'d, T> {
    /// The data of `repetitions` repetitions: the caller's, or test data. Verified test data are
    /// different in each repetition as long as that is cheap; otherwise at least four repetitions
    /// in a row have different data. With `trees`, test data show the order of combining, and right
    /// outputs have the bits of these.
    ///
    /// # Errors
    /// When inputs do not fill the input spans exactly; for verified data, as
    /// [`Collective::expected_output`].
    pub(crate) fn new(
        schedule: &'d Schedule,
        operator: &'d Operator<T>,
        inputs: Option<&'d [&'d [T]]>,
        verified: bool,
        repetitions: usize,
        trees: Option<&'d OutputTrees<'d>>,
        results: &'d RunResults<T>,
    ) -> Result<Self> {
        let (collective, layout) = (schedule.collective(), schedule.layout());
        if let Some(inputs) = inputs {
            accepts_inputs(layout, inputs)?;
        }
        let various = verified && inputs.is_none();
        let mut data = RunData {
            collective,
            layout,
            operator,
            purpose: match trees {
                Some(_) => Purpose::Inexact,
                None => purpose(collective, operator),
            },
            inputs,
            sets: if various {
                sets(layout, repetitions)
            } else {
                1
            },
            digests: None,
            trees,
            results,
        };
        if verified {
            let mut digests = Vec::with_capacity(data.sets * layout.len());
            for set in 0..data.sets {
                let mut last = 0;
                data.each_expected(set, &mut |output, differs| {
                    if differs {
                        last = digest(&mut std::iter::once(output));
                    }
                    digests.push(last);
                })?;
            }
            data.digests = Some(digests);
        }
        Ok(data)
    }

    fn samples(&self, set: usize) -> Samples {
        Samples::new(self.purpose, self.layout.len(), set)
    }

    fn each_expected(&self, set: usize, take: &mut dyn FnMut(&[T], bool)) -> Result<()> {
        let samples = self.samples(set);
        let input = |rank: usize, part: Range<usize>| match self.inputs {
            Some(inputs) => Cow::Borrowed(&inputs[rank][part]),
            None => {
                let mut values = vec![T::test_value(0); part.len()];
                samples.fill(rank, part.start, &mut values);
                Cow::Owned(values)
            }
        };
        let all = || match self.trees {
            None => each_output(self.collective, self.layout, self.operator, &input, take),
            Some(trees) => {
                each_tree_output(trees, self.layout.len(), self.operator, &input, take);
                Ok(())
            }
        };
        catch_unwind(AssertUnwindSafe(all)).unwrap_or_else(|payload| {
            let message = panic_message(&*payload);
            Err(panicked(
                0,
                0,
                format!("{message} (while the right output was computed)"),
            ))
        })
    }

    pub(super) fn layout(&self) -> &[Layout] {
        self.layout
    }

    pub(super) fn keep_output(&self, rank: usize, output: RankOutput<T>) {
        *self.results.ranks[rank].lock() = Some(output);
    }

    /// The repetition of the first wrong output of `rank`, if it has finished here.
    pub(super) fn wrong_repetition(&self, rank: usize) -> Option<usize> {
        let finished = self.results.ranks.get(rank)?.lock();
        Some(finished.as_ref()?.wrong.as_ref()?.0)
    }

    pub(super) fn keep_mismatch(&self, mismatch: Option<Mismatch<T>>) {
        *self.results.mismatch.lock() = mismatch;
    }

    #[cfg(feature = "mpi")]
    pub(super) fn has_inputs(&self) -> bool {
        self.inputs.is_some()
    }

    #[cfg(feature = "mpi")]
    pub(super) fn probe(&self) -> u64 {
        const PROBES: usize = 8;
        let [mut left, mut right] = [[T::test_value(0); PROBES]; 2];
        self.samples(0).fill(0, 0, &mut left);
        self.samples(0).fill(1, 0, &mut right);
        self.operator.combine(&mut left, &right, Order::MineFirst);
        digest(&mut std::iter::once(left.as_slice()))
    }

    /// Fills the buffer of `rank` for a repetition: input in the input spans, poison everywhere
    /// else.
    pub(super) fn fill(&self, rank: usize, repetition: usize, buffer: &mut [T]) {
        let poisons = scrambled(repetition as u64, rank as u64);
        buffer.fill(T::poison(self.purpose, poisons));
        let mut first = 0;
        for span in &self.layout[rank].input {
            let values = &mut buffer[span.offset..span.end()];
            match self.inputs {
                Some(inputs) => values.copy_from_slice(&inputs[rank][first..first + span.len]),
                None => self
                    .samples(repetition % self.sets)
                    .fill(rank, first, values),
            }
            first += span.len;
        }
    }

    /// The output of `rank` after a repetition, if it is wrong.
    pub(super) fn wrong(&self, rank: usize, repetition: usize, buffer: &[T]) -> Option<Wrong<T>> {
        let digests = self.digests.as_ref()?;
        let output = &self.layout[rank].output;
        let found = digest(&mut output.iter().map(|s| &buffer[s.offset..s.end()]));
        let set = repetition % self.sets;
        let right = found == digests[set * self.layout.len() + rank];
        (!right).then(|| (repetition, packed(buffer, output)))
    }

    /// The first wrong element in the first wrong output of `rank`.
    pub(super) fn mismatch(&self, rank: usize) -> Result<Option<Mismatch<T>>> {
        let finished = self.results.ranks[rank].lock();
        let wrong = finished.as_ref().and_then(|rank| rank.wrong.as_ref());
        let Some((repetition, found)) = wrong else {
            return Ok(None);
        };
        let (mut mismatch, mut at) = (None, 0);
        self.each_expected(repetition % self.sets, &mut |output, _| {
            if at == rank {
                let mut pairs = output.iter().zip(found).enumerate();
                mismatch = pairs.find_map(|(index, (&expected, &found))| {
                    // Compare all bits, as the digest does.
                    let bits = |value| digest(&mut std::iter::once([value].as_slice()));
                    (bits(expected) != bits(found)).then_some(Mismatch {
                        repetition: *repetition,
                        rank,
                        index,
                        expected,
                        found,
                    })
                });
            }
            at += 1;
        })?;
        Ok(mismatch)
    }
}

/// The number of data sets of test data for `repetitions` repetitions.
fn sets(layout: &[Layout], repetitions: usize) -> usize {
    /// Minimum number of data sets, whatever they cost.
    const MIN_SETS: usize = 4;
    let lengths = layout
        .iter()
        .map(|l| total_len(&l.input).saturating_add(total_len(&l.output)));
    let elements = lengths.fold(1, usize::saturating_add);
    let cheap = (MAX_TEST_ELEMENTS / elements).min(MAX_TEST_DIGESTS / layout.len().max(1));
    repetitions.min(cheap.max(MIN_SETS))
}

/// Refuses inputs that do not fill the input spans exactly.
fn accepts_inputs<T>(layout: &[Layout], inputs: &[&[T]]) -> Result<()> {
    if inputs.len() != layout.len() {
        return Err(Error::usage(format!(
            "inputs for {} ranks, not {}",
            inputs.len(),
            layout.len()
        )));
    }
    for (rank, (layout, input)) in layout.iter().zip(inputs).enumerate() {
        let expected = total_len(&layout.input);
        if input.len() != expected {
            return Err(Error::usage(format!(
                "rank {rank}: {} input elements for spans of {expected}",
                input.len()
            )));
        }
    }
    Ok(())
}

/// The elements of `spans`, one after another.
pub(super) fn packed<T: Element>(buffer: &[T], spans: &[Span]) -> Vec<T> {
    spans
        .iter()
        .flat_map(|s| &buffer[s.offset..s.end()])
        .copied()
        .collect()
}
