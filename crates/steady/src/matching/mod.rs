//! Maximum-weight matchings of general graphs (Edmonds 1965), with the prices that prove them
//! maximal.
//!
//! Vertices have prices, and so have odd sets of vertices (blossoms). For every edge, the prices of
//! its ends and of the sets that contain both add up to at least its weight. A matching has at most
//! `(|S| - 1) / 2` edges within a set `S`. So no matching is heavier than the sum of all vertex
//! prices and of `(|S| - 1) / 2` times the price of each set; the matching that is found reaches
//! this sum.
//!
//! The algorithm is the primal-dual method with trees that grow from all free vertices at once.
//! Time: `O(n^3)`. A bipartite graph never forms a blossom, and the method is then the Hungarian
//! method.

mod blossom;

use super::weight::{Whole, least};

/// A matching and its proof. Prices are doubled so that halves stay whole.
#[derive(Debug, Clone)]
pub(super) struct ProvedMatching<W> {
    /// By vertex, its partner.
    pub(super) mate: Vec<Option<usize>>,
    /// By vertex, twice its price.
    pub(super) twice_prices: Vec<W>,
    /// Odd sets, with twice their prices (not zero).
    pub(super) twice_odd: Vec<(Vec<usize>, W)>,
}

/// Finds the heaviest matching of a graph of `n` vertices. `weights[a * n + b]` is symmetric, and 0
/// where there is no edge.
pub(super) fn maximum<W: Whole>(n: usize, weights: &[W]) -> ProvedMatching<W> {
    let mut search = MatchingState::new(n, weights);
    while search.augment_once() {}
    search.outcome()
}

/// The state of the algorithm. Vertices have the numbers 1 to `n`, blossoms higher ones; 0 is none.
struct MatchingState<'w, W> {
    n: usize,
    weights: &'w [W],
    /// The highest number of a vertex or blossom in use.
    top: usize,
    /// For two vertices or blossoms, the ends of the edge of least slack between them; `(0, 0)` for
    /// none.
    edge: Vec<(usize, usize)>,
    width: usize,
    /// Twice the price.
    label: Vec<W>,
    /// The vertex at the other end of the matched edge.
    mate: Vec<usize>,
    /// The outside vertex whose edge to this vertex or blossom has the least slack.
    slack: Vec<usize>,
    /// The outermost blossom around this vertex or blossom.
    outer: Vec<usize>,
    /// The vertex from which the tree reached this vertex or blossom.
    parent: Vec<usize>,
    /// By blossom and vertex, the part of the blossom that contains the vertex.
    part: Vec<usize>,
    side: Vec<Parity>,
    seen: Vec<usize>,
    mark: usize,
    /// The parts of a blossom in order round its cycle, from its base.
    cycle: Vec<Vec<usize>>,
    queue: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Parity {
    Free,
    Even,
    Odd,
}

impl<'w, W: Whole> MatchingState<'w, W> {
    fn new(n: usize, weights: &'w [W]) -> Self {
        let width = 2 * n + 2;
        let heavier = |most: W, w: &W| if *w > most { w.clone() } else { most };
        let heaviest = weights.iter().fold(W::default(), heavier);
        let mut search = MatchingState {
            n,
            weights,
            top: n,
            edge: vec![(0, 0); width * width],
            width,
            label: vec![W::default(); width],
            mate: vec![0; width],
            slack: vec![0; width],
            outer: (0..width).map(|v| if v <= n { v } else { 0 }).collect(),
            parent: vec![0; width],
            part: vec![0; width * (n + 1)],
            side: vec![Parity::Free; width],
            seen: vec![0; width],
            mark: 0,
            cycle: vec![Vec::new(); width],
            queue: Vec::new(),
        };
        for a in 1..=n {
            search.label[a] = heaviest.clone();
            search.part[a * (n + 1) + a] = a;
            for b in 1..=n {
                if weights[(a - 1) * n + b - 1] > W::default() {
                    search.edge[a * width + b] = (a, b);
                }
            }
        }
        search
    }

    fn edge(&self, a: usize, b: usize) -> (usize, usize) {
        self.edge[a * self.width + b]
    }

    /// Returns twice the slack of an edge: the prices of its ends less its weight.
    fn excess(&self, (a, b): (usize, usize)) -> W {
        let w = &self.weights[(a - 1) * self.n + b - 1];
        self.label[a].clone() + self.label[b].clone() - w.clone() - w.clone()
    }

    /// Keeps `from` for `to` if its edge has less slack than that of the vertex kept so far.
    fn try_slack(&mut self, from: usize, to: usize) {
        let old = self.slack[to];
        if old == 0 || self.excess(self.edge(from, to)) < self.excess(self.edge(old, to)) {
            self.slack[to] = from;
        }
    }

    /// Finds the outside vertex whose edge to `to` has the least slack.
    fn find_slack(&mut self, to: usize) {
        self.slack[to] = 0;
        for from in 1..=self.n {
            if self.edge(from, to).0 != 0
                && self.outer[from] != to
                && self.side[self.outer[from]] == Parity::Even
            {
                self.try_slack(from, to);
            }
        }
    }

    /// Exchanges matched and unmatched edges on the path from `x` up to the root of its tree, and
    /// matches `x` with `y`.
    fn augment(&mut self, mut x: usize, mut y: usize) {
        loop {
            let next = self.outer[self.mate[x]];
            self.set_mate(x, y);
            if next == 0 {
                return;
            }
            let up = self.outer[self.parent[next]];
            self.set_mate(next, up);
            (x, y) = (up, next);
        }
    }

    /// Returns where the paths up from two nodes of the trees meet; 0 if they do not.
    fn meeting(&mut self, mut x: usize, mut y: usize) -> usize {
        self.mark += 1;
        while x != 0 || y != 0 {
            if x != 0 {
                if self.seen[x] == self.mark {
                    return x;
                }
                self.seen[x] = self.mark;
                x = self.outer[self.mate[x]];
                if x != 0 {
                    x = self.outer[self.parent[x]];
                }
            }
            std::mem::swap(&mut x, &mut y);
        }
        0
    }

    /// Uses a tight edge: grows the tree, shrinks a blossom, or augments the matching. Returns
    /// whether it augmented.
    fn use_edge(&mut self, (a, b): (usize, usize)) -> bool {
        let (x, y) = (self.outer[a], self.outer[b]);
        match self.side[y] {
            Parity::Free => {
                self.parent[y] = a;
                self.side[y] = Parity::Odd;
                let next = self.outer[self.mate[y]];
                self.slack[y] = 0;
                self.slack[next] = 0;
                self.side[next] = Parity::Even;
                self.enqueue(next);
                false
            }
            Parity::Even => {
                let base = self.meeting(x, y);
                if base == 0 {
                    self.augment(x, y);
                    self.augment(y, x);
                    return true;
                }
                self.shrink(x, base, y);
                false
            }
            Parity::Odd => false,
        }
    }

    /// Adds one edge to the matching; false when it is the heaviest already.
    fn augment_once(&mut self) -> bool {
        self.side.fill(Parity::Free);
        self.slack.fill(0);
        self.queue.clear();
        for x in 1..=self.top {
            if self.outer[x] == x && self.mate[x] == 0 {
                self.parent[x] = 0;
                self.side[x] = Parity::Even;
                self.enqueue(x);
            }
        }
        if self.queue.is_empty() {
            return false;
        }
        loop {
            while let Some(a) = self.queue.pop() {
                if self.side[self.outer[a]] == Parity::Odd {
                    continue;
                }
                for b in 1..=self.n {
                    if self.edge(a, b).0 == 0 || self.outer[a] == self.outer[b] {
                        continue;
                    }
                    if self.excess((a, b)) == W::default() {
                        if self.use_edge((a, b)) {
                            return true;
                        }
                    } else {
                        self.try_slack(a, self.outer[b]);
                    }
                }
            }
            if !self.change_prices() {
                return false;
            }
            self.queue.clear();
            for x in 1..=self.top {
                let from = self.slack[x];
                if self.outer[x] == x && from != 0 && self.outer[from] != x {
                    let edge = self.edge(from, x);
                    if self.excess(edge) == W::default() && self.use_edge(edge) {
                        return true;
                    }
                }
            }
            for b in self.n + 1..=self.top {
                if self.outer[b] == b
                    && self.side[b] == Parity::Odd
                    && self.label[b] == W::default()
                {
                    self.expand(b);
                }
            }
        }
    }

    /// Moves the prices as far as they remain a proof; false when the price of a free vertex
    /// reaches 0.
    fn change_prices(&mut self) -> bool {
        let this = &*self;
        let of_tree =
            |side| (1..=this.top).filter(move |&x| this.outer[x] == x && this.side[x] == side);
        let blossoms = of_tree(Parity::Odd).filter(|&b| b > this.n);
        let shrinking = blossoms.map(|b| this.label[b].clone() >> 1);
        let nearest = |x: usize| {
            let from = Some(this.slack[x]).filter(|&from| from != 0)?;
            Some(this.excess(this.edge(from, x)))
        };
        let growing = of_tree(Parity::Free).filter_map(nearest);
        let meeting = of_tree(Parity::Even).filter_map(nearest).map(|w| w >> 1);
        let step = least(shrinking.chain(growing).chain(meeting));
        let even = (1..=this.n).filter(|&v| this.side[this.outer[v]] == Parity::Even);
        let lowest = least(even.map(|v| this.label[v].clone())).unwrap_or_default();
        let (step, continues) = match step {
            Some(step) if step < lowest => (step, true),
            _ => (lowest, false),
        };
        for v in 1..=self.n {
            let label = self.label[v].clone();
            match self.side[self.outer[v]] {
                Parity::Even => self.label[v] = label - step.clone(),
                Parity::Odd => self.label[v] = label + step.clone(),
                Parity::Free => {}
            }
        }
        for b in self.n + 1..=self.top {
            if self.outer[b] != b {
                continue;
            }
            let label = self.label[b].clone();
            match self.side[b] {
                Parity::Even => self.label[b] = label + step.clone() + step.clone(),
                Parity::Odd => self.label[b] = label - step.clone() - step.clone(),
                Parity::Free => {}
            }
        }
        continues
    }

    fn outcome(self) -> ProvedMatching<W> {
        let blossoms = (self.n + 1..=self.top)
            .filter(|&b| self.outer[b] != 0 && self.label[b] != W::default());
        let twice_odd = blossoms.map(|b| {
            let mut members = Vec::new();
            self.members(b, &mut members);
            members.sort_unstable();
            (members, self.label[b].clone())
        });
        ProvedMatching {
            mate: (1..=self.n).map(|v| self.mate[v].checked_sub(1)).collect(),
            twice_odd: twice_odd.collect(),
            twice_prices: self.label[1..=self.n].to_vec(),
        }
    }
}
