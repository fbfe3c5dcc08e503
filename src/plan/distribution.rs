//! Distributions of block sizes, for irregular collectives.
//!
//! Symbols: `p` ranks, average size `b` in elements, unevenness `rho`. The random distributions
//! draw from a seeded [`Generator`], so the same seed gives the same sizes on every machine.
//!
//! | name | size of rank `i`'s block |
//! |---|---|
//! | `same` | `b` |
//! | `random` | uniform in `1..=2b` |
//! | `random-decreasing`, `random-increasing` | the same, sorted |
//! | `bucket` | `ceil(b/2)` + uniform in `1..=b` |
//! | `spikes` | `rho b` with probability `1/rho`, else 1 |
//! | `decreasing` | `floor(2b(p-i)/p) + 1` |
//! | `increasing` | `floor(2b(i+1)/p) + 1` |
//! | `alternating` | `b + floor(b/2)` for even `i`, `b - floor(b/2)` for odd |
//! | `skewed` | `floor(pb/rho)` for `i < rho`, else 1 |
//! | `two-blocks` | `floor(pb/2)` for the first and the last rank, else 0 |
//! | `mod3` | `b (i mod 3)` |
//!
//! Source: Träff, "Optimal gather and scatter trees", section 5; `mod3` is that of his broadcast
//! schedules for irregular allgathers, section 3.2.
//!
//! For an alltoall each rank in turn draws the sizes of its blocks for all ranks
//! ([`Distribution::pair_sizes`]).

use crate::error::{Error, Result, named};
use crate::random::Generator;

macro_rules! distributions {
    ($($name:literal $variant:ident,)*) => {
        /// A family of block sizes: see the [module documentation](self).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "the table above says it")]
        pub enum Distribution {
            $($variant,)*
        }

        impl Distribution {
            /// All of them, in the order of the table.
            pub const ALL: [Distribution; [$($name),*].len()] = [$(Distribution::$variant),*];

            /// The name in files and options.
            pub fn name(self) -> &'static str {
                match self {
                    $(Distribution::$variant => $name,)*
                }
            }
        }
    };
}

distributions! {
    "same" Same,
    "random" Random,
    "random-decreasing" RandomDecreasing,
    "random-increasing" RandomIncreasing,
    "bucket" Bucket,
    "spikes" Spikes,
    "decreasing" Decreasing,
    "increasing" Increasing,
    "alternating" Alternating,
    "skewed" Skewed,
    "two-blocks" TwoBlocks,
    "mod3" Mod3,
}

impl Distribution {
    /// Sizes of `p` blocks in elements, by rank, in `O(p)` time (`O(p log p)` if sorted).
    ///
    /// # Errors
    /// When `rho` is 0, or the sizes overflow.
    pub fn sizes(self, p: usize, b: usize, rho: usize, seed: u64) -> Result<Vec<usize>> {
        ensure_fit(p, b, rho)?;
        Ok(self.draw(p, b, rho, &mut Generator::new(seed)))
    }

    /// Sizes of the `p^2` blocks of an alltoall in elements: those of rank 0 for each rank, then
    /// those of rank 1, and so on. Each rank's sizes follow the distribution, and the random ones
    /// are drawn one rank after another. Takes `O(p^2)` time (`O(p^2 log p)` if sorted).
    ///
    /// # Errors
    /// When `rho` is 0, or the sizes overflow.
    pub fn pair_sizes(self, p: usize, b: usize, rho: usize, seed: u64) -> Result<Vec<usize>> {
        ensure_fit(p.saturating_mul(p), b, rho)?;
        let mut random = Generator::new(seed);
        let sizes = (0..p).flat_map(|_| self.draw(p, b, rho, &mut random));
        Ok(sizes.collect())
    }

    fn draw(self, p: usize, b: usize, rho: usize, random: &mut Generator) -> Vec<usize> {
        let mut uniform = |max: usize| 1 + random.below(max.max(1));
        use Distribution::*;
        let size = |i: usize| match self {
            Same => b,
            Random | RandomDecreasing | RandomIncreasing => uniform(2 * b),
            Bucket => b.div_ceil(2) + uniform(b),
            Spikes if uniform(rho) == 1 => rho * b,
            Spikes => 1,
            Decreasing => 2 * b * (p - i) / p + 1,
            Increasing => 2 * b * (i + 1) / p + 1,
            Alternating if i.is_multiple_of(2) => b + b / 2,
            Alternating => b - b / 2,
            Skewed if i < rho => p * b / rho,
            Skewed => 1,
            TwoBlocks if i == 0 || i + 1 == p => p * b / 2,
            TwoBlocks => 0,
            Mod3 => b * (i % 3),
        };
        let mut sizes: Vec<usize> = (0..p).map(size).collect();
        if matches!(self, RandomDecreasing | RandomIncreasing) {
            sizes.sort_unstable();
        }
        if self == RandomDecreasing {
            sizes.reverse();
        }
        sizes
    }
}

/// Checks that `blocks` sizes, and all values computed for them, can be counted.
fn ensure_fit(blocks: usize, b: usize, rho: usize) -> Result<()> {
    if rho == 0 {
        return Err(Error::usage("rho is 0: it is at least 1"));
    }
    let max = (blocks as u128 + 1)
        .saturating_mul(b as u128 + 1)
        .saturating_mul(2 * rho as u128);
    if max > usize::MAX as u128 {
        return Err(Error::usage(format!(
            "{blocks} blocks of {b} elements (rho {rho}) overflow"
        )));
    }
    Ok(())
}

// Case, `-`, `_` and spaces make no difference.
named!(Distribution, "distribution", |name| {
    let letters = name.chars().filter(|c| !matches!(c, '-' | '_' | ' '));
    letters.collect::<String>().to_ascii_lowercase()
});
