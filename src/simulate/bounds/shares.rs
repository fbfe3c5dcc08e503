//! Messages that share ports: multiprocessor scheduling (Träff, adaptive gather trees, Theorem 6).

/// No shares of `messages`, sorted from the longest to the shortest, on `k` ports end sooner.
pub(super) fn least_end(messages: &[f64], k: usize) -> f64 {
    let at = |i: usize| messages.get(i).copied().unwrap_or(0.0);
    // Equal shares are the best that is possible, or the two of the k + 1 longest that share one.
    let equal = messages.iter().sum::<f64>() / k as f64;
    equal.max(at(0)).max(at(k.saturating_sub(1)) + at(k))
}

/// When the last of `k` ports ends, and the port of each of `messages`, sorted from the longest to
/// the shortest, so that it ends the soonest; as far as `tries` tries show.
pub(crate) fn shares(messages: &[f64], k: usize, tries: usize) -> (f64, Vec<usize>) {
    let mut search = Shares {
        messages,
        goal: least_end(messages, k),
        busy: vec![0.0; k],
        chosen: Vec::new(),
        best: (f64::INFINITY, vec![0; messages.len()]),
        left: tries,
    };
    search.assign();
    search.best
}

/// The search of the best shares.
struct Shares<'a> {
    messages: &'a [f64],
    /// No shares are better.
    goal: f64,
    /// By port, how long it is busy with the messages before.
    busy: Vec<f64>,
    chosen: Vec<usize>,
    best: (f64, Vec<usize>),
    left: usize,
}

impl Shares<'_> {
    fn assign(&mut self) {
        let Some(&message) = self.messages.get(self.chosen.len()) else {
            let most = self.busy.iter().copied().fold(0.0, f64::max);
            self.best = (most, self.chosen.clone());
            return;
        };
        let mut ports: Vec<usize> = (0..self.busy.len()).collect();
        ports.sort_by(|&a, &b| self.busy[a].total_cmp(&self.busy[b]));
        // Of ports that are busy for the same time one is tried.
        ports.dedup_by_key(|port| self.busy[*port]);
        for port in ports {
            let before = self.busy[port];
            let is_best = self.best.0 <= self.goal || before + message >= self.best.0;
            if is_best || self.left == 0 {
                return;
            }
            self.left -= 1;
            self.busy[port] += message;
            self.chosen.push(port);
            self.assign();
            self.chosen.pop();
            self.busy[port] = before;
        }
    }
}
