//! Irregular gather and scatter: ranks that know only their own block build the adaptive tree
//! together, then use it.
//!
//! - Source: Träff, "Practical, Linear-time, Fully Distributed Algorithms for Irregular Gather and
//!   Scatter", Lemma 3 and Theorem 1.
//! - Tree: that of `adaptive` to the same root, if copies are free.
//! - Ports: bidirectional, one-ported.
//! - Symbols: `p` ranks, root `r`, block of `m_i` elements at rank `i`.
//! - Control messages: 3 elements each. At most `2 ceil(log2 p) - 1` of them depend on each other,
//!   since in iteration 0, where fixed root and gather root are the same rank, no gather root has
//!   to be told anything.
//! - Time with the gather, for `gamma_copy = 0`: `3 ceil(log2 p) alpha + beta sum_{i != r} m_i`,
//!   plus `(2 ceil(log2 p) - 1) beta` times the bytes of a control message, plus the time for which
//!   a given root waits for slower subcubes.
//!
//! The ranks `[a 2^d, (a + 1) 2^d)` are a subcube; the last one may be cut off. Its *fixed root* is
//! its last rank, which every rank can compute. Its *gather root* is the rank at which its data
//! will be gathered; only the fixed root and the gather root know it.
//!
//! In iteration `d` the fixed roots of two adjacent subcubes exchange what they know about their
//! subcubes: gather root, its block, all other data. Each of them passes that on to its gather
//! root, if that is another rank. Now four ranks can compute which gather root receives, how much,
//! and which one sends. The higher fixed root becomes that of the joined subcube.

use crate::error::{Error, Result};
use crate::plan::gather::binomial::Subcube;
use crate::run::{Bidirectional, Element, Endpoint, PortModel};
use crate::schedule::{Layout, Span};

/// The part of one rank in an irregular gather or scatter, which it finds together with the others:
/// each knows only its own block.
///
/// # Source
/// Träff, "Practical, Linear-time, Fully Distributed Algorithms for Irregular Gather and Scatter",
/// Lemma 3 and Theorem 1.
///
/// # Complexity
/// At most `2 ceil(log2 p) - 1` control messages of three numbers that depend on each other. The
/// gather, and the scatter, then takes at most `ceil(log2 p) alpha + beta sum_{i != r} m_i` for a
/// root `r`, and for a given root the time for which it waits for slower ranks.
///
/// # Example
/// ```
/// use oneport::collectives::GatherPart;
/// use oneport::run::{Endpoint, ScopeOptions, Team};
/// let sizes = [1, 0, 2, 3, 4];
/// let mut team = Team::new(5)?;
/// // Each rank knows its own size only.
/// let mut control = vec![vec![0; GatherPart::CONTROL]; 5];
/// let parts = team.scope(&mut control, &ScopeOptions::default(), |e: &mut Endpoint<u64>| {
///     GatherPart::find(e, Some(2), sizes[e.rank()])
/// })?;
/// // Each makes its buffer, with its own block in front.
/// let buffer = |(rank, part): (usize, &GatherPart)| {
///     let mut buffer = vec![rank as f32; part.block];
///     buffer.resize(part.layout().len, 0.0);
///     buffer
/// };
/// let mut buffers: Vec<_> = parts.results.iter().enumerate().map(buffer).collect();
/// team.scope(&mut buffers, &ScopeOptions::default(), |e: &mut Endpoint<f32>| {
///     parts.results[e.rank()].gather(e)
/// })?;
/// let gathered = parts.results[2].layout().output[0];
/// let all = &buffers[2][gathered.offset..gathered.end()];
/// assert_eq!(all, [0.0, 2.0, 2.0, 3.0, 3.0, 3.0, 4.0, 4.0, 4.0, 4.0]);
/// # Ok::<(), oneport::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GatherPart {
    /// Number of elements of the rank's own block.
    pub block: usize,
    /// The ranks that it receives from, in this order, and where in its buffer their blocks go. An
    /// empty message is not sent.
    pub children: Vec<(usize, Span)>,
    /// The rank to which it then sends all that it has gathered; `None` for the root.
    pub parent: Option<usize>,
    /// Where its own block goes among the gathered ones.
    place: Span,
}

/// A message that a rank receives.
#[derive(Debug, Clone, Copy)]
struct Received {
    from: usize,
    elements: usize,
    /// Whether its blocks precede those that the receiver has gathered so far.
    before: bool,
}

const MINE: Span = Span::new(0, 3);
const THEIRS: Span = Span::new(3, 3);

impl GatherPart {
    /// Number of elements that [`GatherPart::find`] needs in every rank's buffer.
    pub const CONTROL: usize = 6;

    /// Finds this rank's part in gathering the blocks of all ranks, of which its own has `block`
    /// elements.
    ///
    /// The root is `root`; with `None` it is that of Lemma 1, which waits for no subcube. All ranks
    /// call it with the same root. The first [`GatherPart::CONTROL`] elements of the buffer are
    /// overwritten.
    ///
    /// # Errors
    /// When the root is not one of the ranks, the buffer is too short, a size does not fit, or as
    /// described at [`Endpoint`].
    pub fn find(
        endpoint: &mut Endpoint<'_, u64, Bidirectional>,
        root: Option<usize>,
        block: usize,
    ) -> Result<GatherPart> {
        let (p, me) = (endpoint.ranks(), endpoint.rank());
        if let Some(root) = root.filter(|&root| root >= p) {
            return Err(Error::usage(format!(
                "root {root} is not one of {p} ranks (numbered from 0)"
            )));
        }
        if endpoint.data().len() < Self::CONTROL {
            return Err(Error::usage(format!(
                "the buffer has fewer than the {} elements that control messages take",
                Self::CONTROL
            )));
        }
        let own = Subcube {
            root: me,
            block: block as u64,
            others: 0,
        };
        let (mut received, mut parent) = (Vec::new(), None);
        // What this rank knows as a fixed root, and as a gather root.
        let (mut fixed, mut gather) = (Some(own), Some(own));
        let mut width = 1;
        while width < p {
            let cube = me / width;
            let sibling = cube ^ 1;
            let last = |cube: usize| ((cube + 1) * width).min(p) - 1;
            if sibling * width < p {
                let low = cube < sibling;
                let mut theirs = None;
                if let Some(mine) = fixed {
                    let other = exchanged(endpoint, mine, last(sibling))?;
                    if mine.root != me {
                        endpoint.send(mine.root, THEIRS)?;
                    }
                    theirs = Some(other);
                    // The higher fixed root stays one.
                    fixed = (!low).then(|| {
                        let receives = receives(root, low, mine, other);
                        if receives {
                            mine.with(other)
                        } else {
                            other.with(mine)
                        }
                    });
                }
                if let Some(mine) = gather {
                    let other = match theirs {
                        Some(other) => other,
                        None => {
                            endpoint.recv(last(cube), THEIRS)?;
                            read(endpoint)?
                        }
                    };
                    if receives(root, low, mine, other) {
                        received.push(Received {
                            from: other.root,
                            elements: elements(other.data())?,
                            before: !low,
                        });
                        gather = Some(mine.with(other));
                    } else {
                        parent = Some(other.root);
                        gather = None;
                    }
                }
            }
            width *= 2;
        }
        Ok(GatherPart::new(block, &received, parent))
    }

    /// The part of a rank that receives these messages.
    fn new(block: usize, received: &[Received], parent: Option<usize>) -> GatherPart {
        // A rank that receives nothing leaves its block where it is; otherwise all that is gathered
        // lies behind it.
        let start = if received.is_empty() { 0 } else { block };
        let before = received.iter().filter(|r| r.before);
        let mut low = start + before.map(|r| r.elements).sum::<usize>();
        let mut high = low + block;
        let place = Span::new(low, block);
        let child = |r: &Received| {
            let offset = if r.before {
                low -= r.elements;
                low
            } else {
                high += r.elements;
                high - r.elements
            };
            (r.from, Span::new(offset, r.elements))
        };
        GatherPart {
            block,
            children: received.iter().map(child).collect(),
            parent,
            place,
        }
    }

    /// The buffer for [`GatherPart::gather`] and [`GatherPart::scatter`]: the rank's own block
    /// first, then, if the rank receives, room for all that it gathers. Input and output spans are
    /// those of a gather; a scatter swaps them.
    pub fn layout(&self) -> Layout {
        let all = self.all();
        let spans = |span: Span| (span.len > 0).then_some(span).into_iter().collect();
        Layout {
            len: all.end(),
            input: spans(self.own()),
            output: if self.parent.is_none() {
                spans(all)
            } else {
                spans(Span::new(0, 0))
            },
        }
    }

    /// Gathers. The buffer must have the form of [`GatherPart::layout`], with the rank's own block
    /// in place.
    ///
    /// # Errors
    /// As described at [`Endpoint`].
    pub fn gather<T: Element, P: PortModel>(
        &self,
        endpoint: &mut Endpoint<'_, T, P>,
    ) -> Result<()> {
        if !self.children.is_empty() && self.block > 0 {
            endpoint.copy(self.own(), self.place)?;
        }
        for &(from, span) in self.children.iter().filter(|c| c.1.len > 0) {
            endpoint.recv(from, span)?;
        }
        let all = self.all();
        match self.parent {
            Some(parent) if all.len > 0 => endpoint.send(parent, all),
            _ => Ok(()),
        }
    }

    /// Scatters: the gather in reverse. The root must hold all blocks where [`GatherPart::gather`]
    /// puts them; at the end every rank has its own block in place.
    ///
    /// # Errors
    /// As described at [`Endpoint`].
    pub fn scatter<T: Element, P: PortModel>(
        &self,
        endpoint: &mut Endpoint<'_, T, P>,
    ) -> Result<()> {
        let all = self.all();
        if let Some(parent) = self.parent.filter(|_| all.len > 0) {
            endpoint.recv(parent, all)?;
        }
        for &(to, span) in self.children.iter().rev().filter(|c| c.1.len > 0) {
            endpoint.send(to, span)?;
        }
        if !self.children.is_empty() && self.block > 0 {
            endpoint.copy(self.place, self.own())?;
        }
        Ok(())
    }

    fn own(&self) -> Span {
        Span::new(0, self.block)
    }

    /// The span of all gathered data.
    fn all(&self) -> Span {
        let spans = self.children.iter().map(|c| c.1).chain([self.place]);
        let start = spans.clone().map(|span| span.offset).min().unwrap_or(0);
        Span::new(start, spans.map(|span| span.len).sum())
    }
}

/// Exchanges what two fixed roots know about their subcubes; returns what the other one knows.
fn exchanged(
    endpoint: &mut Endpoint<'_, u64, Bidirectional>,
    mine: Subcube,
    peer: usize,
) -> Result<Subcube> {
    let words = [mine.root as u64, mine.block, mine.others];
    endpoint.data_mut()?[..3].copy_from_slice(&words);
    endpoint.exchange(peer, MINE, peer, THEIRS)?;
    read(endpoint)
}

fn read(endpoint: &mut Endpoint<'_, u64, Bidirectional>) -> Result<Subcube> {
    match endpoint.data()[3..6] {
        [root, block, others] => Ok(Subcube {
            root: elements(root)?,
            block,
            others,
        }),
        _ => Err(Error::usage("a control message has 3 elements")),
    }
}

/// Whether the gather root of `mine` receives from that of `other`.
fn receives(root: Option<usize>, low: bool, mine: Subcube, other: Subcube) -> bool {
    match root {
        Some(root) if mine.root == root => true,
        Some(root) if other.root == root => false,
        _ if low => mine.receives_from(other),
        _ => !other.receives_from(mine),
    }
}

fn elements(n: u64) -> Result<usize> {
    usize::try_from(n).map_err(|_| Error::usage(format!("{n} elements do not fit into memory")))
}
