//! The second rounds of a gossip that differ by more than a renumbering of ranks.
//!
//! A maximal matching of directed edges can be taken as the first round of a unidirectional gossip,
//! and as every other one: more messages do no harm. What two such rounds do depends on how their
//! matchings lie together, cycles and at most one path of edges that alternate between them, and on
//! the directions. One second round of each kind is enough.

/// Messages of a round.
type Matching = Vec<(usize, usize)>;

/// More ranks have too many matchings.
pub(crate) const MAX_RANKS: usize = 10;

/// One second round of each kind, after messages from each even rank to the next one.
pub(crate) fn representatives(p: usize) -> Vec<Matching> {
    let mut found: std::collections::BTreeMap<Vec<String>, Matching> = Default::default();
    let ranks: Vec<usize> = (0..p).collect();
    matchings(&ranks, p % 2 == 1, &mut Vec::new(), &mut |matching| {
        // A message again tells nothing; the opposite one tells more.
        let again = |&(from, to): &(usize, usize)| from % 2 == 0 && to == from + 1;
        if !matching.iter().any(again) {
            let key = key(p, matching);
            found.entry(key).or_insert_with(|| matching.to_vec());
        }
    });
    found.into_values().collect()
}

fn matchings(
    rest: &[usize],
    may_idle: bool,
    matching: &mut Matching,
    each: &mut impl FnMut(&[(usize, usize)]),
) {
    let Some((&first, others)) = rest.split_first() else {
        return each(matching);
    };
    for (i, &other) in others.iter().enumerate() {
        let left = [&others[..i], &others[i + 1..]].concat();
        for message in [(first, other), (other, first)] {
            matching.push(message);
            matchings(&left, may_idle, matching, each);
            matching.pop();
        }
    }
    if may_idle {
        matchings(others, false, matching, each);
    }
}

/// What identifies a second round: the least way to walk along each component.
fn key(p: usize, matching: &[(usize, usize)]) -> Vec<String> {
    let mut edges = [vec![None; p], vec![None; p]];
    let first = (0..p / 2).map(|i| (2 * i, 2 * i + 1));
    for (round, from, to) in first
        .map(|(a, b)| (0, a, b))
        .chain(matching.iter().map(|&(a, b)| (1, a, b)))
    {
        edges[round][from] = Some((to, '>'));
        edges[round][to] = Some((from, '<'));
    }
    // From a rank, along an edge of this round first: the directions, and the ranks passed.
    let walk = |start: usize, round: usize| {
        let (mut text, mut passed, mut at, mut now) = (String::new(), vec![start], start, round);
        while let Some((next, direction)) = edges[now][at] {
            text.push(direction);
            (at, now) = (next, 1 - now);
            passed.push(at);
            if at == start && now == round {
                return (text, passed);
            }
        }
        (text + ".", passed)
    };
    let mut seen = vec![false; p];
    let mut components = Vec::new();
    for rank in 0..p {
        if seen[rank] {
            continue;
        }
        let members = [walk(rank, 0).1, walk(rank, 1).1].concat();
        members.iter().for_each(|&member| seen[member] = true);
        let lacks = |&(member, round): &(usize, usize)| edges[1 - round][member].is_none();
        let starts = members
            .iter()
            .flat_map(|&member| [(member, 0), (member, 1)]);
        let ends: Vec<_> = starts.filter(lacks).collect();
        let texts: Vec<String> = if ends.is_empty() {
            members.iter().map(|&member| walk(member, 0).0).collect()
        } else {
            ends.iter()
                .map(|&(end, round)| format!("{round}{}", walk(end, round).0))
                .collect()
        };
        components.extend(texts.into_iter().min());
    }
    components.sort();
    components
}
