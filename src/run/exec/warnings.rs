//! What a reader of a run's wall-clock times should know.

use super::options::Clock;
use crate::run::placement::Workers;
use crate::run::team::Team;
use crate::run::tuning::WAKE_NS;
use crate::schedule::Schedule;

impl Team {
    /// What is known before a run of `schedule`. A paced run takes `paced_time` nanoseconds.
    pub(super) fn warnings(
        &self,
        schedule: &Schedule,
        clock: Clock,
        paced_time: Option<f64>,
    ) -> Vec<String> {
        let mut warnings = Vec::new();
        warnings.extend(paced_time.and_then(|time| self.pace_warning(schedule, time)));
        if clock == Clock::Native && self.oversubscribed() && self.workers == Workers::Ranks {
            warnings.push(format!(
                "{} ranks on {}: wall-clock includes waiting for a core; try the paced clock",
                self.ranks(),
                cores_in_words(self.cores)
            ));
        }
        if self.unpaid_cores > 0 {
            warnings.push(format!(
                "the CPU quota of this process grants {} of the {} cores that ranks are pinned to: the system stops them when it is spent",
                self.cores,
                self.cores + self.unpaid_cores
            ));
        }
        if !self.pinned {
            warnings
                .push("the system refused to pin some ranks: they may move between cores".into());
        }
        warnings
    }

    /// A warning if the cores cannot wake the ranks as often as the schedule needs within its model
    /// time.
    fn pace_warning(&self, schedule: &Schedule, model_ns: f64) -> Option<String> {
        let halves = schedule
            .programs()
            .iter()
            .flatten()
            .filter(|s| s.peer().is_some())
            .count();
        let floor = halves as f64 * WAKE_NS / self.cores.min(self.ranks()) as f64;
        (floor > model_ns).then(|| {
            format!(
                "{} ranks on {} cannot keep this pace: about {:.2} ms of switching for {:.2} ms of model time; use a larger alpha, fewer ranks or fewer segments",
                self.ranks(),
                cores_in_words(self.cores),
                floor * 1e-6,
                model_ns * 1e-6
            )
        })
    }
}

/// The warning that others had this part of the cores' time.
pub(crate) fn foreign_warning(percent: u64) -> String {
    format!(
        "other processes, or the host of this machine, had {percent}% of the time of the ranks' cores: wall-clock includes waiting for them"
    )
}

/// A number of cores.
pub(crate) fn cores_in_words(cores: usize) -> String {
    format!("{cores} core{}", if cores == 1 { "" } else { "s" })
}
