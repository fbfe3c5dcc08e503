//! Refuses runs that are too large or too long before they start.

use oneport::internal::budget::memory;
use oneport::internal::budget::quick::MAX_ESTIMATED_RANKS;
use oneport::run::{CoreOrder, Team, TeamOptions, Topology, Workers};
use oneport::schedule::total_len;
use oneport_measure::Profile;
use oneport_measure::estimate::CoreModel;

use super::{CoreChoice, RunArgs};
use crate::prelude::*;
use crate::site::ensure_for_processes;

/// Paced runs that take at least this long, in nanoseconds, say so before.
const SILENT_PACED_NS: f64 = 1e9;
/// Longest duration of a paced run.
const MAX_PACED_HOURS: f64 = 24.0;

impl RunArgs {
    /// Returns the costs that a native run is planned for, unless options give costs.
    pub(super) fn built_in(&self, site: &Site) -> Result<Option<Profile>> {
        if self.clock == Clock::Paced || self.common.gives_costs() {
            return Ok(None);
        }
        let ranks = self.common.ranks()?.unwrap_or_default();
        let mut profile = Profile::built_in(site);
        // Closed forms of one line make a choice in the model quick; pieces take simulations.
        profile.pieces = profile.pieces.filter(|_| ranks <= MAX_ESTIMATED_RANKS);
        Ok(Some(profile))
    }

    /// Returns the core model of a native run on this machine, if a profile has one.
    pub(super) fn core_model(
        &self,
        machine: &MachineArgs,
        ranks: usize,
    ) -> Result<Option<CoreModel>> {
        if self.clock == Clock::Paced || self.rendezvous {
            return Ok(None);
        }
        let cores = Team::cores_for(ranks, &self.team())?;
        machine.core_model(self.workers, ranks, cores)
    }

    /// Returns the options of the team.
    pub(super) fn team(&self) -> TeamOptions {
        let cores = match self.placement {
            // Where the ranks of a schedule go among the same cores is known later.
            None | Some(CoreChoice::Compact | CoreChoice::Schedule) => {
                self.cores.iter().cloned().flatten().collect()
            }
            Some(CoreChoice::Spread) => Topology::here().in_order(CoreOrder::Spread),
        };
        TeamOptions {
            cores: (!cores.is_empty()).then_some(cores),
            workers: self.workers,
            ..TeamOptions::default()
        }
    }

    /// Rejects more threads than the system can hold: before a schedule for them is planned, too.
    pub(super) fn ensure_threads(&self, ranks: usize) -> Result<()> {
        let max_ranks = Team::max_ranks();
        if ranks > max_ranks && self.workers == Workers::Ranks {
            bail!(
                "{ranks} ranks are more threads than the {max_ranks} that this system can hold: --workers cores and simulate have no such limit"
            );
        }
        Ok(())
    }

    /// Rejects runs that do not fit into memory, and invalid combinations of options.
    pub(super) fn ensure_fits(&self, input: &Input) -> Result<()> {
        if self.library {
            bail!("--library needs an MPI library: run over MPI (mpirun, --engine mpi)");
        }
        self.ensure_threads(input.schedule.ranks())?;
        if self.workers == Workers::Cores && self.waits(input) {
            let option = match self.clock {
                Clock::Paced => "--clock paced",
                _ => "--arrivals",
            };
            bail!(
                "{option} needs a thread for each rank: it cannot be combined with --workers cores"
            );
        }
        if self.workers == Workers::Cores && self.placement == Some(CoreChoice::Schedule) {
            bail!(
                "--placement schedule places each rank: with --workers cores a core has neighbouring ranks"
            );
        }
        let all = self.repetitions.saturating_add(self.warmup);
        let threads = match self.workers {
            Workers::Cores => Team::cores_for(input.schedule.ranks(), &self.team())?,
            _ => input.schedule.ranks(),
        };
        if all.saturating_mul(threads) > 100_000_000 {
            bail!("{all} repetitions on {threads} threads are too many to be recorded");
        }
        // Start and end of every repetition.
        let records = (all as u64).saturating_mul(16 * threads as u64);
        let bytes = memory_of_schedule(&input.schedule).saturating_add(records);
        let advice = "take fewer ranks or a smaller vector";
        ensure_memory("the run", bytes.into(), advice)?;
        Ok(())
    }

    /// Refuses options that ranks which are processes do not have.
    pub(super) fn ensure_for_processes(&self) -> Result<()> {
        ensure_for_processes(&[
            ("--clock paced", self.clock == Clock::Paced),
            ("--workers cores", self.workers == Workers::Cores),
            ("--cores", !self.cores.is_empty()),
            ("--placement", self.placement.is_some()),
            ("--trace", self.trace.is_some()),
        ])
    }

    /// Whether threads wait for times of the model.
    pub(super) fn waits(&self, input: &Input) -> bool {
        self.clock == Clock::Paced || input.cost.last_arrival() > 0.0
    }

    /// Rejects a run whose threads wait for longer than [`MAX_PACED_HOURS`]; each repetition takes
    /// `time` nanoseconds at least.
    pub(super) fn ensure_ends(&self, time: f64, unit: Unit, caller: &Caller) -> Result<()> {
        let repetitions = (self.repetitions + self.warmup) as f64;
        let all = time * repetitions;
        if all > MAX_PACED_HOURS * 3600e9 {
            bail!(
                "{repetitions} repetitions of {} each take more than {MAX_PACED_HOURS} hours: lower the costs or the arrivals, or take the native clock",
                unit.show(time)
            );
        }
        if all >= SILENT_PACED_NS {
            caller.note(format!(
                "{} of {} each take about {}",
                counted(self.repetitions + self.warmup, "repetition"),
                unit.show(time),
                Unit::Nanoseconds.show(all)
            ));
        }
        Ok(())
    }
}

/// Estimates the bytes that a run of a schedule needs in addition to it and its threads' stacks.
pub(crate) fn memory_of_schedule(schedule: &Schedule) -> u64 {
    let elements = schedule.layout().iter().fold(0u64, |sum, l| {
        // The buffer, the input, the output and the expected output.
        let outputs = (total_len(&l.output) as u64).saturating_mul(2);
        let own = (l.len as u64).saturating_add(total_len(&l.input) as u64);
        sum.saturating_add(own.saturating_add(outputs))
    });
    let data = elements.saturating_mul(schedule.element_bytes());
    let steps = (schedule.steps() as u64).saturating_mul(memory::TIMED_STEP_BYTES);
    let ranks = (schedule.ranks() as u64).saturating_mul(memory::RUN_RANK_BYTES);
    data.saturating_add(steps).saturating_add(ranks)
}
