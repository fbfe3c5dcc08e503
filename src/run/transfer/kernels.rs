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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_and_plain_agree() {
        for n in [0, 1, 63, 64, 65, 1000, 1003] {
            let a: Vec<f32> = (0..n).map(|i| i as f32 * 0.37 - 5.0).collect();
            let b: Vec<f32> = (0..n).map(|i| 11.0 - i as f32 * 0.11).collect();
            for f in [
                |x: f32, y: f32| x + y,
                |x: f32, y: f32| x * y,
                |x: f32, y: f32| if y < x { y } else { x },
            ] {
                let (mut wide, mut plain) = (a.clone(), a.clone());
                combine_each(&mut wide, &b, f);
                combine_plain(&mut plain, &b, f);
                let bits = |v: &[f32]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&wide), bits(&plain));
            }
        }
    }
}
