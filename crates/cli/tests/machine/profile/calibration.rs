//! Tests of calibrations, which write profiles.

use std::fs;

use oneport::run::Team;
use oneport_measure::{Calibration, Profile, calibrate_on};
use serde_json::Value;

use super::{failure, folder, json, names, oneport};
use crate::support::alone::{alone, shared};

#[test]
fn calibrate_refuses_bad_options() {
    let _shared = shared();
    let folder = folder("calibrate-options");
    for (arguments, expected) in [
        (&["--fast"][..], "--fast"),
        (&["reduce"], "reduce"),
        (&["--cores", "0,x"], "x"),
        (&["--cores", "0"], "1 core named"),
        (&["--cores", "0,0"], "twice"),
        (&["--quick", "-o", "/no/such/folder/p.json"], "cannot write"),
        (&["--quick", "-o", "."], "folder"),
        (&["--quick", "-o", "/"], "folder"),
    ] {
        let message = failure(
            oneport(&["calibrate"]).args(arguments).current_dir(&folder),
            2,
        );
        assert!(message.contains(expected), "{arguments:?}: {message}");
    }
    let absent = failure(&mut oneport(&["calibrate", "--cores", "0,99999"]), {
        let enough = oneport::run::allowed_cores().len() >= 2;
        if enough { 2 } else { 1 }
    });
    assert!(absent.contains("core"), "{absent}");
    assert!(names(&folder).is_empty());
}

/// Calibration rightly refuses a machine that has one core or is too busy. Then it must not write a
/// file.
#[test]
fn calibrate_writes_what_it_prints() {
    let _alone = alone();
    let folder = folder("calibrate");
    let output = oneport(&["calibrate", "--quick", "--pairs", "--json", "-o", "p.json"])
        .args(two_cores())
        .current_dir(&folder)
        .output()
        .unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    if !output.status.success() {
        assert_eq!(output.status.code(), Some(1), "{message}");
        assert!(message.contains("calibration refused"), "{message}");
        assert!(names(&folder).is_empty());
        return;
    }
    assert_eq!(names(&folder), ["p.json"]);
    let written = fs::read(folder.join("p.json")).unwrap();
    assert_eq!(written, output.stdout);
    let profile: Value = serde_json::from_slice(&written).unwrap();
    for field in ["alpha", "beta"] {
        assert!(profile[field].as_f64().unwrap() > 0.0, "{field}");
    }
    for field in ["gamma", "gamma_copy", "fit_error", "fit_error_worst"] {
        assert!(profile[field].as_f64().unwrap() >= 0.0, "{field}");
    }
    assert_eq!(profile["cores"].as_array().unwrap().len(), 2);
    assert!(profile["date"].as_str().unwrap().ends_with('Z'));
    assert!(!profile["machine"]["cpu"].as_str().unwrap().is_empty());
    let points = profile["points"].as_array().unwrap();
    let bytes = |i: usize| points[i]["bytes"].as_u64().unwrap();
    assert_eq!((bytes(0), bytes(points.len() - 1)), (0, 16 << 20));
    for point in points {
        let [time, predicted, residual] =
            ["time", "predicted", "residual"].map(|f| point[f].as_f64().unwrap());
        assert!(time > 0.0 && predicted >= 0.0);
        assert!((residual - (predicted - time) / time).abs() < 1e-9);
    }
    // A simulation with the profile gives the times that the profile predicts.
    let simulated = json(
        oneport(&[
            "simulate",
            "broadcast",
            "-p",
            "2",
            "-a",
            "binomial",
            "--bytes",
        ])
        .args([
            "65536",
            "--profile",
            folder.join("p.json").to_str().unwrap(),
        ]),
    );
    let point = points.iter().find(|p| p["bytes"] == 65536).unwrap();
    let [time, predicted] = [&simulated["time"], &point["predicted"]].map(|t| t.as_f64().unwrap());
    // Printed times have twelve digits.
    assert!(
        (time - predicted).abs() <= 1e-11 * predicted,
        "{time} {predicted}"
    );
    let pairs = json(
        oneport(&[
            "simulate", "reduce", "-a", "binomial", "--bytes", "1000", "--costs",
        ])
        .arg(folder.join("p.json")),
    );
    assert_eq!(
        (&pairs["ranks"], &pairs["time_unit"]),
        (&2.into(), &"ns".into())
    );
}

/// As a calibration of processes on two hosts, which threads stand for.
#[test]
fn ranks_on_several_hosts_are_calibrated_by_level() {
    let _alone = alone();
    let mut team = Team::new(3).unwrap();
    let hosts = ["a", "b", "a"].map(String::from);
    let options = Calibration {
        quick: true,
        force: true,
        ..Calibration::default()
    };
    let profile = match calibrate_on(&mut team, &hosts, &options, |_, _| {}) {
        Ok(profile) => profile,
        Err(error) => {
            // A machine that is too busy.
            assert!(error.to_string().contains("calibration refused"), "{error}");
            return;
        }
    };
    assert_eq!((&profile.hosts[..], &profile.pairs), (&hosts[..], &None));
    let [near, far] = &profile.levels[..] else {
        panic!("{:?}", profile.levels);
    };
    assert_eq!(near.groups, Some(vec![vec![0, 2], vec![1]]));
    // One pair of each class is measured: that of two hosts is the one of the line.
    let line = (&None, profile.alpha, profile.beta);
    assert_eq!((&far.groups, far.alpha, far.beta), line);
    let cost = |from, to| profile.cost().unwrap().transfer(from, to, 1000);
    assert_eq!(cost(0, 2), near.alpha + near.beta * 1000.0);
    assert_eq!(cost(2, 1), far.alpha + far.beta * 1000.0);
    assert_eq!(Profile::from_json(&profile.to_json()).unwrap(), profile);
}

/// The option for the first two cores, on a machine with more than two.
fn two_cores() -> Vec<String> {
    let ids = oneport::run::allowed_cores();
    match ids[..] {
        [a, b, _, ..] => vec!["--cores".into(), format!("{a},{b}")],
        _ => Vec::new(),
    }
}
