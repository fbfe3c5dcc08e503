//! What MPI has to know of each step of a rank's program.

use std::collections::HashMap;

use super::binding::End;
use crate::error::{Error, Result};
use crate::machine::Ports;
use crate::rules::matching::Matching;
use crate::run::engine::Sequence;
use crate::schedule::{Layout, Schedule, Span, Step, total_len};
use crate::simulate::Simulation;

/// The most steps by which a receive is opened early.
const AHEAD: usize = 64;

/// Messages that may be received before they are combined or unpacked.
const BUFFERS: usize = 4;

/// The most tags that two ranks use before they repeat: the standard asks for as many.
const TAGS: u32 = 1 << 15;

/// Has the receives of a program opened early.
pub(super) fn open_early(
    sequence: &mut Sequence,
    steps: &[Step],
    simulation: &Simulation,
    rank: usize,
) {
    sequence.open_early(steps, simulation, rank, AHEAD, BUFFERS, is_packed);
}

/// Whether the message is not sent from, or received into, one span.
fn is_packed(step: &Step) -> bool {
    match step {
        Step::Send { spans, .. } | Step::Recv { spans, .. } => spans.len() > 1,
        Step::RecvCombine { .. } => true,
        Step::Copy { .. } | Step::Combine { .. } => false,
    }
}

/// The ends of all steps of `rank`, which sends and receives as `sequence` says or, without one,
/// one message at a time on each port; and the number of elements of the scratch memory. No tag is
/// larger than `max_tag`. Refuses messages of more elements than MPI counts.
pub(super) fn ends(
    schedule: &Schedule,
    rank: usize,
    sequence: Option<&Sequence>,
    max_tag: std::ffi::c_int,
) -> Result<(Vec<End>, usize)> {
    // Messages do not overtake each other, so those of one tag meet in order, too.
    let tags = TAGS.min(u32::try_from(max_tag).unwrap_or(0) + 1);
    let steps = &schedule.programs()[rank];
    // Mismatches are reported when the run reaches them.
    let matching = Matching::new(schedule, |_| ())?;
    let mut ends = Vec::with_capacity(steps.len());
    let mut messages: HashMap<(usize, bool), u32> = HashMap::new();
    for (i, step) in steps.iter().enumerate() {
        let Some(peer) = step.peer() else {
            ends.push(End::default());
            continue;
        };
        let nth = messages.entry((peer, step.is_send())).or_default();
        let partner = matching.partner((rank, i), peer);
        ends.push(End {
            tag: (*nth % tags).try_into().unwrap_or_default(),
            count: count(rank, i, step)?,
            theirs: partner.map(|partner| schedule.programs()[peer][partner].len()),
            scratch: None,
            original: false,
        });
        *nth += 1;
    }
    let scratch = match sequence {
        Some(sequence) => scratch_in_order(steps, sequence, &mut ends),
        None => scratch_of_ports(steps, schedule.ports(), &mut ends),
    };
    Ok((ends, scratch))
}

fn count(rank: usize, i: usize, step: &Step) -> Result<std::ffi::c_int> {
    step.len().try_into().map_err(|_| {
        Error::usage(format!(
            "rank {rank}, step {i} ({}): {} elements in a message are more than the 2^31 - 1 that MPI counts",
            step.name(),
            step.len()
        ))
    })
}

/// One message at a time on each port: each port list has a place for its longest packed message.
fn scratch_of_ports(steps: &[Step], ports: Ports, ends: &mut [End]) -> usize {
    let mut longest = vec![0; ports.lists()];
    let list = |step: &Step| ports.list(step.is_send(), step.port().unwrap_or(0));
    for step in steps.iter().filter(|step| is_packed(step)) {
        longest[list(step)] = longest[list(step)].max(step.len());
    }
    let place = |list: usize| longest[..list].iter().sum();
    for (step, end) in steps.iter().zip(ends) {
        end.scratch = is_packed(step).then(|| place(list(step)));
    }
    longest.iter().sum()
}

/// By step: whether it needs nothing of its rank's buffer but the input, as it was at the start;
/// then the parts of the input that must be in the buffer at the start if these steps find it
/// elsewhere: first what other steps read, then what is left at the end as part of the output.
pub fn originals(
    steps: &[Step],
    sequence: &Sequence,
    layout: &Layout,
) -> (Vec<bool>, [Vec<Span>; 2]) {
    let mut found_apart = vec![false; steps.len()];
    let mut original = layout.input.to_vec();
    let mut copied: Vec<Span> = Vec::new();
    for action in sequence.actions() {
        let i = action.step as usize;
        let step = &steps[i];
        let mut read = step.reads().to_vec();
        if matches!(step, Step::RecvCombine { .. } | Step::Combine { .. }) {
            read.extend(step.writes());
        }
        let found = shared(&original, &read);
        let is_all = read.len() == 1 && total_len(&found) == total_len(&read);
        found_apart[i] = match step {
            Step::Send { .. } => is_all,
            // It may be received before others have read what is there.
            Step::RecvCombine { .. } => is_all && shared(&copied, &read).is_empty(),
            _ => false,
        };
        if !found_apart[i] {
            copied.extend(without(&found, &copied));
        }
        original = without(&original, step.writes());
    }
    let left = without(&shared(&original, &layout.output), &copied);
    (found_apart, [copied, left])
}

/// The parts of `spans` that are in none of `others`.
fn without(spans: &[Span], others: &[Span]) -> Vec<Span> {
    let rest = |left: Vec<Span>, other: &Span| {
        let parts = left.iter().flat_map(|span| {
            let before = span.offset..span.end().min(other.offset);
            [before, span.offset.max(other.end())..span.end()]
        });
        parts
            .filter(|part| !part.is_empty())
            .map(Span::from)
            .collect()
    };
    others.iter().fold(spans.to_vec(), rest)
}

/// The parts of `spans` that are in one of `others`, too.
fn shared(spans: &[Span], others: &[Span]) -> Vec<Span> {
    without(spans, &without(spans, others))
}

/// At least as many elements as the scratch memory of a rank with these `steps` has.
pub(super) fn max_scratch(steps: &[Step]) -> usize {
    let packed = || steps.iter().filter(|step| is_packed(step));
    let sent = packed().filter(|step| step.is_send()).map(Step::len);
    let received = packed().filter(|step| !step.is_send());
    let longest = received.map(Step::len).max().unwrap_or(0);
    let places = longest.saturating_mul(BUFFERS.min(packed().count()));
    sent.fold(places, usize::saturating_add)
}

/// Packed messages that are received have [`BUFFERS`] places, used round-robin. Each that is sent
/// has its own: waiting for a place might be waiting for a receiver that waits for this rank.
fn scratch_in_order(steps: &[Step], sequence: &Sequence, ends: &mut [End]) -> usize {
    let packed = || steps.iter().filter(|step| is_packed(step));
    let received = packed().filter(|step| !step.is_send());
    let longest = received.map(Step::len).max().unwrap_or(0);
    let mut end = longest * BUFFERS.min(packed().count());
    let mut received = 0;
    for action in sequence.actions() {
        let i = action.step as usize;
        let step = &steps[i];
        if !is_packed(step) {
            continue;
        }
        ends[i].scratch = Some(if step.is_send() {
            end += step.len();
            end - step.len()
        } else {
            received += 1;
            (received - 1) % BUFFERS * longest
        });
    }
    end
}
