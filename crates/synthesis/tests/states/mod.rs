//! The fewest rounds by a breadth-first search over all states of knowledge: an oracle that shares
//! nothing with the encoding.

use std::collections::HashSet;

use oneport::{Collective, Ports};

/// By rank: the facts that it knows, a bit each.
type State = Vec<u32>;

/// The fewest rounds of a collective that is not reversed, in whole messages or in items of which
/// each vector or block is one. `None` where the search does not apply.
pub(crate) fn fewest(
    collective: &Collective,
    p: usize,
    ports: Ports,
    by_items: bool,
) -> Option<usize> {
    use Collective::{Allgather, Alltoall, Barrier, Broadcast, Exscan, Gather, Multicast};
    use Collective::{Reduce, ReduceScatter, Scan, Scatter};
    let all = (1u32 << p) - 1;
    let own = |rank: usize| 1u32 << rank;
    let reduces =
        !matches!(collective, Reduce { .. } | ReduceScatter) && collective.kind().reduces();
    if by_items && (reduces || matches!(collective, Alltoall)) {
        return None;
    }
    let (start, need): (State, State) = match collective {
        Broadcast { root } | Reduce { root } => {
            ((0..p).map(|r| u32::from(r == *root)).collect(), vec![1; p])
        }
        Multicast { root, targets } => (
            (0..p).map(|r| u32::from(r == *root)).collect(),
            (0..p).map(|r| u32::from(targets.contains(&r))).collect(),
        ),
        Gather { root } => (
            (0..p).map(own).collect(),
            (0..p).map(|r| if r == *root { all } else { 0 }).collect(),
        ),
        Scatter { root } => (
            (0..p).map(|r| if r == *root { all } else { 0 }).collect(),
            (0..p).map(own).collect(),
        ),
        Scan => (
            (0..p).map(own).collect(),
            (0..p).map(|r| own(r + 1) - 1).collect(),
        ),
        Exscan => (
            (0..p).map(own).collect(),
            (0..p).map(|r| own(r) - 1).collect(),
        ),
        Allgather | Barrier | ReduceScatter | Collective::Allreduce | Alltoall => {
            ((0..p).map(own).collect(), vec![all; p])
        }
        _ => return None,
    };
    let mut seen = HashSet::from([start.clone()]);
    let mut states = vec![start];
    for rounds in 0.. {
        let is_done = |state: &State| {
            state
                .iter()
                .zip(&need)
                .all(|(has, need)| has & need == *need)
        };
        if states.iter().any(is_done) {
            return Some(rounds);
        }
        let mut next = Vec::new();
        for state in &states {
            let mut ends = Vec::new();
            round(
                state,
                0,
                &mut vec![[0; 2]; p],
                state.clone(),
                ports,
                by_items,
                &mut ends,
            );
            next.extend(ends.into_iter().filter(|end| seen.insert(end.clone())));
        }
        states = next;
    }
    None
}

/// All states after a round, of which the pairs of ranks from number `pair` on are undecided.
fn round(
    before: &State,
    pair: usize,
    used: &mut Vec<[usize; 2]>,
    after: State,
    ports: Ports,
    by_items: bool,
    ends: &mut Vec<State>,
) {
    let p = before.len();
    if pair == p * p {
        return ends.push(after);
    }
    round(before, pair + 1, used, after.clone(), ports, by_items, ends);
    let (from, to) = (pair / p, pair % p);
    let is_bi = ports.can_relay();
    let is_free = |used: &[usize; 2], direction: usize| {
        if is_bi {
            used[direction] < ports.k()
        } else {
            used[0] + used[1] < ports.k()
        }
    };
    let news = before[from] & !after[to];
    if from == to || news == 0 || !is_free(&used[from], 0) || !is_free(&used[to], 1) {
        return;
    }
    used[from][0] += 1;
    used[to][1] += 1;
    let bits = (0..32).map(|bit| 1u32 << bit).filter(|bit| news & bit != 0);
    let messages: Vec<u32> = if by_items { bits.collect() } else { vec![news] };
    for message in messages {
        let mut after = after.clone();
        after[to] |= message;
        // Several items may go the same way.
        let next = if by_items { pair } else { pair + 1 };
        round(before, next, used, after, ports, by_items, ends);
    }
    used[from][0] -= 1;
    used[to][1] -= 1;
}
