//! The values of test inputs, made from scrambled bits for the operator that combines them.

use crate::machine::numbers::{id, index};
use crate::random::Generator;
use crate::run::element::Element;

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
    /// Logical and: at most one rank has a zero.
    LogicalAnd,
    /// Logical or: at most one rank has something else than zero.
    LogicalOr,
    /// Logical exclusive or: three in four values are not zero.
    LogicalXor,
    /// Affine maps are composed: factors as for products.
    Affine,
    /// Floats are added or multiplied in an order that the result shows: all bits of the
    /// significand, and exponents that differ.
    Inexact,
}

/// The scrambled bits from which one test value is made.
#[derive(Debug, Clone, Copy)]
#[doc(hidden)]
pub struct Draw {
    /// As many low bits as the type has, at most 64; the others are 0.
    bits: u64,
    /// 64 bits of the element's index, the same for all ranks.
    shared: u64,
    rank: usize,
    ranks: usize,
}

impl Draw {
    pub(crate) fn bits(&self) -> u64 {
        self.bits
    }

    /// A draw of `width` bits, at most 64, and a number that no other rank has. For one in two
    /// elements all ranks have the same draw, so none wins.
    pub(crate) fn often_equal(self, width: u32) -> (Draw, i32) {
        let rotated = (self.rank as u64).wrapping_add(self.shared) % self.ranks as u64;
        let common = Draw {
            bits: self.shared & 0xff,
            rank: usize::MAX,
            ..self
        };
        let own = Draw {
            bits: self.bits & (u64::MAX >> (64 - width)),
            ..self
        };
        let draw = if self.shared & 1 == 0 { own } else { common };
        (draw, id(index(rotated)).cast_signed())
    }

    /// Whether this rank holds the extreme value of the element.
    fn wins(&self) -> bool {
        (u128::from(self.shared) * self.ranks as u128) >> 64 == self.rank as u128
    }

    /// Whether this rank alone decides a logical operation: one rank does for one in two elements,
    /// and none for the others.
    fn decides(&self) -> bool {
        self.shared & 1 == 0 && self.wins()
    }
}

/// Number `n` of the pseudo-random sequence of `key`.
pub(super) fn scrambled(key: u64, n: u64) -> u64 {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    Generator::new(key.wrapping_add(n.wrapping_mul(STEP))).next_u64()
}

/// One set of test data: the inputs of all ranks, as a function.
#[derive(Debug, Clone, Copy)]
pub(super) struct Samples {
    purpose: Purpose,
    ranks: usize,
    /// Key of all values of this set.
    key: u64,
}

impl Samples {
    pub(super) fn new(purpose: Purpose, ranks: usize, set: usize) -> Samples {
        const SEED: u64 = 0x6f6e_6570_6f72_7421;
        Samples {
            purpose,
            ranks,
            key: scrambled(SEED, set as u64),
        }
    }

    /// Writes elements `first..` of `rank`'s input into `values`.
    pub(super) fn fill<T: Element>(&self, rank: usize, first: usize, values: &mut [T]) {
        let element_bytes = size_of::<T>().min(size_of::<u64>());
        let per_word = size_of::<u64>() / element_bytes;
        let width = 8 * element_bytes;
        let mask = u64::MAX >> (64 - width);
        let key = scrambled(self.key, 1 + rank as u64);
        let shares = !matches!(
            self.purpose,
            Purpose::Any | Purpose::Sum | Purpose::Affine | Purpose::Inexact
        );
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

/// A test value of an integer type of `width` bits, at least 8.
pub(crate) fn sample_integer(purpose: Purpose, draw: Draw, width: u32, signed: bool) -> u64 {
    let mask = u64::MAX >> (64 - width);
    let top = 1 << (width - 1);
    let bits = draw.bits;
    match purpose {
        // Not 0, 1 or -1, not the smallest or largest number (signed or unsigned), and not poison.
        Purpose::Any | Purpose::Inexact => (bits & top) | (bits & (top - 1)).clamp(FEW, top - 2),
        // Not 1 or -1.
        Purpose::Sum => (bits | 1).clamp(3, mask - 2),
        Purpose::Product => factor(bits),
        Purpose::Max => largest(bits, draw.wins(), width) ^ if signed { top } else { 0 },
        Purpose::Min => (mask - largest(bits, draw.wins(), width)) ^ if signed { top } else { 0 },
        Purpose::Or => few_bits(draw, width),
        Purpose::And => mask - few_bits(draw, width),
        Purpose::LogicalAnd => u64::from(!draw.decides()) * bits.max(2),
        Purpose::LogicalOr => u64::from(draw.decides()) * bits.max(2),
        Purpose::LogicalXor => u64::from(!bits.is_multiple_of(4)) * bits.max(2),
        Purpose::Affine => factor(bits >> 32) << 32 | (bits & 0xffff_ffff | 1),
    }
}

/// One more than the number of values reserved for poison.
pub(super) const FEW: u64 = 5;

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
pub(crate) fn sample_float(
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
            let shifted = draw.rank as u64 + draw.shared % stride;
            if number == max || !shifted.is_multiple_of(stride) {
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
        // Absolute value in `[2^-4, 2^4)`: products of many neither overflow nor underflow soon.
        Purpose::Inexact => sign * fraction * f64::from(1u32 << (draw.bits >> 1 & 7)) / 16.0,
        // Absolute value in `[2, 2^9)`.
        _ => sign * fraction * f64::from(2u32 << (draw.bits >> 1 & 7)),
    }
}
