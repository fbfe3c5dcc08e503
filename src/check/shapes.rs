//! The shapes of trees: trees whose operands have no order.
//!
//! The proof keeps trees as they were combined, each `left ⊕ right`. A shape is named by one of the
//! trees that have it. Trees with different hashes have different shapes; of trees with equal
//! hashes and depths, the parts are compared, and of these the parts, each once. So the work is
//! linear, and no two shapes are taken for one because their hashes are equal.

use std::collections::{HashMap, HashSet};

use super::symbols::{Node, Symbols};
use crate::machine::numbers::id;
use crate::random::Generator;
use crate::rules::matching::NONE;

/// Most contributions of a tree that is told in words.
const MAX_WORDS: u64 = 16;

/// The shapes of the trees of a proof that has executed all steps. A tree is the number of its node
/// among the symbols, a shape that of one of its trees.
#[derive(Debug)]
pub(super) struct Shapes {
    /// By node: a hash of its shape, which depends on nothing else, and the depth.
    hashes: Vec<u64>,
    depths: Vec<u32>,
    /// By node: the shape, if it is known.
    shapes: Vec<u32>,
    /// By hash and depth: the first shape that has them. Parts are less deep than what they are
    /// part of, so whatever the hashes are, a comparison of parts comes to an end.
    known: HashMap<(u64, u32), u32>,
    open: Vec<u32>,
}

/// A step of the evaluation of a tree, which takes its operands from a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Term {
    /// Pushes the input of a rank.
    Input(usize),
    /// Pops two values and pushes their combination.
    Combine,
}

impl Shapes {
    pub(super) fn new(symbols: &Symbols) -> Shapes {
        let nodes = symbols.nodes();
        let mut hashes: Vec<u64> = Vec::with_capacity(nodes);
        let mut depths: Vec<u32> = Vec::with_capacity(nodes);
        // A node comes after its parts.
        for node in 0..id(nodes) {
            let (hash, depth) = match symbols.node(node) {
                Node::Pair { left, right, .. } => {
                    let [left, right] = [left, right].map(|part| part as usize);
                    let (a, b) = (hashes[left], hashes[right]);
                    let depth = depths[left].max(depths[right]) + 1;
                    (mixed(a.min(b), a.max(b)), depth)
                }
                Node::Inputs { first, .. } => (Generator::new(u64::from(first)).next_u64(), 0),
                Node::Nothing { .. } => (0, 0),
            };
            hashes.push(hash);
            depths.push(depth);
        }
        Shapes {
            hashes,
            depths,
            shapes: vec![NONE; nodes],
            known: HashMap::new(),
            open: Vec::new(),
        }
    }

    pub(super) fn hash(&self, shape: u32) -> u64 {
        self.hashes[shape as usize]
    }

    pub(super) fn depth(&self, shape: u32) -> u32 {
        self.depths[shape as usize]
    }

    /// The shape of a tree.
    pub(super) fn of(&mut self, symbols: &Symbols, tree: u32) -> u32 {
        if self.shapes[tree as usize] == NONE {
            self.find(symbols, tree);
        }
        self.shapes[tree as usize]
    }

    fn find(&mut self, symbols: &Symbols, tree: u32) {
        self.open.push(tree);
        while let Some(&tree) = self.open.last() {
            let key = (self.hash(tree), self.depth(tree));
            let alike = *self.known.entry(key).or_insert(tree);
            let parts = [tree, alike].map(|tree| symbols.parts_of(tree));
            let shape = match parts {
                _ if alike == tree => tree,
                [Ok(parts), Ok(of_alike)] => {
                    let all = [parts, of_alike].concat();
                    let before = self.open.len();
                    let unknown = all
                        .iter()
                        .filter(|&&part| self.shapes[part as usize] == NONE);
                    self.open.extend(unknown);
                    if self.open.len() > before {
                        continue;
                    }
                    let [mut a, mut b] =
                        [parts, of_alike].map(|parts| parts.map(|part| self.shapes[part as usize]));
                    a.sort_unstable();
                    b.sort_unstable();
                    // Else two hashes are equal by chance.
                    if a == b { alike } else { tree }
                }
                _ => tree,
            };
            self.shapes[tree as usize] = shape;
            self.open.pop();
        }
    }

    /// Three ranks of which `a` combines the first two before it combines either with the third,
    /// while `b` does not: [`Difference::swamped`](super::Difference::swamped). The two are
    /// different trees over the same ranks.
    pub(super) fn swamped(&mut self, symbols: &Symbols, [a, b]: [u32; 2]) -> [usize; 3] {
        // By shape that is part of `b`: the tree that it is combined into.
        let b = self.of(symbols, b);
        let mut parents = HashMap::from([(b, NONE)]);
        let mut open = vec![b];
        while let Some(tree) = open.pop() {
            for part in symbols.parts_of(tree).into_iter().flatten() {
                let part = self.of(symbols, part);
                parents.insert(part, tree);
                open.push(part);
            }
        }
        // A pair in `a` that is not part of `b`, although both its parts are: `a` is not part of
        // `b`, but all inputs are.
        let mut pair = a;
        let [left, right] = loop {
            let parts = symbols
                .parts_of(pair)
                .expect("all inputs are in both trees");
            let parts = parts.map(|part| self.of(symbols, part));
            match parts.into_iter().find(|part| !parents.contains_key(part)) {
                Some(part) => pair = part,
                None => break parts,
            }
        };
        // Where `b` combines them, at least one has met another contribution before: that of its
        // sibling.
        let ancestors = |shape: u32| {
            let next = |&shape: &u32| Some(parents[&shape]).filter(|&parent| parent != NONE);
            std::iter::successors(Some(shape), next)
        };
        let above_left: HashSet<u32> = ancestors(left).collect();
        let meet = ancestors(right).find(|shape| above_left.contains(shape));
        let lone = [left, right]
            .into_iter()
            .find(|part| Some(parents[part]) != meet);
        let lone = lone.expect("they are no pair in the other tree");
        let siblings = symbols
            .parts_of(parents[&lone])
            .expect("a parent has parts");
        let siblings = siblings.map(|part| self.of(symbols, part));
        let third = siblings.into_iter().find(|&part| part != lone);
        let third = third.expect("no contribution counts twice");
        [left, right, third].map(|mut tree| {
            loop {
                match symbols.parts_of(tree) {
                    Ok([left, _]) => tree = left,
                    Err(rank) => return rank,
                }
            }
        })
    }
}

/// A tree in words, if it has few contributions: of two operands, first the one with the least
/// rank.
pub(super) fn words(symbols: &Symbols, tree: u32) -> Option<String> {
    fn with_first(symbols: &Symbols, tree: u32) -> (usize, String) {
        match symbols.parts_of(tree) {
            Err(rank) => (rank, rank.to_string()),
            Ok(parts) => {
                let mut parts = parts.map(|part| with_first(symbols, part));
                parts.sort_unstable();
                let [(rank, a), (_, b)] = parts;
                (rank, format!("({a}+{b})"))
            }
        }
    }
    let few = symbols.contributions(tree) <= MAX_WORDS;
    few.then(|| with_first(symbols, tree).1)
}

/// How to evaluate a tree: of two operands, first the larger one, so that few values are held at
/// once.
pub(super) fn terms(symbols: &Symbols, tree: u32) -> Vec<Term> {
    let mut terms = Vec::new();
    let mut open = vec![Some(tree)];
    while let Some(next) = open.pop() {
        match next.map(|tree| symbols.parts_of(tree)) {
            None => terms.push(Term::Combine),
            Some(Err(rank)) => terms.push(Term::Input(rank)),
            Some(Ok(mut parts)) => {
                parts.sort_by_key(|&part| symbols.contributions(part));
                let [small, large] = parts.map(Some);
                open.extend([None, small, large]);
            }
        }
    }
    terms
}

/// A hash of two, which is the same on every machine.
pub(super) fn mixed(a: u64, b: u64) -> u64 {
    Generator::new(Generator::new(a).next_u64() ^ b).next_u64()
}

pub(super) fn hexadecimal(hash: u64) -> String {
    format!("{hash:016x}")
}
