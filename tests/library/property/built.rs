//! Hand-built schedules: collectives over random trees, with irregular blocks.

use oneport::{Collective, Layout, Order, Ports, Schedule, Span, Spans, Step};

use crate::support::random::Random;

/// A random tree over the ranks, with blocks of random sizes.
pub(super) struct Built {
    ranks: usize,
    ports: Ports,
    /// Every parent precedes its children, so the root is first.
    order: Vec<usize>,
    parent: Vec<usize>,
    blocks: Vec<Span>,
}

impl Built {
    pub(super) fn new(random: &mut Random, ranks: usize) -> Built {
        let order = random.shuffled((0..ranks).collect());
        let mut parent = vec![order[0]; ranks];
        for (i, &rank) in order.iter().enumerate().skip(1) {
            parent[rank] = order[random.below(i)];
        }
        let mut end = 0;
        let blocks = (0..ranks)
            .map(|_| {
                let span = Span::new(end, random.below(6));
                end = span.end();
                span
            })
            .collect();
        let ports = if random.chance(50) {
            Ports::UNI
        } else {
            Ports::BI
        };
        Built {
            ranks,
            ports: ports.with_k(1 + random.below(3)),
            order,
            parent,
            blocks,
        }
    }

    /// Returns each schedule with its name and whether its operands stay in rank order.
    pub(super) fn all(&self, random: &mut Random) -> Vec<(&'static str, bool, Schedule)> {
        let gather = self.gather(random, false);
        let allgather = self.gather(random, true);
        vec![
            ("scatter", true, gather.reversed().unwrap()),
            ("gather", true, gather),
            ("reduce_scatter", false, allgather.reversed().unwrap()),
            ("allgather", true, allgather),
            ("allreduce", false, self.allreduce(random)),
            ("alltoall", true, self.alltoall(random)),
            ("multicast", true, self.multicast(random)),
            ("scan", true, self.scan(random)),
        ]
    }

    fn root(&self) -> usize {
        self.order[0]
    }

    fn total(&self) -> usize {
        self.blocks.last().map_or(0, |b| b.end())
    }

    fn in_subtree(&self, mut rank: usize, of: usize) -> bool {
        while rank != of && rank != self.root() {
            rank = self.parent[rank];
        }
        rank == of
    }

    fn layout(&self, len: usize, input: Option<Span>, output: Option<Span>) -> Layout {
        Layout {
            len,
            input: input.into_iter().collect(),
            output: output.into_iter().collect(),
        }
    }

    fn programs(&self) -> ProgramBuilder {
        ProgramBuilder {
            ports: self.ports,
            steps: vec![Vec::new(); self.ranks],
        }
    }

    /// The blocks of the selected ranks in random order, for both sender and receiver.
    fn spans(&self, random: &mut Random, selected: impl Fn(usize) -> bool) -> Spans {
        let ranks = (0..self.ranks).filter(|&r| selected(r)).collect();
        random
            .shuffled(ranks)
            .into_iter()
            .map(|r| self.blocks[r])
            .collect()
    }

    /// Children send the blocks of their subtrees to their parents; for an allgather, parents then
    /// send all other blocks to their children.
    fn gather(&self, random: &mut Random, to_all: bool) -> Schedule {
        let mut programs = self.programs();
        for &rank in self.order[1..].iter().rev() {
            let spans = self.spans(random, |r| self.in_subtree(r, rank));
            programs.transfer(
                random,
                rank,
                self.parent[rank],
                (spans.clone(), spans),
                None,
            );
        }
        if to_all {
            for &rank in &self.order[1..] {
                let spans = self.spans(random, |r| !self.in_subtree(r, rank));
                programs.transfer(
                    random,
                    self.parent[rank],
                    rank,
                    (spans.clone(), spans),
                    None,
                );
            }
        }
        let all = Span::new(0, self.total());
        let layout = (0..self.ranks).map(|r| {
            let output = (to_all || r == self.root()).then_some(all);
            self.layout(all.len, Some(self.blocks[r]), output)
        });
        let collective = if to_all {
            Collective::Allgather
        } else {
            Collective::Gather { root: self.root() }
        };
        programs.build(collective, layout.collect())
    }

    /// Reduces up the tree, sometimes through scratch, and broadcasts down again, segment by
    /// segment in random order.
    fn allreduce(&self, random: &mut Random) -> Schedule {
        let mut programs = self.programs();
        let (m, sizes) = (self.total(), self.blocks.iter().copied());
        for vector in random.shuffled(sizes.collect()) {
            for &rank in self.order[1..].iter().rev() {
                let parent = self.parent[rank];
                let order = Order::by_rank(parent, rank);
                if random.chance(70) {
                    programs.transfer(random, rank, parent, (vector, vector), Some(order));
                } else {
                    let scratch = Span::new(m + vector.offset, vector.len);
                    programs.transfer(random, rank, parent, (vector, scratch), None);
                    programs.steps[parent].push(Step::combine(scratch, vector, order));
                }
            }
            for &rank in &self.order[1..] {
                programs.transfer(random, self.parent[rank], rank, (vector, vector), None);
            }
        }
        let all = Some(Span::new(0, m));
        let layout = vec![self.layout(2 * m, all, all); self.ranks];
        programs.build(Collective::Allreduce, layout)
    }

    /// Sends blocks of random sizes between all pairs in random order, some through a third rank.
    fn alltoall(&self, random: &mut Random) -> Schedule {
        let p = self.ranks;
        let sizes: Vec<Vec<usize>> = (0..p)
            .map(|_| (0..p).map(|_| random.below(4)).collect())
            .collect();
        let out =
            |from: usize, to: usize| Span::new(sizes[from][..to].iter().sum(), sizes[from][to]);
        let all_out = |from: usize| sizes[from].iter().sum::<usize>();
        let before = |from: usize, to: usize| (0..from).map(|f| sizes[f][to]).sum::<usize>();
        let into =
            |from: usize, to: usize| Span::new(all_out(to) + before(from, to), sizes[from][to]);
        let scratch = |rank: usize, len| Span::new(all_out(rank) + before(p, rank), len);
        let mut programs = self.programs();
        let pairs = (0..p * p).map(|i| (i / p, i % p)).collect();
        for (from, to) in random.shuffled(pairs) {
            let via = random.below(p);
            if from == to {
                let copy = Step::copy(out(from, from), into(from, from));
                programs.steps[from].push(copy);
            } else if random.chance(80) || via == from || via == to {
                programs.transfer(random, from, to, (out(from, to), into(from, to)), None);
            } else {
                let middle = scratch(via, sizes[from][to]);
                programs.transfer(random, from, via, (out(from, to), middle), None);
                programs.transfer(random, via, to, (middle, into(from, to)), None);
            }
        }
        let layout = (0..p).map(|r| Layout {
            len: all_out(r) + before(p, r) + 3,
            input: (0..p).map(|to| out(r, to)).collect(),
            output: Span::new(all_out(r), before(p, r)).into(),
        });
        programs.build(Collective::Alltoall, layout.collect())
    }

    /// Sends the segments down the tree; ranks that are not targets only forward them.
    fn multicast(&self, random: &mut Random) -> Schedule {
        let mut programs = self.programs();
        let sizes = self.blocks.iter().copied();
        for segment in random.shuffled(sizes.collect()) {
            for &rank in &self.order[1..] {
                programs.transfer(random, self.parent[rank], rank, (segment, segment), None);
            }
        }
        let targets: Vec<usize> = (0..self.ranks).filter(|_| random.chance(60)).collect();
        let all = Span::new(0, self.total());
        let layout = (0..self.ranks).map(|r| {
            let input = (r == self.root()).then_some(all);
            self.layout(all.len, input, targets.contains(&r).then_some(all))
        });
        let layout = layout.collect();
        let root = self.root();
        programs.build(Collective::Multicast { root, targets }, layout)
    }

    /// Splits the ranks recursively at random. The last rank of each lower part sends its prefix to
    /// the ranks of the upper part, to some of them through relays.
    fn scan(&self, random: &mut Random) -> Schedule {
        let mut programs = self.programs();
        let m = 1 + random.below(5);
        let (mine, scratch) = (Span::new(0, m), Span::new(m, m));
        let mut ranges = vec![(0, self.ranks)];
        let mut splits = Vec::new();
        while let Some((low, high)) = ranges.pop() {
            if high - low > 1 {
                let middle = low + 1 + random.below(high - low - 1);
                splits.push((middle, high));
                ranges.extend([(low, middle), (middle, high)]);
            }
        }
        // Combine the parts of a range before the range itself.
        for (middle, high) in splits.into_iter().rev() {
            let mut relays = Vec::new();
            for rank in random.shuffled((middle..high).collect()) {
                let order = Order::TheirsFirst;
                if random.chance(40) {
                    programs.transfer(random, middle - 1, rank, (mine, mine), Some(order));
                    continue;
                }
                let (from, span) = match relays.len() {
                    0 => (middle - 1, mine),
                    n => (relays[random.below(n)], scratch),
                };
                programs.transfer(random, from, rank, (span, scratch), None);
                programs.steps[rank].push(Step::combine(scratch, mine, order));
                relays.push(rank);
            }
        }
        let layout = vec![self.layout(2 * m, Some(mine), Some(mine)); self.ranks];
        programs.build(Collective::Scan, layout)
    }
}

/// Builds programs transfer by transfer, so that they complete with any ports.
pub(super) struct ProgramBuilder {
    pub(super) ports: Ports,
    pub(super) steps: Vec<Vec<Step>>,
}

impl ProgramBuilder {
    /// Adds a send and its receive through random ports; `spans` are the sender's and receiver's.
    pub(super) fn transfer<S: Into<Spans>>(
        &mut self,
        random: &mut Random,
        from: usize,
        to: usize,
        spans: (S, S),
        combine: Option<Order>,
    ) {
        let k = self.ports.k();
        let send = Step::send(to, spans.0).on_port(random.below(k));
        let recv = match combine {
            None => Step::recv(from, spans.1),
            Some(order) => Step::recv_combine(from, spans.1, order),
        };
        self.steps[from].push(send);
        self.steps[to].push(recv.on_port(random.below(k)));
    }

    pub(super) fn build(self, collective: Collective, layout: Vec<Layout>) -> Schedule {
        Schedule::new(self.ports, collective, layout, self.steps).unwrap()
    }
}
