//! The way into the interpreter, which closes when it ends. A thread that enters a Python that is
//! being taken down ends with the process in an error, or ends it: threads of runs, and daemon
//! threads of Python that wait for one, come from outside at any time.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// How many threads are inside, or on their way, and [`CLOSED`].
static DOOR: AtomicUsize = AtomicUsize::new(0);
const CLOSED: usize = 1 << (usize::BITS - 1);
/// The thread that takes the interpreter down.
static LAST: OnceLock<ThreadId> = OnceLock::new();

/// A thread that is inside, or may go there.
struct Inside;

impl Inside {
    /// `None` if the door is closed.
    fn enter() -> Option<Inside> {
        let more = |door: usize| (door & CLOSED == 0).then_some(door + 1);
        let entered = DOOR.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        entered.ok().map(|_| Inside)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        DOOR.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Does something in the interpreter, from a thread that is outside; `None` if that ends.
pub(crate) fn attached<R>(act: impl FnOnce(Python<'_>) -> R) -> Option<R> {
    let _inside = Inside::enter()?;
    Some(Python::attach(act))
}

/// Does work while other threads have the interpreter. If that ends meanwhile, this thread, whose
/// stack has frames of Python, has nowhere to return to: it sleeps until the process is gone.
pub(crate) fn detached<R: Send>(py: Python<'_>, work: impl FnOnce() -> R + Send) -> PyResult<R> {
    if LAST.get() == Some(&std::thread::current().id()) {
        return Err(PyRuntimeError::new_err("the interpreter is shutting down"));
    }
    let sleep = || -> Inside {
        loop {
            std::thread::park();
        }
    };
    let (result, _inside) = py.detach(|| {
        if DOOR.load(Ordering::Acquire) & CLOSED != 0 {
            sleep();
        }
        let result = work();
        (result, Inside::enter().unwrap_or_else(sleep))
    });
    Ok(result)
}

/// Closes the door for good, and waits for those inside, for a while: a function of Python that an
/// operator calls may take longer.
#[pyfunction]
pub(crate) fn close(py: Python<'_>) {
    const PATIENCE: Duration = Duration::from_secs(1);
    const INTERVAL: Duration = Duration::from_millis(1);
    let _ = LAST.set(std::thread::current().id());
    py.detach(|| {
        let start = Instant::now();
        DOOR.fetch_or(CLOSED, Ordering::AcqRel);
        while DOOR.load(Ordering::Acquire) != CLOSED && start.elapsed() < PATIENCE {
            std::thread::sleep(INTERVAL);
        }
    });
}
