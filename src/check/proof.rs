//! Stage 4: moves symbols through the schedule, in an order in which every step comes after the
//! steps it waits for.
//!
//! Rule 2 orders any two steps of a rank that access the same element, unless both only read it, so
//! every such order gives the same values. A combining receive is evaluated at its transfer: no
//! other step can access its span before it has combined.

use std::collections::BTreeMap;

use super::bits::{BitsProof, OutputTrees};
use super::finding::{Findings, Proof};
use super::history::Recorder;
use super::memory::{Fresh, Memory, MessageCursor, SymbolPiece};
use super::origin::{Origin, Tracer, position};
use super::symbols::{ListId, MAX_EXAMINED, Symbols, Value};
use super::waste::Waste;
use super::{Finding, FindingKind};
use crate::machine::numbers::id;
use crate::rules::matching::{Matching, NONE};
use crate::rules::{Event, Graph};
use crate::schedule::collective::{Expected, Extent, Holders, Operands, Totals};
use crate::schedule::{Order, Schedule, Span, Spans, Step};

/// Runs the schedule on symbols, records what its steps write if asked to, and compares every
/// output with the content that the collective requires. Notes what a correct schedule does in
/// vain. Returns what holds of the schedule if there is no error.
pub(super) fn prove<'s>(
    schedule: &'s Schedule,
    keep_order: bool,
    matching: &Matching,
    graph: &Graph,
    order: &[u32],
    findings: &mut Findings,
    mut recorder: Option<&mut Recorder>,
) -> Proof<'s> {
    let mut machine = SymbolMachine::new(schedule);
    if let Some(recorder) = &mut recorder {
        recorder.start(schedule, &machine.symbols, &machine.memories);
    }
    let receivers = receivers(schedule, graph);
    for &node in order {
        let (rank, step) = receivers[node as usize];
        if rank == NONE {
            continue;
        }
        let (rank, step) = (rank as usize, step as usize);
        machine.execute(schedule, matching, rank, step);
        if let Some(recorder) = &mut recorder {
            let written = schedule.programs()[rank][step].writes();
            let memory = &machine.memories[rank];
            recorder.step((rank, step), written, &machine.symbols, memory);
        }
    }
    let totals = Totals::new(schedule.collective(), schedule.layout());
    let mut tracer = Tracer::new(schedule, matching, &totals);
    let (mut in_order, mut bits) = (true, BitsProof::new(schedule, &machine.symbols));
    for rank in 0..schedule.ranks() {
        // Stage 1 has reported collectives whose expected output is undefined.
        if let Ok(expected) = totals.expected_output(rank) {
            let bits = bits.as_mut();
            in_order &= machine.compare(&mut tracer, rank, &expected, keep_order, bits, findings);
        }
        for (step, at, len) in machine.memories[rank].unread() {
            let waste = &mut machine.waste;
            waste.add((rank, step as usize), FindingKind::Unused, at, len);
        }
    }
    let has_output = schedule.layout().iter().any(|l| !l.output.is_empty());
    let has_data = schedule.collective().kind().has_data();
    let is_empty = schedule.layout().iter().all(|layout| layout.len == 0);
    let unproved = match (schedule.steps(), is_empty) {
        (0, true) => "all buffers are empty and there are no steps: nothing was to be proved",
        (1.., false) if has_data && !has_output => {
            "no rank has an output: messages meet, and nothing waits for itself; what they carry is not known"
        }
        _ => "",
    };
    if !unproved.is_empty() {
        findings.note(|| Finding::of(FindingKind::Nothing, unproved.into()));
    }
    // The tokens of a barrier have no bytes: any number of them costs the same. Files that tell
    // only what is sent have no outputs.
    if has_output && has_data {
        machine.waste.report(schedule, findings);
    }
    let bits = bits.filter(|_| findings.is_empty());
    Proof {
        in_order,
        bits: bits.map(|bits| bits.finish(&machine.symbols)),
        trees: OutputTrees::new(schedule, machine.symbols, machine.memories),
    }
}

/// By node: the rank and step that a transfer or local step writes for; [`NONE`] for the second
/// half of a combining receive.
fn receivers(schedule: &Schedule, graph: &Graph) -> Vec<(u32, u32)> {
    let mut receivers = vec![(NONE, NONE); graph.nodes.len()];
    for (rank, program) in schedule.programs().iter().enumerate() {
        for (i, step) in program.iter().enumerate() {
            let event = match step {
                Step::Send { .. } => continue,
                Step::Recv { .. } | Step::RecvCombine { .. } => Event::transferred(i),
                Step::Copy { .. } | Step::Combine { .. } => Event::computed(i),
            };
            let node = graph.event_nodes[graph.rank_events[rank] + event.index()];
            if node != NONE {
                receivers[node as usize] = (id(rank), id(i));
            }
        }
    }
    receivers
}

struct SymbolMachine {
    symbols: Symbols,
    memories: Vec<Memory>,
    message: Vec<SymbolPiece>,
    fresh: Fresh,
    waste: Waste,
    /// Whether each partial result is needed at one rank alone.
    has_one_result: bool,
}

impl SymbolMachine {
    fn new(schedule: &Schedule) -> SymbolMachine {
        let row = schedule.collective().kind().row();
        let mut machine = SymbolMachine {
            symbols: Symbols::new(schedule.ranks()),
            memories: Vec::with_capacity(schedule.ranks()),
            message: Vec::new(),
            fresh: Fresh::default(),
            waste: Waste::default(),
            has_one_result: row.combines == Some(Operands::All)
                && (row.output.0 == Holders::Root || row.output.1 == Extent::Block),
        };
        for (rank, (layout, program)) in schedule
            .layout()
            .iter()
            .zip(schedule.programs())
            .enumerate()
        {
            let written = program.iter().flat_map(|s| s.writes());
            let cuts = written
                .chain(&layout.input)
                .chain(&layout.output)
                .filter(|s| s.len > 0)
                .flat_map(|s| [s.offset, s.end()]);
            let nothing = Value {
                tree: machine.symbols.nothing(rank),
                index: 0,
            };
            let mut memory = Memory::new(layout.len, nothing, cuts);
            let (tree, mut index) = (machine.symbols.input(rank), 0);
            for &span in &layout.input {
                let piece = [SymbolPiece {
                    len: span.len,
                    value: Value { tree, index },
                }];
                memory.write(
                    span,
                    &mut MessageCursor::new(&piece),
                    &mut machine.fresh,
                    |change| (change.new, NONE),
                );
                index += span.len;
            }
            machine.memories.push(memory);
        }
        machine
    }

    /// Executes a local step, or a receive together with its send.
    fn execute(&mut self, schedule: &Schedule, matching: &Matching, rank: usize, index: usize) {
        let step = &schedule.programs()[rank][index];
        self.message.clear();
        match step {
            Step::Send { .. } => return,
            Step::Recv { from, .. } | Step::RecvCombine { from, .. } => {
                // Stage 2 has reported receives without sends.
                let Some(send) = matching.partner((rank, index), *from) else {
                    return;
                };
                self.read(*from, schedule.programs()[*from][send].reads());
            }
            Step::Copy { src, .. } | Step::Combine { src, .. } => self.read(rank, src),
        }
        match step {
            Step::Send { .. } => {}
            Step::Recv { spans, .. } | Step::Copy { dst: spans, .. } => {
                self.write((rank, index), spans, None);
            }
            Step::RecvCombine { spans, order, .. }
            | Step::Combine {
                dst: spans, order, ..
            } => self.write((rank, index), spans, Some(*order)),
        }
    }

    fn read(&mut self, rank: usize, spans: &[Span]) {
        for &span in spans {
            self.memories[rank].consume(span, &mut self.message);
        }
    }

    /// Writes the message to `spans`, combined with what they hold if there is an order for that.
    fn write(&mut self, (rank, step): (usize, usize), spans: &Spans, order: Option<Order>) {
        let SymbolMachine {
            symbols,
            memories,
            message,
            fresh,
            waste,
            has_one_result,
        } = self;
        let mut cursor = MessageCursor::new(message);
        for &span in spans {
            memories[rank].write(span, &mut cursor, fresh, |change| {
                let (mine, theirs) = (change.old, change.new);
                let mut wasted = |step, kind| waste.add((rank, step), kind, change.at, change.len);
                let value = match order {
                    None if symbols.are_alike(mine, theirs) => {
                        wasted(step, FindingKind::HeldAlready);
                        return (theirs, change.unread);
                    }
                    None => {
                        if change.unread != NONE {
                            wasted(change.unread as usize, FindingKind::Unused);
                        }
                        return (theirs, id(step));
                    }
                    Some(Order::MineFirst) => symbols.combined(mine, theirs),
                    Some(Order::TheirsFirst) => symbols.combined(theirs, mine),
                };
                if *has_one_result && symbols.repeats(value, change.len) {
                    wasted(step, FindingKind::CombinedTwice);
                }
                (value, id(step))
            });
        }
    }

    /// Compares the output of `rank` with its expected content. Returns whether all operands are in
    /// rank order.
    fn compare(
        &mut self,
        tracer: &mut Tracer<'_>,
        rank: usize,
        expected: &[Expected],
        keep_order: bool,
        bits: Option<&mut BitsProof>,
        findings: &mut Findings,
    ) -> bool {
        let output = &tracer.schedule.layout()[rank].output;
        self.message.clear();
        self.read(rank, output);
        let message = std::mem::take(&mut self.message);
        if let Some(bits) = bits {
            bits.add(&self.symbols, rank, &message);
        }
        let mut cursor = MessageCursor::new(&message);
        let (mut in_order, mut element) = (true, 0);
        for part in expected {
            let (first, count) = (part.ranks.start, part.ranks.len());
            let expected_list = self.symbols.inputs(first, count);
            let mut done = 0;
            while done < part.len {
                let Some(mut piece) = cursor.take(part.len - done) else {
                    break;
                };
                // Pieces may differ in the order of combining alone.
                while let Some(next) = cursor.next()
                    && self.symbols.are_alike(next, piece.value.plus(piece.len))
                    && let Some(more) = cursor.take(part.len - done - piece.len)
                    && more.len > 0
                {
                    piece.len += more.len;
                }
                let index = part.offset + done;
                let found = self.symbols.list(piece.value);
                if (found, piece.value.index) != (expected_list, index) {
                    in_order = false;
                    let permuted = piece.value.index == index
                        && self.symbols.as_set(found) == Some((first, count));
                    if !permuted || keep_order {
                        let is_first = findings.is_empty();
                        findings.push(|| {
                            let mut wrong = WrongRun {
                                symbols: &self.symbols,
                                rank,
                                element,
                                len: piece.len,
                                expected: Content {
                                    list: expected_list,
                                    index,
                                },
                                expected_ranks: (first, count),
                                found: Content {
                                    list: found,
                                    index: piece.value.index,
                                },
                            };
                            wrong.finding(output, permuted, is_first, tracer)
                        });
                    }
                }
                done += piece.len;
                element += piece.len;
            }
        }
        self.message = message;
        in_order
    }
}

/// A run of wrong output elements; builds its finding.
struct WrongRun<'a> {
    symbols: &'a Symbols,
    rank: usize,
    element: usize,
    len: usize,
    expected: Content,
    /// First rank, and number of ranks, that should contribute.
    expected_ranks: (usize, usize),
    found: Content,
}

/// The contributions of an element, and the index of the first.
#[derive(Clone, Copy)]
struct Content {
    list: ListId,
    index: usize,
}

impl WrongRun<'_> {
    /// The finding; the first one of a report explains its symbols.
    fn finding(
        &mut self,
        output: &[Span],
        permuted: bool,
        is_first: bool,
        tracer: &mut Tracer<'_>,
    ) -> Finding {
        let WrongRun { rank, element, .. } = *self;
        let position = position(output, element);
        let (expected, found) = (self.words(self.expected), self.words(self.found));
        let where_ = if self.len == 1 {
            format!("output element {element} (position {position} of its buffer)")
        } else {
            format!(
                "output elements {element} to {} (from position {position} of its buffer)",
                element + self.len - 1
            )
        };
        let kind = if permuted {
            FindingKind::OperandOrder
        } else {
            FindingKind::Contributions
        };
        let mut why = self.why(permuted);
        let origin = if permuted {
            Origin::default()
        } else {
            tracer.origin(rank, position)
        };
        if !permuted {
            why += &format!("; {}", origin.words(rank, tracer));
        }
        if is_first {
            let (first, count) = self.expected_ranks;
            let whose = match count {
                1 => format!("rank {first}'s input"),
                _ => format!("the inputs of ranks {first} to {}", first + count - 1),
            };
            why += &format!(
                " ({expected} is element {} of {whose})",
                self.expected.index
            );
        }
        let written_by = origin
            .written_by
            .map(|step| &tracer.schedule.programs()[rank][step]);
        Finding {
            rank: Some(rank),
            step: origin.written_by,
            peer: written_by.and_then(Step::peer),
            port: written_by.and_then(Step::port),
            origin_rank: origin.first.map(|first| first.0),
            origin_step: origin.first.map(|first| first.1),
            element: Some(element),
            elements: Some(self.len),
            position: Some(position),
            expected: Some(expected.clone()),
            found: Some(found.clone()),
            ..Finding::of(
                kind,
                format!("rank {rank}, {where_}: expected {expected}, found {found}: {why}"),
            )
        }
    }

    /// A value in words: `x0..x7 [3]`, `x0+x2+x1 [3]`, `x0[3]+x1[4]`, `nothing`,
    /// `x0 [3] + nothing`.
    fn words(&self, value: Content) -> String {
        // The index of the first input; unwritten elements have none.
        let same_index = self.parts(value.list).all(|p| p.shift == 0 || p.nothing);
        let index_at = |shift| value.index.wrapping_add(shift);
        let mut words = self.symbols.words(value.list, |shift| {
            if same_index {
                String::new()
            } else {
                format!("[{}]", index_at(shift))
            }
        });
        if same_index && let Some(p) = self.parts(value.list).find(|p| !p.nothing) {
            words += &format!(" [{}]", index_at(p.shift));
        }
        words
    }

    fn parts(&self, list: ListId) -> impl Iterator<Item = super::symbols::ListPart> {
        self.symbols.examined(list)
    }

    /// Names the contributions that are missing, doubled, foreign, from the wrong element or out of
    /// order.
    fn why(&self, permuted: bool) -> String {
        let mut reasons = Vec::new();
        if permuted {
            let ranks = self
                .parts(self.found.list)
                .flat_map(|p| p.first..p.first + p.count);
            let (first, count) = self.expected_ranks;
            let mut pairs = ranks.zip(first..first + count);
            let (found, expected) = pairs.find(|(a, b)| a != b).unwrap_or_default();
            return format!("x{found} stands where x{expected} should, out of rank order");
        }
        if self.symbols.len(self.found.list) > MAX_EXAMINED {
            return format!(
                "found {} contributions, expected {}",
                self.symbols.len(self.found.list),
                self.expected_ranks.1
            );
        }
        let (mut times, mut elsewhere, mut nothing) = (BTreeMap::new(), BTreeMap::new(), false);
        for part in self.parts(self.found.list) {
            let index = self.found.index.wrapping_add(part.shift);
            for rank in part.first..part.first + part.count {
                if part.nothing {
                    nothing = true;
                } else if index == self.expected.index {
                    *times.entry(rank).or_insert(0usize) += 1;
                } else {
                    elsewhere.entry(rank).or_insert(index);
                }
            }
        }
        if nothing {
            reasons.push("never written".to_string());
        }
        let (first, count) = self.expected_ranks;
        let wanted = first..first + count;
        let mut list = |ranks: Vec<usize>, what: &str| {
            if !ranks.is_empty() {
                reasons.push(format!("{} {what}", ranges(&ranks)));
            }
        };
        list(
            wanted
                .clone()
                .filter(|r| !times.contains_key(r) && !elsewhere.contains_key(r))
                .collect(),
            "missing",
        );
        let doubled: Vec<usize> = times.iter().filter(|t| *t.1 == 2).map(|t| *t.0).collect();
        list(doubled, "twice");
        let more: Vec<usize> = times.iter().filter(|t| *t.1 > 2).map(|t| *t.0).collect();
        list(more, "more than twice");
        let foreign = times.keys().chain(elsewhere.keys());
        let mut foreign: Vec<usize> = foreign.copied().filter(|r| !wanted.contains(r)).collect();
        foreign.sort_unstable();
        foreign.dedup();
        list(foreign, "not wanted");
        let here = self.expected.index;
        for (rank, index) in elsewhere.iter().filter(|e| wanted.contains(e.0)).take(3) {
            reasons.push(format!("x{rank} from element {index} instead of {here}"));
        }
        reasons.join(", ")
    }
}

/// A list of ranks: `x0, x2..x4, x9`, shortened if it is long.
fn ranges(ranks: &[usize]) -> String {
    let mut words: Vec<String> = Vec::new();
    for run in ranks.chunk_by(|a, b| a + 1 == *b) {
        match *run {
            [] => {}
            [a] => words.push(format!("x{a}")),
            [a, b] => words.extend([format!("x{a}"), format!("x{b}")]),
            [a, .., b] => words.push(format!("x{a}..x{b}")),
        }
    }
    if words.len() > 8 {
        words.truncate(7);
        words.push(format!("... ({} in all)", ranks.len()));
    }
    words.join(", ")
}
