//! What stands on the ports of all ranks: where partners find each other.

use crate::cost::Ports;
use crate::simulate::accesses::{Times, advance};

/// One port's transfer that is open, or that the partner has done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot<const N: usize> {
    /// Of an open transfer, when it may start; otherwise from when on the port is free.
    pub(super) time: Times<N>,
    pub(super) elements: usize,
    /// Which transfer is open: [`key`], or one of the two below.
    pub(super) key: u64,
}

/// The key of a port without an open transfer.
pub(super) const EMPTY: u64 = u64::MAX;
/// The key of a port whose transfer the partner has done.
pub(super) const DONE: u64 = u64::MAX - 1;

/// What is the same for the two sides of no two transfers open at the same time, but for `sends`: a
/// send and a receive that belong together have each other's rank as `peer` and the same number
/// among the transfers in their direction.
#[inline]
pub(super) fn key(peer: u32, number: u32, sends: bool) -> u64 {
    // Numbers that are open at the same time differ by less than 2^31.
    u64::from(peer) << 32 | u64::from(number << 1) | u64::from(sends)
}

/// All ranks' ports.
#[derive(Debug)]
pub(super) struct Slots<const N: usize> {
    lists: usize,
    /// By rank: the first two port lists, which are all that one-ported ranks have.
    first: Vec<First<N>>,
    /// By rank: the other port lists, if there are any.
    more: Vec<More<N>>,
}

/// One line of the processor's caches.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct First<const N: usize>([Slot<N>; 2]);

#[derive(Debug, Clone)]
struct More<const N: usize> {
    /// The lists from the third on, as far as used.
    slots: Vec<Slot<N>>,
    /// From when on the lists that have not been used are free.
    free: Times<N>,
}

impl<const N: usize> Slots<N> {
    pub(super) fn new(p: usize, ports: Ports) -> Slots<N> {
        let slot = Slot {
            time: [0.0; N],
            elements: 0,
            key: EMPTY,
        };
        let more = More {
            slots: Vec::new(),
            free: [0.0; N],
        };
        let lists = ports.lists();
        Slots {
            lists,
            first: vec![First([slot; 2]); p],
            more: vec![more; if lists > 2 { p } else { 0 }],
        }
    }

    /// The slot of a port list of `rank`.
    #[inline]
    pub(super) fn get(&mut self, rank: usize, list: usize) -> &mut Slot<N> {
        if list < 2 {
            return &mut self.first[rank].0[list];
        }
        let More { slots, free } = &mut self.more[rank];
        if slots.len() <= list - 2 {
            let slot = Slot {
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
    pub(super) fn find(&mut self, rank: usize, key: u64) -> Option<(usize, &mut Slot<N>)> {
        let first = &mut self.first[rank].0;
        if let Some(list) = first.iter().position(|slot| slot.key == key) {
            return Some((list, &mut first[list]));
        }
        let more = &mut self.more.get_mut(rank)?.slots;
        let list = more.iter().position(|slot| slot.key == key)?;
        Some((list + 2, &mut more[list]))
    }

    /// Where ports of `rank` stand, one for each list that has been used, and one for those that
    /// have not.
    #[inline]
    fn times(&self, rank: usize) -> impl Iterator<Item = &Times<N>> {
        let first = self.first[rank].0.iter().take(self.lists);
        let more = self.more.get(rank);
        let slots = more.map_or(&[][..], |more| &more.slots);
        let unused = more.filter(|more| more.slots.len() + 2 < self.lists);
        let times = first.chain(slots).map(|slot| &slot.time);
        times.chain(unused.map(|more| &more.free))
    }

    /// From when on all ports of `rank` are free; none has an open transfer.
    #[inline]
    pub(super) fn all_free(&self, rank: usize) -> Times<N> {
        let mut time = [0.0; N];
        for free in self.times(rank) {
            advance(&mut time, free);
        }
        time
    }

    /// A time before which no step of `rank` starts that is not open yet.
    #[inline]
    pub(super) fn some_free(&self, rank: usize) -> Times<N> {
        let mut time = [f64::INFINITY; N];
        for free in self.times(rank) {
            for (t, &f) in time.iter_mut().zip(free) {
                if f < *t {
                    *t = f;
                }
            }
        }
        time
    }

    /// Puts off all ports of `rank`, none of which has an open transfer, until `time`.
    #[inline]
    pub(super) fn hold_up(&mut self, rank: usize, time: &Times<N>) {
        for slot in &mut self.first[rank].0 {
            slot.time = *time;
        }
        if let Some(more) = self.more.get_mut(rank) {
            more.free = *time;
            for slot in &mut more.slots {
                slot.time = *time;
            }
        }
    }
}
