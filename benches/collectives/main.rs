//! Benchmark of collectives: every registered algorithm on live teams of pinned threads, native
//! clock, compared with the model.
//!
//! - `cargo bench --bench collectives` measures every algorithm with 2, 4 and as many ranks as
//!   there are cores, 1 KiB to 4 MiB of `f32`, combined by sums. It also sweeps segment sizes and,
//!   for two ranks, measures the error of the model. A newly registered algorithm needs no change
//!   here. The total measuring time is bounded: with more algorithms, each point gets less time. A
//!   bare `cargo bench` takes less than ten minutes for all benches on 2 cores. Criterion's line
//!   for each point goes to `target/oneport-bench/collectives.txt`.
//! - `cargo bench --bench collectives -- --quick` takes fewer sizes and ranks, and less time, and
//!   has all lines on the terminal. `cargo bench -- --quick` is a quick pass of all benches.
//! - `cargo bench --bench collectives -- 'reduce p=4/chain'` measures only the points that match a
//!   regular expression, as with any criterion bench.
//!
//! Model times come from calibrations made in the same run, one for each state of the machine: see
//! `states.rs`. Segmented algorithms get the segment
//! size that is best in that model. Results are verified outside the timed part: after each batch,
//! the output of every rank is compared with a sequential computation. `bytes` is the size of the
//! whole vector; if every rank has a block of its own, a block is its p-th part.
//!
//! At the end, `target/oneport-bench/summary.html` shows how long the measured times of every
//! collective are in the model's, as a table and pictures, and both times over the size; disturbed
//! points, and those with more ranks than cores (wall-clock then includes waiting for a core), are
//! flagged. `summary.csv` and
//! `summary.md` beside it list all points: medians over all repetitions, model times, ratios,
//! machine, commit and date.
#![allow(clippy::print_stdout, missing_docs)]

mod states;
mod summary;
#[path = "../terminal/mod.rs"]
mod terminal;

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput};
use hdrhistogram::Histogram;
use oneport::plan::choose;
use oneport::plan::registry::{self, Algorithm};
use oneport::run::{Operator, Run, Team, inputs, oracle};
use oneport::simulate::Prepared;
use oneport::{CostModel, Kind, Ports, Request, Schedule};
use states::{States, message_ns};
use summary::{Point, Summary};

const ELEMENT: usize = size_of::<f32>();
/// Vector size in bytes and number of ranks for the sweep of segment sizes.
const SWEPT: usize = 1 << 20;
const SWEPT_RANKS: usize = 4;
const SMALLEST_SEGMENT: usize = 4 << 10;

fn main() {
    let bench = Bench::new();
    let checked = if bench.measuring {
        bench.check_model()
    } else {
        Vec::new()
    };
    let points = terminal::detailed("collectives", || {
        let mut criterion = Criterion::default()
            .configure_from_args()
            .without_plots()
            .sample_size(10)
            .nresamples(2000)
            .warm_up_time(bench.per_point / 4)
            .measurement_time(bench.per_point);
        let mut points = bench.grid(&mut criterion);
        points.extend(bench.segment_sizes(&mut criterion));
        points
    });
    if !bench.measuring {
        return;
    }
    let summary = Summary {
        profile: bench.states().with(0, |state| state.profile.clone()),
        states: bench.states().describe(),
        points: &points,
        checked: &checked,
    };
    summary.print();
    summary.write();
}

/// Settings and state shared by all measurements.
struct Bench {
    /// Whether this is `cargo bench`, not a test run or a listing.
    measuring: bool,
    quick: bool,
    ranks: Vec<usize>,
    sizes: Vec<usize>,
    per_point: Duration,
    sum: Operator<f32>,
    /// Calibrated when first needed, because a filter may leave nothing to measure.
    states: OnceCell<States>,
}

impl Bench {
    fn new() -> Bench {
        let given = |option: &str| std::env::args().any(|a| a == option);
        let quick = given("--quick");
        let cores = core_affinity::get_core_ids().map_or(1, |ids| ids.len());
        let mut ranks = if quick { vec![2, 8] } else { vec![2, 4] };
        ranks.push(cores.max(2));
        ranks.sort_unstable();
        ranks.dedup();
        let sizes = if quick {
            vec![1 << 10, 1 << 20]
        } else {
            vec![1 << 10, 16 << 10, 256 << 10, 4 << 20]
        };
        let points = ranks.len() * sizes.len() * registry::all().len() + 2 * 2 * 9;
        // Warm-up and verification take about as long again.
        let (total, min, max) = if quick {
            (25_000, 15, 200)
        } else {
            (60_000, 20, 2000)
        };
        let per_point = (total / points as u64).clamp(min, max);
        Bench {
            measuring: given("--bench") && !given("--list") && !given("--test"),
            quick,
            ranks,
            sizes,
            per_point: Duration::from_millis(per_point),
            sum: Operator::named("sum").expect("built in"),
            states: OnceCell::new(),
        }
    }

    /// Measures every algorithm for every number of ranks and size.
    fn grid(&self, criterion: &mut Criterion) -> Vec<Point> {
        let mut points = Vec::new();
        for &p in &self.ranks {
            let mut team = Team::new(p).expect("threads");
            for kind in Kind::ALL {
                if registry::of(kind).next().is_none() {
                    continue;
                }
                let mut group = criterion.benchmark_group(format!("{} p={p}", kind.name()));
                // That of a barrier says nothing.
                let sizes = if kind.has_data() { self.sizes.len() } else { 1 };
                for &bytes in &self.sizes[..sizes] {
                    group.throughput(Throughput::Bytes(bytes as u64));
                    for algorithm in registry::of(kind) {
                        let request = request(algorithm, p, bytes);
                        if let Err(reason) = algorithm.plan(&request) {
                            println!("{} {}: {reason}", kind.name(), algorithm.name());
                            continue;
                        }
                        let id = BenchmarkId::new(algorithm.name(), bytes);
                        let mut measurement = None;
                        group.bench_function(id, |b| {
                            let measurement = measurement.get_or_insert_with(|| {
                                self.measurement(algorithm, request.clone())
                            });
                            b.iter_custom(|n| measurement.run(&mut team, n));
                        });
                        points.extend(measurement.map(|s| s.point("grid", bytes, &team)));
                    }
                }
                group.finish();
            }
        }
        points
    }

    /// Measures two pipelines with all segment sizes.
    fn segment_sizes(&self, criterion: &mut Criterion) -> Vec<Point> {
        let mut points = Vec::new();
        let mut team = Team::new(SWEPT_RANKS).expect("threads");
        for kind in [Kind::Reduce, Kind::Broadcast] {
            if self.quick && kind != Kind::Reduce {
                continue;
            }
            for name in ["chain", "bi-greedy"] {
                let algorithm = registry::find(kind, name).expect("registered");
                let name = format!("segments of {} {name} p={SWEPT_RANKS}", kind.name());
                let mut group = criterion.benchmark_group(name);
                group.throughput(Throughput::Bytes(SWEPT as u64));
                let sizes = std::iter::successors(Some(SMALLEST_SEGMENT), |s| Some(2 * s));
                for segment in sizes.take_while(|&s| s <= SWEPT) {
                    let mut measurement = None;
                    group.bench_function(BenchmarkId::from_parameter(segment), |b| {
                        let measurement = measurement.get_or_insert_with(|| {
                            let request = request(&algorithm, SWEPT_RANKS, SWEPT)
                                .segment_elems(segment / ELEMENT);
                            self.measurement_as_requested(&algorithm, request)
                        });
                        b.iter_custom(|n| measurement.run(&mut team, n));
                    });
                    points.extend(measurement.map(|s| s.point("segments", SWEPT, &team)));
                }
                group.finish();
            }
        }
        points
    }

    /// Measures chain and binomial between two ranks, 1 KiB to 4 MiB, in turns, so that a
    /// disturbance affects all of them.
    fn check_model(&self) -> Vec<Point> {
        const BATCH: Duration = Duration::from_millis(2);
        let (batches, step) = if self.quick { (5, 2) } else { (15, 1) };
        let mut team = Team::new(2).expect("two threads");
        let mut measurements = Vec::new();
        for kind in [Kind::Broadcast, Kind::Reduce] {
            for name in ["chain", "binomial"] {
                let algorithm = registry::find(kind, name).expect("registered");
                for log in (10..=22).step_by(step) {
                    let bytes = 1 << log;
                    let mut measurement =
                        self.measurement(&algorithm, request(&algorithm, 2, bytes));
                    let one = measurement.run(&mut team, 3).as_nanos() / 3;
                    let fit = BATCH.as_nanos() / one.max(1);
                    let n = u64::try_from(fit).unwrap_or(1).clamp(3, 500);
                    measurements.push((measurement, bytes, n));
                }
            }
        }
        for _ in 0..batches {
            for (measurement, _, n) in &mut measurements {
                measurement.run(&mut team, *n);
            }
        }
        let points = measurements.into_iter();
        points
            .map(|(measurement, bytes, _)| measurement.point("model check", bytes, &team))
            .collect()
    }

    fn states(&self) -> &States {
        self.states.get_or_init(|| States::new(self.quick))
    }

    /// Returns the cost model for planning: that of the first state.
    fn cost(&self) -> CostModel {
        let calibrated = if self.measuring {
            self.states().with(0, |state| state.cost.clone())
        } else {
            None
        };
        calibrated.unwrap_or_else(|| CostModel::new(1000.0, 0.1))
    }

    /// Prepares a measurement with the segments that are best in the model.
    fn measurement(&self, algorithm: &Algorithm, mut request: Request) -> Measurement<'_> {
        request = request.cost(self.cost());
        let best = choose::with_best_segments(algorithm, &request).expect("planned before");
        self.measurement_as_requested(algorithm, best.variant.request)
    }

    fn measurement_as_requested(
        &self,
        algorithm: &Algorithm,
        mut request: Request,
    ) -> Measurement<'_> {
        request = request.cost(self.cost());
        let schedule = algorithm.plan(&request).expect("planned before");
        let data = inputs(schedule.collective(), schedule.layout(), &self.sum);
        let expected = oracle(schedule.collective(), schedule.layout(), &self.sum, &data)
            .expect("a right layout");
        Measurement {
            bench: self,
            algorithm: algorithm.clone(),
            request,
            schedule,
            data,
            expected,
            walls: BTreeMap::new(),
        }
    }
}

/// One algorithm for one request, and the times of all its repetitions.
struct Measurement<'a> {
    bench: &'a Bench,
    algorithm: Algorithm,
    request: Request,
    schedule: Schedule,
    data: Vec<Vec<f32>>,
    expected: Vec<Vec<f32>>,
    /// By the state of the machine; none where it changed meanwhile.
    walls: BTreeMap<Option<usize>, Histogram<u64>>,
}

impl Measurement<'_> {
    /// Runs `n` repetitions and returns their total time.
    fn run(&mut self, team: &mut Team, n: u64) -> Duration {
        let n = usize::try_from(n).expect("repetitions that can be counted");
        // With more ranks than cores, times are not compared with the model.
        let compared = self.bench.measuring && !team.oversubscribed();
        let before_ns = compared.then(|| message_ns(team));
        let run = Run::new(&self.schedule).op(&self.bench.sum);
        let run = run.inputs(&self.data).repetitions(n).warmup(1);
        let outcome = run.on(team).expect("a right schedule");
        assert!(
            outcome.outputs == self.expected,
            "{} gave a wrong result",
            self.algorithm.name()
        );
        let state = match before_ns {
            Some(before_ns) => self.bench.states().after(team, before_ns),
            None => Some(0),
        };
        let walls = self.walls.entry(state);
        let walls = walls.or_insert_with(|| Histogram::new(3).expect("three digits"));
        let added = walls.add(oneport::internal::histogram(&outcome.wall));
        added.expect("histograms of one kind");
        outcome.wall.total()
    }

    /// Model time by the calibration of this state, and by its single line for all sizes.
    fn model(&self, state: usize) -> Option<(f64, f64)> {
        if !self.bench.measuring {
            return None;
        }
        let prepared = Prepared::new(&self.schedule, false).expect("completes");
        let time = |cost: &CostModel| {
            let simulation = prepared.simulate(cost).expect("valid costs");
            simulation.makespan()
        };
        let states = self.bench.states();
        states.with(state, |state| {
            (time(&state.cost), time(&state.profile.line()))
        })
    }

    /// The times in the state that most repetitions were in.
    fn point(self, group: &'static str, bytes: usize, team: &Team) -> Point {
        let walls = self.walls.iter();
        let most = walls.max_by_key(|(state, walls)| (state.is_some(), walls.len()));
        let (&state, walls) = most.expect("measured");
        let model = self.model(state.unwrap_or(0));
        let at = |quantile| walls.value_at_quantile(quantile);
        let segments = self.request.get_segments().count();
        Point {
            group,
            collective: self.algorithm.collective.name(),
            algorithm: self.algorithm.to_string(),
            ports: self.request.get_ports().name(),
            ranks: team.ranks(),
            bytes,
            segments,
            segment: self.request.get_segments().sizes()[0] * ELEMENT,
            repetitions: walls.len(),
            min_ns: walls.min(),
            median_ns: at(0.5),
            p99_ns: at(0.99),
            model_ns: model.map(|m| m.0),
            line_ns: model.map(|m| m.1),
            moved: state.is_none(),
            oversubscribed: team.oversubscribed(),
            pinned: team.pinned(),
        }
    }
}

/// A request for a vector of `bytes` bytes in one segment, or for blocks of that total size.
fn request(algorithm: &Algorithm, ranks: usize, bytes: usize) -> Request {
    let elements = bytes / ELEMENT;
    let elements = match algorithm.collective {
        Kind::Gather | Kind::Scatter | Kind::Allgather | Kind::Alltoall => elements.div_ceil(ranks),
        _ => elements,
    };
    let mut request =
        Request::new(algorithm.collective, ranks, elements).element_bytes(ELEMENT as u64);
    if !algorithm.ports.allow(Ports::BI) {
        request = request.ports(Ports::UNI);
    }
    request
}
