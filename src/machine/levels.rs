//! Costs by the levels of a machine: ranks of one core complex, of one node, of one switch.

use serde::{Deserialize, Serialize};

use super::{Links, refuses_cost};
use crate::error::{Error, Result};

/// The largest number of ranks that levels describe: their pairs take 1 GB.
const MAX_RANKS: usize = 4096;

/// One level of a machine: the costs between ranks of the same group, unless a level before it has
/// both ranks in one group, too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// Groups of ranks; without them, one group of all ranks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<Vec<usize>>>,
    /// Start-up time of a message.
    pub alpha: f64,
    /// Time per byte of a message.
    pub beta: f64,
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
    let matrix = |cost: fn(&Level) -> f64| {
        let row = |a: usize| (0..ranks).map(|b| common(a, b).map(cost)).collect();
        (0..ranks).map(row).collect()
    };
    Ok(Links {
        alpha: matrix(|level| level.alpha),
        beta: matrix(|level| level.beta),
        gamma: Vec::new(),
        gamma_copy: Vec::new(),
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
    for (name, cost) in [("alpha", level.alpha), ("beta", level.beta)] {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Result<Links, String> {
        Links::from_json(text).map_err(|e| e.to_string())
    }

    #[test]
    fn the_innermost_common_group_counts() {
        let links = expanded(
            r#"{"levels": [
                {"groups": [[0, 4], [1, 2]], "alpha": 1, "beta": 10},
                {"groups": [[3, 4, 0], [2, 1], []], "alpha": 2, "beta": 20},
                {"groups": [[0, 1, 2, 3, 4]], "alpha": 3, "beta": 30}],
                "gamma": [1, 2, 3, 4, 5]}"#,
        )
        .unwrap();
        let expected = [
            [1, 3, 3, 2, 1],
            [3, 1, 1, 3, 3],
            [3, 1, 1, 3, 3],
            [2, 3, 3, 2, 2],
            [1, 3, 3, 2, 1],
        ];
        for (from, row) in expected.iter().enumerate() {
            for (to, &level) in row.iter().enumerate() {
                // A rank on its own is in a group with itself.
                let alpha = Some(f64::from(level));
                assert_eq!(links.alpha[from][to], alpha, "{from} to {to}");
                assert_eq!(links.beta[from][to], alpha.map(|x| 10.0 * x));
            }
        }
        assert_eq!(links.gamma, [1.0, 2.0, 3.0, 4.0, 5.0]);
    }

    #[test]
    fn ranks_without_a_common_group_have_no_link() {
        let links =
            expanded(r#"{"levels": [{"groups": [[0, 1], [2, 3]], "alpha": 1, "beta": 0}]}"#);
        let links = links.unwrap();
        assert_eq!(links.alpha[0], [Some(1.0), Some(1.0), None, None]);
    }

    #[test]
    fn levels_without_groups_are_of_the_given_number_of_ranks() {
        let one = r#"{"levels": [{"alpha": 1, "beta": 2}], "gamma": [1, 2, 3]}"#;
        let grouped =
            r#"{"levels": [{"groups": [[0, 1, 2]], "alpha": 1, "beta": 2}], "gamma": [1, 2, 3]}"#;
        let links = Links::from_json(grouped).unwrap();
        assert_eq!(Links::for_ranks(one, Some(3)).unwrap(), links);
        // Groups say themselves how many ranks there are.
        assert_eq!(Links::for_ranks(grouped, Some(5)).unwrap(), links);
        for ranks in [None, Some(0)] {
            let error = Links::for_ranks(one, ranks).unwrap_err().to_string();
            assert!(error.contains("give the number of ranks"), "{error}");
        }
        let error = Links::for_ranks(one, Some(5000)).unwrap_err().to_string();
        assert!(error.contains("at most 4096 ranks"), "{error}");
    }

    #[test]
    fn levels_that_contradict_each_other_are_refused() {
        for (levels, why) in [
            ("[]", "no group names a rank"),
            (r#"[{"alpha": 1, "beta": 1}]"#, "no group names a rank"),
            (
                r#"[{"groups": [[0, 4096]], "alpha": 1, "beta": 1}]"#,
                "rank 4096 of at most 4096 ranks",
            ),
            (
                r#"[{"groups": [[0, 2]], "alpha": 1, "beta": 1}]"#,
                "rank 1 is in no group",
            ),
            (
                r#"[{"groups": [[0, 1], [1]], "alpha": 1, "beta": 1}]"#,
                "level 0: rank 1 is named twice",
            ),
            (
                r#"[{"groups": [[0, 1]], "alpha": 1, "beta": 1}, {"groups": [[0], [1]], "alpha": 1, "beta": 1}]"#,
                "level 1: no group holds ranks 0 and 1, which level 0 has in one group",
            ),
            (
                r#"[{"groups": [[0, 1]], "alpha": 1, "beta": 1}, {"groups": [[0, 2]], "alpha": 1, "beta": 1}]"#,
                "level 1: no group holds ranks 0 and 1",
            ),
            (r#"[{"groups": [[0]], "alpha": 1}]"#, "missing field `beta`"),
            (
                r#"[{"groups": [[0, 1]], "alpha": 1, "beta": 1}, {"alpha": 1, "beta": -2}]"#,
                "level 1: beta is -2.0: a cost is finite and not negative",
            ),
        ] {
            let error = expanded(&format!(r#"{{"levels": {levels}}}"#)).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        let both = r#"{"levels": [{"groups": [[0]], "alpha": 1, "beta": 1}], "alpha": [[0]]}"#;
        assert!(
            expanded(both)
                .unwrap_err()
                .contains("levels replace alpha and beta")
        );
    }
}
