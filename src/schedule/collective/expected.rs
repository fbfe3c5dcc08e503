//! The content that the output of every rank must have at the end of a collective.

use std::ops::Range;

use super::{Collective, Extent, Holders, Operands};
use crate::error::{Error, Result};
use crate::schedule::{Layout, total_len};

/// The expected content of a part of a rank's output: `len` elements. Element `i` is the
/// combination, in rank order, of element `offset + i` of the inputs of `ranks` (a single rank if
/// nothing is combined).
///
/// ```
/// use oneport::schedule::collective::Expected;
/// use oneport::Schedule;
/// // Rank 2 of 4 ends with its block of 5 elements of the sum over all ranks.
/// let schedule = Schedule::reduce_scatter(4, 20).build()?;
/// let expected = schedule.collective().expected_output(schedule.layout(), 2)?;
/// assert_eq!(expected, [Expected { len: 5, ranks: 0..4, offset: 10 }]);
/// # Ok::<(), oneport::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// Number of elements of this part of the output.
    pub len: usize,
    /// Ranks whose inputs contribute, each exactly once.
    pub ranks: Range<usize>,
    /// Index of the first element that contributes, in each of these inputs with their spans
    /// packed.
    pub offset: usize,
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
            blocks: if collective.kind().has_block_pairs() {
                layout.iter().map(blocks).collect()
            } else {
                Vec::new()
            },
        }
    }

    /// As [`Collective::expected_output`].
    pub(crate) fn expected_output(&self, rank: usize) -> Result<Vec<Expected>> {
        let p = self.layout.len();
        self.collective.fits_ranks(p)?;
        self.collective.ensure_ranks_exist(p, "rank", &[rank])?;
        let (kind, root) = (self.collective.kind(), self.collective.root());
        let row = kind.row();
        if let Some(r) = self
            .inputs
            .iter()
            .position(|&n| n != 1)
            .filter(|_| !row.has_data)
        {
            return Err(Error::malformed(format!(
                "{}: rank {r} has {} tokens as input, expected 1",
                row.name, self.inputs[r]
            )));
        }
        let operands = match row.combines {
            None => root.map_or(0..0, |root| root..root + 1),
            Some(Operands::All) => 0..p,
            Some(Operands::UpToOwn) => 0..rank + 1,
            Some(Operands::BeforeOwn) => 0..rank,
        };
        let has_output = self.collective.includes(row.output.0, rank);
        let expected = match (row.input.1, row.output.1) {
            (Extent::Pairs, _) | (_, Extent::Pairs) => self.alltoall_blocks(rank)?,
            (Extent::Block, _) if has_output => self.all_inputs(),
            (Extent::Block, _) => Vec::new(),
            (Extent::Whole, Extent::Whole) => match self.whole()? {
                len if has_output => vec![Expected {
                    len,
                    ranks: operands,
                    offset: 0,
                }],
                _ => Vec::new(),
            },
            (Extent::Whole, Extent::Block) => {
                let (n, all) = (self.whole()?, self.outputs_before[p]);
                if n != all {
                    let who = root.map_or("every rank".into(), |root| format!("root {root}"));
                    return Err(Error::malformed(format!(
                        "{}: {who} has {n} input elements, the outputs {all}",
                        row.name
                    )));
                }
                self.block_of(rank, operands)
            }
        };
        self.ensure_fits(rank, &expected)?;
        Ok(expected)
    }

    /// Checks that the output of `rank` is as long as its expected content.
    fn ensure_fits(&self, rank: usize, content: &[Expected]) -> Result<()> {
        let output = total_len(&self.layout[rank].output);
        let expected = content.iter().fold(0usize, |n, e| n.saturating_add(e.len));
        if expected == output {
            return Ok(());
        }
        Err(Error::malformed(format!(
            "{}: rank {rank} has {output} output elements, expected {expected}",
            self.collective.kind().name()
        )))
    }

    /// Elements of the vector (the only entry), of each rank's block, or, where they differ, of the
    /// blocks of rank 0 for each rank, then of those of rank 1, and so on. Refuses lengths that do
    /// not fit the collective.
    pub(crate) fn sizes(&self) -> Result<Vec<usize>> {
        let (p, row) = (self.layout.len(), self.collective.kind().row());
        self.collective.fits_ranks(p)?;
        match (row.input.1, row.output.1) {
            (Extent::Block, _) => Ok(self.inputs.clone()),
            (Extent::Pairs, _) | (_, Extent::Pairs) => {
                let block = |from, to| Ok(self.alltoall_block(&self.layout[from], from, to)?.1);
                let of = |from| (0..p).map(move |to| block(from, to));
                let first = of(0).collect::<Result<Vec<_>>>()?;
                for from in 1..p {
                    if !of(from).eq(first.iter().map(|&n| Ok(n))) {
                        return (0..p).flat_map(of).collect();
                    }
                }
                Ok(first)
            }
            (Extent::Whole, Extent::Block) => {
                Ok(self.layout.iter().map(|l| total_len(&l.output)).collect())
            }
            (Extent::Whole, Extent::Whole) => Ok(vec![self.whole()?]),
        }
    }
    fn whole(&self) -> Result<usize> {
        match self.collective.root() {
            Some(root) if self.collective.kind().row().input.0 == Holders::Root => {
                Ok(self.inputs[root])
            }
            _ => self.common_input(),
        }
    }

    /// The input length that all ranks have in common.
    fn common_input(&self) -> Result<usize> {
        let n = self.inputs[0];
        match self.uneven {
            None => Ok(n),
            Some(r) => Err(Error::malformed(format!(
                "{}: rank {r} has {} input elements, rank 0 has {n}",
                self.collective.kind().name(),
                self.inputs[r]
            ))),
        }
    }

    /// The inputs of all ranks, in rank order.
    fn all_inputs(&self) -> Vec<Expected> {
        let input = |(r, &len): (usize, &usize)| Expected {
            len,
            ranks: r..r + 1,
            offset: 0,
        };
        self.inputs.iter().enumerate().map(input).collect()
    }

    /// The block of `rank` in the vector to which `ranks` contribute. Its length is that of the
    /// output.
    fn block_of(&self, rank: usize, ranks: Range<usize>) -> Vec<Expected> {
        vec![Expected {
            len: total_len(&self.layout[rank].output),
            ranks,
            offset: self.outputs_before[rank],
        }]
    }

    /// The blocks for rank `to` from all ranks, in rank order.
    fn alltoall_blocks(&self, to: usize) -> Result<Vec<Expected>> {
        let block = |(from, layout): (usize, &Layout)| {
            let (offset, len) = self.alltoall_block(layout, from, to)?;
            Ok(Expected {
                len,
                ranks: from..from + 1,
                offset,
            })
        };
        self.layout.iter().enumerate().map(block).collect()
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
            let kind = self.collective.kind();
            return Err(Error::malformed(format!(
                "{kind}: rank {from} has {n} input elements in {} spans; give {p} spans, or a multiple of {p} elements",
                layout.input.len()
            )));
        }
        Ok((to * (n / p), n / p))
    }
}
