//! Options for block sizes: one size per rank, a file of sizes, or a named distribution.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use oneport::{Distribution, Kind};

use crate::args::{did_you_mean, parse_count};
use crate::files::read_text;
use crate::units::parse_size;

/// Default average block size of a distribution.
const DEFAULT_BLOCK: u64 = 1000;
/// Default unevenness of a distribution.
const DEFAULT_RHO: usize = 5;

/// Unequal block sizes of gather, scatter, allgather, reduce_scatter and alltoall.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Blocks {
    /// Size of each rank's block, in rank order, such as 1KiB,0,2KiB
    #[arg(
        long,
        value_name = "SIZE,SIZE,...",
        value_parser = parse_size,
        value_delimiter = ',',
        conflicts_with_all = ["bytes", "schedule", "sizes_file", "dist"]
    )]
    pub(crate) sizes: Vec<u64>,

    /// The same from a file (`-` for standard input): sizes between commas or white space
    #[arg(long, value_name = "FILE", conflicts_with_all = ["bytes", "schedule", "dist"])]
    pub(crate) sizes_file: Option<PathBuf>,

    /// Sizes from a distribution: same, random, random-decreasing, random-increasing, bucket,
    /// spikes, decreasing, increasing, alternating, skewed, two-blocks
    #[arg(long, value_name = "NAME", value_parser = parse_distribution, conflicts_with_all = ["bytes", "schedule"])]
    pub(crate) dist: Option<Distribution>,

    /// Average size of a block, for --dist [default: 1000]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, requires = "dist", allow_negative_numbers = true)]
    pub(crate) block: Option<u64>,

    /// How uneven: size and rarity of spikes, number of large skewed blocks, for --dist [default:
    /// 5]
    #[arg(long, value_name = "N", value_parser = parse_count, requires = "dist", allow_negative_numbers = true)]
    pub(crate) rho: Option<usize>,

    /// Where random sizes start from, for --dist [default: 1]
    #[arg(long, value_name = "N", requires = "dist")]
    pub(crate) seed: Option<u64>,
}

fn parse_distribution(text: &str) -> Result<Distribution, String> {
    text.parse::<Distribution>().map_err(|error| {
        let names = Distribution::ALL.iter().map(|d| d.name());
        format!("{error}{}", did_you_mean(text, names))
    })
}

impl Blocks {
    /// Whether any option gives block sizes.
    pub(crate) fn are_given(&self) -> bool {
        !self.sizes.is_empty() || self.sizes_file.is_some() || self.dist.is_some()
    }

    /// Returns the individually listed sizes in bytes, if there are any.
    pub(crate) fn listed(&self) -> Result<Option<Vec<u64>>> {
        if let Some(path) = &self.sizes_file {
            let text = read_text(path)?;
            let words = text.split(|c: char| c == ',' || c.is_whitespace());
            let sizes: Result<Vec<u64>> = words
                .filter(|w| !w.is_empty())
                .map(|w| parse_size(w).map_err(anyhow::Error::msg))
                .collect();
            let sizes = sizes.with_context(|| path.display().to_string())?;
            if sizes.is_empty() {
                bail!("{} has no sizes", path.display());
            }
            return Ok(Some(sizes));
        }
        Ok((!self.sizes.is_empty()).then(|| self.sizes.clone()))
    }

    /// Returns the block sizes in elements for `ranks` ranks, or `None` if all blocks are equal.
    /// `elements` converts bytes into elements.
    pub(crate) fn elements(
        &self,
        kind: Kind,
        ranks: usize,
        listed: Option<&[u64]>,
        elements: impl Fn(&str, u64) -> Result<usize>,
    ) -> Result<Option<Vec<usize>>> {
        if self.are_given() && !kind.has_blocks() {
            bail!(
                "{} has one vector, not a block for each rank: give its size with --bytes",
                kind.name()
            );
        }
        if let Some(listed) = listed {
            let sizes: Result<Vec<usize>> = listed
                .iter()
                .map(|&bytes| elements("a block", bytes))
                .collect();
            return Ok(Some(sizes?));
        }
        let Some(dist) = self.dist else {
            return Ok(None);
        };
        let block = elements("a block", self.block.unwrap_or(DEFAULT_BLOCK))?;
        let rho = self.rho.unwrap_or(DEFAULT_RHO);
        Ok(Some(dist.sizes(
            ranks,
            block,
            rho,
            self.seed.unwrap_or(1),
        )?))
    }
}
