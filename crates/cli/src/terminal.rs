//! The terminal of a process: lines on standard error, progress bars, colours, signals.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anstream::{AutoStream, ColorChoice};
use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use oneport::mpi::is_launched;
use oneport_app::{Bar, Progress};

/// The terminal of this process.
#[derive(Debug)]
pub(crate) struct Terminal;

impl oneport_app::Terminal for Terminal {
    /// Prints a line at once, so that a launcher that ends this process has it all.
    fn say(&self, label: &str, message: &str) {
        // Words may be paths, which are not cut.
        let message = printable(message, usize::MAX);
        let _ = io::stderr().write_all(format!("{label}: {message}\n").as_bytes());
    }

    fn bar(&self, form: &str) -> Box<dyn Bar> {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(form) {
            bar.set_style(style);
        }
        Box::new(TerminalBar {
            bar,
            start: Instant::now(),
            is_shown: AtomicBool::new(false),
        })
    }

    /// Set by SIGINT, SIGTERM and SIGHUP. A further SIGINT or SIGTERM ends the program.
    fn stop(&self) -> Result<Arc<AtomicBool>> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        use signal_hook::flag;
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))
                .context("cannot listen for Ctrl-C")?;
        }
        // A closing terminal may send SIGHUP twice, once itself and once by its shell. A second
        // SIGHUP therefore does not end the program.
        let hangup = (!is_ignored(SIGHUP)).then_some(SIGHUP);
        for signal in [SIGINT, SIGTERM].into_iter().chain(hangup) {
            flag::register(signal, Arc::clone(&stop)).context("cannot listen for Ctrl-C")?;
        }
        Ok(stop)
    }

    /// Columns of the terminal, or what `COLUMNS` says.
    fn columns(&self) -> Option<u16> {
        let said = std::env::var("COLUMNS").ok();
        let said = said.and_then(|columns| columns.parse().ok());
        said.or_else(|| Some(terminal_size::terminal_size_of(io::stdout())?.0.0))
    }

    /// A launcher may give the first process a terminal of its own, and pass on to a file.
    fn is_coloured(&self) -> bool {
        !is_launched() && AutoStream::choice(&io::stdout()) != ColorChoice::Never
    }

    fn is_screen(&self) -> bool {
        io::stdout().is_terminal()
    }
}

/// Whether this process was started with the signal ignored, as `nohup` does with SIGHUP, if the
/// system reports it.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}

const MIN_DURATION: Duration = Duration::from_millis(300);

/// A progress bar that appears only if the work takes long, and only on a terminal.
#[derive(Debug)]
struct TerminalBar {
    bar: ProgressBar,
    start: Instant,
    is_shown: AtomicBool,
}

impl Bar for TerminalBar {
    fn show(&self, progress: &Progress) {
        let (done, of, name) = progress.get();
        self.bar.set_length(of);
        self.bar.set_message(name);
        if done > 0 && self.bar.position() == 0 {
            // The preparation before the first unit does not count for the estimate of the
            // remaining time.
            self.bar.reset_eta();
        }
        self.bar.set_position(done);
        let is_long = self.start.elapsed() >= MIN_DURATION;
        if is_long && !self.is_shown.swap(true, Ordering::Relaxed) {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.bar.tick();
        }
    }

    fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Prints what the parser of the command line says. It repeats arguments as they are.
pub(crate) fn show(error: &clap::Error) {
    let plain = error.render().to_string();
    let shown = printable(&plain, MAX_WORD);
    if shown == plain || !error.use_stderr() {
        let _ = error.print();
    } else {
        let _ = io::stderr().write_all(shown.as_bytes());
    }
}

/// Characters of a word and of a message that are shown: both may be content of a file.
const MAX_WORD: usize = 200;
const MAX_MESSAGE: usize = 8_000;

/// The text with escapes in place of control characters, which a terminal would obey. Words longer
/// than `max_word` are cut, and the text after [`MAX_MESSAGE`] characters.
fn printable(text: &str, max_word: usize) -> String {
    let (mut shown, mut length, mut word) = (String::new(), 0, 0);
    for c in text.chars() {
        word = if c.is_whitespace() { 0 } else { word + 1 };
        if word > max_word {
            if word - 1 == max_word {
                shown.push_str("...");
            }
            continue;
        }
        if c.is_control() && c != '\n' {
            shown.extend(c.escape_debug())
        } else {
            shown.push(c)
        }
        length += 1;
        if length == MAX_MESSAGE {
            shown.push_str("...\n");
            break;
        }
    }
    shown
}
