//! Edge colouring of multigraphs: transfers of one colour share no port, so that they make a round.
//!
//! - Source: König, "Über Graphen und ihre Anwendung auf Determinantentheorie und Mengenlehre"
//!   (1916), for bipartite graphs; Vizing, "On an estimate of the chromatic class of a p-graph"
//!   (1964), for all others, in the form of Misra and Gries (1992).
//! - Symbols: `n` vertices, `e` edges, largest degree `d`, at most `u` parallel edges between two
//!   vertices.
//! - Colours: `d` if the graph is bipartite; at most `d + u` if not, and most often `d`. No
//!   colouring has fewer than `d`, or than `e / floor(n/2)` rounded up.
//! - Time: `O(e n)` where bipartite, `O(e d^2 n)` at most.

/// Returns the colour of every edge, numbered from 0 so that each is used. No two edges of one
/// colour meet. Edges are pairs of different vertices below `vertices`.
pub(crate) fn edge_colouring(vertices: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let mut colouring = Colouring {
        edges,
        colour: vec![NONE; edges.len()],
        at: vec![vec![NONE; min_colours(vertices, edges)]; vertices],
    };
    for edge in 0..edges.len() {
        // Vizing: with `u` colours more than the largest degree this succeeds.
        while !colouring.insert(edge) {
            colouring.at.iter_mut().for_each(|at| at.push(NONE));
        }
    }
    colouring.colour
}

/// The fewest colours that a colouring may have: the largest degree, or as many as matchings of all
/// vertices that have edges need.
pub(crate) fn min_colours(vertices: usize, edges: &[(usize, usize)]) -> usize {
    let mut degree = vec![0; vertices];
    for &(a, b) in edges {
        degree[a] += 1;
        degree[b] += 1;
    }
    let covered = degree.iter().filter(|&&d| d > 0).count();
    let largest = degree.into_iter().max().unwrap_or(0);
    largest.max(edges.len().div_ceil((covered / 2).max(1)))
}

const NONE: usize = usize::MAX;

struct Colouring<'e> {
    edges: &'e [(usize, usize)],
    colour: Vec<usize>,
    /// By vertex and colour: its edge of this colour.
    at: Vec<Vec<usize>>,
}

/// An edge of a fan around a vertex `u`.
struct Blade {
    edge: usize,
    end: usize,
    /// The blade at whose end the colour of the edge is missing; the first one has no colour.
    before: usize,
}

impl Colouring<'_> {
    /// Colours `edge`, and other edges anew if need be. Returns false, and changes nothing, if the
    /// colours do not suffice for what it tries.
    ///
    /// Around one end `u`, a fan of edges is built up: first the new edge, then edges whose colour
    /// is missing at the end of an earlier one. If a colour is missing at `u` and at the end of a
    /// blade, all blades from the first one to this one pass their colours on. If not, the path of
    /// two colours that starts at this end is recoloured, so that one is, unless the path leads to
    /// `u`. The first blade that misses a colour comes before the one that has it; if the path from
    /// it leads to `u`, that from another blade does not, and does not meet the first. So the
    /// colours of the blades before stay as they are.
    fn insert(&mut self, edge: usize) -> bool {
        let (a, b) = self.edges[edge];
        [(a, b), (b, a)]
            .into_iter()
            .any(|(u, v)| self.insert_at(edge, u, v))
    }

    fn insert_at(&mut self, edge: usize, u: usize, v: usize) -> bool {
        let mut fan = vec![Blade {
            edge,
            end: v,
            before: NONE,
        }];
        let mut in_fan = vec![false; self.at[u].len()];
        let mut next = 0;
        while next < fan.len() {
            for missing in self.missing(fan[next].end) {
                if self.at[u][missing] == NONE {
                    self.rotate(u, &fan, next, missing);
                    return true;
                }
                if !in_fan[missing] {
                    in_fan[missing] = true;
                    let edge = self.at[u][missing];
                    fan.push(Blade {
                        edge,
                        end: self.other_end(edge, u),
                        before: next,
                    });
                }
            }
            next += 1;
        }
        let free = self.missing(u);
        for (i, blade) in fan.iter().enumerate() {
            for missing in self.missing(blade.end) {
                for &free in &free {
                    if let Some(path) = self.path_past(u, blade.end, [free, missing]) {
                        self.swap(&path, [free, missing]);
                        self.rotate(u, &fan, i, free);
                        return true;
                    }
                }
            }
        }
        false
    }

    fn missing(&self, v: usize) -> Vec<usize> {
        let colours = self.at[v].iter().enumerate();
        let free = colours.filter(|(_, edge)| **edge == NONE);
        free.map(|(colour, _)| colour).collect()
    }

    fn other_end(&self, edge: usize, v: usize) -> usize {
        let (a, b) = self.edges[edge];
        if a == v { b } else { a }
    }

    /// The path of edges in two colours that starts at `from`, which misses the second one, unless
    /// it ends at `u`.
    fn path_past(&self, u: usize, from: usize, [first, second]: [usize; 2]) -> Option<Vec<usize>> {
        let (mut path, mut at, mut colours) = (Vec::new(), from, [first, second]);
        while self.at[at][colours[0]] != NONE {
            let edge = self.at[at][colours[0]];
            path.push(edge);
            at = self.other_end(edge, at);
            colours.swap(0, 1);
        }
        (at != u).then_some(path)
    }

    fn swap(&mut self, path: &[usize], [first, second]: [usize; 2]) {
        for &edge in path {
            self.clear(edge);
        }
        for &edge in path {
            let old = self.colour[edge];
            self.set(edge, if old == first { second } else { first });
        }
    }

    /// Gives blade `i` this colour, which is missing at both of its ends, the blade before it the
    /// colour that it had, and so on up to the first.
    fn rotate(&mut self, u: usize, fan: &[Blade], mut i: usize, mut colour: usize) {
        loop {
            let Blade { edge, end, before } = fan[i];
            let old = self.colour[edge];
            if old != NONE {
                self.at[end][old] = NONE;
                self.at[u][old] = NONE;
            }
            self.set(edge, colour);
            if before == NONE {
                return;
            }
            (i, colour) = (before, old);
        }
    }

    fn clear(&mut self, edge: usize) {
        let ((a, b), colour) = (self.edges[edge], self.colour[edge]);
        self.at[a][colour] = NONE;
        self.at[b][colour] = NONE;
    }

    fn set(&mut self, edge: usize, colour: usize) {
        let (a, b) = self.edges[edge];
        self.at[a][colour] = edge;
        self.at[b][colour] = edge;
        self.colour[edge] = colour;
    }
}
