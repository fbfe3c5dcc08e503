//! Serving a call: by the schedule that was chosen for its shape, or else by the library.

use std::ffi::c_int;
use std::sync::Arc;
use std::time::Instant;

use oneport::collectives::GatherPart;
use oneport::internal::calls::Group;
use oneport::run::{Bidirectional, Endpoint};
use oneport::{Kind, Span};

use crate::call::Call;
use crate::describe::{At, Described, Irregular};
use crate::memory::{Copier, Side};
use crate::process::{Choice, Kept, KeptBuffer, Last, Planned, Process, Served, process};

/// Why the library serves a call.
const NOTHING_CHOSEN: &str = "the library: no rule or schedule";
const NO_GROUP: &str = "the library: no group of processes, or two";
const REFUSED: &str = "the library: a datatype or operator of the program's own, or an error";
/// What is served by a schedule, but for one call of many.
const SAMPLE: &str = "PMPI, a sample";

/// Serves `call`, which `describe` describes, or has `pass` call the library.
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
    let (group, buffer) = (&kept.group, &mut kept.buffer);
    let described = &last.described;
    let bytes = described.bytes();
    let Served { choice, calls, .. } = &mut kept.served[last.found];
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
            perform(process, call, last, (group, buffer), planned);
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
    call: &Call,
    Last {
        described, pieces, ..
    }: &Last,
    (group, kept): (&Group, &mut KeptBuffer),
    planned: &Planned,
) {
    let element = described.shape.element;
    let copier = Copier {
        library: process.library,
        communicator: call.communicator,
        as_items: element.is_item(),
    };
    planned.with_dependent(|_, part| {
        let (input, output) = (&described.input, &described.output);
        let placed = pieces.of_call(described);
        let buffer = match placed.own {
            // SAFETY: the program passes this memory for the call, which has as many bytes.
            Some(at) => unsafe { std::slice::from_raw_parts_mut(at, pieces.buffer_bytes) },
            None => kept.bytes(pieces.buffer_bytes),
        };
        let mut apart = None;
        match (placed.input, input) {
            _ if placed.is_in_place => {}
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
    });
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
