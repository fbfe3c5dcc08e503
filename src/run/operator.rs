//! The operators of reductions.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use super::element::{Element, ElementType};
use super::op::Op;
use super::testdata::{Draw, Purpose, poison_float, poison_integer, sample_float, sample_integer};
use super::transfer::combine_each;
use crate::error::{Error, Result};
use crate::schedule::Order;

/// An associative operator on elements, built in or defined by the user.
///
/// ```
/// use oneport::run::Operator;
/// let sum = Operator::<f32>::named("sum")?;
/// assert!(sum.commutes());
/// let left = Operator::<u64>::new("left", false, |a, _| a);
/// assert_eq!(left.apply(3, 4), 3);
/// # Ok::<(), oneport::Error>(())
/// ```
#[derive(Clone)]
pub struct Operator<T> {
    name: Arc<str>,
    commutes: bool,
    /// How test values have to be chosen, if the operator is known.
    purpose: Purpose,
    combine: Combine<T>,
}

#[derive(Clone)]
enum Combine<T> {
    /// `acc[i] = acc[i] ⊕ other[i]`, for an operator that commutes.
    Kernel(fn(&mut [T], &[T])),
    Function(Arc<dyn Fn(T, T) -> T + Send + Sync>),
}

impl<T: Element> Operator<T> {
    /// An operator defined by the user. `f` must be associative; `commutes` says whether
    /// `f(a, b) = f(b, a)` for all operands.
    pub fn new(name: &str, commutes: bool, f: impl Fn(T, T) -> T + Send + Sync + 'static) -> Self {
        Operator {
            name: name.into(),
            commutes,
            purpose: Purpose::Any,
            combine: Combine::Function(Arc::new(f)),
        }
    }

    /// The operator for collectives that combine nothing: a schedule that combines nevertheless
    /// makes its data visibly wrong.
    pub fn none() -> Self {
        Operator::kernel("none", Purpose::Any, |acc, other| {
            combine_each(acc, other, T::spoiled);
        })
    }

    /// The built-in operator `name`.
    ///
    /// # Errors
    /// When there is no operator of this name, or not for this element type.
    pub fn named(name: &str) -> Result<Self> {
        name.parse::<Op>()?.try_into()
    }

    fn kernel(name: &str, purpose: Purpose, kernel: fn(&mut [T], &[T])) -> Self {
        Operator {
            name: name.into(),
            commutes: true,
            purpose,
            combine: Combine::Kernel(kernel),
        }
    }

    pub(super) fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// The operator's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the operator commutes.
    pub fn commutes(&self) -> bool {
        self.commutes
    }

    /// `a ⊕ b`.
    pub fn apply(&self, a: T, b: T) -> T {
        let mut acc = [a];
        self.combine(&mut acc, &[b], Order::MineFirst);
        acc[0]
    }

    /// Combines `other` into `acc`, element by element.
    pub(crate) fn combine(&self, acc: &mut [T], other: &[T], order: Order) {
        match (&self.combine, order) {
            (Combine::Kernel(kernel), _) => kernel(acc, other),
            (Combine::Function(f), Order::MineFirst) => {
                for (a, &b) in acc.iter_mut().zip(other) {
                    *a = f(*a, b);
                }
            }
            (Combine::Function(f), Order::TheirsFirst) => {
                for (a, &b) in acc.iter_mut().zip(other) {
                    *a = f(b, *a);
                }
            }
        }
    }
}

impl<T: Element> TryFrom<Op> for Operator<T> {
    type Error = Error;

    /// The built-in operator `op`.
    ///
    /// # Errors
    /// When the element type does not have it.
    fn try_from(op: Op) -> Result<Self> {
        T::built_in(op.name())
            .ok_or_else(|| Error::usage(format!("{} has no operator '{op}'", T::TYPE.name())))
    }
}

impl<T: Clone> From<&Operator<T>> for Operator<T> {
    fn from(operator: &Operator<T>) -> Self {
        operator.clone()
    }
}

impl<T> fmt::Debug for Operator<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Operator({}, commutes: {})", self.name, self.commutes)
    }
}

/// A vectorized kernel over whole slices.
macro_rules! kernel {
    ($f:expr) => {
        |acc, other| combine_each(acc, other, $f)
    };
}

macro_rules! integer {
    ($t:ty, $type:expr, $affine:expr) => {
        impl Element for $t {
            const TYPE: ElementType = $type;

            fn sample(purpose: Purpose, draw: Draw) -> Self {
                sample_integer(purpose, draw, <$t>::BITS, <$t>::MIN != 0) as $t
            }

            fn poison(purpose: Purpose, bits: u64) -> Self {
                poison_integer(purpose, bits, <$t>::BITS, <$t>::MIN != 0) as $t
            }

            fn spoiled(a: Self, b: Self) -> Self {
                a.wrapping_add(b).rotate_left(3) ^ 0x35
            }

            fn hash(values: &[Self], hasher: &mut DefaultHasher) {
                Hash::hash_slice(values, hasher);
            }

            fn built_in(name: &str) -> Option<Operator<Self>> {
                let (purpose, kernel): (Purpose, fn(&mut [$t], &[$t])) = match name {
                    "sum" => (Purpose::Sum, kernel!(<$t>::wrapping_add)),
                    "prod" => (Purpose::Product, kernel!(<$t>::wrapping_mul)),
                    "min" => (Purpose::Min, kernel!(Ord::min)),
                    "max" => (Purpose::Max, kernel!(Ord::max)),
                    "band" => (Purpose::And, kernel!(std::ops::BitAnd::bitand)),
                    "bor" => (Purpose::Or, kernel!(std::ops::BitOr::bitor)),
                    "bxor" => (Purpose::Any, kernel!(std::ops::BitXor::bitxor)),
                    _ => return $affine(name),
                };
                Some(Operator::kernel(name, purpose, kernel))
            }
        }
    };
}

/// A 16-bit float: its slices are combined as `f32`, and each result is rounded once.
macro_rules! half_float {
    ($t:ty, $type:expr) => {
        impl Element for $t {
            const TYPE: ElementType = $type;

            fn sample(purpose: Purpose, draw: Draw) -> Self {
                const MAX_EXPONENT: u32 = <$t>::MAX_EXP.unsigned_abs();
                let digits = <$t>::MANTISSA_DIGITS;
                <$t>::from_f64(sample_float(purpose, draw, 16, digits, MAX_EXPONENT))
            }

            fn poison(purpose: Purpose, bits: u64) -> Self {
                <$t>::from_f64(poison_float(purpose, bits))
            }

            fn spoiled(_: Self, _: Self) -> Self {
                <$t>::NAN
            }

            fn hash(values: &[Self], hasher: &mut DefaultHasher) {
                for value in values {
                    hasher.write(&value.to_ne_bytes());
                }
            }

            fn built_in(name: &str) -> Option<Operator<Self>> {
                let (purpose, kernel): (Purpose, fn(&mut [$t], &[$t])) = match name {
                    "sum" => (Purpose::Sum, wide_kernel!(std::ops::Add::add)),
                    "prod" => (Purpose::Product, wide_kernel!(std::ops::Mul::mul)),
                    "min" => (
                        Purpose::Min,
                        wide_kernel!(|a: f32, b: f32| if b < a { b } else { a }),
                    ),
                    "max" => (
                        Purpose::Max,
                        wide_kernel!(|a: f32, b: f32| if b > a { b } else { a }),
                    ),
                    _ => return None,
                };
                Some(Operator::kernel(name, purpose, kernel))
            }
        }
    };
}

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

macro_rules! float {
    ($t:ty, $type:expr, $width:expr) => {
        impl Element for $t {
            const TYPE: ElementType = $type;

            fn sample(purpose: Purpose, draw: Draw) -> Self {
                const MAX_EXPONENT: u32 = <$t>::MAX_EXP.unsigned_abs();
                sample_float(purpose, draw, $width, <$t>::MANTISSA_DIGITS, MAX_EXPONENT) as $t
            }

            fn poison(purpose: Purpose, bits: u64) -> Self {
                poison_float(purpose, bits) as $t
            }

            fn spoiled(_: Self, _: Self) -> Self {
                <$t>::NAN
            }

            fn hash(values: &[Self], hasher: &mut DefaultHasher) {
                for value in values {
                    hasher.write(&value.to_ne_bytes());
                }
            }

            fn built_in(name: &str) -> Option<Operator<Self>> {
                let (purpose, kernel): (Purpose, fn(&mut [$t], &[$t])) = match name {
                    "sum" => (Purpose::Sum, kernel!(std::ops::Add::add)),
                    "prod" => (Purpose::Product, kernel!(std::ops::Mul::mul)),
                    "min" => (
                        Purpose::Min,
                        kernel!(|a: $t, b: $t| if b < a { b } else { a }),
                    ),
                    "max" => (
                        Purpose::Max,
                        kernel!(|a: $t, b: $t| if b > a { b } else { a }),
                    ),
                    _ => return None,
                };
                Some(Operator::kernel(name, purpose, kernel))
            }
        }
    };
}

/// The operator of affine maps, which exists for `u64` only.
fn affine_maps(name: &str) -> Option<Operator<u64>> {
    (name == "affine").then(|| Operator {
        purpose: Purpose::Affine,
        ..Operator::new("affine", false, affine)
    })
}

/// `f ⊕ g` for maps `x → a x + b` packed as `a << 32 | b`: `f` after `g`.
fn affine(f: u64, g: u64) -> u64 {
    let low = |x: u64| x & 0xffff_ffff;
    let (a, b, c, d) = (f >> 32, low(f), g >> 32, low(g));
    low(a.wrapping_mul(c)) << 32 | low(a.wrapping_mul(d).wrapping_add(b))
}

integer!(u8, ElementType::U8, |_| None);
integer!(i8, ElementType::I8, |_| None);
integer!(u16, ElementType::U16, |_| None);
integer!(i16, ElementType::I16, |_| None);
integer!(u32, ElementType::U32, |_| None);
integer!(i32, ElementType::I32, |_| None);
integer!(i64, ElementType::I64, |_| None);
integer!(u64, ElementType::U64, affine_maps);
half_float!(f16, ElementType::F16);
half_float!(bf16, ElementType::Bf16);
float!(f32, ElementType::F32, 32);
float!(f64, ElementType::F64, 64);
