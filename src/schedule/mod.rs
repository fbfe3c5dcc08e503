//! Schedules: collective communication as data.
//!
//! A [`Schedule`] has `p` ranks. Each rank owns one buffer of `len` elements with named regions
//! (where its input stands, where its output is expected; the rest is scratch) and a program: an
//! ordered list of [`Step`]s over [`Span`]s of that buffer.
//!
//! # The rules of time
//!
//! Checker, simulator and executor all follow these four rules:
//!
//! 1. **Ports.** The steps of a rank that use the same port run one after another, in program
//!    order. A unidirectional rank has one port for both directions, a bidirectional rank one port
//!    out and one port in; a `k`-ported rank has `k` of each kind and each of its steps names its
//!    port (0 by default), so each port is a list of its own.
//! 2. **Data.** A step waits for every earlier step of its rank that writes what it reads, or
//!    touches what it writes.
//! 3. **Compute.** A copy, a combination and the combining part of a [`Step::RecvCombine`] start
//!    when every earlier step of the rank, on all ports, has finished, and every later step of the
//!    rank starts after them, even if combining is free. With
//!    [`CostModel::overlap`](crate::CostModel::overlap) they hold up only what rules 1 and 2 hold
//!    up: a port is free again when its transfer ends, and only steps that touch the combined span
//!    wait for the combination.
//! 4. **Rendezvous.** The `n`-th send from `a` to `b` meets the `n`-th receive at `b` from `a`. The
//!    transfer starts when both may start, takes `alpha + beta * bytes` (nothing for an empty
//!    message) and frees both ports at its end; a combining receiver is then busy `gamma * bytes`
//!    more; a local copy takes `gamma_copy * bytes`.
//!
//! Time is therefore a longest path, one number, the same whatever order steps are evaluated in.
//! Within a round, list sends before receives: [`Schedule::reversed`] keeps that.

mod builder;
mod json;
pub(crate) mod matching;
mod order;
mod reverse;
mod source;
mod span;
mod stats;
mod step;

pub use builder::Builder;
pub use order::{Event, LocalOrder, OrderScratch};
pub(crate) use reverse::reversed_step;
pub use source::ScheduleSource;
pub use span::{Span, Spans, total_len};
pub use stats::Stats;
pub use step::{Order, Step};

use serde::{Deserialize, Serialize};

use crate::collective::Collective;
use crate::cost::Ports;
use crate::error::{Error, Result};

/// The buffer of one rank, in elements.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// Length of the buffer.
    pub len: usize,
    /// Where the input stands at the start, in rank order of its blocks.
    pub input: Spans,
    /// Where the output is expected at the end, in rank order of its blocks.
    pub output: Spans,
}

/// What every rank does, step by step, to perform one collective: see the [module
/// documentation](self).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    ports: Ports,
    collective: Collective,
    layout: Vec<Layout>,
    programs: Vec<Vec<Step>>,
}

/// Ports of each kind that a rank can have: far more than any machine's, few enough for a list
/// each.
const MAX_PORTS: usize = 1 << 12;

impl Schedule {
    /// Starts a schedule of `ranks` ranks with empty buffers and programs.
    pub fn builder(ranks: usize, ports: Ports, collective: Collective) -> Builder {
        Builder::new(ranks, ports, collective)
    }

    /// Puts a schedule together from its parts.
    ///
    /// # Errors
    /// When there is no rank, the parts disagree about the number of ranks, the collective or a
    /// step names a rank that does not exist, or a step or a region leaves its buffer. Whether
    /// the schedule is *right* is for [`crate::check`] to say.
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

    /// What a rank's ports allow.
    pub fn ports(&self) -> Ports {
        self.ports
    }

    /// The same schedule under another port model; whether it still completes is for
    /// [`crate::check`] to say.
    ///
    /// # Errors
    /// When `ports` has no port, or more than a schedule can have.
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

    /// What the schedule is for.
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

    /// Every rank's program, and nothing else of the schedule.
    pub(crate) fn into_programs(self) -> Vec<Vec<Step>> {
        self.programs
    }

    /// Steps of all ranks together.
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
