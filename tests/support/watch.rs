//! Long series of random cases: how many, and how to run one of them once more.

use std::collections::BTreeMap;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

// The standard library's channels, locks and reference counts order accesses in ways that
// sanitizers do not see.
use parking_lot::Mutex;

/// What takes longer than this hangs, however busy the machine is.
const HANGS: Duration = Duration::from_secs(180);

/// The number in an environment variable.
pub(crate) fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{variable} is '{text}', not a number")))
}

/// Says how to run something once more if it fails; ends the process, and says so, if it hangs.
pub(crate) struct Watch(u64);

/// What is under way: since when, and how to run it once more.
static WATCHED: Mutex<BTreeMap<u64, (Instant, String)>> = Mutex::new(BTreeMap::new());

impl Watch {
    pub(crate) fn new(once_more: String) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        static WATCHER: Once = Once::new();
        let number = NEXT.fetch_add(1, Relaxed);
        WATCHED.lock().insert(number, (Instant::now(), once_more));
        WATCHER.call_once(|| drop(std::thread::spawn(watch)));
        Watch(number)
    }
}

/// Looks for what hangs, as long as the process lives.
fn watch() {
    loop {
        std::thread::sleep(Duration::from_secs(1));
        for (since, once_more) in WATCHED.lock().values() {
            if since.elapsed() > HANGS {
                eprintln!("this hangs; once more: {once_more}");
                std::process::abort();
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let watched = WATCHED.lock().remove(&self.0);
        if let Some((_, once_more)) = watched
            && std::thread::panicking()
        {
            eprintln!("once more: {once_more}");
        }
    }
}
