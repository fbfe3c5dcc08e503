//! The items of one period of a periodic schedule: which message each edge carries, which
//! combination each node performs, and in which period of its operation.

use std::collections::HashMap;
use std::ops::Range;

use super::buffer_layout::{BufferLayout, placed, uses};
use super::platform::Platform;
use super::problem::Solution;
use super::route::{Route, Task, TaskGraph};
use oneport::schedule::Order;

/// A slot of a period. For each of its edges (and for nodes that combine), the range of the
/// period's elements that it carries.
#[derive(Debug, Clone)]
pub(super) struct Cut {
    pub(super) edges: Vec<(usize, Range<usize>)>,
}

/// A message that an edge carries, or a combination that a node performs, in every period.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    /// Number of periods between the first period of the operation and this item.
    pub(super) delay: usize,
    pub(super) operation: usize,
    /// For messages, the place in the sender's buffer; for combinations, the place of the operand
    /// that stays unmodified.
    pub(super) from: usize,
    /// For messages, the place in the receiver's buffer; for combinations, the place of the result.
    pub(super) to: usize,
    pub(super) how: How,
}

impl Item {
    const NONE: Item = Item {
        delay: 0,
        operation: 0,
        from: 0,
        to: 0,
        how: How::Carry,
    };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// Moves a message.
    Carry,
    /// Computes `to = to ⊕ from`, or `to = from ⊕ to`.
    Combine(Order),
    /// Copies the left operand, at this place, to `to` before combining, as other tasks need it.
    CopyAndCombine(usize),
}

struct RouteItem {
    /// The edge, or the number of edges plus the node.
    activity: usize,
    item: Item,
    /// The items of the route that come before it, by their position on the route.
    before: Vec<usize>,
}

/// Returns the items of a period, by edge in order and then by node, and the largest number of
/// periods that an operation takes. `counts` are the operations of a period by route, and a message
/// has `elements` elements.
///
/// A message leaves in the same period if it is sent in a later slot than it is received in,
/// otherwise in the next.
pub(super) fn items(
    solution: &Solution,
    counts: &[usize],
    slots: &[Cut],
    elements: usize,
) -> (Vec<Vec<Item>>, usize) {
    let platform = &solution.platform;
    let layout = BufferLayout::new(solution, 0);
    let activities = platform.edges().len() + platform.nodes();
    // By activity, where the elements of each slot end.
    let mut ends: Vec<Vec<(usize, usize)>> = vec![Vec::new(); activities];
    for (slot, cut) in slots.iter().enumerate() {
        for (activity, range) in &cut.edges {
            ends[*activity].push((range.end, slot));
        }
    }
    let slot_of = |activity: usize, element: usize| {
        let ends = &ends[activity];
        let at = ends.partition_point(|(end, _)| *end <= element);
        ends.get(at).map_or(slots.len(), |(_, slot)| *slot)
    };
    let routes = solution.routes.iter();
    let routes: Vec<Vec<RouteItem>> = routes
        .map(|(route, _)| items_of(route, platform, &layout))
        .collect();
    let (positions, lens) = positions(&routes, counts, activities);
    let mut items: Vec<Vec<Item>> = lens.iter().map(|&len| vec![Item::NONE; len]).collect();
    let mut operation = 0;
    let mut max_delay = 0;
    for (route, &count) in routes.iter().zip(counts) {
        // By item of the route, when it is complete: the period and its slot.
        let mut done: Vec<(usize, usize)> = Vec::with_capacity(route.len());
        for _ in 0..count {
            done.clear();
            for (i, of_route) in route.iter().enumerate() {
                let at = positions[operation][i];
                let first = at * elements;
                let start = slot_of(of_route.activity, first);
                let end = slot_of(of_route.activity, first + elements - 1);
                let earliest = of_route.before.iter().map(|&b| {
                    let (period, slot) = done[b];
                    period + usize::from(slot >= start)
                });
                let delay = earliest.max().unwrap_or(0);
                done.push((delay, end));
                max_delay = max_delay.max(delay);
                items[of_route.activity][at] = Item {
                    operation,
                    delay,
                    ..of_route.item
                };
            }
            operation += 1;
        }
    }
    (items, max_delay + 1)
}

/// Orders the items of each activity in a period: those that come first on their route come first,
/// so that their successors can still follow in the same period. Returns, by operation and item of
/// its route, the position among the items of its activity, and, by activity, their number.
fn positions(
    routes: &[Vec<RouteItem>],
    counts: &[usize],
    activities: usize,
) -> (Vec<Vec<usize>>, Vec<usize>) {
    let mut order: Vec<Vec<(usize, usize, usize)>> = vec![Vec::new(); activities];
    let mut positions: Vec<Vec<usize>> = Vec::new();
    for (route, &count) in routes.iter().zip(counts) {
        let depths = depths(route);
        for _ in 0..count {
            for (i, (item, depth)) in route.iter().zip(&depths).enumerate() {
                order[item.activity].push((*depth, positions.len(), i));
            }
            positions.push(vec![0; route.len()]);
        }
    }
    for of_activity in &mut order {
        of_activity.sort_unstable();
        for (at, &(_, operation, i)) in of_activity.iter().enumerate() {
            positions[operation][i] = at;
        }
    }
    (positions, order.iter().map(Vec::len).collect())
}

/// Lists the items of one operation on a route: messages of arborescences, or tasks.
fn items_of(route: &Route, platform: &Platform, layout: &BufferLayout) -> Vec<RouteItem> {
    let mut items = task_items(&route.task_graph, platform);
    for (p, tree) in route.trees.iter().enumerate() {
        let blocks = layout.blocks(tree, platform);
        // By node and block, the list position of the item that delivers it.
        let mut received: HashMap<(usize, usize), usize> = HashMap::new();
        for (&e, blocks) in tree.edges.iter().zip(blocks) {
            let edge = &platform.edges()[e];
            for block in blocks {
                let place = if layout.personal { block } else { p };
                let item = Item {
                    from: place,
                    to: place,
                    ..Item::NONE
                };
                let before = received.get(&(edge.src, block)).copied();
                received.insert((edge.dst, block), items.len());
                items.push(RouteItem {
                    activity: e,
                    item,
                    before: before.into_iter().collect(),
                });
            }
        }
    }
    items
}

/// Lists the transfers and combinations of the tasks of one operation.
fn task_items(task_graph: &TaskGraph, platform: &Platform) -> Vec<RouteItem> {
    let at = placed(task_graph, platform);
    let uses = uses(task_graph);
    let tasks = task_graph.tasks.iter().enumerate();
    let items = tasks.map(|(i, task)| {
        let to = at[task_graph.owners.len() + i];
        let (activity, from, how) = match *task {
            Task::Move { edge, value } => (edge, at[value], How::Carry),
            Task::Combine { node, left, right } => {
                let (from, how) = if uses[left] == 1 {
                    (at[right], How::Combine(Order::MineFirst))
                } else if uses[right] == 1 {
                    (at[left], How::Combine(Order::TheirsFirst))
                } else {
                    (at[right], How::CopyAndCombine(at[left]))
                };
                (platform.edges().len() + node, from, how)
            }
        };
        let item = Item {
            from,
            to,
            how,
            ..Item::NONE
        };
        let before = task.operands();
        let before = before.filter_map(|v| v.checked_sub(task_graph.owners.len()));
        RouteItem {
            activity,
            item,
            before: before.collect(),
        }
    });
    items.collect()
}

/// Returns, by item of a route, the length of the longest chain of items before it.
fn depths(route: &[RouteItem]) -> Vec<usize> {
    let mut depths: Vec<usize> = Vec::with_capacity(route.len());
    for item in route {
        let before = item.before.iter().map(|&b| depths[b] + 1);
        depths.push(before.max().unwrap_or(0));
    }
    depths
}
