//! Memory in which loom checks every access: the ranks' buffers and the slots.
//!
//! This file replaces `src/run/transfer/copy.rs` and the operator, which contain all code of the
//! crate's sources that reads or writes elements.
//!
//! Loom runs all threads of a model on one system thread, one at a time. So the elements can be
//! copied for real without a data race, and results can be compared.

use std::cell::RefCell;
use std::panic::resume_unwind;
use std::rc::Rc;

use loom::cell::UnsafeCell;
use oneport::Order;
use oneport::run::Element;

/// Bytes of a message that fit into a lane. Each side has them on its stack, where accesses are not
/// checked.
const INLINE_BYTES: usize = 16;

/// Memory in which accesses are checked, with one cell for each block.
struct Checked {
    start: usize,
    bytes: usize,
    block_bytes: usize,
    blocks: Vec<UnsafeCell<()>>,
}

thread_local! {
    /// All checked memory of the current execution of a model.
    static CHECKED: RefCell<Vec<Rc<Checked>>> = const { RefCell::new(Vec::new()) };
    /// Buffers live until the next execution, so that an access that comes too late is reported as
    /// a race, and does not access freed memory.
    static BUFFERS: RefCell<Vec<Rc<Buffer>>> = const { RefCell::new(Vec::new()) };
}

/// Begins an execution: forgets the memory of the last one.
pub(crate) fn begin() {
    CHECKED.take();
    BUFFERS.take();
}

/// Checks all later accesses to the `bytes` bytes from `start` on, in blocks of `block_bytes`.
pub(crate) fn check(start: *const u8, bytes: usize, block_bytes: usize) {
    let blocks = bytes.div_ceil(block_bytes);
    let checked = Checked {
        start: start.addr(),
        bytes,
        block_bytes,
        blocks: (0..blocks).map(|_| UnsafeCell::new(())).collect(),
    };
    CHECKED.with_borrow_mut(|all| all.push(Rc::new(checked)));
}

/// A rank's buffer, which the crate's sources access.
pub(crate) struct Buffer {
    start: *mut u64,
    len: usize,
}

impl Buffer {
    /// A buffer of `len` elements with the given values, checked in blocks of `block` elements.
    pub(crate) fn new(len: usize, block: usize, value: impl FnMut(usize) -> u64) -> Rc<Buffer> {
        let elements: Box<[u64]> = (0..len).map(value).collect();
        let start = Box::into_raw(elements).cast::<u64>();
        check(
            start.cast(),
            len * size_of::<u64>(),
            block * size_of::<u64>(),
        );
        let buffer = Rc::new(Buffer { start, len });
        BUFFERS.with_borrow_mut(|all| all.push(buffer.clone()));
        buffer
    }

    /// The whole buffer, for `RankMemory`. This alone does not count as an access.
    #[allow(clippy::mut_from_ref, unsafe_code)]
    pub(crate) fn elements(&self) -> &mut [u64] {
        // SAFETY: the box that `new` made lives as long as `self`. Only one rank calls this, for
        // one `RankMemory` at a time, and the model checks the accesses of its partner.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.len) }
    }

    /// Records a write to the whole buffer by its owner: a race, if anybody else still accesses it.
    pub(crate) fn write(&self) {
        access(self.start.cast(), self.len * size_of::<u64>(), true);
    }
}

#[allow(unsafe_code)]
impl Drop for Buffer {
    fn drop(&mut self) {
        let elements = std::ptr::slice_from_raw_parts_mut(self.start, self.len);
        // SAFETY: `new` made the box, and the execution that used it has ended.
        drop(unsafe { Box::from_raw(elements) });
    }
}

/// Records a read of `elements` by their owner.
pub(crate) fn read(elements: &[u64]) -> &[u64] {
    access(elements.as_ptr().cast(), size_of_val(elements), false);
    elements
}

fn access(at: *const u8, bytes: usize, writes: bool) {
    let found = CHECKED.with_borrow(|all| {
        all.iter()
            .find(|c| (c.start..c.start + c.bytes).contains(&at.addr()))
            .cloned()
    });
    let Some(checked) = found else {
        assert!(
            bytes <= INLINE_BYTES,
            "access to neither a buffer nor a lane's payload"
        );
        return;
    };
    let start = at.addr() - checked.start;
    assert!(
        start + bytes <= checked.bytes,
        "access beyond the end of the buffer"
    );
    let blocks = start / checked.block_bytes..(start + bytes).div_ceil(checked.block_bytes);
    for block in &checked.blocks[blocks] {
        if writes {
            block.with_mut(|_| ());
        } else {
            block.with(|_| ());
        }
    }
}

/// # Safety
/// As the crate's `copy`.
#[allow(unsafe_code)]
pub(crate) unsafe fn copy(dst: *mut u8, src: *const u8, bytes: usize, _stream: bool) {
    if bytes > 0 {
        access(src, bytes, false);
        access(dst, bytes, true);
    }
    // SAFETY: guaranteed by the caller.
    unsafe { std::ptr::copy_nonoverlapping(src, dst, bytes) };
}

/// # Safety
/// As the crate's `copy_short`.
#[allow(unsafe_code)]
pub(crate) unsafe fn copy_short(dst: *mut u8, src: *const u8, bytes: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe { copy(dst, src, bytes, false) };
}

/// Does nothing: a prefetch is not an access.
pub(crate) fn fetch(_: *const (), _: usize) {}

/// An operator that combines elements, or that panics.
#[derive(Debug)]
pub(crate) struct Operator<T> {
    combine: Option<fn(T, T) -> T>,
}

/// The payload of an operator's panic.
pub(crate) struct OperatorFailed;

impl<T: Element> Operator<T> {
    pub(crate) fn new(combine: fn(T, T) -> T) -> Self {
        Operator {
            combine: Some(combine),
        }
    }

    pub(crate) fn panicking() -> Self {
        Operator { combine: None }
    }

    pub(crate) fn combine(&self, acc: &mut [T], other: &[T], _: Order) {
        access(acc.as_ptr().cast(), size_of_val(acc), true);
        access(other.as_ptr().cast(), size_of_val(other), false);
        // `resume_unwind` does not call the panic hook, which would print a message in each of
        // thousands of executions.
        let f = self
            .combine
            .unwrap_or_else(|| resume_unwind(Box::new(OperatorFailed)));
        for (a, &b) in acc.iter_mut().zip(other) {
            *a = f(*a, b);
        }
    }
}
