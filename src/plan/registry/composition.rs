//! Compositions: algorithms made of phases within nodes and between them, and their names.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::{Algorithm, Planner, find};
use crate::error::{Error, Result};
use crate::plan::Request;
use crate::schedule::Schedule;
use crate::schedule::collective::Kind;

/// The name of the algorithm of the smallest model time.
pub(in crate::plan) const CHOSEN: &str = "auto";

/// The largest number of compositions within each other: more than machines have levels.
const MAX_DEPTH: usize = 4;

/// The phases of an algorithm for machines with nodes, and the algorithms of the phases.
#[derive(Debug, Clone, Copy)]
pub struct Composition {
    /// Which ranks communicate with other nodes.
    pub(in crate::plan) shape: Shape,
    /// What the phases do, in their order.
    pub(in crate::plan) phases: &'static [(Scope, Kind)],
    /// The names of the algorithms of the phases [between nodes and within](Scope), each as
    /// [`find`] states.
    pub(in crate::plan) parts: [&'static str; 2],
    /// Plans it.
    pub(in crate::plan) plan: fn(&Composition, &Request) -> Result<Schedule>,
}

/// Which data and which ranks the phases have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::plan) enum Shape {
    /// One rank of each node, its leader, communicates with other nodes, and has all data of the
    /// node.
    Leaders,
    /// All ranks do, each with the ranks of the same number in other nodes, its *lane*, and has its
    /// share of the node's data.
    Lanes,
}

/// Which ranks communicate in a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::plan) enum Scope {
    /// Ranks of different nodes.
    Between = 0,
    /// The ranks of a node.
    Within = 1,
}

impl Composition {
    /// The name of the algorithm of the phase with this number; `None` if it is to be chosen.
    pub(in crate::plan) fn algorithm(&self, phase: usize) -> Option<&'static str> {
        let (scope, kind) = self.phases[phase];
        let names = parts_of(self.parts[scope as usize], '+');
        let name = match names[..] {
            [one] => Some(one).filter(|name| find(kind, name).is_ok()),
            _ => {
                let before = self.phases[..phase].iter();
                Some(names[before.filter(|(other, _)| *other == scope).count()])
            }
        };
        name.filter(|&name| name != CHOSEN)
    }

    /// The row with the algorithms of these names for the phases, where `None` leaves the choice
    /// open.
    pub(in crate::plan) fn with(
        &self,
        row: &'static Algorithm,
        names: &[Option<&str>],
    ) -> Result<&'static Algorithm> {
        let of = |scope| {
            let phases = self.phases.iter().zip(names);
            let names = phases.filter(|((other, _), _)| *other == scope);
            let mut names: Vec<_> = names.map(|(_, name)| name.unwrap_or(CHOSEN)).collect();
            if names.iter().all(|name| *name == names[0]) {
                names.truncate(1);
            }
            names.join("+")
        };
        let base = row.name.split('(').next().unwrap_or(row.name);
        let row = super::compositions(row.collective).find(|a| a.name == base);
        let row = row.ok_or_else(|| Error::usage(format!("{base} is no composition")))?;
        named(
            row,
            &format!("{},{}", of(Scope::Between), of(Scope::Within)),
        )
    }
}

/// Splits `hier(binomial,chain)` into what stands before and within the parentheses.
pub(super) fn split(name: &str) -> Option<(&str, &str)> {
    name.strip_suffix(')')?.split_once('(')
}

/// The parts between separators that are not within parentheses.
fn parts_of(list: &str, separator: char) -> Vec<&str> {
    let mut depth = 0usize;
    let outside = |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && c == separator
    };
    list.split(outside).map(str::trim).collect()
}

/// All compositions with named parts so far. They are kept for ever, as the rows of the registry
/// are; there are not more than valid names.
static NAMED: Mutex<BTreeMap<(Kind, String), &'static Algorithm>> = Mutex::new(BTreeMap::new());

/// The composition with algorithms for its phases, from `binomial,chain`.
///
/// # Errors
/// There are not two parts, no phase has an algorithm of this name, or there are several names but
/// not one for each phase.
pub(super) fn named(row: &'static Algorithm, parts: &str) -> Result<&'static Algorithm> {
    let Planner::Composed(composition) = row.planner else {
        return Err(Error::usage(format!("{} has no parts", row.name)));
    };
    if parts.matches('(').count() >= MAX_DEPTH {
        return Err(Error::usage(format!(
            "{}({parts}): at most {MAX_DEPTH} compositions can be within each other",
            row.name
        )));
    }
    let lists = parts_of(parts, ',');
    let [between, within] = lists[..] else {
        return Err(Error::usage(format!(
            "{}({parts}): give two algorithms, of the phases between nodes and of those within",
            row.name
        )));
    };
    let mut checked = [String::new(), String::new()];
    for (scope, list) in [(Scope::Between, between), (Scope::Within, within)] {
        let phases = composition.phases.iter();
        let kinds = phases.filter(|phase| phase.0 == scope).map(|phase| phase.1);
        let kinds: Vec<Kind> = kinds.collect();
        let names = parts_of(list, '+');
        check(row, &kinds, &names)?;
        checked[scope as usize] = names.join("+");
    }
    let name = format!("{}({},{})", row.name, checked[0], checked[1]);
    let mut all = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (row.collective, name);
    if let Some(known) = all.get(&key) {
        return Ok(known);
    }
    let parts = checked.map(|part| &*part.leak());
    let new: &'static Algorithm = Box::leak(Box::new(Algorithm {
        name: key.1.clone().leak(),
        planner: Planner::Composed(Composition {
            parts,
            ..composition
        }),
        ..*row
    }));
    all.insert(key, new);
    Ok(new)
}

/// Checks the names for phases of these kinds.
fn check(row: &Algorithm, kinds: &[Kind], names: &[&str]) -> Result<()> {
    let known = |kind, name: &str| match name {
        CHOSEN => Ok(()),
        name => find(kind, name).map(drop),
    };
    match names {
        [one] => {
            let mut tried = kinds.iter().map(|&kind| known(kind, one));
            match tried.next() {
                Some(Err(error)) if !tried.any(|other| other.is_ok()) => Err(error),
                _ => Ok(()),
            }
        }
        _ if names.len() == kinds.len() => kinds
            .iter()
            .zip(names)
            .try_for_each(|(&kind, name)| known(kind, name)),
        _ => {
            let kinds: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
            Err(Error::usage(format!(
                "{} {} has phases of {}: give one algorithm for all of them or one for each, not {}",
                row.name,
                row.collective.name(),
                kinds.join(" and "),
                names.len()
            )))
        }
    }
}
