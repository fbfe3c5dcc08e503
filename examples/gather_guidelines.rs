//! Checks the performance guidelines of irregular gathers over all distributions of block sizes, in
//! the model and measured.
//!
//! `cargo run --release --example gather_guidelines` prints Markdown tables; `-- native` measures
//! at full speed instead of at the pace of the cost model, `-- 32` takes 32 ranks instead of 8.
//! Each entry is a time divided by that of the other side of the guideline: in the model, and (in
//! brackets) measured.
//!
//! 1. A gather of equal blocks is not slower than an irregular gather of the same blocks.
//! 2. An irregular gather is not slower than agreeing on the largest block (an allreduce of one
//!    number) and gathering as if all had its size.
//!
//! # Results
//!
//! 8 ranks, root 4, `rho = 5`, `alpha` = 1 ms, `beta` = 50 ns a byte, free copies. The other side
//! is (1) a gather made for equal blocks, so entries must not be less than 1; (2) padding, so
//! entries must not be more than 1. Measured: the fastest repetition at the model's pace. (1)
//! holds, with equality for all but `linear`. (2) holds for oblivious, adaptive and optimal trees
//! everywhere; `linear` violates it where latency counts.
//!
//! | distribution | b | other side | linear | oblivious | adaptive | optimal |
//! |---|---|---|---|---|---|---|
//! | (1) same | 100 | 3.04 ms (3.04) | 2.318 (2.317) | 1.000 (1.000) | 1.000 (1.000) | 1.000 (1.001) |
//! | (1) same | 10000 | 6.50 ms (6.50) | 1.615 (1.615) | 1.000 (1.000) | 1.000 (1.000) | 1.000 (1.001) |
//! | (2) same | 100 | 6.04 ms (6.06) | 1.166 (1.160) | 0.503 (0.501) | 0.503 (0.501) | 0.503 (0.501) |
//! | (2) same | 10000 | 9.50 ms (9.53) | 1.105 (1.101) | 0.684 (0.682) | 0.684 (0.682) | 0.684 (0.683) |
//! | (2) random | 100 | 6.07 ms (6.10) | 1.162 (1.156) | 0.503 (0.500) | 0.502 (0.500) | 0.502 (0.500) |
//! | (2) random | 10000 | 12.80 ms (12.83) | 0.929 (0.927) | 0.626 (0.624) | 0.617 (0.615) | 0.617 (0.616) |
//! | (2) random-decreasing | 100 | 6.07 ms (6.09) | 1.161 (1.156) | 0.505 (0.502) | 0.504 (0.502) | 0.504 (0.502) |
//! | (2) random-decreasing | 10000 | 12.80 ms (12.82) | 0.920 (0.918) | 0.717 (0.716) | 0.683 (0.683) | 0.683 (0.682) |
//! | (2) random-increasing | 100 | 6.07 ms (6.10) | 1.161 (1.155) | 0.502 (0.500) | 0.502 (0.500) | 0.502 (0.500) |
//! | (2) random-increasing | 10000 | 12.80 ms (12.83) | 0.906 (0.903) | 0.602 (0.600) | 0.602 (0.600) | 0.602 (0.600) |
//! | (2) bucket | 100 | 6.05 ms (6.08) | 1.164 (1.158) | 0.503 (0.500) | 0.503 (0.500) | 0.503 (0.501) |
//! | (2) bucket | 10000 | 11.15 ms (11.17) | 1.004 (1.001) | 0.651 (0.649) | 0.645 (0.644) | 0.645 (0.644) |
//! | (2) spikes | 100 | 6.00 ms (6.03) | 1.167 (1.161) | 0.500 (0.498) | 0.500 (0.498) | 0.500 (0.498) |
//! | (2) spikes | 10000 | 6.00 ms (6.03) | 1.167 (1.161) | 0.500 (0.498) | 0.500 (0.498) | 0.500 (0.498) |
//! | (2) decreasing | 100 | 6.07 ms (6.10) | 1.160 (1.154) | 0.504 (0.502) | 0.503 (0.501) | 0.503 (0.501) |
//! | (2) decreasing | 10000 | 13.00 ms (13.02) | 0.846 (0.844) | 0.702 (0.700) | 0.654 (0.653) | 0.596 (0.595) |
//! | (2) increasing | 100 | 6.07 ms (6.10) | 1.160 (1.153) | 0.501 (0.498) | 0.501 (0.498) | 0.501 (0.498) |
//! | (2) increasing | 10000 | 13.00 ms (13.04) | 0.837 (0.834) | 0.538 (0.537) | 0.538 (0.537) | 0.538 (0.537) |
//! | (2) alternating | 100 | 6.05 ms (6.08) | 1.162 (1.156) | 0.502 (0.499) | 0.501 (0.499) | 0.501 (0.499) |
//! | (2) alternating | 10000 | 11.25 ms (11.28) | 0.911 (0.909) | 0.600 (0.599) | 0.556 (0.555) | 0.556 (0.555) |
//! | (2) skewed | 100 | 6.06 ms (6.08) | 1.161 (1.156) | 0.505 (0.502) | 0.505 (0.502) | 0.505 (0.503) |
//! | (2) skewed | 10000 | 11.60 ms (11.62) | 0.879 (0.877) | 0.741 (0.739) | 0.741 (0.739) | 0.603 (0.603) |
//! | (2) two-blocks | 100 | 6.14 ms (6.17) | 0.332 (0.330) | 0.498 (0.496) | 0.332 (0.331) | 0.332 (0.330) |
//! | (2) two-blocks | 10000 | 20.00 ms (20.03) | 0.300 (0.299) | 0.450 (0.449) | 0.300 (0.300) | 0.300 (0.299) |
#![allow(clippy::print_stdout)]

use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use oneport::internal::gather::{GatherProblem, GatherTree, binomial, linear, optimal};
use oneport::plan::choose;
use oneport::plan::distribution::Distribution;
use oneport::run::{Clock, Operator, Run, Team};
use oneport::{CostModel, Kind, Ports, Request, Schedule};
use oneport_measure::interleave;

/// Makes a tree for a problem.
type Plan = fn(&GatherProblem) -> oneport::Result<GatherTree>;

const PLANS: [(&str, Plan); 4] = [
    ("linear", linear::tree),
    ("oblivious", binomial::oblivious),
    ("adaptive", binomial::adaptive),
    ("optimal", optimal::tree),
];
/// Average block sizes in bytes.
const BLOCKS: [usize; 2] = [100, 10_000];

fn main() -> Result<()> {
    let mut clock = Clock::Paced;
    let mut ranks = 8;
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "native" => clock = Clock::Native,
            "paced" => clock = Clock::Paced,
            number => match number.parse() {
                Ok(p) if (2..=1024).contains(&p) => ranks = p,
                _ => {
                    bail!(
                        "'{number}' is neither native, paced nor a number of ranks from 2 to 1024"
                    );
                }
            },
        }
    }
    // A network whose pace even a busy laptop can keep: 1 ms, 20 MB/s.
    let cost = CostModel::new(1e6, 50.0);
    let mut bench = Bench {
        team: Team::new(ranks)?,
        sum: Operator::named("sum")?,
        ranks,
        cost,
        clock,
        bar: bar((BLOCKS.len() * (1 + Distribution::ALL.len())) as u64),
    };
    let lines = bench.tables();
    bench.bar.finish_and_clear();
    for line in lines? {
        println!("{line}");
    }
    Ok(())
}

fn bar(length: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {percent}%, {eta} left");
    ProgressBar::new(length).with_style(style.unwrap_or(ProgressStyle::default_bar()))
}

struct Bench {
    team: Team,
    sum: Operator<u8>,
    ranks: usize,
    cost: CostModel,
    clock: Clock,
    bar: ProgressBar,
}

/// Model time and measured time, in nanoseconds.
#[derive(Clone, Copy)]
struct Times {
    model: f64,
    measured: f64,
}

impl Bench {
    fn tables(&mut self) -> Result<Vec<String>> {
        let names = PLANS.map(|p| p.0).join(" | ");
        let head = |what: &str| {
            let line = format!("| {what} | {names} |");
            [line, format!("|---|---|---|{}", "---|".repeat(PLANS.len()))]
        };
        let how = match self.clock {
            Clock::Paced => "at the pace of the model",
            _ => "flat out",
        };
        let mut lines = vec![format!(
            "{} ranks, root {}, rho = 5, alpha = 1 ms, beta = 50 ns a byte, copies free; measured {how}.\n",
            self.ranks,
            self.ranks / 2
        )];
        lines.push("(1) Equal blocks: over a gather made for them.\n".into());
        lines.extend(head("distribution | b | gather"));
        for b in BLOCKS {
            let sizes = vec![b; self.ranks];
            let regular = choose::choose(&self.request(Kind::Gather, b))?;
            let regular = regular.plan()?;
            lines.push(self.line("same", b, &[regular], &sizes)?);
        }
        lines.push("\n(2) All distributions: over the padded gather.\n".into());
        lines.extend(head("distribution | b | padded"));
        for distribution in Distribution::ALL {
            for b in BLOCKS {
                let sizes = distribution.sizes(self.ranks, b, 5, 1)?;
                let largest = sizes.iter().copied().max().unwrap_or(0);
                let agree = choose::choose(&self.request(Kind::Allreduce, 1))?;
                let padded = choose::choose(&self.request(Kind::Gather, largest))?;
                let padding = [agree.plan()?, padded.plan()?];
                lines.push(self.line(distribution.name(), b, &padding, &sizes)?);
            }
        }
        Ok(lines)
    }

    fn request(&self, kind: Kind, elements: usize) -> Request {
        Request::new(kind, self.ranks, elements)
            .root(self.ranks / 2)
            .cost(self.cost.clone())
    }

    /// A row: the trees for `sizes` relative to the total of all `others`, run one after another.
    fn line(
        &mut self,
        name: &str,
        b: usize,
        others: &[Schedule],
        sizes: &[usize],
    ) -> Result<String> {
        let bytes = sizes.iter().map(|&s| s as u64).collect();
        let problem = GatherProblem::new(bytes, self.cost.clone(), Some(self.ranks / 2))?;
        let mut schedules = others.to_vec();
        for (_, plan) in PLANS {
            schedules.push(plan(&problem)?.gather(sizes, Ports::BI)?);
        }
        let times = self.times(&schedules)?;
        let (others, trees) = times.split_at(others.len());
        let sum = |of: fn(&Times) -> f64| others.iter().map(of).fold(0.0, |a, b| a + b);
        let (model, measured) = (sum(|t| t.model), sum(|t| t.measured));
        let mut line = format!(
            "| {name} | {b} | {:.2} ms ({:.2}) |",
            model / 1e6,
            measured / 1e6
        );
        for tree in trees {
            line += &format!(
                " {:.3} ({:.3}) |",
                tree.model / model,
                tree.measured / measured
            );
        }
        self.bar.inc(1);
        Ok(line)
    }

    /// Measures all schedules interleaved, so that a disturbance affects all of them. Each schedule
    /// counts with its fastest repetition, because load on the machine can only increase a time.
    fn times(&mut self, schedules: &[Schedule]) -> Result<Vec<Times>> {
        let run = |schedule| {
            Run::new(schedule)
                .op(&self.sum)
                .clock(self.clock)
                .cost(self.cost.clone())
                .warmup(1)
                .repetitions(15)
                .verified()
        };
        let runs: Vec<_> = schedules.iter().map(run).collect();
        let rows = interleave(&mut self.team, &runs, |_, _| {})?;
        if rows.iter().any(|row| row.error.is_some()) {
            bail!("a run gave a wrong result");
        }
        let pairs = schedules.iter().zip(rows);
        pairs
            .map(|(schedule, row)| {
                let model = schedule.simulate(&self.cost)?.makespan();
                let measured = row.wall.min_ns() as f64;
                Ok(Times { model, measured })
            })
            .collect()
    }
}
