//! Measurement of the same points with this crate.

use std::collections::BTreeMap;
use std::time::Instant;

use oneport::plan::choose;
use oneport::plan::refusal::Refusal;
use oneport::plan::registry;
use oneport::plan::space::{Space, fastest_variant};
use oneport::run::{
    Endpoint, Operator, Run, ScopeOptions, Team, TeamOptions, Workers, inputs, oracle,
};
use oneport::{CostModel, Kind, Request};
use oneport_measure::estimate::CoreModel;
use oneport_measure::{Calibration, Profile, calibrate};

use crate::{Point, Timing};

/// oneport's result for a point.
pub(crate) struct Measured {
    /// The automatically chosen algorithm, and its segments.
    pub(crate) algorithm: String,
    pub(crate) timing: Timing,
    /// Median of every registered algorithm, if requested.
    pub(crate) every: BTreeMap<String, u64>,
    /// Medians of the chosen algorithm and of the apparently best one, measured again interleaved.
    pub(crate) again: Option<(u64, u64)>,
    /// The result of a multiplexed run, if requested.
    pub(crate) multiplexed: Option<(String, Timing)>,
}

pub(crate) struct Oneport {
    budget_us: u64,
    every: bool,
    multiplexed: bool,
    cost: CostModel,
    profile: Option<Profile>,
    cores: usize,
    sum: Operator<f32>,
}

impl Oneport {
    pub(crate) fn new(budget_us: u64, every: bool, multiplexed: bool) -> Oneport {
        let cores = core_affinity::get_core_ids().map_or(1, |ids| ids.len());
        let costs = calibrate(&Calibration::default(), |_, _| {})
            .and_then(|profile: Profile| Ok((profile.cost()?, Some(profile))));
        let (cost, profile) = costs.unwrap_or_else(|reason| {
            println!("no model of this machine ({reason}): algorithms are chosen for alpha 1 us, beta 0.1 ns/byte");
            (CostModel::new(1000.0, 0.1), None)
        });
        if let Some(profile) = &profile {
            let (alpha, beta) = (profile.alpha, profile.beta);
            let turn = profile.shared_alpha.unwrap_or(f64::NAN);
            println!(
                "model: alpha {alpha:.0} ns, beta {beta:.4} ns/byte; a turn takes {turn:.0} ns"
            );
        }
        Oneport {
            budget_us,
            every,
            multiplexed,
            cost,
            profile,
            cores,
            sum: Operator::named("sum").expect("built in"),
        }
    }

    /// One round over all points; points without an algorithm are left out.
    pub(crate) fn run(&self, p: usize, points: &[Point], all: &mut BTreeMap<Point, Measured>) {
        let mut team = Team::new(p).expect("threads");
        let mut workers = self.multiplexed.then(|| {
            let workers = TeamOptions {
                workers: Workers::Cores,
                ..TeamOptions::default()
            };
            Team::with(p, &workers).expect("threads")
        });
        for &point in points {
            let measured = if point.op == "barrier" {
                Measured {
                    algorithm: "barrier".into(),
                    timing: self.barrier(&mut team),
                    every: BTreeMap::new(),
                    again: None,
                    multiplexed: None,
                }
            } else {
                let Some(mut measured) = self.collective(&mut team, point) else {
                    continue;
                };
                measured.multiplexed = workers.as_mut().and_then(|w| self.multiplexed(w, point));
                measured
            };
            match all.get_mut(&point) {
                None => {
                    all.insert(point, measured);
                }
                Some(old) => {
                    old.timing = old.timing.better(measured.timing);
                    if let (Some((_, old)), Some((_, new))) =
                        (&mut old.multiplexed, measured.multiplexed)
                    {
                        *old = old.better(new);
                    }
                    for (name, median) in measured.every {
                        let old = old.every.entry(name).or_insert(median);
                        *old = median.min(*old);
                    }
                }
            }
        }
    }

    /// Measures the chosen algorithm and an apparently better one again, interleaved. Among several
    /// equally fast algorithms, another one has the smallest measured time by chance. Whether it is
    /// better must therefore be decided by new measurements.
    pub(crate) fn confirm(&self, p: usize, all: &mut BTreeMap<Point, Measured>) {
        const TURNS: usize = 5;
        let mut team = Team::new(p).expect("threads");
        for (&point, measured) in all {
            let fastest = measured.every.iter().min_by_key(|(_, median)| **median);
            let Some((best, &median)) = fastest else {
                continue;
            };
            if median >= measured.timing.median {
                continue;
            }
            let request = self.request(p, point);
            let core_model = self.core_model(&team);
            let chosen = self.choose(&team, &request);
            let best = registry::find(request.get_collective(), best)
                .and_then(|algorithm| Ok(of(&algorithm, &request, core_model.as_ref())?));
            let (Some(chosen), Ok(best)) = (chosen, best) else {
                continue;
            };
            let medians =
                (0..TURNS).map(|_| [&chosen, &best].map(|c| self.time(&mut team, c).median));
            let mut medians: Vec<[u64; 2]> = medians.collect();
            let [chosen, best] = [0, 1].map(|side| {
                medians.sort_unstable_by_key(|turn| turn[side]);
                medians[TURNS / 2][side]
            });
            measured.again = Some((chosen, best));
        }
    }

    /// Returns the automatic choice.
    fn choose(&self, team: &Team, request: &Request) -> Option<choose::Choice> {
        match &self.profile {
            Some(profile) => profile.choose(request, team),
            None => choose::choose(request),
        }
        .ok()
    }

    fn collective(&self, team: &mut Team, point: Point) -> Option<Measured> {
        let request = self.request(team.ranks(), point);
        let choice = self.choose(team, &request)?;
        let algorithm = described(&choice);
        let timing = self.time(team, &choice);
        let mut every = BTreeMap::new();
        if self.every {
            let core_model = self.core_model(team);
            let plan = |choice: &choose::Choice| choice.plan().ok();
            let chosen = plan(&choice);
            for algorithm in registry::of(request.get_collective()) {
                if let Ok(other) = of(algorithm, &request, core_model.as_ref()) {
                    // Several algorithms may plan the same schedule.
                    let median = if plan(&other) == chosen {
                        timing.median
                    } else {
                        self.time(team, &other).median
                    };
                    every.insert(algorithm.to_string(), median);
                }
            }
        }
        Some(Measured {
            algorithm,
            timing,
            every,
            again: None,
            multiplexed: None,
        })
    }

    fn multiplexed(&self, workers: &mut Team, point: Point) -> Option<(String, Timing)> {
        let request = self.request(workers.ranks(), point);
        let choice = self.choose(workers, &request)?;
        Some((described(&choice), self.time(workers, &choice)))
    }

    fn core_model(&self, team: &Team) -> Option<CoreModel> {
        let profile = self.profile.as_ref()?;
        profile.core_model(team.workers(), team.ranks(), self.cores)
    }

    /// Returns the request that corresponds to the driver's operation.
    fn request(&self, p: usize, point: Point) -> Request {
        let all = point.bytes / size_of::<f32>();
        let share = all / p;
        let (kind, elements) = match point.op {
            "broadcast" => (Kind::Broadcast, all),
            "reduce" => (Kind::Reduce, all),
            "allreduce" => (Kind::Allreduce, all),
            "allgather" => (Kind::Allgather, share),
            "gatherv" => (Kind::Gather, share),
            "scatterv" => (Kind::Scatter, share),
            "reduce_scatter" => (Kind::ReduceScatter, share * p),
            _ => (Kind::Alltoall, share),
        };
        let mut request = Request::new(kind, p, elements);
        if point.op.ends_with("erv") {
            let mut left = all;
            let mut sizes: Vec<usize> = (0..p)
                .map(|r| {
                    let size = (r % 3 * share).min(left);
                    let size = if r + 1 == p { left } else { size };
                    left -= size;
                    size
                })
                .collect();
            sizes[p - 1] += left;
            let largest = sizes.iter().copied().max().unwrap_or(0);
            request = Request::new(kind, p, largest).blocks(sizes);
        }
        request
            .element_bytes(size_of::<f32>() as u64)
            .cost(self.cost.clone())
    }

    fn time(&self, team: &mut Team, choice: &choose::Choice) -> Timing {
        let schedule = choice.plan().expect("accepted");
        let data = inputs(schedule.collective(), schedule.layout(), &self.sum);
        let expected = oracle(schedule.collective(), schedule.layout(), &self.sum, &data)
            .expect("a right layout");
        let mut run = |repetitions, warmup| {
            Run::new(&schedule)
                .op(&self.sum)
                .inputs(&data)
                .cost(self.cost.clone())
                .repetitions(repetitions)
                .warmup(warmup)
                .on(team)
                .expect("a right schedule")
        };
        let one = run(1, 2).wall.max_ns();
        let repetitions = (self.budget_us * 1000 / (one + 1000)).clamp(3, 1000);
        let outcome = run(usize::try_from(repetitions).expect("at most 1000"), 0);
        Timing {
            min: outcome.wall.min_ns(),
            median: outcome.wall.median_ns(),
            right: outcome.outputs == expected,
        }
    }

    fn barrier(&self, team: &mut Team) -> Timing {
        let oversubscribed = team.oversubscribed();
        let n = (self.budget_us / 20).clamp(100, 1000);
        let mut buffers = vec![vec![0u8; 1]; team.ranks()];
        let options = ScopeOptions::new(Operator::<u8>::named("sum").expect("built in"));
        let outcome = team
            .scope(&mut buffers, &options, |e: &mut Endpoint<u8>| {
                let mut times = Vec::new();
                for _ in 0..n {
                    e.barrier()?;
                    let start = Instant::now();
                    e.barrier()?;
                    times.push((start, Instant::now()));
                }
                Ok(times)
            })
            .expect("a correct program");
        let mut spans: Vec<u64> = (0..n as usize)
            .map(|i| {
                let ranks = || outcome.results.iter().map(|times| times[i]);
                let first = ranks().map(|t| t.0).min().expect("a rank");
                let last = ranks().map(|t| t.1).max().expect("a rank");
                let slowest = ranks().map(|t| t.1 - t.0).max().expect("a rank");
                let span = if oversubscribed {
                    last - first
                } else {
                    slowest
                };
                u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
            })
            .collect();
        spans.sort_unstable();
        Timing {
            min: spans[0],
            median: spans[spans.len() / 2],
            right: true,
        }
    }
}

/// Returns an algorithm with its best segments.
fn of(
    algorithm: &registry::Algorithm,
    request: &Request,
    core_model: Option<&CoreModel>,
) -> Result<choose::Choice, Refusal> {
    match core_model {
        Some(core_model) => {
            fastest_variant(&Space::among([algorithm], request), algorithm, core_model)
        }
        None => choose::with_best_segments(algorithm, request),
    }
}

/// Describes an algorithm and its segments.
fn described(choice: &choose::Choice) -> String {
    match choice.request.get_segments().count() {
        1 => choice.algorithm.name().to_string(),
        n => format!("{}, {n} segments", choice.algorithm.name()),
    }
}

impl Timing {
    /// The minima of both.
    pub(crate) fn better(self, other: Timing) -> Timing {
        Timing {
            min: self.min.min(other.min),
            median: self.median.min(other.median),
            right: self.right && other.right,
        }
    }
}
