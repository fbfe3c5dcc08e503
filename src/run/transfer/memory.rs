//! The ranks' memory, and everything that reads or writes it while transfers are open.

use std::marker::PhantomData;
use std::ops::Range;

use super::protocol::{INLINE_BYTES, Parcel, Sent, Wire};
use crate::run::element::Element;
use crate::run::operator::Operator;
use crate::schedule::{Order, Span, total_len};

/// One rank's buffer and its open sends. While a send is open the partner may read its spans at any time, so nothing here
/// writes them before it is done.
#[derive(Debug)]
pub(crate) struct RankMemory<'b, 'r, T: Element> {
    rank: usize,
    base: *mut T,
    len: usize,
    open: Vec<Option<OpenSend<'r>>>,
    lent: PhantomData<&'b mut [T]>,
}

#[derive(Debug, Clone, Copy)]
struct OpenSend<'r> {
    wire: &'r Wire,
    to: usize,
    spans: Lent<'r>,
}

/// The spans of an open send: one by value, or more by reference to something that outlives the run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lent<'r> {
    /// One span.
    One(Span),
    /// Several.
    Many(&'r [Span]),
}

impl Lent<'_> {
    fn as_slice(&self) -> &[Span] {
        match self {
            Lent::One(span) => std::slice::from_ref(span),
            Lent::Many(spans) => spans,
        }
    }
}

/// What a receive does with the message.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Intake<'o, T> {
    /// Stores it.
    Store,
    /// Combines it into the spans.
    Combine(&'o Operator<T>, Order),
}

/// How a receive went.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Received {
    /// Nothing is offered.
    Nothing,
    /// Taken in; the model time at which the transfer ended.
    Done(f64),
    /// A message of another length, which was refused.
    Length(usize),
}

impl<'b, 'r, T: Element> RankMemory<'b, 'r, T> {
    /// The memory of `rank`, with one open send a port list at most.
    pub(crate) fn new(rank: usize, buffer: &'b mut [T], lists: usize) -> Self {
        RankMemory {
            rank,
            base: buffer.as_mut_ptr(),
            len: buffer.len(),
            open: vec![None; lists],
            lent: PhantomData,
        }
    }

    /// Opens a send on port list `list`. `clock` is the model time at which this rank may start it.
    ///
    /// # Panics
    /// When the list has an open send, or a span leaves the buffer.
    pub(crate) fn open_send(
        &mut self,
        list: usize,
        wire: &'r Wire,
        to: usize,
        spans: Lent<'r>,
        clock: f64,
    ) {
        assert!(self.open[list].is_none(), "one open send a port");
        self.check_bounds(spans.as_slice());
        let elements = total_len(spans.as_slice());
        let inline = elements * size_of::<T>() <= INLINE_BYTES;
        let mut parcel = Parcel {
            clock,
            borrowed: !inline,
            length: 0,
            words: [0; 2],
        };
        if inline {
            parcel.length = u32::try_from(elements).expect("at most 16");
            let message = Packed {
                base: parcel.words.as_mut_ptr().cast::<T>(),
                spans: &[Span::new(0, elements)],
            };
            // SAFETY: `words` has room for 16 bytes, aligned for every element type; the spans are in bounds, and this rank's
            // thread writes nothing meanwhile.
            unsafe { Packed::copy(&message, &self.packed(spans.as_slice()), 0..elements) };
        } else {
            match spans {
                Lent::One(span) => {
                    // SAFETY: the span is in bounds.
                    parcel.words[0] = unsafe { self.base.add(span.offset) } as u64;
                    parcel.words[1] = span.len as u64;
                }
                Lent::Many(spans) => {
                    parcel.length = u32::try_from(spans.len()).expect("fewer than 2^32 spans");
                    parcel.words = [self.base as u64, spans.as_ptr() as u64];
                }
            }
        }
        self.open[list] = Some(OpenSend { wire, to, spans });
        wire.lane(self.rank, to).offer(parcel);
    }

    /// How the open send of `list` stands; helps to copy when the receiver invites this rank. `Done` and `Refused` close it.
    pub(crate) fn poll_send(&mut self, list: usize, operator: &Operator<T>) -> Sent {
        let Some(OpenSend { wire, to, spans }) = self.open[list] else {
            return Sent::Refused;
        };
        let sent = wire.lane(self.rank, to).sent();
        match sent {
            Sent::Shared => {
                self.help(wire, to, spans.as_slice(), operator);
                Sent::Waiting
            }
            Sent::Done(_) | Sent::Refused => {
                self.open[list] = None;
                sent
            }
            Sent::Waiting => sent,
        }
    }

    /// The list of an open send whose spans `spans` touch.
    pub(crate) fn conflict(&self, spans: &[Span]) -> Option<usize> {
        self.open
            .iter()
            .position(|o| o.is_some_and(|o| any_overlap(o.spans.as_slice(), spans)))
    }

    /// Takes in the message offered by `from`, if there is one.
    ///
    /// `end` maps the sender's clock to the model time at which the transfer ends. With `share`, long messages are copied by both
    /// partners.
    ///
    /// # Panics
    /// When a span leaves the buffer or is being sent.
    pub(crate) fn receive(
        &mut self,
        wire: &Wire,
        from: usize,
        spans: &[Span],
        intake: Intake<'_, T>,
        share: bool,
        end: impl FnOnce(f64) -> f64,
    ) -> Received {
        let lane = wire.lane(from, self.rank);
        let Some(mut parcel) = lane.take() else {
            return Received::Nothing;
        };
        let refusal = Refusal(lane);
        self.check_bounds(spans);
        assert!(self.conflict(spans).is_none(), "a span being sent");
        let expected = total_len(spans);
        let inline_span;
        let (base, from_spans): (*mut T, &[Span]) = if !parcel.borrowed {
            inline_span = Span::new(0, parcel.length as usize);
            (
                parcel.words.as_mut_ptr().cast(),
                std::slice::from_ref(&inline_span),
            )
        } else if parcel.length == 0 {
            inline_span = Span::new(0, to_usize(parcel.words[1]));
            (
                parcel.words[0] as *mut T,
                std::slice::from_ref(&inline_span),
            )
        } else {
            // SAFETY: the sender lends its spans and its buffer until the lane is finished or refused.
            let spans = unsafe {
                std::slice::from_raw_parts(parcel.words[1] as *const Span, parcel.length as usize)
            };
            (parcel.words[0] as *mut T, spans)
        };
        let message = Packed {
            base,
            spans: from_spans,
        };
        let found = total_len(from_spans);
        if found != expected {
            drop(refusal);
            return Received::Length(found);
        }
        let mine = self.packed(spans);
        let pieces = expected.div_ceil(piece_elements::<T>(expected));
        // Where spans overlap, two pieces may be the same memory: one side alone copies them, one after another.
        if parcel.borrowed && share && pieces > 1 && !self_overlap(spans) {
            self.receive_shared(wire, from, &mine, &message, intake, expected);
        } else {
            // SAFETY: the message is lent for reading until `finish`; the spans are in bounds, not being sent, and only this
            // rank's thread writes them.
            unsafe { intake.apply(&mine, &message, 0..expected) };
        }
        std::mem::forget(refusal);
        let end = end(parcel.clock);
        lane.finish(end);
        Received::Done(end)
    }

    /// Copies from the front while the sender copies from the back. The spans are disjoint.
    fn receive_shared(
        &self,
        wire: &Wire,
        from: usize,
        mine: &Packed<'_, T>,
        message: &Packed<'_, T>,
        intake: Intake<'_, T>,
        elements: usize,
    ) {
        let each = piece_elements::<T>(elements);
        let count = elements.div_ceil(each);
        let pieces = wire.pieces(from, self.rank);
        let code = match intake {
            Intake::Store => 0,
            Intake::Combine(_, Order::MineFirst) => 1,
            Intake::Combine(_, Order::TheirsFirst) => 2,
        };
        let target = [
            mine.base as u64,
            mine.spans.as_ptr() as u64,
            mine.spans.len() as u64,
            code,
        ];
        pieces.open(target, count);
        wire.lane(from, self.rank).share();
        // Also when an operator panics, the sender must be through before the message is refused.
        let mut all = AllPieces {
            pieces,
            count,
            own: 0,
        };
        while pieces.claim(count) {
            let first = all.own * each;
            all.own += 1;
            let range = first..(first + each).min(elements);
            // SAFETY: as in `receive`; the claimed piece is this side's alone.
            unsafe { intake.apply(mine, message, range) };
        }
    }

    /// Copies pieces of the message into the receiver's memory, from the back.
    fn help(&self, wire: &Wire, to: usize, spans: &[Span], operator: &Operator<T>) {
        let pieces = wire.pieces(self.rank, to);
        let ([base, their_spans, their_count, code], count) = pieces.target();
        let intake = match code {
            0 => Intake::Store,
            1 => Intake::Combine(operator, Order::MineFirst),
            _ => Intake::Combine(operator, Order::TheirsFirst),
        };
        let elements = total_len(spans);
        let each = piece_elements::<T>(elements);
        let mut own = 0;
        while pieces.claim(count) {
            own += 1;
            // Counted also when an operator panics: the receiver must not wait for ever.
            let _finished = OnDrop(|| pieces.finish_piece());
            let first = (count - own) * each;
            let range = first..(first + each).min(elements);
            // SAFETY: the receiver waits for every claimed piece before it finishes, so its spans are there.
            let their_spans = unsafe {
                std::slice::from_raw_parts(their_spans as *const Span, to_usize(their_count))
            };
            let theirs = Packed {
                base: base as *mut T,
                spans: their_spans,
            };
            // SAFETY: its memory is there too, and nobody else touches this piece of it, because the receiver's spans are disjoint; the
            // message is this rank's own memory, lent and unwritten while open.
            unsafe { intake.apply(&theirs, &self.packed(spans), range) };
        }
    }

    /// `dst = src`, both in this rank's buffer.
    ///
    /// # Panics
    /// When a span leaves the buffer, `dst` is being sent or overlaps `src`, or the lengths differ.
    pub(crate) fn local(&mut self, dst: &[Span], src: &[Span], intake: Intake<'_, T>) {
        self.check_bounds(dst);
        self.check_bounds(src);
        assert!(self.conflict(dst).is_none(), "a span being sent");
        assert!(!any_overlap(dst, src), "source and destination overlap");
        let elements = total_len(dst);
        assert_eq!(elements, total_len(src), "source and destination differ");
        // SAFETY: both are in bounds, disjoint, and only this rank's thread writes them; open sends only read.
        unsafe { intake.apply(&self.packed(dst), &self.packed(src), 0..elements) };
    }

    /// The whole buffer.
    ///
    /// # Panics
    /// When a send is open: its receiver may be reading.
    pub(crate) fn data_mut(&mut self) -> &mut [T] {
        assert!(self.open.iter().all(Option::is_none), "a send is open");
        // SAFETY: no send is open, so no other thread reads or writes this buffer; the borrow of `self` keeps it so.
        unsafe { std::slice::from_raw_parts_mut(self.base, self.len) }
    }

    /// The whole buffer, for reading.
    pub(crate) fn data(&self) -> &[T] {
        // SAFETY: open sends only read it, and this rank's thread writes nothing while the borrow lasts.
        unsafe { std::slice::from_raw_parts(self.base, self.len) }
    }

    fn packed<'s>(&self, spans: &'s [Span]) -> Packed<'s, T> {
        Packed {
            base: self.base,
            spans,
        }
    }

    fn check_bounds(&self, spans: &[Span]) {
        for s in spans {
            assert!(
                s.end() <= self.len,
                "span [{}, {}] leaves the buffer of {} elements",
                s.offset,
                s.len,
                self.len
            );
        }
    }
}

impl<T: Element> Drop for RankMemory<'_, '_, T> {
    fn drop(&mut self) {
        // A rank that failed leaves open sends behind. The buffer goes back to its owner now, so they are taken back, or, where
        // the receiver has begun, waited for; receivers finish without this rank's help.
        for open in self.open.iter_mut().filter_map(Option::take) {
            let lane = open.wire.lane(self.rank, open.to);
            if !lane.retract() {
                while !matches!(lane.sent(), Sent::Done(_) | Sent::Refused) {
                    std::thread::yield_now();
                }
            }
        }
    }
}

/// A message as a sequence of elements: spans of a buffer, one after another.
struct Packed<'s, T> {
    base: *mut T,
    spans: &'s [Span],
}

impl<T: Element> Packed<'_, T> {
    /// Calls `f(to, from, elements)` for each stretch of `range` that is contiguous on both sides.
    ///
    /// # Safety
    /// Both messages hold `range`, and their spans are within their buffers.
    unsafe fn stretches(
        to: &Packed<'_, T>,
        from: &Packed<'_, T>,
        range: Range<usize>,
        mut f: impl FnMut(*mut T, *mut T, usize),
    ) {
        let (mut a, mut b) = (
            Cursor::at(to.spans, range.start),
            Cursor::at(from.spans, range.start),
        );
        let mut left = range.len();
        while left > 0 {
            let n = a.left(to.spans).min(b.left(from.spans)).min(left);
            // SAFETY: the cursor is inside a span, which is within the buffer.
            let dst = unsafe { to.base.add(a.offset(to.spans)) };
            // SAFETY: as above.
            let src = unsafe { from.base.add(b.offset(from.spans)) };
            f(dst, src, n);
            a.advance(to.spans, n);
            b.advance(from.spans, n);
            left -= n;
        }
    }

    /// Stores `range` of `from` into `to`.
    ///
    /// # Safety
    /// As [`Packed::stretches`]; nobody else writes `from`, or touches `to`, in that range, and the two do not overlap.
    unsafe fn copy(to: &Packed<'_, T>, from: &Packed<'_, T>, range: Range<usize>) {
        let copy = |dst: *mut T, src: *mut T, n| {
            // SAFETY: `n` elements at both, not overlapping.
            unsafe { std::ptr::copy_nonoverlapping(src, dst, n) }
        };
        // SAFETY: the caller's.
        unsafe { Packed::stretches(to, from, range, copy) }
    }
}

impl<T: Element> Intake<'_, T> {
    /// Takes `range` of `message` into `mine`.
    ///
    /// # Safety
    /// As [`Packed::copy`].
    unsafe fn apply(self, mine: &Packed<'_, T>, message: &Packed<'_, T>, range: Range<usize>) {
        match self {
            // SAFETY: the caller's.
            Intake::Store => unsafe { Packed::copy(mine, message, range) },
            Intake::Combine(operator, order) => {
                let combine = |dst: *mut T, src: *mut T, n| {
                    // SAFETY: `n` elements that nobody else touches.
                    let acc = unsafe { std::slice::from_raw_parts_mut(dst, n) };
                    // SAFETY: `n` elements that nobody writes, not overlapping `acc`.
                    let other = unsafe { std::slice::from_raw_parts(src, n) };
                    operator.combine(acc, other, order);
                };
                // SAFETY: the caller's.
                unsafe { Packed::stretches(mine, message, range, combine) }
            }
        }
    }
}

/// A place in a packed message.
struct Cursor {
    span: usize,
    within: usize,
}

impl Cursor {
    fn at(spans: &[Span], mut element: usize) -> Cursor {
        let mut span = 0;
        while span < spans.len() && element >= spans[span].len {
            element -= spans[span].len;
            span += 1;
        }
        Cursor {
            span,
            within: element,
        }
    }

    fn left(&self, spans: &[Span]) -> usize {
        spans[self.span].len - self.within
    }

    fn offset(&self, spans: &[Span]) -> usize {
        spans[self.span].offset + self.within
    }

    fn advance(&mut self, spans: &[Span], n: usize) {
        self.within += n;
        while self.span < spans.len() && self.within >= spans[self.span].len {
            self.within -= spans[self.span].len;
            self.span += 1;
        }
    }
}

/// Refuses the message when dropped: a receiver that panics must not leave the sender waiting.
struct Refusal<'w>(&'w super::protocol::Lane);

impl Drop for Refusal<'_> {
    fn drop(&mut self) {
        self.0.refuse();
    }
}

/// Claims what is left and waits for the sender's pieces when dropped.
struct AllPieces<'w> {
    pieces: &'w super::protocol::Pieces,
    count: usize,
    own: usize,
}

impl Drop for AllPieces<'_> {
    fn drop(&mut self) {
        let own = self.own + self.pieces.claim_rest(self.count);
        // The sender is copying on another core; should it have lost that core, it gets this one.
        let mut polls = 0u32;
        while !self.pieces.finished(self.count - own) {
            polls = polls.wrapping_add(1);
            if polls.is_multiple_of(1024) {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Elements of one piece of a message that both partners copy; the whole message where that is not worth the handshake.
fn piece_elements<T>(elements: usize) -> usize {
    const SMALLEST: usize = 16 << 10;
    const LARGEST: usize = 64 << 10;
    let bytes = elements * size_of::<T>();
    if bytes < 2 * SMALLEST {
        return elements.max(1);
    }
    let piece = (bytes / 8).clamp(SMALLEST, LARGEST);
    (piece / size_of::<T>()).max(1)
}

fn to_usize(word: u64) -> usize {
    usize::try_from(word).expect("was a usize")
}

/// Whether an element is in two of the spans.
fn self_overlap(spans: &[Span]) -> bool {
    if spans.is_sorted_by(|a, b| a.end() <= b.offset) {
        return false;
    }
    let sorted = sorted(spans);
    !sorted.is_sorted_by(|a, b| a.end() <= b.offset)
}

fn sorted(spans: &[Span]) -> Vec<Span> {
    let mut v: Vec<Span> = spans.iter().copied().filter(|s| s.len > 0).collect();
    v.sort_unstable();
    v
}

/// Whether an element is in both.
pub(crate) fn any_overlap(a: &[Span], b: &[Span]) -> bool {
    if a.len() * b.len() <= 64 {
        return a.iter().any(|x| b.iter().any(|y| x.overlaps(*y)));
    }
    let (a, b) = (sorted(a), sorted(b));
    let mut b = b.iter().peekable();
    a.iter().any(|x| {
        while b.peek().is_some_and(|y| y.end() <= x.offset) {
            b.next();
        }
        b.peek().is_some_and(|y| y.overlaps(*x))
    })
}
