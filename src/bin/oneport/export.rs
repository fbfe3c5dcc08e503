//! `oneport export`: writes a schedule in the format of another tool.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Subcommand, ValueEnum};
use oneport::formats::{Written, dot, goal, msccl, simgrid};

use crate::args::Common;
use crate::input::{Input, print_warnings};
use crate::output;
use crate::task::ensure_memory;
use crate::units::TimeUnit;

/// Write a schedule in the format of another tool.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  oneport export goal broadcast -p 16 --bytes 64KiB -a binomial -o b.goal
  oneport plan reduce -p 4 -a chain --segments 4 -o mine.json
  oneport export goal --schedule mine.json --form bytes -o mine.goal
  oneport export msccl allgather -p 8 -a ring -o ring.xml
  oneport export simgrid alltoall -p 16 -a pairwise --network torus -o torus
  oneport export dot broadcast -p 8 -a binomial --rounds -o b.dot

What a format cannot express is refused, with the reason. `oneport import` reads files of other tools.")]
pub(crate) struct Args {
    #[command(subcommand)]
    format: Format,
}

/// The format.
#[derive(Debug, Subcommand)]
enum Format {
    Goal(Goal),
    Msccl(Msccl),
    Simgrid(Simgrid),
    Dot(Dot),
}

/// GOAL, for LogGOPSim and the simulators that take its files.
///
/// The uniform form makes LogGOPSim compute one-port times with the flags in its header:
/// bidirectional ports, messages of equal size. The byte form has the sizes and leaves the costs to
/// the simulator.
#[derive(Debug, clap::Args)]
struct Goal {
    #[command(flatten)]
    to: To,

    /// Sizes of messages
    #[arg(long, value_enum, value_name = "FORM", default_value = "uniform")]
    form: Form,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Form {
    /// One byte each; times are those of the one-port model.
    Uniform,
    /// The messages' bytes, for studies with other costs.
    Bytes,
}

/// MSCCL XML, for MSCCL's executor, verifier and tools, and for ASTRA-sim.
///
/// Chunks of equal size, out of place. Reductions are for operators that commute.
#[derive(Debug, clap::Args)]
struct Msccl {
    #[command(flatten)]
    to: To,

    /// Name of the algorithm in the file [default: those of collective and algorithm]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

/// SimGrid: traces of all ranks, and a platform.
///
/// On the crossbar SimGrid computes the model's time; on the other networks messages share links,
/// which the model leaves out. Costs without a unit are microseconds.
#[derive(Debug, clap::Args)]
struct Simgrid {
    #[command(flatten)]
    common: Common,

    /// How the hosts are connected
    #[arg(long, value_enum, value_name = "NETWORK", default_value = "crossbar")]
    network: Network,

    /// Write the files to this folder, which is created
    #[arg(short, long, value_name = "FOLDER", help_heading = "Output")]
    output: PathBuf,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Network {
    /// A link from each host to each other one.
    Crossbar,
    /// Two levels of switches; half as many links lead up from a switch as hosts down.
    FatTree,
    /// Three dimensions.
    Torus,
    /// Groups of routers with two hosts each.
    Dragonfly,
}

/// DOT, for Graphviz: who sends to whom.
#[derive(Debug, clap::Args)]
struct Dot {
    #[command(flatten)]
    to: To,

    /// A row a round, instead of one edge for each pair of ranks
    #[arg(long)]
    rounds: bool,
}

/// The schedule, and where it is written.
#[derive(Debug, clap::Args)]
struct To {
    #[command(flatten)]
    common: Common,

    /// Write to this file, all at once, instead of standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
}

/// Exports and prints.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<ExitCode> {
    match &args.format {
        Format::Goal(args) => args.to.write(out, |input| {
            Ok(goal::write(
                &input.schedule,
                &goal::Options {
                    form: match args.form {
                        Form::Uniform => goal::Form::Uniform,
                        Form::Bytes => goal::Form::Bytes,
                    },
                    cost: input.cost.clone(),
                    element_bytes: input.element_bytes,
                },
            )?)
        }),
        Format::Msccl(args) => args.to.write(out, |input| {
            let info = &input.info;
            let by = info
                .algorithm
                .or(info.schedule.as_deref())
                .unwrap_or("schedule");
            let name = || format!("oneport {} {by}", info.collective);
            let name = args.name.clone().unwrap_or_else(name);
            Ok(msccl::write(&input.schedule, &name)?)
        }),
        Format::Simgrid(args) => args.write(),
        Format::Dot(args) => args.to.write(out, |input| {
            let text = match args.rounds {
                true => dot::rounds(&input.schedule)?,
                false => dot::tree(&input.schedule),
            };
            let notes = Vec::new();
            Ok(Written { text, notes })
        }),
    }
}

impl Simgrid {
    fn write(&self) -> Result<ExitCode> {
        let input = self.common.input()?;
        print_warnings(&self.common, &input.schedule);
        let pairs = match self.network {
            Network::Crossbar => input.schedule.ranks() as u128,
            _ => 1,
        };
        ensure_memory(
            || "the files".into(),
            (input.schedule.steps() as u128 + pairs * pairs) * BYTES_PER_STEP,
            "take fewer ranks or larger segments",
        )?;
        let options = simgrid::Options {
            network: match self.network {
                Network::Crossbar => simgrid::Network::Crossbar,
                Network::FatTree => simgrid::Network::FatTree,
                Network::Torus => simgrid::Network::Torus,
                Network::Dragonfly => simgrid::Network::Dragonfly,
            },
            cost: input.cost.clone(),
            element_bytes: input.element_bytes,
            second: match input.unit {
                TimeUnit::Nanoseconds => 1e-9,
                TimeUnit::Plain => 1e-6,
            },
        };
        let files = simgrid::write(&input.schedule, &options)?;
        let folder = self.output.display();
        std::fs::create_dir_all(&self.output).with_context(|| format!("cannot create {folder}"))?;
        for (name, text) in &files {
            output::write_file(&self.output.join(name), text.as_bytes())?;
        }
        output::note(&format!(
            "{} files written to {folder}; run there:",
            files.len()
        ));
        output::note(&format!(
            "{} -np {}",
            simgrid::COMMAND,
            input.schedule.ranks()
        ));
        Ok(ExitCode::SUCCESS)
    }
}

/// Estimate of the memory for the text of a step.
const BYTES_PER_STEP: u128 = 300;

impl To {
    fn write(
        &self,
        out: &mut dyn Write,
        write: impl FnOnce(&Input) -> Result<Written>,
    ) -> Result<ExitCode> {
        let to_file = output::file_of(self.output.as_deref());
        output::writable(&[("-o", to_file)])?;
        let input = self.common.input()?;
        print_warnings(&self.common, &input.schedule);
        ensure_memory(
            || "the text of the schedule".into(),
            input.schedule.steps() as u128 * BYTES_PER_STEP,
            "take fewer ranks or larger segments",
        )?;
        let written = write(&input)?;
        for note in &written.notes {
            output::note(note);
        }
        output::write_to(out, to_file, &written.text)?;
        Ok(ExitCode::SUCCESS)
    }
}
