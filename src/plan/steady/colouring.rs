//! Loads of edges as matchings of a general graph, for unidirectional ports: fractional edge colouring.

use dashu_int::{IBig, UBig};

use super::fraction::{Fraction, over_common, sum, to_f64, whole};
use super::lp::{Column, Pricing, maximise_from};
use super::matching::maximum;
use super::platform::Platform;
use super::ports::{PortGraph, Slot, rounded, trimmed};
use crate::error::Result;

/// Whether loads can be carried.
pub(super) enum Slotted {
    /// In these slots, all the time at most.
    Fits(Vec<Slot>),
    /// They cannot: the edges within one of these odd sets of nodes are busy too long.
    Violates(Vec<Vec<usize>>),
}

/// The shortest sequence of matchings in which every edge is busy just as long as `loads` say, if it takes no more than all the time.
///
/// `minimise sum of y_m`, the matchings with an edge being at least its load; from matchings of one edge each, with a heaviest matching
/// under the prices as new column.
pub(super) fn general_slots(platform: &Platform, loads: &[Fraction]) -> Result<Slotted> {
    let busy: Vec<usize> = (0..loads.len()).filter(|&e| !loads[e].is_zero()).collect();
    let mut row = vec![usize::MAX; loads.len()];
    for (i, &e) in busy.iter().enumerate() {
        row[e] = i;
    }
    let graph = PortGraph {
        nodes: platform.nodes(),
        bidirectional: false,
    };
    let mut matchings = Matchings {
        platform,
        graph,
        busy: &busy,
        row,
    };
    let bounds: Vec<Fraction> = busy.iter().map(|&e| -loads[e].clone()).collect();
    let single = busy.iter().map(|&e| matchings.column(vec![e]));
    let columns: Vec<Column<Vec<usize>>> = single.collect();
    let basis: Vec<usize> = (busy.len()..2 * busy.len()).collect();
    let optimum = maximise_from(&bounds, columns, &basis, &mut matchings)?;
    if -optimum.value.clone() <= whole(1) {
        let slots = optimum.used.into_iter().map(|(e, y)| Slot::new(e, y));
        return Ok(Slotted::Fits(trimmed(slots.collect(), loads)));
    }
    // No matching is worth more than 1 at these prices, but the loads are: ports and odd sets around the edges pay for the prices, so
    // that one of them must be overloaded.
    let (scaled, _) = over_common(&matchings.spread(&optimum.prices));
    let found = maximum(graph.len(), &graph.weights(platform, &scaled));
    let sets = found.twice_odd.into_iter().map(|(set, _)| set);
    let sets = sets.filter(|set| within(platform, loads, set) > whole((set.len() - 1) / 2));
    Ok(Slotted::Violates(sets.collect()))
}

/// How long the edges within a set of nodes are busy, together.
fn within(platform: &Platform, loads: &[Fraction], set: &[usize]) -> Fraction {
    let edges = platform.edges().iter().zip(loads);
    let inside = edges.filter(|(e, _)| set.contains(&e.src) && set.contains(&e.dst));
    sum(inside.map(|(_, w)| w.clone()))
}

struct Matchings<'a> {
    platform: &'a Platform,
    graph: PortGraph,
    busy: &'a [usize],
    row: Vec<usize>,
}

impl Matchings<'_> {
    fn column(&self, edges: Vec<usize>) -> Column<Vec<usize>> {
        let rows = edges.iter().map(|&e| (self.row[e], -whole(1)));
        let mut entries: Vec<(usize, Fraction)> = rows.collect();
        entries.sort_unstable_by_key(|(row, _)| *row);
        Column {
            gain: -whole(1),
            entries,
            what: edges,
        }
    }

    /// Values of the busy edges as values of all.
    fn spread<P: Clone + Default>(&self, values: &[P]) -> Vec<P> {
        let mut all = vec![P::default(); self.row.len()];
        for (&e, v) in self.busy.iter().zip(values) {
            all[e] = v.clone();
        }
        all
    }

    fn heaviest<W: super::weight::Whole>(&self, weights: &[W]) -> Vec<Column<Vec<usize>>> {
        let edges = self.graph.heaviest(self.platform, weights);
        let edges = edges.into_iter().filter(|&e| weights[e] > W::default());
        vec![self.column(edges.collect())]
    }
}

impl Pricing<Vec<usize>> for Matchings<'_> {
    fn improve(&mut self, prices: &[f64]) -> Vec<Column<Vec<usize>>> {
        self.heaviest(&rounded(&self.spread(prices)))
    }

    fn improve_exactly(&mut self, prices: &[IBig], _: &UBig) -> Vec<Column<Vec<usize>>> {
        self.heaviest(&self.spread(prices))
    }
}

/// By how much an odd set must be violated for the search in floating-point numbers to tell.
const CLEARLY: f64 = 1e-7;

/// Odd sets of nodes whose edges are clearly busy too long: `sum of loads within S > (|S| - 1) / 2`.
///
/// Padberg and Rao (1982): with `s_v` the time that node `v` is idle, that is `sum of loads that leave S + sum of s_v in S < 1`: a small
/// cut with an odd number of nodes on one side, if the idle times are edges to one more node, which is made odd or even to suit. A
/// tree of minimum cuts (Gomory and Hu 1961; Gusfield 1990) has a smallest odd cut among its own.
pub(super) fn violated_sets(platform: &Platform, loads: &[Fraction]) -> Vec<Vec<usize>> {
    let n = platform.nodes();
    let size = n + 1;
    let mut capacity = vec![0.0; size * size];
    let mut idle = vec![1.0; n];
    for (e, load) in platform.edges().iter().zip(loads) {
        let load = to_f64(load);
        capacity[e.src * size + e.dst] += load;
        capacity[e.dst * size + e.src] += load;
        idle[e.src] -= load;
        idle[e.dst] -= load;
    }
    for (v, idle) in idle.iter().enumerate() {
        let idle = f64::max(*idle, 0.0);
        capacity[v * size + n] = idle;
        capacity[n * size + v] = idle;
    }
    let mut up = vec![0; size];
    let mut cut_above = vec![f64::INFINITY; size];
    for v in 1..size {
        let t = up[v];
        let (flow, side) = minimum_cut(size, &capacity, v, t);
        cut_above[v] = flow;
        for u in v + 1..size {
            if side[u] && up[u] == t {
                up[u] = v;
            }
        }
        if side[up[t]] {
            up[v] = up[t];
            up[t] = v;
            cut_above[v] = cut_above[t];
            cut_above[t] = flow;
        }
    }
    let mut sets: Vec<Vec<usize>> = Vec::new();
    for v in (1..size).filter(|&v| cut_above[v] < 1.0 - CLEARLY) {
        let below = |mut u: usize| {
            for _ in 0..size {
                if u == v {
                    return true;
                }
                if u == 0 {
                    return false;
                }
                u = up[u];
            }
            false
        };
        let inside: Vec<bool> = (0..size).map(below).collect();
        // The side without the additional node.
        let set: Vec<usize> = (0..n).filter(|&u| inside[u] != inside[n]).collect();
        if set.len() >= 3
            && set.len() % 2 == 1
            && within(platform, loads, &set) > whole((set.len() - 1) / 2)
            && !sets.contains(&set)
        {
            sets.push(set);
        }
    }
    sets
}

/// A minimum cut between two vertices: its value, and the side of `from`.
fn minimum_cut(size: usize, capacity: &[f64], from: usize, to: usize) -> (f64, Vec<bool>) {
    let mut left = capacity.to_vec();
    let mut value = 0.0;
    loop {
        let mut before = vec![usize::MAX; size];
        before[from] = from;
        let mut open = std::collections::VecDeque::from([from]);
        while let Some(v) = open.pop_front() {
            for u in 0..size {
                if before[u] == usize::MAX && left[v * size + u] > 1e-11 {
                    before[u] = v;
                    open.push_back(u);
                }
            }
        }
        if before[to] == usize::MAX {
            return (value, before.iter().map(|&b| b != usize::MAX).collect());
        }
        let mut amount = f64::INFINITY;
        let mut v = to;
        while v != from {
            amount = amount.min(left[before[v] * size + v]);
            v = before[v];
        }
        let mut v = to;
        while v != from {
            left[before[v] * size + v] -= amount;
            left[v * size + before[v]] += amount;
            v = before[v];
        }
        value += amount;
    }
}
