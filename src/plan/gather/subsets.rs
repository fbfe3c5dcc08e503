//! What dynamic programs over sets of ranks need: a set is the number whose bits are its members.

/// All non-empty subsets of `set`.
pub(super) fn subsets(set: usize) -> impl Iterator<Item = usize> {
    let first = (set > 0).then_some(set);
    std::iter::successors(first, move |q| Some((q - 1) & set).filter(|&q| q > 0))
}

/// The first pair with the minimum time.
pub(super) fn fastest(all: impl Iterator<Item = (f64, usize)>) -> (f64, usize) {
    all.reduce(|best, next| if next.0 < best.0 { next } else { best })
        .unwrap_or((0.0, 0))
}
