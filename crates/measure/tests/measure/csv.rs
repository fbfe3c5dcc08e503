//! Tests of the CSV file of a sweep.

use oneport_measure::tune::csv::{Parameters, read, resume, write};
use oneport_measure::tune::{Summary, Trial};

fn parameters() -> Parameters {
    vec![
        ("collective".into(), "reduce".into()),
        ("cost".into(), "alpha 1: 2".into()),
    ]
}

fn rows() -> Vec<Trial> {
    let wall = Summary::of(&[5, 7, 9, 4, 6, 8, 30]).unwrap();
    let row = |segment, model_time| Trial {
        bytes: 64,
        algorithm: "chain".into(),
        segment,
        segments: 64usize.div_ceil(segment as usize),
        wall,
        model_time,
        best: segment == 8,
        best_segment: segment == 8,
        settled: segment == 8,
    };
    vec![row(8, 7.25), row(16, 1e20 / 3.0)]
}

#[test]
fn round_trip() {
    let text = write(&parameters(), &rows());
    assert_eq!(read(&text).unwrap(), (parameters(), rows()));
    assert_eq!(resume(&text, &parameters()).unwrap(), rows());
    assert_eq!(read(&text.replace('\n', "\r\n")).unwrap().1, rows());
    // A library's own function has no model time, and is measured again.
    let of_library = text.replace("7.25", "NaN");
    let found = read(&of_library).unwrap().1;
    assert!(found.iter().any(|row| row.model_time.is_nan()));
    let resumed = resume(&of_library, &parameters()).unwrap();
    assert!(resumed.len() < found.len() && resumed.iter().all(|row| row.model_time.is_finite()));
}

#[test]
fn another_sweep_is_refused() {
    let text = write(&parameters(), &rows());
    let mut other = parameters();
    other[0].1 = "broadcast".into();
    let error = resume(&text, &other).unwrap_err().to_string();
    assert!(
        error.contains("collective is reduce there, broadcast here"),
        "{error}"
    );
    other[0] = parameters().swap_remove(0);
    other.push(("ranks".into(), "8".into()));
    let error = resume(&text, &other).unwrap_err().to_string();
    assert!(
        error.contains("ranks is not given there, 8 here"),
        "{error}"
    );
    other.truncate(1);
    assert!(resume(&text, &other).is_err());
}

#[test]
fn broken_files_are_refused() {
    let text = write(&parameters(), &rows());
    for broken in [
        String::new(),
        "bytes,wall\n1,2\n".into(),
        text.replace("best_segment", "x"),
        text.replace("chain,8,", "chain,0,"),
        text.replace("chain,8,", "chain,16,"),
        text.replace("chain,8,", "chain,"),
        text.replace("true", "yes"),
        text.replace("7.25", "inf"),
        text.lines().take(3).collect::<Vec<_>>().join("\n"),
        text.trim_end().to_string() + ",1",
        text[..text.len() - 12].to_string(),
    ] {
        let error = read(&broken).unwrap_err();
        assert!(error.is_usage(), "{error}");
    }
}
