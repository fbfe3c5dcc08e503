//! The rendezvous protocol between two ranks.
//!
//! # The wire
//!
//! Two ranks `a < b` share one [`Wire`]: a lane for messages from `a` to `b` and a lane for the
//! other direction, together in one cache line, so that a reply travels with the acknowledgement it
//! follows. One-portedness makes a lane a single slot: a sender has one message open on it at most.
//! Ranks with several ports share one wire for each of `a`'s ports and each of `b`'s.
//!
//! # States of a lane
//!
//! | state | who may touch the lane's fields | left by |
//! |---|---|---|
//! | `IDLE`, `DONE`, `REFUSED` | the sender | sender: writes the fields, stores `INLINE` or `BORROWED` |
//! | `INLINE` | the receiver: the message is in the lane | receiver: writes the clock, stores `DONE` |
//! | `BORROWED` | the receiver, after its exchange to `TAKEN` succeeded | receiver → `TAKEN`; sender → `IDLE` (retracts) |
//! | `TAKEN` | the receiver, which also reads the sender's memory | receiver → `SHARED`, `DONE` or `REFUSED` |
//! | `SHARED` | as `TAKEN`, and both copy pieces of the message | receiver → `DONE` or `REFUSED` |
//!
//! Every store that hands the lane over is a release, every load that takes it an acquire: whoever
//! may touch the fields sees what the partner wrote. Only `BORROWED` can be left by both sides, so
//! only it is left by compare-and-exchange.
//!
//! # Why no byte is touched after the partner left
//!
//! A sender's memory is read only between `TAKEN` and `DONE`. The sender leaves its call only on
//! `DONE` or `REFUSED`, which the receiver stores after its last read, or by retracting, which
//! fails once `TAKEN` was stored. The receiver's memory is written by the sender only for pieces
//! that the sender claimed ([`Pieces`]); the receiver stores `DONE` only after as many pieces were
//! finished as were claimed, and no piece can be claimed after that because all are. A late sender
//! may read the description of a finished sharing, but finds nothing to claim in it; the
//! description is not written again before that sender's next offer.
//!
//! A sender that fails in a piece that it claimed (the user's operator may panic) says so when it
//! finishes the piece: the receiver, which reads that with the count of finished pieces, refuses
//! the message instead of passing off what is half combined as received.
//!
//! A sender need not stay for the answer: it may look for one before it writes what it lent, before
//! its next offer ([`Lane::is_free`]), and before its memory ends ([`Lane::is_settled`]), until
//! which what it lent belongs to the receiver for reading. Such messages are never shared. They may
//! also stand in a slot of the lane's own ([`Slots`](super::Slots)) instead of the sender's memory,
//! which then may be written at once.
//!
//! Pointers cross a lane as pointers, in the sender's own provenance: through one the receiver may
//! access what the sender might, for as long as the table above lets it. The receiver may look at
//! the first word of a `BORROWED` lane before its exchange succeeded; that pointer may be stale,
//! and it only tells the machine what to fetch.
//!
//! A retracted `INLINE` offer lends no memory; both sides of a lane stop using it after a
//! retraction until the lane is reset while nobody is inside a run.

use std::ptr::{null_mut, without_provenance_mut};

use super::sync::{AtomicU32, AtomicUsize, Ordering, UnsafeCell, Word};
use crate::schedule::{Order, Span};

/// Bytes that travel inside a lane: 16 where pointers have 64 bits.
pub(crate) const INLINE_BYTES: usize = size_of::<Payload>();

const IDLE: u32 = 0;
const INLINE: u32 = 1;
const BORROWED: u32 = 2;
const TAKEN: u32 = 3;
const SHARED: u32 = 4;
const DONE: u32 = 5;
const REFUSED: u32 = 6;

/// What a sender puts into a lane.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Parcel {
    /// Model time at which the sender may start.
    pub(crate) clock: f64,
    /// Whether the payload lends memory instead of holding the message.
    pub(crate) borrowed: bool,
    /// Elements of the message if it is inline, otherwise for the two ends to agree on.
    pub(crate) length: u32,
    /// The message itself, or where it stands.
    pub(crate) payload: Payload,
}

/// The bytes of a short message, or where a longer one stands.
///
/// Pointers travel as pointers: an address alone would not say which memory may be accessed through
/// it. Bytes and numbers travel as the addresses of pointers to nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C, align(8))]
pub(crate) struct Payload {
    first: *mut (),
    second: *mut (),
}

impl Payload {
    /// Zeros, or pointers to nothing.
    pub(crate) const EMPTY: Payload = Payload {
        first: null_mut(),
        second: null_mut(),
    };

    /// So many elements, one after another, from `start` on.
    #[inline]
    pub(crate) fn elements<T>(start: *mut T, elements: usize) -> Self {
        Payload {
            first: start.cast(),
            second: without_provenance_mut(elements),
        }
    }

    /// The spans, of which the first stands at `spans`, of the buffer that begins at `base`.
    #[inline]
    pub(crate) fn spans<T>(base: *mut T, spans: *const Span) -> Self {
        Payload {
            first: base.cast(),
            second: spans.cast_mut().cast(),
        }
    }

    /// Where the elements or the buffer of a lent message start.
    #[inline]
    pub(crate) fn start<T>(&self) -> *mut T {
        self.first.cast()
    }

    /// The number given to [`Payload::elements`].
    #[inline]
    pub(crate) fn element_count(&self) -> usize {
        self.second.addr()
    }

    /// The pointer given to [`Payload::spans`].
    #[inline]
    pub(crate) fn first_span(&self) -> *const Span {
        self.second.cast()
    }

    /// Room for a message of [`INLINE_BYTES`] bytes.
    #[inline]
    pub(crate) fn bytes(&mut self) -> *mut u8 {
        (&raw mut *self).cast()
    }
}

/// How a send stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Sent {
    /// The receiver has not finished.
    Waiting,
    /// The receiver would have the sender copy pieces, see [`Lane::pieces`].
    Shared,
    /// Received; the model time at which the transfer ended.
    Done(f64),
    /// The receiver could not take it.
    Refused,
}

/// One direction between two ranks.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Lane {
    state: AtomicU32,
    length: UnsafeCell<u32>,
    clock: UnsafeCell<f64>,
    /// The payload. Where memory is lent, the first word points there, and the receiver may guess
    /// at it before it has taken the message.
    first: Word,
    second: Word,
}

// SAFETY: the fields are handed from one side to the other by `state`, as the table above says.
unsafe impl Sync for Lane {}

impl Lane {
    pub(crate) fn new() -> Self {
        Lane {
            state: AtomicU32::new(IDLE),
            length: UnsafeCell::new(0),
            clock: UnsafeCell::new(0.0),
            first: Word::new(),
            second: Word::new(),
        }
    }

    /// Sender: offers a message. The previous one must be done, refused or retracted.
    #[inline]
    pub(crate) fn offer(&self, parcel: Parcel) {
        debug_assert!(matches!(
            self.state.load(Ordering::Relaxed),
            IDLE | DONE | REFUSED
        ));
        // SAFETY: in IDLE, DONE and REFUSED the sender alone may touch the fields.
        self.length.with_mut(|p| unsafe { *p = parcel.length });
        // SAFETY: as above.
        self.clock.with_mut(|p| unsafe { *p = parcel.clock });
        self.second.set(parcel.payload.second);
        self.first.set(parcel.payload.first);
        let state = if parcel.borrowed { BORROWED } else { INLINE };
        self.state.store(state, Ordering::Release);
    }

    /// Sender, of messages that lend no memory of its own: whether it may offer the next one.
    #[inline]
    pub(crate) fn is_free(&self) -> bool {
        matches!(self.state.load(Ordering::Acquire), IDLE | DONE)
    }

    /// Sender: whether the receiver has done with the last message, if there was one: it reads
    /// nothing that was lent.
    #[inline]
    pub(crate) fn is_settled(&self) -> bool {
        matches!(self.state.load(Ordering::Acquire), IDLE | DONE | REFUSED)
    }

    /// Sender: how the offered message stands.
    #[inline]
    pub(crate) fn sent(&self) -> Sent {
        match self.state.load(Ordering::Acquire) {
            // SAFETY: in DONE the sender alone may touch the fields.
            DONE => Sent::Done(self.clock.with(|p| unsafe { *p })),
            REFUSED => Sent::Refused,
            SHARED => Sent::Shared,
            _ => Sent::Waiting,
        }
    }

    /// Sender: whether [`Lane::sent`] has anything to say.
    #[inline]
    pub(crate) fn has_answer(&self) -> bool {
        matches!(self.state.load(Ordering::Relaxed), SHARED | DONE | REFUSED)
    }

    /// Sender: takes the offer back; false when the receiver has it already and will finish.
    pub(crate) fn retract(&self) -> bool {
        [INLINE, BORROWED].into_iter().any(|offered| {
            self.state
                .compare_exchange(offered, IDLE, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
        })
    }

    /// Receiver: whether a message is offered (a hint: it may be retracted). Whatever its sender
    /// did before, is seen after.
    #[inline]
    pub(crate) fn is_offered(&self) -> bool {
        matches!(self.state.load(Ordering::Acquire), INLINE | BORROWED)
    }

    /// Receiver: takes an offered message, which must then be finished or refused. `fetch` is told
    /// where the memory of a message that lends some may be, so that it can be on its way while
    /// the message is taken; it must not be read.
    #[inline]
    pub(crate) fn take(&self, fetch: impl FnOnce(*const ())) -> Option<Parcel> {
        let borrowed = match self.state.load(Ordering::Acquire) {
            INLINE => false,
            BORROWED => {
                fetch(self.first.guess());
                self.state
                    .compare_exchange(BORROWED, TAKEN, Ordering::Acquire, Ordering::Relaxed)
                    .ok()?;
                true
            }
            _ => return None,
        };
        // SAFETY: in INLINE and TAKEN the receiver alone may touch the fields.
        let clock = self.clock.with(|p| unsafe { *p });
        // SAFETY: as above.
        let length = self.length.with(|p| unsafe { *p });
        Some(Parcel {
            clock,
            borrowed,
            length,
            payload: Payload {
                first: self.first.get(),
                second: self.second.get(),
            },
        })
    }

    /// Receiver: invites the sender to copy pieces of the message that it took. Call
    /// [`Pieces::open`] first.
    pub(crate) fn share(&self) {
        debug_assert_eq!(self.state.load(Ordering::Relaxed), TAKEN);
        self.state.store(SHARED, Ordering::Release);
    }

    /// Receiver: the message has been taken in; the transfer ended at model time `clock`.
    #[inline]
    pub(crate) fn finish(&self, clock: f64) {
        // SAFETY: between take and finish the receiver alone may touch the fields.
        self.clock.with_mut(|p| unsafe { *p = clock });
        self.state.store(DONE, Ordering::Release);
    }

    /// Receiver: the message that it took cannot be received.
    pub(crate) fn refuse(&self) {
        self.state.store(REFUSED, Ordering::Release);
    }
}

/// Added to the count of finished pieces by a sender that failed in one. It ends its part of the
/// message with that, so this happens once a message at most.
const POISONED: usize = 1 << (usize::BITS - 2);

/// The pieces of one long message that both partners copy: each from another end.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Pieces {
    claimed: AtomicUsize,
    /// Pieces that the sender finished, and whether it failed in one.
    finished: AtomicUsize,
    target: UnsafeCell<Option<Target>>,
}

/// What the receiver of a shared message tells its sender.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Target {
    /// Where the receiver's buffer starts.
    pub(crate) base: *mut (),
    /// The spans of it that the message goes to.
    pub(crate) spans: *const [Span],
    /// How the message is combined into them; it is stored otherwise.
    pub(crate) combine: Option<Order>,
    /// The number of pieces.
    pub(crate) pieces: usize,
}

// SAFETY: `target` is written by the receiver before it stores `SHARED` and read by the sender
// after it loaded `SHARED`; it is written again only after the sender's next offer, which follows
// the sender's last read.
unsafe impl Sync for Pieces {}

// SAFETY: moving them to another thread accesses nothing that `target` points to; that only the two
// partners of a transfer do.
unsafe impl Send for Pieces {}

impl Pieces {
    pub(crate) fn new() -> Self {
        Pieces {
            claimed: AtomicUsize::new(0),
            finished: AtomicUsize::new(0),
            target: UnsafeCell::new(None),
        }
    }

    /// Receiver, before [`Lane::share`]: all pieces are to be claimed, and to be written where
    /// `target` says.
    pub(crate) fn open(&self, target: Target) {
        self.claimed.store(0, Ordering::Relaxed);
        self.finished.store(0, Ordering::Relaxed);
        // SAFETY: the sender reads this only after `share`, see `Sync`.
        self.target.with_mut(|p| unsafe { *p = Some(target) });
    }

    /// Sender, after [`Sent::Shared`]: where the pieces go, and how many there are.
    ///
    /// # Panics
    /// When no message was ever shared.
    pub(crate) fn target(&self) -> Target {
        // SAFETY: written before `SHARED` was stored, see `Sync`.
        let target = self.target.with(|p| unsafe { *p });
        target.expect("stored before the invitation")
    }

    /// Claims up to `wanted` more pieces of `pieces`, and says how many; each side counts its own
    /// claims from its own end.
    pub(crate) fn claim(&self, pieces: usize, wanted: usize) -> usize {
        if self.claimed.load(Ordering::Relaxed) >= pieces {
            return 0;
        }
        let before = self.claimed.fetch_add(wanted, Ordering::Relaxed);
        wanted.min(pieces.saturating_sub(before))
    }

    /// Claims all that is left; how many pieces that was.
    pub(crate) fn claim_rest(&self, pieces: usize) -> usize {
        pieces.saturating_sub(self.claimed.swap(pieces, Ordering::Relaxed))
    }

    /// Sender: `count` claimed pieces are copied, or will not be.
    pub(crate) fn finish(&self, count: usize, poisoned: bool) {
        let mark = if poisoned { POISONED } else { 0 };
        self.finished.fetch_add(mark + count, Ordering::Release);
    }

    /// Receiver: once the sender has finished `count` pieces, whether all of them are copied.
    pub(crate) fn finished(&self, count: usize) -> Option<bool> {
        let finished = self.finished.load(Ordering::Acquire);
        (finished % POISONED >= count).then_some(finished < POISONED)
    }
}

/// Everything two ranks share.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Wire {
    lanes: [Lane; 2],
    pieces: [Pieces; 2],
}

impl Wire {
    pub(crate) fn new() -> Self {
        Wire {
            lanes: [Lane::new(), Lane::new()],
            pieces: [Pieces::new(), Pieces::new()],
        }
    }

    /// The lane of messages that `from` sends to `to`.
    #[inline]
    pub(crate) fn lane(&self, from: usize, to: usize) -> &Lane {
        &self.lanes[usize::from(from > to)]
    }

    /// The pieces of the message on that lane.
    #[inline]
    pub(crate) fn pieces(&self, from: usize, to: usize) -> &Pieces {
        &self.pieces[usize::from(from > to)]
    }
}
