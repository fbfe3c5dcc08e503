//! One schedule or several files, each proved; right files are judged beside the fastest algorithm.

use std::borrow::Cow;

use oneport::check::Report;
use oneport::internal::budget::memory::STEP_BYTES;
use oneport::simulate::bounds::LowerBounds;

use super::{CheckArgs, verdict};
use crate::args::Common;
use crate::input::{OwnFile, ScheduleInfo, print_warnings};
use crate::prelude::*;
use crate::task::finite;

#[derive(Serialize)]
struct One {
    #[serde(flatten)]
    report: Report,
    #[serde(flatten)]
    info: ScheduleInfo,
    #[serde(flatten)]
    judgement: Option<Judgement>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Checked {
    One(Box<One>),
    Unreadable {
        ok: bool,
        errors: [(); 0],
        schedule: String,
        error: String,
    },
}

#[derive(Debug, Clone, Copy, Serialize)]
struct Totals {
    time: Number,
    rounds: usize,
    messages: usize,
    bytes: u64,
}

/// A right schedule beside the fastest algorithm and the lower bounds.
#[derive(Serialize)]
struct Judgement {
    #[serde(flatten)]
    own: Totals,
    ratio: Option<f64>,
    lower_bounds: Totals,
    /// The fastest algorithm, if the problem is one that algorithms plan.
    best: Option<Best>,
    #[serde(skip)]
    unit: Unit,
}

#[derive(Debug, Clone, Serialize)]
struct Best {
    algorithm: Cow<'static, str>,
    #[serde(flatten)]
    totals: Totals,
}

/// The fastest algorithms of the problems that have been met, so that none is looked for twice.
type Known = Vec<(Request, Option<Best>)>;

pub(super) fn one(args: &CheckArgs, out: &mut dyn Write) -> Result<()> {
    let input = match (args.common.input(), &args.common.files()?[..]) {
        (Err(error), [file]) if args.common.json => {
            output::json(out, &Checked::unreadable(file, &error))?;
            return Err(error);
        }
        (input, _) => input?,
    };
    print_warnings(&args.common, &input.schedule);
    let one = One::new(args, &input, &mut Known::new());
    output::answer(out, args.common.json, &one, |out| one.print(&input, out))?;
    let report = &one.report;
    verdict(report.is_correct(), report.errors.len() + report.more)
}

pub(super) fn several(args: &CheckArgs, out: &mut dyn Write) -> Result<()> {
    // A family has a file for each number of ranks.
    let points = args.common.points();
    let families = args.common.files()?;
    let families = families.iter();
    let files = families.flat_map(|file| points.iter().map(move |point| (point, file)));
    let files: Vec<_> = files.collect();
    let bar = WorkBar::new(files.len() as u64, "checking {msg} {wide_bar} {pos}/{len}");
    let mut known = Known::new();
    let check = |&(point, file): &(&Common, &OwnFile)| {
        let ranks = point.ranks().ok().flatten();
        let file = &file.of_family(ranks).unwrap_or_else(|_| file.clone());
        bar.name(&name_of(&file.path));
        let checked = match point.read(file) {
            Ok(input) => Checked::One(Box::new(One::new(args, &input, &mut known))),
            Err(error) => Checked::unreadable(file, &error),
        };
        bar.add(1);
        checked
    };
    let schedules: Vec<Checked> = files.iter().map(check).collect();
    bar.finish();
    let wrong = schedules.iter().filter(|checked| !checked.is_right());
    let wrong = wrong.count();
    let json = record! { ok: wrong == 0, schedules: &schedules };
    output::answer(out, args.common.json, &json, |out| print(&schedules, out))?;
    if wrong > 0 {
        let all = counted(files.len(), "schedule");
        return Err(output::wrong(format!("{wrong} of {all} failed the check")));
    }
    Ok(())
}

impl One {
    fn new(args: &CheckArgs, input: &Input, known: &mut Known) -> One {
        let report = input.check(&args.common, args.max_errors);
        // Files that tell only what is sent have no outputs.
        let has_output = input.schedule.layout().iter().any(|l| !l.output.is_empty());
        let read = input.planned.is_none() && input.series.is_none();
        let judged = report.is_correct() && read && has_output;
        let keep_order = input.info.kind.reduces() && args.common.vector.keep_order();
        let judgement = || Judgement::of(input, keep_order, known);
        One {
            judgement: judged.then(judgement).flatten(),
            report,
            info: input.info.clone(),
        }
    }

    fn print(&self, input: &Input, out: &mut dyn Write) -> Result<()> {
        let mut summary = input.summary();
        summary.retain(|(name, _)| *name != "costs");
        summary.push(("steps", input.schedule.steps().to_string()));
        summary.push(("result", self.report.to_string()));
        if let Some(judgement) = &self.judgement {
            summary.push(("verdict", judgement.sentence()));
        }
        output::summary(out, &summary)?;
        match &self.judgement {
            Some(judgement) => judgement.print(out),
            None => Ok(()),
        }
    }
}

impl Checked {
    fn unreadable(file: &OwnFile, error: &anyhow::Error) -> Checked {
        Checked::Unreadable {
            ok: false,
            errors: [],
            schedule: name_of(&file.path),
            error: format!("{error:#}"),
        }
    }

    fn is_right(&self) -> bool {
        matches!(self, Checked::One(one) if one.report.is_correct())
    }

    /// It, if it is right.
    fn right(&self) -> Option<&One> {
        match self {
            Checked::One(one) if self.is_right() => Some(one),
            _ => None,
        }
    }

    /// What it is to do: `reduce, root 0, 4 ranks, bi`.
    fn task(&self) -> Option<String> {
        let Checked::One(one) = self else { return None };
        let info = &one.info;
        let root = info
            .root
            .map_or(String::new(), |root| format!(", root {root}"));
        let ported = if info.ported > 1 {
            format!(" x {}", info.ported)
        } else {
            String::new()
        };
        let (kind, ranks, ports) = (info.collective, info.ranks, info.ports);
        Some(format!("{kind}{root}, {ranks} ranks, {ports}{ported}"))
    }

    fn judged(&self) -> Option<&Judgement> {
        self.right()?.judgement.as_ref()
    }

    fn name(&self) -> &str {
        match self {
            Checked::One(one) => one.info.schedule.as_deref().unwrap_or("-"),
            Checked::Unreadable { schedule, .. } => schedule,
        }
    }

    /// The name that the schedule has besides that of its file.
    fn own_name(&self) -> Option<&str> {
        match self {
            Checked::One(one) => one.info.algorithm.as_deref(),
            Checked::Unreadable { .. } => None,
        }
    }

    fn line(&self) -> String {
        let one = match self {
            Checked::Unreadable { error, .. } => return error.clone(),
            Checked::One(one) => one,
        };
        let count = |first: &[_], more: usize| match first.len() + more {
            0 | 1 => String::new(),
            n => format!(" ({} more)", n - 1),
        };
        let report = &one.report;
        if let Some(first) = report.errors.first() {
            return format!("wrong: {first}{}", count(&report.errors, report.more));
        }
        let mut line = match (report.is_correct(), report.keeps_order) {
            (false, _) => "wrong".to_string(),
            (true, true) => "correct".into(),
            (true, false) => "correct for operators that commute".into(),
        };
        if let Some(judgement) = &one.judgement {
            line += &format!("; {}", judgement.sentence());
        }
        if let Some(first) = report.notes.first() {
            line += &format!("; {first}{}", count(&report.notes, report.more_notes));
        }
        line
    }
}

fn print(schedules: &[Checked], out: &mut dyn Write) -> Result<()> {
    for checked in schedules {
        let (name, line) = (checked.name(), checked.line());
        // An error of a file begins with its name.
        let line = line.strip_prefix(&format!("{name}: ")).unwrap_or(&line);
        writeln!(out, "{name}: {line}")?;
    }
    writeln!(out)?;
    let mut tasks = schedules.iter().filter_map(Checked::task);
    let first = tasks.next();
    let several = tasks.any(|other| Some(other) != first);
    let notes = |one: &One| one.report.notes.len() + one.report.more_notes;
    let named = schedules.iter().any(|checked| checked.own_name().is_some());
    let columns = Columns::<Checked>::default()
        .add("schedule", |checked| checked.name().to_string())
        .add_if(named, "name", |checked| or_dash(checked.own_name()))
        .add_if(several, "task", |checked| or_dash(checked.task()))
        .add("result", |checked| match checked {
            Checked::Unreadable { .. } => "UNREADABLE",
            Checked::One(_) if checked.is_right() => "correct",
            Checked::One(_) => "WRONG",
        })
        .add(">time", |checked| {
            or_dash(checked.judged().map(|j| j.unit.show(j.own.time.0)))
        })
        .add(">x bound", |checked| {
            or_dash(checked.judged().and_then(|j| Some(number(j.ratio?, 3))))
        })
        .add(">rounds", |checked| {
            or_dash(checked.judged().map(|j| j.own.rounds))
        })
        .add(">messages", |checked| {
            or_dash(checked.judged().map(|j| j.own.messages))
        })
        .add(">volume", |checked| {
            or_dash(checked.judged().map(|j| show_bytes(j.own.bytes)))
        })
        .add(">notes", |checked| or_dash(checked.right().map(notes)));
    output::table_with(out, &columns, schedules, |row| {
        (!schedules[row].is_right()).then_some(output::WRONG)
    })
}

impl Judgement {
    /// `None` if the schedule has no model time here, or the memory does not hold its times.
    fn of(input: &Input, keep_order: bool, known: &mut Known) -> Option<Judgement> {
        let (schedule, cost) = (&input.schedule, &input.cost);
        // It and the fastest algorithm's are timed.
        let bytes = 2 * schedule.steps() as u128 * u128::from(STEP_BYTES);
        ensure_memory("its times", bytes, "").ok()?;
        let own = Totals::of(schedule, cost)?;
        let bounds = schedule.lower_bound(cost);
        let shares = !schedule.shared_ports().is_empty();
        let like = || Request::like(schedule).ok().filter(|_| !shares);
        let best = like().and_then(|request| {
            let request = request.cost(cost.clone()).keep_order(keep_order);
            if let Some((_, best)) = known.iter().find(|(met, _)| *met == request) {
                return best.clone();
            }
            let best = Best::of(&request, input.unit);
            known.push((request, best.clone()));
            best
        });
        Some(Judgement {
            ratio: (bounds.largest > 0.0).then_some(own.time.0 / bounds.largest),
            lower_bounds: Totals::bounds(&bounds, schedule.element_bytes()),
            own,
            best,
            unit: input.unit,
        })
    }

    /// What is more than needed, such as `2 times the bound; binomial takes 4 us`.
    fn sentence(&self) -> String {
        let (own, least) = (&self.own, &self.lower_bounds);
        let mut parts = Vec::new();
        if least.messages > 0 && own.messages > least.messages && own.bytes > least.bytes {
            parts.push(format!(
                "{}, {} (needed: {}, {})",
                counted(own.messages, "message"),
                show_bytes(own.bytes),
                least.messages,
                show_bytes(least.bytes)
            ));
        }
        parts.push(match self.ratio {
            Some(ratio) => format!("{} times the bound", number(ratio, 3)),
            None => format!("takes {}", self.unit.show(own.time.0)),
        });
        match &self.best {
            Some(best) if best.totals.time.0 < own.time.0 * (1.0 - 1e-9) => {
                let time = self.unit.show(best.totals.time.0);
                parts.push(format!("{} takes {time}", best.algorithm));
            }
            Some(_) => parts.push("no algorithm here is faster".into()),
            None => {}
        }
        parts.join("; ")
    }

    fn print(&self, out: &mut dyn Write) -> Result<()> {
        let best = self.best.as_ref();
        let all = [
            Some(("this", &self.own)),
            best.map(|best| (&*best.algorithm, &best.totals)),
            Some(("at least", &self.lower_bounds)),
        ];
        let names = ["time", "rounds", "messages", "volume"];
        let mut columns = Columns::<usize>::default().add("", |&i| names[i]);
        for (title, totals) in all.into_iter().flatten() {
            let cells = totals.cells(self.unit);
            columns = columns.add(format!(">{title}"), move |&i| cells[i].clone());
        }
        writeln!(out)?;
        output::table(out, &columns, 0..names.len())
    }
}

impl Best {
    /// The fastest algorithm for `request`, unless looking for it takes long.
    fn of(request: &Request, unit: Unit) -> Option<Best> {
        /// By an estimate that is mostly too large.
        const MAX_SECONDS: f64 = 5.0;
        let task = PlanTask::fastest(request.clone(), unit).ok()?;
        if task.seconds().is_some_and(|seconds| seconds > MAX_SECONDS) {
            return None;
        }
        let (algorithm, request): (Algorithm, Request) = task.choose().ok()?;
        let schedule = algorithm.plan(&request).ok()?;
        Some(Best {
            algorithm: algorithm.name(),
            totals: Totals::of(&schedule, request.get_cost())?,
        })
    }
}

impl Totals {
    fn of(schedule: &Schedule, cost: &CostModel) -> Option<Totals> {
        let timed = schedule.timed(cost, |_| ()).ok()?;
        Some(Totals {
            time: Number(finite(timed.time).ok()?),
            rounds: timed.rounds,
            messages: timed.messages,
            bytes: timed.elements as u64 * schedule.element_bytes(),
        })
    }

    fn bounds(bounds: &LowerBounds, element_bytes: u64) -> Totals {
        Totals {
            time: Number(bounds.largest),
            rounds: bounds.rounds,
            messages: bounds.messages,
            bytes: (bounds.elements as u64).saturating_mul(element_bytes),
        }
    }

    fn cells(&self, unit: Unit) -> [String; 4] {
        [
            unit.show(self.time.0),
            self.rounds.to_string(),
            self.messages.to_string(),
            show_bytes(self.bytes),
        ]
    }
}
