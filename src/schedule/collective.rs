//! Collectives, one row each: what everything else about a collective is derived from.

mod expected;
mod row;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

pub use self::expected::Expected;
pub(crate) use self::expected::Totals;
use self::row::CollectiveRow as Row;
use self::row::Extent::{Block, Pairs, Whole};
use self::row::Holders::{AllButFirst, Every, Root, Targets};
pub use self::row::{CollectiveRow, Extent, Holders, Operands};
use crate::error::{Error, Result, named};
use crate::machine::CostModel;
use crate::schedule::{Layout, Span};

/// The parameters of a collective: those that it does not have are `None`.
#[derive(Debug, Clone, Copy, Default)]
struct CollectiveParameters<'a> {
    root: Option<&'a usize>,
    targets: Option<&'a Vec<usize>>,
}

/// Makes [`Collective`] and [`Kind`] of a list of rows.
macro_rules! collectives {
    (
        $(#[doc = $outer:literal])*
        pub enum Collective {$(
            $(#[doc = $doc:literal])*
            $kind:ident $({ $($(#[doc = $field_doc:literal])* $field:ident: $type:ty),* })?
                = $row:expr;
        )*}
    ) => {
        $(#[doc = $outer])*
        #[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
        #[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
        #[non_exhaustive]
        pub enum Collective {
            $(
                $(#[doc = $doc])*
                $kind $({ $($(#[doc = $field_doc])* $field: $type),* })?,
            )*
        }

        /// The kinds of collectives, without their parameters. A [name](Kind::name) such as
        /// `"reduce_scatter"` in files.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
        )]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum Kind {
            $(
                #[doc = concat!("[`Collective::", stringify!($kind), "`].")]
                $kind,
            )*
        }

        impl Kind {
            /// All kinds, in the order they are listed to users.
            pub const ALL: [Kind; [$(Kind::$kind),*].len()] = [$(Kind::$kind),*];

            /// What is known of the collective, from which all else is derived.
            pub const fn row(self) -> &'static Row {
                match self {
                    $(Kind::$kind => const { &$row },)*
                }
            }

            fn with(self, parameters: CollectiveParameters<'_>) -> Collective {
                match self {
                    $(
                        Kind::$kind => Collective::$kind $({
                            $($field: parameters.$field.cloned().unwrap_or_default()),*
                        })?,
                    )*
                }
            }
        }

        impl Collective {
            /// The kind of the collective, without its parameters.
            pub fn kind(&self) -> Kind {
                match self {
                    $(Collective::$kind { .. } => Kind::$kind,)*
                }
            }

            #[allow(clippy::needless_update, reason = "some have all parameters")]
            fn parameters(&self) -> CollectiveParameters<'_> {
                match self {
                    $(
                        Collective::$kind $({ $($field),* })? => CollectiveParameters {
                            $($($field: Some($field),)*)?
                            ..CollectiveParameters::default()
                        },
                    )*
                }
            }
        }
    };
}

collectives! {
    /// A collective operation over all `p` ranks of a schedule.
    ///
    /// Block sizes follow from the lengths of the `input` and `output` spans of the ranks' layouts,
    /// so irregular forms need no kind of their own. Input and output list their spans in rank
    /// order of the blocks. A rank without a required result has no output: a broadcast gives every
    /// rank an output, [`Collective::Multicast`] only its targets.
    ///
    /// With vectors of `n` elements, and blocks of `n[r]` elements of rank `r`:
    ///
    /// | collective | input | output |
    /// |---|---|---|
    /// | broadcast | root: `n` | every rank: `n` |
    /// | multicast | root: `n` | targets: `n` |
    /// | reduce | every rank: `n` | root: `n` |
    /// | allreduce, scan | every rank: `n` | every rank: `n` |
    /// | exscan | every rank: `n` | every rank but rank 0: `n` |
    /// | gather | rank `r`: `n[r]` | root: the sum of all `n[r]` |
    /// | scatter | root: the sum of all `n[r]` | rank `r`: `n[r]` |
    /// | allgather | rank `r`: `n[r]` | every rank: the sum of all `n[r]` |
    /// | reduce_scatter | every rank: the sum of all `n[r]` | rank `r`: `n[r]` |
    /// | alltoall | every rank: one block for each rank | every rank: one block from each rank |
    /// | barrier | every rank: one token | every rank: the tokens of all ranks |
    ///
    /// Ranks whose input is not named here may have one; it does not contribute. The input of an
    /// alltoall has one span per block if it has `p` spans, and `p` blocks of equal length
    /// otherwise.
    ///
    /// The tokens of a barrier have no bytes: a message takes alpha, and its tokens tell which
    /// ranks have entered before it was sent. A rank leaves when it has those of all ranks.
    ///
    /// In files an object: `{"kind": "broadcast", "root": 0}`.
    pub enum Collective {
        /// Every rank, including the root, ends with the root's input.
        Broadcast {
            /// Rank whose input it is.
            root: usize
        } = Row {
            reverse: Some(Kind::Reduce),
            mpi: &["MPI_Bcast"],
            msccl: Some("broadcast"),
            ..Row::new("broadcast", (Root, Whole), (Every, Whole))
        };

        /// The root ends with the combination of all inputs, in rank order.
        Reduce {
            /// Rank that gets the result.
            root: usize
        } = Row {
            reverse: Some(Kind::Broadcast),
            mpi: &["MPI_Reduce"],
            msccl: Some("reduce"),
            ..Row::new("reduce", (Every, Whole), (Root, Whole)).combining(Operands::All)
        };

        /// Every rank ends with the combination of all inputs, in rank order.
        Allreduce = Row {
            mpi: &["MPI_Allreduce"],
            msccl: Some("allreduce"),
            ..Row::new("allreduce", (Every, Whole), (Every, Whole)).combining(Operands::All)
        };

        /// The root ends with all inputs, concatenated in rank order.
        Gather {
            /// Rank that gets the blocks.
            root: usize
        } = Row {
            reverse: Some(Kind::Scatter),
            mpi: &["MPI_Gather", "MPI_Gatherv"],
            msccl: Some("gather"),
            ..Row::new("gather", (Every, Block), (Root, Whole))
        };

        /// Every rank ends with its block of the root's input.
        Scatter {
            /// Rank whose input it is.
            root: usize
        } = Row {
            reverse: Some(Kind::Gather),
            mpi: &["MPI_Scatter", "MPI_Scatterv"],
            msccl: Some("scatter"),
            ..Row::new("scatter", (Root, Whole), (Every, Block))
        };

        /// Every rank ends with all inputs, concatenated in rank order.
        Allgather = Row {
            reverse: Some(Kind::ReduceScatter),
            mpi: &["MPI_Allgather", "MPI_Allgatherv"],
            msccl: Some("allgather"),
            ..Row::new("allgather", (Every, Block), (Every, Whole))
        };

        /// Every rank ends with its block of the combination of all inputs, in rank order.
        ReduceScatter = Row {
            reverse: Some(Kind::Allgather),
            mpi: &["MPI_Reduce_scatter_block", "MPI_Reduce_scatter"],
            msccl: Some("reducescatter"),
            ..Row::new("reduce_scatter", (Every, Whole), (Every, Block)).combining(Operands::All)
        };

        /// Every rank ends with one block from each rank, in rank order.
        Alltoall = Row {
            mpi: &["MPI_Alltoall", "MPI_Alltoallv"],
            msccl: Some("alltoall"),
            ..Row::new("alltoall", (Every, Pairs), (Every, Pairs))
        };

        /// The targets end with the root's input. The root has an output only if it is a target,
        /// too.
        Multicast {
            /// Rank whose input it is.
            root: usize,
            /// Ranks that get it, in any order.
            targets: Vec<usize>
        } = Row::new("multicast", (Root, Whole), (Targets, Whole));

        /// Rank `r` ends with the combination of the inputs of ranks `0..=r`, in rank order.
        Scan = Row {
            mpi: &["MPI_Scan"],
            ..Row::new("scan", (Every, Whole), (Every, Whole)).combining(Operands::UpToOwn)
        };

        /// Rank `r > 0` ends with the combination of the inputs of ranks `0..r`, in rank order: an
        /// exclusive scan. Rank 0 has no output.
        Exscan = Row {
            mpi: &["MPI_Exscan"],
            ..Row::new("exscan", (Every, Whole), (AllButFirst, Whole))
                .combining(Operands::BeforeOwn)
        };

        /// No rank ends before all ranks have started: every rank ends with the tokens of all
        /// ranks, in rank order.
        Barrier = Row {
            has_data: false,
            mpi: &["MPI_Barrier"],
            ..Row::new("barrier", (Every, Block), (Every, Whole))
        };
    }
}

impl Kind {
    /// The name in files and on the command line: lower case, words joined by `_`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The collective of this kind, with this root if it has one, and without targets.
    pub fn with_root(self, root: usize) -> Collective {
        self.with(CollectiveParameters {
            root: Some(&root),
            targets: None,
        })
    }

    /// Whether one rank has another part than all others: broadcast, multicast, reduce, gather and
    /// scatter.
    pub fn has_root(self) -> bool {
        [self.row().input.0, self.row().output.0].contains(&Root)
    }

    /// Whether the ranks that receive are listed.
    #[doc(hidden)]
    pub fn has_targets(self) -> bool {
        self.row().output.0 == Targets
    }

    /// Whether each rank has its own block: gather, scatter, allgather, reduce_scatter and
    /// alltoall. Block sizes may differ.
    pub fn has_blocks(self) -> bool {
        let row = self.row();
        row.has_data && [row.input.1, row.output.1] != [Whole; 2]
    }

    /// Whether each rank has a block for each rank, so that block sizes may differ from pair to
    /// pair: alltoall.
    #[doc(hidden)]
    pub const fn has_block_pairs(self) -> bool {
        matches!(self.row().input.1, Pairs)
    }

    /// Whether the size of a request is that of a block: gather, scatter, allgather and alltoall.
    /// Else it is that of the vector, which a reduce_scatter splits evenly.
    pub fn is_sized_by_block(self) -> bool {
        self.has_blocks() && !self.reduces()
    }

    /// The part of all data (of the blocks, or of the vector) that a rank's link carries at least,
    /// as NCCL's tests define bus bandwidth.
    #[doc(hidden)]
    pub fn bus_share(self, ranks: usize) -> f64 {
        let others = (ranks as f64 - 1.0) / ranks as f64;
        let everywhere = (Every, Whole);
        match self.row() {
            row if [row.input, row.output] == [everywhere; 2] && self.combines_all() => {
                2.0 * others
            }
            _ if self.has_blocks() => others,
            _ => 1.0,
        }
    }

    /// Whether ranks exchange data: all kinds but barrier.
    pub fn has_data(self) -> bool {
        self.row().has_data
    }

    /// What its messages cost under `cost`: tokens have no bytes, so a message of them takes the
    /// time of one byte, but for beta.
    #[doc(hidden)]
    pub fn costs(self, cost: &CostModel) -> Cow<'_, CostModel> {
        if self.has_data() {
            Cow::Borrowed(cost)
        } else {
            Cow::Owned(cost.start_up_alone())
        }
    }

    /// Whether contributions are combined, so that a run needs an operator: reduce, allreduce,
    /// reduce_scatter, scan and exscan.
    pub const fn reduces(self) -> bool {
        self.row().combines.is_some()
    }

    /// Whether its schedules compute: they combine contributions, or copy the root's own block, as
    /// those of gather and scatter. Those of compositions may copy besides.
    pub(crate) fn computes(self) -> bool {
        self.reduces() || self.has_root() && self.has_blocks()
    }

    /// Whether each result combines the contributions of all ranks: reduce, allreduce and
    /// reduce_scatter.
    #[doc(hidden)]
    pub const fn combines_all(self) -> bool {
        matches!(self.row().combines, Some(Operands::All))
    }
}

named!(Kind, "collective", |name| name.replace('-', "_"));

impl Collective {
    /// The root, if the collective has one.
    pub fn root(&self) -> Option<usize> {
        self.parameters().root.copied()
    }

    /// The targets, if the collective has any.
    #[doc(hidden)]
    pub fn targets(&self) -> Option<&[usize]> {
        self.parameters().targets.map(Vec::as_slice)
    }

    /// The same collective with these targets, if it has any.
    #[doc(hidden)]
    #[must_use]
    pub fn with_targets(&self, targets: Vec<usize>) -> Collective {
        self.kind().with(CollectiveParameters {
            targets: Some(&targets),
            ..self.parameters()
        })
    }

    /// The same collective with another root, if it has one.
    pub(super) fn rooted(&self, root: usize) -> Collective {
        self.kind().with(CollectiveParameters {
            root: Some(&root),
            ..self.parameters()
        })
    }

    /// The collective that a schedule of this one performs when it is
    /// [reversed](crate::Schedule::reversed): broadcast ↔ reduce, scatter ↔ gather, allgather ↔
    /// reduce_scatter. `None` for all others.
    pub fn reversed(&self) -> Option<Collective> {
        let reverse = self.kind().row().reverse?;
        Some(reverse.with(self.parameters()))
    }

    /// Whether `rank` is one of `holders`.
    pub fn includes(&self, holders: Holders, rank: usize) -> bool {
        match holders {
            Every => true,
            Root => self.root() == Some(rank),
            Targets => self
                .targets()
                .is_some_and(|targets| targets.contains(&rank)),
            AllButFirst => rank > 0,
        }
    }

    /// Input and output of `rank`, if it has them: `whole`, which is the vector or the blocks of
    /// all ranks, or its own `block`.
    pub(crate) fn input_and_output<T: Clone>(
        &self,
        rank: usize,
        whole: &T,
        block: impl Fn() -> T,
    ) -> [Option<T>; 2] {
        let row = self.kind().row();
        [row.input, row.output].map(|(holders, part)| {
            let has = self.includes(holders, rank);
            has.then(|| match part {
                Block => block(),
                Whole | Pairs => whole.clone(),
            })
        })
    }

    /// A buffer of `len` elements of `rank`: see [`Collective::input_and_output`].
    pub(crate) fn layout(&self, rank: usize, len: usize, whole: Span, block: Span) -> Layout {
        let [input, output] = self.input_and_output(rank, &whole, || block);
        Layout {
            len,
            input: input.into(),
            output: output.into(),
        }
    }

    /// The content that rank `rank` must hold in its output spans at the end, in the order of the
    /// spans: one entry for each block of gather, allgather and alltoall and each token of a
    /// barrier, at most one for the other collectives. `layout` has the buffer of every rank. The
    /// output spans must have exactly this total length: every rank of a broadcast, for example,
    /// needs an output.
    ///
    /// Each call adds up the lengths of all layouts: linear in the number of ranks and spans.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) if the lengths of the inputs and
    /// outputs do not fit the collective, or `rank`, the root or a target is not one of the ranks.
    pub fn expected_output(&self, layout: &[Layout], rank: usize) -> Result<Vec<Expected>> {
        Totals::new(self, layout).expected_output(rank)
    }

    /// Checks that the root and the targets are among `ranks` ranks; names the first that is not.
    pub(crate) fn fits_ranks(&self, ranks: usize) -> Result<()> {
        self.ensure_ranks_exist(ranks, "root", self.root().as_slice())?;
        self.ensure_ranks_exist(ranks, "target", self.targets().unwrap_or_default())
    }

    fn ensure_ranks_exist(&self, ranks: usize, what: &str, named: &[usize]) -> Result<()> {
        match named.iter().find(|&&rank| rank >= ranks) {
            Some(rank) => Err(Error::malformed(format!(
                "{}: {what} {rank} is not one of {ranks} ranks",
                self.kind().name()
            ))),
            None => Ok(()),
        }
    }
}
