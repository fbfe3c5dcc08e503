//! Tests of sweeps, measured by a simulated clock with artificial noise.

use std::ops::ControlFlow;
use std::time::Duration;

use oneport::Result;
use oneport::machine::{CostModel, Ports};
use oneport::plan::choose::with_best_segments;
use oneport::plan::registry::{self, Algorithm};
use oneport::plan::{Request, Segments};
use oneport::random::Generator;
use oneport::schedule::collective::Kind;
use oneport_measure::tune::{
    Change, LibraryRow, Live, Measure, Summary, Sweep, Trial, TuningResult, VerifiedRow, csv, tune,
};

/// Returns model times with noise, under a cost model (`truth`) that differs from the one of the
/// sweep, and advances a virtual clock by them.
struct Fake {
    truth: CostModel,
    noise: f64,
    random: Generator,
    now: Duration,
    calls: Vec<(u64, String, usize, usize)>,
}

impl Fake {
    fn new(truth: CostModel, noise: f64) -> Fake {
        Fake {
            truth,
            noise,
            random: Generator::new(1),
            now: Duration::from_secs(7),
            calls: Vec::new(),
        }
    }
}

impl Measure for Fake {
    fn measure(
        &mut self,
        algorithm: &Algorithm,
        request: &Request,
        repetitions: usize,
    ) -> Result<Vec<u64>> {
        let request = request.clone().cost(self.truth.clone());
        let time = algorithm.time(&request)?;
        let name = algorithm.to_string();
        self.calls.push((
            request.elements() as u64,
            name,
            request.get_segments().sizes()[0],
            repetitions,
        ));
        let times: Vec<u64> = (0..repetitions)
            .map(|_| (time * (1.0 + self.noise * self.random.unit().powi(2))) as u64)
            .collect();
        self.now += Duration::from_nanos(times.iter().sum());
        Ok(times)
    }

    fn now(&self) -> Duration {
        self.now
    }
}

const ALPHA: f64 = 2e6;
const BETA: f64 = 20.0;

fn sweep(names: &[&str], bytes: &[u64], seconds: u64) -> Sweep {
    let request = Request::reduce(8, 0)
        .cost(CostModel::new(ALPHA, BETA))
        .ports(Ports::BI);
    Sweep {
        request,
        algorithms: names
            .iter()
            .map(|n| registry::find(Kind::Reduce, n).unwrap())
            .collect(),
        bytes: bytes.to_vec(),
        budget: Duration::from_secs(seconds),
        tolerance: 0.02,
        powers: false,
    }
}

fn go(sweep: &Sweep, known: &[Trial], fake: &mut Fake) -> TuningResult {
    tune(sweep, known, fake, &mut |_| ControlFlow::Continue(())).unwrap()
}

/// The smallest time of any segment size under `cost`.
fn min_time(name: &str, bytes: u64, cost: &CostModel) -> f64 {
    let request = sweep(&[name], &[bytes], 1).request;
    let request = request
        .cost(cost.clone())
        .segments(Segments::whole(bytes as usize));
    with_best_segments(&registry::find(Kind::Reduce, name).unwrap(), &request)
        .unwrap()
        .time
}

/// With `powers`, the sizes measured are all powers of two and the whole vector, as in the paper on
/// greedy reductions, and the best of them is the best row.
#[test]
fn all_powers_of_two_are_tried() {
    let mut all = sweep(&["chain", "linear"], &[3000], 3600);
    all.powers = true;
    let truth = CostModel::new(ALPHA / 10.0, BETA);
    let mut fake = Fake::new(truth.clone(), 0.0);
    let rows = go(&all, &[], &mut fake).rows;
    let sizes = |name: &str| -> Vec<u64> {
        let own = rows.iter().filter(|row| row.algorithm == name);
        own.map(|row| row.segment).collect()
    };
    let mut powers: Vec<u64> = (0..12).map(|i| 1 << i).collect();
    powers.push(3000);
    assert_eq!(sizes("chain"), powers);
    // It splits nothing.
    assert_eq!(sizes("linear"), [3000]);
    let chain = registry::find(Kind::Reduce, "chain").unwrap();
    let request = Request::reduce(8, 0).cost(truth).ports(Ports::BI);
    let time = |size: u64| {
        let segments = Segments::of_size(3000, size as usize).unwrap();
        chain.time(&request.clone().segments(segments)).unwrap()
    };
    let best = powers
        .iter()
        .copied()
        .min_by(|&a, &b| time(a).total_cmp(&time(b)));
    let found = rows
        .iter()
        .find(|row| row.algorithm == "chain" && row.best_segment);
    assert_eq!(found.map(|row| row.segment), best);
}

#[test]
fn finds_the_optimum_wherever_the_model_puts_it() {
    let bytes = [1 << 16, 1 << 18, 1 << 20];
    // The model is exact, or its optimum is off by a factor of 30 in either direction. Noise is up
    // to 3%.
    for truth in [
        CostModel::new(ALPHA, BETA),
        CostModel::new(ALPHA / 1000.0, BETA),
        CostModel::new(ALPHA * 30.0, BETA / 30.0),
    ] {
        let names = ["chain", "bi-greedy", "two-tree"];
        let sweep = sweep(&names, &bytes, 3000);
        let mut fake = Fake::new(truth.clone(), 0.03);
        let tuning = go(&sweep, &[], &mut fake);
        assert!(!tuning.interrupted && !tuning.budget_spent);
        for name in names {
            for bytes in bytes {
                let mine = |r: &&Trial| r.algorithm == name && r.bytes == bytes;
                let found = tuning
                    .rows
                    .iter()
                    .filter(mine)
                    .find(|r| r.best_segment)
                    .unwrap();
                let ratio = found.wall.median as f64 / min_time(name, bytes, &truth);
                assert!(ratio < 1.03, "{name} {bytes} {truth:?}: {ratio}");
                let tried = tuning.rows.iter().filter(mine).count();
                assert!(tried <= 22, "{name} {bytes}: {tried} sizes tried");
            }
        }
        for bytes in bytes {
            let best: Vec<_> = tuning
                .rows
                .iter()
                .filter(|r| r.bytes == bytes && r.best)
                .collect();
            assert_eq!(best.len(), 1);
            let unsettled = |r: &&Trial| r.bytes == bytes && !r.settled;
            let unsettled: Vec<_> = tuning.rows.iter().filter(unsettled).collect();
            assert!(
                best[0].settled && best[0].best_segment,
                "{truth:?} {unsettled:#?} {best:#?}"
            );
        }
    }
}

#[test]
fn the_budget_is_kept_and_shared() {
    let bytes = [1 << 16, 1 << 17, 1 << 18, 1 << 19, 1 << 20];
    // Too noisy to be settled: everything is still measured, within the budget.
    let sweep = sweep(&["chain", "bi-greedy", "binary"], &bytes, 60);
    let mut fake = Fake::new(CostModel::new(ALPHA, BETA), 1.0);
    let tuning = go(&sweep, &[], &mut fake);
    assert!(tuning.budget_spent);
    assert!(
        tuning.elapsed < Duration::from_secs(62),
        "{:?}",
        tuning.elapsed
    );
    for bytes in bytes {
        for name in ["chain", "bi-greedy", "binary"] {
            let of = tuning
                .rows
                .iter()
                .filter(|r| r.bytes == bytes && r.algorithm == name);
            assert!(of.count() >= 3, "{name} {bytes}");
        }
    }
    // Even without any time every algorithm is measured at every size.
    let sweep = Sweep {
        budget: Duration::ZERO,
        ..sweep
    };
    let tuning = go(&sweep, &[], &mut fake);
    assert_eq!(tuning.rows.len(), 15);
    assert!(tuning.rows.iter().all(|r| r.wall.repetitions >= 3));
}

#[test]
fn an_interrupted_sweep_continues_from_its_rows() {
    let sweep = sweep(
        &["chain", "binomial", "bi-greedy"],
        &[1 << 16, 1 << 18],
        3000,
    );
    let mut fake = Fake::new(CostModel::new(ALPHA / 9.0, BETA), 0.03);
    let mut checks = 0;
    let half = tune(&sweep, &[], &mut fake, &mut |progress| {
        checks += 1;
        assert!(progress.measured == progress.rows().len());
        if progress.measured >= 9 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })
    .unwrap();
    assert!(half.interrupted && checks > 9);
    assert!(half.rows.len() >= 8 && half.rows.iter().all(|r| r.wall.repetitions >= 7));
    // Where an algorithm has not been measured yet, the best one is so far.
    let open = half.winners().filter(|best| {
        let of_size = half.rows.iter().filter(|row| row.bytes == best.bytes);
        let names: std::collections::BTreeSet<_> = of_size.map(|row| &row.algorithm).collect();
        names.len() < 3
    });
    let open: Vec<_> = open.collect();
    assert!(!open.is_empty() && open.iter().all(|best| !best.settled));
    // Through a file and back.
    let parameters = vec![("ranks".to_string(), "8".to_string())];
    let text = csv::write(&parameters, &half.rows, &[]);
    let known = csv::resume(&text, &parameters).unwrap().known;
    assert_eq!(known, half.rows);
    let mut again = Fake::new(CostModel::new(ALPHA / 9.0, BETA), 0.03);
    let whole = go(&sweep, &known, &mut again);
    for row in &known {
        let same = |r: &&Trial| {
            (r.bytes, &r.algorithm, r.segment) == (row.bytes, &row.algorithm, row.segment)
        };
        assert_eq!(whole.rows.iter().find(same).unwrap().wall, row.wall);
        let call = |c: &&(u64, String, usize, usize)| {
            c.0 == row.bytes && c.1 == row.algorithm && c.2 as u64 == row.segment
        };
        assert!(
            again.calls.iter().find(call).is_none(),
            "{row:?} was measured again"
        );
    }
    assert!(!whole.interrupted);
    // A complete and settled sweep needs no further measurements.
    let mut idle = Fake::new(CostModel::new(ALPHA / 9.0, BETA), 0.03);
    let same = go(&sweep, &whole.rows, &mut idle);
    assert_eq!(same.rows, whole.rows);
    assert!(idle.calls.is_empty());
}

#[test]
fn degenerate_sizes_are_measured_too() {
    let names = ["chain", "bi-greedy", "binomial"];
    let sweep = sweep(&names, &[0, 1, 2, 3, 7], 1000);
    let mut fake = Fake::new(CostModel::new(1e5, 1e5), 0.01);
    let tuning = go(&sweep, &[], &mut fake);
    for row in &tuning.rows {
        assert!(
            row.segment >= 1 && row.segments as u64 <= row.bytes.max(1),
            "{row:?}"
        );
    }
    assert_eq!(tuning.rows.iter().filter(|r| r.best).count(), 5);
    let empty = Sweep {
        bytes: vec![],
        ..sweep.clone()
    };
    assert!(
        tune(&empty, &[], &mut fake, &mut |_| ControlFlow::Continue(()))
            .unwrap_err()
            .is_usage()
    );
    let mut uneven = sweep;
    uneven.request = uneven.request.element_bytes(4);
    assert!(
        tune(&uneven, &[], &mut fake, &mut |_| ControlFlow::Continue(()))
            .unwrap_err()
            .is_usage()
    );
}

#[test]
fn a_live_team_measures_and_verifies() {
    use oneport::run::{Clock, Operator, Teams};
    let mut sweep = sweep(&["chain", "binomial"], &[64, 4096], 1);
    sweep.request = Request::reduce(2, 0)
        .element_bytes(4)
        .cost(CostModel::new(1000.0, 0.1));
    sweep.budget = Duration::from_millis(300);
    let mut teams = Teams::default();
    let operator = Operator::<f32>::named("sum").unwrap();
    let mut live = Live::new(&mut teams, operator, Clock::Native);
    let tuning = tune(&sweep, &[], &mut live, &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(tuning.rows.len() >= 4);
    assert!(
        tuning
            .rows
            .iter()
            .all(|r| r.wall.median > 0 && r.segment % 4 == 0)
    );
    assert!(tuning.library.is_empty() && tuning.processes.is_none());
}

/// The only row of an algorithm at a size.
fn trial(bytes: u64, algorithm: &str, times: &[u64]) -> Trial {
    Trial {
        bytes,
        algorithm: algorithm.into(),
        segment: bytes,
        segments: 1,
        wall: Summary::of(times).unwrap(),
        model_time: 1.0,
        best: true,
        best_segment: true,
        settled: true,
    }
}

#[test]
fn rows_that_other_sizes_contradict_are_disturbed() {
    let times = [(4, 4000), (8, 27_000), (16, 3900), (32, 8000), (64, 40_000)];
    let chain = times.map(|(bytes, ns)| trial(bytes << 10, "chain", &[ns; 9]));
    // Of another algorithm, which says nothing about it.
    let linear = trial(8 << 10, "linear", &[27_000; 9]);
    let tuning = TuningResult {
        rows: chain.into_iter().chain([linear]).collect(),
        library: Vec::new(),
        processes: None,
        percent_by_others: None,
        interrupted: false,
        budget_spent: false,
        elapsed: Duration::ZERO,
        tree: None,
    };
    let disturbed: Vec<_> = tuning.disturbed().map(|row| row.bytes >> 10).collect();
    // The last takes over twice as long as twice the time of the half.
    assert_eq!(disturbed, [8, 64]);
    // Where most are slow, the fast one is the odd one.
    let times = [
        (64, 204_000),
        (512, 501),
        (4096, 290_000),
        (32_768, 350_000),
    ];
    let rows = times.map(|(bytes, ns)| trial(bytes, "chain", &[ns; 9]));
    let slow = TuningResult::of_rows(&rows);
    let disturbed: Vec<_> = slow.disturbed().map(|row| row.bytes).collect();
    assert_eq!(disturbed, [512]);
}

#[test]
fn the_library_has_changed_if_its_ratio_to_the_best_row_has() {
    let row = |best_now: u64, library_now: u64| VerifiedRow {
        bytes: 1024,
        best: trial(1024, "chain", &[1000; 9]),
        best_now: Summary::of(&[best_now; 9]).unwrap(),
        library: trial(
            1024,
            "MPI_Bcast",
            &[900, 1000, 1000, 1000, 1000, 1000, 1100],
        ),
        library_now: Summary::of(&[library_now; 9]).unwrap(),
        error: None,
    };
    // A machine on which everything takes twice as long is no other choice of the library.
    assert_eq!(row(2000, 2000).change(), Change::Same);
    assert_eq!(row(2000, 2000).ratios(), [1.0, 1.0]);
    assert_eq!(row(2000, 1000).change(), Change::Faster);
    assert_eq!(row(1000, 2000).change(), Change::Slower);
    // Less than a tenth is no change, however narrow the intervals are.
    let mut narrow = row(1000, 1090);
    narrow.library.wall = Summary::of(&[1000; 9]).unwrap();
    assert_eq!(narrow.change(), Change::Same);
    narrow.library_now = Summary::of(&[1110; 9]).unwrap();
    assert_eq!(narrow.change(), Change::Slower);
}

/// Where the intervals allow both a faster and a slower library, nothing is said.
#[test]
fn wide_intervals_tell_nothing() {
    let wide = [100, 200, 400, 1000, 2000, 5000, 9000];
    let row = VerifiedRow {
        bytes: 8,
        best: trial(8, "chain", &[1000; 9]),
        best_now: Summary::of(&[1000; 9]).unwrap(),
        library: trial(8, "MPI_Bcast", &[1000; 9]),
        library_now: Summary::of(&wide).unwrap(),
        error: None,
    };
    assert_eq!(row.change(), Change::Unclear);
    assert_eq!(row.change().name(), "cannot tell");
}

/// Rules name what beats the library in both of its states, by more than the tolerance and more
/// than the intervals allow.
#[test]
fn rows_beat_the_library_where_that_is_certain() {
    let of_library = |bytes, ns: &[u64]| Trial {
        model_time: f64::NAN,
        ..trial(bytes, "MPI_Reduce", ns)
    };
    let row = |bytes, launched: &[u64], for_rules: Option<&[u64]>| LibraryRow {
        trial: of_library(bytes, launched),
        for_rules: for_rules.map(|ns| of_library(bytes, ns)),
        error: None,
    };
    let (fast, slow) = ([500; 9], [2000; 9]);
    let sizes = [1, 2, 4, 8, 16, 32];
    let tuning = TuningResult {
        rows: sizes.map(|bytes| trial(bytes, "ring", &[1000; 9])).to_vec(),
        library: vec![
            row(1, &slow, None),
            row(2, &fast, None),
            row(4, &slow, Some(&fast)),
            row(8, &[1015; 9], None),
            // Too few repetitions for an interval, and an interval that is too wide.
            row(16, &[2000; 3], None),
            row(32, &[900, 950, 2000, 2000, 2000, 2000, 2000], None),
        ],
        processes: None,
        percent_by_others: None,
        interrupted: false,
        budget_spent: false,
        elapsed: Duration::ZERO,
        tree: None,
    };
    let beats = tuning
        .rows
        .iter()
        .map(|row| tuning.beats_library(row, 0.02));
    assert_eq!(
        beats.collect::<Vec<_>>(),
        [true, false, false, false, false, false]
    );
    assert!(
        !tuning.beats_library(&trial(64, "ring", &[1; 9]), 0.02),
        "nothing is known"
    );
    assert_eq!(tuning.slower_for_rules(0.02).count(), 0);
    let mut slower = tuning;
    slower.library[0].for_rules = Some(of_library(1, &[3000; 9]));
    let slower: Vec<_> = slower.slower_for_rules(0.02).collect();
    assert_eq!(slower, [(1, 1.5)]);
}

/// The library's rows of a file are kept, and not measured again.
#[test]
fn rows_of_the_library_are_kept() {
    let sweep = sweep(&["chain"], &[64], 1);
    let own = Trial {
        model_time: f64::NAN,
        best: false,
        ..trial(64, "MPI_Reduce", &[1000; 9])
    };
    let tuning = go(
        &sweep,
        std::slice::from_ref(&own),
        &mut Fake::new(CostModel::new(1.0, 1.0), 0.0),
    );
    assert_eq!(tuning.library.len(), 1);
    assert_eq!(tuning.library[0].trial.wall, own.wall);
    assert!(tuning.rows.iter().all(|row| row.algorithm == "chain"));
}
