//! Checks the four conditions under which circulant schedules are right, for many numbers of ranks.
//!
//! `cargo run --release --example check_circulant -- --ranks 2..=40000`; `--help` lists the
//! options.

mod graphs;
pub(crate) mod prove;

use std::io::Write;
use std::ops::RangeInclusive;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use clap::Parser;
use graphs::{Options, Outcome, SAMPLED_RANKS};
use indicatif::{ProgressBar, ProgressStyle};
use oneport::internal::circulant::schedule::MAX_RANKS;
use prove::Violation;
use serde::Serialize;

/// Check the construction of circulant schedules: the four conditions that make them right
#[derive(Debug, Parser)]
#[command(
    max_term_width = 100,
    after_help = "\
Examples:
  check_circulant                                           all numbers of ranks up to 2000
  check_circulant --ranks 2..=40000
  check_circulant --ranks 1048575
  check_circulant --sample 10000 --up-to 2^40

For p ranks, q = ceil(log2 p) and skips of p halved again and again, rank r sends to r + skip[k] in round k of every phase \
of q rounds. The schedules are right if 1. what is sent is what is received; 2. every rank but the root receives its base \
block and q-1 different blocks of the phase before; 3. every rank but the root sends only blocks that it has; 4. the root sends \
block k in round k. Numbers of ranks may be written 2^40 or 1e12. Exit code 1 means that a condition does not hold."
)]
pub(crate) struct Args {
    /// Numbers of ranks to check, all ranks of each: a number, or a range such as 2..=40000 or
    /// 2..1000 [default: 2..=2000]
    #[arg(short = 'p', long, value_name = "P|FROM..=TO", value_parser = parse_ranks, allow_negative_numbers = true)]
    ranks: Option<RangeInclusive<usize>>,

    /// Check this many numbers of ranks of all magnitudes instead, up to 100 ranks of each
    #[arg(long, value_name = "COUNT", value_parser = parse_samples, allow_negative_numbers = true, conflicts_with = "ranks")]
    sample: Option<usize>,

    /// The largest number of ranks to sample
    #[arg(
        long,
        value_name = "P",
        value_parser = parse_large,
        default_value = "2^40",
        requires = "sample",
        allow_negative_numbers = true
    )]
    up_to: usize,

    /// Which samples to take
    #[arg(long, value_name = "SEED", default_value = "1", requires = "sample")]
    seed: u64,

    /// Number of threads [default: as many as there are cores]
    #[arg(long, value_name = "COUNT", value_parser = parse_count, allow_negative_numbers = true)]
    threads: Option<usize>,

    /// Report at most this many errors in full
    #[arg(long, alias = "most-errors", value_name = "COUNT", value_parser = parse_count, default_value = "20", allow_negative_numbers = true)]
    max_errors: usize,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Output<'a> {
    ok: bool,
    /// Smallest and largest number of ranks.
    ranks: [usize; 2],
    sampled: bool,
    /// Number of checked numbers of ranks.
    graphs: u64,
    /// Number of checked schedules, one for each rank.
    schedules: u64,
    seconds: f64,
    errors: &'a [Violation],
    /// Number of errors that are not in `errors`.
    more: u64,
}

fn main() -> ExitCode {
    let args = Args::parse();
    run(&args, &mut std::io::stdout().lock()).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    })
}

/// Checks and prints.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<ExitCode> {
    let options = Options {
        threads: args.threads.unwrap_or(0).min(1024),
        max_violations: args.max_errors,
    };
    let sizes = args.ranks.clone().unwrap_or(2..=2000);
    let start = Instant::now();
    let (range, outcome) = match args.sample {
        Some(count) => {
            let bar = bar(count as u64);
            let outcome = graphs::sample(count, args.up_to, args.seed, &options, |n| bar.inc(n));
            bar.finish_and_clear();
            ([1, args.up_to], outcome)
        }
        None => {
            let bar = bar(sum(&sizes));
            let range = [*sizes.start(), *sizes.end()];
            let outcome = graphs::check(sizes, &options, |n| bar.inc(n));
            bar.finish_and_clear();
            (range, outcome)
        }
    };
    let output = Output {
        ok: outcome.ok(),
        ranks: range,
        sampled: args.sample.is_some(),
        graphs: outcome.graphs,
        schedules: outcome.ranks,
        seconds: start.elapsed().as_secs_f64(),
        errors: &outcome.violations,
        more: outcome.more,
    };
    if args.json {
        serde_json::to_writer_pretty(&mut *out, &output)?;
        writeln!(out)?;
    } else {
        print(out, &output, &outcome)?;
    }
    out.flush()?;
    if output.ok {
        return Ok(ExitCode::SUCCESS);
    }
    let errors = outcome.violations.len() as u64 + outcome.more;
    let plural = if errors == 1 { "" } else { "s" };
    eprintln!("error: the check failed with {errors} error{plural}");
    Ok(ExitCode::from(1))
}

fn print(out: &mut dyn Write, output: &Output<'_>, outcome: &Outcome) -> Result<()> {
    let [first, last] = output.ranks;
    let ranks = match (output.sampled, first == last) {
        (true, _) => format!(
            "{} samples up to {last}, at most {SAMPLED_RANKS} ranks of each",
            output.graphs
        ),
        (false, true) => first.to_string(),
        (false, false) => format!("{first} to {last}"),
    };
    let rate = output.schedules as f64 / output.seconds.max(1e-9);
    let result = if output.ok {
        "all four conditions hold".to_string()
    } else {
        let errors: Vec<_> = outcome
            .violations
            .iter()
            .map(Violation::to_string)
            .collect();
        let more = match output.more {
            0 => String::new(),
            more => format!("\nand {more} more"),
        };
        errors.join("\n") + &more
    };
    let summary = [
        ("construction", "circulant schedules".to_string()),
        ("ranks", ranks),
        ("schedules", output.schedules.to_string()),
        (
            "took",
            format!("{:.2} s, {rate:.3e} schedules a second", output.seconds),
        ),
        ("result", result),
    ];
    for (name, value) in summary {
        writeln!(out, "{name:12}  {value}")?;
    }
    Ok(())
}

/// Total number of ranks over all sizes, saturating.
fn sum(sizes: &RangeInclusive<usize>) -> u64 {
    let (first, last) = (*sizes.start() as u128, *sizes.end() as u128);
    let sum = if first > last {
        0
    } else {
        (first + last) * (last - first + 1) / 2
    };
    u64::try_from(sum).unwrap_or(u64::MAX)
}

fn bar(length: u64) -> ProgressBar {
    let style = "checking {wide_bar} {percent}%, {eta} left";
    let style = ProgressStyle::with_template(style).expect("a template");
    ProgressBar::new(length).with_style(style)
}

/// Parses a nonnegative whole number.
fn parse_count(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| {
        if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
            format!("{text} is too large")
        } else {
            format!("'{text}' is not a count: write a whole number that is not negative")
        }
    })
}

/// Requires at least one sample, since a check of none would prove nothing.
fn parse_samples(text: &str) -> Result<usize, String> {
    match parse_count(text)? {
        0 => Err("0 samples: there is nothing to check".into()),
        count => Ok(count),
    }
}

/// Parses `1000`, `2..=1000` or `2..1001`.
fn parse_ranks(text: &str) -> Result<RangeInclusive<usize>, String> {
    let range = match text.split_once("..") {
        None => {
            let p = parse_large(text)?;
            p..=p
        }
        Some((first, last)) => {
            let first = parse_large(first)?;
            match last.strip_prefix('=') {
                Some(last) => first..=parse_large(last)?,
                None => first..=parse_large(last)?.saturating_sub(1),
            }
        }
    };
    if range.is_empty() {
        return Err(format!("there is no number of ranks in {text}"));
    }
    Ok(range)
}

/// Parses a positive number of ranks: `1000`, `2^40` or `1e12`.
fn parse_large(text: &str) -> Result<usize, String> {
    let help = || format!("'{text}' is not a number of ranks: write it like 1000, 2^40 or 1e12");
    let too_many = || {
        format!(
            "{text} ranks are more than the 2^{} that are possible",
            MAX_RANKS.ilog2()
        )
    };
    let digits = |s: &str| match s.parse::<usize>() {
        Ok(n) => Ok(n),
        Err(_) if !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit()) => Err(too_many()),
        Err(_) => Err(help()),
    };
    let power = |base: usize, exponent: &str| {
        let exponent = digits(exponent)?.try_into().map_err(|_| too_many())?;
        base.checked_pow(exponent).ok_or_else(too_many)
    };
    let text = text.trim();
    let value = if let Some((base, exponent)) = text.split_once('^') {
        power(digits(base)?, exponent)?
    } else if let Some((factor, exponent)) = text.split_once(['e', 'E']) {
        digits(factor)?
            .checked_mul(power(10, exponent)?)
            .ok_or_else(too_many)?
    } else {
        digits(text)?
    };
    match value {
        0 => Err("a collective needs at least one rank".to_string()),
        p if p > MAX_RANKS => Err(too_many()),
        p => Ok(p),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_ranks() {
        for (text, p) in [
            ("7", 7),
            ("2^40", 1 << 40),
            ("1e12", 1_000_000_000_000),
            ("2^61", 1 << 61),
        ] {
            assert_eq!(parse_large(text), Ok(p));
        }
        for text in [
            "",
            "0",
            "-1",
            "2^",
            "^2",
            "1e",
            "2^62",
            "1e30",
            "2^99999999999999999999",
            "x",
            "1.5",
            "1e-3",
        ] {
            assert!(parse_large(text).is_err(), "{text}");
        }
        for (text, range) in [
            ("5", 5..=5),
            ("2..=9", 2..=9),
            ("2..9", 2..=8),
            ("2..=1e3", 2..=1000),
        ] {
            assert_eq!(parse_ranks(text), Ok(range));
        }
        for text in ["9..=2", "2..2", "..=4", "3..", "0..=3", "2...4"] {
            assert!(parse_ranks(text).is_err(), "{text}");
        }
        assert_eq!(sum(&(2..=5)), 14);
    }
}
