//! Numbers of rounds that are known: published, or found by a search over states.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::too_many_lines,
    reason = "numbers of tests are small, and a test tells one story"
)]

mod states;

use oneport::plan::choose;
use oneport::{Collective, CostModel, Ports, Request, Schedule};
use oneport_synthesis::{Answer, Certificate, Options, Problem, synthesize};

const BROADCAST: Collective = Collective::Broadcast { root: 0 };

fn uni(k: usize) -> Ports {
    Ports::UNI.with_k(k)
}

fn answer(problem: &Problem) -> Answer {
    let answer = synthesize(problem, &Options::default());
    let answer = answer.unwrap_or_else(|error| panic!("{problem:?}: {error}"));
    let schedule = answer.schedule.as_ref().unwrap();
    assert!(schedule.check().is_correct(), "{problem:?}");
    let (takes, says) = (makespan(schedule), answer.upper.unwrap() as f64);
    assert_eq!(takes, says, "{problem:?}");
    answer
}

/// The proved fewest rounds.
fn fewest(problem: &Problem) -> usize {
    let answer = answer(problem);
    assert!(answer.is_optimal(), "{problem:?}: {answer:?}");
    answer.lower
}

/// Whether there is a schedule in this many rounds.
fn has(problem: &Problem, rounds: usize) -> bool {
    let options = Options {
        rounds: Some(rounds),
        ..Options::default()
    };
    let answer = synthesize(problem, &options).unwrap();
    assert!(answer.upper.is_some() || answer.lower == rounds + 1 || answer.lower > rounds);
    answer.upper.is_some()
}

fn is_long() -> bool {
    std::env::var("ONEPORT_LONG").is_ok_and(|long| long == "1")
}

/// The rounds of the schedule's messages, if all start together.
fn makespan(schedule: &Schedule) -> f64 {
    schedule
        .simulate(&CostModel::new(1.0, 0.0))
        .unwrap()
        .makespan()
}

#[test]
fn gossip_of_unidirectional_ranks() {
    for (p, rounds) in (2..).zip([2, 4, 4, 5, 5, 6, 6, 6, 6]) {
        for collective in [Collective::Allgather, Collective::Barrier] {
            // One refutation of 5 rounds at p = 8 is enough.
            if p == 8 && collective == Collective::Barrier && !is_long() {
                continue;
            }
            let found = answer(&Problem::new(collective, p).ports(Ports::UNI));
            assert_eq!(
                (found.lower, found.upper),
                (rounds, Some(rounds)),
                "p = {p}"
            );
            assert!(makespan(&found.schedule.unwrap()) <= rounds as f64);
        }
    }
}

#[test]
fn what_gossip_gives_by_reversal_and_combination() {
    for p in [5, 9] {
        let rounds = if p == 5 { 5 } else { 6 };
        for collective in [Collective::ReduceScatter, Collective::Allreduce] {
            assert_eq!(
                fewest(&Problem::new(collective, p).ports(Ports::UNI)),
                rounds
            );
        }
    }
    for (p, rounds) in [(3, 4), (5, 5), (6, 5), (7, 6), (9, 6), (10, 6)] {
        let problem = Problem::new(Collective::Alltoall, p).ports(Ports::UNI);
        assert_eq!(fewest(&problem), rounds, "alltoall, p = {p}");
    }
}

#[test]
fn telephone_gossip() {
    for (p, rounds) in (2..).zip([1, 3, 2, 4, 3, 4, 3, 5, 4]) {
        let problem = Problem::new(Collective::Allgather, p).ports(Ports::TELEPHONE);
        assert_eq!(fewest(&problem), rounds, "p = {p}");
    }
}

#[test]
fn telephone_broadcast_of_items() {
    let known: [(usize, &[usize]); 7] = [
        (3, &[2, 3, 5, 6, 8, 9, 11, 12]),
        (4, &[2, 3, 4, 5, 6, 7]),
        (5, &[3, 4, 5, 6, 7, 9, 10, 11]),
        (6, &[3, 4, 5, 6, 7, 8]),
        (7, &[3, 4, 6, 7, 8, 9, 10, 11]),
        (9, &[4, 5, 6, 7, 8, 9]),
        (11, &[4, 5, 6]),
    ];
    for (p, rounds) in known {
        for (items, &rounds) in (1..).zip(rounds) {
            if p == 7 && items > 5 && !is_long() {
                continue;
            }
            let problem = Problem::new(BROADCAST, p)
                .ports(Ports::TELEPHONE)
                .items(items);
            assert_eq!(fewest(&problem), rounds, "p = {p}, {items} items");
        }
    }
}

/// Items on unidirectional ports: a formula gives the fewest rounds, and they are enough. Each pair
/// of ranks has a message of a round, but in the first rounds few ranks have anything to send.
#[test]
fn unidirectional_broadcast_of_items() {
    let rows_are_optimal = [
        (3, vec![2, 4, 7]),
        (4, vec![2, 3, 5]),
        (5, vec![2]),
        (6, vec![2, 3]),
        (7, vec![2]),
        (8, vec![2]),
    ];
    for (p, optimal) in rows_are_optimal {
        for items in 2..=8 {
            let problem = Problem::new(BROADCAST, p).ports(Ports::UNI).items(items);
            let found = answer(&problem);
            assert!(found.is_optimal() && found.certificate == Certificate::Formula);
            // An item takes a unit of time.
            let request = Request::broadcast(p, items).ports(Ports::UNI);
            let row = choose::choose(&request.cost(CostModel::new(0.0, 1.0)));
            let row = row.unwrap().time.round() as usize;
            assert!(row >= found.lower, "p = {p}, {items} items");
            assert!(!optimal.contains(&items) || row == found.lower);
        }
    }
}

#[test]
fn odd_gossip_above_the_table() {
    let of = |p| Problem::new(Collective::Allgather, p).ports(Ports::UNI);
    let options = Options {
        stop: &|| true,
        ..Options::default()
    };
    for p in 11..=14 {
        assert!(synthesize(&of(p), &options).unwrap().upper <= Some(7));
    }
    assert!(has(&of(13), 7) && has(&of(17), 8));
}

/// After `t` rounds at most `2^t` ranks have reached the last one, itself included.
#[test]
fn exclusive_scans_take_the_logarithm() {
    for p in 2..=64usize {
        let found = answer(&Problem::new(Collective::Exscan, p));
        let rounds = p.next_power_of_two().ilog2() as usize;
        assert_eq!((found.lower, found.row), (rounds, Some(rounds)), "p = {p}");
    }
}

#[test]
fn scans_of_whole_messages() {
    let of = |kind, p| Problem::new(kind, p).ports(Ports::UNI);
    for (p, rounds) in (5..).zip([3, 4, 4, 4]) {
        assert!(has(&of(Collective::Scan, p), rounds), "scan, p = {p}");
    }
    assert_eq!(fewest(&of(Collective::Scan, 6)), 4);
    for (p, rounds) in [(6, 4), (8, 4)] {
        assert!(has(&of(Collective::Exscan, p), rounds), "exscan, p = {p}");
    }
    for p in [9, 10] {
        assert!(has(&of(Collective::Scan, p), 6) && has(&of(Collective::Exscan, p), 6));
    }
}

#[test]
fn several_ports() {
    let at_three_ports = [(5, 2), (6, 2), (8, 3), (9, 3)];
    for (p, rounds) in at_three_ports {
        for kind in [
            Collective::Barrier,
            Collective::Allgather,
            Collective::Allreduce,
            Collective::Alltoall,
        ] {
            assert!(has(&Problem::new(kind, p).ports(uni(3)), rounds), "p = {p}");
        }
    }
    assert!(has(&Problem::new(Collective::Scan, 9).ports(uni(3)), 3));
    assert!(has(&Problem::new(Collective::Alltoall, 8).ports(uni(2)), 3));
    for (p, rounds) in [(3, 1), (9, 2)] {
        for kind in [Collective::Scan, Collective::Exscan] {
            assert_eq!(
                fewest(&Problem::new(kind, p).ports(Ports::BI.with_k(2))),
                rounds
            );
        }
    }
    let gossip = |p, k| Problem::new(Collective::Allgather, p).ports(uni(k));
    assert!(!has(&gossip(5, 2), 2) && !has(&gossip(7, 3), 2) && !has(&gossip(3, 3), 1));
}

#[test]
fn a_barrier_has_one_item() {
    let problem = Problem::new(Collective::Barrier, 4).items(2);
    let error = synthesize(&problem, &Options::default()).unwrap_err();
    assert!(error.to_string().contains("take 1 item"), "{error}");
}

#[test]
fn a_formula_that_does_not_fit_is_refused() {
    let options = Options {
        max_bytes: 1 << 20,
        ..Options::default()
    };
    let problem = Problem::new(Collective::Alltoall, 16).items(4);
    let error = synthesize(&problem, &options).unwrap_err().to_string();
    assert!(error.contains("MiB"), "{error}");
}

/// Printed schedules are as short, and every item form is correct for every collective.
#[test]
fn every_collective_in_both_forms() {
    use Collective::{Allgather, Allreduce, Alltoall, Barrier, Exscan, Gather, Multicast};
    use Collective::{Reduce, ReduceScatter, Scan, Scatter};
    let all = [
        BROADCAST,
        Reduce { root: 1 },
        Gather { root: 2 },
        Scatter { root: 1 },
        Multicast {
            root: 0,
            targets: vec![1, 3],
        },
        Allgather,
        ReduceScatter,
        Allreduce,
        Alltoall,
        Scan,
        Exscan,
        Barrier,
    ];
    for collective in all {
        for ports in [Ports::UNI, Ports::BI, uni(2), Ports::BI.with_k(2)] {
            for p in [1, 2, 3, 4] {
                if p < 4 && matches!(collective, Multicast { .. })
                    || collective.root().is_some_and(|root| root >= p)
                {
                    continue;
                }
                let problem = Problem::new(collective.clone(), p).ports(ports);
                let whole = fewest(&problem);
                let items = fewest(&problem.clone().items(1));
                assert!(whole <= items, "{problem:?}");
                let states = states::fewest(&collective, p, ports, false);
                assert_eq!(Some(whole), states, "whole messages, {problem:?}");
                if let Some(states) = states::fewest(&collective, p, ports, true).filter(|_| p < 4)
                {
                    assert_eq!(items, states, "items, {problem:?}");
                }
            }
        }
    }
}

/// Schedules take the rounds that are claimed: of every collective, in both forms, with several
/// ports, whatever a short search finds.
#[test]
fn schedules_take_the_rounds_that_are_claimed() {
    use Collective::{Allgather, Allreduce, Alltoall, Barrier, Exscan, Gather, Multicast};
    use Collective::{Reduce, ReduceScatter, Scan, Scatter};
    let (root, targets) = (0, vec![1, 2]);
    let [reduce, gather, scatter] = [Reduce { root }, Gather { root }, Scatter { root }];
    let multicast = Multicast { root, targets };
    let rooted = [BROADCAST, reduce, gather, scatter, multicast];
    let combining = [Allreduce, Scan, Exscan];
    let others = [Allgather, ReduceScatter, Alltoall, Barrier];
    let several = (2..=3).flat_map(|k| [uni(k), Ports::BI.with_k(k)]);
    let known = |ports: &Ports| ports.waits_by_list() || ports.has_calls();
    let models: Vec<_> = (Ports::KINDS.into_iter().filter(known))
        .chain(several)
        .collect();
    let all = [&rooted[..], &combining, &others].concat();
    let mut tried = 0;
    for (collective, ports) in all
        .iter()
        .flat_map(|c| models.iter().map(move |m| (c.clone(), *m)))
    {
        for p in 3..=8 {
            for items in [None, Some(1), Some(2), Some(3)] {
                let is_one = combining.contains(&collective) || collective == Barrier;
                if items > Some(1) && is_one {
                    continue;
                }
                let mut problem = Problem::new(collective.clone(), p).ports(ports);
                problem = items.into_iter().fold(problem, Problem::items);
                // As much as a solver finds in a moment.
                let asked = std::cell::Cell::new(0);
                let stop = || asked.replace(asked.get() + 1) > 500;
                let options = Options {
                    stop: &stop,
                    ..Options::default()
                };
                let found = synthesize(&problem, &options).unwrap();
                let Some(schedule) = found.schedule else {
                    continue;
                };
                tried += 1;
                assert!(schedule.check().is_correct(), "{problem:?}");
                let (takes, says) = (makespan(&schedule), found.upper.unwrap() as f64);
                assert_eq!(takes, says, "{problem:?}");
            }
        }
    }
    assert!(tried > 1000, "{tried} schedules");
}

/// A local step stood between two sends of a round.
#[test]
fn partial_results_are_made_before_the_messages_of_a_round() {
    for (p, k, rounds) in [(4, 2, 2), (7, 3, 2)] {
        let problem = Problem::new(Collective::Allreduce, p).ports(Ports::BI.with_k(k));
        assert_eq!(fewest(&problem.items(1)), rounds, "p = {p}, k = {k}");
    }
}

/// A search looks at its limits from its first step on: there are 7e10 ways to divide 40 rounds
/// among 20 steps.
#[test]
fn a_search_ends_when_it_is_told_to() {
    let problem = Problem::new(Collective::Allgather, 8).items(1).steps(20);
    let asked = std::cell::Cell::new(0);
    let stop = || asked.replace(asked.get() + 1) > 100;
    let options = Options {
        rounds: Some(40),
        stop: &stop,
        ..Options::default()
    };
    let answer = synthesize(&problem, &options).unwrap();
    assert_eq!(answer.upper, None);
    // The number of looks between two steps is limited, too.
    assert!((100..1000).contains(&asked.get()), "{} looks", asked.get());
}

/// Every learnt clause follows from those before it by unit propagation, up to the empty one; and
/// another solver, if there is one, refutes the formula.
#[test]
fn proofs_are_accepted() {
    let options = Options {
        prove: true,
        rounds: Some(4),
        ..Options::default()
    };
    let problem = Problem::new(Collective::Allgather, 5)
        .ports(Ports::UNI)
        .items(1);
    let answer = synthesize(&problem, &options).unwrap();
    let telephone = Problem::new(Collective::Allgather, 7).ports(Ports::TELEPHONE);
    let options = Options {
        rounds: Some(3),
        ..options
    };
    let other = synthesize(&telephone, &options).unwrap();
    let mut checked = 0;
    for answer in [answer, other] {
        let Certificate::Refuted { proofs, .. } = &answer.certificate else {
            continue;
        };
        for (dimacs, drat) in proofs {
            assert!(accepts(dimacs, drat));
            assert!(!accepts(dimacs, "0\n"), "the formula needs a proof");
            checked += 1;
            let name = std::env::temp_dir().join(format!("oneport-{}", std::process::id()));
            let [formula, proof] = ["cnf", "drat"].map(|kind| name.with_extension(kind));
            std::fs::write(&formula, dimacs).unwrap();
            std::fs::write(&proof, drat).unwrap();
            // Solvers refute the formula, a checker verifies the proof.
            for (program, says) in [
                ("cadical", "s UNSATISFIABLE"),
                ("picosat", "s UNSATISFIABLE"),
                ("drat-trim", "s VERIFIED"),
            ] {
                let mut command = std::process::Command::new(program);
                command.arg(&formula);
                if program == "drat-trim" {
                    command.arg(&proof);
                }
                match command.output() {
                    Ok(output) => {
                        let output = String::from_utf8_lossy(&output.stdout).into_owned();
                        assert!(output.contains(says), "{program}: {output}");
                    }
                    // Past the capture of tests, too.
                    Err(_) => {
                        let skipped = format!("SKIPPED: there is no `{program}` to compare with\n");
                        let _ =
                            std::io::Write::write_all(&mut std::io::stderr(), skipped.as_bytes());
                    }
                }
            }
            for file in [formula, proof] {
                let _ = std::fs::remove_file(file);
            }
        }
    }
    assert!(checked > 0);
}

fn clauses(text: &str) -> Vec<Vec<i32>> {
    let lines = text
        .lines()
        .filter(|line| !line.starts_with(['p', 'c', 'd']));
    let literals = |line: &str| {
        let numbers = line.split_whitespace().map(|n| n.parse().unwrap());
        numbers.filter(|&n| n != 0).collect()
    };
    lines.map(literals).collect()
}

/// Checks a proof by reverse unit propagation, as slowly as may be.
fn accepts(dimacs: &str, drat: &str) -> bool {
    let mut known = clauses(dimacs);
    for lemma in clauses(drat) {
        let mut true_literals: std::collections::HashSet<i32> = lemma.iter().map(|l| -l).collect();
        let mut conflict = false;
        let mut grows = true;
        while grows && !conflict {
            grows = false;
            for clause in &known {
                if clause.iter().any(|l| true_literals.contains(l)) {
                    continue;
                }
                let mut open = clause.iter().filter(|&l| !true_literals.contains(&-l));
                match (open.next(), open.next()) {
                    (None, _) => conflict = true,
                    (Some(&unit), None) => grows |= true_literals.insert(unit),
                    _ => {}
                }
            }
        }
        if !conflict {
            return false;
        }
        known.push(lemma);
    }
    known.last().is_some_and(Vec::is_empty)
}

/// Allreduces whose ranks all combine in one tree: a message with all that its sender knows, or
/// with one partial result.
#[test]
fn allreduce_in_one_tree() {
    let bits = |answer: &Answer| {
        let report = answer.schedule.as_ref().unwrap().check();
        let bits = report.bits().expect("a reduction").clone();
        assert!(bits.same_on_all_ranks && bits.trees == 1, "{bits:?}");
    };
    // Only 7 ranks take a round more than ceil(log2 p) if messages have one partial result.
    for (p, fewest) in (2..).zip([1, 2, 2, 3, 3, 4, 3]) {
        let problem = Problem::new(Collective::Allreduce, p).same_bits(true);
        let all = answer(&problem);
        bits(&all);
        assert!(all.is_optimal());
        let one = answer(&problem.items(1));
        bits(&one);
        assert!(one.is_optimal());
        let log2 = p.next_power_of_two().trailing_zeros() as usize;
        assert_eq!([all.lower, one.lower], [log2, fewest], "{p} ranks");
    }
}
