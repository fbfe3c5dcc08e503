//! How two vectors are combined, element by element.

use std::fmt;
use std::sync::Arc;

use super::testdata::Purpose;

/// How an operator combines.
#[derive(Clone)]
pub(super) enum Combine<T> {
    /// `acc[i] = acc[i] ⊕ other[i]`, for an operator that commutes.
    Kernel(fn(&mut [T], &[T])),
    /// `f(a, b) = a ⊕ b`.
    Function(Arc<dyn Fn(T, T) -> T + Send + Sync>),
}

impl<T> fmt::Debug for Combine<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Combine::Kernel(_) => "Kernel",
            Combine::Function(_) => "Function",
        })
    }
}

/// A built-in operator of an element type, and the test data that show what it does.
#[derive(Debug, Clone)]
pub struct BuiltIn<T> {
    pub(super) purpose: Purpose,
    pub(super) combine: Combine<T>,
}
