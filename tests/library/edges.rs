//! Tests of extreme input to the library, such as no ranks, one rank, huge sizes and invalid costs:
//! the library returns results or errors and never panics.

use std::time::Duration;

use oneport::check::Options;
use oneport::machine::Links;
use oneport::plan::Segments;
use oneport::plan::choose::with_best_segments;
use oneport::plan::registry::{self, Algorithm};
use oneport::run::{Operator, Run, Team, inputs, oracle};
use oneport::simulate::Prepared;
use oneport::simulate::bounds::lower_bound;
use oneport::{Collective, CostModel, Error, Kind, Layout, Ports, Request, Schedule, Span, Step};

use crate::support::cases::cases;
use crate::support::sample::Sample;

const PORTS: [Ports; 2] = [Ports::UNI, Ports::BI];

fn refused(result: Result<Schedule, Error>, expected: &str) {
    let error = result.expect_err(expected);
    assert!(error.is_usage(), "{error}");
    assert!(
        error.to_string().contains(expected),
        "'{error}' does not contain '{expected}'"
    );
}

/// Links between all pairs of `n` ranks, with all costs 1.
fn links(n: usize) -> Links {
    Links {
        alpha: vec![vec![Some(1.0); n]; n],
        beta: vec![vec![Some(1.0); n]; n],
        gamma: vec![],
        gamma_copy: vec![],
        ..Links::default()
    }
}

#[test]
fn invalid_ranks_roots_and_ports_are_refused() {
    for a in registry::all() {
        refused(
            a.plan(&Request::new(a.collective, 0, 10)),
            "at least one rank",
        );
        for (p, root) in [(1, 1), (4, 4), (4, usize::MAX)] {
            let request = Request::new(a.collective, p, 10).root(root);
            refused(a.plan(&request), &format!("root {root}"));
        }
        refused(
            a.plan(&Request::new(a.collective, usize::MAX, 10)),
            &usize::MAX.to_string(),
        );
        refused(
            a.plan(&Request::new(a.collective, (1 << 32) + 1, 10)),
            "ranks",
        );
        for ports in PORTS {
            let mut request = Request::new(a.collective, 4, 10).ports(ports);
            if a.ports.allow(ports) {
                request = request.ports(ports.with_k(0));
                refused(a.plan(&request), "port");
            } else {
                refused(a.plan(&request), "choose");
            }
        }
    }
}

#[test]
fn refusals_of_rank_order_name_algorithms_that_keep_it() {
    for a in registry::all() {
        for ports in PORTS {
            let request = Request::new(a.collective, 6, 10)
                .ports(ports)
                .keep_order(true);
            if !a.ports.allow(ports) || !a.commutative_only || !a.collective.reduces() {
                continue;
            }
            let error = a.plan(&request).unwrap_err().to_string();
            let Some((_, names)) = error.split_once("choose ") else {
                let keeps_order =
                    |b: &registry::Algorithm| !b.commutative_only && b.ports.allow(ports);
                assert!(!registry::of(a.collective).any(keeps_order), "{error}");
                continue;
            };
            assert!(!names.is_empty());
            for name in names.split(", ") {
                let other = registry::find(a.collective, name).unwrap();
                other.plan(&request).unwrap();
            }
        }
    }
}

#[test]
fn negative_and_non_finite_costs_are_refused() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0] {
        let models = [
            CostModel::new(bad, 1.0),
            CostModel::new(1.0, bad),
            CostModel::new(1.0, 1.0).gamma(bad),
            CostModel::new(1.0, 1.0).gamma_copy(bad),
        ];
        for cost in models {
            for a in registry::all() {
                let request = Request::new(a.collective, 4, 10).cost(cost.clone());
                if a.ports.allow(request.get_ports()) {
                    refused(a.plan(&request), "finite and not negative");
                }
            }
            let schedule = plan(4, 10);
            assert!(schedule.simulate(&cost).unwrap_err().is_usage());
            assert!(run(&schedule, &cost).unwrap_err().is_usage());
        }
        for place in 0..4 {
            let mut links = links(2);
            links.gamma = vec![0.0; 2];
            links.gamma_copy = vec![0.0; 2];
            match place {
                0 => links.alpha[0][1] = Some(bad),
                1 => links.beta[1][0] = Some(bad),
                2 => links.gamma[1] = bad,
                _ => links.gamma_copy[0] = bad,
            }
            let error = CostModel::heterogeneous(links).unwrap_err();
            assert!(error.to_string().contains("not a time"), "{error}");
        }
    }
}

fn plan(p: usize, elements: usize) -> Schedule {
    Request::reduce(p, elements).plan("binomial").unwrap()
}

fn run(schedule: &Schedule, cost: &CostModel) -> Result<(), Error> {
    let operator = Operator::<u8>::named("sum").unwrap();
    let data = inputs(schedule.collective(), schedule.layout(), &operator);
    let mut team = Team::new(schedule.ranks())?;
    Run::new(schedule)
        .op(&operator)
        .inputs(&data)
        .cost(cost.clone())
        .on(&mut team)
        .map(drop)
}

#[test]
fn cost_matrices_of_the_wrong_shape_are_refused() {
    let ragged = Links {
        alpha: vec![vec![Some(1.0); 2], vec![Some(1.0)]],
        ..links(2)
    };
    let wide = Links {
        beta: vec![vec![Some(1.0); 3]; 2],
        ..links(2)
    };
    let longer = Links {
        beta: links(3).beta,
        ..links(2)
    };
    let rates = Links {
        gamma: vec![1.0; 3],
        ..links(2)
    };
    for bad in [ragged, wide, longer, rates] {
        assert!(CostModel::heterogeneous(bad).unwrap_err().is_usage());
    }
}

#[test]
fn costs_for_too_few_ranks_are_refused() {
    for n in 0..4 {
        let cost = CostModel::heterogeneous(links(n)).unwrap();
        for p in 1..6 {
            let schedule = plan(p, 10);
            let prepared = Prepared::new(&schedule, false).unwrap();
            for a in registry::all() {
                for ports in PORTS {
                    let request = Request::new(a.collective, p, 10)
                        .cost(cost.clone())
                        .ports(ports);
                    if !a.ports.allow(ports) || a.uniform_links_only {
                    } else if n < p {
                        refused(a.plan(&request), &format!("describe {n} ranks"));
                        assert!(with_best_segments(a, &request).is_err());
                        assert!(a.time(&request).is_err());
                    } else {
                        a.plan(&request).unwrap();
                        let time = a.time(&request).unwrap();
                        assert!(time.is_finite());
                        assert!(with_best_segments(a, &request).unwrap().time <= time);
                    }
                }
            }
            if n < p {
                let error = prepared.simulate(&cost).unwrap_err().to_string();
                assert!(error.contains(&format!("describe {n} ranks")), "{error}");
                let error = run(&schedule, &cost).unwrap_err().to_string();
                assert!(error.contains(&format!("describe {n} ranks")), "{error}");
                // The pass alone does not validate the costs: a missing link takes infinite time.
                let mut finish = vec![0.0; prepared.nodes().len()];
                let time = prepared.simulate_into(&cost, &mut finish);
                assert_eq!(time.is_infinite(), p > 1);
            } else {
                prepared.simulate(&cost).unwrap();
                run(&schedule, &cost).unwrap();
            }
            let worst = Request::reduce(p, 10).cost(cost.clone());
            let times = [
                worst.transfer_time(3),
                worst.combine_time(3),
                worst.transfer_time(0),
            ];
            assert!(times.iter().all(|t| t.is_finite()));
        }
    }
}

#[test]
fn missing_links_are_refused_unless_the_message_is_empty() {
    let mut links = links(3);
    links.alpha[1][0] = None;
    let cost = CostModel::heterogeneous(links).unwrap();
    let schedule = plan(3, 10);
    let error = schedule.simulate(&cost).unwrap_err().to_string();
    assert!(error.contains("rank 1 sends to rank 0"), "{error}");
    assert_eq!(run(&schedule, &cost).unwrap_err().to_string(), error);
    // An empty message needs no link.
    let schedule = plan(3, 0);
    assert_eq!(schedule.simulate(&cost).unwrap().makespan(), 0.0);
    run(&schedule, &cost).unwrap();
}

#[test]
fn segments_are_validated_and_counted() {
    assert!(Segments::of_size(10, 0).unwrap_err().is_usage());
    assert!(Segments::of_count(10, 0).unwrap_err().is_usage());
    assert!(Segments::of_sizes(vec![]).unwrap_err().is_usage());
    assert!(Segments::of_sizes(vec![usize::MAX, 1]).is_err());
    assert!(Segments::of_size(usize::MAX, 1).unwrap_err().is_usage());
    assert!(
        Segments::of_count(usize::MAX, usize::MAX)
            .unwrap_err()
            .is_usage()
    );
    for (elements, segment, count) in [(0, 5, 1), (3, 5, 1), (10, usize::MAX, 1), (11, 5, 3)] {
        let segments = Segments::of_size(elements, segment).unwrap();
        assert_eq!((segments.count(), segments.elements()), (count, elements));
    }
    for (elements, requested, count) in [(0, 7, 1), (3, 7, 3), (10, usize::MAX, 10), (7, 3, 3)] {
        let segments = Segments::of_count(elements, requested).unwrap();
        assert_eq!((segments.count(), segments.elements()), (count, elements));
    }
    let many = Segments::of_size(1 << 21, 1).unwrap();
    for a in registry::all().iter().filter(|a| a.segmented) {
        let ports = [Ports::UNI, Ports::BI][usize::from(a.ports.allow(Ports::BI))];
        let request = Request::new(a.collective, 1000, 0)
            .segments(many.clone())
            .ports(ports);
        refused(a.plan(&request), "larger segments");
    }
}

#[test]
fn one_rank_and_empty_vectors_take_no_time() {
    let mut teams: Vec<Team> = (1..=5).map(|p| Team::new(p).unwrap()).collect();
    for a in registry::all() {
        let sizes = [(1, 0), (1, 9), (3, 0), (5, 0), (1, 1), (2, 0)];
        for &(p, elements) in &sizes[..cases(3, sizes.len())] {
            if p > 1 && !a.collective.has_data() {
                // Its messages take alpha.
                continue;
            }
            for ports in PORTS {
                for keep_order in [false, true] {
                    let request = Request::new(a.collective, p, elements)
                        .segment_count(4)
                        .ports(ports)
                        .keep_order(keep_order);
                    if a.accepts(&request).is_err() {
                        continue;
                    }
                    let schedule = a.plan(&request).unwrap();
                    let options = Options {
                        keep_order,
                        ..Options::default()
                    };
                    let report = schedule.check_with(&options);
                    assert!(
                        report.is_correct(),
                        "{} p={p} m={elements}: {report}",
                        a.name()
                    );
                    let time = schedule.simulate(request.get_cost()).unwrap().makespan();
                    assert_eq!(time, 0.0, "{} p={p} m={elements}", a.name());
                    assert_eq!(a.time(&request).unwrap(), 0.0);
                    with_best_segments(a, &request).unwrap();
                    let stats = schedule.stats().unwrap();
                    assert_eq!((stats.messages, stats.elements), (0, 0));
                    assert_eq!(
                        lower_bound(a.collective, ports, p, elements, 1, request.get_cost())
                            .largest,
                        0.0
                    );
                    let operator = Operator::<i64>::named("sum").unwrap();
                    let data = inputs(schedule.collective(), schedule.layout(), &operator);
                    let expected =
                        oracle(schedule.collective(), schedule.layout(), &operator, &data);
                    let outcome = Run::new(&schedule)
                        .op(&operator)
                        .inputs(&data)
                        .on(&mut teams[p - 1])
                        .unwrap();
                    assert_eq!(outcome.outputs, expected.unwrap());
                    assert_eq!(outcome.model_time, 0.0);
                }
            }
        }
    }
}

/// Vectors larger than any memory, up to 2^60 elements, are still planned, checked and simulated.
#[test]
fn vectors_larger_than_memory_are_planned_and_simulated() {
    let sizes = [
        (1 << 32) + 1,
        1 << 60,
        usize::MAX,
        1 << 32,
        1 << 53,
        (1 << 60) - 1,
        usize::MAX - 1,
    ];
    let mut sample = Sample::each(3);
    for a in registry::all() {
        for &elements in &sizes[..cases(3, sizes.len())] {
            for ports in PORTS {
                for p in cases(vec![1, 3, 8], vec![1, 2, 3, 7, 8]) {
                    let mut request = Request::new(a.collective, p, elements)
                        .segment_count(5)
                        .ports(ports);
                    // Those that search for the algorithms of their phases do so for every size.
                    if !a.ports.allow(ports) || a.planning_work > 4 && p != 3 || !sample.takes() {
                        continue;
                    }
                    if elements > 1 << 60 {
                        refused(a.plan(&request), "2^60");
                        continue;
                    }
                    if a.collective.has_blocks()
                        && elements.checked_mul(p).is_none()
                        && a.accepts(&request).is_err()
                    {
                        refused(a.plan(&request), "overflow");
                        continue;
                    }
                    for element_bytes in [1, 8, u64::MAX] {
                        request = request.element_bytes(element_bytes);
                        if let Some(time) = a.closed_form(&request) {
                            assert!(time >= 0.0);
                        }
                        // A byte count that overflows is an error, not a wrong time.
                        match a.time(&request) {
                            Ok(time) => assert!(time >= 0.0, "{time}"),
                            Err(error) => assert!(error.is_usage(), "{error}"),
                        }
                        let bound = lower_bound(
                            a.collective,
                            ports,
                            p,
                            elements,
                            element_bytes,
                            request.get_cost(),
                        );
                        assert!(bound.largest >= 0.0);
                    }
                    let schedule = match a.plan(&request) {
                        Ok(schedule) => schedule,
                        Err(error) => {
                            assert!(
                                error.is_usage() && request.get_element_bytes() == u64::MAX,
                                "{error}"
                            );
                            continue;
                        }
                    };
                    let report = schedule.check();
                    assert!(
                        report.is_correct() || elements == usize::MAX,
                        "{} p={p} m={elements}: {report}",
                        a.name()
                    );
                    let schedule = schedule.with_element_bytes(u64::MAX);
                    let simulation = schedule.simulate(request.get_cost()).unwrap();
                    assert!(simulation.makespan().is_finite());
                    let _ = schedule.stats().unwrap();
                    let has_reverse = schedule.collective().reversed().is_some();
                    assert!(schedule.reversed().is_ok() || !has_reverse);
                }
            }
        }
    }
}

#[test]
fn best_segments_of_huge_vectors_are_found_or_refused() {
    // These two take seconds each, because they search by simulation.
    let quick = |a: &&Algorithm| !["two-tree", "binary"].contains(&&*a.name());
    for a in registry::of(Kind::Reduce).filter(quick) {
        for elements in [usize::MAX - 1, usize::MAX] {
            let request = Request::reduce(3, elements).ports(if a.ports.allow(Ports::BI) {
                Ports::BI
            } else {
                Ports::UNI
            });
            match with_best_segments(a, &request) {
                Ok(best) => assert!(best.request.get_segments().count() > 0 && best.time > 0.0),
                Err(refusal) => assert!(Error::from(refusal).is_usage()),
            }
        }
    }
}

#[test]
fn buffers_larger_than_memory_are_refused() {
    let mut team = Team::new(2).unwrap();
    let operator = Operator::<u64>::named("sum").unwrap();
    for len in [usize::MAX, usize::MAX / 16, 1 << 56] {
        let small = Span::new(0, 4);
        let layout = |len, input: Option<Span>| Layout {
            len,
            input: input.into_iter().collect(),
            output: small.into(),
        };
        let schedule = Schedule::new(
            Ports::BI,
            Collective::Broadcast { root: 0 },
            vec![layout(4, Some(small)), layout(len, None)],
            vec![vec![Step::send(1, small)], vec![Step::recv(0, small)]],
        )
        .unwrap();
        assert!(schedule.check().is_correct());
        let data = vec![vec![1, 2, 3, 4], vec![]];
        let error = Run::new(&schedule)
            .op(&operator)
            .inputs(&data)
            .deadline(Duration::from_millis(500))
            .on(&mut team)
            .unwrap_err();
        assert!(error.to_string().contains("memory"), "{error}");
    }
    assert!(Team::new(usize::MAX).unwrap_err().is_usage());
    assert!(Team::new(0).unwrap_err().is_usage());
}

#[test]
fn overflowing_spans_are_refused_or_saturate() {
    for span in [
        Span::new(usize::MAX, 1),
        Span::new(1, usize::MAX),
        Span::new(usize::MAX, usize::MAX),
    ] {
        let layout = Layout {
            len: usize::MAX,
            ..Layout::default()
        };
        let parts = (vec![layout; 2], vec![vec![Step::send(1, span)], vec![]]);
        let schedule = Schedule::new(Ports::BI, Collective::Allgather, parts.0, parts.1);
        refused(schedule, "leaves the buffer");
    }
    // Each span covers the whole buffer, so the length of all three saturates.
    let everything = [Span::new(0, usize::MAX); 3];
    let layout = Layout {
        len: usize::MAX,
        ..Layout::default()
    };
    let spans = || everything.iter().copied().collect::<oneport::Spans>();
    let schedule = Schedule::new(
        Ports::BI,
        Collective::Allgather,
        vec![layout; 2],
        vec![vec![Step::send(1, spans())], vec![Step::recv(0, spans())]],
    )
    .unwrap();
    assert!(!schedule.check().is_correct());
    let time = schedule
        .clone()
        .with_element_bytes(u64::MAX)
        .simulate(&CostModel::new(1.0, 1.0))
        .unwrap()
        .makespan();
    assert!(time.is_finite());
    schedule.stats().unwrap();
}
