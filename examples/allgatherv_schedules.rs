//! Irregular allgather on circulant graphs: the costs of its schedules and of packing its messages.
//!
//! Every rank needs the receive schedules of all ranks. It can compute them all, or compute its own
//! and gather the others in an allgather of a few bytes. The example does both on a team of ranks
//! with one endpoint each, and requires equal results.
//!
//! It then gathers blocks of the paper's three kinds with the gathered schedules, `m` bytes
//! together, in several numbers of parts. The kinds are: all blocks equal; `(r mod 3) floor(m/p)`
//! bytes at rank `r` and the rest at the last rank; everything at the last rank.
//!
//! A message holds one part of almost every block. It is sent either as a list of spans, copied
//! once from buffer to buffer, or packed by the sender into contiguous memory and unpacked by the
//! receiver. Both are run alternately, multiplexed onto one worker per core, so that only copying
//! takes time. Every rank's output is compared with the oracle's, and the packed schedules are
//! proved correct.
//!
//! Run with `cargo run --release --example allgatherv_schedules -- [RANKS [BYTES]]`. Exits 1 if
//! packs is wrong.

#![expect(clippy::print_stdout, reason = "an example prints its results")]

#[path = "rank_programs/circulant.rs"]
mod circulant;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use circulant::{control_elements, gather_schedules};
use oneport::internal::circulant::allgatherv::Allgatherv;
use oneport::internal::circulant::schedule::Circulant;
use oneport::internal::circulant::tables::Tables;
use oneport::run::{
    Bidirectional, Endpoint, Op, Operator, Run, ScopeOptions, Team, TeamOptions, Workers,
};
use oneport::schedule::{ScheduleSource, total_len};
use oneport::{CostModel, Request, Schedule, Span, Step};

const REPETITIONS: usize = 21;

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let mut number = |default| numbers.next().unwrap_or(Ok(default));
    let (Ok(p), Ok(bytes)) = (number(36), number(1 << 20)) else {
        println!("usage: allgatherv_schedules [RANKS [BYTES]]");
        return ExitCode::from(2);
    };
    match measure(p, bytes) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn measure(p: usize, bytes: usize) -> oneport::Result<bool> {
    let mut team = Team::new(p)?;
    let (computing, computed) = schedules(&mut team, |e| {
        Ok(Tables::new(&Circulant::new(e.ranks())).recv)
    })?;
    let (gathering, gathered) = schedules(&mut team, gather_schedules)?;
    let equal = computed == gathered;
    println!("receive schedules of all {p} ranks at every rank, median of {REPETITIONS}:");
    println!("  computed  {:10.1} us", micros(computing));
    println!("  gathered  {:10.1} us", micros(gathering));
    println!("  {}", if equal { "equal" } else { "NOT EQUAL" });
    drop(team);

    let workers = TeamOptions {
        workers: Workers::Cores,
        ..TeamOptions::default()
    };
    let mut team = Team::with(p, &workers)?;
    println!(
        "\nallgather of {bytes} bytes, median of {REPETITIONS}; model times for alpha = 1 us, beta = 0.1 ns:"
    );
    println!(
        "{:>10} {:>5} {:>8} {:>12} {:>12} {:>12} {:>12} {:>7}  result",
        "blocks", "parts", "spans", "model us", "bound us", "spans us", "packed us", "ratio"
    );
    let mut ok = equal;
    for (kind, sizes) in kinds(p, bytes) {
        for parts in [1, 2, 4, 8, 16, 32] {
            let largest = sizes.iter().copied().max().unwrap_or(0);
            if parts > largest.max(1) {
                continue;
            }
            let request = Request::allgather(p, largest)
                .segment_count(parts)
                .blocks(sizes.clone());
            let programs = Allgatherv::with_schedules(&request, gathered.clone())?;
            let row = compare(&mut team, &programs.materialize()?)?;
            ok &= row.right;
            let packed = row.packed.map_or_else(
                || format!("{:>12} {:>7}", "-", "-"),
                |time| {
                    let ratio = time.as_secs_f64() / row.listed.as_secs_f64();
                    format!("{:>12.1} {ratio:>7.2}", micros(time))
                },
            );
            println!(
                "{kind:>10} {parts:>5} {:>8.1} {:>12.1} {:>12.1} {:>12.1} {packed}  {}",
                row.spans,
                row.model_time * 1e-3,
                row.bound * 1e-3,
                micros(row.listed),
                if row.right { "verified" } else { "WRONG" }
            );
        }
    }
    Ok(ok)
}

struct Row {
    /// Average number of spans of a message.
    spans: f64,
    model_time: f64,
    bound: f64,
    listed: Duration,
    /// Absent if there is nothing to pack.
    packed: Option<Duration>,
    right: bool,
}

/// Runs the schedule unchanged and packed, alternately.
fn compare(team: &mut Team, schedule: &Schedule) -> oneport::Result<Row> {
    let copied = packed(schedule)?;
    let proved = copied.check().is_correct();
    let mut steps = schedule.programs().iter().flatten();
    let packs = steps.any(|step| step.reads().len() > 1);
    let cost = CostModel::new(1000.0, 0.1);
    let (mut listed, mut packed) = (Vec::new(), Vec::new());
    let (mut right, mut model_time) = (proved, 0.0);
    for _ in 0..REPETITIONS {
        let (time, model, verified) = run(team, schedule, &cost)?;
        listed.push(time);
        model_time = model;
        right &= verified;
        if packs {
            let (time, _, verified) = run(team, &copied, &cost)?;
            packed.push(time);
            right &= verified;
        }
    }
    Ok(Row {
        spans: spans_of_a_message(schedule),
        model_time,
        bound: schedule.lower_bound(&cost).largest,
        listed: median(listed),
        packed: packs.then(|| median(packed)),
        right,
    })
}

/// Obtains all ranks' receive schedules at every rank with `get`. Returns the time of the slowest
/// rank and the schedules of rank 0. If ranks differ, the schedules are empty, which equals no
/// valid schedules.
fn schedules(
    team: &mut Team,
    get: impl Fn(&mut Endpoint<'_, u64, Bidirectional>) -> oneport::Result<Vec<i8>> + Sync,
) -> oneport::Result<(Duration, Vec<i8>)> {
    let p = team.ranks();
    let options = ScopeOptions::new(Operator::named("sum")?);
    let mut buffers = vec![vec![0; control_elements(p)]; p];
    let outcome = team.scope(&mut buffers, &options, |e| {
        let mut times = Vec::new();
        let mut recv = Vec::new();
        for _ in 0..REPETITIONS {
            e.barrier()?;
            let start = Instant::now();
            recv = get(e)?;
            e.barrier()?;
            times.push(start.elapsed());
        }
        Ok((times, recv))
    })?;
    let slowest = |i: usize| outcome.results.iter().map(|(times, _)| times[i]).max();
    let times = (0..REPETITIONS).filter_map(slowest).collect();
    let (_, first) = &outcome.results[0];
    let alike = outcome.results.iter().all(|(_, recv)| recv == first);
    let recv = if alike { first.clone() } else { Vec::new() };
    Ok((median(times), recv))
}

/// The paper's block sizes, `bytes` in total.
fn kinds(p: usize, bytes: usize) -> [(&'static str, Vec<usize>); 3] {
    let with_rest = |size: &dyn Fn(usize) -> usize| {
        let mut sizes: Vec<usize> = (0..p - 1).map(size).collect();
        sizes.push(bytes - sizes.iter().sum::<usize>());
        sizes
    };
    [
        ("equal", with_rest(&|_| bytes / p)),
        ("irregular", with_rest(&|r| r % 3 * (bytes / p))),
        ("one", with_rest(&|_| 0)),
    ]
}

/// Runs with real data. Returns the time, the model time, and whether every rank's output is
/// correct.
fn run(
    team: &mut Team,
    schedule: &Schedule,
    cost: &CostModel,
) -> oneport::Result<(Duration, f64, bool)> {
    let run = Run::<u8>::new(schedule).op(Op::MAX).verified();
    // The first repetition touches the memory, so it is not timed.
    let outcome = run.cost(cost.clone()).warmup(1).on(team)?;
    let right = outcome.is_verified();
    Ok((outcome.wall.total(), outcome.model_time, right))
}

/// Returns the same schedule with packing: every message of several spans is packed into scratch
/// behind the buffer before it is sent, and unpacked after it has been received.
fn packed(schedule: &Schedule) -> oneport::Result<Schedule> {
    let p = schedule.ranks();
    let mut b = Schedule::builder(p, schedule.ports(), schedule.collective().clone());
    for (r, (layout, program)) in schedule
        .layout()
        .iter()
        .zip(schedule.programs())
        .enumerate()
    {
        let longest = program.iter().map(Step::len).max().unwrap_or(0);
        let len = layout.len + 2 * longest;
        b.layout(r, len, layout.input.clone(), layout.output.clone());
        for step in program {
            let outgoing = Span::new(layout.len, step.len());
            let incoming = Span::new(layout.len + longest, step.len());
            match step {
                Step::Send { to, spans, .. } if spans.len() > 1 => {
                    b.step(r, Step::copy(spans.clone(), outgoing));
                    b.step(r, Step::send(*to, outgoing));
                }
                Step::Recv { from, spans, .. } if spans.len() > 1 => {
                    b.step(r, Step::recv(*from, incoming));
                    b.step(r, Step::copy(incoming, spans.clone()));
                }
                _ => {
                    b.step(r, step.clone());
                }
            }
        }
    }
    b.build()
}

/// Average number of spans over all messages.
fn spans_of_a_message(schedule: &Schedule) -> f64 {
    let sends = schedule.programs().iter().flatten().filter(|s| s.is_send());
    let (mut messages, mut spans) = (0, 0);
    for send in sends.filter(|s| total_len(s.reads()) > 0) {
        messages += 1;
        spans += send.reads().len();
    }
    spans as f64 / f64::from(messages.max(1))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
