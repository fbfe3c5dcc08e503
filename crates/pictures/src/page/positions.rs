//! Where a page draws the ranks: in their tree, or in a circle.

use crate::Tree;
use oneport::error::Result;
use oneport::internal::numbers::truncated_i64;
use oneport::schedule::Schedule;

/// Distance between neighbouring ranks of a tree (more where it is narrow) and of a circle, and
/// between the levels of a deep and of a flat tree, in pixels.
const SPACING: f64 = 42.0;
const MAX_SPACING: f64 = 84.0;
const ARC: f64 = 46.0;
const LEVEL: f64 = 66.0;
const HIGH_LEVEL: f64 = 84.0;
/// Width that narrow trees are stretched to.
const WIDTH: f64 = 620.0;
const FLAT: usize = 4;
/// Minimal radius of a circle, in pixels: arrows between few ranks are long enough to be seen.
const MIN_RADIUS: f64 = 150.0;
/// Trees that are wider or deeper are drawn in a circle.
const MAX_WIDTH: f64 = 1000.0;
const MAX_DEPTH: usize = 8;
const MARGIN: f64 = 28.0;

/// The positions of the ranks in a picture.
#[derive(Debug)]
pub(super) struct Positions {
    /// By rank: the middle of its node, in whole pixels.
    pub(super) at: Vec<[i64; 2]>,
    /// Width and height of the picture.
    pub(super) size: [i64; 2],
    /// The edges of the tree, from parent to child; none if there is no tree.
    pub(super) edges: Vec<[usize; 2]>,
    /// Whether the ranks are in a circle.
    pub(super) circle: bool,
}

impl Positions {
    /// Finds the positions of the ranks of a schedule.
    ///
    /// # Errors
    /// When there are more steps than can be numbered.
    pub(super) fn of(schedule: &Schedule) -> Result<Positions> {
        let ranks = schedule.ranks();
        // Arrows of segments that take other ways would run behind the ranks of the tree of one.
        let tree = Tree::of(schedule)?.filter(|tree| tree.segment().is_none());
        let edges = tree
            .iter()
            .flat_map(|tree| (0..ranks).filter_map(|child| Some([tree.parent(child)?, child])));
        let edges = edges.collect();
        let level = tree.as_ref().and_then(|tree| levels(tree, ranks));
        let in_circle = level.is_none();
        let at = level.unwrap_or_else(|| circle(ranks));
        let low = at
            .iter()
            .fold([f64::MAX; 2], |l, p| [l[0].min(p[0]), l[1].min(p[1])]);
        let pixels = |v: f64, axis: usize| truncated_i64((v - low[axis] + MARGIN).round());
        let at: Vec<[i64; 2]> = at
            .iter()
            .map(|p| [pixels(p[0], 0), pixels(p[1], 1)])
            .collect();
        let end =
            |axis: usize| at.iter().map(|p| p[axis]).max().unwrap_or(0) + truncated_i64(MARGIN);
        Ok(Positions {
            size: [end(0), end(1)],
            at,
            edges,
            circle: in_circle,
        })
    }
}

/// The ranks level by level, and ranks outside the tree in a row below; `None` if the tree is too
/// large.
fn levels(tree: &Tree, ranks: usize) -> Option<Vec<[f64; 2]>> {
    let places = tree.places(|_| SPACING / 2.0, 0.0);
    let depth = |rank: usize| std::iter::successors(Some(rank), |&r| tree.parent(r)).count() - 1;
    let deepest = (0..ranks).map(depth).max()?;
    let (low, high) = places
        .values()
        .fold((0.0f64, 0.0f64), |(l, h), &x| (l.min(x), h.max(x)));
    if high - low > MAX_WIDTH || deepest > MAX_DEPTH {
        return None;
    }
    let columns = (high - low) / SPACING;
    let stretch = (WIDTH / columns.max(1.0)).clamp(SPACING, MAX_SPACING) / SPACING;
    let level = match deepest {
        ..=FLAT => HIGH_LEVEL,
        _ => LEVEL,
    };
    let mut outside = 0;
    let place = |rank: usize| match places.get(&rank) {
        Some(&x) => [x * stretch, level * depth(rank) as f64],
        None => {
            outside += 1;
            let x = low + SPACING * (outside - 1) as f64;
            [x * stretch, level * (deepest + 1) as f64]
        }
    };
    Some((0..ranks).map(place).collect())
}

/// The ranks in a circle, clockwise from the top.
fn circle(ranks: usize) -> Vec<[f64; 2]> {
    let turn = std::f64::consts::TAU / ranks as f64;
    let radius = (ranks as f64 * ARC / std::f64::consts::TAU).max(MIN_RADIUS);
    let place = |rank: usize| {
        let (sin, cos) = (turn * rank as f64).sin_cos();
        [radius * sin, -radius * cos]
    };
    (0..ranks).map(place).collect()
}
