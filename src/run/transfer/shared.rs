//! Copying of one long message by both partners at once: the lower rank from the front, the higher
//! rank from the back, until they meet.
//!
//! Both ranks copy the same halves of equal messages every time, in whichever direction the message
//! goes, so each half stays in the cache of the core that copies it.

use super::elements::Elements;
use super::packed::{Packed, RecvOp};
use super::protocol::SharedPieces;
use super::sync::{spin_loop, yield_now};
use crate::run::tuning::{
    MAX_PIECE_BYTES, MIN_LONG_BYTES, MIN_PIECE_BYTES, PIECES, SPINS_PER_PIECE_YIELD, first_claim,
};

/// A message, its destination, and how it is divided into pieces.
pub(super) struct Shared<'m> {
    pub(super) mine: Packed<'m>,
    pub(super) message: Packed<'m>,
    pub(super) op: RecvOp<'m>,
    pub(super) division: Division,
    /// Whether this side starts at the back.
    pub(super) backwards: bool,
}

/// How a message is divided into pieces.
#[derive(Debug, Clone, Copy)]
pub(super) struct Division {
    elements: Elements,
    len: usize,
    /// Elements of a piece; the last piece may have fewer.
    each: usize,
    pub(super) pieces: usize,
    /// Whether the message is copied with streaming stores.
    pub(super) stream: bool,
}

impl Division {
    /// Divides a message of `len` elements. A message too short to be worth a handshake is one
    /// piece. Messages of at least `streams_from` bytes are copied with streaming stores, if their
    /// type has no padding.
    pub(super) fn of(elements: Elements, len: usize, streams_from: usize) -> Division {
        let bytes = len * elements.bytes;
        let each = if (bytes as u64) < MIN_LONG_BYTES {
            len.max(1)
        } else {
            ((bytes / PIECES).clamp(MIN_PIECE_BYTES, MAX_PIECE_BYTES) / elements.bytes).max(1)
        };
        Division {
            elements,
            len,
            each,
            pieces: len.div_ceil(each),
            stream: bytes >= streams_from && elements.is_plain(),
        }
    }

    /// How many pieces to claim after `own` pieces.
    fn claim(self, own: usize) -> usize {
        if own == 0 {
            first_claim(self.pieces)
        } else {
            1
        }
    }
}

impl Shared<'_> {
    /// Receiver, after inviting the sender: copies until no piece is left to claim, then waits for
    /// the sender's pieces. False if the sender failed in one of them.
    ///
    /// # Safety
    /// - Message and target must hold the elements of the division and lie within their buffers.
    /// - The target's spans must be disjoint.
    /// - Until this returns, nobody else may write the message or touch the target, except for the
    ///   pieces that the partner has claimed.
    pub(super) unsafe fn receive(&self, pieces: &SharedPieces) -> bool {
        // If an operator panics, the drop still waits for the sender before the message is refused.
        let mut all = AllPieces {
            pieces,
            count: self.division.pieces,
            own: 0,
        };
        loop {
            let first = all.own;
            let n = pieces.claim(all.count, self.division.claim(first));
            if n == 0 {
                break;
            }
            all.own += n;
            // SAFETY: guaranteed by the caller; only this side touches the claimed pieces.
            unsafe { self.copy(first, n) };
        }
        let (own, count) = (all.own, all.count);
        drop(all);
        pieces.finished(count - own) == Some(true)
    }

    /// Copies `pieces` pieces from piece `first` on, in the order in which this side counts them.
    ///
    /// # Safety
    /// As [`Shared::receive`], for pieces that this side has claimed.
    pub(super) unsafe fn copy(&self, first: usize, pieces: usize) {
        let Division {
            elements,
            len,
            each,
            stream,
            ..
        } = self.division;
        let first = if self.backwards {
            self.division.pieces - first - pieces
        } else {
            first
        };
        let range = first * each..((first + pieces) * each).min(len);
        // SAFETY: guaranteed by the caller.
        unsafe {
            self.op
                .apply(&self.mine, &self.message, elements, range, stream);
        }
    }
}

/// On drop, claims all remaining pieces and waits for the sender's pieces.
struct AllPieces<'w> {
    pieces: &'w SharedPieces,
    count: usize,
    own: usize,
}

impl Drop for AllPieces<'_> {
    fn drop(&mut self) {
        let own = self.own + self.pieces.claim_rest(self.count);
        // The sender is copying on another core. If it has lost that core, yielding gives it this
        // one.
        let mut polls = 0u32;
        while self.pieces.finished(self.count - own).is_none() {
            polls = polls.wrapping_add(1);
            if polls.is_multiple_of(SPINS_PER_PIECE_YIELD) {
                yield_now();
            } else {
                spin_loop();
            }
        }
    }
}

/// Pieces that the sender has claimed and is copying.
///
/// If this is dropped before the pieces are copied, because an operator panicked, it marks them as
/// poisoned, together with all pieces that nobody has claimed: the receiver must neither wait for
/// them forever nor treat them as received.
pub(super) struct Claimed<'w> {
    pieces: &'w SharedPieces,
    of: usize,
    pub(super) count: usize,
}

impl<'w> Claimed<'w> {
    /// Claims more pieces, if any are left. The sender has copied `own` pieces before.
    pub(super) fn more(pieces: &'w SharedPieces, division: Division, own: usize) -> Option<Self> {
        let count = pieces.claim(division.pieces, division.claim(own));
        // Constructed only if there are pieces: dropping it poisons the message.
        (count > 0).then(|| Claimed {
            pieces,
            of: division.pieces,
            count,
        })
    }

    pub(super) fn copied(self) {
        self.pieces.finish(self.count, false);
        std::mem::forget(self);
    }
}

impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        let rest = self.pieces.claim_rest(self.of);
        self.pieces.finish(self.count + rest, true);
    }
}
