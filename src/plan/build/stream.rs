//! Schedules that are generated instead of stored: a step follows from its rank and its slot in
//! that rank's program.
//!
//! A planner whose rounds have a closed form implements [`StepAt`]. [`streamed`] turns that into a
//! [`ScheduleSource`]; [`Reversed`] and [`Consecutive`] combine such planners into new ones. A
//! generated schedule has the same steps whether it is simulated as it is generated or stored
//! first.

use crate::machine::Ports;
use crate::plan::Request;
use crate::schedule::collective::{Collective, Kind};
use crate::schedule::{DynScheduleSource, Layout, ScheduleSource, Step, reversed_step};

/// The steps of a schedule, any of which can be computed on its own, in any order.
pub(crate) trait StepAt {
    fn layout_of(&self, rank: usize) -> Layout;

    fn buffer_len(&self, rank: usize) -> usize {
        self.layout_of(rank).len
    }

    fn is_uniform(&self) -> bool {
        false
    }

    /// Number of slots in a rank's program. A slot holds at most one step.
    fn slots(&self, rank: usize) -> usize;

    /// The step of `rank` at `slot`; `None` if the rank does nothing there.
    fn step_at(&self, rank: usize, slot: usize) -> Option<Step>;
}

/// A [`ScheduleSource`] of steps that are computed one by one.
#[derive(Debug, Clone)]
struct Stream<S> {
    ranks: usize,
    ports: Ports,
    collective: Collective,
    steps: S,
}

/// The schedule of these steps for `collective` among the request's ranks.
pub(crate) fn streamed<S: StepAt + 'static>(
    request: &Request,
    collective: Collective,
    steps: S,
) -> Box<dyn DynScheduleSource> {
    Box::new(Stream {
        ranks: request.ranks,
        ports: request.ports,
        collective,
        steps,
    })
}

pub(in crate::plan) fn reduction_of<S: StepAt + 'static>(
    request: &Request,
    plan: fn(&Request) -> S,
) -> Box<dyn DynScheduleSource> {
    let root = request.root;
    streamed(request, Collective::Reduce { root }, plan(request))
}

/// The broadcast that is a reduction backwards. It has nothing to combine, so `plan` gets a request
/// with free computation and without operand order.
pub(in crate::plan) fn broadcast_of<S: StepAt + 'static>(
    request: &Request,
    plan: fn(&Request) -> S,
) -> Box<dyn DynScheduleSource> {
    let root = request.root;
    let open = request.without_computation().keep_order(false);
    streamed(
        request,
        Collective::Broadcast { root },
        Reversed(plan(&open)),
    )
}

/// The allreduce made of a reduction to rank 0 and a reversed reduction. The second is planned
/// without computation, because another tree may then be better. Equal segments are sent from the
/// first to the last in both. Others are sent back from the last to the first: both parts cut the
/// vector in the same places, and the time of unequal segments depends on their order.
pub(in crate::plan) fn allreduce_of<S: StepAt + 'static>(
    request: &Request,
    [first, second]: [fn(&Request) -> S; 2],
) -> Box<dyn DynScheduleSource> {
    let request = request.clone().root(0);
    let mut back = request.without_computation();
    let sizes = back.segments.sizes();
    if sizes.len() > 1 && sizes.iter().all(|size| *size == sizes[0]) {
        back.kind = Kind::Broadcast;
    }
    let steps = Consecutive {
        first: first(&request),
        second: Reversed(second(&back)),
    };
    streamed(&request, Collective::Allreduce, steps)
}

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
        self.ranks
    }

    fn ports(&self) -> Ports {
        self.ports
    }

    fn collective(&self) -> Collective {
        self.collective.clone()
    }

    fn layout_of(&self, rank: usize) -> Layout {
        self.steps.layout_of(rank)
    }

    fn buffer_len(&self, rank: usize) -> usize {
        self.steps.buffer_len(rank)
    }

    fn is_uniform(&self) -> bool {
        self.steps.is_uniform()
    }

    fn program_of(&self, rank: usize) -> Steps<'_, S> {
        Steps {
            source: &self.steps,
            rank,
            slot: 0,
            end: self.steps.slots(rank),
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

/// A reduction run backwards, as by [`Schedule::reversed`](crate::Schedule::reversed): a broadcast.
#[derive(Debug, Clone)]
pub(crate) struct Reversed<S>(pub(crate) S);

impl<S: StepAt> StepAt for Reversed<S> {
    fn layout_of(&self, rank: usize) -> Layout {
        let Layout { len, input, output } = self.0.layout_of(rank);
        Layout {
            len,
            input: output,
            output: input,
        }
    }

    fn slots(&self, rank: usize) -> usize {
        self.0.slots(rank)
    }

    #[inline]
    fn step_at(&self, rank: usize, slot: usize) -> Option<Step> {
        let slot = self.0.slots(rank) - 1 - slot;
        let step = self.0.step_at(rank, slot)?;
        Some(reversed_step(rank, step, false))
    }
}

/// Two schedules one after the other over the same buffers. Input spans are those of the first,
/// output spans those of the second.
#[derive(Debug, Clone)]
pub(crate) struct Consecutive<A, B> {
    pub(crate) first: A,
    pub(crate) second: B,
}

impl<A: StepAt, B: StepAt> StepAt for Consecutive<A, B> {
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
