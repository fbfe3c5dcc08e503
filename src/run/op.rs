//! The names of the built-in operators.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

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

impl Op {
    /// Sum; of integers, wrapping around.
    pub const SUM: Op = Op("sum");
    /// Product; of integers, wrapping around.
    pub const PROD: Op = Op("prod");
    /// Minimum. If an operand is NaN, the result is one of the two.
    pub const MIN: Op = Op("min");
    /// Maximum. If an operand is NaN, the result is one of the two.
    pub const MAX: Op = Op("max");
    /// Bitwise and.
    pub const BAND: Op = Op("band");
    /// Bitwise or.
    pub const BOR: Op = Op("bor");
    /// Bitwise exclusive or.
    pub const BXOR: Op = Op("bxor");
    /// Logical and: 1 where both are not 0, otherwise 0.
    pub const LAND: Op = Op("land");
    /// Logical or: 1 where one is not 0, otherwise 0.
    pub const LOR: Op = Op("lor");
    /// Logical exclusive or: 1 where exactly one is not 0, otherwise 0.
    pub const LXOR: Op = Op("lxor");
    /// The smaller value with its place; of equal values, the smaller place.
    pub const MINLOC: Op = Op("minloc");
    /// The larger value with its place; of equal values, the smaller place.
    pub const MAXLOC: Op = Op("maxloc");
    /// Composition of affine maps, which does not commute: an element packs a map `x → a x + b`
    /// over 32-bit integers (`a` in the high half), and `f ⊕ g` is `f` after `g`.
    pub const AFFINE: Op = Op("affine");

    /// All built-in operators, in the order they are listed to users.
    pub const ALL: [Op; 13] = [
        Op::SUM,
        Op::PROD,
        Op::MIN,
        Op::MAX,
        Op::BAND,
        Op::BOR,
        Op::BXOR,
        Op::LAND,
        Op::LOR,
        Op::LXOR,
        Op::MINLOC,
        Op::MAXLOC,
        Op::AFFINE,
    ];

    /// The name in files and on the command line, such as `sum`.
    pub fn name(self) -> &'static str {
        self.0
    }

    /// Whether it commutes: all but [`Op::AFFINE`].
    pub fn commutes(self) -> bool {
        self != Op::AFFINE
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0)
    }
}

impl FromStr for Op {
    type Err = Error;

    /// Finds the operator with exactly this name. The message about an unknown name lists all.
    fn from_str(name: &str) -> Result<Op> {
        let named = |op: &Op| op.0 == name;
        Op::ALL.into_iter().find(named).ok_or_else(|| {
            Error::usage(format!(
                "unknown operator '{name}': choose one of {}",
                Op::ALL.map(Op::name).join(", ")
            ))
        })
    }
}
