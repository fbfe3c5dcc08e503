//! Collectives as specifications: the input that every rank starts with and the output it must end
//! with.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::schedule::{Layout, total_len};

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

/// The expected content of a part of a rank's output: `len` elements. Element `i` is the
/// combination, in rank order, of element `offset + i` of the inputs of `ranks` (a single rank if
/// nothing is combined).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// Number of elements.
    pub len: usize,
    /// Ranks whose inputs contribute.
    pub ranks: Range<usize>,
    /// First element of these inputs.
    pub offset: usize,
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
    pub fn promises(&self, layout: &[Layout], rank: usize) -> Result<Vec<Expected>> {
        Totals::new(self, layout).promises(rank)
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

/// Lengths of all layouts, added up once so that the expected outputs of many ranks are cheap.
#[derive(Debug)]
pub(crate) struct Totals<'a> {
    collective: &'a Collective,
    layout: &'a [Layout],
    /// By rank: elements of its input.
    inputs: Vec<usize>,
    /// The first rank whose input length differs from that of rank 0.
    uneven: Option<usize>,
    /// By rank: number of output elements of all ranks before it; one more entry holds the total.
    outputs_before: Vec<usize>,
    /// For alltoall, by rank: where its blocks start in its input, if it has one span per block.
    blocks: Vec<Option<Vec<usize>>>,
}

impl<'a> Totals<'a> {
    pub(crate) fn new(collective: &'a Collective, layout: &'a [Layout]) -> Totals<'a> {
        // Lengths come from files: sums saturate instead of overflowing.
        let p = layout.len();
        let outputs = layout.iter().map(|l| total_len(&l.output));
        let sums = |lengths: &mut dyn Iterator<Item = usize>| {
            let mut sum = 0usize;
            let mut before = vec![0];
            before.extend(lengths.map(|n| {
                sum = sum.saturating_add(n);
                sum
            }));
            before
        };
        let blocks =
            |l: &Layout| (l.input.len() == p).then(|| sums(&mut l.input.iter().map(|s| s.len)));
        let inputs: Vec<usize> = layout.iter().map(|l| total_len(&l.input)).collect();
        Totals {
            collective,
            layout,
            uneven: inputs.iter().position(|&n| n != inputs[0]),
            inputs,
            outputs_before: sums(&mut { outputs }),
            blocks: match collective {
                Collective::Alltoall => layout.iter().map(blocks).collect(),
                _ => Vec::new(),
            },
        }
    }

    /// As [`Collective::promises`].
    pub(crate) fn promises(&self, rank: usize) -> Result<Vec<Expected>> {
        let Totals {
            collective, layout, ..
        } = *self;
        let p = layout.len();
        collective.fits_ranks(p)?;
        collective.ensure_ranks_exist(p, "rank", &[rank])?;
        let input = |r: usize| self.inputs[r];
        let output = total_len(&layout[rank].output);
        let whole = |ranks: Range<usize>, len: usize| {
            vec![Expected {
                len,
                ranks,
                offset: 0,
            }]
        };
        let fits = |expected: usize, promises: Vec<Expected>| {
            if expected == output {
                Ok(promises)
            } else {
                Err(Error::malformed(format!(
                    "{}: rank {rank} has {output} output elements, expected {expected}",
                    collective.kind().name()
                )))
            }
        };
        let common_input = || {
            let n = input(0);
            match self.uneven {
                None => Ok(n),
                Some(r) => Err(Error::malformed(format!(
                    "{}: rank {r} has {} input elements, rank 0 has {n}",
                    collective.kind().name(),
                    input(r)
                ))),
            }
        };
        let expected_blocks = || {
            (0..p)
                .map(|r| Expected {
                    len: input(r),
                    ranks: r..r + 1,
                    offset: 0,
                })
                .collect::<Vec<_>>()
        };
        let all_inputs = || (0..p).map(input).fold(0, usize::saturating_add);
        let before = |r: usize| self.outputs_before[r];
        match collective {
            &Collective::Broadcast { root } => {
                fits(input(root), whole(root..root + 1, input(root)))
            }
            Collective::Multicast { root, targets } => {
                let root = *root;
                if targets.contains(&rank) {
                    fits(input(root), whole(root..root + 1, input(root)))
                } else {
                    fits(0, Vec::new())
                }
            }
            &Collective::Reduce { root } => {
                let n = common_input()?;
                if rank == root {
                    fits(n, whole(0..p, n))
                } else {
                    fits(0, Vec::new())
                }
            }
            Collective::Allreduce => {
                let n = common_input()?;
                fits(n, whole(0..p, n))
            }
            Collective::Scan => {
                let n = common_input()?;
                fits(n, whole(0..rank + 1, n))
            }
            &Collective::Gather { root } => {
                if rank == root {
                    fits(all_inputs(), expected_blocks())
                } else {
                    fits(0, Vec::new())
                }
            }
            Collective::Allgather => fits(all_inputs(), expected_blocks()),
            &Collective::Scatter { root } => {
                let all = before(p);
                if input(root) != all {
                    return Err(Error::malformed(format!(
                        "scatter: root {root} has {} input elements, the outputs {all}",
                        input(root)
                    )));
                }
                Ok(vec![Expected {
                    len: output,
                    ranks: root..root + 1,
                    offset: before(rank),
                }])
            }
            Collective::ReduceScatter => {
                let (n, all) = (common_input()?, before(p));
                if n != all {
                    return Err(Error::malformed(format!(
                        "reduce_scatter: every rank has {n} input elements, the outputs {all}"
                    )));
                }
                Ok(vec![Expected {
                    len: output,
                    ranks: 0..p,
                    offset: before(rank),
                }])
            }
            Collective::Alltoall => {
                let mut promises = Vec::with_capacity(p);
                for (from, from_layout) in layout.iter().enumerate() {
                    let block = self.alltoall_block(from_layout, from, rank)?;
                    promises.push(Expected {
                        len: block.1,
                        ranks: from..from + 1,
                        offset: block.0,
                    });
                }
                let expected = promises.iter().fold(0usize, |n, b| n.saturating_add(b.len));
                fits(expected, promises)
            }
        }
    }

    /// Offset and length of the block for rank `to` in the input of rank `from`: one span per block
    /// if there are `p` spans, equal blocks otherwise.
    fn alltoall_block(&self, layout: &Layout, from: usize, to: usize) -> Result<(usize, usize)> {
        let p = self.layout.len();
        if let Some(Some(starts)) = self.blocks.get(from) {
            return Ok((starts[to], layout.input[to].len));
        }
        let n = self.inputs[from];
        if !n.is_multiple_of(p) {
            return Err(Error::malformed(format!(
                "alltoall: rank {from} has {n} input elements in {} spans; give {p} spans, or a multiple of {p} elements",
                layout.input.len()
            )));
        }
        Ok((to * (n / p), n / p))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{self, FindingKind, Options};
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
            assert_eq!(collective.promises(layout, rank).unwrap(), whole);
        }
        let why = "broadcast: rank 2 has 0 output elements, expected 2";
        assert_eq!(collective.promises(layout, 2).unwrap_err().to_string(), why);
        let report = check::check(&broadcast, &Options::default());
        let found: Vec<_> = report.errors.iter().map(|e| (e.kind, e.rank)).collect();
        assert_eq!(found, [(FindingKind::Layout, Some(2))]);
        assert_eq!(report.errors[0].message, why);
        let expected = oracle(collective, layout, &sum, &data(&broadcast));
        assert_eq!(expected.unwrap_err().to_string(), why);

        let targets = vec![0, 1];
        let multicast = two_of_three(Collective::Multicast { root: 0, targets });
        let (collective, layout) = (multicast.collective(), multicast.layout());
        let promises = [whole.clone(), whole, Vec::new()];
        for (rank, promised) in promises.iter().enumerate() {
            assert_eq!(collective.promises(layout, rank).as_ref(), Ok(promised));
        }
        assert!(check::check(&multicast, &Options::default()).ok());
        let data = data(&multicast);
        let expected = oracle(collective, layout, &sum, &data).unwrap();
        assert_eq!(expected, [data[0].clone(), data[0].clone(), Vec::new()]);
    }

    #[test]
    fn ranks_that_do_not_exist_are_refused() {
        let layout = vec![Layout::default(); 3];
        let broadcast = Collective::Broadcast { root: 0 };
        let why = broadcast.promises(&layout, 3).unwrap_err().to_string();
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
            let promised = collective.promises(&layout, 0).unwrap_err();
            assert_eq!(promised.to_string(), why);
            let programs = vec![Vec::new(); 3];
            let schedule = Schedule::new(Ports::BI, collective, layout.clone(), programs);
            assert_eq!(schedule.unwrap_err().to_string(), why);
        }
    }
}
