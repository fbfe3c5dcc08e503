//! Compositions: algorithms made of phases within nodes and between them, and how they are written.

use std::borrow::Cow;
use std::fmt;

use super::{Algorithm, Planner, find};
use crate::error::{Error, Result};
use crate::plan::Request;
use crate::schedule::Schedule;
use crate::schedule::collective::Kind;

/// How the algorithm of the smallest model time is written.
const CHOSEN: &str = "auto";

/// The largest number of compositions within each other that are read: more than machines have
/// levels.
const MAX_DEPTH: usize = 4;

/// The phases of an algorithm for machines with nodes.
#[derive(Debug, Clone, Copy)]
pub(in crate::plan) struct Composition {
    pub(in crate::plan) shape: Shape,
    pub(in crate::plan) phases: &'static [(Scope, Kind)],
    /// Plans it, with the algorithms that it has for its phases.
    pub(in crate::plan) plan: fn(&Algorithm, &Composition, &Request) -> Result<Schedule>,
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
    Between,
    /// The ranks of a node.
    Within,
}

impl Algorithm {
    /// The name, as [`find`] reads it.
    pub fn name(&self) -> Cow<'static, str> {
        match self.parts {
            None => Cow::Borrowed(self.row.name),
            Some(_) => Cow::Owned(self.to_string()),
        }
    }

    /// The algorithm of the phase with this number; `None` if it is to be chosen.
    pub(in crate::plan) fn part(&self, phase: usize) -> Option<&Algorithm> {
        self.parts.as_ref()?[phase].as_ref()
    }

    /// This composition with these algorithms for its phases, where `None` leaves the choice open.
    pub(in crate::plan) fn with_parts(&self, parts: Vec<Option<Algorithm>>) -> Algorithm {
        Algorithm {
            row: self.row,
            parts: Some(parts.into()),
            is_named: self.is_named,
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Some(parts), Planner::Composed(composition)) = (&self.parts, &self.row.planner) else {
            return f.pad(self.row.name);
        };
        let of = |scope| {
            let phases = composition.phases.iter().zip(&**parts);
            let parts: Vec<_> = phases.filter(|((other, _), _)| *other == scope).collect();
            let name = |part: &Option<Algorithm>| {
                let name = part.as_ref().map(Algorithm::name);
                name.unwrap_or(Cow::Borrowed(CHOSEN))
            };
            // One name stands for all phases whose collective has it.
            let first = parts.iter().find(|(_, part)| part.is_some());
            let one = name(first.map_or(&None, |(_, part)| part));
            let alike = |((_, kind), part): &(&(Scope, Kind), &Option<Algorithm>)| match part {
                Some(part) => part.name() == one,
                None => one == CHOSEN || find(*kind, &one).is_err(),
            };
            if parts.iter().all(alike) {
                one.into_owned()
            } else {
                let names: Vec<_> = parts.iter().map(|(_, part)| name(part)).collect();
                names.join("+")
            }
        };
        let (between, within) = (of(Scope::Between), of(Scope::Within));
        f.pad(&format!("{}({between},{within})", self.row.name))
    }
}

/// Splits `hier(binomial,chain)` into what stands before and within the parentheses.
pub(super) fn split(name: &str) -> Option<(&str, &str)> {
    name.strip_suffix(')')?.split_once('(')
}

/// What stands between separators that are not within parentheses.
pub fn split_outside(list: &str, separator: char) -> Vec<&str> {
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

/// The composition with algorithms for its phases, from `binomial,chain`.
pub(super) fn parse(base: &Algorithm, text: &str) -> Result<Algorithm> {
    let Planner::Composed(composition) = base.planner else {
        return Err(Error::usage(format!("{base} has no parts")));
    };
    if text.matches('(').count() >= MAX_DEPTH {
        return Err(Error::usage(format!(
            "{base}({text}): at most {MAX_DEPTH} compositions can be within each other"
        )));
    }
    let [between, within] = split_outside(text, ',')[..] else {
        return Err(Error::usage(format!(
            "{base}({text}): give two algorithms, of the phases between nodes and of those within"
        )));
    };
    let of = |scope| {
        let phases = composition.phases.iter();
        phases.filter_map(move |&(other, kind)| (other == scope).then_some(kind))
    };
    let between = parts(base, of(Scope::Between).collect(), between)?;
    let within = parts(base, of(Scope::Within).collect(), within)?;
    let (mut between, mut within) = (between.into_iter(), within.into_iter());
    let part = |&(scope, _): &(Scope, Kind)| match scope {
        Scope::Between => between.next().flatten(),
        Scope::Within => within.next().flatten(),
    };
    Ok(base.with_parts(composition.phases.iter().map(part).collect()))
}

/// The algorithms of phases of these kinds: one name for all that have it, or one for each.
fn parts(base: &Algorithm, kinds: Vec<Kind>, list: &str) -> Result<Vec<Option<Algorithm>>> {
    let named = |kind, name: &str| match name {
        CHOSEN => Ok(None),
        name => find(kind, name).map(Some),
    };
    match split_outside(list, '+')[..] {
        [one] => {
            let found: Vec<_> = kinds.into_iter().map(|kind| named(kind, one)).collect();
            if found.iter().any(Result::is_ok) {
                Ok(found.into_iter().map(|part| part.ok().flatten()).collect())
            } else {
                found.into_iter().collect()
            }
        }
        ref names if names.len() == kinds.len() => {
            let pairs = kinds.into_iter().zip(names);
            pairs.map(|(kind, name)| named(kind, name)).collect()
        }
        ref names => {
            let kinds: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
            Err(Error::usage(format!(
                "{base} {} has phases of {}: give one algorithm for all of them or one for each, not {}",
                base.collective.name(),
                kinds.join(" and "),
                names.len()
            )))
        }
    }
}
