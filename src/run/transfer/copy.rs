//! Copying bytes: short messages without a call, long ones with `copy_nonoverlapping`, and long
//! ones that will not stay in the caches with streaming stores.

use super::protocol::Wire;
use crate::run::tuning::{CACHE_LINE_BYTES, MAX_PREFETCH_BYTES};

/// Prefetches the first cache lines ([`MAX_PREFETCH_BYTES`] at most) of a message that will be read
/// soon.
///
/// A prefetch is no access, so `address` may be any address, and need not point to anything.
#[inline]
pub(super) fn fetch(address: *const (), bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    for offset in (0..bytes.min(MAX_PREFETCH_BYTES)).step_by(CACHE_LINE_BYTES) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let line = address.cast::<i8>().wrapping_add(offset);
        // SAFETY: a prefetch neither faults nor changes any value of the program, whatever the
        // address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (address, bytes);
}

/// Prefetches the lanes of a wire.
#[inline]
pub(crate) fn fetch_lanes(wire: &Wire) {
    fetch((&raw const *wire).cast(), 1);
}

/// Copies at most 16 bytes.
///
/// # Safety
/// `src` must be valid for reading `bytes` bytes and `dst` for writing them. Nobody else may write
/// the bytes at `src` or touch the bytes at `dst` meanwhile. The two ranges must not overlap.
#[inline(always)]
pub(super) unsafe fn copy_short(dst: *mut u8, src: *const u8, bytes: usize) {
    /// Copies with two words that may overlap: they cover every length from one word to two.
    macro_rules! words {
        ($word:ty) => {{
            let last = bytes - size_of::<$word>();
            // SAFETY: the word lies inside the `bytes` bytes at `src`.
            let a = unsafe { src.cast::<$word>().read_unaligned() };
            // SAFETY: as above; the word ends with the last byte.
            let b = unsafe { src.wrapping_add(last).cast::<$word>().read_unaligned() };
            // SAFETY: the word lies inside the `bytes` bytes at `dst`.
            unsafe { dst.cast::<$word>().write_unaligned(a) };
            // SAFETY: as above; the word ends with the last byte.
            unsafe { dst.wrapping_add(last).cast::<$word>().write_unaligned(b) };
        }};
    }
    debug_assert!(bytes <= 16);
    match bytes {
        0 => {}
        1 => words!(u8),
        2..=3 => words!(u16),
        4..=7 => words!(u32),
        _ => words!(u64),
    }
}

/// Copies part of a message. `stream` says that the message is so long that streaming stores should
/// keep it out of the caches.
///
/// # Safety
/// As [`copy_short`], for any number of bytes. After streaming, the bytes are visible to every
/// thread that sees a later release store of this thread.
#[inline]
pub(super) unsafe fn copy(dst: *mut u8, src: *const u8, bytes: usize, stream: bool) {
    #[cfg(debug_assertions)]
    super::sync::recorded::wrote(dst, bytes);
    if stream {
        // SAFETY: guaranteed by the caller.
        unsafe { copy_streaming(dst, src, bytes) };
    } else {
        // SAFETY: guaranteed by the caller.
        unsafe { std::ptr::copy_nonoverlapping(src, dst, bytes) };
    }
}

/// Copies whole cache lines of `dst` with streaming stores.
///
/// # Safety
/// As [`copy`].
#[cfg(target_arch = "x86_64")]
#[inline(never)]
unsafe fn copy_streaming(dst: *mut u8, src: *const u8, bytes: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    const LINE: usize = CACHE_LINE_BYTES;
    // Only whole lines are streamed; the rest on either side is copied normally.
    let head = dst.align_offset(LINE).min(bytes);
    let lines = (bytes - head) / LINE;
    let tail = head + lines * LINE;
    // SAFETY: the first `head <= bytes` bytes of both ranges.
    unsafe { std::ptr::copy_nonoverlapping(src, dst, head) };
    for line in 0..lines {
        let at = head + line * LINE;
        let from = src.wrapping_add(at).cast::<__m128i>();
        let to = dst.wrapping_add(at).cast::<__m128i>();
        let mut words = [std::mem::MaybeUninit::uninit(); LINE / size_of::<__m128i>()];
        for (i, word) in words.iter_mut().enumerate() {
            // SAFETY: the word lies inside the `bytes` bytes at `src`; the load needs no alignment.
            word.write(unsafe { _mm_loadu_si128(from.wrapping_add(i)) });
        }
        for (i, word) in words.into_iter().enumerate() {
            // SAFETY: initialized by the loop above.
            let word = unsafe { word.assume_init() };
            // SAFETY: the word lies inside the `bytes` bytes at `dst`, and is aligned because its
            // line is.
            unsafe { _mm_stream_si128(to.wrapping_add(i), word) };
        }
    }
    // Only a fence orders streaming stores before later stores. SAFETY: every x86-64 machine has
    // the instruction.
    unsafe { _mm_sfence() };
    // SAFETY: the last `bytes - tail` bytes of both ranges.
    unsafe {
        std::ptr::copy_nonoverlapping(src.wrapping_add(tail), dst.wrapping_add(tail), bytes - tail)
    };
}

/// Copies normally: there is no portable streaming store.
///
/// # Safety
/// As [`copy`].
#[cfg(not(target_arch = "x86_64"))]
unsafe fn copy_streaming(dst: *mut u8, src: *const u8, bytes: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe { std::ptr::copy_nonoverlapping(src, dst, bytes) };
}
