//! Options for block sizes: one size per rank, or per pair of ranks, from the command line or a
//! file, or a named distribution.

use anyhow::{Result, anyhow, bail, ensure};
use oneport::{Distribution, Kind};

use crate::ask::{File, forms, options};
use crate::files::Source;
use crate::forms::{Count, Seed, Sizes};
use crate::ranges::Ranges;
use crate::units::{did_you_mean, parse_size};

pub(crate) const DEFAULT_BLOCK: u64 = 1000;
pub(crate) const DEFAULT_RHO: usize = 5;
pub(crate) const DEFAULT_SEED: u64 = 1;
/// Limit of the number of blocks that a distribution is drawn for.
const MAX_DRAWN: u64 = 1 << 27;

options! {
    /// Unequal block sizes of gather, scatter, allgather, reduce_scatter and alltoall.
    #[derive(Debug, Clone, Default)]
    pub(crate) struct BlockArgs {
        /// Size of each rank's block, in rank order, such as 1KiB,0,2KiB; of an alltoall the blocks
        /// for each rank, or of each rank's blocks, such as 0,5,1/2,0,3/4,4,0
        pub(crate) sizes: Option<Listed> = BlockSizes {
            conflicts: &["bytes", "schedule", "sizes_file", "dist"],
        },

        /// The same from a file (`-` for standard input): sizes between commas or white space, of
        /// an alltoall one line for each rank
        pub(crate) sizes_file: Option<Source> = File { conflicts: &["bytes", "schedule", "dist"] },

        /// Sizes from a distribution: same, random, random-decreasing, random-increasing, bucket,
        /// spikes, decreasing, increasing, alternating, skewed, two-blocks, mod3; from several for
        /// a sweep of compare or simulate
        pub(crate) dist: Vec<Distribution> = DistributionName {
            value: "NAME,...", is_list: true, conflicts: &["bytes", "schedule"],
        },

        /// Average size of a block, for --dist; a range or list such as 1KiB..64KiB for a sweep of
        /// compare or simulate [default: 1000]
        pub(crate) block: Option<Ranges> = Sizes { requires: &["dist"] },

        /// How uneven: size and rarity of spikes, number of large skewed blocks, for --dist
        /// [default: 5]
        pub(crate) rho: Option<usize> = Count { value: "N", requires: &["dist"] },

        /// Where random sizes start from, for --dist [default: 1]
        pub(crate) seed: Option<u64> = Seed { requires: &["dist"] },
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Listed {
    sizes: Vec<u64>,
    rows: usize,
}

forms! {
    /// Sizes of blocks, in rows.
    BlockSizes: Listed = "SIZE,SIZE,...", by parse_listed, Wholes;
    /// A distribution of sizes.
    DistributionName: Distribution = "NAME", by parse_distribution;
}

/// Parses sizes between commas, in rows between slashes.
fn parse_listed(text: &str) -> Result<Listed, String> {
    let rows: Vec<Vec<u64>> = text
        .split('/')
        .map(|row| row.split(',').map(parse_size).collect())
        .collect::<Result<_, _>>()?;
    let n = rows.len();
    match rows.iter().find(|row| n > 1 && row.len() != n) {
        None => Ok(Listed {
            sizes: rows.concat(),
            rows: n,
        }),
        Some(row) => Err(format!("{n} rows of sizes, one of them with {}", row.len())),
    }
}

impl Listed {
    /// Reads sizes between commas or white space. Of an alltoall, lines with several sizes are the
    /// rows of a matrix; any other collective has one list, wherever its lines end.
    fn read(kind: Kind, file: &Source) -> Result<Listed> {
        let (text, name) = (file.read()?, file.name());
        // By line that is not empty: its number and sizes.
        let mut rows: Vec<(usize, Vec<u64>)> = Vec::new();
        for (line, number) in text.lines().zip(1..) {
            let words = line.split(|c: char| c == ',' || c.is_whitespace());
            let sizes: Result<Vec<u64>, String> =
                words.filter(|w| !w.is_empty()).map(parse_size).collect();
            let sizes = sizes.map_err(|why| anyhow!("{name}, line {number}: {why}"))?;
            if !sizes.is_empty() {
                rows.push((number, sizes));
            }
        }
        ensure!(!rows.is_empty(), "{name} has no sizes");
        let n = rows.len();
        let is_list = n == 1 || rows.iter().all(|(_, row)| row.len() == 1);
        let is_matrix = kind.has_block_pairs() && !is_list;
        if let Some((line, row)) = rows.iter().find(|(_, row)| is_matrix && row.len() != n) {
            bail!(
                "{name}, line {line}: the number of sizes is {}, that of lines {n}: a matrix has as many sizes in each line",
                row.len()
            );
        }
        Ok(Listed {
            sizes: rows.into_iter().flat_map(|(_, row)| row).collect(),
            rows: n,
        })
    }

    /// The number of ranks that they are for: a square of as many rows and sizes in each is for
    /// all pairs of ranks, if there is a block for each.
    pub(crate) fn ranks(&self, kind: Kind) -> usize {
        let (n, rows) = (self.sizes.len(), self.rows);
        if kind.has_block_pairs() && rows.checked_mul(rows) == Some(n) {
            rows
        } else {
            n
        }
    }

    /// Whether there are as many as `ranks` ranks have blocks.
    pub(crate) fn fit(&self, kind: Kind, ranks: usize) -> bool {
        let n = self.sizes.len();
        n == ranks || (kind.has_block_pairs() && ranks.checked_mul(ranks) == Some(n))
    }

    pub(crate) fn len(&self) -> usize {
        self.sizes.len()
    }
}

fn parse_distribution(text: &str) -> Result<Distribution, String> {
    text.parse::<Distribution>().map_err(|error| {
        let names = Distribution::ALL.iter().map(|d| d.name());
        format!("{error}{}", did_you_mean(text, names))
    })
}

impl BlockArgs {
    /// Lists these sizes, as one row or as one of `ranks` for each rank.
    pub(crate) fn list(&mut self, sizes: Vec<u64>, ranks: usize) {
        let rows = if sizes.len() > ranks { ranks } else { 1 };
        self.sizes = Some(Listed { sizes, rows });
    }

    pub(crate) fn are_given(&self) -> bool {
        self.are_listed() || !self.dist.is_empty()
    }

    pub(crate) fn are_listed(&self) -> bool {
        self.sizes.is_some() || self.sizes_file.is_some()
    }

    pub(crate) fn listed(&self, kind: Kind) -> Result<Option<Listed>> {
        match &self.sizes_file {
            Some(path) => Ok(Some(Listed::read(kind, path)?)),
            None => Ok(self.sizes.clone()),
        }
    }

    /// Returns the block sizes in elements for `ranks` ranks, or `None` if all blocks are equal.
    /// `elements` converts bytes into elements.
    pub(crate) fn elements(
        &self,
        kind: Kind,
        ranks: usize,
        listed: Option<&Listed>,
        elements: impl Fn(&str, u64) -> Result<usize>,
    ) -> Result<Option<Vec<usize>>> {
        if self.are_given() && !kind.has_data() {
            bail!("{} has no data, so no sizes", kind.name());
        }
        let several_rows = self.sizes.as_ref().is_some_and(|listed| listed.rows > 1);
        if several_rows && !kind.has_block_pairs() {
            bail!(
                "{} has one block for each rank: give one row of sizes",
                kind.name()
            );
        }
        if self.are_given() && !kind.has_blocks() {
            bail!(
                "{} has one vector, not a block for each rank: give its size with --bytes",
                kind.name()
            );
        }
        if let Some(listed) = listed {
            let sizes: Result<Vec<usize>> = (listed.sizes)
                .iter()
                .map(|&bytes| elements("a block", bytes))
                .collect();
            return Ok(Some(sizes?));
        }
        let dist = match self.dist[..] {
            [] => return Ok(None),
            [dist] => dist,
            _ => bail!(
                "--dist names several distributions: this command takes one (compare and simulate take several)"
            ),
        };
        let block = self.block.as_ref().map(|block| block.one("--block"));
        let block = elements("a block", block.transpose()?.unwrap_or(DEFAULT_BLOCK))?;
        let rho = self.rho.unwrap_or(DEFAULT_RHO);
        let seed = self.seed.unwrap_or(DEFAULT_SEED);
        if !kind.has_block_pairs() {
            return Ok(Some(dist.sizes(ranks, block, rho, seed)?));
        }
        ensure!(
            (ranks as u64).saturating_mul(ranks as u64) <= MAX_DRAWN,
            "{ranks} ranks have more than this program's limit of {MAX_DRAWN} blocks (--dist)"
        );
        Ok(Some(dist.pair_sizes(ranks, block, rho, seed)?))
    }
}
