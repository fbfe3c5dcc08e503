//! Searches for the segments of a vector that gives an algorithm its shortest time.
//!
//! - The best number of segments of about the same size: `equal.rs`. Algorithms that have to be
//!   planned to be timed have a search of their own, beside them.
//! - Segments of unequal sizes: `unequal.rs`.
//! - The formulas of the published tables, as printed: `published.rs`.
//!
//! Times are *as executed*, that is, as the [rules of time](crate::rules) time the schedule. They
//! come from a closed form or an evaluator where there is one, and from a simulation otherwise, and
//! are in the unit of the request's cost model. Sizes are in elements.

mod equal;
mod published;
mod unequal;

#[doc(hidden)]
pub use equal::Best;
pub(in crate::plan) use equal::equal_size;
pub use published::Published;
pub(in crate::plan) use published::{SymbolValues, TABLE_I, TABLE_III, ceil_log2};
pub use unequal::{BestSizes, best_unequal};
#[doc(hidden)]
pub use unequal::{best_sizes, compositions};

use super::Segments;
pub use super::space::Method;
use crate::error::Result;

/// `count` segments of at most `size` elements: all but the last one of this size, or sizes that
/// differ by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::plan) struct Split {
    pub(in crate::plan) count: usize,
    pub(in crate::plan) size: usize,
}

impl Split {
    /// That of [`Segments::of_size`], for a size of at least 1.
    pub(in crate::plan) fn of_size(elements: usize, size: usize) -> Split {
        let count = elements.div_ceil(size).max(1);
        Split { count, size }
    }

    /// That of [`Segments::of_count`], for a number of at least 1.
    pub(in crate::plan) fn of_count(elements: usize, count: usize) -> Split {
        let count = count.min(elements).max(1);
        let size = equal_size(elements, count);
        Split { count, size }
    }

    /// That of segments of one size, or of a number.
    pub(in crate::plan) fn of(segments: &Segments) -> Split {
        let (count, size) = (segments.count(), segments.sizes()[0].max(1));
        Split { count, size }
    }

    /// All splits of a vector: those of all sizes, then those of all other numbers.
    pub(in crate::plan) fn all(elements: usize) -> impl Iterator<Item = Split> {
        let counts = (1..=elements).map(move |count| Split::of_count(elements, count));
        (1..=elements)
            .map(move |size| Split::of_size(elements, size))
            .chain(counts.filter(move |split| split.is_balanced(elements)))
    }

    /// Whether sizes differ by one: there are more segments than those of its size, the last one
    /// smaller.
    pub(in crate::plan) fn is_balanced(self, elements: usize) -> bool {
        self.count != Split::of_size(elements, self.size).count
    }

    /// The two sizes in order, and how many segments have each.
    pub(in crate::plan) fn groups(self, elements: usize) -> [(usize, usize); 2] {
        let Split { count, size } = self;
        if self.is_balanced(elements) {
            let larger = elements % count;
            return [(size, larger), (size - 1, count - larger)];
        }
        let rest = elements % size;
        [(size, elements / size), (rest, usize::from(rest > 0))]
    }

    pub(in crate::plan) fn segments(self, elements: usize) -> Result<Segments> {
        if self.is_balanced(elements) {
            Segments::of_count(elements, self.count)
        } else {
            Segments::of_size(elements, self.size)
        }
    }
}
