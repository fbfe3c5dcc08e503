//! Stage 1: errors that are visible without following any message.
//!
//! [`Schedule::new`] already ensures that spans stay inside their buffers and that peers exist.

use std::collections::HashSet;

use super::finding::Findings;
use super::{Finding, FindingKind, counted, named};
use crate::machine::Ports;
use crate::schedule::collective::Totals;
use crate::schedule::{Schedule, Span, Step, total_len};

/// What later stages depend on.
pub(super) struct Structure {
    /// Ports for the deadlock analysis: the schedule's own, or as many as its steps name; `None` if
    /// that number is unreasonable.
    pub(super) ports: Option<Ports>,
    /// Whether every step's effect on the data is defined.
    pub(super) provable: bool,
}

pub(super) fn check(schedule: &Schedule, findings: &mut Findings) -> Structure {
    let mut structure = Structure {
        ports: Some(schedule.ports()),
        provable: true,
    };
    regions(schedule, findings, &mut structure);
    let (mut max_port, mut sorted) = (0, Vec::new());
    for (rank, program) in schedule.programs().iter().enumerate() {
        for (i, step) in program.iter().enumerate() {
            let at = |kind, message: String| {
                let message = format!("rank {rank}, step {i} ({}): {message}", named(step));
                Finding::at(kind, rank, i, step, message)
            };
            structure.provable &= effect_is_defined(step, &at, &mut sorted, findings);
            if step.peer() == Some(rank) {
                let message = "a rank cannot exchange messages with itself: copy instead";
                findings.push(|| at(FindingKind::SelfMessage, message.to_string()));
            }
            if let Some(port) = step.port().filter(|&port| port >= schedule.ports().k()) {
                max_port = max_port.max(port);
                findings.push(|| missing_port(port, schedule.ports(), &at));
            }
        }
    }
    if max_port > 0 {
        let as_named = schedule.ports().with_k(max_port.saturating_add(1));
        structure.ports = as_named.validate().is_ok().then_some(as_named);
    }
    structure
}

/// Checks that the effect of `step` on the data is defined: it writes no element twice, reads none
/// that it writes, and its lengths fit. Returns whether it is. `sorted` is scratch space.
fn effect_is_defined(
    step: &Step,
    at: &impl Fn(FindingKind, String) -> Finding,
    sorted: &mut Vec<(Span, bool)>,
    findings: &mut Findings,
) -> bool {
    let mut defined = true;
    if let Some((a, b)) = overlap(step.writes(), &[], sorted) {
        defined = false;
        findings.push(|| {
            let message = format!("writes {}", common(a, b, " twice"));
            at(FindingKind::Overlap, message)
        });
    } else if let Some((a, b)) = overlap(step.reads(), step.writes(), sorted) {
        defined = false;
        findings.push(|| {
            let message = format!("reads and writes {}", common(a, b, ""));
            at(FindingKind::Overlap, message)
        });
    }
    if let Step::Copy { src, dst } | Step::Combine { src, dst, .. } = step {
        let (found, expected) = (total_len(src), total_len(dst));
        if found != expected {
            defined = false;
            findings.push(|| {
                let (expected_elements, found_elements) =
                    (counted(expected, "element"), counted(found, "element"));
                let message =
                    format!("the source has {found_elements}, the destination {expected}");
                Finding {
                    expected: Some(expected_elements),
                    found: Some(found_elements),
                    ..at(FindingKind::LocalLength, message)
                }
            });
        }
    }
    if step.len() == usize::MAX {
        defined = false;
        let message = "more elements than can be counted".to_string();
        findings.push(|| at(FindingKind::TooLarge, message));
    }
    defined
}

/// The finding that a step names a port that its rank does not have.
fn missing_port(
    port: usize,
    ports: Ports,
    at: &impl Fn(FindingKind, String) -> Finding,
) -> Finding {
    let k = ports.k();
    Finding {
        expected: Some(format!("a port below {k}")),
        found: Some(format!("port {port}")),
        ..at(
            FindingKind::Port,
            format!(
                "port {port} does not exist: a {k}-ported {} rank has {}, numbered from 0",
                ports.adjective(),
                ports_of(ports)
            ),
        )
    }
}

fn ports_of(ports: Ports) -> String {
    let k = ports.k();
    let each = if ports.has_kinds() {
        " of each kind"
    } else {
        ""
    };
    format!("{}{each}", counted(k, "port"))
}

/// Checks input and output regions: they must not overlap, and their lengths must fit the
/// collective.
fn regions(schedule: &Schedule, findings: &mut Findings, structure: &mut Structure) {
    let layout = schedule.layout();
    let mut sorted = Vec::new();
    for (rank, l) in layout.iter().enumerate() {
        for (what, spans) in [("input", &l.input), ("output", &l.output)] {
            if let Some((a, b)) = overlap(spans, &[], &mut sorted) {
                structure.provable = false;
                findings.push(|| Finding {
                    rank: Some(rank),
                    ..Finding::of(
                        FindingKind::Overlap,
                        format!("rank {rank}: {what} names {}", common(a, b, " twice")),
                    )
                });
            }
        }
    }
    // Many ranks can have the same error, so report each message once.
    let totals = Totals::new(schedule.collective(), layout);
    let mut reported = HashSet::new();
    for rank in 0..layout.len() {
        if let Err(e) = totals.expected_output(rank) {
            let message = e.to_string();
            if reported.insert(message.clone()) {
                let about_rank = message.contains(&format!("rank {rank} has"));
                findings.push(|| Finding {
                    rank: about_rank.then_some(rank),
                    ..Finding::of(FindingKind::Layout, message)
                });
            }
        }
    }
}

/// Finds two spans that have an element in common: both from `a` if `b` is empty, otherwise one of
/// each.
fn overlap(a: &[Span], b: &[Span], sorted: &mut Vec<(Span, bool)>) -> Option<(Span, Span)> {
    match (a, b) {
        ([], _) | ([_], []) => return None,
        ([a], [b]) => return a.overlaps(*b).then_some((*a, *b)),
        _ => {}
    }
    sorted.clear();
    sorted.extend(a.iter().map(|&s| (s, false)));
    sorted.extend(b.iter().map(|&s| (s, true)));
    sorted.retain(|(s, _)| s.len > 0);
    sorted.sort_unstable();
    // By side: the span that reaches furthest so far.
    let mut reach: [Option<Span>; 2] = [None, None];
    for &(span, side) in sorted.iter() {
        let other = if b.is_empty() { side } else { !side };
        if let Some(earlier) = reach[usize::from(other)].filter(|s| s.overlaps(span)) {
            return Some((earlier, span));
        }
        let mine = &mut reach[usize::from(side)];
        if mine.is_none_or(|s| s.end() < span.end()) {
            *mine = Some(span);
        }
    }
    None
}

/// Describes the elements that two overlapping spans share.
fn common(a: Span, b: Span, then: &str) -> String {
    let (start, end) = (a.offset.max(b.offset), a.end().min(b.end()));
    let elements = if end - start == 1 {
        format!("element {start}")
    } else {
        format!("elements {start} to {}", end - 1)
    };
    format!(
        "{elements}{then} (spans [{}, {}] and [{}, {}])",
        a.offset, a.len, b.offset, b.len
    )
}
