//! The names of the built-in operators.

use crate::error::named;

/// A built-in operator of whatever element type: see [`Operator`](super::Operator).
///
/// Integers have all of them up to [`Op::LXOR`], and `u64` also [`Op::AFFINE`]. Floats have the
/// first four; the 16-bit floats are combined as `f32`, and each result is rounded. Values
/// [with their places](super::Located) have [`Op::MINLOC`] and [`Op::MAXLOC`].
///
/// ```
/// use oneport::run::{Op, Operator};
/// let op: Op = "max".parse()?;
/// assert_eq!(op, Op::MAX);
/// assert_eq!(Operator::<u8>::try_from(op)?.apply(3, 4), 4);
/// assert!(Operator::<f32>::try_from(Op::BXOR).is_err());
/// # Ok::<(), oneport::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Op(&'static str);

macro_rules! operators {
    ($($(#[$doc:meta])* $constant:ident $name:literal,)*) => {
        impl Op {
            $($(#[$doc])* pub const $constant: Op = Op($name);)*

            /// All built-in operators, in the order they are listed to users.
            pub const ALL: [Op; [$($name),*].len()] = [$(Op::$constant),*];
        }
    };
}

operators! {
    /// Sum; of integers, wrapping around.
    SUM "sum",
    /// Product; of integers, wrapping around.
    PROD "prod",
    /// Minimum. If an operand is NaN, the result is one of the two.
    MIN "min",
    /// Maximum. If an operand is NaN, the result is one of the two.
    MAX "max",
    /// Bitwise and.
    BAND "band",
    /// Bitwise or.
    BOR "bor",
    /// Bitwise exclusive or.
    BXOR "bxor",
    /// Logical and: 1 where both are not 0, otherwise 0.
    LAND "land",
    /// Logical or: 1 where one is not 0, otherwise 0.
    LOR "lor",
    /// Logical exclusive or: 1 where exactly one is not 0, otherwise 0.
    LXOR "lxor",
    /// The smaller value with its place; of equal values, the smaller place.
    MINLOC "minloc",
    /// The larger value with its place; of equal values, the smaller place.
    MAXLOC "maxloc",
    /// Composition of affine maps, which does not commute: an element packs a map `x → a x + b`
    /// over 32-bit integers (`a` in the high half), and `f ⊕ g` is `f` after `g`.
    AFFINE "affine",
}

impl Op {
    /// The name in files and on the command line, such as `sum`.
    pub fn name(self) -> &'static str {
        self.0
    }

    /// Whether it commutes: all but [`Op::AFFINE`].
    pub fn commutes(self) -> bool {
        self != Op::AFFINE
    }
}

named!(Op, "operator", str::to_owned);
