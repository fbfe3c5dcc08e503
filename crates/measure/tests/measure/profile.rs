//! Tests of profiles: their costs, their files and broken ones.

use oneport::machine::{Eager, Level, Links, Piece, Pieces};
use oneport::plan::choose::choose;
use oneport::run::{Op, Run, Team, Tuning, Workers};
use oneport::{CostModel, Request};
use oneport_measure::estimate::choose_native;
use oneport_measure::{Machine, Point, Profile, now};

#[test]
fn a_profile_overrides_constants_of_the_machine() {
    let profile = |tuning: &str| {
        let text = r#"{"alpha": 250, "beta": 0.03, "tuning": "#;
        Profile::from_json(&format!("{text}{tuning}}}"))
    };
    let overridden = profile(r#"{"cold_copy_factor": 3, "own_work_ns": 40}"#).unwrap();
    let core_model = overridden.core_model(Workers::Cores, 4, 2).unwrap();
    assert_eq!(core_model.overhead, 40.0);
    assert_eq!(core_model.tuning.cold_copy_factor, 3.0);
    let default = Tuning::default();
    assert_eq!(core_model.tuning.fresh_factor, default.fresh_factor);
    assert_eq!(Profile::from_json(&overridden.to_json()), Ok(overridden));
    assert!(!profile("{}").unwrap().to_json().contains("tuning"));
    for (wrong, word) in [
        (r#"{"fresh_factor": -1}"#, "fresh_factor"),
        (r#"{"colour": 1}"#, "colour"),
        (r#"{"min_stream_bytes": 0.5}"#, "a whole number"),
    ] {
        let error = profile(wrong).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
}

fn sample() -> Profile {
    let piece = |from, alpha, beta| Piece { from, alpha, beta };
    let mut profile = Profile::from_json(r#"{"alpha": 250, "beta": 0.03, "gamma": 0.01}"#).unwrap();
    profile.machine = Machine::this();
    profile.cores = vec![0, 1];
    profile.date = now();
    profile.pieces = Some(Pieces {
        transfer: vec![piece(0, 300.0, 0.1), piece(1000, 380.0, 0.02)],
        ..Pieces::default()
    });
    profile.pairs = Some(Links {
        alpha: vec![vec![None, Some(250.0)], vec![Some(250.0), None]],
        beta: vec![vec![None, Some(0.03)], vec![Some(0.03), None]],
        gamma: vec![0.01; 2],
        gamma_copy: vec![0.0; 2],
        ..Links::default()
    });
    profile.points = vec![Point {
        bytes: 10,
        time: 300.0,
        predicted: 301.0,
        residual: 1.0 / 300.0,
    }];
    profile.warnings = vec!["noisy".into()];
    profile
}

#[test]
fn round_trip() {
    let profile = sample();
    // Such as 2025-01-31T23:59:59Z.
    assert!(profile.date.len() == 20 && profile.date.ends_with('Z'));
    assert_eq!(Profile::from_json(&profile.to_json()).unwrap(), profile);
}

#[test]
fn pieces_determine_the_cost() {
    let cost = sample().cost().unwrap();
    assert_eq!(cost.transfer(0, 1, 0), 0.0);
    assert_eq!(cost.transfer(0, 1, 999), 300.0 + 0.1 * 999.0);
    assert_eq!(cost.transfer(0, 1, 1000), 380.0 + 0.02 * 1000.0);
    assert_eq!(cost.transfer(0, 1, 10_000), 380.0 + 0.02 * 10_000.0);
    assert_eq!(cost.combine(0, 100), 0.01 * 100.0);
    assert!(cost.linear().is_none());
    assert!(sample().line().linear().is_some());
}

#[test]
fn latency_and_eager_sends_are_costs() {
    let text = r#"{"alpha": 250, "beta": 0.03, "latency": 40, "eager": 4096"#;
    let profile = Profile::from_json(&format!("{text}}}")).unwrap();
    let cost = profile.cost().unwrap();
    assert_eq!(cost.latency_between(0, 1), 40.0);
    assert_eq!(cost.sends_eagerly(), Eager::UpTo(4096));
    assert_eq!(Profile::from_json(&profile.to_json()), Ok(profile));
    let levels = r#", "levels": [{"groups": [[0, 1]], "alpha": 1, "beta": 1, "latency": 3}]}"#;
    let cost = Profile::from_json(&format!("{text}{levels}"))
        .unwrap()
        .cost();
    let cost = cost.unwrap();
    assert_eq!(cost.latency_between(0, 1), 3.0);
    assert_eq!(cost.sends_eagerly(), Eager::UpTo(4096));
    for (wrong, word) in [("-1", "latency is -1.0"), ("\"x\"", "invalid type")] {
        let text = text.replace(" 40,", &format!(" {wrong},"));
        let error = Profile::from_json(&format!("{text}}}")).unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
    }
}

#[test]
fn levels_precede_one_line_and_pairs_precede_levels() {
    let mut profile = sample();
    profile.levels = vec![
        Level {
            groups: Some(vec![vec![0], vec![1]]),
            alpha: 1.0,
            beta: 2.0,
            latency: 0.0,
        },
        Level {
            groups: None,
            alpha: 40.0,
            beta: 0.5,
            latency: 0.0,
        },
    ];
    assert_eq!(Profile::from_json(&profile.to_json()).unwrap(), profile);
    let cost = profile.cost().unwrap();
    assert_eq!(cost.transfer(0, 1, 1000), 40.0 + 0.5 * 1000.0);
    assert_eq!(cost.combine(1, 100), 0.01 * 100.0);
    assert_eq!(cost.copy(1, 100), 0.0);
    assert_eq!(profile.links().unwrap(), profile.pairs);
    profile.pairs = None;
    assert_eq!(profile.links().unwrap().as_ref(), cost.links());
    profile.levels.clear();
    assert_eq!(profile.links().unwrap(), None);
    assert!(!profile.to_json().contains("levels"));
}

#[test]
fn errors_of_broken_profiles_name_the_problem() {
    for (text, says) in [
        ("", "not a profile"),
        ("[]", "not a profile"),
        ("{}", "missing field `alpha`"),
        (r#"{"alpha": 1}"#, "missing field `beta`"),
        (r#"{"alpha": "1us", "beta": 1}"#, "invalid type"),
        (r#"{"alpha": -1, "beta": 1}"#, "alpha is -1"),
        (
            r#"{"alpha": 1, "beta": 1, "gamma_copy": -0.5}"#,
            "gamma_copy is -0.5",
        ),
        (
            r#"{"alpha": 1, "beta": 1, "pieces": {"transfer": [{"from": 8, "alpha": 1, "beta": 1}]}}"#,
            "begin at 0",
        ),
        (
            r#"{"alpha": 1, "beta": 1, "pieces": {"transfer": [{"from": 0, "alpha": 1, "beta": -1}]}}"#,
            "beta not negative",
        ),
        (
            r#"{"alpha": 1, "beta": 1, "pieces": {"transfer": [{"from": 0, "alpha": 5, "beta": 0}, {"from": 9, "alpha": 1, "beta": 0}]}}"#,
            "become less",
        ),
        (
            r#"{"alpha": 1, "beta": 1, "pairs": {"alpha": [[1]], "beta": []}}"#,
            "1 x 1",
        ),
    ] {
        let error = Profile::from_json(text).unwrap_err();
        assert!(error.to_string().contains(says), "{text}: {error}");
        assert!(error.is_usage());
    }
}

#[test]
fn a_profile_that_is_off_by_half_is_refused() {
    let mut profile = Profile::from_json(r#"{"alpha": 1, "beta": 1}"#).unwrap();
    let point = |bytes, residual| Point {
        bytes,
        time: 1.0,
        predicted: 1.0 + residual,
        residual,
    };
    profile.points = vec![point(8, -0.5), point(16, 0.1)];
    profile.combine_points = vec![point(1 << 20, 0.4)];
    assert!(profile.ensure_close().is_ok());
    profile.combine_points.push(point(4 << 20, 0.51));
    let error = profile.ensure_close().unwrap_err().to_string();
    assert!(error.contains("51%") && error.contains("4 MiB"), "{error}");
    profile.points.push(point(2048, -0.8));
    let error = profile.ensure_close().unwrap_err().to_string();
    assert!(error.contains("80% for a message of 2 KiB"), "{error}");
}

/// With a core for each rank, halves that both ranks combine are several times faster than the
/// whole vector combined by both, which is faster only where combining is free.
#[test]
fn built_in_costs_choose_for_shared_memory() {
    let mut team = Team::new(2).unwrap();
    let profile = Profile::built_in(&team);
    assert!(profile.machine.cpu.starts_with("built-in costs of "));
    let cost = profile.cost().unwrap();
    assert!(cost.combine(0, 1 << 20) > 0.0 && cost.copy(0, 1 << 20) > 0.0);
    let request = Request::allreduce(2, 1 << 20).element_bytes(4);
    let in_model = choose(&request.clone().cost(CostModel::new(1000.0, 0.1))).unwrap();
    assert_eq!(in_model.algorithm.name(), "census");
    let core_model = profile.core_model(Workers::Ranks, 2, 2).unwrap();
    let costed = request.clone().cost(profile.cost().unwrap());
    let native = choose_native(&costed, &core_model).unwrap();
    assert_eq!(native.algorithm.name(), "circulant-rsag");
    // Where ranks share cores, what combines less often is faster: measured on two cores.
    for (request, fastest) in [
        (Request::reduce_scatter(4, 2), "all-pairs"),
        (Request::reduce(4, 1 << 14), "bi-greedy"),
    ] {
        let core_model = profile.core_model(Workers::Ranks, 4, 2).unwrap();
        let costed = request.element_bytes(4).cost(profile.cost().unwrap());
        let native = choose_native(&costed, &core_model).unwrap();
        assert_eq!(native.algorithm.name(), fastest);
    }

    let choice = profile.choose(&request, &team).unwrap();
    let schedule = choice.algorithm.plan(&choice.request).unwrap();
    let run = Run::<f32>::new(&schedule).op(Op::SUM).verified();
    assert!(run.on(&mut team).unwrap().is_verified());
    // Too many ranks for an estimate: by the model, with the same costs.
    let many = Request::broadcast(100, 8).element_bytes(4);
    let team = Team::new(100).unwrap();
    let choice = profile.choose(&many, &team).unwrap();
    assert_eq!(choice.request.get_cost(), &profile.cost().unwrap());
}
