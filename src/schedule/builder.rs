//! The builder of a schedule, for writing one by hand, step by step.

use super::{Layout, Order, Schedule, Spans, Step};
use crate::error::Result;
use crate::machine::Ports;
use crate::schedule::collective::Collective;

/// Builds a [`Schedule`] step by step.
///
/// ```
/// use oneport::{Collective, Ports, Schedule, Span};
/// let mut b = Schedule::builder(2, Ports::BI, Collective::Broadcast { root: 0 });
/// b.layout(0, 4, [Span::new(0, 4)], [Span::new(0, 4)]);
/// b.layout(1, 4, [], [Span::new(0, 4)]);
/// b.transfer(0, 1, Span::new(0, 4));
/// let schedule = b.build()?;
/// assert_eq!(schedule.steps(), 2);
/// # Ok::<(), oneport::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Builder {
    ports: Ports,
    collective: Collective,
    layout: Vec<Layout>,
    programs: Vec<Vec<Step>>,
}

impl Builder {
    pub(super) fn new(ranks: usize, ports: Ports, collective: Collective) -> Self {
        Builder {
            ports,
            collective,
            layout: vec![Layout::default(); ranks],
            programs: vec![Vec::new(); ranks],
        }
    }

    /// Sets the buffer of `rank`: its length, the spans of its input and the spans of its output.
    ///
    /// # Panics
    /// This and the other methods panic when `rank` is not one of the schedule's ranks.
    pub fn layout(
        &mut self,
        rank: usize,
        len: usize,
        input: impl IntoIterator<Item = super::Span>,
        output: impl IntoIterator<Item = super::Span>,
    ) -> &mut Self {
        self.layout[rank] = Layout {
            len,
            input: input.into_iter().collect(),
            output: output.into_iter().collect(),
        };
        self
    }

    /// Appends a step to the program of `rank`.
    pub fn step(&mut self, rank: usize, step: Step) -> &mut Self {
        self.programs[rank].push(step);
        self
    }

    /// Appends a send at `from` and a receive at `to`, over the same spans on both sides.
    pub fn transfer(&mut self, from: usize, to: usize, spans: impl Into<Spans>) -> &mut Self {
        let spans = spans.into();
        self.step(from, Step::send(to, spans.clone()))
            .step(to, Step::recv(from, spans))
    }

    /// Appends a send at `from` and a combining receive at `to`, over the same spans on both sides.
    pub fn transfer_combine(
        &mut self,
        from: usize,
        to: usize,
        spans: impl Into<Spans>,
        order: Order,
    ) -> &mut Self {
        let spans = spans.into();
        self.step(from, Step::send(to, spans.clone()))
            .step(to, Step::recv_combine(from, spans, order))
    }

    /// Builds the schedule.
    ///
    /// # Errors
    /// As [`Schedule::new`].
    pub fn build(self) -> Result<Schedule> {
        Schedule::new(self.ports, self.collective, self.layout, self.programs)
    }
}
