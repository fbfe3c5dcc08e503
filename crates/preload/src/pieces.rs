//! Where the data of a call are: found once for calls that differ in addresses alone.

use std::ffi::c_void;
use std::ops::Range;
use std::ptr::null_mut;

use oneport::{Layout, Span};

use crate::describe::Described;
use crate::memory::Side;

/// What calls that differ in addresses alone have alike: where their data are in the buffer of this
/// rank, and where in the program's memory, in bytes after the addresses that it passes.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    /// The buffer's bytes.
    pub(crate) buffer_bytes: usize,
    /// Where the input starts in the buffer.
    start: usize,
    /// The input and its bytes, if it is one piece for the program and in the buffer.
    input: Option<(isize, usize)>,
    /// The output, as the input, and where it starts in the buffer.
    output: Option<(isize, usize)>,
    out_start: usize,
    /// Whether the memory of the output can be the buffer: the schedule needs no more.
    is_whole: bool,
    /// Whether input and output are one piece each, if there are any.
    pub(crate) are_single: bool,
}

/// Where the data of a call are.
#[derive(Debug)]
pub(crate) struct Placed {
    /// The input and its bytes, if it is one piece for the program and in the buffer.
    pub(crate) input: Option<(*mut u8, usize)>,
    /// The output, likewise, and where it starts in the buffer.
    pub(crate) output: Option<(*mut u8, Range<usize>)>,
    /// The memory of the output, if it is the buffer.
    pub(crate) own: Option<*mut u8>,
    /// Whether the input is in this memory, at its place in the buffer.
    pub(crate) is_in_place: bool,
}

impl Pieces {
    pub(crate) fn of(described: &Described, layout: &Layout) -> Pieces {
        let element = described.shape.element;
        let (bytes, as_items) = (element.bytes(), element.is_item());
        let buffer_bytes = layout.len * bytes;
        let place = |spans: &[Span]| match spans {
            [span] => span.offset * bytes..span.end() * bytes,
            _ => 0..0,
        };
        let piece = |side: &Option<Side>, place: &Range<usize>| {
            let piece = side.as_ref()?.piece(as_items);
            piece.filter(|&(_, length)| length == place.len())
        };
        let (from, to) = (place(&layout.input), place(&layout.output));
        let input = piece(&described.input, &from);
        let output = piece(&described.output, &to);
        Pieces {
            buffer_bytes,
            start: from.start,
            input,
            output,
            out_start: to.start,
            is_whole: to == (0..buffer_bytes),
            are_single: input.is_some() == described.input.is_some()
                && output.is_some() == described.output.is_some(),
        }
    }

    /// Where they are in this call.
    #[inline]
    pub(crate) fn of_call(&self, described: &Described) -> Placed {
        let at = |side: &Option<Side>| side.as_ref().map_or(null_mut(), |side| side.at);
        let (from, to) = (at(&described.input), at(&described.output));
        let after = |at: *mut c_void, offset| at.wrapping_byte_offset(offset).cast::<u8>();
        let input = self
            .input
            .map(|(offset, length)| (after(from, offset), length));
        let output = self
            .output
            .map(|(offset, length)| (after(to, offset), length));
        let own = output.filter(|_| self.is_whole).map(|(at, _)| at);
        let is_in_place =
            own.is_some_and(|own| input.is_some_and(|(at, _)| at == own.wrapping_add(self.start)));
        // An input that overlaps the output otherwise is copied first.
        let is_apart =
            |own: &*mut u8| !(own.addr()..own.addr() + self.buffer_bytes).contains(&from.addr());
        Placed {
            input,
            output: output.map(|(at, length)| (at, self.out_start..self.out_start + length)),
            own: own.filter(|own| is_in_place || is_apart(own)),
            is_in_place,
        }
    }
}
