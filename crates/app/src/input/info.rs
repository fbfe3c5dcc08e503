//! What a command says of a schedule, in a summary and as fields of JSON.

use std::borrow::Cow;

use oneport::plan::choose::LeftOut;
use oneport::plan::segments::Method;
use oneport::plan::space::{SegmentChoice, Variant};
use oneport::simulate::Timed;
use oneport::{CostModel, Kind, Ports};
use oneport_pictures::SweepRow;
use schemars::JsonSchema;
use serde::Serialize;

use super::show_cost;
use crate::nodes::NodePorts;
use crate::stored::MadeBy;
use crate::task::PlanTask;
use crate::units::{Number, Unit, counted, show_bytes};

/// Description of a schedule, as fields of JSON output.
#[derive(Debug, Clone, JsonSchema, Serialize)]
pub(crate) struct ScheduleInfo {
    #[serde(skip)]
    pub(crate) kind: Kind,
    pub(crate) collective: &'static str,
    /// The name of a schedule from a file; absent if it has none.
    pub(crate) algorithm: Option<Cow<'static, str>>,
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
    pub(crate) segments: Option<usize>,
    pub(crate) segment: Option<u64>,
    /// `best`, `unequal`, `given` or `rules`; `unsegmented` for an algorithm that does not segment.
    pub(crate) segment_choice: Option<&'static str>,
    /// Whether no other number of segments takes less time: the search compared all that may.
    #[serde(skip)]
    pub(super) segments_are_best: bool,
    /// Bytes of each segment, if a search for unequal sizes found them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) segment_sizes: Option<Vec<u64>>,
    pub(crate) time_unit: &'static str,
    /// The time that a schedule's file claims.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) claimed_time: Option<Number>,
    /// Whether links with the costs that options give keep the epochs that the file claims.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) epochs_kept: Option<bool>,
    /// The first flow that these links do not carry in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) late_flow: Option<String>,
    /// Number of cores, if the algorithm was chosen by an estimate for that many.
    #[serde(skip)]
    pub(crate) cores: Option<usize>,
    /// The built-in costs by which algorithm or segments were chosen, if they were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) chosen_for: Option<String>,
    /// What the search left out because it would take too long, and may be better.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) left_out: Vec<String>,
    /// The selection rule that made the choice, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rule: Option<String>,
    /// Whether a schedule from a file is right, if that was to be found out and could be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) correct: Option<bool>,
}

/// These built-in costs in words.
pub(crate) fn assumed(costs: &str) -> String {
    format!("{costs} (oneport calibrate measures those of this machine)")
}

/// The name of a schedule that a program has made itself.
const OWN: &str = "own schedule";

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature serde asks for"
)]
fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// Lists sizes, with repeated ones counted: `3 B, 4 x 2 B, 1 B`. Rounded ones that differ would
/// look alike.
fn show_sizes(sizes: &[u64]) -> String {
    const MAX_SHOWN: usize = 12;
    let runs: Vec<&[u64]> = sizes.chunk_by(|a, b| a == b).collect();
    let show = |run: &&[u64]| match run {
        [size] => format!("{size} B"),
        _ => format!("{} x {} B", run.len(), run[0]),
    };
    let mut shown: Vec<String> = runs.iter().take(MAX_SHOWN).map(show).collect();
    if runs.len() > MAX_SHOWN {
        shown.push("...".into());
    }
    shown.join(", ")
}

impl ScheduleInfo {
    pub(super) fn of(kind: Kind, ranks: usize, ports: Ports, unit: Unit) -> ScheduleInfo {
        ScheduleInfo {
            kind,
            collective: kind.name(),
            algorithm: None,
            algorithm_choice: "",
            schedule: None,
            ranks,
            root: None,
            root_choice: "",
            ports: ports.name(),
            ported: ports.k(),
            shared_ports: 0,
            nodes: 0,
            vector_bytes: None,
            block_bytes: None,
            segments: None,
            segment: None,
            segment_choice: None,
            segments_are_best: false,
            segment_sizes: None,
            time_unit: unit.name(),
            claimed_time: None,
            epochs_kept: None,
            late_flow: None,
            cores: None,
            chosen_for: None,
            left_out: Vec::new(),
            rule: None,
            correct: None,
        }
    }

    pub(crate) fn planned(task: &PlanTask, variant: &Variant, root: Option<usize>) -> ScheduleInfo {
        let (algorithm, request) = (&variant.algorithm, &variant.request);
        let sizes = request.get_segments().sizes();
        let bytes = |elements: usize| elements as u64 * request.get_element_bytes();
        let all_bytes = |sizes: &[usize]| sizes.iter().map(|&size| bytes(size)).collect();
        let choice = |open: bool, chosen| if open { chosen } else { "given" };
        let (kind, ports) = (algorithm.collective, request.get_ports());
        let (shares, rule) = (task.node_ports.as_ref(), task.rule.as_ref());
        let has_data = kind.has_data();
        let segment_choice = match &task.segments {
            _ if !algorithm.segmented => "unsegmented",
            SegmentChoice::Best => "best",
            SegmentChoice::BestUnequal => "unequal",
            SegmentChoice::Given(_) if rule.is_some_and(|rule| rule.segments) => "rules",
            SegmentChoice::Given(_) => "given",
        };
        ScheduleInfo {
            algorithm: Some(algorithm.name()),
            algorithm_choice: match rule {
                Some(_) => "rules",
                None => choice(task.auto, "auto"),
            },
            root,
            root_choice: choice(task.request.get_free_root(), "free"),
            shared_ports: shares.map_or(0, |shares| shares.count(ports)),
            nodes: shares.map_or(0, NodePorts::nodes),
            vector_bytes: has_data.then(|| bytes(request.elements())),
            block_bytes: request.get_blocks().map(all_bytes),
            segments: has_data.then_some(sizes.len()),
            segment: has_data.then(|| bytes(sizes.iter().max().copied().unwrap_or(0))),
            segment_choice: has_data.then_some(segment_choice),
            // The search does not know of ports that ranks share.
            segments_are_best: shares.is_none()
                && matches!(
                    variant.segments_found,
                    Some(Method::Whole | Method::Exhaustive)
                ),
            segment_sizes: (segment_choice == "unequal").then(|| all_bytes(sizes)),
            left_out: variant.left_out.iter().map(LeftOut::to_string).collect(),
            cores: task.on_cores().map(|c| c.cores),
            rule: rule.map(|rule| rule.why.clone()),
            ..ScheduleInfo::of(kind, request.ranks(), ports, task.unit)
        }
    }

    /// Says that the choice was for these built-in costs, if anything was chosen.
    pub(super) fn set_chosen_for(&mut self, costs: String) {
        let open = self.algorithm_choice == "auto" || self.segment_choice == Some("best");
        self.chosen_for = open.then_some(costs);
    }

    /// What the choice assumes of the machine, if options do not say it.
    pub(crate) fn assumed(&self) -> Option<String> {
        self.chosen_for.as_deref().map(assumed)
    }

    /// What made it, unless it was read.
    pub(crate) fn maker(&self) -> Option<MadeBy> {
        let planned = self.algorithm_choice != "file";
        planned.then(|| MadeBy {
            segments: self.segments,
            segmented: self.segment_choice != Some("unsegmented"),
            segment: self.segment.zip(self.vector_bytes),
        })
    }

    /// The same of a schedule that a program has kept since it was planned, perhaps at another
    /// size.
    pub(super) fn made_by(self, made: &MadeBy) -> ScheduleInfo {
        let scaled = |(segment, whole): (u64, u64)| match (self.vector_bytes, whole) {
            (Some(now), 1..) => segment * now / whole,
            _ => segment,
        };
        ScheduleInfo {
            algorithm_choice: "given",
            root_choice: "given",
            schedule: None,
            segments: made.segments,
            segment: made.segment.map(scaled),
            segment_choice: made.segments.map(|_| {
                if made.segmented {
                    "given"
                } else {
                    "unsegmented"
                }
            }),
            ..self
        }
    }

    pub(crate) fn summary(&self, cost: &CostModel, unit: Unit) -> Vec<(&'static str, String)> {
        let info = self;
        let mut summary = vec![("collective", info.title())];
        summary.push((
            "algorithm",
            match (&info.algorithm, info.algorithm_choice) {
                (Some(name), "auto") if let Some(cores) = info.cores => {
                    format!("{name} (the fastest on {cores} cores, by an estimate)")
                }
                (Some(name), "auto") if info.segments_were_given() => {
                    format!("{name} (the fastest here that segments, in the model)")
                }
                (Some(name), "auto") => format!("{name} (the fastest here in the model)"),
                (Some(name), "rules") => {
                    format!(
                        "{name} ({})",
                        info.rule.as_deref().unwrap_or("by the rules")
                    )
                }
                (Some(name), _) => match &info.schedule {
                    Some(file) => format!("{name} (from {file})"),
                    None => name.to_string(),
                },
                (None, _) => match &info.schedule {
                    Some(file) => format!("from {file}"),
                    None => OWN.into(),
                },
            },
        ));
        if let (Some(count), Some(segment)) = (info.segments, info.segment) {
            let remark = match info.segment_choice {
                Some("best") if info.segments_are_best => " (the best number)",
                Some("best") => " (the best number found)",
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
        summary.extend(info.assumed().map(|costs| ("chosen for", costs)));
        summary.push(("costs", show_cost(cost, unit)));
        if let Some(shared) = info.show_shared_ports() {
            summary.push(("shared ports", shared));
        }
        summary
    }

    pub(crate) fn by(&self) -> &str {
        let algorithm = self.algorithm.as_deref();
        algorithm.or(self.schedule.as_deref()).unwrap_or(OWN)
    }

    /// What a sweep keeps of it: `timed` in the model, without a bound.
    pub(crate) fn figures(&self, name: &str, timed: &Timed, element_bytes: u64) -> SweepRow {
        let bytes = self.vector_bytes.unwrap_or(0);
        let row = SweepRow::timed(name.to_string(), self.ranks, bytes, timed, element_bytes);
        SweepRow {
            segment: self.segment.filter(|_| self.segments > Some(1)),
            left_out: self.left_out.clone(),
            ..row
        }
    }

    /// Whether options ask for several segments, so that algorithms that segment come first.
    fn segments_were_given(&self) -> bool {
        let asked = matches!(self.segment_choice, Some("given" | "unequal"));
        asked && self.segments.is_some_and(|n| n > 1)
    }

    /// The ports that ranks share, such as `8, of 4 nodes`.
    pub(crate) fn show_shared_ports(&self) -> Option<String> {
        let show = || format!("{}, of {}", self.shared_ports, counted(self.nodes, "node"));
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
        what += &format!(", {}", counted(self.ranks, "rank"));
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
            let block = if self.kind.is_sized_by_block() {
                " a block"
            } else {
                ""
            };
            what += &format!(", {}{block}", show_bytes(bytes));
        }
        let ports = Ports::named(self.ports).map(|ports| ports.with_k(self.ported).in_words());
        what + &ports.map_or_else(String::new, |ports| format!(", {ports}"))
    }
}
