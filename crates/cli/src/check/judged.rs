//! One schedule or several files, each proved; right files are judged beside the fastest algorithm.

use std::borrow::Cow;
use std::fmt;

use oneport::Collective;
use oneport::check::{Finding, FindingKind, Report};
use oneport::internal::budget::memory::STEP_BYTES;
use oneport::schedule::total_len;
use oneport::simulate::bounds::LowerBounds;

use super::{CheckArgs, verdict};
use crate::args::Common;
use crate::files::FileKind;
use crate::input::{ScheduleInfo, print_warnings};
use crate::own_file::OwnFile;
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

/// What became of several files.
#[derive(Debug, Clone, Copy, Default, Serialize)]
struct Counts {
    correct: usize,
    /// Of the correct ones: those that do something needlessly.
    wasteful: usize,
    wrong: usize,
    unreadable: usize,
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
    /// At what size, such as ` at 4 B`.
    #[serde(skip)]
    at: String,
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
    args.writable()?;
    let input = match (args.common.input(), &args.common.files()?[..]) {
        (Err(error), [file]) if args.common.json => {
            output::json(out, &Checked::unreadable(file, &error))?;
            return Err(error);
        }
        (input, _) => input?,
    };
    print_warnings(&args.common, &input.schedule);
    let task = args.task(&args.common)?;
    let one = One::new(args, &input, task.as_ref(), &mut Known::new());
    output::answer(out, args.common.json, &one, |out| one.print(&input, out))?;
    let (right, errors) = (
        one.report.is_correct(),
        one.report.errors.len() + one.report.more,
    );
    args.write(&[Checked::One(Box::new(one))])?;
    verdict(right, errors)
}

pub(super) fn several(args: &CheckArgs, out: &mut dyn Write) -> Result<()> {
    args.writable()?;
    // A family has a file for each number of ranks.
    let points = args.common.points().into_iter();
    let points = points.map(|point| Ok((args.task(&point)?, point)));
    let points: Vec<(Option<Schedule>, Common)> = points.collect::<Result<_>>()?;
    let families = args.common.files()?;
    let families = families.iter();
    let files = families.flat_map(|file| points.iter().map(move |point| (point, file)));
    let files: Vec<_> = files.collect();
    let bar = WorkBar::new(files.len() as u64, "checking {msg} {wide_bar} {pos}/{len}");
    let mut known = Known::new();
    let check = |&((task, point), file): &(&(Option<Schedule>, Common), &OwnFile)| {
        let ranks = point.ranks().ok().flatten();
        let file = &file.of_family(ranks).unwrap_or_else(|_| file.clone());
        bar.name(&name_of(&file.path));
        let checked = match point.read(file) {
            Ok(input) => Checked::One(Box::new(One::new(args, &input, task.as_ref(), &mut known))),
            Err(error) => Checked::unreadable(file, &error),
        };
        bar.add(1);
        checked
    };
    let schedules: Vec<Checked> = files.iter().map(check).collect();
    bar.finish();
    let counts = Counts::of(&schedules);
    let wrong = counts.wrong + counts.unreadable;
    let json = record! { ok: wrong == 0, counts: counts, schedules: &schedules };
    output::answer(out, args.common.json, &json, |out| {
        print(&schedules, counts, out)
    })?;
    args.write(&schedules)?;
    if wrong > 0 {
        let all = counted(files.len(), "schedule");
        return Err(output::wrong(format!("{wrong} of {all} failed the check")));
    }
    Ok(())
}

impl CheckArgs {
    /// The schedule whose task those of a point must do.
    fn task(&self, point: &Common) -> Result<Option<Schedule>> {
        let read = |path: &PathBuf| {
            let (name, path) = (None, path.clone());
            Ok(point.read(&OwnFile { name, path })?.schedule)
        };
        self.like.as_ref().map(read).transpose()
    }

    /// Refuses a file that no table can be written to.
    fn writable(&self) -> Result<()> {
        if let Some(path) = &self.output
            && FileKind::of(path) != Some(FileKind::Csv)
        {
            let path = path.display();
            bail!("{path}: the table of results is written as FILE.csv (--json prints all of it)");
        }
        output::writable(&[("-o", self.output.as_deref())])
    }

    fn write(&self, schedules: &[Checked]) -> Result<()> {
        match &self.output {
            Some(path) => {
                output::write_named(path, &output::csv(schedules.iter().map(Checked::row))?)
            }
            None => Ok(()),
        }
    }
}

impl Counts {
    fn of(schedules: &[Checked]) -> Counts {
        let mut counts = Counts::default();
        for checked in schedules {
            match checked {
                Checked::Unreadable { .. } => counts.unreadable += 1,
                Checked::One(one) if one.report.is_correct() => {
                    counts.correct += 1;
                    counts.wasteful += usize::from(one.notes() > 0);
                }
                Checked::One(_) => counts.wrong += 1,
            }
        }
        counts
    }
}

/// `22 correct (7 wasteful), 11 wrong, 7 unreadable`.
impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} correct", self.correct)?;
        if self.wasteful > 0 {
            write!(f, " ({} wasteful)", self.wasteful)?;
        }
        for (count, what) in [(self.wrong, "wrong"), (self.unreadable, "unreadable")] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        Ok(())
    }
}

/// What `schedule` is to do, if that is not what `task` is to do: the difference.
fn unlike(schedule: &Schedule, task: &Schedule) -> Option<String> {
    let collective = |schedule: &Schedule| match schedule.collective() {
        Collective::Multicast { root, targets } => {
            format!("multicast from {root} to {targets:?}")
        }
        other => match other.root() {
            Some(root) => format!("{} with root {root}", other.kind()),
            None => other.kind().to_string(),
        },
    };
    let ports = |schedule: &Schedule| match schedule.ports() {
        ports if ports.k() > 1 => format!("{} x {}", ports.name(), ports.k()),
        ports => ports.name().to_string(),
    };
    let both = [schedule, task];
    for (what, [own, asked]) in [
        ("it performs", both.map(collective)),
        (
            "its number of ranks is",
            both.map(|s| s.ranks().to_string()),
        ),
        ("its ports are", both.map(ports)),
    ] {
        if own != asked {
            return Some(format!("{what} {own}, not {asked}"));
        }
    }
    for (rank, (own, asked)) in schedule.layout().iter().zip(task.layout()).enumerate() {
        for (what, own, asked) in [
            ("input", &own.input, &asked.input),
            ("output", &own.output, &asked.output),
        ] {
            let [own, asked] = [own, asked].map(|spans| total_len(spans));
            if own != asked {
                let own = counted(own, "element");
                return Some(format!("the {what} of rank {rank} has {own}, not {asked}"));
            }
        }
    }
    // Blocks of pairs may differ where their sums do not.
    let [own, asked] = both.map(|schedule| Request::like(schedule).ok());
    let blocks = |request: &Option<Request>| Some(request.as_ref()?.get_blocks()?.to_vec());
    (blocks(&own) != blocks(&asked)).then(|| "its blocks have other sizes".to_string())
}

impl One {
    fn new(args: &CheckArgs, input: &Input, task: Option<&Schedule>, known: &mut Known) -> One {
        let mut report = input.check(&args.common, args.max_errors);
        if let Some(why) = task.and_then(|task| unlike(&input.schedule, task)) {
            let message = format!("another task than is asked for: {why}");
            report
                .errors
                .insert(0, Finding::of(FindingKind::Task, message));
            (report.keeps_order, report.notes, report.more_notes) = (false, Vec::new(), 0);
            if report.errors.len() > args.max_errors {
                report.errors.pop();
                report.more += 1;
            }
        }
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

    fn notes(&self) -> usize {
        self.report.notes.len() + self.report.more_notes
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

    /// What is wrong with it, in a sentence.
    fn failure(&self) -> Option<String> {
        let report = match self {
            Checked::Unreadable {
                schedule, error, ..
            } => {
                // An error of a file begins with its name.
                let before = format!("{schedule}: ");
                return Some(error.strip_prefix(&before).unwrap_or(error).to_string());
            }
            Checked::One(_) if self.is_right() => return None,
            Checked::One(one) => &one.report,
        };
        let others = match report.errors.len() + report.more {
            0 | 1 => String::new(),
            n => format!(" ({} more)", n - 1),
        };
        let first = report.errors.first().map(ToString::to_string);
        Some(format!("wrong: {}{others}", first.unwrap_or_default()))
    }

    fn result(&self) -> &'static str {
        match self {
            Checked::Unreadable { .. } => "UNREADABLE",
            Checked::One(_) if self.is_right() => "correct",
            Checked::One(_) => "WRONG",
        }
    }

    /// A row for other programs.
    fn row(&self) -> impl Serialize {
        let one = match self {
            Checked::One(one) => Some(one),
            Checked::Unreadable { .. } => None,
        };
        let (info, report) = (one.map(|one| &one.info), one.map(|one| &one.report));
        let judged = self.judged();
        record! {
            schedule: self.name(),
            name: self.own_name(),
            result: self.result().to_lowercase(),
            collective: info.map(|info| info.collective),
            root: info.and_then(|info| info.root),
            ranks: info.map(|info| info.ranks),
            ports: info.map(|info| info.ports),
            ported: info.map(|info| info.ported),
            bytes: info.and_then(|info| info.vector_bytes),
            errors: report.map(|report| report.errors.len() + report.more),
            error: self.failure(),
            notes: one.map(|one| one.notes()),
            note: report.and_then(|report| Some(&report.notes.first()?.message)),
            time: judged.map(|j| j.own.time),
            time_unit: info.map(|info| info.time_unit),
            x_bound: judged.and_then(|j| j.ratio).map(Number),
            rounds: judged.map(|j| j.own.rounds),
            messages: judged.map(|j| j.own.messages),
            volume_bytes: judged.map(|j| j.own.bytes),
            least_messages: judged.map(|j| j.lower_bounds.messages),
            least_volume_bytes: judged.map(|j| j.lower_bounds.bytes),
            best: judged.and_then(|j| Some(&j.best.as_ref()?.algorithm)),
            best_time: judged.and_then(|j| Some(j.best.as_ref()?.totals.time)),
        }
    }
}

/// A sentence for each file that fails, then a row for each file, in their order.
fn print(schedules: &[Checked], counts: Counts, out: &mut dyn Write) -> Result<()> {
    for checked in schedules {
        if let Some(failure) = checked.failure() {
            writeln!(out, "{}: {failure}", checked.name())?;
        }
    }
    if counts.wrong + counts.unreadable > 0 {
        writeln!(out)?;
    }
    let mut tasks = schedules.iter().filter_map(Checked::task);
    let first = tasks.next();
    let several = tasks.any(|other| Some(other) != first);
    let named = schedules.iter().any(|checked| checked.own_name().is_some());
    let columns = Columns::<Checked>::default()
        .add("schedule", |checked| checked.name().to_string())
        .add_if(named, "name", |checked| or_dash(checked.own_name()))
        .add_if(several, "task", |checked| or_dash(checked.task()))
        .add("result", Checked::result)
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
        .add(">notes", |checked| or_dash(checked.right().map(One::notes)));
    output::table_with(out, &columns, schedules, |row| {
        (!schedules[row].is_right()).then_some(output::WRONG)
    })?;
    writeln!(out, "\n{counts}")?;
    Ok(())
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
            at: input.info.vector_bytes.map_or_else(String::new, |bytes| {
                let blocks = if input.info.kind.is_sized_by_block() {
                    "blocks of "
                } else {
                    ""
                };
                format!(" at {blocks}{}", show_bytes(bytes))
            }),
        })
    }

    /// What is more than needed, such as `its time is 2 times the lower bound at 4 B; binomial
    /// takes 4 us`.
    fn sentence(&self) -> String {
        let (own, least) = (&self.own, &self.lower_bounds);
        let mut parts = Vec::new();
        if least.messages > 0 && own.messages > least.messages && own.bytes > least.bytes {
            parts.push(format!(
                "{} carry {}, and {} with {} are needed at least",
                counted(own.messages, "message"),
                show_bytes(own.bytes),
                least.messages,
                show_bytes(least.bytes)
            ));
        }
        let is_optimal = self.ratio.is_some_and(|ratio| ratio <= 1.0 + 1e-9);
        parts.push(match self.ratio.map(|ratio| number(ratio, 3)) {
            Some(_) if is_optimal => format!("its time is the lower bound{}", self.at),
            Some(ratio) if ratio == "1" => {
                format!("its time is within 0.1% of the lower bound{}", self.at)
            }
            Some(ratio) => format!("its time is {ratio} times the lower bound{}", self.at),
            None => format!("it takes {}{}", self.unit.show(own.time.0), self.at),
        });
        match &self.best {
            Some(best) if best.totals.time.0 < own.time.0 * (1.0 - 1e-9) => {
                let time = self.unit.show(best.totals.time.0);
                parts.push(format!("{} takes {time}", best.algorithm));
            }
            Some(_) if !is_optimal => parts.push("no algorithm here is faster".into()),
            _ => {}
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
