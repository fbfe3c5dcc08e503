//! The processes of a launch.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::binding::{Communicator, Mpi};
use super::cores::Cores;
use super::launch;
use super::summary::digest;
use super::watchdog::Watchdog;
use crate::error::{Error, ErrorKind, Result};
use crate::machine::numbers::index;
use crate::run::Host;
use crate::run::engine::Load;

/// How long the library may take to start all processes.
const START_DEADLINE: Duration = Duration::from_secs(120);

/// What processes do meanwhile. One that never calls the library keeps all others there.
const STARTING: &str =
    "MPI_Init_thread (another process has ended, or runs a command that does not run over MPI)";

/// What to do about a library that is not the launcher's.
const ADVICE: &str = "set ONEPORT_MPI_LIB to the path of the launcher's library";

/// All processes of a launch, of which this is one. Each is a rank.
///
/// What a method of all processes (it takes `&mut self`) does, all of them have to call.
///
/// # Example
/// ```no_run
/// use oneport::mpi::World;
/// use oneport::run::{Op, Run};
/// use oneport::Request;
///
/// let mut world = World::join()?;
/// let schedule = Request::reduce(world.size(), 1000).plan("binomial")?;
/// let outcome = Run::<f32>::new(&schedule).op(Op::SUM).verified().on(&mut world)?;
/// assert!(outcome.is_verified());
/// # Ok::<(), oneport::Error>(())
/// ```
#[derive(Debug)]
pub struct World {
    // Fields are dropped in this order: communicators before the library ends.
    pub(super) part: Option<FirstProcesses>,
    pub(super) all: Communicator,
    pub(super) watchdog: Watchdog,
    hosts: Hosts,
    /// The system's numbers of the cores that the processes of this host may use.
    cores: Vec<usize>,
    /// The load of these cores when it was read last.
    load: Option<Load>,
    /// Whether each process of this host has one core, for itself.
    bound: bool,
    /// Whether the processes of this host, or some of them, outnumber the cores that they may use.
    crowded: bool,
    /// The ranks of the processes of this host.
    on_host: Vec<usize>,
    pub(super) max_tag: c_int,
    library: Joined,
}

/// The hosts of the processes.
#[derive(Debug)]
struct Hosts {
    /// In order of their first ranks.
    list: Vec<Host>,
    /// By rank: the name of its host.
    of_rank: Vec<String>,
}

/// The first processes of a world, in a run of fewer ranks than processes.
#[derive(Debug)]
pub(super) struct FirstProcesses {
    pub(super) ranks: usize,
    pub(super) communicator: Communicator,
}

/// The library, initialized. Its use ends when this is dropped.
#[derive(Debug)]
struct Joined(&'static Mpi);

impl Drop for Joined {
    fn drop(&mut self) {
        self.0.finalize();
    }
}

impl World {
    pub(super) fn library(&self) -> &'static Mpi {
        self.library.0
    }

    /// Loads the MPI library and joins the processes that the launcher started; without a launcher
    /// this process is the only one.
    ///
    /// The library is the one that the environment variable `ONEPORT_MPI_LIB` names, or the first
    /// that the system finds under the usual names. It must be the launcher's own.
    ///
    /// # Errors
    /// When no library can be loaded, it lacks a function, it does not belong to the launcher, or
    /// this process has joined before.
    pub fn join() -> Result<World> {
        static JOINED: AtomicBool = AtomicBool::new(false);
        let mpi = Mpi::open()?;
        if JOINED.swap(true, Ordering::AcqRel) {
            return Err(Error::usage("a process joins its world once"));
        }
        if launch::is_by_open_mpi() && !mpi.version().contains("Open MPI") {
            return Err(Error::usage(format!(
                "Open MPI started this process, but {} is {}: {ADVICE}",
                mpi.name(),
                mpi.version()
            )));
        }
        let name = match launch::rank() {
            Some(rank) => format!("process {rank}"),
            None => "this process".to_owned(),
        };
        let watchdog = Watchdog::new(mpi, name)?;
        let has_threads = watchdog.watch(STARTING, START_DEADLINE, || mpi.init())?;
        let library = Joined(mpi);
        if !has_threads {
            return Err(Error::system(format!(
                "{} ({}) allows a process one thread only (MPI_THREAD_SINGLE), but the deadlines of its calls need a second one",
                mpi.name(),
                mpi.version()
            )));
        }
        let mut all = Communicator::world(mpi)?;
        if let Some(size) = launch::size().filter(|&size| size != all.size()) {
            return Err(Error::usage(format!(
                "the launcher started {size} processes, but {} ({}) sees {}, so it does not belong to the launcher: {ADVICE}",
                mpi.name(),
                mpi.version(),
                all.size()
            )));
        }
        let host = all.on_this_host()?;
        let hosts = Hosts::of(&all, &host)?;
        let Cores {
            union: cores,
            bound,
            crowded,
        } = cores(&host)?;
        let on_host = host.gather_to_all(&[all.rank() as u64])?;
        let on_host = on_host.into_iter().map(index).collect();
        let max_tag = all.max_tag()?;
        all.set_oversubscribed(crowded);
        let mut world = World {
            part: None,
            watchdog,
            hosts,
            load: Load::now(&cores),
            cores,
            bound,
            crowded,
            on_host,
            max_tag,
            all,
            library,
        };
        world.ensure_same(&[concat!("runs oneport ", env!("CARGO_PKG_VERSION")).to_owned()])?;
        Ok(world)
    }

    /// The rank of this process.
    pub fn rank(&self) -> usize {
        self.all.rank()
    }

    /// The number of processes.
    pub fn size(&self) -> usize {
        self.all.size()
    }

    pub(super) fn mpi(&self) -> &'static Mpi {
        self.library.0
    }

    /// The hosts, in order of their first ranks.
    pub(super) fn hosts(&self) -> &[Host] {
        &self.hosts.list
    }

    /// By rank: the name of its host.
    pub fn host_names(&self) -> &[String] {
        &self.hosts.of_rank
    }

    /// The number of cores that the processes of this host may use together.
    pub fn cores(&self) -> usize {
        self.cores.len().max(1)
    }

    /// Whether the launcher has bound each process of this host to a core of its own.
    pub fn bound(&self) -> bool {
        self.bound
    }

    /// Whether the processes of this host outnumber the cores that they may use, or some of them
    /// share theirs, such as two that are bound to one core.
    pub fn oversubscribed(&self) -> bool {
        self.crowded
    }

    /// The ranks of the processes that share this host's memory.
    pub(super) fn ranks_on_host(&self) -> &[usize] {
        &self.on_host
    }

    /// The largest percentage of the time of a host's cores that other processes have had, if it is
    /// large enough to report: since the last call, or since an earlier one, as the time must be so
    /// long that the system's accounting tells.
    pub(super) fn percent_by_others(&mut self) -> Result<Option<u64>> {
        /// Ticks of a core.
        const LONG: u64 = 25;
        let now = Load::now(&self.cores);
        let loads = now.as_ref().zip(self.load.as_ref());
        let own = loads.map_or(0, |(now, before)| now.own_since(before));
        let short = loads.map_or(0, |(now, before)| {
            LONG.saturating_sub(now.ticks_since(before))
        });
        let all = self.all.gather_to_all(&[own])?;
        let on_host = self.on_host.iter().map(|&rank| all[rank]).sum();
        let found = loads.and_then(|(now, before)| now.percent_by_others_since(before, on_host));
        let [most, short] = self.all.max([found.unwrap_or(0), short])?;
        if short > 0 {
            return Ok(None);
        }
        self.load = now;
        Ok((most > 0).then_some(most))
    }

    /// Refuses to go on if processes differ in a fact. A fact is what a process does or has, such
    /// as `runs oneport 0.1.0`; all give the same number of them, in the same order. The error says
    /// which one differs, and between which processes; all get it.
    pub fn ensure_same(&mut self, summaries: &[String]) -> Result<()> {
        let mine: Vec<u64> = summaries.iter().map(digest).collect();
        let all = self.all.gather_to_all(&mine)?;
        let of = |rank: usize, number: usize| all[rank * summaries.len() + number];
        let differs = |fact: usize| {
            let rank = (1..self.size()).find(|&rank| of(rank, fact) != of(0, fact));
            Some((fact, rank?))
        };
        let Some((number, rank)) = (0..summaries.len()).find_map(differs) else {
            return Ok(());
        };
        let (theirs, first) = (
            self.text_of(rank, &summaries[number])?,
            self.text_of(0, &summaries[number])?,
        );
        Err(Error::usage(format!(
            "process {rank} {theirs}, process 0 {first}: all processes have to do the same"
        )))
    }

    /// The text of process `from`; `mine` is this process's.
    fn text_of(&self, from: usize, mine: &str) -> Result<String> {
        let mut text = mine.as_bytes().to_vec();
        let mut length = [text.len() as u64];
        self.all.broadcast(from, &mut length)?;
        text.resize(index(length[0]), 0);
        self.all.broadcast(from, &mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// The results of all processes if all have succeeded. Otherwise all return an error: the first
    /// failing process's own, with its rank unless all have failed.
    pub fn agree<R>(&mut self, result: Result<R>) -> Result<R> {
        self.ensure_none_failed(result.as_ref().err())?;
        result
    }

    fn ensure_none_failed(&mut self, error: Option<&Error>) -> Result<()> {
        let rank = self.rank() as u64;
        let failed = error.is_some();
        // Maxima: the smallest rank that has failed, whether one has succeeded.
        let mine = [if failed { u64::MAX - rank } else { 0 }, u64::from(!failed)];
        let [first, succeeded] = self.all.max(mine)?;
        if first == 0 {
            return Ok(());
        }
        let first = index(u64::MAX - first);
        let usage = u64::from(error.is_some_and(Error::is_usage));
        let text = error.map_or_else(String::new, Error::to_string);
        let mut usage = [usage];
        self.all.broadcast(first, &mut usage)?;
        let mut text = self.text_of(first, &text)?;
        if succeeded != 0 {
            text = format!("{text} (process {first} of {})", self.size());
        }
        let kind = match usage[0] {
            0 => ErrorKind::Wrong(text),
            _ => ErrorKind::Usage(text),
        };
        Err(kind.into())
    }

    /// The group of the first `ranks` processes, if this is one of them.
    pub(super) fn first(&mut self, ranks: usize) -> Result<Option<&Communicator>> {
        if ranks == self.size() {
            return Ok(Some(&self.all));
        }
        if self.part.as_ref().is_none_or(|part| part.ranks != ranks) {
            let inside = self.rank() < ranks;
            let split = || self.all.split(inside);
            let communicator = self
                .watchdog
                .watch("MPI_Comm_split", START_DEADLINE, split)?;
            self.part = Some(FirstProcesses {
                ranks,
                communicator,
            });
        }
        let part = self.part.as_ref().filter(|_| self.rank() < ranks);
        Ok(part.map(|part| &part.communicator))
    }
}

impl Hosts {
    fn of(all: &Communicator, host: &Communicator) -> Result<Hosts> {
        /// Bytes of the longest name that is shown.
        const NAME_BYTES: usize = 256;
        let mut mine = [0u8; NAME_BYTES];
        let name = all.host();
        let shown = name.len().min(NAME_BYTES);
        mine[..shown].copy_from_slice(&name.as_bytes()[..shown]);
        let names = all.gather_to_all(&mine)?;
        // The first process of each host speaks for it.
        let speaks = if host.rank() == 0 { host.size() } else { 0 };
        let sizes = all.gather_to_all(&[speaks as u64])?;
        let name = |bytes| {
            let name = String::from_utf8_lossy(bytes);
            name.trim_end_matches('\0').to_owned()
        };
        let of_rank: Vec<String> = names.chunks(NAME_BYTES).map(name).collect();
        let host = |(name, size): (&String, u64)| Host {
            name: name.clone(),
            processes: index(size),
        };
        let speakers = of_rank.iter().zip(sizes).filter(|&(_, size)| size > 0);
        Ok(Hosts {
            list: speakers.map(host).collect(),
            of_rank,
        })
    }
}

/// The cores of the processes of a host, which all call it.
pub(super) fn cores(host: &Communicator) -> Result<Cores> {
    const WORDS: usize = 64;
    let mut mine = [0u64; WORDS];
    for core in core_affinity::get_core_ids().unwrap_or_default() {
        if let Some(word) = mine.get_mut(core.id / 64) {
            *word |= 1 << (core.id % 64);
        }
    }
    let all = host.gather_to_all(&mine)?;
    let processes: Vec<&[u64]> = all.chunks(WORDS).collect();
    Ok(Cores::of(&processes))
}
