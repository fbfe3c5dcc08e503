//! Description of the machine and the command of a measurement.

use oneport_measure::Machine;

use crate::units::counted;

/// Processor and cores, such as `Some CPU @ 2 GHz, 2 cores`.
pub(super) fn name() -> String {
    let Machine { cpu, cores, .. } = Machine::this();
    format!("{cpu}, {}", counted(cores, "core"))
}

/// The command line, quoted for a shell.
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
