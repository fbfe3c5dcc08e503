//! The certificate of a throughput as a JSON file, with all that it is checked against, and the
//! check of such a file.

use serde::Deserialize;
use serde_json::{Value, json};

use super::certificate::{Certificate, Proof};
use super::demand::Combining;
use super::fraction::{Fraction, parse_fraction};
use super::partial_results::PartialResults;
use super::platform::Platform;
use super::ports::Slot;
use super::problem::{Operation, Solution};
use super::route::{Arborescence, Route, Task, TaskGraph};
use oneport::error::{Error, Result};
use oneport::internal::json_object;
use oneport::machine::Ports;

impl Solution {
    /// The certificate as JSON, so that anybody can check it with fractions, sums and comparisons
    /// alone; `None` where there is none. The page of the command `steady` has the inequalities.
    pub fn certificate_json(&self) -> Option<String> {
        let certificate = self.certificate.as_ref()?;
        let demand = self.operation.demand(&self.platform).ok()?;
        let (edges, graph) = (self.platform.edges(), self.port_graph());
        let prices = edges.iter().zip(&certificate.prices).map(|(edge, price)| {
            json!({
                "src": edge.src, "dst": edge.dst,
                "cost": edge.cost.to_string(), "price": price.to_string(),
            })
        });
        let combining = graph
            .costs
            .iter()
            .zip(&certificate.prices)
            .skip(edges.len());
        let combining = combining
            .map(|(cost, price)| json!({ "cost": cost.to_string(), "price": price.to_string() }));
        let links = graph.links().iter().map(|&(a, b)| [a, b]);
        let partials = |targets: &[usize]| match &demand.combining {
            Some(Combining::Partial(partials)) => partials.clone(),
            _ => PartialResults::of_targets(targets),
        };
        let roots = demand
            .roots
            .iter()
            .zip(&demand.targets)
            .zip(&certificate.roots);
        let roots = roots.map(|((root, targets), proof)| {
            let (kind, values) = proof_json(proof, || partials(targets));
            json!({ "root": root, "targets": targets, kind: values })
        });
        let file = json!({
            "collective": self.operation.name(),
            "ports": self.ports.name(),
            // The links of a reversed platform lead from the end of each link to its start.
            "reversed": self.is_reversed(),
            "nodes": self.platform.nodes(),
            "bound": certificate.bound.to_string(),
            "links": prices.collect::<Vec<_>>(),
            // By node, where combining takes time.
            "combining": combining.collect::<Vec<_>>(),
            // By link, then by combining node: the two ports that it keeps busy.
            "ports_of": links.collect::<Vec<_>>(),
            "port_prices": texts(&certificate.ports),
            "odd_sets": odd_sets(certificate),
            "roots": roots.collect::<Vec<_>>(),
            // What reaches the throughput, with links and combining nodes by number.
            "throughput": self.throughput.to_string(),
            "routes": self.routes.iter().map(route_json).collect::<Vec<_>>(),
            "matchings": self.slots.iter().map(|slot| json!({
                "share": slot.share.to_string(), "activities": slot.edges,
            })).collect::<Vec<_>>(),
            "platform": serde_json::from_str::<Value>(&self.platform.to_json()).ok()?,
        });
        Some(format!("{file:#}\n"))
    }
}

fn route_json((route, rate): &(Route, Fraction)) -> Value {
    let trees = route
        .trees
        .iter()
        .map(|tree| json!({ "root": tree.root, "links": tree.edges, "messages": tree.messages }));
    let tasks = route.task_graph.tasks.iter().map(|task| match *task {
        Task::Move { edge, value } => json!({ "link": edge, "value": value }),
        Task::Combine { node, left, right } => json!({ "node": node, "of": [left, right] }),
    });
    json!({
        "rate": rate.to_string(),
        "trees": trees.collect::<Vec<_>>(),
        // Contributions come first, by node, then what the tasks produce.
        "contributions": route.task_graph.owners,
        "tasks": tasks.collect::<Vec<_>>(),
        "results": route.task_graph.results,
    })
}

/// A number as a text.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Exact(Fraction);

impl TryFrom<String> for Exact {
    type Error = String;

    fn try_from(text: String) -> Result<Exact, String> {
        let number = parse_fraction(&text);
        number
            .map(Exact)
            .ok_or_else(|| format!("'{text}' is not a number that can be read"))
    }
}

fn numbers(values: Vec<Exact>) -> Vec<Fraction> {
    values.into_iter().map(|value| value.0).collect()
}

/// What a check reads of the file. The rest of it follows from that.
#[derive(Deserialize)]
struct ProofFile {
    collective: String,
    ports: String,
    bound: Exact,
    links: Vec<ReadPrice>,
    combining: Vec<ReadPrice>,
    port_prices: Vec<Exact>,
    odd_sets: Vec<ReadSet>,
    roots: Vec<ReadRoot>,
    throughput: Exact,
    routes: Vec<ReadRoute>,
    matchings: Vec<ReadMatching>,
    platform: Value,
}

#[derive(Deserialize)]
struct ReadPrice {
    price: Exact,
}

#[derive(Deserialize)]
struct ReadSet {
    ports: Vec<usize>,
    price: Exact,
}

#[derive(Deserialize)]
struct ReadRoot {
    cuts: Option<Vec<ReadCut>>,
    potentials: Option<Vec<Exact>>,
    partial_results: Option<ReadPartials>,
}

#[derive(Deserialize)]
struct ReadCut {
    nodes: Vec<usize>,
    value: Exact,
}

#[derive(Deserialize)]
struct ReadPartials {
    rows: Vec<ReadPartial>,
}

#[derive(Deserialize)]
struct ReadPartial {
    costs: Vec<Exact>,
}

#[derive(Deserialize)]
struct ReadRoute {
    rate: Exact,
    trees: Vec<ReadTree>,
    contributions: Vec<usize>,
    tasks: Vec<ReadTask>,
    results: Vec<usize>,
}

#[derive(Deserialize)]
struct ReadTree {
    root: usize,
    links: Vec<usize>,
    messages: Vec<usize>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ReadTask {
    Move { link: usize, value: usize },
    Combine { node: usize, of: [usize; 2] },
}

#[derive(Deserialize)]
struct ReadMatching {
    share: Exact,
    activities: Vec<usize>,
}

impl Solution {
    /// Reads the file of a certificate and checks all of it, with sums and comparisons of exact
    /// numbers alone: that routes and matchings reach the throughput, and that no schedule is
    /// faster than the bound. Nothing is solved.
    ///
    /// # Errors
    /// [`ErrorKind::Wrong`](oneport::ErrorKind::Wrong) with what does not hold, and where the file
    /// says something else about the platform than the platform in it; other kinds if it is no such
    /// file.
    pub fn checked(text: &str) -> Result<Solution> {
        let fields = "platform, collective, ports and throughput";
        let file: Value = json_object("certificate", fields, text)?;
        let read: ProofFile = json_object("certificate", fields, text)?;
        let operation = Operation::ALL
            .into_iter()
            .find(|o| o.name() == read.collective);
        let ports = Ports::named(&read.ports).filter(|ports| ports.waits_by_list());
        let (Some(operation), Some(ports)) = (operation, ports) else {
            return Err(Error::malformed("certificate: unknown collective or ports"));
        };
        let solution = Solution {
            operation,
            ports,
            throughput: read.throughput.0,
            routes: read.routes.into_iter().map(ReadRoute::route).collect(),
            slots: read.matchings.into_iter().map(ReadMatching::slot).collect(),
            certificate: Some(Certificate {
                bound: read.bound.0,
                prices: (read.links.into_iter().chain(read.combining))
                    .map(|link| link.price.0)
                    .collect(),
                ports: numbers(read.port_prices),
                odd_sets: (read.odd_sets.into_iter())
                    .map(|set| (set.ports, set.price.0))
                    .collect(),
                roots: (read.roots.into_iter())
                    .map(ReadRoot::proof)
                    .collect::<Option<_>>()
                    .ok_or_else(|| Error::malformed("certificate: a root has no proof"))?,
            }),
            is_optimal: true,
            all_searched: false,
            platform: Platform::parse(&read.platform.to_string())?,
        };
        solution.verify()?;
        let written = solution.certificate_json().unwrap_or_default();
        if serde_json::from_str::<Value>(&written).ok() != Some(file) {
            return Err(Error::wrong(
                "certificate: the file says something else than its platform, routes and prices",
            ));
        }
        Ok(solution)
    }
}

impl ReadRoot {
    fn proof(self) -> Option<Proof> {
        match (self.cuts, self.potentials, self.partial_results) {
            (Some(cuts), None, None) => {
                let cuts = cuts.into_iter().map(|cut| (cut.nodes, cut.value.0));
                Some(Proof::Cuts(cuts.collect()))
            }
            (None, Some(far), None) => Some(Proof::Potentials(numbers(far))),
            (None, None, Some(partials)) => {
                let rows = partials.rows.into_iter().map(|row| numbers(row.costs));
                Some(Proof::Partial(rows.collect()))
            }
            _ => None,
        }
    }
}

impl ReadRoute {
    fn route(self) -> (Route, Fraction) {
        let trees = self.trees.into_iter().map(|tree| Arborescence {
            root: tree.root,
            edges: tree.links,
            messages: tree.messages,
        });
        let tasks = self.tasks.into_iter().map(|task| match task {
            ReadTask::Move { link: edge, value } => Task::Move { edge, value },
            ReadTask::Combine {
                node,
                of: [left, right],
            } => Task::Combine { node, left, right },
        });
        let route = Route {
            trees: trees.collect(),
            task_graph: TaskGraph {
                owners: self.contributions,
                tasks: tasks.collect(),
                results: self.results,
            },
        };
        (route, self.rate.0)
    }
}

impl ReadMatching {
    fn slot(self) -> Slot {
        Slot::new(self.activities, self.share.0)
    }
}

fn texts<'a>(values: impl IntoIterator<Item = &'a Fraction>) -> Vec<String> {
    values.into_iter().map(Fraction::to_string).collect()
}

fn odd_sets(certificate: &Certificate) -> Vec<Value> {
    let sets = certificate.odd_sets.iter();
    sets.map(|(ports, price)| json!({ "ports": ports, "price": price.to_string() }))
        .collect()
}

/// The name of the proof's kind, and its numbers.
fn proof_json(proof: &Proof, partials: impl Fn() -> PartialResults) -> (&'static str, Value) {
    match proof {
        Proof::Cuts(cuts) => {
            let cuts = cuts.iter();
            let cuts =
                cuts.map(|(nodes, value)| json!({ "nodes": nodes, "value": value.to_string() }));
            ("cuts", cuts.collect())
        }
        Proof::Potentials(far) => ("potentials", json!(texts(far))),
        Proof::Partial(table) => {
            let partials = partials();
            let rows = partials
                .splits()
                .into_iter()
                .zip(table)
                .map(|(made_of, costs)| json!({ "made_of": made_of, "costs": texts(costs) }));
            let single = (0..partials.owners.len()).map(|i| partials.single(i));
            let own: Vec<(usize, usize)> = single.zip(partials.owners.iter().copied()).collect();
            let rows: Vec<Value> = rows.collect();
            (
                "partial_results",
                json!({ "single": own, "all": partials.all(), "rows": rows }),
            )
        }
    }
}
