//! Collectives as rank programs: every rank decides by itself, over its endpoint, what to do,
//! without a plan made for all ranks.
//!
//! Each program performs the steps that the planner of the same name would give its rank, so its
//! model time is the planned one; the example compares the two.
//!
//! - `uni_greedy`: a reduction in which every rank computes each transfer as it goes.
//! - `gather`: ranks that know only their own block build a gather tree together, then use it.
//! - `circulant`: ranks gather the receive schedules of all ranks.
//!
//! Run with `cargo run --release --example rank_programs -- [RANKS]`. Exits 1 if a result is wrong.

#![expect(clippy::print_stdout, reason = "an example prints its results")]

mod circulant;
mod gather;
mod uni_greedy;

use std::process::ExitCode;

use oneport::internal::circulant::{schedule::Circulant, tables::Tables};
use oneport::internal::gather::{GatherProblem, binomial};
use oneport::internal::pipeline;
use oneport::run::{Bidirectional, Endpoint, Operator, ScopeOptions, Team};
use oneport::{CostModel, Distribution, Request, Result};

use circulant::{control_elements, gather_schedules};
use gather::{CONTROL, GatherPart};
use uni_greedy::{uni_greedy_layout, uni_greedy_reduce};

fn main() -> ExitCode {
    let ranks = std::env::args().nth(1).map_or(Ok(20), |text| text.parse());
    let Ok(ranks) = ranks else {
        println!("usage: rank_programs [RANKS]");
        return ExitCode::from(2);
    };
    match demonstrate(ranks) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn demonstrate(ranks: usize) -> Result<bool> {
    let mut team = Team::new(ranks)?;
    let reduced = reduce(&mut team)?;
    let gathered = gather(&mut team)?;
    Ok(reduced && gathered && schedules(&mut team)?)
}

/// Reduces a vector of 100 elements in segments of 30.
fn reduce(team: &mut Team) -> Result<bool> {
    let request = Request::reduce(team.ranks(), 100)
        .segment_elems(30)
        .cost(CostModel::new(50.0, 1.0).gamma(0.5))
        .element_bytes(4);
    let mut options = ScopeOptions::new(Operator::named("sum")?);
    options.cost = request.get_cost().clone();
    let buffer = |rank: usize, len: usize| {
        let mut buffer = vec![rank as i32; 100];
        buffer.resize(len, 0);
        buffer
    };
    let layout = uni_greedy_layout(&request)?;
    let mut buffers: Vec<_> = (0..).zip(&layout).map(|(r, l)| buffer(r, l.len)).collect();
    let outcome = team.scope(&mut buffers, &options, |e| uni_greedy_reduce(e, &request))?;
    let sum = (0..team.ranks() as i32).sum::<i32>();
    let planned = pipeline::uni_greedy::time(&request).unwrap_or(f64::NAN);
    println!(
        "uni-greedy reduction: {}, planned {planned}",
        outcome.model_time()
    );
    Ok(buffers[0][..100] == [sum; 100])
}

/// Gathers random blocks of 20 bytes on average at the root of Lemma 1.
fn gather(team: &mut Team) -> Result<bool> {
    let p = team.ranks();
    let cost = CostModel::new(50.0, 1.0);
    let mut options = ScopeOptions::new(Operator::named("sum")?);
    options.cost = cost.clone();
    let sizes = Distribution::Random.sizes(p, 20, 1, 1)?;
    let mut control = vec![vec![0u64; CONTROL]; p];
    let find = |e: &mut Endpoint<u64, Bidirectional>| GatherPart::find(e, None, sizes[e.rank()]);
    let found = team.scope(&mut control, &options, find)?;
    let construction = found.model_time();
    let parts = found.results;

    let buffer = |(rank, part): (usize, &GatherPart)| {
        let mut buffer = vec![rank as u64; part.block];
        buffer.resize(part.layout().len, 0);
        buffer
    };
    let mut buffers: Vec<_> = parts.iter().enumerate().map(buffer).collect();
    let run = |e: &mut Endpoint<u64, Bidirectional>| parts[e.rank()].gather(e);
    let gathering = team.scope(&mut buffers, &options, run)?.model_time();
    // Back to where the blocks came from.
    let run = |e: &mut Endpoint<u64, Bidirectional>| parts[e.rank()].scatter(e);
    team.scope(&mut buffers, &options, run)?;

    let bytes = sizes.iter().map(|&size| 8 * size as u64).collect();
    let root = parts.iter().position(|part| part.parent.is_none());
    let problem = GatherProblem::new(bytes, cost, root)?;
    let planned = problem.time(&binomial::adaptive(&problem)?);
    println!("gather: {gathering}, planned {planned}; finding its tree took {construction}");
    let mut blocks = buffers.iter().zip(&sizes).enumerate();
    Ok(blocks.all(|(rank, (buffer, &size))| buffer[..size] == vec![rank as u64; size]))
}

/// Gathers the receive schedules of all ranks.
fn schedules(team: &mut Team) -> Result<bool> {
    let p = team.ranks();
    let mut options = ScopeOptions::new(Operator::named("sum")?);
    options.cost = CostModel::new(50.0, 1.0);
    let mut buffers = vec![vec![0; control_elements(p)]; p];
    let outcome = team.scope(&mut buffers, &options, gather_schedules)?;
    println!("gathering of circulant schedules: {}", outcome.model_time());
    let computed = Tables::new(&Circulant::new(p)).recv;
    Ok(outcome.results.iter().all(|gathered| *gathered == computed))
}
