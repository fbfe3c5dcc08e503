//! The choice of the core that each thread of a team is pinned to, and the number of cores in use.

use core_affinity::CoreId;

use super::topology::Topology;
use crate::error::{Error, Result};

/// Which threads run the ranks' programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Workers {
    /// One thread per rank.
    #[default]
    Ranks,
    /// One thread per core, which interleaves the programs of several ranks (a *multiplexed* run).
    /// The same steps move the same bytes under the same rules, with the same model clock, but no
    /// rank ever waits for a core, and far more ranks fit. Only for schedules under the native
    /// clock: rank programs written by hand and the paced clock need a thread per rank. Each core
    /// has a contiguous range of ranks.
    Cores,
}

/// The cores of a team's threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Placement {
    /// By thread: the core to pin it to. Empty where the system does not report its cores.
    pub(super) pins: Vec<CoreId>,
    /// By thread: its core, where the cores in use are numbered from 0.
    pub(super) core_of: Vec<usize>,
    /// Number of cores that the threads can have at the same time: distinct cores, but no more than
    /// the CPU quota grants.
    pub(super) cores: usize,
}

impl Placement {
    /// Places a team of `ranks` ranks on this machine; `named` is
    /// [`TeamOptions::cores`](super::TeamOptions::cores), of which all must be available to it.
    pub(super) fn here(
        ranks: usize,
        workers: Workers,
        named: Option<&[usize]>,
    ) -> Result<Placement> {
        let topology = Topology::here();
        let (available, granted) = (topology.compact(), topology.granted());
        Placement::new(ranks, workers, named, &available, granted)
    }

    /// Places a team of `ranks` ranks where the process may use the cores `available`, the best
    /// first, and `granted` of them at the same time.
    pub(super) fn new(
        ranks: usize,
        workers: Workers,
        named: Option<&[usize]>,
        available: &[usize],
        granted: usize,
    ) -> Result<Placement> {
        let granted = granted.max(1);
        let list = match named {
            // When threads on more cores than the quota grants have spent the quota together, the
            // system stops them all for most of its period. So by default no more cores are used
            // than the quota grants: ranks that share a core never spend more than its time.
            None => &available[..available.len().min(granted)],
            Some(named) => {
                if let Some(core) = named.iter().find(|c| !available.contains(c)) {
                    let ids: Vec<_> = available.iter().map(usize::to_string).collect();
                    return Err(Error::usage(format!(
                        "core {core} is not available: this process may use {}",
                        ids.join(", ")
                    )));
                }
                named
            }
        };
        let mut different: Vec<usize> = Vec::new();
        for core in list {
            if !different.contains(core) {
                different.push(*core);
            }
        }
        let max_workers = match different.len() {
            0 => granted,
            n => n.min(granted),
        };
        let (threads, list) = match workers {
            Workers::Ranks => (ranks, list),
            Workers::Cores => (ranks.min(max_workers), &different[..]),
        };
        if list.is_empty() {
            return Ok(Placement {
                pins: Vec::new(),
                core_of: (0..threads).map(|t| t % granted).collect(),
                cores: threads.min(granted),
            });
        }
        let pins: Vec<usize> = list.iter().copied().cycle().take(threads).collect();
        let number = |core: &usize| different.iter().position(|d| d == core).unwrap_or(0);
        // Cores are numbered in the order in which they are first named, so the first threads'
        // cores have the lowest numbers.
        let core_of: Vec<usize> = pins.iter().map(number).collect();
        let in_use = in_use(&core_of);
        Ok(Placement {
            pins: pins.into_iter().map(|id| CoreId { id }).collect(),
            core_of,
            cores: in_use.min(granted),
        })
    }

    pub(super) fn threads(&self) -> usize {
        self.core_of.len()
    }

    /// Number of distinct cores that threads are pinned to, whatever the quota.
    pub(super) fn in_use(&self) -> usize {
        in_use(&self.core_of)
    }

    /// The system's numbers of these cores; empty where it does not report its cores.
    pub(super) fn ids(&self) -> Vec<usize> {
        let mut ids: Vec<usize> = self.pins.iter().map(|c| c.id).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}

/// Number of cores in `core_of`, which numbers them from 0.
fn in_use(core_of: &[usize]) -> usize {
    core_of.iter().max().map_or(0, |last| last + 1)
}

/// The first of the `ranks` ranks that worker `worker` of `workers` runs, at most as many as ranks.
pub(super) fn first_rank(worker: usize, workers: usize, ranks: usize) -> usize {
    // This cannot overflow: there are fewer workers than ranks, and fewer ranks than fit into
    // memory.
    worker * ranks / workers
}

/// The worker that runs `rank`: the last one whose first rank is at most `rank`.
pub fn worker_of(rank: usize, workers: usize, ranks: usize) -> usize {
    ((rank + 1) * workers - 1) / ranks
}
