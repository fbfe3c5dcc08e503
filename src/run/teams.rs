//! Threads for schedules of any number of ranks.

use super::element::Element;
use super::exec::{Outcome, Place, Run, sealed};
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

    /// The team of `ranks` ranks.
    ///
    /// # Errors
    /// As [`Team::with`].
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

impl sealed::Place for Teams {}

impl Place for Teams {
    fn run<T: Element>(&mut self, run: &Run<'_, T>) -> Result<Outcome<T>> {
        self.team(run.schedule.ranks())?.run(run)
    }

    fn max_ranks(&self) -> usize {
        match self.options.workers {
            Workers::Ranks => Team::max_ranks(),
            Workers::Cores => usize::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Schedule;

    #[test]
    fn schedules_of_any_number_of_ranks_run() {
        let mut teams = Teams::default();
        for ranks in [2, 3, 3, 1, 2] {
            let mut builder = Schedule::broadcast(ranks, 5);
            for rank in 1..ranks {
                builder.transfer(0, rank, 0..5);
            }
            let schedule = builder.build().unwrap();
            let run = Run::<u32>::new(&schedule).verified();
            assert!(run.on(&mut teams).unwrap().is_verified());
            assert_eq!(teams.team(ranks).unwrap().ranks(), ranks);
        }
        assert!(teams.max_ranks() >= 3);
    }
}
