//! What a row of the table of collectives says.

use super::Kind;

/// Ranks that have an input or an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holders {
    /// Every rank.
    Every,
    /// The root.
    Root,
    /// The ranks that the collective lists.
    Targets,
    /// Every rank but rank 0.
    AllButFirst,
}

/// What a rank has as input or output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The vector, or the blocks (or tokens) of all ranks, in rank order.
    Whole,
    /// Its own block, or its own token.
    Block,
    /// A block for each rank as input, one from each rank as output.
    Pairs,
}

/// The ranks whose inputs are combined, in rank order, in the output of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operands {
    /// All ranks.
    All,
    /// The ranks up to its own.
    UpToOwn,
    /// The ranks before its own.
    BeforeOwn,
}

/// What is known of a collective: see [`Kind::row`].
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CollectiveRow {
    /// The name in files and on the command line.
    pub name: &'static str,
    /// Who has which input that counts.
    pub input: (Holders, Extent),
    /// Who ends with which output.
    pub output: (Holders, Extent),
    /// Whose inputs are combined; `None` if none are.
    pub combines: Option<Operands>,
    /// Whether there are data; else there are tokens, which have no bytes.
    pub has_data: bool,
    /// The collective of a schedule that is reversed in time, if there is one.
    pub reverse: Option<Kind>,
    /// The name of MPI's function, and that of the one for blocks of different sizes, if there is
    /// another; none if MPI does not have the collective.
    pub mpi: &'static [&'static str],
    /// Its name in MSCCL.
    pub msccl: Option<&'static str>,
}

impl CollectiveRow {
    /// A row of a collective that moves data and combines nothing, which other tools lack.
    pub(super) const fn new(
        name: &'static str,
        input: (Holders, Extent),
        output: (Holders, Extent),
    ) -> CollectiveRow {
        CollectiveRow {
            name,
            input,
            output,
            combines: None,
            has_data: true,
            reverse: None,
            mpi: &[],
            msccl: None,
        }
    }

    pub(super) const fn combining(self, operands: Operands) -> CollectiveRow {
        CollectiveRow {
            combines: Some(operands),
            ..self
        }
    }

    /// Whether a rank's output can lie where its input is: it needs no part of the input for longer
    /// than the ranks that wait for it.
    pub(crate) fn is_in_place(&self) -> bool {
        self.input.1 != Extent::Pairs && self.combines != Some(Operands::BeforeOwn)
    }
}
