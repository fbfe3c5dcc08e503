//! The operators of reductions.

use std::fmt;
use std::sync::Arc;

use super::combine::Combine;
use super::element::{Element, ElementType};
use super::op::Op;
use super::testdata::Purpose;
use super::transfer::combine_each;
use crate::error::{Error, Result};
use crate::schedule::Order;

/// An associative operator on elements, built in or defined by the user. A clone shares the
/// function.
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
    /// Which built-in operator it is.
    op: Option<Op>,
    commutes: bool,
    /// How test values have to be chosen, if the operator is known.
    purpose: Purpose,
    combine: Combine<T>,
}

impl<T: Element> Operator<T> {
    /// An operator defined by the user. `f` must be associative; `commutes` says whether `f(a, b) =
    /// f(b, a)` for all operands. Several threads may call `f` at once; a panic in it ends the run
    /// with [`ErrorKind::Panicked`](crate::ErrorKind::Panicked).
    ///
    /// The name is for reports and must not be empty in a [`Run`](super::Run). Over MPI all
    /// processes must give the same name, `commutes` and `f`, which is tried on test data.
    ///
    /// Test data for such an operator are arbitrary values. Float sums of them are not exact: a
    /// verified run needs an `f` that is associative to the last bit.
    pub fn new(name: &str, commutes: bool, f: impl Fn(T, T) -> T + Send + Sync + 'static) -> Self {
        Operator {
            name: name.into(),
            op: None,
            commutes,
            purpose: Purpose::Any,
            combine: Combine::Function(Arc::new(f)),
        }
    }

    /// The operator for collectives that combine nothing, named `none`: a schedule that combines
    /// nevertheless makes its data visibly wrong.
    pub fn none() -> Self {
        let spoil: fn(&mut [T], &[T]) = |acc, other| combine_each(acc, other, T::spoiled);
        Operator {
            name: "none".into(),
            op: None,
            commutes: true,
            purpose: Purpose::Any,
            combine: Combine::Kernel(spoil),
        }
    }

    /// The built-in operator `name`.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) if there is no operator of this name, or not
    /// for this element type.
    pub fn named(name: &str) -> Result<Self> {
        name.parse::<Op>()?.try_into()
    }

    /// Which built-in operator it is, if it is one.
    pub fn op(&self) -> Option<Op> {
        self.op
    }

    pub(super) fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// The operator's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the operator commutes, as the user says for one of their own.
    pub fn commutes(&self) -> bool {
        self.commutes
    }

    /// Whether results are rounded, so that their bits depend on the order of combining: built-in
    /// sums and products of floats.
    pub(super) fn rounds(&self) -> bool {
        let floats = ElementType::of::<T>().and_then(ElementType::significand_bits);
        floats.is_some() && matches!(self.op, Some(Op::SUM | Op::PROD))
    }

    /// `a ⊕ b`: `a` is the left operand.
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

    /// The built-in operator `op`, if the element type has it.
    fn try_from(op: Op) -> Result<Self> {
        let found = T::built_in(op).ok_or_else(|| {
            let name = ElementType::of::<T>().map_or(std::any::type_name::<T>(), ElementType::name);
            Error::usage(format!("{name} has no operator '{op}'"))
        })?;
        Ok(Operator {
            name: op.name().into(),
            op: Some(op),
            commutes: op.commutes(),
            purpose: found.purpose,
            combine: found.combine,
        })
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
