//! Parsing and formatting of counts, sizes and times, and suggestions for names typed wrong.

use std::ops::RangeInclusive;
use std::time::Duration;

use oneport::internal::numbers::truncated_i64;
pub(crate) use oneport_pictures::Unit;
pub(crate) use oneport_pictures::svg::{bytes as show_bytes, counted, number, rounded};
use serde::{Deserialize, Serialize, Serializer};

/// Ports of `k` of each kind, such as `bi x 2`.
pub(crate) fn show_ports(name: &str, k: usize) -> String {
    match k {
        1 => name.into(),
        k => format!("{name} x {k}"),
    }
}

/// What schedules do with a vector that their messages divide into so many blocks.
pub(crate) fn cut_into(blocks: usize) -> String {
    match blocks {
        1 => "send whole vectors".into(),
        _ => format!("cut the vector into {blocks} blocks"),
    }
}

/// Upper limit of sizes, so that byte counts are exact in the cost model's floating-point numbers.
pub(crate) const MAX_BYTES: u64 = 1 << 53;

/// Units of sizes. A letter alone means what it means to MPI's benchmarks: a power of 1024.
const SIZES: [(&str, u64); 17] = [
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("pib", 1 << 50),
    ("eib", 1 << 60),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("pb", 1_000_000_000_000_000),
    ("eb", 1_000_000_000_000_000_000),
    ("b", 1),
    ("k", 1 << 10),
    ("m", 1 << 20),
    ("g", 1 << 30),
    ("t", 1 << 40),
];

/// The number before a unit, and that unit; `None` without one of these.
pub(crate) fn with_unit<'t, U: Copy>(text: &'t str, units: &[(&str, U)]) -> Option<(&'t str, U)> {
    let found = |&(name, unit): &(&str, U)| Some((text.strip_suffix(name)?.trim_end(), unit));
    units.iter().find_map(found)
}

/// Parses a number of bytes: `4096`, `64KiB`, `64k`, `1.5MiB`, `2GB`, `1e6`.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let (lower, text) = (text.to_ascii_lowercase(), shortened(text));
    let help = || {
        format!(
            "'{text}' is not a size: write a number of bytes, such as 4096, 64KiB (or 64k), 1.5MiB or 2GB"
        )
    };
    let lower = lower.trim();
    let too_large = || format!("{text} is more than this program's limit of 8 PiB (2^53 bytes)");
    let (number, unit) = with_unit(lower, &SIZES).unwrap_or((lower, 1));
    let (number, unit) = match number.split_once('e') {
        None => (number, unit),
        Some((number, power)) => {
            let scale = 10u64.checked_pow(power.parse().map_err(|_| help())?);
            let unit = scale.and_then(|scale| scale.checked_mul(unit));
            (number, unit.ok_or_else(too_large)?)
        }
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !digits(whole) || !digits(fraction) {
        return Err(help());
    }
    let whole: u64 = match whole {
        "" => 0,
        digits => digits.parse().map_err(|_| too_large())?,
    };
    let part = if fraction.bytes().all(|b| b == b'0') {
        0
    } else {
        let digits = u32::try_from(fraction.len()).ok();
        let scale = digits.and_then(|digits| 10u64.checked_pow(digits));
        let scale = scale.ok_or_else(help)?;
        let scaled = fraction.parse::<u64>().map_err(|_| help())?;
        let product = u128::from(scaled) * u128::from(unit);
        if product % u128::from(scale) != 0 {
            return Err(format!("{text} is not a whole number of bytes"));
        }
        u64::try_from(product / u128::from(scale)).expect("part of a unit")
    };
    whole
        .checked_mul(unit)
        .and_then(|n| n.checked_add(part))
        .filter(|&n| n <= MAX_BYTES)
        .ok_or_else(too_large)
}

pub(crate) fn parse_count(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| {
        if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
            format!("{text} is too large")
        } else {
            format!("'{text}' is not a count: write a whole number that is not negative")
        }
    })
}

/// Parses a core, `2`, or a range of them, `0-3`.
pub(crate) fn parse_core(text: &str) -> Result<RangeInclusive<usize>, String> {
    /// More than any machine has: a slip.
    const MAX_CORE: usize = 1 << 20;
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if first <= last && last <= MAX_CORE => Ok(first..=last),
        _ => Err(format!(
            "'{text}' is not a core: list their numbers, such as 0,2,4 or 0-3,8"
        )),
    }
}

/// Returns `; did you mean 'x'?` for the most similar of `names`, or an empty string if none is
/// similar.
pub(crate) fn did_you_mean<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> String {
    names
        .filter_map(|name| Some((edits(text, name)?, name)))
        .min()
        .map_or_else(String::new, |(_, name)| format!("; did you mean '{name}'?"))
}

/// The `error` about an unknown name, with a similar one before the list of all.
pub(crate) fn with_similar<'a>(
    error: &str,
    text: &str,
    names: impl Iterator<Item = &'a str>,
) -> String {
    let similar = did_you_mean(text, names);
    match error.split_once(": choose") {
        Some((what, names)) if !similar.is_empty() => format!("{what}{similar} Choose{names}"),
        _ => format!("{error}{similar}"),
    }
}

/// The number of edits from what was typed to a similar `name`; `None` if it is not similar. Jaro's
/// likeness, which clap uses for its own options, finds 'composed' for 'nope'.
pub fn edits(typed: &str, name: &str) -> Option<usize> {
    let edits = strsim::damerau_levenshtein(&typed.to_ascii_lowercase(), name);
    (edits <= (name.len() / 3).max(1)).then_some(edits)
}

/// A word of a file or of the command line, as messages show it: at most 200 characters.
fn shortened(word: &str) -> String {
    match word.char_indices().nth(200) {
        Some((end, _)) => format!("{}...", &word[..end]),
        None => word.to_string(),
    }
}

/// A time, and whether it was written with a unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TimeArg {
    /// In nanoseconds if there was a unit, otherwise in time units.
    pub(crate) value: f64,
    pub(crate) has_unit: bool,
}

/// Parses a time or a time per byte: `1000`, `0.25`, `1us`, `0.1ns`.
pub(crate) fn parse_time(text: &str) -> Result<TimeArg, String> {
    let (lower, text) = (text.trim(), shortened(text));
    let units = [
        ("ns", 1.0),
        ("us", 1e3),
        ("µs", 1e3),
        ("ms", 1e6),
        ("s", 1e9),
    ];
    let found = with_unit(lower, &units);
    let (number, unit) = found.unwrap_or((lower, 1.0));
    let value: f64 = number.parse().map_err(|_| {
        format!("'{text}' is not a time: write a number of time units, such as 10, or 250ns, 1.5us, 2ms, 1s")
    })?;
    let value = value * unit;
    if !(value.is_finite() && value >= 0.0) {
        return Err(format!("a time is finite and not negative, {text} is not"));
    }
    Ok(TimeArg {
        value,
        has_unit: found.is_some(),
    })
}

/// Parses a time per byte, as [`parse_time`], or a bandwidth: `10GB/s`, `9.5GiB/s`.
pub(crate) fn parse_rate(text: &str) -> Result<TimeArg, String> {
    let lower = text.trim().to_ascii_lowercase();
    let Some(bandwidth) = lower.strip_suffix("/s") else {
        return parse_time(text).map_err(|e| format!("{e}; or a bandwidth, such as 10GB/s"));
    };
    if text.trim().ends_with("b/s") && !text.trim().ends_with("ib/s") {
        let text = shortened(text);
        return Err(format!(
            "'{text}' may be bits: write GB/s for bytes, 1.25GB/s for 10 gigabits"
        ));
    }
    let bytes = with_unit(bandwidth, &SIZES).and_then(|(number, unit)| {
        let number: f64 = number.parse().ok()?;
        Some(number * unit as f64).filter(|bytes| bytes.is_finite() && *bytes > 0.0)
    });
    let bytes = bytes.ok_or_else(|| {
        let text = shortened(text);
        format!("'{text}' is not a bandwidth: write bytes a second, such as 10GB/s, or a time per byte, such as 0.1ns")
    })?;
    Ok(TimeArg {
        value: 1e9 / bytes,
        has_unit: true,
    })
}

/// Parses a duration such as `500ms` or `2s`, not shorter than `least` and at most 1000000 s; plain
/// numbers are seconds. `refused` begins the error.
pub(crate) fn parse_duration(text: &str, least: f64, refused: &str) -> Result<Duration, String> {
    let refused = || format!("{refused} and 1000000s, {text} is not");
    if text.starts_with('-') {
        return Err(refused());
    }
    let TimeArg { value, has_unit } = parse_time(text)?;
    let seconds = if has_unit { value * 1e-9 } else { value };
    if !(least..=1e6).contains(&seconds) {
        return Err(refused());
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// Parses a tolerance, in percent with or without the sign: `10%` or `10`. A fraction without the
/// sign may be meant as a share of 1.
pub(crate) fn parse_tolerance(text: &str) -> Result<f64, String> {
    let trimmed = text.trim();
    let number = trimmed.strip_suffix('%');
    let percent = number.unwrap_or(trimmed).trim_end().parse::<f64>().ok();
    let percent = percent
        .filter(|percent| percent.is_finite() && *percent >= 0.0)
        .ok_or_else(|| format!("'{text}' is not a tolerance: write a percentage, such as 10%"))?;
    if number.is_none() && percent > 0.0 && percent < 1.0 {
        return Err(format!(
            "'{text}' is {text}% or {}%: write the percent sign",
            rounded(100.0 * percent, 4)
        ));
    }
    Ok(percent / 100.0)
}

pub(crate) fn parse_budget(text: &str) -> Result<Duration, String> {
    parse_duration(text, 0.0, "a budget is between 0")
}

pub(crate) fn parse_deadline(text: &str) -> Result<Duration, String> {
    parse_duration(text, 1e-6, "a deadline is between 1us")
}

/// Formats nanoseconds: `12.3 us`.
pub(crate) fn show_ns(time: f64) -> String {
    Unit::Nanoseconds.show(time)
}

/// The value as text, or a dash.
pub(crate) fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".into(), |value| value.to_string())
}

/// A number that serialises without decimals if it is whole: `39`, not `39.0`.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Deserialize)]
pub(crate) struct Number(pub(crate) f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        if self.0.fract() == 0.0 && self.0.abs() < MAX_BYTES as f64 {
            s.serialize_i64(truncated_i64(self.0))
        } else {
            s.serialize_f64(self.0)
        }
    }
}
