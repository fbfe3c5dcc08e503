//! What the operating system allows this process: how much memory, and how to start threads safely.
//!
//! The memory that may still be used is the minimum of the machine's available memory, the limits
//! of the process's control groups and the process's own limits (`ulimit -v`, `ulimit -d`). A
//! process that exceeds a control group's limit is killed, and one that exceeds its own limit
//! aborts. Code that needs much memory therefore asks first, with [`ensure_memory`].
//!
//! All of this is known on Linux only, where each call reads some files of `/proc` and `/sys`. On
//! other systems nothing is refused. All sizes are in bytes. All errors are
//! [`ErrorKind::Usage`](crate::ErrorKind::Usage), and say how much is needed, how much may be used,
//! and which limit applies.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use super::tuning::SPARE_BYTES;
use crate::error::{Error, Result};

/// Memory that this process may use in addition to what it uses now: see [`available_memory`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AvailableMemory {
    /// Number of bytes.
    pub bytes: u64,
    /// Which limit determines the number: the one that leaves least.
    pub limit: MemoryLimit,
}

/// What limits the memory of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryLimit {
    /// The machine's available memory: what is free or can be reclaimed.
    Free,
    /// The limit of a control group, such as a container's, or of a group around it.
    ControlGroup,
    /// The limit of the process's address space (`ulimit -v`).
    AddressSpace,
    /// The limit of the process's data (`ulimit -d`).
    Data,
}

impl fmt::Display for AvailableMemory {
    /// `2.5 GiB, the memory that is free`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.limit {
            MemoryLimit::Free => "the memory that is free",
            MemoryLimit::ControlGroup => "what the control group's memory limit leaves",
            MemoryLimit::AddressSpace => "what the limit of the address space leaves",
            MemoryLimit::Data => "what the limit of the data segment leaves",
        };
        write!(f, "{}, {what}", InBytes(self.bytes))
    }
}

/// Displays a number of bytes in a readable unit: `512 bytes`, `2.5 GiB`.
#[derive(Debug, Clone, Copy)]
struct InBytes(u64);

impl fmt::Display for InBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        if self.0 < 1024 {
            return write!(f, "{} bytes", self.0);
        }
        let power = self.0.ilog2() / 10;
        let value = self.0 as f64 / (1u64 << (10 * power)) as f64;
        let decimals = if value < 10.0 { 1 } else { 0 };
        write!(f, "{value:.decimals$} {}", UNITS[power as usize - 1])
    }
}

/// Memory that this process may use in addition to what it uses now; `None` if the system does not
/// say.
///
/// An estimate, not a guarantee: other processes may take free memory.
pub fn available_memory() -> Option<AvailableMemory> {
    min_available(&|path| fs::read_to_string(path).ok())
}

/// Returns an error if `bytes` bytes of additional memory are more than the process may use. It
/// allocates nothing. `what` begins the message, such as "a team of 4096 ranks".
///
/// ```no_run
/// oneport::run::system::ensure_memory("a table of 2^30 numbers", 8 << 30)?;
/// # Ok::<(), oneport::Error>(())
/// ```
///
/// # Errors
/// If they are more than [`available_memory`] says.
pub fn ensure_memory(what: &str, bytes: u128) -> Result<()> {
    match available_memory() {
        Some(available) if bytes > u128::from(available.bytes) => {
            let needed = InBytes(u64::try_from(bytes).unwrap_or(u64::MAX));
            Err(Error::usage(format!(
                "{what} needs about {needed} of memory, more than {available}"
            )))
        }
        _ => Ok(()),
    }
}

/// Address space reserved for later use, until this is dropped: see [`reserve_memory`].
#[derive(Debug)]
pub struct Reservation {
    _bytes: Vec<u8>,
}

/// Reserves `bytes` bytes of the process's address space until the reservation is dropped, if the
/// process has limits of its own. Otherwise other allocations could use them up meanwhile: the C
/// library reserves up to 64 MiB for each thread that starts. Without such limits nothing is
/// reserved. The memory is not touched, so it takes no pages.
///
/// # Errors
/// If the process's own limits do not leave as much.
pub fn reserve_memory(what: &str, bytes: u64) -> Result<Reservation> {
    let mut reserved = Vec::new();
    if let Some(available) = process_limit() {
        let refused = || {
            let needed = InBytes(bytes);
            Error::usage(format!(
                "{what} needs about {needed} of memory, more than {available}"
            ))
        };
        let bytes = usize::try_from(bytes).map_err(|_| refused())?;
        reserved.try_reserve_exact(bytes).map_err(|_| refused())?;
    }
    // The compiler must not remove memory that is never written.
    Ok(Reservation {
        _bytes: std::hint::black_box(reserved),
    })
}

/// Starts threads one after another if the process's own limits may leave no room for them.
///
/// If a thread's stack finds no room, starting it fails; but if its signal stack, which the thread
/// allocates itself, finds no room, the process ends. So each start waits until the previous thread
/// runs and there is room for both stacks.
///
/// ```
/// use oneport::run::system::Gate;
/// let (mut gate, mut threads) = (Gate::new(), Vec::new());
/// for _ in 0..4 {
///     let pass = gate.wait(256 << 10)?;
///     let thread = std::thread::Builder::new().stack_size(256 << 10);
///     threads.push(thread.spawn(move || drop(pass)).expect("a thread starts"));
/// }
/// # threads.into_iter().for_each(|thread| thread.join().expect("it returns"));
/// # Ok::<(), oneport::Error>(())
/// ```
#[derive(Debug)]
pub struct Gate {
    /// Set if the process has limits; a running thread sends a message.
    limited: Option<(SyncSender<()>, Receiver<()>)>,
    waiting: bool,
}

/// Token of a starting thread, which drops it when it runs. The next [`Gate::wait`] waits for that.
#[derive(Debug)]
pub struct Pass(Option<SyncSender<()>>);

impl Default for Gate {
    fn default() -> Gate {
        Gate::new()
    }
}

impl Gate {
    /// A gate through which no thread has passed. It looks once whether the process has limits of
    /// its own; without them it lets every thread pass at once.
    pub fn new() -> Gate {
        Gate {
            limited: process_limit().map(|_| sync_channel(1)),
            waiting: false,
        }
    }

    /// Waits until the next thread can start, whose stack takes `stack_bytes` bytes: until the
    /// thread before has dropped its [`Pass`].
    ///
    /// # Errors
    /// If the process's own limits leave no room for its stack and its first allocations. The gate
    /// can be used again.
    pub fn wait(&mut self, stack_bytes: usize) -> Result<Pass> {
        let Some((sender, receiver)) = &self.limited else {
            return Ok(Pass(None));
        };
        if self.waiting {
            // If the thread could not start, its token has been dropped.
            let _ = receiver.recv();
        }
        self.waiting = true;
        let needed = (stack_bytes as u64).saturating_add(SPARE_BYTES);
        match process_limit() {
            Some(available) if available.bytes < needed => {
                self.waiting = false;
                Err(Error::usage(format!(
                    "its stack and its first allocations need {}, more than {available}",
                    InBytes(needed)
                )))
            }
            _ => Ok(Pass(Some(sender.clone()))),
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if let Some(sender) = &self.0 {
            let _ = sender.try_send(());
        }
    }
}

/// Whether the process has limits of its own (`ulimit -v`, `ulimit -d`): allocations beyond them
/// fail, and the C library takes up to 64 MiB of them for each thread.
pub fn has_own_limits() -> bool {
    process_limit().is_some()
}

/// What the process's own limits leave, if it has any. Allocations beyond them fail.
fn process_limit() -> Option<AvailableMemory> {
    process_limit_from(&|path| fs::read_to_string(path).ok())
}

/// Reads a text file of the system, if it exists.
type Read<'a> = &'a dyn Fn(&Path) -> Option<String>;

pub(super) fn min_available(read: Read<'_>) -> Option<AvailableMemory> {
    let all = [
        free(read).map(|bytes| (bytes, MemoryLimit::Free)),
        control_groups(read).map(|bytes| (bytes, MemoryLimit::ControlGroup)),
    ];
    let all = all.into_iter().flatten();
    let all = all.map(|(bytes, limit)| AvailableMemory { bytes, limit });
    all.chain(process_limit_from(read)).min_by_key(|a| a.bytes)
}

/// The machine's available memory.
fn free(read: Read<'_>) -> Option<u64> {
    kibibytes(&read(Path::new("/proc/meminfo"))?, "MemAvailable:")
}

/// What the process's own limits leave.
fn process_limit_from(read: Read<'_>) -> Option<AvailableMemory> {
    let limits = read(Path::new("/proc/self/limits"))?;
    let soft = |name: &str| -> Option<u64> {
        let line = limits.lines().find_map(|l| l.strip_prefix(name))?;
        // "unlimited" does not parse as a number.
        line.split_whitespace().next()?.parse().ok()
    };
    let limited = [
        ("Max address space", "VmSize:", MemoryLimit::AddressSpace),
        ("Max data size", "VmData:", MemoryLimit::Data),
    ];
    let mut status = None;
    let mut min: Option<AvailableMemory> = None;
    for (name, used, limit) in limited {
        let Some(limit_bytes) = soft(name) else {
            continue;
        };
        let status = status.get_or_insert_with(|| read(Path::new("/proc/self/status")));
        let used = kibibytes(status.as_ref()?, used)?;
        let bytes = limit_bytes.saturating_sub(used);
        if min.is_none_or(|min| bytes < min.bytes) {
            min = Some(AvailableMemory { bytes, limit });
        }
    }
    min
}

/// The value of a line such as `MemAvailable:   1000 kB`, in bytes.
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|l| l.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The minimum that the control groups of this process and their ancestors leave.
fn control_groups(read: Read<'_>) -> Option<u64> {
    let groups = read(Path::new("/proc/self/cgroup"))?;
    let mounts = read(Path::new("/proc/self/mountinfo"))?;
    let mounts: Vec<Mount> = mounts.lines().filter_map(Mount::of).collect();
    let mut min_left = None;
    // `4:memory:/path` in version 1, `0::/path` in version 2.
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        let version = match controllers {
            "" => Version::Two,
            list if list.split(',').any(|c| c == "memory") => Version::One,
            _ => continue,
        };
        for mount in mounts.iter().filter(|m| m.version == version) {
            let left = mount
                .folders(path)
                .filter_map(|folder| version.left(&folder, read));
            min_left = left.chain(min_left).min();
        }
    }
    min_left
}

/// Where a hierarchy of control groups is mounted in the file system.
struct Mount {
    version: Version,
    /// The control group that is mounted at `point`.
    root: PathBuf,
    point: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Mount {
    /// Parses `35 31 0:32 /root /point options - cgroup cgroup rw,memory`. The number of fields
    /// before the dash varies.
    fn of(line: &str) -> Option<Mount> {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let version = match after.next()? {
            "cgroup2" => Version::Two,
            "cgroup" if after.nth(1)?.split(',').any(|o| o == "memory") => Version::One,
            _ => return None,
        };
        let mut before = before.split(' ').skip(3);
        Some(Mount {
            version,
            root: before.next()?.into(),
            point: before.next()?.into(),
        })
    }

    /// The folders of a control group and of its ancestors, innermost first. A container may see
    /// its own group as the outermost.
    fn folders(&self, group: &str) -> impl Iterator<Item = PathBuf> {
        let inside = Path::new(group).strip_prefix(&self.root);
        let inside = inside.unwrap_or(Path::new("")).to_path_buf();
        let parents: Vec<PathBuf> = inside
            .ancestors()
            .map(|group| self.point.join(group))
            .collect();
        parents.into_iter()
    }
}

impl Version {
    /// What one control group leaves, if it has a limit.
    fn left(self, folder: &Path, read: Read<'_>) -> Option<u64> {
        let number = |file: &str| -> Option<u64> { read(&folder.join(file))?.trim().parse().ok() };
        let (limit_bytes, used, cached) = match self {
            // "max" does not parse as a number. A group is slowed down beyond the first limit and
            // killed beyond the second.
            Version::Two => {
                let limits = ["memory.high", "memory.max"].into_iter();
                let limit_bytes = limits.filter_map(number).min()?;
                (limit_bytes, number("memory.current")?, "inactive_file ")
            }
            Version::One => (
                number("memory.limit_in_bytes")?,
                number("memory.usage_in_bytes")?,
                "total_inactive_file ",
            ),
        };
        // The kernel reclaims pages of files that have not been used recently.
        let cached = read(&folder.join("memory.stat"))
            .and_then(|stat| {
                let line = stat.lines().find_map(|l| l.strip_prefix(cached))?;
                line.trim().parse::<u64>().ok()
            })
            .unwrap_or(0);
        Some(limit_bytes.saturating_sub(used.saturating_sub(cached)))
    }
}
