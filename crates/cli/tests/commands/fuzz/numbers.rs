//! Fuzz tests of the parsers of fractions, sizes, times and names.

use oneport::run::{ElementType, Op};
use oneport::{Distribution, Kind};
use oneport_steady::{parse_fraction, show_short};

use super::fuzz;
use crate::units::{MAX_BYTES, Unit, parse_size, parse_time, show_bytes};

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

#[test]
fn fractions() {
    let examples = texts(&[
        "1",
        "0.1",
        "2.5E2",
        " 3 / 6 ",
        "-4/2",
        "1e-3",
        "123456789/987654321",
    ]);
    fuzz("numbers::fractions", &examples, |text| {
        let Some(value) = parse_fraction(text) else {
            return false;
        };
        assert!(value.to_f64().is_finite());
        assert!(!show_short(&value).is_empty());
        let shown = value.to_string();
        assert_eq!(parse_fraction(&shown), Some(value), "{shown}");
        true
    });
}

#[test]
fn sizes() {
    let examples = texts(&[
        "4096", "64KiB", "1.5MiB", "2GB", "64 kib", "8192TiB", "0.25GiB",
    ]);
    fuzz("numbers::sizes", &examples, |text| {
        let Ok(bytes) = parse_size(text) else {
            return false;
        };
        assert!(bytes <= MAX_BYTES);
        assert_eq!(parse_size(&bytes.to_string()), Ok(bytes));
        assert!(!show_bytes(bytes).is_empty());
        true
    });
}

#[test]
fn times() {
    let examples = texts(&["10", "0.25", "250ns", "1us", "1.5ms", "2s", "1e-3", "3 µs"]);
    fuzz("numbers::times", &examples, |text| {
        let Ok(time) = parse_time(text) else {
            return false;
        };
        assert!(time.value.is_finite() && time.value >= 0.0);
        for unit in [Unit::Plain, Unit::Nanoseconds] {
            assert!(!unit.show(time.value).is_empty());
        }
        true
    });
}

#[test]
fn names() {
    let mut examples: Vec<String> = Kind::ALL.iter().map(|k| k.name().into()).collect();
    examples.extend(Distribution::ALL.iter().map(|d| d.name().into()));
    examples.extend(ElementType::ALL.iter().map(|t| t.name().into()));
    examples.extend(Op::ALL.map(|op| op.name().to_string()));
    fuzz("numbers::names", &examples, |text| {
        let sizes = |d: Distribution| {
            let _ = d.sizes(5, text.len(), 3, 1);
            let _ = d.sizes(usize::MAX, usize::MAX / 2, usize::MAX, u64::MAX);
        };
        let read = [
            text.parse::<Kind>().is_ok(),
            text.parse::<Distribution>().map(sizes).is_ok(),
            text.parse::<ElementType>().is_ok(),
            text.parse::<Op>().is_ok(),
        ];
        read.contains(&true)
    });
}
