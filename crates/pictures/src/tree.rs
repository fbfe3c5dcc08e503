//! Communication trees: what travels along them. `tree/picture.rs` draws them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::blocks::{block_lens, segments};
use super::traffic::Flow;
use oneport::error::Result;
use oneport::schedule::collective::Holders;
use oneport::schedule::{Schedule, Spans};

mod picture;

pub use self::picture::tree;

/// The tree along which a schedule's messages travel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    root: usize,
    towards_root: bool,
    /// The segment that travels along this tree, if other segments take other routes.
    segment: Option<Spans>,
    nodes: BTreeMap<usize, Branch>,
    /// The ranks level by level, parents before children.
    order: Vec<usize>,
    /// By rank: the bytes of its block, if every rank has one.
    blocks: Option<Vec<u64>>,
    /// Number of ranks in and outside the tree.
    ranks: usize,
}

/// A rank in a tree.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Branch {
    parent: Option<usize>,
    children: Vec<usize>,
    /// Traffic over the edge to the parent.
    flow: Flow,
    depth: usize,
    /// Number of ranks in the subtree.
    size: usize,
}

impl Tree {
    /// The tree of a schedule: the tree of all its messages or, if these do not form one, of its
    /// first segment's messages.
    ///
    /// It contains every rank that exchanges messages, and all messages travel from the root
    /// towards the leaves, or all towards the root. Returns `None` if neither graph is such a tree.
    ///
    /// # Errors
    /// When there are more steps than can be numbered.
    pub fn of(schedule: &Schedule) -> Result<Option<Tree>> {
        let element_bytes = schedule.element_bytes();
        let (segments, of_step) = segments(schedule)?;
        let (mut edges, mut first) = (Edges::default(), Edges::default());
        let mut of_step = of_step.into_iter();
        for (rank, program) in schedule.programs().iter().enumerate() {
            for (i, step) in program.iter().enumerate() {
                let is_first = of_step.next() == Some(Some(0));
                let Some(peer) = step.peer().filter(|_| !step.is_empty()) else {
                    continue;
                };
                let bytes = (step.len() as u64).saturating_mul(element_bytes);
                let sent = step.is_send().then_some(bytes);
                edges.add(rank, peer, i, sent);
                if is_first || sent.is_none() {
                    first.add(rank, peer, i, sent);
                }
            }
        }
        let blocks = block_lens(schedule).map(|lens| {
            let bytes = |&n: &usize| (n as u64).saturating_mul(element_bytes);
            lens.iter().map(bytes).collect::<Vec<u64>>()
        });
        if let Some(mut tree) = edges.tree(schedule) {
            tree.blocks = blocks;
            return Ok(Some(tree));
        }
        let tree = first
            .tree(schedule)
            .filter(|t| t.nodes.len() == edges.ranks());
        Ok(tree.map(|mut tree| {
            tree.segment = segments.into_iter().next();
            tree.blocks = blocks;
            tree
        }))
    }

    /// The root of the tree.
    pub fn root(&self) -> usize {
        self.root
    }

    /// Whether messages travel towards the root.
    pub fn towards_root(&self) -> bool {
        self.towards_root
    }

    /// The only segment that travels along this tree; `None` if all segments do.
    pub fn segment(&self) -> Option<&Spans> {
        self.segment.as_ref()
    }

    /// A rank's parent; `None` for the root and for ranks outside the tree.
    pub fn parent(&self, rank: usize) -> Option<usize> {
        self.nodes.get(&rank)?.parent
    }

    /// Number of ranks in a rank's subtree, including itself; 0 for ranks outside the tree.
    pub fn size(&self, rank: usize) -> usize {
        self.nodes.get(&rank).map_or(0, |n| n.size)
    }
}

/// The edges of a graph, with the time when each rank first uses them.
#[derive(Default)]
struct Edges {
    flows: HashMap<(usize, usize), Flow>,
    /// By rank and peer: the rank's first step that exchanges data with the peer.
    first_use: HashMap<(usize, usize), usize>,
}

impl Edges {
    /// Adds a step of `rank` that exchanges data with `peer`, and the bytes if it sends them.
    fn add(&mut self, rank: usize, peer: usize, step: usize, sent: Option<u64>) {
        self.first_use.entry((rank, peer)).or_insert(step);
        if let Some(bytes) = sent {
            let flow = self.flows.entry((rank, peer)).or_default();
            flow.messages += 1;
            flow.bytes = flow.bytes.saturating_add(bytes);
        }
    }

    /// Number of ranks with at least one edge.
    fn ranks(&self) -> usize {
        let ranks = self.flows.keys().flat_map(|&(a, b)| [a, b]);
        ranks.collect::<BTreeSet<usize>>().len()
    }

    /// The tree that the edges form, if they form one.
    fn tree(&self, schedule: &Schedule) -> Option<Tree> {
        let collective = schedule.collective();
        // A chain is a tree from either end, and the collective determines which end is the root.
        let gathers = collective.kind().row().output.0 == Holders::Root;
        let [a, b] = [gathers, !gathers].map(|towards| self.directed(schedule, towards));
        let is_root = |t: &Tree| collective.root().is_none_or(|root| root == t.root);
        match (a, b) {
            (Some(a), Some(b)) if !is_root(&a) && is_root(&b) => Some(b),
            (Some(a), _) => Some(a),
            (None, b) => b,
        }
    }

    fn directed(&self, schedule: &Schedule, towards_root: bool) -> Option<Tree> {
        let mut nodes: BTreeMap<usize, Branch> = BTreeMap::new();
        for (&(from, to), &flow) in &self.flows {
            let (child, parent) = if towards_root { (from, to) } else { (to, from) };
            let node = nodes.entry(child).or_default();
            if node.parent.is_some() {
                return None;
            }
            (node.parent, node.flow) = (Some(parent), flow);
            nodes.entry(parent).or_default().children.push(child);
        }
        if nodes.is_empty() && schedule.ranks() == 1 {
            nodes.insert(0, Branch::default());
        }
        let mut roots = nodes.iter().filter(|(_, n)| n.parent.is_none());
        let (root, None) = (*roots.next()?.0, roots.next()) else {
            return None;
        };
        for (rank, node) in &mut nodes {
            // Sort the children in the order in which the parent communicates with them.
            let when = |child: &usize| (self.first_use.get(&(*rank, *child)).copied(), *child);
            node.children.sort_by_key(when);
        }
        let mut order = vec![root];
        let mut next = 0;
        while let Some(&rank) = order.get(next) {
            next += 1;
            order.extend_from_slice(&nodes[&rank].children);
        }
        // Ranks in a cycle outside the tree are not reachable from the root.
        if order.len() != nodes.len() {
            return None;
        }
        for rank in &order {
            let above = nodes[rank].parent.map(|parent| nodes[&parent].depth + 1);
            nodes.get_mut(rank)?.depth = above.unwrap_or(0);
        }
        for rank in order.iter().rev() {
            let below = nodes[rank].children.iter().map(|c| nodes[c].size);
            nodes.get_mut(rank)?.size = 1 + below.sum::<usize>();
        }
        Some(Tree {
            root,
            towards_root,
            segment: None,
            nodes,
            order,
            blocks: None,
            ranks: schedule.ranks(),
        })
    }
}
