//! Which cores share a physical core, a cache and a package, and in which order ranks get them.
//!
//! Known on Linux only, from `/sys/devices/system/cpu`. Elsewhere, and where files are missing,
//! every core counts as a physical core of its own, and all of them share one cache.

use std::collections::HashMap;

use crate::schedule::{Schedule, Step};

/// The order in which the cores of a machine get ranks. In both, the second hardware threads of
/// physical cores come last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum CoreOrder {
    /// Cache after cache: neighbouring ranks share a last-level cache.
    #[default]
    Compact,
    /// Round-robin over the packages and their last-level caches: each rank has as much cache and
    /// memory bandwidth as there is.
    Spread,
}

/// The cores that this process may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    cores: Vec<Core>,
    /// How many of them the CPU quota grants at the same time.
    granted: usize,
}

/// A core of the system: a hardware thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Core {
    /// The system's number.
    id: usize,
    package: usize,
    /// The first core that shares its last-level cache.
    cache: usize,
    /// The first core that shares its physical core.
    physical: usize,
    /// How many cores of this process on the same physical core come before it.
    sibling: usize,
}

/// The system's numbers of the cores that this process may use; none where the system does not say.
pub fn allowed_cores() -> Vec<usize> {
    let ids = core_affinity::get_core_ids().unwrap_or_default();
    ids.iter().map(|core| core.id).collect()
}

impl Topology {
    /// The topology of this machine. Reads some files for each core.
    ///
    /// ```
    /// use oneport::run::{CoreOrder, Topology, TeamOptions};
    /// let cores = Topology::here().in_order(CoreOrder::Spread);
    /// let options = TeamOptions { cores: Some(cores), ..TeamOptions::default() };
    /// # let _ = options;
    /// ```
    pub fn here() -> Topology {
        let ids = allowed_cores();
        // On Linux this respects the CPU quotas of the control group and of all groups above it, in
        // both versions of control groups.
        let granted = std::thread::available_parallelism().map_or(1, usize::from);
        Topology::read(&ids, granted, |path| {
            std::fs::read_to_string(format!("/sys/devices/system/cpu/{path}")).ok()
        })
    }

    /// The topology of the cores `ids`; `file` returns the content of a file below
    /// `/sys/devices/system/cpu`.
    pub(super) fn read(
        ids: &[usize],
        granted: usize,
        file: impl Fn(&str) -> Option<String>,
    ) -> Topology {
        let number = |path: String| file(&path)?.trim().parse::<usize>().ok();
        let first_of = |path: String| first_of_list(&file(&path)?);
        let mut siblings: HashMap<usize, usize> = HashMap::new();
        let core = |&id: &usize| {
            let package = number(format!("cpu{id}/topology/physical_package_id")).unwrap_or(0);
            let levels = (0..).map_while(|index| {
                let level = number(format!("cpu{id}/cache/index{index}/level"))?;
                let shared = first_of(format!("cpu{id}/cache/index{index}/shared_cpu_list"))?;
                Some((level, shared))
            });
            let last = levels.max_by_key(|&(level, _)| level);
            // Without caches, those of a package count as one.
            let cache = last.map_or(usize::MAX - package, |(_, shared)| shared);
            let physical = first_of(format!("cpu{id}/topology/core_cpus_list"))
                .or_else(|| first_of(format!("cpu{id}/topology/thread_siblings_list")))
                .unwrap_or(id);
            let before = siblings.entry(physical).or_default();
            *before += 1;
            Core {
                id,
                package,
                cache,
                physical,
                sibling: *before - 1,
            }
        };
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        Topology {
            cores: ids.iter().map(core).collect(),
            granted,
        }
    }

    /// The cores in this order, by the system's numbers, but no more than the CPU quota grants: for
    /// [`TeamOptions::cores`](super::TeamOptions::cores).
    pub fn in_order(&self, order: CoreOrder) -> Vec<usize> {
        let cores = self.ordered(order).into_iter().take(self.granted);
        cores.map(|core| core.id).collect()
    }

    /// All cores in the compact order, whatever the quota.
    pub(super) fn compact(&self) -> Vec<usize> {
        let cores = self.ordered(CoreOrder::Compact).into_iter();
        cores.map(|core| core.id).collect()
    }

    /// How many cores the CPU quota grants at the same time.
    pub(super) fn granted(&self) -> usize {
        self.granted
    }

    fn ordered(&self, order: CoreOrder) -> Vec<Core> {
        let mut cores = self.cores.clone();
        cores.sort_by_key(|c| (c.sibling, c.package, c.cache, c.physical));
        if order == CoreOrder::Compact {
            return cores;
        }
        // How many have come before: cores of each cache, and caches of each package.
        let mut in_cache: HashMap<_, usize> = HashMap::new();
        let mut in_package: HashMap<_, Vec<usize>> = HashMap::new();
        let mut keyed = Vec::with_capacity(cores.len());
        for core in cores {
            let nth = in_cache.entry((core.sibling, core.cache)).or_default();
            let caches = in_package.entry(core.package).or_default();
            if !caches.contains(&core.cache) {
                caches.push(core.cache);
            }
            let cache = caches.iter().position(|&cache| cache == core.cache);
            keyed.push(((core.sibling, *nth, cache, core.package), core));
            *nth += 1;
        }
        keyed.sort_by_key(|&(key, _)| key);
        keyed.into_iter().map(|(_, core)| core).collect()
    }

    /// By rank of `schedule`: a core, such that ranks which exchange many bytes share a last-level
    /// cache. Uses the first cores of the compact order, as many as there are ranks and as the CPU
    /// quota grants, with ranks evenly among them.
    ///
    /// Cache after cache takes as many ranks as its cores hold: the rank that exchanges most with
    /// those that it has, again and again, beginning with the lowest. `O(s + p^2)` time for `s`
    /// steps and `p` ranks.
    pub fn near_partners(&self, schedule: &Schedule) -> Vec<usize> {
        let mut order = self.ordered(CoreOrder::Compact);
        order.truncate(self.granted.min(schedule.ranks()));
        if order.is_empty() {
            return Vec::new();
        }
        // Ranks go round the cores: the first ones have one more.
        let (each, more) = (
            schedule.ranks() / order.len(),
            schedule.ranks() % order.len(),
        );
        let mut places: Vec<(usize, usize)> = Vec::with_capacity(schedule.ranks());
        for (i, core) in order.iter().enumerate() {
            let ranks = each + usize::from(i < more);
            places.extend(std::iter::repeat_n((core.cache, core.id), ranks));
        }
        // The second hardware threads come last in the order, but belong to their caches.
        let first = |cache: usize| places.iter().position(|place| place.0 == cache);
        let firsts: HashMap<_, _> = order.iter().map(|c| (c.cache, first(c.cache))).collect();
        places.sort_by_key(|place| firsts[&place.0]);

        let partners = partners(schedule);
        let mut core_of = vec![None; schedule.ranks()];
        // By rank: elements exchanged with the ranks of the current cache.
        let mut pull = vec![0; schedule.ranks()];
        let mut current = None;
        for (cache, core) in places {
            if current != Some(cache) {
                pull.fill(0);
                current = Some(cache);
            }
            let free = (0..schedule.ranks()).filter(|&rank| core_of[rank].is_none());
            // Of several, the lowest.
            let Some(rank) = free.max_by_key(|&rank| (pull[rank], std::cmp::Reverse(rank))) else {
                break;
            };
            core_of[rank] = Some(core);
            for (&partner, &elements) in &partners[rank] {
                pull[partner] += elements;
            }
        }
        core_of.into_iter().flatten().collect()
    }
}

/// By rank: the elements that it exchanges with each partner.
fn partners(schedule: &Schedule) -> Vec<HashMap<usize, u64>> {
    let mut partners = vec![HashMap::new(); schedule.ranks()];
    for (rank, program) in schedule.programs().iter().enumerate() {
        for step in program {
            if let Step::Send { to, .. } = step {
                let elements = step.len() as u64;
                *partners[rank].entry(*to).or_default() += elements;
                *partners[*to].entry(rank).or_default() += elements;
            }
        }
    }
    partners
}

/// The first number of a list such as `0-3,8`.
fn first_of_list(list: &str) -> Option<usize> {
    let first = list.trim().split([',', '-']).next()?;
    first.parse().ok()
}
