//! One schedule or several files, each proved; right files are judged beside the fastest algorithm.

mod checked;
mod judgement;

use std::fmt;

use oneport::check::{Finding, FindingKind};
use oneport::internal::budget::files::MAX_PLAYERS_OF_FILES_BYTES;

use self::checked::{Checked, One};
use self::judgement::Known;
use super::{CheckArgs, verdict};
use crate::answer;
use crate::bits::ShownBits;
use crate::input::print_warnings;
use crate::own_file::OwnFile;
use crate::prelude::*;
use oneport_pictures::Players;
use oneport_pictures::shell::Heading;
use oneport_pictures::svg::escape;

/// What became of several files.
#[derive(Debug, Clone, Copy, Default, JsonSchema, Serialize)]
struct Counts {
    correct: usize,
    /// Of the correct ones: those that do something needlessly.
    wasteful: usize,
    wrong: usize,
    unreadable: usize,
}

pub(super) fn one(args: &CheckArgs, caller: &Caller) -> Result<Answer> {
    args.writable(caller)?;
    let input = match (args.common.input(caller), &args.common.files()?[..]) {
        (Err(error), [file]) if args.common.json => {
            return Ok(Answer {
                output: answer::json(&Checked::unreadable(file, &error))?,
                ..Answer::failed(&error)
            });
        }
        (input, _) => input?,
    };
    print_warnings(&args.common, &input.schedule, caller);
    let task = args.task(&args.common)?;
    let one = One::new(args, &input, task.as_ref(), &mut Known::new(caller));
    let answer = answer(caller, args.common.json, &one, |out| one.print(&input, out))?;
    let (right, errors) = (
        one.report.is_correct(),
        one.report.errors.len() + one.report.more,
    );
    let answer = answer.and(args.write(caller, &[Checked::One(Box::new(one))]));
    Ok(verdict(answer, right, errors))
}

pub(super) fn several(args: &CheckArgs, caller: &Caller) -> Result<Answer> {
    args.writable(caller)?;
    // A family has a file for each number of ranks.
    let points = args.common.points().into_iter();
    let points = points.map(|point| Ok((args.task(&point)?, point)));
    let points: Vec<(Option<Schedule>, Common)> = points.collect::<Result<_>>()?;
    let families = args.common.files()?;
    let families = families.iter();
    let files = families.flat_map(|file| points.iter().map(move |point| (point, file)));
    let files: Vec<_> = files.collect();
    let bar = WorkBar::new(
        caller,
        files.len() as u64,
        "checking {msg} {wide_bar} {pos}/{len}",
    );
    let mut known = Known::new(caller);
    let check = |&((task, point), file): &(&(Option<Schedule>, Common), &OwnFile)| {
        let ranks = point.ranks().ok().flatten();
        let file = &file.of_family(ranks).unwrap_or_else(|_| file.clone());
        bar.name(&file.source.name());
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
    let report = json(counts, &schedules);
    let answer = answer(caller, args.common.json, &report, |out| {
        print(&schedules, counts, out)
    })?;
    let answer = answer.and(args.write(caller, &schedules));
    if wrong > 0 {
        let all = counted(files.len(), "schedule");
        return Ok(answer.but_wrong(format!("{wrong} of {all} failed the check")));
    }
    Ok(answer)
}

fn json(counts: Counts, schedules: &[Checked]) -> impl Answered {
    record! {
        /// Whether all were read, and are correct.
        ok: counts.wrong + counts.unreadable == 0,
        counts: counts,
        schedules: schedules,
    }
}

/// Of one file, and of several.
pub(super) fn json_forms() -> JsonForms {
    JsonForms::new()
        .of(|checked: Checked| checked)
        .of(|(counts, schedules)| json(counts, schedules))
}

impl CheckArgs {
    /// The schedule whose task those of a point must do.
    fn task(&self, point: &Common) -> Result<Option<Schedule>> {
        let read = |file: &Source| Ok(point.read(&file.clone().into())?.schedule);
        self.like.as_ref().map(read).transpose()
    }

    /// Refuses a file that no table can be written to.
    fn writable(&self, caller: &Caller) -> Result<()> {
        if let Some(path) = &self.output
            && !matches!(FileKind::of(path), Some(FileKind::Csv | FileKind::Html))
        {
            let path = path.display();
            bail!(
                "{path}: the table of results is written as FILE.csv, or as a page FILE.html (--json prints all of it)"
            );
        }
        caller.writable(&[("-o", self.output.as_deref())])
    }

    fn writes_page(&self) -> bool {
        self.output.as_deref().and_then(FileKind::of) == Some(FileKind::Html)
    }

    fn write(&self, caller: &Caller, schedules: &[Checked]) -> Result<()> {
        let Some(path) = &self.output else {
            return Ok(());
        };
        let text = if self.writes_page() {
            page(schedules, caller).into_bytes()
        } else {
            output::csv(schedules.iter().map(Checked::row))?
        };
        caller.write_named(path, &text)
    }
}

impl Counts {
    fn of(schedules: &[Checked]) -> Counts {
        let mut counts = Counts::default();
        for checked in schedules {
            match checked {
                Checked::Unreadable { is_wrong: true, .. } => counts.wrong += 1,
                Checked::Unreadable { .. } => counts.unreadable += 1,
                Checked::One(one) if one.report.is_correct() => {
                    counts.correct += 1;
                    let waste = |note: &Finding| note.kind != FindingKind::Nothing;
                    counts.wasteful += usize::from(one.report.notes.iter().any(waste));
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

/// A sentence for each file that fails, then a row for each file, in their order.
fn print(schedules: &[Checked], counts: Counts, out: &mut Lines) -> Result<()> {
    for checked in schedules {
        if let Some(failure) = checked.failure() {
            writeln!(out, "{}: {failure}", checked.name())?;
        }
    }
    if counts.wrong + counts.unreadable > 0 {
        writeln!(out)?;
    }
    output::table_with(out, &columns(schedules, false), schedules, |row| {
        (!schedules[row].is_right()).then_some(output::WRONG)
    })?;
    writeln!(out, "\n{counts}")?;
    Ok(())
}

/// The columns of a row for each file; on a page there is room for what is needed at least, and the
/// bits.
fn columns(schedules: &[Checked], on_page: bool) -> Columns<'_, Checked> {
    let mut tasks = schedules.iter().filter_map(Checked::task);
    let first = tasks.next();
    let several = on_page || tasks.any(|other| Some(other) != first);
    let named = schedules.iter().any(|checked| checked.own_name().is_some());
    let claims = schedules.iter().any(|checked| checked.claimed().is_some());
    Columns::<Checked>::default()
        .add("schedule", |checked| checked.name().to_string())
        .add_if(named, "name", |checked| or_dash(checked.own_name()))
        .add_if(several, "task", |checked| or_dash(checked.task()))
        .add("result", Checked::result)
        .add(">time", |checked| {
            or_dash(checked.judged().map(|j| j.unit.show(j.own.time.0)))
        })
        .add_if(claims, ">claimed", |checked| or_dash(checked.claimed()))
        .add(">x bound", |checked| {
            or_dash(checked.judged().and_then(|j| Some(number(j.ratio?, 3))))
        })
        .add(">rounds", |checked| {
            or_dash(checked.judged().map(|j| j.own.rounds))
        })
        .add(">messages", |checked| {
            or_dash(checked.judged().map(|j| j.own.messages))
        })
        .add_if(on_page, ">at least", |checked| {
            or_dash(checked.judged().map(|j| j.lower_bounds.messages))
        })
        .add(">volume", |checked| {
            or_dash(checked.judged().map(|j| show_bytes(j.own.bytes)))
        })
        .add_if(on_page, ">at least", |checked| {
            or_dash(checked.judged().map(|j| show_bytes(j.lower_bounds.bytes)))
        })
        .add_if(on_page, "bits", |checked| {
            let bits = checked.right().and_then(|one| one.bits.as_ref());
            or_dash(bits.map(ShownBits::cell))
        })
        .add(">notes", |checked| or_dash(checked.right().map(One::notes)))
}

/// A page: a sentence for each file that fails, and a row for each file. What is not too long to
/// watch can be stepped through.
fn page(schedules: &[Checked], caller: &Caller) -> String {
    let mut summary = vec![("result", Counts::of(schedules).to_string())];
    let read = |checked: &Checked| match checked {
        Checked::One(one) => Some(one.costs.clone()),
        Checked::Unreadable { .. } => None,
    };
    summary.extend(
        schedules
            .iter()
            .find_map(read)
            .map(|costs| ("costs", costs)),
    );
    summary.extend(caller.origin(oneport_measure::now()));
    let heading = Heading {
        title: "Schedules, each with a verdict".into(),
        summary,
        ..Heading::default()
    };
    let players = schedules.iter().filter_map(|checked| match checked {
        Checked::One(one) => Some((checked.name().to_string(), one.player.clone()?)),
        Checked::Unreadable { .. } => None,
    });
    let players = Players::within(MAX_PLAYERS_OF_FILES_BYTES, players);
    let failed = schedules.iter().filter_map(|checked| {
        let (name, failure) = (escape(checked.name()), escape(&checked.failure()?));
        Some(format!("<p class=\"wrong\"><b>{name}</b>: {failure}</p>\n"))
    });
    let mut body: String = failed.collect();
    if !players.is_empty() {
        body += "<p class=\"note\">A schedule's name opens it, to step through.</p>\n";
    }
    let columns = columns(schedules, true);
    body += &columns.html("verdicts", "Verdicts", schedules, |checked| {
        (!checked.is_right()).then_some("failed")
    });
    players.page(&heading, &body)
}
