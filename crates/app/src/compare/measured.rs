//! Measured times of the algorithms, interleaved, and of the library's own function beside them.

use oneport::ErrorKind;
use oneport::run::Run;
use oneport_measure::{Measurable, interleave, without_library};

use super::{Candidate, CompareArgs, CompareRow};
use crate::args::operator;
use crate::prelude::*;
use crate::run::{LibraryTimes, WallSummary, memory_of_schedule};
use crate::site::summary;

/// Repetitions before those of a batch that are not timed.
const WARMUP: usize = 1;
const DEADLINE: Duration = Duration::from_secs(10);

/// The measured part of a comparison.
pub(super) struct MeasuredPart {
    /// The processes, if the engine is MPI.
    mpi: Option<Processes>,
    /// The library's own function, its ratio to the fastest algorithm.
    library: Option<LibraryTimes>,
    warnings: Vec<String>,
}

/// The schedules of all candidates, if they fit into memory together.
pub(super) fn plan(rows: &[CompareRow]) -> Result<Vec<Schedule>> {
    let schedules = rows.iter().map(|row| match &row.candidate {
        Candidate::Planned(variant) => variant.plan(),
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

/// Measures the `schedules` of the rows `of`, of which there is at least one; ranks arrive late as
/// in `cost`.
pub(super) fn measure(
    args: &CompareArgs,
    schedules: &[Schedule],
    cost: &CostModel,
    of: &mut [CompareRow],
    site: &mut Site,
) -> Result<MeasuredPart> {
    let caller = site.caller.clone();
    let mut runs = oneport::with_element_type!(args.common.typed().1, T => {
        runs::<T>(args, schedules, cost, &caller)
    })?;
    let mut why_no_library = None;
    if let Some(library) = runs.pop().filter(|_| site.world.is_some()) {
        why_no_library = without_library(site, &library)?;
        if why_no_library.is_none() {
            runs.push(library);
        }
    }
    let progress = WorkBar::new(&caller, 0, "measuring {wide_bar} {percent}%, {eta} left");
    let mut rows = interleave(site, &runs, |done, of| progress.set(done, of))?;
    progress.finish();
    // What refuses all runs is the error above, and said once.
    if let Some(reason) = why_no_library {
        caller.note(format!("the library is not measured: {reason}"));
    }
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

/// The runs of `schedules` with elements of type `T`; the last one is by the library's function.
fn runs<'s, T: Element>(
    args: &CompareArgs,
    schedules: &'s [Schedule],
    cost: &CostModel,
    caller: &Caller,
) -> oneport::Result<Vec<Box<dyn Measurable + 's>>> {
    let kind = schedules[0].collective().kind();
    let operator = operator::<T>(kind, args.common.vector.op())?;
    let run = |schedule| {
        caller
            .stoppable(Run::new(schedule))
            .op(&operator)
            .cost(cost.clone())
            .deadline(args.deadline.unwrap_or(DEADLINE))
            .repetitions(args.repetitions())
            .warmup(WARMUP)
            .keep_inputs(args.inputs.inputs.kept())
            .verified()
    };
    let by_library = run(&schedules[0]).by_library();
    let runs = schedules.iter().map(run).chain([by_library]);
    Ok(runs.map(|run| Box::new(run) as _).collect())
}

impl MeasuredPart {
    pub(super) fn json(&self, args: &CompareArgs) -> impl Answered {
        record! {
            engine: args.engine.map_or("", |engine| engine.name()),
            repetitions: args.repetitions(),
            warmup: WARMUP,
            inputs: args.inputs.inputs.name(),
            dtype: args.common.typed().1.name(),
            mpi (optional): self.mpi.as_ref(),
            library (optional): self.library.as_ref(),
            warnings: &self.warnings,
        }
    }

    /// What a reader of the times should know.
    pub(super) fn print_warnings(&self, caller: &Caller) {
        caller.notes(&self.warnings);
        if let Some(library) = &self.library
            && let Some(error) = &library.error
        {
            caller.note(format!(
                "the result of {} is wrong: {error}",
                library.function
            ));
        }
    }

    /// The row of the library's own function beside those of algorithms, such as this one.
    pub(super) fn library_beside(&self, row: &SweepRow) -> Option<SweepRow> {
        let library = self.library.as_ref()?;
        Some(row.beside(library.function, library.wall.median as f64))
    }

    /// What times are, for the heading of a sweep.
    pub(super) fn in_words(&self, args: &CompareArgs) -> String {
        let on = self.mpi.as_ref().map(ToString::to_string);
        let on = on.unwrap_or_else(|| "threads".into());
        let (n, dtype) = (args.repetitions(), args.common.typed().1);
        format!("; measured: medians of {n} repetitions, {dtype}, on {on}")
    }

    /// Where and how it was measured.
    pub(super) fn summary(&self, args: &CompareArgs) -> Vec<(&'static str, String)> {
        let mut lines = vec![(
            "measured",
            format!(
                "{} repetitions of each, interleaved, {}, verified; {WARMUP} warm-up a batch, inputs {}",
                args.repetitions(),
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
        out: &mut Lines,
        rows: &[CompareRow],
        unit: Unit,
        last_arrival: f64,
    ) -> Result<()> {
        let walls = rows.iter().filter_map(|row| row.wall.as_ref());
        let best = walls.map(|wall| wall.median).min().unwrap_or(0).max(1);
        let ns = |time: u64| show_ns(time as f64);
        // The library's function has no row.
        let x_best = match self.library {
            Some(_) => ">x best algorithm",
            None => ">x best",
        };
        type Line<'a> = (&'a WallSummary, Result<&'a CompareRow, &'a str>);
        let of = |row: &CompareRow| Some(row.figures.time - last_arrival);
        let x_model = |wall: &WallSummary, row: &CompareRow| {
            let ratio = wall.median as f64 / of(row)?;
            (unit == Unit::Nanoseconds && ratio.is_finite()).then(|| number(ratio, 4))
        };
        let columns = Columns::<Line>::default()
            .add("algorithm", |(_, row)| match row {
                Ok(row) => row.figures.algorithm.clone(),
                Err(function) => (*function).to_string(),
            })
            .add(">median", |(wall, _)| ns(wall.median))
            .add(">interval", |(wall, _)| {
                format!("{} - {}", ns(wall.low), ns(wall.high))
            })
            .add(x_best, |(wall, _)| {
                number(wall.median as f64 / best as f64, 4)
            })
            .add(">model", |(_, row)| {
                or_dash(row.ok().and_then(of).map(|time| unit.show(time)))
            })
            .add(">x model", |(wall, row)| {
                or_dash(row.ok().and_then(|row| x_model(wall, row)))
            })
            .add(">root", |(_, row)| {
                or_dash(row.ok().and_then(|row| row.info.root))
            })
            .add(">segments", |(_, row)| {
                or_dash(row.ok().and_then(|row| row.info.segments))
            })
            .add(">segment", |(_, row)| {
                or_dash(row.ok().and_then(|row| row.info.segment.map(show_bytes)))
            });
        let rows = rows
            .iter()
            .filter_map(|row| Some((row.wall.as_ref()?, Ok(row))));
        let library = self
            .library
            .iter()
            .map(|own| (&own.wall, Err(own.function)));
        let mut lines: Vec<Line> = rows.chain(library).collect();
        lines.sort_by_key(|(wall, _)| wall.median);
        output::table_with(out, &columns, lines, output::first_is_best)
    }
}
