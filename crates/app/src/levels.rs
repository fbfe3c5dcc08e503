//! The traffic of a schedule on each level of a machine.

use oneport::{CostModel, Schedule};
pub(crate) use oneport_pictures::LevelTraffic as Level;
use oneport_pictures::Traffic;

use crate::units::{counted, show_bytes};

/// The traffic of every level, from the innermost one; `None` if the costs show no levels.
pub(crate) fn traffic(schedule: &Schedule, cost: &CostModel) -> Option<Vec<Level>> {
    let levels = cost.levels(schedule.ranks())?;
    Some(Traffic::new(schedule).by_level(&levels))
}

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

pub(crate) fn cell(level: &Level) -> String {
    format!("{}, {}", level.messages, show_bytes(level.bytes))
}
