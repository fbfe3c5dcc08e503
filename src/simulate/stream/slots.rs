//! The open transfers on the ports of all ranks, where partners find each other.

use crate::machine::Ports;
use crate::rules::online::PortTimes;
use crate::rules::{Times, advance};

/// The state of one port: an open transfer, a transfer that the partner has finished, or none.
#[derive(Debug, Clone, Copy)]
pub(super) struct PortSlot<const N: usize> {
    /// The earliest start of an open transfer; otherwise the time from which the port is free.
    pub(super) time: Times<N>,
    pub(super) elements: usize,
    /// Identifies the open transfer: [`key`], [`EMPTY`] or [`DONE`].
    pub(super) key: u64,
}

/// The key of a port without an open transfer.
pub(super) const EMPTY: u64 = u64::MAX;
/// The key of a port whose transfer has been finished by the partner.
pub(super) const DONE: u64 = u64::MAX - 1;

/// The key of an open transfer, unique among the open transfers of its rank. The matching step has,
/// in its own rank's slots, the key with this rank as `peer`, the same number among the transfers
/// in its direction, and the opposite `sends`.
#[inline]
pub(super) fn key(peer: u32, number: u32, sends: bool) -> u64 {
    // Numbers that are open at the same time differ by less than 2^31.
    u64::from(peer) << 32 | u64::from(number << 1) | u64::from(sends)
}

/// The ports of all ranks.
#[derive(Debug)]
pub(super) struct PortSlots<const N: usize> {
    lists: usize,
    /// By rank: the first two port lists, which are the only ones of one-ported ranks.
    first: Vec<First<N>>,
    /// By rank: the other port lists, if any.
    more: Vec<More<N>>,
}

/// Two slots, aligned to a cache line.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct First<const N: usize>([PortSlot<N>; 2]);

#[derive(Debug, Clone)]
struct More<const N: usize> {
    /// The third and further lists, as far as they have been used.
    slots: Vec<PortSlot<N>>,
    /// The time from which the unused lists are free.
    free: Times<N>,
}

impl<const N: usize> PortSlots<N> {
    /// The ports of ranks that arrive at these times.
    pub(super) fn new(ports: Ports, arrivals: impl Iterator<Item = Times<N>> + Clone) -> Self {
        let slot = |time| PortSlot {
            time,
            elements: 0,
            key: EMPTY,
        };
        let more = |free| More {
            slots: Vec::new(),
            free,
        };
        let lists = ports.lists();
        let with_more = arrivals
            .clone()
            .take(if lists > 2 { usize::MAX } else { 0 });
        PortSlots {
            lists,
            first: arrivals.map(|time| First([slot(time); 2])).collect(),
            more: with_more.map(more).collect(),
        }
    }

    /// The slot of a port list of `rank`.
    #[inline]
    pub(super) fn get(&mut self, rank: usize, list: usize) -> &mut PortSlot<N> {
        if list < 2 {
            return &mut self.first[rank].0[list];
        }
        let More { slots, free } = &mut self.more[rank];
        if slots.len() <= list - 2 {
            let slot = PortSlot {
                time: *free,
                elements: 0,
                key: EMPTY,
            };
            slots.resize(list - 1, slot);
        }
        &mut slots[list - 2]
    }

    /// The slot of `rank` with this key, and its list.
    #[inline]
    pub(super) fn find(&mut self, rank: usize, key: u64) -> Option<(usize, &mut PortSlot<N>)> {
        let first = &mut self.first[rank].0;
        if let Some(list) = first.iter().position(|slot| slot.key == key) {
            return Some((list, &mut first[list]));
        }
        let more = &mut self.more.get_mut(rank)?.slots;
        let list = more.iter().position(|slot| slot.key == key)?;
        Some((list + 2, &mut more[list]))
    }

    /// The times of the ports of `rank`: one for each used list, and one for all unused lists.
    #[inline]
    fn times(&self, rank: usize) -> impl Iterator<Item = &Times<N>> {
        let first = self.first[rank].0.iter().take(self.lists);
        let more = self.more.get(rank);
        let slots = more.map_or(&[][..], |more| &more.slots);
        let unused = more.filter(|more| more.slots.len() + 2 < self.lists);
        let times = first.chain(slots).map(|slot| &slot.time);
        times.chain(unused.map(|more| &more.free))
    }

    /// The times from which the ports of `rank` are free; none may have an open transfer.
    #[inline]
    pub(super) fn of(&mut self, rank: usize) -> RankSlots<'_, N> {
        RankSlots { slots: self, rank }
    }
}

/// The ports of one rank.
#[derive(Debug)]
pub(super) struct RankSlots<'a, const N: usize> {
    slots: &'a mut PortSlots<N>,
    rank: usize,
}

impl<const N: usize> PortTimes<N> for RankSlots<'_, N> {
    #[inline]
    fn all_free(&self) -> Times<N> {
        let mut time = [0.0; N];
        for free in self.slots.times(self.rank) {
            advance(&mut time, free);
        }
        time
    }

    #[inline]
    fn min_free(&self) -> Times<N> {
        let mut time = [f64::INFINITY; N];
        for free in self.slots.times(self.rank) {
            for (t, &f) in time.iter_mut().zip(free) {
                if f < *t {
                    *t = f;
                }
            }
        }
        time
    }

    #[inline]
    fn delay_all(&mut self, time: &Times<N>) {
        for slot in &mut self.slots.first[self.rank].0 {
            slot.time = *time;
        }
        if let Some(more) = self.slots.more.get_mut(self.rank) {
            more.free = *time;
            for slot in &mut more.slots {
                slot.time = *time;
            }
        }
    }
}
