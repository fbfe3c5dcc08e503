//! Stage 3: finds steps that wait for each other in a cycle.
//!
//! The dependencies are those of the precedence graph. Nodes that a work-list cannot reach
//! are stuck, and a walk along stuck nodes always ends in a cycle. Unmatched steps count as
//! finished, so steps that only wait behind them are not reported.

use std::collections::{HashMap, HashSet, VecDeque};

use super::finding::{Findings, Waiting};
use super::{Finding, FindingKind, named};
use crate::machine::Ports;
use crate::machine::numbers::id;
use crate::rules::matching::{Matching, NONE};
use crate::rules::{Event, Graph, LocalOrder, OrderScratch, share_port};
use crate::schedule::{Schedule, SharedPort, Step};

/// A precedence graph with nodes that never run.
pub(super) struct Stuck<'a> {
    pub(super) schedule: &'a Schedule,
    pub(super) ports: Ports,
    pub(super) overlap: bool,
    pub(super) matching: &'a Matching,
    pub(super) graph: &'a Graph,
    /// By node: the number of nodes it waits for that never run.
    pub(super) missing: &'a [u32],
}

/// One step of a rank that waits for another step, of the same rank or on a shared port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WaitLink {
    rank: usize,
    step: usize,
    waits_for: Event,
    /// Whether the transfer part of the step waits, as opposed to the combining part.
    transfer: bool,
    /// If it waits on a shared port: the rank of the step before it, and the number of the port.
    shared: Option<(usize, usize)>,
}

impl Stuck<'_> {
    pub(super) fn report(&self, findings: &mut Findings) {
        let by_ports = self.completes_with_ports();
        let mut owners = None;
        let mut seen = HashSet::new();
        for cycle in self.cycles() {
            if findings.is_full() {
                findings.count();
                continue;
            }
            let cycle = self.shortened(&cycle);
            let mut key = cycle.clone();
            key.sort_unstable();
            if !seen.insert(key) {
                continue;
            }
            let owners = owners.get_or_insert_with(|| self.owners());
            let links = self.links(&cycle, owners);
            self.push_findings(&links, by_ports, findings);
        }
    }

    /// `by_ports` says whether more ports of the same kind, or one of each kind, would resolve the
    /// cycles.
    fn push_findings(&self, links: &[WaitLink], by_ports: bool, findings: &mut Findings) {
        let shared = links
            .iter()
            .filter(|l| by_ports && self.only_shares_port(l));
        let shared: Vec<_> = shared.collect();
        for link in &shared {
            findings.push(|| self.two_ports(link, links));
        }
        if shared.is_empty() {
            findings.push(|| self.deadlock(links));
        }
    }

    /// Whether the schedule would complete with more ports: one out and one in, or a separate port
    /// for each of a rank's transfers (up to a fixed number, used in turn).
    fn completes_with_ports(&self) -> bool {
        let bidirectional = Ports::BI.with_k(self.ports.k());
        if !self.ports.can_relay() && self.completes(self.schedule, bidirectional) {
            return true;
        }
        const MANY: usize = 16;
        let programs = self.schedule.programs().iter().map(|program| {
            let mut next = 0;
            program
                .iter()
                .map(|step| {
                    next += usize::from(step.peer().is_some());
                    step.clone().on_port(next % MANY)
                })
                .collect()
        });
        let ports = bidirectional.with_k(MANY);
        Schedule::new(
            ports,
            self.schedule.collective().clone(),
            self.schedule.layout().to_vec(),
            programs.collect(),
        )
        .and_then(|relaxed| relaxed.with_shared_ports(self.schedule.shared_ports().to_vec()))
        .is_ok_and(|relaxed| self.completes(&relaxed, ports))
    }

    fn completes(&self, schedule: &Schedule, ports: Ports) -> bool {
        Graph::new(schedule, ports, self.overlap, self.matching)
            .is_ok_and(|g| g.order().order.len() == g.nodes.len())
    }

    /// Disjoint cycles. Every stuck node points to the first stuck node it waits for, and each walk
    /// along these pointers ends in a cycle.
    fn cycles(&self) -> Vec<Vec<u32>> {
        let mut walk_of = vec![0u32; self.graph.nodes.len()];
        let mut cycles = Vec::new();
        let mut walk = 0;
        for start in 0..self.graph.nodes.len() {
            if self.missing[start] == 0 || walk_of[start] != 0 {
                continue;
            }
            walk += 1;
            let mut path = vec![];
            let mut at = start;
            while walk_of[at] == 0 {
                walk_of[at] = walk;
                path.push(id(at));
                match self.stuck_waits(at).next() {
                    Some(next) => at = next as usize,
                    None => break,
                }
            }
            if walk_of[at] == walk {
                let first = path.iter().position(|&n| n as usize == at);
                cycles.push(path.split_off(first.unwrap_or(0)));
            }
        }
        cycles
    }

    fn stuck_waits(&self, node: usize) -> impl Iterator<Item = u32> {
        let waits = self.graph.waits(node).map(id);
        waits.filter(|&w| self.missing[w as usize] > 0)
    }

    /// A shortest cycle through the first node of `cycle`.
    fn shortened(&self, cycle: &[u32]) -> Vec<u32> {
        let first = cycle[0];
        let mut before: HashMap<u32, u32> = HashMap::new();
        let mut queue = VecDeque::from([first]);
        while let Some(node) = queue.pop_front() {
            for next in self.stuck_waits(node as usize) {
                if next == first {
                    let mut path = vec![node];
                    while let Some(&b) = before.get(&path[path.len() - 1]) {
                        path.push(b);
                    }
                    path.reverse();
                    return path;
                }
                before.entry(next).or_insert_with(|| {
                    queue.push_back(next);
                    node
                });
            }
        }
        cycle.to_vec()
    }

    /// By node: the step of its receiving (or only) rank and the step of its sending rank.
    fn owners(&self) -> Vec<[Option<(usize, usize)>; 2]> {
        let mut owners = vec![[None, None]; self.graph.nodes.len()];
        for (rank, program) in self.schedule.programs().iter().enumerate() {
            for (i, step) in program.iter().enumerate() {
                for event in [Event::transferred(i), Event::computed(i)] {
                    let node = self.node(rank, event);
                    if node != NONE {
                        owners[node as usize][usize::from(step.is_send())] = Some((rank, i));
                    }
                }
            }
        }
        owners
    }

    fn node(&self, rank: usize, event: Event) -> u32 {
        self.graph.event_nodes[self.graph.rank_events[rank] + event.index()]
    }

    /// The steps through which each node of the cycle waits for the next one, starting with the
    /// lowest rank.
    fn links(&self, cycle: &[u32], owners: &[[Option<(usize, usize)>; 2]]) -> Vec<WaitLink> {
        let mut orders: HashMap<usize, LocalOrder> = HashMap::new();
        let mut scratch = OrderScratch::default();
        let mut links: Vec<WaitLink> = Vec::new();
        let ports = self.schedule.shared_ports();
        for (i, &node) in cycle.iter().enumerate() {
            let next = cycle[(i + 1) % cycle.len()];
            for (rank, step) in owners[node as usize].iter().flatten().copied() {
                let order = orders.entry(rank).or_insert_with(|| {
                    let mut order = LocalOrder::default();
                    let program = &self.schedule.programs()[rank];
                    // Building the graph has analysed the same program without an error.
                    let _ = order.analyse(program, self.ports, self.overlap, &mut scratch);
                    order
                });
                let second = self.schedule.programs()[rank][step].peer().is_some()
                    && self.node(rank, Event::computed(step)) == node;
                let waits = if second {
                    order.before_compute(step)
                } else {
                    order.before_start(step)
                };
                let own = waits.iter().find(|&&e| self.node(rank, e) == next);
                let own = own.map(|&event| (event, None));
                let shared = || self.shared_wait(ports, (rank, step), next);
                let found = own.or_else(|| if second { None } else { shared() });
                if let Some((waits_for, shared)) = found {
                    links.push(WaitLink {
                        rank,
                        step,
                        waits_for,
                        transfer: !second,
                        shared,
                    });
                    break;
                }
            }
        }
        let first = (0..links.len()).min_by_key(|&i| (links[i].rank, links[i].step));
        links.rotate_left(first.unwrap_or(0));
        links
    }

    /// The wait of a step for node `next` on a shared port: the event, its rank and the port.
    fn shared_wait(
        &self,
        ports: &[SharedPort],
        listed: (usize, usize),
        next: u32,
    ) -> Option<(Event, Option<(usize, usize)>)> {
        ports.iter().enumerate().find_map(|(number, port)| {
            let place = port.steps.iter().position(|&step| step == listed)?;
            let (rank, step) = port.steps[place.checked_sub(1)?];
            let event = Event::transferred(step);
            (self.node(rank, event) == next).then_some((event, Some((rank, number))))
        })
    }

    fn step(&self, rank: usize, index: usize) -> &Step {
        &self.schedule.programs()[rank][index]
    }

    /// Whether both steps are transfers that conflict only through their port: neither step
    /// accesses an element that the other one writes.
    fn only_shares_port(&self, link: &WaitLink) -> bool {
        if link.shared.is_some() {
            // The step that it waits for is another rank's.
            return false;
        }
        let (later, earlier) = (
            self.step(link.rank, link.step),
            self.step(link.rank, link.waits_for.step()),
        );
        let overlaps = |a: &Step, b: &Step| {
            a.writes().iter().any(|w| {
                let mut touched = b.reads().iter().chain(b.writes());
                touched.any(|s| s.overlaps(*w))
            })
        };
        link.transfer
            && !link.waits_for.is_computed()
            && share_port(self.ports, earlier, later)
            && !overlaps(later, earlier)
            && !overlaps(earlier, later)
    }

    fn two_ports(&self, link: &WaitLink, links: &[WaitLink]) -> Finding {
        let WaitLink { rank, step, .. } = *link;
        let earlier = link.waits_for.step();
        let (a, b) = (self.step(rank, earlier), self.step(rank, step));
        let port = b.port().unwrap_or(0);
        let which = if self.ports.k() == 1 {
            "its one port".to_string()
        } else {
            format!("port {port}")
        };
        let side = match (self.ports.has_kinds(), a.is_send(), b.is_send()) {
            (true, true, true) => " out",
            (true, false, false) => " in",
            _ => "",
        };
        let message = format!(
            "rank {rank} needs two ports at once: step {earlier} ({}) and step {step} ({}) wait for each other, but share {which}{side}",
            named(a),
            named(b)
        );
        Finding {
            expected: Some(format!(
                "transfers that fit a {}-ported {} rank",
                self.ports.k(),
                self.ports.adjective()
            )),
            found: Some(format!("steps {earlier} and {step} at once")),
            cycle: self.waiting(links),
            ..Finding::at(FindingKind::TwoPorts, rank, step, b, message)
        }
    }

    fn deadlock(&self, links: &[WaitLink]) -> Finding {
        const MAX: usize = 8;
        let cycle = self.waiting(links);
        let mut words: Vec<String> = cycle
            .iter()
            .take(MAX)
            .map(|w| {
                let whose = w.waits_for_rank.map(|rank| format!("rank {rank}'s"));
                let on = w.shared_port.as_ref().map(|name| format!(" on {name:?}"));
                format!(
                    "rank {} step {} ({}) waits for {} step {} ({}){}",
                    w.rank,
                    w.step,
                    w.what,
                    whose.as_deref().unwrap_or("its"),
                    w.waits_for_step,
                    w.waits_for,
                    on.unwrap_or_default()
                )
            })
            .collect();
        if cycle.len() > MAX {
            words.push(format!(
                "and so on, through {} steps back to the first",
                cycle.len()
            ));
        }
        let message = format!("deadlock: {}", words.join("; "));
        let finding = match links.first() {
            None => Finding::of(FindingKind::Deadlock, message),
            Some(l) => {
                let step = self.step(l.rank, l.step);
                Finding::at(FindingKind::Deadlock, l.rank, l.step, step, message)
            }
        };
        Finding { cycle, ..finding }
    }

    fn waiting(&self, links: &[WaitLink]) -> Vec<Waiting> {
        links
            .iter()
            // A combining receive always waits for its own transfer.
            .filter(|l| l.shared.is_some() || l.step != l.waits_for.step())
            .map(|l| {
                let step = self.step(l.rank, l.step);
                let before = l.shared.map_or(l.rank, |(rank, _)| rank);
                let port = |(_, port): (usize, usize)| &self.schedule.shared_ports()[port];
                Waiting {
                    rank: l.rank,
                    step: l.step,
                    what: named(step),
                    peer: step.peer(),
                    waits_for_step: l.waits_for.step(),
                    waits_for_rank: l.shared.map(|(rank, _)| rank),
                    shared_port: l.shared.map(|shared| port(shared).name.clone()),
                    waits_for: named(self.step(before, l.waits_for.step())),
                }
            })
            .collect()
    }
}
