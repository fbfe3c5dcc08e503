//! Endpoints: rank programs written by hand, with the port model in their types.
//!
//! An endpoint works on its rank's buffer by spans, like a schedule's steps, so what it did can be recorded and checked,
//! drawn and simulated like any schedule; see [`Team::scope`].
//!
//! A unidirectional endpoint has one port: everything that uses it takes `&mut self`, so while a transfer is open nothing else can be.
//!
//! ```compile_fail,E0499
//! # use oneport::run::{Endpoint, Unidirectional};
//! fn two_at_once(e: &mut Endpoint<f32, Unidirectional>) -> oneport::Result<()> {
//!     let open = e.open_send(1, 0..4)?;
//!     e.recv(1, 4..8)?; // the port is open: does not compile
//!     open.wait()
//! }
//! ```
//!
//! A bidirectional endpoint splits into one port out and one port in, which may both be open, but neither twice.
//!
//! ```
//! # use oneport::run::{Endpoint, Bidirectional};
//! fn exchange(e: &mut Endpoint<f32, Bidirectional>) -> oneport::Result<()> {
//!     let (mut out, mut r#in) = e.split();
//!     let open = out.open_send(1, 0..4)?;
//!     r#in.recv(1, 4..8)?;
//!     open.wait()
//! }
//! ```
//!
//! ```compile_fail,E0499
//! # use oneport::run::{Endpoint, Bidirectional};
//! fn twice(e: &mut Endpoint<f32, Bidirectional>) -> oneport::Result<()> {
//!     let (mut out, _in) = e.split();
//!     let first = out.open_send(1, 0..4)?;
//!     let second = out.open_send(2, 4..8)?; // the port out is open: does not compile
//!     first.wait()?;
//!     second.wait()
//! }
//! ```
//!
//! A unidirectional endpoint cannot exchange, nor be split:
//!
//! ```compile_fail,E0599
//! # use oneport::run::{Endpoint, Unidirectional};
//! fn exchange(e: &mut Endpoint<f32, Unidirectional>) -> oneport::Result<()> {
//!     e.exchange(1, 0..4, 1, 4..8)
//! }
//! ```

use std::cell::{Ref, RefCell};
use std::marker::PhantomData;

use super::element::Element;
use super::operator::Operator;
use super::rank::Rank;
use crate::cost::Ports;
use crate::error::Result;
use crate::schedule::{Order, Span};

/// A port model, as a type.
pub trait PortModel: sealed::Sealed + Send + Sync + 'static {
    /// The same as a value.
    const PORTS: Ports;
}

/// One port for both directions.
#[derive(Debug, Clone, Copy)]
pub struct Unidirectional;

/// One port out and one port in.
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

/// One rank's ends of all its channels, and its buffer.
///
/// All operations are synchronous: a send ends when the partner has the message. A unidirectional [`send`](Endpoint::send) returns then; a
/// bidirectional one returns as soon as the port is open, and whatever needs the port or writes the span waits (rules 1 and 2 of
/// [`crate::schedule`]), so a program that sends before it receives may exchange. Its model clock follows the same rules.
///
/// # Errors
/// Every operation returns [`ErrorKind::Usage`](crate::ErrorKind::Usage) for a peer or a span that does not exist, [`ErrorKind::PortBusy`](crate::ErrorKind::PortBusy) when a port is still held by
/// an [`OpenSend`] that was forgotten, and [`ErrorKind::Deadline`](crate::ErrorKind::Deadline), [`ErrorKind::PartnerLeft`](crate::ErrorKind::PartnerLeft) or [`ErrorKind::Length`](crate::ErrorKind::Length) when the
/// transfer cannot complete. After one of the latter the endpoint only returns errors.
#[derive(Debug)]
pub struct Endpoint<'t, T: Element, P: PortModel = Bidirectional> {
    inner: RefCell<Rank<'t, T>>,
    ports: PhantomData<P>,
}

/// The port out of a bidirectional endpoint.
#[derive(Debug)]
pub struct SendPort<'e, 't, T: Element> {
    inner: &'e RefCell<Rank<'t, T>>,
}

/// The port in of a bidirectional endpoint.
#[derive(Debug)]
pub struct RecvPort<'e, 't, T: Element> {
    inner: &'e RefCell<Rank<'t, T>>,
}

/// A send under way; it holds its port until it has been waited for (dropping it waits too).
#[must_use = "dropping an open send waits for it"]
#[derive(Debug)]
pub struct OpenSend<'p, 't, T: Element> {
    inner: &'p RefCell<Rank<'t, T>>,
}

impl<'t, T: Element, P: PortModel> Endpoint<'t, T, P> {
    pub(super) fn new(inner: Rank<'t, T>) -> Self {
        Endpoint {
            inner: RefCell::new(inner),
            ports: PhantomData,
        }
    }

    /// This rank.
    pub fn rank(&self) -> usize {
        self.inner.borrow().rank
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.inner.borrow().setting.wires.ranks()
    }

    /// The rank's buffer.
    pub fn data(&mut self) -> &[T] {
        self.inner.get_mut().memory.data()
    }

    /// The rank's buffer, for writing; waits for an open send first.
    ///
    /// # Errors
    /// When that send fails.
    pub fn data_mut(&mut self) -> Result<&mut [T]> {
        let inner = self.inner.get_mut();
        inner.usable(None)?;
        inner.close_send()?;
        Ok(inner.memory.data_mut())
    }

    /// Sends `span` to rank `to`.
    ///
    /// # Errors
    /// As described at [`Endpoint`], here and in the other operations.
    pub fn send(&mut self, to: usize, span: impl Into<Span>) -> Result<()> {
        let inner = self.inner.get_mut();
        inner.open_send(to, span.into(), false)?;
        if P::PORTS.is_bidirectional() {
            Ok(())
        } else {
            inner.close_and_hold()
        }
    }

    /// Opens a send of `span` to rank `to`; the port is free again when it has been waited for. A bidirectional endpoint is
    /// [split](Endpoint::split) to receive meanwhile.
    ///
    /// # Errors
    /// See [`Endpoint`].
    pub fn open_send(&mut self, to: usize, span: impl Into<Span>) -> Result<OpenSend<'_, 't, T>> {
        self.inner.get_mut().open_send(to, span.into(), true)?;
        Ok(OpenSend { inner: &self.inner })
    }

    /// Receives from rank `from` into `span`.
    ///
    /// # Errors
    /// See [`Endpoint`].
    pub fn recv(&mut self, from: usize, span: impl Into<Span>) -> Result<()> {
        self.inner.get_mut().recv(from, span.into(), None)
    }

    /// Receives from rank `from` and combines into `span`, with the scope's operator.
    ///
    /// # Errors
    /// See [`Endpoint`].
    pub fn recv_combine(&mut self, from: usize, span: impl Into<Span>, order: Order) -> Result<()> {
        self.inner.get_mut().recv(from, span.into(), Some(order))
    }

    /// Copies `src` to `dst`.
    ///
    /// # Errors
    /// See [`Endpoint`].
    pub fn copy(&mut self, src: impl Into<Span>, dst: impl Into<Span>) -> Result<()> {
        self.inner.get_mut().local(src.into(), dst.into(), None)
    }

    /// Combines `src` into `dst`, with the scope's operator.
    ///
    /// # Errors
    /// See [`Endpoint`].
    pub fn combine(
        &mut self,
        src: impl Into<Span>,
        dst: impl Into<Span>,
        order: Order,
    ) -> Result<()> {
        self.inner
            .get_mut()
            .local(src.into(), dst.into(), Some(order))
    }

    /// Waits for all ranks. Not a step: it takes no model time and is not recorded.
    ///
    /// # Errors
    /// See [`Endpoint`].
    pub fn barrier(&mut self) -> Result<()> {
        self.inner.get_mut().barrier()
    }

    /// The model time at which everything that this rank has done is finished.
    pub fn model_time(&mut self) -> Result<f64> {
        let inner = self.inner.get_mut();
        inner.usable(None)?;
        inner.close_send()?;
        Ok(inner.clock.finish)
    }

    /// What it combines with.
    pub(super) fn operator(&self) -> &'t Operator<T> {
        self.inner.borrow().setting.operator
    }

    pub(super) fn into_inner(self) -> Rank<'t, T> {
        self.inner.into_inner()
    }

    pub(super) fn steps(&self) -> usize {
        self.inner.borrow().steps
    }
}

impl<'t, T: Element> Endpoint<'t, T, Bidirectional> {
    /// Sends `outgoing` to rank `to` while receiving from rank `from` into `incoming`.
    ///
    /// # Errors
    /// See [`Endpoint`].
    pub fn exchange(
        &mut self,
        to: usize,
        outgoing: impl Into<Span>,
        from: usize,
        incoming: impl Into<Span>,
    ) -> Result<()> {
        let inner = self.inner.get_mut();
        inner.open_send(to, outgoing.into(), false)?;
        inner.recv(from, incoming.into(), None)?;
        inner.close_and_hold()
    }

    /// The two ports, to be open side by side.
    pub fn split(&mut self) -> (SendPort<'_, 't, T>, RecvPort<'_, 't, T>) {
        let inner = &self.inner;
        (SendPort { inner }, RecvPort { inner })
    }
}

impl<'t, T: Element> SendPort<'_, 't, T> {
    /// As [`Endpoint::open_send`].
    ///
    /// # Errors
    /// See [`Endpoint`].
    pub fn open_send(&mut self, to: usize, span: impl Into<Span>) -> Result<OpenSend<'_, 't, T>> {
        self.inner.borrow_mut().open_send(to, span.into(), true)?;
        Ok(OpenSend { inner: self.inner })
    }
}

impl<T: Element> RecvPort<'_, '_, T> {
    /// As [`Endpoint::recv`].
    ///
    /// # Errors
    /// See [`Endpoint`].
    pub fn recv(&mut self, from: usize, span: impl Into<Span>) -> Result<()> {
        self.inner.borrow_mut().recv(from, span.into(), None)
    }

    /// As [`Endpoint::recv_combine`].
    ///
    /// # Errors
    /// See [`Endpoint`].
    pub fn recv_combine(&mut self, from: usize, span: impl Into<Span>, order: Order) -> Result<()> {
        self.inner.borrow_mut().recv(from, span.into(), Some(order))
    }

    /// The rank's buffer.
    pub fn data(&self) -> Ref<'_, [T]> {
        Ref::map(self.inner.borrow(), |i| i.memory.data())
    }
}

impl<T: Element> OpenSend<'_, '_, T> {
    /// Waits until the partner has the message.
    ///
    /// # Errors
    /// See [`Endpoint`].
    pub fn wait(self) -> Result<()> {
        let result = self.inner.borrow_mut().close_and_hold();
        std::mem::forget(self);
        result
    }
}

impl<T: Element> Drop for OpenSend<'_, '_, T> {
    fn drop(&mut self) {
        // A rank that panics takes its offer back instead of waiting.
        if !std::thread::panicking()
            && let Ok(mut inner) = self.inner.try_borrow_mut()
        {
            // A failure is kept, and returned by the next operation.
            let _ = inner.close_and_hold();
        }
    }
}
