//! Tests of runs that share their cores with other processes.
#![cfg(target_os = "linux")]

use std::process::{Child, Command, Stdio};

use assert_cmd::cargo::cargo_bin_cmd;
use serde_json::Value;

use crate::support::alone::alone;

/// Programs that keep the cores busy. Each ends by itself after a while, in case the test is killed
/// before it can end them.
struct Busy(Vec<Child>);

impl Busy {
    fn new(programs: usize) -> Busy {
        let one = || {
            Command::new("sh")
                .args(["-c", "i=0; while [ $i -lt 50000000 ]; do i=$((i+1)); done"])
                .stdin(Stdio::null())
                .spawn()
                .unwrap()
        };
        Busy((0..programs).map(|_| one()).collect())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for program in &mut self.0 {
            let _ = program.kill();
            let _ = program.wait();
        }
    }
}

#[test]
fn a_run_beside_busy_programs_warns() {
    let _alone = alone();
    let cores = oneport::run::allowed_cores().len().max(1);
    let _busy = Busy::new(2 * cores);
    let ranks = (8 * cores + 1).to_string();
    let output = cargo_bin_cmd!("oneport")
        .args(["run", "broadcast", "--bytes", "8", "--json"])
        .args(["--repetitions", "300", "--deadline", "60s", "-p", &ranks])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let run: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(run["verified"], true);
    let warnings = run["warnings"].as_array().unwrap();
    assert!(
        warnings
            .iter()
            .any(|w| w.as_str().unwrap().contains("other processes")),
        "{warnings:?}"
    );
}
