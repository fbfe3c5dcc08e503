//! Fuzz tests: every reader of text must cleanly accept or refuse text that is almost valid.
//!
//! Valid examples are mutated by bytes, tokens and JSON values. A reader must accept the result or
//! refuse it with a message, without a panic, an overflow (tests are built with overflow checks), a
//! hang or a huge allocation. An accepted value is passed to the code that uses such values, and
//! must be the same after it is written and read again.
//!
//! Random requests must have one answer, whichever command is asked.
//!
//! `ONEPORT_FUZZ=N` tries N texts per reader instead of the default, and a tenth as many commands.
//! `ONEPORT_FUZZ_SEED=S` tries only the seed S, which a failure names, and prints its text first.

#![allow(clippy::print_stdout, reason = "the counts are printed")]

mod agree;
mod commands;
mod mutate;
mod numbers;
mod readers;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::support::random::Random;
use crate::support::watch::{Watch, number};

/// The number of texts per reader unless the environment sets one.
const DEFAULT_TEXTS: u64 = 1000;
/// The number of texts between two checks of the address space.
const BATCH: u64 = 50;
/// The maximum growth of the address space during a batch. It includes the growth by other tests of
/// this process that run at the same time.
const MAX_GROWTH_KIB: u64 = 2 << 20;

/// Calls `accepts`, which returns whether it could read a text, with mutated `examples`.
fn fuzz(test: &str, examples: &[String], accepts: impl Fn(&str) -> bool) {
    for example in examples {
        assert!(accepts(example), "an example is refused: {example}");
    }
    let seeds = seeds(DEFAULT_TEXTS);
    let (mut accepted, total) = (0, seeds.end - seeds.start);
    let mut batch = seeds.start;
    while batch < seeds.end {
        let seeds = batch..seeds.end.min(batch + BATCH);
        batch = seeds.end;
        let command = format!("cargo test --test commands fuzz::{test}");
        let rerun = format!("ONEPORT_FUZZ_SEED={}..{} {command}", seeds.start, seeds.end);
        let before = peak_address_space_kib();
        let watch = Watch::new(rerun.clone());
        for seed in seeds {
            let text = mutate::mutate(&mut Random::new(seed), examples);
            if total <= BATCH {
                println!("{seed}: {text:?}");
            }
            match catch_unwind(AssertUnwindSafe(|| accepts(&text))) {
                Ok(true) => accepted += 1,
                Ok(false) => {}
                Err(panic) => {
                    eprintln!(
                        "failed for {text:?}\nrerun with: ONEPORT_FUZZ_SEED={seed} {command}"
                    );
                    resume_unwind(panic);
                }
            }
        }
        drop(watch);
        let grown = peak_address_space_kib().saturating_sub(before);
        assert!(
            grown <= MAX_GROWTH_KIB,
            "a batch of small texts took {grown} KiB; rerun with: {rerun}"
        );
    }
    println!("{test}: {accepted} of {total} texts were accepted");
    assert!(
        total < DEFAULT_TEXTS || accepted >= total / 100,
        "fewer than 1% of the texts were accepted"
    );
}

/// Without overflow checks, numbers would wrap unnoticed.
#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "overflow")]
fn overflow_checks_are_on() {
    let sum = std::hint::black_box(u8::MAX) + std::hint::black_box(1);
    println!("{sum}");
}

/// The seeds to try: `default` of them unless the environment selects others.
fn seeds(default: u64) -> Range<u64> {
    if let Ok(text) = std::env::var("ONEPORT_FUZZ_SEED") {
        let (from, to) = text.split_once("..").unwrap_or((&text, ""));
        let parse = |text: &str| text.parse::<u64>().expect("a number");
        let from = parse(from);
        return from..if to.is_empty() { from + 1 } else { parse(to) };
    }
    0..number("ONEPORT_FUZZ").unwrap_or(default)
}

/// The peak address space of this process, which includes allocated memory that was never used.
fn peak_address_space_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmPeak:"));
    let words = line.and_then(|l| l.split_whitespace().next());
    words.and_then(|w| w.parse().ok()).unwrap_or(0)
}
