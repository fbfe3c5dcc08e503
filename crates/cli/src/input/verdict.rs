//! Whether the schedule of a command is right.

use oneport::Schedule;
use oneport::check::{Finding, Options, Report};

use super::{Input, print_warnings};
use crate::args::Common;
use crate::memory::{LARGE_SCHEDULE, ensure_memory};
use crate::output;

/// Memory of a step while its schedule is proved, in bytes; 55 to 100 were measured.
const BYTES_PER_STEP: u128 = 200;

impl Input {
    /// Proves the schedule, in rank order if the options ask for that. Reports at most `max_errors`
    /// errors in full.
    pub(crate) fn check(&self, args: &Common, max_errors: usize) -> Report {
        let options = Options {
            keep_order: args.vector.keep_order() && self.schedule.collective().kind().reduces(),
            overlap: self.cost.overlaps(),
            max_errors,
        };
        self.schedule.check_with(&options)
    }

    /// As [`print_warnings`], and says if a schedule that was read is wrong: nothing that a command
    /// makes of it shows that. Planned schedules are right.
    pub(crate) fn print_warnings(&mut self, args: &Common) {
        print_warnings(args, &self.schedule);
        if self.planned.is_none() {
            self.info.correct = note_if_wrong(&self.schedule, || self.check(args, 1));
        }
    }
}

/// Notes what is wrong with `schedule`, or why it is not known whether anything is. Returns whether
/// it is right.
pub(crate) fn note_if_wrong(schedule: &Schedule, prove: impl FnOnce() -> Report) -> Option<bool> {
    let bytes = schedule.steps() as u128 * BYTES_PER_STEP;
    if let Err(error) = ensure_memory("its proof", bytes, LARGE_SCHEDULE) {
        output::note(&format!("the schedule may be wrong: {error}"));
        return None;
    }
    let report = prove();
    if let Some(wrong) = first_of(report.errors.iter(), report.more) {
        output::note(&format!("the schedule is wrong: {wrong}"));
    }
    Some(report.is_correct())
}

/// The first of `errors`, and how many there are besides, with `more` that are not listed.
pub(crate) fn first_of<'f>(
    mut errors: impl Iterator<Item = &'f Finding>,
    more: usize,
) -> Option<String> {
    let first = errors.next()?;
    let others = match errors.count() + more {
        0 => String::new(),
        n => format!("; {n} more, see oneport check"),
    };
    Some(format!("{}{others}", first.message))
}
