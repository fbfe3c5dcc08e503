//! Communication trees, drawn level by level.

use std::collections::{BTreeMap, HashMap};

use super::Caption;
use super::blocks::{block_lens, ranges};
use super::segments::segments;
use super::svg::{Anchor, LINE, MARGIN, Svg, TEXT, bytes, width};
use super::traffic::Flow;
use crate::error::{Error, Result};
use crate::schedule::collective::Kind;
use crate::schedule::{Schedule, Spans, Step};

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
    /// Elements have `element_bytes` bytes.
    ///
    /// # Errors
    /// When there are more steps than can be numbered.
    pub fn of(schedule: &Schedule, element_bytes: u64) -> Result<Option<Tree>> {
        let mut edges = Edges::default();
        let (segments, of_step) = segments(schedule)?;
        let mut first = Edges::default();
        let mut number = 0;
        for (from, program) in schedule.programs().iter().enumerate() {
            for (i, step) in program.iter().enumerate() {
                if let (Step::Send { to, .. }, false) = (step, step.is_empty()) {
                    let bytes = (step.len() as u64).saturating_mul(element_bytes);
                    edges.add(from, *to, bytes, i);
                    if of_step[number] == Some(0) {
                        first.add(from, *to, bytes, i);
                    }
                } else if let (Some(from), false, false) =
                    (step.peer(), step.is_send(), step.is_empty())
                {
                    edges.add_receive(from, i);
                    first.add_receive(from, i);
                }
                number += 1;
            }
            edges.finish_rank(from);
            first.finish_rank(from);
        }
        let blocks = block_lens(schedule).map(|lens| {
            let bytes = lens
                .iter()
                .map(|&n| (n as u64).saturating_mul(element_bytes));
            bytes.collect::<Vec<u64>>()
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
    /// First uses, by peer, of the rank that is being read.
    open: HashMap<usize, usize>,
}

impl Edges {
    fn add(&mut self, from: usize, to: usize, bytes: u64, step: usize) {
        let flow = self.flows.entry((from, to)).or_default();
        flow.messages += 1;
        flow.bytes = flow.bytes.saturating_add(bytes);
        self.open.entry(to).or_insert(step);
    }

    fn add_receive(&mut self, from: usize, step: usize) {
        self.open.entry(from).or_insert(step);
    }

    fn finish_rank(&mut self, rank: usize) {
        let uses = self.open.drain();
        self.first_use
            .extend(uses.map(|(peer, step)| ((rank, peer), step)));
    }

    /// Number of ranks with at least one edge.
    fn ranks(&self) -> usize {
        let mut ranks: Vec<usize> = self.flows.keys().flat_map(|&(a, b)| [a, b]).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks.len()
    }

    /// The tree that the edges form, if they form one.
    fn tree(&self, schedule: &Schedule) -> Option<Tree> {
        let collective = schedule.collective();
        // A chain is a tree from either end, and the collective determines which end is the root.
        let gathers = matches!(collective.kind(), Kind::Reduce | Kind::Gather);
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
            let below = nodes[rank]
                .children
                .iter()
                .map(|c| nodes[c].size)
                .sum::<usize>();
            nodes.get_mut(rank)?.size = 1 + below;
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

const NODE: (f64, f64) = (42.0, 34.0);
/// Height of the slanted part of edges; longer edges get more.
const EDGE: (f64, f64) = (34.0, 120.0);
/// Height of an edge's label, above the child.
const LABEL: f64 = 16.0;
const LABEL_SIZE: f64 = 10.0;
const NODE_LABEL_SIZE: f64 = 9.5;
const NODE_GAP: f64 = 12.0;

/// Draws a tree as an SVG document with the root on top. Each node shows the rank and, in smaller
/// type, the size of its block if every rank has one, or else the number of ranks in its subtree;
/// each edge shows its traffic. Children are in the order in which their parent communicates with
/// them. Ranks outside the tree are named below it.
///
/// # Errors
/// When the picture would be more than 30 000 pixels wide or high.
pub fn tree(tree: &Tree, caption: &Caption) -> Result<String> {
    const MAX: f64 = 30_000.0;
    let places = tree.places(|rank| tree.half_width(rank), NODE_GAP);
    let levels = tree.levels(&places);
    let depth = levels.len() - 1;
    let (mut low, mut high) = (0.0, 0.0);
    for (rank, x) in &places {
        let half = tree.half_width(*rank);
        (low, high) = (f64::min(low, x - half), f64::max(high, x + half));
    }
    let room = (high - low + 2.0 * MARGIN).max(680.0);
    let height = levels[depth];
    if room.max(height) > MAX {
        return Err(Error::usage(format!(
            "a tree of {} ranks, {depth} levels deep, is too large to be drawn ({room:.0} x {height:.0} pixels, {MAX} at most): take fewer ranks",
            tree.nodes.len(),
        )));
    }
    let mut svg = Svg::default();
    svg.raw(
        "<defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"7.5\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" \
         orient=\"auto\"><path d=\"M0 0.8L8 4L0 7.2z\" fill=\"#555\"/></marker></defs>\n",
    );
    let top = svg.caption(caption, room) + 10.0;
    // Centre the tree if the caption is wider.
    let shift = (room - (high - low)) / 2.0 - low;
    let at = |rank: &usize| {
        let depth = tree.nodes[rank].depth;
        (places[rank] + shift, top + levels[depth])
    };
    for rank in &tree.order {
        for (i, child) in tree.nodes[rank].children.iter().enumerate() {
            tree.edge(&mut svg, (rank, at(rank)), (child, at(child)), i);
        }
    }
    for rank in &tree.order {
        tree.node(&mut svg, rank, at(rank));
    }
    let mut y = top + height + NODE.1 + 8.0;
    let notes = tree.notes();
    let wrapped = |note: &String| super::svg::wrapped(note, TEXT, room - 2.0 * MARGIN);
    for line in notes.iter().flat_map(wrapped) {
        let at = (MARGIN, y + 14.0);
        svg.text(at, &line, Anchor::Start, TEXT, "fill=\"#444\"");
        y += LINE;
    }
    Ok(svg.finish(room, y + MARGIN, &caption.title))
}

/// A number of ranks in words: `1 rank`, `5 ranks`.
fn ranks(count: usize) -> String {
    format!("{count} rank{}", if count == 1 { "" } else { "s" })
}

impl Tree {
    /// Draws a rank and the size of its subtree, with the middle of the upper edge at `(x, y)`.
    fn node(&self, svg: &mut Svg, rank: &usize, (x, y): (f64, f64)) {
        let node = &self.nodes[rank];
        let root = node.parent.is_none();
        let (what, fill, ink, grey) = if root {
            (
                "rank (root)",
                "fill=\"#26476f\"",
                "font-weight=\"bold\" fill=\"#fff\"",
                "fill=\"#cfdcec\"",
            )
        } else {
            (
                "rank",
                "fill=\"#e4edf7\"",
                "font-weight=\"bold\"",
                "fill=\"#456\"",
            )
        };
        let block = self.block(*rank);
        let mut title = format!("{what} {rank}: {} in its subtree", ranks(node.size));
        if let Some(block) = block {
            title += &format!(", a block of {}", bytes(block));
        }
        svg.open("class=\"node\"", &title);
        let dashes = if block == Some(0) {
            " stroke-dasharray=\"3 2\""
        } else {
            ""
        };
        let style = format!("{fill} stroke=\"#26476f\" rx=\"6\"{dashes}");
        let width = self.node_width(*rank);
        svg.rect((x - width / 2.0, y), (width, NODE.1), &style);
        svg.text((x, y + 16.0), &rank.to_string(), Anchor::Middle, 13.0, ink);
        let size = self.node_label(*rank);
        svg.text((x, y + 28.0), &size, Anchor::Middle, NODE_LABEL_SIZE, grey);
        svg.close();
    }

    /// Explanations of the picture.
    fn notes(&self) -> Vec<String> {
        let flow = if self.towards_root {
            "towards"
        } else {
            "away from"
        };
        let below = match self.blocks {
            Some(_) => "the size of its block (dashed if it is empty)",
            None => "the number of ranks in its subtree",
        };
        let mut notes = vec![format!(
            "In a node: the rank, and below it {below}. At an edge: what goes over it, {flow} the root. \
             Children stand in the order in which their parent turns to them."
        )];
        let outside = |rank: &usize| !self.nodes.contains_key(rank);
        let outside: Vec<usize> = (0..self.ranks).filter(outside).collect();
        if !outside.is_empty() {
            let empty = outside.iter().all(|&rank| self.block(rank) == Some(0));
            notes.push(format!(
                "Not in the tree, because they exchange no messages{}: rank{} {}.",
                if empty {
                    " (their blocks are empty)"
                } else {
                    ""
                },
                if outside.len() == 1 { "" } else { "s" },
                ranges(&outside)
            ));
        }
        if let Some(segment) = &self.segment {
            notes.push(format!(
                "This is the tree of the first segment (elements {}); other segments take other ways.",
                super::legend::span_names(segment)
            ));
        }
        notes
    }

    /// The label of the edge to the parent: `64 KiB`, `5 × 64 KiB`, `3: 100 KiB`.
    fn label(&self, rank: usize) -> String {
        let Flow { messages, bytes: n } = self.nodes[&rank].flow;
        match messages as u64 {
            0 | 1 => bytes(n),
            m if n.is_multiple_of(m) => format!("{m} × {}", bytes(n / m)),
            m => format!("{m}: {}", bytes(n)),
        }
    }

    /// Bytes of a rank's block.
    fn block(&self, rank: usize) -> Option<u64> {
        Some(self.blocks.as_ref()?[rank])
    }

    /// The second line of a node.
    fn node_label(&self, rank: usize) -> String {
        let block = self.block(rank).map(bytes);
        block.unwrap_or_else(|| self.size(rank).to_string())
    }

    fn node_width(&self, rank: usize) -> f64 {
        (width(&self.node_label(rank), NODE_LABEL_SIZE) + 6.0).max(NODE.0)
    }

    /// Half the width of a node and the label above it.
    fn half_width(&self, rank: usize) -> f64 {
        let label = match self.nodes[&rank].parent {
            Some(_) => width(&self.label(rank), LABEL_SIZE),
            None => 0.0,
        };
        label.max(self.node_width(rank)) / 2.0
    }

    /// The horizontal position of every rank, with the root at 0. Subtrees are as close together as
    /// their outlines allow, `gap` apart, and parents are centred above their children.
    /// `half_width` is half the width of a rank.
    pub(super) fn places(
        &self,
        half_width: impl Fn(usize) -> f64,
        gap: f64,
    ) -> HashMap<usize, f64> {
        // By rank: how far its subtree extends to the left and right on each level, relative to the
        // rank.
        let mut outlines: HashMap<usize, Vec<(f64, f64)>> = HashMap::new();
        let mut offsets: HashMap<usize, f64> = HashMap::new();
        for rank in self.order.iter().rev() {
            let half = half_width(*rank);
            let children = &self.nodes[rank].children;
            let mut outline: Vec<(f64, f64)> = Vec::new();
            let mut positions = Vec::with_capacity(children.len());
            for child in children {
                let theirs = outlines.remove(child).unwrap_or_default();
                let clash = outline.iter().zip(&theirs).map(|(o, t)| o.1 + gap - t.0);
                let shift = clash.reduce(f64::max).unwrap_or(0.0);
                for (level, (left, right)) in theirs.into_iter().enumerate() {
                    match outline.get_mut(level) {
                        Some(o) => o.1 = right + shift,
                        None => outline.push((left + shift, right + shift)),
                    }
                }
                positions.push(shift);
            }
            let ends = positions.first().zip(positions.last());
            let middle = ends.map_or(0.0, |(first, last)| (first + last) / 2.0);
            for (child, position) in children.iter().zip(positions) {
                offsets.insert(*child, position - middle);
            }
            let below = outline.into_iter().map(|(l, r)| (l - middle, r - middle));
            outlines.insert(*rank, [(-half, half)].into_iter().chain(below).collect());
        }
        let mut places = HashMap::from([(self.root, 0.0)]);
        for rank in &self.order {
            for child in &self.nodes[rank].children {
                places.insert(*child, places[rank] + offsets[child]);
            }
        }
        places
    }

    /// The vertical position of each level below the root. Edges that extend far to the side get
    /// more height.
    fn levels(&self, places: &HashMap<usize, f64>) -> Vec<f64> {
        let mut reach: Vec<f64> = Vec::new();
        for rank in &self.order {
            let node = &self.nodes[rank];
            let aside = node
                .parent
                .map_or(0.0, |p| (places[rank] - places[&p]).abs());
            match reach.get_mut(node.depth) {
                Some(max) => *max = f64::max(*max, aside),
                None => reach.push(aside),
            }
        }
        let mut levels = vec![0.0];
        for reach in reach.iter().skip(1) {
            let above = levels.last().copied().unwrap_or(0.0);
            let edge = (reach * 0.22).clamp(EDGE.0, EDGE.1);
            levels.push(above + NODE.1 + edge + LABEL);
        }
        levels
    }

    fn edge(
        &self,
        svg: &mut Svg,
        (rank, at): (&usize, (f64, f64)),
        (child, to): (&usize, (f64, f64)),
        i: usize,
    ) {
        let children = self.nodes[rank].children.len();
        let flow = self.nodes[child].flow;
        let (from, target) = if self.towards_root {
            (child, rank)
        } else {
            (rank, child)
        };
        let plural = if flow.messages == 1 { "" } else { "s" };
        let title = format!(
            "rank {from} to rank {target}: {} message{plural}, {}",
            flow.messages,
            bytes(flow.bytes)
        );
        svg.open("class=\"edge\"", &title);
        // Edges leave the parent side by side.
        let spacing = (NODE.0 - 6.0) / children as f64;
        let x = at.0 + (i as f64 - (children as f64 - 1.0) / 2.0) * spacing.min(10.0);
        let (upper, lower) = ((x, at.1 + NODE.1), (to.0, to.1 - LABEL));
        let style = "stroke=\"#555\" stroke-width=\"1.2\" marker-end=\"url(#head)\"";
        let (start, end) = if self.towards_root {
            (lower, upper)
        } else {
            (upper, lower)
        };
        svg.line(start, end, style);
        let label = self.label(*child);
        svg.text((to.0, to.1 - 4.0), &label, Anchor::Middle, LABEL_SIZE, "");
        svg.close();
    }
}
