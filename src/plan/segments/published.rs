//! The formulas of the published tables as printed, for display beside executed times.
//!
//! - Source: Lowery & Langou, tables I to III. Tables I and II are unidirectional, table III
//!   bidirectional, both for `p > 3`. The unidirectional times of the tables are upper bounds of
//!   the executed ones.
//! - Other sources: Träff, "(Poly)logarithmic time construction of round-optimal n-block broadcast
//!   schedules", 2022, for the circulant graphs, whose best segment is that of the theorem's proof.
//!   Two algorithms have closed forms of the executed time for some `p` only. For these the
//!   formulas are the approximate time of the two-tree algorithm (Sanders, Speck, Träff 2009) and
//!   an upper bound of the time of the dual-root one (Träff 2021).
//! - Symbols: `p` ranks, `m` elements in `q` segments of `s`, `L = ceil(log2 p)`,
//!   `N = ceil(log2(p + 1))`; `alpha` per message, `beta` and `gamma` per element.

use crate::plan::Request;

pub(in crate::plan) const TABLE_I: &str = "Table I; Lowery & Langou 2014";
pub(in crate::plan) const TABLE_III: &str = "Table III; Lowery & Langou 2014";

/// The published figures for one algorithm and one request: times in the unit of the request's
/// costs, sizes in elements.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Published {
    /// The table, or how exact the figure is, and its source.
    pub table: &'static str,
    /// The time for the request's segments, all of them taken to be as large as the largest.
    pub time: f64,
    /// The best segment size: any positive number, not clamped to the vector. `None` where the
    /// table has none or its formula is undefined.
    pub best_segment: Option<f64>,
    /// The time at the best segment size.
    pub best_time: Option<f64>,
    /// The best segment size clamped to `1..=m`, and the time that the formula gives there with
    /// `m / s` segments.
    pub clamped: (f64, f64),
    /// A known error of the printed formula.
    pub erratum: Option<&'static str>,
    /// Table II: lower bounds of the terms of the algorithm's time, one alone: those of alpha, of
    /// beta and of gamma. They are those of Table I with one segment and with segments of one
    /// element; executed times may be less, as those of Table I are upper bounds.
    pub terms: Option<[f64; 3]>,
    /// The part of the time for which the given root waits for others, at most.
    pub penalty: Option<f64>,
}

/// The symbols of the tables as numbers.
#[derive(Debug, Clone, Copy)]
pub(in crate::plan) struct SymbolValues<'r> {
    pub(in crate::plan) request: &'r Request,
    pub(in crate::plan) ranks: usize,
    pub(in crate::plan) relays: bool,
    pub(in crate::plan) p: f64,
    pub(in crate::plan) m: f64,
    /// Elements of all blocks together, where there are blocks.
    pub(in crate::plan) all_blocks: f64,
    pub(in crate::plan) q: f64,
    pub(in crate::plan) s: f64,
    pub(in crate::plan) l: f64,
    pub(in crate::plan) n: f64,
    pub(in crate::plan) alpha: f64,
    pub(in crate::plan) beta: f64,
    pub(in crate::plan) gamma: f64,
}

impl SymbolValues<'_> {
    /// Those of a request, if its costs are linear and the same for all ranks.
    pub(in crate::plan) fn of(request: &Request) -> Option<SymbolValues<'_>> {
        let cost = request.cost.linear()?;
        let (p, bytes) = (request.ranks, request.element_bytes as f64);
        let largest = request.segments.sizes().iter().max().copied().unwrap_or(0);
        Some(SymbolValues {
            request,
            ranks: p,
            relays: request.ports.can_relay(),
            p: p as f64,
            m: request.elements() as f64,
            all_blocks: match &request.blocks {
                Some(blocks) => blocks.iter().sum::<usize>() as f64,
                None if request.kind.is_sized_by_block() => p as f64 * request.elements() as f64,
                None => request.elements() as f64,
            },
            q: request.segments.count() as f64,
            s: largest as f64,
            l: f64::from(ceil_log2(p)),
            n: f64::from(ceil_log2(p.saturating_add(1))),
            alpha: cost.alpha,
            beta: cost.beta * bytes,
            gamma: cost.gamma * bytes,
        })
    }

    /// Where `(f + starts m / s) alpha + slope s + ..` is least, in `1..=m`.
    pub(in crate::plan) fn optimum(&self, starts: f64, slope: f64) -> f64 {
        let best = if slope > 0.0 {
            (starts * self.m * self.alpha / slope).sqrt()
        } else {
            self.m
        };
        best.clamp(1.0, self.m)
    }

    /// `(fixed + per_segment m / s)` rounds of one segment.
    pub(in crate::plan) fn time(&self, fixed: f64, per_segment: f64, s: f64) -> f64 {
        (fixed + per_segment * (self.m / s).ceil()) * self.round(s)
    }

    fn round(&self, s: f64) -> f64 {
        self.alpha + self.beta * s + self.gamma * s
    }

    /// An algorithm that does not split the vector.
    pub(in crate::plan) fn whole(&self, table: &'static str, rounds: f64) -> Published {
        let time = rounds * self.round(self.m);
        Published {
            table,
            time,
            best_segment: None,
            best_time: None,
            clamped: (self.m, time),
            erratum: None,
            terms: None,
            penalty: None,
        }
    }

    /// The terms of `latency` messages that follow each other, and of `elements` elements sent and
    /// combined one after another: on unidirectional ports, which Table II is for.
    pub(in crate::plan) fn terms(&self, latency: f64, elements: f64) -> Option<[f64; 3]> {
        let terms = [
            latency * self.alpha,
            elements * self.beta,
            elements * self.gamma,
        ];
        (!self.relays).then_some(terms)
    }

    /// An algorithm of `fixed + per_segment q` rounds. The best of `(f + c m / s)(alpha + b s)` is
    /// at `s = sqrt(c m alpha / (f b))`: `(sqrt(f alpha) + sqrt(c m b))^2`.
    pub(in crate::plan) fn rounds(
        &self,
        table: &'static str,
        fixed: f64,
        per_segment: f64,
    ) -> Published {
        let unit = self.beta + self.gamma;
        let best = (per_segment * self.m * self.alpha / (fixed * unit)).sqrt();
        let defined = fixed > 0.0 && best.is_finite();
        let s = if defined {
            best.clamp(1.0, self.m)
        } else {
            self.m
        };
        let root = (fixed * self.alpha).sqrt() + (per_segment * self.m * unit).sqrt();
        Published {
            time: self.time(fixed, per_segment, self.s),
            best_segment: defined.then_some(best),
            best_time: defined.then_some(root * root),
            clamped: (s, (fixed + per_segment * self.m / s) * self.round(s)),
            ..self.whole(table, 0.0)
        }
    }
}

pub(in crate::plan) fn ceil_log2(n: usize) -> u32 {
    usize::BITS - n.saturating_sub(1).leading_zeros()
}
