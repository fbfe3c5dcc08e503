//! Measured times of the algorithms, interleaved, and of the library's own function beside them.

use anyhow::Result;
use oneport::run::{Element, Place, Processes, Run};
use oneport::{CostModel, Error, ErrorKind, Schedule};
use oneport_measure::{by_library, interleave};
use serde::Serialize;

use super::{Candidate, CompareArgs, CompareRow};
use crate::args::operator;
use crate::memory::ensure_memory;
use crate::output::{self, record};
use crate::progress::WorkBar;
use crate::run::{LibraryTimes, WallSummary, memory_of_schedule};
use crate::site::{Site, summary};
use crate::units::{Unit, number, or_dash, show_bytes, show_ns};

/// Repetitions before those of a batch that are not timed.
const WARMUP: usize = 1;

/// The measured part of a comparison.
pub(super) struct MeasuredPart {
    /// The processes, if the engine is MPI.
    mpi: Option<Processes>,
    /// The library's own function, its ratio to the fastest algorithm.
    library: Option<LibraryTimes>,
    warnings: Vec<String>,
}

/// The schedules of all candidates, if they fit into memory together.
pub(super) fn plan(candidates: &[Candidate]) -> Result<Vec<Schedule>> {
    let schedules = candidates.iter().map(|candidate| match candidate {
        Candidate::Planned(choice) => choice.algorithm.plan(&choice.request),
        Candidate::Own(schedule) => Ok(schedule.clone()),
    });
    let schedules = schedules.collect::<oneport::Result<Vec<_>>>()?;
    let memory = schedules.iter().map(memory_of_schedule);
    let memory = memory.fold(0u64, u64::saturating_add);
    let (what, advice) = (
        "measuring all algorithms",
        "take fewer ranks or a smaller vector",
    );
    ensure_memory(what, memory.into(), advice)?;
    Ok(schedules)
}

/// Measures the `schedules` of the rows `of`, of which there is at least one, with elements of type
/// `T`; ranks arrive late as in `cost`.
pub(super) fn measure<T: Element>(
    args: &CompareArgs,
    schedules: &[Schedule],
    cost: &CostModel,
    of: &mut [CompareRow],
    site: &mut Site,
) -> Result<MeasuredPart> {
    let kind = schedules[0].collective().kind();
    let operator = operator::<T>(kind, args.common.vector.op())?;
    let run = |schedule| {
        Run::new(schedule)
            .op(&operator)
            .cost(cost.clone())
            .deadline(args.deadline)
            .repetitions(args.repetitions)
            .warmup(WARMUP)
            .keep_inputs(args.inputs.inputs.kept())
            .verified()
    };
    let mut runs: Vec<Run<'_, T>> = schedules.iter().map(run).collect();
    if site.world.is_some() {
        match by_library(site, &runs[0])? {
            Ok(own) => runs.push(own),
            Err(reason) => output::note(&format!("the library is not measured: {reason}")),
        }
    }
    let progress = WorkBar::new(0, "measuring {wide_bar} {percent}%, {eta} left");
    let mut rows = interleave(site, &runs, |done, of| progress.set(done, of))?;
    progress.finish();
    let library = rows.split_off(of.len()).pop();
    for (row, of) in rows.iter().zip(&mut *of) {
        let wall = WallSummary::of(&row.wall);
        of.figures.median = Some(wall.median as f64);
        of.wall = Some(wall);
        if let Some(mismatch) = &row.error {
            let name = &of.figures.algorithm;
            let wrong = ErrorKind::Wrong(format!("wrong result of {name}: {mismatch}"));
            return Err(Error::from(wrong).into());
        }
    }
    // They differ in figures at most.
    let warnings = rows.iter().map(|row| &row.warnings);
    let warnings = warnings.max_by_key(|warnings| warnings.len());
    let fastest = rows.iter().map(|row| row.wall.median_ns());
    let fastest = fastest.min().unwrap_or(0);
    Ok(MeasuredPart {
        mpi: site.processes(),
        library: library.map(|theirs| LibraryTimes::of(&theirs, fastest)),
        warnings: warnings.cloned().unwrap_or_default(),
    })
}

impl MeasuredPart {
    pub(super) fn json(&self, args: &CompareArgs) -> impl Serialize {
        record! {
            engine: args.engine().map_or("", |engine| engine.name()),
            repetitions: args.repetitions,
            warmup: WARMUP,
            inputs: args.inputs.inputs,
            dtype: args.common.typed().1.name(),
            mpi (optional): self.mpi.as_ref(),
            library (optional): self.library.as_ref(),
            warnings: &self.warnings,
        }
    }

    /// What a reader of the times should know.
    pub(super) fn print_warnings(&self) {
        output::notes(&self.warnings);
        if let Some(library) = &self.library
            && let Some(error) = &library.error
        {
            output::note(&format!(
                "the result of {} is wrong: {error}",
                library.function
            ));
        }
    }

    /// Where and how it was measured.
    pub(super) fn summary(&self, args: &CompareArgs) -> Vec<(&'static str, String)> {
        let mut lines = vec![(
            "measured",
            format!(
                "{} repetitions of each, interleaved, {}, verified; {WARMUP} warm-up a batch, inputs {}",
                args.repetitions,
                args.common.typed().1,
                args.inputs.inputs.name()
            ),
        )];
        if let Some(mpi) = &self.mpi {
            lines.extend(summary(mpi));
            lines.push(("timing", mpi.timing.to_string()));
        }
        lines
    }

    /// The table: the algorithms and the library's function, fastest first. `unit` is that of model
    /// times.
    pub(super) fn print(
        &self,
        out: &mut dyn std::io::Write,
        rows: &[CompareRow],
        unit: Unit,
        last_arrival: f64,
    ) -> Result<()> {
        let walls = rows.iter().filter_map(|row| row.wall.as_ref());
        let best = walls.map(|wall| wall.median).min().unwrap_or(0).max(1);
        let line = |name: &str, wall: &WallSummary, others: [String; 5]| {
            let mut cells = vec![
                name.to_string(),
                show_ns(wall.median as f64),
                format!(
                    "{} - {}",
                    show_ns(wall.low as f64),
                    show_ns(wall.high as f64)
                ),
                number(wall.median as f64 / best as f64, 4),
            ];
            cells.extend(others);
            (wall.median, cells)
        };
        let of_row = |row: &CompareRow| {
            let wall = row.wall.as_ref()?;
            let (time, info) = (row.figures.time - last_arrival, &row.info);
            let ratio = wall.median as f64 / time;
            let in_ns = unit == Unit::Nanoseconds && ratio.is_finite();
            let others = [
                unit.show(time),
                or_dash(in_ns.then(|| number(ratio, 4))),
                or_dash(info.root),
                or_dash(info.segments),
                or_dash(info.segment.map(show_bytes)),
            ];
            Some(line(&row.figures.algorithm, wall, others))
        };
        let mut lines: Vec<_> = rows.iter().filter_map(of_row).collect();
        if let Some(library) = &self.library {
            let none = ["-"; 5].map(String::from);
            lines.push(line(library.function, &library.wall, none));
        }
        lines.sort_by_key(|(median, _)| *median);
        let header = "algorithm|>median|>interval|>x best|>model|>x model|>root|>segments|>segment";
        let lines = lines.into_iter().map(|(_, cells)| cells);
        output::table_with(out, header, lines, output::first_is_best)
    }
}
