//! Test data: inputs that reveal a wrong schedule, and the outputs that every rank must hold after
//! a right one.
//!
//! - Values: a test value is a function of the data set, the rank and the index, made from 64
//!   scrambled bits. So no value tells anything about another, and nothing repeats. The operator
//!   determines how the bits become a value ([`Purpose`]).
//! - No identities: a value is never an identity of an operator (0 and 1 among them), since a
//!   contribution that is lost, or counted twice, would then change nothing.
//! - Visibility: the result shows as many contributions as possible. Sums of floats are exact,
//!   factors can be divided out again, and for minima and maxima a different rank holds the extreme
//!   value of each element.
//! - Poison: the rest of a buffer holds values that no input has and that spoil whatever they are
//!   combined with.
//! - Repetitions: both inputs and poison change from repetition to repetition, so data left over
//!   from an earlier one are as wrong as data never written.

use std::borrow::Cow;
use std::fmt;
use std::hash::{DefaultHasher, Hasher};
use std::ops::Range;

use super::element::Element;
use super::operator::Operator;
use super::tuning::{MAX_TEST_DIGESTS, MAX_TEST_ELEMENTS};
use crate::error::Result;
use crate::random::Generator;
use crate::schedule::collective::{Collective, Expected, Totals};
use crate::schedule::{Layout, Order, Span, total_len};

/// What test values are used for, which determines how they are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub enum Purpose {
    /// They are moved, or combined by an unknown operator: any values.
    Any,
    /// They are added: odd integers, so that no multiple of one vanishes, and floats whose sums are
    /// exact.
    Sum,
    /// They are multiplied: integers that have an inverse and a large order, and floats that are
    /// powers of two.
    Product,
    /// The smallest is kept: a different rank holds it for each element.
    Min,
    /// The largest is kept: a different rank holds it for each element.
    Max,
    /// Bitwise and: few bits are zero, so that most zeros of the result come from one rank.
    And,
    /// Bitwise or: few bits are one, so that most ones of the result come from one rank.
    Or,
    /// Affine maps are composed: factors as for products.
    Affine,
}

/// The scrambled bits from which one test value is made.
#[derive(Debug, Clone, Copy)]
#[doc(hidden)]
pub struct Draw {
    /// As many low bits as the type has; the others are 0.
    pub(super) bits: u64,
    /// 64 bits of the element's index, the same for all ranks.
    pub(super) shared: u64,
    pub(super) rank: usize,
    pub(super) ranks: usize,
}

impl Draw {
    /// Whether this rank holds the extreme value of the element.
    fn wins(&self) -> bool {
        (u128::from(self.shared) * self.ranks as u128) >> 64 == self.rank as u128
    }
}

/// Number `n` of the pseudo-random sequence of `key`.
fn scrambled(key: u64, n: u64) -> u64 {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    Generator::new(key.wrapping_add(n.wrapping_mul(STEP))).next_u64()
}

/// One set of test data: the inputs of all ranks, as a function.
#[derive(Debug, Clone, Copy)]
struct Samples {
    purpose: Purpose,
    ranks: usize,
    /// Key of all values of this set.
    key: u64,
}

impl Samples {
    fn new(purpose: Purpose, ranks: usize, set: usize) -> Samples {
        const SEED: u64 = 0x6f6e_6570_6f72_7421;
        Samples {
            purpose,
            ranks,
            key: scrambled(SEED, set as u64),
        }
    }

    /// Writes elements `first..` of `rank`'s input into `values`.
    fn fill<T: Element>(&self, rank: usize, first: usize, values: &mut [T]) {
        let per_word = size_of::<u64>() / size_of::<T>();
        let width = 8 * size_of::<T>();
        let mask = u64::MAX >> (64 - width);
        let key = scrambled(self.key, 1 + rank as u64);
        let shares = !matches!(self.purpose, Purpose::Any | Purpose::Sum | Purpose::Affine);
        let mut word = scrambled(key, (first / per_word) as u64);
        for (i, value) in (first..).zip(values) {
            let lane = i % per_word;
            if lane == 0 {
                word = scrambled(key, (i / per_word) as u64);
            }
            let draw = Draw {
                bits: (word >> (lane * width)) & mask,
                shared: if shares {
                    scrambled(self.key ^ u64::MAX, i as u64)
                } else {
                    0
                },
                rank,
                ranks: self.ranks,
            };
            *value = T::sample(self.purpose, draw);
        }
    }
}

/// Inputs for every rank: `inputs[rank]` holds the elements of the rank's input spans in order.
///
/// Values are scrambled, and never an identity of an operator (0 and 1 among them). Sums and
/// products of floats are exact while `ranks` is below the type's precision, so every order of
/// combining gives the same bits. Each repetition of
/// [`Team::run_verified`](super::Team::run_verified) has other values; these are the first.
///
/// # Complexity
/// Linear in the number of elements.
pub fn inputs<T: Element>(
    collective: &Collective,
    layout: &[Layout],
    operator: &Operator<T>,
) -> Vec<Vec<T>> {
    let samples = Samples::new(purpose(collective, operator), layout.len(), 0);
    let ranks = layout.iter().enumerate();
    ranks
        .map(|(rank, l)| {
            let mut input = vec![T::default(); total_len(&l.input)];
            samples.fill(rank, 0, &mut input);
            input
        })
        .collect()
}

/// The contents that every rank's output spans must have, computed from the inputs sequentially in
/// rank order, without a schedule.
///
/// # Errors
/// As [`Collective::promises`].
pub fn oracle<T: Element>(
    collective: &Collective,
    layout: &[Layout],
    operator: &Operator<T>,
    inputs: &[Vec<T>],
) -> Result<Vec<Vec<T>>> {
    let input = |rank: usize, part: Range<usize>| Cow::Borrowed(&inputs[rank][part]);
    let mut outputs = Vec::with_capacity(layout.len());
    each_output(collective, layout, operator, input, |output, _| {
        outputs.push(output.to_vec());
    })?;
    Ok(outputs)
}

fn purpose<T: Element>(collective: &Collective, operator: &Operator<T>) -> Purpose {
    if collective.kind().reduces() {
        operator.purpose()
    } else {
        Purpose::Any
    }
}

/// Calls `take` for each rank in turn with its expected output, and with whether that differs from
/// the expected output of the previous rank.
fn each_output<'i, T: Element>(
    collective: &Collective,
    layout: &[Layout],
    operator: &Operator<T>,
    input: impl Fn(usize, Range<usize>) -> Cow<'i, [T]>,
    mut take: impl FnMut(&[T], bool),
) -> Result<()> {
    let totals = Totals::new(collective, layout);
    let mut combined = Combined::default();
    let (mut before, mut output) = (None, Vec::new());
    for rank in 0..layout.len() {
        let promises = totals.promises(rank)?;
        let differs = before.as_ref() != Some(&promises);
        if differs {
            output.clear();
            for expected_totals in &promises {
                output.extend_from_slice(combined.of(expected_totals, operator, &input));
            }
            before = Some(promises);
        }
        take(&output, differs);
    }
    Ok(())
}

/// The last combination. The next one of a scan continues it with one more rank.
#[derive(Debug, Default)]
struct Combined<T> {
    ranks: Range<usize>,
    part: Range<usize>,
    values: Vec<T>,
}

impl<T: Element> Combined<T> {
    fn of<'i>(
        &mut self,
        expected_totals: &Expected,
        operator: &Operator<T>,
        input: impl Fn(usize, Range<usize>) -> Cow<'i, [T]>,
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

/// The first wrong element of a run's outputs.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Mismatch<T> {
    /// The repetition, counted from 0 and including the warm-up.
    pub repetition: usize,
    /// The rank.
    pub rank: usize,
    /// The element's index in the rank's output.
    pub index: usize,
    /// The right value.
    pub expected: T,
    /// The value in the output.
    pub found: T,
}

impl<T: fmt::Display> fmt::Display for Mismatch<T> {
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
            "rank {rank}, output element {index}: expected {expected}, found {found} (repetition {repetition})"
        )
    }
}

/// The input data of a run, and what is needed to verify its outputs.
#[derive(Debug)]
pub(super) struct RunData<'d, T> {
    layout: &'d [Layout],
    purpose: Purpose,
    inputs: Inputs<'d, T>,
}

#[derive(Debug)]
enum Inputs<'d, T> {
    /// Given by the caller and the same in each repetition. Outputs are not verified.
    Given(&'d [Vec<T>]),
    /// Test data, one set after another, with the expected outputs.
    Sampled(ExpectedOutputs<'d, T>),
}

/// Digests of the expected outputs: for each data set, rank by rank.
#[derive(Debug)]
struct ExpectedOutputs<'d, T> {
    collective: &'d Collective,
    operator: &'d Operator<T>,
    sets: usize,
    digests: Vec<u64>,
}

/// A wrong output: the repetition, and the output's contents.
pub(super) type Wrong<T> = (usize, Vec<T>);

impl<'d, T: Element> RunData<'d, T> {
    pub(super) fn given(
        collective: &Collective,
        layout: &'d [Layout],
        operator: &Operator<T>,
        inputs: &'d [Vec<T>],
    ) -> Self {
        RunData {
            layout,
            purpose: purpose(collective, operator),
            inputs: Inputs::Given(inputs),
        }
    }

    /// Test data for `repetitions` repetitions. Each has a data set of its own as long as that is
    /// cheap; otherwise at least four repetitions in a row have different data.
    ///
    /// # Errors
    /// As [`Collective::promises`].
    pub(super) fn sampled(
        collective: &'d Collective,
        layout: &'d [Layout],
        operator: &'d Operator<T>,
        repetitions: usize,
    ) -> Result<Self> {
        /// Minimum number of data sets, whatever they cost.
        const MIN_SETS: usize = 4;
        let lengths = layout
            .iter()
            .map(|l| total_len(&l.input).saturating_add(total_len(&l.output)));
        let elements = lengths.fold(1, usize::saturating_add);
        let cheap = (MAX_TEST_ELEMENTS / elements).min(MAX_TEST_DIGESTS / layout.len().max(1));
        let sets = repetitions.min(cheap.max(MIN_SETS));
        let mut data = RunData {
            layout,
            purpose: purpose(collective, operator),
            inputs: Inputs::Sampled(ExpectedOutputs {
                collective,
                operator,
                sets,
                digests: Vec::new(),
            }),
        };
        let mut digests = Vec::with_capacity(sets * layout.len());
        for set in 0..sets {
            let mut last = 0;
            data.each_expected(set, |output, differs| {
                if differs {
                    last = digest(std::iter::once(output));
                }
                digests.push(last);
            })?;
        }
        if let Inputs::Sampled(expected) = &mut data.inputs {
            expected.digests = digests;
        }
        Ok(data)
    }

    fn samples(&self, set: usize) -> Samples {
        Samples::new(self.purpose, self.layout.len(), set)
    }

    fn each_expected(&self, set: usize, take: impl FnMut(&[T], bool)) -> Result<()> {
        let Inputs::Sampled(expected) = &self.inputs else {
            return Ok(());
        };
        let samples = self.samples(set);
        let input = |rank: usize, part: Range<usize>| {
            let mut values = vec![T::default(); part.len()];
            samples.fill(rank, part.start, &mut values);
            Cow::Owned(values)
        };
        each_output(
            expected.collective,
            self.layout,
            expected.operator,
            input,
            take,
        )
    }

    /// Whether outputs are verified.
    pub(super) fn is_verified(&self) -> bool {
        matches!(self.inputs, Inputs::Sampled(_))
    }

    /// Fills the buffer of `rank` for a repetition: input in the input spans, poison everywhere
    /// else.
    pub(super) fn fill(&self, rank: usize, repetition: usize, buffer: &mut [T]) {
        let poisons = scrambled(repetition as u64, rank as u64);
        buffer.fill(T::poison(self.purpose, poisons));
        let mut first = 0;
        for span in &self.layout[rank].input {
            let values = &mut buffer[span.offset..span.end()];
            match &self.inputs {
                Inputs::Given(inputs) => {
                    values.copy_from_slice(&inputs[rank][first..first + span.len]);
                }
                Inputs::Sampled(expected) => {
                    let samples = self.samples(repetition % expected.sets);
                    samples.fill(rank, first, values);
                }
            }
            first += span.len;
        }
    }

    /// The output of `rank` after a repetition, if it is wrong.
    pub(super) fn wrong(&self, rank: usize, repetition: usize, buffer: &[T]) -> Option<Wrong<T>> {
        let Inputs::Sampled(expected) = &self.inputs else {
            return None;
        };
        let output = &self.layout[rank].output;
        let found = digest(output.iter().map(|s| &buffer[s.offset..s.end()]));
        let set = repetition % expected.sets;
        let right = found == expected.digests[set * self.layout.len() + rank];
        (!right).then(|| (repetition, packed(buffer, output)))
    }

    /// The first wrong element in `wrong`, the wrong output of `rank`.
    ///
    /// # Errors
    /// As [`Collective::promises`].
    pub(super) fn mismatch(&self, rank: usize, wrong: &Wrong<T>) -> Result<Option<Mismatch<T>>> {
        let Inputs::Sampled(expected) = &self.inputs else {
            return Ok(None);
        };
        let (repetition, found) = wrong;
        let (mut mismatch, mut at) = (None, 0);
        self.each_expected(repetition % expected.sets, |output, _| {
            if at == rank {
                let mut pairs = output.iter().zip(found).enumerate();
                mismatch = pairs.find_map(|(index, (&expected, &found))| {
                    // Compare all bits, as the digest does.
                    let bits = |value| digest(std::iter::once([value].as_slice()));
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

/// The elements of `spans`, one after another.
pub(super) fn packed<T: Element>(buffer: &[T], spans: &[Span]) -> Vec<T> {
    spans
        .iter()
        .flat_map(|s| &buffer[s.offset..s.end()])
        .copied()
        .collect()
}

/// A hash of all bits of the elements in order, independent of how they are split into parts.
fn digest<'v, T: Element>(parts: impl Iterator<Item = &'v [T]>) -> u64 {
    const CHUNK: usize = 256;
    let mut hasher = DefaultHasher::new();
    let mut chunk = [T::default(); CHUNK];
    let mut filled = 0;
    for mut part in parts {
        while !part.is_empty() {
            let (now, rest) = part.split_at(part.len().min(CHUNK - filled));
            chunk[filled..filled + now.len()].copy_from_slice(now);
            filled += now.len();
            part = rest;
            if filled == CHUNK {
                T::hash(&chunk, &mut hasher);
                filled = 0;
            }
        }
    }
    T::hash(&chunk[..filled], &mut hasher);
    hasher.finish()
}

/// `f ⊕ g` for maps `x → a x + b` packed as `a << 32 | b`: `f` after `g`.
pub(super) fn affine(f: u64, g: u64) -> u64 {
    let low = |x: u64| x & 0xffff_ffff;
    let (a, b, c, d) = (f >> 32, low(f), g >> 32, low(g));
    low(a.wrapping_mul(c)) << 32 | low(a.wrapping_mul(d).wrapping_add(b))
}

/// A test value of an integer type of `width` bits, at least 8.
pub(super) fn sample_integer(purpose: Purpose, draw: Draw, width: u32, signed: bool) -> u64 {
    let mask = u64::MAX >> (64 - width);
    let top = 1 << (width - 1);
    let bits = draw.bits;
    match purpose {
        // Not 0, 1 or -1, not the smallest or largest number (signed or unsigned), and not poison.
        Purpose::Any => (bits & top) | (bits & (top - 1)).clamp(FEW, top - 2),
        // Not 1 or -1.
        Purpose::Sum => (bits | 1).clamp(3, mask - 2),
        Purpose::Product => factor(bits),
        Purpose::Max => largest(bits, draw.wins(), width) ^ if signed { top } else { 0 },
        Purpose::Min => (mask - largest(bits, draw.wins(), width)) ^ if signed { top } else { 0 },
        Purpose::Or => few_bits(draw, width),
        Purpose::And => mask - few_bits(draw, width),
        Purpose::Affine => factor(bits >> 32) << 32 | (bits & 0xffff_ffff | 1),
    }
}

/// A value of `width` bits that no test value has, and that spoils what it is combined with.
pub(super) fn poison_integer(purpose: Purpose, bits: u64, width: u32, signed: bool) -> u64 {
    let mask = u64::MAX >> (64 - width);
    let top = 1 << (width - 1);
    let sign = if signed { top } else { 0 };
    // Above all test values for maxima.
    let above = mask - bits % ((1 << (width - 4)) - FEW);
    match purpose {
        Purpose::Any => top + 1 + bits % (FEW - 1),
        // A sum of `n` odd values has the parity of `n`. Poison is even, so a sum in which poison
        // replaces a value has the other parity.
        Purpose::Sum => (bits & mask & !1).max(2),
        // Even, and so are all multiples.
        Purpose::Product => bits & mask & !1,
        Purpose::Max => above ^ sign,
        Purpose::Min => (mask - above) ^ sign,
        Purpose::Or => mask & !(1 << (bits % u64::from(width))),
        Purpose::And => 1 << (bits % u64::from(width)),
        Purpose::Affine => bits & !(1 << 32),
    }
}

/// One more than the number of values reserved for poison.
const FEW: u64 = 5;

/// A factor that is 3 or 5 modulo 8: it has the largest order modulo a power of two, and is never 1
/// or -1.
fn factor(bits: u64) -> u64 {
    bits & !7 | if bits & 4 == 0 { 3 } else { 5 }
}

/// A number in the lower half of the numbers of `width` bits or, if it `wins`, in the upper half.
fn largest(bits: u64, wins: bool, width: u32) -> u64 {
    let half = 1 << (width - 1);
    if wins {
        half + 2 + (bits >> 1) - (bits >> 4)
    } else {
        (bits >> 1).clamp(2, half - 3)
    }
}

/// A number with one bit that all ranks have, and few others: each other bit is set with a
/// probability of about one over the number of ranks, at most a quarter.
fn few_bits(draw: Draw, width: u32) -> u64 {
    let halvings = draw.ranks.next_power_of_two().ilog2().max(2);
    let mut more = Generator::new(scrambled(draw.shared ^ draw.bits, draw.rank as u64));
    let few = (1..halvings).fold(draw.bits, |few, _| few & more.next_u64());
    // Not the lowest or the highest bit: 1 and the smallest and largest signed numbers are
    // identities.
    let common = 1 << (1 + draw.shared % u64::from(width - 2));
    if (few | common).count_ones() >= width - 1 {
        common
    } else {
        few | common
    }
}

/// A test value of a float type with `precision` bits of significand and `width` bits in all, made
/// from `draw.bits`.
pub(super) fn sample_float(
    purpose: Purpose,
    draw: Draw,
    width: u32,
    precision: u32,
    max_exponent: u32,
) -> f64 {
    let sign = if draw.bits & 1 == 0 { 1.0 } else { -1.0 };
    let (rest, rest_bits) = (draw.bits >> 1, width - 1);
    // In `[1, 2)`, with all bits of the significand.
    let fraction = {
        let significand = rest >> (rest_bits - (precision - 1)) | 1 << (precision - 1);
        significand as f64 / (1u64 << (precision - 1)) as f64
    };
    match purpose {
        Purpose::Sum => {
            // Integers so small that sums stay below `2^precision`.
            let values = ((1u64 << precision) / draw.ranks.max(1) as u64).max(4) - 2;
            let number = (u128::from(rest) * u128::from(values)) >> rest_bits;
            sign * (2 + number) as f64
        }
        Purpose::Product => {
            // Powers of two such that the product over all ranks neither overflows nor underflows.
            // With many ranks, some contribute only a sign.
            let room = u64::from(max_exponent - 2);
            let ranks = draw.ranks.max(1) as u64;
            let stride = ranks.div_ceil(room);
            let max = if stride > 1 { 1 } else { room / ranks };
            let number = (u128::from(rest) * u128::from(2 * max + 1)) >> rest_bits;
            let number = u64::try_from(number).unwrap_or(max);
            let turn = draw.rank as u64 + draw.shared % stride;
            if number == max || !turn.is_multiple_of(stride) {
                -1.0
            } else {
                // `2^(number - max)`, by its bits: the exponent, with bias 1023, is stored above
                // the 52 bits of the significand.
                sign * f64::from_bits((1023 + number - max) << 52)
            }
        }
        Purpose::Max | Purpose::Min => {
            let value = if draw.wins() {
                512.0 * fraction
            } else {
                2.0 * fraction
            };
            if purpose == Purpose::Max {
                value
            } else {
                -value
            }
        }
        // Absolute value in `[2, 2^9)`.
        _ => sign * fraction * f64::from(2u32 << (draw.bits >> 1 & 7)),
    }
}

/// A float that no test value has, and that spoils what it is combined with.
pub(super) fn poison_float(purpose: Purpose, bits: u64) -> f64 {
    // Not NaN here: a comparison with NaN keeps the other operand.
    let large = 4096.0 * f64::from(1 + (bits & 0xff) as u16);
    match purpose {
        Purpose::Max => large,
        Purpose::Min => -large,
        _ => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const PURPOSES: [Purpose; 8] = [
        Purpose::Any,
        Purpose::Sum,
        Purpose::Product,
        Purpose::Min,
        Purpose::Max,
        Purpose::And,
        Purpose::Or,
        Purpose::Affine,
    ];

    fn values<T: Element>(purpose: Purpose, p: usize, set: usize, rank: usize, n: usize) -> Vec<T> {
        let mut values = vec![T::default(); n];
        Samples::new(purpose, p, set).fill(rank, 0, &mut values);
        values
    }

    fn poison<T: Element>(purpose: Purpose) -> Vec<T> {
        let bits = (0..300).map(|i| scrambled(i / 20, i % 20));
        bits.map(|bits| T::poison(purpose, bits)).collect()
    }

    /// Checks that no test value is one of `identities`, NaN, or poison.
    fn check_values<T: Element>(identities: &[T]) {
        for purpose in PURPOSES {
            if purpose == Purpose::Affine && T::built_in("affine").is_none() {
                continue;
            }
            let poison = poison::<T>(purpose);
            for p in [1, 2, 3, 8, 100, 1000] {
                for rank in [0, 1, p - 1].into_iter().filter(|&r| r < p) {
                    for value in values::<T>(purpose, p, 0, rank, 2000) {
                        assert!(!identities.contains(&value), "{purpose:?} p={p} {value}");
                        assert!(value.partial_cmp(&value).is_some(), "{purpose:?} {value}");
                        assert!(!poison.contains(&value), "{purpose:?} p={p} {value}");
                    }
                }
            }
            // Poison changes between repetitions. (For NaN this holds trivially: it is never equal
            // to anything.)
            assert!(
                poison.iter().any(|value| *value != poison[0]),
                "{purpose:?}"
            );
        }
    }

    #[test]
    fn no_value_is_an_identity_or_poison() {
        check_values::<u8>(&[0, 1, u8::MAX]);
        check_values::<i32>(&[0, 1, -1, i32::MIN, i32::MAX]);
        check_values::<i64>(&[0, 1, -1, i64::MIN, i64::MAX]);
        check_values::<u64>(&[0, 1, u64::MAX]);
        check_values::<f32>(&[0.0, 1.0, f32::INFINITY, f32::NEG_INFINITY]);
        check_values::<f64>(&[0.0, 1.0, f64::INFINITY, f64::NEG_INFINITY]);
    }

    fn check_poison<T: Element>() {
        for name in Operator::<T>::NAMES {
            let Ok(op) = Operator::<T>::named(name) else {
                continue;
            };
            let poison = poison::<T>(op.purpose());
            let inputs = values::<T>(op.purpose(), 5, 3, 2, poison.len());
            for (value, poison) in inputs.into_iter().zip(poison) {
                assert!(op.apply(value, poison) != value, "{name} {value} {poison}");
                assert!(op.apply(poison, value) != value, "{name} {value} {poison}");
            }
        }
        let none = Operator::<T>::none();
        let [a, b] = [1, 2].map(|rank| values::<T>(Purpose::Any, 5, 0, rank, 500));
        let spoiled = |(&a, &b)| ![a, b].contains(&none.apply(a, b));
        assert!(a.iter().zip(&b).filter(|&pair| spoiled(pair)).count() > 480);
    }

    #[test]
    fn poison_spoils_what_it_is_combined_with() {
        check_poison::<u8>();
        check_poison::<i32>();
        check_poison::<i64>();
        check_poison::<u64>();
        check_poison::<f32>();
        check_poison::<f64>();
    }

    /// Checks that the result of combining 6 ranks reveals each faulty contribution in some of 400
    /// elements: one that is missing, counted twice or three times, or replaced by another rank's.
    fn check_visible<T: Element>(name: &str) {
        let Ok(op) = Operator::<T>::named(name) else {
            return;
        };
        let forgives = ["min", "max", "band", "bor"].contains(&name);
        let (p, n) = (6, 400);
        let inputs: Vec<Vec<T>> = (0..p).map(|r| values(op.purpose(), p, 0, r, n)).collect();
        let combine = |ranks: &[usize]| -> Vec<T> {
            let one = |i: usize| {
                let values = ranks.iter().map(|&r| inputs[r][i]);
                values.reduce(|a, b| op.apply(a, b))
            };
            (0..n).filter_map(one).collect()
        };
        let right = combine(&[0, 1, 2, 3, 4, 5]);
        let shows = |ranks: &[usize]| {
            let wrong = combine(ranks);
            right.iter().zip(wrong).filter(|&(&a, b)| a != b).count()
        };
        for rank in 0..p {
            let peers: Vec<usize> = (0..p).filter(|&r| r != rank).collect();
            let context = format!("{name} {} rank {rank}", T::TYPE.name());
            assert!(shows(&peers) > n / 20, "{context} missing");
            let instead = [&peers[..], &[(rank + 1) % p]].concat();
            assert!(shows(&instead) > n / 20, "{context} replaced");
            if !forgives {
                let twice = [&[0, 1, 2, 3, 4, 5], &[rank][..]].concat();
                assert!(shows(&twice) > n * 9 / 10, "{context} twice");
            }
            if !forgives && name != "bxor" {
                let thrice = [&[0, 1, 2, 3, 4, 5], &[rank, rank][..]].concat();
                assert!(shows(&thrice) > n / 2, "{context} three times");
            }
        }
    }

    #[test]
    fn results_show_every_contribution() {
        for name in Operator::<u8>::NAMES {
            check_visible::<u8>(name);
            check_visible::<i32>(name);
            check_visible::<i64>(name);
            check_visible::<u64>(name);
            check_visible::<f32>(name);
            check_visible::<f64>(name);
        }
    }

    #[test]
    fn values_have_no_period_and_differ_between_ranks_and_sets() {
        let bytes = values::<u8>(Purpose::Any, 8, 0, 0, 1 << 16);
        for shift in (1..5000).chain([8192, 1 << 15]) {
            let same = bytes[shift..].iter().zip(&bytes).filter(|(a, b)| a == b);
            let (same, all) = (same.count(), bytes.len() - shift);
            assert!(same < all / 100, "{same} of {all} repeat after {shift}");
        }
        let mut seen = HashSet::new();
        for set in 0..20 {
            for rank in 0..20 {
                for value in values::<u64>(Purpose::Any, 20, set, rank, 100) {
                    assert!(seen.insert(value), "set {set}, rank {rank}: {value} again");
                }
            }
        }
        // A part of an input equals that part of the whole, wherever it begins.
        for first in 0..20 {
            let mut part = [0u8; 30];
            Samples::new(Purpose::Any, 8, 0).fill(0, first, &mut part);
            assert_eq!(part, bytes[first..first + 30]);
        }
    }

    #[test]
    fn float_results_do_not_depend_on_the_order() {
        for name in ["sum", "prod", "min", "max"] {
            for p in [2, 7, 64, 500, 3000] {
                let op = Operator::<f32>::named(name).unwrap();
                let inputs: Vec<Vec<f32>> =
                    (0..p).map(|r| values(op.purpose(), p, 0, r, 50)).collect();
                for i in 0..50 {
                    let v: Vec<f32> = inputs.iter().map(|input| input[i]).collect();
                    let combine = |order: &mut dyn Iterator<Item = f32>| {
                        order.reduce(|a, b| op.apply(a, b)).unwrap()
                    };
                    let forwards = combine(&mut v.iter().copied());
                    let backwards = combine(&mut v.iter().rev().copied());
                    let mut sorted = v.clone();
                    sorted.sort_by(|a, b| b.abs().total_cmp(&a.abs()).then(b.total_cmp(a)));
                    let by_size = combine(&mut sorted.iter().copied());
                    assert_eq!([forwards, forwards], [backwards, by_size], "{name} p={p}");
                    assert!(forwards.is_finite() && forwards != 0.0, "{name} p={p}");
                    let exact = v.iter().map(|&x| f64::from(x)).sum::<f64>();
                    assert!(name != "sum" || f64::from(forwards) == exact);
                }
            }
        }
    }

    #[test]
    fn affine_is_associative_and_does_not_commute() {
        let op = Operator::<u64>::named("affine").unwrap();
        let v = values::<u64>(Purpose::Affine, 50, 0, 1, 50);
        for w in v.windows(3) {
            let (a, b, c) = (w[0], w[1], w[2]);
            assert_eq!(op.apply(op.apply(a, b), c), op.apply(a, op.apply(b, c)));
            assert_ne!(op.apply(a, b), op.apply(b, a));
        }
    }
}
