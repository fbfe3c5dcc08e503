//! The rules of time: when each step of a schedule may start.
//!
//! Checker, simulator and executor all follow these four rules:
//!
//! 1. **Ports.** The steps of a rank that use the same port run one after another, in program
//!    order. A unidirectional rank has one port for both directions. A bidirectional rank has one
//!    port out and one port in. The port of a telephone rank calls one partner at a time, in both
//!    directions at once: of two steps in different directions the later one waits if their
//!    partners differ. A `k`-ported rank has `k` ports of each kind, and each of its steps names
//!    its port (0 by default), so the steps of each port form a list of their own. A port that
//!    several ranks share ([`SharedPort`](crate::schedule::SharedPort)) lists its transfers, and
//!    each starts when the one before it has ended.
//! 2. **Data.** A step waits for every earlier step of its rank that writes a span it reads, or
//!    that reads or writes a span it writes.
//! 3. **Compute.** A copy, a combination and the combining part of a
//!    [`Step::RecvCombine`](crate::Step::RecvCombine) start when every earlier step of the rank, on
//!    all ports, has finished. Every later step of the rank starts after them, even if combining is
//!    free. With [`CostModel::overlap`](crate::CostModel::overlap) they delay only the steps that
//!    rules 1 and 2 delay: a port is free again when its transfer ends, and only steps that access
//!    the combined span wait for the combination.
//! 4. **Transfers.** The `n`-th send from `a` to `b` matches the `n`-th receive at `b` from `a`.
//!    The transfer is a rendezvous: it starts when both steps may start, takes `alpha + beta *
//!    bytes` (no time for an empty message; `alpha` for a message of a barrier, whose elements are
//!    tokens that have no bytes) and frees both ports at its end. A combining receiver is then busy
//!    for `gamma * bytes` more; a local copy takes `gamma_copy * bytes`.
//!
//! Three quantities, all absent by default, describe what is not ideal about a machine:
//!
//! - **Arrival.** The ports and the computation of a rank are available from its arrival on.
//! - **Latency.** A transfer starts at the receiver at least the latency `L` later than at the
//!   sender and keeps either port for `alpha + beta * bytes` from its start there. The sender
//!   learns `L` later that the receiver is ready: it starts at `max(sender, receiver + L)`, where
//!   `sender` and `receiver` are the times at which rules 1 to 3 let the two ends start. An empty
//!   message has no latency.
//! - **Eager sends.** The sender does not wait: it starts at `sender`, and the receiver at
//!   `max(sender + L, receiver)`. The message waits in a buffer of the receiver's that is unlimited
//!   and costs nothing.
//!
//! Model time is a longest path: one number, independent of the order in which steps are evaluated.
//!
//! Two analyses apply rules 1 to 3:
//!
//! - *Static*, for programs that are known as a whole: [`LocalOrder`] lists what each step waits
//!   for. With the matching of rule 4 it makes the precedence graph (`graph.rs`), which
//!   [`Schedule::simulate`](crate::Schedule::simulate) and the checker follow. Executors follow it
//!   rank by rank; of shared ports they learn the ends of transfers at other ranks (`shared.rs`).
//! - *Incremental*, for steps as they come (`online.rs`): the
//!   [streaming simulator](crate::simulate::stream) and the model clock of endpoints.
//!
//! Tests hold that both give the same times, to the last bit.

pub(crate) mod accesses;
mod graph;
pub(crate) mod matching;
pub(crate) mod online;
mod order;
pub(crate) mod shared;
mod transfer;

pub(crate) use accesses::{Times, advance, max_time};
pub(crate) use graph::{Graph, Ordered, OrderedGraph};
pub use graph::{Node, NodeKind};
pub(crate) use order::share_port;
pub use order::{Event, LocalOrder, OrderScratch};
pub use transfer::End;
