//! A literal interpreter of MSCCL++ plans: it runs operations on cells that hold contributions, and
//! knows nothing of graphs.
//!
//! A thread block is a list of phases, which `nop` and `barrier` part. Items of a phase happen in
//! any order, but those of one thread and those of one port channel. Two items race if one can be
//! delayed while the other becomes due: every item is delayed in a run of its own, until nothing
//! else can go on.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

/// Rank, buffer (`p` for packets), and half or other part of a chunk.
type Cell = (usize, char, usize);
type Contributions = Vec<(usize, usize)>;
type Operands = Vec<Vec<Cell>>;

#[derive(Debug, Clone, Default)]
struct Item {
    block: (usize, usize),
    phase: usize,
    /// Items that must have happened: of the same thread or port channel.
    after: Vec<usize>,
    /// Items before it that some of the threads wait in: others may be ahead of them, but it is not
    /// complete before they are.
    behind: Vec<usize>,
    /// Sources and destinations: of each, the cells of each thread's part.
    src: Vec<Vec<Cell>>,
    dst: Vec<Vec<Cell>>,
    reduces: bool,
    adds: Option<String>,
    takes: Option<String>,
    relaxed: bool,
    /// The thread block does not wait for it.
    is_async: bool,
}

pub(crate) struct Interpreter {
    items: Vec<Item>,
    /// By thread block and phase: the barrier that ends it.
    ends: HashMap<((usize, usize), usize), (String, usize)>,
    initial: BTreeMap<String, i64>,
    memory: BTreeMap<Cell, Contributions>,
    expected: BTreeMap<Cell, Contributions>,
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value[key].as_array().map_or(&[], |list| &list[..])
}

fn number(value: &Value, key: &str) -> usize {
    value[key].as_u64().unwrap_or(0) as usize
}

impl Interpreter {
    /// Every chunk has `parts` parts.
    pub(crate) fn new(plan: &Value, parts: usize) -> Interpreter {
        let mut this = Interpreter {
            items: Vec::new(),
            ends: HashMap::new(),
            initial: BTreeMap::new(),
            memory: BTreeMap::new(),
            expected: BTreeMap::new(),
        };
        let gpus = list(plan, "gpus");
        for (rank, gpu) in gpus.iter().enumerate() {
            for (id, semaphore) in list(gpu, "semaphores").iter().enumerate() {
                let initial = number(semaphore, "init_value") as i64;
                this.initial.insert(format!("sem {rank} {id}"), initial);
            }
            for (b, block) in list(gpu, "threadblocks").iter().enumerate() {
                let mut state = (0, HashMap::new(), HashMap::new());
                for op in list(block, "ops") {
                    if op["name"] != "pipeline" {
                        this.add(plan, (rank, b), op, parts, None, &mut state);
                        continue;
                    }
                    let half = number(&op["iter_context"], "num_chunks") * parts / 2;
                    for i in 0..2 {
                        for op in list(op, "ops") {
                            let window = Some((i * half, half));
                            this.add(plan, (rank, b), op, parts, window, &mut state);
                        }
                    }
                }
            }
        }
        this.collective(plan, parts);
        this
    }

    fn cell(plan: &Value, rank: usize, buffer: char, part: usize, parts: usize) -> Cell {
        let gpus = list(plan, "gpus");
        let own = |chunks: usize| chunks / gpus.len() * rank * parts;
        match (buffer, plan["collective"].as_str().unwrap()) {
            ('i', "allgather") if plan["inplace"] == true => {
                let chunks = number(&gpus[0], "input_chunks") * gpus.len();
                (rank, 'o', part + own(chunks))
            }
            ('o', "reducescatter") if plan["inplace"] == true => {
                (rank, 'i', part + own(number(&gpus[0], "input_chunks")))
            }
            ('i', "allreduce" | "alltoall") if plan["inplace"] == true => (rank, 'o', part),
            _ => (rank, buffer, part),
        }
    }

    fn collective(&mut self, plan: &Value, parts: usize) {
        let gpus = list(plan, "gpus");
        let p = gpus.len();
        let name = plan["collective"].as_str().unwrap();
        let chunks = number(&gpus[0], "input_chunks").max(number(&gpus[0], "output_chunks"));
        let (all, block) = (chunks * parts, chunks * parts / p);
        let input = if name == "allgather" { block } else { all };
        let output = if name == "reducescatter" { block } else { all };
        if !["allreduce", "allgather", "reducescatter", "alltoall"].contains(&name) {
            return;
        }
        for rank in 0..p {
            for i in 0..input {
                let cell = Interpreter::cell(plan, rank, 'i', i, parts);
                self.memory.insert(cell, vec![(rank, i)]);
            }
            for i in 0..output {
                let everybody = |i: usize| (0..p).map(|rank| (rank, i)).collect();
                let expected = match name {
                    "allreduce" => everybody(i),
                    "reducescatter" => everybody(rank * block + i),
                    "allgather" => vec![(i / block, i % block)],
                    _ => vec![(i / block, rank * block + i % block)],
                };
                let cell = Interpreter::cell(plan, rank, 'o', i, parts);
                self.expected.insert(cell, expected);
            }
        }
    }

    /// The cells of an operand, at all ranks that it means.
    fn cells(
        plan: &Value,
        (rank, b): (usize, usize),
        op: &Value,
        operand: &Value,
        packets: bool,
        parts: usize,
        window: Option<(usize, usize)>,
    ) -> Vec<Vec<Cell>> {
        let gpu = &list(plan, "gpus")[rank];
        let block = &list(gpu, "threadblocks")[b];
        let letter = |value: &Value| value.as_str().unwrap().chars().next().unwrap();
        let (buffer, ranks) = if let Some(id) = operand["switch_channel_id"].as_u64() {
            let of_kind = list(block, "channels")
                .iter()
                .filter(|c| c["channel_type"] == "switch");
            let mut ids = of_kind.flat_map(|c| list(c, "channel_ids"));
            let id = ids.nth(id as usize).unwrap().as_u64().unwrap();
            let switches = list(gpu, "channels")
                .iter()
                .filter(|c| c["channel_type"] == "switch");
            let switch = switches.clone().nth(id as usize).unwrap();
            let ranks = list(&list(switch, "rank_groups")[0], "ranks").iter();
            let ranks = ranks.map(|r| r.as_u64().unwrap() as usize).collect();
            // The executor's tests have a plan with the older name.
            let buffer = switch.get("buffer_type").unwrap_or(&switch["buff"]);
            (letter(buffer), ranks)
        } else if let Some(id) = operand["buffer_id"].as_u64() {
            let refs = list(block, "remote_buffer_refs").iter();
            let refs = refs.filter(|r| r["access_channel_type"] == op["channel_type"]);
            let mut ids = refs.flat_map(|r| list(r, "remote_buffer_ids"));
            let id = ids.nth(id as usize).unwrap().as_u64().unwrap();
            let remote = &list(gpu, "remote_buffers")[id as usize];
            (letter(&remote["type"]), vec![number(remote, "rank")])
        } else {
            (letter(&operand["type"]), vec![rank])
        };
        let (mut start, mut len) = (
            number(operand, "index") * parts,
            number(operand, "size") * parts,
        );
        if op["tbg_info"].is_object() {
            len /= number(&op["tbg_info"], "tbg_size");
            start += number(&op["tbg_info"], "tb_id") * len;
        }
        if let Some((from, half)) = window {
            let end = start + len;
            start = end.min(start + from);
            len = half.min(end - start);
        }
        let buffer = if packets && buffer == 's' {
            'p'
        } else {
            buffer
        };
        let of = |rank: usize| {
            let cells =
                (start..start + len).map(|i| Interpreter::cell(plan, rank, buffer, i, parts));
            cells.collect()
        };
        ranks.into_iter().map(of).collect()
    }

    fn add(
        &mut self,
        plan: &Value,
        block: (usize, usize),
        op: &Value,
        parts: usize,
        window: Option<(usize, usize)>,
        (phase, lanes, transfers): &mut (usize, HashMap<usize, usize>, HashMap<u64, usize>),
    ) {
        let name = op["name"].as_str().unwrap();
        let gpu = &list(plan, "gpus")[block.0];
        let of_block = &list(gpu, "threadblocks")[block.1];
        let item = Item {
            block,
            phase: *phase,
            ..Item::default()
        };
        let is_packets = |i: usize, dst: bool| match name {
            "ppkt" | "cpkt" => dst,
            "rppkt" | "gstorepkt" => true,
            "upkt" => !dst,
            "respkt" | "repkt" | "recpkt" | "recspkt" => i > 0,
            _ => false,
        };
        let operands = |key: &str, dst: bool| -> Vec<Vec<Vec<Cell>>> {
            let all = list(op, key).iter().enumerate();
            let cells = |(i, operand)| {
                Interpreter::cells(plan, block, op, operand, is_packets(i, dst), parts, window)
            };
            all.map(cells).collect()
        };
        let (src, dst) = (operands("src_buff", false), operands("dst_buff", true));
        let is_port = op["channel_type"] == "port";
        // A channel of this thread block: the counter of its signals, each way.
        let channel = |id: u64, sends: bool| {
            let kind = &op["channel_type"];
            let of_kind = list(of_block, "channels")
                .iter()
                .filter(|c| c["channel_type"] == *kind);
            let mut ids = of_kind.flat_map(|c| list(c, "channel_ids"));
            let id = ids.nth(id as usize).unwrap().as_u64().unwrap() as usize;
            let all = list(gpu, "channels")
                .iter()
                .filter(|c| c["channel_type"] == *kind);
            let peers: Vec<_> = all.flat_map(|c| list(c, "connected_to")).collect();
            let number = peers[..id].iter().filter(|p| **p == peers[id]).count();
            let (me, peer) = (block.0, peers[id].as_u64().unwrap() as usize);
            let (from, to) = if sends { (me, peer) } else { (peer, me) };
            format!("{kind} {from} {to} {number}")
        };
        match name {
            "nop" | "barrier" => {
                if name == "barrier" {
                    let id = format!("{} {}", block.0, op["barrier_id"]);
                    let count = number(op, "num_threadblocks");
                    self.ends.insert((block, *phase), (id, count));
                }
                *phase += 1;
                lanes.clear();
            }
            "sem_acquire" | "sem_release" => {
                for (lane, id) in list(op, "semaphore_ids").iter().enumerate() {
                    let counter = Some(format!("sem {} {id}", block.0));
                    let takes = name == "sem_acquire";
                    let after = lanes.insert(lane, self.items.len());
                    self.items.push(Item {
                        after: after.into_iter().collect(),
                        adds: counter.clone().filter(|_| !takes),
                        takes: counter.filter(|_| takes),
                        ..item.clone()
                    });
                }
            }
            "signal" | "rlxsignal" | "wait" | "rlxwait" | "flush" => {
                for (lane, id) in list(op, "channel_ids").iter().enumerate() {
                    let id = id.as_u64().unwrap();
                    let sends = name.ends_with("signal");
                    let counter = Some(channel(id, sends));
                    let mut after: Vec<usize> = lanes.get(&lane).copied().into_iter().collect();
                    if is_port && !name.ends_with("wait") {
                        after.extend(transfers.get(&id));
                    }
                    let me = self.items.len();
                    let is_async = is_port && sends;
                    if is_async {
                        transfers.insert(id, me);
                    } else {
                        lanes.insert(lane, me);
                    }
                    self.items.push(Item {
                        after,
                        adds: counter.clone().filter(|_| sends),
                        takes: counter.filter(|_| name.ends_with("wait")),
                        relaxed: name.starts_with("rlx") && !is_port,
                        is_async,
                        ..item.clone()
                    });
                }
            }
            "put" | "pws" | "pwsf" | "ppkt" | "rppkt" if is_port => {
                for (lane, (id, to)) in list(op, "channel_ids").iter().zip(&dst).enumerate() {
                    let id = id.as_u64().unwrap();
                    let me = self.items.len();
                    let lane_before = lanes.get(&lane).copied();
                    let before = transfers.insert(id, me);
                    self.items.push(Item {
                        after: lane_before.into_iter().chain(before).collect(),
                        src: vec![src[lane.min(src.len() - 1)][0].clone()],
                        dst: to.clone(),
                        is_async: name != "rppkt",
                        ..item.clone()
                    });
                    if name.starts_with("pws") {
                        transfers.insert(id, me + 1);
                        if name == "pwsf" {
                            lanes.insert(lane, me + 1);
                        }
                        self.items.push(Item {
                            after: vec![me],
                            adds: Some(channel(id, true)),
                            is_async: name == "pws",
                            ..item.clone()
                        });
                    }
                }
            }
            _ => {
                let reduces = name.starts_with("re") || name.starts_with("rre") || name == "glres";
                let one =
                    |cells: Vec<Vec<Vec<Cell>>>| cells.into_iter().flatten().collect::<Vec<_>>();
                let paired = ["put", "ppkt", "get"].contains(&name);
                let (src, mut dst) = (one(src), one(dst));
                if name == "gstorepkt" {
                    dst.retain(|cells| *cells != src[0]);
                }
                let pairs: Vec<(Operands, Operands)> = if paired {
                    let pairs = src.into_iter().zip(dst);
                    pairs.map(|(a, b)| (vec![a], vec![b])).collect()
                } else {
                    vec![(src, dst)]
                };
                // A thread moves an element of each pair in turn: the pairs of an operation are in
                // order.
                let waits = |item: &Item| {
                    let mut cells = item.src.iter().flatten();
                    item.takes.is_some() || cells.any(|cell| cell.1 == 'p')
                };
                let before = self.items.iter().enumerate();
                let before = before.filter(|(_, i)| (i.block, i.phase) == (block, *phase));
                let behind: Vec<usize> = before.filter(|(_, i)| waits(i)).map(|i| i.0).collect();
                for (i, (src, dst)) in pairs.into_iter().enumerate() {
                    let before = self.items.len().checked_sub(1).filter(|_| i > 0);
                    self.items.push(Item {
                        after: before.into_iter().collect(),
                        behind: behind.clone(),
                        src,
                        dst,
                        reduces,
                        ..item.clone()
                    });
                }
            }
        }
    }

    /// Whether the plan ends, with the right result, without races, however it runs.
    pub(crate) fn is_right(&self) -> bool {
        let data = |i: &usize| !self.items[*i].dst.is_empty() || !self.items[*i].src.is_empty();
        let victims = (0..self.items.len()).filter(data);
        let has_relaxed = self.items.iter().any(|i| i.relaxed && i.takes.is_some());
        let mut runs = victims.flat_map(|victim| [(victim, false), (victim, true)]);
        let ranks: BTreeSet<usize> = self.memory.keys().map(|cell| cell.0).collect();
        self.run(None, false, None)
            && ranks
                .into_iter()
                .all(|rank| self.run(None, false, Some(rank)))
            && runs
                .all(|(victim, early)| early && !has_relaxed || self.run(Some(victim), early, None))
    }

    /// One run, in which the victim happens when nothing else can. Whether it is right. `early`:
    /// what comes after a relaxed wait happens as if before, but for the end of a GPU. The `late`
    /// GPU starts when nothing else can happen: nobody may have used its memory before.
    fn run(&self, victim: Option<usize>, early: bool, mut late: Option<usize>) -> bool {
        let mut counters = self.initial.clone();
        let mut memory = self.memory.clone();
        let mut done = vec![false; self.items.len()];
        let blocks: BTreeSet<_> = self.items.iter().map(|item| item.block).collect();
        let ended = self.ends.keys().map(|(block, _)| *block);
        let mut phases: BTreeMap<_, usize> =
            blocks.into_iter().chain(ended).map(|b| (b, 0)).collect();
        let last = |block| {
            let of_items = self
                .items
                .iter()
                .filter(|i| i.block == block)
                .map(|i| i.phase);
            let of_ends = self
                .ends
                .keys()
                .filter(|(b, _)| *b == block)
                .map(|(_, p)| p + 1);
            of_items.chain(of_ends).max().unwrap_or(0)
        };
        let last: BTreeMap<_, usize> = phases.keys().map(|&block| (block, last(block))).collect();
        let (mut held, is_late) = (victim, late.is_some());
        loop {
            let mut moved = false;
            for (i, item) in self.items.iter().enumerate() {
                let due = item.phase <= phases[&item.block]
                    && item.after.iter().all(|&a| done[a])
                    && (victim.is_some() || is_late || item.behind.iter().all(|&a| done[a]));
                if done[i] || held == Some(i) || late == Some(item.block.0) || !due {
                    continue;
                }
                // What a thread block does after the victim in order is ordered behind it; relaxed
                // signals are not.
                if let Some(v) = held.map(|v| &self.items[v])
                    && !v.is_async
                    && (v.block, v.phase < item.phase) == (item.block, true)
                    && item.takes.is_none()
                    && !(item.relaxed && item.adds.is_some())
                {
                    continue;
                }
                let is_early = early && item.relaxed && item.takes.is_some();
                if !is_early && !self.can_happen(item, &counters, &memory) {
                    continue;
                }
                if let Some(v) = held
                    && self.is_due(v, &phases, &done, &counters, &memory)
                    && conflict(item, &self.items[v])
                {
                    return false;
                }
                let mut cells = item.src.iter().chain(&item.dst).flatten();
                if cells.any(|cell| late == Some(cell.0) && cell.1 != 'p') {
                    return false;
                }
                if !happen(item, &mut counters, &mut memory) {
                    return false;
                }
                done[i] = true;
                moved = true;
            }
            let blocks: Vec<_> = phases.keys().copied().collect();
            for &block in &blocks {
                let phase = phases[&block];
                let is_done = |block, phase| {
                    let items = self.items.iter().enumerate();
                    let mut of = items.filter(|(_, i)| (i.block, i.phase) == (block, phase));
                    of.all(|(i, item)| done[i] || item.is_async || held == Some(i))
                };
                if phase >= last[&block] || late == Some(block.0) || !is_done(block, phase) {
                    continue;
                }
                match self.ends.get(&(block, phase)) {
                    None => {
                        phases.insert(block, phase + 1);
                        moved = true;
                    }
                    Some((id, count)) => {
                        // All thread blocks at the same barrier go on together; it orders memory.
                        let here = |b: &&(usize, usize)| {
                            let of = self.ends.get(&(**b, phases[b]));
                            of.is_some_and(|other| *other == (id.clone(), *count))
                                && is_done(**b, phases[b])
                        };
                        let waiting: Vec<_> = blocks.iter().filter(here).copied().collect();
                        let held_here = held.is_some_and(|v| {
                            let v = &self.items[v];
                            !v.is_async
                                && waiting
                                    .iter()
                                    .any(|b| *b == v.block && phases[b] >= v.phase)
                        });
                        if waiting.len() == *count && !held_here {
                            for b in waiting {
                                *phases.get_mut(&b).unwrap() += 1;
                            }
                            moved = true;
                        }
                    }
                }
            }
            if moved || late.take().is_some() {
                continue;
            }
            // Who ends while an output is still to be written has not got its result.
            let ends = |rank: usize| {
                let of_rank = |block: &(usize, usize)| block.0 == rank;
                let mut items = self.items.iter().enumerate();
                let mut phases = phases.iter().filter(|(block, _)| of_rank(block));
                phases.all(|(block, phase)| *phase == last[block])
                    && items.all(|(i, item)| done[i] || item.is_async || !of_rank(&item.block))
            };
            let Some(v) = held.take().map(|v| &self.items[v]) else {
                break;
            };
            let mut written = v.dst.iter().flatten();
            if !early && written.any(|cell| self.expected.contains_key(cell) && ends(cell.0)) {
                return false;
            }
        }
        let ended = phases.iter().all(|(block, phase)| *phase == last[block]);
        let right = |(cell, expected): (&Cell, &Contributions)| memory.get(cell) == Some(expected);
        done.iter().all(|&d| d) && ended && self.expected.iter().all(right)
    }

    fn can_happen(
        &self,
        item: &Item,
        counters: &BTreeMap<String, i64>,
        memory: &BTreeMap<Cell, Contributions>,
    ) -> bool {
        let counted = item
            .takes
            .as_ref()
            .is_none_or(|id| counters.get(id).is_some_and(|&n| n > 0));
        let mut packets = item.src.iter().flatten().filter(|cell| cell.1 == 'p');
        counted && packets.all(|cell| memory.contains_key(cell))
    }

    fn is_due(
        &self,
        i: usize,
        phases: &BTreeMap<(usize, usize), usize>,
        done: &[bool],
        counters: &BTreeMap<String, i64>,
        memory: &BTreeMap<Cell, Contributions>,
    ) -> bool {
        let item = &self.items[i];
        let started = item.phase <= phases[&item.block] && item.after.iter().all(|&a| done[a]);
        started && self.can_happen(item, counters, memory)
    }
}

/// Whether two items access the same cell, and one writes it: stores another value there.
fn conflict(a: &Item, b: &Item) -> bool {
    let cells = |cells: &[Vec<Cell>]| cells.iter().flatten().copied().collect::<BTreeSet<Cell>>();
    let written = |item: &Item| {
        let stays = !item.reduces && item.src == item.dst;
        if stays {
            BTreeSet::new()
        } else {
            cells(&item.dst)
        }
    };
    let [(a_src, a_dst), (b_src, b_dst)] = [a, b].map(|i| (cells(&i.src), written(i)));
    let meet = |a: &BTreeSet<Cell>, b: &BTreeSet<Cell>| !a.is_disjoint(b);
    meet(&a_dst, &b_dst) || meet(&a_dst, &b_src) || meet(&a_src, &b_dst)
}

/// Performs an item. Fails if packets are written twice.
fn happen(
    item: &Item,
    counters: &mut BTreeMap<String, i64>,
    memory: &mut BTreeMap<Cell, Contributions>,
) -> bool {
    if let Some(id) = &item.takes {
        *counters.entry(id.clone()).or_default() -= 1;
    }
    if let Some(id) = &item.adds {
        *counters.entry(id.clone()).or_default() += 1;
    }
    let Some(len) = item.src.iter().map(Vec::len).min() else {
        return true;
    };
    for i in 0..len {
        let cells = item.src.iter().map(|cells| cells[i]);
        let at = |cell: &Cell| memory.get(cell).cloned().unwrap_or(vec![(9999, 0)]);
        let mut sum: Contributions = if item.reduces {
            cells.flat_map(|cell| at(&cell)).collect()
        } else {
            at(&item.src[0][i])
        };
        sum.sort_unstable();
        for cells in &item.dst {
            if memory.insert(cells[i], sum.clone()).is_some() && cells[i].1 == 'p' {
                return false;
            }
        }
    }
    true
}
