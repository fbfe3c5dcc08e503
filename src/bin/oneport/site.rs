//! Where ranks run: as threads of this process, or as processes that a launcher of MPI started.

use anyhow::Result;
use clap::ValueEnum;
use oneport::mpi::{World, launch};
use oneport::{Error, ErrorKind};
use serde::Serialize;

use crate::output;

/// `--engine`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Engine {
    /// Threads of this process.
    Threads,
    /// The processes that `mpirun` or `srun` started.
    Mpi,
}

impl Engine {
    /// The given engine, or the one that the launch of this process implies.
    pub(crate) fn given_or_implied(given: Option<Engine>) -> Engine {
        given.unwrap_or(if launch::is_launched() {
            Engine::Mpi
        } else {
            Engine::Threads
        })
    }

    /// The name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Engine::Threads => "threads",
            Engine::Mpi => "mpi",
        }
    }
}

/// Whether this process has nothing to say: another one of the launch speaks for all.
pub(crate) fn is_silent() -> bool {
    launch::rank().is_some_and(|rank| rank > 0)
}

/// Where ranks run. What a method says of all processes holds for this one alone if ranks are
/// threads.
#[derive(Debug, Default)]
pub(crate) struct Site {
    pub(crate) world: Option<World>,
}

/// The processes of a run, for JSON output.
#[derive(Debug, Serialize)]
pub(crate) struct Processes {
    pub(crate) library: String,
    pub(crate) version: String,
    /// Its binary interface.
    pub(crate) interface: String,
    pub(crate) processes: usize,
    pub(crate) hosts: Vec<Host>,
    /// How repetitions are timed.
    pub(crate) timing: &'static str,
}

/// A host and the number of its processes.
#[derive(Debug, Serialize)]
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) processes: usize,
}

impl Site {
    /// Joins the other processes, if the engine is MPI. All but the first process are silent then.
    pub(crate) fn join(&mut self, engine: Engine) -> Result<()> {
        self.world = match engine {
            Engine::Threads => None,
            Engine::Mpi => Some(World::join().inspect_err(|_| {
                // Processes of one host lack the same library: one of them says so.
                if launch::local_rank().is_some_and(|rank| rank > 0) {
                    output::silence();
                }
            })?),
        };
        if !self.speaks() {
            output::silence();
        }
        Ok(())
    }

    /// The result, if all processes have succeeded; otherwise the error of the first that has not.
    pub(crate) fn agree<R>(&mut self, result: Result<R>) -> Result<R> {
        let Some(world) = &mut self.world else {
            return result;
        };
        let result = result.map_err(|error| {
            let text = format!("{error:#}");
            Error::from(match output::exit_code(&error) {
                2 => ErrorKind::Usage(text),
                _ => ErrorKind::Wrong(text),
            })
        });
        Ok(world.agree(result)?)
    }

    /// Whether this process speaks for all.
    pub(crate) fn speaks(&self) -> bool {
        self.world.as_ref().is_none_or(|world| world.rank() == 0)
    }

    /// The processes, if ranks are processes.
    pub(crate) fn processes(&self) -> Option<Processes> {
        let world = self.world.as_ref()?;
        let host = |(name, processes): &(String, usize)| Host {
            name: name.clone(),
            processes: *processes,
        };
        Some(Processes {
            library: world.library().to_owned(),
            version: world.version(),
            interface: world.abi().to_string(),
            processes: world.size(),
            hosts: world.hosts().iter().map(host).collect(),
            timing: match world.hosts().len() {
                1 => "from the first start to the last end, by the clock of the host",
                _ => "the slowest process's own time, after a barrier",
            },
        })
    }
}

impl Processes {
    /// Lines of a summary.
    pub(crate) fn summary(&self) -> [(&'static str, String); 2] {
        let hosts = match self.hosts.as_slice() {
            [one] => one.name.clone(),
            several => {
                let names = several
                    .iter()
                    .map(|host| format!("{} on {}", host.processes, host.name));
                format!(
                    "{} hosts: {}",
                    several.len(),
                    names.collect::<Vec<_>>().join(", ")
                )
            }
        };
        [
            (
                "library",
                format!(
                    "{} ({}, {} interface)",
                    self.version, self.library, self.interface
                ),
            ),
            ("hosts", hosts),
        ]
    }
}
