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

    fn read(ids: &[usize], cores: &str, process: &str) -> Option<Load> {
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

    /// The percentage of the cores' time since `before` that others had, if that is certain and
    /// large enough to report.
    pub(crate) fn percent_by_others_since(&self, before: &Load) -> Option<u64> {
        let all = self.all.saturating_sub(before.all);
        let busy = self.busy.saturating_sub(before.busy);
        let own = self.by_this_process.saturating_sub(before.by_this_process);
        let by_others = busy.saturating_sub(own).min(all);
        // Each number counts whole ticks.
        let margin = self.cores + 2;
        (100 * by_others.saturating_sub(margin) > MIN_FOREIGN_PERCENT * all)
            .then(|| 100 * by_others / all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: (&str, &str) = (
        "cpu  30 0 30 300 0 0 0 0 0 0\ncpu0 10 0 10 100 0 0 0 0 0 0\ncpu1 10 0 10 100 0 0 0 0 0 0\ncpu12 10 0 10 100 0 0 0 0 0 0\nintr 5\n",
        "7 (a (b) c) R 1 7 7 0 -1 4 0 0 0 0 3 4 0 0 20 0 1 0",
    );

    fn after(core: &str, own: &str) -> Option<u64> {
        let cores = BEFORE.0.replace("cpu1 10 0 10 100 0 0 0 0", core);
        let process = BEFORE.1.replace("3 4", own);
        let before = Load::read(&[1], BEFORE.0, BEFORE.1).unwrap();
        Load::read(&[1], &cores, &process)
            .unwrap()
            .percent_by_others_since(&before)
    }

    #[test]
    fn others_had_the_busy_time_beyond_this_process() {
        // A hundred ticks: fifty idle, thirty of this process.
        assert_eq!(after("cpu1 40 0 20 150 0 0 0 10", "23 14"), Some(20));
        // All of this process, then hardly anything of others.
        assert_eq!(after("cpu1 100 0 20 100 0 0 0 0", "83 24"), None);
        assert_eq!(after("cpu1 100 0 20 100 0 0 0 0", "80 20"), None);
        // Too short to tell.
        assert_eq!(after("cpu1 13 0 10 100 0 0 0 0", "3 4"), None);
    }

    #[test]
    fn unknown_loads_are_none() {
        assert_eq!(Load::read(&[2], BEFORE.0, BEFORE.1), None);
        assert_eq!(Load::read(&[1], "cpu1 1 2\n", BEFORE.1), None);
        assert_eq!(Load::read(&[1], BEFORE.0, "7 (x) R 1 2"), None);
        let both = Load::read(&[0, 12], BEFORE.0, BEFORE.1).unwrap();
        assert_eq!((both.cores, both.all, both.busy), (2, 240, 40));
    }
}
