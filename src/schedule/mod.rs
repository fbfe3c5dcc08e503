//! Schedules: collective communication as data.
//!
//! A [`Schedule`] has `p` ranks. Each rank owns one buffer of `len` elements, in which some spans
//! hold the input at the start and some must hold the output at the end; the rest is scratch. Each
//! rank also has a program: an ordered list of [`Step`]s over [`Span`]s of its buffer.
//!
//! How long a schedule takes, and when each of its steps may start, is defined by the rules of time
//! in [`crate::rules`]. Within a round, list sends before receives; [`Schedule::reversed`]
//! preserves this order.

mod builder;
pub mod collective;
mod json;
mod reverse;
mod source;
mod span;
mod step;

pub use builder::Builder;
pub(crate) use reverse::reversed_step;
pub use source::ScheduleSource;
pub use span::{Span, Spans, total_len};
pub use step::{Order, Step};

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};
use crate::machine::{CostModel, Ports};
use crate::schedule::collective::Collective;

/// The buffer of one rank, in elements.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// Length of the buffer.
    pub len: usize,
    /// Spans that hold the input at the start, in rank order of its blocks.
    pub input: Spans,
    /// Spans that must hold the output at the end, in rank order of its blocks.
    pub output: Spans,
}

/// A program for every rank that together perform one collective: see the [module
/// documentation](self).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    ports: Ports,
    collective: Collective,
    layout: Vec<Layout>,
    programs: Vec<Vec<Step>>,
}

/// Maximal number of ports of each kind per rank: far more than any machine has, and few enough to
/// keep one list per port.
const MAX_PORTS: usize = 1 << 12;

impl Schedule {
    /// Checks that `cost` has a link for every non-empty message.
    ///
    /// # Errors
    /// [`ErrorKind::NoLink`] for the first message without a link.
    pub fn ensure_links(&self, cost: &CostModel) -> Result<()> {
        if cost.links().is_none() {
            return Ok(());
        }
        for (from, program) in self.programs().iter().enumerate() {
            for step in program {
                if let &Step::Send { to, .. } = step
                    && !step.is_empty()
                    && !cost.linked(from, to)
                {
                    return Err(ErrorKind::NoLink { from, to }.into());
                }
            }
        }
        Ok(())
    }

    /// Starts a schedule of `ranks` ranks with empty buffers and programs.
    pub fn builder(ranks: usize, ports: Ports, collective: Collective) -> Builder {
        Builder::new(ranks, ports, collective)
    }

    /// Assembles a schedule from its parts.
    ///
    /// # Errors
    /// When there is no rank, the parts disagree on the number of ranks, the collective or a step
    /// names a rank that does not exist, or a step or a region leaves its buffer. Whether the
    /// schedule is *correct* is checked by [`crate::check`].
    pub fn new(
        ports: Ports,
        collective: Collective,
        layout: Vec<Layout>,
        programs: Vec<Vec<Step>>,
    ) -> Result<Schedule> {
        let p = programs.len();
        if p == 0 {
            return Err(Error::malformed("a schedule needs at least one rank"));
        }
        if ports.k() == 0 {
            return Err(Error::malformed(
                "a rank needs at least one port (ported is 0)",
            ));
        }
        if ports.k() > MAX_PORTS {
            return Err(Error::malformed(format!(
                "ported is {}: a rank can have at most {MAX_PORTS} ports of each kind",
                ports.k()
            )));
        }
        if layout.len() != p {
            return Err(Error::malformed(format!(
                "{} layouts for {p} programs",
                layout.len()
            )));
        }
        collective.fits_ranks(p)?;
        let schedule = Schedule {
            ports,
            collective,
            layout,
            programs,
        };
        schedule.in_bounds()?;
        Ok(schedule)
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.programs.len()
    }

    /// The port model.
    pub fn ports(&self) -> Ports {
        self.ports
    }

    /// The same schedule under another port model. [`crate::check`] tells whether it still
    /// completes.
    ///
    /// # Errors
    /// When `ports` has no port, or more ports than a schedule can have.
    pub fn with_ports(mut self, ports: Ports) -> Result<Schedule> {
        if ports.k() == 0 || ports.k() > MAX_PORTS {
            return Err(Error::usage(format!(
                "a rank needs 1 to {MAX_PORTS} ports of each kind, not {}",
                ports.k()
            )));
        }
        self.ports = ports;
        Ok(self)
    }

    /// The collective that the schedule performs.
    pub fn collective(&self) -> &Collective {
        &self.collective
    }

    /// Every rank's buffer.
    pub fn layout(&self) -> &[Layout] {
        &self.layout
    }

    /// Every rank's program.
    pub fn programs(&self) -> &[Vec<Step>] {
        &self.programs
    }

    /// Every rank's program; drops the rest of the schedule.
    pub(crate) fn into_programs(self) -> Vec<Vec<Step>> {
        self.programs
    }

    /// Number of steps of all ranks together.
    pub fn steps(&self) -> usize {
        self.programs.iter().map(Vec::len).sum()
    }

    fn in_bounds(&self) -> Result<()> {
        let p = self.ranks();
        for (rank, (layout, program)) in self.layout.iter().zip(&self.programs).enumerate() {
            let leaves = |s: &&Span| {
                s.offset
                    .checked_add(s.len)
                    .is_none_or(|end| end > layout.len)
            };
            for (what, spans) in [("input", &layout.input), ("output", &layout.output)] {
                if let Some(s) = spans.iter().find(leaves) {
                    return Err(Error::malformed(format!(
                        "rank {rank}: {what} span [{}, {}] leaves the buffer of {} elements",
                        s.offset, s.len, layout.len
                    )));
                }
            }
            for (i, step) in program.iter().enumerate() {
                if let Some(peer) = step.peer().filter(|&peer| peer >= p) {
                    return Err(Error::malformed(format!(
                        "rank {rank}, step {i} ({}): peer {peer} is not one of {p} ranks",
                        step.name()
                    )));
                }
                if let Some(s) = step.reads().iter().chain(step.writes()).find(leaves) {
                    return Err(Error::malformed(format!(
                        "rank {rank}, step {i} ({}): span [{}, {}] leaves the buffer of {} elements",
                        step.name(),
                        s.offset,
                        s.len,
                        layout.len
                    )));
                }
            }
        }
        Ok(())
    }
}
