//! The input of a command: a schedule, planned or read from a file, and its description.

mod info;
mod warnings;

use std::borrow::Cow;
use std::collections::HashSet;

use anyhow::{Context, Result, bail, ensure};
use oneport::internal::budget::memory::MAX_VECTOR_BYTES;
use oneport::machine::{CostClass, Eager, Pieces};
use oneport::plan::refusal::{Reason, Refusal};
use oneport::plan::registry::Planned;
use oneport::plan::space::Variant;
use oneport::{CostModel, Error, Kind, Request, Schedule, Step};
use oneport_formats::{self, msccl, teccl};
use oneport_measure::Profile;
use oneport_measure::estimate::CoreModel;
use oneport_steady::Series;

pub(crate) use self::info::{ScheduleInfo, assumed};
pub(crate) use self::warnings::{
    ensure_same_bits, first_of, note_if_wrong, other_bits, print_warnings, warnings_about,
};
use crate::args::{Common, MachineArgs};
use crate::caller::Caller;
use crate::forms::{AlgorithmNames, Root};
use crate::own_file::OwnFile;
use crate::stored::StoredSchedule;
use crate::task::{PlanTask, Timing};
use crate::units::{Number, Unit, show_bytes};

/// A schedule, which need not be stored, the costs of its machine, and its description.
#[derive(Debug)]
pub(crate) struct Input<S = Schedule> {
    pub(crate) schedule: S,
    pub(crate) element_bytes: u64,
    pub(crate) cost: CostModel,
    pub(crate) unit: Unit,
    /// The variant of an algorithm, unless the schedule was read from a file.
    pub(crate) variant: Option<Variant>,
    /// The series that a schedule from a file performs, if it keeps its platform and no option
    /// gives costs.
    pub(crate) series: Option<Series>,
    pub(crate) info: ScheduleInfo,
}

enum Origin {
    Plan(Kind),
    File(OwnFile),
}

impl Common {
    pub(crate) fn input(&self, caller: &Caller) -> Result<Input> {
        self.input_for_run(caller, None, |_, _| Ok(None))
    }

    /// Like [`Common::input`], but chooses the algorithm for a native run. `core_model` returns the
    /// core model for a number of ranks, if there is one. The choice is for the `built_in` costs,
    /// if there are any; those of the input are those of the options all the same.
    pub(crate) fn input_for_run(
        &self,
        caller: &Caller,
        built_in: Option<Profile>,
        core_model: impl Fn(&MachineArgs, usize) -> Result<Option<CoreModel>>,
    ) -> Result<Input> {
        let kind = match self.origin()? {
            Origin::File(file) => return self.read(&file),
            Origin::Plan(kind) => kind,
        };
        let mut common = self.clone();
        common.machine.built_in.clone_from(&built_in);
        let mut task = PlanTask::new(&common, kind, caller)?;
        task.core_model = core_model(&common.machine, task.request.ranks())?;
        let mut input = Input::plan(&task)?;
        if let Some(built_in) = built_in {
            let ranks = input.schedule.ranks();
            let (cost, unit) = self.machine.cost(Some(ranks))?;
            (input.cost, input.unit) = (self.delays.apply(cost, ranks)?, unit);
            input.info.set_chosen_for(built_in.machine.cpu);
        }
        Ok(input)
    }

    /// Like [`Common::input`], with its warnings, for a command that takes times. If these are
    /// `timed_only`, a planned schedule is not stored if it is long and can be streamed.
    pub(crate) fn input_to_time(
        &self,
        timed_only: Option<Timing>,
        caller: &Caller,
    ) -> Result<Input<Planned>> {
        let kind = match self.origin()? {
            Origin::File(file) => {
                let mut input = self.read(&file)?;
                input.print_warnings(self, caller)?;
                return Ok(input.map(Planned::Stored));
            }
            Origin::Plan(kind) => kind,
        };
        let mut task = PlanTask::new(self, kind, caller)?;
        task.timed_only = timed_only;
        let variant = task.choose_aloud()?;
        let planned = task.to_time(&variant);
        let planned =
            planned.map_err(|error| Error::from(variant.refusal(Reason::Planner(error))))?;
        let (collective, several) = (planned.collective(), planned.uses_several_ports());
        warnings_about(self, &collective, planned.ports(), several, caller);
        Ok(Input::of(&task, variant, planned, collective.root()))
    }

    /// Where the one schedule of a command comes from.
    fn origin(&self) -> Result<Origin> {
        if self.algorithm == AlgorithmNames::All {
            bail!("--algorithm all is for check and compare: name some, or let auto choose");
        }
        let mut files = self.files()?;
        match (files.len(), self.collective) {
            (0, Some(kind)) => Ok(Origin::Plan(kind)),
            (0, None) => bail!("give a COLLECTIVE (such as reduce) or --schedule FILE"),
            (1, _) => Ok(Origin::File(files.remove(0))),
            (n, _) => bail!("--schedule names {n} files, this command takes one"),
        }
    }

    pub(crate) fn read(&self, file: &OwnFile) -> Result<Input> {
        let OwnFile {
            name: given,
            source,
        } = file.of_family(self.ranks()?)?;
        let name = source.name();
        let stored = source.stored();
        let text = stored.is_none().then(|| source.read()).transpose()?;
        let (mut schedule, series) = match (stored, &text) {
            (Some(stored), _) => (stored.schedule.clone(), None),
            (None, text) => {
                let text = text.as_deref().unwrap_or_default();
                self.parsed(text).with_context(|| name.clone())?
            }
        };
        schedule = given.into_iter().try_fold(schedule, Schedule::with_name)?;
        self.ensure_performs(schedule.collective().kind(), &name)?;
        let ports = self.machine.ports(schedule.ports())?;
        if ports != schedule.ports() {
            schedule = schedule.with_ports(ports)?;
        }
        let element_bytes = self.vector.element_bytes();
        schedule = schedule.with_element_bytes(element_bytes);
        if let Some(bytes) = &self.vector.bytes {
            let bytes = bytes.one("--bytes")?;
            let whole = self.vector.elements("a vector", bytes)?;
            ensure!(
                series.is_none() || whole == Request::like(&schedule)?.elements(),
                "{name}: the messages of a series have sizes of their own: leave --bytes out"
            );
            schedule = at_size(schedule, whole).with_context(|| name.clone())?;
        }
        in_range(&schedule).with_context(|| name.clone())?;
        let (cost, unit) = match &series {
            Some(series) if !self.machine.is_given() => {
                let cost = series.cost(element_bytes)?;
                let overlap = cost.overlaps() || self.machine.overlap;
                (cost.overlap(overlap), Unit::Plain)
            }
            _ => self.machine.cost(Some(schedule.ranks()))?,
        };
        let cost = self.delays.apply(cost, schedule.ranks())?;
        self.agrees(&schedule, &cost)?;
        if let Some(ports) = self.nodes.of(schedule.ranks(), &cost)? {
            schedule = ports.share(schedule, &cost)?;
        }
        let mut info = info_of(&schedule, stored, name, unit);
        if let (Some(text), Some(block)) = (text, info.vector_bytes)
            && let Some(claim) = teccl::claim(&text, block, &cost, unit.seconds())?
        {
            info.claimed_time = Some(Number(claim.time));
            if self.machine.is_given() {
                info.epochs_kept = Some(claim.late.is_none());
                info.late_flow = claim.late;
            }
        }
        Ok(Input {
            schedule,
            element_bytes,
            cost,
            unit,
            variant: None,
            series: series.filter(|_| !self.machine.is_given()),
            info,
        })
    }

    /// The schedule of a text in any form, and its series, if it keeps one.
    fn parsed(&self, text: &str) -> Result<(Schedule, Option<Series>)> {
        let options = msccl::ReadOptions {
            ported: self.machine.ported,
            root: match self.root {
                Some(Root::Rank(root)) => Some(root),
                _ => None,
            },
            ..msccl::ReadOptions::default()
        };
        Ok(match oneport_formats::read(text, &options)? {
            Some(schedule) => (schedule, None),
            None => (Schedule::from_json(text)?, Series::from_json(text)?),
        })
    }

    fn agrees(&self, schedule: &Schedule, cost: &CostModel) -> Result<()> {
        let p = schedule.ranks();
        if let Some(ranks) = self.ranks()?.filter(|&ranks| ranks != p) {
            bail!("the schedule has {p} ranks, not {ranks} (-p)");
        }
        if let Some(links) = cost.links().filter(|l| l.alpha.len() != p) {
            bail!(
                "the schedule has {p} ranks, the costs describe {}",
                links.alpha.len()
            );
        }
        match (self.root, schedule.collective().root()) {
            (Some(Root::Free), _) => {
                bail!("--root free lets an algorithm choose: a schedule from a file has its root")
            }
            (Some(Root::Rank(asked)), Some(root)) if asked != root => {
                bail!("the schedule's root is {root}, not {asked} (--root)")
            }
            (Some(Root::Rank(asked)), None) if asked >= p => {
                bail!("root {asked} is not one of {p} ranks (numbered from 0)")
            }
            _ => Ok(()),
        }
    }
}

impl Input {
    pub(crate) fn plan(task: &PlanTask) -> Result<Input> {
        Ok(Input::planned_by(task, task.choose_aloud()?).map_err(Error::from)?)
    }

    /// What a program keeps of it.
    pub(crate) fn stored(self) -> StoredSchedule {
        let has_file = |name: &String| name != "standard input" && !name.starts_with('<');
        StoredSchedule {
            made_by: self.info.maker(),
            file: self.info.schedule.filter(has_file),
            schedule: self.schedule,
            cost: self.cost,
        }
    }

    pub(crate) fn planned_by(task: &PlanTask, variant: Variant) -> Result<Input, Refusal> {
        let schedule = task.plan(&variant);
        let schedule = schedule.map_err(|error| variant.refusal(Reason::Planner(error)))?;
        let root = schedule.collective().root();
        Ok(Input::of(task, variant, schedule, root))
    }
}

impl<S> Input<S> {
    /// The schedule of a variant, with this root.
    pub(crate) fn of(
        task: &PlanTask,
        variant: Variant,
        schedule: S,
        root: Option<usize>,
    ) -> Input<S> {
        Input {
            schedule,
            element_bytes: variant.request.get_element_bytes(),
            cost: variant.request.get_cost().clone(),
            unit: task.unit,
            info: ScheduleInfo::planned(task, &variant, root),
            variant: Some(variant),
            series: None,
        }
    }

    pub(crate) fn map<T>(self, form: impl FnOnce(S) -> T) -> Input<T> {
        Input {
            schedule: form(self.schedule),
            element_bytes: self.element_bytes,
            cost: self.cost,
            unit: self.unit,
            variant: self.variant,
            series: self.series,
            info: self.info,
        }
    }

    pub(crate) fn summary(&self) -> Vec<(&'static str, String)> {
        self.info.summary(&self.cost, self.unit)
    }
}

impl<S> Input<S> {
    /// The line of a summary about what the file of a schedule claims, if it claims a time.
    pub(crate) fn summary_of_claim(&self) -> Option<(&'static str, String)> {
        let time = self.unit.show(self.info.claimed_time?.0);
        let text = match (&self.info.late_flow, self.info.epochs_kept) {
            (Some(why), _) => format!("{time}, but with these links {why}"),
            (None, Some(_)) => format!("{time}, and these links carry all flows in their epochs"),
            (None, None) => time,
        };
        Some(("claimed", text))
    }

    /// Of a schedule that takes `time`, the line of a summary about late ranks, if there are any.
    pub(crate) fn summary_of_late(&self, time: f64) -> Option<(&'static str, String)> {
        let last = self.cost.last_arrival();
        let line = || {
            let (late, last) = (self.unit.show(time - last), self.unit.show(last));
            let text = format!("{late} (the last rank arrives at {last})");
            ("after last", text)
        };
        (last > 0.0).then(line)
    }
}

pub(crate) fn show_cost(cost: &CostModel, unit: Unit) -> String {
    let overlap = if cost.overlaps() {
        ", computation overlaps communication"
    } else {
        ""
    };
    let late = show_delays(cost, unit);
    let pieces = match cost.class().0 {
        CostClass::Links(_) => return format!("per pair of ranks{overlap}{late}"),
        CostClass::Linear(_) => String::new(),
        CostClass::Pieces(pieces) => show_pieces(pieces),
    };
    let rate = |name: &str, value: f64| {
        if value == 0.0 {
            format!("{name} 0")
        } else {
            format!("{name} {}/byte", unit.show(value))
        }
    };
    let linear = cost.rates();
    let mut parts = vec![
        format!("alpha {}", unit.show(linear.alpha)),
        rate("beta", linear.beta),
        rate("gamma", linear.gamma),
    ];
    if linear.gamma_copy > 0.0 {
        parts.push(rate("gamma_copy", linear.gamma_copy));
    }
    parts.join(", ") + &pieces + overlap + &late
}

fn show_pieces(pieces: &Pieces) -> String {
    let lists = [
        ("messages", &pieces.transfer),
        ("combining", &pieces.combine),
        ("combining own", &pieces.combine_local),
        ("copies", &pieces.copy),
    ];
    let several = lists.iter().filter(|(_, list)| !list.is_empty());
    let several: Vec<_> = several
        .map(|(name, list)| format!("{name} {}", list.len()))
        .collect();
    format!(" on the whole; pieces by size: {}", several.join(", "))
}

/// Formats latency, eager sends and late ranks, each after a comma; nothing of an ideal machine.
fn show_delays(cost: &CostModel, unit: Unit) -> String {
    let latency = match (cost.links(), cost.latency_between(0, 1)) {
        (Some(links), _) if !links.latency.is_empty() => ", latency per pair".to_string(),
        (_, 0.0) => String::new(),
        (_, latency) => format!(", latency {}", unit.show(latency)),
    };
    let eager = match cost.sends_eagerly() {
        Eager::None => String::new(),
        Eager::UpTo(bytes) => format!(", messages up to {} eager", show_bytes(bytes)),
        _ => ", all messages eager".to_string(),
    };
    let late = if cost.last_arrival() > 0.0 {
        ", ranks arrive late"
    } else {
        ""
    };
    latency + &eager + late
}

/// The description of a schedule from the file `name`, or stored.
fn info_of(
    schedule: &Schedule,
    stored: Option<&StoredSchedule>,
    name: String,
    unit: Unit,
) -> ScheduleInfo {
    let nodes: HashSet<&[usize]> = schedule
        .shared_ports()
        .iter()
        .map(|port| &*port.ranks)
        .collect();
    let collective = schedule.collective();
    let own_name = schedule.name().map(|name| Cow::Owned(name.to_string()));
    let (kind, ranks, ports) = (collective.kind(), schedule.ranks(), schedule.ports());
    let info = ScheduleInfo {
        algorithm: own_name,
        algorithm_choice: "file",
        schedule: match stored {
            Some(stored) => stored.file.clone(),
            None => Some(name),
        },
        root: collective.root(),
        root_choice: "file",
        vector_bytes: size_of(schedule),
        block_bytes: unequal_blocks(schedule),
        shared_ports: schedule.shared_ports().len(),
        nodes: nodes.len(),
        ..ScheduleInfo::of(kind, ranks, ports, unit)
    };
    match stored.and_then(|stored| stored.made_by.as_ref()) {
        Some(made_by) => info.made_by(made_by),
        None => info,
    }
}

/// Bytes of the vector, or of the largest block, of a schedule that fits its collective.
fn size_of(schedule: &Schedule) -> Option<u64> {
    let request = Request::like(schedule).ok()?;
    let has_data = request.get_collective().has_data();
    has_data.then(|| request.elements() as u64 * request.get_element_bytes())
}

/// The sizes of the blocks in bytes, if they differ.
fn unequal_blocks(schedule: &Schedule) -> Option<Vec<u64>> {
    let request = Request::like(schedule).ok()?;
    let blocks = request.get_blocks()?;
    let differ = blocks.iter().any(|block| *block != blocks[0]);
    let bytes = blocks
        .iter()
        .map(|&n| n as u64 * request.get_element_bytes());
    differ.then(|| bytes.collect())
}

/// The schedule for a vector, or largest blocks, of `elements` elements.
fn at_size(schedule: Schedule, elements: usize) -> Result<Schedule> {
    let own = Request::like(&schedule)?.elements();
    ensure!(
        own != 0,
        "the schedule has no data whose size --bytes could choose"
    );
    ensure!(
        elements.is_multiple_of(own),
        "the schedule has {own} elements, so it scales to multiples of that, not to {elements} (--bytes)"
    );
    Ok(schedule.scaled(elements / own)?)
}

/// Rejects a schedule whose sizes could overflow when they are added.
fn in_range(schedule: &Schedule) -> Result<()> {
    let steps = schedule.programs().iter().flatten().map(Step::len);
    let buffers = schedule.layout().iter().map(|l| l.len);
    let total = steps
        .chain(buffers)
        .fold(0u64, |sum, n| sum.saturating_add(n as u64));
    if total.saturating_mul(schedule.element_bytes()) > MAX_VECTOR_BYTES {
        bail!("the schedule moves or holds more than this program's limit of 2^60 bytes");
    }
    Ok(())
}
