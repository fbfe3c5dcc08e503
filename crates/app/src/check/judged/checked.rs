//! A file that was checked, or could not be read.

use oneport::check::{Finding, FindingKind, Report};
use oneport::error::ErrorKind;
use oneport::schedule::total_len;
use oneport_pictures::{Player, Shown};

use super::judgement::{Judgement, Known};
use crate::bits::ShownBits;
use crate::check::CheckArgs;
use crate::draw::player;
use crate::input::other_bits;
use crate::own_file::OwnFile;
use crate::prelude::*;
use crate::units::show_ports;

#[derive(JsonSchema, Serialize)]
pub(super) struct One {
    #[serde(flatten)]
    pub(super) report: Report,
    #[serde(flatten)]
    pub(super) info: ScheduleInfo,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bits: Option<ShownBits>,
    #[serde(flatten)]
    pub(super) judgement: Option<Judgement>,
    /// What its time is the time of.
    #[serde(skip)]
    pub(super) costs: String,
    /// What steps through it, if it is short and a page is written.
    #[serde(skip)]
    pub(super) player: Option<Player>,
}

#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
pub(super) enum Checked {
    One(Box<One>),
    Unreadable {
        ok: bool,
        errors: Vec<Finding>,
        schedule: String,
        error: String,
        /// Whether it was read, and is wrong: its steps race or wait for each other.
        #[serde(skip)]
        is_wrong: bool,
    },
}

impl One {
    pub(super) fn new(
        args: &CheckArgs,
        input: &Input,
        task: Option<&Schedule>,
        known: &mut Known,
    ) -> One {
        let mut report = input.check(&args.common, args.max_errors);
        let unlike = task.and_then(|task| unlike(&input.schedule, task));
        let unlike = unlike.map(|why| format!("another task than is asked for: {why}"));
        let vector = &args.common.vector;
        let other_bits = || other_bits(&report, vector, input.schedule.ranks());
        if let Some(message) = unlike.or_else(other_bits) {
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
        let read = input.variant.is_none() && input.series.is_none();
        let judged = report.is_correct() && read && has_output;
        let keep_order = input.info.kind.reduces() && args.common.vector.keep_order();
        let judgement = || Judgement::of(input, keep_order, known);
        let player = || {
            let shown = Shown {
                name: &input.name(),
                schedule: &input.schedule,
                cost: &input.cost,
            };
            player(shown, &input.info, input.unit)
        };
        One {
            judgement: judged.then(judgement).flatten(),
            costs: show_cost(&input.cost, input.unit),
            player: args.writes_page().then(player).flatten(),
            bits: ShownBits::of(&report, &args.common.vector, input.schedule.ranks()),
            report,
            info: input.info.clone(),
        }
    }

    pub(super) fn notes(&self) -> usize {
        self.report.notes.len() + self.report.more_notes
    }

    pub(super) fn print(&self, input: &Input, out: &mut Lines) -> Result<()> {
        let mut summary = input.summary();
        summary.retain(|(name, _)| *name != "costs");
        summary.push(("steps", input.schedule.steps().to_string()));
        summary.push(("result", self.report.to_string()));
        if let Some(bits) = &self.bits {
            summary.push(("bits", bits.sentence()));
        }
        if let Some(judgement) = &self.judgement {
            summary.push(("verdict", judgement.sentence()));
            summary.extend(input.summary_of_claim());
        }
        output::summary(out, &summary)?;
        match &self.judgement {
            Some(judgement) => judgement.print(out),
            None => Ok(()),
        }
    }
}

impl Checked {
    pub(super) fn unreadable(file: &OwnFile, error: &anyhow::Error) -> Checked {
        Checked::Unreadable {
            ok: false,
            errors: Vec::new(),
            schedule: file.source.name(),
            error: format!("{error:#}"),
            is_wrong: error.chain().any(|cause| {
                let error = cause.downcast_ref::<oneport::Error>();
                error.is_some_and(|error| matches!(error.kind(), ErrorKind::Wrong(_)))
            }),
        }
    }

    pub(super) fn is_right(&self) -> bool {
        matches!(self, Checked::One(one) if one.report.is_correct())
    }

    /// It, if it is right.
    pub(super) fn right(&self) -> Option<&One> {
        match self {
            Checked::One(one) if self.is_right() => Some(one),
            _ => None,
        }
    }

    /// What it is to do: `reduce, root 0, 4 ranks, bi`.
    pub(super) fn task(&self) -> Option<String> {
        let Checked::One(one) = self else { return None };
        let info = &one.info;
        let root = info
            .root
            .map_or(String::new(), |root| format!(", root {root}"));
        let (kind, ranks) = (info.collective, info.ranks);
        let ports = show_ports(info.ports, info.ported);
        Some(format!("{kind}{root}, {ranks} ranks, {ports}"))
    }

    pub(super) fn judged(&self) -> Option<&Judgement> {
        self.right()?.judgement.as_ref()
    }

    /// The time that its file claims.
    pub(super) fn claimed(&self) -> Option<String> {
        let info = &self.right()?.info;
        let time = self.judged()?.unit.show(info.claimed_time?.0);
        let late = info.late_flow.as_ref().map_or("", |_| ", late");
        Some(time + late)
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Checked::One(one) => one.info.schedule.as_deref().unwrap_or("-"),
            Checked::Unreadable { schedule, .. } => schedule,
        }
    }

    /// The name that the schedule has besides that of its file.
    pub(super) fn own_name(&self) -> Option<&str> {
        match self {
            Checked::One(one) => one.info.algorithm.as_deref(),
            Checked::Unreadable { .. } => None,
        }
    }

    /// What is wrong with it, in a sentence.
    pub(super) fn failure(&self) -> Option<String> {
        let report = match self {
            Checked::Unreadable {
                schedule,
                error,
                is_wrong,
                ..
            } => {
                // An error of a file begins with its name.
                let before = format!("{schedule}: ");
                let error = error.strip_prefix(&before).unwrap_or(error);
                let wrong = if *is_wrong { "wrong: " } else { "" };
                return Some(format!("{wrong}{error}"));
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

    pub(super) fn result(&self) -> &'static str {
        match self {
            Checked::Unreadable {
                is_wrong: false, ..
            } => "UNREADABLE",
            Checked::One(_) if self.is_right() => "correct",
            Checked::One(_) | Checked::Unreadable { .. } => "WRONG",
        }
    }

    /// A row for other programs.
    pub(super) fn row(&self) -> impl Answered {
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
            claimed_time: info.and_then(|info| info.claimed_time),
            epochs_kept: info.and_then(|info| info.epochs_kept),
            late_flow: info.and_then(|info| info.late_flow.as_ref()),
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

/// What `schedule` is to do, if that is not what `task` is to do: the difference.
fn unlike(schedule: &Schedule, task: &Schedule) -> Option<String> {
    let collective = |schedule: &Schedule| {
        let collective = schedule.collective();
        let kind = collective.kind();
        match (collective.root(), collective.targets()) {
            (None, None) => kind.to_string(),
            (Some(root), None) => format!("{kind} with root {root}"),
            (None, Some(targets)) => format!("{kind} to {targets:?}"),
            (Some(root), Some(targets)) => format!("{kind} from {root} to {targets:?}"),
        }
    };
    let ports = |schedule: &Schedule| show_ports(schedule.ports().name(), schedule.ports().k());
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
