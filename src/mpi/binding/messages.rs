//! The transfers of one rank as requests of an MPI library.

use std::cell::{Cell, RefMut};
use std::ffi::c_int;

use super::abi::{Datatype, Handle};
use super::communicator::{Communicator, counted};
use super::scratch::Scratch;
use crate::error::Error;
use crate::machine::numbers::{id, index};
use crate::run::ElementType;
use crate::run::engine::{
    Buffer, Carrier, Combiner, Due, HalfTransfer, Received, RecvOp, Sent, Slots,
};
use crate::schedule::{Span, total_len};

/// What MPI has to know of one step, beyond the step itself.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct End {
    /// Which message it is among those from its sender to its receiver.
    pub(crate) tag: c_int,
    /// Elements of the message.
    pub(crate) count: c_int,
    /// Elements of the partner's message. `None` if no step of the partner matches.
    pub(crate) theirs: Option<usize>,
    /// Where the message is packed, if it is not sent from, or received into, one span of the
    /// buffer: its offset among [`Requests::scratch`].
    pub(crate) scratch: Option<usize>,
    /// Whether all that the step reads in this rank's buffer is its input, as it was at the start:
    /// see [`Messages::new`].
    pub(crate) original: bool,
}

/// The requests of a rank's steps, and the memory of packed messages, for all repetitions of a run.
#[derive(Debug)]
pub(crate) struct Requests {
    ends: Vec<End>,
    /// By step: its request, if it is open.
    open: Vec<Option<Handle>>,
    /// The steps whose messages had not left when they ended.
    sent: Vec<u32>,
    scratch: Scratch,
    datatype: Handle,
    element_bytes: usize,
}

impl Communicator {
    /// No request is open; `ends` has an entry for each step. Packed messages have `scratch`
    /// elements.
    pub(crate) fn requests(
        &self,
        ends: Vec<End>,
        scratch: usize,
        element: ElementType,
    ) -> Requests {
        let datatype = Datatype(self.mpi.datatype(element));
        self.requests_of(ends, scratch, datatype, index(element.bytes()))
    }

    /// As [`Communicator::requests`], for elements of a datatype of the program, each of
    /// `element_bytes`.
    pub(crate) fn requests_of(
        &self,
        ends: Vec<End>,
        scratch: usize,
        datatype: Datatype,
        element_bytes: usize,
    ) -> Requests {
        Requests {
            open: vec![None; ends.len()],
            sent: Vec::new(),
            ends,
            scratch: Scratch::new(scratch, element_bytes),
            datatype: datatype.0,
            element_bytes,
        }
    }
}

/// One rank's buffer and its transfers, for one repetition.
#[derive(Debug)]
pub(crate) struct Messages<'b> {
    memory: Buffer<'b>,
    requests: RefMut<'b, Requests>,
    communicator: &'b Communicator,
    /// The input of the rank, where its program has it, and the element at which it starts.
    input: Option<(&'b [u8], usize)>,
    /// How many transfers have been opened or have ended.
    events: Cell<u64>,
}

impl<'b> Messages<'b> {
    /// The input is in the memory of the rank, or in `input`, whose first byte is that of the
    /// element of this number. Steps that need nothing of the buffer but the input then find it
    /// there: a send sends from there, and a receive that combines receives into the buffer and
    /// combines with what is there.
    #[inline]
    pub(crate) fn new(
        memory: Buffer<'b>,
        requests: RefMut<'b, Requests>,
        communicator: &'b Communicator,
        input: Option<(&'b [u8], usize)>,
    ) -> Self {
        Messages {
            memory,
            requests,
            communicator,
            input,
            events: Cell::new(0),
        }
    }

    /// The input that `transfer` needs, if that is all it needs of this rank's buffer.
    #[inline]
    fn original(&self, transfer: HalfTransfer<'_>) -> Option<&'b [u8]> {
        let (input, start) = self.input?;
        match transfer.spans[..] {
            [span] if self.requests.ends[transfer.step].original => {
                let bytes = self.requests.element_bytes;
                Some(&input[(span.offset - start) * bytes..(span.end() - start) * bytes])
            }
            _ => None,
        }
    }

    /// How many transfers have been opened or have ended: if the number stays the same, nothing has
    /// happened.
    pub(crate) fn events(&self) -> u64 {
        self.events.get()
    }

    /// A step whose eager message has not left yet.
    #[inline]
    pub(crate) fn in_flight(&mut self) -> Option<usize> {
        while let Some(&step) = self.requests.sent.last() {
            if !self.has_ended(step as usize) {
                return Some(step as usize);
            }
            self.requests.sent.pop();
        }
        None
    }

    /// Whether the request of `step` has ended, or there is none.
    #[inline]
    fn has_ended(&mut self, step: usize) -> bool {
        let Some(request) = &mut self.requests.open[step] else {
            return true;
        };
        if !self.communicator.has_ended(request) {
            return false;
        }
        self.requests.open[step] = None;
        self.happened();
        true
    }

    /// The memory of the message of `transfer`.
    #[inline]
    fn message(&mut self, transfer: HalfTransfer<'_>) -> *mut u8 {
        match (
            self.requests.ends[transfer.step].scratch,
            &transfer.spans[..],
        ) {
            (Some(offset), spans) => self.requests.scratch.message(offset, spans).as_mut_ptr(),
            (None, [span]) => self.memory.address(*span),
            (None, _) => self.memory.address(Span::new(0, 0)),
        }
    }

    /// Starts sending. A `synchronous` request ends only when the receiver has matched it.
    #[inline]
    fn start_send(&mut self, transfer: HalfTransfer<'_>, synchronous: bool) {
        let HalfTransfer { step, spans, .. } = transfer;
        let (mpi, end) = (self.communicator.mpi, self.requests.ends[step]);
        let from = if let Some(input) = self.original(transfer) {
            input.as_ptr()
        } else {
            if let Some(offset) = end.scratch {
                let message = self.requests.scratch.message(offset, spans);
                self.memory.pack(spans, message);
            }
            self.message(transfer).cast_const()
        };
        let (from, peer) = (from.cast(), rank(transfer));
        let (dtype, comm) = (self.requests.datatype, self.communicator.handle);
        let send = if synchronous {
            mpi.functions.issend
        } else {
            mpi.functions.isend
        };
        let mut request = Handle(0);
        // SAFETY: `count` elements of the datatype, in bounds of the buffer, the input or the
        // scratch memory, which is not written before the request has ended.
        let code = unsafe {
            send(
                from,
                end.count,
                dtype,
                peer,
                end.tag,
                comm,
                &raw mut request,
            )
        };
        self.check(
            if synchronous {
                "MPI_Issend"
            } else {
                "MPI_Isend"
            },
            code,
        );
        self.requests.open[step] = Some(request);
        self.happened();
    }

    #[inline]
    fn happened(&self) {
        self.events.set(self.events.get() + 1);
    }

    /// Ends all processes if a function has failed: requests are open.
    #[inline]
    fn check(&self, what: &str, code: c_int) {
        if code != 0
            && let Err(error) = self.communicator.mpi.ok(what, code)
        {
            self.communicator.fail(&error);
        }
    }
}

impl<'j> Carrier<'j> for Messages<'_> {
    const HAS_WIRES: bool = false;

    fn open_send(&mut self, transfer: HalfTransfer<'j>, _: f64) {
        self.start_send(transfer, true);
    }

    fn poll_send(&mut self, transfer: HalfTransfer<'j>, _: Combiner<'_>) -> Sent {
        if self.has_ended(transfer.step) {
            Sent::Done(0.0)
        } else {
            Sent::Waiting
        }
    }

    fn open_receive(&mut self, transfer: HalfTransfer<'j>) {
        let HalfTransfer { step, spans, .. } = transfer;
        let end = self.requests.ends[step];
        if self.requests.open[step].is_some() || end.theirs != Some(total_len(spans)) {
            return;
        }
        let into = match (self.original(transfer), &transfer.spans[..]) {
            (Some(_), [span]) => self.memory.address(*span),
            _ => self.message(transfer),
        };
        let (into, peer) = (into.cast(), rank(transfer));
        let mpi = self.communicator.mpi;
        let (dtype, comm) = (self.requests.datatype, self.communicator.handle);
        let mut request = Handle(0);
        // SAFETY: room for `count` elements of the datatype, in bounds of the buffer or of the
        // scratch memory, which is not touched before the request has ended.
        let code = unsafe {
            (mpi.functions.irecv)(
                into,
                end.count,
                dtype,
                peer,
                end.tag,
                comm,
                &raw mut request,
            )
        };
        self.check("MPI_Irecv", code);
        self.requests.open[step] = Some(request);
        self.happened();
    }

    fn receive(&mut self, transfer: HalfTransfer<'j>, op: RecvOp<'_>, _: Due) -> Received {
        let HalfTransfer { step, spans, .. } = transfer;
        if self.requests.open[step].is_none() {
            let expected = total_len(spans);
            match self.requests.ends[step].theirs {
                // No message will ever come.
                None => return Received::Nothing,
                Some(found) if found != expected => return Received::Length(found),
                Some(_) => self.open_receive(transfer),
            }
        }
        if !self.has_ended(step) {
            return Received::Nothing;
        }
        if let Some(input) = self.original(transfer) {
            self.memory.unpack(spans, op, input);
        } else if let Some(offset) = self.requests.ends[step].scratch {
            let message = self.requests.scratch.message(offset, spans);
            self.memory.unpack(spans, op, message);
        }
        Received::Done(0.0)
    }

    /// What is sent from the input is never overwritten.
    fn is_free(&mut self, transfer: HalfTransfer<'j>) -> bool {
        self.original(transfer).is_some() || self.has_ended(transfer.step)
    }

    fn send(&mut self, transfer: HalfTransfer<'j>, _: f64, _: Option<(&Slots, u32)>) {
        self.start_send(transfer, false);
        // A program has at most 2^30 steps.
        self.requests.sent.push(id(transfer.step));
    }

    fn local(&mut self, dst: &[Span], src: &[Span], op: RecvOp<'_>) {
        self.memory.local(dst, src, op, false);
        self.happened();
    }
}

/// The partner of `transfer`, as MPI counts ranks.
#[inline]
fn rank(transfer: HalfTransfer<'_>) -> c_int {
    counted(transfer.peer)
}

impl Drop for Messages<'_> {
    #[inline]
    fn drop(&mut self) {
        // The buffer goes back to its owner now, but the library may still access it.
        if self.requests.open.iter().any(Option::is_some) {
            self.communicator
                .fail(&Error::system("a run ended while messages were open"));
        }
    }
}
