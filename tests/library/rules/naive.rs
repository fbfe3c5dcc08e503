//! The rules of time, evaluated literally: [`Naive`] examines all earlier steps of a rank for every
//! step, rule by rule, and sweeps over all ranks until no time changes.

use oneport::{Collective, CostModel, Ports, Schedule, Span, Step};

/// Start and end of the two parts of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Times {
    pub(super) transfer: Option<(f64, f64)>,
    pub(super) compute: Option<(f64, f64)>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Verdict {
    /// Sends and receives do not match, in number or in length.
    Unmatched,
    /// Some steps never start.
    Stuck,
    /// The times of every step, by `[rank][step]`.
    Done(Vec<Vec<Times>>),
}

/// Late ranks, latency and messages that do not wait for their receivers.
#[derive(Debug, Clone)]
pub(super) struct Delays {
    pub(super) arrivals: Vec<f64>,
    pub(super) latency: Vec<Vec<f64>>,
    /// Messages of at most so many bytes do not wait.
    pub(super) eager: Option<u64>,
}

pub(super) struct Naive<'a> {
    schedule: &'a Schedule,
    cost: &'a CostModel,
    delays: &'a Delays,
    element_bytes: u64,
    times: Vec<Vec<Times>>,
}

impl<'a> Naive<'a> {
    pub(super) fn evaluate(
        schedule: &'a Schedule,
        cost: &'a CostModel,
        delays: &'a Delays,
        element_bytes: u64,
    ) -> Verdict {
        let programs = schedule.programs();
        for (rank, program) in programs.iter().enumerate() {
            for (i, step) in program.iter().enumerate() {
                if is_local(step) {
                    continue;
                }
                match partner(programs, rank, i) {
                    None => return Verdict::Unmatched,
                    Some((peer, j)) if length(&programs[peer][j]) != length(step) => {
                        return Verdict::Unmatched;
                    }
                    Some(_) => {}
                }
            }
        }
        let unknown = Times {
            transfer: None,
            compute: None,
        };
        let mut naive = Naive {
            schedule,
            cost,
            delays,
            element_bytes,
            times: programs.iter().map(|p| vec![unknown; p.len()]).collect(),
        };
        while naive.sweep() {}
        let done = |rank: usize| (0..programs[rank].len()).all(|i| naive.finish(rank, i).is_some());
        if (0..programs.len()).all(done) {
            Verdict::Done(naive.times)
        } else {
            Verdict::Stuck
        }
    }

    /// Rule 4. The costs are small whole numbers, so alpha is exact.
    fn transfer(&self, from: usize, to: usize, bytes: u64) -> f64 {
        let time = |bytes| self.cost.transfer(from, to, bytes);
        match self.schedule.collective() {
            Collective::Barrier if bytes > 0 => 2.0 * time(1) - time(2),
            _ => time(bytes),
        }
    }

    /// Computes all times that follow from known ones. Returns whether there were any.
    fn sweep(&mut self) -> bool {
        let programs = self.schedule.programs();
        let mut progressed = false;
        for rank in 0..programs.len() {
            for i in 0..programs[rank].len() {
                let step = &programs[rank][i];
                let bytes = length(step) as u64 * self.element_bytes;
                if let Step::Recv { .. } | Step::RecvCombine { .. } = step
                    && self.times[rank][i].transfer.is_none()
                {
                    let (peer, j) = partner(programs, rank, i).unwrap();
                    if let (Some(mine), Some(theirs)) =
                        (self.may_start(rank, i), self.may_start(peer, j))
                    {
                        let takes = self.transfer(peer, rank, bytes);
                        let latency = match bytes {
                            0 => 0.0,
                            _ => self.delays.latency[peer][rank],
                        };
                        let size = match self.schedule.collective() {
                            Collective::Barrier => 0,
                            _ => bytes,
                        };
                        let eager = self.delays.eager.is_some_and(|limit| size <= limit);
                        // That the receiver is ready is known at the sender a latency later.
                        let sent = if eager {
                            theirs
                        } else {
                            theirs.max(mine + latency)
                        };
                        let received = mine.max(sent + latency);
                        self.times[peer][j].transfer = Some((sent, sent + takes));
                        self.times[rank][i].transfer = Some((received, received + takes));
                        progressed = true;
                    }
                }
                if computes(step) && self.times[rank][i].compute.is_none() {
                    let start = if is_local(step) {
                        self.may_start(rank, i)
                    } else {
                        self.may_combine(rank, i)
                    };
                    if let Some(start) = start {
                        let time = match step {
                            // Tokens have no bytes.
                            _ if *self.schedule.collective() == Collective::Barrier => 0.0,
                            Step::Copy { .. } => self.cost.copy(rank, bytes),
                            _ => self.cost.combine(rank, bytes),
                        };
                        self.times[rank][i].compute = Some((start, start + time));
                        progressed = true;
                    }
                }
            }
        }
        progressed
    }

    /// The earliest start of step `i` that its own rank allows, if known.
    fn may_start(&self, rank: usize, i: usize) -> Option<f64> {
        let program = &self.schedule.programs()[rank];
        let step = &program[i];
        let mut start = self.delays.arrivals[rank];
        for (j, earlier) in program[..i].iter().enumerate() {
            // Rule 1: the port is free when the transfer ends.
            if same_port(self.schedule.ports(), earlier, step) {
                start = start.max(self.times[rank][j].transfer?.1);
            }
            // Rule 2: it writes an element that `step` reads, or accesses one that `step` writes.
            let conflict = intersect(&written(earlier), &read(step))
                || intersect(&written(earlier), &written(step))
                || intersect(&read(earlier), &written(step));
            if conflict {
                start = start.max(self.finish(rank, j)?);
            }
            // Rule 3, without overlap: every step starts after earlier computations, and a local
            // step after all earlier steps.
            if !self.cost.overlaps() && (computes(earlier) || is_local(step)) {
                start = start.max(self.finish(rank, j)?);
            }
        }
        // Rule 1 on shared ports: the transfer before it in the list has ended.
        for port in self.schedule.shared_ports() {
            let place = port.steps.iter().position(|&listed| listed == (rank, i));
            if let Some(before) = place.and_then(|place| place.checked_sub(1)) {
                let (rank, j) = port.steps[before];
                start = start.max(self.times[rank][j].transfer?.1);
            }
        }
        Some(start)
    }

    /// When the combining part of receive `i` may start, if known.
    fn may_combine(&self, rank: usize, i: usize) -> Option<f64> {
        let mut start = self.times[rank][i].transfer?.1;
        if !self.cost.overlaps() {
            for j in 0..i {
                start = start.max(self.finish(rank, j)?);
            }
        }
        Some(start)
    }

    /// When step `i` finishes, if known.
    fn finish(&self, rank: usize, i: usize) -> Option<f64> {
        let times = self.times[rank][i];
        let last = if computes(&self.schedule.programs()[rank][i]) {
            times.compute
        } else {
            times.transfer
        };
        last.map(|t| t.1)
    }
}

/// Rule 4: the rank and index of the matching step.
fn partner(programs: &[Vec<Step>], rank: usize, i: usize) -> Option<(usize, usize)> {
    let candidates = |of: usize, with: usize, sends: bool| -> Vec<usize> {
        let steps = programs[of].iter().enumerate();
        let fits = |s: &Step| match s {
            Step::Send { to, .. } => sends && *to == with,
            Step::Recv { from, .. } | Step::RecvCombine { from, .. } => !sends && *from == with,
            _ => false,
        };
        steps.filter(|(_, s)| fits(s)).map(|(j, _)| j).collect()
    };
    let (peer, sends) = match &programs[rank][i] {
        Step::Send { to, .. } => (*to, true),
        Step::Recv { from, .. } | Step::RecvCombine { from, .. } => (*from, false),
        _ => return None,
    };
    let nth = candidates(rank, peer, sends).iter().position(|&j| j == i)?;
    Some((peer, *candidates(peer, rank, !sends).get(nth)?))
}

pub(super) fn same_port(ports: Ports, a: &Step, b: &Step) -> bool {
    let port = |s: &Step| match s {
        Step::Send { port, to, .. } => Some((*port, true, *to)),
        Step::Recv { port, from, .. } | Step::RecvCombine { port, from, .. } => {
            Some((*port, false, *from))
        }
        _ => None,
    };
    let (Some(a), Some(b)) = (port(a), port(b)) else {
        return false;
    };
    match ports {
        Ports::Unidirectional { .. } => a.0 == b.0,
        Ports::Bidirectional { .. } => (a.0, a.1) == (b.0, b.1),
        // The two directions of a call run at once.
        Ports::Telephone { .. } => a.0 == b.0 && (a.1 == b.1 || a.2 != b.2),
    }
}

/// Elements that a step reads.
pub(super) fn read(step: &Step) -> Vec<usize> {
    elements(match step {
        Step::Send { spans, .. } | Step::RecvCombine { spans, .. } => spans,
        Step::Recv { .. } => &[],
        Step::Copy { src, .. } => src,
        Step::Combine { src, dst, .. } => {
            return [elements(src), elements(dst)].concat();
        }
    })
}

/// Elements that a step writes.
pub(super) fn written(step: &Step) -> Vec<usize> {
    elements(match step {
        Step::Send { .. } => &[],
        Step::Recv { spans, .. } | Step::RecvCombine { spans, .. } => spans,
        Step::Copy { dst, .. } | Step::Combine { dst, .. } => dst,
    })
}

pub(super) fn elements(spans: &[Span]) -> Vec<usize> {
    let each = spans.iter().flat_map(|s| s.offset..s.offset + s.len);
    each.collect()
}

pub(super) fn intersect(a: &[usize], b: &[usize]) -> bool {
    a.iter().any(|x| b.contains(x))
}

fn length(step: &Step) -> usize {
    match step {
        Step::Send { spans, .. } | Step::Recv { spans, .. } | Step::RecvCombine { spans, .. } => {
            elements(spans).len()
        }
        Step::Copy { dst, .. } | Step::Combine { dst, .. } => elements(dst).len(),
    }
}

pub(super) fn is_local(step: &Step) -> bool {
    matches!(step, Step::Copy { .. } | Step::Combine { .. })
}

fn computes(step: &Step) -> bool {
    is_local(step) || matches!(step, Step::RecvCombine { .. })
}
