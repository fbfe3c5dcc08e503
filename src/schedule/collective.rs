//! Collectives as specifications: the input that every rank starts with and the output it must end
//! with.

mod expected;

use serde::{Deserialize, Serialize};

pub use self::expected::Expected;
pub(crate) use self::expected::Totals;
use crate::error::{Error, Result};
use crate::schedule::Layout;

/// A collective operation over all ranks of a schedule.
///
/// Block sizes follow from the lengths of the `input` and `output` spans of the ranks' layouts, so
/// irregular forms need no kind of their own. Input and output list their spans in rank order of
/// the blocks. A rank without a required result has no output: a broadcast gives every rank an
/// output, [`Collective::Multicast`] only its targets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[allow(missing_docs, reason = "root and targets are ranks")]
pub enum Collective {
    /// Every rank, including the root, ends with the root's input.
    Broadcast { root: usize },
    /// The root ends with the combination of all inputs, in rank order.
    Reduce { root: usize },
    /// Every rank ends with the combination of all inputs, in rank order.
    Allreduce,
    /// The root ends with all inputs, concatenated in rank order.
    Gather { root: usize },
    /// Every rank ends with its block of the root's input.
    Scatter { root: usize },
    /// Every rank ends with all inputs, concatenated in rank order.
    Allgather,
    /// Every rank ends with its block of the combination of all inputs.
    ReduceScatter,
    /// Every rank ends with one block from each rank, in rank order.
    Alltoall,
    /// The targets end with the root's input.
    Multicast { root: usize, targets: Vec<usize> },
    /// Rank `r` ends with the combination of the inputs of ranks `0..=r`.
    Scan,
}

/// The kinds of collectives, without their parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "one for each collective")]
pub enum Kind {
    Broadcast,
    Reduce,
    Allreduce,
    Gather,
    Scatter,
    Allgather,
    ReduceScatter,
    Alltoall,
    Multicast,
    Scan,
}

impl Kind {
    /// All kinds, in the order they are listed to users.
    pub const ALL: [Kind; 10] = [
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
    ];

    /// The name in files and on the command line.
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
        }
    }

    /// Finds the kind with this name (`-` and `_` are equivalent).
    ///
    /// # Errors
    /// An unknown name; the message lists the valid ones.
    pub fn parse(name: &str) -> Result<Kind> {
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

    /// Whether each rank has its own block; block sizes may differ.
    pub fn has_blocks(self) -> bool {
        matches!(
            self,
            Kind::Gather | Kind::Scatter | Kind::Allgather | Kind::ReduceScatter | Kind::Alltoall
        )
    }

    /// Whether contributions are combined.
    pub fn reduces(self) -> bool {
        matches!(
            self,
            Kind::Reduce | Kind::Allreduce | Kind::ReduceScatter | Kind::Scan
        )
    }
}

impl Collective {
    /// The kind.
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

    /// The collective that the reversed schedule performs, if it performs one.
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
    /// spans. The output spans must have exactly this total length: every rank of a broadcast, for
    /// example, needs an output.
    ///
    /// # Errors
    /// When the layouts' input and output lengths do not fit the collective, or a rank is out of
    /// range.
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
    use crate::{Ports, Schedule, Span};

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
