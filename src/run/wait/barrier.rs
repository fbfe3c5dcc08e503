//! A barrier that only counts arrivals: its users decide how they wait.
//!
//! The counters are a tree. Ranks that share a core count their arrivals in a counter of their own,
//! whose cache line never leaves that core. The last rank of each core goes on to the counter that
//! a few neighbouring cores share, and so on: cores are numbered cache by cache, so lines travel
//! far only where few ranks need them, however many cores there are.
//!
//! Where ranks wait by yielding, each core then needs one switch fewer than it has ranks: the last
//! rank of a core need not yield, since all other ranks of its core are waiting too. It spins for a
//! moment instead, and arrives first at the next barrier.

use crossbeam_utils::CachePadded;

use super::sync::{AtomicUsize, Ordering};

/// Children of a counter above those of the cores: about as many cores as share a cache.
const FAN_IN: usize = 8;

/// Counts arrivals. The last rank to arrive opens the barrier, and thereby begins the next
/// generation.
#[derive(Debug)]
pub(crate) struct Barrier {
    /// Those of the cores first, the root last.
    counters: Box<[CachePadded<Counter>]>,
    /// By rank: its core.
    core_of: Box<[usize]>,
    /// By rank: one more than the generation of the last barrier at which it has arrived, if they
    /// are collected.
    marks: Box<[CachePadded<AtomicUsize>]>,
    /// Whether a rank looks at the marks, instead of counting.
    is_collected: bool,
    generation: CachePadded<AtomicUsize>,
}

/// The arrivals of a core's ranks, or of a counter's children.
#[derive(Debug)]
struct Counter {
    size: usize,
    arrived: AtomicUsize,
    parent: Option<usize>,
}

/// The result of an arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passage {
    /// The last rank of all: the barrier is open.
    Opened,
    /// Not the last.
    Waits {
        /// The generation to ask [`Barrier::is_open`] about.
        generation: usize,
        /// Whether it was the last of its core to arrive.
        last_here: bool,
    },
}

impl Barrier {
    /// A barrier for `core_of.len()` ranks; `core_of` gives each rank's core. Cores are numbered
    /// from 0, and none is without ranks.
    pub(crate) fn new(core_of: &[usize]) -> Self {
        Barrier::with_fan_in(core_of, FAN_IN)
    }

    /// One for `ranks` ranks of which each has a core. A [collector](Barrier::collector) looks at
    /// the marks of the others: it sees many lines at once, while counters are written by one rank
    /// after the other. Two ranks meet at a counter as quickly.
    pub(crate) fn collected(ranks: usize) -> Self {
        Barrier {
            is_collected: ranks > 2,
            ..Barrier::new(&Vec::from_iter(0..ranks))
        }
    }

    /// The same, with a tree of counters of at most `fan_in` children each, at least 2.
    pub(crate) fn with_fan_in(core_of: &[usize], fan_in: usize) -> Self {
        let cores = core_of.iter().max().map_or(1, |last| last + 1);
        let mut sizes = vec![0; cores];
        for &core in core_of {
            sizes[core] += 1;
        }
        let mut parents = Vec::new();
        // The counters of a level, from the cores up.
        let (mut first, mut count) = (0, cores);
        while count > 1 {
            let above = first + count;
            parents.extend((0..count).map(|child| Some(above + child / fan_in)));
            let starts = (0..count).step_by(fan_in);
            sizes.extend(starts.map(|start| fan_in.min(count - start)));
            (first, count) = (above, count.div_ceil(fan_in));
        }
        parents.push(None);
        let counter = |(size, parent)| {
            CachePadded::new(Counter {
                size,
                arrived: AtomicUsize::new(0),
                parent,
            })
        };
        Barrier {
            counters: sizes.into_iter().zip(parents).map(counter).collect(),
            core_of: core_of.into(),
            marks: core_of.iter().map(|_| CachePadded::default()).collect(),
            is_collected: false,
            generation: CachePadded::new(AtomicUsize::new(0)),
        }
    }

    pub(crate) fn arrive(&self, rank: usize) -> Passage {
        let generation = self.generation();
        if self.is_collected {
            self.marks[rank].store(generation.wrapping_add(1), Ordering::Release);
            return Passage::Waits {
                generation,
                last_here: false,
            };
        }
        let core = self.core_of[rank];
        let mut next = Some(core);
        while let Some(at) = next {
            let counter = &self.counters[at];
            // One that is alone need not count.
            if counter.size > 1 {
                if counter.arrived.fetch_add(1, Ordering::AcqRel) + 1 < counter.size {
                    return Passage::Waits {
                        generation,
                        last_here: at != core,
                    };
                }
                // No rank arrives again before it has seen the next generation.
                counter.arrived.store(0, Ordering::Relaxed);
            }
            next = counter.parent;
        }
        self.open(generation);
        Passage::Opened
    }

    /// The rank that opens the barrier of `generation` by [`Barrier::collect`], if one does.
    ///
    /// It goes on before all others, by the time of a message. It is another one each time, in no
    /// order that repetitions could follow: timed runs would favour it as a root.
    pub(crate) fn collector(&self, generation: usize) -> Option<usize> {
        const MIXED: usize = 0x9E37_79B9;
        let mixed = generation.wrapping_mul(MIXED) >> 8;
        self.is_collected.then_some(mixed % self.marks.len())
    }

    /// Opens the barrier of `generation` if all ranks have arrived; for the collector, until then.
    pub(crate) fn collect(&self, generation: usize) -> bool {
        let all = self.missing_rank(generation).is_none();
        if all {
            self.open(generation);
        }
        all
    }

    /// The first rank that has not arrived at the barrier of `generation`.
    pub(crate) fn missing_rank(&self, generation: usize) -> Option<usize> {
        let mark = generation.wrapping_add(1);
        let is_missing = |at: &CachePadded<AtomicUsize>| at.load(Ordering::Acquire) != mark;
        self.marks.iter().position(is_missing)
    }

    fn open(&self, generation: usize) {
        self.generation
            .store(generation.wrapping_add(1), Ordering::Release);
    }

    /// The current generation: what [`Barrier::arrive`] returns to a rank that has to wait now.
    #[inline]
    pub(crate) fn generation(&self) -> usize {
        self.generation.load(Ordering::Acquire)
    }

    /// Whether the barrier of generation `awaited` has opened.
    #[inline]
    pub(crate) fn is_open(&self, awaited: usize) -> bool {
        self.generation.load(Ordering::Acquire) != awaited
    }

    /// Forgets the ranks that arrived and gave up, and begins a new generation. Call while no rank
    /// uses the barrier.
    pub(crate) fn reset(&self) {
        self.generation.fetch_add(1, Ordering::Relaxed);
        for counter in &self.counters {
            counter.arrived.store(0, Ordering::Relaxed);
        }
    }
}
