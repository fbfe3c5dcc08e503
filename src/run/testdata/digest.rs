//! Digests of vectors: outputs are compared by them, so only wrong ones are computed again.

use std::hash::{DefaultHasher, Hasher};

use crate::run::element::Element;

/// The most elements that are hashed at once, and the most bytes if they are long.
const MAX_CHUNK: usize = 256;
const CHUNK_BYTES: usize = 16 << 10;

/// A hash of all bits of the elements in order, independent of how they are split into parts.
pub(super) fn digest<T: Element>(parts: &mut dyn Iterator<Item = &[T]>) -> u64 {
    // On the heap and of few long elements: a rank's stack may be smaller than 256 of them.
    let chunk_len = (CHUNK_BYTES / size_of::<T>().max(1)).clamp(1, MAX_CHUNK);
    let mut hasher = DefaultHasher::new();
    let mut chunk: Vec<T> = Vec::with_capacity(chunk_len);
    for mut part in parts {
        while !part.is_empty() {
            let (now, rest) = part.split_at(part.len().min(chunk_len - chunk.len()));
            chunk.extend_from_slice(now);
            part = rest;
            if chunk.len() == chunk_len {
                T::digest(&chunk, &mut hasher);
                chunk.clear();
            }
        }
    }
    T::digest(&chunk, &mut hasher);
    hasher.finish()
}
