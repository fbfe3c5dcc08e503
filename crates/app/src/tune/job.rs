//! A validated tuning job: the sweep and its settings.

use oneport::internal::launch;
use oneport::internal::numbers::index;
use oneport::run::{Op, TeamOptions, Teams};
use oneport_measure::tune::{Live, Sweep, Trial, TuningResult};
use oneport_measure::{Machine, load_warning};

use super::TuneArgs;
use crate::args::{SameBits, Vector, default_type, operator};
use crate::forms::{AlgorithmNames, SegmentCount};
use crate::prelude::*;
use crate::site::{ensure_for_processes, summary};
use crate::task::{algorithms, footprint};

pub(super) struct TuneJob<'a> {
    pub(super) args: &'a TuneArgs,
    pub(super) sweep: Sweep,
    pub(super) dtype: ElementType,
    pub(super) op: Op,
    pub(super) skipped: Vec<Skipped>,
    pub(super) load: Option<String>,
    pub(super) place: MeasuredAt,
    pub(super) date: String,
    pub(super) caller: Caller,
    pub(super) processes: Option<Processes>,
}

/// Where times are measured.
pub(super) struct MeasuredAt {
    pub(super) machine: String,
    /// The library and its processes, if ranks are processes, in one line.
    pub(super) processes: Option<String>,
    /// Whether that is not here: all rows are from a file.
    pub(super) is_elsewhere: bool,
}

/// How ranks, threads or processes, share cores: processes those of this host.
pub(super) struct CoreUse {
    pub(super) cores: usize,
    pub(super) pinned: bool,
    pub(super) oversubscribed: bool,
}

impl CoreUse {
    /// Starts the threads, if ranks are threads.
    pub(super) fn of(job: &TuneJob, site: &mut Site) -> Result<CoreUse> {
        if job.place.is_elsewhere {
            return Ok(CoreUse {
                cores: 0,
                pinned: false,
                oversubscribed: false,
            });
        }
        if let Some(world) = &site.world {
            return Ok(CoreUse {
                cores: world.cores(),
                pinned: world.bound(),
                oversubscribed: world.oversubscribed(),
            });
        }
        site.teams = Teams::new(TeamOptions {
            cores: (!job.args.cores.is_empty())
                .then(|| job.args.cores.iter().cloned().flatten().collect()),
            ..TeamOptions::default()
        });
        let team = site.teams.team(job.sweep.request.ranks())?;
        Ok(CoreUse {
            cores: team.cores(),
            pinned: team.pinned(),
            oversubscribed: team.oversubscribed(),
        })
    }
}

impl<'a> TuneJob<'a> {
    pub(super) fn new(args: &'a TuneArgs, site: &Site) -> Result<TuneJob<'a>> {
        if site.world.is_some() {
            ensure_for_processes(&[
                ("--clock paced", args.clock == Clock::Paced),
                ("--cores", !args.cores.is_empty()),
            ])?;
        }
        ensure!(
            args.collective.has_data(),
            "{} has no data whose size could vary: compare and run time its algorithms",
            args.collective.name()
        );
        let op = args.op.unwrap_or(Op::SUM);
        let dtype = args.dtype.unwrap_or(default_type(op));
        ensure!(
            args.factor >= 2,
            "--factor is {}: a range goes on by a factor of at least 2",
            args.factor
        );
        let bytes = args.bytes.values(args.factor as u64);
        let max_bytes = bytes.iter().copied().max().unwrap_or(0);
        let mut common = common(args, dtype, max_bytes);
        for &bytes in &bytes {
            common.vector.elements("a vector", bytes)?;
        }
        if let Some(world) = &site.world {
            common.take_ranks(world.size());
        }
        let task = PlanTask::new(&common, args.collective, &site.caller)?;
        site.ensure_processes(task.request.ranks())?;
        site.note_spare(task.request.ranks());
        let (algorithms, skipped) = select_algorithms(args, &task)?;
        ensure_fits_memory(&task, max_bytes)?;
        let request = task.request.segments(Segments::whole(0));
        Ok(TuneJob {
            args,
            sweep: Sweep {
                request,
                algorithms,
                bytes,
                budget: args.budget,
                tolerance: args.tolerance,
                powers: args.segments.is_some(),
            },
            dtype,
            op,
            skipped,
            load: load_warning(site.world.as_ref().map(|world| world.cores())),
            place: MeasuredAt {
                machine: machine(site),
                processes: site.processes().map(|processes| processes.to_string()),
                is_elsewhere: false,
            },
            date: oneport_measure::now(),
            caller: site.caller.clone(),
            processes: site.processes(),
        })
    }

    pub(super) fn live<'s>(&self, site: &'s mut Site) -> Result<Live<'s>> {
        let (collective, clock) = (self.args.collective, self.args.clock);
        let mut live = oneport::with_element_type!(self.dtype, T => {
            Live::new(site, operator::<T>(collective, self.op)?, clock)
        });
        live.keep_inputs(self.args.inputs.inputs.kept());
        let exports = self.args.export.iter();
        let variables = exports.flat_map(|(library, _)| library.device_variables(collective));
        live.rule_variables(variables.collect());
        Ok(live)
    }

    pub(super) fn warnings(&self, threads: &CoreUse, tuning: &TuningResult) -> Vec<String> {
        let mut warnings: Vec<String> = self.load.iter().cloned().collect();
        if let Some(percent) = tuning.percent_by_others {
            warnings.push(format!(
                "other processes, or the host of this machine, had up to {percent}% of the time of the ranks' cores: wall-clock includes waiting for them"
            ));
        }
        let ranks = self.sweep.request.ranks();
        if threads.oversubscribed && self.args.clock == Clock::Native {
            warnings.push(match self.processes {
                None => format!(
                    "{ranks} ranks on {}: wall-clock includes waiting for a core; try --clock paced",
                    counted(threads.cores, "core")
                ),
                Some(_) => format!(
                    "more processes on a host than its {}: wall-clock includes waiting for a core",
                    counted(threads.cores, "core")
                ),
            });
        }
        for row in &tuning.library {
            if let Some(error) = &row.error {
                let (function, bytes) = (&row.trial.algorithm, row.trial.bytes);
                warnings.push(format!(
                    "the result of {function} of {bytes} bytes is wrong: {error}"
                ));
            }
        }
        if tuning.library.is_empty() && self.place.processes.is_some() {
            warnings.push("the library has no function for this: it is not measured".into());
        }
        if !threads.pinned && self.place.processes.is_none() && !self.place.is_elsewhere {
            warnings
                .push("the system refused to pin some ranks: they may move between cores".into());
        }
        let alone = ranks == 1 || self.place.is_elsewhere;
        if self.processes.is_some() && !threads.pinned && !threads.oversubscribed && !alone {
            warnings.push(launch::unbound());
        }
        if self.args.clock == Clock::Native && !self.args.machine.is_given() {
            warnings.push(
                "model times are for the default costs, not for this machine: give its costs (oneport calibrate measures them)"
                    .into(),
            );
        }
        let open = tuning.winners().filter(|row| !row.settled);
        if let Some(sizes) = sizes_of(open) {
            let more = if tuning.budget_spent && !self.place.is_elsewhere {
                ": the budget was spent, a larger --budget goes on"
            } else {
                ""
            };
            warnings.push(format!("the winner is not settled at {sizes}{more}"));
        }
        if let Some(sizes) = sizes_of(tuning.disturbed()) {
            let rows = counted(tuning.disturbed().count(), "row");
            warnings.push(format!(
                "something may have disturbed {rows}, at {sizes}: times of other sizes contradict them; they are marked as disturbed"
            ));
        }
        warnings
    }

    pub(super) fn doubts(&self, tuning: &TuningResult) -> Option<String> {
        let open = sizes_of(tuning.winners().filter(|row| !row.settled));
        let disturbed = sizes_of(tuning.disturbed());
        let busy = self.load.is_some() || tuning.percent_by_others.is_some();
        let doubts = [
            open.map(|sizes| format!("not settled at {sizes}")),
            disturbed.map(|sizes| format!("disturbed at {sizes}")),
            busy.then(|| "the machine was busy".to_string()),
        ];
        let doubts: Vec<String> = doubts.into_iter().flatten().collect();
        (!doubts.is_empty()).then(|| doubts.join(", "))
    }

    pub(super) fn summary(&self, threads: &CoreUse) -> Vec<(&'static str, String)> {
        let request = &self.sweep.request;
        let ports = match request.get_ports().k() {
            1 => format!("{} ports", request.get_ports().name()),
            k => format!("{k} {} ports each", request.get_ports().name()),
        };
        let op = if self.args.collective.reduces() {
            format!(", {}", self.op.name())
        } else {
            String::new()
        };
        let (ranks, cores) = (request.ranks(), threads.cores);
        let pinned = if threads.pinned {
            "pinned"
        } else {
            "not pinned"
        };
        let mut lines = vec![("machine", self.place.machine.clone())];
        lines.extend(self.processes.iter().flat_map(summary));
        lines.push((
            "ranks",
            match &self.processes {
                None if self.place.is_elsewhere => {
                    let of = self.place.processes.iter();
                    let of: String = of.map(|place| format!(" of {place}")).collect();
                    format!("{ranks}{of}, all rows from a file; {ports}")
                }
                None => format!("{ranks} on {}, {pinned}; {ports}", counted(cores, "core")),
                Some(p) => format!("{ranks} of {} processes; {ports}", p.processes),
            },
        ));
        lines.extend([
            ("elements", format!("{}{op}", self.dtype.name())),
            ("clock", clock_name(self.args.clock).to_string()),
            ("inputs", self.args.inputs.inputs.name().to_string()),
            ("costs", show_cost(request.get_cost(), Unit::Nanoseconds)),
        ]);
        lines
    }
}

/// The sizes of rows, each once, unless there are none.
fn sizes_of<'r>(rows: impl Iterator<Item = &'r Trial>) -> Option<String> {
    let sizes: BTreeSet<u64> = rows.map(|row| row.bytes).collect();
    let sizes: Vec<String> = sizes.into_iter().map(show_bytes).collect();
    (!sizes.is_empty()).then(|| sizes.join(", "))
}

/// Returns the requested algorithms. An explicitly named algorithm must be usable; `all` skips
/// unusable ones.
fn select_algorithms(args: &TuneArgs, task: &PlanTask) -> Result<(Vec<Algorithm>, Vec<Skipped>)> {
    let (mut found, mut skipped): (Vec<Algorithm>, Vec<Skipped>) = Default::default();
    for algorithm in algorithms(args.collective, &args.algorithms, &task.request)? {
        match task.variant_to_plan(&algorithm) {
            Ok(_) => found.push(algorithm),
            Err(refusal) if args.algorithms.is_open() => skipped.push(refusal.into()),
            Err(refusal) => return Err(Error::from(refusal).into()),
        }
    }
    if found.is_empty() {
        return Err(output::none_applies(&skipped));
    }
    Ok((found, skipped))
}

/// The options that all commands have: those of this one, with vectors of `max_bytes`.
fn common(args: &TuneArgs, dtype: ElementType, max_bytes: u64) -> Common {
    Common {
        collective: Some(args.collective),
        ranks: args.ranks.clone(),
        root: args.root,
        algorithm: AlgorithmNames::All,
        json: args.json,
        vector: Vector {
            bytes: Some(Ranges::single(max_bytes)),
            segments: Some(SegmentCount::Count(1)),
            dtype: Some(dtype),
            op: args.op,
            ordered: args.ordered,
            // Measured times say which tree it is.
            same_bits: args.same_bits.map(|_| SameBits::Ranks),
            ..Vector::default()
        },
        machine: args.machine.clone(),
        ..Common::default()
    }
}

fn ensure_fits_memory(task: &PlanTask, bytes: u64) -> Result<()> {
    /// Buffer, input, output and expected output of each rank.
    const COPIES: u128 = 4;
    let (kind, ranks) = (task.algorithms[0].collective, task.request.ranks());
    let need = COPIES * footprint(kind, ranks, index(bytes), None);
    ensure_memory("measuring", need, "take fewer ranks or smaller vectors")
}

/// Processor and cores, such as `Some CPU @ 2 GHz, 2 cores`: those that this process may use, or
/// all processes of its host.
fn machine(site: &Site) -> String {
    let Machine { cpu, cores, .. } = Machine::this();
    let cores = site.world.as_ref().map_or(cores, |world| world.cores());
    format!("{cpu}, {}", counted(cores, "core"))
}
