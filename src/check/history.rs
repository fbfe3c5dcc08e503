//! What every buffer holds over the course of a schedule, in the symbols of the proof.

use std::collections::HashMap;

use super::memory::{Memory, SymbolPiece};
use super::symbols::{ListId, Symbols};
use crate::schedule::{Schedule, Span};

/// What every rank's buffer holds before the first step, and what every step writes, recorded by
/// [`Schedule::check_recorded`](crate::Schedule::check_recorded).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct History {
    contents: Vec<Contributions>,
    initial: Vec<Vec<Held>>,
    /// By rank and step.
    writes: Vec<Vec<Vec<Held>>>,
}

/// The contributions that one element holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contributions {
    /// In words, without the index: `x3`, `x0..x7`, `x0+x2`, `x0+nothing`.
    pub words: String,
    /// Number of contributions, at most `u64::MAX`; 0 if nothing has been written.
    pub count: u64,
    /// The rank of the first contribution.
    pub first_rank: usize,
}

/// A run of elements with the same contributions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// The elements, in the rank's buffer.
    pub span: Span,
    /// Index into [`History::contents`].
    pub content: usize,
    /// The index, in the input of the first contributing rank, of what the first element holds. It
    /// increases by one per element.
    pub index: usize,
}

impl History {
    /// The history of a schedule whose buffers hold nothing at any time.
    pub fn empty(schedule: &Schedule) -> History {
        let programs = schedule.programs().iter();
        History {
            contents: Vec::new(),
            initial: vec![Vec::new(); schedule.ranks()],
            writes: programs.map(|p| vec![Vec::new(); p.len()]).collect(),
        }
    }

    /// The distinct lists of contributions.
    pub fn contents(&self) -> &[Contributions] {
        &self.contents
    }

    /// What the buffer of `rank` holds before the first step. Elements without a run hold nothing.
    ///
    /// # Panics
    /// When there is no such rank.
    pub fn initial(&self, rank: usize) -> &[Held] {
        &self.initial[rank]
    }

    /// What the elements that step `step` of `rank` writes hold when it has ended: empty for a
    /// send.
    ///
    /// # Panics
    /// When there is no such rank or step.
    pub fn written(&self, rank: usize, step: usize) -> &[Held] {
        &self.writes[rank][step]
    }
}

/// Records a [`History`] while the proof executes a schedule.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    history: History,
    numbers: HashMap<ListId, usize>,
    pieces: Vec<SymbolPiece>,
}

impl Recorder {
    /// Records what `memories` hold before the first step.
    pub(super) fn start(&mut self, schedule: &Schedule, symbols: &Symbols, memories: &[Memory]) {
        self.history = History::empty(schedule);
        for (rank, layout) in schedule.layout().iter().enumerate() {
            self.history.initial[rank] = self.held(symbols, &memories[rank], &layout.input);
        }
    }

    /// Records what a step has just written into the memory of its rank.
    pub(super) fn step(
        &mut self,
        (rank, step): (usize, usize),
        written: &[Span],
        symbols: &Symbols,
        memory: &Memory,
    ) {
        self.history.writes[rank][step] = self.held(symbols, memory, written);
    }

    pub(super) fn finish(self) -> History {
        self.history
    }

    fn held(&mut self, symbols: &Symbols, memory: &Memory, spans: &[Span]) -> Vec<Held> {
        let mut held: Vec<Held> = Vec::new();
        for span in spans {
            self.pieces.clear();
            memory.read(*span, &mut self.pieces);
            let (mut offset, first) = (span.offset, held.len());
            for &SymbolPiece { len, value } in &self.pieces {
                let contents = &mut self.history.contents;
                let list = symbols.list(value);
                let number = *self.numbers.entry(list).or_insert_with(|| {
                    contents.push(contributions(symbols, list));
                    contents.len() - 1
                });
                // Pieces may differ in the order of combining alone.
                match held[first..].last_mut() {
                    Some(Held {
                        span,
                        content,
                        index,
                    }) if *content == number && index.wrapping_add(span.len) == value.index => {
                        span.len += len;
                    }
                    _ => held.push(Held {
                        span: Span::new(offset, len),
                        content: number,
                        index: value.index,
                    }),
                }
                offset += len;
            }
        }
        held
    }
}

fn contributions(symbols: &Symbols, list: ListId) -> Contributions {
    let mut parts = symbols.parts(list);
    let first = parts.next();
    let nothing = first.is_some_and(|p| p.nothing) && parts.next().is_none();
    Contributions {
        words: symbols.words(list, |shift| match shift {
            0 => String::new(),
            shift => format!("[{:+}]", shift.cast_signed()),
        }),
        count: if nothing { 0 } else { symbols.len(list) },
        first_rank: first.map_or(0, |p| p.first),
    }
}
