//! The steps of a rank's program: sends, receives, copies and combinations.

use serde::{Deserialize, Serialize};

use super::span::{Span, Spans, total_len};

/// Which operand is the left one when a message is combined into a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// `span = span ⊕ message`.
    #[default]
    MineFirst,
    /// `span = message ⊕ span`.
    TheirsFirst,
}

impl Order {
    /// The order that keeps operands in rank order when `me` combines a message from `peer`,
    /// provided that both hold contributions of consecutive ranks.
    pub fn by_rank(me: usize, peer: usize) -> Order {
        if me < peer {
            Order::MineFirst
        } else {
            Order::TheirsFirst
        }
    }
}

/// One step of a rank's program.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[allow(missing_docs, reason = "the fields are described with the variants")]
pub enum Step {
    /// One message to rank `to`, the spans packed in order, through port `port`.
    Send {
        to: usize,
        spans: Spans,
        #[serde(default, skip_serializing_if = "is_zero")]
        port: usize,
    },
    /// A message from rank `from`, stored into the spans.
    Recv {
        from: usize,
        spans: Spans,
        #[serde(default, skip_serializing_if = "is_zero")]
        port: usize,
    },
    /// A message from rank `from`, combined element-wise into the spans.
    RecvCombine {
        from: usize,
        spans: Spans,
        #[serde(default)]
        order: Order,
        #[serde(default, skip_serializing_if = "is_zero")]
        port: usize,
    },
    /// A local copy, `dst = src`.
    Copy {
        #[serde(with = "one_or_many")]
        src: Spans,
        #[serde(with = "one_or_many")]
        dst: Spans,
    },
    /// A local combination: `dst = dst ⊕ src` ([`Order::MineFirst`]) or `dst = src ⊕ dst`.
    Combine {
        #[serde(with = "one_or_many")]
        src: Spans,
        #[serde(with = "one_or_many")]
        dst: Spans,
        #[serde(default)]
        order: Order,
    },
}

impl Step {
    /// A send through port 0.
    pub fn send(to: usize, spans: impl Into<Spans>) -> Step {
        let spans = spans.into();
        Step::Send { to, spans, port: 0 }
    }

    /// A receive through port 0.
    pub fn recv(from: usize, spans: impl Into<Spans>) -> Step {
        let spans = spans.into();
        Step::Recv {
            from,
            spans,
            port: 0,
        }
    }

    /// A combining receive through port 0.
    pub fn recv_combine(from: usize, spans: impl Into<Spans>, order: Order) -> Step {
        let spans = spans.into();
        Step::RecvCombine {
            from,
            spans,
            order,
            port: 0,
        }
    }

    /// A local copy.
    pub fn copy(src: impl Into<Spans>, dst: impl Into<Spans>) -> Step {
        let (src, dst) = (src.into(), dst.into());
        Step::Copy { src, dst }
    }

    /// A local combination.
    pub fn combine(src: impl Into<Spans>, dst: impl Into<Spans>, order: Order) -> Step {
        let (src, dst) = (src.into(), dst.into());
        Step::Combine { src, dst, order }
    }

    /// The same step on another port; local steps have none.
    #[must_use]
    pub fn on_port(mut self, number: usize) -> Step {
        if let Step::Send { port, .. } | Step::Recv { port, .. } | Step::RecvCombine { port, .. } =
            &mut self
        {
            *port = number;
        }
        self
    }

    /// The rank at the other end, if the step is half of a transfer.
    pub fn peer(&self) -> Option<usize> {
        match *self {
            Step::Send { to: peer, .. }
            | Step::Recv { from: peer, .. }
            | Step::RecvCombine { from: peer, .. } => Some(peer),
            Step::Copy { .. } | Step::Combine { .. } => None,
        }
    }

    /// The port number, if the step is half of a transfer.
    pub fn port(&self) -> Option<usize> {
        match *self {
            Step::Send { port, .. } | Step::Recv { port, .. } | Step::RecvCombine { port, .. } => {
                Some(port)
            }
            Step::Copy { .. } | Step::Combine { .. } => None,
        }
    }

    /// Whether the step is a send.
    pub fn is_send(&self) -> bool {
        matches!(self, Step::Send { .. })
    }

    /// Whether the step computes: a local step, or the combining part of a receive.
    pub fn computes(&self) -> bool {
        !matches!(self, Step::Send { .. } | Step::Recv { .. })
    }

    /// Number of elements that the step moves: its message, or the elements it copies or combines.
    pub fn len(&self) -> usize {
        total_len(match self {
            Step::Send { spans, .. }
            | Step::Recv { spans, .. }
            | Step::RecvCombine { spans, .. } => spans,
            Step::Copy { dst, .. } | Step::Combine { dst, .. } => dst,
        })
    }

    /// Whether the step moves nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Spans that the step reads and does not write.
    pub fn reads(&self) -> &[Span] {
        match self {
            Step::Send { spans, .. } => spans,
            Step::Recv { .. } | Step::RecvCombine { .. } => &[],
            Step::Copy { src, .. } | Step::Combine { src, .. } => src,
        }
    }

    /// Spans that the step writes (and also reads, if it combines).
    pub fn writes(&self) -> &[Span] {
        match self {
            Step::Send { .. } => &[],
            Step::Recv { spans, .. } | Step::RecvCombine { spans, .. } => spans,
            Step::Copy { dst, .. } | Step::Combine { dst, .. } => dst,
        }
    }

    /// `send`, `recv`, `recv_combine`, `copy` or `combine`, as in files.
    pub fn name(&self) -> &'static str {
        match self {
            Step::Send { .. } => "send",
            Step::Recv { .. } => "recv",
            Step::RecvCombine { .. } => "recv_combine",
            Step::Copy { .. } => "copy",
            Step::Combine { .. } => "combine",
        }
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature serde asks for"
)]
fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// The serialized form of the spans of local steps: `[offset, len]` for one span, a list of such
/// pairs for several.
mod one_or_many {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Span, Spans};

    #[derive(Deserialize)]
    #[serde(
        untagged,
        expecting = "expected a span [offset, len] or a list of spans"
    )]
    enum Form {
        One(Span),
        Many(Spans),
    }

    pub(super) fn serialize<S: Serializer>(spans: &Spans, s: S) -> Result<S::Ok, S::Error> {
        match spans.as_slice() {
            [one] => one.serialize(s),
            _ => spans.serialize(s),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Spans, D::Error> {
        Ok(match Form::deserialize(d)? {
            Form::One(span) => span.into(),
            Form::Many(spans) => spans,
        })
    }
}
