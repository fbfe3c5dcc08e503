//! Element-wise combination, compiled for the widest vectors that the machine has.

#[cfg(target_arch = "x86_64")]
use crate::run::tuning::MIN_WIDE_ELEMENTS;

/// `acc[i] = f(acc[i], other[i])`.
#[inline]
pub(crate) fn combine_each<T: Copy>(acc: &mut [T], other: &[T], f: impl Fn(T, T) -> T) {
    #[cfg(target_arch = "x86_64")]
    {
        if acc.len() >= MIN_WIDE_ELEMENTS && is_x86_feature_detected!("avx2") {
            // SAFETY: the machine has AVX2, as just checked.
            return unsafe { combine_wide(acc, other, f) };
        }
    }
    combine_plain(acc, other, f);
}

/// The loop that the compiler vectorizes.
#[inline(always)]
fn combine_plain<T: Copy>(acc: &mut [T], other: &[T], f: impl Fn(T, T) -> T) {
    for (a, &b) in acc.iter_mut().zip(other) {
        *a = f(*a, b);
    }
}

/// The same loop, compiled for AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn combine_wide<T: Copy>(acc: &mut [T], other: &[T], f: impl Fn(T, T) -> T) {
    combine_plain(acc, other, f);
}
