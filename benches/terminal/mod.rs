//! What a bare `cargo bench` shows: a screen. Details go to files.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
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
    print!("{bench}: ");
    let terminal = redirect(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let done = work();
    drop(terminal);
    let seconds = start.elapsed().as_secs_f64();
    println!("{seconds:.0} s, figures in {}", path.display());
    done
}

/// The terminal, while standard output and standard error, which criterion uses as well, go to a
/// file.
struct Terminal {
    output: OwnedFd,
    error: OwnedFd,
    file: PathBuf,
}

fn redirect(path: &Path) -> std::io::Result<Terminal> {
    std::fs::create_dir_all(folder())?;
    let file = File::create(path)?;
    std::io::stdout().flush()?;
    let terminal = Terminal {
        output: rustix::io::dup(std::io::stdout())?,
        error: rustix::io::dup(std::io::stderr())?,
        file: path.into(),
    };
    rustix::stdio::dup2_stdout(&file)?;
    rustix::stdio::dup2_stderr(&file)?;
    Ok(terminal)
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = std::io::stdout().flush();
        let _ = rustix::stdio::dup2_stdout(&self.output);
        let _ = rustix::stdio::dup2_stderr(&self.error);
        if std::thread::panicking() {
            println!("failed, see {}", self.file.display());
        }
    }
}
