//! Schedules that are generated instead of stored: a step follows from its rank and its slot in
//! that rank's program.
//!
//! A planner whose rounds have a closed form implements [`StepAt`]. [`Stream`] turns that into a
//! [`ScheduleSource`]; [`Reversed`] and [`Consecutive`] combine such planners into new ones. A
//! generated schedule has the same steps whether it is simulated as it is generated or stored
//! first.

use crate::error::{Error, Result};
use crate::machine::{CostModel, Ports};
use crate::schedule::collective::Collective;
use crate::schedule::{Layout, Schedule, ScheduleSource, Step, reversed_step};
use crate::simulate::{self, Timed};

/// A [`ScheduleSource`] as a trait object, so that the registry can hold planners of different
/// types.
pub trait DynScheduleSource {
    /// The collective that the schedule implements.
    fn collective(&self) -> Collective;

    /// The port model.
    fn ports(&self) -> Ports;

    /// The buffers of all ranks, in rank order; lengths in elements.
    fn layouts(&self) -> Box<dyn Iterator<Item = Layout> + '_>;

    /// Whether this holds for a transfer of a rank: for whether it is a send, and its port.
    fn any_transfer(&self, holds: &dyn Fn(bool, usize) -> bool) -> bool;

    /// Simulates the schedule while generating it, as [`simulate::stream`]; `None` as soon as the
    /// time turns out to be larger than `limit`.
    ///
    /// # Errors
    /// As [`simulate::stream`].
    fn timed_within(
        &self,
        cost: &CostModel,
        element_bytes: u64,
        limit: f64,
        watch: &mut dyn FnMut(u64),
    ) -> Result<Option<Timed>>;

    /// Stores all steps as a schedule.
    ///
    /// # Errors
    /// As [`ScheduleSource::materialize`], which it calls.
    fn materialize(&self) -> Result<Schedule>;
}

impl<P: ScheduleSource> DynScheduleSource for P {
    fn collective(&self) -> Collective {
        ScheduleSource::collective(self)
    }

    fn ports(&self) -> Ports {
        ScheduleSource::ports(self)
    }

    fn layouts(&self) -> Box<dyn Iterator<Item = Layout> + '_> {
        Box::new((0..self.ranks()).map(|rank| self.layout_of(rank)))
    }

    fn any_transfer(&self, holds: &dyn Fn(bool, usize) -> bool) -> bool {
        let mut steps = (0..self.ranks()).flat_map(|rank| self.program_of(rank));
        steps.any(|step| step.port().is_some_and(|port| holds(step.is_send(), port)))
    }

    fn timed_within(
        &self,
        cost: &CostModel,
        element_bytes: u64,
        limit: f64,
        watch: &mut dyn FnMut(u64),
    ) -> Result<Option<Timed>> {
        simulate::stream_within(self, cost, element_bytes, limit, watch)
    }

    fn materialize(&self) -> Result<Schedule> {
        ScheduleSource::materialize(self)
    }
}

/// A schedule any of whose steps can be computed on its own, in any order.
pub(crate) trait StepAt {
    fn ranks(&self) -> usize;

    fn ports(&self) -> Ports;

    fn collective(&self) -> Collective;

    fn layout_of(&self, rank: usize) -> Layout;

    /// The length of a rank's buffer.
    fn buffer_len(&self, rank: usize) -> usize {
        self.layout_of(rank).len
    }

    /// As [`ScheduleSource::is_uniform`].
    fn is_uniform(&self) -> bool {
        false
    }

    /// Number of slots in a rank's program. A slot holds at most one step.
    fn slots(&self, rank: usize) -> usize;

    /// The step of `rank` at `slot`; `None` if the rank does nothing there.
    fn step_at(&self, rank: usize, slot: usize) -> Option<Step>;
}

/// Turns a [`StepAt`] into a [`ScheduleSource`].
#[derive(Debug, Clone)]
pub(crate) struct Stream<S>(pub(crate) S);

impl<S: StepAt> Stream<S> {
    /// As [`ScheduleSource::materialize`].
    pub(crate) fn materialize(&self) -> Result<Schedule> {
        ScheduleSource::materialize(self)
    }
}

/// Iterator over the steps of one rank.
#[derive(Debug, Clone)]
pub(crate) struct Steps<'a, S> {
    source: &'a S,
    rank: usize,
    slot: usize,
    end: usize,
}

impl<S: StepAt> ScheduleSource for Stream<S> {
    type Program<'a>
        = Steps<'a, S>
    where
        S: 'a;

    fn ranks(&self) -> usize {
        self.0.ranks()
    }

    fn ports(&self) -> Ports {
        self.0.ports()
    }

    fn collective(&self) -> Collective {
        self.0.collective()
    }

    fn layout_of(&self, rank: usize) -> Layout {
        self.0.layout_of(rank)
    }

    fn buffer_len(&self, rank: usize) -> usize {
        self.0.buffer_len(rank)
    }

    fn is_uniform(&self) -> bool {
        self.0.is_uniform()
    }

    fn program_of(&self, rank: usize) -> Steps<'_, S> {
        Steps {
            source: &self.0,
            rank,
            slot: 0,
            end: self.0.slots(rank),
        }
    }
}

impl<S: StepAt> Iterator for Steps<'_, S> {
    type Item = Step;

    #[inline]
    fn next(&mut self) -> Option<Step> {
        while self.slot < self.end {
            let step = self.source.step_at(self.rank, self.slot);
            self.slot += 1;
            if step.is_some() {
                return step;
            }
        }
        None
    }
}

/// A schedule run backwards, as by [`Schedule::reversed`].
#[derive(Debug, Clone)]
pub(crate) struct Reversed<S> {
    forwards: S,
    collective: Collective,
}

impl<S: StepAt> Reversed<S> {
    /// Reverses `forwards`.
    ///
    /// # Errors
    /// When the collective has no reverse.
    pub(crate) fn new(forwards: S) -> Result<Reversed<S>> {
        let collective = forwards.collective().reversed().ok_or_else(|| {
            let kind = forwards.collective().kind().name();
            Error::usage(format!("a schedule for {kind} has no reverse"))
        })?;
        Ok(Reversed {
            forwards,
            collective,
        })
    }
}

impl<S: StepAt> StepAt for Reversed<S> {
    fn ranks(&self) -> usize {
        self.forwards.ranks()
    }

    fn ports(&self) -> Ports {
        self.forwards.ports()
    }

    fn collective(&self) -> Collective {
        self.collective.clone()
    }

    fn layout_of(&self, rank: usize) -> Layout {
        let Layout { len, input, output } = self.forwards.layout_of(rank);
        Layout {
            len,
            input: output,
            output: input,
        }
    }

    fn slots(&self, rank: usize) -> usize {
        self.forwards.slots(rank)
    }

    #[inline]
    fn step_at(&self, rank: usize, slot: usize) -> Option<Step> {
        let slot = self.forwards.slots(rank) - 1 - slot;
        let step = self.forwards.step_at(rank, slot)?;
        Some(reversed_step(rank, step, self.collective.kind().reduces()))
    }
}

/// Two schedules one after the other over the same buffers. Input spans are those of the first,
/// output spans those of the second.
#[derive(Debug, Clone)]
pub(crate) struct Consecutive<A, B> {
    pub(crate) first: A,
    pub(crate) second: B,
    /// The collective that both together implement.
    pub(crate) collective: Collective,
}

impl<A: StepAt, B: StepAt> StepAt for Consecutive<A, B> {
    fn ranks(&self) -> usize {
        self.first.ranks()
    }

    fn ports(&self) -> Ports {
        self.first.ports()
    }

    fn collective(&self) -> Collective {
        self.collective.clone()
    }

    fn layout_of(&self, rank: usize) -> Layout {
        let (first, second) = (self.first.layout_of(rank), self.second.layout_of(rank));
        Layout {
            len: first.len.max(second.len),
            input: first.input,
            output: second.output,
        }
    }

    fn is_uniform(&self) -> bool {
        self.first.is_uniform() && self.second.is_uniform()
    }

    fn slots(&self, rank: usize) -> usize {
        self.first.slots(rank) + self.second.slots(rank)
    }

    #[inline]
    fn step_at(&self, rank: usize, slot: usize) -> Option<Step> {
        match slot.checked_sub(self.first.slots(rank)) {
            None => self.first.step_at(rank, slot),
            Some(slot) => self.second.step_at(rank, slot),
        }
    }
}
