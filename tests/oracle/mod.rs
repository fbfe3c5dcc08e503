//! A slow interpreter of schedules on real data, derived only from the rules of time.
//!
//! It shares no code with the library's analysis. To find whether a step may start, it examines all
//! earlier steps of the rank, and it sweeps over the ranks until no step progresses.

use oneport::{Collective, Order, Ports, Schedule, Span, Step};

use crate::support::random::Random;

/// An element: the map `x -> a x + b` modulo a prime, or two numbers to add.
pub(crate) type Value = [u64; 2];

/// The operator of a reduction or scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    /// Addition, which commutes.
    Sum,
    /// Composition of affine maps, which does not commute.
    Affine,
}

const PRIME: u64 = (1 << 61) - 1;

impl Operator {
    pub(crate) fn combine(self, left: Value, right: Value) -> Value {
        let times = |a: u64, b: u64| ((u128::from(a) * u128::from(b)) % u128::from(PRIME)) as u64;
        match self {
            Operator::Sum => [
                left[0].wrapping_add(right[0]),
                left[1].wrapping_add(right[1]),
            ],
            // Applies `left` first.
            Operator::Affine => [
                times(left[0], right[0]),
                (times(left[1], right[0]) + right[1]) % PRIME,
            ],
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It completed with every output that the collective requires.
    Right,
    /// It completed with a wrong output.
    Wrong,
    /// It never completes, or a step cannot be executed at all.
    Stuck,
}

/// Runs the schedule on random data.
pub(crate) fn run(schedule: &Schedule, overlap: bool, operator: Operator, seed: u64) -> Outcome {
    let mut random = Random::new(seed);
    let initial: Vec<Vec<Value>> = schedule
        .layout()
        .iter()
        .map(|l| {
            (0..l.len)
                .map(|_| [value(&mut random), value(&mut random)])
                .collect()
        })
        .collect();
    let inputs: Vec<Vec<Value>> = initial
        .iter()
        .zip(schedule.layout())
        .map(|(memory, l)| gather(memory, &l.input))
        .collect();
    let combine = |a, b| operator.combine(a, b);
    let Some((memories, _)) = execute(schedule, overlap, combine, initial) else {
        return Outcome::Stuck;
    };
    let right = (0..schedule.ranks()).all(|rank| {
        let output = gather(&memories[rank], &schedule.layout()[rank].output);
        output == expected_output(schedule, operator, &inputs, rank)
    });
    if right {
        Outcome::Right
    } else {
        Outcome::Wrong
    }
}

/// The costs for [`time`]: start-up per message, time per element sent, combined, copied.
pub(crate) const COSTS: [f64; 4] = [7.0, 3.0, 2.0, 1.0];

/// When the last step finishes, if all steps do.
#[allow(dead_code, reason = "not every test crate uses times")]
pub(crate) fn time(schedule: &Schedule, overlap: bool) -> Option<f64> {
    let zeros = schedule.layout().iter().map(|l| vec![[0, 0]; l.len]);
    let combine = |a, b| Operator::Sum.combine(a, b);
    execute(schedule, overlap, combine, zeros.collect()).map(|(_, time)| time)
}

/// Returns the final contents of the buffers and the makespan, if every step can be executed.
pub(crate) fn execute<V: Copy>(
    schedule: &Schedule,
    overlap: bool,
    operator: impl Fn(V, V) -> V,
    mut memories: Vec<Vec<V>>,
) -> Option<(Vec<Vec<V>>, f64)> {
    let [alpha, beta, gamma, gamma_copy] = COSTS;
    let transfer_time = |n: usize| if n == 0 { 0.0 } else { alpha + beta * n as f64 };
    let programs = schedule.programs();
    for step in programs.iter().flatten() {
        if step.port().is_some_and(|port| port >= schedule.ports().k()) {
            return None;
        }
        if let Step::Copy { src, dst } | Step::Combine { src, dst, .. } = step
            && length(src) != length(dst)
        {
            return None;
        }
    }
    let mut ranks: Vec<Rank<'_, V>> = programs
        .iter()
        .map(|program| Rank {
            program,
            ports: schedule.ports(),
            overlap,
            transferred: vec![None; program.len()],
            finished: vec![None; program.len()],
            arrived: vec![Vec::new(); program.len()],
        })
        .collect();
    loop {
        let mut progressed = false;
        for me in 0..programs.len() {
            for (i, step) in programs[me].iter().enumerate() {
                match step {
                    Step::Send { .. } => {}
                    Step::Copy { src, dst } | Step::Combine { src, dst, .. } => {
                        let Some(start) = ranks[me].may_start(i) else {
                            continue;
                        };
                        let message = gather(&memories[me], src);
                        let per_element = if let Step::Combine { order, .. } = step {
                            combine(&mut memories[me], dst, &message, *order, &operator);
                            gamma
                        } else {
                            store(&mut memories[me], dst, &message, |_, new| new);
                            gamma_copy
                        };
                        ranks[me].finished[i] = Some(start + per_element * message.len() as f64);
                        progressed = true;
                    }
                    Step::Recv { from, spans, .. } | Step::RecvCombine { from, spans, .. } => {
                        if ranks[me].transferred[i].is_none() {
                            let Some(send) = partner(programs, me, i) else {
                                continue;
                            };
                            let starts = (ranks[me].may_start(i), ranks[*from].may_start(send));
                            let (Some(a), Some(b)) = starts else { continue };
                            let message = gather(&memories[*from], programs[*from][send].reads());
                            if message.len() != length(spans) {
                                return None;
                            }
                            let end = a.max(b) + transfer_time(message.len());
                            if let Step::Recv { .. } = step {
                                store(&mut memories[me], spans, &message, |_, new| new);
                                ranks[me].finished[i] = Some(end);
                            } else {
                                ranks[me].arrived[i] = message;
                            }
                            ranks[me].transferred[i] = Some(end);
                            ranks[*from].transferred[send] = Some(end);
                            ranks[*from].finished[send] = Some(end);
                            progressed = true;
                        }
                        if let Step::RecvCombine { order, .. } = step {
                            let mine = &mut ranks[me];
                            if let Some(start) = mine.may_compute(i) {
                                let message = std::mem::take(&mut mine.arrived[i]);
                                combine(&mut memories[me], spans, &message, *order, &operator);
                                mine.finished[i] = Some(start + gamma * message.len() as f64);
                                progressed = true;
                            }
                        }
                    }
                }
            }
        }
        let ends: Option<Vec<f64>> = ranks.iter().flat_map(|r| r.finished.clone()).collect();
        if let Some(ends) = ends {
            return Some((memories, ends.into_iter().fold(0.0, f64::max)));
        }
        if !progressed {
            return None;
        }
    }
}

struct Rank<'a, V> {
    program: &'a [Step],
    ports: Ports,
    overlap: bool,
    /// When the transfer of each step ended.
    transferred: Vec<Option<f64>>,
    /// When each step ended.
    finished: Vec<Option<f64>>,
    /// The message of each receive whose combining part has not started.
    arrived: Vec<Vec<V>>,
}

impl<V> Rank<'_, V> {
    /// When step `i` may start, if that is known and it has not started yet.
    fn may_start(&self, i: usize) -> Option<f64> {
        if self.transferred[i].is_some() || self.finished[i].is_some() {
            return None;
        }
        let step = &self.program[i];
        let mut start = 0.0f64;
        for (j, earlier) in self.program[..i].iter().enumerate() {
            // Rule 1: the same port.
            if step.peer().is_some() && earlier.peer().is_some() {
                let one_way = is_send(step) == is_send(earlier);
                let same = step.port() == earlier.port()
                    && match self.ports {
                        Ports::Unidirectional { .. } => true,
                        Ports::Bidirectional { .. } => one_way,
                        Ports::Telephone { .. } => one_way || step.peer() != earlier.peer(),
                    };
                if same {
                    start = start.max(self.transferred[j]?);
                }
            }
            // Rule 2: data.
            let conflict = intersect(earlier.writes(), step.reads())
                || intersect(earlier.writes(), step.writes())
                || intersect(earlier.reads(), step.writes());
            // Rule 3: computations.
            if conflict || (!self.overlap && (computes(earlier) || is_local(step))) {
                start = start.max(self.finished[j]?);
            }
        }
        Some(start)
    }

    /// When the combining part of receive `i` may start, if that is known and it has not started
    /// yet.
    fn may_compute(&self, i: usize) -> Option<f64> {
        if self.finished[i].is_some() {
            return None;
        }
        let mut start = self.transferred[i]?;
        for j in 0..i {
            if !self.overlap {
                start = start.max(self.finished[j]?);
            }
        }
        Some(start)
    }
}

/// Rule 4: the send that matches receive `i` of `me`.
pub(crate) fn partner(programs: &[Vec<Step>], me: usize, i: usize) -> Option<usize> {
    let from = programs[me][i].peer()?;
    let receives = |s: &Step| !is_send(s) && s.peer() == Some(from);
    let nth = programs[me][..i].iter().filter(|s| receives(s)).count();
    let sends = |s: &&(usize, &Step)| is_send(s.1) && s.1.peer() == Some(me);
    let numbered: Vec<(usize, &Step)> = programs[from].iter().enumerate().collect();
    numbered.iter().filter(sends).nth(nth).map(|s| s.0)
}

/// The expected output of `rank`.
fn expected_output(
    schedule: &Schedule,
    operator: Operator,
    inputs: &[Vec<Value>],
    rank: usize,
) -> Vec<Value> {
    let p = schedule.ranks();
    let combined = |ranks: std::ops::Range<usize>| -> Vec<Value> {
        let mut sum = inputs[ranks.start].clone();
        for r in ranks.skip(1) {
            for (s, x) in sum.iter_mut().zip(&inputs[r]) {
                *s = operator.combine(*s, *x);
            }
        }
        sum
    };
    let output = |r: usize| length(&schedule.layout()[r].output);
    let mine = |all: Vec<Value>| -> Vec<Value> {
        let start: usize = (0..rank).map(output).sum();
        all[start..start + output(rank)].to_vec()
    };
    match schedule.collective() {
        Collective::Broadcast { root } => inputs[*root].clone(),
        Collective::Multicast { root, targets } if targets.contains(&rank) => inputs[*root].clone(),
        Collective::Reduce { root } if *root == rank => combined(0..p),
        Collective::Gather { root } if *root == rank => inputs.concat(),
        Collective::Multicast { .. } | Collective::Reduce { .. } | Collective::Gather { .. } => {
            Vec::new()
        }
        Collective::Allreduce => combined(0..p),
        Collective::Scan => combined(0..rank + 1),
        Collective::Exscan if rank == 0 => Vec::new(),
        Collective::Exscan => combined(0..rank),
        Collective::Allgather | Collective::Barrier => inputs.concat(),
        Collective::Scatter { root } => mine(inputs[*root].clone()),
        Collective::ReduceScatter => mine(combined(0..p)),
        Collective::Alltoall => (0..p)
            .flat_map(|from| {
                let spans = &schedule.layout()[from].input;
                let (start, len) = if spans.len() == p {
                    (length(&spans[..rank]), spans[rank].len)
                } else {
                    let block = inputs[from].len() / p;
                    (rank * block, block)
                };
                inputs[from][start..start + len].to_vec()
            })
            .collect(),
        other => panic!("no oracle for {other:?}"),
    }
}

fn combine<V: Copy>(
    memory: &mut [V],
    spans: &[Span],
    message: &[V],
    order: Order,
    operator: impl Fn(V, V) -> V,
) {
    store(memory, spans, message, |mine, theirs| match order {
        Order::MineFirst => operator(mine, theirs),
        Order::TheirsFirst => operator(theirs, mine),
    });
}

fn gather<V: Copy>(memory: &[V], spans: &[Span]) -> Vec<V> {
    let parts = spans.iter().map(|s| &memory[s.offset..s.offset + s.len]);
    parts.flatten().copied().collect()
}

fn store<V: Copy>(memory: &mut [V], spans: &[Span], message: &[V], merge: impl Fn(V, V) -> V) {
    let places = spans.iter().flat_map(|s| s.offset..s.offset + s.len);
    for (place, &value) in places.zip(message) {
        memory[place] = merge(memory[place], value);
    }
}

fn length(spans: &[Span]) -> usize {
    spans.iter().map(|s| s.len).sum()
}

fn intersect(a: &[Span], b: &[Span]) -> bool {
    a.iter().any(|a| {
        b.iter().any(|b| {
            a.len > 0 && b.len > 0 && a.offset < b.offset + b.len && b.offset < a.offset + a.len
        })
    })
}

fn is_send(step: &Step) -> bool {
    matches!(step, Step::Send { .. })
}

fn is_local(step: &Step) -> bool {
    matches!(step, Step::Copy { .. } | Step::Combine { .. })
}

fn computes(step: &Step) -> bool {
    is_local(step) || matches!(step, Step::RecvCombine { .. })
}

/// A random number other than 0 and 1, which could hide the operands combined with them.
fn value(random: &mut Random) -> u64 {
    2 + random.next() % (PRIME - 2)
}
