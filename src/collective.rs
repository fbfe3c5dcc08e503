//! Collectives as specifications: what every rank starts with and what it must end with.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::schedule::{Layout, total_len};

/// A collective operation over all ranks of a schedule.
///
/// Block sizes follow from the lengths of the `input` and `output` spans of the ranks' layouts, so irregular forms need no
/// kind of their own. Input and output list their spans in rank order of the blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[allow(missing_docs, reason = "root and targets are ranks")]
pub enum Collective {
    /// Every rank with an output ends with the root's input.
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

/// A part of a rank's output: `len` elements, element `i` being the combination, in rank order, of element `offset + i` of
/// the inputs of `ranks` (one rank where nothing is combined).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Promise {
    /// Number of elements.
    pub len: usize,
    /// Ranks that contribute.
    pub ranks: Range<usize>,
    /// First element of their inputs.
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

    /// The kind with this name (`-` and `_` are the same).
    ///
    /// # Errors
    /// Lists the names when there is none.
    pub fn parse(name: &str) -> Result<Kind> {
        let wanted = name.replace('-', "_");
        Kind::ALL
            .into_iter()
            .find(|k| k.name() == wanted)
            .ok_or_else(|| {
                let names: Vec<_> = Kind::ALL.iter().map(|k| k.name()).collect();
                Error::usage(format!(
                    "unknown collective '{name}': choose one of {}",
                    names.join(", ")
                ))
            })
    }

    /// Whether each rank has a block of its own, whose size may differ.
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

    /// The collective that the reversed schedule performs, if there is one.
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

    /// What rank `rank` must hold in its output spans at the end, in their order.
    ///
    /// # Errors
    /// When the layouts' input and output lengths do not fit the collective, or a rank is out of range.
    pub fn promises(&self, layout: &[Layout], rank: usize) -> Result<Vec<Promise>> {
        Totals::new(self, layout).promises(rank)
    }
}

/// Lengths of all layouts added up once, for the promises to many ranks.
#[derive(Debug)]
pub(crate) struct Totals<'a> {
    collective: &'a Collective,
    layout: &'a [Layout],
    /// By rank: elements of its input.
    inputs: Vec<usize>,
    /// The first rank whose input is not as long as that of rank 0.
    uneven: Option<usize>,
    /// By rank: elements of the outputs of all ranks before it; one entry more, for all.
    outputs_before: Vec<usize>,
    /// For alltoall: where each rank's blocks start in its input, if it has a span for each.
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
    pub(crate) fn promises(&self, rank: usize) -> Result<Vec<Promise>> {
        let Totals {
            collective, layout, ..
        } = *self;
        let p = layout.len();
        let input = |r: usize| self.inputs[r];
        let output = total_len(&layout[rank].output);
        let whole = |ranks: Range<usize>, len: usize| {
            vec![Promise {
                len,
                ranks,
                offset: 0,
            }]
        };
        let fits = |expected: usize, promises: Vec<Promise>| {
            if expected == output {
                Ok(promises)
            } else {
                Err(Error::malformed(format!(
                    "{}: rank {rank} has {output} output elements, expected {expected}",
                    collective.kind().name()
                )))
            }
        };
        let root_in_range = |root: usize| {
            if root < p {
                Ok(root)
            } else {
                Err(Error::malformed(format!(
                    "{}: root {root} is not one of {p} ranks",
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
        let concatenated = || {
            (0..p)
                .map(|r| Promise {
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
                let root = root_in_range(root)?;
                fits(input(root), whole(root..root + 1, input(root)))
            }
            Collective::Multicast { root, targets } => {
                let root = root_in_range(*root)?;
                if let Some(t) = targets.iter().find(|&&t| t >= p) {
                    return Err(Error::malformed(format!(
                        "multicast: target {t} is not one of {p} ranks"
                    )));
                }
                if targets.contains(&rank) {
                    fits(input(root), whole(root..root + 1, input(root)))
                } else {
                    fits(0, Vec::new())
                }
            }
            &Collective::Reduce { root } => {
                let root = root_in_range(root)?;
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
                if rank == root_in_range(root)? {
                    fits(all_inputs(), concatenated())
                } else {
                    fits(0, Vec::new())
                }
            }
            Collective::Allgather => fits(all_inputs(), concatenated()),
            &Collective::Scatter { root } => {
                let root = root_in_range(root)?;
                let all = before(p);
                if input(root) != all {
                    return Err(Error::malformed(format!(
                        "scatter: root {root} has {} input elements, the outputs {all}",
                        input(root)
                    )));
                }
                Ok(vec![Promise {
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
                Ok(vec![Promise {
                    len: output,
                    ranks: 0..p,
                    offset: before(rank),
                }])
            }
            Collective::Alltoall => {
                let mut promises = Vec::with_capacity(p);
                for (from, from_layout) in layout.iter().enumerate() {
                    let block = self.alltoall_block(from_layout, from, rank)?;
                    promises.push(Promise {
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

    /// Where the block for rank `to` stands in the input of rank `from`: one span a block if there are `p` spans, equal blocks otherwise.
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
