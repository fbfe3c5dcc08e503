//! Endpoints: what rank programs written by hand communicate through, with the port model in their
//! types.

use std::cell::{Ref, RefCell};
use std::marker::PhantomData;

use super::element::Element;
use super::link::ScopeBuffer;
use super::operator::Operator;
use super::rank::{Rank, SendEnd};
use crate::error::Result;
use crate::machine::Ports;
use crate::schedule::{Order, Spans, Step};

/// A port model, as a type: [`Unidirectional`] or [`Bidirectional`]. The trait is sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no port model",
    note = "choose `oneport::run::Unidirectional` or `oneport::run::Bidirectional`"
)]
pub trait PortModel: sealed::Sealed + Send + Sync + 'static {
    /// The port model as a value: one-ported.
    const PORTS: Ports;
}

/// One port for both directions: a rank sends or receives.
#[derive(Debug, Clone, Copy)]
pub struct Unidirectional;

/// One port out and one port in: a rank may send and receive at the same time.
#[derive(Debug, Clone, Copy)]
pub struct Bidirectional;

impl PortModel for Unidirectional {
    const PORTS: Ports = Ports::UNI;
}

impl PortModel for Bidirectional {
    const PORTS: Ports = Ports::BI;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Unidirectional {}
    impl Sealed for super::Bidirectional {}
}

/// One rank's access to its buffer and to all other ranks, in a program that
/// [`Team::scope`](super::Team::scope) runs on threads and `World::scope` on processes.
///
/// It works on spans of its rank's buffer, like the steps of a schedule: `0..4`, or several that
/// make one message, `[0..4, 8..9]`. So its operations can be recorded, and the record can be
/// checked, drawn and simulated like any schedule. Sends, receives, copies and combinations are
/// steps, numbered from 0 in the order of a rank's calls; errors name the step.
///
/// All transfers are synchronous: a send ends when the partner has received the message. A
/// unidirectional [`send`](Endpoint::send) returns at that time. A bidirectional one returns as
/// soon as its port is open, and later operations that need the port or write the span wait for it
/// (rules 1 and 2 of [`crate::rules`]), so a program that sends before it receives may exchange
/// messages. The model clock follows the same rules. Besides the bytes, an operation takes time
/// that is at worst linear in the number of parts of the buffer that earlier operations
/// distinguish.
///
/// # Port model
/// A unidirectional endpoint has one port. All operations that use it take `&mut self`, so while a
/// transfer is open, no other can be opened.
///
/// ```compile_fail,E0499
/// # use oneport::run::{Endpoint, Unidirectional};
/// fn two_at_once(e: &mut Endpoint<f32, Unidirectional>) -> oneport::Result<()> {
///     let open = e.open_send(1, 0..4)?;
///     e.recv(1, 4..8)?; // the port is open: does not compile
///     open.wait()
/// }
/// ```
///
/// A bidirectional endpoint splits into one port out and one port in. Both may be open at once, but
/// neither twice.
///
/// ```
/// # use oneport::run::{Endpoint, Bidirectional};
/// fn exchange(e: &mut Endpoint<f32, Bidirectional>) -> oneport::Result<()> {
///     let (mut out, mut into) = e.split();
///     let open = out.open_send(1, 0..4)?;
///     into.recv(1, 4..8)?;
///     open.wait()
/// }
/// ```
///
/// ```compile_fail,E0499
/// # use oneport::run::{Endpoint, Bidirectional};
/// fn twice(e: &mut Endpoint<f32, Bidirectional>) -> oneport::Result<()> {
///     let (mut out, _into) = e.split();
///     let first = out.open_send(1, 0..4)?;
///     let second = out.open_send(2, 4..8)?; // the port out is open: does not compile
///     first.wait()?;
///     second.wait()
/// }
/// ```
///
/// A unidirectional endpoint can neither exchange nor be split:
///
/// ```compile_fail,E0599
/// # use oneport::run::{Endpoint, Unidirectional};
/// fn exchange(e: &mut Endpoint<f32, Unidirectional>) -> oneport::Result<()> {
///     e.exchange(1, 0..4, 1, 4..8)
/// }
/// ```
///
/// # Errors
/// Some are found before anything happens, and the endpoint can still be used:
/// - [`Usage`]: the peer is not another of the ranks, a span leaves the buffer, or source and
///   destination of a local step overlap or differ in length.
/// - [`NoLink`]: the cost model has no link for the message.
/// - [`PortBusy`]: an [`OpenSend`] that was forgotten holds the port.
///
/// With the others the operation has failed, and all later ones return [`Wrong`]:
/// - [`Deadline`]: the partner did not come in time.
/// - [`PartnerLeft`]: the partner has finished its program and will not come.
/// - [`Length`]: the message has another length than the span of its receive. The sender gets
///   [`Wrong`].
/// - [`PortBusy`]: two unidirectional ranks send to each other.
/// - [`Panicked`]: the operator panicked on the sender, which helped to combine its message.
/// - [`Wrong`]: another rank has failed.
///
/// A program should return them: the run then ends with the first.
///
/// [`Usage`]: crate::ErrorKind::Usage
/// [`NoLink`]: crate::ErrorKind::NoLink
/// [`PortBusy`]: crate::ErrorKind::PortBusy
/// [`Deadline`]: crate::ErrorKind::Deadline
/// [`PartnerLeft`]: crate::ErrorKind::PartnerLeft
/// [`Length`]: crate::ErrorKind::Length
/// [`Panicked`]: crate::ErrorKind::Panicked
/// [`Wrong`]: crate::ErrorKind::Wrong
#[derive(Debug)]
pub struct Endpoint<'t, T: Element, P: PortModel = Bidirectional> {
    parts: Parts<'t>,
    operator: &'t Operator<T>,
    ports: PhantomData<P>,
}

/// What the ports of a split endpoint share. Sending only reads the memory, so a program may read
/// it at the same time.
#[derive(Debug)]
struct Parts<'t> {
    rank: RefCell<Rank<'t>>,
    memory: RefCell<ScopeBuffer<'t>>,
}

impl<'t> Parts<'t> {
    #[inline]
    fn both(&mut self) -> (&mut Rank<'t>, &mut ScopeBuffer<'t>) {
        (self.rank.get_mut(), self.memory.get_mut())
    }
}

/// The port out of a bidirectional endpoint: see [`Endpoint::split`].
#[derive(Debug)]
pub struct SendPort<'e, 't> {
    parts: &'e Parts<'t>,
}

/// The port in of a bidirectional endpoint: see [`Endpoint::split`].
#[derive(Debug)]
pub struct RecvPort<'e, 't, T: Element> {
    parts: &'e Parts<'t>,
    elements: PhantomData<T>,
}

/// An open send. It holds its port until it has been waited for; dropping it waits too. If the send
/// fails while it is dropped, the next operation of the endpoint returns
/// [`ErrorKind::Wrong`](crate::ErrorKind::Wrong).
#[must_use = "dropping an open send waits for it"]
#[derive(Debug)]
pub struct OpenSend<'p, 't> {
    parts: &'p Parts<'t>,
}

impl<'t, T: Element, P: PortModel> Endpoint<'t, T, P> {
    pub(super) fn new(rank: Rank<'t>, memory: ScopeBuffer<'t>, operator: &'t Operator<T>) -> Self {
        Endpoint {
            parts: Parts {
                rank: RefCell::new(rank),
                memory: RefCell::new(memory),
            },
            operator,
            ports: PhantomData,
        }
    }

    /// The number of this rank.
    pub fn rank(&self) -> usize {
        self.parts.rank.borrow().rank
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.parts.rank.borrow().ranks()
    }

    /// The rank's whole buffer.
    pub fn data(&mut self) -> &[T] {
        self.parts.memory.get_mut().data()
    }

    /// The rank's whole buffer, for writing. Waits for an open send first. What the program writes
    /// itself takes no model time and is not recorded. It fails, too, when the open send does.
    pub fn data_mut(&mut self) -> Result<&mut [T]> {
        let (rank, memory) = self.parts.both();
        rank.usable(None)?;
        rank.close_send(memory)?;
        Ok(memory.data_mut())
    }

    /// Sends `spans` to rank `to`. Waits for an earlier send first, and fails with it.
    #[inline]
    pub fn send(&mut self, to: usize, spans: impl Into<Spans>) -> Result<()> {
        let (rank, memory) = self.parts.both();
        rank.open_send(memory, to, spans.into(), SendEnd::Next)?;
        if P::PORTS.can_relay() {
            Ok(())
        } else {
            rank.close_and_hold(memory)
        }
    }

    /// Opens a send of `spans` to rank `to`, and returns without waiting for the partner. The port
    /// is free again after [`OpenSend::wait`]. To receive meanwhile, [split](Endpoint::split) a
    /// bidirectional endpoint.
    ///
    /// # Errors
    /// See [`Endpoint`].
    pub fn open_send(&mut self, to: usize, spans: impl Into<Spans>) -> Result<OpenSend<'_, 't>> {
        let (rank, memory) = self.parts.both();
        rank.open_send(memory, to, spans.into(), SendEnd::Handle)?;
        Ok(OpenSend { parts: &self.parts })
    }

    /// Receives from rank `from` into `spans`, whose length must be that of the message.
    ///
    /// # Errors
    /// See [`Endpoint`].
    #[inline]
    pub fn recv(&mut self, from: usize, spans: impl Into<Spans>) -> Result<()> {
        let (rank, memory) = self.parts.both();
        rank.recv(memory, from, spans.into(), None)
    }

    /// Receives from rank `from` and combines the message into `spans`, element by element, with
    /// the scope's operator. What they hold is the left operand with [`Order::MineFirst`].
    ///
    /// # Errors
    /// See [`Endpoint`].
    pub fn recv_combine(
        &mut self,
        from: usize,
        spans: impl Into<Spans>,
        order: Order,
    ) -> Result<()> {
        let (rank, memory) = self.parts.both();
        rank.recv(memory, from, spans.into(), Some(order))
    }

    /// Copies `src` to `dst`, which has the same length and no element in common with it.
    ///
    /// # Errors
    /// See [`Endpoint`].
    pub fn copy(&mut self, src: impl Into<Spans>, dst: impl Into<Spans>) -> Result<()> {
        let (rank, memory) = self.parts.both();
        rank.local(memory, src.into(), dst.into(), None)
    }

    /// Combines `src` into `dst`, element by element, with the scope's operator. They have the same
    /// length and no element in common; `dst` is the left operand with [`Order::MineFirst`].
    ///
    /// # Errors
    /// See [`Endpoint`].
    pub fn combine(
        &mut self,
        src: impl Into<Spans>,
        dst: impl Into<Spans>,
        order: Order,
    ) -> Result<()> {
        let (rank, memory) = self.parts.both();
        rank.local(memory, src.into(), dst.into(), Some(order))
    }

    /// Performs `step`, whose spans count from `offset` on.
    pub(crate) fn perform(&mut self, mut step: Step, offset: usize) -> Result<()> {
        for span in step.spans_mut().flat_map(|spans| spans.iter_mut()) {
            span.offset = span.offset.saturating_add(offset);
        }
        match step {
            Step::Send { to, spans, .. } => self.send(to, spans),
            Step::Recv { from, spans, .. } => self.recv(from, spans),
            Step::RecvCombine {
                from, spans, order, ..
            } => self.recv_combine(from, spans, order),
            Step::Copy { src, dst } => self.copy(src, dst),
            Step::Combine { src, dst, order } => self.combine(src, dst, order),
        }
    }

    /// Waits for an open send, and then for all ranks to call it. This is not a step: it takes no
    /// model time and is not recorded.
    ///
    /// # Errors
    /// See [`Endpoint`]; `peer` is a rank that has not arrived. If one has finished its program
    /// without arriving, [`ErrorKind::PartnerLeft`](crate::ErrorKind::PartnerLeft), at once.
    pub fn barrier(&mut self) -> Result<()> {
        let (rank, memory) = self.parts.both();
        rank.barrier(memory)
    }

    /// The model time, in the unit of the cost model, at which all operations of this rank so far
    /// are finished. Waits for an open send first.
    ///
    /// # Errors
    /// See [`Endpoint`].
    pub fn model_time(&mut self) -> Result<f64> {
        let (rank, memory) = self.parts.both();
        rank.usable(None)?;
        rank.close_send(memory)?;
        Ok(rank.clock.finish)
    }

    /// The scope's operator.
    pub fn operator(&self) -> &'t Operator<T> {
        self.operator
    }

    /// Ends the program. Returns the model time at which the rank finished, and its recorded steps.
    pub(super) fn finish(&mut self) -> Result<(f64, Option<Vec<Step>>)> {
        let (rank, memory) = self.parts.both();
        rank.finish(memory)
    }

    /// Whether it failed because another rank did.
    pub(super) fn follows(&self) -> bool {
        self.parts.rank.borrow().follows
    }

    /// The step that a panic was in.
    pub(super) fn step_in_progress(&self) -> usize {
        self.parts.rank.borrow().step_in_progress()
    }
}

impl<'t, T: Element> Endpoint<'t, T, Bidirectional> {
    /// Sends `outgoing` to rank `to` while receiving from rank `from` into `incoming`, and waits
    /// for both. The two spans should have no element in common: the receive then waits for the
    /// send (rule 2), and two ranks that do this to each other wait until the deadline.
    ///
    /// # Errors
    /// See [`Endpoint`].
    pub fn exchange(
        &mut self,
        to: usize,
        outgoing: impl Into<Spans>,
        from: usize,
        incoming: impl Into<Spans>,
    ) -> Result<()> {
        let (rank, memory) = self.parts.both();
        rank.open_send(memory, to, outgoing.into(), SendEnd::Next)?;
        rank.recv(memory, from, incoming.into(), None)?;
        rank.close_and_hold(memory)
    }

    /// The two ports, which may be open at the same time. Both work on the same buffer.
    pub fn split(&mut self) -> (SendPort<'_, 't>, RecvPort<'_, 't, T>) {
        let parts = &self.parts;
        let into = RecvPort {
            parts,
            elements: PhantomData,
        };
        (SendPort { parts }, into)
    }
}

impl<'t> SendPort<'_, 't> {
    /// As [`Endpoint::open_send`]; the other port can be used meanwhile.
    ///
    /// # Errors
    /// See [`Endpoint`].
    pub fn open_send(&mut self, to: usize, spans: impl Into<Spans>) -> Result<OpenSend<'_, 't>> {
        let Parts { rank, memory } = self.parts;
        rank.borrow_mut()
            .open_send(&memory.borrow(), to, spans.into(), SendEnd::Handle)?;
        Ok(OpenSend { parts: self.parts })
    }
}

impl<T: Element> RecvPort<'_, '_, T> {
    /// As [`Endpoint::recv`].
    ///
    /// # Errors
    /// See [`Endpoint`].
    pub fn recv(&mut self, from: usize, spans: impl Into<Spans>) -> Result<()> {
        let Parts { rank, memory } = self.parts;
        rank.borrow_mut()
            .recv(&mut memory.borrow_mut(), from, spans.into(), None)
    }

    /// As [`Endpoint::recv_combine`].
    ///
    /// # Errors
    /// See [`Endpoint`].
    pub fn recv_combine(
        &mut self,
        from: usize,
        spans: impl Into<Spans>,
        order: Order,
    ) -> Result<()> {
        let Parts { rank, memory } = self.parts;
        rank.borrow_mut()
            .recv(&mut memory.borrow_mut(), from, spans.into(), Some(order))
    }

    /// The rank's whole buffer. While it is borrowed, the other port may send, but this one cannot
    /// receive:
    ///
    /// ```
    /// # use oneport::run::{Endpoint, Bidirectional};
    /// fn both(e: &mut Endpoint<f32, Bidirectional>) -> oneport::Result<f32> {
    ///     let (mut out, into) = e.split();
    ///     let data = into.data();
    ///     out.open_send(1, 0..4)?.wait()?;
    ///     Ok(data[0])
    /// }
    /// ```
    ///
    /// ```compile_fail,E0502
    /// # use oneport::run::{Endpoint, Bidirectional};
    /// fn written_while_borrowed(e: &mut Endpoint<f32, Bidirectional>) -> oneport::Result<f32> {
    ///     let (_out, mut into) = e.split();
    ///     let data = into.data();
    ///     into.recv(1, 0..4)?; // would write what `data` shows: does not compile
    ///     Ok(data[0])
    /// }
    /// ```
    pub fn data(&self) -> Ref<'_, [T]> {
        Ref::map(self.parts.memory.borrow(), ScopeBuffer::data::<T>)
    }
}

impl OpenSend<'_, '_> {
    /// Waits until the partner has received the message, and frees the port.
    ///
    /// # Errors
    /// See [`Endpoint`].
    pub fn wait(self) -> Result<()> {
        let Parts { rank, memory } = self.parts;
        let result = rank.borrow_mut().close_and_hold(&memory.borrow());
        std::mem::forget(self);
        result
    }
}

impl Drop for OpenSend<'_, '_> {
    fn drop(&mut self) {
        // A rank that panics does not wait: its offer is retracted later.
        if !std::thread::panicking()
            && let Ok(mut rank) = self.parts.rank.try_borrow_mut()
            && let Ok(memory) = self.parts.memory.try_borrow()
        {
            // The endpoint remembers a failure, and the next operation returns it.
            let _ = rank.close_and_hold(&memory);
        }
    }
}
