//! Exact numbers are read and written.

use oneport_steady::parse_fraction;

/// Limits of the digits of numerator and denominator, and of the text.
const MAX_DIGITS: usize = 256;
const MAX_TEXT: usize = 4 * MAX_DIGITS;

fn of(text: &str) -> String {
    parse_fraction(text).map_or_else(|| "none".into(), |f| f.to_string())
}

#[test]
fn numbers_are_read_exactly() {
    for (text, expected) in [
        ("1", "1"),
        ("0.1", "1/10"),
        (".5", "1/2"),
        ("2.", "2"),
        ("1e-3", "1/1000"),
        ("2.5E2", "250"),
        (" 3 / 6 ", "1/2"),
        ("0.3/0.6", "1/2"),
        ("-4/2", "-2"),
        ("", "none"),
        (".", "none"),
        ("1/0", "none"),
        ("nan", "none"),
        ("inf", "none"),
        ("1e999", "none"),
        ("1e-2147483648", "none"),
        ("1e2147483647", "none"),
        ("0.00012e+5", "12"),
        ("1e99999999999", "none"),
        ("1e9/1e-9", "1000000000000000000"),
        ("1/2/3", "none"),
        ("--1", "none"),
    ] {
        assert_eq!(of(text), expected, "{text}");
    }
}

/// Formatted numbers are parsed back, up to the longest ones, however they are written.
#[test]
fn long_numbers() {
    let nines = "9".repeat(MAX_DIGITS);
    let of = |text: &str| parse_fraction(text).map(|f| f.to_string());
    let longest = format!("{}8/{nines}", &nines[1..]);
    assert_eq!(of(&longest), Some(longest));
    assert_eq!(of(&nines), Some(nines.clone()));
    assert_eq!(of(&format!("{nines}0")), None);
    assert_eq!(of(&format!("1/{nines}0")), None);
    assert_eq!(of(&format!("000{nines}.000")), Some(nines.clone()));
    assert_eq!(of("1e255").map(|t| t.len()), Some(MAX_DIGITS));
    assert_eq!(of("1e256"), None);
    assert_eq!(of("1e-255").map(|t| t.len()), Some(MAX_DIGITS + 2));
    assert_eq!(of("1e-256"), None);
    assert_eq!(of("1e300/1e299"), Some("10".into()));
    assert_eq!(of(&"0".repeat(MAX_TEXT + 1)), None);
}

#[test]
fn shown_fractions_are_read_back() {
    let digits = "9".repeat(64);
    for text in [
        "1e64".to_string(),
        "-1.25e-64".to_string(),
        format!("{digits}e64/.{digits}e-64"),
        format!(".{digits}e-64 / {digits}e64"),
    ] {
        let value = parse_fraction(&text).unwrap();
        assert_eq!(parse_fraction(&value.to_string()), Some(value), "{text}");
    }
    let long = "9".repeat(258);
    assert_eq!(parse_fraction(&long), None);
    assert_eq!(parse_fraction(&format!("1/{long}")), None);
}
