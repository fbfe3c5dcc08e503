//! Digests of vectors: outputs are compared by them, so only wrong ones are computed again.

use std::hash::{DefaultHasher, Hasher};

use crate::run::element::Element;

/// A hash of all bits of the elements in order, independent of how they are split into parts.
pub(super) fn digest<'v, T: Element>(parts: impl Iterator<Item = &'v [T]>) -> u64 {
    const CHUNK: usize = 256;
    let mut hasher = DefaultHasher::new();
    let mut chunk = [T::test_value(0); CHUNK];
    let mut filled = 0;
    for mut part in parts {
        while !part.is_empty() {
            let (now, rest) = part.split_at(part.len().min(CHUNK - filled));
            chunk[filled..filled + now.len()].copy_from_slice(now);
            filled += now.len();
            part = rest;
            if filled == CHUNK {
                T::digest(&chunk, &mut hasher);
                filled = 0;
            }
        }
    }
    T::digest(&chunk[..filled], &mut hasher);
    hasher.finish()
}
