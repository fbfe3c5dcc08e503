//! The binary `oneport`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(unix)]
    share_heap();
    oneport_cli::main(std::env::args_os().skip(1))
}

/// Starts this process again with one heap for all threads where it has limits of its own. The C
/// library reserves 64 MiB of address space for the heap of a thread, at a time that nobody can
/// foresee, and may so take what was counted as free; it reads how many heaps there may be when a
/// process starts.
#[cfg(unix)]
fn share_heap() {
    use std::os::unix::process::CommandExt;

    const HEAPS: &str = "MALLOC_ARENA_MAX";
    if std::env::var_os(HEAPS).is_some() || !oneport::run::system::has_own_limits() {
        return;
    }
    let mut words = std::env::args_os();
    if let (Some(name), Ok(program)) = (words.next(), std::env::current_exe()) {
        let mut again = std::process::Command::new(program);
        // It returns only if it fails: then the heaps are as they were.
        let _ = again.arg0(name).args(words).env(HEAPS, "1").exec();
    }
}
