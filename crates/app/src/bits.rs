//! Which number comes out on which rank and at which place, for people and for programs.

use oneport::check::{Bits, Difference, Report};
use oneport::run::Op;

use crate::args::Vector;
use crate::units::counted;
use oneport::run::ElementType;
use schemars::JsonSchema;
use serde::Serialize;

/// What is said of the bits of a correct reduction, where the order of combining decides them: of
/// sums and products of floats.
#[derive(Debug, Clone, JsonSchema, Serialize)]
pub(crate) struct ShownBits {
    #[serde(flatten)]
    bits: Bits,
    differs: Option<Differs>,
    #[serde(skip)]
    rounding: Rounding,
}

/// Two ranks with different numbers.
#[derive(Debug, Clone, JsonSchema, Serialize)]
struct Differs {
    element: usize,
    ranks: [usize; 2],
    trees: [String; 2],
    /// By rank: contributions that show it.
    inputs: Vec<f64>,
    /// Those that are not like all others, and what the two ranks make of them, in words.
    #[serde(skip)]
    shown: String,
}

/// An operator on floats whose results are rounded.
#[derive(Debug, Clone, Copy)]
struct Rounding {
    is_product: bool,
    significand_bits: u32,
    /// The largest power of two.
    max_exponent: i32,
    /// Whether the element type was given: without one it is a float as soon as it matters.
    is_given: bool,
}

impl Rounding {
    /// Of elements that are combined with an operator, if results are rounded.
    fn of(vector: &Vector) -> Option<Rounding> {
        let is_product = match vector.op() {
            Op::SUM => false,
            Op::PROD => true,
            _ => return None,
        };
        let dtype = vector.dtype.unwrap_or(ElementType::F32);
        let significand_bits = dtype.significand_bits()?;
        let exponent_bits = 8 * dtype.bytes() - u64::from(significand_bits);
        Some(Rounding {
            is_product,
            significand_bits,
            max_exponent: (1 << (exponent_bits - 1)) - 1,
            is_given: vector.dtype.is_some(),
        })
    }

    /// Contributions of three ranks and of all others, in words and as numbers, and the results of
    /// the tree that combines the first two first, and of the other tree.
    fn example(self) -> ([(String, f64); 3], f64, [String; 2]) {
        let power = |exponent: i32| (format!("2^{exponent}"), 2f64.powi(exponent));
        if self.is_product {
            let large = power(self.max_exponent);
            let results = ["infinity".to_string(), large.0.clone()];
            (
                [large, ("4".to_string(), 4.0), ("1/4".to_string(), 0.25)],
                1.0,
                results,
            )
        } else {
            // Two more bits than fit: it swallows 1 from either side.
            let (words, large) = power(self.significand_bits.cast_signed() + 2);
            let three = [
                (words.clone(), large),
                (format!("-{words}"), -large),
                ("1".to_string(), 1.0),
            ];
            (three, 0.0, ["1", "0"].map(String::from))
        }
    }

    fn differs(self, found: &Difference, ranks: usize) -> Differs {
        let (three, others, results) = self.example();
        let mut inputs = vec![others; ranks];
        let mut words = Vec::new();
        for (&rank, (word, value)) in found.swamped.iter().zip(&three) {
            inputs[rank] = *value;
            words.push(format!("x{rank} = {word}"));
        }
        let others = match ranks {
            ..=3 => String::new(),
            _ => format!(" and all others {others}"),
        };
        let [a, b] = results;
        Differs {
            element: found.element,
            ranks: found.ranks,
            trees: found.trees.clone(),
            inputs,
            shown: format!("{}{others} give {a} and {b}", words.join(", ")),
        }
    }
}

impl ShownBits {
    /// Whether the order of combining decides the bits of such elements.
    pub(crate) fn matter(vector: &Vector) -> bool {
        Rounding::of(vector).is_some()
    }

    /// What a proof says of the bits, if the order of combining decides them.
    pub(crate) fn of(report: &Report, vector: &Vector, ranks: usize) -> Option<ShownBits> {
        let (rounding, bits) = (Rounding::of(vector)?, report.bits()?);
        let differs = bits.differs.as_ref();
        Some(ShownBits {
            bits: bits.clone(),
            differs: differs.map(|found| rounding.differs(found, ranks)),
            rounding,
        })
    }

    /// Whether ranks get different bits.
    pub(crate) fn differ(&self) -> bool {
        !self.bits.same_on_all_ranks
    }

    /// Whether all places have one tree, and the one with this hash, if there is one.
    pub(crate) fn are_of_tree(&self, hash: Option<&str>) -> bool {
        let tree = self.bits.tree.as_deref();
        tree.is_some() && hash.is_none_or(|hash| tree == Some(hash))
    }

    /// In a cell of a table: the beginning of the hash of the tree, the number of trees, or that
    /// ranks differ.
    pub(crate) fn cell(&self) -> String {
        match &self.bits.tree {
            _ if !self.bits.same_on_all_ranks => "ranks differ".to_string(),
            Some(tree) => tree.chars().take(8).collect(),
            None => counted(self.bits.trees, "tree"),
        }
    }

    /// In a cell of a table that has room for a tree of few ranks in words.
    pub(crate) fn wide_cell(&self) -> String {
        let words = self.bits.words.clone().filter(|words| words.len() <= 32);
        words.unwrap_or_else(|| self.cell())
    }

    /// The tree in words, if all places have one and it is of few ranks.
    pub(crate) fn words(&self) -> Option<String> {
        self.bits.words.clone()
    }

    /// In a sentence.
    pub(crate) fn sentence(&self) -> String {
        let of = if self.rounding.is_given {
            ""
        } else {
            "of floats: "
        };
        let trees = match (&self.bits.words, &self.bits.tree) {
            (Some(words), _) => format!("one tree at all places, {words}"),
            (_, Some(tree)) => format!("one tree at all places, {tree}"),
            _ => format!("{} by place", counted(self.bits.trees, "tree")),
        };
        let error = if !self.rounding.is_product && self.bits.depth > 0 {
            format!(" (rounding error <= {} u sum|x|)", self.bits.depth)
        } else {
            String::new()
        };
        let depth = self.bits.depth;
        let ranks = match &self.differs {
            None => format!("same on all ranks; {trees}"),
            Some(Differs {
                element,
                ranks: [a, b],
                trees: [of_a, of_b],
                shown,
                ..
            }) => format!(
                "RANKS DIFFER, {}; in element {element} rank {a} has {of_a}, rank {b} has {of_b}: {shown}",
                counted(self.bits.trees, "tree")
            ),
        };
        format!("{of}{ranks}; depth {depth}{error}")
    }
}
