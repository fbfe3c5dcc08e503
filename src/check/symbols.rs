//! Symbolic values: ordered lists of contributions, each list stored once.
//!
//! The elements of a run have the same history, so they hold the same contributions. A value is
//! therefore a list *and* an index. The list names the contributing ranks, each with the distance
//! of its index from that of the first contribution; the index increases by one per element of a
//! run. A correct schedule that keeps rank order only produces lists of ranks `a .. b` at distance
//! 0, stored as one node each; all other lists are stored as pairs.
//!
//! A list does not tell in which order its contributions were combined, `(x0 + x1) + x2` or `x0 +
//! (x1 + x2)`, which decides the bits of a float. So a value names the tree of its combinations,
//! whose nodes stand beside those of the lists, and each tree knows its list. Where no ranks are
//! joined to `a .. b`, a tree is its own list.

use std::collections::HashMap;

use crate::machine::numbers;

/// Maximal number of parts of a value that are examined to describe it.
pub(super) const MAX_EXAMINED: u64 = 1 << 16;

/// A list of contributions: the number of its node. Equal lists of consecutive ranks have equal
/// ids; other equal lists have equal ids if they were combined in the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ListId(u32);

/// A tree of combinations: the number of its node. Two have equal ids if they were combined in the
/// same way, each `left ⊕ right`: the operands are not exchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TreeId(u32);

/// The content of one element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Value {
    /// The contributions, and how they were combined.
    pub(super) tree: TreeId,
    /// Index of the first contribution: into its rank's input, or into its rank's buffer for an
    /// element that has not been written.
    pub(super) index: usize,
}

impl Value {
    /// The value of the element `n` places further in the same run.
    pub(super) fn plus(self, n: usize) -> Value {
        Value {
            tree: self.tree,
            index: self.index.wrapping_add(n),
        }
    }
}

/// A node of a tree or of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Node {
    /// Inputs of `count` ranks starting at `first`, all with the same index. A tree has one rank
    /// here; a list has them in rank order.
    Inputs { first: u32, count: u32 },
    /// The initial content of the buffer of `rank`, before any write.
    Nothing { rank: u32 },
    /// Two combined trees or concatenated lists, by the numbers of their nodes; the index of the
    /// right one is `shift` (wrapping) above that of the left one.
    Pair { left: u32, right: u32, shift: usize },
}

/// A part of a list: `count` contributions of consecutive ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ListPart {
    /// First rank.
    pub(super) first: usize,
    /// Number of ranks.
    pub(super) count: usize,
    /// Distance (wrapping) from the list's index.
    pub(super) shift: usize,
    /// Whether this is unwritten buffer content instead of an input.
    pub(super) nothing: bool,
}

/// All lists and trees of one proof.
#[derive(Debug)]
pub(super) struct Symbols {
    ranks: u64,
    nodes: Vec<Node>,
    /// By node: that of its list, which is the node itself if it is one of a list.
    lists: Vec<u32>,
    /// Number of contributions of each node (saturating).
    lens: Vec<u64>,
    /// The indices for which each list was combined last, without gaps.
    combined: Vec<(usize, usize)>,
    /// The nodes by what they are: inputs by their first rank and number, pairs without a shift by
    /// their parts, and the others.
    inputs: HashMap<[u32; 2], u32>,
    pairs: HashMap<[u32; 2], u32>,
    others: HashMap<Node, u32>,
    /// Results of [`Symbols::as_set`].
    sets: HashMap<ListId, Option<(usize, usize)>>,
}

impl Symbols {
    /// An empty store of lists over `ranks` ranks.
    pub(super) fn new(ranks: usize) -> Symbols {
        Symbols {
            ranks: ranks as u64,
            nodes: Vec::new(),
            lists: Vec::new(),
            lens: Vec::new(),
            combined: Vec::new(),
            inputs: HashMap::new(),
            pairs: HashMap::new(),
            others: HashMap::new(),
            sets: HashMap::new(),
        }
    }

    pub(super) fn input(&mut self, rank: usize) -> TreeId {
        TreeId(self.inputs(rank, 1).0)
    }

    /// The initial content of the buffer of `rank`.
    pub(super) fn nothing(&mut self, rank: usize) -> TreeId {
        TreeId(self.id(Node::Nothing {
            rank: numbers::id(rank),
        }))
    }

    /// Number of nodes: their numbers are below it.
    pub(super) fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The node of this number.
    pub(super) fn node(&self, number: u32) -> Node {
        self.nodes[number as usize]
    }

    /// The two trees that a tree combines, or the rank whose input it is.
    pub(super) fn parts_of(&self, tree: u32) -> Result<[u32; 2], usize> {
        match self.node(tree) {
            Node::Pair { left, right, .. } => Ok([left, right]),
            Node::Inputs { first: rank, .. } | Node::Nothing { rank } => Err(rank as usize),
        }
    }

    /// Number of contributions of a tree (saturating).
    pub(super) fn contributions(&self, tree: u32) -> u64 {
        self.lens[tree as usize]
    }

    /// The contributions of a value.
    pub(super) fn list(&self, value: Value) -> ListId {
        ListId(self.lists[value.tree.0 as usize])
    }

    /// Whether two elements hold the same contributions, however they were combined.
    pub(super) fn are_alike(&self, a: Value, b: Value) -> bool {
        a.index == b.index && (a.tree == b.tree || self.list(a) == self.list(b))
    }

    /// Inputs of `count` ranks starting at `first`, combined in rank order.
    pub(super) fn inputs(&mut self, first: usize, count: usize) -> ListId {
        ListId(self.id(Node::Inputs {
            first: numbers::id(first),
            count: numbers::id(count),
        }))
    }

    /// `left ⊕ right`.
    pub(super) fn combined(&mut self, left: Value, right: Value) -> Value {
        let shift = right.index.wrapping_sub(left.index);
        let node = Node::Pair {
            left: left.tree.0,
            right: right.tree.0,
            shift,
        };
        Value {
            tree: TreeId(self.id(node)),
            index: left.index,
        }
    }

    /// Records that `len` elements, the first of which is `value`, have been combined. Returns
    /// whether they surely had been before: of indices with gaps, only the last are remembered.
    pub(super) fn repeats(&mut self, value: Value, len: usize) -> bool {
        let (start, end) = (value.index, value.index.saturating_add(len));
        let list = self.list(value).at();
        if self.combined.len() <= list {
            self.combined.resize(self.nodes.len(), (0, 0));
        }
        let known = &mut self.combined[list];
        if known.0 <= start && end <= known.1 {
            return true;
        }
        *known = match *known {
            (first, next) if next == start => (first, end),
            (first, next) if first == end => (start, next),
            _ => (start, end),
        };
        false
    }

    pub(super) fn len(&self, list: ListId) -> u64 {
        self.lens[list.at()]
    }

    /// The parts of a list, in order.
    pub(super) fn parts(&self, list: ListId) -> ListParts<'_> {
        ListParts {
            symbols: self,
            open: vec![(list, 0)],
        }
    }

    /// The first [`MAX_EXAMINED`] parts of a list.
    pub(super) fn examined(&self, list: ListId) -> impl Iterator<Item = ListPart> {
        let max = usize::try_from(MAX_EXAMINED).unwrap_or(usize::MAX);
        self.parts(list).take(max)
    }

    /// A list in words: `x0..x7`, `x0+x2+x1`, `x0+nothing`. `at` formats what follows the ranks of
    /// a part, from its distance to the list's index.
    pub(super) fn words(&self, list: ListId, at: impl Fn(usize) -> String) -> String {
        const MAX: usize = 12;
        let (mut terms, mut all) = (Vec::new(), 0);
        for part in self.examined(list) {
            all += part.count;
            match part {
                _ if terms.len() >= MAX => {}
                p if p.nothing => terms.push("nothing".to_string()),
                p if p.count > 2 => {
                    let last = p.first + p.count - 1;
                    terms.push(format!("x{}..x{last}{}", p.first, at(p.shift)));
                }
                p => {
                    let ranks = p.first..p.first + p.count;
                    terms.extend(ranks.map(|r| format!("x{r}{}", at(p.shift))));
                }
            }
        }
        let mut words = terms.join("+");
        if self.examined(list).count() > MAX {
            let n = self.len(list).max(all as u64);
            words += &format!("+... ({n} contributions)");
        }
        words
    }

    /// Returns `(first, count)` if the list holds the inputs of the ranks `first .. first + count`
    /// exactly once each, all with the same index, in any order; otherwise `None`.
    pub(super) fn as_set(&mut self, list: ListId) -> Option<(usize, usize)> {
        if let Node::Inputs { first, count } = self.nodes[list.at()] {
            return Some((first as usize, count as usize));
        }
        if let Some(known) = self.sets.get(&list) {
            return *known;
        }
        let set = self.find_set(list);
        self.sets.insert(list, set);
        set
    }

    fn find_set(&self, list: ListId) -> Option<(usize, usize)> {
        // With more contributions than ranks some rank contributes twice. Such a list may be
        // extremely long.
        if self.len(list) > self.ranks {
            return None;
        }
        let mut ranks: Vec<(usize, usize)> = Vec::new();
        for part in self.parts(list) {
            if part.nothing || part.shift != 0 {
                return None;
            }
            ranks.push((part.first, part.count));
        }
        ranks.sort_unstable();
        let (first, mut end) = (ranks.first()?.0, ranks.first()?.0);
        for (start, count) in ranks {
            if start != end {
                return None;
            }
            end = start + count;
        }
        Some((first, end - first))
    }

    /// The number of a node, new or known.
    fn id(&mut self, node: Node) -> u32 {
        let next = numbers::id(self.nodes.len());
        let id = match node {
            Node::Inputs { first, count } => self.inputs.entry([first, count]).or_insert(next),
            Node::Pair {
                left,
                right,
                shift: 0,
            } => self.pairs.entry([left, right]).or_insert(next),
            _ => self.others.entry(node).or_insert(next),
        };
        let id = *id;
        if id != next {
            return id;
        }
        self.nodes.push(node);
        self.lists.push(id);
        self.lens.push(match node {
            Node::Inputs { count, .. } => u64::from(count),
            Node::Nothing { .. } => 1,
            Node::Pair { left, right, .. } => {
                self.lens[left as usize].saturating_add(self.lens[right as usize])
            }
        });
        if let Node::Pair { left, right, shift } = node {
            let [left, right] = [left, right].map(|part| self.lists[part as usize]);
            let list = match [left, right].map(|part| self.nodes[part as usize]) {
                [
                    Node::Inputs { first, count },
                    Node::Inputs {
                        first: next,
                        count: more,
                    },
                ] if shift == 0 && first + count == next => Node::Inputs {
                    first,
                    count: count + more,
                },
                _ => Node::Pair { left, right, shift },
            };
            if list != node {
                self.lists[id as usize] = self.id(list);
            }
        }
        id
    }
}

impl ListId {
    fn at(self) -> usize {
        self.0 as usize
    }
}

impl TreeId {
    /// The number of its node.
    pub(super) fn number(self) -> u32 {
        self.0
    }
}

/// Iterator of [`Symbols::parts`].
#[derive(Debug)]
pub(super) struct ListParts<'a> {
    symbols: &'a Symbols,
    open: Vec<(ListId, usize)>,
}

impl Iterator for ListParts<'_> {
    type Item = ListPart;

    fn next(&mut self) -> Option<ListPart> {
        loop {
            let (list, base) = self.open.pop()?;
            let (rank, count, nothing) = match self.symbols.nodes[list.at()] {
                Node::Pair { left, right, shift } => {
                    self.open.push((ListId(right), base.wrapping_add(shift)));
                    self.open.push((ListId(left), base));
                    continue;
                }
                Node::Inputs { first, count } => (first, count, false),
                Node::Nothing { rank } => (rank, 1, true),
            };
            return Some(ListPart {
                first: rank as usize,
                count: count as usize,
                shift: base,
                nothing,
            });
        }
    }
}
