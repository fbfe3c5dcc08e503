//! Planners: how long each registered algorithm takes to plan 1024 ranks and a vector of 64 segments.
//!
//! `cargo bench --bench planners`; with `-- --quick` fewer samples. The steps of each schedule stand below its time.
#![allow(clippy::print_stdout, missing_docs)]

use std::hint::black_box;
use std::time::Duration;

use criterion::Criterion;
use oneport::plan::{Segments, registry};
use oneport::{CostModel, Kind, Ports, Request};

const RANKS: usize = 1024;
const SEGMENTS: usize = 64;

fn main() {
    let mut criterion = Criterion::default()
        .configure_from_args()
        .without_plots()
        .sample_size(10)
        .nresamples(2000)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(500));
    for kind in Kind::ALL {
        if registry::of(kind).next().is_none() {
            continue;
        }
        let name = format!("plan {} p={RANKS} q={SEGMENTS}", kind.name());
        let mut group = criterion.benchmark_group(name);
        for algorithm in registry::of(kind) {
            let elements = SEGMENTS << 10;
            let mut request = Request::new(RANKS, elements);
            request.segments = Segments::of_count(elements, SEGMENTS).expect("not 0 segments");
            request.cost = CostModel::new(1000.0, 0.5).gamma(0.25);
            if !algorithm.ports.allow(Ports::BI) {
                request.ports = Ports::UNI;
            }
            let mut steps = None;
            group.bench_function(algorithm.name, |b| {
                let steps = *steps.get_or_insert_with(|| {
                    let schedule = algorithm.plan(&request);
                    schedule.map_or(0, |schedule| schedule.steps())
                });
                assert!(steps > 0, "{} refuses {RANKS} ranks", algorithm.name);
                b.iter(|| algorithm.plan(black_box(&request)).map(|s| s.ranks()));
            });
            if let Some(steps) = steps {
                println!("{:>28} {steps} steps", "");
            }
        }
        group.finish();
    }
}
