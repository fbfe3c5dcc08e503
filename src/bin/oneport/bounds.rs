//! The largest lower bound on a collective's model time that is known to hold.

use oneport::schedule::total_len;
use oneport::{CostModel, Kind, Ports, Request, Schedule};

/// The bound for a request.
pub(crate) fn of_request(kind: Kind, request: &Request) -> f64 {
    let bytes = request.elements() as u64 * request.element_bytes;
    lower_bound(kind, request.ranks, bytes, request.ports, &request.cost)
}

/// The bound for what a schedule performs.
pub(crate) fn of_schedule(schedule: &Schedule, cost: &CostModel, element_bytes: u64) -> f64 {
    let collective = schedule.collective();
    let input = collective
        .root()
        .filter(|_| collective.kind() == Kind::Broadcast)
        .unwrap_or(0);
    let Some(layout) = schedule.layout().get(input) else {
        return 0.0;
    };
    let bytes = (total_len(&layout.input) as u64).saturating_mul(element_bytes);
    lower_bound(
        collective.kind(),
        schedule.ranks(),
        bytes,
        schedule.ports(),
        cost,
    )
}

/// Latency, bandwidth and computation, each on its own: `k`-ported ranks reach `(k+1)^r` ranks in `r` rounds; every byte
/// crosses `p - 1` times, with at most `floor(p k / 2)` transfers at once on unidirectional ports, and into or out of the
/// root through `k` ports; `p - 1` combinations of every byte are shared by `p` ranks.
fn lower_bound(kind: Kind, ranks: usize, bytes: u64, ports: Ports, cost: &CostModel) -> f64 {
    if !matches!(kind, Kind::Broadcast | Kind::Reduce)
        || ranks < 2
        || bytes == 0
        || cost.links().is_some()
    {
        return 0.0;
    }
    let k = ports.k();
    let mut rounds = 0.0;
    let mut reached = 1usize;
    while reached < ranks {
        reached = reached.saturating_mul(k + 1);
        rounds += 1.0;
    }
    let (p, m) = (ranks as f64, bytes as f64);
    let latency = rounds * cost.alpha;
    let bandwidth = if ports.is_bidirectional() {
        cost.beta * m / k as f64
    } else {
        let at_once = (ranks * k / 2) as f64;
        ((p - 1.0) / at_once).max(1.0 / k as f64) * cost.beta * m
    };
    let computation = if kind.reduces() {
        (p - 1.0) / p * cost.gamma * m
    } else {
        0.0
    };
    latency.max(bandwidth).max(computation)
}
