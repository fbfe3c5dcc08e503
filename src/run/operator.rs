//! Operators that reductions combine with.

use std::fmt;
use std::sync::Arc;

use super::data::{Purpose, affine, sample_float, sample_integer};
use super::element::{Element, ElementType};
use super::transfer::combine_each;
use crate::error::{Error, Result};
use crate::schedule::Order;

/// An associative operator on elements, built in or the user's.
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
    combine: Combine<T>,
}

#[derive(Clone)]
enum Combine<T> {
    /// `acc[i] = acc[i] ⊕ other[i]`, for an operator that commutes.
    Kernel(fn(&mut [T], &[T])),
    Function(Arc<dyn Fn(T, T) -> T + Send + Sync>),
}

impl<T: Element> Operator<T> {
    /// Names of the built-in operators; integers have all of them, floats the first four, and `affine` is for `u64`.
    ///
    /// `affine` does not commute: an element packs a map `x → a x + b` over 32-bit integers (`a` in the high half), and
    /// `f ⊕ g` is `f` after `g`.
    pub const NAMES: [&'static str; 8] =
        ["sum", "prod", "min", "max", "band", "bor", "bxor", "affine"];

    /// An operator of your own: associative, and `commutes` says whether `f(a, b) = f(b, a)` for all operands.
    pub fn new(name: &str, commutes: bool, f: impl Fn(T, T) -> T + Send + Sync + 'static) -> Self {
        Operator {
            name: name.into(),
            commutes,
            combine: Combine::Function(Arc::new(f)),
        }
    }

    /// A built-in operator.
    ///
    /// # Errors
    /// When there is none of this name, or not for this element type.
    pub fn named(name: &str) -> Result<Self> {
        T::built_in(name).ok_or_else(|| {
            Error::usage(if Self::NAMES.contains(&name) {
                format!("{} has no operator '{name}'", T::TYPE.name())
            } else {
                format!(
                    "unknown operator '{name}': choose one of {}",
                    Self::NAMES.join(", ")
                )
            })
        })
    }

    fn kernel(name: &str, kernel: fn(&mut [T], &[T])) -> Self {
        Operator {
            name: name.into(),
            commutes: true,
            combine: Combine::Kernel(kernel),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether operands may change places.
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

impl<T> fmt::Debug for Operator<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Operator({}, commutes: {})", self.name, self.commutes)
    }
}

/// A kernel over whole slices, in vectors.
macro_rules! kernel {
    ($f:expr) => {
        |acc, other| combine_each(acc, other, $f)
    };
}

macro_rules! integer {
    ($t:ty, $type:expr, $affine:expr) => {
        impl Element for $t {
            const TYPE: ElementType = $type;

            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_possible_wrap,
                reason = "test values keep the low bits"
            )]
            fn sample(rank: usize, index: usize, ranks: usize, purpose: Purpose) -> Self {
                sample_integer(rank, index, ranks, purpose, <$t>::BITS) as $t
            }

            fn built_in(name: &str) -> Option<Operator<Self>> {
                let kernel: fn(&mut [$t], &[$t]) = match name {
                    "sum" => kernel!(<$t>::wrapping_add),
                    "prod" => kernel!(<$t>::wrapping_mul),
                    "min" => kernel!(Ord::min),
                    "max" => kernel!(Ord::max),
                    "band" => kernel!(std::ops::BitAnd::bitand),
                    "bor" => kernel!(std::ops::BitOr::bitor),
                    "bxor" => kernel!(std::ops::BitXor::bitxor),
                    _ => return $affine(name),
                };
                Some(Operator::kernel(name, kernel))
            }
        }
    };
}

macro_rules! float {
    ($t:ty, $type:expr) => {
        impl Element for $t {
            const TYPE: ElementType = $type;

            #[allow(
                clippy::cast_possible_truncation,
                reason = "test values are exact in the type"
            )]
            fn sample(rank: usize, index: usize, ranks: usize, purpose: Purpose) -> Self {
                sample_float(
                    rank,
                    index,
                    ranks,
                    purpose,
                    <$t>::MANTISSA_DIGITS,
                    <$t>::MAX_EXP,
                ) as $t
            }

            fn built_in(name: &str) -> Option<Operator<Self>> {
                let kernel: fn(&mut [$t], &[$t]) = match name {
                    "sum" => kernel!(std::ops::Add::add),
                    "prod" => kernel!(std::ops::Mul::mul),
                    "min" => kernel!(|a: $t, b: $t| if b < a { b } else { a }),
                    "max" => kernel!(|a: $t, b: $t| if b > a { b } else { a }),
                    _ => return None,
                };
                Some(Operator::kernel(name, kernel))
            }
        }
    };
}

integer!(u8, ElementType::U8, |_| None);
integer!(i32, ElementType::I32, |_| None);
integer!(i64, ElementType::I64, |_| None);
integer!(u64, ElementType::U64, |name| (name == "affine")
    .then(|| Operator::new("affine", false, affine)));
float!(f32, ElementType::F32);
float!(f64, ElementType::F64);
