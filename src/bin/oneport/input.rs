//! The input of a command: a schedule, planned or read from a file, and its description.

mod warnings;

use std::collections::HashSet;

use anyhow::{Context, Result, bail};
use oneport::formats::{self, msccl};
use oneport::measure::estimate::CoreModel;
use oneport::plan::refusal::{Reason, Refusal};
use oneport::plan::registry::Algorithm;
use oneport::steady::Series;
use oneport::{CostModel, Error, Kind, Request, Schedule, Step};
use serde::Serialize;

pub(crate) use self::warnings::{print_warnings, warnings_about};
use crate::args::{Common, Root};
use crate::files::{name_of, read_text};
use crate::nodes::NodePorts;
use crate::task::{SegmentChoice, Task, ensure_memory};
use crate::units::{TimeUnit, show_bytes};

/// Limit for the sum of all sizes in a schedule, in bytes, so that no sum overflows.
const MAX_BYTES: u64 = 1 << 60;

/// Upper estimate of a schedule's memory for each character of its file.
const BYTES_PER_CHARACTER: u128 = 4;

/// A schedule, the costs of its machine, and its description.
#[derive(Debug)]
pub(crate) struct Input {
    /// The schedule.
    pub(crate) schedule: Schedule,
    /// The cost model.
    pub(crate) cost: CostModel,
    /// Size of an element in bytes.
    pub(crate) element_bytes: u64,
    /// Unit of model times.
    pub(crate) unit: TimeUnit,
    /// The algorithm and request, unless the schedule was read from a file.
    pub(crate) planned: Option<Planned>,
    /// The series that a schedule from a file performs, if it keeps its platform and no option
    /// gives costs.
    pub(crate) series: Option<Series>,
    /// Description for JSON output.
    pub(crate) info: ScheduleInfo,
}

/// The plan that a schedule comes from.
#[derive(Debug)]
pub(crate) struct Planned {
    /// The algorithm.
    pub(crate) algorithm: &'static Algorithm,
    /// Its request.
    pub(crate) request: Request,
}

/// Description of a schedule, as fields of JSON output.
#[derive(Debug, Serialize)]
pub(crate) struct ScheduleInfo {
    #[serde(skip)]
    pub(crate) kind: Kind,
    pub(crate) collective: &'static str,
    /// Absent for a schedule from a file.
    pub(crate) algorithm: Option<&'static str>,
    /// `auto`, `given`, `rules` or `file`.
    pub(crate) algorithm_choice: &'static str,
    pub(crate) schedule: Option<String>,
    pub(crate) ranks: usize,
    pub(crate) root: Option<usize>,
    pub(crate) root_choice: &'static str,
    pub(crate) ports: &'static str,
    pub(crate) ported: usize,
    /// Number of ports that ranks share, and of their nodes.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) shared_ports: usize,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) nodes: usize,
    /// Size of the vector, or of the largest block.
    pub(crate) vector_bytes: Option<u64>,
    /// Size of each rank's block, if block sizes were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) block_bytes: Option<Vec<u64>>,
    /// Number of segments.
    pub(crate) segments: Option<usize>,
    /// Bytes of the largest segment.
    pub(crate) segment: Option<u64>,
    /// `best`, `unequal`, `given` or `rules`; `unsegmented` for an algorithm that does not segment.
    pub(crate) segment_choice: Option<&'static str>,
    /// Bytes of each segment, if a search for unequal sizes found them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) segment_sizes: Option<Vec<u64>>,
    pub(crate) time_unit: &'static str,
    /// Number of cores, if the algorithm was chosen by an estimate for that many.
    #[serde(skip)]
    pub(crate) cores: Option<usize>,
    /// The selection rule that made the choice, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rule: Option<String>,
}

impl Common {
    /// Plans or reads the schedule that the options describe.
    pub(crate) fn input(&self) -> Result<Input> {
        self.input_on_cores(|_| Ok(None))
    }

    /// Like [`Common::input`], but chooses the algorithm for a native run. `core_model` returns the
    /// core model for a number of ranks, if there is one.
    pub(crate) fn input_on_cores(
        &self,
        core_model: impl Fn(usize) -> Result<Option<CoreModel>>,
    ) -> Result<Input> {
        if self.algorithm == "all" {
            bail!("--algorithm all is for check and compare: name one, or let auto choose");
        }
        match (&self.schedule, self.collective) {
            (Some(_), _) => self.read(),
            (None, Some(kind)) => {
                let mut task = Task::new(self, kind)?;
                task.core_model = core_model(task.request.ranks())?;
                Input::plan(&task)
            }
            (None, None) => bail!("give a COLLECTIVE (such as reduce) or --schedule FILE"),
        }
    }

    fn read(&self) -> Result<Input> {
        let Some(path) = &self.schedule else {
            bail!("give --schedule FILE");
        };
        let name = name_of(path);
        let text = read_text(path)?;
        let bytes = BYTES_PER_CHARACTER * text.len() as u128;
        ensure_memory(
            || format!("the schedule in {name}"),
            bytes,
            "take a shorter one",
        )?;
        let options = msccl::ReadOptions {
            ported: self.machine.ported,
            root: match self.root {
                Some(Root::Rank(root)) => Some(root),
                _ => None,
            },
            ..msccl::ReadOptions::default()
        };
        let foreign = formats::read(&text, &options).with_context(|| name.clone())?;
        let (mut schedule, series) = match foreign {
            Some(schedule) => (schedule, None),
            None => (
                Schedule::from_json(&text).with_context(|| name.clone())?,
                Series::from_json(&text).with_context(|| name.clone())?,
            ),
        };
        drop(text);
        let ports = self.machine.ports(schedule.ports())?;
        if ports != schedule.ports() {
            schedule = schedule.with_ports(ports)?;
        }
        let element_bytes = self.vector.element_bytes();
        in_range(&schedule, element_bytes).with_context(|| name.clone())?;
        let (cost, unit) = match &series {
            Some(series) if !self.machine.is_given() => {
                let cost = series.cost(element_bytes)?;
                let overlap = cost.overlaps() || self.machine.overlap;
                (cost.overlap(overlap), TimeUnit::Plain)
            }
            _ => self.machine.cost()?,
        };
        self.agrees(&schedule, &cost)?;
        if let Some(ports) = self.nodes.of(schedule.ranks(), &cost)? {
            schedule = ports.share(schedule, &cost, element_bytes)?;
        }
        let nodes: HashSet<&[usize]> = schedule
            .shared_ports()
            .iter()
            .map(|port| &*port.ranks)
            .collect();
        let info = ScheduleInfo {
            kind: schedule.collective().kind(),
            collective: schedule.collective().kind().name(),
            algorithm: None,
            algorithm_choice: "file",
            schedule: Some(name),
            ranks: schedule.ranks(),
            root: schedule.collective().root(),
            root_choice: "file",
            ports: ports.name(),
            ported: ports.k(),
            shared_ports: schedule.shared_ports().len(),
            nodes: nodes.len(),
            vector_bytes: None,
            block_bytes: None,
            segments: None,
            segment: None,
            segment_choice: None,
            segment_sizes: None,
            time_unit: unit.name(),
            cores: None,
            rule: None,
        };
        Ok(Input {
            schedule,
            cost,
            element_bytes,
            unit,
            planned: None,
            series: series.filter(|_| !self.machine.is_given()),
            info,
        })
    }

    /// Verifies that options which repeat facts of the file agree with it.
    fn agrees(&self, schedule: &Schedule, cost: &CostModel) -> Result<()> {
        let p = schedule.ranks();
        if let Some(ranks) = self.ranks.filter(|&ranks| ranks != p) {
            bail!("the schedule has {p} ranks, not {ranks} (-p)");
        }
        if let Some(links) = cost.links().filter(|l| l.alpha.len() != p) {
            bail!(
                "the schedule has {p} ranks, the cost file {}",
                links.alpha.len()
            );
        }
        match (self.root, schedule.collective().root()) {
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
    /// Plans `task` with the requested algorithm, or with the best one.
    pub(crate) fn plan(task: &Task) -> Result<Input> {
        let (algorithm, request) = task.choose()?;
        Ok(Input::planned_by(task, algorithm, request).map_err(Error::from)?)
    }

    /// Plans `request`, one of the requests of `task`, with `algorithm`.
    pub(crate) fn planned_by(
        task: &Task,
        algorithm: &'static Algorithm,
        request: Request,
    ) -> Result<Input, Refusal> {
        let schedule = task
            .plan(algorithm, &request)
            .map_err(|error| algorithm.refusal(&request, Reason::Planner(error)))?;
        let info = ScheduleInfo::planned(task, algorithm, &request, schedule.collective().root());
        Ok(Input {
            schedule,
            cost: request.get_cost().clone(),
            element_bytes: request.get_element_bytes(),
            unit: task.unit,
            planned: Some(Planned { algorithm, request }),
            series: None,
            info,
        })
    }

    /// Describes the input in lines of name and value.
    pub(crate) fn summary(&self) -> Vec<(&'static str, String)> {
        self.info.summary(&self.cost, self.unit)
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature serde asks for"
)]
fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// Lists sizes, with repeated ones counted: `3 B, 4 x 2 B, 1 B`.
fn show_sizes(sizes: &[u64]) -> String {
    const MAX_SHOWN: usize = 12;
    let runs: Vec<&[u64]> = sizes.chunk_by(|a, b| a == b).collect();
    let show = |run: &&[u64]| match run {
        [size] => show_bytes(*size),
        _ => format!("{} x {}", run.len(), show_bytes(run[0])),
    };
    let mut shown: Vec<String> = runs.iter().take(MAX_SHOWN).map(show).collect();
    if runs.len() > MAX_SHOWN {
        shown.push("...".into());
    }
    shown.join(", ")
}

impl ScheduleInfo {
    /// Describes the schedule that `algorithm` plans for `request`, one of the requests of `task`.
    pub(crate) fn planned(
        task: &Task,
        algorithm: &'static Algorithm,
        request: &Request,
        root: Option<usize>,
    ) -> ScheduleInfo {
        let sizes = request.get_segments().sizes();
        let largest = sizes.iter().max().copied().unwrap_or(0) as u64;
        let choice = |open: bool, chosen| if open { chosen } else { "given" };
        let shares = task.node_ports.as_ref();
        let segment_choice = match &task.segments {
            _ if !algorithm.segmented => "unsegmented",
            SegmentChoice::Best => "best",
            SegmentChoice::BestUnequal => "unequal",
            SegmentChoice::Given(_) => "given",
            SegmentChoice::Rule(_) => "rules",
        };
        ScheduleInfo {
            kind: algorithm.collective,
            collective: algorithm.collective.name(),
            algorithm: Some(algorithm.name),
            algorithm_choice: match &task.rule {
                Some(_) => "rules",
                None => choice(task.auto, "auto"),
            },
            schedule: None,
            ranks: request.ranks(),
            root,
            root_choice: choice(task.root_free, "free"),
            ports: request.get_ports().name(),
            ported: request.get_ports().k(),
            shared_ports: shares.map_or(0, |ports| ports.count(request.get_ports())),
            nodes: shares.map_or(0, NodePorts::nodes),
            vector_bytes: algorithm
                .collective
                .has_data()
                .then(|| request.elements() as u64 * request.get_element_bytes()),
            block_bytes: request.get_blocks().as_ref().map(|blocks| {
                let bytes = |&b: &usize| b as u64 * request.get_element_bytes();
                blocks.iter().map(bytes).collect()
            }),
            segments: Some(sizes.len()),
            segment: Some(largest * request.get_element_bytes()),
            segment_choice: Some(segment_choice),
            segment_sizes: (segment_choice == "unequal").then(|| {
                let bytes = |&elements: &usize| elements as u64 * request.get_element_bytes();
                sizes.iter().map(bytes).collect()
            }),
            time_unit: task.unit.name(),
            cores: task.on_cores().map(|c| c.cores),
            rule: task.rule.clone(),
        }
    }

    /// Describes the schedule in lines of name and value.
    pub(crate) fn summary(&self, cost: &CostModel, unit: TimeUnit) -> Vec<(&'static str, String)> {
        let info = self;
        let mut summary = vec![("collective", info.title())];
        summary.push((
            "algorithm",
            match (info.algorithm, info.algorithm_choice) {
                (Some(name), "auto") if let Some(cores) = info.cores => {
                    format!("{name} (the fastest on {cores} cores, by an estimate)")
                }
                (Some(name), "auto") => format!("{name} (the fastest here in the model)"),
                (Some(name), "rules") => {
                    format!(
                        "{name} ({})",
                        info.rule.as_deref().unwrap_or("by the rules")
                    )
                }
                (Some(name), _) => name.to_string(),
                (None, _) => format!("from {}", info.schedule.as_deref().unwrap_or("a file")),
            },
        ));
        if let (Some(count), Some(segment)) = (info.segments, info.segment) {
            let remark = match info.segment_choice {
                Some("best") => " (the best number)",
                Some("unequal") => " at most (the best sizes found)",
                Some("unsegmented") => " (this algorithm does not segment)",
                _ => "",
            };
            summary.push((
                "segments",
                format!("{count} of {}{remark}", show_bytes(segment)),
            ));
            if let Some(sizes) = &info.segment_sizes {
                summary.push(("sizes", show_sizes(sizes)));
            }
        }
        summary.push(("costs", show_cost(cost, unit)));
        if let Some(shared) = info.show_shared_ports() {
            summary.push(("shared ports", shared));
        }
        summary
    }

    /// The ports that ranks share, such as `8, of 4 nodes`.
    pub(crate) fn show_shared_ports(&self) -> Option<String> {
        let plural = if self.nodes == 1 { "" } else { "s" };
        let show = || format!("{}, of {} node{plural}", self.shared_ports, self.nodes);
        (self.shared_ports > 0).then(show)
    }

    /// One line, such as `reduce, root 0, 8 ranks, 64 KiB, bidirectional ports`.
    pub(crate) fn title(&self) -> String {
        let free = match self.root_choice {
            "free" => " (free)",
            _ => "",
        };
        let root = self.root.map(|root| format!("root {root}{free}"));
        self.title_with_root(root.as_deref())
    }

    /// As [`title`](Self::title), with another text about the root.
    pub(crate) fn title_with_root(&self, root: Option<&str>) -> String {
        let mut what = self.collective.to_string();
        if let Some(root) = root {
            what += &format!(", {root}");
        }
        what += &format!(
            ", {} rank{}",
            self.ranks,
            if self.ranks == 1 { "" } else { "s" }
        );
        if let Some(blocks) = &self.block_bytes {
            let min = blocks.iter().copied().min().unwrap_or(0);
            let max = blocks.iter().copied().max().unwrap_or(0);
            what += &format!(
                ", blocks of {} to {}, {} in all",
                show_bytes(min),
                show_bytes(max),
                show_bytes(blocks.iter().sum())
            );
        } else if let Some(bytes) = self.vector_bytes {
            let block = if self.kind.has_blocks() && self.kind != Kind::ReduceScatter {
                " a block"
            } else {
                ""
            };
            what += &format!(", {}{block}", show_bytes(bytes));
        }
        let direction = if self.ports == "bi" {
            "bidirectional"
        } else {
            "unidirectional"
        };
        match self.ported {
            1 => what += &format!(", {direction} ports"),
            k => what += &format!(", {k} {direction} ports each"),
        }
        what
    }
}

/// Formats costs, such as `alpha 1 us, beta 0.1 ns/byte, gamma 0`.
pub(crate) fn show_cost(cost: &CostModel, unit: TimeUnit) -> String {
    let overlap = if cost.overlaps() {
        ", computation overlaps communication"
    } else {
        ""
    };
    if cost.links().is_some() {
        return format!("per pair of ranks{overlap}");
    }
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
    let pieces = cost.size_pieces().map_or_else(String::new, |pieces| {
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
    });
    parts.join(", ") + &pieces + overlap
}

/// Rejects a schedule whose sizes could overflow when they are added.
fn in_range(schedule: &Schedule, element_bytes: u64) -> Result<()> {
    let steps = schedule.programs().iter().flatten().map(Step::len);
    let buffers = schedule.layout().iter().map(|l| l.len);
    let total = steps
        .chain(buffers)
        .fold(0u64, |sum, n| sum.saturating_add(n as u64));
    if total.saturating_mul(element_bytes) > MAX_BYTES {
        bail!("the schedule moves or holds more than this program's limit of 2^60 bytes");
    }
    Ok(())
}
