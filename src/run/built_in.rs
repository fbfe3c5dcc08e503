//! This crate's own element types: their test values and operators.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "test values of any type are made of 64 random bits"
)]

use std::any::Any;
use std::hash::{Hash, Hasher};
use std::ops::{Add, BitAnd, BitOr, BitXor, Mul};
use std::sync::Arc;

use super::combine::{BuiltIn, Combine};
use super::element::{Element, ElementType, sealed};
use super::located::Located;
use super::op::Op;
use super::testdata::{Draw, Purpose, poison_float, poison_integer, sample_float, sample_integer};
use super::transfer::combine_each;

/// A vectorized kernel over whole slices.
macro_rules! kernel {
    ($f:expr) => {
        |acc, other| combine_each(acc, other, $f)
    };
}

/// The built-in operator `$op` from a table of operators, the purpose of their test values, and
/// their kernels.
macro_rules! operators {
    ($op:expr, $($name:ident $purpose:ident $kernel:expr,)*) => {{
        let (purpose, kernel): (Purpose, fn(&mut [Self], &[Self])) = match $op {
            $(Op::$name => (Purpose::$purpose, $kernel),)*
            _ => return None,
        };
        Some(BuiltIn {
            purpose,
            combine: Combine::Kernel(kernel),
        })
    }};
}

macro_rules! integer {
    ($t:ty, $type:ident) => {
        impl Element for $t {
            fn test_value(bits: u64) -> Self {
                bits as $t
            }

            fn digest(values: &[Self], hasher: &mut impl Hasher) {
                Hash::hash_slice(values, hasher);
            }

            fn sample(purpose: Purpose, draw: Draw) -> Self {
                sample_integer(purpose, draw, <$t>::BITS, <$t>::MIN != 0) as $t
            }

            fn poison(purpose: Purpose, bits: u64) -> Self {
                poison_integer(purpose, bits, <$t>::BITS, <$t>::MIN != 0) as $t
            }

            fn spoiled(a: Self, b: Self) -> Self {
                a.wrapping_add(b).rotate_left(3) ^ 0x35
            }

            fn built_in(op: Op) -> Option<BuiltIn<Self>> {
                if op == Op::AFFINE {
                    return affine_maps::<$t>();
                }
                operators!(op,
                    SUM Sum kernel!(<$t>::wrapping_add),
                    PROD Product kernel!(<$t>::wrapping_mul),
                    MIN Min kernel!(Ord::min),
                    MAX Max kernel!(Ord::max),
                    BAND And kernel!(BitAnd::bitand),
                    BOR Or kernel!(BitOr::bitor),
                    BXOR Any kernel!(BitXor::bitxor),
                    LAND LogicalAnd kernel!(|a, b| <$t>::from(a != 0 && b != 0)),
                    LOR LogicalOr kernel!(|a, b| <$t>::from(a != 0 || b != 0)),
                    LXOR LogicalXor kernel!(|a, b| <$t>::from((a != 0) != (b != 0))),
                )
            }

            fn element_type(_: sealed::Seal) -> Option<ElementType> {
                Some(ElementType::$type)
            }
        }
    };
}

/// A float type with the macro that makes its kernels, the type in which they compute, and the
/// conversion from `f64`.
macro_rules! float {
    ($t:ty, $type:ident, $kernel:ident $wide:ty, $from:expr) => {
        impl Element for $t {
            fn test_value(bits: u64) -> Self {
                $from(bits as f64)
            }

            fn digest(values: &[Self], hasher: &mut impl Hasher) {
                for value in values {
                    hasher.write(&value.to_ne_bytes());
                }
            }

            fn sample(purpose: Purpose, draw: Draw) -> Self {
                const WIDTH: u32 = 8 * size_of::<$t>() as u32;
                const MAX_EXPONENT: u32 = <$t>::MAX_EXP.unsigned_abs();
                let digits = <$t>::MANTISSA_DIGITS;
                $from(sample_float(purpose, draw, WIDTH, digits, MAX_EXPONENT))
            }

            fn poison(purpose: Purpose, bits: u64) -> Self {
                $from(poison_float(purpose, bits))
            }

            fn spoiled(_: Self, _: Self) -> Self {
                <$t>::NAN
            }

            fn built_in(op: Op) -> Option<BuiltIn<Self>> {
                operators!(op,
                    SUM Sum $kernel!(Add::add),
                    PROD Product $kernel!(Mul::mul),
                    MIN Min $kernel!(|a: $wide, b: $wide| if b < a { b } else { a }),
                    MAX Max $kernel!(|a: $wide, b: $wide| if b > a { b } else { a }),
                )
            }

            fn element_type(_: sealed::Seal) -> Option<ElementType> {
                Some(ElementType::$type)
            }
        }
    };
}

/// The 16-bit floats: slices are combined as `f32`, and each result is rounded once.
#[cfg(feature = "half")]
mod half_floats {
    use half::slice::HalfFloatSliceExt;
    use half::{bf16, f16};

    use super::*;

    /// A kernel over slices of 16-bit floats that combines them as `f32`.
    macro_rules! wide_kernel {
        ($f:expr) => {
            |acc, other| {
                const CHUNK: usize = 128;
                let (mut wide, mut wide_other) = ([0f32; CHUNK], [0f32; CHUNK]);
                for (acc, other) in acc.chunks_mut(CHUNK).zip(other.chunks(CHUNK)) {
                    let (wide, wide_other) = (&mut wide[..acc.len()], &mut wide_other[..acc.len()]);
                    acc.convert_to_f32_slice(wide);
                    other.convert_to_f32_slice(wide_other);
                    combine_each(wide, wide_other, $f);
                    acc.convert_from_f32_slice(wide);
                }
            }
        };
    }

    float!(f16, F16, wide_kernel f32, f16::from_f64);
    float!(bf16, Bf16, wide_kernel f32, bf16::from_f64);
}

/// A value of an integer or float type with its place, aligned like an `i32` and without padding.
macro_rules! located {
    ($t:ty, $type:ident) => {
        const _: () = assert!(size_of::<Located<$t>>() == size_of::<$t>() + size_of::<i32>());

        impl Element for Located<$t> {
            fn test_value(bits: u64) -> Self {
                Located {
                    value: <$t>::test_value(bits),
                    index: (bits >> 32) as i32,
                }
            }

            fn digest(values: &[Self], hasher: &mut impl Hasher) {
                for value in values {
                    <$t>::digest(&[value.value], hasher);
                    hasher.write_i32(value.index);
                }
            }

            fn sample(purpose: Purpose, draw: Draw) -> Self {
                let (draw, index) = draw.often_equal(8 * size_of::<$t>() as u32);
                let value = <$t>::sample(purpose, draw);
                Located { value, index }
            }

            fn poison(purpose: Purpose, bits: u64) -> Self {
                let value = <$t>::poison(purpose, bits);
                Located { value, index: -1 }
            }

            fn spoiled(a: Self, b: Self) -> Self {
                let value = <$t>::spoiled(a.value, b.value);
                Located { value, index: -2 }
            }

            fn built_in(op: Op) -> Option<BuiltIn<Self>> {
                operators!(op,
                    MINLOC Min kernel!(|a: Self, b: Self| a.first_if(b, a.value < b.value)),
                    MAXLOC Max kernel!(|a: Self, b: Self| a.first_if(b, a.value > b.value)),
                )
            }

            fn element_type(_: sealed::Seal) -> Option<ElementType> {
                Some(ElementType::$type)
            }
        }
    };
}

/// The operator of affine maps, which exists for `u64` only.
fn affine_maps<T: Element>() -> Option<BuiltIn<T>> {
    let maps = BuiltIn::<u64> {
        purpose: Purpose::Affine,
        combine: Combine::Function(Arc::new(affine)),
    };
    (&maps as &dyn Any).downcast_ref().cloned()
}

/// `f ⊕ g` for maps `x → a x + b` packed as `a << 32 | b`: `f` after `g`.
fn affine(f: u64, g: u64) -> u64 {
    let low = |x: u64| x & 0xffff_ffff;
    let (a, b, c, d) = (f >> 32, low(f), g >> 32, low(g));
    low(a.wrapping_mul(c)) << 32 | low(a.wrapping_mul(d).wrapping_add(b))
}

integer!(u8, U8);
integer!(i8, I8);
integer!(u16, U16);
integer!(i16, I16);
integer!(u32, U32);
integer!(i32, I32);
integer!(u64, U64);
integer!(i64, I64);
float!(f32, F32, kernel f32, |x: f64| x as f32);
float!(f64, F64, kernel f64, |x: f64| x);
located!(i32, I32I32);
located!(f32, F32I32);
