//! Where a wrong element of an output comes from.
//!
//! One element at a time is followed backwards: through the last step that wrote it, to the
//! elements that this step read. Right schedules never get here.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use super::named;
use crate::budget::quick;
use crate::rules::matching::Matching;
use crate::schedule::collective::{Expected, Totals};
use crate::schedule::{Schedule, Span, Step, total_len};

/// A rank and a step of it.
type At = (usize, usize);

/// Where the wrong content of an element of an output comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Origin {
    /// Of the output's rank: its last step that writes the element; `None` if no step does.
    pub(super) written_by: Option<usize>,
    /// The first step after which the content is wrong where it stands, if that is known.
    pub(super) first: Option<At>,
    /// The step that reads for it what nothing has written, if that is the error.
    pub(super) reads_nothing: Option<At>,
}

/// An element of a rank's buffer before a step of it.
type Place = (usize, usize, usize);

/// The contributions that one element holds: rank and element of each, in order of these.
#[derive(Debug, Default)]
struct Content {
    parts: Vec<(usize, usize)>,
    nothing: bool,
}

impl Content {
    /// Whether no output may hold it: it has something that nothing has written, one contribution
    /// twice, or several elements of the inputs.
    fn is_wrong_anywhere(&self) -> bool {
        let pairs = || self.parts.windows(2);
        self.nothing || pairs().any(|pair| pair[0] == pair[1] || pair[0].1 != pair[1].1)
    }

    fn is(&self, ranks: &Range<usize>, element: usize) -> bool {
        let wanted = ranks.clone().map(|rank| (rank, element));
        !self.nothing && self.parts.iter().copied().eq(wanted)
    }
}

/// Follows elements of a schedule that completes.
pub(super) struct Tracer<'a> {
    pub(super) schedule: &'a Schedule,
    matching: &'a Matching,
    totals: &'a Totals<'a>,
    known: HashMap<Place, Rc<Content>>,
    /// Steps that may still be looked at.
    steps_left: usize,
    /// Contributions that may still be stored.
    parts_left: usize,
}

impl<'a> Tracer<'a> {
    pub(super) fn new(
        schedule: &'a Schedule,
        matching: &'a Matching,
        totals: &'a Totals<'a>,
    ) -> Tracer<'a> {
        Tracer {
            schedule,
            matching,
            totals,
            known: HashMap::new(),
            steps_left: quick::MAX_TRACED_STEPS,
            parts_left: quick::MAX_TRACED_PARTS,
        }
    }

    /// Follows the wrong content of an element of a rank's output.
    pub(super) fn origin(&mut self, rank: usize, element: usize) -> Origin {
        let end = (rank, element, self.schedule.programs()[rank].len());
        let written_by = self.writer(end);
        let mut origin = Origin {
            written_by,
            ..Origin::default()
        };
        if written_by.is_some() && self.follow(end, &mut origin).is_none() {
            (origin.first, origin.reads_nothing) = (None, None);
        }
        origin
    }

    /// Goes back step by step, as long as what a step has read was wrong where it stood; `None` if
    /// that takes long.
    fn follow(&mut self, mut place: Place, origin: &mut Origin) -> Option<()> {
        while let Some(step) = self.writer(place) {
            origin.first = Some((place.0, step));
            let mut wrong = None;
            for source in self.sources((place.0, place.1, step))? {
                let content = self.content(source)?;
                if content.is_wrong_anywhere() || self.is_wrong_output(source, &content) {
                    wrong = Some((source, content.nothing));
                    break;
                }
            }
            let Some((source, nothing)) = wrong else {
                break;
            };
            if nothing && self.writer(source).is_none() {
                origin.reads_nothing = Some((source.0, source.2));
                break;
            }
            place = source;
        }
        Some(())
    }

    /// The last step that writes the element.
    fn writer(&mut self, (rank, element, before): Place) -> Option<usize> {
        let steps = &self.schedule.programs()[rank][..before];
        let writes = |step: &Step| step.writes().iter().any(|span| holds(*span, element));
        let found = steps.iter().rposition(writes);
        let looked = before - found.unwrap_or(0);
        self.steps_left = self.steps_left.saturating_sub(looked);
        found
    }

    /// The send that a receive meets.
    pub(super) fn send_of(&self, (rank, step): At) -> Option<At> {
        let receive = &self.schedule.programs()[rank][step];
        let from = receive.peer().filter(|_| !receive.is_send())?;
        Some((from, self.matching.partner((rank, step), from)?))
    }

    /// The elements that a step which writes an element reads for it, what it receives or copies
    /// first.
    fn sources(&self, (rank, element, step): Place) -> Option<Vec<Place>> {
        let program = &self.schedule.programs()[rank];
        let at = place_in(program[step].writes(), element)?;
        let theirs = match &program[step] {
            Step::Send { .. } => return None,
            Step::Recv { .. } | Step::RecvCombine { .. } => {
                let (from, send) = self.send_of((rank, step))?;
                let reads = self.schedule.programs()[from][send].reads();
                (from, position(reads, at), send)
            }
            Step::Copy { src, .. } | Step::Combine { src, .. } => (rank, position(src, at), step),
        };
        match program[step] {
            Step::RecvCombine { .. } | Step::Combine { .. } => {
                Some(vec![theirs, (rank, element, step)])
            }
            _ => Some(vec![theirs]),
        }
    }

    /// What an element holds; `None` if that takes long to find out.
    fn content(&mut self, place: Place) -> Option<Rc<Content>> {
        let mut open = vec![place];
        while let Some(&place) = open.last() {
            if self.steps_left == 0 || self.parts_left == 0 {
                return None;
            }
            let sources = match self.writer(place) {
                _ if self.known.contains_key(&place) => Vec::new(),
                None => {
                    let content = Rc::new(self.initial(place));
                    self.known.insert(place, content);
                    Vec::new()
                }
                Some(step) => self.sources((place.0, place.1, step))?,
            };
            let unknown = sources
                .iter()
                .filter(|source| !self.known.contains_key(source));
            let before = open.len();
            open.extend(unknown);
            if open.len() > before {
                continue;
            }
            open.pop();
            let contents: Vec<_> = sources.iter().map(|source| &self.known[source]).collect();
            let content = match contents[..] {
                [] => continue,
                [one] => Rc::clone(one),
                _ => {
                    let parts = contents.iter().flat_map(|content| &content.parts);
                    let mut parts: Vec<_> = parts.copied().collect();
                    parts.sort_unstable();
                    self.parts_left = self.parts_left.saturating_sub(parts.len());
                    let nothing = contents.iter().any(|content| content.nothing);
                    Rc::new(Content { parts, nothing })
                }
            };
            self.known.insert(place, content);
        }
        self.known.get(&place).map(Rc::clone)
    }

    /// What the element holds before the first step.
    fn initial(&self, (rank, element, _): Place) -> Content {
        match place_in(&self.schedule.layout()[rank].input, element) {
            Some(at) => Content {
                parts: vec![(rank, at)],
                nothing: false,
            },
            None => Content {
                parts: Vec::new(),
                nothing: true,
            },
        }
    }

    /// Whether the element is one of an output that keeps this content to the end, and needs
    /// another.
    fn is_wrong_output(&mut self, place: Place, content: &Content) -> bool {
        let (rank, element, _) = place;
        let output = &self.schedule.layout()[rank].output;
        let Some(mut at) = place_in(output, element) else {
            return false;
        };
        let end = (rank, element, self.schedule.programs()[rank].len());
        if self.writer(end) != self.writer(place) {
            return false;
        }
        let Ok(expected) = self.totals.expected_output(rank) else {
            return false;
        };
        self.steps_left = self.steps_left.saturating_sub(expected.len());
        for Expected { ranks, offset, len } in expected {
            if at < len {
                return !content.is(&ranks, offset + at);
            }
            at -= len;
        }
        false
    }
}

impl Origin {
    /// The origin in words, for an output of `rank`.
    pub(super) fn words(&self, rank: usize, tracer: &Tracer<'_>) -> String {
        let step = |(rank, step): At| named(&tracer.schedule.programs()[rank][step]);
        let sent = |at: At| match tracer.send_of(at) {
            Some((from, send)) => format!(", sent in step {send} of rank {from}"),
            None => String::new(),
        };
        let Some(written_by) = self.written_by else {
            return "no step writes it".into();
        };
        let last = (rank, written_by);
        let mut words = format!(
            "written by step {written_by} ({}){}",
            step(last),
            sent(last)
        );
        if let Some(at) = self.first.filter(|&first| first != last) {
            let (rank, i) = at;
            words += &format!(
                "; wrong since step {i} of rank {rank} ({}){}",
                step(at),
                sent(at)
            );
        }
        if let Some(at) = self.reads_nothing {
            let (rank, i) = at;
            let what = "reads what no step has written";
            words += &format!("; rank {rank}, step {i} ({}) {what}", step(at));
        }
        words
    }
}

fn holds(span: Span, element: usize) -> bool {
    (span.offset..span.end()).contains(&element)
}

/// Which element of `spans` the element of a buffer is.
fn place_in(spans: &[Span], element: usize) -> Option<usize> {
    let span = spans.iter().position(|span| holds(*span, element))?;
    Some(total_len(&spans[..span]) + element - spans[span].offset)
}

/// Position in the buffer of output element `element`.
pub(super) fn position(output: &[Span], element: usize) -> usize {
    let mut before = 0;
    for span in output {
        if element - before < span.len {
            return span.offset + element - before;
        }
        before += span.len;
    }
    before
}
