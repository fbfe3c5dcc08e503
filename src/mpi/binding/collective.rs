//! The library's own collectives, to compare with.

use std::ffi::{c_int, c_void};

use super::abi::Handle;
use super::blocking::ensure_message;
use super::communicator::{Communicator, count, counted};
use super::library::Mpi;
use crate::error::{Error, Result};
use crate::machine::Ports;
use crate::run::Op;
use crate::run::engine::{RankMemory, RunPerformer, RunSpec};
use crate::schedule::collective::{Collective, Expected, Extent, Holders, Kind, Totals};
use crate::schedule::{Layout, Schedule, Span, Spans, total_len};

/// What the library is asked for, in its own terms. It does the same as a schedule, on buffers that
/// hold the input and, after it, the output; for a broadcast, one vector.
#[derive(Debug)]
pub(crate) struct OwnCollective {
    /// The name of the library's function.
    pub(crate) name: &'static str,
    /// Buffers, and programs without steps.
    pub(crate) schedule: Schedule,
    blocks: LibraryBlocks,
    /// Of an alltoall, by rank: its blocks for each rank, and those from each rank.
    pairs: Vec<[LibraryBlocks; 2]>,
    regular: bool,
    /// The type of the elements.
    datatype: Handle,
    /// The operator, where the collective combines.
    operator: Handle,
    /// Whether the steps are performed instead, by functions for one message.
    by_messages: bool,
}

/// Blocks that follow each other, as the library has them described.
#[derive(Debug)]
struct LibraryBlocks {
    /// Elements of each.
    counts: Vec<c_int>,
    /// Elements of all blocks before each.
    displacements: Vec<c_int>,
}

impl LibraryBlocks {
    /// Refuses more elements than the library counts.
    fn new(sizes: impl IntoIterator<Item = usize>) -> Result<LibraryBlocks> {
        let (mut counts, mut displacements, mut before) = (Vec::new(), Vec::new(), 0usize);
        for size in sizes {
            displacements.push(count(before)?);
            counts.push(count(size)?);
            before = before.saturating_add(size);
        }
        count(before)?;
        Ok(LibraryBlocks {
            counts,
            displacements,
        })
    }

    /// The addresses of counts and displacements.
    #[inline]
    fn pointers(&self) -> (*const c_int, *const c_int) {
        (self.counts.as_ptr(), self.displacements.as_ptr())
    }
}

/// The blocks of an alltoall: see [`OwnCollective::pairs`].
fn pairs(schedule: &Schedule) -> Result<Vec<[LibraryBlocks; 2]>> {
    let (collective, layout) = (schedule.collective(), schedule.layout());
    let totals = Totals::new(collective, layout);
    let ranks = 0..schedule.ranks();
    let received = ranks.clone().map(|rank| totals.expected_output(rank));
    let received: Vec<Vec<Expected>> = received.collect::<Result<_>>()?;
    let of = |rank: usize| {
        let sent = received.iter().map(|blocks| blocks[rank].len);
        let from = received[rank].iter().map(|block| block.len);
        Ok([LibraryBlocks::new(sent)?, LibraryBlocks::new(from)?])
    };
    ranks.map(of).collect()
}

impl OwnCollective {
    /// The library's counterpart of the schedule.
    ///
    /// # Errors
    /// When the library has none, not this operator for such elements, or the vectors have more
    /// elements than it counts.
    fn of(mpi: &Mpi, spec: &RunSpec<'_>) -> Result<Self> {
        let (schedule, by) = (spec.schedule, spec.options.by);
        let datatype = mpi.datatype(spec.element.own()?);
        if by == RunPerformer::BlockingMessages {
            return Self::of_messages(schedule, datatype);
        }
        let (collective, layout) = (schedule.collective(), schedule.layout());
        let inputs = layout.iter().map(|l| total_len(&l.input));
        let outputs = layout.iter().map(|l| total_len(&l.output));
        let row = collective.kind().row();
        let blocks: Vec<usize> = match row.input.1 {
            Extent::Block => inputs.collect(),
            _ => outputs.collect(),
        };
        let pairs = if collective.kind().has_block_pairs() {
            pairs(schedule)?
        } else {
            Vec::new()
        };
        let blocks = LibraryBlocks::new(blocks)?;
        let mut counts = if pairs.is_empty() {
            vec![&blocks.counts]
        } else {
            pairs.iter().map(|[sent, _]| &sent.counts).collect()
        }
        .into_iter()
        .flatten();
        let first = counts.next();
        let regular =
            by != RunPerformer::IrregularLibrary && counts.all(|count| Some(count) == first);
        let names = if regular {
            row.mpi.first()
        } else {
            row.mpi.last()
        };
        let name = names
            .copied()
            .ok_or_else(|| no_function(collective.kind()))?;
        let combines = collective.kind().reduces();
        let operator = match spec.operator.built_in.filter(|&op| op != Op::AFFINE) {
            _ if !combines => Handle(0),
            Some(op) => mpi.operator(op, spec.element.own()?)?,
            None => {
                let names = Op::ALL.map(Op::name);
                let known = names.into_iter().filter(|&n| n != Op::AFFINE.name());
                return Err(Error::usage(format!(
                    "MPI has no operator {}: choose one of {}",
                    spec.operator.name,
                    known.collect::<Vec<_>>().join(", ")
                )));
            }
        };
        let layout = layout.iter().map(|l| buffer(collective, l)).collect();
        let programs = vec![Vec::new(); schedule.ranks()];
        Ok(OwnCollective {
            name,
            schedule: Schedule::new(Ports::BI, collective.clone(), layout, programs)?,
            blocks,
            pairs,
            regular,
            datatype,
            operator,
            by_messages: false,
        })
    }

    /// The messages of `schedule`, one after another. Refuses steps that are not the transfer of
    /// one span, or have more elements than the library counts.
    fn of_messages(schedule: &Schedule, datatype: Handle) -> Result<Self> {
        for step in schedule.programs().iter().flatten() {
            ensure_message(step)?;
        }
        Ok(OwnCollective {
            name: "MPI_Send and MPI_Recv",
            schedule: schedule.clone(),
            blocks: LibraryBlocks::new([])?,
            pairs: Vec::new(),
            regular: true,
            datatype,
            operator: Handle(0),
            by_messages: true,
        })
    }

    /// Whether ranks have outputs afterwards: the library's barrier leaves no tokens.
    pub(crate) fn has_outputs(&self) -> bool {
        self.by_messages || self.schedule.collective().kind().has_data()
    }
}

impl Communicator {
    /// The library's counterpart of the schedule of `spec`.
    pub(crate) fn own_collective(&self, spec: &RunSpec<'_>) -> Result<OwnCollective> {
        OwnCollective::of(self.mpi, spec)
    }

    /// Has the library do `own` on the buffer of this rank.
    #[inline]
    pub(crate) fn collective(
        &self,
        own: &OwnCollective,
        memory: &RankMemory<'_, '_>,
    ) -> Result<()> {
        let t = own.datatype;
        if own.by_messages {
            return self.messages(&own.schedule.programs()[self.rank()], t, memory);
        }
        let (mpi, comm, rank) = (self.mpi, self.handle, self.rank());
        let f = &mpi.functions;
        let layout = &own.schedule.layout()[rank];
        let (from, to) = addresses(layout, memory);
        let (block, n) = (own.blocks.counts[rank], counted(total_len(&layout.input)));
        let (counts, before) = own.blocks.pointers();
        let op = own.operator;
        let code = match *own.schedule.collective() {
            // SAFETY: all ranks have a vector of as many elements.
            Collective::Broadcast { root } => unsafe {
                (f.bcast)(to, block, t, counted(root), comm)
            },
            // SAFETY: `n` elements on either side; the output is the root's only.
            Collective::Reduce { root } => unsafe {
                (f.reduce)(from, to, n, t, op, counted(root), comm)
            },
            // SAFETY: `n` elements on either side.
            Collective::Allreduce => unsafe { (f.allreduce)(from, to, n, t, op, comm) },
            // SAFETY: as above.
            Collective::Scan => unsafe { (f.scan)(from, to, n, t, op, comm) },
            // SAFETY: as above; rank 0's output is not touched.
            Collective::Exscan => unsafe { (f.exscan)(from, to, n, t, op, comm) },
            // SAFETY: a block here; the root's output holds all.
            Collective::Gather { root } if own.regular => unsafe {
                (f.gather)(from, block, t, to, block, t, counted(root), comm)
            },
            // SAFETY: as above.
            Collective::Gather { root } => unsafe {
                (f.gatherv)(from, block, t, to, counts, before, t, counted(root), comm)
            },
            // SAFETY: a block here; the root's input holds all.
            Collective::Scatter { root } if own.regular => unsafe {
                (f.scatter)(from, block, t, to, block, t, counted(root), comm)
            },
            // SAFETY: as above.
            Collective::Scatter { root } => unsafe {
                (f.scatterv)(from, counts, before, t, to, block, t, counted(root), comm)
            },
            // SAFETY: a block here; the output holds all.
            Collective::Allgather if own.regular => unsafe {
                (f.allgather)(from, block, t, to, block, t, comm)
            },
            // SAFETY: as above.
            Collective::Allgather => unsafe {
                (f.allgatherv)(from, block, t, to, counts, before, t, comm)
            },
            // SAFETY: the input holds all blocks, the output one.
            Collective::ReduceScatter if own.regular => unsafe {
                (f.reduce_scatter_block)(from, to, block, t, op, comm)
            },
            // SAFETY: as above.
            Collective::ReduceScatter => unsafe {
                (f.reduce_scatter)(from, to, counts, t, op, comm)
            },
            // SAFETY: both sides hold a block for each rank.
            Collective::Alltoall if own.regular => unsafe {
                let each = own.pairs[rank][0].counts[0];
                (f.alltoall)(from, each, t, to, each, t, comm)
            },
            // SAFETY: it has no data.
            Collective::Barrier => unsafe { (f.barrier)(comm) },
            // SAFETY: both sides hold these blocks, one for each rank.
            Collective::Alltoall => unsafe {
                let [(sent, from_before), (received, to_before)] =
                    own.pairs[rank].each_ref().map(LibraryBlocks::pointers);
                (f.alltoallv)(from, sent, from_before, t, to, received, to_before, t, comm)
            },
            _ => return Err(no_function(own.schedule.collective().kind())),
        };
        mpi.ok(own.name, code)
    }
}

#[cold]
fn no_function(kind: Kind) -> Error {
    Error::usage(format!("MPI has no function for this {}", kind.name()))
}

/// The addresses of the input and of the output.
#[inline]
fn addresses(layout: &Layout, memory: &RankMemory<'_, '_>) -> (*const c_void, *mut c_void) {
    /// The addresses of empty vectors: that of an empty buffer may be the library's `MPI_IN_PLACE`,
    /// and some libraries want two that differ.
    static EMPTY: [u64; 2] = [0; 2];
    let start = |spans: &[Span], empty: usize| match spans.iter().find(|span| span.len > 0) {
        Some(span) => memory.address(*span).cast::<c_void>(),
        None => (&raw const EMPTY[empty]).cast::<c_void>().cast_mut(),
    };
    let (input, output) = (start(&layout.input, 0), start(&layout.output, 1));
    (input.cast_const(), output)
}

/// Spans of these lengths, one after another.
fn consecutive(lengths: impl Iterator<Item = usize>) -> Spans {
    let mut end = 0;
    let span = |len| {
        end += len;
        Span::new(end - len, len)
    };
    lengths.map(span).collect()
}

/// A rank's buffer for the library: the output after the input, or one vector for a broadcast.
fn buffer(collective: &Collective, layout: &Layout) -> Layout {
    let (input, mut output) = (total_len(&layout.input), total_len(&layout.output));
    if !collective.kind().has_data() {
        output = 0;
    }
    let row = collective.kind().row();
    let from = match (row.input.0, row.output.1) {
        (Holders::Root, Extent::Whole) => 0,
        _ => input,
    };
    let span = |offset, len: usize| {
        (len > 0)
            .then(|| Span::new(offset, len))
            .into_iter()
            .collect()
    };
    Layout {
        len: input.max(from + output),
        input: if collective.kind().has_block_pairs() {
            consecutive(layout.input.iter().map(|block| block.len))
        } else {
            span(0, input)
        },
        output: span(from, output),
    }
}
