//! The outputs of reductions whose results depend on the order of combining: the schedule's own
//! trees, evaluated one after another.

use std::collections::HashMap;
use std::ops::Range;

use super::oracle::InputPart;
use crate::check::bits::{OutputPart, OutputTrees};
use crate::check::shapes::Term;
use crate::run::element::Element;
use crate::run::operator::Operator;
use crate::run::tuning::MAX_TEST_ELEMENTS;
use crate::schedule::{Order, Schedule};

/// Elements that are combined at once: the values of a tree that are held stay in the cache.
const CHUNK: usize = 1 << 10;

/// As [`each_output`](super::oracle::each_output), in the schedule's own trees: for operators that
/// commute to the last bit. Not inlined, because long elements take much of the stack.
#[inline(never)]
pub(super) fn each_tree_output<T: Element>(
    trees: &OutputTrees<'_>,
    ranks: usize,
    operator: &Operator<T>,
    input: &InputPart<'_, T>,
    take: &mut dyn FnMut(&[T], bool),
) {
    let (mut terms, mut before, mut output) = (HashMap::new(), None, Vec::new());
    let mut stack = Vec::new();
    for rank in 0..ranks {
        let parts: Vec<OutputPart> = trees.of_rank(rank).collect();
        let differs = before.as_ref() != Some(&parts);
        if differs {
            output.clear();
            for part in &parts {
                let terms = terms.entry(part.tree);
                let terms: &Vec<Term> = terms.or_insert_with(|| trees.terms(part.tree));
                let end = part.index + part.len;
                for start in (part.index..end).step_by(CHUNK) {
                    let chunk = start..end.min(start + CHUNK);
                    let values = evaluate(terms, operator, &mut stack, input, &chunk);
                    output.extend_from_slice(&values);
                }
            }
            before = Some(parts);
        }
        take(&output, differs);
    }
}

/// The value of a tree over part of the inputs. `stack` is scratch space.
#[inline(never)]
fn evaluate<T: Element>(
    terms: &[Term],
    operator: &Operator<T>,
    stack: &mut Vec<Vec<T>>,
    input: &InputPart<'_, T>,
    part: &Range<usize>,
) -> Vec<T> {
    stack.clear();
    for term in terms {
        match *term {
            Term::Input(rank) => stack.push(input(rank, part.clone()).into_owned()),
            Term::Combine => {
                let right = stack.pop().unwrap_or_default();
                if let Some(left) = stack.last_mut() {
                    operator.combine(left, &right, Order::MineFirst);
                }
            }
        }
    }
    stack.pop().unwrap_or_default()
}

/// The trees of a correct reduction, unless ranks and places have so many different ones that their
/// evaluation takes much longer than that of one.
pub(crate) fn trees_to_evaluate(schedule: &Schedule) -> Option<OutputTrees<'_>> {
    let trees = crate::check::output_trees(schedule)?;
    let (mut elements, mut before) = (0, Vec::new());
    for rank in 0..schedule.ranks() {
        let parts: Vec<OutputPart> = trees.of_rank(rank).collect();
        if parts != before {
            let output: usize = parts.iter().map(|part| part.len).sum();
            elements += output.saturating_mul(schedule.ranks());
            before = parts;
        }
    }
    let inputs = schedule.layout().iter().flat_map(|layout| &layout.input);
    let inputs: usize = inputs.map(|span| span.len).sum();
    (elements <= MAX_TEST_ELEMENTS.max(inputs.saturating_mul(4))).then_some(trees)
}
