//! Series in files: they keep their times.

use oneport::{Ports, Schedule};
use oneport_steady::{Operation, Series, SolveMethod, generate, solve};

#[test]
fn a_stored_series_keeps_its_times() {
    let platform = generate("complete:4", 0).unwrap();
    for operation in Operation::ALL {
        for ports in [Ports::UNI, Ports::BI] {
            let solution = solve(&platform, operation, ports, SolveMethod::default()).unwrap();
            let periodic = solution.periodic(None, None).unwrap();
            let schedule = periodic.schedule(12).unwrap();
            let cost = periodic.cost(1.0).unwrap();
            let time = schedule.simulate(&cost).unwrap().makespan();
            let text = Series::of(&periodic).to_json(&schedule);
            let read = Schedule::from_json(&text).unwrap();
            let series = Series::from_json(&text).unwrap().unwrap();
            assert_eq!(*series.platform(), platform);
            for element_bytes in [1, 8] {
                let cost = series.cost(element_bytes).unwrap();
                let sized = read.clone().with_element_bytes(element_bytes);
                let again = sized.simulate(&cost).unwrap().makespan();
                assert!((again / time - 1.0).abs() < 1e-12, "{operation:?}");
            }
            let bound = series.min_time(&read).unwrap();
            assert!(
                bound <= time * (1.0 + 1e-12),
                "{operation:?} {bound} {time}"
            );
            // Twelve operations with start-up and clean-up take at most three times that.
            assert!(3.0 * bound >= time, "{operation:?} {bound} {time}");
        }
    }
    assert!(Series::from_json("{}").unwrap().is_none());
    for bad in [
        r#"{"series": {"operation": "x", "elements": 1, "platform": {"nodes": 2, "edges": []}}}"#,
        r#"{"series": {"operation": "scan", "elements": 0, "platform": {}}}"#,
        r#"{"series": 1}"#,
    ] {
        assert!(Series::from_json(bad).is_err(), "{bad}");
    }
}
