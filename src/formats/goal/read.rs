//! Reads GOAL: a lexer, the graph of each rank, and the schedule that performs it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::formats::{at_line, sum};
use crate::machine::Ports;
use crate::rules::{Event, LocalOrder, OrderScratch};
use crate::schedule::collective::Collective;
use crate::schedule::{Layout, Schedule, Span, Spans, Step};

/// Reads a schedule.
///
/// A file that [`write`](super::write()) has written gives the schedule that was written. A file of
/// another tool has no data: its schedule is a multicast to nobody, which [`Schedule::check`]
/// proves free of deadlocks and of messages without partner. Its ports are bidirectional, as many
/// of each kind as the file has `nic` numbers. Requirements become accesses to the same elements; a
/// `calc` of `n` copies `n` elements, so that it takes its time with `gamma_copy` 1. Requirements
/// on several ports, or of empty messages, become an empty copy, before which the rank finishes all
/// earlier steps. A step thus never starts before all that it requires is done, unless computation
/// overlaps communication.
///
/// Time is `n log n` in the number `n` of characters, memory linear.
///
/// # Errors
/// Names the first line that is not GOAL, ranks that are missing or doubled, cyclic requirements,
/// and what the model does not have: `irequires`, receives from any rank, and messages between two
/// ranks whose tags are received in another order than they are sent.
pub fn read(text: &str) -> Result<Schedule> {
    let file = Parser::new(text).file()?;
    match file.head {
        Some((head, line)) => {
            let head = serde_json::from_str(head).map_err(|e| at_line(line, e))?;
            annotated(head, &file.ranks)
        }
        None => foreign(&file.ranks),
    }
}

/// The first comment of a written file.
#[derive(Deserialize)]
struct Head {
    ports: String,
    ported: usize,
    overlap: bool,
    collective: Collective,
}

/// A line with an operation.
#[derive(Debug, Clone, Copy)]
struct Op {
    what: What,
    /// Bytes of a message, or time of a computation.
    size: usize,
    line: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Send { to: usize, tag: Tag, nic: usize },
    Recv { from: usize, tag: Tag, nic: usize },
    Calc,
}

/// `None`: any.
type Tag = Option<usize>;

/// The block of one rank.
#[derive(Debug, Default)]
struct Graph<'t> {
    ops: Vec<Op>,
    /// `(a, b, line)`: operation `a` requires operation `b`.
    requires: Vec<(usize, usize, usize)>,
    /// JSON comments, with the number of operations before them and their line.
    comments: Vec<(&'t str, usize, usize)>,
}

struct File<'t> {
    /// The JSON comment before the first rank, and its line.
    head: Option<(&'t str, usize)>,
    ranks: Vec<Graph<'t>>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Token<'t> {
    Word(&'t str),
    Number(usize),
    /// `-1`.
    Any,
    Mark(char),
    /// A comment with a JSON object.
    Json(&'t str),
    Newline,
    End,
}

struct Parser<'t> {
    rest: &'t str,
    line: usize,
    /// Line of the token that was read last.
    at: usize,
    peeked: Option<Token<'t>>,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str) -> Parser<'t> {
        Parser {
            rest: text,
            line: 1,
            at: 1,
            peeked: None,
        }
    }

    fn error<T>(&self, what: impl std::fmt::Display) -> Result<T> {
        Err(at_line(self.at, what))
    }

    /// Takes the characters up to the first that `ends` holds for.
    fn take_until(&mut self, ends: impl Fn(char) -> bool) -> &'t str {
        let (taken, rest) = self
            .rest
            .split_at(self.rest.find(ends).unwrap_or(self.rest.len()));
        self.rest = rest;
        taken
    }

    fn next(&mut self) -> Result<Token<'t>> {
        if let Some(token) = self.peeked.take() {
            return Ok(token);
        }
        loop {
            self.take_until(|c| c != ' ' && c != '\t' && c != '\r');
            self.at = self.line;
            let Some(first) = self.rest.chars().next() else {
                return Ok(Token::End);
            };
            if let Some(comment) = self.rest.strip_prefix("//") {
                self.rest = comment;
                let comment = self.take_until(|c| c == '\n').trim();
                if comment.starts_with('{') {
                    return Ok(Token::Json(comment));
                }
            } else if let Some(comment) = self.rest.strip_prefix("/*") {
                let Some(end) = comment.find("*/") else {
                    return self.error("this comment has no end");
                };
                self.line += comment[..end].matches('\n').count();
                self.rest = &comment[end + 2..];
            } else {
                return self.token(first);
            }
        }
    }

    fn token(&mut self, first: char) -> Result<Token<'t>> {
        if first.is_ascii_digit() {
            let digits = self.take_until(|c| !c.is_ascii_digit());
            return match digits.parse() {
                Ok(number) => Ok(Token::Number(number)),
                Err(_) => self.error(format!("the number {} is too large", shortened(digits))),
            };
        }
        if first.is_ascii_alphabetic() {
            return Ok(Token::Word(
                self.take_until(|c| !c.is_ascii_alphanumeric() && c != '_'),
            ));
        }
        if let Some(rest) = self.rest.strip_prefix("-1") {
            self.rest = rest;
            return Ok(Token::Any);
        }
        self.rest = &self.rest[first.len_utf8()..];
        match first {
            '\n' => {
                self.line += 1;
                Ok(Token::Newline)
            }
            ':' | '{' | '}' => Ok(Token::Mark(first)),
            other => self.error(format!("GOAL has no {other:?} here")),
        }
    }

    fn next_but_newlines(&mut self) -> Result<Token<'t>> {
        loop {
            match self.next()? {
                Token::Newline => {}
                token => return Ok(token),
            }
        }
    }

    fn word(&mut self, expected: &str) -> Result<()> {
        match self.next()? {
            Token::Word(word) if word == expected => Ok(()),
            token => self.error(format!("expected '{expected}', found {}", shown(token))),
        }
    }

    fn number(&mut self, what: &str) -> Result<usize> {
        match self.next()? {
            Token::Number(number) => Ok(number),
            token => self.error(format!("expected {what}, found {}", shown(token))),
        }
    }

    fn mark(&mut self, expected: char) -> Result<()> {
        match self.next()? {
            Token::Mark(mark) if mark == expected => Ok(()),
            token => self.error(format!("expected '{expected}', found {}", shown(token))),
        }
    }

    fn file(&mut self) -> Result<File<'t>> {
        let mut file = File {
            head: None,
            ranks: Vec::new(),
        };
        loop {
            match self.next_but_newlines()? {
                Token::Json(comment) => file.head = Some((comment, self.at)),
                Token::Word("num_ranks") => break,
                token => {
                    return self.error(format!("expected 'num_ranks', found {}", shown(token)));
                }
            }
        }
        let (ranks, line) = (self.number("the number of ranks")?, self.at);
        loop {
            match self.next_but_newlines()? {
                Token::Word("rank") => {
                    let rank = self.number("a rank")?;
                    if rank != file.ranks.len() || rank >= ranks {
                        let next = file.ranks.len();
                        return self
                            .error(format!("rank {rank} where rank {next} of {ranks} is due"));
                    }
                    self.mark('{')?;
                    let graph = self.rank()?;
                    file.ranks.push(graph);
                }
                Token::End if file.ranks.len() == ranks => return Ok(file),
                Token::End => {
                    let found = file.ranks.len();
                    return Err(at_line(
                        line,
                        format!("{ranks} ranks, of which {found} follow"),
                    ));
                }
                token => return self.error(format!("expected 'rank', found {}", shown(token))),
            }
        }
    }

    /// The lines of one rank, up to its closing brace.
    fn rank(&mut self) -> Result<Graph<'t>> {
        let mut graph = Graph::default();
        let mut labels = HashMap::new();
        loop {
            match self.next_but_newlines()? {
                Token::Mark('}') => return Ok(graph),
                Token::Json(comment) => {
                    let before = graph.ops.len();
                    graph.comments.push((comment, before, self.at));
                    continue;
                }
                Token::Word(op @ ("send" | "recv" | "calc")) => self.op(op, &mut graph)?,
                Token::Word(label) => match self.next()? {
                    Token::Mark(':') => {
                        if labels.insert(label, graph.ops.len()).is_some() {
                            return self.error(format!("label {label} is defined twice"));
                        }
                        match self.next()? {
                            Token::Word(op) => self.op(op, &mut graph)?,
                            token => return self.not_an_op(token),
                        }
                    }
                    Token::Word("requires") => {
                        let required = match self.next()? {
                            Token::Word(required) => required,
                            token => {
                                return self
                                    .error(format!("expected a label, found {}", shown(token)));
                            }
                        };
                        let defined = |label| {
                            let unknown = || at_line(self.at, format!("no label {label} above"));
                            labels.get(label).copied().ok_or_else(unknown)
                        };
                        let (a, b) = (defined(label)?, defined(required)?);
                        graph.requires.push((a, b, self.at));
                    }
                    Token::Word("irequires") => {
                        return self.error(
                            "irequires: in the model a step waits for the end of others, not for their \
                             start (write requires, or drop the line)",
                        );
                    }
                    token => {
                        return self.error(format!(
                            "expected ':' or 'requires' after {label}, found {}",
                            shown(token)
                        ));
                    }
                },
                token => return self.not_an_op(token),
            }
            match self.next()? {
                Token::Newline => {}
                Token::Mark('}') => return Ok(graph),
                token => {
                    return self.error(format!(
                        "expected the end of the line, found {}",
                        shown(token)
                    ));
                }
            }
        }
    }

    fn not_an_op<T>(&self, token: Token) -> Result<T> {
        self.error(format!(
            "expected send, recv, calc, a label or '}}', found {}",
            shown(token)
        ))
    }

    /// What follows `send`, `recv` or `calc`.
    fn op(&mut self, op: &str, graph: &mut Graph<'t>) -> Result<()> {
        if !matches!(op, "send" | "recv" | "calc") {
            return self.not_an_op(Token::Word(op));
        }
        let size = self.number("a size")?;
        let line = self.at;
        if op == "calc" {
            self.option("cpu")?;
            let what = What::Calc;
            graph.ops.push(Op { what, size, line });
            return Ok(());
        }
        self.word("b")?;
        self.word(if op == "send" { "to" } else { "from" })?;
        let peer = match self.next()? {
            Token::Number(peer) => peer,
            Token::Any if op == "recv" => {
                return self.error(
                    "a receive from any rank: in the model a receive names its sender (write its rank)",
                );
            }
            token => return self.error(format!("expected a rank, found {}", shown(token))),
        };
        let tag = self.option("tag")?.unwrap_or(Some(0));
        self.option("cpu")?;
        let nic = self.option("nic")?.flatten().unwrap_or(0);
        let what = match op {
            "send" => What::Send { to: peer, tag, nic },
            _ => What::Recv {
                from: peer,
                tag,
                nic,
            },
        };
        graph.ops.push(Op { what, size, line });
        Ok(())
    }

    /// The number after `name`, if that follows; `-1` is any tag.
    fn option(&mut self, name: &str) -> Result<Option<Tag>> {
        match self.next()? {
            Token::Word(word) if word == name => match self.next()? {
                Token::Number(number) => Ok(Some(Some(number))),
                Token::Any if name == "tag" => Ok(Some(None)),
                token => self.error(format!(
                    "expected a number after {name}, found {}",
                    shown(token)
                )),
            },
            token => {
                self.peeked = Some(token);
                Ok(None)
            }
        }
    }
}

fn shown(token: Token) -> String {
    match token {
        Token::Word(word) => format!("'{}'", shortened(word)),
        Token::Number(number) => number.to_string(),
        Token::Any => "-1".into(),
        Token::Mark(mark) => format!("'{mark}'"),
        Token::Json(_) => "a comment".into(),
        Token::Newline => "the end of the line".into(),
        Token::End => "the end of the file".into(),
    }
}

/// The text, at most 40 characters of it.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_string(),
    }
}

/// The schedule of a file whose comments hold its steps. The operations must be those of the steps.
fn annotated(head: Head, ranks: &[Graph]) -> Result<Schedule> {
    let ports = match &*head.ports {
        "uni" => Ports::UNI,
        "bi" => Ports::BI,
        other => return Err(Error::malformed(format!("no port model {other}"))),
    };
    let ports = ports.with_k(head.ported);
    let mut programs = Vec::with_capacity(ranks.len());
    let mut layout = Vec::with_capacity(ranks.len());
    let mut bytes = BytesPerElement::default();
    let (mut order, mut scratch) = (LocalOrder::default(), OrderScratch::default());
    for (rank, graph) in ranks.iter().enumerate() {
        let Some(((first, _, line), steps)) = graph.comments.split_first() else {
            return Err(Error::malformed(format!(
                "rank {rank}: the comment with its layout is missing"
            )));
        };
        let json = |text: &str, line: usize, e: serde_json::Error| {
            at_line(
                line,
                format!("{} is no comment of oneport: {e}", shortened(text)),
            )
        };
        layout.push(serde_json::from_str::<Layout>(first).map_err(|e| json(first, *line, e))?);
        let mut program: Vec<Step> = Vec::with_capacity(steps.len());
        let mut ops = 0;
        // By event of the program: the operation that it ends.
        let mut ends = Vec::with_capacity(2 * steps.len());
        for &(text, before, line) in steps {
            let step = serde_json::from_str(text).map_err(|e| json(text, line, e))?;
            let count = same_ops(&step, &graph.ops[before..], &mut bytes)
                .filter(|_| before == ops)
                .ok_or_else(|| at_line(line, DIFFERS))?;
            ends.extend([ops, ops + count - 1]);
            ops += count;
            program.push(step);
        }
        if let Some(op) = graph.ops.get(ops) {
            return Err(at_line(op.line, DIFFERS));
        }
        order
            .analyse(&program, ports, head.overlap, &mut scratch)
            .map_err(|e| Error::malformed(format!("rank {rank}: {e}")))?;
        same_requirements(graph, &program, &order, &ends)?;
        programs.push(program);
    }
    Schedule::new(ports, head.collective, layout, programs)
}

const DIFFERS: &str = "the operations are not those of the step in the comment (remove all JSON comments to \
                       read the graph alone)";

/// Bytes of an element, the same in the whole file; `None` until a message tells. In the uniform
/// form all messages have one byte.
#[derive(Default)]
struct BytesPerElement {
    uniform: Option<bool>,
    bytes: Option<usize>,
}

impl BytesPerElement {
    fn agrees(&mut self, elements: usize, size: usize) -> bool {
        let mut fits = |uniform: bool| match uniform {
            true => size == 1,
            false => match self.bytes {
                Some(bytes) => elements.checked_mul(bytes) == Some(size),
                None if elements == 0 => size == 0,
                None => {
                    self.bytes = size.is_multiple_of(elements).then(|| size / elements);
                    self.bytes.is_some()
                }
            },
        };
        match self.uniform {
            Some(uniform) => fits(uniform),
            None if size == 1 && elements != 1 => {
                self.uniform = Some(true);
                true
            }
            None if size == 1 => true,
            None => {
                self.uniform = Some(false);
                fits(false)
            }
        }
    }
}

/// The number of operations of a step, if these start with them.
fn same_ops(step: &Step, ops: &[Op], bytes: &mut BytesPerElement) -> Option<usize> {
    let transfer = match (step, ops.first()?.what) {
        (&Step::Send { to: peer, port, .. }, What::Send { to, nic, .. }) => {
            peer == to && port == nic
        }
        (
            &(Step::Recv {
                from: peer, port, ..
            }
            | Step::RecvCombine {
                from: peer, port, ..
            }),
            What::Recv { from, nic, .. },
        ) => peer == from && port == nic,
        (Step::Copy { .. } | Step::Combine { .. }, What::Calc) => return Some(1),
        _ => false,
    };
    if !transfer || !bytes.agrees(step.len(), ops[0].size) {
        return None;
    }
    match step.computes() {
        false => Some(1),
        true => (ops.get(1)?.what == What::Calc).then_some(2),
    }
}

/// Compares the requirements in the file with those of the program.
fn same_requirements(
    graph: &Graph,
    program: &[Step],
    order: &LocalOrder,
    ends: &[usize],
) -> Result<()> {
    let mut expected = Vec::new();
    for (i, step) in program.iter().enumerate() {
        let (first, last) = (
            ends[Event::transferred(i).index()],
            ends[Event::computed(i).index()],
        );
        let op = |e: &Event| ends[e.index()];
        expected.extend(order.before_start(i).iter().map(|e| (first, op(e))));
        if step.peer().is_some() && step.computes() {
            expected.push((last, first));
            expected.extend(order.before_compute(i).iter().map(|e| (last, op(e))));
        }
    }
    let mut found: Vec<(usize, usize)> = graph.requires.iter().map(|&(a, b, _)| (a, b)).collect();
    expected.sort_unstable();
    found.sort_unstable();
    if expected == found {
        return Ok(());
    }
    let known = |r: &&(usize, usize, usize)| expected.binary_search(&(r.0, r.1)).is_err();
    let line = match graph.requires.iter().find(known) {
        Some(&(_, _, line)) => line,
        None => graph.comments.first().map_or(0, |c| c.2),
    };
    Err(at_line(
        line,
        "the requirements are not those of the steps in the comments (remove all JSON comments to read the \
         graph alone)",
    ))
}

/// The schedule of a file without data.
fn foreign(ranks: &[Graph]) -> Result<Schedule> {
    let nic = |op: &Op| match op.what {
        What::Send { nic, .. } | What::Recv { nic, .. } => nic,
        What::Calc => 0,
    };
    let ops = ranks.iter().flat_map(|r| &r.ops);
    let Some(k) = ops.map(nic).max().unwrap_or(0).checked_add(1) else {
        return Err(Error::malformed("the number of nics is too large"));
    };
    let orders = ranks
        .iter()
        .enumerate()
        .map(|(rank, graph)| sorted(rank, graph));
    let orders: Vec<Vec<usize>> = orders.collect::<Result<_>>()?;
    let ordered = || {
        let blocks = ranks.iter().zip(&orders).enumerate();
        blocks.flat_map(|(rank, (graph, order))| order.iter().map(move |&op| (rank, graph.ops[op])))
    };
    same_tags(ordered(), ordered())?;
    let (mut layout, mut programs) = (Vec::new(), Vec::new());
    for (graph, order) in ranks.iter().zip(&orders) {
        let (len, program) = program(graph, order)?;
        layout.push(Layout {
            len,
            ..Layout::default()
        });
        programs.push(program);
    }
    let (root, targets) = (0, Vec::new());
    Schedule::new(
        Ports::BI.with_k(k),
        Collective::Multicast { root, targets },
        layout,
        programs,
    )
}

/// The operations of a rank such that each comes after those that it requires, else in the order of
/// the file.
fn sorted(rank: usize, graph: &Graph) -> Result<Vec<usize>> {
    let n = graph.ops.len();
    let mut missing = vec![0usize; n];
    let mut then: Vec<Vec<usize>> = vec![Vec::new(); n];
    for &(a, b, _) in &graph.requires {
        missing[a] += 1;
        then[b].push(a);
    }
    let free = (0..n).filter(|&i| missing[i] == 0);
    let mut free: BinaryHeap<Reverse<usize>> = free.map(Reverse).collect();
    let mut order = Vec::with_capacity(n);
    while let Some(Reverse(op)) = free.pop() {
        order.push(op);
        for &t in &then[op] {
            missing[t] -= 1;
            if missing[t] == 0 {
                free.push(Reverse(t));
            }
        }
    }
    match missing.iter().position(|&m| m > 0) {
        Some(stuck) => Err(at_line(
            graph.ops[stuck].line,
            format!(
                "rank {rank}: the requirements of this operation lead back to it, or to others that wait for themselves"
            ),
        )),
        None => Ok(order),
    }
}

/// The steps of one rank, its operations taken in `order`, and the length of its buffer.
///
/// Every message has elements of its own. A send that requires a receive reads what that receives;
/// a receive that requires a send writes an element that that reads. On one port the last
/// requirement implies the earlier ones.
fn program(graph: &Graph, order: &[usize]) -> Result<(usize, Vec<Step>)> {
    let ops = &graph.ops;
    let mut place = vec![0; ops.len()];
    for (at, &op) in order.iter().enumerate() {
        place[op] = at;
    }
    let mut required: Vec<Vec<usize>> = vec![Vec::new(); ops.len()];
    for &(a, b, _) in &graph.requires {
        required[a].push(b);
    }
    let overflow = "the buffer of a rank";
    let calcs = ops.iter().filter(|op| op.what == What::Calc);
    let copied = calcs.map(|op| op.size).max().unwrap_or(0);
    let mut len = sum(copied, copied, overflow)?;
    // By operation: an element that it alone accesses until another requires it.
    let mut own = vec![Span::new(0, 0); ops.len()];
    let mut steps = Vec::with_capacity(ops.len());
    // Operations before this place are done before any step that follows now.
    let mut barrier = 0;
    for (at, &i) in order.iter().enumerate() {
        let op = ops[i];
        let (to, from, nic) = match op.what {
            What::Calc => {
                barrier = at;
                let span = |offset| Some(Span::new(offset, op.size)).filter(|s| s.len > 0);
                steps.push(Step::copy(span(0), span(copied)));
                continue;
            }
            What::Send { to, nic, .. } => (Some(to), 0, nic),
            What::Recv { from, nic, .. } => (None, from, nic),
        };
        let other = match last_required(ops, &required[i], &place, barrier, to.is_some(), nic) {
            Required::None => None,
            Required::Last(b) if op.size > 0 && own[b].len > 0 => Some(own[b]),
            Required::Last(_) | Required::Barrier => {
                steps.push(Step::copy(Spans::new(), Spans::new()));
                barrier = at;
                None
            }
        };
        let rest = Span::new(len, op.size - usize::from(other.is_some()));
        len = sum(len, rest.len, overflow)?;
        let spans: Spans = other
            .into_iter()
            .chain(Some(rest).filter(|s| s.len > 0))
            .collect();
        own[i] = spans.last().map_or(rest, |s| Span::new(s.end() - 1, 1));
        steps.push(match to {
            Some(to) => Step::send(to, spans).on_port(nic),
            None => Step::recv(from, spans).on_port(nic),
        });
    }
    Ok((len, steps))
}

/// What a message waits for beside its port.
enum Required {
    None,
    /// One operation in the other direction, which implies the others.
    Last(usize),
    /// Operations on several ports.
    Barrier,
}

/// The requirements of a message that are not before the last barrier, in the program's order.
fn last_required(
    ops: &[Op],
    required: &[usize],
    place: &[usize],
    barrier: usize,
    sends: bool,
    nic: usize,
) -> Required {
    let mut last: Option<(usize, usize)> = None;
    for &b in required.iter().filter(|&&b| place[b] >= barrier) {
        let (b_sends, b_nic) = match ops[b].what {
            // It is a barrier itself.
            What::Calc => continue,
            What::Send { nic, .. } => (true, nic),
            What::Recv { nic, .. } => (false, nic),
        };
        last = match last {
            _ if b_sends == sends && b_nic == nic => continue,
            _ if b_sends == sends => return Required::Barrier,
            Some((_, other)) if other != b_nic => return Required::Barrier,
            Some((l, nic)) if place[l] > place[b] => Some((l, nic)),
            _ => Some((b, b_nic)),
        };
    }
    last.map_or(Required::None, |(b, _)| Required::Last(b))
}

/// Refuses tags that pair messages in another order than they are sent. Both are all operations, by
/// rank and in order.
fn same_tags(
    sends: impl Iterator<Item = (usize, Op)>,
    receives: impl Iterator<Item = (usize, Op)>,
) -> Result<()> {
    let mut sent: HashMap<(usize, usize), VecDeque<Tag>> = HashMap::new();
    for (rank, op) in sends {
        if let What::Send { to, tag, .. } = op.what {
            sent.entry((rank, to)).or_default().push_back(tag);
        }
    }
    for (rank, op) in receives {
        let What::Recv { from, tag, .. } = op.what else {
            continue;
        };
        let other = sent.get_mut(&(from, rank)).and_then(VecDeque::pop_front);
        if let (Some(tag), Some(Some(other))) = (tag, other)
            && tag != other
        {
            return Err(at_line(
                op.line,
                format!(
                    "a receive from rank {from} with tag {tag}, where rank {from} sends tag {other}: in the \
                     model messages between two ranks are received in the order in which they are sent"
                ),
            ));
        }
    }
    Ok(())
}
