//! The makespan of uni-greedy without its schedule, from the states of the ranks alone.

/// The makespan over segments with these `(tc, tp)`, in their unit of time, computed without a
/// schedule: see [`States`] for the time that it takes.
pub fn makespan(ranks: usize, costs: impl IntoIterator<Item = (f64, f64)>) -> f64 {
    let mut states = States::new(ranks);
    let mut costs = costs.into_iter().peekable();
    while let Some(cost) = costs.next() {
        let mut count = 1;
        while costs.next_if_eq(&cost).is_some() {
            count += 1;
        }
        states.reduce(cost.0, cost.1, count);
    }
    states.time()
}

/// The states of all ranks between two segments, without the ranks' names. The makespan depends on
/// nothing else.
///
/// Equal states are kept as one run and are paired in bulk, so a segment costs about as many
/// operations as there are different states (some dozens for a thousand ranks). Over equal segments
/// the states, relative to the smallest, become periodic after a transient. Once they repeat,
/// [`States::reduce`] skips whole periods. Both are exact for whole-number costs. For other costs,
/// states that differ only by rounding count as equal. A segment never enlarges a difference (the
/// step is monotone, lemma 4 of the paper, and adding a constant to all states adds it to the
/// result), so the error stays of the size of rounding errors.
#[derive(Debug, Clone)]
pub struct States {
    /// The smallest state. The runs are relative to it.
    base: f64,
    runs: Vec<StateRun>,
    done: Vec<StateRun>,
    combined: Vec<StateRun>,
    /// The earlier pattern that the current one is compared with to detect a period.
    earlier: Vec<StateRun>,
}

/// This many ranks with the same state.
#[derive(Debug, Clone, Copy, PartialEq)]
struct StateRun {
    free: f64,
    count: usize,
}

/// If costs are not whole numbers, states with a smaller relative difference count as equal.
const ROUNDING: f64 = 1e-14;

impl States {
    /// Starts with `ranks` free ranks.
    pub fn new(ranks: usize) -> States {
        let mut states = States {
            base: 0.0,
            runs: Vec::new(),
            done: Vec::new(),
            combined: Vec::new(),
            earlier: Vec::new(),
        };
        states.reset(ranks);
        states
    }

    /// Restarts with `ranks` free ranks.
    pub fn reset(&mut self, ranks: usize) {
        self.base = 0.0;
        self.runs.clear();
        self.runs.extend((ranks > 0).then_some(StateRun {
            free: 0.0,
            count: ranks,
        }));
    }

    /// The time at which the last rank, the root, is free: the makespan so far.
    pub fn time(&self) -> f64 {
        self.base + self.runs.last().map_or(0.0, |r| r.free)
    }

    /// Reduces `count` segments of equal cost. A cost that is not finite makes the time infinite.
    pub fn reduce(&mut self, transfer_time: f64, combine_time: f64, count: usize) {
        if self
            .runs
            .first()
            .is_none_or(|r| r.count < 2 && self.runs.len() == 1)
        {
            return; // fewer than two ranks
        }
        if !(transfer_time.is_finite() && combine_time.is_finite() && self.base.is_finite()) {
            self.base = f64::INFINITY;
            return;
        }
        let exact = transfer_time.fract() == 0.0 && combine_time.fract() == 0.0;
        let tolerance = if exact { 0.0 } else { ROUNDING };
        // Brent's cycle detection: compare with the pattern after 0, 1, 3, 7, .. segments.
        let (mut earlier_base, mut earlier_at, mut power) = (self.base, 0, 1);
        self.earlier.clone_from(&self.runs);
        let mut at = 0;
        while at < count {
            self.segment(transfer_time, combine_time, tolerance);
            at += 1;
            if self.repeats(tolerance) {
                let period = at - earlier_at;
                let periods = (count - at) / period;
                let jump = periods as f64 * (self.base - earlier_base);
                self.base += jump;
                for _ in at + periods * period..count {
                    self.segment(transfer_time, combine_time, tolerance);
                }
                return;
            }
            if at - earlier_at == power {
                self.earlier.clone_from(&self.runs);
                (earlier_base, earlier_at, power) = (self.base, at, 2 * power);
            }
        }
    }

    /// Whether the current pattern equals the earlier one.
    fn repeats(&self, tolerance: f64) -> bool {
        let bound = tolerance * self.runs.last().map_or(0.0, |r| r.free);
        let mut runs = self.runs.iter().zip(&self.earlier);
        self.runs.len() == self.earlier.len()
            && runs.all(|(a, b)| a.count == b.count && (a.free - b.free).abs() <= bound)
    }

    fn segment(&mut self, transfer_time: f64, combine_time: f64, tolerance: f64) {
        self.done.clear();
        self.combined.clear();
        let (mut w, mut c) = (0, 0);
        // A holder that found no partner among those with the same state.
        let mut single: Option<f64> = None;
        loop {
            let free = match (self.runs.get(w), self.combined.get(c)) {
                (Some(a), Some(b)) => a.free.min(b.free),
                (Some(a), None) | (None, Some(a)) => a.free,
                (None, None) => break,
            };
            let mut holders = 0;
            if let Some(run) = self.runs.get(w).filter(|r| r.free == free) {
                holders += run.count;
                w += 1;
            }
            if let Some(run) = self.combined.get(c).filter(|r| r.free == free) {
                holders += run.count;
                c += 1;
            }
            holders += usize::from(single.is_some());
            single = (holders % 2 == 1).then_some(free);
            let pairs = holders / 2;
            if pairs > 0 {
                let sent = free + transfer_time;
                // Runs that have already been consumed must not grow.
                push(&mut self.done, 0, sent, pairs, tolerance);
                push(&mut self.combined, c, sent + combine_time, pairs, tolerance);
            }
        }
        let root = single.expect("one holder is left of a segment");
        push(&mut self.done, 0, root, 1, tolerance);
        let first = self.done[0].free;
        for run in &mut self.done {
            run.free -= first;
        }
        self.base += first;
        std::mem::swap(&mut self.runs, &mut self.done);
    }
}

/// Appends a run to a sorted list. Merges it with the last run if their states are equal or, from
/// index `live` on, differ only by rounding.
fn push(runs: &mut Vec<StateRun>, live: usize, free: f64, count: usize, tolerance: f64) {
    match runs[live..].last_mut() {
        Some(last) if free - last.free <= tolerance * free => last.count += count,
        _ => runs.push(StateRun { free, count }),
    }
}
