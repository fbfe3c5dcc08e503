//! The traffic of a schedule on each level of a machine.

use oneport::{CostModel, Schedule};
use oneport_pictures::{LevelTraffic, Traffic};
use serde::Serialize;

use crate::units::{counted, show_bytes};

/// The traffic between ranks whose innermost common group is of one level.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Level {
    messages: usize,
    bytes: u64,
    /// Bytes that the rank with the most of them sends.
    max_sent: u64,
}

/// The traffic of every level, from the innermost one; `None` if the costs show no levels.
pub(crate) fn traffic(schedule: &Schedule, cost: &CostModel) -> Option<Vec<Level>> {
    let levels = cost.levels(schedule.ranks())?;
    let traffic = Traffic::new(schedule).by_level(&levels);
    let level = |traffic: LevelTraffic| Level {
        messages: traffic.messages,
        bytes: traffic.bytes,
        max_sent: traffic.max_sent,
    };
    Some(traffic.into_iter().map(level).collect())
}

/// A line for each level, for the summary of a schedule.
pub(crate) fn lines(levels: &[Level]) -> Vec<(&'static str, String)> {
    let line = |(number, level): (usize, &Level)| {
        let name = if number == 0 { "levels" } else { "" };
        let text = format!(
            "{number}: {}, {} together, at most {} from a rank",
            counted(level.messages, "message"),
            show_bytes(level.bytes),
            show_bytes(level.max_sent)
        );
        (name, text)
    };
    levels.iter().enumerate().map(line).collect()
}

impl Level {
    /// Messages and bytes, for a column of a table.
    pub(crate) fn cell(&self) -> String {
        format!("{}, {}", self.messages, show_bytes(self.bytes))
    }
}
