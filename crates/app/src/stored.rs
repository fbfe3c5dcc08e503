//! Schedules that a program keeps.

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
