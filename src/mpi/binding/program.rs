//! The messages of a rank program as requests of an MPI library.
//!
//! The partners of a rank program do not know each other's steps. So each message starts with a
//! head, which has what shared memory shows to a receiver: the model time from which the sender may
//! start, and the number of elements. Short messages travel in it, longer ones follow it. The
//! receiver answers with the model time at which the transfer ends for the sender, which waits for
//! that: transfers are rendezvous, and the model clock is that of threads.
//!
//! | tag | from | content |
//! |---|---|---|
//! | [`HEAD`] | sender | start, elements, and a message of up to [`SHORT_BYTES`] |
//! | [`BODY`] | sender | a longer message |
//! | [`ANSWER`] | receiver | end |
//!
//! A rank has at most one open send and one open receive, and a sender waits for its answer before
//! it sends to that receiver again. So of each kind there is one message between two ranks in each
//! direction.

use std::ffi::c_int;
use std::time::{Duration, Instant};

use super::abi::Handle;
use super::communicator::{Communicator, count, counted};
use super::scratch::Scratch;
use crate::error::{Error, Result};
use crate::machine::numbers::index;
use crate::mpi::idle::Idle;
use crate::run::ElementType;
use crate::run::engine::{
    Combiner, Due, Failure, Link, Precision, Received, RecvOp, ScopeBuffer, Sent, TransferAt, Waits,
};
use crate::schedule::{Span, total_len};

const HEAD: c_int = 0;
const BODY: c_int = 1;
const ANSWER: c_int = 2;

/// Bytes of the longest message that travels in its head: below what every library sends at once.
const SHORT_BYTES: usize = 1024;
/// Bytes of a head without a message: two words.
const HEAD_BYTES: usize = 16;
/// Bytes of a model time.
const TIME_BYTES: usize = 8;

/// Waits after which a sender looks for a partner that sends to it.
const WAITS_PER_PROBE: u32 = 1024;

/// The messages of one rank program.
#[derive(Debug)]
pub(crate) struct ProgramMessages<'w> {
    communicator: &'w Communicator,
    element_bytes: usize,
    datatype: Handle,
    deadline: Duration,
    idle: Idle,
    waits: u32,
    /// Whether the partner was seen to send, while this rank had not seen its answer.
    head_on: bool,
    /// The requests of the open send: head, body, answer.
    sending: [Option<Handle>; 3],
    sent_head: Scratch,
    sent_body: Scratch,
    answer: Scratch,
    receiving: Option<Receiving>,
    received_head: Scratch,
    received_body: Scratch,
    /// Answers that may not have left.
    answers: Vec<(Handle, Scratch)>,
}

/// The open receive: the request of what has not come yet.
#[derive(Debug, Clone, Copy)]
enum Receiving {
    Head(Handle),
    /// The message itself, from a sender that may start at this time; to be unpacked or not.
    Body(Handle, f64, bool),
}

impl<'w> ProgramMessages<'w> {
    /// Where `oversubscribed` processes wait for at most `deadline` each time.
    pub(crate) fn new(
        communicator: &'w Communicator,
        element: ElementType,
        oversubscribed: bool,
        deadline: Duration,
    ) -> Self {
        let element_bytes = index(element.bytes());
        let head = || Scratch::new(HEAD_BYTES + SHORT_BYTES, 1);
        ProgramMessages {
            communicator,
            element_bytes,
            datatype: communicator.mpi.datatype(element),
            deadline,
            idle: Idle::new(oversubscribed, deadline),
            waits: 0,
            head_on: false,
            sending: [None; 3],
            sent_head: head(),
            sent_body: Scratch::new(0, element_bytes),
            answer: Scratch::new(TIME_BYTES, 1),
            receiving: None,
            received_head: head(),
            received_body: Scratch::new(0, element_bytes),
            answers: Vec::new(),
        }
    }

    /// Starts to send `n` elements of `datatype` at `from`.
    fn send(&self, from: *const u8, n: c_int, datatype: Handle, to: usize, tag: c_int) -> Handle {
        let (mpi, comm, mut request) = (self.communicator.mpi, self.communicator.handle, Handle(0));
        let to = counted(to);
        // SAFETY: `n` elements in bounds of the buffer or of scratch memory, which is not written
        // before the request has ended.
        let code = unsafe {
            (mpi.functions.isend)(from.cast(), n, datatype, to, tag, comm, &raw mut request)
        };
        self.check("MPI_Isend", code);
        request
    }

    /// Starts to receive at most `n` elements of `datatype` at `into`.
    fn recv(&self, into: *mut u8, n: c_int, datatype: Handle, from: usize, tag: c_int) -> Handle {
        let (mpi, comm, mut request) = (self.communicator.mpi, self.communicator.handle, Handle(0));
        let from = counted(from);
        // SAFETY: room for `n` elements in bounds of the buffer or of scratch memory, which is not
        // touched before the request has ended.
        let code = unsafe {
            (mpi.functions.irecv)(into.cast(), n, datatype, from, tag, comm, &raw mut request)
        };
        self.check("MPI_Irecv", code);
        request
    }

    /// Ends all processes if a function has failed: requests may be open.
    fn check(&self, what: &str, code: c_int) {
        if code != 0
            && let Err(error) = self.communicator.mpi.ok(what, code)
        {
            self.communicator.fail(&error);
        }
    }

    fn byte(&self) -> Handle {
        self.communicator.mpi.constants.u8
    }

    /// Whether rank `peer` has sent a head that no receive has taken.
    fn is_offered(&self, peer: usize) -> bool {
        let (mpi, comm, mut found) = (self.communicator.mpi, self.communicator.handle, 0);
        let ignore = mpi.constants.status_ignore();
        // SAFETY: the address of an integer; no status is written.
        let code =
            unsafe { (mpi.functions.iprobe)(counted(peer), HEAD, comm, &raw mut found, ignore) };
        self.check("MPI_Iprobe", code);
        found != 0
    }

    /// Answers rank `to`, for which the transfer ended at `end`.
    fn answer(&mut self, to: usize, end: f64) {
        let communicator = self.communicator;
        let left =
            (self.answers.iter_mut()).position(|(request, _)| communicator.has_ended(request));
        let mut time = match left {
            Some(i) => self.answers.swap_remove(i).1,
            None => Scratch::new(TIME_BYTES, 1),
        };
        let bytes = time.bytes(0, TIME_BYTES);
        bytes.copy_from_slice(&end.to_le_bytes());
        let at = bytes.as_ptr();
        let request = self.send(at, counted(TIME_BYTES), self.byte(), to, ANSWER);
        self.answers.push((request, time));
    }

    /// Ends the open receive, which has the message of `from`, whose sender may start at `theirs`.
    fn received(&mut self, from: usize, theirs: f64, due: Due) -> Received {
        self.receiving = None;
        let [sent, end] = due.ends(theirs);
        self.answer(from, sent);
        Received::Done(end)
    }
}

/// Writes the two words of a head.
fn write_head(head: &mut [u8], start: f64, elements: usize) {
    head[..8].copy_from_slice(&start.to_le_bytes());
    head[8..HEAD_BYTES].copy_from_slice(&(elements as u64).to_le_bytes());
}

/// The two words of a head.
fn read_head(head: &[u8]) -> (f64, usize) {
    let mut words = [[0; 8]; 2];
    for (word, bytes) in words.iter_mut().zip(head.chunks_exact(8)) {
        word.copy_from_slice(bytes);
    }
    (
        f64::from_le_bytes(words[0]),
        index(u64::from_le_bytes(words[1])),
    )
}

impl<'t> Link<'t> for ProgramMessages<'_> {
    fn open_send(
        &mut self,
        memory: &ScopeBuffer<'t>,
        to: usize,
        spans: &[Span],
        ready: f64,
    ) -> Result<()> {
        let elements = total_len(spans);
        let n = count(elements)?;
        let bytes = elements * self.element_bytes;
        let inside = if bytes <= SHORT_BYTES { bytes } else { 0 };
        let head = self.sent_head.bytes(0, HEAD_BYTES + inside);
        write_head(head, ready, elements);
        if inside > 0 {
            memory.pack(spans, &mut head[HEAD_BYTES..]);
        }
        // At most the longest head.
        let (at, len) = (head.as_ptr(), counted(head.len()));
        self.sending[0] = Some(self.send(at, len, self.byte(), to, HEAD));
        if inside < bytes {
            let at = if let [one] = spans {
                memory.address(*one).cast_const()
            } else {
                self.sent_body.grow(elements);
                let body = self.sent_body.message(0, spans);
                memory.pack(spans, body);
                body.as_ptr()
            };
            self.sending[1] = Some(self.send(at, n, self.datatype, to, BODY));
        }
        let into = self.answer.bytes(0, TIME_BYTES).as_mut_ptr();
        self.sending[2] = Some(self.recv(into, counted(TIME_BYTES), self.byte(), to, ANSWER));
        Ok(())
    }

    fn poll_send(&mut self, _: &ScopeBuffer<'t>, _: Combiner<'_>) -> Sent {
        let communicator = self.communicator;
        for open in &mut self.sending {
            if open
                .as_mut()
                .is_some_and(|request| communicator.has_ended(request))
            {
                *open = None;
            }
        }
        if self.sending.iter().any(Option::is_some) {
            return Sent::Waiting;
        }
        let mut end = [0; TIME_BYTES];
        end.copy_from_slice(self.answer.bytes(0, TIME_BYTES));
        Sent::Done(f64::from_le_bytes(end))
    }

    fn receive(
        &mut self,
        memory: &mut ScopeBuffer<'t>,
        from: usize,
        spans: &[Span],
        op: RecvOp<'_>,
        due: Due,
    ) -> Received {
        let elements = total_len(spans);
        let receiving = self.receiving.unwrap_or_else(|| {
            let head = self.received_head.bytes(0, HEAD_BYTES + SHORT_BYTES);
            // At most the longest head.
            let (into, room) = (head.as_mut_ptr(), counted(head.len()));
            Receiving::Head(self.recv(into, room, self.byte(), from, HEAD))
        });
        self.receiving = Some(receiving);
        match receiving {
            Receiving::Head(mut request) => {
                if !self.communicator.has_ended(&mut request) {
                    return Received::Nothing;
                }
                let (theirs, found) = read_head(self.received_head.bytes(0, HEAD_BYTES));
                if found != elements {
                    self.receiving = None;
                    return Received::Length(found);
                }
                let bytes = elements * self.element_bytes;
                if bytes <= SHORT_BYTES {
                    let message = self.received_head.bytes(HEAD_BYTES, bytes);
                    memory.unpack(spans, op, message);
                    return self.received(from, theirs, due);
                }
                let direct = matches!((spans, op), ([_], RecvOp::Copy));
                let into = if direct {
                    memory.address(spans[0])
                } else {
                    self.received_body.grow(elements);
                    self.received_body.message(0, spans).as_mut_ptr()
                };
                // The sender has counted them.
                let n = counted(elements);
                let request = self.recv(into, n, self.datatype, from, BODY);
                self.receiving = Some(Receiving::Body(request, theirs, !direct));
                Received::Nothing
            }
            Receiving::Body(mut request, theirs, packed) => {
                if !self.communicator.has_ended(&mut request) {
                    return Received::Nothing;
                }
                if packed {
                    let message = self.received_body.message(0, spans);
                    memory.unpack(spans, op, message);
                }
                self.received(from, theirs, due)
            }
        }
    }

    fn wait(&mut self, _: &ScopeBuffer<'t>, waits: Waits) -> Result<(), Failure> {
        if self.head_on {
            // The partner would have answered before it sent: this rank has polled again since.
            return Err(waits.head_on().into());
        }
        self.waits = self.waits.wrapping_add(1);
        if waits.holds_port && self.waits.is_multiple_of(WAITS_PER_PROBE) {
            self.head_on = self.is_offered(waits.at.peer);
        }
        if self.idle.has_lasted() {
            return Err(waits.timeout().into());
        }
        Ok(())
    }

    fn progressed(&mut self) {
        self.idle.ends();
        self.head_on = false;
    }

    fn barrier(&mut self, _: TransferAt) -> Result<(), Failure> {
        Ok(self.communicator.barrier(self.deadline)?)
    }

    /// Processes keep no pace.
    fn pace(&mut self, _: Instant, _: Precision) {}

    fn settle(&mut self) -> Result<(), Failure> {
        let communicator = self.communicator;
        self.idle.ends();
        loop {
            self.answers
                .retain_mut(|(request, _)| !communicator.has_ended(request));
            if self.answers.is_empty() {
                return Ok(());
            }
            if self.idle.has_lasted() {
                return Err(Error::system("the last answers of a rank do not leave it").into());
            }
        }
    }
}

impl Drop for ProgramMessages<'_> {
    fn drop(&mut self) {
        // The buffers go away now, but the library may still access them.
        let open = self.sending.iter().any(Option::is_some) || self.receiving.is_some();
        if open || !self.answers.is_empty() {
            let error = Error::system("a rank program ended while messages were open");
            self.communicator.fail(&error);
        }
    }
}
