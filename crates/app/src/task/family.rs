//! `--same-bits=tree`: algorithms that add all elements on all ranks in one tree, the same for all
//! sizes.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use anyhow::{Result, anyhow, ensure};
use oneport::Schedule;
use oneport::check::Bits;
use oneport::internal::budget::quick::MAX_TRANSFERS;
use oneport::internal::numbers::index;
use oneport::plan::Segments;
use oneport::plan::refusal::{Reason, Refusal};
use oneport::plan::registry::{Algorithm, find};
use oneport_measure::tune::{Sweep, TuningResult};

use super::{PlanTask, steps};
use crate::args::{Common, OneTree, SameBits};
use crate::caller::Caller;
use crate::forms::AlgorithmNames;

/// Those who add in one tree: their least times, by point, and more of each point.
#[derive(Debug)]
struct Family<M> {
    shown: String,
    points: BTreeMap<u64, (f64, M)>,
}

/// By the hash of the tree.
type Families<M> = BTreeMap<String, Family<M>>;

/// The family with the least total time of those that have something at each of so many points.
fn fastest<M>(families: Families<M>, points: usize) -> Option<(String, Family<M>)> {
    let total = |family: &Family<M>| family.points.values().map(|point| point.0).sum::<f64>();
    let complete = families.into_iter();
    let complete = complete.filter(|(_, family)| family.points.len() == points);
    complete.min_by(|a, b| total(&a.1).total_cmp(&total(&b.1)))
}

fn none() -> anyhow::Error {
    anyhow!("no algorithm adds all elements of all sizes in one tree (--same-bits=tree)")
}

/// What is proved of a schedule that adds all elements on all ranks in one tree.
fn in_one_tree(schedule: &Schedule) -> Option<Bits> {
    let bits = schedule.check().bits().cloned()?;
    (bits.same_on_all_ranks && bits.tree.is_some()).then_some(bits)
}

impl Common {
    /// Whether the algorithms of one tree are still to be found.
    fn seeks_one_tree(&self) -> bool {
        let vector = &self.vector;
        let reduces = self.collective.is_some_and(|kind| kind.reduces());
        vector.same_bits == Some(SameBits::Tree)
            && vector.same_bits()
            && reduces
            && self.schedule.is_empty()
            && vector.tree.is_none()
    }

    /// The algorithms that the options have, before one tree replaced them.
    pub(super) fn asked(&self) -> &AlgorithmNames {
        let tree = self.vector.tree.as_ref();
        tree.map_or(&self.algorithm, |tree| &tree.asked)
    }

    /// Takes the algorithms that add in one tree, if that is asked for: at all points with as many
    /// ranks the same, that of the least total model time.
    pub(crate) fn take_one_tree(points: &mut [Common], caller: &Caller) -> Result<()> {
        let ranks = |point: &Common| point.ranks().ok().flatten();
        for points in points.chunk_by_mut(|a, b| ranks(a) == ranks(b)) {
            if points.iter().all(Common::seeks_one_tree) {
                take_tree(points, caller)?;
            }
        }
        Ok(())
    }
}

impl PlanTask {
    /// What is proved of the schedule of `algorithm`, and its model time, if it adds all elements
    /// on all ranks in one tree.
    fn in_one_tree(&self, algorithm: &Algorithm) -> Result<Option<(Bits, f64)>, Refusal> {
        let variant = self.variant_to_plan(algorithm)?;
        let request = &variant.request;
        let (ranks, segments) = (request.ranks(), request.get_segments().count());
        let steps = steps(&variant);
        let max_steps = 2 * MAX_TRANSFERS as u64;
        if steps > max_steps {
            let reason = Reason::TooLong {
                ranks,
                segments,
                steps,
                max_steps,
            };
            return Err(algorithm.refusal(request, reason));
        }
        let refusal = |error| algorithm.refusal(request, Reason::Planner(error));
        let schedule = self.plan(&variant).map_err(refusal)?;
        let Some(bits) = in_one_tree(&schedule) else {
            return Ok(None);
        };
        let time = self.model_time(&variant).map_err(refusal)?;
        Ok(Some((bits, time)))
    }
}

fn take_tree(points: &mut [Common], caller: &Caller) -> Result<()> {
    ensure!(
        points.iter().all(|point| point.rules.is_none()),
        "--rules chooses the algorithm, and so does --same-bits=tree: give one of them"
    );
    let mut families: Families<Vec<String>> = BTreeMap::new();
    // Those that may add in one tree, and named ones that do not apply, at any of the points.
    let mut unproved = BTreeSet::new();
    let mut refused = BTreeMap::new();
    for (number, point) in (0..).zip(points.iter()) {
        let mut point = point.clone();
        point.vector.same_bits = Some(SameBits::Ranks);
        let Some(kind) = point.collective else {
            continue;
        };
        let task = PlanTask::new(&point, kind, caller)?;
        for algorithm in &task.algorithms {
            let name = || algorithm.name().into_owned();
            let (bits, time) = match task.in_one_tree(algorithm) {
                Ok(Some(found)) => found,
                Ok(None) => continue,
                // It might add in one tree all the same.
                Err(refusal) if refusal.reason.is_of_size() => {
                    unproved.insert(name());
                    continue;
                }
                Err(refusal) => {
                    if task.named {
                        refused.entry(name()).or_insert(refusal);
                    }
                    continue;
                }
            };
            let Bits { tree, words, .. } = bits;
            let tree = tree.unwrap_or_default();
            let family = families.entry(tree.clone()).or_insert_with(|| Family {
                shown: words.unwrap_or(tree),
                points: BTreeMap::new(),
            });
            let (least, names) = family.points.entry(number).or_insert((time, Vec::new()));
            *least = least.min(time);
            names.push(name());
        }
    }
    for (name, refusal) in refused {
        caller.note(format!("{name} is left out: {refusal}"));
    }
    let unproved = Vec::from_iter(unproved).join(", ");
    let Some((tree, family)) = fastest(families, points.len()) else {
        ensure!(
            unproved.is_empty(),
            "no algorithm is known to add all elements of all sizes in one tree (--same-bits=tree); too long to plan and prove here: {unproved}"
        );
        return Err(none());
    };
    if !unproved.is_empty() {
        caller.note(format!(
            "{unproved} may add all elements in one tree, too: too long to plan and prove here"
        ));
    }
    caller.note(format!(
        "all elements are added in the tree {}",
        family.shown
    ));
    for (point, (_, names)) in points.iter_mut().zip(family.points.into_values()) {
        let asked = mem::replace(&mut point.algorithm, AlgorithmNames::These(names));
        let hash = tree.clone();
        point.vector.tree = Some(OneTree { hash, asked });
    }
    Ok(())
}

/// Has the winner of each size be the fastest of those that add in one tree, the one with the least
/// total of measured times. Returns it in words.
pub(crate) fn take_measured_tree(sweep: &Sweep, tuning: &mut TuningResult) -> Result<String> {
    let request = &sweep.request;
    let element_bytes = request.get_element_bytes();
    let mut families: Families<usize> = BTreeMap::new();
    for (number, row) in tuning.rows.iter().enumerate() {
        let [elements, segment] = [row.bytes, row.segment].map(|n| index(n / element_bytes));
        let algorithm = find(request.get_collective(), &row.algorithm)?;
        let segments = Segments::of_size(elements, segment.max(1))?;
        let schedule = algorithm.plan(&request.clone().segments(segments))?;
        let Some(Bits { tree, words, .. }) = in_one_tree(&schedule) else {
            continue;
        };
        let tree = tree.unwrap_or_default();
        let family = families.entry(tree.clone()).or_insert_with(|| Family {
            shown: words.unwrap_or(tree),
            points: BTreeMap::new(),
        });
        let time = row.wall.median as f64;
        let fastest = family.points.entry(row.bytes).or_insert((time, number));
        if time < fastest.0 {
            *fastest = (time, number);
        }
    }
    let sizes: BTreeSet<u64> = tuning.rows.iter().map(|row| row.bytes).collect();
    let (_, family) = fastest(families, sizes.len()).ok_or_else(none)?;
    for row in &mut tuning.rows {
        row.best = false;
    }
    for (_, number) in family.points.into_values() {
        tuning.rows[number].best = true;
    }
    Ok(family.shown)
}
