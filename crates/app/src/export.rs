//! `oneport export`: writes a schedule in the format of another tool.

use std::io::ErrorKind;

use oneport::internal::budget::memory::{MSCCL_LINE_BYTES, WRITTEN_STEP_BYTES};
use oneport_formats::dot::DotGraph;
use oneport_formats::simgrid::Network;
use oneport_formats::{Written, WrittenFolder, chakra, dot, goal, msccl, mscclpp, simgrid};

use crate::delays::DelayArgs;
use crate::prelude::*;
use crate::writer::NewFolder;

options! {
    /// Write a schedule in the format of another tool.
    #[derive(Debug)]
    #[examples = "\
Examples:
  oneport export goal broadcast -p 16 --bytes 64KiB -a binomial -o b.goal
  oneport plan reduce -p 4 -a chain --segments 4 -o mine.json
  oneport export goal --schedule mine.json --form bytes -o mine.goal
  oneport export msccl allgather -p 8 -a ring -o ring.xml
  oneport export mscclpp allreduce -p 8 -a recursive-doubling -o plan.json
  oneport export simgrid alltoall -p 16 -a pairwise --network torus -o torus
  oneport export chakra allgather -p 8 -a ring --bytes 64KiB --eager all -o traces
  oneport export dot broadcast -p 8 -a binomial --rounds -o b.dot

What a format cannot express is refused, with the reason. `oneport import` reads files of other tools."]
    pub(crate) struct ExportArgs {}
}

options! {
    /// GOAL, for LogGOPSim and the simulators that take its files.
    ///
    /// Two forms make LogGOPSim compute the model's time with the flags in the header, where it
    /// can, as a note says. Uniform: bidirectional ports, messages of equal size. Timed: all ports
    /// and sizes, latency and eager sends. Late ranks begin with a calc. The byte form has the
    /// sizes and leaves the costs to the simulator.
    #[derive(Debug)]
    pub(crate) struct ExportGoal {
        to: To = Group,

        /// Sizes of messages [default: uniform, or timed where only that can have the schedule]
        form: Option<goal::GoalForm> = FormName { heading: Some("Output") },
    }
}

forms! {
    /// How messages are written in GOAL.
    FormName: goal::GoalForm = "FORM", of [
        (
            "uniform",
            "One byte each; times are those of the one-port model",
            goal::GoalForm::Uniform,
        ),
        (
            "timed",
            "A byte for each unit of time, and one; times are those of the model, latency included",
            goal::GoalForm::Timed,
        ),
        (
            "bytes",
            "The messages' bytes, for studies with other costs",
            goal::GoalForm::Bytes,
        ),
    ];
}

options! {
    /// MSCCL XML, for MSCCL's executor, verifier and tools.
    ///
    /// Chunks of equal size, out of place. Reductions are for operators that commute.
    #[derive(Debug)]
    pub(crate) struct ExportMsccl {
        to: To = Group,

        /// Name of the algorithm in the file [default: those of collective and algorithm]
        name: Option<String> = Word { value: "NAME", heading: Some("Output") },
    }
}

options! {
    /// An execution plan of MSCCL++ (JSON), for its executor.
    ///
    /// Allgather, allreduce, reduce-scatter and alltoall with blocks of equal size. A message is a
    /// write into the receiver's memory or, where that combines it, a read by the receiver; a
    /// signal, a semaphore or a nop stands only where two accesses of a chunk need an order.
    /// Reductions are for operators that commute.
    #[derive(Debug)]
    pub(crate) struct ExportMscclpp {
        to: To = Group,

        /// Name of the plan in the file [default: those of collective and algorithm]
        name: Option<String> = Word { value: "NAME", heading: Some("Output") },
    }
}

options! {
    /// SimGrid: traces of all ranks, and a platform.
    ///
    /// On the crossbar SimGrid computes the model's time; on the other networks messages share
    /// links, which the model leaves out. Late ranks compute first; latency and eager sends are
    /// refused where SimGrid would take another time. Costs without a unit are microseconds.
    #[derive(Debug)]
    pub(crate) struct ExportSimgrid {
        to: ToFolder = Group,

        /// How the hosts are connected
        network: Network = NetworkName { default: Some("crossbar"), heading: Some("Output") },
    }
}

options! {
    /// Chakra execution traces, for ASTRA-sim: one of each rank, and its analytical network.
    ///
    /// With --eager all ASTRA-sim computes the model's time, if every message is taken as it comes:
    /// a note says whether that is so. Each rank has one send in flight, so it has one port of a
    /// kind. Costs without a unit are microseconds; computations take whole ones there.
    #[derive(Debug)]
    pub(crate) struct ExportChakra {
        to: ToFolder = Group,
    }
}

options! {
    /// The schedule, and the folder that it is written to.
    #[derive(Debug)]
    struct ToFolder {
        common: Common = Group,

        /// Write the files to this folder, which is created, or is empty
        output: PathBuf = Output { shorts: &['o'], value: "FOLDER", heading: Some("Output") },

        /// Write among the files of a folder that is not empty, too
        force: bool = Switch { heading: Some("Output") },
    }
}

forms! {
    /// Networks of SimGrid.
    NetworkName: Network = "NETWORK", of [
        (
            "crossbar",
            "A link from each host to each other one",
            Network::Crossbar,
        ),
        (
            "fat-tree",
            "Two levels of switches; half as many links lead up from a switch as hosts down",
            Network::FatTree,
        ),
        ("torus", "Three dimensions", Network::Torus),
        (
            "dragonfly",
            "Groups of routers with two hosts each",
            Network::Dragonfly,
        ),
    ];
}

options! {
    /// DOT, for Graphviz: who sends to whom.
    #[derive(Debug)]
    pub(crate) struct ExportDot {
        to: To = Group,

        /// A row a round, instead of one edge for each pair of ranks
        rounds: bool = Switch { heading: Some("Output") },
    }
}

options! {
    /// The schedule, and where it is written.
    #[derive(Debug)]
    struct To {
        common: Common = Group,

        /// Write to this file, all at once, instead of standard output
        output: Option<PathBuf> = Output { shorts: &['o'], heading: Some("Output") },
    }
}

/// What becomes of latency, eager sends and late ranks in a format.
#[derive(Debug, Clone, Copy)]
enum Delays {
    /// The writer has the costs: it writes them, or refuses what the format does not have.
    Written,
    /// The format has no times.
    Refused,
}

impl Delays {
    fn ensure_takes(self, given: &DelayArgs) -> Result<()> {
        match self {
            Delays::Written => Ok(()),
            Delays::Refused => given.refuse("this format"),
        }
    }
}

fn text_bytes(schedule: &Schedule) -> u128 {
    schedule.steps() as u128 * u128::from(WRITTEN_STEP_BYTES)
}

impl Command for ExportGoal {
    fn answer(&self, site: &mut Site) -> Result<Answer> {
        let caller = &site.caller;
        self.to.write(caller, Delays::Written, text_bytes, |input| {
            let write = |form| {
                let cost = input.cost.clone();
                goal::write(&input.schedule, &goal::GoalOptions { form, cost })
            };
            let Some(form) = self.form else {
                let uniform = write(goal::GoalForm::Uniform);
                let timed = |error| match write(goal::GoalForm::Timed) {
                    Ok(mut written) => {
                        written.notes.insert(0, format!("{error}, and is written"));
                        Ok(written)
                    }
                    Err(_) => Err(error),
                };
                return Ok(uniform.or_else(timed)?);
            };
            Ok(write(form)?)
        })
    }
}

impl Command for ExportMsccl {
    fn answer(&self, site: &mut Site) -> Result<Answer> {
        let bytes = |schedule: &Schedule| msccl_lines(schedule) * u128::from(MSCCL_LINE_BYTES);
        let name = self.name.as_deref();
        self.to
            .write_blocks(&site.caller, bytes, name, msccl::write)
    }
}

impl Command for ExportMscclpp {
    fn answer(&self, site: &mut Site) -> Result<Answer> {
        // An operation, with its signal, its wait and two nops; and what blocks know of each other.
        let bytes = |schedule: &Schedule| {
            let ranks = schedule.ranks() as u128;
            let blocks = ranks * schedule.ports().k() as u128;
            5 * msccl_lines(schedule) * u128::from(MSCCL_LINE_BYTES) + 8 * blocks * (ranks + blocks)
        };
        let name = self.name.as_deref();
        self.to
            .write_blocks(&site.caller, bytes, name, mscclpp::write)
    }
}

impl Command for ExportDot {
    fn answer(&self, site: &mut Site) -> Result<Answer> {
        let caller = &site.caller;
        self.to.write(caller, Delays::Refused, text_bytes, |input| {
            let graph = if self.rounds {
                DotGraph::Rounds
            } else {
                DotGraph::Tree
            };
            Ok(dot::write(&input.schedule, graph)?)
        })
    }
}

impl Command for ExportSimgrid {
    fn answer(&self, site: &mut Site) -> Result<Answer> {
        let network = self.network;
        let links = |ranks: u128| match network {
            Network::Crossbar => ranks * ranks,
            _ => 1,
        };
        let caller = &site.caller;
        self.to
            .write(caller, Delays::Written, links, |input, second| {
                let options = simgrid::SimgridOptions {
                    network,
                    cost: input.cost.clone(),
                    second,
                };
                Ok(simgrid::write(&input.schedule, &options)?)
            })
    }
}

impl Command for ExportChakra {
    fn answer(&self, site: &mut Site) -> Result<Answer> {
        let (caller, traces) = (&site.caller, |ranks| ranks);
        self.to
            .write(caller, Delays::Written, traces, |input, second| {
                let cost = input.cost.clone();
                let options = chakra::ChakraOptions { cost, second };
                Ok(chakra::write(&input.schedule, &options)?)
            })
    }
}

impl ToFolder {
    /// Writes the files, for which memory is checked first: beside the lines of the steps they have
    /// as many as `more_lines` says of the number of ranks. `write` gets the seconds of a time
    /// unit, too.
    fn write(
        &self,
        caller: &Caller,
        delays: Delays,
        more_lines: impl FnOnce(u128) -> u128,
        write: impl FnOnce(&Input, f64) -> Result<WrittenFolder>,
    ) -> Result<Answer> {
        let folder = self.output.display();
        delays.ensure_takes(&self.common.delays)?;
        self.ensure_new_folder()?;
        let mut input = self.common.input(caller)?;
        input.print_warnings(&self.common, caller)?;
        let ranks = input.schedule.ranks() as u128;
        let lines = input.schedule.steps() as u128 + more_lines(ranks);
        ensure_memory(
            "the files",
            lines * u128::from(WRITTEN_STEP_BYTES),
            LARGE_SCHEDULE,
        )?;
        let written = write(&input, input.unit.seconds())?;
        let _made = NewFolder::make(&self.output)?;
        for (name, content) in &written.files {
            caller.write_file(&self.output.join(name), content)?;
        }
        caller.note(format!(
            "{} files written to {folder}; run there:",
            written.files.len()
        ));
        caller.note(written.command);
        caller.notes(&written.notes);
        Ok(Answer::default())
    }

    /// Refuses a folder with files, among which these would get lost, unless that is wanted, and
    /// one without a parent, as commands that write one file do.
    fn ensure_new_folder(&self) -> Result<()> {
        let folder = self.output.display();
        let failed = || format!("cannot write {folder}");
        match std::fs::read_dir(&self.output) {
            Ok(mut entries) => match entries.next() {
                Some(_) if !self.force => {
                    bail!("{folder} is not empty: name a new or an empty folder, or give --force")
                }
                _ => Ok(()),
            },
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let parent = self.output.parent().filter(|p| !p.as_os_str().is_empty());
                let parent = parent.unwrap_or(Path::new("."));
                std::fs::read_dir(parent).map(|_| ()).with_context(failed)
            }
            Err(error) => Err(error).with_context(failed),
        }
    }
}

/// An upper bound of the number of lines of a schedule in MSCCL: one for each span of a step, and
/// for each 71 chunks, if chunks are as large as all spans allow.
fn msccl_lines(schedule: &Schedule) -> u128 {
    fn gcd(a: usize, b: usize) -> usize {
        if b == 0 { a } else { gcd(b, a % b) }
    }
    let steps = || schedule.programs().iter().flatten();
    let in_steps = steps().flat_map(|step| step.reads().iter().chain(step.writes()));
    let layout = schedule.layout().iter();
    let in_layout = layout.flat_map(|l| l.input.iter().chain(l.output.iter()));
    let ends = in_steps.chain(in_layout);
    let chunk = ends.fold(0, |chunk, span| gcd(gcd(chunk, span.offset), span.len));
    // A message has a part for each span at either end, but one less.
    let lines = steps().map(|step| {
        let spans = step.reads().len().max(step.writes().len());
        (2 * spans).saturating_sub(1) as u128 + (step.len() / 71 / chunk.max(1)) as u128
    });
    lines.sum()
}

impl To {
    /// Writes a format of thread blocks, under the name given or that of the algorithm.
    fn write_blocks(
        &self,
        caller: &Caller,
        bytes: impl FnOnce(&Schedule) -> u128,
        name: Option<&str>,
        write: impl FnOnce(&Schedule, &str) -> oneport::Result<Written>,
    ) -> Result<Answer> {
        self.write(caller, Delays::Refused, bytes, |input| {
            let info = &input.info;
            let own = || format!("oneport {} {}", info.collective, info.by());
            let name = name.map_or_else(own, str::to_string);
            Ok(write(&input.schedule, &name)?)
        })
    }

    /// Writes the text, for whose `bytes` there must be memory before.
    fn write(
        &self,
        caller: &Caller,
        delays: Delays,
        bytes: impl FnOnce(&Schedule) -> u128,
        write: impl FnOnce(&Input) -> Result<Written>,
    ) -> Result<Answer> {
        delays.ensure_takes(&self.common.delays)?;
        let to_file = output::file_of(self.output.as_deref());
        caller.writable(&[("-o", to_file)])?;
        let mut input = self.common.input(caller)?;
        input.print_warnings(&self.common, caller)?;
        let bytes = bytes(&input.schedule);
        ensure_memory("the text of the schedule", bytes, LARGE_SCHEDULE)?;
        let written = write(&input)?;
        caller.notes(&written.notes);
        caller.write_to(to_file, written.text)
    }
}
