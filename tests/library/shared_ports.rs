//! Tests of ports that several ranks share: files, and findings of the checker. `rules.rs` compares
//! their times with an evaluator of its own.

use oneport::check::FindingKind;
use oneport::schedule::{Direction, SharedPort};
use oneport::simulate::stream;
use oneport::{Collective, CostModel, Ports, Schedule, Span, Step};

/// A port of node 0 and 1.
fn port(name: &str, direction: Direction, steps: &[(usize, usize)]) -> SharedPort {
    SharedPort {
        name: name.into(),
        ranks: vec![0, 1],
        direction,
        steps: steps.to_vec(),
    }
}

/// A broadcast of 4 elements from rank 0 to 1 and 2, and from 1 to 3. Ranks 0 and 1 are a node.
fn broadcast(ports: Vec<SharedPort>) -> oneport::Result<Schedule> {
    let mut b = Schedule::broadcast(4, 4);
    b.transfer(0, 1, 0..4)
        .transfer(0, 2, 0..4)
        .transfer(1, 3, 0..4);
    b.build()?.with_shared_ports(ports)
}

/// Every message takes 10.
fn time(schedule: &Schedule) -> f64 {
    let cost = CostModel::new(6.0, 1.0);
    let time = schedule.simulate(&cost).unwrap().makespan();
    let streamed = stream(schedule, &cost, 1, |_| ()).unwrap();
    assert_eq!(streamed.time, time);
    time
}

#[test]
fn listed_transfers_follow_each_other() {
    assert_eq!(time(&broadcast(vec![]).unwrap()), 20.0);
    for steps in [[(0, 1), (1, 1)], [(1, 1), (0, 1)]] {
        let schedule = broadcast(vec![port("out", Direction::Out, &steps)]).unwrap();
        assert_eq!(time(&schedule), 30.0);
        assert!(schedule.check().is_correct());
        assert_eq!(schedule.stats().unwrap().rounds, 3);
        let text = schedule.to_json();
        assert_eq!(Schedule::from_json(&text).unwrap(), schedule, "{text}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&text).unwrap()["shared_ports"][0]["direction"],
            "out"
        );
    }
    // Two ports suffice, and a list of receives does as well.
    let two = [
        port("a", Direction::Out, &[(0, 1)]),
        port("b", Direction::Out, &[(1, 1)]),
    ];
    let two = broadcast(two.to_vec()).unwrap();
    assert!(two.check().is_correct());
    assert_eq!(time(&two), 20.0);
    let entering = SharedPort {
        ranks: vec![3, 2],
        ..port("in", Direction::In, &[(3, 0), (2, 0)])
    };
    let entering = broadcast(vec![entering]).unwrap();
    assert!(entering.check().is_correct());
    assert_eq!(time(&entering), 30.0);
}

#[test]
fn lists_of_what_does_not_exist_are_refused() {
    let mut b = Schedule::broadcast(2, 4);
    b.transfer(0, 1, 0..2);
    b.step(1, oneport::Step::copy(0..2, 2..4));
    let schedule = b.build().unwrap();
    for (ranks, steps, why) in [
        (vec![0, 2], vec![], "rank 2 is not one of 2 ranks"),
        (vec![1, 1], vec![], "rank 1 is named twice"),
        (vec![], vec![(0, 1)], "step 1 of rank 0 does not exist"),
        (vec![], vec![(2, 0)], "step 0 of rank 2 does not exist"),
        (vec![], vec![(1, 1)], "step 1 of rank 1 is no transfer"),
        (
            vec![],
            vec![(1, 0), (0, 0), (1, 0)],
            "step 0 of rank 1 is listed twice",
        ),
    ] {
        let port = SharedPort {
            ranks,
            steps,
            ..port("x", Direction::Both, &[])
        };
        let text = serde_json::to_string(&port).unwrap();
        let error = schedule.clone().with_shared_ports(vec![port]).unwrap_err();
        assert_eq!(error.to_string(), format!("shared port \"x\": {why}"));
        let whole = schedule
            .to_json()
            .replace(" ] }\n", &format!(" ], \"shared_ports\": [{text}] }}"));
        assert_eq!(
            Schedule::from_json(&whole).unwrap_err().to_string(),
            error.to_string()
        );
    }
}

#[test]
fn the_checker_proves_that_lists_are_whole() {
    let out = |steps: &[(usize, usize)]| port("out", Direction::Out, steps);
    let second = |steps: &[(usize, usize)]| port("second", Direction::Out, steps);
    let both = &[(0, 1), (1, 1)][..];
    for (ports, expected) in [
        (
            vec![out(&[(0, 1)])],
            "rank 1, step 1 (send to 3): leaves its node through none of its ports (out) instead of one",
        ),
        (
            vec![out(both), second(&[(1, 1)])],
            "rank 1, step 1 (send to 3): leaves its node through 2 of its ports (out, second) instead of one",
        ),
        (
            vec![out(&[(0, 0), (0, 1), (1, 1)])],
            "rank 0, step 0 (send to 1): is listed on shared port \"out\", but the message stays within its node",
        ),
        (
            vec![out(both), second(&[(2, 0)])],
            "rank 2, step 0 (recv from 0): is listed on shared port \"second\", but rank 2 is not of its node",
        ),
        (
            vec![out(both), port("in", Direction::In, &[(1, 1)])],
            "rank 1, step 1 (send to 3): is listed on shared port \"in\", but the message leaves its node",
        ),
    ] {
        let report = broadcast(ports).unwrap().check();
        let messages: Vec<_> = report.errors.iter().map(ToString::to_string).collect();
        assert_eq!(messages, [expected]);
        assert_eq!(report.errors[0].kind, FindingKind::SharedPort);
    }
    // Ports for both directions, named by ranks in another order, are ports of the same node.
    let other = SharedPort {
        ranks: vec![1, 0],
        ..port("b", Direction::Both, &[(1, 1)])
    };
    let ports = vec![port("a", Direction::Both, &[(0, 1)]), other];
    assert!(broadcast(ports).unwrap().check().is_correct());
}

#[test]
fn the_checker_names_cycles_through_shared_ports() {
    // Rank 1 gets the vector through rank 2, after rank 0 has used the port.
    let mut b = Schedule::broadcast(4, 4);
    b.transfer(0, 2, 0..4)
        .transfer(2, 1, 0..4)
        .transfer(1, 3, 0..4);
    let ports = vec![port("uplink", Direction::Out, &[(1, 1), (0, 0)])];
    let schedule = b.build().unwrap().with_shared_ports(ports).unwrap();
    let report = schedule.check();
    assert_eq!(report.errors.len(), 1);
    let error = &report.errors[0];
    assert_eq!(error.kind, FindingKind::Deadlock);
    assert_eq!(
        error.message,
        "deadlock: rank 0 step 0 (send to 2) waits for rank 1's step 1 (send to 3) on \"uplink\"; \
         rank 1 step 1 (send to 3) waits for its step 0 (recv from 2); \
         rank 2 step 1 (send to 1) waits for its step 0 (recv from 0)"
    );
    let cycle = &error.cycle[0];
    let shared = cycle.shared_port.as_deref();
    assert_eq!((cycle.waits_for_rank, shared), (Some(1), Some("uplink")));
    let cost = CostModel::new(1.0, 1.0);
    for error in [
        schedule.simulate(&cost).map(|_| ()),
        stream(&schedule, &cost, 1, |_| ()).map(|_| ()),
    ] {
        assert!(error.unwrap_err().to_string().contains("deadlock"));
    }
}

/// In a cycle a rank waits for a step of another rank whose number its own program lacks.
#[test]
fn cycles_through_longer_programs_are_named() {
    let span = Span::new(0, 2);
    let mut b = Schedule::builder(7, Ports::UNI, Collective::Allreduce);
    for rank in 0..7 {
        b.layout(rank, 2, span, span);
    }
    b.transfer(5, 2, 0..1)
        .transfer(4, 6, 0..1)
        .transfer(1, 4, 1..2);
    b.step(5, Step::recv(2, Span::new(1, 1)));
    let shared = |ranks: [usize; 2], steps: &[(usize, usize)]| SharedPort {
        ranks: ranks.to_vec(),
        ..port("node", Direction::Both, steps)
    };
    let ports = vec![
        shared([1, 2], &[(1, 0), (2, 0)]),
        shared([5, 6], &[(5, 1), (6, 0)]),
    ];
    let report = b.build().unwrap().with_shared_ports(ports).unwrap().check();
    let waits = report
        .errors
        .iter()
        .any(|e| e.message.contains("wait for each other"));
    assert!(waits, "{report}");
}
