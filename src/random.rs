//! Pseudo-random numbers that are the same on every machine.

/// Pseudo-random numbers: `SplitMix64` (Steele, Lea, Flood 2014).
///
/// The state `s` starts as the seed. A number is computed by `s += 0x9e3779b97f4a7c15`, then
/// `z = (s ^ s >> 30) * 0xbf58476d1ce4e5b9`, `z = (z ^ z >> 27) * 0x94d049bb133111eb`,
/// `z ^ z >> 31`, all modulo 2^64. A number below `n` is the upper half of its 128-bit product with
/// `n`.
#[derive(Debug, Clone)]
pub struct Generator(u64);

impl Generator {
    /// Starts from `seed`.
    pub fn new(seed: u64) -> Generator {
        Generator(seed)
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..n`; 0 for `n = 0`.
    pub fn below(&mut self, n: usize) -> usize {
        let product = u128::from(self.next_u64()) * n as u128;
        usize::try_from(product >> 64).expect("64 of 128 bits")
    }

    /// A number in `0.0..1.0`, a multiple of `2^-53`.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}
