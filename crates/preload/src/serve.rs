//! Serving a call: by the schedule that was chosen for its shape, or else by the library.

use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::Arc;
use std::time::Instant;

use oneport::collectives::GatherPart;
use oneport::internal::calls::{Group, Part};
use oneport::run::{Bidirectional, Endpoint};
use oneport::{Kind, Span};

use crate::call::Call;
use crate::describe::{At, Described, Irregular};
use crate::memory::{Copier, Side};
use crate::pieces::Placed;
use crate::process::{Choice, Communicator, Kept, KeptBuffer, Last, Process, Served, process};

/// Why the library serves a call.
const NOTHING_CHOSEN: &str = "the library: no rule or schedule";
const NO_GROUP: &str = "the library: no group of processes, or two";
const REFUSED: &str = "the library: a datatype or operator of the program's own, or an error";
/// What is served by a schedule, but for one call of many.
const SAMPLE: &str = "PMPI, a sample";

/// Serves a call that is as the last one of this thread and its communicator, but for the addresses
/// of data: all else was found then. False, and nothing is done, if it is not, the library serves
/// it, or a report counts it.
///
/// One function for all collectives, and short: to fetch its instructions, after others have run,
/// takes longer than to execute them.
pub(crate) fn repeated(call: &Call) -> bool {
    let Some(process) = process().filter(|process| process.repeats(call.kind)) else {
        return false;
    };
    let Some(kept) = process.last(process.library.handle(call.communicator)) else {
        return false;
    };
    let mut communicator = kept.communicator.0.borrow_mut();
    communicator.goes_on(call, process.library) && perform(process, call, &mut communicator)
}

/// Serves `call`, which `describe` describes, or has `pass` call the library.
#[cold]
pub(crate) fn serve(
    call: &Call,
    describe: impl FnOnce(At<'_>) -> Option<Described>,
    pass: impl FnOnce() -> c_int,
) -> c_int {
    let Some(process) = process() else {
        return pass();
    };
    let is_chosen = process.choices.serve(call.kind);
    let (kept, at) = match entered(process, call, is_chosen) {
        Ok(entered) => entered,
        Err(why) => return passed(process, call, 0, why, pass),
    };
    let mut communicator = kept.communicator.0.borrow_mut();
    if !communicator.goes_on(call, process.library) {
        let described = describe(at);
        let bytes = described.as_ref().map_or(0, Described::bytes);
        let begun = match described {
            Some(described) if bytes > 0 || call.kind == Kind::Barrier => {
                communicator.begins(process, call, described)
            }
            Some(described) if communicator.moves(process, described.shape.element) => {
                return passed(process, call, 0, "nothing to do", || 0);
            }
            _ => false,
        };
        if !begun {
            drop(communicator);
            return passed(process, call, bytes, REFUSED, pass);
        }
    }
    let kept = &mut *communicator;
    let Some(last) = &kept.last else {
        return pass();
    };
    let bytes = last.described.bytes();
    let Served { choice, calls, .. } = &mut kept.served[last.found];
    let by = match choice {
        Choice::Library(why) => Arc::clone(why),
        Choice::Schedule(..) if process.is_sample(calls) => SAMPLE.into(),
        Choice::Schedule(name, _) => {
            let name = Arc::clone(name);
            let performed = || c_int::from(!perform(process, call, kept));
            return passed(process, call, bytes, &name, performed);
        }
    };
    drop(communicator);
    passed(process, call, bytes, &by, pass)
}

/// Performs the call that was kept last; false if the library serves it.
#[inline(always)]
fn perform(process: &Process, call: &Call, kept: &mut Communicator) -> bool {
    let Some(last) = &kept.last else {
        return false;
    };
    let Choice::Schedule(_, planned) = &kept.served[last.found].choice else {
        return false;
    };
    let (group, buffer) = (&kept.group, &mut kept.buffer);
    let placed = last.pieces.of_call(&last.described);
    if !last.pieces.are_single {
        planned.with_dependent(|_, part| {
            copied(process, call, (last, &placed), (group, buffer), part);
        });
        return true;
    }
    let memory = memory(&placed, last, buffer);
    let (at, length) = placed.input.unwrap_or((null_mut(), 0));
    // SAFETY: the program passes this memory for the call, and apart from the output.
    let apart = || unsafe { std::slice::from_raw_parts(at, length) };
    let apart = (length > 0 && !placed.is_in_place).then(apart);
    let is_taken = placed.output.is_some();
    planned.with_dependent(|_, part| group.perform(part, memory, (apart, is_taken)));
    if let (None, Some((to, place))) = (placed.own, placed.output) {
        let from = &memory[place];
        // SAFETY: the program passes this memory for the call, and the buffer is ours.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
        buffer.trim();
    }
    true
}

/// The buffer of a call: the memory of its output, or our own.
#[inline(always)]
fn memory<'m>(placed: &Placed, last: &Last, kept: &'m mut KeptBuffer) -> &'m mut [u8] {
    let bytes = last.pieces.buffer_bytes;
    match placed.own {
        // SAFETY: the program passes this memory for the call, which has as many bytes.
        Some(at) => unsafe { std::slice::from_raw_parts_mut(at, bytes) },
        None => kept.bytes(bytes),
    }
}

/// Performs a call whose input or output is not one piece of memory.
#[cold]
fn copied(
    process: &Process,
    call: &Call,
    (last, placed): (&Last, &Placed),
    (group, kept): (&Group, &mut KeptBuffer),
    part: &Part<'_>,
) {
    let described = &last.described;
    let element = described.shape.element;
    let copier = Copier {
        library: process.library,
        communicator: call.communicator,
        as_items: element.is_item(),
    };
    let (input, output) = (&described.input, &described.output);
    let buffer = memory(placed, last, kept);
    let mut apart = None;
    match (placed.input, input) {
        (Some((_, 0)), _) => {}
        (Some((at, length)), _) => {
            // SAFETY: the program passes this memory for the call, and apart from the output.
            apart = Some(unsafe { std::slice::from_raw_parts(at, length) });
        }
        (None, Some(side)) => {
            let spans = &part.layout().input;
            // SAFETY: as above.
            unsafe { copier.copy_in(side, buffer, spans, element.bytes()) }
        }
        (None, None) => {}
    }
    group.perform(part, buffer, (apart, output.is_some()));
    if placed.own.is_none() {
        if let Some(side) = output {
            let spans = &part.layout().output;
            // SAFETY: as above.
            unsafe { copier.copy_out(side, buffer, spans, element.bytes()) };
        }
        kept.trim();
    }
}

/// Serves a call in which each process knows its own blocks only: a gather or scatter by the tree
/// that the ranks build together, an alltoall by pairs.
pub(crate) fn serve_irregular(
    call: &Call,
    describe: impl FnOnce(At<'_>) -> Option<Irregular>,
    pass: impl FnOnce() -> c_int,
) -> c_int {
    let Some(process) = process() else {
        return pass();
    };
    // The tree needs no choice.
    let is_chosen = call.kind != Kind::Alltoall || process.choices.serve(call.kind);
    let (kept, at) = match entered(process, call, is_chosen) {
        Ok(entered) => entered,
        Err(why) => return passed(process, call, 0, why, pass),
    };
    let Some(described) = describe(at) else {
        return passed(process, call, 0, REFUSED, pass);
    };
    let mut communicator = kept.communicator.0.borrow_mut();
    if process.is_sample(&mut communicator.irregular) {
        drop(communicator);
        return passed(process, call, described.bytes(), SAMPLE, pass);
    }
    let group = &communicator.group;
    let library = process.library;
    let start = process.report.as_ref().map(|_| Instant::now());
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
    if let (Some(report), Some(start)) = (&process.report, start) {
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

/// What is kept for the communicator of a call, and where this process stands in it; or why the
/// library serves it.
#[inline]
fn entered<'p>(
    process: &'p Process,
    call: &Call,
    is_chosen: bool,
) -> Result<(&'p Kept, At<'p>), &'static str> {
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
    let (rank, ranks) = (kept.rank, kept.ranks);
    let at = At {
        library,
        rank,
        ranks,
    };
    Ok((kept, at))
}

/// Has the library serve a call.
fn passed(
    process: &Process,
    call: &Call,
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
