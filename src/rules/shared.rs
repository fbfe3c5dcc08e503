//! The order of transfers on ports that several ranks share: the part of rule 1 that no program
//! states.

use std::collections::HashMap;

use smallvec::SmallVec;

use crate::schedule::SharedPort;

/// A rank and its step, a transfer.
type ListedStep = (usize, usize);

/// Every listed transfer that waits, with the one before it on a shared port, at whose end it may
/// start.
pub(crate) fn waits(ports: &[SharedPort]) -> impl Iterator<Item = (ListedStep, ListedStep)> {
    let pairs = ports.iter().flat_map(|port| port.steps.windows(2));
    pairs.map(|pair| (pair[1], pair[0]))
}

/// What the steps on shared ports wait for, for those who follow programs rank by rank.
#[derive(Debug, Default)]
pub(crate) struct SharedOrder {
    numbers: HashMap<ListedStep, usize>,
    /// By number: the numbers of the steps before it, and the ranks of the steps after it.
    before: Vec<SmallVec<[usize; 2]>>,
    then: Vec<SmallVec<[usize; 2]>>,
}

impl SharedOrder {
    pub(crate) fn new(ports: &[SharedPort]) -> Self {
        let mut order = SharedOrder::default();
        for (step, before) in waits(ports) {
            let [step_number, before] = [step, before].map(|listed| order.add(listed));
            order.before[step_number].push(before);
            order.then[before].push(step.0);
        }
        order
    }

    fn add(&mut self, listed: ListedStep) -> usize {
        let next = self.numbers.len();
        let number = *self.numbers.entry(listed).or_insert(next);
        if number == next {
            self.before.push(SmallVec::new());
            self.then.push(SmallVec::new());
        }
        number
    }

    /// The number of a step that waits for others, or for which others wait.
    #[inline]
    pub(crate) fn number(&self, rank: usize, step: usize) -> Option<usize> {
        if self.numbers.is_empty() {
            return None;
        }
        self.numbers.get(&(rank, step)).copied()
    }

    /// How many steps have numbers.
    pub(crate) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// The numbers of the steps whose transfers must have ended before that of step `number`
    /// starts.
    pub(crate) fn before(&self, number: usize) -> &[usize] {
        &self.before[number]
    }

    /// The ranks that may be waiting for the transfer of step `number`.
    pub(crate) fn then(&self, number: usize) -> &[usize] {
        &self.then[number]
    }
}
