//! What else than this process has kept some cores busy.

/// What some cores have done until now, in ticks of the system's accounting, which are 10 ms as a
/// rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Load {
    cores: u64,
    /// Idle or not.
    all: u64,
    busy: u64,
    /// On whatever core.
    by_this_process: u64,
}

impl Load {
    /// Of the cores `ids`, where the system says what they do.
    pub(super) fn now(ids: &[usize]) -> Option<Load> {
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
            // user, nice, system, idle, waiting for devices, two kinds of interrupts, other guests
            // of the host; what follows is counted among the first.
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
        // The name of the program, in parentheses, may hold anything; the state and ten numbers
        // follow it, and then the two wanted.
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

    /// The part of the cores' time since `before` that others had, in percent, if that is certain
    /// and worth a word.
    pub(super) fn by_others_since(&self, before: &Load) -> Option<u64> {
        const WORTH_A_WORD: u64 = 5;
        let all = self.all.saturating_sub(before.all);
        let busy = self.busy.saturating_sub(before.busy);
        let own = self.by_this_process.saturating_sub(before.by_this_process);
        let peers = busy.saturating_sub(own).min(all);
        // Each number counts whole ticks.
        let margin = self.cores + 2;
        (100 * peers.saturating_sub(margin) > WORTH_A_WORD * all).then(|| 100 * peers / all)
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
            .by_others_since(&before)
    }

    #[test]
    fn others_had_what_this_process_had_not() {
        // A hundred ticks: fifty idle, thirty this process's.
        assert_eq!(after("cpu1 40 0 20 150 0 0 0 10", "23 14"), Some(20));
        // All its own; hardly anything.
        assert_eq!(after("cpu1 100 0 20 100 0 0 0 0", "83 24"), None);
        assert_eq!(after("cpu1 100 0 20 100 0 0 0 0", "80 20"), None);
        // Too short to tell.
        assert_eq!(after("cpu1 13 0 10 100 0 0 0 0", "3 4"), None);
    }

    #[test]
    fn what_is_not_told_is_not_made_up() {
        assert_eq!(Load::read(&[2], BEFORE.0, BEFORE.1), None);
        assert_eq!(Load::read(&[1], "cpu1 1 2\n", BEFORE.1), None);
        assert_eq!(Load::read(&[1], BEFORE.0, "7 (x) R 1 2"), None);
        let both = Load::read(&[0, 12], BEFORE.0, BEFORE.1).unwrap();
        assert_eq!((both.cores, both.all, both.busy), (2, 240, 40));
    }
}
