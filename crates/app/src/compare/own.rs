//! Schedules from files beside the algorithms.

use super::{Candidate, CompareRow};
use crate::forms::Root;
use crate::input::first_of;
use crate::levels;
use crate::prelude::*;
use oneport::check::Bits;

/// The schedules of `--schedule`, which must answer the request of `task`. Wrong ones are refused
/// with the first error: their times mean nothing.
pub(super) fn rows(common: &Common, task: &PlanTask) -> Result<(Vec<CompareRow>, Vec<Skipped>)> {
    let mut inputs = Vec::new();
    for file in common.files()? {
        let input = common.read(&file)?;
        let file = match (file.source.stored(), &input.info.algorithm) {
            (Some(_), Some(_)) => "this".to_string(),
            (Some(_), None) => input.info.by().to_string(),
            // All files of a family are one row.
            (None, _) => file.source.name(),
        };
        ensure!(
            input.series.is_none(),
            "{file}: its messages take the times of its platform: give the costs of all, as by --alpha and --beta"
        );
        ensure_same(&input.schedule, &task.request).with_context(|| file.clone())?;
        inputs.push((file, input));
    }
    let names = names(inputs.iter().map(|(file, input)| (&**file, &input.info)));
    let (mut timed, mut wrong) = (Vec::new(), Vec::new());
    for (name, (_, input)) in names.into_iter().zip(inputs) {
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
        let bound = input.schedule.lower_bound(task.request.get_cost()).largest;
        let own = Candidate::Own(input.schedule);
        let mut row = CompareRow::new(&name, &found, input.element_bytes, input.info, own);
        (row.figures.own, row.figures.bound) = (true, bound);
        row.levels = levels;
        timed.push(row);
    }
    Ok((timed, wrong))
}

/// What tables call schedules from files: their names, or else their files. A name that an
/// algorithm or another file has, too, is followed by the file.
fn names<'a>(inputs: impl Iterator<Item = (&'a str, &'a ScheduleInfo)> + Clone) -> Vec<String> {
    let own = |info: &'a ScheduleInfo| info.algorithm.as_deref();
    let all: Vec<_> = inputs.clone().map(|(_, info)| own(info)).collect();
    let name = |(file, info): (&str, &'a ScheduleInfo)| match own(info) {
        None => file.to_string(),
        Some(name) => {
            let others = all.iter().filter(|other| **other == Some(name)).count() > 1;
            if others || registry::find(info.kind, name).is_ok() {
                format!("{name} ({file})")
            } else {
                name.to_string()
            }
        }
    };
    inputs.map(name).collect()
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
    if kind.has_root() && root != asked && !request.get_free_root() {
        bail!("its root is {root}, not {asked} (--root)");
    }
    if own
        .get_targets()
        .is_some_and(|own| Some(own) != request.get_targets())
    {
        bail!(
            "it has other targets: give --targets {:?}",
            own.get_targets().unwrap_or_default()
        );
    }
    if own.get_ports() != request.get_ports() {
        let ports = own.get_ports();
        bail!(
            "it is for other ports: give --ports {} --ported {}",
            ports.name(),
            ports.k()
        );
    }
    let differ = |bits: &Bits| !bits.same_on_all_ranks;
    if request.get_same_bits() && schedule.check().bits().is_some_and(differ) {
        bail!("it does not give all ranks the same bits");
    }
    let sizes = (own.elements(), own.get_blocks());
    if kind.has_data() && sizes != (request.elements(), request.get_blocks()) {
        let (elements, asked) = (own.elements(), request.elements());
        bail!("it has {elements} elements, not {asked}, or other blocks: give --bytes or --sizes");
    }
    Ok(())
}

/// The options of a comparison beside files: those that the first file answers.
pub(super) fn like_the_first(mut common: Common) -> Result<Common> {
    let Some(file) = common.files()?.into_iter().next() else {
        return Ok(common);
    };
    let input = common.read(&file)?;
    let request = Request::like(&input.schedule)?;
    let kind = request.get_collective();
    common.ensure_performs(kind, &file.source.name())?;
    let bytes = |elements: usize| elements as u64 * request.get_element_bytes();
    common.collective.get_or_insert(kind);
    common.ranks = Some(Ranges::single(request.ranks() as u64));
    common.root.get_or_insert(Root::Rank(request.get_root()));
    if common.targets.is_empty() {
        common.targets = request.get_targets().unwrap_or_default().to_vec();
    }
    common.machine.ports = Some(request.get_ports().with_k(1));
    common.machine.ported = Some(request.get_ports().k());
    match request.get_blocks() {
        Some(blocks) => {
            let sizes = blocks.iter().map(|&block| bytes(block)).collect();
            common.blocks.list(sizes, request.ranks());
            common.vector.bytes = None;
        }
        None if kind.has_data() => {
            common.vector.bytes = Some(Ranges::single(bytes(request.elements())));
        }
        None => {}
    }
    Ok(common)
}
