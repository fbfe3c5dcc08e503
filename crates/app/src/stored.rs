//! What a program that calls the command keeps: schedules, and how far a call is.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use indicatif::ProgressBar;
use oneport::{CostModel, Schedule};
use serde::{Deserialize, Serialize};

/// A schedule in the memory of a program, what made it, and the costs that it was planned or read
/// with. [`Value::Schedule`](crate::Value::Schedule) hands it to other calls.
#[derive(Debug)]
pub struct StoredSchedule {
    /// The schedule.
    pub schedule: Schedule,
    /// The costs.
    pub cost: CostModel,
    /// The algorithm, unless the schedule was read.
    pub(crate) made_by: Option<MadeBy>,
    /// The file that it was read from, if it has a name.
    pub(crate) file: Option<String>,
}

impl StoredSchedule {
    /// The algorithm that planned it; `None` for one that was read.
    pub fn algorithm(&self) -> Option<&str> {
        self.made_by.as_ref().and(self.schedule.name())
    }

    /// What is known of its plan, or of the file it was read from, as a text: JSON for
    /// [`restored`](StoredSchedule::restored).
    pub fn origin(&self) -> String {
        serde_json::json!({"made_by": self.made_by, "file": self.file}).to_string()
    }

    /// A schedule that was stored elsewhere, with its [`origin`](StoredSchedule::origin); `None` if
    /// that is none.
    pub fn restored(schedule: Schedule, cost: CostModel, origin: &str) -> Option<StoredSchedule> {
        let mut origin: serde_json::Value = serde_json::from_str(origin).ok()?;
        Some(StoredSchedule {
            schedule,
            cost,
            made_by: serde_json::from_value(origin["made_by"].take()).ok()?,
            file: serde_json::from_value(origin["file"].take()).ok()?,
        })
    }
}

/// What is known of the plan of a schedule that a program keeps: it is no longer chosen, but given.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct MadeBy {
    pub(crate) segments: Option<usize>,
    pub(crate) segmented: bool,
    /// Bytes of the largest segment, and of the vector it is a part of.
    pub(crate) segment: Option<(u64, u64)>,
}

/// How far the work of a call is, for the program that made it.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    of: AtomicU64,
    name: Mutex<String>,
    /// Whether work tells: parts of it do not.
    pub(crate) told: AtomicBool,
}

impl Progress {
    /// Units of work that are done, of how many (0: not known), and what is in work.
    pub fn get(&self) -> (u64, u64, String) {
        let name = self.name.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (of(&self.done), of(&self.of), name.clone())
    }

    pub(crate) fn set(&self, bar: &ProgressBar) {
        self.done.store(bar.position(), Ordering::Relaxed);
        let length = bar.length().unwrap_or_default();
        self.of.store(length, Ordering::Relaxed);
        let mut name = self.name.lock().unwrap_or_else(PoisonError::into_inner);
        let message = bar.message();
        if *name != message {
            *name = message;
        }
    }
}
