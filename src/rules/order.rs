//! The precedence between the steps of one rank: rules 1 to 3 of [`crate::rules`] as events that
//! each step waits for.
//!
//! This is the static analysis, for programs that are known as a whole. Checker, precedence graph
//! and executors use it, so they cannot disagree about the rules. The incremental one is
//! `online.rs`.

use smallvec::SmallVec;

use crate::budget::size::MAX_TRANSFERS;
use crate::error::{Error, Result};
use crate::machine::Ports;
use crate::schedule::{Span, Step};

/// The end of a step's transfer or of a step's computation: see [`LocalOrder`]. A program has at
/// most 2^30 steps, numbered from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Event(u32);

impl Event {
    /// The transfer of step `step` ends.
    pub fn transferred(step: usize) -> Event {
        Event(narrow(step) * 2)
    }

    /// The computation of step `step` ends: a local step's, or the combining part of a receive.
    pub fn computed(step: usize) -> Event {
        Event(narrow(step) * 2 + 1)
    }

    /// The last event of `step`, step number `index`: the one that finishes it.
    fn finished(index: usize, step: &Step) -> Event {
        if step.computes() {
            Event::computed(index)
        } else {
            Event::transferred(index)
        }
    }

    /// The step that the event belongs to.
    pub fn step(self) -> usize {
        self.0 as usize / 2
    }

    /// Whether the event is the end of a computation.
    pub fn is_computed(self) -> bool {
        self.0 % 2 == 1
    }

    /// A dense index: `2 * step`, plus 1 for computations.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

fn narrow(step: usize) -> u32 {
    u32::try_from(step).unwrap_or(u32::MAX / 2)
}

/// For every step of one rank: the events of earlier steps that must have happened before it
/// starts, and before its combining part starts.
///
/// Implied events are left out: on a one-ported bidirectional rank without overlap at most two
/// remain per step.
#[doc(hidden)]
#[derive(Debug, Clone, Default)]
pub struct LocalOrder {
    start: Lists,
    compute: Lists,
}

/// Working memory of [`LocalOrder::analyse`], reused for all ranks.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct OrderScratch {
    cuts: Vec<usize>,
    atoms: Vec<Atom>,
    last: Vec<Option<Event>>,
    /// By list: the last event before the last steps that hold up others [alike](hold_up_alike).
    /// Empty where a step waits for its own list alone.
    before: Vec<Option<Event>>,
    waits: SmallVec<[Tagged; 8]>,
}

impl LocalOrder {
    /// Analyses one program and replaces the result of the one before. `overlap` is
    /// [`CostModel::overlap`](crate::CostModel::overlap).
    ///
    /// Time and space are linear in the number of steps and of the distinct parts of the buffer
    /// that they access.
    ///
    /// # Errors
    /// When a step names a port that the rank does not have, or the program has more than 2^30
    /// steps.
    pub fn analyse(
        &mut self,
        program: &[Step],
        ports: Ports,
        overlap: bool,
        scratch: &mut OrderScratch,
    ) -> Result<()> {
        self.start.clear();
        self.compute.clear();
        if program.len() > MAX_TRANSFERS {
            return Err(Error::usage("a program of more than 2^30 steps"));
        }
        scratch.begin(program, ports);
        // The last computation; every later step starts after it (rule 3 without overlap).
        let mut barrier: Option<Event> = None;
        for (i, step) in program.iter().enumerate() {
            let list = match step.port() {
                Some(port) if port >= ports.k() => {
                    return Err(Error::wrong(format!(
                        "step {i} ({}) uses port {port}, but the rank has {} (numbered from 0)",
                        step.name(),
                        ports.k()
                    )));
                }
                Some(port) => Some(ports.list(step.is_send(), port)),
                None => None,
            };
            let waits_for_all = !overlap && list.is_none();
            scratch.waits.clear();
            if waits_for_all {
                // Wait for the last event of every list; the barrier implies the earlier events.
                self.start.extend(scratch.last.iter().flatten().copied());
                if self.start.open_is_empty() {
                    self.start.extend(barrier);
                }
            } else {
                scratch.data_waits(step, list, if overlap { None } else { barrier });
                if let Some(list) = list {
                    self.start.extend(scratch.last[list]);
                    (self.start).extend(scratch.waits_of_lists(program, step, list, ports));
                }
                if !overlap && scratch.waits.is_empty() && self.start.open_is_empty() {
                    self.start.extend(barrier);
                }
                self.start.extend(scratch.waits.iter().map(|w| w.event));
            }
            self.start.close();

            if step.computes() && list.is_some() && !overlap {
                // The combining part also waits for all other lists; its own transfer is implied.
                for (l, last) in scratch.last.iter().enumerate() {
                    if Some(l) != list {
                        self.compute.extend(*last);
                    }
                }
            }
            self.compute.close();

            scratch.record_accesses(step, i, list);
            if step.computes() && !overlap {
                barrier = Some(Event::computed(i));
                scratch.last.fill(None);
            } else if let Some(l) = list {
                scratch.record_transfer(program, i, l, ports);
            }
        }
        Ok(())
    }

    /// Events that must have happened before step `step` may start.
    pub fn before_start(&self, step: usize) -> &[Event] {
        self.start.get(step)
    }

    /// Events, besides its own transfer, that must have happened before the combining part of
    /// receive `step` may start.
    pub fn before_compute(&self, step: usize) -> &[Event] {
        self.compute.get(step)
    }
}

/// Whether `later` holds the port of `earlier`, an earlier step of its rank, too, and waits for it
/// (rule 1). Where both are of one list, it does.
pub(crate) fn share_port(ports: Ports, earlier: &Step, later: &Step) -> bool {
    let list = |step: &Step| step.port().map(|port| ports.list(step.is_send(), port));
    let other_call =
        ports.has_calls() && earlier.port() == later.port() && earlier.peer() != later.peer();
    list(later).is_some() && (list(later) == list(earlier) || other_call)
}

/// Whether two steps of one list are waited for by the same later steps of other lists (rule 1). A
/// later step that does not wait for some of them must wait for all that do not hold up alike:
/// `waits_of_lists` relies on it.
fn hold_up_alike(ports: Ports, a: &Step, b: &Step) -> bool {
    !ports.has_calls() || a.peer() == b.peer()
}

/// Lists of events, stored one after another in one allocation.
#[derive(Debug, Clone, Default)]
struct Lists {
    ends: Vec<u32>,
    events: Vec<Event>,
}

impl Lists {
    fn clear(&mut self) {
        self.ends.clear();
        self.events.clear();
    }

    fn extend(&mut self, events: impl IntoIterator<Item = Event>) {
        self.events.extend(events);
    }

    fn open_is_empty(&self) -> bool {
        self.ends.last().copied().unwrap_or(0) as usize == self.events.len()
    }

    fn close(&mut self) {
        self.ends
            .push(u32::try_from(self.events.len()).unwrap_or(u32::MAX));
    }

    fn get(&self, i: usize) -> &[Event] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] as usize };
        &self.events[start..self.ends[i] as usize]
    }
}

/// An event and the port list it belongs to (`None` for local computations).
#[derive(Debug, Clone, Copy, PartialEq)]
struct Tagged {
    event: Event,
    list: Option<usize>,
}

/// A part of the buffer that every span covers completely or not at all, with its last writer and
/// the readers since then.
#[derive(Debug, Clone, Default)]
struct Atom {
    writer: Option<Tagged>,
    readers: SmallVec<[Tagged; 2]>,
}

impl OrderScratch {
    fn begin(&mut self, program: &[Step], ports: Ports) {
        self.cuts.clear();
        for step in program {
            for span in step.reads().iter().chain(step.writes()) {
                if span.len > 0 {
                    self.cuts.push(span.offset);
                    self.cuts.push(span.end());
                }
            }
        }
        self.cuts.sort_unstable();
        self.cuts.dedup();
        self.atoms.clear();
        self.atoms.resize(self.cuts.len(), Atom::default());
        // Leave out lists that no step uses, because every list is searched.
        let used = program
            .iter()
            .filter_map(|s| Some(ports.list(s.is_send(), s.port().filter(|&p| p < ports.k())?)));
        self.last.clear();
        self.last.resize(used.max().map_or(0, |l| l + 1), None);
        self.before.clear();
        if !ports.waits_by_list() {
            self.before.resize(self.last.len(), None);
        }
    }

    /// By list other than its own: the last event that rule 1 makes `step` of list `own` wait for.
    fn waits_of_lists(
        &self,
        program: &[Step],
        step: &Step,
        own: usize,
        ports: Ports,
    ) -> impl Iterator<Item = Event> {
        let others = ports.may_wait_for(own).filter(move |&list| list != own);
        others.filter_map(move |list| {
            let last = self.last.get(list).copied().flatten()?;
            let holds_up = |event: &Event| share_port(ports, &program[event.step()], step);
            if holds_up(&last) {
                Some(last)
            } else {
                let before = self.before[list];
                debug_assert!(before.as_ref().is_none_or(holds_up), "see hold_up_alike");
                before
            }
        })
    }

    /// Records that step `i` is the last one of `list`.
    fn record_transfer(&mut self, program: &[Step], i: usize, list: usize, ports: Ports) {
        let last = &mut self.last[list];
        if let Some(before) = self.before.get_mut(list) {
            let go_on = |event: Event| hold_up_alike(ports, &program[event.step()], &program[i]);
            if !last.is_some_and(go_on) {
                *before = *last;
            }
        }
        *last = Some(Event::transferred(i));
    }

    fn atoms_of(cuts: &[usize], span: Span) -> std::ops::Range<usize> {
        if span.len == 0 {
            return 0..0;
        }
        let at = |offset| cuts.partition_point(|&c| c < offset);
        let first = at(span.offset);
        // Most spans are one atom, so try that before searching.
        let last = if cuts.get(first + 1) == Some(&span.end()) {
            first + 1
        } else {
            at(span.end())
        };
        first..last
    }

    /// Collects the events that rule 2 makes `step` wait for, except those that its own list or
    /// `barrier` implies.
    fn data_waits(&mut self, step: &Step, list: Option<usize>, barrier: Option<Event>) {
        let OrderScratch {
            cuts, atoms, waits, ..
        } = self;
        let mut wait = |t: &Tagged, transfer_suffices: bool| {
            let implied = (transfer_suffices && list.is_some() && t.list == list)
                || barrier.is_some_and(|b| t.event <= b);
            if implied || waits.contains(t) {
                return;
            }
            // Within one list a later event implies the earlier ones.
            let in_same_list = |w: &&mut Tagged| w.list == t.list && !w.event.is_computed();
            if t.list.is_some()
                && !t.event.is_computed()
                && let Some(w) = waits.iter_mut().find(in_same_list)
            {
                w.event = w.event.max(t.event);
                return;
            }
            waits.push(*t);
        };
        for span in step.reads() {
            for atom in &atoms[Self::atoms_of(cuts, *span)] {
                if let Some(w) = &atom.writer {
                    wait(w, !w.event.is_computed());
                }
            }
        }
        for span in step.writes() {
            for atom in &atoms[Self::atoms_of(cuts, *span)] {
                for t in atom.writer.iter().chain(&atom.readers) {
                    wait(t, !t.event.is_computed());
                }
            }
        }
    }

    /// Records what step `i` reads and writes.
    fn record_accesses(&mut self, step: &Step, i: usize, list: Option<usize>) {
        let event = Event::finished(i, step);
        let tagged = Tagged { event, list };
        for span in step.reads() {
            for atom in &mut self.atoms[Self::atoms_of(&self.cuts, *span)] {
                let same_list = atom
                    .readers
                    .iter_mut()
                    .find(|r| list.is_some() && r.list == list);
                match same_list {
                    Some(r) => r.event = event,
                    None => atom.readers.push(tagged),
                }
            }
        }
        for span in step.writes() {
            for atom in &mut self.atoms[Self::atoms_of(&self.cuts, *span)] {
                atom.writer = Some(tagged);
                atom.readers.clear();
            }
        }
    }
}
