//! Where, when and how a measurement was made.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// The processor and its cores: `Some CPU @ 2 GHz, 2 cores`.
pub(super) fn name() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or(std::env::consts::ARCH, |(_, name)| name.trim());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{model}, {cores} core{}", if cores == 1 { "" } else { "s" })
}

/// The date and time in UTC: `2026-01-31 12:34 UTC`.
pub(super) fn date() -> String {
    let seconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_secs());
    let (year, month, day) = civil(seconds / 86_400);
    let (hour, minute) = (seconds / 3600 % 24, seconds / 60 % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

/// The command line, as one would type it.
pub(super) fn command() -> String {
    let quoted = |argument: String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,=:+@%".contains(c);
        if !argument.is_empty() && argument.chars().all(plain) {
            argument
        } else {
            format!("'{}'", argument.replace('\'', r"'\''"))
        }
    };
    let arguments = std::env::args_os()
        .skip(1)
        .map(|a| quoted(a.to_string_lossy().into_owned()));
    std::iter::once("oneport".to_string())
        .chain(arguments)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Year, month and day of the `days`-th day since 1970-01-01 in the Gregorian calendar.
fn civil(mut days: u64) -> (u64, u64, u64) {
    let leap = |y: u64| y.is_multiple_of(4) && (!y.is_multiple_of(100) || y.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use super::civil;

    #[test]
    fn dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(365), (1971, 1, 1));
        assert_eq!(civil(789), (1972, 2, 29));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(19_722), (2023, 12, 31));
        assert_eq!(civil(19_723), (2024, 1, 1));
    }
}
