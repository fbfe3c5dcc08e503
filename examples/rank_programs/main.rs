//! Collectives as rank programs: every rank decides by itself, over its endpoint, what to do,
//! without a plan made for all ranks. The same programs run on threads and on processes.
//!
//! Each program performs the steps that the planner of the same name would give its rank, so its
//! model time is the planned one; the example compares the two.
//!
//! Most are functions of `oneport::collectives`: a reduction in which every rank computes each
//! transfer as it goes; a gather whose tree is built by ranks that know only their own block;
//! circulant collectives, of which each rank computes its own schedule. In `circulant` ranks gather
//! the receive schedules of all ranks.
//!
//! Run with `cargo run --release --example rank_programs -- [RANKS]`, or, one process a rank, with
//! `mpirun -n RANKS target/release/examples/rank_programs`: both print the same. Exits 1 if a
//! result is wrong.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "ranks are few"
)]
#![expect(clippy::print_stdout, reason = "an example prints its results")]

mod circulant;
mod ranks;

use std::process::ExitCode;

use oneport::collectives::{
    GatherPart, allgather, allgatherv, allreduce, broadcast, greedy_reduce, reduce_scatter,
};
use oneport::internal::circulant::{schedule::Circulant, tables::Tables};
use oneport::internal::gather::{GatherProblem, binomial};
use oneport::internal::pipeline;
use oneport::run::{Bidirectional, Endpoint, Operator, ScopeOptions, Unidirectional};
use oneport::{CostModel, Distribution, Request, Result};

use circulant::{control_elements, gather_schedules};
use ranks::Ranks;

fn main() -> ExitCode {
    let threads = std::env::args().nth(1).map_or(Ok(20), |text| text.parse());
    let Ok(threads) = threads else {
        println!("usage: rank_programs [RANKS]");
        return ExitCode::from(2);
    };
    match demonstrate(threads) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn demonstrate(threads: usize) -> Result<bool> {
    let mut ranks = Ranks::new(threads)?;
    let reduced = reduce(&mut ranks)?;
    let gathered = gather(&mut ranks)?;
    let rounds = in_rounds(&mut ranks)?;
    let right = reduced && gathered && rounds && schedules(&mut ranks)?;
    ranks.all(right)
}

/// Reduces a vector of 100 elements in segments of 30.
fn reduce(ranks: &mut Ranks) -> Result<bool> {
    let p = ranks.count();
    let request = Request::reduce(p, 100)
        .segment_elems(30)
        .cost(CostModel::new(50.0, 1.0).gamma(0.5))
        .element_bytes(4);
    let mut options = ScopeOptions::new(Operator::named("sum")?);
    options.cost = request.get_cost().clone();
    let buffer = |rank: usize| vec![rank as i32; 100];
    let program = |e: &mut Endpoint<i32, Unidirectional>| greedy_reduce(e, &request);
    let found = ranks.run(&options, buffer, program)?;
    if ranks.prints() {
        let planned = pipeline::uni_greedy::time(&request).unwrap_or(f64::NAN);
        let time = found.model_time;
        println!("uni-greedy reduction: {time}, planned {planned}");
    }
    let sum = (0..p as i32).sum::<i32>();
    let mut own = found.own.iter();
    Ok(own.all(|(rank, buffer, _)| *rank != 0 || buffer[..] == [sum; 100]))
}

/// Circulant collectives, one after another, on a vector with a block for each rank.
fn in_rounds(ranks: &mut Ranks) -> Result<bool> {
    let p = ranks.count();
    let mut options = ScopeOptions::new(Operator::named("sum")?);
    options.cost = CostModel::new(50.0, 1.0).gamma(0.5);
    let sizes = Distribution::Spikes.sizes(p, 20, 3, 1)?;
    let len = sizes.iter().sum::<usize>();
    let program = |e: &mut Endpoint<i64, Bidirectional>| {
        let mut rounds = allreduce(e, 0..len, 4)?;
        rounds += reduce_scatter(e, 0, &sizes)?;
        rounds += allgatherv(e, 0, &sizes, 3)?;
        rounds += allgather(e, 0, &sizes)?;
        rounds += broadcast(e, p - 1, 0..len, 2)?;
        Ok(rounds)
    };
    let found = ranks.run(&options, |rank| vec![rank as i64; len], program)?;
    let rounds = found.own.first().map_or(0, |(_, _, rounds)| *rounds);
    if ranks.prints() {
        let time = found.model_time;
        println!("circulant collectives: {time}, {rounds} rounds");
    }
    // Each rank has p times the sum of all: an allreduce, then another reduction.
    let p = p as i64;
    let all = p * (p * (p - 1) / 2);
    Ok(found
        .own
        .iter()
        .all(|(_, buffer, _)| buffer.iter().all(|&v| v == all)))
}

/// Gathers random blocks of 20 bytes on average at the rank in the middle, and scatters them back.
fn gather(ranks: &mut Ranks) -> Result<bool> {
    let p = ranks.count();
    let cost = CostModel::new(50.0, 1.0);
    let mut options = ScopeOptions::new(Operator::named("sum")?);
    options.cost = cost.clone();
    let (sizes, root) = (Distribution::Random.sizes(p, 20, 1, 1)?, Some(p / 2));
    let find = |e: &mut Endpoint<u64, Bidirectional>| GatherPart::find(e, root, sizes[e.rank()]);
    let found = ranks.run(&options, |_| vec![0u64; GatherPart::CONTROL], find)?;
    let construction = found.model_time;
    // Each rank has its own part only.
    let part = |rank: usize| {
        let mut own = found.own.iter();
        let part = own.find_map(|(r, _, part)| (*r == rank).then_some(part));
        part.expect("a rank of this process")
    };

    let buffer = |rank: usize| {
        let mut buffer = vec![rank as u64; sizes[rank]];
        buffer.resize(part(rank).layout().len, 0);
        buffer
    };
    let there_and_back = |e: &mut Endpoint<u64, Bidirectional>| {
        let part = part(e.rank());
        part.gather(e)?;
        let time = e.model_time()?;
        // Back to where the blocks came from.
        e.data_mut()?[..part.block].fill(0);
        part.scatter(e)?;
        Ok(time)
    };
    let run = ranks.run(&options, buffer, there_and_back)?;

    let bytes = sizes.iter().map(|&size| 8 * size as u64).collect();
    let problem = GatherProblem::new(bytes, cost, root)?;
    let planned = problem.time(&binomial::adaptive(&problem)?);
    if ranks.prints() {
        let both = run.model_time;
        println!("gather and scatter: {both}, planned a gather in {planned}");
        println!("finding its tree: {construction}");
    }
    let mut own = run.own.iter();
    Ok(own.all(|(rank, buffer, time)| {
        let in_time = Some(*rank) != root || *time == planned;
        in_time && buffer[..sizes[*rank]] == vec![*rank as u64; sizes[*rank]]
    }))
}

/// Gathers the receive schedules of all ranks.
fn schedules(ranks: &mut Ranks) -> Result<bool> {
    let p = ranks.count();
    let mut options = ScopeOptions::new(Operator::named("sum")?);
    options.cost = CostModel::new(50.0, 1.0);
    let buffer = |_| vec![0; control_elements(p)];
    let found = ranks.run(&options, buffer, gather_schedules)?;
    if ranks.prints() {
        println!("gathering of circulant schedules: {}", found.model_time);
    }
    let computed = Tables::new(&Circulant::new(p)).recv;
    let mut own = found.own.iter();
    Ok(own.all(|(_, _, gathered)| *gathered == computed))
}
