//! The names of the built-in operators.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// A built-in operator of whatever element type: see [`Operator`](super::Operator).
///
/// Integers have all of them except [`Op::AFFINE`], which is for `u64` only. Floats have the first
/// four.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Op(&'static str);

impl Op {
    /// Sum; of integers, modulo their range.
    pub const SUM: Op = Op("sum");
    /// Product; of integers, modulo their range.
    pub const PROD: Op = Op("prod");
    /// Minimum.
    pub const MIN: Op = Op("min");
    /// Maximum.
    pub const MAX: Op = Op("max");
    /// Bitwise and.
    pub const BAND: Op = Op("band");
    /// Bitwise or.
    pub const BOR: Op = Op("bor");
    /// Bitwise exclusive or.
    pub const BXOR: Op = Op("bxor");
    /// Composition of affine maps, which does not commute: an element packs a map `x → a x + b`
    /// over 32-bit integers (`a` in the high half), and `f ⊕ g` is `f` after `g`.
    pub const AFFINE: Op = Op("affine");

    /// All built-in operators, in the order they are listed to users.
    pub const ALL: [Op; 8] = [
        Op::SUM,
        Op::PROD,
        Op::MIN,
        Op::MAX,
        Op::BAND,
        Op::BOR,
        Op::BXOR,
        Op::AFFINE,
    ];

    /// The name in files and on the command line.
    pub fn name(self) -> &'static str {
        self.0
    }

    /// Whether it commutes.
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

    /// Finds the operator with this name.
    ///
    /// # Errors
    /// An unknown name; the message lists the valid ones.
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
