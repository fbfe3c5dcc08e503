//! Alltoalls of different blocks in few rounds: colourings of the graph of their messages, and
//! sequences of matchings.

use oneport::plan::Request;
use oneport::random::Generator;
use oneport::{CostModel, Ports};

use super::{closed_form, executed, pair_sizes};

/// The most messages through one port.
fn largest_degree(ports: Ports, p: usize, sizes: &[usize]) -> usize {
    let sent = |a: usize, b: usize| usize::from(a != b && sizes[a * p + b] > 0);
    let count = |rank: usize| {
        let out: usize = (0..p).map(|other| sent(rank, other)).sum();
        let into: usize = (0..p).map(|other| sent(other, rank)).sum();
        if ports.can_relay() {
            out.max(into)
        } else {
            out + into
        }
    };
    (0..p).map(count).max().unwrap()
}

#[test]
fn rounds_of_a_colouring_are_as_few_as_the_messages_of_a_port() {
    for p in 1..=20 {
        for sizes in pair_sizes(p) {
            for ports in [Ports::BI, Ports::UNI] {
                let request = Request::alltoall(p, 4).blocks(sizes.clone()).ports(ports);
                let rounds = executed(&request.cost(CostModel::new(1.0, 0.0)), "edge-colouring");
                let degree = largest_degree(ports, p, &sizes) as f64;
                if ports.can_relay() {
                    assert_eq!(rounds, degree, "{sizes:?}")
                } else {
                    assert!(rounds <= degree + 2.0, "{sizes:?}")
                }
            }
        }
    }
}

/// Blocks of one size, or none: the model time is that of the rounds.
#[test]
fn the_time_of_equal_messages_is_that_of_the_rounds() {
    let mut exact = 0;
    for p in 2..=20 {
        for density in 2..6 {
            let full = |i: usize| (i * i * density + 3 * i) % 7 < density;
            let sizes: Vec<usize> = (0..p * p).map(|i| 5 * usize::from(full(i))).collect();
            for ports in [Ports::BI, Ports::UNI] {
                let request = Request::alltoall(p, 5)
                    .ports(ports)
                    .cost(CostModel::new(10.0, 2.0));
                let request = request.blocks(sizes.clone());
                let time = executed(&request, "edge-colouring");
                let closed = closed_form(&request, "edge-colouring");
                exact += usize::from(closed.is_some());
                assert!(closed.is_some() || !ports.can_relay());
                assert_eq!(closed.unwrap_or(time), time, "{p} {ports:?} {sizes:?}");
                let degree = largest_degree(ports, p, &sizes) as f64;
                assert!(time >= 20.0 * degree && time <= 20.0 * (degree + 2.0));
            }
        }
    }
    assert!(exact > 140, "{exact} of 152");
}

/// Which pairs of ranks exchange a message, at a random density.
fn graph(random: &mut Generator, p: usize) -> Vec<[usize; 2]> {
    let density = random.below(5);
    let pairs = (0..p).flat_map(|a| (0..p).map(move |b| [a, b]));
    let pairs: Vec<_> = pairs.filter(|[a, b]| a != b).collect();
    pairs
        .into_iter()
        .filter(|_| random.below(5) <= density)
        .collect()
}

/// The number of rounds of the alltoall of these messages, which take one unit of time each: that
/// of the colours of its graph, because its schedule is proved correct.
fn rounds(ports: Ports, p: usize, edges: &[[usize; 2]]) -> usize {
    let mut sizes = vec![0; p * p];
    for [from, to] in edges {
        sizes[from * p + to] = 1;
    }
    let request = Request::alltoall(p, 1).ports(ports).blocks(sizes);
    let request = request.cost(CostModel::new(1.0, 0.0));
    let schedule = request.plan("edge-colouring").unwrap();
    assert!(schedule.check().is_correct(), "{edges:?}");
    executed(&request, "edge-colouring") as usize
}

/// The messages of each rank: those that it sends, and those that it receives.
fn degrees(p: usize, edges: &[[usize; 2]]) -> Vec<[usize; 2]> {
    let count = |r: usize, end: usize| edges.iter().filter(|edge| edge[end] == r).count();
    (0..p).map(|r| [count(r, 0), count(r, 1)]).collect()
}

/// Whether `count` rounds suffice on unidirectional ports, of which `used` are used, by trying all.
fn suffices(edges: &[[usize; 2]], taken: &mut [u32], used: usize, count: usize) -> bool {
    let Some((&[a, b], rest)) = edges.split_first() else {
        return true;
    };
    (0..count.min(used + 1)).any(|c| {
        let bit = 1 << c;
        if (taken[a] | taken[b]) & bit != 0 {
            return false;
        }
        taken[a] |= bit;
        taken[b] |= bit;
        let found = suffices(rest, taken, used.max(c + 1), count);
        taken[a] &= !bit;
        taken[b] &= !bit;
        found
    })
}

/// The fewest rounds of unidirectional ports: the messages of a rank, or as many as matchings of
/// all ranks that have messages need.
fn min_rounds(p: usize, edges: &[[usize; 2]]) -> usize {
    let degrees = degrees(p, edges).into_iter().map(|[out, into]| out + into);
    let covered = degrees.clone().filter(|&d| d > 0).count();
    let largest = degrees.max().unwrap_or(0);
    largest.max(edges.len().div_ceil((covered / 2).max(1)))
}

#[test]
fn bidirectional_ranks_take_as_many_rounds_as_a_port_has_messages() {
    let mut random = Generator::new(1);
    for _ in 0..400 {
        let p = 2 + random.below(12);
        let edges = graph(&mut random, p);
        let largest = degrees(p, &edges).into_iter().flatten().max();
        assert_eq!(Some(rounds(Ports::BI, p, &edges)), largest, "{edges:?}");
    }
}

#[test]
fn unidirectional_ranks_take_at_most_two_rounds_more() {
    let mut random = Generator::new(2);
    let mut more = [0; 3];
    for _ in 0..600 {
        let p = 2 + random.below(15);
        let edges = graph(&mut random, p);
        let (count, min) = (rounds(Ports::UNI, p, &edges), min_rounds(p, &edges));
        assert!(count >= min && count <= min + 2, "{count} {min} {edges:?}");
        more[count - min] += 1;
    }
    // Nearly all take the fewest possible.
    assert!(more[0] > 500 && more[2] == 0, "{more:?}");
}

#[test]
fn few_unidirectional_ranks_take_at_most_one_round_more_than_needed() {
    let mut random = Generator::new(3);
    let (mut optimal, mut all) = (0, 0);
    for _ in 0..200 {
        let p = 3 + random.below(3);
        let edges = graph(&mut random, p);
        let count = rounds(Ports::UNI, p, &edges);
        let bound = min_rounds(p, &edges);
        let fewest = (bound..).find(|&n| suffices(&edges, &mut vec![0; p], 0, n));
        let fewest = fewest.unwrap();
        assert!(count <= fewest + 1, "{count} {fewest} {edges:?}");
        optimal += usize::from(count == fewest);
        all += 1;
    }
    assert!(optimal * 10 > all * 9, "{optimal} of {all}");
}

/// Without start-up times no port of the busiest rank waits; with them each matching adds one.
#[test]
fn the_busiest_port_never_waits() {
    for p in 1..=16 {
        for sizes in pair_sizes(p) {
            let other = |a: usize, b: usize| if a == b { 0 } else { sizes[a * p + b] };
            let sent = |r: usize| (0..p).map(|to| other(r, to)).sum::<usize>();
            let received = |r: usize| (0..p).map(|from| other(from, r)).sum::<usize>();
            let most = (0..p).map(|r| sent(r).max(received(r))).max().unwrap();
            let filled = (0..p * p).filter(|&i| other(i / p, i % p) > 0).count();
            for (alpha, beta) in [(0.0, 2.0), (10.0, 2.0)] {
                let request = Request::alltoall(p, 4)
                    .blocks(sizes.clone())
                    .cost(CostModel::new(alpha, beta));
                let time = executed(&request, "birkhoff");
                assert_eq!(closed_form(&request, "birkhoff"), Some(time), "{sizes:?}");
                let others = (0..p * p).filter(|i| i / p != i % p).map(|i| sizes[i]);
                let is_equal = others.clone().min() == others.max();
                if !is_equal {
                    // Each matching adds a start-up time.
                    let waited = time - beta * most as f64;
                    let rounds = waited / f64::max(alpha, 1.0);
                    assert_eq!(rounds.fract(), 0.0, "{sizes:?}");
                    assert!(rounds <= (filled + 2 * p) as f64, "{rounds} {sizes:?}");
                    assert_eq!(alpha > 0.0, rounds > 0.0, "{rounds} {sizes:?}");
                }
            }
        }
    }
}
