//! Reproducible random numbers: a seed gives the same numbers on every machine.

use oneport::random::Generator;

/// The library's generator with the methods that tests need.
#[derive(Debug, Clone)]
pub(crate) struct Random(Generator);

#[allow(dead_code, reason = "no test crate uses every method")]
impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(Generator::new(seed))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0.below(n)
    }

    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    pub(crate) fn shuffled<T>(&mut self, mut items: Vec<T>) -> Vec<T> {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
        items
    }
}
