//! Tells the binary which commit it is built from: `ONEPORT_COMMIT`, or what git says. Only release
//! builds ask git: otherwise every commit would build the tests anew.

use std::path::Path;
use std::process::Command;

/// What git prints in one line.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim().to_string();
    (output.status.success() && !text.is_empty()).then_some(text)
}

/// The commit, unless this is an archive that some other repository was unpacked into.
fn commit() -> Option<String> {
    let root = git(&["rev-parse", "--show-toplevel"])?;
    let own = Path::new(&root).join("crates/app/build.rs").is_file();
    if !own || std::env::var("PROFILE").ok()? != "release" {
        return None;
    }
    // It changes with every commit and checkout.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    if Path::new(&log).is_file() {
        println!("cargo::rerun-if-changed={log}");
    }
    git(&["rev-parse", "--short=10", "HEAD"])
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=ONEPORT_COMMIT");
    let commit = std::env::var("ONEPORT_COMMIT").ok().or_else(commit);
    let commit = commit.map_or(String::new(), |commit| format!(" ({commit})"));
    println!("cargo::rustc-env=ONEPORT_COMMIT={commit}");
}
