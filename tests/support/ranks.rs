//! The numbers of ranks for which every algorithm is tested.

/// Whether tests take the many cases of `ONEPORT_LONG=1 cargo test --workspace`.
pub(crate) fn is_long() -> bool {
    std::env::var_os("ONEPORT_LONG").is_some()
}

/// Up to nine ranks all numbers, then some that are a power of two, one more or one less, a
/// multiple of three, or prime; in long tests all up to 20, and more than 33.
pub(crate) fn rank_counts() -> Vec<usize> {
    match is_long() {
        false => (1..=9).chain([12, 13, 16, 17, 33]).collect(),
        true => (1..=20).chain([24, 31, 32, 33, 64]).collect(),
    }
}
