//! What became of the calls, at the end of the program.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// Where the report goes: the name of a file, or `-` for standard error.
pub(crate) const REPORT: &str = "ONEPORT_REPORT";

/// Calls by function, size in bytes rounded up to a power of two, and what they were served by.
#[derive(Debug, Default)]
pub(crate) struct Report {
    to: String,
    calls: BTreeMap<(&'static str, u64, String), Calls>,
}

#[derive(Debug, Default)]
struct Calls {
    number: u64,
    time: Duration,
}

impl Report {
    /// That which the environment asks for.
    pub(crate) fn of_environment() -> Option<Report> {
        let to = std::env::var(REPORT).ok().filter(|to| !to.is_empty())?;
        let calls = BTreeMap::new();
        Some(Report { to, calls })
    }

    pub(crate) fn add(&mut self, function: &'static str, bytes: u64, by: &str, time: Duration) {
        let class = match bytes {
            0 => 0,
            bytes => bytes.checked_next_power_of_two().unwrap_or(u64::MAX),
        };
        let calls = self.calls.entry((function, class, by.to_string()));
        let calls = calls.or_default();
        calls.number += 1;
        calls.time += time;
    }

    /// Writes the calls of process 0, as a table.
    pub(crate) fn write(&self) {
        let mut text = String::from("oneport: collective calls of process 0\n");
        let head = ("function", "up to", "calls", "us each", "served by");
        let (function, size, calls, each, by) = head;
        let _ = writeln!(
            text,
            "{function:<26} {size:>12} {calls:>9} {each:>10}  {by}"
        );
        for ((function, size, by), calls) in &self.calls {
            let each = calls.time.as_secs_f64() * 1e6 / calls.number as f64;
            let number = calls.number;
            let _ = writeln!(
                text,
                "{function:<26} {size:>10} B {number:>9} {each:>10.2}  {by}"
            );
        }
        match &*self.to {
            "-" => eprint!("{text}"),
            path => {
                if let Err(error) = std::fs::write(path, text) {
                    eprintln!("oneport: {REPORT}: cannot write {path}: {error}");
                }
            }
        }
    }
}
