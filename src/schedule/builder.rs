//! The builder of a schedule, for writing one by hand, step by step.

use super::{Layout, Order, Schedule, Span, Spans, Step};
use crate::error::{Error, Result};
use crate::machine::Ports;
use crate::schedule::collective::Collective;

/// Builds a [`Schedule`] step by step.
///
/// Constructors such as [`Schedule::broadcast`] lay the buffers out, with root 0 and bidirectional
/// one-ported ranks. [`Schedule::builder`] leaves the buffers to [`Builder::layout`]. Each method
/// appends to the programs, so the order of the calls is the order of the steps of each rank:
/// within a round, sends before receives.
///
/// # Errors
/// No method fails but [`Builder::build`], which returns the first mistake: of a rank that the
/// schedule does not have as soon as a method is given it, and otherwise as [`Schedule::new`].
///
/// # Example
/// ```
/// use oneport::Schedule;
/// let mut b = Schedule::broadcast(3, 4);
/// b.transfer(0, 1, 0..4);
/// b.transfer(1, 2, 0..4);
/// assert!(b.build()?.check().is_correct());
/// # Ok::<(), oneport::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Builder {
    ports: Ports,
    collective: Collective,
    layout: Vec<Layout>,
    programs: Vec<Vec<Step>>,
    /// Of a vector or a block, if the buffers are laid out.
    elements: Option<usize>,
    element_bytes: u64,
    /// The first mistake.
    error: Option<Error>,
}

macro_rules! constructors {
    ($($name:ident $collective:expr, $buffers:literal;)*) => {
        /// One's own schedule of a collective, with buffers laid out.
        impl Schedule {
            $(
                #[doc = concat!("Starts ", stringify!($name), " over `ranks` ranks: ", $buffers)]
                ///
                /// `O(ranks)` time and memory, whatever the number of elements.
                pub fn $name(ranks: usize, elements: usize) -> Builder {
                    Builder::laid_out(ranks, $collective, elements)
                }
            )*
        }
    };
}

constructors! {
    broadcast Collective::Broadcast { root: 0 },
        "every rank has a buffer of `elements` elements, the vector. It is the input of root 0 and \
        the output of every rank.";
    reduce Collective::Reduce { root: 0 },
        "every rank has a buffer of `elements` elements, the vector. It is the input of every rank \
        and the output of root 0.";
    allreduce Collective::Allreduce,
        "every rank has a buffer of `elements` elements, the vector. It is input and output of \
        every rank.";
    scan Collective::Scan,
        "every rank has a buffer of `elements` elements, the vector. It is input and output of \
        every rank.";
    exscan Collective::Exscan,
        "every rank has a buffer of a vector of `elements` elements, its input, and, but for rank \
        0, behind it another one, its output.";
    gather Collective::Gather { root: 0 },
        "every rank has a buffer of `ranks` blocks of `elements` elements, in rank order. Its own \
        block is its input, and all blocks are the output of root 0.";
    scatter Collective::Scatter { root: 0 },
        "every rank has a buffer of `ranks` blocks of `elements` elements, in rank order. All \
        blocks are the input of root 0, and its own block is the output of every rank.";
    allgather Collective::Allgather,
        "every rank has a buffer of `ranks` blocks of `elements` elements, in rank order. Its own \
        block is its input, and all blocks are its output.";
    reduce_scatter Collective::ReduceScatter,
        "every rank has a buffer of `elements` elements, the vector, which is its input. Its own \
        block is its output: the vector is split evenly, in rank order, longer blocks first.";
    alltoall Collective::Alltoall,
        "every rank has a buffer of `ranks` blocks of `elements` elements that it sends, in rank \
        order: its input. Behind them are as many that it receives: its output.";
}

impl Schedule {
    /// Starts barrier over `ranks` ranks: every rank has a buffer of `ranks` tokens, in rank order.
    /// Its own token is its input, and all tokens are its output.
    ///
    /// `O(ranks)` time and memory.
    pub fn barrier(ranks: usize) -> Builder {
        Builder::laid_out(ranks, Collective::Barrier, 1)
    }
}

impl Builder {
    pub(super) fn new(ranks: usize, ports: Ports, collective: Collective) -> Self {
        Builder {
            ports,
            collective,
            layout: vec![Layout::default(); ranks],
            programs: vec![Vec::new(); ranks],
            elements: None,
            element_bytes: 1,
            error: None,
        }
    }

    /// Whether the schedule has this rank, which `what` is for; if not, that is an error of
    /// [`Builder::build`].
    fn has(&mut self, rank: usize, what: impl FnOnce() -> String) -> bool {
        let ranks = self.programs.len();
        if rank >= ranks && self.error.is_none() {
            let what = what();
            self.error = Some(Error::malformed(format!(
                "{what}: rank {rank} is not one of {ranks} ranks (numbered from 0)"
            )));
        }
        rank < ranks
    }

    /// Starts a schedule of any collective, with buffers laid out as by [`Schedule::broadcast`] and
    /// its like: `elements` is the length of the vector, or of one rank's block.
    pub fn laid_out(ranks: usize, collective: Collective, elements: usize) -> Self {
        let mut builder = Builder::new(ranks, Ports::BI, collective);
        builder.elements = Some(elements);
        builder.lay_out();
        builder
    }

    /// Lays the buffers out: see the constructors.
    fn lay_out(&mut self) {
        let Some(elements) = self.elements else {
            return;
        };
        let (ranks, kind) = (self.layout.len(), self.collective.kind());
        let of_blocks = kind.is_sized_by_block() || !kind.has_data();
        let len = if of_blocks {
            elements.saturating_mul(ranks)
        } else {
            elements
        };
        for (rank, layout) in self.layout.iter_mut().enumerate() {
            let block = if of_blocks {
                Span::new(rank.saturating_mul(elements), elements)
            } else {
                Span::share(elements, ranks, rank)
            };
            *layout = self.collective.layout(rank, len, Span::new(0, len), block);
            if !kind.row().is_in_place() && !layout.output.is_empty() {
                layout.output = Span::new(len, len).into();
                layout.len = len.saturating_mul(2);
            }
        }
    }

    /// Sets the root of a collective that has one; the others stay as they are. Buffers that a
    /// constructor laid out are laid out again for this root, in `O(ranks)` time, so call this
    /// before [`Builder::layout`]. A root that is not a rank is an error of [`Builder::build`].
    pub fn root(&mut self, rank: usize) -> &mut Self {
        self.collective = self.collective.rooted(rank);
        self.lay_out();
        self
    }

    /// Sets the port model of all ranks.
    pub fn ports(&mut self, ports: Ports) -> &mut Self {
        self.ports = ports;
        self
    }

    /// Sets the bytes of an element, for model times: see [`Schedule::element_bytes`].
    pub fn element_bytes(&mut self, bytes: u64) -> &mut Self {
        self.element_bytes = bytes;
        self
    }

    /// Sets the buffer of `rank`: its length in elements, the spans of its input and the spans of
    /// its output.
    pub fn layout(
        &mut self,
        rank: usize,
        len: usize,
        input: impl Into<Spans>,
        output: impl Into<Spans>,
    ) -> &mut Self {
        if self.has(rank, || "a layout".to_owned()) {
            self.layout[rank] = Layout {
                len,
                input: input.into(),
                output: output.into(),
            };
        }
        self
    }

    /// Sets the buffer of `rank`.
    pub(crate) fn lay_out_as(&mut self, rank: usize, layout: Layout) {
        self.layout[rank] = layout;
    }

    /// Sets the length of the buffer of `rank`.
    pub(crate) fn set_len(&mut self, rank: usize, elements: usize) {
        self.layout[rank].len = elements;
    }

    /// Appends a step to the program of `rank`.
    pub fn step(&mut self, rank: usize, step: Step) -> &mut Self {
        if self.has(rank, || format!("a step ({})", step.name())) {
            self.programs[rank].push(step);
        }
        self
    }

    /// Appends a send at `from` and a receive at `to`, over the same spans on both sides, through
    /// port 0.
    pub fn transfer(&mut self, from: usize, to: usize, spans: impl Into<Spans>) -> &mut Self {
        let spans = spans.into();
        self.pair(from, to, spans.clone(), Step::recv(from, spans))
    }

    /// Appends a send at `from` and a combining receive at `to`, over the same spans on both sides,
    /// through port 0. What `to` holds is the left operand with [`Order::MineFirst`].
    pub fn transfer_combine(
        &mut self,
        from: usize,
        to: usize,
        spans: impl Into<Spans>,
        order: Order,
    ) -> &mut Self {
        let spans = spans.into();
        let receive = Step::recv_combine(from, spans.clone(), order);
        self.pair(from, to, spans, receive)
    }

    /// Appends both sides of a transfer, if both ranks exist.
    fn pair(&mut self, from: usize, to: usize, spans: Spans, receive: Step) -> &mut Self {
        let what = || format!("a transfer from {from} to {to}");
        if self.has(from, what) && self.has(to, what) {
            self.step(from, Step::send(to, spans)).step(to, receive);
        }
        self
    }

    /// Builds the schedule by [`Schedule::new`]. Linear in the number of ranks, steps and spans.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`](crate::ErrorKind::Malformed): see [`Builder`].
    pub fn build(self) -> Result<Schedule> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let schedule = Schedule::new(self.ports, self.collective, self.layout, self.programs)?;
        Ok(schedule.with_element_bytes(self.element_bytes))
    }
}
