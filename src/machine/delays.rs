//! What real machines add to the ideal one: ranks that arrive late, latency that keeps no port, and
//! senders that do not wait for their receivers.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{CostModel, Costs, refuses_cost};
use crate::error::{Error, Result};

/// Which messages are sent without waiting for the receiver. In files `"none"`, `"all"`, or the
/// number of bytes up to which messages are.
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(
    rename_all = "lowercase",
    expecting = "eager is \"none\", \"all\" or a number of bytes"
)]
#[non_exhaustive]
pub enum Eager {
    /// None: every transfer is a rendezvous.
    #[default]
    None,
    /// All.
    All,
    /// Messages of at most this many bytes.
    #[serde(untagged)]
    UpTo(u64),
}

impl Eager {
    /// Whether a message of `bytes` bytes does not wait for its receiver.
    #[inline]
    pub(crate) fn covers(self, bytes: u64) -> bool {
        match self {
            Eager::None => false,
            Eager::All => true,
            Eager::UpTo(limit) => bytes <= limit,
        }
    }
}

/// What a transfer takes: see [rule 4](crate::rules).
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TransferCost {
    /// How long it keeps the port of either end.
    pub port_time: f64,
    /// How much later it keeps the receiver's port than the sender's, at least.
    pub latency: f64,
    /// Whether the sender does not wait for the receiver.
    pub eager: bool,
}

impl TransferCost {
    /// What a rendezvous takes that keeps the ports for `port_time`, without latency.
    pub const fn rendezvous(port_time: f64) -> Self {
        TransferCost {
            port_time,
            latency: 0.0,
            eager: false,
        }
    }
}

/// The delays of a model that is not [ideal](CostModel::is_ideal), but for those of pairs of ranks.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Delays {
    /// By rank; none if all are there at time 0.
    arrivals: Vec<f64>,
    latency: f64,
    eager: Eager,
}

static IDEAL: Delays = Delays {
    arrivals: Vec::new(),
    latency: 0.0,
    eager: Eager::None,
};

/// Late ranks, latency and eager sends: see [the rules of time](crate::rules).
impl CostModel {
    /// The same model with ranks that arrive late: `arrivals[rank]` is the time from which the
    /// ports and the computation of the rank are available. None, or zeros alone, mean that all are
    /// at time 0.
    ///
    /// ```
    /// use oneport::{CostModel, Request};
    /// let schedule = Request::reduce(4, 10).plan("binomial")?;
    /// let cost = CostModel::new(1.0, 0.0).arrivals(vec![0.0, 0.0, 0.0, 5.0]);
    /// assert_eq!(schedule.simulate(&cost)?.makespan(), 7.0);
    /// # Ok::<(), oneport::Error>(())
    /// ```
    #[must_use]
    pub fn arrivals(self, arrivals: Vec<f64>) -> Self {
        let are_late = arrivals.iter().any(|&at| at != 0.0);
        self.with_delays(|delays| delays.arrivals = if are_late { arrivals } else { Vec::new() })
    }

    /// The same model with this time from the start of a message at its sender to its start at its
    /// receiver, for all pairs of ranks.
    #[must_use]
    pub fn latency(mut self, latency: f64) -> Self {
        if let Costs::Links(platform) = &mut self.costs {
            Arc::make_mut(platform).forget_latencies();
        }
        self.with_delays(|delays| delays.latency = latency)
    }

    /// The same model with these messages sent without waiting for their receivers.
    #[must_use]
    pub fn eager(self, eager: Eager) -> Self {
        self.with_delays(|delays| delays.eager = eager)
    }

    fn with_delays(mut self, change: impl FnOnce(&mut Delays)) -> Self {
        let mut delays = self.delays().clone();
        change(&mut delays);
        self.delays = (delays != IDEAL).then(|| Arc::new(delays));
        self
    }

    fn delays(&self) -> &Delays {
        self.delays.as_deref().unwrap_or(&IDEAL)
    }

    /// The same model in which every transfer is a rendezvous without latency.
    pub(crate) fn rendezvous(&self) -> Self {
        self.clone().latency(0.0).eager(Eager::None)
    }

    /// The same model without arrivals: for a part of a schedule that starts when another ends.
    pub(crate) fn without_arrivals(self) -> Self {
        self.arrivals(Vec::new())
    }

    /// Whether all ranks are there at time 0, latency is 0 and every transfer is a rendezvous.
    #[inline]
    pub fn is_ideal(&self) -> bool {
        self.delays.is_none()
            && self
                .platform()
                .is_none_or(|platform| !platform.has_latencies())
    }

    /// Which messages are sent without waiting for their receivers.
    pub fn sends_eagerly(&self) -> Eager {
        self.delays().eager
    }

    /// The time from which `rank` takes part.
    #[inline]
    pub fn arrival(&self, rank: usize) -> f64 {
        self.delays().arrivals.get(rank).copied().unwrap_or(0.0)
    }

    /// The time at which the last rank arrives.
    pub fn last_arrival(&self) -> f64 {
        self.delays().arrivals.iter().copied().fold(0.0, f64::max)
    }

    /// The latency from rank `from` to rank `to`.
    #[inline]
    pub fn latency_between(&self, from: usize, to: usize) -> f64 {
        match self.platform() {
            Some(platform) if platform.has_latencies() => platform.latency(from, to),
            _ => self.delays().latency,
        }
    }

    /// What a message of `bytes` bytes takes. An empty one has no latency either.
    #[doc(hidden)]
    #[inline]
    pub fn transfer_cost(&self, from: usize, to: usize, bytes: u64) -> TransferCost {
        TransferCost {
            port_time: self.transfer(from, to, bytes),
            latency: match bytes {
                0 => 0.0,
                _ => self.latency_between(from, to),
            },
            eager: self.delays().eager.covers(bytes),
        }
    }

    /// Checks latency and arrivals as [`CostModel::validate`] does.
    pub(super) fn validate_delays(&self) -> Result<()> {
        let Delays {
            arrivals, latency, ..
        } = self.delays();
        if let Some(why) = refuses_cost(*latency) {
            return Err(Error::usage(format!("latency is {latency:?}: {why}")));
        }
        let mut arrivals = arrivals.iter().enumerate();
        let bad = arrivals.find_map(|(rank, &at)| Some((rank, at, refuses_cost(at)?)));
        bad.map_or(Ok(()), |(rank, at, why)| {
            let text = format!("the arrival of rank {rank} is {at:?}: {why}");
            Err(Error::usage(text))
        })
    }

    /// Checks that arrivals, if there are any, are those of `ranks` ranks.
    pub(super) fn covers_arrivals(&self, ranks: usize) -> Result<()> {
        match self.delays().arrivals.len() {
            n if n == 0 || n == ranks => Ok(()),
            n => Err(Error::usage(format!(
                "the arrivals are those of {n} ranks, but there are {ranks}"
            ))),
        }
    }

    /// Has messages without bytes, those of barriers, sent eagerly if any are.
    pub(super) fn eager_tokens(self) -> Self {
        let any = self.sends_eagerly() != Eager::None;
        if any { self.eager(Eager::All) } else { self }
    }
}
