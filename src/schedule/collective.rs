//! Collectives as specifications: the input that every rank starts with and the output it must end
//! with.

mod expected;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use self::expected::Expected;
pub(crate) use self::expected::Totals;
use crate::error::{Error, Result};
use crate::machine::CostModel;
use crate::schedule::Layout;

/// A collective operation over all `p` ranks of a schedule.
///
/// Block sizes follow from the lengths of the `input` and `output` spans of the ranks' layouts, so
/// irregular forms need no kind of their own. Input and output list their spans in rank order of
/// the blocks. A rank without a required result has no output: a broadcast gives every rank an
/// output, [`Collective::Multicast`] only its targets.
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
/// alltoall has one span per block if it has `p` spans, and `p` blocks of equal length otherwise.
///
/// The tokens of a barrier have no bytes: a message takes alpha, and its tokens tell which ranks
/// have entered before it was sent. A rank leaves when it has those of all ranks.
///
/// In files an object: `{"kind": "broadcast", "root": 0}`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Collective {
    /// Every rank, including the root, ends with the root's input.
    Broadcast {
        /// Rank whose input it is.
        root: usize,
    },
    /// The root ends with the combination of all inputs, in rank order.
    Reduce {
        /// Rank that gets the result.
        root: usize,
    },
    /// Every rank ends with the combination of all inputs, in rank order.
    Allreduce,
    /// The root ends with all inputs, concatenated in rank order.
    Gather {
        /// Rank that gets the blocks.
        root: usize,
    },
    /// Every rank ends with its block of the root's input.
    Scatter {
        /// Rank whose input it is.
        root: usize,
    },
    /// Every rank ends with all inputs, concatenated in rank order.
    Allgather,
    /// Every rank ends with its block of the combination of all inputs, in rank order.
    ReduceScatter,
    /// Every rank ends with one block from each rank, in rank order.
    Alltoall,
    /// The targets end with the root's input. The root has an output only if it is a target, too.
    Multicast {
        /// Rank whose input it is.
        root: usize,
        /// Ranks that get it, in any order.
        targets: Vec<usize>,
    },
    /// Rank `r` ends with the combination of the inputs of ranks `0..=r`, in rank order.
    Scan,
    /// Rank `r > 0` ends with the combination of the inputs of ranks `0..r`, in rank order: an
    /// exclusive scan. Rank 0 has no output.
    Exscan,
    /// No rank ends before all ranks have started: every rank ends with the tokens of all ranks, in
    /// rank order.
    Barrier,
}

/// The kinds of collectives, without their parameters. A [name](Kind::name) such as
/// `"reduce_scatter"` in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Kind {
    /// [`Collective::Broadcast`].
    Broadcast,
    /// [`Collective::Reduce`].
    Reduce,
    /// [`Collective::Allreduce`].
    Allreduce,
    /// [`Collective::Gather`].
    Gather,
    /// [`Collective::Scatter`].
    Scatter,
    /// [`Collective::Allgather`].
    Allgather,
    /// [`Collective::ReduceScatter`].
    ReduceScatter,
    /// [`Collective::Alltoall`].
    Alltoall,
    /// [`Collective::Multicast`].
    Multicast,
    /// [`Collective::Scan`].
    Scan,
    /// [`Collective::Exscan`].
    Exscan,
    /// [`Collective::Barrier`].
    Barrier,
}

impl Kind {
    /// All kinds, in the order they are listed to users.
    pub const ALL: [Kind; 12] = [
        Kind::Broadcast,
        Kind::Reduce,
        Kind::Allreduce,
        Kind::Gather,
        Kind::Scatter,
        Kind::Allgather,
        Kind::ReduceScatter,
        Kind::Alltoall,
        Kind::Multicast,
        Kind::Scan,
        Kind::Exscan,
        Kind::Barrier,
    ];

    /// The name in files and on the command line: lower case, words joined by `_`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Broadcast => "broadcast",
            Kind::Reduce => "reduce",
            Kind::Allreduce => "allreduce",
            Kind::Gather => "gather",
            Kind::Scatter => "scatter",
            Kind::Allgather => "allgather",
            Kind::ReduceScatter => "reduce_scatter",
            Kind::Alltoall => "alltoall",
            Kind::Multicast => "multicast",
            Kind::Scan => "scan",
            Kind::Exscan => "exscan",
            Kind::Barrier => "barrier",
        }
    }

    /// Whether each rank has its own block: gather, scatter, allgather, reduce_scatter and
    /// alltoall. Block sizes may differ.
    pub fn has_blocks(self) -> bool {
        matches!(
            self,
            Kind::Gather | Kind::Scatter | Kind::Allgather | Kind::ReduceScatter | Kind::Alltoall
        )
    }

    /// Whether each rank has a block for each rank, so that block sizes may differ from pair to
    /// pair: alltoall.
    pub const fn has_block_pairs(self) -> bool {
        matches!(self, Kind::Alltoall)
    }

    /// Whether ranks exchange data: all kinds but barrier.
    pub fn has_data(self) -> bool {
        self != Kind::Barrier
    }

    /// What its messages cost under `cost`: tokens have no bytes, so a message of them takes the
    /// time of one byte, but for beta.
    pub fn costs(self, cost: &CostModel) -> Cow<'_, CostModel> {
        match self.has_data() {
            true => Cow::Borrowed(cost),
            false => Cow::Owned(cost.start_up_alone()),
        }
    }

    /// Whether contributions are combined, so that a run needs an operator: reduce, allreduce,
    /// reduce_scatter, scan and exscan.
    pub fn reduces(self) -> bool {
        matches!(
            self,
            Kind::Reduce | Kind::Allreduce | Kind::ReduceScatter | Kind::Scan | Kind::Exscan
        )
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Kind {
    type Err = Error;

    /// Finds the kind with this name (`-` and `_` are equivalent).
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for an unknown name; the message lists the
    /// valid ones.
    fn from_str(name: &str) -> Result<Kind> {
        let normalized = name.replace('-', "_");
        Kind::ALL
            .into_iter()
            .find(|k| k.name() == normalized)
            .ok_or_else(|| {
                let names: Vec<_> = Kind::ALL.iter().map(|k| k.name()).collect();
                Error::usage(format!(
                    "unknown collective '{name}': choose one of {}",
                    names.join(", ")
                ))
            })
    }
}

impl Collective {
    /// The kind of the collective, without its parameters.
    pub fn kind(&self) -> Kind {
        match self {
            Collective::Broadcast { .. } => Kind::Broadcast,
            Collective::Reduce { .. } => Kind::Reduce,
            Collective::Allreduce => Kind::Allreduce,
            Collective::Gather { .. } => Kind::Gather,
            Collective::Scatter { .. } => Kind::Scatter,
            Collective::Allgather => Kind::Allgather,
            Collective::ReduceScatter => Kind::ReduceScatter,
            Collective::Alltoall => Kind::Alltoall,
            Collective::Multicast { .. } => Kind::Multicast,
            Collective::Scan => Kind::Scan,
            Collective::Exscan => Kind::Exscan,
            Collective::Barrier => Kind::Barrier,
        }
    }

    /// The root, if the collective has one.
    pub fn root(&self) -> Option<usize> {
        match *self {
            Collective::Broadcast { root }
            | Collective::Reduce { root }
            | Collective::Gather { root }
            | Collective::Scatter { root }
            | Collective::Multicast { root, .. } => Some(root),
            _ => None,
        }
    }

    /// The collective that a schedule of this one performs when it is
    /// [reversed](crate::Schedule::reversed): broadcast ↔ reduce, scatter ↔ gather, allgather ↔
    /// reduce_scatter. `None` for all others.
    pub fn reversed(&self) -> Option<Collective> {
        Some(match *self {
            Collective::Broadcast { root } => Collective::Reduce { root },
            Collective::Reduce { root } => Collective::Broadcast { root },
            Collective::Gather { root } => Collective::Scatter { root },
            Collective::Scatter { root } => Collective::Gather { root },
            Collective::Allgather => Collective::ReduceScatter,
            Collective::ReduceScatter => Collective::Allgather,
            _ => return None,
        })
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

    /// Checks that the root and the targets are among `ranks` ranks.
    ///
    /// # Errors
    /// Names the first rank out of range.
    pub(crate) fn fits_ranks(&self, ranks: usize) -> Result<()> {
        self.ensure_ranks_exist(ranks, "root", self.root().as_slice())?;
        match self {
            Collective::Multicast { targets, .. } => {
                self.ensure_ranks_exist(ranks, "target", targets)
            }
            _ => Ok(()),
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::FindingKind;
    use crate::run::{Operator, inputs, oracle};
    use crate::{CostModel, Ports, Schedule, Span, Step};

    #[test]
    fn tokens_of_a_barrier_cost_alpha_alone() {
        let cost = CostModel::new(2.0, 3.0).gamma(5.0).gamma_copy(7.0);
        let mut b = Schedule::builder(2, Ports::BI, Collective::Barrier);
        for rank in 0..2 {
            b.layout(rank, 3, [Span::new(2, 1)], [Span::new(0, 2)]);
            b.step(rank, Step::copy(Span::new(2, 1), Span::new(rank, 1)));
            b.step(rank, Step::send(1 - rank, Span::new(rank, 1)));
            b.step(rank, Step::recv(1 - rank, Span::new(1 - rank, 1)));
        }
        let schedule = b.build().unwrap();
        assert_eq!(schedule.check().errors, []);
        assert_eq!(schedule.simulate(&cost).unwrap().makespan(), 2.0);
    }

    /// A schedule in which rank 0 sends its two elements to rank 1; rank 2 takes no part and has no
    /// output.
    fn two_of_three(collective: Collective) -> Schedule {
        let both = || [Span::new(0, 2)];
        let mut b = Schedule::builder(3, Ports::BI, collective);
        b.layout(0, 2, both(), both());
        b.layout(1, 2, [], both());
        b.transfer(0, 1, both());
        b.build().unwrap()
    }

    #[test]
    fn a_broadcast_is_for_every_rank_and_a_multicast_for_some() {
        let sum = Operator::<u64>::named("sum").unwrap();
        let data = |s: &Schedule| inputs(s.collective(), s.layout(), &sum);
        let whole = vec![Expected {
            len: 2,
            ranks: 0..1,
            offset: 0,
        }];

        let broadcast = two_of_three(Collective::Broadcast { root: 0 });
        let (collective, layout) = (broadcast.collective(), broadcast.layout());
        for rank in 0..2 {
            assert_eq!(collective.expected_output(layout, rank).unwrap(), whole);
        }
        let why = "broadcast: rank 2 has 0 output elements, expected 2";
        assert_eq!(
            collective
                .expected_output(layout, 2)
                .unwrap_err()
                .to_string(),
            why
        );
        let report = broadcast.check();
        let found: Vec<_> = report.errors.iter().map(|e| (e.kind, e.rank)).collect();
        assert_eq!(found, [(FindingKind::Layout, Some(2))]);
        assert_eq!(report.errors[0].message, why);
        let expected = oracle(collective, layout, &sum, &data(&broadcast));
        assert_eq!(expected.unwrap_err().to_string(), why);

        let targets = vec![0, 1];
        let multicast = two_of_three(Collective::Multicast { root: 0, targets });
        let (collective, layout) = (multicast.collective(), multicast.layout());
        let expected = [whole.clone(), whole, Vec::new()];
        for (rank, content) in expected.iter().enumerate() {
            assert_eq!(
                collective.expected_output(layout, rank).as_ref(),
                Ok(content)
            );
        }
        assert!(multicast.check().is_correct());
        let data = data(&multicast);
        let expected = oracle(collective, layout, &sum, &data).unwrap();
        assert_eq!(expected, [data[0].clone(), data[0].clone(), Vec::new()]);
    }

    #[test]
    fn ranks_that_do_not_exist_are_refused() {
        let layout = vec![Layout::default(); 3];
        let broadcast = Collective::Broadcast { root: 0 };
        let why = broadcast
            .expected_output(&layout, 3)
            .unwrap_err()
            .to_string();
        assert_eq!(why, "broadcast: rank 3 is not one of 3 ranks");
        let (root, targets) = (3, vec![0, 4]);
        for (collective, what) in [
            (Collective::Broadcast { root }, "root 3"),
            (Collective::Reduce { root }, "root 3"),
            (Collective::Gather { root }, "root 3"),
            (Collective::Scatter { root }, "root 3"),
            (
                Collective::Multicast {
                    root,
                    targets: vec![0],
                },
                "root 3",
            ),
            (Collective::Multicast { root: 0, targets }, "target 4"),
        ] {
            let why = format!("{}: {what} is not one of 3 ranks", collective.kind().name());
            let refusal = collective.expected_output(&layout, 0).unwrap_err();
            assert_eq!(refusal.to_string(), why);
            let programs = vec![Vec::new(); 3];
            let schedule = Schedule::new(Ports::BI, collective, layout.clone(), programs);
            assert_eq!(schedule.unwrap_err().to_string(), why);
        }
    }
}
