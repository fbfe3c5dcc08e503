//! Tests of the CSV file of a sweep.

use oneport_measure::tune::csv::{self, Block, Parameters, read, resume};
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

fn write(parameters: &Parameters, rows: &[Trial]) -> String {
    csv::write(parameters, rows, &[])
}

fn block(text: &str) -> Block {
    read(text).unwrap().remove(0)
}

#[test]
fn round_trip() {
    let text = write(&parameters(), &rows());
    let (parameters, rows) = (parameters(), rows());
    assert_eq!(block(&text).parameters, parameters);
    assert_eq!(block(&text).rows, rows);
    assert_eq!(resume(&text, &parameters).unwrap().known, rows);
    assert_eq!(block(&text.replace('\n', "\r\n")).rows, rows);
    // A library's own function has no model time.
    let of_library = resume(&text.replace("7.25", "NaN"), &parameters).unwrap();
    assert!(of_library.known[0].is_of_library() && !of_library.known[1].is_of_library());
    // Earlier versions did not write the last column.
    let old: Vec<&str> = text.lines().collect();
    let old = old.iter().map(|line| line.trim_end_matches(",ranks"));
    let old: Vec<&str> = old.map(|line| line.trim_end_matches(',')).collect();
    assert_eq!(block(&old.join("\n")).rows, rows);
}

/// Parameters of a sweep over MPI.
fn sweep(ranks: usize, sizes: &str, processes: &str) -> Parameters {
    let ranks = ranks.to_string();
    [
        ("collective", "reduce"),
        ("ranks", &ranks),
        ("sizes", sizes),
        ("machine", "A, 2 cores"),
        ("processes", processes),
    ]
    .map(|(name, value)| (name.to_string(), value.to_string()))
    .to_vec()
}

#[test]
fn a_file_grows_by_sizes_and_ranks() {
    let of_size = |bytes| {
        let mut rows = rows();
        rows.iter_mut().for_each(|row| row.bytes = bytes);
        rows
    };
    let two = sweep(2, "64", "Open MPI v5, 2 processes on 1 host");
    let text = write(&two, &of_size(64));
    let more = sweep(2, "64 128", "Open MPI v5, 2 processes on 1 host");
    let found = resume(&text, &more).unwrap();
    assert_eq!((found.known, &found.elsewhere), (of_size(64), &None));
    // The sizes that this sweep leaves out stay.
    let only = sweep(2, "128", "Open MPI v5, 2 processes on 1 host");
    let found = resume(&text, &only).unwrap();
    assert!(found.known.is_empty());
    let text = csv::write(&only, &of_size(128), &found.others);
    assert_eq!(block(&text).parameters, more);
    assert_eq!(resume(&text, &more).unwrap().known.len(), 4);
    // Another number of ranks has parameters and rows of its own.
    let four = sweep(4, "64", "Open MPI v5, 4 processes on 2 hosts");
    let found = resume(&text, &four).unwrap();
    assert!(found.known.is_empty() && found.elsewhere.is_none());
    let text = csv::write(&four, &of_size(64), &found.others);
    let blocks = read(&text).unwrap();
    assert_eq!(
        blocks.iter().map(|b| b.rows.len()).collect::<Vec<_>>(),
        [4, 2]
    );
    assert_eq!(resume(&text, &four).unwrap().known, of_size(64));
    assert_eq!(resume(&text, &more).unwrap().known.len(), 4);
    // Another library's rows do not belong beside these, nor those of threads.
    for processes in ["MPICH 5, 3 processes on 1 host", "none"] {
        let error = resume(&text, &sweep(3, "64", processes)).unwrap_err();
        assert!(
            error.to_string().contains("processes is Open MPI v5 there"),
            "{error}"
        );
    }
}

#[test]
fn another_place_is_told() {
    let there = sweep(2, "64", "Open MPI v5, 2 processes on 1 host");
    let text = write(&there, &rows());
    let mut here = there.clone();
    here.retain(|(name, _)| name != "processes");
    here.iter_mut()
        .for_each(|(_, value)| *value = value.replace("2 cores", "9 cores"));
    let found = resume(&text, &here).unwrap();
    assert_eq!(found.known, rows());
    let (difference, parameters) = found.elsewhere.unwrap();
    assert_eq!(difference, "machine is A, 2 cores there, A, 9 cores here");
    assert_eq!(parameters, there);
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
    other.push(("root".into(), "8".into()));
    let error = resume(&text, &other).unwrap_err().to_string();
    assert!(error.contains("root is not given there, 8 here"), "{error}");
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
