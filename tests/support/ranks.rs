//! The numbers of ranks for which every algorithm is tested.

use super::cases::cases;

/// Up to nine ranks all numbers, then some that are a power of two, one more or one less, a
/// multiple of three, or prime; in long tests all up to 20, and more than 33.
pub(crate) fn rank_counts() -> Vec<usize> {
    cases(
        (1..=9).chain([12, 13, 16, 17, 33]).collect(),
        (1..=20).chain([24, 31, 32, 33, 64]).collect(),
    )
}
