//! The right outputs of a collective, computed sequentially without a schedule.

use std::borrow::Cow;
use std::ops::Range;

use super::values::{Purpose, Samples};
use crate::error::Result;
use crate::run::element::Element;
use crate::run::operator::Operator;
use crate::schedule::collective::{Collective, Expected, Totals};
use crate::schedule::{Layout, Order, total_len};

/// Test inputs for every rank: `inputs[rank]` holds the elements of the rank's input spans in
/// order. `layout` has the buffer of each of the `p` ranks.
///
/// Values are scrambled, and never an identity of an operator (0 and 1 among them). With built-in
/// operators the bits of float results do not depend on the order of combining: products are exact
/// for any number of ranks, sums for up to 85 ranks of `bf16`, 682 of `f16` and 5 million of `f32`.
/// Each repetition of a [verified run](crate::run::Run::verified) has other values; these are the
/// first.
///
/// # Complexity
/// Time and memory are linear in the number of elements of all inputs.
///
/// # Example
/// ```
/// use oneport::run::{Operator, inputs, oracle};
/// let schedule = oneport::Schedule::allreduce(3, 10).build()?;
/// let (collective, layout) = (schedule.collective(), schedule.layout());
/// let sum = Operator::<f32>::named("sum")?;
/// let inputs = inputs(collective, layout, &sum);
/// let outputs = oracle(collective, layout, &sum, &inputs)?;
/// assert_eq!(outputs[2][7], inputs[0][7] + inputs[1][7] + inputs[2][7]);
/// # Ok::<(), oneport::Error>(())
/// ```
pub fn inputs<T: Element>(
    collective: &Collective,
    layout: &[Layout],
    operator: &Operator<T>,
) -> Vec<Vec<T>> {
    let samples = Samples::new(purpose(collective, operator), layout.len(), 0);
    let ranks = layout.iter().enumerate();
    ranks
        .map(|(rank, l)| {
            let mut input = vec![T::test_value(0); total_len(&l.input)];
            samples.fill(rank, 0, &mut input);
            input
        })
        .collect()
}

/// The contents that every rank's output spans must have, computed from the inputs sequentially in
/// rank order, without a schedule: `outputs[rank]` holds the elements of the rank's output spans in
/// order. `inputs[rank]` holds those of its input spans, whatever their values. Errors are those of
/// [`Collective::expected_output`].
///
/// # Complexity
/// Linear in the number of elements of all inputs and outputs. Ranks with equal outputs share the
/// computation, and a scan continues with that of the rank before.
///
/// # Panics
/// When `inputs` has fewer ranks than `layout`, or an input fewer elements than its spans.
pub fn oracle<T: Element>(
    collective: &Collective,
    layout: &[Layout],
    operator: &Operator<T>,
    inputs: &[Vec<T>],
) -> Result<Vec<Vec<T>>> {
    let input = |rank: usize, part: Range<usize>| Cow::Borrowed(&inputs[rank][part]);
    let mut outputs = Vec::with_capacity(layout.len());
    let mut take = |output: &[T], _| outputs.push(output.to_vec());
    each_output(collective, layout, operator, &input, &mut take)?;
    Ok(outputs)
}

pub(super) fn purpose<T: Element>(collective: &Collective, operator: &Operator<T>) -> Purpose {
    if collective.kind().reduces() {
        operator.purpose()
    } else {
        Purpose::Any
    }
}

/// Part of the input of a rank.
pub(super) type InputPart<'i, T> = dyn Fn(usize, Range<usize>) -> Cow<'i, [T]> + 'i;

/// Calls `take` for each rank, in order, with its expected output, and with whether that differs
/// from the expected output of the previous rank.
pub(super) fn each_output<T: Element>(
    collective: &Collective,
    layout: &[Layout],
    operator: &Operator<T>,
    input: &InputPart<'_, T>,
    take: &mut dyn FnMut(&[T], bool),
) -> Result<()> {
    let totals = Totals::new(collective, layout);
    let mut combined = Combined {
        ranks: 0..0,
        part: 0..0,
        values: Vec::new(),
    };
    let (mut before, mut output) = (None, Vec::new());
    for rank in 0..layout.len() {
        let expected = totals.expected_output(rank)?;
        let differs = before.as_ref() != Some(&expected);
        if differs {
            output.clear();
            for expected_totals in &expected {
                output.extend_from_slice(combined.of(expected_totals, operator, input));
            }
            before = Some(expected);
        }
        take(&output, differs);
    }
    Ok(())
}

/// The last combination. The next one of a scan continues it with one more rank.
#[derive(Debug)]
struct Combined<T> {
    ranks: Range<usize>,
    part: Range<usize>,
    values: Vec<T>,
}

impl<T: Element> Combined<T> {
    fn of(
        &mut self,
        expected_totals: &Expected,
        operator: &Operator<T>,
        input: &InputPart<'_, T>,
    ) -> &[T] {
        let part = expected_totals.offset..expected_totals.offset + expected_totals.len;
        let ranks = expected_totals.ranks.clone();
        let goes_on = self.part == part
            && !self.ranks.is_empty()
            && self.ranks.start == ranks.start
            && self.ranks.end <= ranks.end;
        if !goes_on {
            self.values.clear();
            self.values
                .extend_from_slice(&input(ranks.start, part.clone()));
            self.ranks = ranks.start..ranks.start + 1;
        }
        for rank in self.ranks.end..ranks.end {
            operator.combine(
                &mut self.values,
                &input(rank, part.clone()),
                Order::MineFirst,
            );
        }
        (self.ranks, self.part) = (ranks, part);
        &self.values
    }
}
