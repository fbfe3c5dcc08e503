//! A lock for tests that must run alone, because they count the threads of their process or need an
//! idle machine.

use std::time::{Duration, Instant};

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

static LOCK: RwLock<()> = RwLock::new(());

/// Excludes all other tests, and checks at its end that no thread of a team still runs.
pub(crate) struct Alone(#[expect(dead_code, reason = "held")] RwLockWriteGuard<'static, ()>);

pub(crate) fn alone() -> Alone {
    let alone = Alone(LOCK.write());
    assert_eq!(remaining_team_threads(), 0);
    alone
}

/// Admits other tests, except those that must run alone. A test that holds one of the two guards
/// must not request another, because it would wait for itself.
pub(crate) fn shared() -> RwLockReadGuard<'static, ()> {
    LOCK.read()
}

impl Drop for Alone {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(remaining_team_threads(), 0, "threads still running");
        }
    }
}

/// Number of team threads that still run. Waits first, because the kernel wakes the joiner of a
/// thread before it removes that thread from the list.
fn remaining_team_threads() -> usize {
    let start = Instant::now();
    while team_threads() > 0 && start.elapsed() < Duration::from_secs(10) {
        std::thread::yield_now();
    }
    team_threads()
}

#[cfg(target_os = "linux")]
fn team_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm"));
    tasks
        .filter_map(|task| name(task.ok()?).ok())
        .filter(|name| is_team_thread(name))
        .count()
}

#[cfg(not(target_os = "linux"))]
fn team_threads() -> usize {
    0
}

/// Whether a thread with this name belongs to a team.
pub(crate) fn is_team_thread(name: &str) -> bool {
    name.starts_with("rank ") || name.starts_with("worker ")
}
