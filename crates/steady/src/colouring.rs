//! Fractional edge colouring: turns the edge loads of a general graph into matchings, for
//! unidirectional ports.

use dashu_int::{IBig, UBig};

use super::cut::minimum_cut;
use super::fraction::{Fraction, over_common, sum, whole};
use super::lp::{Column, Pricing, maximise};
use super::matching::maximum;
use super::ports::{PortGraph, Slot, bipartite_slots, rounded, trimmed};
use oneport::error::Result;
use oneport::internal::numbers::{signed, truncated_i64};

pub(super) enum Slotted {
    /// The loads fit into these slots, which take at most all the time.
    Fits(Vec<Slot>),
    /// The loads do not fit: the edges within one of these odd sets of nodes are busy for too long.
    Violates(Vec<Vec<usize>>),
}

/// Limit of the restarts of the search. Each restart knows the odd sets found so far.
const MAX_STARTS: usize = 100;

/// Finds a sequence of matchings in which every edge is busy exactly as long as its load, if that
/// takes at most all the time. `sets` are odd sets that are known to matter; bidirectional ports
/// need none.
///
/// The matchings are found one by one. Each covers every *tight* port and odd set (one that is busy
/// for all the remaining time), and lasts until an edge is finished or a port or odd set becomes
/// tight. If an odd set would be overloaded afterwards, the matching is shortened. The search for
/// such sets uses floating-point numbers and may miss a set that is overloaded by very little. The
/// set is found later, and the search restarts with that set known.
pub(super) fn general_slots(
    graph: &PortGraph,
    loads: &[Fraction],
    sets: &[Vec<usize>],
) -> Result<Slotted> {
    if graph.relays {
        return Ok(Slotted::Fits(bipartite_slots(graph, loads)));
    }
    let mut sets = sets.to_vec();
    for _ in 0..MAX_STARTS {
        let overloaded = |s: &&Vec<usize>| within(graph, loads, s) > whole((s.len() - 1) / 2);
        let violated: Vec<Vec<usize>> = sets.iter().filter(overloaded).cloned().collect();
        if !violated.is_empty() {
            return Ok(Slotted::Violates(violated));
        }
        let known = sets.len();
        let mut peeling = Peeling {
            graph,
            left: loads.to_vec(),
            time: whole(1),
            sets,
        };
        let mut slots: Vec<Slot> = Vec::new();
        while let Some(slot) = peeling.next() {
            slots.push(slot);
            if peeling.left.iter().all(Fraction::is_zero) {
                return Ok(Slotted::Fits(trimmed(slots, loads)));
            }
        }
        sets = peeling.sets;
        if sets.len() == known {
            break;
        }
    }
    by_program(graph, loads)
}

struct Peeling<'a> {
    graph: &'a PortGraph,
    left: Vec<Fraction>,
    time: Fraction,
    sets: Vec<Vec<usize>>,
}

impl Peeling<'_> {
    /// Finds the next matching. `None` if it cannot cover everything that is tight, because an
    /// overloaded odd set was missed.
    fn next(&mut self) -> Option<Slot> {
        let busy = self.graph.busy(&self.left);
        let slack: Vec<Fraction> = self.sets.iter().map(|s| self.slack(s)).collect();
        if slack.iter().any(|a| *a < Fraction::ZERO) {
            return None;
        }
        let chosen = self.covering_matching(&busy, &slack)?;
        let share = self.share_until_tight(&chosen, &busy, &slack);
        self.take(chosen, share)
    }

    /// Returns the time that the remaining matchings can spend on edges within an odd set, beyond
    /// what its edges need.
    fn slack(&self, set: &[usize]) -> Fraction {
        whole((set.len() - 1) / 2) * &self.time - within(self.graph, &self.left, set)
    }

    /// Returns a matching that covers every tight port and odd set, and as many other edges as
    /// possible; `None` if there is none.
    fn covering_matching(&self, busy: &[Fraction], slack: &[Fraction]) -> Option<Vec<usize>> {
        let tight = self.sets.iter().zip(slack).filter(|(_, a)| a.is_zero());
        let tight: Vec<&Vec<usize>> = tight.map(|(s, _)| s).collect();
        let mut required = busy.iter().filter(|b| **b == self.time).count();
        required += tight.iter().map(|s| (s.len() - 1) / 2).sum::<usize>();
        let counts: Vec<usize> = (self.graph.links().iter())
            .map(|&(a, b)| {
                let ports = [a, b].iter().filter(|&&v| busy[v] == self.time).count();
                let inside = |s: &&&Vec<usize>| s.contains(&a) && s.contains(&b);
                ports + tight.iter().filter(inside).count()
            })
            .collect();
        let left = self.left.iter().map(Fraction::to_f64);
        let most = left.fold(f64::MIN_POSITIVE, f64::max);
        // Tight ports and sets come first, then as many other edges as possible.
        let unit = 1000 * (signed(self.graph.len()) + 1);
        let weights: Vec<i64> = (self.left.iter().zip(&counts))
            .map(|(w, &count)| {
                if w.is_zero() {
                    return 0;
                }
                signed(count) * unit + 1 + truncated_i64(w.to_f64() / most * 900.0)
            })
            .collect();
        let chosen = self.graph.heaviest(&weights);
        let covered = chosen.iter().map(|&e| counts[e]).sum::<usize>();
        (covered >= required).then_some(chosen)
    }

    /// Returns how long a matching can last until one of its edges is finished, or a port or known
    /// odd set that it does not cover becomes tight.
    fn share_until_tight(
        &self,
        chosen: &[usize],
        busy: &[Fraction],
        slack: &[Fraction],
    ) -> Fraction {
        let mut covered = vec![false; self.graph.len()];
        let mut share = self.time.clone();
        for &e in chosen {
            let (a, b) = self.graph.links()[e];
            covered[a] = true;
            covered[b] = true;
            share = share.min(self.left[e].clone());
        }
        for v in (0..covered.len()).filter(|&v| !covered[v]) {
            share = share.min(&self.time - &busy[v]);
        }
        for (set, slack) in self.sets.iter().zip(slack) {
            let idle = self.idle(chosen, set);
            if idle > 0 {
                share = share.min(slack / whole(idle));
            }
        }
        share
    }

    /// Returns how many more edges within an odd set a matching could have.
    fn idle(&self, chosen: &[usize], set: &[usize]) -> usize {
        let links = self.graph.links();
        let inside = |e: usize| set.contains(&links[e].0) && set.contains(&links[e].1);
        (set.len() - 1) / 2 - chosen.iter().filter(|&&e| inside(e)).count()
    }

    /// Takes a matching of at most length `share` from the loads, shortened as far as odd sets
    /// require that were not known. `None` if nothing of it remains.
    fn take(&mut self, chosen: Vec<usize>, mut share: Fraction) -> Option<Slot> {
        loop {
            let mut left = self.left.clone();
            for &e in &chosen {
                left[e] -= &share;
            }
            let time = &self.time - &share;
            if !time.is_zero() {
                let shares: Vec<Fraction> = left.iter().map(|w| w / &time).collect();
                let before = share.clone();
                for set in violated_sets(self.graph, &shares) {
                    let idle = self.idle(&chosen, &set);
                    if idle > 0 {
                        share = share.min(self.slack(&set) / whole(idle));
                    }
                    if !self.sets.contains(&set) {
                        self.sets.push(set);
                    }
                }
                if share < before {
                    if share <= Fraction::ZERO {
                        return None;
                    }
                    continue;
                }
            }
            self.left = left;
            self.time = time;
            return Some(Slot::new(chosen, share));
        }
    }
}

/// Solves the problem of [`general_slots`] by a linear program.
///
/// The program is `minimise sum of y_m`, where for each edge the `y_m` of the matchings with that
/// edge add up to at least its load. A heaviest matching under the prices is the new column.
fn by_program(graph: &PortGraph, loads: &[Fraction]) -> Result<Slotted> {
    let busy: Vec<usize> = (0..loads.len()).filter(|&e| !loads[e].is_zero()).collect();
    let mut row = vec![usize::MAX; loads.len()];
    for (i, &e) in busy.iter().enumerate() {
        row[e] = i;
    }
    let mut matchings = Matchings {
        graph,
        busy: &busy,
        row,
    };
    let bounds: Vec<Fraction> = busy.iter().map(|&e| -loads[e].clone()).collect();
    let single = busy.iter().map(|&e| matchings.column(vec![e]));
    let columns: Vec<Column<Vec<usize>>> = single.collect();
    let optimum = maximise(&bounds, columns, &mut matchings)?;
    if -optimum.value.clone() <= whole(1) {
        let slots = optimum.used.into_iter().map(|(e, y)| Slot::new(e, y));
        return Ok(Slotted::Fits(trimmed(slots.collect(), loads)));
    }
    // At these prices no matching is worth more than 1, but the loads are. The prices of ports and
    // of odd sets cover those of the edges, so one of them is overloaded.
    let (scaled, _) = over_common(&matchings.spread(&optimum.prices));
    let found = maximum(graph.len(), &graph.weights(&scaled));
    let sets = found.twice_odd.into_iter().map(|(set, _)| set);
    let sets = sets.filter(|set| within(graph, loads, set) > whole((set.len() - 1) / 2));
    Ok(Slotted::Violates(sets.collect()))
}

/// The total time for which the edges within a set of nodes are busy.
pub(super) fn within(graph: &PortGraph, loads: &[Fraction], set: &[usize]) -> Fraction {
    let links = graph.links().iter().zip(loads);
    let inside = links.filter(|((a, b), _)| set.contains(a) && set.contains(b));
    sum(inside.map(|(_, w)| w.clone()))
}

struct Matchings<'a> {
    graph: &'a PortGraph,
    busy: &'a [usize],
    row: Vec<usize>,
}

impl Matchings<'_> {
    fn column(&self, edges: Vec<usize>) -> Column<Vec<usize>> {
        let rows = edges.iter().map(|&e| (self.row[e], -whole(1)));
        Column::new(-whole(1), rows.collect(), edges)
    }

    /// Extends values of the busy edges to all edges, with zeros.
    fn spread<P: Clone + Default>(&self, values: &[P]) -> Vec<P> {
        let mut all = vec![P::default(); self.row.len()];
        for (&e, v) in self.busy.iter().zip(values) {
            all[e] = v.clone();
        }
        all
    }

    fn heaviest<W: super::weight::Whole>(&self, weights: &[W]) -> Vec<Column<Vec<usize>>> {
        let edges = self.graph.heaviest(weights);
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

/// How much below 1 a cut must be for its odd set to be checked exactly. It is negative, so that
/// rounding errors of floating-point cuts hide no violated set.
const MIN_VIOLATION: f64 = -1e-9;
/// Capacities below this may be rounding errors.
const MIN_CAPACITY: f64 = 1e-11;

/// Finds odd sets of nodes whose edges are busy for too long:
/// `sum of loads within S > (|S| - 1) / 2`. Sets that are violated by less than rounding errors may
/// be missed.
///
/// Source: Padberg and Rao (1982). Let `s_v` be the idle time of node `v`. The condition is then
/// `sum of loads that leave S + sum of s_v in S < 1`: a small cut with an odd number of nodes on
/// one side, in a graph where the idle times are edges to one additional node, which counts as odd
/// or even as needed. A tree of minimum cuts (Gomory and Hu 1961; Gusfield 1990) contains a
/// smallest odd cut.
pub(super) fn violated_sets(graph: &PortGraph, loads: &[Fraction]) -> Vec<Vec<usize>> {
    let n = graph.len();
    let (mut arcs, mut capacity) = (Vec::new(), Vec::new());
    let mut idle = vec![1.0; n];
    let mut connect = |a: usize, b: usize, load: f64| {
        arcs.extend([(a, b), (b, a)]);
        capacity.extend([load, load]);
    };
    let loaded = graph.links().iter().zip(loads);
    for (&(a, b), load) in loaded.filter(|(_, w)| !w.is_zero()) {
        let load = load.to_f64();
        connect(a, b, load);
        idle[a] -= load;
        idle[b] -= load;
    }
    for (v, &idle) in idle.iter().enumerate() {
        connect(v, n, f64::max(idle, 0.0));
    }
    let cut = |ends| minimum_cut(n + 1, &arcs, &capacity, &MIN_CAPACITY, ends);
    // The tree of cuts (Gusfield): the smallest cut on the path between two vertices is a minimum
    // cut between them, and separates the vertices below it from the others. Vertex 0 is the root.
    let mut up = vec![0; n + 1];
    let mut cut_above = vec![f64::INFINITY; n + 1];
    for v in 1..=n {
        let above = up[v];
        let Some(side) = cut((v, above)) else {
            continue;
        };
        let arcs = arcs.iter().zip(&capacity);
        let leaving = arcs.filter(|((a, b), _)| side[*a] && !side[*b]);
        cut_above[v] = leaving.map(|(_, w)| w).sum();
        for u in v + 1..=n {
            if side[u] && up[u] == above {
                up[u] = v;
            }
        }
        if side[up[above]] {
            (up[v], up[above]) = (up[above], v);
            cut_above.swap(v, above);
        }
    }
    let is_below = |u: usize, v: usize| {
        std::iter::successors(Some(u), |&u| (u != 0).then(|| up[u])).any(|u| u == v)
    };
    let mut sets: Vec<Vec<usize>> = Vec::new();
    for v in (1..=n).filter(|&v| cut_above[v] < 1.0 - MIN_VIOLATION) {
        // The side without the additional node.
        let other = is_below(n, v);
        let set: Vec<usize> = (0..n).filter(|&u| is_below(u, v) != other).collect();
        if set.len() >= 3
            && set.len() % 2 == 1
            && within(graph, loads, &set) > whole((set.len() - 1) / 2)
            && !sets.contains(&set)
        {
            sets.push(set);
        }
    }
    sets
}
