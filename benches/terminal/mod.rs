//! What a bare `cargo bench` shows: a screen. Details go to files.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Whether this is `cargo bench` without arguments for the benches.
pub(crate) fn is_bare() -> bool {
    let mut args = std::env::args().skip(1).peekable();
    args.peek().is_some() && args.all(|arg| arg == "--bench")
}

/// The folder of the files that benches write.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("oneport-bench")
}

/// Does `work`. In a bare `cargo bench` what it prints goes to a file of [`folder`] instead of the
/// terminal, and a line says so.
pub(crate) fn detailed<T>(bench: &str, work: impl FnOnce() -> T) -> T {
    if !is_bare() {
        return work();
    }
    let start = Instant::now();
    let path = folder().join(format!("{bench}.txt"));
    let terminal = redirect(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let done = work();
    let _ = std::io::stdout().flush();
    rustix::stdio::dup2_stdout(terminal).expect("the terminal is open");
    let seconds = start.elapsed().as_secs_f64();
    println!("{bench}: {seconds:.0} s, figures in {}", path.display());
    done
}

/// Sends standard output to a file and returns what it was.
fn redirect(path: &Path) -> std::io::Result<std::os::fd::OwnedFd> {
    std::fs::create_dir_all(folder())?;
    let terminal = rustix::io::dup(std::io::stdout())?;
    std::io::stdout().flush()?;
    rustix::stdio::dup2_stdout(File::create(path)?)?;
    Ok(terminal)
}
