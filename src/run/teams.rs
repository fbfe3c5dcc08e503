//! Threads for schedules of any number of ranks.

use super::exec::{Place, sealed};
use super::placement::Workers;
use super::team::{Team, TeamOptions};
use crate::error::{Error, Result};

/// Threads for schedules of any number of ranks: a [`Team`], made anew when a schedule has another
/// number of ranks than the one before.
#[derive(Debug, Default)]
pub struct Teams {
    options: TeamOptions,
    team: Option<Team>,
}

impl Teams {
    /// Teams with these options. Threads start with the first run.
    pub fn new(options: TeamOptions) -> Teams {
        Teams {
            options,
            team: None,
        }
    }

    /// The team of `ranks` ranks, as [`Team::with`] makes it.
    pub fn team(&mut self, ranks: usize) -> Result<&mut Team> {
        if self.team.as_ref().is_none_or(|team| team.ranks() != ranks) {
            // The threads of the last team end before others start.
            self.team = None;
            self.team = Some(Team::with(ranks, &self.options)?);
        }
        let team = self.team.as_mut();
        team.ok_or_else(|| Error::system("a team that does not exist"))
    }
}

impl sealed::Place for Teams {
    fn run(&mut self, run: &sealed::AnyRun<'_>) -> Result<sealed::RunReport> {
        self.team(run.0.schedule().ranks())?.run(run)
    }
}

impl Place for Teams {
    fn max_ranks(&self) -> usize {
        match self.options.workers {
            Workers::Ranks => Team::max_ranks(),
            Workers::Cores => usize::MAX,
        }
    }
}
