//! Repeated timing of messages, combinations and copies of one size, for the calibration.

use std::ops::ControlFlow;
use std::time::Duration;

use super::fit::{median, quantile};
use super::interleave::{Batches, interleaved};
use oneport::error::{Error, Result};
use oneport::machine::Ports;
use oneport::run::{Op, Place, Run, Team, TeamOptions};
use oneport::schedule::collective::Collective;
use oneport::schedule::{Layout, Order, Schedule, Span, Step, total_len};

/// Smallest copy that is measured: shorter ones take less time than the clock resolves.
const MIN_COPY_BYTES: u64 = 1 << 10;

/// Longest messages of bursts: libraries send longer ones in other ways.
const MAX_BURST_BYTES: u64 = 64 << 10;

/// How much time to spend on measuring.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProbeEffort {
    /// Number of batches of one probe.
    pub(super) batches: usize,
    /// Duration of one of them.
    batch: Duration,
    pub(super) quick: bool,
}

/// Messages longer than this many bytes get fewer batches.
const MAX_SHORT_BYTES: u64 = 16 << 20;

impl ProbeEffort {
    pub(super) const QUICK: ProbeEffort = ProbeEffort {
        batches: 3,
        batch: Duration::from_micros(600),
        quick: true,
    };

    const THOROUGH: ProbeEffort = ProbeEffort {
        batches: 9,
        batch: Duration::from_millis(2),
        quick: false,
    };

    pub(super) fn new(quick: bool) -> ProbeEffort {
        if quick {
            ProbeEffort::QUICK
        } else {
            ProbeEffort::THOROUGH
        }
    }

    /// Sizes from 0 B to 32 MiB, four for each factor of four. A quick measurement uses half as
    /// many, still fewer of the long ones, and ends at 16 MiB.
    pub(super) fn sizes(self) -> Vec<u64> {
        let powers: Vec<u64> = if self.quick {
            (4..=20).chain([22, 24]).map(|k| 1 << k).collect()
        } else {
            let two_each = (4..=24).flat_map(|k| [1 << k, 3 << (k - 1)]);
            two_each.chain([1 << 25]).collect()
        };
        [0, 4, 8].into_iter().chain(powers).collect()
    }
}

/// The operation that is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// A ping-pong: a message forth and a message back.
    Message,
    /// A ping-pong whose receivers combine.
    Combine,
    /// Simultaneous messages in both directions.
    Exchange,
    /// An exchange, after which each rank combines the received data into the data it sent.
    /// Algorithms that cannot combine while receiving do this.
    CombineOwn,
    /// A local copy on both ranks.
    Copy,
    /// [`BURST`] messages forth and one back: how long messages keep their sender busy.
    Burst,
}

/// Messages of one burst.
pub(super) const BURST: usize = 16;

impl Work {
    pub(super) const ALL: [Work; 5] = [
        Work::Message,
        Work::Combine,
        Work::Exchange,
        Work::CombineOwn,
        Work::Copy,
    ];

    /// Whether this operation is measured for this size.
    pub(super) fn measures(self, bytes: u64) -> bool {
        match self {
            Work::Message => true,
            Work::Burst => bytes <= MAX_BURST_BYTES,
            Work::Combine | Work::Exchange | Work::CombineOwn => bytes > 0,
            Work::Copy => bytes == 0 || bytes >= MIN_COPY_BYTES,
        }
    }

    /// The schedule of this operation with `bytes` bytes on two of the ranks; the others have
    /// nothing to do. Each buffer holds the data to send (or copy), then the destination.
    pub(super) fn schedule(self, bytes: u64, pair: Pair) -> Result<Schedule> {
        let elements = usize::try_from(bytes / size_of::<f32>() as u64)
            .map_err(|_| Error::usage(format!("{bytes} bytes do not fit into memory")))?;
        let (here, there) = (Span::new(0, elements), Span::new(elements, elements));
        let receive = |from| match self {
            Work::Combine => Step::recv_combine(from, there, Order::MineFirst),
            _ => Step::recv(from, there),
        };
        let [first, second] = pair.ends;
        let of_pair = match self {
            Work::Copy if elements == 0 => [Vec::new(), Vec::new()],
            Work::Copy => {
                let copy = Step::Copy {
                    src: here.into(),
                    dst: there.into(),
                };
                [vec![copy.clone()], vec![copy]]
            }
            Work::Exchange | Work::CombineOwn => {
                let own = (self == Work::CombineOwn)
                    .then(|| Step::combine(there, here, Order::MineFirst));
                [second, first].map(|peer| {
                    let exchange = [Step::send(peer, here), receive(peer)];
                    exchange.into_iter().chain(own.clone()).collect()
                })
            }
            Work::Message | Work::Combine | Work::Burst => {
                let forth = if self == Work::Burst { BURST } else { 1 };
                let (sends, receives) = (Step::send(second, here), receive(first));
                let mut ends = [vec![sends; forth], vec![receives; forth]];
                ends[0].push(receive(second));
                ends[1].push(Step::send(first, here));
                ends
            }
        };
        // The destination of a combining receive is also input, so that every repetition rewrites
        // it.
        let input = match self {
            Work::Combine => Span::new(0, 2 * elements),
            _ => here,
        };
        let mut layouts = vec![Layout::default(); pair.ranks];
        let mut programs = vec![Vec::new(); pair.ranks];
        for (end, program) in pair.ends.into_iter().zip(of_pair) {
            programs[end] = program;
            layouts[end] = Layout {
                len: 2 * elements,
                input: input.into(),
                output: input.into(),
            };
        }
        Schedule::new(
            match self {
                Work::Exchange | Work::CombineOwn => Ports::BI,
                // One port: the reply cannot start before the first message has arrived.
                _ => Ports::UNI,
            },
            Collective::Allreduce,
            layouts,
            programs,
        )
    }
}

/// The two ranks that are measured, of `ranks`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair {
    pub(super) ranks: usize,
    pub(super) ends: [usize; 2],
}

impl Pair {
    /// Two ranks alone.
    pub(super) const ALONE: Pair = Pair {
        ranks: 2,
        ends: [0, 1],
    };
}

/// One operation at one size.
#[derive(Debug)]
pub(super) struct Probe {
    pub(super) work: Work,
    pub(super) bytes: u64,
    schedule: Schedule,
    /// Median of each batch, in nanoseconds; none before it is measured.
    pub(super) medians: Vec<f64>,
}

impl Probe {
    pub(super) fn new(work: Work, bytes: u64, pair: Pair) -> Result<Probe> {
        Ok(Probe {
            work,
            bytes,
            schedule: work.schedule(bytes, pair)?,
            medians: Vec::new(),
        })
    }

    /// Time of one direction (of all messages of a burst) in nanoseconds: the lower quartile of the
    /// batches.
    pub(super) fn time(&self) -> f64 {
        let time = quantile(&mut self.medians.clone(), 0.25);
        match self.work {
            Work::Message | Work::Combine => time / 2.0,
            Work::Exchange | Work::CombineOwn | Work::Copy | Work::Burst => time,
        }
    }

    /// Relative difference between the typical and the fastest batch.
    pub(super) fn noise(&self) -> f64 {
        let mut medians = self.medians.clone();
        let typical = median(&mut medians);
        match medians.first() {
            Some(&fastest) if fastest > 0.0 => typical / fastest - 1.0,
            _ => 0.0,
        }
    }
}

/// A team of two pinned ranks, on two cores or on one that both share.
pub(super) fn team_of_two(cores: &[usize]) -> Result<Team> {
    let options = TeamOptions {
        cores: Some(cores.to_vec()),
        ..TeamOptions::default()
    };
    Team::with(2, &options)
}

/// Measures all probes interleaved: one batch of each, then the next batch of each.
pub(super) fn measure(
    place: &mut impl Place,
    probes: &mut [Probe],
    effort: ProbeEffort,
    keep_inputs: bool,
    progress: impl FnMut(usize, usize),
) -> Result<()> {
    let batches = |probe: &Probe| {
        if probe.bytes <= MAX_SHORT_BYTES {
            Batches::Fitting(effort.batches, effort.batch)
        } else {
            Batches::Fitting(effort.batches.div_ceil(3), effort.batch)
        }
    };
    let one_batch = |i: usize, repetitions: usize| {
        let schedule: &Schedule = &probes[i].schedule;
        let elements = schedule.layout().iter().map(|l| total_len(&l.input));
        let data: Vec<_> = elements.map(|n| vec![1.0f32; n]).collect();
        let run = Run::new(schedule).op(Op::SUM).inputs(&data);
        let run = run.keep_inputs(keep_inputs);
        let outcome = run.repetitions(repetitions).warmup(1).on(place)?;
        Ok(ControlFlow::Continue(outcome.wall.median_ns()))
    };
    let batches: Vec<_> = probes.iter().map(batches).collect();
    let medians = interleaved(&batches, one_batch, progress)?;
    for (probe, medians) in probes.iter_mut().zip(medians) {
        probe.medians = medians;
    }
    Ok(())
}
