//! Long series of random cases: reads from the environment which cases to run, and prints how to
//! repeat a case that fails or hangs.

use std::collections::BTreeMap;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

// Sanitizers do not see how the standard library's channels, locks and reference counts order
// accesses.
use parking_lot::Mutex;

/// A case that takes longer hangs, even on a busy machine.
const HANG_TIMEOUT: Duration = Duration::from_secs(180);

/// The number in an environment variable, if it is set.
pub(crate) fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{variable} is '{text}', not a number")))
}

/// Watches one case. Prints the command that repeats it if it panics; prints the command and aborts
/// the process if it hangs.
pub(crate) struct Watch(u64);

/// The running cases: start time, and the command that repeats the case.
static WATCHED: Mutex<BTreeMap<u64, (Instant, String)>> = Mutex::new(BTreeMap::new());

impl Watch {
    pub(crate) fn new(command: String) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        static WATCHER: Once = Once::new();
        let number = NEXT.fetch_add(1, Relaxed);
        WATCHED.lock().insert(number, (Instant::now(), command));
        WATCHER.call_once(|| drop(std::thread::spawn(watch)));
        Watch(number)
    }
}

/// Checks every second for cases that hang.
fn watch() {
    loop {
        std::thread::sleep(Duration::from_secs(1));
        for (since, command) in WATCHED.lock().values() {
            if since.elapsed() > HANG_TIMEOUT {
                eprintln!("this case hangs; repeat it with: {command}");
                std::process::abort();
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let watched = WATCHED.lock().remove(&self.0);
        if let Some((_, command)) = watched
            && std::thread::panicking()
        {
            eprintln!("repeat the case with: {command}");
        }
    }
}
