//! Tests of cost models: levels of links, the nodes that they show, and costs in pieces.

use oneport::machine::{Links, Piece, Pieces};
use oneport::plan::{Segments, registry};
use oneport::{CostModel, Kind, Request};

fn expanded(text: &str) -> Result<Links, String> {
    Links::from_json(text).map_err(|e| e.to_string())
}

#[test]
fn the_innermost_common_group_counts() {
    let links = expanded(
        r#"{"levels": [
            {"groups": [[0, 4], [1, 2]], "alpha": 1, "beta": 10},
            {"groups": [[3, 4, 0], [2, 1], []], "alpha": 2, "beta": 20},
            {"groups": [[0, 1, 2, 3, 4]], "alpha": 3, "beta": 30}],
            "gamma": [1, 2, 3, 4, 5]}"#,
    )
    .unwrap();
    let expected = [
        [1, 3, 3, 2, 1],
        [3, 1, 1, 3, 3],
        [3, 1, 1, 3, 3],
        [2, 3, 3, 2, 2],
        [1, 3, 3, 2, 1],
    ];
    for (from, row) in expected.iter().enumerate() {
        for (to, &level) in row.iter().enumerate() {
            // A rank on its own is in a group with itself.
            let alpha = Some(f64::from(level));
            assert_eq!(links.alpha[from][to], alpha, "{from} to {to}");
            assert_eq!(links.beta[from][to], alpha.map(|x| 10.0 * x));
        }
    }
    assert_eq!(links.gamma, [1.0, 2.0, 3.0, 4.0, 5.0]);
}

#[test]
fn ranks_without_a_common_group_have_no_link() {
    let links = expanded(r#"{"levels": [{"groups": [[0, 1], [2, 3]], "alpha": 1, "beta": 0}]}"#);
    let links = links.unwrap();
    assert_eq!(links.alpha[0], [Some(1.0), Some(1.0), None, None]);
}

#[test]
fn levels_without_groups_are_of_the_given_number_of_ranks() {
    let one = r#"{"levels": [{"alpha": 1, "beta": 2}], "gamma": [1, 2, 3]}"#;
    let grouped =
        r#"{"levels": [{"groups": [[0, 1, 2]], "alpha": 1, "beta": 2}], "gamma": [1, 2, 3]}"#;
    let links = Links::from_json(grouped).unwrap();
    assert_eq!(Links::for_ranks(one, Some(3)).unwrap(), links);
    // Groups say themselves how many ranks there are.
    assert_eq!(Links::for_ranks(grouped, Some(5)).unwrap(), links);
    for ranks in [None, Some(0)] {
        let error = Links::for_ranks(one, ranks).unwrap_err().to_string();
        assert!(error.contains("give the number of ranks"), "{error}");
    }
    let error = Links::for_ranks(one, Some(5000)).unwrap_err().to_string();
    assert!(error.contains("at most 4096 ranks"), "{error}");
}

#[test]
fn levels_that_contradict_each_other_are_refused() {
    for (levels, why) in [
        ("[]", "no group names a rank"),
        (r#"[{"alpha": 1, "beta": 1}]"#, "no group names a rank"),
        (
            r#"[{"groups": [[0, 4096]], "alpha": 1, "beta": 1}]"#,
            "rank 4096 of at most 4096 ranks",
        ),
        (
            r#"[{"groups": [[0, 2]], "alpha": 1, "beta": 1}]"#,
            "rank 1 is in no group",
        ),
        (
            r#"[{"groups": [[0, 1], [1]], "alpha": 1, "beta": 1}]"#,
            "level 0: rank 1 is named twice",
        ),
        (
            r#"[{"groups": [[0, 1]], "alpha": 1, "beta": 1}, {"groups": [[0], [1]], "alpha": 1, "beta": 1}]"#,
            "level 1: no group holds ranks 0 and 1, which level 0 has in one group",
        ),
        (
            r#"[{"groups": [[0, 1]], "alpha": 1, "beta": 1}, {"groups": [[0, 2]], "alpha": 1, "beta": 1}]"#,
            "level 1: no group holds ranks 0 and 1",
        ),
        (r#"[{"groups": [[0]], "alpha": 1}]"#, "missing field `beta`"),
        (
            r#"[{"groups": [[0, 1]], "alpha": 1, "beta": 1}, {"alpha": 1, "beta": -2}]"#,
            "level 1: beta is -2.0: a cost is finite and not negative",
        ),
    ] {
        let error = expanded(&format!(r#"{{"levels": {levels}}}"#)).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
    let both = r#"{"levels": [{"groups": [[0]], "alpha": 1, "beta": 1}], "alpha": [[0]]}"#;
    assert!(
        expanded(both)
            .unwrap_err()
            .contains("levels replace alpha and beta")
    );
}

fn cost(levels: &str) -> CostModel {
    let links = Links::from_json(&format!(r#"{{"levels": {levels}}}"#)).unwrap();
    CostModel::heterogeneous(links).unwrap()
}

#[test]
fn nodes_are_the_groups_within_the_outermost_level() {
    let three = cost(
        r#"[{"groups": [[0, 1], [2, 3], [4, 5]], "alpha": 1, "beta": 1},
            {"groups": [[0, 1, 2, 3], [4, 5, 6, 7]], "alpha": 2, "beta": 1},
            {"alpha": 3, "beta": 1}]"#,
    );
    let nodes = vec![vec![0, 1, 2, 3], vec![4, 5, 6, 7]];
    assert_eq!(three.nodes(8).unwrap(), nodes);
    // Fewer ranks than the costs describe: those beyond are left out.
    assert_eq!(three.nodes(5).unwrap(), [vec![0, 1, 2, 3], vec![4]]);
    let levels = three.levels(8).unwrap();
    assert_eq!(levels.count(), 3);
    let of_zero: Vec<_> = (1..8).map(|rank| levels.of(0, rank)).collect();
    assert_eq!(of_zero, [0, 1, 1, 2, 2, 2, 2]);
    assert_eq!([levels.of(4, 5), levels.of(6, 7)], [0, 1]);
    assert_eq!(CostModel::new(1.0, 1.0).levels(8), None);
    let within = three.among(&nodes[1]).unwrap();
    assert_eq!(within.nodes(4).unwrap(), [vec![0, 1], vec![2], vec![3]]);
    assert_eq!(three.among(&[0, 4]).unwrap(), CostModel::new(3.0, 1.0));
    assert_eq!(three.among(&[5]).unwrap(), CostModel::new(0.0, 0.0));
    // One node, and nodes of one rank, are no nodes.
    assert_eq!(three.nodes(1), None);
    assert_eq!(three.nodes(2), None);
    assert_eq!(CostModel::new(1.0, 1.0).nodes(8), None);
    assert_eq!(
        cost(r#"[{"groups": [[0, 1, 2]], "alpha": 1, "beta": 1}]"#).nodes(3),
        None
    );
    // Without links between the groups nothing can be composed.
    assert_eq!(
        cost(r#"[{"groups": [[0, 1], [2, 3]], "alpha": 1, "beta": 1}]"#).nodes(4),
        None
    );
}

#[test]
fn costs_of_two_directions_and_of_ranks_are_kept() {
    let links = Links {
        alpha: vec![
            vec![None, Some(1.0), Some(9.0)],
            vec![Some(2.0), None, Some(9.0)],
            vec![Some(9.0), Some(9.0), None],
        ],
        beta: vec![vec![Some(1.0); 3]; 3],
        gamma: vec![1.0, 1.0, 2.0],
        gamma_copy: Vec::new(),
        ..Links::default()
    };
    let cost = CostModel::heterogeneous(links).unwrap().overlap(true);
    assert_eq!(cost.nodes(3).unwrap(), [vec![0, 1], vec![2]]);
    let pair = cost.among(&[1, 0]).unwrap();
    assert_eq!(pair.transfer(0, 1, 1), 3.0);
    assert_eq!(pair.transfer(1, 0, 1), 2.0);
    assert!(pair.overlaps());
    let far = cost.among(&[0, 2]).unwrap();
    assert_eq!([far.combine(0, 1), far.combine(1, 1)], [1.0, 2.0]);
    assert!(far.links().is_some());
}

fn piece(from: u64, alpha: f64, beta: f64) -> Piece {
    Piece { from, alpha, beta }
}

/// Start-up times that rise while the time per byte falls, then a higher time per byte again.
fn pieces() -> Pieces {
    Pieces {
        transfer: vec![
            piece(0, 10.0, 2.0),
            piece(100, 110.0, 1.0),
            piece(1000, -890.0, 2.0),
        ],
        combine: vec![piece(0, 0.0, 1.0), piece(100, 75.0, 0.25)],
        combine_local: Vec::new(),
        copy: Vec::new(),
    }
}

#[test]
fn min_rates_are_attained_lower_bounds() {
    let cost = CostModel::new(1.0, 1.0).pieces(pieces()).unwrap();
    let (alpha, beta, gamma) = cost.min_rates();
    assert_eq!((alpha, beta, gamma), (10.0, 1.11, 0.25));
    for n in 1..5000 {
        assert!(cost.transfer(0, 1, n) >= alpha.max(beta * n as f64 * (1.0 - 1e-12)));
        assert!(cost.combine(0, n) >= gamma * n as f64);
    }
    let lines = cost.lines_below();
    assert!(lines.contains(&(11.0, 1.0)), "{lines:?}");
    for (alpha, beta) in lines {
        for n in 1..5000 {
            let below = (alpha + beta * n as f64) * (1.0 - 1e-12);
            assert!(cost.transfer(0, 1, n) >= below);
        }
    }
    assert_eq!(
        CostModel::new(3.0, 2.0).gamma(1.0).min_rates(),
        (3.0, 2.0, 1.0)
    );
}

#[test]
fn times_are_never_negative() {
    // Far below 0, and below 0 by an amount that looks like rounding.
    for second in [piece(1000, -1e308, 0.1), piece(1000, -1e15 - 1e3, 1e12)] {
        for first in [piece(0, 10.0, 2.0), piece(0, 0.0, 0.0)] {
            let pieces = Pieces {
                transfer: vec![first, second],
                ..Pieces::default()
            };
            assert!(CostModel::new(1.0, 1.0).pieces(pieces).is_err());
        }
    }
}

#[test]
fn setting_a_rate_replaces_its_pieces() {
    let cost = CostModel::new(1.0, 1.0)
        .pieces(pieces())
        .unwrap()
        .gamma(0.0);
    assert_eq!(cost.combine(0, 500), 0.0);
    assert_eq!(cost.transfer(0, 1, 50), 110.0);
    assert_eq!(cost.copy(0, 50), 0.0);
    let linear = CostModel::new(1.0, 1.0).pieces(Pieces::default()).unwrap();
    assert!(linear.linear().is_some());
    assert_eq!(linear, CostModel::new(1.0, 1.0));
}

#[test]
fn setting_a_rate_sets_it_for_every_rank_of_a_platform() {
    let square = vec![vec![Some(1.0); 3]; 3];
    let cost = CostModel::heterogeneous(Links {
        alpha: square.clone(),
        beta: square,
        gamma: vec![1.0, 2.0, 3.0],
        gamma_copy: Vec::new(),
        ..Links::default()
    });
    let cost = cost.unwrap().gamma(5.0).gamma_copy(7.0);
    for rank in 0..3 {
        assert_eq!((cost.combine(rank, 2), cost.copy(rank, 2)), (10.0, 14.0));
    }
    assert_eq!(cost.transfer(0, 1, 2), 3.0);
}

#[test]
fn every_algorithm_is_timed_in_pieces() {
    let cost = CostModel::new(1.0, 1.0).pieces(pieces()).unwrap();
    for algorithm in registry::all() {
        for (p, m, segment) in [(4, 960, 960), (7, 960, 40), (8, 2000, 500), (2, 30, 7)] {
            let mut request = Request::new(algorithm.collective, p, m).cost(cost.clone());
            if algorithm.segmented {
                request = request.segments(Segments::of_size(m, segment).unwrap());
            }
            if algorithm.accepts(&request).is_err() {
                continue;
            }
            let schedule = algorithm.plan(&request).unwrap();
            let time = schedule.simulate(&cost).unwrap().makespan();
            let mut closed = request.clone();
            if !algorithm.collective.reduces() {
                closed = closed.cost(cost.clone().gamma(0.0));
            }
            if let Some(closed) = algorithm.closed_form(&closed) {
                let off = (closed / time - 1.0).abs();
                assert!(off < 1e-9, "{} {p} {m} {closed} {time}", algorithm.name());
            }
            let bound = schedule.lower_bound(&cost).largest;
            assert!(bound <= time * (1.0 + 1e-9), "{} {p} {m}", algorithm.name());
        }
    }
    // Where no closed form exists, the best segment is searched for.
    let mut request = Request::broadcast(6, 3000).cost(cost);
    let chain = registry::find(Kind::Broadcast, "chain").unwrap();
    let best = oneport::plan::choose::with_best_segments(&chain, &request).unwrap();
    for segment in (10..3000).step_by(37) {
        request = request.segments(Segments::of_size(3000, segment).unwrap());
        let time = chain.time(&request).unwrap();
        assert!(best.time <= time * 1.02, "{segment}: {time} {}", best.time);
    }
}
