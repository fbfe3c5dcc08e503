//! Blossoms: odd cycles of vertices and of other blossoms that act as one vertex.

use super::{MatchingState, Parity};
use crate::weight::Whole;

impl<W: Whole> MatchingState<'_, W> {
    /// Adds a vertex, or all vertices of a blossom, to the queue.
    pub(super) fn enqueue(&mut self, x: usize) {
        if x <= self.n {
            self.queue.push(x);
        } else {
            for part in self.cycle[x].clone() {
                self.enqueue(part);
            }
        }
    }

    /// Sets the outermost blossom around `x` and everything within it.
    fn set_outer(&mut self, x: usize, blossom: usize) {
        self.outer[x] = blossom;
        if x > self.n {
            for part in self.cycle[x].clone() {
                self.set_outer(part, blossom);
            }
        }
    }

    /// Returns the number of steps from the base of a blossom to a part in the direction in which
    /// it is even. Reverses the cycle if necessary.
    fn steps_to(&mut self, blossom: usize, part: usize) -> usize {
        let cycle = &mut self.cycle[blossom];
        let at = cycle.iter().position(|&p| p == part).unwrap_or(0);
        if at.is_multiple_of(2) {
            return at;
        }
        cycle[1..].reverse();
        cycle.len() - at
    }

    /// Matches `x` over its edge to `y`, and rematches the parts of `x` among themselves.
    pub(super) fn set_mate(&mut self, x: usize, y: usize) {
        let (a, b) = self.edge(x, y);
        self.mate[x] = b;
        if x <= self.n {
            return;
        }
        let entered = self.part[x * (self.n + 1) + a];
        let steps = self.steps_to(x, entered);
        for i in 0..steps {
            let (p, q) = (self.cycle[x][i], self.cycle[x][i ^ 1]);
            self.set_mate(p, q);
        }
        self.set_mate(entered, y);
        self.cycle[x].rotate_left(steps);
    }

    /// Makes a blossom of the cycle from `base` to `x`, over the edge between `x` and `y`, and back
    /// to `base`.
    pub(super) fn shrink(&mut self, x: usize, base: usize, y: usize) {
        let (n, width) = (self.n, self.width);
        let unused = (n + 1..=self.top).find(|&b| self.outer[b] == 0);
        let b = unused.unwrap_or(self.top + 1);
        self.top = self.top.max(b);
        self.label[b] = W::default();
        self.side[b] = Parity::Even;
        self.mate[b] = self.mate[base];
        let mut cycle = vec![base];
        for (i, start) in [x, y].into_iter().enumerate() {
            if i == 1 {
                cycle[1..].reverse();
            }
            let mut at = start;
            while at != base {
                cycle.push(at);
                let odd = self.outer[self.mate[at]];
                cycle.push(odd);
                self.enqueue(odd);
                at = self.outer[self.parent[odd]];
            }
        }
        self.cycle[b].clone_from(&cycle);
        self.set_outer(b, b);
        for v in 1..=self.top {
            self.edge[b * width + v] = (0, 0);
            self.edge[v * width + b] = (0, 0);
        }
        for v in 0..=n {
            self.part[b * (n + 1) + v] = 0;
        }
        for part in cycle {
            for v in 1..=self.top {
                let new = self.edge(part, v);
                let old = self.edge(b, v);
                if new.0 != 0 && (old.0 == 0 || self.excess(new) < self.excess(old)) {
                    self.edge[b * width + v] = new;
                    self.edge[v * width + b] = self.edge(v, part);
                }
            }
            for v in 1..=n {
                if self.part[part * (n + 1) + v] != 0 {
                    self.part[b * (n + 1) + v] = part;
                }
            }
        }
        self.find_slack(b);
    }

    /// Dissolves a blossom whose price is 0. Its parts on the even way from its base to where the
    /// tree entered it stay in the tree.
    pub(super) fn expand(&mut self, b: usize) {
        for part in self.cycle[b].clone() {
            self.set_outer(part, part);
        }
        let entered = self.part[b * (self.n + 1) + self.edge(b, self.parent[b]).0];
        let steps = self.steps_to(b, entered);
        let cycle = self.cycle[b].clone();
        for i in (0..steps).step_by(2) {
            let (odd, even) = (cycle[i], cycle[i + 1]);
            self.parent[odd] = self.edge(even, odd).0;
            self.side[odd] = Parity::Odd;
            self.side[even] = Parity::Even;
            self.slack[odd] = 0;
            self.find_slack(even);
            self.enqueue(even);
        }
        self.side[entered] = Parity::Odd;
        self.parent[entered] = self.parent[b];
        for &part in &cycle[steps + 1..] {
            self.side[part] = Parity::Free;
            self.find_slack(part);
        }
        self.outer[b] = 0;
    }

    /// Adds the vertices of `x` to `into`, numbered from 0.
    pub(super) fn members(&self, x: usize, into: &mut Vec<usize>) {
        if x <= self.n {
            into.push(x - 1);
        } else {
            for &part in &self.cycle[x] {
                self.members(part, into);
            }
        }
    }
}
