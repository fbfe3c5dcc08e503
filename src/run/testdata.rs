//! Test data: every element is distinct by rank and index, and every result is exactly predictable.

use super::element::Element;
use super::operator::Operator;
use crate::collective::{Collective, Kind, Totals};
use crate::error::Result;
use crate::schedule::{Layout, Order, total_len};

/// What test values are for, which decides how they are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub enum Purpose {
    /// They are moved, or the smallest or largest is kept: all distinct.
    Move,
    /// They are summed: sums stay exact.
    Sum,
    /// They are multiplied: products stay exact and lose no information.
    Product,
}

/// Inputs for every rank: `inputs[rank]` holds the elements of the rank's input spans in order.
///
/// Integer values are distinct for all ranks and indices as long as the type has that many values. Float values are whole numbers
/// whose sum over all ranks is exact (distinct as long as `ranks² × elements` stays below the type's precision), or powers
/// of two where they are multiplied; so every order of combining gives the same bits.
pub fn inputs<T: Element>(
    collective: &Collective,
    layout: &[Layout],
    operator: &Operator<T>,
) -> Vec<Vec<T>> {
    let purpose = match operator.name() {
        _ if !collective.kind().reduces() => Purpose::Move,
        "sum" => Purpose::Sum,
        "prod" => Purpose::Product,
        _ => Purpose::Move,
    };
    let p = layout.len();
    layout
        .iter()
        .enumerate()
        .map(|(rank, l)| {
            (0..total_len(&l.input))
                .map(|i| T::sample(rank, i, p, purpose))
                .collect()
        })
        .collect()
}

/// What every rank must hold in its output spans: computed from the inputs one after another, in rank order, with no schedule involved.
///
/// # Errors
/// As [`Collective::promises`].
pub fn oracle<T: Element>(
    collective: &Collective,
    layout: &[Layout],
    operator: &Operator<T>,
    inputs: &[Vec<T>],
) -> Result<Vec<Vec<T>>> {
    let totals = Totals::new(collective, layout);
    let mut common: Option<Vec<T>> = None;
    let mut before: Option<(std::ops::Range<usize>, Vec<T>)> = None;
    (0..layout.len())
        .map(|rank| {
            let mut output = Vec::new();
            for promise in totals.promises(rank)? {
                let part = promise.offset..promise.offset + promise.len;
                if collective.kind() == Kind::Scan {
                    // All ranks before this one are combined already.
                    let prefix = match before.take() {
                        Some((ranks, mut acc))
                            if ranks == (0..rank)
                                && promise.ranks == (0..rank + 1)
                                && acc.len() == promise.len =>
                        {
                            operator.combine(&mut acc, &inputs[rank][part], Order::MineFirst);
                            acc
                        }
                        _ => fold(operator, inputs, promise.ranks.clone(), part),
                    };
                    output.extend_from_slice(&prefix);
                    before = Some((promise.ranks, prefix));
                } else if promise.ranks.len() == layout.len() {
                    // The same combination of everything serves all ranks.
                    let all = common.get_or_insert_with(|| {
                        fold(operator, inputs, 0..layout.len(), 0..inputs[0].len())
                    });
                    output.extend_from_slice(&all[part]);
                } else {
                    output.extend(fold(operator, inputs, promise.ranks, part));
                }
            }
            Ok(output)
        })
        .collect()
}

fn fold<T: Element>(
    operator: &Operator<T>,
    inputs: &[Vec<T>],
    ranks: std::ops::Range<usize>,
    part: std::ops::Range<usize>,
) -> Vec<T> {
    let mut acc = inputs[ranks.start][part.clone()].to_vec();
    for rank in ranks.skip(1) {
        operator.combine(&mut acc, &inputs[rank][part.clone()], Order::MineFirst);
    }
    acc
}

/// `f ⊕ g` for maps `x → a x + b` packed as `a << 32 | b`: `f` after `g`.
pub(super) fn affine(f: u64, g: u64) -> u64 {
    let low = |x: u64| x & 0xffff_ffff;
    let (a, b, c, d) = (f >> 32, low(f), g >> 32, low(g));
    low(a.wrapping_mul(c)) << 32 | low(a.wrapping_mul(d).wrapping_add(b))
}

/// A permutation of the `bits`-bit numbers: multiplication by odd numbers and shifted exclusive-or.
fn scramble(x: u64, bits: u32) -> u64 {
    let mask = u64::MAX >> (64 - bits);
    let half = bits.div_ceil(2);
    let x = (x & mask).wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask;
    let x = x ^ (x >> half);
    let x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9) & mask;
    x ^ (x >> half)
}

fn serial(rank: usize, index: usize, ranks: usize) -> u64 {
    (index as u64)
        .wrapping_mul(ranks as u64)
        .wrapping_add(rank as u64)
}

pub(super) fn sample_integer(
    rank: usize,
    index: usize,
    ranks: usize,
    purpose: Purpose,
    bits: u32,
) -> u64 {
    let n = serial(rank, index, ranks);
    match purpose {
        Purpose::Move | Purpose::Sum => scramble(n, bits),
        // Odd factors can be divided out again modulo 2^bits, so no contribution is lost in the product.
        Purpose::Product => scramble(n, bits - 1) << 1 | 1,
    }
}

#[expect(clippy::cast_precision_loss, reason = "values are below 2^mantissa")]
pub(super) fn sample_float(
    rank: usize,
    index: usize,
    ranks: usize,
    purpose: Purpose,
    mantissa: u32,
    greatest_exponent: i32,
) -> f64 {
    let n = serial(rank, index, ranks);
    match purpose {
        Purpose::Move => scramble(n, mantissa) as f64,
        Purpose::Sum => {
            let values = ((1u64 << mantissa) / ranks.max(1) as u64).max(1);
            (n % values) as f64
        }
        Purpose::Product => {
            let most =
                i64::from(greatest_exponent - 2) / i64::try_from(ranks.max(1)).unwrap_or(i64::MAX);
            let scrambled = scramble(n, 62);
            let exponent = (scrambled >> 1).cast_signed() % (2 * most + 1) - most;
            let sign = if scrambled & 1 == 0 { 1.0 } else { -1.0 };
            #[expect(clippy::cast_possible_truncation, reason = "at most 1022")]
            let exponent = exponent as i32;
            sign * 2f64.powi(exponent)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn integers_are_distinct_while_the_type_has_room() {
        for p in [1, 3, 16, 64] {
            let values: HashSet<i32> = (0..p)
                .flat_map(|r| (0..500).map(move |i| i32::sample(r, i, p, Purpose::Sum)))
                .collect();
            assert_eq!(values.len(), p * 500);
        }
        let bytes: HashSet<u8> = (0..256)
            .map(|i| u8::sample(0, i, 1, Purpose::Move))
            .collect();
        assert_eq!(bytes.len(), 256);
    }

    #[test]
    fn float_results_do_not_depend_on_the_order() {
        for name in ["sum", "prod", "min", "max"] {
            for p in [2usize, 7, 64, 500] {
                let op = Operator::<f32>::named(name).unwrap();
                let purpose = match name {
                    "sum" => Purpose::Sum,
                    "prod" => Purpose::Product,
                    _ => Purpose::Move,
                };
                for i in [0, 1, 17, 99_999] {
                    let v: Vec<f32> = (0..p).map(|r| f32::sample(r, i, p, purpose)).collect();
                    let forwards = v.iter().copied().reduce(|a, b| op.apply(a, b)).unwrap();
                    let backwards = v
                        .iter()
                        .rev()
                        .copied()
                        .reduce(|a, b| op.apply(a, b))
                        .unwrap();
                    let exact = v.iter().map(|&x| f64::from(x)).sum::<f64>();
                    assert_eq!(forwards, backwards, "{name} p={p}");
                    assert!(forwards.is_finite());
                    assert!(name != "sum" || f64::from(forwards) == exact);
                }
            }
        }
    }

    #[test]
    fn affine_is_associative_and_does_not_commute() {
        let op = Operator::<u64>::named("affine").unwrap();
        let v: Vec<u64> = (0..50)
            .map(|i| u64::sample(i, 1, 50, Purpose::Move))
            .collect();
        for w in v.windows(3) {
            let (a, b, c) = (w[0], w[1], w[2]);
            assert_eq!(op.apply(op.apply(a, b), c), op.apply(a, op.apply(b, c)));
            assert_ne!(op.apply(a, b), op.apply(b, a));
        }
    }
}
