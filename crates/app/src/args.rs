//! Options that several subcommands share.

use anyhow::{Result, bail};
use oneport::run::{Clock, Element, ElementType, Op, Operator};
use oneport::{CostModel, Kind, Ports};
use oneport_measure::Profile;

use crate::ask::{File, Group, Switch, Unasked, choices, options};
use crate::blocks::BlockArgs;
use crate::delays::DelayArgs;
use crate::files::Source;
use crate::forms::{
    AlgorithmList, AlgorithmNames, Count, KindName, OpName, PortNames, RankNumber, Ranks, Rate,
    Root, RootName, Segment, SegmentCount, SegmentCounts, Size, Sizes, Time, TypeName, ports_help,
};
use crate::nodes::NodeArgs;
use crate::own_file::{OwnFile, OwnFileName};
use crate::ranges::Ranges;
use crate::units::{TimeArg, Unit};

options! {
    /// The input of a command: a collective and how to plan it, or a schedule from a file, and the
    /// costs.
    #[derive(Debug, Clone, Default)]
    pub(crate) struct Common {
        /// The collective: broadcast, reduce, ... (`oneport list` shows those that can be planned);
        /// or files of schedules, as behind --schedule
        ///
        /// A word is a file if it names no collective and has a `.`, `/` or `=`, or is `-`, or
        /// there is a file or folder of this name: ./reduce is one that is named like a collective.
        pub(crate) collective: Option<Kind> = KindName {
            is_placed: true, value: "COLLECTIVE|FILE", takes_words: true,
            files_are: Some("schedule"),
        },

        /// Read the schedule from a JSON file instead (`-` for standard input); with --bytes at any
        /// multiple of its size. NAME=FILE gives it a name, as the field "name" in the file does;
        /// {p} in the file's name stands for the number of ranks. Where a command takes several,
        /// list them, or give a folder of .json files. With a COLLECTIVE, the files must perform
        /// that one
        pub(crate) schedule: Vec<OwnFile> = OwnFileName {
            takes_words: true, conflicts: &["algorithm", "segment", "segments", "segment_sizes"],
        },

        /// Number of ranks, or several such as 2..64 or 2,3,5..=9; these for compare, simulate, run
        /// and, of files, check [default: 8, or as many as --costs describes]
        pub(crate) ranks: Option<Ranges> = Ranks { shorts: &['p', 'n'] },

        /// The root, or `free` to let the algorithm choose it where it can
        pub(crate) root: Option<Root> = RootName,

        /// Ranks that get the vector of a collective with targets, such as 1,3,5 of a multicast
        /// [default: all]
        pub(crate) targets: Vec<usize> = RankNumber {
            value: "RANK,RANK,...", is_list: true, conflicts: &["schedule"],
            heading: Some("Vector"),
        },

        /// The algorithm; of several, or with `auto` of all, the one with the least model time is
        /// taken
        pub(crate) algorithm: AlgorithmNames = AlgorithmList {
            shorts: &['a'], default: Some("auto"),
            heading: Some("Planning"),
        },

        /// Let these selection rules (from `tune --rules`) choose algorithm and segment size
        pub(crate) rules: Option<Source> = File {
            conflicts: &["schedule"], heading: Some("Planning"),
        },

        /// Print one JSON object instead of text
        pub(crate) json: bool = Switch,

        pub(crate) vector: Vector = Group { heading: Some("Vector") },

        pub(crate) blocks: BlockArgs = Group { heading: Some("Blocks of unequal size") },

        pub(crate) machine: MachineArgs = Group { heading: Some("Machine") },

        pub(crate) delays: DelayArgs = Group { heading: Some("Machine") },

        pub(crate) nodes: NodeArgs = Group { heading: Some("Machine") },
    }
}

impl Common {
    /// The files of `--schedule`; for a folder those in it.
    pub(crate) fn files(&self) -> Result<Vec<OwnFile>> {
        let expanded: Result<Vec<_>> = self.schedule.iter().map(OwnFile::expanded).collect();
        Ok(expanded?.concat())
    }

    /// Refuses a schedule for another collective than the one that is asked for.
    pub(crate) fn ensure_performs(&self, kind: Kind, file: &str) -> Result<()> {
        match self.collective.filter(|&asked| asked != kind) {
            Some(asked) => bail!("{file}: it performs a {kind}, not a {asked}"),
            None => Ok(()),
        }
    }

    pub(crate) fn ranks(&self) -> Result<Option<usize>> {
        let ranks = self.ranks.as_ref().map(|ranks| ranks.one("-p"));
        let ranks = ranks.transpose()?;
        Ok(ranks.map(|ranks| usize::try_from(ranks).unwrap_or(usize::MAX)))
    }

    /// The files that options name as input, those of folders one by one.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = Source> {
        let machine = [&self.machine.profile, &self.machine.costs];
        let others = [&self.rules, &self.blocks.sizes_file];
        let files = machine.into_iter().chain(others).flatten();
        // Whoever needs a folder that cannot be read reports the error.
        let schedules = self.files().unwrap_or_default().into_iter();
        let files = files.chain(self.delays.file()).cloned();
        files.chain(schedules.map(|own| own.source))
    }

    /// These options with an element type: without one elements are bytes, or what the operator
    /// needs.
    pub(crate) fn typed(&self) -> (Common, ElementType) {
        let mut common = self.clone();
        let dtype = common.vector.dtype;
        let dtype = dtype.unwrap_or(default_type(common.vector.op()));
        common.vector.dtype = Some(dtype);
        (common, dtype)
    }

    /// The costs of so many ranks, late as they are, and the unit of times.
    pub(crate) fn costs(&self, ranks: usize) -> Result<(CostModel, Unit)> {
        let (cost, unit) = self.machine.cost(Some(ranks))?;
        Ok((self.delays.apply(cost, ranks)?, unit))
    }

    /// Whether options say what messages cost, or through which ports they pass.
    pub(crate) fn gives_costs(&self) -> bool {
        let DelayArgs { latency, eager, .. } = &self.delays;
        self.machine.is_given()
            || self.machine.overlap
            || latency.is_some()
            || eager.is_some()
            || self.nodes.node_ports.is_some()
    }

    /// Takes as many ranks as there are processes, unless the options determine their number.
    pub(crate) fn take_ranks(&mut self, processes: usize) {
        let sized = self.blocks.are_listed();
        if self.schedule.is_empty() && self.machine.costs.is_none() && !sized {
            self.ranks.get_or_insert(Ranges::single(processes as u64));
        }
    }
}

options! {
    /// The vector, its segments and its operator.
    #[derive(Debug, Clone, Default)]
    pub(crate) struct Vector {
        /// Size of one rank's block of gather, scatter, allgather and alltoall, of the vector of
        /// the other collectives; where a command takes several, 8..4MiB doubles, 8..4MiB*4 goes on
        /// by a factor of 4, and 8,1KiB lists [default: 64KiB]
        pub(crate) bytes: Option<Ranges> = Sizes,

        /// Size of a segment; the last may be smaller; the algorithm chosen is then one that
        /// segments, if any does [default: the best for the cost model]
        pub(crate) segment: Option<u64> = Segment {
            conflicts: &["segments", "segment_sizes"], heading: Some("Segments"),
        },

        /// Number of segments, or `unequal` to search for the best sizes, unequal ones included;
        /// the algorithm chosen is then one that segments, if any does
        pub(crate) segments: Option<SegmentCount> = SegmentCounts {
            conflicts: &["segment_sizes"], heading: Some("Segments"),
        },

        /// Sizes of all segments, such as 6KiB,4KiB,4KiB, in the order in which a reduction takes
        /// them: a broadcast that is planned as a reduction backwards starts with the last of them
        pub(crate) segment_sizes: Vec<u64> = Size {
            value: "SIZE,SIZE,...", is_list: true, heading: Some("Segments"),
        },

        /// Type of the elements; without it an element is one byte
        pub(crate) dtype: Option<ElementType> = TypeName,

        /// Operator of reductions; affine maps (u64) do not commute, so operand order is then kept
        /// [default: sum]
        pub(crate) op: Option<Op> = OpName,

        /// Keep operand order even though the operator commutes
        pub(crate) ordered: bool = Switch,

        /// Take only schedules that give all ranks of an allreduce the same bits of a sum of
        /// floats; with =tree those that add all elements in one tree, in a sweep the same for all
        /// sizes
        pub(crate) same_bits: Option<SameBits> = SameBits {
            value: "ranks|tree", alone: Some("ranks"), behind_equals: true,
        },

        /// The tree that was chosen for all sizes.
        pub(crate) tree: Option<OneTree> = Unasked,
    }
}

/// A tree that was chosen: the algorithms of the options are then those that add in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OneTree {
    pub(crate) hash: String,
    /// The algorithms that the options had before.
    pub(crate) asked: AlgorithmNames,
}

choices! {
    /// Who is to get the same bits of a sum of floats.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum SameBits {
        /// All ranks
        Ranks = "ranks",
        /// All ranks, places of the vector and sizes of a sweep: one tree
        Tree = "tree",
    }
}

options! {
    /// Ports and costs of the machine.
    #[derive(Debug, Clone, Default)]
    pub(crate) struct MachineArgs {
        #[doc = ports_help!()]
        /// [default: bi]
        pub(crate) ports: Option<Ports> = PortNames,

        /// Number of ports of each kind that a rank has [default: 1]
        pub(crate) ported: Option<usize> = Count { value: "K" },

        /// Start-up time of a message [default: 1us]
        pub(crate) alpha: Option<TimeArg> = Time,

        /// Time per byte of a message, or a bandwidth such as 10GB/s [default: 0.1ns]
        pub(crate) beta: Option<TimeArg> = Rate,

        /// Time per byte combined [default: 0]
        pub(crate) gamma: Option<TimeArg> = Rate,

        /// Time per byte copied locally [default: 0]
        pub(crate) gamma_copy: Option<TimeArg> = Rate,

        /// Costs from a profile that `calibrate -o` wrote, by level if it has levels; --alpha,
        /// --beta, --gamma and --gamma-copy still override it
        pub(crate) profile: Option<Source> = File,

        /// Costs of each pair of ranks, from a JSON file `{"alpha": [[..]], "beta": [[..]],
        /// "gamma": [..], "gamma_copy": [..]}`, null where there is no link; or from a profile with
        /// pairs (`calibrate --pairs`) or with levels
        pub(crate) costs: Option<Source> = File {
            conflicts: &["alpha", "beta", "gamma", "gamma_copy", "profile"],
        },

        /// Let computation overlap communication
        pub(crate) overlap: bool = Switch,

        /// Costs where no option gives any, instead of the default ones: those of a native run.
        pub(crate) built_in: Option<Profile> = Unasked,
    }
}

impl Vector {
    pub(crate) fn op(&self) -> Op {
        self.op.unwrap_or(Op::SUM)
    }

    /// Refuses elements of type `dtype` for a collective that combines if the operator does not
    /// combine them.
    pub(crate) fn ensure_combines(&self, kind: Kind, dtype: ElementType) -> Result<()> {
        let op = self.op();
        if !kind.reduces() || combined_by(op).any(|t| t == dtype) {
            return Ok(());
        }
        if self.op.is_none() {
            let ops: Vec<_> = dtype.operators().map(Op::name).collect();
            let (kind, ops) = (kind.name(), ops.join(" or "));
            bail!("{kind} sums up without --op, and {dtype} has no sum: choose --op {ops}");
        }
        let names: Vec<_> = combined_by(op).map(ElementType::name).collect();
        bail!(
            "--op {op} works on {}, not on {dtype}: choose another --dtype",
            names.join(", ")
        )
    }

    pub(crate) fn gives_segments(&self) -> bool {
        self.segment.is_some() || self.segments.is_some() || !self.segment_sizes.is_empty()
    }
}

impl MachineArgs {
    pub(crate) fn is_given(&self) -> bool {
        let rates = self.rates();
        self.costs.is_some() || self.profile.is_some() || rates.iter().any(Option::is_some)
    }

    /// What a cost without a unit beside others with one means.
    pub(crate) fn mixed_units(&self) -> Option<String> {
        let names = ["--alpha", "--beta", "--gamma", "--gamma-copy"];
        let given = names.into_iter().zip(self.rates());
        let given = given.filter_map(|(name, rate)| Some((name, rate?)));
        let plain = |&(_, rate): &(&str, TimeArg)| !rate.has_unit && rate.value != 0.0;
        let (name, rate) = given.clone().find(plain)?;
        let (with_unit, _) = given.clone().find(|(_, rate)| rate.has_unit)?;
        Some(format!(
            "{name} has no unit, but {with_unit} has: {} is taken as nanoseconds",
            rate.value
        ))
    }

    pub(crate) fn rates(&self) -> [Option<TimeArg>; 4] {
        [self.alpha, self.beta, self.gamma, self.gamma_copy]
    }
}

pub(crate) fn clock_name(clock: Clock) -> &'static str {
    match clock {
        Clock::Paced => "paced",
        _ => "native",
    }
}

/// The name here of an element type of C or NumPy, such as `f32` for `float32`.
pub fn element_type_like(typed: &str) -> Option<&'static str> {
    let lower = typed.to_ascii_lowercase();
    let kinds = [
        ("bfloat", "bf"),
        ("float", "f"),
        ("uint", "u"),
        ("int", "i"),
    ];
    let short = match &*lower {
        "float" | "single" => "f32".to_string(),
        "double" => "f64".to_string(),
        "half" => "f16".to_string(),
        "int" => "i32".to_string(),
        _ => kinds.iter().find_map(|(long, short)| {
            let bits = lower.strip_prefix(long)?.trim_end_matches("_t");
            Some(format!("{short}{bits}"))
        })?,
    };
    let mut names = ElementType::ALL.iter().map(|t| t.name());
    names.find(|name| *name == short)
}

/// The operator here that MPI, NumPy or a reader calls so, such as `sum` for `add`.
pub fn operator_like(typed: &str) -> Option<&'static str> {
    let lower = typed.to_ascii_lowercase();
    Some(match lower.strip_prefix("mpi_").unwrap_or(&lower) {
        "add" | "plus" | "+" => "sum",
        "mul" | "multiply" | "product" | "times" | "*" => "prod",
        "minimum" => "min",
        "maximum" => "max",
        "argmin" => "minloc",
        "argmax" => "maxloc",
        "and" => "land",
        "or" => "lor",
        "xor" => "lxor",
        "bitwise_and" | "&" => "band",
        "bitwise_or" | "|" => "bor",
        "bitwise_xor" | "^" => "bxor",
        same => return Op::ALL.map(Op::name).into_iter().find(|name| *name == same),
    })
}

pub(crate) fn operator<T: Element>(kind: Kind, op: Op) -> oneport::Result<Operator<T>> {
    if kind.reduces() {
        Operator::named(op.name())
    } else {
        Ok(Operator::none())
    }
}

fn combined_by(op: Op) -> impl Iterator<Item = ElementType> {
    let has = move |t: &ElementType| t.operators().any(|own| own == op);
    ElementType::ALL.iter().copied().filter(has)
}

/// The element type for `op` where none is given: bytes, or the first that it combines.
pub(crate) fn default_type(op: Op) -> ElementType {
    combined_by(op).next().unwrap_or(ElementType::U8)
}

options! {
    /// What is done with the inputs between the repetitions of a measurement.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct InputArgs {
        /// Write the inputs anew before each repetition, or keep them where they are, as the
        /// benchmarks of OSU and NCCL do: messages are then read from warm caches
        pub(crate) inputs: Inputs = Inputs { default: Some("rewritten") },
    }
}

choices! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Inputs {
        /// Each repetition has other data, and is verified
        Rewritten = "rewritten",
        /// The untimed repetitions are verified, the timed ones run on what these leave
        Kept = "kept",
    }
}

impl Inputs {
    pub(crate) fn kept(self) -> bool {
        self == Inputs::Kept
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Inputs::Rewritten => "rewritten",
            Inputs::Kept => "kept",
        }
    }
}
