//! The binary `oneport`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    oneport_app::main(std::env::args_os().skip(1))
}
