//! Fuzz tests of the command line: every command exits with 0, 1 or 2, and prints a message if it
//! exits with 2.

use std::fs;
use std::time::Duration;

use assert_cmd::Command;

use super::mutate::{NUMBERS, mutate};
use super::readers::{
    chakra_examples, cost_examples, goal_examples, msccl_examples, mscclpp_examples,
    platform_examples, profile_examples, rules_examples, schedule_examples, teccl_examples, traces,
};
use super::seeds;
use crate::support::random::Random;
use crate::support::watch::number;

/// The number of commands that are run unless the environment sets one.
const DEFAULT_COMMANDS: u64 = 150;
/// The time limit of a command. None of them takes this long unless it hangs.
const TIMEOUT: Duration = Duration::from_secs(120);
/// The limit of a command's address space.
const MEMORY_KIB: u32 = 3 << 20;

/// The kind of text that a command reads from standard input.
#[derive(Debug, Clone, Copy)]
enum Input {
    Nothing,
    Schedule,
    Costs,
    Profile,
    Platform,
    Rules,
    Sizes,
    Goal,
    Msccl,
    Mscclpp,
    Teccl,
    /// Files of which that of the first rank is the argument TRACE.
    Chakra,
}

/// `SIZE`, `TIME`, `COUNT`, `RANKS`, `LIST` and `NAME` are replaced by valid or almost valid
/// arguments. Vectors are short where alpha may be 0, because the best segments are then single
/// bytes.
const COMMANDS: [(&str, Input); 44] = [
    ("check --schedule -", Input::Schedule),
    (
        "check --schedule - --json --most-errors COUNT",
        Input::Schedule,
    ),
    ("simulate --schedule - --critical-path -v", Input::Schedule),
    ("plan --schedule -", Input::Schedule),
    ("plan --schedule - --format rounds", Input::Schedule),
    ("draw --schedule -", Input::Schedule),
    (
        "draw --schedule - --as page --alpha TIME --beta TIME",
        Input::Schedule,
    ),
    ("draw --schedule - --as tree", Input::Schedule),
    ("draw --schedule - --as traffic", Input::Schedule),
    (
        "draw --schedule - --as trace --alpha TIME --beta TIME",
        Input::Schedule,
    ),
    ("export goal --schedule -", Input::Schedule),
    ("export msccl --schedule -", Input::Schedule),
    ("export mscclpp --schedule -", Input::Schedule),
    ("export dot --rounds --schedule -", Input::Schedule),
    (
        "export simgrid --schedule - -o FOLDER --force",
        Input::Schedule,
    ),
    (
        "export chakra --schedule - --alpha TIME --beta TIME --eager all -o FOLDER --force",
        Input::Schedule,
    ),
    ("import goal -", Input::Goal),
    ("import msccl - --chunk COUNT --ported COUNT", Input::Msccl),
    (
        "import mscclpp - --chunk COUNT --ported COUNT",
        Input::Mscclpp,
    ),
    ("import teccl - --chunk COUNT --ported COUNT", Input::Teccl),
    ("import chakra TRACE", Input::Chakra),
    ("check --schedule - -o PAGE", Input::Msccl),
    ("check --schedule - -o PAGE --json", Input::Mscclpp),
    ("check --schedule - - -o PAGE", Input::Teccl),
    ("check --schedule TRACE", Input::Chakra),
    (
        "simulate --schedule - --alpha TIME --beta TIME",
        Input::Teccl,
    ),
    ("simulate --schedule - --ported COUNT", Input::Mscclpp),
    ("run --schedule - --deadline 50ms", Input::Schedule),
    (
        "simulate reduce -p RANKS --costs - --bytes SIZE --segments 2",
        Input::Costs,
    ),
    ("compare broadcast --costs - --bytes 1KiB", Input::Costs),
    (
        "simulate allreduce -p 4 --profile - --bytes SIZE --segments 2",
        Input::Profile,
    ),
    (
        "simulate reduce -p 3 --costs - --bytes 64KiB",
        Input::Profile,
    ),
    (
        "simulate reduce -p RANKS --rules - --bytes SIZE",
        Input::Rules,
    ),
    ("steady -", Input::Platform),
    (
        "steady - --collective scatter --ports uni --json",
        Input::Platform,
    ),
    ("simulate gather --sizes-file -", Input::Sizes),
    ("simulate allgather --sizes LIST", Input::Nothing),
    (
        "simulate NAME -p RANKS --bytes 1KiB --alpha TIME --beta TIME --gamma TIME",
        Input::Nothing,
    ),
    (
        "compare reduce -p 5 --bytes 1KiB --alpha TIME --beta TIME",
        Input::Nothing,
    ),
    (
        "check reduce -p RANKS --root COUNT --ported COUNT",
        Input::Nothing,
    ),
    (
        "simulate scatter -p RANKS --dist random --block SIZE --rho COUNT --seed COUNT",
        Input::Nothing,
    ),
    (
        "simulate broadcast -p 4 --bytes 64KiB --segment SIZE",
        Input::Nothing,
    ),
    (
        "simulate reduce -p RANKS --bytes 100 --segments unequal --ports uni",
        Input::Nothing,
    ),
    (
        "simulate reduce -p 4 --segment-sizes LIST --dtype f64",
        Input::Nothing,
    ),
];

#[test]
fn every_command_exits_with_0_1_or_2() {
    let seeds = match number("ONEPORT_FUZZ") {
        Some(n) if std::env::var_os("ONEPORT_FUZZ_SEED").is_none() => 0..n.div_ceil(10),
        _ => seeds(DEFAULT_COMMANDS),
    };
    let mut exits = [0; 3];
    for seed in seeds {
        let random = &mut Random::new(seed);
        let (command, input) = *random.pick(&COMMANDS);
        let args: Vec<String> = command
            .split(' ')
            .map(|word| argument(random, word))
            .collect();
        let input = match input {
            Input::Nothing => String::new(),
            Input::Schedule => mutate(random, &schedule_examples()),
            Input::Costs => mutate(random, &cost_examples()),
            Input::Profile => mutate(random, &profile_examples()),
            Input::Platform => mutate(random, &platform_examples()),
            Input::Rules => mutate(random, &rules_examples()),
            Input::Sizes => mutate(random, &["1KiB,0,2KiB\n5 7".to_string(), "3".to_string()]),
            Input::Goal => mutate(random, &goal_examples()),
            Input::Msccl => mutate(random, &msccl_examples()),
            Input::Mscclpp => mutate(random, &mscclpp_examples()),
            Input::Teccl => mutate(random, &teccl_examples()),
            Input::Chakra => {
                let text = mutate(random, &chakra_examples());
                write_traces(&text);
                text
            }
        };
        let output = run(&args, &input);
        let stderr = String::from_utf8_lossy(&output.stderr);
        let what = || {
            format!(
                "{args:?} with {input:?}\nended with {}\n{stderr}\nrerun with: ONEPORT_FUZZ_SEED={seed} cargo test --test commands fuzz::commands",
                output.status
            )
        };
        match output.status.code() {
            Some(code @ 0..=2) => {
                exits[code as usize] += 1;
                assert!(code != 2 || !stderr.trim().is_empty(), "{}", what());
                assert!(!stderr.contains("panicked"), "{}", what());
            }
            _ => panic!("{}", what()),
        }
    }
    println!("commands that exited with 0, 1 and 2: {exits:?}");
}

/// Runs the binary with a limited address space where the shell supports that.
fn run(args: &[String], input: &str) -> std::process::Output {
    let oneport = env!("CARGO_BIN_EXE_oneport");
    let mut command = if cfg!(target_os = "linux") {
        let mut command = Command::new("sh");
        command.args([
            "-c",
            &format!("ulimit -v {MEMORY_KIB}; exec \"$0\" \"$@\""),
            oneport,
        ]);
        command
    } else {
        Command::new(oneport)
    };
    let command = command.args(args).write_stdin(input).timeout(TIMEOUT);
    command.env("RUST_BACKTRACE", "0").output().unwrap()
}

/// The folder of traces.
const TRACES: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/fuzz_chakra");

/// Writes the traces of a text in place of those before.
fn write_traces(text: &str) {
    let _ = fs::remove_dir_all(TRACES);
    fs::create_dir_all(TRACES).unwrap();
    for (rank, trace) in traces(text).into_iter().enumerate() {
        fs::write(format!("{TRACES}/trace.{rank}.et"), trace).unwrap();
    }
}

/// Returns the argument for a word of [`COMMANDS`].
fn argument(random: &mut Random, word: &str) -> String {
    let examples: &[&str] = match word {
        "SIZE" => &["1KiB", "64", "1.5MiB", "0", "8PiB"],
        "TIME" => &["1us", "0.1ns", "10", "0", "2s"],
        "COUNT" => &["0", "1", "3"],
        "LIST" => &["1KiB,0,2KiB", "5", "1,2,3,4"],
        "NAME" => &["reduce", "broadcast", "allgather", "scan"],
        // Larger numbers of ranks are valid, but slow.
        "RANKS" => {
            return (*random.pick(&["1", "2", "3", "8", "17", "0", "-1", "x", "1e3", NUMBERS[23]]))
                .to_string();
        }
        "FOLDER" => return concat!(env!("CARGO_TARGET_TMPDIR"), "/fuzz_simgrid").to_string(),
        "PAGE" => return concat!(env!("CARGO_TARGET_TMPDIR"), "/fuzz.html").to_string(),
        "TRACE" => return format!("{TRACES}/trace.0.et"),
        _ => return word.to_string(),
    };
    if random.one_in(2) {
        return (*random.pick(examples)).to_string();
    }
    let examples: Vec<String> = examples.iter().map(ToString::to_string).collect();
    // An argument cannot contain a zero byte.
    mutate(random, &examples).replace('\0', "0")
}
