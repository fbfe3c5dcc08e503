//! Copying bytes: short messages without a call, long ones as the standard library does, long ones
//! that nobody will find in the caches past them.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Messages from this many bytes on go past the caches, in a run whose ranks' buffers hold `total`
/// bytes: all of them do not fit, so a long message would only push others out, and reading what it
/// overwrites would be in vain.
pub(crate) fn streams_from(total: usize) -> usize {
    const LONG: usize = 128 << 10;
    /// 0 until somebody has looked; whoever looks finds the same.
    static CACHE: AtomicUsize = AtomicUsize::new(0);
    let cache = match CACHE.load(Ordering::Relaxed) {
        0 => {
            let bytes = last_level_cache().unwrap_or(32 << 20).max(1);
            CACHE.store(bytes, Ordering::Relaxed);
            bytes
        }
        known => known,
    };
    if total < cache { usize::MAX } else { LONG }
}

/// Bytes of the last-level cache, where the system says.
fn last_level_cache() -> Option<usize> {
    (0..8)
        .map_while(|index| {
            let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size");
            let text = std::fs::read_to_string(path).ok()?;
            text.trim().strip_suffix('K')?.parse::<usize>().ok()
        })
        .max()
        .map(|kib| kib << 10)
}

/// Has the machine fetch the lines of a message that will be read soon, as far as that is worth the
/// instructions.
///
/// Fetching reads nothing as far as the program can tell, so the address may be any, and the
/// pointer need not point to anything.
#[inline]
pub(super) fn fetch(address: *const (), bytes: usize) {
    const LINE: usize = 64;
    const MAX: usize = 1 << 10;
    #[cfg(target_arch = "x86_64")]
    for offset in (0..bytes.min(MAX)).step_by(LINE) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let line = address.cast::<i8>().wrapping_add(offset);
        // SAFETY: a prefetch neither faults nor has an effect on the program's values, whatever the
        // address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (address, bytes, LINE, MAX);
}

/// Copies at most 16 bytes.
///
/// # Safety
/// `bytes` bytes may be read at `src` and written at `dst`, and nobody else writes the first or
/// touches the second; they do not overlap.
#[inline(always)]
pub(super) unsafe fn copy_short(dst: *mut u8, src: *const u8, bytes: usize) {
    /// Two words that may overlap cover every length from one word to two.
    macro_rules! words {
        ($word:ty) => {{
            let last = bytes - size_of::<$word>();
            // SAFETY: inside the `bytes` bytes at `src`.
            let a = unsafe { src.cast::<$word>().read_unaligned() };
            // SAFETY: as above: they end with the last byte.
            let b = unsafe { src.wrapping_add(last).cast::<$word>().read_unaligned() };
            // SAFETY: inside the `bytes` bytes at `dst`.
            unsafe { dst.cast::<$word>().write_unaligned(a) };
            // SAFETY: as above: they end with the last byte.
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

/// Copies part of a message; `stream` when the message is so long that it should not go through the
/// caches.
///
/// # Safety
/// As [`copy_short`]. After streaming, the bytes are visible to whoever sees a later release store
/// of this thread.
#[inline]
pub(super) unsafe fn copy(dst: *mut u8, src: *const u8, bytes: usize, stream: bool) {
    if stream {
        // SAFETY: the caller's.
        unsafe { copy_past_caches(dst, src, bytes) };
    } else {
        // SAFETY: the caller's.
        unsafe { std::ptr::copy_nonoverlapping(src, dst, bytes) };
    }
}

/// # Safety
/// As [`copy`].
#[cfg(target_arch = "x86_64")]
#[inline(never)]
unsafe fn copy_past_caches(dst: *mut u8, src: *const u8, bytes: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    const LINE: usize = 64;
    // Whole lines are streamed, what is left on either side is not.
    let head = dst.align_offset(LINE).min(bytes);
    let lines = (bytes - head) / LINE;
    let tail = head + lines * LINE;
    // SAFETY: the first bytes of both.
    unsafe { std::ptr::copy_nonoverlapping(src, dst, head) };
    for line in 0..lines {
        let at = head + line * LINE;
        let from = src.wrapping_add(at).cast::<__m128i>();
        let to = dst.wrapping_add(at).cast::<__m128i>();
        let mut words = [std::mem::MaybeUninit::uninit(); LINE / size_of::<__m128i>()];
        for (i, word) in words.iter_mut().enumerate() {
            // SAFETY: inside the `bytes` bytes at `src`; no alignment is asked for.
            word.write(unsafe { _mm_loadu_si128(from.wrapping_add(i)) });
        }
        for (i, word) in words.into_iter().enumerate() {
            // SAFETY: written just above.
            let word = unsafe { word.assume_init() };
            // SAFETY: inside the `bytes` bytes at `dst`, and aligned because a line is.
            unsafe { _mm_stream_si128(to.wrapping_add(i), word) };
        }
    }
    // Streamed stores are ordered with later ones only by a fence. SAFETY: every x86-64 has it.
    unsafe { _mm_sfence() };
    // SAFETY: the last bytes of both.
    unsafe {
        std::ptr::copy_nonoverlapping(src.wrapping_add(tail), dst.wrapping_add(tail), bytes - tail)
    };
}

/// # Safety
/// As [`copy`].
#[cfg(not(target_arch = "x86_64"))]
unsafe fn copy_past_caches(dst: *mut u8, src: *const u8, bytes: usize) {
    // SAFETY: the caller's.
    unsafe { std::ptr::copy_nonoverlapping(src, dst, bytes) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_does_not_fit_goes_past_the_caches() {
        assert_eq!(streams_from(0), usize::MAX);
        assert!(streams_from(usize::MAX) <= 1 << 20);
    }

    #[test]
    fn every_length_and_alignment() {
        let source: Vec<u8> = (0..2000).map(|i| (i % 251) as u8).collect();
        for bytes in (0..300).chain([1024, 1500]) {
            for (a, b) in [(0, 0), (1, 0), (0, 3), (17, 40), (63, 64)] {
                for stream in [false, true] {
                    let mut target = vec![0xffu8; 2000];
                    let (dst, src) = (target[b..].as_mut_ptr(), source[a..].as_ptr());
                    if bytes <= 16 && !stream {
                        // SAFETY: both vectors hold that many bytes from there on.
                        unsafe { copy_short(dst, src, bytes) };
                    } else {
                        // SAFETY: as above.
                        unsafe { copy(dst, src, bytes, stream) };
                    }
                    assert_eq!(target[b..b + bytes], source[a..a + bytes]);
                    assert!(target[..b].iter().all(|&x| x == 0xff));
                    assert!(target[b + bytes..].iter().all(|&x| x == 0xff));
                }
            }
        }
    }
}
