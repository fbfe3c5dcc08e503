//! Which number comes out: the trees in which a reduction combines its contributions.
//!
//! Addition and multiplication of floats commute bit for bit (payloads of NaNs aside) and are not
//! associative. So the bits of an output element are decided by its *reduction tree*: the binary
//! tree over contributions in which it was combined, whose operands have no order. Elements with
//! equal trees have equal bits for all inputs; of unequal trees there are inputs for which the bits
//! differ ([`Difference`]).

use serde::Serialize;

use super::memory::{Memory, SymbolPiece};
use super::shapes::{self, Shapes, Term, hexadecimal, mixed, words};
use super::symbols::Symbols;
use crate::rules::matching::NONE;
use crate::schedule::Schedule;
use crate::schedule::collective::{Extent, Holders, Operands};

/// Which number a correct reduction computes, where the order of combining decides its bits: sums
/// and products of floats. See [`Report::bits`](super::Report::bits).
///
/// ```
/// let of = |algorithm: &str| {
///     let schedule = oneport::Request::allreduce(4, 4).plan(algorithm)?;
///     Ok::<_, oneport::Error>(schedule.check().bits().cloned().expect("a correct reduction"))
/// };
/// let (short, long, ring) = (of("recursive-doubling")?, of("rabenseifner")?, of("ring")?);
/// assert_eq!(short.words.as_deref(), Some("((0+1)+(2+3))"));
/// // The same bits: one may take the place of the other.
/// assert_eq!(short.tree, long.tree);
/// // Each quarter of the vector has a tree of its own, all of them the same on all ranks.
/// assert_eq!((ring.trees, ring.same_on_all_ranks), (4, true));
/// # Ok::<(), oneport::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Bits {
    /// Whether all ranks that hold an output element combined it in the same tree. Only in an
    /// allreduce does more than one rank hold it.
    pub same_on_all_ranks: bool,
    /// Whether all output elements were combined in one tree, so that their bits do not depend on
    /// their place; of a scan, all elements of each rank.
    pub same_at_all_places: bool,
    /// Number of different trees.
    pub trees: usize,
    /// A hash of the tree, if all places have the same: schedules with the same hash give the same
    /// bits. 16 hexadecimal digits that depend on nothing but the tree.
    pub tree: Option<String>,
    /// That tree in words, for up to 16 ranks: `((0+1)+(2+3))`. A scan has none: it has a tree for
    /// each rank.
    pub words: Option<String>,
    /// A hash of the trees of all output elements on all ranks: two schedules of one collective
    /// with the same hash give the same bits at all places of a vector of this length.
    pub everywhere: String,
    /// The most combinations between a contribution and its output. To first order, the rounding
    /// error of a sum is at most this depth, times the unit roundoff, times the sum of the
    /// absolute values of its contributions.
    pub depth: usize,
    /// Where two ranks differ, unless they are all the same.
    #[serde(skip)]
    pub differs: Option<Difference>,
}

/// Two ranks that hold different numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The first output element in which the two differ.
    pub element: usize,
    /// The two ranks.
    pub ranks: [usize; 2],
    /// Their trees, in words for up to 16 ranks, else as hashes.
    pub trees: [String; 2],
    /// Three ranks whose contributions show it. The first tree combines those of the first two
    /// before either meets the third; the second tree does not. So with a large number `x`, `-x`
    /// and 1, and zero elsewhere, the first tree has the sum 1, while the second loses the 1 in
    /// `x` or `-x` and has 0.
    pub swamped: [usize; 3],
}

/// Elements of an output, as many as the first number says, that have one shape.
type Run = (usize, u32);

/// What is found about the outputs, rank by rank. Nothing of it holds unless the schedule turns out
/// to be correct.
#[derive(Debug)]
pub(super) struct BitsProof {
    shapes: Shapes,
    /// Whether all outputs have the same contributions.
    all: bool,
    /// Whether all ranks have the same output.
    everywhere: bool,
    /// The output of rank 0, and that of the present rank.
    first: Vec<Run>,
    output: Vec<Run>,
    /// The different shapes.
    trees: Vec<u32>,
    /// By shape: whether it is one of them.
    seen: Vec<bool>,
    /// The shape of all elements so far that have the same contributions.
    one: Option<u32>,
    places_differ: bool,
    /// Of that shape, and of those before.
    hash: Option<u64>,
    /// Of all shapes of all outputs.
    everywhere_hash: u64,
    /// The first difference from rank 0: element, rank, shapes.
    differs: Option<(usize, usize, [u32; 2])>,
}

impl BitsProof {
    /// Of a schedule that has been executed on `symbols`; `None` if it combines nothing.
    pub(super) fn new(schedule: &Schedule, symbols: &Symbols) -> Option<BitsProof> {
        let row = schedule.collective().kind().row();
        let all = row.combines? == Operands::All;
        let shapes = Shapes::new(symbols);
        Some(BitsProof {
            seen: vec![false; symbols.nodes()],
            shapes,
            all,
            everywhere: all && row.output == (Holders::Every, Extent::Whole),
            first: Vec::new(),
            output: Vec::new(),
            trees: Vec::new(),
            one: None,
            places_differ: false,
            hash: None,
            everywhere_hash: 0,
            differs: None,
        })
    }

    /// The output of the next rank.
    pub(super) fn add(&mut self, symbols: &Symbols, rank: usize, output: &[SymbolPiece]) {
        if !self.all {
            self.one = None;
        }
        self.output.clear();
        for &SymbolPiece { len, value } in output {
            let shape = self.shapes.of(symbols, value.tree.number());
            self.output.push((len, shape));
            if !std::mem::replace(&mut self.seen[shape as usize], true) {
                self.trees.push(shape);
            }
            match self.one {
                None => {
                    let hash = self.shapes.hash(shape);
                    self.one = Some(shape);
                    self.hash = Some(self.hash.map_or(hash, |before| mixed(before, hash)));
                }
                Some(one) => self.places_differ |= one != shape,
            }
        }
        let mut hash = mixed(self.everywhere_hash, rank as u64);
        for run in self.output.chunk_by(|a, b| a.1 == b.1) {
            let len: usize = run.iter().map(|(len, _)| len).sum();
            hash = mixed(mixed(hash, len as u64), self.shapes.hash(run[0].1));
        }
        self.everywhere_hash = hash;
        if rank == 0 {
            std::mem::swap(&mut self.first, &mut self.output);
        } else if self.everywhere && self.differs.is_none() {
            let found = first_difference(&self.first, &self.output);
            self.differs = found.map(|(element, pair)| (element, rank, pair));
        }
    }

    /// What is to be said of a schedule that is correct.
    pub(super) fn finish(self, symbols: &Symbols) -> Bits {
        let BitsProof {
            mut shapes, trees, ..
        } = self;
        let depths = trees.iter().map(|&shape| shapes.depth(shape));
        let depth = depths.max().unwrap_or(0) as usize;
        let mut difference = |(element, rank, pair): (usize, usize, [u32; 2])| Difference {
            element,
            ranks: [0, rank],
            trees: pair.map(|shape| {
                let words = words(symbols, shape);
                words.unwrap_or_else(|| hexadecimal(shapes.hash(shape)))
            }),
            swamped: shapes.swamped(symbols, pair),
        };
        Bits {
            same_on_all_ranks: self.differs.is_none(),
            same_at_all_places: !self.places_differ,
            trees: trees.len(),
            tree: self.hash.filter(|_| !self.places_differ).map(hexadecimal),
            words: match trees[..] {
                [one] => words(symbols, one),
                _ => None,
            },
            everywhere: hexadecimal(self.everywhere_hash),
            depth,
            differs: self.differs.map(&mut difference),
        }
    }
}

/// The first element in which two outputs of the same length differ, and its shapes.
fn first_difference(a: &[Run], b: &[Run]) -> Option<(usize, [u32; 2])> {
    let (mut element, mut ends) = (0, [0, 0]);
    let mut rest = [a.iter(), b.iter()];
    let mut shapes = [NONE; 2];
    loop {
        for side in 0..2 {
            while ends[side] == element {
                let &(len, shape) = rest[side].next()?;
                (ends[side], shapes[side]) = (element + len, shape);
            }
        }
        if shapes[0] != shapes[1] {
            return Some((element, shapes));
        }
        element = ends[0].min(ends[1]);
    }
}

/// What the outputs of a correct reduction hold.
#[derive(Debug)]
pub(crate) struct OutputTrees<'s> {
    schedule: &'s Schedule,
    symbols: Symbols,
    memories: Vec<Memory>,
}

/// A run of output elements that were combined in one tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutputPart {
    pub(crate) len: usize,
    /// The index of the first element in the inputs.
    pub(crate) index: usize,
    /// The number of the tree.
    pub(crate) tree: u32,
}

impl<'s> OutputTrees<'s> {
    pub(super) fn new(schedule: &'s Schedule, symbols: Symbols, memories: Vec<Memory>) -> Self {
        OutputTrees {
            schedule,
            symbols,
            memories,
        }
    }

    /// The parts of the output of `rank`.
    pub(crate) fn of_rank(&self, rank: usize) -> impl Iterator<Item = OutputPart> {
        let mut pieces = Vec::new();
        for &span in &self.schedule.layout()[rank].output {
            self.memories[rank].read(span, &mut pieces);
        }
        pieces
            .into_iter()
            .map(|SymbolPiece { len, value }| OutputPart {
                len,
                index: value.index,
                tree: value.tree.number(),
            })
    }

    /// How to evaluate a tree.
    pub(crate) fn terms(&self, tree: u32) -> Vec<Term> {
        shapes::terms(&self.symbols, tree)
    }
}
