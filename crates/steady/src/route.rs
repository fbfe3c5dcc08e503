//! Routes: how one operation of a series moves its messages through the platform.

use std::ops::AddAssign;

use super::platform::Platform;

/// One way to perform one operation of the series. It consists of an arborescence for each root or,
/// where combining takes time or operands keep their order, of tasks.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Route {
    /// The arborescences, by root.
    pub trees: Vec<Arborescence>,
    /// The transfers and combinations, where the route consists of tasks.
    pub task_graph: TaskGraph,
}

/// The transfers and combinations of one operation. Values are numbered: first the contributions,
/// then the results of the tasks.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct TaskGraph {
    /// By contribution, the node that owns it.
    pub owners: Vec<usize>,
    /// The tasks, each after the tasks that produce its operands.
    pub tasks: Vec<Task>,
    /// The requested values: the full result of a reduction, or the prefixes of a scan by rank.
    pub results: Vec<usize>,
}

/// A task of an operation that combines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Task {
    /// A value passes an edge.
    Move {
        /// The edge, by its number in the platform.
        edge: usize,
        /// The value.
        value: usize,
    },
    /// A node combines two values.
    Combine {
        /// The node.
        node: usize,
        /// The left operand.
        left: usize,
        /// The right operand.
        right: usize,
    },
}

impl Task {
    /// The numbers of the values that the task reads: one for a move, two for a combination.
    pub fn operands(&self) -> impl Iterator<Item = usize> {
        let (first, second) = match *self {
            Task::Move { value, .. } => (value, None),
            Task::Combine { left, right, .. } => (left, Some(right)),
        };
        std::iter::once(first).chain(second)
    }
}

impl TaskGraph {
    pub(super) fn of(owners: Vec<usize>) -> TaskGraph {
        TaskGraph {
            owners,
            ..TaskGraph::default()
        }
    }

    /// Adds a task and returns the number of the value that it produces.
    pub(super) fn add(&mut self, task: Task) -> usize {
        self.tasks.push(task);
        self.owners.len() + self.tasks.len() - 1
    }

    /// Returns, by task, the number of tasks in the longest chain before it.
    pub fn delays(&self) -> Vec<usize> {
        let mut delays: Vec<usize> = Vec::with_capacity(self.tasks.len());
        for task in &self.tasks {
            let earlier = task
                .operands()
                .filter_map(|v| v.checked_sub(self.owners.len()));
            delays.push(earlier.map(|t| delays[t] + 1).max().unwrap_or(0));
        }
        delays
    }

    /// Returns, by value, the contributions combined in it, in the order of the operands.
    pub fn contents(&self) -> Vec<Vec<usize>> {
        let mut contents: Vec<Vec<usize>> = (0..self.owners.len()).map(|i| vec![i]).collect();
        for task in &self.tasks {
            contents.push(task.operands().flat_map(|v| contents[v].clone()).collect());
        }
        contents
    }

    /// Returns, by value, the node that holds it.
    ///
    /// # Panics
    /// This and [`Route::depth`] panic when `platform` does not have the route's edges.
    pub fn nodes(&self, platform: &Platform) -> Vec<usize> {
        let made = self.tasks.iter().map(|task| match *task {
            Task::Move { edge, .. } => platform.edges()[edge].dst,
            Task::Combine { node, .. } => node,
        });
        self.owners.iter().copied().chain(made).collect()
    }
}

/// The tree along which the messages of one root travel: away from the root, or towards it on the
/// reversed platform of gathers and free reductions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Arborescence {
    /// The root.
    pub root: usize,
    /// The edges, by their number in the platform. Each edge comes after the one that enters its
    /// start.
    pub edges: Vec<usize>,
    /// The messages on each edge: 1, or, where every target gets a message of its own, the number
    /// of targets behind the edge.
    pub messages: Vec<usize>,
}

impl Route {
    pub(super) fn of(tree: Arborescence) -> Route {
        Route {
            trees: vec![tree],
            task_graph: TaskGraph::default(),
        }
    }

    pub(super) fn of_tasks(task_graph: TaskGraph) -> Route {
        let trees = Vec::new();
        Route { trees, task_graph }
    }

    /// Returns the messages by edge: `(edge, messages)`, sorted by edge.
    pub fn loads(&self) -> Vec<(usize, usize)> {
        let mut loads: Vec<(usize, usize)> = Vec::new();
        for tree in &self.trees {
            let (edges, messages) = (tree.edges.iter(), tree.messages.iter());
            loads.extend(edges.copied().zip(messages.copied()));
        }
        loads.extend(self.task_graph.tasks.iter().filter_map(|task| match *task {
            Task::Move { edge, .. } => Some((edge, 1)),
            Task::Combine { .. } => None,
        }));
        added(loads)
    }

    /// Returns the combinations by node: `(node, combinations)`, sorted by node. Empty where
    /// combining is free and happens on reception.
    pub fn combinations(&self) -> Vec<(usize, usize)> {
        let tasks = self.task_graph.tasks.iter().filter_map(|task| match *task {
            Task::Combine { node, .. } => Some((node, 1)),
            Task::Move { .. } => None,
        });
        added(tasks.collect())
    }

    /// Returns the messages by edge, followed by the combinations by node. Node `v` has the number
    /// `edges + v`.
    pub(super) fn activities(&self, edges: usize) -> Vec<(usize, usize)> {
        let mut all = self.loads();
        let combinations = self.combinations().into_iter();
        all.extend(combinations.map(|(v, count)| (edges + v, count)));
        all
    }

    /// Returns the largest number of edges that a message passes, or of tasks in a chain.
    pub fn depth(&self, platform: &Platform) -> usize {
        let depth = |tree: &Arborescence| tree.depths(platform).into_iter().max().unwrap_or(0);
        let edges = self.trees.iter().map(depth).max().unwrap_or(0);
        let tasks = self.task_graph.delays().into_iter().max();
        edges.max(tasks.map_or(0, |d| d + 1))
    }
}

/// Sorts the pairs by number and adds up those of the same number.
pub(super) fn added<N>(mut pairs: Vec<(usize, N)>) -> Vec<(usize, N)>
where
    N: for<'n> AddAssign<&'n N>,
{
    pairs.sort_unstable_by_key(|(number, _)| *number);
    pairs.dedup_by(|b, a| {
        let same = a.0 == b.0;
        if same {
            a.1 += &b.1;
        }
        same
    });
    pairs
}

impl Arborescence {
    /// Returns, by edge of the tree, its distance from the root in edges, itself included.
    pub(crate) fn depths(&self, platform: &Platform) -> Vec<usize> {
        let mut depth = vec![0; platform.nodes()];
        let mut depths = Vec::with_capacity(self.edges.len());
        for &e in &self.edges {
            let edge = &platform.edges()[e];
            depth[edge.dst] = depth[edge.src] + 1;
            depths.push(depth[edge.dst]);
        }
        depths
    }
}
