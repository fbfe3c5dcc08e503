//! The graph of ports, matchings of it, and the conversion of edge loads into a sequence of
//! matchings.

use std::collections::HashMap;
use std::ops::AddAssign;

use super::fraction::{Fraction, over_common, sum, whole};
use super::matching::maximum;
use super::platform::Platform;
use super::route::Route;
use super::weight::{Weight, Whole};
use dashu_int::IBig;
use oneport::internal::numbers::truncated_i64;
use oneport::machine::Ports;

/// A set of edges that are busy at the same time (a matching), and its share of the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// Edges, by their number in the platform, sorted. Where combinations take time, a number
    /// beyond the edges stands for the combining of a node; node 0 follows the last edge.
    pub edges: Vec<usize>,
    /// Share of the time.
    pub share: Fraction,
}

impl Slot {
    pub(super) fn new(mut edges: Vec<usize>, share: Fraction) -> Slot {
        edges.sort_unstable();
        Slot { edges, share }
    }
}

/// The ports of a platform as vertices, and its activities as edges between them. Activities can
/// take place at the same time if no two share a port.
///
/// The platform's edges come first. Where combinations take time, an edge for the combining of each
/// node follows. This edge occupies:
///
/// - the node's two ports (bidirectional);
/// - the node's one port and a vertex of its own (unidirectional);
/// - two vertices of its own, as a separate processor, where combining and communicating overlap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PortGraph {
    pub(super) relays: bool,
    /// Number of ports. With bidirectional ports, the first half sends.
    size: usize,
    /// The two ports of each edge, followed by those of each node's combining.
    links: Vec<(usize, usize)>,
    pub(super) edges: usize,
    /// Time of a message on each edge, followed by that of a combination on each node.
    pub(super) costs: Vec<Fraction>,
}

impl PortGraph {
    pub(super) fn new(platform: &Platform, ports: Ports, computing: bool) -> PortGraph {
        let n = platform.nodes();
        let relays = ports.can_relay();
        let beside = computing && platform.overlaps();
        let half = if beside { 2 * n } else { n };
        let ends = |src: usize, dst: usize| {
            if relays {
                (src, half + dst)
            } else {
                (src, dst)
            }
        };
        let edges = platform.edges().iter();
        let mut links: Vec<(usize, usize)> = edges.map(|e| ends(e.src, e.dst)).collect();
        if computing {
            links.extend((0..n).map(|v| match (relays, beside) {
                (true, false) => (v, half + v),
                (true, true) => (n + v, half + n + v),
                (false, false) => (v, n + v),
                (false, true) => (n + v, 2 * n + v),
            }));
        }
        let size = match (relays, computing, beside) {
            (true, ..) => 2 * half,
            (false, false, _) => n,
            (false, true, false) => 2 * n,
            (false, true, true) => 3 * n,
        };
        PortGraph {
            relays,
            size,
            links,
            edges: platform.edges().len(),
            costs: platform.activity_costs(computing),
        }
    }

    /// Returns for how long each activity is busy when the routes perform these numbers of
    /// operations.
    pub(super) fn loads<'r>(
        &self,
        routes: impl IntoIterator<Item = (&'r Route, Fraction)>,
    ) -> Vec<Fraction> {
        let mut loads = vec![Fraction::ZERO; self.costs.len()];
        for (route, operations) in routes {
            for (e, messages) in route.activities(self.edges) {
                if let Some(cost) = self.costs.get(e) {
                    loads[e] += cost * &operations * whole(messages);
                }
            }
        }
        loads
    }

    pub(super) fn len(&self) -> usize {
        self.size
    }

    pub(super) fn links(&self) -> &[(usize, usize)] {
        &self.links
    }

    /// Returns how long each port is busy with these loads of the edges.
    pub(super) fn busy<W: Clone + Default + for<'w> AddAssign<&'w W>>(
        &self,
        loads: &[W],
    ) -> Vec<W> {
        let mut busy = vec![W::default(); self.len()];
        for (&(a, b), load) in self.links.iter().zip(loads) {
            busy[a] += load;
            busy[b] += load;
        }
        busy
    }

    /// Raises the prices of activities at busy ports, by smaller steps in later rounds.
    pub(super) fn raise_prices(&self, prices: &mut [f64], busy: &[f64], round: usize) {
        let most = busy.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let step = 1.0 / (1.0 + round as f64 / 8.0);
        for (price, &(a, b)) in prices.iter_mut().zip(&self.links) {
            let worst = (busy[a] / most).max(busy[b] / most);
            *price *= 1.0 + step * (worst * worst * worst);
        }
        let sum: f64 = prices.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        for price in prices {
            *price /= sum;
        }
    }

    /// Returns a symmetric matrix of weights between ports. Of two opposite edges, the heavier one
    /// counts.
    pub(super) fn weights<W: Weight>(&self, weights: &[W]) -> Vec<W> {
        let n = self.len();
        let mut matrix = vec![W::default(); n * n];
        for (&(a, b), w) in self.links.iter().zip(weights) {
            if *w > matrix[a * n + b] {
                matrix[a * n + b] = w.clone();
                matrix[b * n + a] = w.clone();
            }
        }
        matrix
    }

    pub(super) fn heaviest<W: Whole>(&self, weights: &[W]) -> Vec<usize> {
        let mate = maximum(self.len(), &self.weights(weights)).mate;
        let mut chosen: Vec<Option<usize>> = vec![None; self.len()];
        for (i, &(a, b)) in self.links.iter().enumerate() {
            if mate[a] != Some(b) {
                continue;
            }
            let at = &mut chosen[a.min(b)];
            if at.is_none_or(|old| weights[i] > weights[old]) {
                *at = Some(i);
            }
        }
        chosen.into_iter().flatten().collect()
    }
}

/// Scales floating-point weights to whole numbers, for the search.
pub(super) fn rounded(weights: &[f64]) -> Vec<i64> {
    let most = weights.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let scale = (1u64 << 45) as f64 / most;
    weights
        .iter()
        .map(|w| truncated_i64((w * scale).round()))
        .collect()
}

/// Returns slots in which every edge is busy exactly as long as its load. Their total time is that
/// of the busiest port. With bidirectional ports this is always possible (König 1916, Birkhoff
/// 1946).
///
/// The loads, as a matrix of sending and receiving ports, are completed to a matrix whose rows and
/// columns all have the same sum. Such a matrix is a sum of permutations, which are found one by
/// one. Each permutation lasts as long as its smallest remaining entry.
pub(super) fn bipartite_slots(graph: &PortGraph, loads: &[Fraction]) -> Vec<Slot> {
    let (whole, below) = over_common(loads);
    let (mut entries, busiest) = completed(graph, &whole);
    let mut slots: HashMap<Vec<usize>, IBig> = HashMap::new();
    let mut order: Vec<Vec<usize>> = Vec::new();
    let mut permutation = Permutation::new(graph.len(), &entries);
    let mut left = busiest;
    while !left.is_zero() {
        let Some(taken) = permutation.complete(&entries) else {
            // Impossible for a matrix of equal sums.
            debug_assert!(false, "a matrix of equal sums is a sum of permutations");
            break;
        };
        let min_share = taken.iter().map(|&i| entries[i].2.clone()).min();
        let min_share = min_share.unwrap_or_else(|| left.clone());
        let mut edges: Vec<usize> = taken.iter().filter_map(|&i| entries[i].3).collect();
        edges.sort_unstable();
        for &i in &taken {
            entries[i].2 -= &min_share;
        }
        left -= &min_share;
        if !edges.is_empty() {
            let share = slots.entry(edges.clone()).or_insert_with(|| {
                order.push(edges);
                IBig::ZERO
            });
            *share += min_share;
        }
    }
    let below = Fraction::from(below);
    order
        .into_iter()
        .map(|edges| Slot {
            share: Fraction::from(slots[&edges].clone()) / &below,
            edges,
        })
        .collect()
}

/// An entry of a matrix: row, column, value, and the edge whose load it is.
type LoadEntry = (usize, usize, IBig, Option<usize>);

/// Completes the loads to a matrix whose rows and columns have the sum of the busiest port. It is
/// twice as large: the loads, their transpose, and the missing amounts on two diagonals. Returns
/// its entries and that sum.
fn completed(graph: &PortGraph, whole: &[IBig]) -> (Vec<LoadEntry>, IBig) {
    let n = graph.len() / 2;
    let mut rows = vec![IBig::ZERO; 2 * n];
    let mut columns = vec![IBig::ZERO; 2 * n];
    let mut entries: Vec<LoadEntry> = Vec::new();
    for (i, &(a, b)) in graph.links().iter().enumerate() {
        if whole[i].is_zero() {
            continue;
        }
        let (row, column) = (a, b - n);
        rows[row] += &whole[i];
        columns[column] += &whole[i];
        entries.push((row, column, whole[i].clone(), Some(i)));
        entries.push((n + column, n + row, whole[i].clone(), None));
    }
    let busiest = rows.iter().chain(&columns).max();
    let busiest = busiest.cloned().unwrap_or_default();
    for v in 0..n {
        let (out, into) = (&busiest - &rows[v], &busiest - &columns[v]);
        for (from, to, missing) in [(v, n + v, out), (n + v, v, into)] {
            if !missing.is_zero() {
                entries.push((from, to, missing, None));
            }
        }
    }
    (entries, busiest)
}

/// A perfect matching of rows and columns over the remaining entries, repaired as entries become 0.
struct Permutation {
    size: usize,
    by_row: Vec<Vec<usize>>,
    row_entry: Vec<Option<usize>>,
    column_entry: Vec<Option<usize>>,
}

impl Permutation {
    fn new(size: usize, entries: &[LoadEntry]) -> Permutation {
        let mut by_row = vec![Vec::new(); size];
        for (i, entry) in entries.iter().enumerate() {
            by_row[entry.0].push(i);
        }
        Permutation {
            size,
            by_row,
            row_entry: vec![None; size],
            column_entry: vec![None; size],
        }
    }

    /// Completes the matching. Returns the chosen entry of each row.
    fn complete(&mut self, entries: &[LoadEntry]) -> Option<Vec<usize>> {
        for row in 0..self.size {
            if let Some(i) = self.row_entry[row]
                && entries[i].2.is_zero()
            {
                self.row_entry[row] = None;
                self.column_entry[entries[i].1] = None;
            }
        }
        for row in 0..self.size {
            if self.row_entry[row].is_none() && !self.augment(row, entries) {
                return None;
            }
        }
        self.row_entry.iter().copied().collect()
    }

    /// Finds a shortest augmenting path from a free row and applies it; false if there is none.
    fn augment(&mut self, row: usize, entries: &[LoadEntry]) -> bool {
        let mut reached_by: Vec<Option<usize>> = vec![None; self.size];
        let mut open = std::collections::VecDeque::from([row]);
        while let Some(at) = open.pop_front() {
            for &i in &self.by_row[at] {
                let column = entries[i].1;
                if entries[i].2.is_zero() || reached_by[column].is_some() {
                    continue;
                }
                reached_by[column] = Some(i);
                match self.column_entry[column] {
                    Some(taken) => open.push_back(entries[taken].0),
                    None => {
                        let mut column = column;
                        while let Some(i) = reached_by[column] {
                            let from = entries[i].0;
                            let before = self.row_entry[from].replace(i);
                            self.column_entry[column] = Some(i);
                            match before {
                                Some(old) if from != row => column = entries[old].1,
                                _ => break,
                            }
                        }
                        return true;
                    }
                }
            }
        }
        false
    }
}

/// Returns the slots without the surplus: an edge is removed from slots where it would be busy
/// longer than its load.
pub(super) fn trimmed(slots: Vec<Slot>, loads: &[Fraction]) -> Vec<Slot> {
    let mut slots = slots;
    for (edge, load) in loads.iter().enumerate() {
        let with_edge = slots.iter().filter(|s| s.edges.contains(&edge));
        let mut excess = sum(with_edge.map(|s| s.share.clone())) - load;
        let mut i = 0;
        while excess > Fraction::ZERO && i < slots.len() {
            if slots[i].edges.contains(&edge) {
                let mut without = slots[i].edges.clone();
                without.retain(|&e| e != edge);
                if slots[i].share <= excess {
                    excess -= &slots[i].share;
                    slots[i].edges = without;
                } else {
                    slots[i].share -= &excess;
                    slots.push(Slot {
                        edges: without,
                        share: excess,
                    });
                    excess = Fraction::ZERO;
                }
            }
            i += 1;
        }
    }
    let mut merged: Vec<Slot> = Vec::new();
    for slot in slots.into_iter().filter(|s| !s.edges.is_empty()) {
        match merged.iter_mut().find(|s| s.edges == slot.edges) {
            Some(same) => same.share += slot.share,
            None => merged.push(slot),
        }
    }
    merged
}
