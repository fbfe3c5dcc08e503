//! The application's memory of one call, as the bytes of a schedule's buffer.

use std::ffi::{c_int, c_void};

use oneport::Span;
use smallvec::{SmallVec, smallvec};

use crate::library::{Datatype, Library, Word};

/// Items that a call sends or receives.
#[derive(Debug, Clone)]
pub(crate) struct Side {
    pub(crate) at: *mut c_void,
    pub(crate) datatype: Datatype,
    /// Of each block: where it starts, in items, and its number of items.
    pub(crate) blocks: Blocks,
}

/// Most calls have one block.
pub(crate) type Blocks = SmallVec<[(isize, usize); 1]>;

impl Side {
    /// `count` items, one after another.
    pub(crate) fn whole(at: *const c_void, datatype: Datatype, count: usize) -> Side {
        Side {
            at: at.cast_mut(),
            datatype,
            blocks: smallvec![(0, count)],
        }
    }

    /// The block of a rank among equal ones of `n` items.
    pub(crate) fn block(&self, rank: usize, n: usize) -> Side {
        Side {
            blocks: smallvec![((rank * n).cast_signed(), n)],
            ..self.clone()
        }
    }

    /// The block of a rank alone.
    pub(crate) fn only(&self, rank: usize) -> Side {
        Side {
            blocks: smallvec![self.blocks[rank]],
            ..self.clone()
        }
    }

    /// Bytes of all items in messages.
    pub(crate) fn bytes(&self) -> usize {
        self.blocks.iter().map(|block| block.1).sum::<usize>() * self.datatype.size
    }

    /// Where items lie, in bytes after the address, and their bytes, if they lie one after another,
    /// as the elements of a schedule do.
    pub(crate) fn piece(&self, as_items: bool) -> Option<(isize, usize)> {
        let [(start, count)] = self.blocks[..] else {
            return None;
        };
        let piece = (
            start * self.datatype.extent,
            count * self.item_bytes(as_items),
        );
        self.datatype.is_memory(as_items).then_some(piece)
    }

    /// Bytes that the items move as: those of their memory in a reduction, else of messages.
    fn item_bytes(&self, as_items: bool) -> usize {
        if as_items {
            self.datatype.extent.unsigned_abs()
        } else {
            self.datatype.size
        }
    }
}

/// How items are copied.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Copier<'l> {
    pub(crate) library: &'l Library,
    pub(crate) communicator: Word,
    /// Whether elements are items with their gaps, as in reductions, and not bytes.
    pub(crate) as_items: bool,
}

impl Copier<'_> {
    /// Copies the items to `spans` of `buffer`, whose elements have so many bytes.
    ///
    /// # Safety
    /// The items are the application's, and readable.
    pub(crate) unsafe fn copy_in(
        &self,
        side: &Side,
        buffer: &mut [u8],
        spans: &[Span],
        element_bytes: usize,
    ) {
        if let ([span], true) = (spans, side.bytes() > 0) {
            let start = span.offset * element_bytes;
            // SAFETY: guaranteed by the caller.
            unsafe { self.gather(side, &mut buffer[start..start + span.len * element_bytes]) };
            return;
        }
        let bytes: usize = spans.iter().map(|span| span.len * element_bytes).sum();
        let mut packed = vec![0; bytes];
        // SAFETY: guaranteed by the caller.
        unsafe { self.gather(side, &mut packed) };
        let mut at = 0;
        for span in spans {
            let (start, len) = (span.offset * element_bytes, span.len * element_bytes);
            buffer[start..start + len].copy_from_slice(&packed[at..at + len]);
            at += len;
        }
    }

    /// Copies `spans` of `buffer` to the items.
    ///
    /// # Safety
    /// The items are the application's, and writable.
    pub(crate) unsafe fn copy_out(
        &self,
        side: &Side,
        buffer: &[u8],
        spans: &[Span],
        element_bytes: usize,
    ) {
        if let [span] = spans {
            let start = span.offset * element_bytes;
            // SAFETY: guaranteed by the caller.
            unsafe { self.scatter(side, &buffer[start..start + span.len * element_bytes]) };
            return;
        }
        let part = |span: &Span| {
            let start = span.offset * element_bytes;
            &buffer[start..start + span.len * element_bytes]
        };
        let packed: Vec<u8> = spans.iter().flat_map(part).copied().collect();
        // SAFETY: guaranteed by the caller.
        unsafe { self.scatter(side, &packed) };
    }

    fn is_memory(&self, datatype: &Datatype) -> bool {
        datatype.is_memory(self.as_items)
    }

    /// # Safety
    /// As [`Copier::copy_in`].
    unsafe fn gather(&self, side: &Side, mut to: &mut [u8]) {
        for &(start, count) in &side.blocks {
            let from = side.at.wrapping_byte_offset(start * side.datatype.extent);
            let bytes = (count * side.item_bytes(self.as_items)).min(to.len());
            let (here, rest) = to.split_at_mut(bytes);
            if self.is_memory(&side.datatype) {
                // SAFETY: `count` items without gaps, or with those that are copied, too.
                unsafe {
                    std::ptr::copy_nonoverlapping(from.cast::<u8>(), here.as_mut_ptr(), bytes);
                }
            } else if bytes > 0 {
                let (count, length) = self.counted(count, bytes);
                let mut position: c_int = 0;
                // SAFETY: `count` items of a datatype of the application, and room for all.
                let code = unsafe {
                    (self.library.functions.pack)(
                        from,
                        count,
                        side.datatype.handle,
                        here.as_mut_ptr().cast(),
                        length,
                        &raw mut position,
                        self.communicator,
                    )
                };
                self.ensure_all("MPI_Pack", code, position, bytes);
            }
            to = rest;
        }
    }

    /// # Safety
    /// As [`Copier::copy_out`].
    unsafe fn scatter(&self, side: &Side, mut from: &[u8]) {
        for &(start, count) in &side.blocks {
            let to = side.at.wrapping_byte_offset(start * side.datatype.extent);
            let bytes = (count * side.item_bytes(self.as_items)).min(from.len());
            let (here, rest) = from.split_at(bytes);
            if self.is_memory(&side.datatype) {
                // SAFETY: room for `count` items without gaps, or with those that are copied, too.
                unsafe { std::ptr::copy_nonoverlapping(here.as_ptr(), to.cast::<u8>(), bytes) };
            } else if bytes > 0 {
                let (count, length) = self.counted(count, bytes);
                let mut position: c_int = 0;
                // SAFETY: room for `count` items of a datatype of the application.
                let code = unsafe {
                    (self.library.functions.unpack)(
                        here.as_ptr().cast(),
                        length,
                        &raw mut position,
                        to,
                        count,
                        side.datatype.handle,
                        self.communicator,
                    )
                };
                self.ensure_all("MPI_Unpack", code, position, bytes);
            }
            from = rest;
        }
    }

    /// A number of items and of bytes as MPI counts. Only a gather or scatter of blocks of unknown
    /// sizes has more.
    fn counted(&self, count: usize, bytes: usize) -> (c_int, c_int) {
        match (c_int::try_from(count), c_int::try_from(bytes)) {
            (Ok(count), Ok(bytes)) => (count, bytes),
            _ => self.library.own.end_job(&format!(
                "a block of {bytes} bytes of a derived datatype is more than MPI counts"
            )),
        }
    }

    /// Ends the job if a library packs otherwise than byte by byte: the others wait for this
    /// process by now.
    fn ensure_all(&self, function: &str, code: c_int, position: c_int, bytes: usize) {
        if code != 0 || usize::try_from(position) != Ok(bytes) {
            self.library.own.end_job(&format!(
                "{function} has packed {position} of {bytes} bytes"
            ));
        }
    }
}
