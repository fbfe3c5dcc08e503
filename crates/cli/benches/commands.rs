//! What the binary takes to time and to choose among all algorithms of a collective, for many
//! ranks: seconds of wall-clock and of all cores, and peak memory.
//!
//! ```text
//! cargo bench -p oneport-cli
//! ```
//!
//! In a bare `cargo bench` the table goes to `target/oneport-bench/commands.txt`.

#![allow(clippy::print_stdout, reason = "a bench prints its measurements")]

#[path = "../../../benches/selected/mod.rs"]
mod selected;
#[path = "../../../benches/terminal/mod.rs"]
mod terminal;

use std::fs::read_to_string;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use oneport::Kind;

fn main() {
    if selected::selected("commands") {
        terminal::detailed("commands", measure);
    }
}

/// `compare` of 1 MiB over 4096 ranks, and the choice for 64 bytes over 20,000 and 100,000.
fn measure() {
    println!(
        "\n{:<52} {:>8} {:>8} {:>9}",
        "command", "s", "core s", "peak MiB"
    );
    for (command, ranks, bytes) in [
        ("compare", "4096", "1MiB"),
        ("simulate", "20000", "64"),
        ("simulate", "100000", "64"),
    ] {
        for kind in Kind::ALL {
            for ports in ["bi", "uni"] {
                let mut args = vec![command, kind.name(), "-p", ranks, "--ports", ports];
                if kind.has_data() {
                    args.extend(["--bytes", bytes]);
                }
                run(&args);
            }
        }
    }
}

fn run(args: &[&str]) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_oneport"))
        .args(args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");
    let start = Instant::now();
    let (mut peak, mut ticks) = (None, None);
    let ended = loop {
        if let Ok(Some(status)) = child.try_wait() {
            break status;
        }
        // Both never decrease; what the system does not report is not shown.
        let of = |file: &str| read_to_string(format!("/proc/{}/{file}", child.id())).ok();
        peak = of("status").and_then(|s| peak_mib(&s)).or(peak);
        ticks = of("stat").and_then(|s| cpu_ticks(&s)).or(ticks);
        sleep(Duration::from_millis(2));
    };
    let seconds = start.elapsed().as_secs_f64();
    let show = |value: Option<String>| value.unwrap_or_else(|| "-".into());
    println!(
        "{:<52} {seconds:>8.2} {:>8} {:>9}{}",
        args.join(" "),
        show(ticks.map(|ticks| format!("{:.2}", ticks as f64 / 100.0))),
        show(peak.map(|mib: u64| mib.to_string())),
        if ended.success() { "" } else { "  refused" }
    );
}

fn peak_mib(status: &str) -> Option<u64> {
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib >> 10)
}

/// Ticks of 10 ms of user and system time.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let behind_name = stat.rsplit(')').next()?;
    let mut times = behind_name.split_whitespace().skip(11);
    let mut next = || times.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}
