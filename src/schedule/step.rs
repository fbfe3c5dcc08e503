//! The steps of a rank's program: sends, receives, copies and combinations.

use serde::{Deserialize, Serialize};

use super::span::{Span, Spans, total_len};

/// Which operand is the left one when a message, or another span, is combined into a span.
///
/// It matters for operators that do not commute. `"mine_first"` or `"theirs_first"` in files, where
/// the first is the default.
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// `span = span ⊕ message`, or `dst = dst ⊕ src` for a local combination.
    #[default]
    MineFirst,
    /// `span = message ⊕ span`, or `dst = src ⊕ dst` for a local combination.
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

/// One step of a rank's program: half of a transfer, or local work.
///
/// Spans are parts of the rank's own buffer, in elements. In a correct schedule a step writes no
/// element twice and reads none that it writes, except that combining reads what it writes. When it
/// may start is said by the rules of time ([`crate::rules`]), how long it takes by the
/// [`CostModel`](crate::CostModel).
///
/// In files an object with one field, the [name](Step::name): `{"send": {"to": 1, "spans":
/// [[0,4]]}}`. A port of 0 and the default order may be left out, and the spans of a local step may
/// be one pair.
///
/// ```
/// use oneport::{Order, Step};
/// let step = Step::recv_combine(3, 0..4, Order::TheirsFirst).on_port(1);
/// assert_eq!((step.peer(), step.port(), step.len()), (Some(3), Some(1), 4));
/// assert!(step.computes() && !step.is_send());
/// ```
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// Sends one message, the spans packed in order. It meets the receive at `to` that has the same
    /// number among those from this rank.
    Send {
        /// Rank that receives, not this rank.
        to: usize,
        /// Where the message is in the buffer.
        spans: Spans,
        /// Number of the port, below the `k` of the ranks' [`Ports`](crate::Ports).
        #[serde(default, skip_serializing_if = "is_zero")]
        port: usize,
    },
    /// Receives one message and stores it, unpacked in order into the spans. Its length must be
    /// theirs.
    Recv {
        /// Rank that sends, not this rank.
        from: usize,
        /// Where the message goes.
        spans: Spans,
        /// Number of the port, as of a send.
        #[serde(default, skip_serializing_if = "is_zero")]
        port: usize,
    },
    /// Receives one message and combines it, element by element, with what the spans hold. Its
    /// length must be theirs.
    RecvCombine {
        /// Rank that sends, not this rank.
        from: usize,
        /// What the message is combined into.
        spans: Spans,
        /// Which operand is the left one.
        #[serde(default)]
        order: Order,
        /// Number of the port, as of a send.
        #[serde(default, skip_serializing_if = "is_zero")]
        port: usize,
    },
    /// Copies within the buffer, `dst = src`, where the spans of each side are packed in order.
    Copy {
        /// What is copied.
        #[serde(with = "one_or_many")]
        #[cfg_attr(feature = "schemars", schemars(with = "one_or_many::SpansForm"))]
        src: Spans,
        /// Where it goes: as many elements, none of them in `src`.
        #[serde(with = "one_or_many")]
        #[cfg_attr(feature = "schemars", schemars(with = "one_or_many::SpansForm"))]
        dst: Spans,
    },
    /// Combines within the buffer, element by element: `dst = dst ⊕ src` ([`Order::MineFirst`]) or
    /// `dst = src ⊕ dst`.
    Combine {
        /// What is combined into `dst`.
        #[serde(with = "one_or_many")]
        #[cfg_attr(feature = "schemars", schemars(with = "one_or_many::SpansForm"))]
        src: Spans,
        /// What it is combined into: as many elements, none of them in `src`.
        #[serde(with = "one_or_many")]
        #[cfg_attr(feature = "schemars", schemars(with = "one_or_many::SpansForm"))]
        dst: Spans,
        /// Which operand is the left one.
        #[serde(default)]
        order: Order,
    },
}

impl Step {
    pub(crate) fn spans_mut(&mut self) -> impl Iterator<Item = &mut Spans> {
        let (one, other) = match self {
            Step::Send { spans, .. } | Step::Recv { spans, .. } => (spans, None),
            Step::RecvCombine { spans, .. } => (spans, None),
            Step::Copy { src, dst } | Step::Combine { src, dst, .. } => (src, Some(dst)),
        };
        std::iter::once(one).chain(other)
    }

    /// A send of `spans` to rank `to` through port 0.
    pub fn send(to: usize, spans: impl Into<Spans>) -> Step {
        let spans = spans.into();
        Step::Send { to, spans, port: 0 }
    }

    /// A receive from rank `from` into `spans` through port 0.
    pub fn recv(from: usize, spans: impl Into<Spans>) -> Step {
        let spans = spans.into();
        Step::Recv {
            from,
            spans,
            port: 0,
        }
    }

    /// A receive from rank `from` that is combined into `spans`, through port 0.
    pub fn recv_combine(from: usize, spans: impl Into<Spans>, order: Order) -> Step {
        let spans = spans.into();
        Step::RecvCombine {
            from,
            spans,
            order,
            port: 0,
        }
    }

    /// A local copy of `src` to `dst`.
    pub fn copy(src: impl Into<Spans>, dst: impl Into<Spans>) -> Step {
        let (src, dst) = (src.into(), dst.into());
        Step::Copy { src, dst }
    }

    /// A local combination of `src` into `dst`.
    pub fn combine(src: impl Into<Spans>, dst: impl Into<Spans>, order: Order) -> Step {
        let (src, dst) = (src.into(), dst.into());
        Step::Combine { src, dst, order }
    }

    /// The same step on port `number`. Local steps have no port and stay as they are.
    #[must_use]
    pub fn on_port(mut self, number: usize) -> Step {
        if let Step::Send { port, .. } | Step::Recv { port, .. } | Step::RecvCombine { port, .. } =
            &mut self
        {
            *port = number;
        }
        self
    }

    /// The same step with the rank at the other end that `of` maps it to. Local steps stay as they
    /// are.
    pub(crate) fn with_peer(mut self, of: impl FnOnce(usize) -> usize) -> Step {
        if let Step::Send { to: peer, .. }
        | Step::Recv { from: peer, .. }
        | Step::RecvCombine { from: peer, .. } = &mut self
        {
            *peer = of(*peer);
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

    /// The port number, if the step is half of a transfer. Ports out and ports in of a
    /// bidirectional rank are numbered separately.
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

    /// Whether the step computes (rule 3 of [`crate::rules`]): a local step, or a receive that
    /// combines.
    pub fn computes(&self) -> bool {
        !matches!(self, Step::Send { .. } | Step::Recv { .. })
    }

    /// Number of elements that the step moves: its message, or the elements that it copies or
    /// combines into. Linear in the number of spans.
    pub fn len(&self) -> usize {
        total_len(match self {
            Step::Send { spans, .. }
            | Step::Recv { spans, .. }
            | Step::RecvCombine { spans, .. } => spans,
            Step::Copy { dst, .. } | Step::Combine { dst, .. } => dst,
        })
    }

    /// Whether the step moves nothing. An empty message takes no model time, but it still is a
    /// message, for which both ranks wait.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Spans that the step reads and does not write: of a send, a copy or a local combination.
    pub fn reads(&self) -> &[Span] {
        match self {
            Step::Send { spans, .. } => spans,
            Step::Recv { .. } | Step::RecvCombine { .. } => &[],
            Step::Copy { src, .. } | Step::Combine { src, .. } => src,
        }
    }

    /// Spans that the step writes, and also reads if it combines: of all steps but sends.
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

    /// One span, or a list of them.
    #[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
    #[derive(Deserialize)]
    #[serde(
        untagged,
        expecting = "expected a span [offset, len] or a list of spans"
    )]
    pub(super) enum SpansForm {
        One(Span),
        Many(Spans),
    }

    pub(super) fn serialize<S: Serializer>(spans: &Spans, s: S) -> Result<S::Ok, S::Error> {
        match spans[..] {
            [one] => one.serialize(s),
            _ => spans.serialize(s),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Spans, D::Error> {
        Ok(match SpansForm::deserialize(d)? {
            SpansForm::One(span) => span.into(),
            SpansForm::Many(spans) => spans,
        })
    }
}
