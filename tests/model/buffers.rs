//! Memory in which loom checks every access: the ranks' buffers and the slots, in place of
//! `src/run/transfer/copy.rs` and of the operator, which are all that reads or writes elements in
//! the crate's sources.
//!
//! Loom runs all threads of a model on one thread of the system, one at a time, so that elements
//! are really copied, too, and results can be compared.

use std::cell::RefCell;
use std::panic::resume_unwind;
use std::rc::Rc;

use loom::cell::UnsafeCell;
use oneport::Order;
use oneport::run::Element;

/// Bytes that travel inside a lane, on the stack of either side.
const INLINE_BYTES: usize = 16;

/// Memory in which accesses are checked, block by block.
struct Checked {
    start: usize,
    bytes: usize,
    block_bytes: usize,
    blocks: Vec<UnsafeCell<()>>,
}

thread_local! {
    /// All there is in one execution of a model.
    static CHECKED: RefCell<Vec<Rc<Checked>>> = const { RefCell::new(Vec::new()) };
    /// Buffers stay until the next execution, so that what comes too late is a reported race and nothing worse.
    static BUFFERS: RefCell<Vec<Rc<Buffer>>> = const { RefCell::new(Vec::new()) };
}

/// An execution begins: what there was in the last one is gone.
pub(crate) fn begin() {
    CHECKED.take();
    BUFFERS.take();
}

/// From here on accesses to these bytes are checked, in blocks of so many.
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

/// A rank's buffer. Whatever the rank does with it is up to the sources.
pub(crate) struct Buffer {
    start: *mut u64,
    len: usize,
}

impl Buffer {
    /// So many elements with these values; accesses are checked in blocks of `block` elements.
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

    /// All of it, for its rank's memory. Not recorded as an access.
    #[allow(clippy::mut_from_ref, unsafe_code)]
    pub(crate) fn send_spans(&self) -> &mut [u64] {
        // SAFETY: the box that `new` made lives as long as `self`; one rank asks for it at a time,
        // and the model checks its partner.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.len) }
    }

    /// Its owner has it for itself.
    pub(crate) fn write(&self) {
        access(self.start.cast(), self.len * size_of::<u64>(), true);
    }
}

#[allow(unsafe_code)]
impl Drop for Buffer {
    fn drop(&mut self) {
        let elements = std::ptr::slice_from_raw_parts_mut(self.start, self.len);
        // SAFETY: made by `new`, and the execution has ended.
        drop(unsafe { Box::from_raw(elements) });
    }
}

/// Elements, read by their owner.
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
            "neither a buffer nor a lane's payload"
        );
        return;
    };
    let start = at.addr() - checked.start;
    assert!(start + bytes <= checked.bytes, "leaves the buffer");
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
/// That of the crate's.
#[allow(unsafe_code)]
pub(crate) unsafe fn copy(dst: *mut u8, src: *const u8, bytes: usize, _stream: bool) {
    if bytes > 0 {
        access(src, bytes, false);
        access(dst, bytes, true);
    }
    // SAFETY: the caller's.
    unsafe { std::ptr::copy_nonoverlapping(src, dst, bytes) };
}

/// # Safety
/// That of the crate's.
#[allow(unsafe_code)]
pub(crate) unsafe fn copy_short(dst: *mut u8, src: *const u8, bytes: usize) {
    // SAFETY: the caller's.
    unsafe { copy(dst, src, bytes, false) };
}

/// Reads nothing.
pub(crate) fn fetch(_: *const (), _: usize) {}

/// Combines elements, or panics.
#[derive(Debug)]
pub(crate) struct Operator<T> {
    combine: Option<fn(T, T) -> T>,
}

/// What an operator panics with.
pub(crate) struct OperatorFailed;

impl<T: Element> Operator<T> {
    pub(crate) fn new(combine: fn(T, T) -> T) -> Self {
        Operator {
            combine: Some(combine),
        }
    }

    pub(crate) fn that_panics() -> Self {
        Operator { combine: None }
    }

    pub(crate) fn combine(&self, acc: &mut [T], other: &[T], _: Order) {
        access(acc.as_ptr().cast(), size_of_val(acc), true);
        access(other.as_ptr().cast(), size_of_val(other), false);
        // Without a word on the standard error, where each of thousands of executions would leave
        // one.
        let f = self
            .combine
            .unwrap_or_else(|| resume_unwind(Box::new(OperatorFailed)));
        for (a, &b) in acc.iter_mut().zip(other) {
            *a = f(*a, b);
        }
    }
}
