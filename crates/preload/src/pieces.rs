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
    /// The input and its bytes of the buffer, if it is one piece for the program and there.
    input: Option<(isize, Range<usize>)>,
    /// The output, likewise.
    output: Option<(isize, Range<usize>)>,
    /// Whether input and output are one piece each, if there are any.
    pub(crate) are_single: bool,
}

/// Where the data of a call are.
#[derive(Debug)]
pub(crate) struct Placed {
    /// The input and the number of its bytes, if it is one piece for the program and in the buffer.
    pub(crate) input: Option<(*mut u8, usize)>,
    /// The output, likewise, and its bytes of the buffer.
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
        let piece = |side: &Option<Side>, spans: &[Span]| {
            let (offset, length) = side.as_ref()?.piece(as_items)?;
            let place = match spans {
                [span] => span.offset * bytes..span.end() * bytes,
                _ => 0..0,
            };
            (length == place.len()).then_some((offset, place))
        };
        let input = piece(&described.input, &layout.input);
        let output = piece(&described.output, &layout.output);
        Pieces {
            buffer_bytes,
            are_single: input.is_some() == described.input.is_some()
                && output.is_some() == described.output.is_some(),
            input,
            output,
        }
    }

    /// Where they are in this call.
    #[inline]
    pub(crate) fn of_call(&self, described: &Described) -> Placed {
        let at = |side: &Option<Side>| side.as_ref().map_or(null_mut(), |side| side.at);
        let (from, to) = (at(&described.input), at(&described.output));
        let after = |at: *mut c_void, offset| at.wrapping_byte_offset(offset).cast::<u8>();
        let input = self.input.as_ref();
        let input = input.map(|(offset, place)| (after(from, *offset), place));
        let output = self.output.as_ref();
        let output = output.map(|(offset, place)| (after(to, *offset), place.clone()));
        // The buffer, if the schedule needs no more.
        let own = output.as_ref();
        let own = own.filter(|(_, place)| *place == (0..self.buffer_bytes));
        let own = own.map(|&(at, _)| at);
        let is_in_place = own.is_some_and(|own| {
            input.is_some_and(|(at, place)| at == own.wrapping_add(place.start))
        });
        // An input that overlaps the output otherwise is copied first.
        let is_apart =
            |own: &*mut u8| !(own.addr()..own.addr() + self.buffer_bytes).contains(&from.addr());
        Placed {
            input: input.map(|(at, place)| (at, place.len())),
            output,
            own: own.filter(|own| is_in_place || is_apart(own)),
            is_in_place,
        }
    }
}
