//! Runs the binary and reads what it prints.

use assert_cmd::Command;
use serde_json::Value;

/// The binary with these arguments, separated by white space.
pub(crate) fn oneport(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oneport"));
    command.args(arguments.split_whitespace());
    command
}

/// What the binary prints with `--json`.
pub(crate) fn json(arguments: &str) -> Value {
    let output = oneport(arguments)
        .arg("--json")
        .assert()
        .success()
        .get_output()
        .clone();
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

/// What the binary prints.
pub(crate) fn text(arguments: &str) -> String {
    let output = oneport(arguments).assert().success().get_output().clone();
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Asserts that `command` exits with `code`, prints nothing to standard output and does not panic.
/// Returns its standard error.
pub(crate) fn failure(command: &mut Command, code: i32) -> String {
    let output = command.assert().code(code).get_output().clone();
    let message = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(output.stdout.is_empty(), "{message}");
    assert!(message.starts_with("error: "), "{message}");
    assert!(!message.contains("panicked"), "{message}");
    message
}
