//! The collective calls of programs that use MPI by themselves: each process performs its rank's
//! part of a schedule, by the executors that run schedules.
//!
//! A [`Group`] is a private duplicate of a communicator of the program, so its messages never meet
//! the program's. Nothing is timed, verified or agreed on: whoever calls sees to it that all
//! processes of the group perform the same schedules in the same order. A failure ends the job with
//! one line, as it does in a run.

use std::cell::RefCell;
use std::fmt;
use std::time::Duration;

use super::binding::{Communicator, Messages, Mpi, Requests};
pub use super::binding::{Datatype, Intracommunicator};
use super::cores::Cores;
pub use super::ends::originals;
use super::ends::{ends, open_early};
use super::idle::Idle;
use super::process::run_rank;
use super::scope::run_body;
use super::world::cores;
use crate::error::{Error, Result};
use crate::machine::CostModel;
use crate::run::engine::{
    AheadExecutor, Buffer, Combiner, Copying, ElementSpec, Opaque, Program, RunAhead, RunContext,
    RunOptions, combine_memory,
};
use crate::run::{Clock, Element, ElementType, Endpoint, Op, Operator, PortModel, ScopeOptions};
use crate::schedule::{Layout, Schedule, Span};

/// The MPI library of this process, which the program has loaded and initialized.
#[derive(Debug, Clone, Copy)]
pub struct Library(&'static Mpi);

/// The processes of a communicator of the program.
#[derive(Debug)]
pub struct Group {
    all: Communicator,
    max_tag: std::ffi::c_int,
    /// Whether the processes of this host outnumber the cores that they may use.
    crowded: bool,
    deadline: Duration,
    /// By which steps are ordered: nothing is timed.
    cost: CostModel,
}

/// Combines the elements of the second slice into those of the first.
pub type Combine = dyn Fn(&mut [u8], &[u8]) + Send + Sync;
/// As [`Combine`], or false: nothing is combined.
pub type Kernel = dyn Fn(&mut [u8], &[u8]) -> bool + Send + Sync;

/// How elements of a datatype are combined by one of the standard's operators.
pub enum Reduction {
    /// As the library does it, to the last bit; false where elements are not aligned.
    Own(Box<Kernel>),
    /// By the library.
    Library,
    /// Not at all: the library refuses it.
    Refused,
}

impl fmt::Debug for Reduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reduction::Own(_) => "Own",
            Reduction::Library => "Library",
            Reduction::Refused => "Refused",
        })
    }
}

/// What moves in a schedule.
pub enum Moved {
    /// Bytes: an element is one. Nothing is combined.
    Bytes,
    /// Elements of a datatype of the program, each of so many bytes in memory, and what combines
    /// them; it commutes.
    Elements(Datatype, usize, Box<Combine>),
}

impl fmt::Debug for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Moved").finish_non_exhaustive()
    }
}

/// The part of this process in a schedule, prepared for any number of calls.
pub struct Part<'s> {
    schedule: &'s Schedule,
    layout: &'s Layout,
    combine: Box<Combine>,
    program: Program<'s>,
    ahead: RunAhead,
    requests: RefCell<Requests>,
    element_bytes: usize,
    /// The element of the buffer at which the input starts.
    start: usize,
    /// What has to be in the buffer of an input that is apart: for steps, and for the output, too.
    copied: [Vec<Span>; 2],
}

impl Part<'_> {
    /// The buffer of this rank.
    pub fn layout(&self) -> &Layout {
        self.layout
    }
}

impl fmt::Debug for Part<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part").finish_non_exhaustive()
    }
}

/// The costs by which the steps of calls are ordered. Were everything free, all times would be
/// equal, and of two ranks that exchange messages one would receive before it sends.
pub fn order() -> CostModel {
    RunOptions::default().cost
}

impl Library {
    /// The library in the file at `path`.
    ///
    /// # Errors
    /// When it is not loaded, or lacks a function.
    pub fn at(path: &str) -> Result<Library> {
        Mpi::at(path).map(Library)
    }

    /// The name of its binary interface: `MPICH`, `Open MPI` or `MPI 5.0`.
    pub fn interface(&self) -> String {
        self.0.interface()
    }

    /// How an operator of this handle combines elements of a datatype.
    ///
    /// The results are the library's own to the last bit: sums and products of floats are IEEE's,
    /// but of two values of which one is NaN, libraries differ in which is the smaller one.
    pub fn reduction(&self, datatype: usize, operator: usize) -> Reduction {
        let Some(op) = self.0.op(operator) else {
            return Reduction::Refused;
        };
        let Some(element) = self.0.element_type(datatype) else {
            return Reduction::Library;
        };
        crate::with_element_type!(element, T => {
            let Ok(operator) = Operator::<T>::try_from(op) else {
                return Reduction::Refused;
            };
            let is_float =
                element.significand_bits().is_some() || element == ElementType::F32I32;
            if is_float && !matches!(op, Op::SUM | Op::PROD) {
                return Reduction::Library;
            }
            Reduction::Own(Box::new(move |acc, other| combine_memory(&operator, acc, other)))
        })
    }

    /// All processes of the launch.
    pub fn world(&self) -> Intracommunicator {
        self.0.all_processes()
    }

    /// The element type of this crate that a datatype has, if it is one of those.
    pub fn element_type(&self, datatype: usize) -> Option<ElementType> {
        self.0.element_type(datatype)
    }

    /// Prints one line and ends all processes.
    pub fn end_job(&self, error: &str) -> ! {
        self.0.end_job(error)
    }
}

impl Group {
    /// Duplicates `communicator`; all its processes call it. A wait of a call may last for
    /// `deadline`.
    ///
    /// # Errors
    /// When the library refuses.
    pub fn of(
        library: Library,
        communicator: Intracommunicator,
        deadline: Duration,
    ) -> Result<Group> {
        let mut all = Communicator::duplicate_of(library.0, communicator)?;
        let Cores { crowded, .. } = cores(&all.on_this_host()?)?;
        all.set_oversubscribed(crowded);
        all.set_deadline(deadline);
        Ok(Group {
            max_tag: all.max_tag()?,
            crowded,
            deadline,
            cost: order(),
            all,
        })
    }

    /// The rank of this process.
    pub fn rank(&self) -> usize {
        self.all.rank()
    }

    /// The number of processes.
    pub fn size(&self) -> usize {
        self.all.size()
    }

    /// Whether the library combines elements of a datatype by an operator. All processes call it.
    pub fn reduces(&self, datatype: usize, operator: usize) -> bool {
        self.all.reduces(datatype, operator)
    }

    /// The values of all processes, by rank.
    ///
    /// # Errors
    /// When the library refuses.
    pub fn gather(&self, value: u64) -> Result<Vec<u64>> {
        self.all.gather_to_all(&[value])
    }

    /// Prepares the part of this process in a schedule, which has to be right: `check` has proved
    /// it, or a planner has made it. No other process takes part in that.
    ///
    /// Takes time and memory in proportion to the steps of all ranks.
    ///
    /// # Errors
    /// When the schedule is not for so many ranks, needs ports that wait for their partners, or has
    /// a message of more elements than MPI counts.
    pub fn part<'s>(&self, schedule: &'s Schedule, moved: Moved) -> Result<Part<'s>> {
        let rank = self.rank();
        if schedule.ranks() != self.size() {
            return Err(Error::usage(format!(
                "a schedule of {} ranks for {} processes",
                schedule.ranks(),
                self.size()
            )));
        }
        let program = Program::new(schedule, false)?.without_grants();
        let simulation = schedule.simulate(&self.cost)?;
        let early =
            |sequence: &mut _| open_early(sequence, &schedule.programs()[rank], &simulation, rank);
        let ahead = RunAhead::of_rank(rank, &program, &simulation, schedule.ports(), early);
        let ahead = ahead.ok_or_else(|| Error::usage("a schedule whose senders have to wait"))?;
        let sequence = Some(ahead.sequence(rank));
        let (mut ends, scratch) = ends(schedule, rank, sequence, self.max_tag)?;
        let (steps, layout) = (&schedule.programs()[rank], &schedule.layout()[rank]);
        let (original, [for_steps, for_output]) = originals(steps, ahead.sequence(rank), layout);
        for (end, original) in ends.iter_mut().zip(original) {
            end.original = original;
        }
        let (requests, element_bytes, combine) = match moved {
            Moved::Bytes => {
                let element = ElementSpec::of::<u8>().own()?;
                let none: Box<Combine> = Box::new(|_, _| {});
                (self.all.requests(ends, scratch, element), 1, none)
            }
            Moved::Elements(datatype, bytes, combine) => {
                let requests = self.all.requests_of(ends, scratch, datatype, bytes);
                (requests, bytes, combine)
            }
        };
        Ok(Part {
            schedule,
            layout,
            combine,
            program,
            ahead,
            requests: RefCell::new(requests),
            element_bytes,
            start: layout.input.first().map_or(0, |span| span.offset),
            copied: [for_steps.clone(), [for_steps, for_output].concat()],
        })
    }

    /// Performs a part on the buffer of this rank, which has at least the bytes of its layout.
    ///
    /// The input is in the buffer or apart, one element after another: then only what steps need
    /// there is copied to the buffer, and what is part of the output if that `is_taken`.
    ///
    /// # Panics
    /// When the buffer or the input is too short, or an input that is apart has several spans.
    pub fn perform(
        &self,
        part: &Part<'_>,
        buffer: &mut [u8],
        (input, is_taken): (Option<&[u8]>, bool),
    ) {
        let (rank, bytes, layout) = (self.rank(), part.element_bytes, part.layout);
        let buffer = &mut buffer[..layout.len * bytes];
        let input = input.map(|input| {
            assert!(layout.input.len() <= 1, "an input in one piece");
            (input, part.start)
        });
        if let Some((input, start)) = input {
            for span in &part.copied[usize::from(is_taken)] {
                let from = &input[(span.offset - start) * bytes..(span.end() - start) * bytes];
                buffer[span.offset * bytes..span.end() * bytes].copy_from_slice(from);
            }
        }
        let buffer = Buffer::opaque(buffer, layout.len, bytes);
        let combine = &*part.combine;
        let operator = Opaque { bytes, combine };
        let context = RunContext::new(
            Combiner::opaque(&operator),
            &self.cost,
            part.schedule.ports(),
            Clock::Native,
            self.deadline,
            Copying::PLAIN,
        );
        let mut messages = Messages::new(buffer, part.requests.borrow_mut(), &self.all, input);
        let mut executor = AheadExecutor::new(rank, &part.ahead, &part.program, &context);
        let idle = Idle::new(self.crowded, self.deadline);
        let steps = part.program.ranks[rank].steps;
        run_rank(&self.all, steps, &mut executor, &mut messages, idle);
    }

    /// Runs `body` as the program of this process's rank, with an endpoint on its `buffer`.
    ///
    /// # Errors
    /// When the element type is not one of this crate.
    pub fn scope<T: Element, P: PortModel, R>(
        &self,
        buffer: &mut [T],
        body: impl FnOnce(&mut Endpoint<'_, T, P>) -> Result<R>,
    ) -> Result<R> {
        let element = ElementSpec::of::<T>().own()?;
        let options = ScopeOptions {
            deadline: self.deadline,
            ..ScopeOptions::default()
        };
        let (result, ..) = run_body(&self.all, self.crowded, element, buffer, &options, body);
        Ok(result)
    }
}
