//! The binary `oneport`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    oneport_cli::main(std::env::args_os().skip(1))
}
