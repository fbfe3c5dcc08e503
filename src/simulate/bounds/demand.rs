//! What a collective requires of ranks and ports.

use std::borrow::Borrow;

use super::number;
use crate::schedule::collective::{Collective, Extent, Holders, Kind, Operands};
use crate::schedule::{Layout, total_len};

/// What a collective requires of ranks and ports, in elements.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Demand {
    /// Number of ranks that one rank's data must reach, or whose data one rank needs, including
    /// itself.
    pub(super) reach: usize,
    /// Elements that each of these ranks needs or has; 1 if not known to be more.
    pub(super) each: f64,
    /// Number of messages that all ranks together send at least.
    pub(super) messages: usize,
    /// Maximum over the ranks of the elements that a rank must receive.
    pub(super) received: f64,
    /// Maximum over the ranks of the elements that a rank must send.
    pub(super) sent: f64,
    /// Maximum over the ranks of the elements that a rank must receive or send.
    pub(super) both: f64,
    /// Elements that all ranks together must send.
    pub(super) total: f64,
    /// Number of combinations of two elements, over all ranks.
    pub(super) combined: f64,
    /// Number of contributions to one result.
    pub(super) operands: usize,
    /// Number of ranks that each need data of all the others among them.
    pub(super) mutual: usize,
}

impl Demand {
    /// The demand of a collective with equal blocks, for `p > 1` ranks and `m > 0` elements: see
    /// [`lower_bound`].
    pub(super) fn regular(kind: Kind, p: usize, m: f64) -> Demand {
        let others = number(p - 1);
        let row = kind.row();
        if !row.has_data {
            return Demand {
                reach: p,
                mutual: p,
                ..Demand::default()
            };
        }
        let demand = match (row.input, row.output) {
            (_, (Holders::Targets, _)) => return Demand::default(),
            ((_, Extent::Pairs), _) | (_, (_, Extent::Pairs)) => Demand {
                reach: p,
                each: m,
                messages: p,
                received: others * m,
                sent: others * m,
                both: 2.0 * others * m,
                total: number(p) * others * m,
                mutual: p,
                ..Demand::default()
            },
            ((Holders::Every, Extent::Whole), (Holders::Every, Extent::Whole))
                if row.combines == Some(Operands::All) =>
            {
                Demand {
                    messages: 2 * (p - 1),
                    both: 2.0 * m,
                    total: 2.0 * others * m,
                    mutual: p,
                    ..Demand::one_to(p, m)
                }
            }
            ((_, Extent::Whole), (_, Extent::Whole)) => {
                // Of three ranks, one receives from those before it and sends to those after it.
                let is_prefix = !matches!(row.combines, None | Some(Operands::All));
                let both = if is_prefix && p > 2 { 2.0 * m } else { m };
                let one_way = Demand::one_to(p, m);
                Demand { both, ..one_way }
            }
            ((Holders::Root, _), _) | (_, (Holders::Root, _)) => {
                Demand::rooted(p, others * m, (m, m))
            }
            ((_, Extent::Block), _) => Demand {
                mutual: p,
                ..Demand::all_to_all_blocks(p, others * m, m, number(p) * m)
            },
            // The smallest block is at most m / p, the largest at least that.
            ((_, Extent::Whole), (_, Extent::Block)) => Demand {
                each: m / number(p),
                mutual: if m < number(p) { 0 } else { p },
                ..Demand::all_to_all_blocks(p, others * m / number(p), 0.0, m)
            },
        };
        match row.combines {
            None => demand,
            Some(Operands::BeforeOwn) => demand.combining(p - 1, (others - 1.0) * m),
            Some(_) => demand.combining(p, others * m),
        }
    }

    /// The demand of a collective with the block sizes of `layouts`.
    pub(super) fn of(
        collective: &Collective,
        p: usize,
        layouts: impl Iterator<Item = impl Borrow<Layout>>,
    ) -> Demand {
        let (kind, root) = (collective.kind(), collective.root());
        let row = kind.row();
        if kind.has_block_pairs() {
            return Demand::blocks_of_pairs(p, layouts);
        }
        let (mut inputs, mut outputs) = (Vec::with_capacity(p), Vec::with_capacity(p));
        for layout in layouts {
            let layout = layout.borrow();
            inputs.push(total_len(&layout.input));
            outputs.push(total_len(&layout.output));
        }
        let input = |root: usize| inputs.get(root).copied().unwrap_or(0);
        match (row.input.1, row.output.1, root) {
            (Extent::Whole, Extent::Whole, Some(root)) if row.input.0 == Holders::Root => {
                let targets = outputs.iter().enumerate();
                let targets = targets.filter(|&(r, &n)| r != root && n > 0);
                Demand::one_to(targets.count() + 1, number(input(root)))
            }
            (Extent::Block, _, Some(root)) => Demand::blocks_of_root(root, inputs.into_iter()),
            (_, Extent::Block, Some(root)) => Demand::blocks_of_root(root, outputs.into_iter()),
            (Extent::Block, _, None) if row.has_data => {
                Demand::blocks_of_all(p, inputs.into_iter())
            }
            (_, Extent::Block, None) => {
                let demand = Demand::blocks_of_all(p, outputs.into_iter());
                demand.combining(p, demand.total)
            }
            _ => match input(0) {
                0 => Demand::default(),
                m => Demand::regular(kind, p, number(m)),
            },
        }
    }

    /// `m` elements go from one rank to `reach - 1` others.
    fn one_to(reach: usize, m: f64) -> Demand {
        if reach < 2 || m == 0.0 {
            return Demand::default();
        }
        Demand {
            reach,
            each: m,
            messages: reach - 1,
            received: m,
            sent: m,
            both: m,
            total: number(reach - 1) * m,
            ..Demand::default()
        }
    }

    /// `total` elements go between a root and `reach - 1` others; `smallest` and `largest` are the
    /// smallest and the largest of their blocks.
    fn rooted(reach: usize, total: f64, (smallest, largest): (f64, f64)) -> Demand {
        Demand {
            reach,
            each: smallest,
            messages: reach - 1,
            received: total,
            sent: largest,
            both: total,
            total,
            ..Demand::default()
        }
    }

    /// `total` elements in blocks, one per rank, each of which goes to (or comes from) all ranks. A
    /// rank receives (or sends) at most `max_other_blocks` elements and sends (or receives) its own
    /// block of at most `own` elements.
    fn all_to_all_blocks(p: usize, max_other_blocks: f64, own: f64, total: f64) -> Demand {
        Demand {
            reach: p,
            each: own,
            messages: p - 1,
            received: max_other_blocks,
            sent: own,
            both: total,
            total: number(p - 1) * total,
            ..Demand::default()
        }
    }

    fn blocks_of_root(root: usize, blocks: impl Iterator<Item = usize>) -> Demand {
        let (mut reach, mut total) = (1, 0.0);
        let (mut smallest, mut largest) = (f64::INFINITY, 0.0f64);
        for (_, n) in blocks.enumerate().filter(|&(r, n)| r != root && n > 0) {
            reach += 1;
            total += number(n);
            smallest = smallest.min(number(n));
            largest = largest.max(number(n));
        }
        Demand::rooted(reach, total, (smallest, largest))
    }

    fn blocks_of_all(p: usize, blocks: impl Iterator<Item = usize>) -> Demand {
        let (mut total, mut smallest, mut largest) = (0.0, f64::INFINITY, 0.0f64);
        let mut mutual = 0;
        for n in blocks.map(number) {
            mutual += usize::from(n > 0.0);
            total += n;
            smallest = smallest.min(n);
            largest = largest.max(n);
        }
        if total == 0.0 {
            return Demand::default();
        }
        Demand {
            mutual,
            ..Demand::all_to_all_blocks(p, total - smallest, largest, total)
        }
    }

    fn blocks_of_pairs(p: usize, layouts: impl Iterator<Item = impl Borrow<Layout>>) -> Demand {
        let mut demand = Demand::default();
        // By rank: the number of other ranks it receives a block from, and whether its input lists
        // one span per block.
        let (mut heard, mut listed) = (vec![0; p], vec![false; p]);
        let mut all_need_all = true;
        for (rank, l) in layouts.enumerate() {
            let l = l.borrow();
            let input = total_len(&l.input);
            for (to, block) in l.input.iter().enumerate().take(p) {
                heard[to] += usize::from(to != rank && block.len > 0);
            }
            // One span per block if there are p spans, equal blocks otherwise.
            let (own, reach) = if l.input.len() == p {
                let others = l
                    .input
                    .iter()
                    .enumerate()
                    .filter(|(r, s)| *r != rank && s.len > 0);
                (l.input[rank].len, others.count() + 1)
            } else {
                (input / p, if input < p { 1 } else { p })
            };
            let sent = number(input - own);
            let received = number(total_len(&l.output).saturating_sub(own));
            listed[rank] = l.input.len() == p;
            demand.reach = demand.reach.max(reach);
            all_need_all &= reach == p;
            demand.sent = demand.sent.max(sent);
            demand.received = demand.received.max(received);
            demand.both = demand.both.max(sent + received);
            demand.total += sent;
        }
        let heard = heard.iter().zip(&listed).filter(|(_, listed)| **listed);
        let heard = heard.map(|(heard, _)| heard + 1).max();
        demand.reach = demand.reach.max(heard.unwrap_or(0));
        demand.mutual = if all_need_all { p } else { 0 };
        demand
    }

    /// The same demand, with `combined` combinations of elements and `operands` contributions per
    /// result.
    fn combining(self, operands: usize, combined: f64) -> Demand {
        Demand {
            operands,
            combined,
            ..self
        }
    }
}
