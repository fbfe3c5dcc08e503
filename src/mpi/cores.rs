//! How the processes of a host share its cores.

/// The cores of the processes of a host.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cores {
    /// The system's numbers of those that any of them may use.
    pub(super) union: Vec<usize>,
    /// Whether each process has one core, for itself.
    pub(super) bound: bool,
    /// Whether the processes, or some of them, outnumber the cores that they may use.
    pub(super) crowded: bool,
}

impl Cores {
    /// From the cores that each process may use, a bit each.
    pub(super) fn of(processes: &[&[u64]]) -> Cores {
        let may_use = |process: &[u64], core: usize| process[core / 64] >> (core % 64) & 1 == 1;
        let count = |process: &[u64]| {
            process
                .iter()
                .map(|w| w.count_ones() as usize)
                .sum::<usize>()
        };
        let words = processes.first().map_or(0, |process| process.len());
        let union: Vec<usize> = (0..64 * words)
            .filter(|&core| processes.iter().any(|process| may_use(process, core)))
            .collect();
        let alike = |one: &&[u64]| processes.iter().filter(|other| *other == one).count();
        Cores {
            bound: union.len() == processes.len() && processes.iter().all(|one| count(one) == 1),
            crowded: processes.len() > union.len().max(1)
                || processes.iter().any(|one| alike(one) > count(one).max(1)),
            union,
        }
    }
}
