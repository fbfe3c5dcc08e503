//! Computes the optimal throughput: a linear program over routes, and over matchings or ports.
//!
//! If route `t` performs `x_t` operations per time unit, edge `e` is busy for a share
//! `w_e = c_e * sum of x_t * (messages of t on e)` of the time. Two forms of the program say which
//! loads are possible:
//!
//! - *Ports*: no port is busy for more than all the time. That is sufficient for bidirectional
//!   ports (König). For unidirectional ports, every odd set `S` of nodes adds
//!   `sum of w_e over the edges within S <= (|S| - 1) / 2` (Edmonds 1965); violated sets are added
//!   as they are found (Padberg and Rao 1982). Only the columns of routes are generated on demand,
//!   and there are about two rows per node.
//! - *Matchings*: `w_e <= sum of y_m over the matchings m with e`, `sum of y_m <= 1`. The columns
//!   of routes and of matchings are generated on demand: a cheapest route and a heaviest matching
//!   price them. This form is slower, since there is a row for each edge and most bounds are 0.
//!
//! In the form with ports, the loads become matchings afterwards. For bidirectional ports,
//! Birkhoff's theorem gives them. For unidirectional ports, they are a fractional edge colouring, a
//! linear program of its own. If the colouring needs more than all the time, its prices name a
//! violated odd set.

use dashu_int::{IBig, UBig};

use super::arborescence::arborescence;
use super::certificate::{Certificate, Proof};
use super::colouring::{Slotted, general_slots, violated_sets};
use super::demand::{Combining, Wanted};
use super::fraction::{Fraction, common_denominator, over_common, scaled, sum, to_finite, whole};
use super::lp::{Column, Optimum, Pricing, maximise};
use super::matching::maximum;
use super::partial_results::PartialResults;
use super::paths::shortest_paths;
use super::platform::Platform;
use super::ports::{PortGraph, Slot, bipartite_slots, rounded, trimmed};
use super::route::{Route, added};
use super::weight::Weight;
use oneport::error::{Error, Result};
use oneport::machine::Ports;

/// How a throughput is computed. Both methods give the same result, so each is a test of the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SolveMethod {
    /// A program of routes in which no port is busy for more than all the time, with odd sets of
    /// unidirectional ports.
    #[default]
    Ports,
    /// A program of routes and matchings, with one row for each edge; slower.
    Matchings,
}

/// The best rates: the solution of the linear program.
#[derive(Debug, Clone)]
pub(super) struct Rates {
    pub(super) throughput: Fraction,
    /// Operations per time unit on each route.
    pub(super) routes: Vec<(Route, Fraction)>,
    pub(super) slots: Vec<Slot>,
    /// The proof of optimality. Absent where routes are not priced exactly.
    pub(super) certificate: Option<Certificate>,
}

/// The activity that a column stands for.
#[derive(Debug, Clone)]
enum ColumnActivity {
    Route(Route),
    Slot(Vec<usize>),
}

/// The rows of the program, and the costs in floating-point and exact numbers.
struct Rows<'a> {
    platform: &'a Platform,
    graph: PortGraph,
    demand: &'a Wanted,
    matchings: bool,
    /// Odd sets of nodes; each has a row, after those of the ports.
    odd_sets: Vec<Vec<usize>>,
    /// The graph's costs.
    costs: Vec<f64>,
    whole_costs: Vec<IBig>,
    /// The only routes, if not any routes are allowed.
    only: Option<&'a [Route]>,
}

pub(super) fn best_rates(
    platform: &Platform,
    ports: Ports,
    demand: &Wanted,
    method: SolveMethod,
) -> Result<Rates> {
    let unit = platform.unit();
    let rates = rates_in_units(&platform.in_units_of(&unit), ports, demand, method)?;
    let rates = rates.per(&unit);
    if let Some(certificate) = &rates.certificate {
        certificate.verify(platform, ports, demand)?;
    }
    Ok(rates)
}

/// The best rates of these routes alone, without a proof.
pub(super) fn rates_of_routes(
    platform: &Platform,
    ports: Ports,
    demand: &Wanted,
    routes: &[Route],
) -> Result<Rates> {
    let unit = platform.unit();
    let platform = platform.in_units_of(&unit);
    let mut rows = Rows::new(&platform, ports, demand, SolveMethod::Ports);
    rows.only = Some(routes);
    let (optimum, slots) = rows.within_ports()?;
    Ok(Rates::of(optimum, slots, None).per(&unit))
}

impl Rates {
    fn of(
        optimum: Optimum<ColumnActivity>,
        slots: Vec<Slot>,
        certificate: Option<Certificate>,
    ) -> Rates {
        Rates {
            certificate,
            routes: used_routes(&optimum)
                .map(|(r, rate)| (r.clone(), rate))
                .collect(),
            throughput: optimum.value,
            slots,
        }
    }

    fn per(mut self, unit: &Fraction) -> Rates {
        self.throughput /= unit;
        for (_, rate) in &mut self.routes {
            *rate /= unit;
        }
        self.certificate = self.certificate.map(|c| c.per(unit));
        self
    }
}

/// Computes the best rates for a platform whose costs are in units of the smallest one. The
/// floating-point search then takes the same course whatever unit of time the costs were given in.
fn rates_in_units(
    platform: &Platform,
    ports: Ports,
    demand: &Wanted,
    method: SolveMethod,
) -> Result<Rates> {
    let mut rows = Rows::new(platform, ports, demand, method);
    let (optimum, slots) = if rows.matchings {
        let mut bounds = vec![Fraction::ZERO; rows.costs.len()];
        bounds.push(whole(1));
        let optimum = maximise(&bounds, rows.start()?, &mut rows)?;
        let slots = optimum
            .used
            .iter()
            .filter_map(|(label, share)| match label {
                ColumnActivity::Route(_) => None,
                ColumnActivity::Slot(edges) => Some(Slot::new(edges.clone(), share.clone())),
            });
        let loads = rows.graph.loads(used_routes(&optimum));
        let slots = trimmed(slots.collect(), &loads);
        (optimum, slots)
    } else {
        rows.within_ports()?
    };
    let certificate = rows.certificate(&optimum.value, &optimum.prices);
    Ok(Rates::of(optimum, slots, certificate))
}

fn used_routes(optimum: &Optimum<ColumnActivity>) -> impl Iterator<Item = (&Route, Fraction)> {
    optimum.used.iter().filter_map(|(label, rate)| match label {
        ColumnActivity::Route(route) => Some((route, rate.clone())),
        ColumnActivity::Slot(_) => None,
    })
}

/// Limit of the rounds that add odd sets; more than any platform needs.
const MAX_ROUNDS: usize = 1000;

impl<'a> Rows<'a> {
    fn new(
        platform: &'a Platform,
        ports: Ports,
        demand: &'a Wanted,
        method: SolveMethod,
    ) -> Rows<'a> {
        let computing = demand.combining.is_some() && platform.computes();
        let graph = PortGraph::new(platform, ports, computing);
        Rows {
            platform,
            demand,
            matchings: method == SolveMethod::Matchings,
            odd_sets: Vec::new(),
            costs: graph.costs.iter().map(to_finite).collect(),
            whole_costs: over_common(&graph.costs).0,
            graph,
            only: None,
        }
    }
}

impl Rows<'_> {
    fn within_ports(&mut self) -> Result<(Optimum<ColumnActivity>, Vec<Slot>)> {
        let mut columns = self.start()?;
        for _ in 0..MAX_ROUNDS {
            let mut bounds = vec![whole(1); self.graph.len()];
            let sets = self.odd_sets.iter();
            bounds.extend(sets.map(|s| whole((s.len() - 1) / 2)));
            let optimum = maximise(&bounds, columns, self)?;
            let loads = self.graph.loads(used_routes(&optimum));
            if self.graph.relays {
                return Ok((optimum, bipartite_slots(&self.graph, &loads)));
            }
            let mut new = violated_sets(&self.graph, &loads);
            if new.is_empty() {
                match general_slots(&self.graph, &loads, &self.odd_sets)? {
                    Slotted::Fits(slots) => return Ok((optimum, slots)),
                    Slotted::Violates(sets) => new = sets,
                }
            }
            new.retain(|s| !self.odd_sets.contains(s));
            if new.is_empty() {
                break;
            }
            self.odd_sets.extend(new);
            columns = used_routes(&optimum)
                .map(|(r, _)| self.route_column(r.clone()))
                .collect();
        }
        Err(Error::system("the search for odd sets did not end"))
    }

    /// Returns the rows that the column of an edge has entries in.
    fn rows_of(&self, edge: usize) -> Vec<usize> {
        if self.matchings {
            return vec![edge];
        }
        let (out, into) = self.graph.links()[edge];
        let mut rows = vec![out, into];
        for (i, set) in self.odd_sets.iter().enumerate() {
            if set.contains(&out) && set.contains(&into) {
                rows.push(self.graph.len() + i);
            }
        }
        rows
    }

    /// Returns the first columns: the cheapest route when the price of each edge is its cost and,
    /// in the form with matchings, a matching of each single edge.
    fn start(&self) -> Result<Vec<Column<ColumnActivity>>> {
        if let Some(routes) = self.only {
            return Ok(routes
                .iter()
                .map(|route| self.route_column(route.clone()))
                .collect());
        }
        let Some(route) = self.demand.cheapest(self.platform, &self.costs) else {
            return Err(Error::malformed("platform: a target cannot be reached"));
        };
        let mut columns = vec![self.route_column(route)];
        if self.matchings {
            let edges = 0..self.costs.len();
            columns.extend(edges.map(|e| self.slot_column(vec![e])));
        }
        Ok(columns)
    }

    fn route_column(&self, route: Route) -> Column<ColumnActivity> {
        let mut entries: Vec<(usize, Fraction)> = Vec::new();
        for (e, messages) in route.activities(self.graph.edges) {
            let load = match self.graph.costs.get(e) {
                Some(cost) if !cost.is_zero() => cost * whole(messages),
                _ => continue,
            };
            entries.extend(self.rows_of(e).into_iter().map(|row| (row, load.clone())));
        }
        Column::new(whole(1), added(entries), ColumnActivity::Route(route))
    }

    fn slot_column(&self, edges: Vec<usize>) -> Column<ColumnActivity> {
        let mut entries: Vec<(usize, Fraction)> = edges.iter().map(|&e| (e, -whole(1))).collect();
        entries.push((self.costs.len(), whole(1)));
        Column::new(Fraction::ZERO, entries, ColumnActivity::Slot(edges))
    }

    fn edge_prices<P: Clone + Default + std::ops::Add<Output = P>>(&self, prices: &[P]) -> Vec<P> {
        let price = |e: usize| {
            let rows = self.rows_of(e).into_iter();
            rows.fold(P::default(), |sum, row| sum + prices[row].clone())
        };
        (0..self.costs.len()).map(price).collect()
    }

    /// Builds the certificate from the prices of the rows. Absent where routes are not priced
    /// exactly.
    fn certificate(&self, value: &Fraction, prices: &[Fraction]) -> Option<Certificate> {
        let demand = self.demand;
        if !demand.is_exact(self.platform.nodes()) {
            return None;
        }
        let edge_prices = self.edge_prices(prices);
        let (ports, odd_sets) = if self.matchings {
            self.covering_prices(&edge_prices)
        } else {
            let (ports, sets) = prices.split_at(self.graph.len());
            let sets = self.odd_sets.iter().cloned().zip(sets.iter().cloned());
            (ports.to_vec(), sets.collect())
        };
        let costs = self.graph.costs.iter();
        let weights: Vec<Fraction> = edge_prices.iter().zip(costs).map(|(p, c)| p * c).collect();
        let below = common_denominator(&weights);
        let weights: Vec<IBig> = weights.iter().map(|w| scaled(w, &below)).collect();
        let below = Fraction::from(below);
        let roots = demand.roots.iter().zip(&demand.targets);
        let proofs = roots.map(|(&root, targets)| self.proof(root, targets, &weights, &below));
        Some(Certificate {
            bound: value.clone(),
            ports,
            odd_sets,
            roots: proofs.collect::<Option<Vec<_>>>()?,
            prices: edge_prices,
        })
    }

    /// Returns the cheapest prices of ports and odd sets that cover those of the edges: the dual of
    /// a heaviest matching.
    fn covering_prices(
        &self,
        edge_prices: &[Fraction],
    ) -> (Vec<Fraction>, Vec<(Vec<usize>, Fraction)>) {
        let (scaled, below) = over_common(edge_prices);
        let found = maximum(self.graph.len(), &self.graph.weights(&scaled));
        let twice = Fraction::from(below * UBig::from(2u8));
        let of = |w: IBig| Fraction::from(w) / &twice;
        let sets = found.twice_odd.into_iter().map(|(s, w)| (s, of(w)));
        let ports = found.twice_prices.into_iter().map(of);
        (ports.collect(), sets.collect())
    }

    /// Builds the proof of what the messages of one root cost at least. The costs of the activities
    /// are `weights / below`.
    fn proof(
        &self,
        root: usize,
        targets: &[usize],
        weights: &[IBig],
        below: &Fraction,
    ) -> Option<Proof> {
        let (platform, nodes) = (self.platform, self.platform.nodes());
        let (weights, computing) = weights.split_at(platform.edges().len());
        let partial = |partials: &PartialResults, platform: &Platform, weights: &[IBig]| {
            let table = partials.table(platform, weights, computing).costs;
            let all = table.iter().flatten().flatten();
            let most = all.max().cloned().unwrap_or_default();
            let rows = table.into_iter().map(|row| finite(row, &most, below));
            Some(Proof::Partial(rows.collect()))
        };
        if let Some(Combining::Partial(partials)) = &self.demand.combining {
            partial(partials, platform, weights)
        } else if self.demand.personal {
            let far = shortest_paths(platform, weights, root).1;
            let most = far.iter().flatten().max().cloned().unwrap_or_default();
            Some(Proof::Potentials(finite(far, &most, below)))
        } else if targets.len() + 1 != nodes {
            let (turned, _, weights) = platform.turned(weights);
            partial(&PartialResults::of_targets(targets), &turned, &weights)
        } else {
            let cuts = arborescence(nodes, root, &platform.ends(), weights)?.cuts;
            let cuts = cuts.into_iter();
            let cuts = cuts.map(|(s, w)| (s, Fraction::from(w) / below));
            Some(Proof::Cuts(cuts.collect()))
        }
    }
}

/// Divides distances by `below`. Unreachable nodes are no targets, so they take the largest
/// distance `most`, which no edge contradicts.
fn finite(far: Vec<Option<IBig>>, most: &IBig, below: &Fraction) -> Vec<Fraction> {
    let far = far.into_iter().map(|d| d.unwrap_or_else(|| most.clone()));
    far.map(|d| Fraction::from(d) / below).collect()
}

impl Rows<'_> {
    /// The column of a cheap route, if it is one that `improves`.
    fn quick<W: Weight>(
        &self,
        weights: &[W],
        improves: impl FnOnce(&Column<ColumnActivity>) -> bool,
    ) -> Option<Column<ColumnActivity>> {
        let route = (!self.matchings).then(|| self.demand.cheap(self.platform, weights))??;
        Some(self.route_column(route)).filter(improves)
    }

    /// The columns of the cheapest route under these weights of the edges, and of a matching.
    fn columns<W: Weight>(
        &self,
        weights: impl Iterator<Item = W>,
        matching: impl FnOnce() -> Vec<usize>,
    ) -> Vec<Column<ColumnActivity>> {
        let weights: Vec<W> = weights.collect();
        let route = self.demand.cheapest(self.platform, &weights);
        let route = route.map(|route| self.route_column(route));
        let matching = self.matchings.then(|| self.slot_column(matching()));
        route.into_iter().chain(matching).collect()
    }
}

impl Pricing<ColumnActivity> for Rows<'_> {
    fn improve(&mut self, prices: &[f64]) -> Vec<Column<ColumnActivity>> {
        if self.only.is_some() {
            return Vec::new();
        }
        let of_rows = prices;
        let prices = self.edge_prices(prices);
        let weights = prices.iter().zip(&self.costs).map(|(p, c)| p * c);
        let quick = self.quick(&weights.clone().collect::<Vec<_>>(), |column| {
            let cost = column
                .entries
                .iter()
                .map(|(row, a)| to_finite(a) * of_rows[*row]);
            cost.sum::<f64>() < 1.0 - 1e-6
        });
        if let Some(column) = quick {
            return vec![column];
        }
        self.columns(weights, || self.graph.heaviest(&rounded(&prices)))
    }

    fn improve_exactly(&mut self, prices: &[IBig], below: &UBig) -> Vec<Column<ColumnActivity>> {
        if self.only.is_some() {
            return Vec::new();
        }
        let of_rows = prices;
        let prices = self.edge_prices(prices);
        let weights = prices.iter().zip(&self.whole_costs).map(|(p, c)| p * c);
        let quick = self.quick(&weights.clone().collect::<Vec<_>>(), |column| {
            let below = Fraction::from(below.clone());
            let price = |row: usize| Fraction::from(of_rows[row].clone()) / &below;
            let cost = column.entries.iter().map(|(row, a)| a * price(*row));
            sum(cost) < whole(1)
        });
        if let Some(column) = quick {
            return vec![column];
        }
        self.columns(weights, || self.graph.heaviest(&prices))
    }
}
