//! A rank's buffer while transfers are open: what may be written, local steps, and the end.
//!
//! `send` and `receive` add the transfers.

use std::cell::{Cell, RefCell};
use std::ops::Deref;

use smallvec::{SmallVec, smallvec};

use super::elements::{Buffer, Elements};
use super::in_flight::{LastMessages, UnansweredSend};
use super::packed::{Packed, RecvOp, any_overlap};
use super::shared::Division;
use super::sync::yield_now;
use crate::run::element::Element;
use crate::schedule::{Span, total_len};

/// One rank's buffer and its open sends.
///
/// While a send is open, its receiver may read the sent spans at any time, so nothing here writes
/// them before the send is done. All operations that write the buffer take `&mut self`. Sending
/// takes `&self`, so a program may read its buffer while it sends.
#[derive(Debug)]
pub(crate) struct RankMemory<'b, 'r> {
    pub(super) rank: usize,
    buffer: Buffer<'b>,
    /// By port list.
    pub(super) open: SmallVec<[Cell<Option<UnansweredSend<'r>>>; 2]>,
    /// The spans of the open send of list 0, if they were [lent](RankMemory::lend).
    pub(super) lent: RefCell<Vec<Span>>,
    /// Messages whose sender did not wait.
    pub(super) in_flight: LastMessages<'r>,
    pub(super) copying: Copying,
}

/// How long messages are copied from one rank's memory to another's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Copying {
    /// Whether both partners of a transfer copy parts of a long message.
    pub(crate) shared: bool,
    /// Length in bytes from which on messages are copied with streaming stores.
    pub(crate) streams_from: usize,
}

impl<'b, 'r> RankMemory<'b, 'r> {
    /// The memory of `rank`, with at most one open send for each of `lists` port lists. `copying`
    /// must be the same for all ranks of a run.
    #[inline]
    pub(crate) fn new(rank: usize, buffer: Buffer<'b>, lists: usize, copying: Copying) -> Self {
        RankMemory {
            rank,
            buffer,
            open: smallvec![Cell::new(None); lists],
            lent: RefCell::default(),
            in_flight: LastMessages::new(),
            copying,
        }
    }

    /// The rank whose memory this is.
    #[inline]
    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    /// The list of an open send that shares an element with `spans`.
    #[inline]
    pub(crate) fn conflict(&self, spans: &[Span]) -> Option<usize> {
        self.open.iter().position(|o| {
            o.get()
                .is_some_and(|o| any_overlap(o.spans.as_slice(), spans))
        })
    }

    /// Copies or combines `src` into `dst`, both in this rank's buffer.
    ///
    /// # Panics
    /// When a span leaves the buffer, `dst` is being sent or overlaps `src`, or the lengths differ.
    pub(crate) fn local(&mut self, dst: &[Span], src: &[Span], op: RecvOp<'_>) {
        let sent = self.conflict(dst).is_some() || self.in_flight.overlaps(dst);
        assert!(!sent, "a span being sent");
        let stream = Division::of(self.elements, total_len(dst), self.copying.streams_from).stream;
        self.buffer.local(dst, src, op, stream);
    }

    /// The whole buffer, for reading and writing.
    ///
    /// # Panics
    /// When a send is open: its receiver may be reading; when the elements are no `T`.
    pub(crate) fn data_mut<T: Element>(&mut self) -> &mut [T] {
        assert!(
            self.open.iter().all(|o| o.get().is_none()) && self.in_flight.is_empty(),
            "a send is open"
        );
        self.check_type::<T>();
        // SAFETY: no send is open, so no other thread reads or writes this buffer. While the borrow
        // of `self` lasts, none can be opened.
        unsafe { std::slice::from_raw_parts_mut(self.base.cast(), self.len) }
    }

    /// The whole buffer, for reading.
    ///
    /// # Panics
    /// When the elements are no `T`.
    #[inline]
    pub(crate) fn data<T: Element>(&self) -> &[T] {
        self.check_type::<T>();
        // SAFETY: receivers of open sends only read the buffer, and nobody writes it while the
        // borrow of `self` lasts: partners write it only during `receive`, which takes `&mut self`.
        unsafe { std::slice::from_raw_parts(self.base.cast(), self.len) }
    }

    /// As [`Buffer::unpack`], for a carrier whose sends are not open here.
    #[cfg(feature = "mpi")]
    pub(crate) fn unpack(&mut self, spans: &[Span], op: RecvOp<'_>, message: &[u8]) {
        self.buffer.unpack(spans, op, message);
    }

    #[inline]
    fn check_type<T: Element>(&self) {
        assert!(self.elements == Elements::of::<T>(), "the element type");
    }
}

/// For reading alone: what changes the buffer of a rank of a team has to look at open sends first.
impl<'b> Deref for RankMemory<'b, '_> {
    type Target = Buffer<'b>;

    #[inline]
    fn deref(&self) -> &Buffer<'b> {
        &self.buffer
    }
}

/// The memory of a rank, for its own thread and for carriers that read or write it by themselves.
impl Buffer<'_> {
    /// Number of elements of the buffer.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Copies or combines `src` into `dst`, both in this buffer, with streaming stores if `stream`
    /// is set. Neither is being written; `dst` is not being read.
    ///
    /// # Panics
    /// When a span leaves the buffer, `dst` overlaps `src`, or the lengths differ.
    pub(crate) fn local(&mut self, dst: &[Span], src: &[Span], op: RecvOp<'_>, stream: bool) {
        dst.iter().chain(src).for_each(|s| self.check_bounds(*s));
        assert!(!any_overlap(dst, src), "source and destination overlap");
        let elements = total_len(dst);
        assert_eq!(elements, total_len(src), "source and destination differ");
        // SAFETY: both are in bounds and disjoint. Only this rank's thread writes them; receivers
        // of open sends only read.
        unsafe {
            op.apply(
                &self.packed(dst),
                &self.packed(src),
                self.elements,
                0..elements,
                stream,
            );
        }
    }

    pub(super) fn packed<'s>(&self, spans: &'s [Span]) -> Packed<'s> {
        Packed {
            base: self.base,
            spans,
        }
    }

    #[inline]
    pub(super) fn check_bounds(&self, span: Span) {
        if span.end() > self.len {
            out_of_bounds(span, self.len);
        }
    }
}

#[cfg(feature = "mpi")]
impl Buffer<'_> {
    /// The address of `span`, for a carrier that reads or writes it by itself.
    ///
    /// # Panics
    /// When the span leaves the buffer.
    pub(crate) fn address(&self, span: Span) -> *mut u8 {
        self.check_bounds(span);
        self.base.wrapping_add(span.offset * self.elements.bytes)
    }

    /// Copies `spans`, one after another, to the front of `message`.
    ///
    /// # Panics
    /// As [`RankMemory::unpack`].
    pub(crate) fn pack(&self, spans: &[Span], message: &mut [u8]) {
        let len = self.packed_len(spans, message);
        let message = Packed {
            base: message.as_mut_ptr(),
            spans: &[Span::new(0, len)],
        };
        // SAFETY: both are in bounds, as just checked, and apart. Only this rank's thread, and
        // carriers that were given other spans, write the buffer meanwhile.
        unsafe { Packed::copy(&message, &self.packed(spans), self.elements, 0..len, false) };
    }

    /// Copies or combines the front of `message` into `spans`, one after another.
    ///
    /// # Panics
    /// When a span leaves the buffer, the message is too short or not aligned for its elements, or
    /// these may have padding.
    pub(crate) fn unpack(&mut self, spans: &[Span], op: RecvOp<'_>, message: &[u8]) {
        let len = self.packed_len(spans, message);
        let message = Packed {
            base: message.as_ptr().cast_mut(),
            spans: &[Span::new(0, len)],
        };
        let mine = self.packed(spans);
        // SAFETY: both are in bounds, as just checked, and apart; any bytes are values of a type
        // without padding. Only this rank's thread, and carriers that were given other spans,
        // access the buffer meanwhile.
        unsafe { op.apply(&mine, &message, self.elements, 0..len, false) };
    }

    /// The number of elements of `spans`, whose values the bytes of `message` can hold.
    fn packed_len(&self, spans: &[Span], message: &[u8]) -> usize {
        spans.iter().for_each(|s| self.check_bounds(*s));
        let (len, bytes) = (total_len(spans), self.elements.bytes);
        let is_aligned = (message.as_ptr().addr()).is_multiple_of(self.elements.align);
        assert!(self.elements.is_plain() && is_aligned, "plain elements");
        assert!(len * bytes <= message.len(), "room for a packed message");
        len
    }
}

impl Drop for RankMemory<'_, '_> {
    #[inline]
    fn drop(&mut self) {
        // A rank that failed leaves its open sends behind, and messages in flight may not have been
        // received yet. The buffer goes back to its owner now, so these offers are retracted; where
        // the receiver has taken the message already, this waits for it. Receivers finish without
        // this rank's help.
        let open = self.open.iter().filter_map(Cell::take);
        let open = open.map(|send| send.wire.lane(self.rank, send.to));
        let in_flight = self.in_flight.drain();
        for lane in open.chain(in_flight) {
            while !lane.is_settled() && !lane.retract() {
                yield_now();
            }
        }
    }
}

#[cold]
#[inline(never)]
fn out_of_bounds(span: Span, len: usize) -> ! {
    panic!(
        "span [{}, {}] leaves the buffer of {len} elements",
        span.offset, span.len
    );
}
