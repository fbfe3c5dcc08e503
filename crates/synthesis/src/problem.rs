//! What is to be synthesized: a collective, its ports and links, and what a message carries.

use oneport::machine::Links as Costs;
use oneport::{Collective, Error, Ports, Result};

/// `links[from][to]`: how many messages the link carries in a round; 0 without a link.
pub type Links = Vec<Vec<usize>>;

/// A collective whose schedule is to take the fewest rounds.
#[derive(Debug, Clone)]
pub struct Problem {
    pub(crate) collective: Collective,
    pub(crate) ranks: usize,
    pub(crate) ports: Ports,
    pub(crate) links: Option<Links>,
    pub(crate) items: Option<usize>,
    pub(crate) steps: Option<usize>,
    pub(crate) same_bits: bool,
}

impl Problem {
    /// The collective over `ranks` ranks with one port out and one in, on a complete graph; a
    /// message carries all that its sender knows.
    pub fn new(collective: Collective, ranks: usize) -> Problem {
        Problem {
            collective,
            ranks,
            ports: Ports::BI,
            links: None,
            items: None,
            steps: None,
            same_bits: false,
        }
    }

    /// With these ports.
    #[must_use]
    pub fn ports(mut self, ports: Ports) -> Problem {
        self.ports = ports;
        self
    }

    /// Messages follow these links.
    #[must_use]
    pub fn links(mut self, links: Links) -> Problem {
        self.links = Some(links);
        self
    }

    /// A message carries one item: one of `count` of a vector or block, or one partial result.
    #[must_use]
    pub fn items(mut self, count: usize) -> Problem {
        self.items = Some(count);
        self
    }

    /// Rounds make up this many steps: what arrives is passed on in the next step at the earliest,
    /// as SCCL counts (Cai and others 2021). Without it each round is a step.
    #[must_use]
    pub fn steps(mut self, steps: usize) -> Problem {
        self.steps = Some(steps);
        self
    }

    /// All ranks combine in one tree, so that they get the same bits of a sum of floats.
    #[must_use]
    pub fn same_bits(mut self, same: bool) -> Problem {
        self.same_bits = same;
        self
    }

    /// The links of a cost file: one message a round wherever it has a cost.
    pub fn links_of(costs: &Costs) -> Links {
        let link = |cost: &Option<f64>| usize::from(cost.is_some());
        let row = |row: &Vec<_>| row.iter().map(link).collect();
        costs.alpha.iter().map(row).collect()
    }

    /// Messages that the link carries in a round.
    pub(crate) fn link(&self, from: usize, to: usize) -> usize {
        match &self.links {
            _ if from == to => 0,
            Some(links) => links[from][to],
            None => self.ports.k(),
        }
    }

    /// All pairs of ranks with a link.
    pub(crate) fn pairs(&self) -> Vec<(usize, usize)> {
        let p = self.ranks;
        let all = (0..p).flat_map(|from| (0..p).map(move |to| (from, to)));
        all.filter(|&(from, to)| self.link(from, to) > 0).collect()
    }

    /// The problem whose reversed schedules solve this one, if it combines what another copies.
    pub(crate) fn reversed(&self) -> Option<Problem> {
        let combines = self.collective.kind().reduces();
        let collective = self.collective.reversed().filter(|_| combines)?;
        let transposed = |links: &Links| {
            let column = |to| links.iter().map(|row| row[to]).collect();
            (0..self.ranks).map(column).collect()
        };
        Some(Problem {
            collective,
            links: self.links.as_ref().map(transposed),
            ..self.clone()
        })
    }

    pub(crate) fn validate(&self) -> Result<()> {
        let p = self.ranks;
        self.ports.validate()?;
        let is_one_call = self.ports.has_calls() && self.ports.k() == 1;
        if !self.ports.waits_by_list() && !is_one_call {
            let ports = self.ports.in_words();
            return Err(Error::usage(format!("synthesis is not for {ports}")));
        }
        if p == 0 {
            return Err(Error::usage("a collective needs at least one rank"));
        }
        let named = self.collective.root().into_iter();
        let targets = self.collective.targets().unwrap_or_default();
        if let Some(rank) = named.chain(targets.iter().copied()).find(|&rank| rank >= p) {
            return Err(Error::usage(format!("rank {rank} is not one of {p} ranks")));
        }
        if self.items == Some(0) || self.steps == Some(0) {
            return Err(Error::usage("at least one item and one step are needed"));
        }
        let partial = self.collective.kind().reduces() && self.reversed().is_none();
        if partial && self.items.is_some_and(|items| items > 1) {
            return Err(Error::usage(format!(
                "a message of {} carries one partial result of the whole vector: take 1 item",
                self.collective.kind()
            )));
        }
        if !self.collective.kind().has_data() && self.items.is_some_and(|items| items > 1) {
            return Err(Error::usage(format!(
                "a message of {} carries one token: take 1 item",
                self.collective.kind()
            )));
        }
        if self.steps.is_some() && (self.items.is_none() || !self.ports.can_exchange()) {
            return Err(Error::usage(
                "steps of several rounds are for messages of items and bidirectional ports",
            ));
        }
        let is_allreduce = self.collective == Collective::Allreduce;
        if self.same_bits && (!is_allreduce || self.links.is_some()) {
            return Err(Error::usage(
                "one tree of all ranks is for an allreduce, on a complete graph",
            ));
        }
        let links = self.links.as_deref().unwrap_or_default();
        let lengths = links.iter().map(Vec::len);
        match lengths.chain([links.len()]).find(|&length| length != p) {
            Some(length) if self.links.is_some() => Err(Error::usage(format!(
                "the graph is for {length} ranks, not {p}: it needs {p} rows of {p} links"
            ))),
            _ => Ok(()),
        }
    }
}
