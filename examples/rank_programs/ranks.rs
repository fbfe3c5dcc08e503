//! The ranks of a rank program: threads of this process, or the processes that a launcher started.

use oneport::mpi::{World, is_launched};
use oneport::run::{Element, Endpoint, PortModel, ScopeOptions, Team};
use oneport::{Error, ErrorKind, Result};

pub(crate) enum Ranks {
    Threads(Box<Team>),
    Processes(Box<World>),
}

/// What a program leaves on the ranks of this process: all of them if they are threads, one
/// otherwise.
pub(crate) struct Found<T, R> {
    /// Rank, buffer, and what the program returned.
    pub(crate) own: Vec<(usize, Vec<T>, R)>,
    /// When the last of all ranks finished.
    pub(crate) model_time: f64,
}

impl Ranks {
    /// The processes if this is one of several, otherwise a team of `threads` threads.
    pub(crate) fn new(threads: usize) -> Result<Ranks> {
        if is_launched() {
            World::join().map(Box::new).map(Ranks::Processes)
        } else {
            Team::new(threads).map(Box::new).map(Ranks::Threads)
        }
    }

    pub(crate) fn count(&self) -> usize {
        match self {
            Ranks::Threads(team) => team.ranks(),
            Ranks::Processes(world) => world.size(),
        }
    }

    /// Whether this process is the one that prints.
    pub(crate) fn prints(&self) -> bool {
        match self {
            Ranks::Threads(_) => true,
            Ranks::Processes(world) => world.rank() == 0,
        }
    }

    /// Runs `program` on every rank, whose buffer is `buffer(rank)`.
    pub(crate) fn run<T: Element, P: PortModel, R: Send>(
        &mut self,
        options: &ScopeOptions<T>,
        buffer: impl Fn(usize) -> Vec<T>,
        program: impl Fn(&mut Endpoint<'_, T, P>) -> Result<R> + Sync,
    ) -> Result<Found<T, R>> {
        let (mut buffers, first, outcome);
        match self {
            Ranks::Threads(team) => {
                buffers = (0..team.ranks()).map(buffer).collect::<Vec<_>>();
                first = 0;
                outcome = team.scope(&mut buffers, options, program)?;
            }
            Ranks::Processes(world) => {
                first = world.rank();
                buffers = vec![buffer(first)];
                outcome = world.scope(&mut buffers[0], options, program)?;
            }
        }
        let model_time = outcome.model_time();
        let own = buffers.into_iter().zip(outcome.results).enumerate();
        Ok(Found {
            own: own.map(|(i, (b, result))| (first + i, b, result)).collect(),
            model_time,
        })
    }

    /// Whether `right` holds on the ranks of all processes.
    pub(crate) fn all(&mut self, right: bool) -> Result<bool> {
        let error = || Error::from(ErrorKind::Wrong("wrong data".into()));
        match self {
            Ranks::Threads(_) => Ok(right),
            Ranks::Processes(world) => world.agree(right.then_some(true).ok_or_else(error)),
        }
    }
}
