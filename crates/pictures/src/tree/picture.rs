//! Pictures of trees, level by level.

use std::collections::HashMap;

use super::Tree;
use crate::blocks::ranges;
use crate::svg::{Anchor, GREY, LINE, MARGIN, Svg, TEXT, bytes, counted, width};
use crate::traffic::Flow;
use crate::{Caption, legend};
use oneport::error::{Error, Result};

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
    let wrapped = |note: &String| crate::svg::wrapped(note, TEXT, room - 2.0 * MARGIN);
    for line in notes.iter().flat_map(wrapped) {
        let at = (MARGIN, y + 14.0);
        svg.text(at, &line, Anchor::Start, TEXT, GREY);
        y += LINE;
    }
    Ok(svg.finish(room, y + MARGIN, caption))
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
        let mut title = format!(
            "{what} {rank}: {} in its subtree",
            counted(node.size, "rank")
        );
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
                legend::span_names(segment)
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
    pub(crate) fn places(
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
        svg.open("class=\"edge\"", &flow.describe(*from, *target));
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
