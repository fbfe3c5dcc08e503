//! The processes of a run whose ranks are processes.

use std::fmt;

use serde::Serialize;

/// The processes of a launch, and the library that connects them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Processes {
    /// The name under which the library was found.
    pub library: String,
    /// The library's own name and version.
    pub version: String,
    /// Its binary interface.
    pub interface: String,
    /// Number of processes.
    pub processes: usize,
    /// The hosts, in order of their first ranks.
    pub hosts: Vec<Host>,
    /// How repetitions are timed.
    pub timing: &'static str,
}

/// A host and the number of its processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Number of processes.
    pub processes: usize,
}

impl fmt::Display for Processes {
    /// Such as `Open MPI v5.0.11, 4 processes on 2 hosts`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |n: usize, one: &'static str, several: &'static str| match n {
            1 => one,
            _ => several,
        };
        write!(
            f,
            "{}, {} {} on {} {}",
            self.version,
            self.processes,
            plural(self.processes, "process", "processes"),
            self.hosts.len(),
            plural(self.hosts.len(), "host", "hosts")
        )
    }
}

impl Processes {
    /// The processes, of which the library was found as `library` and calls itself `version`.
    #[cfg(feature = "mpi")]
    pub(crate) fn new(library: &str, version: String, interface: String, hosts: Vec<Host>) -> Self {
        Processes {
            library: library.to_owned(),
            version,
            interface,
            processes: hosts.iter().map(|host| host.processes).sum(),
            timing: match hosts.len() {
                1 => "from the first start to the last end, by the clock of the host",
                _ => "the slowest process's own time, after a barrier",
            },
            hosts,
        }
    }
}
