//! Schedules from files beside the algorithms.

use anyhow::{Context, Result, bail};
use oneport::{Request, Schedule};

use super::CompareRow;
use crate::args::{Common, Root};
use crate::files::name_of;
use crate::input::first_of;
use crate::levels;
use crate::output::Skipped;
use crate::ranges::Ranges;
use crate::task::PlanTask;

/// A right schedule from a file, timed.
#[derive(Debug)]
pub(super) struct OwnSchedule {
    pub(super) schedule: Schedule,
    pub(super) row: CompareRow,
}

/// The schedules of `--schedule`, which must answer the request of `task`. Wrong ones are refused
/// with the first error: their times mean nothing.
pub(super) fn timed(common: &Common, task: &PlanTask) -> Result<(Vec<OwnSchedule>, Vec<Skipped>)> {
    let (mut timed, mut wrong) = (Vec::new(), Vec::new());
    for path in &common.schedule {
        let input = common.read(path)?;
        // All files of a family are one row.
        let name = name_of(path);
        ensure_same(&input.schedule, &task.request).with_context(|| name.clone())?;
        let report = input.check(common, 1);
        if let Some(error) = first_of(report.errors.iter(), report.more) {
            wrong.push(Skipped {
                algorithm: name.into(),
                reason: format!("wrong: {error}"),
            });
            continue;
        }
        let found = input.schedule.timed(&input.cost, |_| ())?;
        let levels = levels::traffic(&input.schedule, &input.cost);
        timed.push(OwnSchedule {
            row: CompareRow::new(&name, &found, input.element_bytes, input.info, levels)?,
            schedule: input.schedule,
        });
    }
    Ok((timed, wrong))
}

/// Refuses a schedule that answers another request.
fn ensure_same(schedule: &Schedule, request: &Request) -> Result<()> {
    let own = Request::like(schedule)?;
    let (kind, asked) = (own.get_collective(), request.get_collective());
    if kind != asked {
        bail!("it performs a {kind}, not a {asked}");
    }
    let (ranks, asked) = (own.ranks(), request.ranks());
    if ranks != asked {
        bail!("it has {ranks} ranks, not {asked} (-p)");
    }
    let (root, asked) = (own.get_root(), request.get_root());
    if kind.with_root(0).root().is_some() && root != asked && !request.get_free_root() {
        bail!("its root is {root}, not {asked} (--root)");
    }
    if own.get_ports() != request.get_ports() {
        let ports = own.get_ports();
        bail!(
            "it is for other ports: give --ports {} --ported {}",
            ports.name(),
            ports.k()
        );
    }
    let sizes = (own.elements(), own.get_blocks());
    if kind.has_data() && sizes != (request.elements(), request.get_blocks()) {
        let (elements, asked) = (own.elements(), request.elements());
        bail!("it has {elements} elements, not {asked}, or other blocks: give --bytes or --sizes");
    }
    Ok(())
}

/// The options of a comparison without a collective: those that the first file answers.
pub(super) fn like_the_first(common: &Common) -> Result<Common> {
    let Some(path) = common.schedule.first() else {
        bail!(
            "give a COLLECTIVE (such as reduce), or --schedule FILE: compare plans all algorithms itself"
        );
    };
    let input = common.read(path)?;
    let request = Request::like(&input.schedule)?;
    let bytes = |elements: usize| elements as u64 * request.get_element_bytes();
    let mut common = common.clone();
    common.collective = Some(request.get_collective());
    common.ranks = Some(Ranges::single(request.ranks() as u64));
    common.root.get_or_insert(Root::Rank(request.get_root()));
    common.machine.ports = Some(request.get_ports().with_k(1));
    common.machine.ported = Some(request.get_ports().k());
    match request.get_blocks() {
        Some(blocks) => {
            let sizes = blocks.iter().map(|&block| bytes(block)).collect();
            common.blocks.list(sizes, request.ranks());
            common.vector.bytes = None;
        }
        None if request.get_collective().has_data() => {
            common.vector.bytes = Some(Ranges::single(bytes(request.elements())));
        }
        None => {}
    }
    Ok(common)
}
