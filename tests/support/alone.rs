//! Tests that look at the threads of their process or need the machine for themselves: one at a
//! time, and none of the others meanwhile.

use std::time::{Duration, Instant};

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

static LOCK: RwLock<()> = RwLock::new(());

/// No other test meanwhile, and no thread of a team left after this one.
pub(crate) struct Alone(#[expect(dead_code, reason = "held")] RwLockWriteGuard<'static, ()>);

pub(crate) fn alone() -> Alone {
    let alone = Alone(LOCK.write());
    assert_eq!(threads_left(), 0);
    alone
}

/// Other tests meanwhile, but none that must be alone. A test that has one of the two guards must
/// not ask for another: it would wait for itself.
pub(crate) fn shared() -> RwLockReadGuard<'static, ()> {
    LOCK.read()
}

impl Drop for Alone {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(threads_left(), 0, "threads left behind");
        }
    }
}

/// Threads that stay. One that has been joined may still be listed for a moment: the kernel wakes
/// the joiner first.
fn threads_left() -> usize {
    let start = Instant::now();
    while threads_of_teams() > 0 && start.elapsed() < Duration::from_secs(10) {
        std::thread::yield_now();
    }
    threads_of_teams()
}

#[cfg(target_os = "linux")]
fn threads_of_teams() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm"));
    tasks
        .filter_map(|task| name(task.ok()?).ok())
        .filter(|name| is_of_a_team(name))
        .count()
}

#[cfg(not(target_os = "linux"))]
fn threads_of_teams() -> usize {
    0
}

/// Whether a thread of this name belongs to a team.
pub(crate) fn is_of_a_team(name: &str) -> bool {
    name.starts_with("rank ") || name.starts_with("worker ")
}
