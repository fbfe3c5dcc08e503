//! Symbolic values: ordered lists of contributions, each list stored once.
//!
//! The elements of a run have the same history, so they hold the same contributions. A value is
//! therefore a list *and* an index. The list names the contributing ranks, each with the distance
//! of its index from that of the first contribution; the index increases by one per element of a
//! run. A correct schedule that keeps rank order only produces lists of ranks `a .. b` at distance
//! 0, stored as one node each; all other lists are stored as pairs.

use std::collections::HashMap;

/// Maximal number of parts of a value that are examined to describe it.
pub(super) const MAX_EXAMINED: u64 = 1 << 16;

/// A list of contributions. Equal lists of consecutive ranks have equal ids; other equal lists have
/// equal ids if they were combined in the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ListId(u32);

/// The content of one element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Value {
    /// The contributions.
    pub(super) list: ListId,
    /// Index of the first contribution: into its rank's input, or into its rank's buffer for an
    /// element that has not been written.
    pub(super) index: usize,
}

impl Value {
    /// The value of the element `n` places further in the same run.
    pub(super) fn plus(self, n: usize) -> Value {
        Value {
            list: self.list,
            index: self.index.wrapping_add(n),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ListNode {
    /// Inputs of `count` ranks starting at `first`, in rank order, all with the same index.
    Inputs { first: u32, count: u32 },
    /// The initial content of the buffer of `rank`, before any write.
    Nothing { rank: u32 },
    /// Two concatenated lists; the index of the right one is `shift` (wrapping) above that of the
    /// left one.
    Pair {
        left: ListId,
        right: ListId,
        shift: usize,
    },
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

/// All lists of one proof.
#[derive(Debug)]
pub(super) struct Symbols {
    ranks: u64,
    nodes: Vec<ListNode>,
    /// Number of contributions of each list (saturating).
    lens: Vec<u64>,
    /// The indices for which each list was combined last, without gaps.
    combined: Vec<(usize, usize)>,
    ids: HashMap<ListNode, ListId>,
    /// Results of [`Symbols::as_set`].
    sets: HashMap<ListId, Option<(usize, usize)>>,
}

impl Symbols {
    /// An empty store of lists over `ranks` ranks.
    pub(super) fn new(ranks: usize) -> Symbols {
        Symbols {
            ranks: ranks as u64,
            nodes: Vec::new(),
            lens: Vec::new(),
            combined: Vec::new(),
            ids: HashMap::new(),
            sets: HashMap::new(),
        }
    }

    pub(super) fn input(&mut self, rank: usize) -> ListId {
        self.inputs(rank, 1)
    }

    /// The initial content of the buffer of `rank`.
    pub(super) fn nothing(&mut self, rank: usize) -> ListId {
        self.id(ListNode::Nothing { rank: narrow(rank) })
    }

    /// Inputs of `count` ranks starting at `first`, combined in rank order.
    pub(super) fn inputs(&mut self, first: usize, count: usize) -> ListId {
        self.id(ListNode::Inputs {
            first: narrow(first),
            count: narrow(count),
        })
    }

    /// `left ⊕ right`.
    pub(super) fn combined(&mut self, left: Value, right: Value) -> Value {
        let shift = right.index.wrapping_sub(left.index);
        let nodes = (self.nodes[left.list.at()], self.nodes[right.list.at()]);
        let node = match nodes {
            (
                ListNode::Inputs { first, count },
                ListNode::Inputs {
                    first: next,
                    count: more,
                },
            ) if shift == 0 && first + count == next => ListNode::Inputs {
                first,
                count: count + more,
            },
            _ => ListNode::Pair {
                left: left.list,
                right: right.list,
                shift,
            },
        };
        Value {
            list: self.id(node),
            index: left.index,
        }
    }

    /// Records that `len` elements, the first of which is `value`, have been combined. Returns
    /// whether they surely had been before: of indices with gaps, only the last are remembered.
    pub(super) fn repeats(&mut self, value: Value, len: usize) -> bool {
        let (start, end) = (value.index, value.index.saturating_add(len));
        let known = &mut self.combined[value.list.at()];
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
        if let ListNode::Inputs { first, count } = self.nodes[list.at()] {
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

    fn id(&mut self, node: ListNode) -> ListId {
        let next = ListId(narrow(self.nodes.len()));
        let id = *self.ids.entry(node).or_insert(next);
        if id == next {
            self.nodes.push(node);
            self.combined.push((0, 0));
            self.lens.push(match node {
                ListNode::Inputs { count, .. } => u64::from(count),
                ListNode::Nothing { .. } => 1,
                ListNode::Pair { left, right, .. } => {
                    self.lens[left.at()].saturating_add(self.lens[right.at()])
                }
            });
        }
        id
    }
}

impl ListId {
    fn at(self) -> usize {
        self.0 as usize
    }
}

/// Ranks and lists are fewer than the steps and buffers that use them, and those have 32-bit
/// numbers.
fn narrow(n: usize) -> u32 {
    u32::try_from(n).expect("fewer than 2^32 ranks and lists")
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
                ListNode::Pair { left, right, shift } => {
                    self.open.push((right, base.wrapping_add(shift)));
                    self.open.push((left, base));
                    continue;
                }
                ListNode::Inputs { first, count } => (first, count, false),
                ListNode::Nothing { rank } => (rank, 1, true),
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
