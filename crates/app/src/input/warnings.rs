//! Notes: whether the schedule is right, and which options have surprising effects, or none.

use anyhow::{Result, bail};
use oneport::check::{Finding, Options, Report};
use oneport::internal::budget::memory::STEP_BYTES;
use oneport::plan::registry;
use oneport::{Collective, Kind, Ports, Schedule, Step};

use super::Input;
use crate::args::{Common, SameBits, Vector};
use crate::bits::ShownBits;
use crate::caller::Caller;
use crate::forms::SegmentCount;
use crate::memory::{LARGE_SCHEDULE, ensure_memory};

pub(crate) fn print_warnings(args: &Common, schedule: &Schedule, caller: &Caller) {
    let used = schedule.programs().iter().flatten();
    let several = used.filter_map(Step::port).any(|port| port > 0);
    warnings_about(
        args,
        schedule.collective(),
        schedule.ports(),
        several,
        caller,
    );
}

/// Like [`print_warnings`], for schedules that are not stored. `several` tells whether one of them
/// uses more than one port of a kind.
pub(crate) fn warnings_about(
    args: &Common,
    collective: &Collective,
    ports: Ports,
    several: bool,
    caller: &Caller,
) {
    let kind = collective.kind();
    if kind.has_blocks()
        && collective.root().is_some()
        && args.schedule.is_empty()
        && let Ok(ranks) = args.ranks()
        && let Ok((cost, _)) = args.machine.cost(ranks)
        && cost.linear().is_some_and(|c| c.gamma_copy > c.beta)
    {
        caller.note(
            "gamma_copy is greater than beta: the best trees are looked for in O(p^3) instead of O(p^2)",
        );
    }
    if let Some(mixed) = args.machine.mixed_units() {
        caller.note(&mixed);
    }
    if args.root.is_some() && collective.root().is_none() {
        caller.note(format!("{} has no root; --root is ignored", kind.name()));
    }
    segments_without_effect(args, kind, caller);
    if !kind.reduces() && (args.vector.op.is_some() || args.vector.ordered) {
        caller.note(format!(
            "{} combines nothing: --op and --ordered have no effect",
            kind.name()
        ));
    }
    if args.vector.same_bits.is_some() && !(kind.reduces() && ShownBits::matter(&args.vector)) {
        caller.note("--same-bits has no effect: no order of combining can change these bits");
    }
    if ports.k() > 1 && args.schedule.is_empty() && !several {
        caller.note("only one port of each kind is used");
    }
}

/// Says where `--segment` and its like have no effect, or less than they ask for.
fn segments_without_effect(args: &Common, kind: Kind, caller: &Caller) {
    let vector = &args.vector;
    if !vector.gives_segments() || !args.schedule.is_empty() {
        return;
    }
    let name = &args.algorithm;
    let segments = if name.is_open() {
        registry::of(kind).any(|a| a.segmented)
    } else {
        let mut names = name.names().iter();
        names.any(|name| registry::find(kind, name).is_ok_and(|a| a.segmented))
    };
    if !segments {
        let what = if name.are_several() {
            format!("no algorithm for {} segments", kind.name())
        } else {
            format!("{name} {} does not segment", kind.name())
        };
        caller.note(format!("{what}: options of segments have no effect"));
    } else if let (Some(SegmentCount::Count(count)), Ok(Some(elements))) =
        (vector.segments, vector.whole_elements())
        && count > elements
        && !args.blocks.are_given()
    {
        caller.note(format!(
            "{elements} elements make {elements} segments at most, not the {count} of --segments"
        ));
    }
}

impl Input {
    /// Proves the schedule, in rank order if the options ask for that. Reports at most `max_errors`
    /// errors in full.
    pub(crate) fn check(&self, args: &Common, max_errors: usize) -> Report {
        let options = Options {
            keep_order: args.vector.keep_order() && self.schedule.collective().kind().reduces(),
            overlap: self.cost.overlaps(),
            max_errors,
        };
        self.schedule.check_with(&options)
    }

    /// As [`print_warnings`], and says if a schedule that was read is wrong: nothing that a command
    /// makes of it shows that. Planned schedules are right.
    ///
    /// # Errors
    /// A schedule that was read gives ranks other bits than others, and the same are asked for.
    pub(crate) fn print_warnings(&mut self, args: &Common, caller: &Caller) -> Result<()> {
        print_warnings(args, &self.schedule, caller);
        if self.variant.is_none() {
            self.info.correct = note_if_wrong(caller, &self.schedule, || self.check(args, 1));
            ensure_same_bits(&self.schedule, &args.vector)?;
        }
        Ok(())
    }
}

/// Refuses a schedule that gives ranks, or elements, other bits than others, if the same are asked
/// for.
pub(crate) fn ensure_same_bits(schedule: &Schedule, vector: &Vector) -> Result<()> {
    if vector.same_bits()
        && let Some(why) = other_bits(&schedule.check(), vector, schedule.ranks())
    {
        match vector.same_bits {
            Some(SameBits::Tree) => bail!("the schedule does not add all in one tree: {why}"),
            _ => bail!("the schedule does not give all ranks the same bits: {why}"),
        }
    }
    Ok(())
}

/// Where ranks, or elements, get other bits than the same that are asked for.
pub(crate) fn other_bits(report: &Report, vector: &Vector, ranks: usize) -> Option<String> {
    let bits = ShownBits::of(report, vector, ranks)?;
    let other_tree = || match vector.same_bits {
        Some(SameBits::Tree) => {
            let hash = vector.tree.as_ref().map(|tree| tree.hash.as_str());
            !bits.are_of_tree(hash)
        }
        _ => false,
    };
    let differ = vector.same_bits() && (bits.differ() || other_tree());
    differ.then(|| bits.sentence())
}

/// Notes what is wrong with `schedule`, or why it is not known whether anything is. Returns whether
/// it is right.
pub(crate) fn note_if_wrong(
    caller: &Caller,
    schedule: &Schedule,
    prove: impl FnOnce() -> Report,
) -> Option<bool> {
    let bytes = schedule.steps() as u128 * u128::from(STEP_BYTES);
    if let Err(error) = ensure_memory("its proof", bytes, LARGE_SCHEDULE) {
        caller.note(format!("the schedule may be wrong: {error}"));
        return None;
    }
    let report = prove();
    if let Some(wrong) = first_of(report.errors.iter(), report.more) {
        caller.note(format!("the schedule is wrong: {wrong}"));
    }
    Some(report.is_correct())
}

/// The first of `errors`, and how many there are besides, with `more` that are not listed.
pub(crate) fn first_of<'f>(
    mut errors: impl Iterator<Item = &'f Finding>,
    more: usize,
) -> Option<String> {
    let first = errors.next()?;
    let others = match errors.count() + more {
        0 => String::new(),
        n => format!("; {n} more, see oneport check"),
    };
    Some(format!("{}{others}", first.message))
}
