//! MSCCL files whose dependences are dropped or shifted: an oracle of its own decides which of them
//! are still right, and the reader must agree.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use oneport::plan::registry;
use oneport::{Request, Schedule};
use oneport_formats::msccl::{self, ReadOptions};

use super::msccl::stripped;

/// A place in a rank's memory. Aliases in place are resolved.
type Cell = (char, usize);

#[derive(Clone, Default)]
struct Step {
    kind: String,
    src: Cell,
    dst: Cell,
    count: usize,
    waits: Option<(usize, usize)>,
    rank: usize,
    block: usize,
    number: usize,
}

impl Step {
    fn cells(at: Cell, count: usize) -> BTreeSet<Cell> {
        (at.1..at.1 + count).map(|i| (at.0, i)).collect()
    }

    fn reads(&self) -> BTreeSet<Cell> {
        let mut cells = BTreeSet::new();
        if ["s", "rrs", "rrc", "rrcs", "cpy", "re"].contains(&&*self.kind) {
            cells.extend(Step::cells(self.src, self.count));
        }
        if self.kind == "re" {
            cells.extend(Step::cells(self.dst, self.count));
        }
        cells
    }

    /// What it stores another value in.
    fn writes(&self) -> BTreeSet<Cell> {
        let stays = self.kind == "cpy" && self.src == self.dst;
        if !stays && ["r", "rcs", "rrc", "rrcs", "cpy", "re"].contains(&&*self.kind) {
            Step::cells(self.dst, self.count)
        } else {
            BTreeSet::new()
        }
    }

    fn receives(&self) -> bool {
        self.kind.starts_with('r') && self.kind != "re"
    }

    fn sends(&self) -> bool {
        self.kind.ends_with('s')
    }
}

struct File {
    coll: String,
    root: usize,
    ranks: usize,
    chunks: usize,
    in_place: bool,
    steps: Vec<Step>,
    /// By rank and thread block: the peers and the channel.
    blocks: HashMap<(usize, usize), (i64, i64, i64)>,
}

fn attribute<'t>(element: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = element.split_once(&format!(" {name}=\""))?;
    Some(&rest[..rest.find('"')?])
}

fn number(element: &str, name: &str) -> i64 {
    attribute(element, name).unwrap().parse().unwrap()
}

impl File {
    fn parse(text: &str, root: usize) -> File {
        let mut file = File {
            coll: String::new(),
            root,
            ranks: 0,
            chunks: 0,
            in_place: false,
            steps: Vec::new(),
            blocks: HashMap::new(),
        };
        let (mut rank, mut block) = (0, 0);
        for element in text.split('<') {
            match element.split(' ').next().unwrap() {
                "algo" => {
                    file.coll = attribute(element, "coll").unwrap().to_string();
                    file.ranks = number(element, "ngpus") as usize;
                    file.chunks = number(element, "nchunksperloop") as usize;
                    file.in_place = number(element, "inplace") == 1;
                }
                "gpu" => rank = number(element, "id") as usize,
                "tb" => {
                    block = number(element, "id") as usize;
                    let peers = ["send", "recv", "chan"].map(|name| number(element, name));
                    file.blocks
                        .insert((rank, block), (peers[0], peers[1], peers[2]));
                }
                "step" => {
                    let at = |buffer: &str, offset: &str| {
                        let buffer = attribute(element, buffer).unwrap().chars().next();
                        (buffer.unwrap(), number(element, offset) as usize)
                    };
                    let waits = (number(element, "depid"), number(element, "deps"));
                    let step = Step {
                        kind: attribute(element, "type").unwrap().to_string(),
                        src: file.place(rank, at("srcbuf", "srcoff")),
                        dst: file.place(rank, at("dstbuf", "dstoff")),
                        count: number(element, "cnt") as usize,
                        waits: (waits.0 >= 0).then_some((waits.0 as usize, waits.1 as usize)),
                        rank,
                        block,
                        number: number(element, "s") as usize,
                    };
                    file.steps.push(step);
                }
                _ => {}
            }
        }
        file
    }

    /// In place, input and output are one vector, or one is a block of the other.
    fn place(&self, rank: usize, (buffer, at): Cell) -> Cell {
        match (buffer, &*self.coll) {
            ('i', "allgather") if self.in_place => ('o', at + rank * self.chunks / self.ranks),
            ('i', _) if self.in_place => ('o', at),
            _ => (buffer, at),
        }
    }

    /// Pairs of steps, the second of which comes directly after the first; `None` where messages do
    /// not match or a step waits for one that is not there.
    fn edges(&self) -> Option<Vec<(usize, usize)>> {
        let mut index = HashMap::new();
        for (i, step) in self.steps.iter().enumerate() {
            index.insert((step.rank, step.block, step.number), i);
        }
        let (mut edges, mut sent, mut received) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        for (i, step) in self.steps.iter().enumerate() {
            if step.number > 0 {
                edges.push((index[&(step.rank, step.block, step.number - 1)], i));
            }
            if let Some((block, number)) = step.waits {
                edges.push((*index.get(&(step.rank, block, number))?, i));
            }
            let (to, from, channel) = self.blocks[&(step.rank, step.block)];
            if step.sends() {
                let key = (step.rank as i64, to, channel);
                sent.entry(key).or_insert_with(Vec::new).push(i);
            }
            if step.receives() {
                let key = (from, step.rank as i64, channel);
                received.entry(key).or_insert_with(Vec::new).push(i);
            }
        }
        if sent.keys().ne(received.keys()) {
            return None;
        }
        for (key, sends) in sent {
            if sends.len() != received[&key].len() {
                return None;
            }
            edges.extend(sends.into_iter().zip(received[&key].iter().copied()));
        }
        Some(edges)
    }

    /// Whether the file is right, whichever thread block is faster: no cycle, no race, and the
    /// right result in one order, which is then that of all.
    fn is_right(&self) -> bool {
        let Some(edges) = self.edges() else {
            return false;
        };
        let n = self.steps.len();
        let mut before = vec![vec![false; n]; n];
        edges.iter().for_each(|&(a, b)| before[a][b] = true);
        for middle in 0..n {
            let row = before[middle].clone();
            for from in before.iter_mut().filter(|from| from[middle]) {
                from.iter_mut()
                    .zip(&row)
                    .for_each(|(to, &more)| *to |= more);
            }
        }
        if (0..n).any(|i| before[i][i]) {
            return false;
        }
        let accesses: Vec<_> = self.steps.iter().map(|s| (s.reads(), s.writes())).collect();
        for a in 0..n {
            for b in a + 1..n {
                let ((reads_a, writes_a), (reads_b, writes_b)) = (&accesses[a], &accesses[b]);
                let meet = |x: &BTreeSet<Cell>, y: &BTreeSet<Cell>| !x.is_disjoint(y);
                if self.steps[a].rank == self.steps[b].rank
                    && (meet(writes_a, writes_b)
                        || meet(writes_a, reads_b)
                        || meet(reads_a, writes_b))
                    && !before[a][b]
                    && !before[b][a]
                {
                    return false;
                }
            }
        }
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by_key(|&b| (0..n).filter(|&a| before[a][b]).count());
        self.result_is_right(&order)
    }

    /// Runs the steps in `order` with sets of contributions.
    fn result_is_right(&self, order: &[usize]) -> bool {
        type Value = Vec<(usize, usize)>;
        let block = self.chunks / self.ranks;
        let at_root = |rank| rank == self.root;
        let mut memory: HashMap<(usize, Cell), Value> = HashMap::new();
        for rank in 0..self.ranks {
            let inputs = match &*self.coll {
                "gather" | "allgather" => block,
                "broadcast" | "scatter" if !at_root(rank) => 0,
                _ => self.chunks,
            };
            for i in 0..inputs {
                memory.insert((rank, self.place(rank, ('i', i))), vec![(rank, i)]);
            }
        }
        let mut channels: HashMap<(i64, i64, i64), VecDeque<Vec<Value>>> = HashMap::new();
        for &i in order {
            let step = &self.steps[i];
            let (to, from, channel) = self.blocks[&(step.rank, step.block)];
            let load = |memory: &HashMap<(usize, Cell), Value>, at: Cell| -> Vec<Value> {
                let cells = (0..step.count).map(|k| (step.rank, (at.0, at.1 + k)));
                // What was never written spoils every sum.
                let junk = || vec![(usize::MAX, usize::MAX); 2];
                cells
                    .map(|c| memory.get(&c).cloned().unwrap_or_else(junk))
                    .collect()
            };
            let mut value = if step.receives() {
                let queue = channels.get_mut(&(from, step.rank as i64, channel));
                queue.and_then(VecDeque::pop_front).unwrap()
            } else {
                load(&memory, step.src)
            };
            let other = match &*step.kind {
                "rrs" | "rrc" | "rrcs" => Some(step.src),
                "re" => Some(step.dst),
                _ => None,
            };
            if let Some(at) = other {
                for (sum, more) in value.iter_mut().zip(load(&memory, at)) {
                    sum.extend(more);
                    sum.sort_unstable();
                }
            }
            if !step.writes().is_empty() {
                for (k, value) in value.iter().enumerate() {
                    memory.insert((step.rank, (step.dst.0, step.dst.1 + k)), value.clone());
                }
            }
            if step.sends() {
                let queue = channels.entry((step.rank as i64, to, channel)).or_default();
                queue.push_back(value);
            }
        }
        (0..self.ranks).all(|rank| {
            let (outputs, value): (usize, &dyn Fn(usize) -> Value) = match &*self.coll {
                "broadcast" => (self.chunks, &|i| vec![(self.root, i)]),
                "scatter" => (block, &|i| vec![(self.root, rank * block + i)]),
                "gather" | "reduce" if !at_root(rank) => return true,
                "gather" | "allgather" => (self.chunks, &|i| vec![(i / block, i % block)]),
                "alltoall" => (self.chunks, &|i| {
                    vec![(i / block, rank * block + i % block)]
                }),
                "reducescatter" => (block, &|i| {
                    (0..self.ranks).map(|r| (r, rank * block + i)).collect()
                }),
                _ => (self.chunks, &|i| (0..self.ranks).map(|r| (r, i)).collect()),
            };
            (0..outputs).all(|i| memory.get(&(rank, ('o', i))) == Some(&value(i)))
        })
    }
}

/// The file with the dependences of one step, or of two, dropped, shifted or moved to another
/// thread block.
fn mutants(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let waiting: Vec<usize> = (0..lines.len())
        .filter(|&i| attribute(lines[i], "depid").is_some_and(|d| d != "-1"))
        .collect();
    let with = |changes: &[(usize, i64, i64)]| {
        let mut lines: Vec<String> = lines.iter().map(|l| l.to_string()).collect();
        for &(i, block, step) in changes {
            let (depid, deps) = (number(&lines[i], "depid"), number(&lines[i], "deps"));
            lines[i] = lines[i]
                .replace(&format!("depid=\"{depid}\""), &format!("depid=\"{block}\""))
                .replace(&format!("deps=\"{deps}\""), &format!("deps=\"{step}\""));
        }
        lines.join("\n")
    };
    let mut all = Vec::new();
    for (k, &i) in waiting.iter().enumerate() {
        let (depid, deps) = (number(lines[i], "depid"), number(lines[i], "deps"));
        all.push(with(&[(i, -1, -1)]));
        for (block, step) in [
            (depid, deps - 1),
            (depid, deps + 1),
            (depid + 1, deps),
            (depid - 1, deps),
        ] {
            if block >= 0 && step >= 0 {
                all.push(with(&[(i, block, step)]));
            }
        }
        let other = waiting[(k * 7 + 3) % waiting.len()];
        all.push(with(&[(i, -1, -1), (other, -1, -1)]));
    }
    all
}

/// What the reader makes of a file: a schedule that is right, or why not.
fn read(text: &str, root: Option<usize>) -> Result<Schedule, String> {
    let options = ReadOptions {
        root,
        ..ReadOptions::default()
    };
    let schedule = msccl::read(text, &options).map_err(|e| e.to_string())?;
    let report = schedule.check();
    let right = report.is_correct().then_some(schedule);
    right.ok_or_else(|| report.to_string())
}

/// Files that oneport writes: several thread blocks a rank, with and without segments.
fn written() -> Vec<(String, String, Option<usize>)> {
    let mut files = Vec::new();
    for algorithm in registry::all() {
        for (p, segments) in [(3, 1), (4, 2)] {
            let request = Request::new(algorithm.collective, p, p * segments);
            let Ok(schedule) = request.segment_count(segments).plan(&algorithm.name()) else {
                continue;
            };
            if let Ok(written) = msccl::write(&schedule, "x") {
                let name = format!("{} {} p={p}", algorithm.collective.name(), algorithm.name());
                files.push((name, written.text, schedule.collective().root()));
            }
        }
    }
    files
}

/// Steps `TYPE SRC DST [DEPID DEPS]` of thread blocks `SEND RECV: ...`, in place.
fn in_place(coll: &str, chunks: usize, ranks: &[&[&str]]) -> String {
    let p = ranks.len();
    let input = if coll == "allgather" {
        chunks / p
    } else {
        chunks
    };
    let mut text = format!(
        "<algo name=\"x\" coll=\"{coll}\" ngpus=\"{p}\" nchannels=\"2\" nchunksperloop=\"{chunks}\" inplace=\"1\">\n"
    );
    for (rank, blocks) in ranks.iter().enumerate() {
        text += &format!(
            "<gpu id=\"{rank}\" i_chunks=\"{input}\" o_chunks=\"{chunks}\" s_chunks=\"2\">\n"
        );
        for (id, block) in blocks.iter().enumerate() {
            let (head, steps) = block.split_once(':').unwrap();
            let head: Vec<&str> = head.split(' ').collect();
            text += &format!(
                "<tb id=\"{id}\" send=\"{}\" recv=\"{}\" chan=\"{}\">\n",
                head[0], head[1], head[2]
            );
            for (s, step) in steps.split(',').enumerate() {
                let w: Vec<&str> = step.trim().split(' ').collect();
                let (depid, deps) = (w.get(3).unwrap_or(&"-1"), w.get(4).unwrap_or(&"-1"));
                text += &format!(
                    "<step s=\"{s}\" type=\"{}\" srcbuf=\"{}\" srcoff=\"{}\" dstbuf=\"{}\" dstoff=\"{}\" cnt=\"1\" \
                     depid=\"{depid}\" deps=\"{deps}\" hasdep=\"0\"/>\n",
                    w[0],
                    &w[1][..1],
                    &w[1][1..],
                    &w[2][..1],
                    &w[2][1..]
                );
            }
            text += "</tb>\n";
        }
        text += "</gpu>\n";
    }
    text + "</algo>\n"
}

/// Three ranks; rank 0 reduces what the others send. The second sum waits for the first.
const STAR: [&[&str]; 3] = [
    &[
        "1 1 0:nop i0 i0,rrc i0 i0,s i0 i0 1 1",
        "2 2 0:nop i0 i0,rrc i0 i0 0 1,s i0 i0 0 1",
    ],
    &["0 0 0:s i0 i0,r i0 i0"],
    &["0 0 0:s i0 i0,r i0 i0"],
];

#[test]
fn lost_updates_name_both_steps() {
    let star = in_place("allreduce", 1, &STAR);
    assert!(File::parse(&star, 0).is_right());
    read(&star, None).unwrap();
    // Both sums wait for the same earlier step only.
    let dropped = star.replace("depid=\"0\" deps=\"1\"", "depid=\"0\" deps=\"0\"");
    assert!(!File::parse(&dropped, 0).is_right());
    let error = read(&dropped, None).unwrap_err();
    for part in [
        "rank 0: step",
        "of thread block 0 and step",
        "of thread block 1",
        "depid",
    ] {
        assert!(error.contains(part), "{error}");
    }
    assert!(error.starts_with("line "), "{error}");
}

/// In place some tools copy a chunk onto itself: who reads it need not wait, who writes it must.
#[test]
fn copies_of_a_chunk_onto_itself_change_nothing() {
    let ranks: [&[&str]; 2] = [
        &["1 1 0:s o0 o0,r o1 o1", "-1 -1 0:cpy i0 o0"],
        &["0 0 0:s o1 o1,r o0 o0"],
    ];
    let text = in_place("allgather", 2, &ranks);
    assert!(File::parse(&text, 0).is_right());
    read(&text, None).unwrap();
    // The collective is found in the name, as before files had `coll`.
    let named = text.replace("name=\"x\" coll=\"allgather\"", "name=\"Allgather(n=2)\"");
    assert_eq!(
        read(&named, None).unwrap().programs(),
        read(&text, None).unwrap().programs()
    );
    let written = text.replace(
        "cpy\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"0\"",
        "cpy\" srcbuf=\"o\" srcoff=\"1\" dstbuf=\"o\" dstoff=\"1\"",
    );
    assert_ne!(written, text);
    let error = read(&written, None).unwrap_err();
    assert!(error.contains("access the same chunk"), "{error}");
}

/// The path from one access to the other may lead through other ranks.
#[test]
fn messages_order_steps() {
    // Rank 0 sends its chunk to rank 1 and gets the sum back in another thread block.
    let echo: [&[&str]; 2] = [&["1 -1 0:s i0 i0", "-1 1 0:r i0 i0"], &["0 0 0:rrcs i0 i0"]];
    let text = in_place("allreduce", 1, &echo);
    assert!(File::parse(&text, 0).is_right());
    read(&text, None).unwrap();
    // The answer does not wait for the message.
    let early: [&[&str]; 2] = [
        &["1 -1 0:s i0 i0", "-1 1 0:rrc i0 i0"],
        &["-1 0 0:rrc i0 i0 1 0", "0 -1 0:s i0 i0"],
    ];
    let text = in_place("allreduce", 1, &early);
    assert!(!File::parse(&text, 0).is_right());
    let error = read(&text, None).unwrap_err();
    assert!(
        error.contains("rank 0: step 0 of thread block 0 and step 0 of thread block 1"),
        "{error}"
    );
}

/// However long the path is.
#[test]
fn far_steps_are_ordered() {
    let idle = "nop i0 i0,".repeat(600);
    let late = [format!("0 0 0:rrc i0 i0,{idle}s i0 i0")];
    let sends: [&[&str]; 2] = [&["1 -1 0:s i0 i0", "-1 1 0:r i0 i0"], &[&late[0]]];
    read(&in_place("allreduce", 1, &sends), None).unwrap();
    let early = format!("0 -1 0:{idle}s i0 i0");
    let sends: [&[&str]; 2] = [
        &["1 -1 0:s i0 i0", "-1 1 0:r i0 i0"],
        &["-1 0 0:rrc i0 i0", &early],
    ];
    let error = read(&in_place("allreduce", 1, &sends), None).unwrap_err();
    assert!(error.contains("access the same chunk"), "{error}");
}

/// All mutants of all files: what the oracle calls wrong is refused, the rest is read.
#[test]
fn the_reader_agrees_with_an_oracle() {
    let mut files = written();
    files.push(("star".into(), in_place("allreduce", 1, &STAR), None));
    let (mut right, mut wrong) = (0, 0);
    for (name, text, root) in &files {
        for (own, text) in [(true, text.clone()), (false, stripped(text))] {
            assert!(
                File::parse(&text, root.unwrap_or(0)).is_right(),
                "{name}\n{text}"
            );
            read(&text, *root).unwrap_or_else(|e| panic!("{name}: {e}\n{text}"));
            for mutant in mutants(&text) {
                let found = read(&mutant, *root);
                match File::parse(&mutant, root.unwrap_or(0)).is_right() {
                    false => {
                        wrong += 1;
                        assert!(found.is_err(), "{name}: a wrong file is accepted\n{mutant}");
                    }
                    // oneport's numbers say an order of their own, which a shifted wait may break.
                    true if own => {}
                    true => {
                        right += 1;
                        assert!(found.is_ok(), "{name}: {}\n{mutant}", found.unwrap_err());
                    }
                }
            }
        }
    }
    assert!(right > 500 && wrong > 2000, "{right} right, {wrong} wrong");
}
