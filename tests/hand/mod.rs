//! Correct schedules written by hand, for collectives and patterns that no registered algorithm has
//! to cover.

use oneport::{Collective, Order, Ports, Schedule, Span, Step};

/// Returns all schedules for `p` ranks, each with its name.
pub(crate) fn all(p: usize) -> Vec<(String, Schedule)> {
    let mut all = Vec::new();
    for ports in [Ports::UNI, Ports::BI] {
        let mut add = |name: &str, s: Schedule| {
            all.push((format!("{name} p={p} {}", ports.name()), s));
        };
        for root in [0, p - 1] {
            add("linear gather", linear_gather(p, root, ports));
            add(
                "linear scatter",
                linear_gather(p, root, ports).reversed().unwrap(),
            );
        }
        add("chain gather", chain_gather(p, ports));
        add("chain scatter", chain_gather(p, ports).reversed().unwrap());
        add("chain scan", chain_scan(p, ports));
        add("chain exscan", chain_exscan(p, ports));
        add("chain multicast", chain_multicast(p, ports));
        add("central barrier", central_barrier(p, ports));
        add("pairwise alltoall", alltoall(p, ports, false));
        add("pairwise irregular alltoall", alltoall(p, ports, true));
        if ports.can_relay() {
            add("ring allgather", ring_allgather(p, ports));
            add(
                "ring reduce_scatter",
                ring_allgather(p, ports).reversed().unwrap(),
            );
            add("doubling scan", doubling_scan(p, ports));
            let two = ports.with_k(2);
            all.push((format!("two-ported broadcast p={p}"), two_ported(p, two)));
            all.push((
                format!("recursive doubling allreduce p={p}"),
                doubling_allreduce(p),
            ));
            all.push((format!("split copy p={p}"), split_copy(p)));
        }
    }
    all
}

/// Block sizes repeat 2, 0, 1, 3.
fn size(rank: usize) -> usize {
    [2, 0, 1, 3][rank % 4]
}

fn start(rank: usize) -> usize {
    (0..rank).map(size).sum()
}

fn block(rank: usize) -> Span {
    Span::new(start(rank), size(rank))
}

fn linear_gather(p: usize, root: usize, ports: Ports) -> Schedule {
    let mut b = Schedule::builder(p, ports, Collective::Gather { root });
    for r in (0..p).rev() {
        let all: Vec<Span> = (0..p).map(block).collect();
        b.layout(
            r,
            start(p),
            [block(r)],
            if r == root { all } else { Vec::new() },
        );
        if r != root {
            b.transfer(r, root, block(r));
        }
    }
    b.build().unwrap()
}

fn chain_gather(p: usize, ports: Ports) -> Schedule {
    let mut b = Schedule::builder(p, ports, Collective::Gather { root: 0 });
    for r in (0..p).rev() {
        let all = Span::new(0, start(p));
        b.layout(r, start(p), [block(r)], (r == 0).then_some(all));
        if r > 0 {
            b.transfer(r, r - 1, Span::new(start(r), start(p) - start(r)));
        }
    }
    b.build().unwrap()
}

fn chain_scan(p: usize, ports: Ports) -> Schedule {
    let mut b = Schedule::builder(p, ports, Collective::Scan);
    let parts = [Span::new(0, 2), Span::new(2, 3)];
    for r in 0..p {
        b.layout(r, 5, [Span::new(0, 5)], [Span::new(0, 5)]);
        for part in parts {
            if r > 0 {
                b.step(r, Step::recv_combine(r - 1, part, Order::TheirsFirst));
            }
            if r + 1 < p {
                b.step(r, Step::send(r + 1, part));
            }
        }
    }
    b.build().unwrap()
}

/// What arrives is copied to the output before the rank adds its own contribution to it.
fn chain_exscan(p: usize, ports: Ports) -> Schedule {
    let mut b = Schedule::builder(p, ports, Collective::Exscan);
    let (mine, passed, output) = (Span::new(0, 3), Span::new(3, 3), Span::new(6, 3));
    for r in 0..p {
        b.layout(r, 9, [mine], (r > 0).then_some(output));
        if r > 0 {
            b.step(r, Step::recv(r - 1, passed));
            b.step(r, Step::copy(passed, output));
            b.step(r, Step::combine(mine, passed, Order::MineFirst));
        }
        if r + 1 < p {
            b.step(r, Step::send(r + 1, if r > 0 { passed } else { mine }));
        }
    }
    b.build().unwrap()
}

/// Hillis and Steele: rank `r` sends its partial result to `r + 2^k`. Messages arrive in scratch,
/// because the receiver also sends the span into which it combines.
fn doubling_scan(p: usize, ports: Ports) -> Schedule {
    let mut b = Schedule::builder(p, ports, Collective::Scan);
    let (mine, scratch) = (Span::new(0, 2), Span::new(2, 2));
    for r in 0..p {
        b.layout(r, 4, [mine], [mine]);
        let mut distance = 1;
        while distance < p {
            if r + distance < p {
                b.step(r, Step::send(r + distance, mine));
            }
            if r >= distance {
                b.step(r, Step::recv(r - distance, scratch));
                b.step(r, Step::combine(scratch, mine, Order::TheirsFirst));
            }
            distance *= 2;
        }
    }
    b.build().unwrap()
}

/// A multicast to every second rank and the last, through a chain of all ranks.
fn chain_multicast(p: usize, ports: Ports) -> Schedule {
    let targets: Vec<usize> = (0..p).filter(|r| r % 2 == 1 || r + 1 == p).collect();
    let collective = Collective::Multicast {
        root: 0,
        targets: targets.clone(),
    };
    let mut b = Schedule::builder(p, ports, collective);
    let vector = Span::new(0, 3);
    for r in 0..p {
        let input = (r == 0).then_some(vector);
        b.layout(r, 3, input, targets.contains(&r).then_some(vector));
    }
    for r in 1..p {
        b.transfer(r - 1, r, vector);
    }
    b.build().unwrap()
}

/// In round `i`, rank `r` sends to `r + i` and receives from `r - i`. With unidirectional ports,
/// pairs of ranks exchange their blocks one after another.
fn alltoall(p: usize, ports: Ports, irregular: bool) -> Schedule {
    let mut b = Schedule::builder(p, ports, Collective::Alltoall);
    let size = |from: usize, to: usize| if irregular { (from * to + 1) % 3 } else { 1 };
    let outgoing = |from: usize, to: usize| {
        let before = (0..to).map(|t| size(from, t)).sum();
        Span::new(before, size(from, to))
    };
    let all_out = |from: usize| (0..p).map(|t| size(from, t)).sum::<usize>();
    let incoming = |from: usize, to: usize| {
        let before: usize = (0..from).map(|f| size(f, to)).sum();
        Span::new(all_out(to) + before, size(from, to))
    };
    let all_in = |to: usize| (0..p).map(|f| size(f, to)).sum::<usize>();
    for r in 0..p {
        let input: Vec<Span> = if irregular {
            (0..p).map(|to| outgoing(r, to)).collect()
        } else {
            vec![Span::new(0, p)]
        };
        let output = Span::new(all_out(r), all_in(r));
        b.layout(r, all_out(r) + all_in(r), input, [output]);
        b.step(r, Step::copy(outgoing(r, r), incoming(r, r)));
    }
    if ports.can_relay() {
        for r in 0..p {
            for i in 1..p {
                let (to, from) = ((r + i) % p, (r + p - i) % p);
                b.step(r, Step::send(to, outgoing(r, to)));
                b.step(r, Step::recv(from, incoming(from, r)));
            }
        }
    } else {
        for x in 0..p {
            for y in x + 1..p {
                for (from, to) in [(x, y), (y, x)] {
                    b.step(from, Step::send(to, outgoing(from, to)));
                    b.step(to, Step::recv(from, incoming(from, to)));
                }
            }
        }
    }
    b.build().unwrap()
}

/// Every rank tells rank 0 that it has entered, and waits for its answer.
fn central_barrier(p: usize, ports: Ports) -> Schedule {
    let mut b = Schedule::barrier(p);
    b.ports(ports);
    for r in 1..p {
        b.transfer(r, 0, Span::new(r, 1));
    }
    for r in 1..p {
        b.transfer(0, r, Span::new(0, p));
    }
    b.build().unwrap()
}

fn ring_allgather(p: usize, ports: Ports) -> Schedule {
    let mut b = Schedule::builder(p, ports, Collective::Allgather);
    for r in 0..p {
        b.layout(r, start(p), [block(r)], [Span::new(0, start(p))]);
        for i in 0..p.saturating_sub(1) {
            let (to, from) = ((r + 1) % p, (r + p - 1) % p);
            b.step(r, Step::send(to, block((r + p - i) % p)));
            b.step(r, Step::recv(from, block((from + p - i) % p)));
        }
    }
    b.build().unwrap()
}

/// The largest power of two of ranks exchange partial results with partners at distances 1, 2, 4.
/// The extra ranks send theirs before and receive the result after.
fn doubling_allreduce(p: usize) -> Schedule {
    let mut b = Schedule::builder(p, Ports::BI, Collective::Allreduce);
    let (mine, scratch) = (Span::new(0, 3), Span::new(3, 3));
    for r in 0..p {
        b.layout(r, 6, [mine], [mine]);
    }
    let full = if p.is_power_of_two() {
        p
    } else {
        p.next_power_of_two() / 2
    };
    // Pairs 0, 1 | 2, 3 | ... combine until `full` ranks remain, so that operands stay in order.
    let extra = p - full;
    let place = |v: usize| if v < extra { 2 * v } else { v + extra };
    for pair in 0..extra {
        b.transfer_combine(2 * pair + 1, 2 * pair, mine, Order::MineFirst);
    }
    let mut distance = 1;
    while distance < full {
        for v in 0..full {
            let (me, peer) = (place(v), place(v ^ distance));
            b.step(me, Step::send(peer, mine));
            b.step(me, Step::recv(peer, scratch));
            b.step(me, Step::combine(scratch, mine, Order::by_rank(me, peer)));
        }
        distance *= 2;
    }
    for pair in 0..extra {
        b.transfer(2 * pair, 2 * pair + 1, mine);
    }
    b.build().unwrap()
}

/// The root sends both halves at once, each through its own port; the other ranks forward them.
fn two_ported(p: usize, ports: Ports) -> Schedule {
    let mut b = Schedule::builder(p, ports, Collective::Broadcast { root: 0 });
    let (all, halves) = (Span::new(0, 5), [Span::new(0, 2), Span::new(2, 3)]);
    for r in 0..p {
        b.layout(r, 5, (r == 0).then_some(all), [all]);
        // The second half travels in the opposite direction.
        for (port, half) in halves.into_iter().enumerate() {
            let place = |r: usize| if port == 0 { r } else { (p - r) % p };
            let (before, after) = ((place(r) + p - 1) % p, place(r) + 1);
            if place(r) > 0 {
                b.step(r, Step::recv(place(before), half).on_port(port));
            }
            if after < p {
                b.step(r, Step::send(place(after), half).on_port(port));
            }
        }
    }
    b.build().unwrap()
}

/// A broadcast through a chain of ranks that receive into two spans of scratch in the wrong order,
/// and copy.
fn split_copy(p: usize) -> Schedule {
    let mut b = Schedule::builder(p, Ports::UNI, Collective::Broadcast { root: 0 });
    let vector = Span::new(0, 5);
    for r in 0..p {
        b.layout(r, 10, (r == 0).then_some(vector), [vector]);
        let crossed = [Span::new(7, 3), Span::new(5, 2)];
        if r > 0 {
            b.step(r, Step::recv(r - 1, oneport::Spans::from_iter(crossed)));
            b.step(r, Step::copy(oneport::Spans::from_iter(crossed), vector));
        }
        if r + 1 < p {
            b.step(r, Step::send(r + 1, vector));
        }
    }
    b.build().unwrap()
}
