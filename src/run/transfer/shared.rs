//! Long messages that both partners copy: the lower rank from the front, the other from the back,
//! until they meet.
//!
//! Both copy the same halves of equal messages each time, whichever way they go, so each half stays
//! in the cache of the core that copies it.

use super::packed::{Packed, RecvOp};
use super::protocol::Pieces;
use super::sync::{spin_loop, yield_now};
use crate::run::element::Element;

/// A message, where it goes, and how it is divided into pieces.
pub(super) struct Shared<'m, T> {
    pub(super) mine: Packed<'m, T>,
    pub(super) message: Packed<'m, T>,
    pub(super) op: RecvOp<'m, T>,
    pub(super) division: Division,
    /// Whether this side begins at the back.
    pub(super) backwards: bool,
}

/// How a message is divided.
#[derive(Debug, Clone, Copy)]
pub(super) struct Division {
    elements: usize,
    /// Elements of a piece; the last may have fewer.
    each: usize,
    pub(super) pieces: usize,
    /// Whether the message goes past the caches.
    pub(super) stream: bool,
}

impl Division {
    /// Of a message of `elements` elements; one piece where more are not worth the handshake. From
    /// `streams_from` bytes on it goes past the caches.
    pub(super) fn of<T>(elements: usize, streams_from: usize) -> Division {
        const SMALLEST: usize = 16 << 10;
        const LARGEST: usize = 256 << 10;
        let bytes = elements * size_of::<T>();
        let each = if bytes < 2 * SMALLEST {
            elements.max(1)
        } else {
            ((bytes / 16).clamp(SMALLEST, LARGEST) / size_of::<T>()).max(1)
        };
        Division {
            elements,
            each,
            pieces: elements.div_ceil(each),
            stream: bytes >= streams_from,
        }
    }

    /// How many pieces to claim after `own`: at first most of a half, then one at a time, so that
    /// whoever is faster does more.
    fn claim(self, own: usize) -> usize {
        if own == 0 {
            (3 * self.pieces / 8).max(1)
        } else {
            1
        }
    }
}

impl<T: Element> Shared<'_, T> {
    /// Receiver, once the sender is invited: copies until nothing is left to claim, and waits for
    /// the sender's pieces. False when the sender failed in one.
    ///
    /// # Safety
    /// Message and target hold the elements of the division and lie within their buffers; the
    /// target's spans are disjoint; but for pieces that the partner has claimed, nobody else
    /// writes the message or touches the target until this returns.
    pub(super) unsafe fn receive(&self, pieces: &Pieces) -> bool {
        // Also when an operator panics, the sender must be through before the message is refused.
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
            // SAFETY: the caller's; the claimed pieces are this side's alone.
            unsafe { self.copy(first, n) };
        }
        let (own, count) = (all.own, all.count);
        drop(all);
        pieces.finished(count - own) == Some(true)
    }

    /// Copies `pieces` pieces from piece `first` on, as this side counts them.
    ///
    /// # Safety
    /// As [`Shared::receive`], for pieces that this side has claimed.
    pub(super) unsafe fn copy(&self, first: usize, pieces: usize) {
        let Division {
            elements,
            each,
            stream,
            ..
        } = self.division;
        let first = if self.backwards {
            self.division.pieces - first - pieces
        } else {
            first
        };
        let range = first * each..((first + pieces) * each).min(elements);
        // SAFETY: the caller's.
        unsafe {
            self.op.apply(&self.mine, &self.message, range, stream);
        }
    }
}

/// Claims what is left and waits for the sender's pieces when dropped.
struct AllPieces<'w> {
    pieces: &'w Pieces,
    count: usize,
    own: usize,
}

impl Drop for AllPieces<'_> {
    fn drop(&mut self) {
        let own = self.own + self.pieces.claim_rest(self.count);
        // The sender is copying on another core; should it have lost that core, it gets this one.
        let mut polls = 0u32;
        while self.pieces.finished(self.count - own).is_none() {
            polls = polls.wrapping_add(1);
            if polls.is_multiple_of(1024) {
                yield_now();
            } else {
                spin_loop();
            }
        }
    }
}

/// Pieces that the sender is copying. Dropped before they are copied, because an operator panicked,
/// they are spoilt, and all that nobody has claimed with them: the receiver must not wait for ever,
/// nor take them for received.
pub(super) struct Claimed<'w> {
    pieces: &'w Pieces,
    of: usize,
    pub(super) count: usize,
}

impl<'w> Claimed<'w> {
    /// Some more pieces, if any are left; the sender has copied `own`.
    pub(super) fn more(pieces: &'w Pieces, division: Division, own: usize) -> Option<Self> {
        let count = pieces.claim(division.pieces, division.claim(own));
        // Made only if there are any: dropping it says that they are spoilt.
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
