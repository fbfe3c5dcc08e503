//! The values that fill a buffer outside its input, so that elements never written show.

use super::values::{FEW, Purpose};

/// A value of `width` bits that no test value has, and that spoils what it is combined with.
pub(crate) fn poison_integer(purpose: Purpose, bits: u64, width: u32, signed: bool) -> u64 {
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
        // Wrong where no rank decides.
        Purpose::LogicalAnd => 0,
        Purpose::LogicalOr | Purpose::LogicalXor => mask,
        Purpose::Affine => bits & !(1 << 32),
    }
}

/// A float that no test value has, and that spoils what it is combined with.
pub(crate) fn poison_float(purpose: Purpose, bits: u64) -> f64 {
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
    use super::super::values::scrambled;
    use super::super::values::tests::values;
    use super::*;
    use crate::run::element::{Element, ElementType};
    use crate::run::op::Op;
    use crate::run::operator::Operator;
    use crate::run::{bf16, f16};

    /// Those whose test values are never identities; the others take a bit of each.
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

    fn poison<T: Element>(purpose: Purpose) -> Vec<T> {
        let bits = (0..300).map(|i| scrambled(i / 20, i % 20));
        bits.map(|bits| T::poison(purpose, bits)).collect()
    }

    /// Checks that no test value is one of `identities`, NaN, or poison.
    fn check_values<T: Element + PartialOrd>(identities: &[T]) {
        for purpose in PURPOSES {
            if purpose == Purpose::Affine && T::built_in(Op::AFFINE).is_none() {
                continue;
            }
            let poison = poison::<T>(purpose);
            for p in [1, 2, 3, 8, 100, 1000] {
                for rank in [0, 1, p - 1].into_iter().filter(|&r| r < p) {
                    for value in values::<T>(purpose, p, 0, rank, 2000) {
                        assert!(!identities.contains(&value), "{purpose:?} p={p} {value:?}");
                        assert!(value.partial_cmp(&value).is_some(), "{purpose:?} {value:?}");
                        assert!(!poison.contains(&value), "{purpose:?} p={p} {value:?}");
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
        check_values::<i8>(&[0, 1, -1]);
        check_values::<u16>(&[0, 1, u16::MAX]);
        check_values::<i16>(&[0, 1, -1]);
        check_values::<u32>(&[0, 1, u32::MAX]);
        check_values::<i32>(&[0, 1, -1, i32::MIN, i32::MAX]);
        check_values::<i64>(&[0, 1, -1, i64::MIN, i64::MAX]);
        check_values::<u64>(&[0, 1, u64::MAX]);
        check_values::<f16>(&[f16::ZERO, f16::ONE, f16::INFINITY, f16::NEG_INFINITY]);
        check_values::<bf16>(&[bf16::ZERO, bf16::ONE, bf16::INFINITY, bf16::NEG_INFINITY]);
        check_values::<f32>(&[0.0, 1.0, f32::INFINITY, f32::NEG_INFINITY]);
        check_values::<f64>(&[0.0, 1.0, f64::INFINITY, f64::NEG_INFINITY]);
    }

    fn check_poison<T: Element>() {
        for op in Op::ALL {
            let Ok(op) = Operator::<T>::try_from(op) else {
                continue;
            };
            let poison = poison::<T>(op.purpose());
            let inputs = values::<T>(op.purpose(), 5, 3, 2, poison.len());
            let mut spoiled = 0;
            for (&value, &poison) in inputs.iter().zip(&poison) {
                let results = [op.apply(value, poison), op.apply(poison, value)];
                spoiled += usize::from(!results.contains(&value));
            }
            // The zero that decides a logical and absorbs everything.
            let decided = if op.name() == "land" {
                inputs.len() / 5
            } else {
                0
            };
            assert!(spoiled + decided >= inputs.len(), "{op:?}: {spoiled}");
        }
        let none = Operator::<T>::none();
        let [a, b] = [1, 2].map(|rank| values::<T>(Purpose::Any, 5, 0, rank, 500));
        let spoiled = |(&a, &b)| ![a, b].contains(&none.apply(a, b));
        assert!(a.iter().zip(&b).filter(|&pair| spoiled(pair)).count() > 480);
    }

    #[test]
    fn poison_spoils_what_it_is_combined_with() {
        for &dtype in ElementType::ALL {
            crate::with_element_type!(dtype, T => check_poison::<T>());
        }
    }
}
