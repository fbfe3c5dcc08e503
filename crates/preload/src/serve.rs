//! Serving a call: by the schedule that was chosen for its shape, or else by the library.

use std::ffi::c_int;
use std::sync::Arc;
use std::time::Instant;

use oneport::collectives::GatherPart;
use oneport::internal::calls::Group;
use oneport::run::{Bidirectional, Endpoint};
use oneport::{Kind, Layout, Span, Step};

use crate::choice::Element;
use crate::describe::{At, Described, Irregular};
use crate::library::Word;
use crate::memory::{Copier, Side};
use crate::process::{
    Choice, Communicator, Kept, KeptBuffer, OnAnyThread, Planned, Process, Served, process,
};

/// Why the library serves a call.
const NOTHING_CHOSEN: &str = "the library: no rule or schedule";
const NO_GROUP: &str = "the library: no group of processes, or two";
const REFUSED: &str = "the library: a datatype or operator of the program's own, or an error";
/// What is served by a schedule, but for one call of many.
const SAMPLE: &str = "PMPI, a sample";

/// A call of the program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) function: &'static str,
    pub(crate) kind: Kind,
    pub(crate) communicator: Word,
}

/// Serves `call`, which `describe` describes, or has `pass` call the library.
pub(crate) fn serve(
    call: Call,
    describe: impl FnOnce(At<'_>) -> Option<Described>,
    pass: impl FnOnce() -> c_int,
) -> c_int {
    let Some(process) = process() else {
        return pass();
    };
    let is_chosen = process.choices.serve(call.kind);
    let (kept, described) = match entered(process, call, is_chosen, describe) {
        Ok(entered) => entered,
        Err(why) => return passed(process, call, 0, why, pass),
    };
    let mut communicator = kept.communicator.lock();
    let bytes = described.shape.elements * described.shape.element.bytes();
    if bytes == 0 && call.kind != Kind::Barrier {
        return passed(process, call, 0, "nothing to do", || 0);
    }
    let found = communicator.find(process, &described.shape);
    let Communicator {
        group,
        served,
        buffer,
        ..
    } = &mut *communicator;
    let Served { choice, calls, .. } = &mut served[found];
    match choice {
        Choice::Library(why) => {
            let why = Arc::clone(why);
            drop(communicator);
            passed(process, call, bytes, &why, pass)
        }
        Choice::Schedule(..) if process.is_sample(calls) => {
            drop(communicator);
            passed(process, call, bytes, SAMPLE, pass)
        }
        Choice::Schedule(name, planned) => {
            let start = process.report.as_ref().map(|_| Instant::now());
            perform(process, call, &described, (&group.0, buffer), planned);
            if let (Some(report), Some(start)) = (&process.report, start) {
                let mut report = report.lock();
                report.add(call.function, bytes as u64, name, start.elapsed());
            }
            0
        }
    }
}

fn perform(
    process: &Process,
    call: Call,
    described: &Described,
    (group, kept): (&Group, &mut KeptBuffer),
    planned: &OnAnyThread<Planned>,
) {
    let library = process.library;
    let bytes = described.shape.element.bytes();
    let copier = Copier {
        library,
        communicator: call.communicator,
        as_items: described.operator.is_some(),
    };
    let operator = described.operator;
    let datatype = match described.shape.element {
        Element::Byte => 0,
        Element::Item(datatype, _) => datatype,
    };
    let combine = |acc: &mut [u8], other: &[u8]| {
        let (from, into) = (other.as_ptr().cast(), acc.as_mut_ptr().cast());
        let n = c_int::try_from(acc.len() / bytes).unwrap_or_else(|_| {
            library
                .own
                .end_job("more items than MPI_Reduce_local counts")
        });
        let operator = operator.unwrap_or_default();
        // SAFETY: `n` items of the datatype on either side, which do not overlap.
        let code = unsafe { (library.functions.reduce_local)(from, into, n, datatype, operator) };
        if code != 0 {
            library
                .own
                .end_job("MPI_Reduce_local failed in a call of this program");
        }
    };
    planned.0.with_dependent(|schedule, part| {
        let rank = group.rank();
        let layout = &schedule.layout()[rank];
        // What is broadcast may be where nobody can write.
        let reads = || schedule.programs()[rank].iter().all(Step::is_send);
        let is_broadcast = call.kind == Kind::Broadcast && reads();
        if let Some(at) = own_memory(is_broadcast, described, copier, layout, bytes) {
            // SAFETY: the program passes this memory for the call, which has as many bytes.
            let buffer = unsafe { std::slice::from_raw_parts_mut(at, layout.len * bytes) };
            if let Some(side) = described.input.as_ref().filter(|side| side.at != at.cast()) {
                // SAFETY: as above; input and output do not overlap.
                unsafe { copier.copy_in(side, buffer, &layout.input, bytes) };
            }
            return group.perform(part, buffer, &combine);
        }
        let buffer = kept.bytes(layout.len * bytes);
        if let Some(side) = &described.input {
            // SAFETY: the program passes this memory for the call.
            unsafe { copier.copy_in(side, buffer, &layout.input, bytes) };
        }
        group.perform(part, buffer, &combine);
        if let Some(side) = &described.output {
            // SAFETY: as above.
            unsafe { copier.copy_out(side, buffer, &layout.output, bytes) };
        }
        kept.trim();
    });
}

/// The memory of the program that can be the buffer of this rank, where the schedule needs no more:
/// that of its output, or of a vector that is broadcast and only read.
fn own_memory(
    is_broadcast: bool,
    described: &Described,
    copier: Copier<'_>,
    layout: &Layout,
    bytes: usize,
) -> Option<*mut u8> {
    let broadcast = described.input.as_ref().filter(|_| is_broadcast);
    let side = described.output.as_ref().or(broadcast)?;
    let whole = [Span::new(0, layout.len)];
    let is_whole = |spans: &[Span], given: bool| !given || spans == whole;
    let fits = is_whole(&layout.output, described.output.is_some())
        && is_whole(&layout.input, described.input.is_some());
    let length = copier.bytes_in_place(side)?;
    (fits && length == layout.len * bytes).then_some(side.at.cast())
}

/// Serves a call in which each process knows its own blocks only: a gather or scatter by the tree
/// that the ranks build together, an alltoall by pairs.
pub(crate) fn serve_irregular(
    call: Call,
    describe: impl FnOnce(At<'_>) -> Option<Irregular>,
    pass: impl FnOnce() -> c_int,
) -> c_int {
    let Some(process) = process() else {
        return pass();
    };
    // The tree needs no choice.
    let is_chosen = call.kind != Kind::Alltoall || process.choices.serve(call.kind);
    let (kept, described) = match entered(process, call, is_chosen, describe) {
        Ok(entered) => entered,
        Err(why) => return passed(process, call, 0, why, pass),
    };
    let mut communicator = kept.communicator.lock();
    if process.is_sample(&mut communicator.irregular) {
        drop(communicator);
        return passed(process, call, described.bytes(), SAMPLE, pass);
    }
    let group = &communicator.group.0;
    let library = process.library;
    let start = Instant::now();
    let copier = Copier {
        library,
        communicator: call.communicator,
        as_items: false,
    };
    let bytes = described.bytes();
    let (by, served) = match described {
        Irregular::Rooted {
            root,
            own,
            bytes,
            all,
        } => {
            let sides = [own.as_ref(), all.as_ref()];
            let served = by_tree(group, copier, call.kind, (root, bytes), sides);
            ("adaptive", served)
        }
        Irregular::Alltoall(input, output) => {
            let served = exchanged(group, copier, &input, &output);
            ("pairwise", served)
        }
    };
    if let Err(error) = served {
        library.own.end_job(&format!("{}: {error}", call.function));
    }
    if let Some(report) = &process.report {
        let mut report = report.lock();
        report.add(call.function, bytes as u64, by, start.elapsed());
    }
    0
}

/// A gather or a scatter: of the own block, of so many bytes, and of all blocks at the root.
fn by_tree(
    group: &Group,
    copier: Copier<'_>,
    kind: Kind,
    (root, bytes): (usize, usize),
    [own, all]: [Option<&Side>; 2],
) -> oneport::Result<()> {
    let mut control = vec![0u64; GatherPart::CONTROL];
    let find = |e: &mut Endpoint<'_, u64, Bidirectional>| GatherPart::find(e, Some(root), bytes);
    let part = group.scope(&mut control, find)?;
    let layout = part.layout();
    let mut buffer = vec![0u8; layout.len];
    // A scatter is a gather backwards.
    let is_scatter = kind == Kind::Scatter;
    let mut ends = [(own, &layout.input), (all, &layout.output)];
    if is_scatter {
        ends.reverse();
    }
    let [(from, read), (to, written)] = ends;
    if let Some(from) = from {
        // SAFETY: the program passes this memory for the call.
        unsafe { copier.copy_in(from, &mut buffer, read, 1) };
    }
    let moves = |e: &mut Endpoint<'_, u8, Bidirectional>| {
        if is_scatter {
            part.scatter(e)
        } else {
            part.gather(e)
        }
    };
    group.scope(&mut buffer, moves)?;
    if let Some(to) = to {
        // SAFETY: as above.
        unsafe { copier.copy_out(to, &buffer, written, 1) };
    }
    Ok(())
}

/// In step `i` each rank sends to the rank `i` after it and receives from the one `i` before it.
fn exchanged(
    group: &Group,
    copier: Copier<'_>,
    input: &Side,
    output: &Side,
) -> oneport::Result<()> {
    let (p, rank) = (group.size(), group.rank());
    let mut end = 0;
    let mut span = |side: &Side, rank: usize| {
        let bytes = side.only(rank).bytes();
        end += bytes;
        Span::new(end - bytes, bytes)
    };
    let from: Vec<Span> = (0..p).map(|rank| span(input, rank)).collect();
    let to: Vec<Span> = (0..p).map(|rank| span(output, rank)).collect();
    let mut buffer = vec![0u8; end];
    // SAFETY: the program passes this memory for the call.
    unsafe { copier.copy_in(input, &mut buffer, &from, 1) };
    let own = from[rank].offset..from[rank].end();
    if from[rank].len == to[rank].len {
        buffer.copy_within(own, to[rank].offset);
    }
    let by_pairs = |e: &mut Endpoint<'_, u8, Bidirectional>| {
        for i in 1..p {
            let (after, before) = ((rank + i) % p, (rank + p - i) % p);
            let (sent, received) = (from[after], to[before]);
            match (sent.len > 0, received.len > 0) {
                (true, true) => e.exchange(after, sent, before, received)?,
                (true, false) => e.send(after, sent)?,
                (false, true) => e.recv(before, received)?,
                (false, false) => {}
            }
        }
        Ok(())
    };
    group.scope(&mut buffer, by_pairs)?;
    // SAFETY: as above.
    unsafe { copier.copy_out(output, &buffer, &to, 1) };
    Ok(())
}

/// What is kept for the communicator of a call, and what the call is; or why the library serves it.
fn entered<D>(
    process: &Process,
    call: Call,
    is_chosen: bool,
    describe: impl FnOnce(At<'_>) -> Option<D>,
) -> Result<(Arc<Kept>, D), &'static str> {
    if !is_chosen {
        return Err(NOTHING_CHOSEN);
    }
    let library = process.library;
    let handle = library.handle(call.communicator);
    let made = || {
        let is_one = library.is_one_group(handle);
        is_one.then(|| process.communicator(handle)).flatten()
    };
    let kept = process.known(handle).or_else(made).ok_or(NO_GROUP)?;
    let at = At {
        library,
        rank: kept.rank,
        ranks: kept.ranks,
    };
    let described = describe(at).ok_or(REFUSED)?;
    Ok((kept, described))
}

/// Has the library serve a call.
fn passed(
    process: &Process,
    call: Call,
    bytes: usize,
    by: &str,
    pass: impl FnOnce() -> c_int,
) -> c_int {
    let Some(report) = &process.report else {
        return pass();
    };
    let start = Instant::now();
    let code = pass();
    let mut report = report.lock();
    report.add(call.function, bytes as u64, by, start.elapsed());
    code
}
