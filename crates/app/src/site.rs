//! Where ranks run: as threads of this process, or as processes that a launcher of MPI started.

use std::time::Duration;

use anyhow::{Result, bail};
use oneport::internal::launch;
use oneport::internal::sealed;
use oneport::mpi::World;
use oneport::run::{Place, Processes, Teams};
use oneport::{Error, ErrorKind};
use signal_hook::consts::SIGTERM;

use crate::answer::{FoundWrong, exit_code};
use crate::ask::choices;
use crate::caller::Caller;
use crate::files;

choices! {
    /// `--engine`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Engine {
        /// Threads of this process.
        Threads = "threads",
        /// The processes that `mpirun` or `srun` started.
        Mpi = "mpi",
    }
}

impl Engine {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Engine::Threads => "threads",
            Engine::Mpi => "mpi",
        }
    }
}

/// Ends a process that cannot join the others of its launch. They wait for it in the library, where
/// only a signal that ends this one reaches them: launchers may take an exit code for a normal end.
pub fn end_all(caller: &Caller, error: &str) -> ! {
    /// Mostly all processes of a host fail for the same reason: the first one ends the others
    /// before they say it again.
    const PRECEDENCE: Duration = Duration::from_secs(1);
    /// A launcher that ends all may drop output that it has not passed on yet.
    const PASSING_ON: Duration = Duration::from_millis(200);
    if launch::local_rank().is_some_and(|rank| rank > 0) {
        std::thread::sleep(PRECEDENCE);
    }
    let rank = launch::rank().unwrap_or_default();
    caller.say("error", &format!("{error} (process {rank})"));
    std::thread::sleep(PASSING_ON);
    let _ = signal_hook::low_level::raise(SIGTERM);
    std::process::exit(2);
}

/// Where ranks run. What a method says of all processes holds for this one alone if ranks are
/// threads.
#[derive(Debug)]
pub struct Site {
    pub(crate) caller: Caller,
    pub(crate) world: Option<World>,
    pub(crate) teams: Teams,
}

impl sealed::Place for Site {
    fn run(&mut self, run: &sealed::AnyRun<'_>) -> oneport::Result<sealed::RunReport> {
        match &mut self.world {
            Some(world) => world.run(run),
            None => self.teams.run(run),
        }
    }

    fn swap_library_variable(&mut self, name: &str, value: i32) -> oneport::Result<i32> {
        match &mut self.world {
            Some(world) => world.swap_library_variable(name, value),
            None => self.teams.swap_library_variable(name, value),
        }
    }
}

impl Place for Site {
    fn max_ranks(&self) -> usize {
        match &self.world {
            Some(world) => world.max_ranks(),
            None => self.teams.max_ranks(),
        }
    }

    fn processes(&self) -> Option<Processes> {
        self.world.as_ref().and_then(World::processes)
    }

    fn max(&mut self, value: u64) -> oneport::Result<u64> {
        match &mut self.world {
            Some(world) => world.max(value),
            None => Ok(value),
        }
    }
}

/// What options mean, which all processes of a launch do together: one value, validated.
pub(crate) trait Job: Sized {
    type Done;

    /// What a process does, such as `measures every pair of processes`: all do the same.
    fn fact(&self) -> String;

    fn perform(self, site: &mut Site) -> Result<Self::Done>;
}

impl Site {
    /// Here, where ranks are threads.
    pub fn new(caller: Caller) -> Site {
        Site {
            caller,
            world: None,
            teams: Teams::default(),
        }
    }

    /// Joins the other processes that perform a command, if ranks are processes. All but the first
    /// one are silent then.
    pub fn join(&mut self, engine: Option<Engine>, command: &str) -> Result<()> {
        if engine != Some(Engine::Mpi) {
            return Ok(());
        }
        self.world = match World::join() {
            Err(error) if launch::has_others() => end_all(&self.caller, &error.to_string()),
            joined => Some(joined?),
        };
        if !self.speaks() {
            self.caller.silence();
        }
        files::every_process_reads();
        // A process with wrong arguments says so here.
        self.agree(Ok(()))?;
        self.ensure_same(format!("runs the command {command}"))
    }

    /// Performs a job. The processes of a launch agree: on what each has prepared, that they are
    /// about to do the same, and on what has come of it. If one fails, all return an error, the
    /// first failing process's own.
    pub(crate) fn perform<J: Job>(&mut self, job: Result<J>) -> Result<J::Done> {
        let job = self.agree(job)?;
        self.ensure_same(job.fact())?;
        let done = job.perform(self);
        self.agree(done)
    }

    /// Refuses to go on if a fact differs between processes: they would wait for each other.
    fn ensure_same(&mut self, fact: String) -> Result<()> {
        match &mut self.world {
            Some(world) => Ok(world.ensure_same(&[fact])?),
            None => Ok(()),
        }
    }

    /// The result, if all processes have succeeded; otherwise the error of the first that has not.
    /// Whatever may fail on one of them goes through here: the others would wait for it.
    pub(crate) fn agree<R>(&mut self, result: Result<R>) -> Result<R> {
        let Some(world) = &mut self.world else {
            return result;
        };
        let (result, own) = match result {
            Ok(result) => (Ok(result), None),
            Err(error) => {
                let text = format!("{error:#}");
                let kind = match exit_code(&error) {
                    2 => ErrorKind::Usage(text),
                    _ => ErrorKind::Wrong(text),
                };
                (Err(Error::from(kind)), Some(error))
            }
        };
        // Its own error has the answer, too.
        let own = own.filter(|error| error.is::<FoundWrong>());
        world
            .agree(result)
            .map_err(|agreed| own.unwrap_or(agreed.into()))
    }

    pub(crate) fn speaks(&self) -> bool {
        self.world.as_ref().is_none_or(|world| world.rank() == 0)
    }

    pub(crate) fn ensure_processes(&self, ranks: usize) -> Result<()> {
        if let Some(processes) = self.world.as_ref().map(World::size)
            && ranks > processes
        {
            bail!(
                "{ranks} ranks need as many processes, but {processes} {} started: mpirun -n {ranks} starts enough",
                if processes == 1 { "was" } else { "were" }
            );
        }
        Ok(())
    }

    pub(crate) fn note_spare(&self, ranks: usize) {
        if let Some(processes) = self.world.as_ref().map(World::size)
            && ranks < processes
        {
            self.caller.note(format!(
                "{ranks} of {processes} processes are ranks, the others wait"
            ));
        }
    }
}

/// Refuses options that are given although ranks are processes.
pub(crate) fn ensure_for_processes(options: &[(&str, bool)]) -> Result<()> {
    match options.iter().find(|(_, given)| *given) {
        Some((option, _)) => bail!("{option} is for ranks that are threads (--engine threads)"),
        None => Ok(()),
    }
}

pub(crate) fn summary(processes: &Processes) -> [(&'static str, String); 2] {
    let hosts = match processes.hosts.as_slice() {
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
    let (version, library) = (&processes.version, &processes.library);
    let interface = &processes.interface;
    [
        (
            "library",
            format!("{version} ({library}, {interface} interface)"),
        ),
        ("hosts", hosts),
    ]
}
