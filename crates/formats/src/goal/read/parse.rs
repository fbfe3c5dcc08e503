//! The grammar: a lexer, and the operations and requirements of each rank.

use std::collections::HashMap;

use crate::at_line;
use oneport::error::Result;

#[derive(Debug, Clone, Copy)]
pub(crate) struct GoalOp {
    pub(crate) kind: OpKind,
    /// Bytes of a message, or time of a computation.
    pub(crate) size: usize,
    pub(crate) line: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpKind {
    Send { to: usize, tag: Tag, nic: usize },
    Recv { from: usize, tag: Tag, nic: usize },
    Calc,
}

/// `None`: any.
pub(crate) type Tag = Option<usize>;

#[derive(Debug, Default)]
pub(crate) struct RankGraph<'t> {
    pub(crate) ops: Vec<GoalOp>,
    /// `(a, b, line)`: operation `a` requires operation `b`.
    pub(crate) requires: Vec<(usize, usize, usize)>,
    /// JSON comments, with the number of operations before them and their line.
    pub(crate) comments: Vec<(&'t str, usize, usize)>,
}

pub(super) struct GoalFile<'t> {
    /// The JSON comment before the first rank, and its line.
    pub(super) head: Option<(&'t str, usize)>,
    pub(super) ranks: Vec<RankGraph<'t>>,
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

pub(super) struct Parser<'t> {
    rest: &'t str,
    line: usize,
    /// Line of the token that was read last.
    at: usize,
    peeked: Option<Token<'t>>,
}

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str) -> Parser<'t> {
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
        let end = self.rest.find(ends).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
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

    fn expected<T>(&self, what: impl std::fmt::Display, found: Token) -> Result<T> {
        self.error(format!("expected {what}, found {}", shown(found)))
    }

    fn take(&mut self, expected: Token) -> Result<()> {
        match self.next()? {
            token if token == expected => Ok(()),
            token => self.expected(shown(expected), token),
        }
    }

    fn number(&mut self, what: &str) -> Result<usize> {
        match self.next()? {
            Token::Number(number) => Ok(number),
            token => self.expected(what, token),
        }
    }

    pub(super) fn file(&mut self) -> Result<GoalFile<'t>> {
        let mut file = GoalFile {
            head: None,
            ranks: Vec::new(),
        };
        loop {
            match self.next_but_newlines()? {
                Token::Json(comment) => file.head = Some((comment, self.at)),
                Token::Word("num_ranks") => break,
                token => return self.expected("'num_ranks'", token),
            }
        }
        let (ranks, line) = (self.number("the number of ranks")?, self.at);
        loop {
            match self.next_but_newlines()? {
                Token::Word("rank") => {
                    let rank = self.number("a rank")?;
                    let next = file.ranks.len();
                    if rank >= ranks {
                        return self.error(format!("rank {rank} is none of {ranks} ranks"));
                    }
                    if rank != next {
                        return self.error(format!("rank {rank} where rank {next} is due"));
                    }
                    self.take(Token::Mark('{'))?;
                    file.ranks.push(self.rank()?);
                }
                Token::End if file.ranks.len() == ranks => return Ok(file),
                Token::End => {
                    let what = format!("{ranks} ranks, of which {} follow", file.ranks.len());
                    return Err(at_line(line, what));
                }
                token => return self.expected("'rank'", token),
            }
        }
    }

    /// The lines of one rank, up to its closing brace.
    fn rank(&mut self) -> Result<RankGraph<'t>> {
        let mut graph = RankGraph::default();
        let mut labels = HashMap::new();
        loop {
            match self.next_but_newlines()? {
                Token::Mark('}') => return Ok(graph),
                Token::Json(comment) => {
                    graph.comments.push((comment, graph.ops.len(), self.at));
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
                            token => return self.expected("a label", token),
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
                        let what = format!("':' or 'requires' after {label}");
                        return self.expected(what, token);
                    }
                },
                token => return self.not_an_op(token),
            }
            match self.next()? {
                Token::Newline => {}
                Token::Mark('}') => return Ok(graph),
                token => return self.expected("the end of the line", token),
            }
        }
    }

    fn not_an_op<T>(&self, token: Token) -> Result<T> {
        self.expected("send, recv, calc, a label or '}'", token)
    }

    fn op(&mut self, op: &str, graph: &mut RankGraph<'t>) -> Result<()> {
        if !matches!(op, "send" | "recv" | "calc") {
            return self.not_an_op(Token::Word(op));
        }
        let size = self.number("a size")?;
        let line = self.at;
        if op == "calc" {
            self.option("cpu")?;
            let kind = OpKind::Calc;
            graph.ops.push(GoalOp { kind, size, line });
            return Ok(());
        }
        self.take(Token::Word("b"))?;
        self.take(Token::Word(if op == "send" { "to" } else { "from" }))?;
        let peer = match self.next()? {
            Token::Number(peer) => peer,
            Token::Any if op == "recv" => {
                return self.error(
                    "a receive from any rank: in the model a receive names its sender (write its rank)",
                );
            }
            token => return self.expected("a rank", token),
        };
        let tag = self.option("tag")?.unwrap_or(Some(0));
        self.option("cpu")?;
        let nic = self.option("nic")?.flatten().unwrap_or(0);
        let kind = match op {
            "send" => OpKind::Send { to: peer, tag, nic },
            _ => OpKind::Recv {
                from: peer,
                tag,
                nic,
            },
        };
        graph.ops.push(GoalOp { kind, size, line });
        Ok(())
    }

    /// The number after `name`, if that follows; `-1` is any tag.
    fn option(&mut self, name: &str) -> Result<Option<Tag>> {
        match self.next()? {
            Token::Word(word) if word == name => match self.next()? {
                Token::Number(number) => Ok(Some(Some(number))),
                Token::Any if name == "tag" => Ok(Some(None)),
                token => self.expected(format!("a number after {name}"), token),
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
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_string(),
    }
}
