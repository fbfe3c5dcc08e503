//! Tests of the choice by estimated native times.

use oneport::Error;
use oneport::machine::{CostModel, Ports};
use oneport::plan::Request;
use oneport::plan::choose::Choice;
use oneport::plan::refusal::Refusal;
use oneport::plan::registry::{self, Algorithm};
use oneport::plan::space::{Space, fastest_variant};
use oneport::run::Tuning;
use oneport::schedule::collective::Kind;
use oneport_measure::estimate::{CoreModel, choose_native};

fn core_model(cores: usize) -> CoreModel {
    CoreModel {
        cores,
        overhead: 10.0,
        switch: 1000.0,
        eager: 100,
        copied: 100,
        multiplexed: false,
        tuning: Tuning::default(),
    }
}

fn request(kind: Kind, ranks: usize, elements: usize) -> Request {
    Request::new(kind, ranks, elements).cost(CostModel::new(10.0, 1.0).gamma_copy(1.0))
}

fn estimate_native(
    algorithm: &Algorithm,
    request: &Request,
    core_model: &CoreModel,
) -> Result<Choice, Refusal> {
    fastest_variant(&Space::among([algorithm], request), algorithm, core_model)
}

#[test]
fn a_rendezvous_needs_polls_of_both_partners() {
    let linear = registry::find(Kind::Scatter, "linear").unwrap();
    let time = |bytes| {
        estimate_native(&linear, &request(Kind::Scatter, 4, bytes), &core_model(1))
            .unwrap()
            .time
    };
    // Three messages are offered, the root's own block is copied, and three messages are taken.
    // In between, the core switches to every other rank once, or twice to those that run before
    // the root.
    let work = 3.0 * 10.0 + 3.0 * (10.0 + 100.0) + 100.0;
    let polls = (time(100) - work) / 1000.0;
    assert!((3.0..=6.0).contains(&polls), "{polls} polls");
    // With rendezvous, each message needs a poll of its receiver and then one of the root: one
    // round. The first poll may come late.
    let work = 3.0 * (10.0 + 101.0) + 101.0;
    let polls = (time(101) - work) / 1000.0;
    assert!((6.0..=15.0).contains(&polls), "{polls} polls");
}

#[test]
fn a_core_runs_one_rank_at_a_time() {
    let binomial = registry::find(Kind::Broadcast, "binomial").unwrap();
    let time = |cores| {
        estimate_native(
            &binomial,
            &request(Kind::Broadcast, 16, 50),
            &core_model(cores),
        )
        .unwrap()
        .time
    };
    // 15 messages are offered and taken, and each rank is polled once.
    assert!(time(1) >= 15.0 * (10.0 + 60.0 + 1000.0));
    assert!(time(1) > time(2) && time(2) > time(16));
    // With a core per rank, no rank waits for another one's poll; the cores start up to one
    // poll apart. The last of four levels finishes after the messages of the root or of its
    // children.
    assert!((4.0 * 60.0..2000.0).contains(&time(16)), "{}", time(16));
    let none =
        estimate_native(&binomial, &request(Kind::Broadcast, 16, 50), &core_model(0)).unwrap_err();
    assert_eq!(Error::from(none).exit_code(), 2);
}

/// One rank on each of so many cores, as runs of a team are; times in nanoseconds.
fn own_cores(cores: usize) -> CoreModel {
    CoreModel {
        cores,
        overhead: 60.0,
        eager: u64::MAX,
        copied: (32 << 10) - 1,
        ..core_model(cores)
    }
}

/// The estimate of a broadcast of 64 KiB among ranks with cores of their own.
fn long_broadcast(ranks: usize, name: &str, segments: usize) -> f64 {
    let request = Request::broadcast(ranks, 64 << 10)
        .cost(CostModel::new(400.0, 0.05).gamma_copy(0.01))
        .segment_count(segments);
    let algorithm = registry::find(Kind::Broadcast, name).unwrap();
    estimate_native(&algorithm, &request, &own_cores(ranks))
        .unwrap()
        .time
}

#[test]
fn a_root_with_many_long_messages_delays_no_receiver() {
    let (few, many) = (
        long_broadcast(4, "linear", 1),
        long_broadcast(16, "linear", 1),
    );
    // What the root does for each receiver, not what the copies take.
    assert!(many - few < 12.0 * 100.0, "{few} {many}");
    assert!(many < long_broadcast(16, "binomial", 1));
}

#[test]
fn a_forwarded_short_message_takes_as_long_as_any() {
    let in_segments = long_broadcast(8, "bi-greedy", 4);
    // Six rounds of 16 KiB: beyond the model's time are overheads of messages alone.
    let round = 400.0 + 0.05 * f64::from(16 << 10);
    assert!(in_segments < 1.5 * 6.0 * round, "{in_segments}");
}

#[test]
fn messages_that_wait_at_a_rank_have_one_handover() {
    let time = |ranks| {
        let request = Request::gather(ranks, 8).cost(CostModel::new(400.0, 0.05));
        let linear = registry::find(Kind::Gather, "linear").unwrap();
        let choice = estimate_native(&linear, &request, &own_cores(ranks)).unwrap();
        choice.time
    };
    // The root's half of the overhead for each message.
    assert!(time(16) - time(8) < 8.0 * 60.0);
}

#[test]
fn algorithms_with_too_many_polls_are_not_chosen() {
    let chain = registry::find(Kind::Broadcast, "chain").unwrap();
    let long = request(Kind::Broadcast, 3000, 1);
    assert!(estimate_native(&chain, &long, &core_model(1)).is_err());
    let choice = choose_native(&long, &core_model(1)).unwrap();
    assert_eq!(choice.algorithm.name(), "linear");
}

/// Several messages to one rank, each through a port of its own, do not wait for each other.
#[test]
fn messages_between_several_ports_overtake_each_other() {
    for (kind, name, ranks, cores) in [
        (Kind::ReduceScatter, "all-pairs", 24, 2),
        (Kind::Allreduce, "two-shot", 4, 1),
    ] {
        let request = request(kind, ranks, 100).ports(Ports::BI.with_k(2));
        let algorithm = registry::find(kind, name).unwrap();
        assert!(estimate_native(&algorithm, &request, &core_model(cores)).is_ok());
    }
}

#[test]
fn every_collective_has_a_choice() {
    for kind in Kind::ALL
        .into_iter()
        .filter(|&kind| registry::of(kind).next().is_some())
    {
        for elements in [0, 1, 1000] {
            let choice = choose_native(&request(kind, 6, elements), &core_model(2)).unwrap();
            assert_eq!(choice.algorithm.collective, kind);
            choice.algorithm.plan(&choice.request).unwrap();
        }
    }
}
