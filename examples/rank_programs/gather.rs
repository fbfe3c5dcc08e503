//! Irregular gather and scatter without a plan: ranks that know only their own block build the
//! adaptive tree together, then use it.
//!
//! - Source: Träff, "Practical, Linear-time, Fully Distributed Algorithms for Irregular Gather and
//!   Scatter", Lemma 3 and Theorem 1.
//! - Tree: that of `oneport::internal::gather::binomial::adaptive` to the same root.
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

use oneport::internal::gather::binomial::Subcube;
use oneport::run::{Bidirectional, Element, Endpoint, PortModel};
use oneport::schedule::{Layout, Span};
use oneport::{Error, ErrorKind, Result};

/// The part of one rank in a gather or scatter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GatherPart {
    /// Number of elements of the rank's own block.
    pub(crate) block: usize,
    /// The messages that it receives, in this order.
    pub(crate) receives: Vec<Received>,
    /// The rank to which it then sends all that it has gathered; `None` for the root.
    pub(crate) parent: Option<usize>,
}

/// A message that a rank receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Received {
    /// The sender.
    pub(crate) from: usize,
    /// Number of elements. If it is 0, nothing is sent.
    pub(crate) elements: usize,
    /// Whether its blocks precede those that the receiver has gathered so far.
    pub(crate) before: bool,
}

/// Number of elements that [`GatherPart::find`] needs in every rank's buffer.
pub(crate) const CONTROL: usize = 6;

const MINE: Span = Span::new(0, 3);
const THEIRS: Span = Span::new(3, 3);

impl GatherPart {
    /// Finds this rank's part in gathering the blocks of all ranks, of which its own has `block`
    /// elements.
    ///
    /// The root is `root`; with `None` it is that of Lemma 1, which waits for no subcube. All ranks
    /// call it with the same root. The first [`CONTROL`] elements of the buffer are overwritten.
    ///
    /// # Errors
    /// When the root is not one of the ranks, the buffer is too short, a size does not fit, or as
    /// described at [`Endpoint`].
    pub(crate) fn find(
        endpoint: &mut Endpoint<'_, u64, Bidirectional>,
        root: Option<usize>,
        block: usize,
    ) -> Result<GatherPart> {
        let (p, me) = (endpoint.ranks(), endpoint.rank());
        if let Some(root) = root.filter(|&root| root >= p) {
            return Err(usage(format!(
                "root {root} is not one of {p} ranks (numbered from 0)"
            )));
        }
        if endpoint.data().len() < CONTROL {
            return Err(usage(format!(
                "the buffer has fewer than the {CONTROL} elements that control messages take"
            )));
        }
        let own = Subcube {
            root: me,
            block: block as u64,
            others: 0,
        };
        let mut part = GatherPart {
            block,
            receives: Vec::new(),
            parent: None,
        };
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
                        part.receives.push(Received {
                            from: other.root,
                            elements: elements(other.data())?,
                            before: !low,
                        });
                        gather = Some(mine.with(other));
                    } else {
                        part.parent = Some(other.root);
                        gather = None;
                    }
                }
            }
            width *= 2;
        }
        Ok(part)
    }

    /// Number of elements that this rank gathers, including its own block.
    pub(crate) fn gathered(&self) -> usize {
        self.block + self.receives.iter().map(|r| r.elements).sum::<usize>()
    }

    /// The buffer for [`GatherPart::gather`] and [`GatherPart::scatter`]: the rank's own block
    /// first, then, if the rank receives, room for all that it gathers. Input and output spans are
    /// those of a gather; a scatter swaps them.
    pub(crate) fn layout(&self) -> Layout {
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
    pub(crate) fn gather<T: Element, P: PortModel>(
        &self,
        endpoint: &mut Endpoint<'_, T, P>,
    ) -> Result<()> {
        let (place, spans) = self.places();
        if !self.receives.is_empty() && self.block > 0 {
            endpoint.copy(self.own(), place)?;
        }
        for (received, span) in self.receives.iter().zip(spans) {
            if span.len > 0 {
                endpoint.recv(received.from, span)?;
            }
        }
        match self.parent {
            Some(parent) if self.gathered() > 0 => endpoint.send(parent, self.all()),
            _ => Ok(()),
        }
    }

    /// Scatters: the gather in reverse. The root must hold all blocks where [`GatherPart::gather`]
    /// puts them; at the end every rank has its own block in place.
    ///
    /// # Errors
    /// As described at [`Endpoint`].
    pub(crate) fn scatter<T: Element, P: PortModel>(
        &self,
        endpoint: &mut Endpoint<'_, T, P>,
    ) -> Result<()> {
        let (place, spans) = self.places();
        if let Some(parent) = self.parent
            && self.gathered() > 0
        {
            endpoint.recv(parent, self.all())?;
        }
        for (received, span) in self.receives.iter().zip(spans).rev() {
            if span.len > 0 {
                endpoint.send(received.from, span)?;
            }
        }
        if !self.receives.is_empty() && self.block > 0 {
            endpoint.copy(place, self.own())?;
        }
        Ok(())
    }

    fn own(&self) -> Span {
        Span::new(0, self.block)
    }

    /// The span of all gathered data. A rank that receives nothing leaves its block where it is.
    fn all(&self) -> Span {
        let base = if self.receives.is_empty() {
            0
        } else {
            self.block
        };
        Span::new(base, self.gathered())
    }

    /// The span of the own block among the gathered data, and the span of each received message.
    fn places(&self) -> (Span, Vec<Span>) {
        let before = self.receives.iter().filter(|r| r.before);
        let mut low = self.all().offset + before.map(|r| r.elements).sum::<usize>();
        let mut high = low + self.block;
        let place = Span::new(low, self.block);
        let spans = self.receives.iter().map(|r| {
            if r.before {
                low -= r.elements;
                Span::new(low, r.elements)
            } else {
                high += r.elements;
                Span::new(high - r.elements, r.elements)
            }
        });
        (place, spans.collect())
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
        _ => Err(usage("a control message has 3 elements")),
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
    usize::try_from(n).map_err(|_| usage(format!("{n} elements do not fit into memory")))
}

/// An error of the caller's.
fn usage(message: impl Into<String>) -> Error {
    ErrorKind::Usage(message.into()).into()
}
