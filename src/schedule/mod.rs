//! Schedules: collective communication as data.
//!
//! A [`Schedule`] has `p` ranks. Each rank owns one buffer of `len` elements, in which some spans
//! hold the input at the start and some must hold the output at the end; the rest is scratch. Each
//! rank also has a program: an ordered list of [`Step`]s over [`Span`]s of its buffer.
//!
//! How long a schedule takes, and when each of its steps may start, is defined by the rules of time
//! in [`crate::rules`]. Within a round, list sends before receives; [`Schedule::reversed`]
//! preserves this order.
//!
//! # Conventions
//!
//! - Offsets and lengths are in elements. A schedule knows how many bytes an element has, for its
//!   model times ([`Schedule::element_bytes`]), but not the type: who runs it names that.
//! - Ranks, the steps of a program and ports are numbered from 0.
//! - Sums of lengths saturate, so numbers from files cannot overflow.
//! - Functions take constant time unless they say otherwise.
//! - What is not a schedule is refused with [`ErrorKind::Malformed`], a request that cannot be met
//!   with [`ErrorKind::Usage`]. Whether a schedule is *right* is not their concern:
//!   [`Schedule::check`] proves it.
//!
//! # Ways to make one
//!
//! | from | by |
//! |---|---|
//! | a planner | [`Request::plan`](crate::Request::plan) |
//! | step by step | [`Schedule::broadcast`] and its like, [`Schedule::builder`] |
//! | parts | [`Schedule::new`] |
//! | JSON | [`Schedule::from_json`] |
//! | programs generated on demand | [`ScheduleSource::materialize`] |
//! | a recorded rank program | [`ScopeOutcome::schedule`](crate::run::ScopeOutcome::schedule) |

mod builder;
pub mod collective;
pub(crate) mod json;
pub(crate) mod reverse;
mod shared_port;
mod source;
mod span;
mod step;

pub use builder::Builder;
pub(crate) use reverse::reversed_step;
pub use shared_port::{Direction, SharedPort};
pub(crate) use source::DynScheduleSource;
pub use source::ScheduleSource;
pub use span::{Span, Spans, total_len};
pub use step::{Order, Step};

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};
use crate::machine::{CostModel, Ports};
use crate::schedule::collective::Collective;

/// The buffer of one rank: its length, and where its input and its output are, in elements.
///
/// Input and output may share elements, as they do at the root of a broadcast; neither may
/// name an element twice. An object `{"len": n, "input": spans, "output": spans}` in files.
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// Number of elements of the buffer.
    pub len: usize,
    /// Spans that hold the input at the start, in rank order of its blocks; none if the rank
    /// contributes nothing.
    pub input: Spans,
    /// Spans that must hold the output at the end, in rank order of its blocks; none if the rank
    /// needs no result.
    pub output: Spans,
}

/// A program for every rank that together perform one collective: see the [module
/// documentation](self).
///
/// It always has at least one rank, one layout and one program per rank, only peers that exist, and
/// only spans inside their buffers. It is data: proved by [`Schedule::check`], timed by
/// [`Schedule::simulate`], executed by [`Run`](crate::run::Run). Two schedules are equal if their
/// ports, collective, layouts, programs and shared ports are, whatever their names.
///
/// ```
/// use oneport::{Collective, CostModel, Layout, Ports, Schedule, Span, Spans, Step};
///
/// // Rank 0 sends its 4 elements to rank 1.
/// let vector = Span::new(0, 4);
/// let root = Layout { len: 4, input: vector.into(), output: vector.into() };
/// let leaf = Layout { len: 4, input: Spans::new(), output: vector.into() };
/// let programs = vec![vec![Step::send(1, vector)], vec![Step::recv(0, vector)]];
/// let broadcast = Collective::Broadcast { root: 0 };
/// let schedule = Schedule::new(Ports::BI, broadcast, vec![root, leaf], programs)?;
/// assert!(schedule.check().is_correct());
/// assert_eq!(schedule.simulate(&CostModel::new(10.0, 1.0))?.makespan(), 14.0);
/// # Ok::<(), oneport::Error>(())
/// ```
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schemars", schemars(with = "json::Input"))]
#[derive(Debug, Clone, Eq)]
pub struct Schedule {
    name: Option<String>,
    ports: Ports,
    collective: Collective,
    layout: Vec<Layout>,
    programs: Vec<Vec<Step>>,
    shared_ports: Vec<SharedPort>,
    element_bytes: u64,
}

impl PartialEq for Schedule {
    fn eq(&self, other: &Schedule) -> bool {
        self.ports == other.ports
            && self.collective == other.collective
            && self.layout == other.layout
            && self.programs == other.programs
            && self.shared_ports == other.shared_ports
    }
}

/// Characters of a schedule's name: wider columns and legends would leave no room for times.
const MAX_NAME: usize = 100;

/// Multiplies offsets and lengths of spans inside a buffer whose own length allows it.
fn scale(spans: &mut Spans, factor: usize) {
    for span in spans.iter_mut() {
        *span = Span::new(span.offset * factor, span.len * factor);
    }
}

impl Schedule {
    /// Checks that `cost` has a link for every non-empty message. A heterogeneous model has none
    /// for ranks that it does not describe.
    ///
    /// Linear in the number of steps for a heterogeneous model, constant time for others.
    ///
    /// # Errors
    /// [`ErrorKind::NoLink`] for the first message without a link, rank by rank.
    #[doc(hidden)]
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

    /// Starts a schedule of `ranks` ranks with empty buffers and programs, in `O(ranks)` time and
    /// memory. [`Schedule::broadcast`] and its like also lay the buffers out.
    pub fn builder(ranks: usize, ports: Ports, collective: Collective) -> Builder {
        Builder::new(ranks, ports, collective)
    }

    /// Assembles a schedule from its parts: `layout[rank]` and `programs[rank]` for each of the `p`
    /// ranks.
    ///
    /// Linear in the number of ranks, steps and spans.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] if there is no rank, the parts disagree on the number of ranks, a
    /// rank has no port or more than 4096 of each kind, the collective or a step names a rank that
    /// does not exist, or a span of a step, input or output leaves its buffer. Port numbers of
    /// steps are not looked at here: [`Schedule::check`] and everything that times or runs the
    /// schedule refuse a port that its rank does not have.
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
        let malformed = |error: Error| Error::malformed(error.to_string());
        ports.validate().map_err(malformed)?;
        if layout.len() != p {
            return Err(Error::malformed(format!(
                "{} layouts for {p} programs",
                layout.len()
            )));
        }
        collective.fits_ranks(p)?;
        let schedule = Schedule {
            name: None,
            ports,
            collective,
            layout,
            programs,
            shared_ports: Vec::new(),
            element_bytes: 1,
        };
        schedule.in_bounds()?;
        Ok(schedule)
    }

    /// What the schedule is called in tables and pictures: the algorithm that planned it, or a name
    /// of its own.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The same schedule with another name: see [`Schedule::name`]. It says nothing of what the
    /// schedule does, so schedules of different names may be equal.
    ///
    /// ```
    /// let mut b = oneport::Schedule::broadcast(2, 4);
    /// b.transfer(0, 1, 0..4);
    /// let schedule = b.build()?.with_name("three-phase")?;
    /// assert!(schedule.to_json().starts_with(r#"{ "name": "three-phase", "ranks": 2"#));
    /// # Ok::<(), oneport::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] if the name is empty, has more than 100 characters, begins or ends with
    /// a blank, or has a control character: it stands in one cell of a table.
    pub fn with_name(mut self, name: impl Into<String>) -> Result<Schedule> {
        let name = name.into();
        let wrong = if name.trim().is_empty() {
            "is empty"
        } else if name.chars().count() > MAX_NAME {
            "has more than 100 characters"
        } else if name.trim() != name {
            "begins or ends with a blank"
        } else if name.contains(char::is_control) {
            "has a control character, such as a line break"
        } else {
            self.name = Some(name);
            return Ok(self);
        };
        Err(Error::usage(format!(
            "the schedule's name {name:?} {wrong}"
        )))
    }

    /// Number of ranks, at least 1.
    pub fn ranks(&self) -> usize {
        self.programs.len()
    }

    /// The port model of every rank.
    pub fn ports(&self) -> Ports {
        self.ports
    }

    /// The same schedule under another port model. [`Schedule::check`] tells whether its steps
    /// still have the ports that they name, and whether it still completes.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] if a rank would have no port, or more than 4096 of each kind.
    pub fn with_ports(mut self, ports: Ports) -> Result<Schedule> {
        ports.validate()?;
        self.ports = ports;
        Ok(self)
    }

    /// Bytes of an element in its model times, simulated or carried by a run: those of the request
    /// or the builder, else 1, so that times are per element. A [`Run`](crate::run::Run) refuses a
    /// schedule for elements of another size than its own, unless that is 1.
    pub fn element_bytes(&self) -> u64 {
        self.element_bytes
    }

    /// The same schedule with elements of `bytes` bytes: see [`Schedule::element_bytes`]. The JSON
    /// form does not keep it.
    #[must_use]
    pub fn with_element_bytes(mut self, bytes: u64) -> Schedule {
        self.element_bytes = bytes;
        self
    }

    /// The same schedule for data `factor` times as long: each element becomes `factor` neighbours.
    /// It is right where this one is.
    ///
    /// Linear in the number of ranks, steps and spans.
    ///
    /// ```
    /// let schedule = oneport::Request::broadcast(4, 10).plan("chain")?;
    /// assert_eq!(schedule.scaled(3)?.layout()[0].len, 30);
    /// # Ok::<(), oneport::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] if a buffer has more elements than can be numbered.
    pub fn scaled(mut self, factor: usize) -> Result<Schedule> {
        let steps = self.programs.iter_mut().flatten();
        let of_steps = steps.flat_map(Step::spans_mut);
        let layouts = self.layout.iter_mut();
        for layout in layouts {
            let len = layout.len.checked_mul(factor);
            layout.len = len.ok_or_else(|| {
                Error::usage(format!(
                    "{} elements times {factor} are too many",
                    layout.len
                ))
            })?;
            scale(&mut layout.input, factor);
            scale(&mut layout.output, factor);
        }
        of_steps.for_each(|spans| scale(spans, factor));
        Ok(self)
    }

    /// The collective that the schedule performs.
    pub fn collective(&self) -> &Collective {
        &self.collective
    }

    /// By rank: its buffer. One entry per rank.
    pub fn layout(&self) -> &[Layout] {
        &self.layout
    }

    /// By rank: its program. One entry per rank.
    pub fn programs(&self) -> &[Vec<Step>] {
        &self.programs
    }

    /// Every rank's program; drops the rest of the schedule.
    pub(crate) fn into_programs(self) -> Vec<Vec<Step>> {
        self.programs
    }

    /// Number of steps of all ranks together, in `O(p)` time.
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
                        "rank {rank}: {what} {}",
                        s.outside(layout.len)
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
                        "rank {rank}, step {i} ({}): {}",
                        step.name(),
                        s.outside(layout.len)
                    )));
                }
            }
        }
        Ok(())
    }
}
