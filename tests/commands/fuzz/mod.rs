//! Everything that reads text, on text that is almost right.
//!
//! Valid examples are changed byte by byte, token by token and value by value; each reader must
//! take the result or refuse it with a message, without a panic, an overflow (tests are built with
//! overflow checks), a hang or a huge allocation. What is taken goes on to whatever works with it,
//! and comes back as it was when it is written and read again.
//!
//! `ONEPORT_FUZZ=N` tries N texts for each reader instead of a few, and a tenth of that of the
//! command line. `ONEPORT_FUZZ_SEED=S` tries the one that a failure names, and prints it first.

#![allow(clippy::print_stdout, reason = "the counts are printed")]

mod commands;
mod mutate;
mod numbers;
mod readers;
// What the command line reads numbers with.
#[path = "../../../src/bin/oneport/units.rs"]
#[allow(dead_code, reason = "it shows numbers, too")]
mod units;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::support::random::Random;
use crate::support::watch::{Watch, number};

/// Texts tried of each reader.
const FEW: u64 = 1000;
/// Texts between two looks at the memory.
const BATCH: u64 = 50;
/// Most address space that a batch may add: that of small inputs, and of the tests beside this one.
const MAX_GROWTH_KIB: u64 = 2 << 20;

/// Tries texts made of `examples`; `take` says whether it could read one.
fn fuzz(test: &str, examples: &[String], take: impl Fn(&str) -> bool) {
    for example in examples {
        assert!(take(example), "an example is refused: {example}");
    }
    let seeds = seeds(FEW);
    let (mut taken, all) = (0, seeds.end - seeds.start);
    let mut batch = seeds.start;
    while batch < seeds.end {
        let seeds = batch..seeds.end.min(batch + BATCH);
        batch = seeds.end;
        let run = format!("cargo test --test commands fuzz::{test}");
        let once_more = format!("ONEPORT_FUZZ_SEED={}..{} {run}", seeds.start, seeds.end);
        let before = address_space_kib();
        let watch = Watch::new(once_more.clone());
        for seed in seeds {
            let text = mutate::mutate(&mut Random::new(seed), examples);
            if all <= BATCH {
                println!("{seed}: {text:?}");
            }
            match catch_unwind(AssertUnwindSafe(|| take(&text))) {
                Ok(true) => taken += 1,
                Ok(false) => {}
                Err(panic) => {
                    eprintln!("on {text:?}\nonce more: ONEPORT_FUZZ_SEED={seed} {run}");
                    resume_unwind(panic);
                }
            }
        }
        drop(watch);
        let grown = address_space_kib().saturating_sub(before);
        assert!(
            grown <= MAX_GROWTH_KIB,
            "{grown} KiB for a few small texts; once more: {once_more}"
        );
    }
    println!("{test}: {taken} of {all} texts could be read");
    assert!(
        all < FEW || taken >= all / 100,
        "hardly anything could be read"
    );
}

/// Without these checks numbers would wrap unseen.
#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "overflow")]
fn overflow_checks_are_on() {
    let sum = std::hint::black_box(u8::MAX) + std::hint::black_box(1);
    println!("{sum}");
}

fn seeds(few: u64) -> Range<u64> {
    if let Ok(text) = std::env::var("ONEPORT_FUZZ_SEED") {
        let (from, to) = text.split_once("..").unwrap_or((&text, ""));
        let number = |text: &str| text.parse::<u64>().expect("a number");
        let from = number(from);
        return from..if to.is_empty() { from + 1 } else { number(to) };
    }
    0..number("ONEPORT_FUZZ").unwrap_or(few)
}

/// The most address space that this process ever had: what is allocated counts, used or not.
fn address_space_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmPeak:"));
    let words = line.and_then(|l| l.split_whitespace().next());
    words.and_then(|w| w.parse().ok()).unwrap_or(0)
}
