//! Measures how busy other processes have kept some cores.

use crate::run::tuning::MIN_FOREIGN_PERCENT;

/// What some cores have done since the system started, in ticks of the system's accounting (usually
/// 10 ms).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Load {
    cores: u64,
    /// All ticks, idle or busy.
    all: u64,
    busy: u64,
    /// Ticks of this process, on any core.
    by_this_process: u64,
}

impl Load {
    /// The load of the cores `ids`, if the system reports it.
    pub(crate) fn now(ids: &[usize]) -> Option<Load> {
        let cores = std::fs::read_to_string("/proc/stat").ok()?;
        let process = std::fs::read_to_string("/proc/self/stat").ok()?;
        Load::read(ids, &cores, &process)
    }

    pub(super) fn read(ids: &[usize], cores: &str, process: &str) -> Option<Load> {
        let (mut found, mut all, mut busy) = (0, 0, 0);
        for line in cores.lines() {
            let Some(rest) = line.strip_prefix("cpu") else {
                continue;
            };
            let (id, times) = rest.split_once(' ')?;
            if !id.parse().is_ok_and(|id| ids.contains(&id)) {
                continue;
            }
            // user, nice, system, idle, iowait, irq, softirq, steal; the columns after these are
            // included in the first two.
            let times: Vec<u64> = times
                .split_whitespace()
                .take(8)
                .map_while(|t| t.parse().ok())
                .collect();
            let idle: u64 = times.get(3..5)?.iter().sum();
            let sum: u64 = times.iter().sum();
            found += 1;
            all += sum;
            busy += sum - idle;
        }
        // The program's name, in parentheses, may contain anything. After it come the state, ten
        // numbers, and then the two needed here: user and system time.
        let (_, rest) = process.rsplit_once(')')?;
        let mut times = rest.split_whitespace().skip(11);
        let mut time = || times.next()?.parse::<u64>().ok();
        let by_this_process = time()? + time()?;
        (found > 0).then_some(Load {
            cores: found,
            all,
            busy,
            by_this_process,
        })
    }

    /// Ticks of each core since `before`.
    #[cfg(feature = "mpi")]
    pub(crate) fn ticks_since(&self, before: &Load) -> u64 {
        self.all.saturating_sub(before.all) / self.cores
    }

    /// Ticks of this process since `before`.
    pub(crate) fn own_since(&self, before: &Load) -> u64 {
        self.by_this_process.saturating_sub(before.by_this_process)
    }

    /// The percentage of the cores' time since `before` that others had than the ranks, which had
    /// `own` ticks, if that is certain and large enough to report.
    pub(crate) fn percent_by_others_since(&self, before: &Load, own: u64) -> Option<u64> {
        let all = self.all.saturating_sub(before.all);
        let busy = self.busy.saturating_sub(before.busy);
        let by_others = busy.saturating_sub(own).min(all);
        // Each number counts whole ticks.
        let margin = self.cores + 2;
        (100 * by_others.saturating_sub(margin) > MIN_FOREIGN_PERCENT * all)
            .then(|| 100 * by_others / all)
    }
}
