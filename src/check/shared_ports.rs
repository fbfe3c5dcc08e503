//! Stage 1, on ports that ranks share: the ports of a node carry all that crosses its border.

use std::collections::{BTreeMap, HashMap};

use super::finding::{Finding, FindingKind, Findings};
use super::named;
use crate::schedule::{Schedule, SharedPort, Step};

pub(super) fn check(schedule: &Schedule, findings: &mut Findings) {
    let mut nodes: BTreeMap<Vec<usize>, Vec<&SharedPort>> = BTreeMap::new();
    for port in schedule.shared_ports() {
        let mut ranks = port.ranks.clone();
        ranks.sort_unstable();
        nodes.entry(ranks).or_default().push(port);
    }
    for (ranks, ports) in nodes {
        SharingNode { ranks, ports }.check(schedule, findings);
    }
}

struct SharingNode<'s> {
    /// Sorted.
    ranks: Vec<usize>,
    ports: Vec<&'s SharedPort>,
}

impl SharingNode<'_> {
    fn check(&self, schedule: &Schedule, findings: &mut Findings) {
        // By rank and step: how many of the ports list it.
        let mut listed: HashMap<(usize, usize), usize> = HashMap::new();
        for port in &self.ports {
            for &(rank, i) in &port.steps {
                let step = &schedule.programs()[rank][i];
                if self.has(rank) && port.serves(step, |peer| self.has(peer)) {
                    *listed.entry((rank, i)).or_default() += 1;
                } else {
                    findings.push(|| self.foreign(port, rank, i, step));
                }
            }
        }
        for &rank in &self.ranks {
            for (i, step) in schedule.programs()[rank].iter().enumerate() {
                let serving = || {
                    let ports = self.ports.iter();
                    ports.filter(|port| port.serves(step, |peer| self.has(peer)))
                };
                let uses = listed.get(&(rank, i)).copied().unwrap_or(0);
                if uses == 1 || serving().next().is_none() {
                    continue;
                }
                findings.push(|| {
                    let names: Vec<_> = serving().map(|port| port.name.as_str()).collect();
                    let found = match uses {
                        0 => "none".to_string(),
                        n => n.to_string(),
                    };
                    let message = format!(
                        "rank {rank}, step {i} ({}): {} its node through {found} of its ports ({}) instead of one",
                        named(step),
                        crossing(step),
                        names.join(", "),
                    );
                    Finding {
                        expected: Some("one of the node's ports".to_string()),
                        found: Some(found),
                        ..Finding::at(FindingKind::SharedPort, rank, i, step, message)
                    }
                });
            }
        }
    }

    fn has(&self, rank: usize) -> bool {
        self.ranks.binary_search(&rank).is_ok()
    }

    /// The finding that a step is listed that does not use the port.
    fn foreign(&self, port: &SharedPort, rank: usize, i: usize, step: &Step) -> Finding {
        let why = if !self.has(rank) {
            format!("rank {rank} is not of its node")
        } else if step.peer().is_some_and(|peer| self.has(peer)) {
            "the message stays within its node".to_string()
        } else {
            format!("the message {} its node", crossing(step))
        };
        let message = format!(
            "rank {rank}, step {i} ({}): is listed on shared port {:?}, but {why}",
            named(step),
            port.name,
        );
        Finding::at(FindingKind::SharedPort, rank, i, step, message)
    }
}

fn crossing(step: &Step) -> &'static str {
    if step.is_send() { "leaves" } else { "enters" }
}
