//! What a process knows of a call from its arguments.
//!
//! `None` of arguments that the library will refuse, and of what is never served. It must be `None`
//! on all processes or on none: see `choice`.

use std::ffi::{c_int, c_void};

use oneport::Kind;

use crate::choice::{Element, Shape};
use crate::library::{Datatype, Form, Library, Word};
use crate::memory::Side;

/// Where a process stands in a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At<'l> {
    pub(crate) library: &'l Library,
    pub(crate) rank: usize,
    pub(crate) ranks: usize,
}

/// A call that a schedule may serve.
#[derive(Debug)]
pub(crate) struct Described {
    pub(crate) shape: Shape,
    pub(crate) input: Option<Side>,
    pub(crate) output: Option<Side>,
}

impl Described {
    /// Of the vector, or of one rank's block.
    pub(crate) fn bytes(&self) -> usize {
        self.shape.elements * self.shape.element.bytes()
    }

    /// The data of this process.
    pub(crate) fn sides(&self) -> impl Iterator<Item = &Side> {
        self.input.iter().chain(&self.output)
    }
}

/// A call in which no process knows the sizes of all blocks.
#[derive(Debug)]
pub(crate) enum Irregular {
    /// A gather or a scatter.
    Rooted {
        root: usize,
        /// The block of this process, unless the root leaves it in place.
        own: Option<Side>,
        /// The bytes of that block.
        bytes: usize,
        /// At the root, all blocks.
        all: Option<Side>,
    },
    /// Blocks for and of all ranks.
    Alltoall(Side, Side),
}

impl Irregular {
    /// What this process sends, or its block.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Irregular::Rooted { bytes, .. } => *bytes,
            Irregular::Alltoall(input, _) => input.bytes(),
        }
    }
}

/// A count or a displacement.
pub(crate) trait Number: Copy {
    fn get(self) -> isize;
}

impl Number for c_int {
    fn get(self) -> isize {
        self as isize
    }
}

impl Number for i64 {
    #[expect(clippy::cast_possible_truncation, reason = "both have 64 bits")]
    fn get(self) -> isize {
        self as isize
    }
}

impl Number for isize {
    fn get(self) -> isize {
        self
    }
}

/// An address, a number of items and their datatype.
type Items<P, N> = (P, N, Word);
/// An address, the numbers of items for all ranks, where they are, and their datatype.
type Lists<P, N, D> = (P, *const N, *const D, Word);

fn count(n: impl Number) -> Option<usize> {
    usize::try_from(n.get()).ok()
}

impl At<'_> {
    /// The root of a call, if it is a rank.
    fn root(&self, root: c_int) -> Option<usize> {
        count(root).filter(|&root| root < self.ranks)
    }

    /// What the root alone has.
    fn of_root(&self, root: usize, find: impl FnOnce() -> Option<Side>) -> Option<Option<Side>> {
        if self.rank == root {
            find().map(Some)
        } else {
            Some(None)
        }
    }

    fn is_in_place(&self, buffer: *const c_void) -> bool {
        self.library.is_in_place(buffer)
    }

    /// `times` as many items as these.
    fn side(
        &self,
        (at, n, datatype): Items<*const c_void, impl Number>,
        times: usize,
    ) -> Option<Side> {
        let datatype = self.library.datatype(datatype)?;
        Some(Side::whole(at, datatype, count(n)?.checked_mul(times)?))
    }

    /// Blocks of all ranks.
    ///
    /// # Safety
    /// There are as many numbers as ranks.
    unsafe fn blocks<N: Number, D: Number>(
        &self,
        (at, counts, places, datatype): Lists<*const c_void, N, D>,
    ) -> Option<Side> {
        // SAFETY: guaranteed by the caller.
        let counts = unsafe { self.of_ranks(counts)? };
        // SAFETY: guaranteed by the caller.
        let places = unsafe { self.of_ranks(places)? };
        let blocks = counts.iter().zip(places);
        let block = |(&n, &place): (&N, &D)| Some((place.get(), count(n)?));
        Some(Side {
            at: at.cast_mut(),
            datatype: self.library.datatype(datatype)?,
            blocks: blocks.map(block).collect::<Option<_>>()?,
        })
    }

    /// # Safety
    /// There are as many numbers as ranks, and they stay as they are during the call.
    unsafe fn of_ranks<'n, N>(&self, numbers: *const N) -> Option<&'n [N]> {
        if numbers.is_null() {
            return None;
        }
        // SAFETY: guaranteed by the caller.
        Some(unsafe { std::slice::from_raw_parts(numbers, self.ranks) })
    }

    /// The items of a reduction: of a named datatype.
    fn items(&self, datatype: Word, operator: Word) -> Option<(Datatype, Element)> {
        let datatype = self.library.datatype(datatype)?;
        let bytes = count(datatype.extent)?;
        let operator = self.library.handle(operator);
        let is_served = datatype.form != Form::Derived && bytes > 0;
        is_served.then_some((datatype, Element::Item(datatype.handle, bytes, operator)))
    }
}

fn shape(kind: Kind, root: usize, elements: usize, element: Element) -> Shape {
    Shape {
        kind,
        root,
        elements,
        blocks: None,
        element,
    }
}

/// A call that moves so many bytes, of the vector or of each block.
fn moved(
    kind: Kind,
    root: usize,
    bytes: usize,
    [input, output]: [Option<Side>; 2],
) -> Option<Described> {
    Some(Described {
        shape: shape(kind, root, bytes, Element::Byte),
        input,
        output,
    })
}

pub(crate) fn barrier() -> Option<Described> {
    moved(Kind::Barrier, 0, 0, [None, None])
}

/// # Safety
/// As the standard says of the function, here and below.
pub(crate) unsafe fn broadcast(
    at: At<'_>,
    (buffer, n, datatype): Items<*mut c_void, impl Number>,
    root: c_int,
) -> Option<Described> {
    let root = at.root(root)?;
    let side = at.side((buffer, n, datatype), 1)?;
    let bytes = side.bytes();
    let mut sides = [Some(side), None];
    if at.rank != root {
        sides.reverse();
    }
    moved(Kind::Broadcast, root, bytes, sides)
}

/// An allreduce, a scan, an exclusive scan.
///
/// # Safety
/// As above.
pub(crate) unsafe fn combined(
    at: At<'_>,
    kind: Kind,
    (from, to): (*const c_void, *mut c_void),
    (n, datatype, operator): (impl Number, Word, Word),
) -> Option<Described> {
    let (datatype, element) = at.items(datatype, operator)?;
    let n = count(n)?;
    let from = if at.is_in_place(from) { to } else { from };
    Some(Described {
        shape: shape(kind, 0, n, element),
        input: Some(Side::whole(from, datatype, n)),
        output: Some(Side::whole(to, datatype, n)),
    })
}

/// # Safety
/// As above.
pub(crate) unsafe fn reduce(
    at: At<'_>,
    buffers: (*const c_void, *mut c_void),
    items: (impl Number, Word, Word),
    root: c_int,
) -> Option<Described> {
    let root = at.root(root)?;
    // SAFETY: guaranteed by the caller.
    let mut described = unsafe { combined(at, Kind::Reduce, buffers, items)? };
    described.shape.root = root;
    described.output = described.output.filter(|_| at.rank == root);
    Some(described)
}

/// # Safety
/// As above.
pub(crate) unsafe fn gather(
    at: At<'_>,
    from: Items<*const c_void, impl Number>,
    (to, m, received): Items<*mut c_void, impl Number>,
    root: c_int,
) -> Option<Described> {
    let root = at.root(root)?;
    let all = at.of_root(root, || at.side((to, m, received), at.ranks))?;
    let own = match &all {
        Some(all) if at.is_in_place(from.0) => all.block(at.rank, count(m)?),
        _ => at.side(from, 1)?,
    };
    moved(Kind::Gather, root, own.bytes(), [Some(own), all])
}

/// # Safety
/// As above.
pub(crate) unsafe fn scatter(
    at: At<'_>,
    from: Items<*const c_void, impl Number>,
    (to, m, received): Items<*mut c_void, impl Number>,
    root: c_int,
) -> Option<Described> {
    let root = at.root(root)?;
    let all = at.of_root(root, || at.side(from, at.ranks))?;
    let (own, block) = match &all {
        Some(all) if at.is_in_place(to) => (None, all.bytes() / at.ranks),
        all => {
            let own = at.side((to, m, received), 1)?;
            let sent = all.as_ref().map(|all| all.bytes() / at.ranks);
            let block = sent.unwrap_or(own.bytes());
            (Some(own), block)
        }
    };
    moved(Kind::Scatter, root, block, [all, own])
}

/// # Safety
/// As above.
pub(crate) unsafe fn allgather(
    at: At<'_>,
    from: Items<*const c_void, impl Number>,
    (to, m, received): Items<*mut c_void, impl Number>,
) -> Option<Described> {
    let all = at.side((to, m, received), at.ranks)?;
    let own = if at.is_in_place(from.0) {
        all.block(at.rank, count(m)?)
    } else {
        at.side(from, 1)?
    };
    let block = all.bytes() / at.ranks;
    moved(Kind::Allgather, 0, block, [Some(own), Some(all)])
}

/// # Safety
/// As above.
pub(crate) unsafe fn allgatherv<N: Number, D: Number>(
    at: At<'_>,
    from: Items<*const c_void, N>,
    (to, counts, places, received): Lists<*mut c_void, N, D>,
) -> Option<Described> {
    // SAFETY: guaranteed by the caller.
    let all = unsafe { at.blocks((to, counts, places, received))? };
    let own = if at.is_in_place(from.0) {
        all.only(at.rank)
    } else {
        at.side(from, 1)?
    };
    let size = all.datatype.size;
    let sizes: Vec<usize> = all.blocks.iter().map(|block| block.1 * size).collect();
    let largest = sizes.iter().copied().max()?;
    let is_even = sizes.iter().all(|&size| size == largest);
    let mut described = moved(Kind::Allgather, 0, largest, [Some(own), Some(all)])?;
    described.shape.blocks = (!is_even).then_some(sizes);
    Some(described)
}

/// # Safety
/// As above.
pub(crate) unsafe fn alltoall(
    at: At<'_>,
    from: Items<*const c_void, impl Number>,
    (to, m, received): Items<*mut c_void, impl Number>,
) -> Option<Described> {
    let output = at.side((to, m, received), at.ranks)?;
    let input = if at.is_in_place(from.0) {
        output.clone()
    } else {
        at.side(from, at.ranks)?
    };
    let block = output.bytes() / at.ranks;
    moved(Kind::Alltoall, 0, block, [Some(input), Some(output)])
}

/// # Safety
/// As above.
pub(crate) unsafe fn alltoallv<N: Number, D: Number>(
    at: At<'_>,
    from: Lists<*const c_void, N, D>,
    (to, m, places, received): Lists<*mut c_void, N, D>,
) -> Option<Irregular> {
    // SAFETY: guaranteed by the caller.
    let output = unsafe { at.blocks((to, m, places, received))? };
    let input = if at.is_in_place(from.0) {
        output.clone()
    } else {
        // SAFETY: guaranteed by the caller.
        unsafe { at.blocks(from)? }
    };
    Some(Irregular::Alltoall(input, output))
}

/// # Safety
/// As above.
pub(crate) unsafe fn reduce_scatter<N: Number>(
    at: At<'_>,
    buffers: (*const c_void, *mut c_void),
    (counts, datatype, operator): (*const N, Word, Word),
) -> Option<Described> {
    // SAFETY: guaranteed by the caller.
    let counts = unsafe { at.of_ranks(counts)? };
    let sizes = counts.iter().map(|&n| count(n)).collect::<Option<_>>()?;
    scattered(at, buffers, sizes, (datatype, operator))
}

/// # Safety
/// As above.
pub(crate) unsafe fn reduce_scatter_block(
    at: At<'_>,
    buffers: (*const c_void, *mut c_void),
    (n, datatype, operator): (impl Number, Word, Word),
) -> Option<Described> {
    scattered(at, buffers, vec![count(n)?; at.ranks], (datatype, operator))
}

/// A reduce-scatter of blocks of these numbers of items.
fn scattered(
    at: At<'_>,
    (from, to): (*const c_void, *mut c_void),
    sizes: Vec<usize>,
    (datatype, operator): (Word, Word),
) -> Option<Described> {
    let (datatype, element) = at.items(datatype, operator)?;
    let total = sizes.iter().sum();
    let is_even = sizes.iter().all(|&size| size == sizes[0]);
    let from = if at.is_in_place(from) { to } else { from };
    let own = sizes[at.rank];
    Some(Described {
        shape: Shape {
            blocks: (!is_even).then_some(sizes),
            ..shape(Kind::ReduceScatter, 0, total, element)
        },
        input: Some(Side::whole(from, datatype, total)),
        output: Some(Side::whole(to, datatype, own)),
    })
}

/// # Safety
/// As above.
pub(crate) unsafe fn gatherv<N: Number, D: Number>(
    at: At<'_>,
    from: Items<*const c_void, N>,
    (to, counts, places, received): Lists<*mut c_void, N, D>,
    root: c_int,
) -> Option<Irregular> {
    let root = at.root(root)?;
    // SAFETY: guaranteed by the caller, at the root.
    let blocks = || unsafe { at.blocks((to.cast_const(), counts, places, received)) };
    let all = at.of_root(root, blocks)?;
    let own = match &all {
        Some(all) if at.is_in_place(from.0) => all.only(root),
        _ => at.side(from, 1)?,
    };
    Some(Irregular::Rooted {
        root,
        bytes: own.bytes(),
        own: Some(own),
        all,
    })
}

/// # Safety
/// As above.
pub(crate) unsafe fn scatterv<N: Number, D: Number>(
    at: At<'_>,
    from: Lists<*const c_void, N, D>,
    (to, m, received): Items<*mut c_void, N>,
    root: c_int,
) -> Option<Irregular> {
    let root = at.root(root)?;
    // SAFETY: guaranteed by the caller, at the root.
    let all = at.of_root(root, || unsafe { at.blocks(from) })?;
    let (own, bytes) = match &all {
        Some(all) if at.is_in_place(to) => (None, all.only(root).bytes()),
        all => {
            let own = at.side((to, m, received), 1)?;
            let sent = all.as_ref().map(|all| all.only(root).bytes());
            let bytes = sent.unwrap_or(own.bytes());
            (Some(own), bytes)
        }
    };
    Some(Irregular::Rooted {
        root,
        own,
        bytes,
        all,
    })
}
