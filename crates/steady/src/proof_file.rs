//! The certificate of a throughput as a JSON file, with all that it is checked against.

use serde_json::{Value, json};

use super::certificate::{Certificate, Proof};
use super::demand::Combining;
use super::fraction::Fraction;
use super::partial_results::PartialResults;
use super::problem::Solution;

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
        });
        Some(format!("{file:#}\n"))
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
