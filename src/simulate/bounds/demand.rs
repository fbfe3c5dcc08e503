//! What a collective requires of ranks and ports.

use std::borrow::Borrow;

use super::number;
use super::shares::{least_end, shares};
use crate::machine::numbers::truncated;
use crate::schedule::collective::{Collective, Extent, Holders, Kind, Operands};
use crate::schedule::{Layout, Spans, total_len};

/// The best partition among ports is computed for at most this many blocks: some milliseconds.
const MAX_PARTITIONED: usize = 12;

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
    /// Elements that the busiest port of a rank carries at least, if no block is split; 0 if blocks
    /// may be split.
    pub(super) load: f64,
    /// Elements of its own block that a root has elsewhere than in its place among all blocks.
    pub(super) displaced: f64,
}

/// The least number of messages if `some` ranks, at least one, have data that all `p` ranks need,
/// or if `some` ranks need data of all `p`.
///
/// Messages are in an order in which each comes after those whose data it may pass on. A rank that
/// needs data is *informed* by the message that completes them, or from the start. Take the first
/// rank that is informed. Up to then, each other rank with data has sent one at least. Each other
/// rank that needs data was not informed by then, so it receives a message that comes later. These
/// messages are distinct. If the first rank is among those with data, and among those that need
/// some, they are
/// `p - 1` and `some - 1`; otherwise one more. So many are enough: the ranks with data send to one
/// rank, which sends to those that need them.
fn messages_among(p: usize, some: usize) -> usize {
    p - 1 + some.saturating_sub(1)
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
                messages: messages_among(p, p),
                mutual: p,
                ..Demand::default()
            };
        }
        let demand = match (row.input, row.output) {
            (_, (Holders::Targets, _)) => return Demand::default(),
            ((_, Extent::Pairs), _) | (_, (_, Extent::Pairs)) => Demand {
                reach: p,
                each: m,
                messages: messages_among(p, p),
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
                    messages: messages_among(p, p),
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
            ((_, Extent::Block), _) => {
                Demand::all_to_all_blocks(p, p, others * m, m, number(p) * m)
            }
            // The smallest block is at most m / p, the largest at least that. Of fewer elements
            // than ranks, each is a block.
            ((_, Extent::Whole), (_, Extent::Block)) => {
                let blocks = if m < number(p) { truncated(m) } else { p };
                Demand {
                    each: m / number(p),
                    mutual: if m < number(p) { 0 } else { p },
                    ..Demand::all_to_all_blocks(p, blocks, others * m / number(p), 0.0, m)
                }
            }
        };
        match row.combines {
            None => demand,
            Some(Operands::BeforeOwn) => demand.combining(p - 1, (others - 1.0) * m),
            Some(_) => demand.combining(p, others * m),
        }
    }

    /// The demand of a collective with the block sizes of `layouts`. `unsplit_on` is the number of
    /// a rank's ports, if no block that goes to or from a root is split.
    pub(super) fn of(
        collective: &Collective,
        p: usize,
        layouts: impl Iterator<Item = impl Borrow<Layout>>,
        unsplit_on: Option<usize>,
    ) -> Demand {
        let (kind, root) = (collective.kind(), collective.root());
        let row = kind.row();
        if kind.has_block_pairs() {
            return Demand::blocks_of_pairs(p, layouts);
        }
        let (mut inputs, mut outputs) = (Vec::with_capacity(p), Vec::with_capacity(p));
        let mut of_root = Layout::default();
        for (rank, layout) in layouts.enumerate() {
            let layout = layout.borrow();
            inputs.push(total_len(&layout.input));
            outputs.push(total_len(&layout.output));
            if Some(rank) == root {
                of_root = layout.clone();
            }
        }
        let input = |root: usize| inputs.get(root).copied().unwrap_or(0);
        match (row.input.1, row.output.1, root) {
            // Only the targets need blocks of all.
            _ if kind.has_targets() && !kind.has_root() => Demand::default(),
            (Extent::Whole, Extent::Whole, Some(root)) if row.input.0 == Holders::Root => {
                let targets = outputs.iter().enumerate();
                let targets = targets.filter(|&(r, &n)| r != root && n > 0);
                Demand::one_to(targets.count() + 1, number(input(root)))
            }
            (Extent::Block, _, Some(root)) => {
                let own = [&of_root.input, &of_root.output];
                Demand::blocks_of_root(root, &inputs, own, unsplit_on)
            }
            (_, Extent::Block, Some(root)) => {
                let own = [&of_root.output, &of_root.input];
                Demand::blocks_of_root(root, &outputs, own, unsplit_on)
            }
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

    /// `total` elements in blocks of `mutual` of `p` ranks, each of which goes to (or comes from)
    /// all ranks. A rank receives (or sends) at most `max_other_blocks` elements and sends (or
    /// receives) its own block of at most `own` elements.
    fn all_to_all_blocks(
        p: usize,
        mutual: usize,
        max_other_blocks: f64,
        own: f64,
        total: f64,
    ) -> Demand {
        Demand {
            reach: p,
            each: own,
            mutual,
            messages: messages_among(p, mutual),
            received: max_other_blocks,
            sent: own,
            both: total,
            total: number(p - 1) * total,
            ..Demand::default()
        }
    }

    /// The demand of `blocks` that go between their ranks and `root`, which has its own and all of
    /// them in these spans.
    fn blocks_of_root(
        root: usize,
        blocks: &[usize],
        [own, all]: [&Spans; 2],
        unsplit_on: Option<usize>,
    ) -> Demand {
        let others = blocks
            .iter()
            .enumerate()
            .filter(|&(r, &n)| r != root && n > 0);
        let mut others: Vec<f64> = others.map(|(_, &n)| number(n)).collect();
        others.sort_by(|a, b| b.total_cmp(a));
        let (largest, smallest) = (others.first(), others.last());
        let extremes = (
            smallest.copied().unwrap_or(f64::INFINITY),
            largest.copied().unwrap_or(0.0),
        );
        Demand {
            load: unsplit_on.map_or(0.0, |k| least_load(&others, k)),
            displaced: number(displaced(own, all, blocks.iter().take(root).sum())),
            ..Demand::rooted(others.len() + 1, others.iter().sum(), extremes)
        }
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
        Demand::all_to_all_blocks(p, mutual, total - smallest, largest, total)
    }

    fn blocks_of_pairs(p: usize, layouts: impl Iterator<Item = impl Borrow<Layout>>) -> Demand {
        let mut demand = Demand::default();
        // By rank: the number of other ranks it receives a block from, and whether its input lists
        // one span per block.
        let (mut heard, mut listed) = (vec![0; p], vec![false; p]);
        let (mut all_need_all, mut senders) = (true, 0);
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
            senders += usize::from(reach > 1);
            demand.sent = demand.sent.max(sent);
            demand.received = demand.received.max(received);
            demand.both = demand.both.max(sent + received);
            demand.total += sent;
        }
        let receivers = heard.iter().filter(|&&heard| heard > 0).count();
        let heard = heard.iter().zip(&listed).filter(|(_, listed)| **listed);
        let heard = heard.map(|(heard, _)| heard + 1).max();
        demand.reach = demand.reach.max(heard.unwrap_or(0));
        (demand.mutual, demand.messages) = if all_need_all {
            (p, messages_among(p, p))
        } else {
            (0, senders.max(receivers))
        };
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

/// A lower bound of the largest load of `k` ports that share `blocks`, sorted from the largest to
/// the smallest, none of which is split: for few blocks that of the best partition.
pub(super) fn least_load(blocks: &[f64], k: usize) -> f64 {
    if blocks.len() > MAX_PARTITIONED || k >= blocks.len() {
        least_end(blocks, k)
    } else {
        shares(blocks, k, usize::MAX).0
    }
}

/// How many elements of `own` are not where they are in `all`, of which they are those from
/// `start`.
fn displaced(own: &Spans, all: &Spans, start: usize) -> usize {
    let mut own = own.iter().copied().filter(|span| span.len > 0);
    let mut all = all.iter().copied().filter(|span| span.len > 0);
    let (mut before, mut displaced) = (start, 0);
    let (mut mine, mut place) = (own.next(), all.next());
    while let (Some(from), Some(to)) = (mine.as_mut(), place.as_mut()) {
        let skipped = before.min(to.len);
        let len = (to.len - skipped).min(from.len);
        if from.offset != to.offset + skipped {
            displaced += len;
        }
        before -= skipped;
        for (span, used) in [(from, len), (to, skipped + len)] {
            (span.offset, span.len) = (span.offset + used, span.len - used);
        }
        mine = mine.filter(|span| span.len > 0).or_else(|| own.next());
        place = place.filter(|span| span.len > 0).or_else(|| all.next());
    }
    displaced
}
