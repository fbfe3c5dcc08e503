//! The rendezvous protocol between two ranks: who may touch which memory when.
//!
//! # The wire
//!
//! Two ranks `a < b` share one [`Wire`]: one lane for messages from `a` to `b`, and one lane for
//! the other direction. Both lanes are in one cache line, so a reply travels with the
//! acknowledgement that it follows. In the one-ported model a sender has at most one message open
//! on a lane, so a lane is a single slot. Ranks with several ports share one wire for each pair of
//! a port of `a` and a port of `b`.
//!
//! # States of a lane
//!
//! | state | who may touch the fields | who leaves it, and how |
//! |---|---|---|
//! | `IDLE`, `DONE`, `REFUSED` | sender | sender: writes fields, stores `INLINE` or `BORROWED` |
//! | `INLINE` | receiver; they hold the message | receiver: writes the clock, stores `DONE` |
//! | `BORROWED` | receiver, after its exchange | receiver → `TAKEN`; sender → `IDLE` (retracts) |
//! | `TAKEN` | receiver; it also reads the sender's memory | receiver → `SHARED`, `DONE` or `REFUSED` |
//! | `SHARED` | receiver; both partners copy pieces | receiver → `DONE` or `REFUSED` |
//!
//! Every store that hands the lane over is a release, and every load that takes it over is an
//! acquire, so the side that may touch the fields sees what its partner wrote. Both sides can leave
//! `BORROWED`, so it is left by compare-and-exchange, and the fields belong to the side whose
//! exchange succeeded. (For a retracted `INLINE` offer, see below.)
//!
//! # Why no byte is touched after the partner has left
//!
//! - The sender's memory is read only between `TAKEN` and `DONE` or `REFUSED`. The sender leaves
//!   its call only after `DONE` or `REFUSED`, which the receiver stores after its last read, or
//!   after retracting its offer, which fails once `TAKEN` was stored.
//! - The sender writes the receiver's memory only in pieces that the sender has claimed
//!   ([`SharedPieces`]). The receiver stores `DONE` or `REFUSED` only when as many pieces are
//!   finished as the sender has claimed. At that point all pieces are claimed, so no piece can be
//!   claimed later.
//! - A sender that reacts late may read the [`Target`] of a message that is already finished. It
//!   finds nothing to claim there, and the target is not written again before this sender's next
//!   offer.
//!
//! # Failures while a message is shared
//!
//! A sender that fails in a claimed piece (the user's operator may panic) says so when it finishes
//! the piece. The receiver reads this together with the count of finished pieces, and refuses the
//! message instead of reporting a half-combined message as received.
//!
//! # Senders that do not wait
//!
//! A sender need not wait for the answer, but it must look for the answer before it writes the
//! memory that it exposed, before its next offer ([`Lane::is_free`]), and before its memory ends
//! ([`Lane::is_settled`]). Until the answer is there, the receiver may read the sender's memory.
//! A receiver may ask for help here, too: it copies all pieces that its sender does not claim, so
//! it need not know whether the sender looks. Messages may also be copied to the lane's slot
//! ([`Slots`](super::Slots)) instead of exposing the sender's memory; the sender may then write its
//! memory at once, and such a message is never shared.
//!
//! # Pointers
//!
//! Pointers cross a lane as pointers, with the sender's provenance: through them the receiver may
//! access what the sender might, for as long as the table above allows. The receiver may read the
//! first word of a `BORROWED` lane before its exchange succeeds. That pointer may be stale, and is
//! used only for a prefetch.
//!
//! # Retracted offers
//!
//! A retracted `INLINE` offer refers to no memory. After a retraction both sides stop using the
//! lane until it is reset while no rank is inside a run.

use std::ptr::{null_mut, without_provenance_mut};

use super::sync::{AtomicU32, AtomicUsize, Ordering, UnsafeCell, Word};
use crate::schedule::{Order, Span};

/// Bytes of a message that fit into a lane: 16 where pointers have 64 bits.
pub(super) const INLINE_BYTES: usize = size_of::<Payload>();

const IDLE: u32 = 0;
const INLINE: u32 = 1;
const BORROWED: u32 = 2;
const TAKEN: u32 = 3;
const SHARED: u32 = 4;
const DONE: u32 = 5;
const REFUSED: u32 = 6;

/// What a sender writes into a lane.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Parcel {
    /// Model time at which the sender may start.
    pub(crate) clock: f64,
    /// Whether the payload refers to the sender's memory instead of holding the message.
    pub(crate) borrowed: bool,
    /// Elements of the message if it is inline. Otherwise its meaning is agreed between the two
    /// ends: 0 for [`Payload::elements`], the number of spans for [`Payload::spans`].
    pub(crate) length: u32,
    /// The message itself, or a pointer to it.
    pub(crate) payload: Payload,
}

/// The bytes of a short message, or pointers to a longer one.
///
/// Pointers travel as pointers: an address alone would not say which memory may be accessed through
/// it. Bytes and numbers travel as addresses of pointers without provenance.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C, align(8))]
pub(crate) struct Payload {
    first: *mut (),
    second: *mut (),
}

impl Payload {
    /// Zeros, or null pointers.
    pub(crate) const EMPTY: Payload = Payload {
        first: null_mut(),
        second: null_mut(),
    };

    /// A message of `elements` contiguous elements from `start` on.
    #[inline]
    pub(crate) fn elements(start: *mut u8, elements: usize) -> Self {
        Payload {
            first: start.cast(),
            second: without_provenance_mut(elements),
        }
    }

    /// A message of several spans of the buffer that starts at `base`; `spans` points to the first
    /// of them.
    #[inline]
    pub(crate) fn spans(base: *mut u8, spans: *const Span) -> Self {
        Payload {
            first: base.cast(),
            second: spans.cast_mut().cast(),
        }
    }

    /// Where the elements, or the buffer, of a message in the sender's memory start.
    #[inline]
    pub(crate) fn start(&self) -> *mut u8 {
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

    /// Pointer to the [`INLINE_BYTES`] bytes of a short message.
    #[inline]
    pub(crate) fn bytes(&mut self) -> *mut u8 {
        (&raw mut *self).cast()
    }
}

/// The state of a send.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Sent {
    /// The receiver has not finished.
    Waiting,
    /// The receiver asks the sender to copy pieces of the message: see `Wire::pieces`.
    Shared,
    /// Received; the model time at which the transfer ended for the sender.
    Done(f64),
    /// The receiver could not receive it.
    Refused,
}

/// One direction between two ranks.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Lane {
    state: AtomicU32,
    length: UnsafeCell<u32>,
    clock: UnsafeCell<f64>,
    /// First word of the payload. If the message is in the sender's memory, it points there, and
    /// the receiver may prefetch through it before it has taken the message.
    first: Word,
    second: Word,
}

// SAFETY: `state` hands the fields from one side to the other, as the table in the module's
// documentation says.
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
        // SAFETY: in `IDLE`, `DONE` and `REFUSED` only the sender may touch the fields.
        self.length.with_mut(|p| unsafe { *p = parcel.length });
        // SAFETY: as above.
        self.clock.with_mut(|p| unsafe { *p = parcel.clock });
        self.second.set(parcel.payload.second);
        self.first.set(parcel.payload.first);
        let state = if parcel.borrowed { BORROWED } else { INLINE };
        self.state.store(state, Ordering::Release);
    }

    /// Sender that does not wait: whether it may offer the next message.
    #[inline]
    pub(crate) fn is_free(&self) -> bool {
        matches!(self.state.load(Ordering::Acquire), IDLE | DONE)
    }

    /// Sender: whether the receiver is done with the last message, if there was one, and so no
    /// longer reads the sender's memory.
    #[inline]
    pub(crate) fn is_settled(&self) -> bool {
        matches!(self.state.load(Ordering::Acquire), IDLE | DONE | REFUSED)
    }

    /// Sender: the state of the offered message.
    #[inline]
    pub(crate) fn sent(&self) -> Sent {
        match self.state.load(Ordering::Acquire) {
            // SAFETY: in `DONE` only the sender may touch the fields.
            DONE => Sent::Done(self.clock.with(|p| unsafe { *p })),
            REFUSED => Sent::Refused,
            SHARED => Sent::Shared,
            _ => Sent::Waiting,
        }
    }

    /// Sender: whether [`Lane::sent`] would return anything but [`Sent::Waiting`].
    #[inline]
    pub(crate) fn has_answer(&self) -> bool {
        matches!(self.state.load(Ordering::Relaxed), SHARED | DONE | REFUSED)
    }

    /// Sender: withdraws the offer. False if the receiver has taken the message; it will finish or
    /// refuse it.
    pub(crate) fn retract(&self) -> bool {
        [INLINE, BORROWED].into_iter().any(|offered| {
            self.state
                .compare_exchange(offered, IDLE, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
        })
    }

    /// Receiver: whether a message is offered. This is a hint, since the sender may retract it.
    /// After `true`, everything that the sender did before the offer is visible.
    #[inline]
    pub(crate) fn is_offered(&self) -> bool {
        matches!(self.state.load(Ordering::Acquire), INLINE | BORROWED)
    }

    /// Receiver: takes an offered message, which must then be finished or refused. If the message
    /// may refer to the sender's memory, `fetch` gets its address before the message is taken, to
    /// prefetch it. It must not read there.
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
        // SAFETY: in `INLINE` and `TAKEN` only the receiver may touch the fields.
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

    /// Receiver: asks the sender to copy pieces of the message that the receiver has taken. Call
    /// [`SharedPieces::open`] first.
    pub(crate) fn share(&self) {
        debug_assert_eq!(self.state.load(Ordering::Relaxed), TAKEN);
        self.state.store(SHARED, Ordering::Release);
    }

    /// Receiver: the message is received; the transfer ended for the sender at model time `clock`.
    #[inline]
    pub(crate) fn finish(&self, clock: f64) {
        // SAFETY: between `take` and `finish` only the receiver may touch the fields.
        self.clock.with_mut(|p| unsafe { *p = clock });
        self.state.store(DONE, Ordering::Release);
    }

    /// Receiver: the message that it took cannot be received.
    pub(crate) fn refuse(&self) {
        self.state.store(REFUSED, Ordering::Release);
    }
}

/// Added to the count of finished pieces by a sender that failed in one. The sender then stops
/// copying the message, so this happens at most once per message.
const POISONED: usize = 1 << (usize::BITS - 2);

/// The pieces of one long message that both partners copy, each from its own end.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct SharedPieces {
    claimed: AtomicUsize,
    /// Number of pieces that the sender has finished, plus [`POISONED`] if it failed in one.
    finished: AtomicUsize,
    target: UnsafeCell<Option<Target>>,
}

/// What the receiver of a shared message tells its sender.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Target {
    /// Where the receiver's buffer starts.
    pub(crate) base: *mut (),
    /// The spans of that buffer into which the message goes.
    pub(crate) spans: *const [Span],
    /// How the message is combined into them; `None` if it is only stored.
    pub(crate) combine: Option<Order>,
    pub(crate) pieces: usize,
}

// SAFETY: the receiver writes `target` before it stores `SHARED`, and the sender reads it after it
// loaded `SHARED`. It is written again only after the sender's next offer, which follows the
// sender's last read.
unsafe impl Sync for SharedPieces {}

// SAFETY: moving `Pieces` to another thread accesses nothing that `target` points to. Only the two
// partners of a transfer access that, as the module's documentation says.
unsafe impl Send for SharedPieces {}

impl SharedPieces {
    pub(crate) fn new() -> Self {
        SharedPieces {
            claimed: AtomicUsize::new(0),
            finished: AtomicUsize::new(0),
            target: UnsafeCell::new(None),
        }
    }

    /// Receiver, before [`Lane::share`]: makes all pieces available for claiming, with destination
    /// `target`.
    pub(crate) fn open(&self, target: Target) {
        self.claimed.store(0, Ordering::Relaxed);
        self.finished.store(0, Ordering::Relaxed);
        // SAFETY: the sender reads this only after `share`; see the comment on `Sync`.
        self.target.with_mut(|p| unsafe { *p = Some(target) });
    }

    /// Sender, after [`Sent::Shared`]: the destination of the pieces, and their number.
    ///
    /// # Panics
    /// When no message was ever shared.
    pub(crate) fn target(&self) -> Target {
        // SAFETY: written before `SHARED` was stored; see the comment on `Sync`.
        let target = self.target.with(|p| unsafe { *p });
        target.expect("stored before the invitation")
    }

    /// Claims up to `wanted` more pieces of `pieces`. Returns how many were claimed; each side
    /// counts its own claims from its own end.
    pub(crate) fn claim(&self, pieces: usize, wanted: usize) -> usize {
        if self.claimed.load(Ordering::Relaxed) >= pieces {
            return 0;
        }
        let before = self.claimed.fetch_add(wanted, Ordering::Relaxed);
        wanted.min(pieces.saturating_sub(before))
    }

    /// Sender, after [`Sent::Shared`]: whether nothing is left to claim.
    pub(crate) fn all_claimed(&self) -> bool {
        self.claimed.load(Ordering::Relaxed) >= self.target().pieces
    }

    /// Claims all pieces that are left. Returns how many those were.
    pub(crate) fn claim_rest(&self, pieces: usize) -> usize {
        pieces.saturating_sub(self.claimed.swap(pieces, Ordering::Relaxed))
    }

    /// Sender: `count` claimed pieces are copied or, if `poisoned`, will not be.
    pub(crate) fn finish(&self, count: usize, poisoned: bool) {
        let mark = if poisoned { POISONED } else { 0 };
        self.finished.fetch_add(mark + count, Ordering::Release);
    }

    /// Receiver: `None` until the sender has finished `count` pieces, then whether all of them are
    /// copied.
    pub(crate) fn finished(&self, count: usize) -> Option<bool> {
        let finished = self.finished.load(Ordering::Acquire);
        (finished % POISONED >= count).then_some(finished < POISONED)
    }
}

/// Everything that two ranks share.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Wire {
    lanes: [Lane; 2],
    pieces: [SharedPieces; 2],
}

impl Wire {
    pub(crate) fn new() -> Self {
        Wire {
            lanes: [Lane::new(), Lane::new()],
            pieces: [SharedPieces::new(), SharedPieces::new()],
        }
    }

    /// The lane for messages from `from` to `to`.
    #[inline]
    pub(crate) fn lane(&self, from: usize, to: usize) -> &Lane {
        &self.lanes[usize::from(from > to)]
    }

    /// The pieces of the message on the lane from `from` to `to`.
    #[inline]
    pub(crate) fn pieces(&self, from: usize, to: usize) -> &SharedPieces {
        &self.pieces[usize::from(from > to)]
    }
}
