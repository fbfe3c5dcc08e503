//! Costs by the levels of a machine: ranks of one core complex, of one node, of one switch.

use serde::{Deserialize, Serialize};

use super::{Links, refuses_cost};
use crate::error::{Error, Result};

/// The largest number of ranks that levels describe: their pairs take 1 GB.
const MAX_RANKS: usize = 4096;

/// One level of a machine: the costs between ranks of the same group, unless a level before it has
/// both ranks in one group, too.
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// Groups of ranks; without them, one group of all ranks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemars", schemars(inner(inner(inner(range(max = 4095))))))]
    pub groups: Option<Vec<Vec<usize>>>,
    /// Start-up time of a message.
    #[cfg_attr(feature = "schemars", schemars(range(min = 0.0, max = 1e100)))]
    pub alpha: f64,
    /// Time per byte of a message.
    #[cfg_attr(feature = "schemars", schemars(range(min = 0.0, max = 1e100)))]
    pub beta: f64,
    /// Time from the start of a message at its sender to its start at its receiver.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[cfg_attr(feature = "schemars", schemars(range(min = 0.0, max = 1e100)))]
    pub latency: f64,
}

fn is_zero(latency: &f64) -> bool {
    *latency == 0.0
}

impl Level {
    /// The number of ranks that these levels describe. Takes `O(l p)` time for `p` ranks in `l`
    /// levels.
    ///
    /// # Errors
    /// As [`Links::of_levels`].
    pub fn ranks(levels: &[Level]) -> Result<usize> {
        let groups = groups(levels, None).map_err(Error::malformed)?;
        Ok(groups.first().map_or(0, Vec::len))
    }
}

impl Links {
    /// The costs of all pairs of ranks of a machine with these levels, the innermost first. Ranks
    /// without a common group have no link; combining and copying are free.
    ///
    /// Takes `O(l p^2)` time for `p` ranks in `l` levels.
    ///
    /// # Errors
    /// The levels name no rank, more than 4096, or not all up to the largest; a rank is in two
    /// groups of a level; a group is not within one group of the next level; or a cost is negative,
    /// not finite or greater than 1e100.
    #[doc(hidden)]
    pub fn of_levels(levels: &[Level]) -> Result<Links> {
        expand(levels, None).map_err(Error::malformed)
    }
}

/// As [`Links::of_levels`], of this many ranks if no group names one.
pub(super) fn expand(levels: &[Level], ranks: Option<usize>) -> Result<Links, String> {
    let groups = groups(levels, ranks)?;
    let ranks = groups.first().map_or(0, Vec::len);
    let common = |a: usize, b: usize| {
        let shared = groups
            .iter()
            .position(|of| of[a].is_some() && of[a] == of[b]);
        shared.map(|at| &levels[at])
    };
    let matrix = |cost: fn(&Level) -> f64| -> Vec<Vec<_>> {
        let row = |a: usize| (0..ranks).map(|b| common(a, b).map(cost)).collect();
        (0..ranks).map(row).collect()
    };
    let latency = || {
        let rows = matrix(|level| level.latency).into_iter();
        rows.map(|row| row.into_iter().map(Option::unwrap_or_default).collect())
            .collect()
    };
    Ok(Links {
        alpha: matrix(|level| level.alpha),
        beta: matrix(|level| level.beta),
        latency: if levels.iter().any(|level| level.latency != 0.0) {
            latency()
        } else {
            Vec::new()
        },
        ..Links::default()
    })
}

/// By level, by rank: its group. There are `given` ranks if no group names one.
fn groups(levels: &[Level], given: Option<usize>) -> Result<Vec<Vec<Option<usize>>>, String> {
    let named = levels.iter().filter_map(|level| level.groups.as_ref());
    let largest = named.flatten().flatten().max().copied();
    let largest = largest.or(given.and_then(|ranks| ranks.checked_sub(1)));
    let largest = largest.ok_or("levels: no group names a rank, so give the number of ranks")?;
    if largest >= MAX_RANKS {
        return Err(format!(
            "levels: rank {largest} of at most {MAX_RANKS} ranks, which are numbered from 0"
        ));
    }
    let ranks = largest + 1;
    let groups: Vec<_> = levels
        .iter()
        .enumerate()
        .map(|(at, level)| group_of(level, at, ranks))
        .collect::<Result<_, _>>()?;
    if let Some(rank) = (0..ranks).find(|&rank| groups.iter().all(|of| of[rank].is_none())) {
        return Err(format!("levels: rank {rank} is in no group"));
    }
    for (at, pair) in groups.windows(2).enumerate() {
        ensure_nested(&pair[0], &pair[1], at)?;
    }
    Ok(groups)
}

/// By rank: its group of the level, whose costs are checked.
fn group_of(level: &Level, at: usize, ranks: usize) -> Result<Vec<Option<usize>>, String> {
    let costs = [
        ("alpha", level.alpha),
        ("beta", level.beta),
        ("latency", level.latency),
    ];
    for (name, cost) in costs {
        if let Some(why) = refuses_cost(cost) {
            return Err(format!("level {at}: {name} is {cost:?}: {why}"));
        }
    }
    let Some(groups) = &level.groups else {
        return Ok(vec![Some(0); ranks]);
    };
    let mut of = vec![None; ranks];
    for (group, members) in groups.iter().enumerate() {
        for &rank in members {
            if of[rank].replace(group).is_some() {
                return Err(format!("level {at}: rank {rank} is named twice"));
            }
        }
    }
    Ok(of)
}

/// Checks that every group of level `at` lies within one group of the next level.
fn ensure_nested(
    inner: &[Option<usize>],
    outer: &[Option<usize>],
    at: usize,
) -> Result<(), String> {
    // By group of the inner level: its first rank.
    let groups = inner.iter().flatten().max().map_or(0, |last| last + 1);
    let mut first = vec![None; groups];
    for (rank, group) in inner.iter().enumerate() {
        let &Some(group) = group else { continue };
        let first = *first[group].get_or_insert(rank);
        if outer[rank].is_none() || outer[rank] != outer[first] {
            return Err(format!(
                "level {}: no group holds ranks {first} and {rank}, which level {at} has in one group",
                at + 1
            ));
        }
    }
    Ok(())
}
