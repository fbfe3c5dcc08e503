//! Constants of the machine that a profile may override.

use serde::{Deserialize, Serialize};

use super::tuning::cache_bytes;
use crate::error::{Error, Result};
use crate::machine::numbers::refuses_cost;

/// The constants that differ most between machines. The default values hold for the machines that
/// were measured; the object `tuning` of a profile may override any of them. Times are in
/// nanoseconds, sizes in bytes.
///
/// The first two apply to runs of a [`Team`](crate::run::Team), the others to estimates of the time
/// of native runs (`oneport_measure::estimate`). None changes what a run computes.
///
/// ```
/// use oneport::run::Tuning;
/// let mut tuning = Tuning::default();
/// tuning.cache_bytes = Some(4 << 20);
/// assert_eq!(tuning.min_stream_bytes, 128 << 10);
/// ```
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Tuning {
    /// Size of the last-level cache; by default what the system reports, or else 32 MiB. Long
    /// messages are copied with streaming stores, which bypass the caches, if the buffers of the
    /// run do not fit into it: they would only evict other lines, and reading the lines that they
    /// overwrite would be wasted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_bytes: Option<usize>,
    /// Size of the smallest message that is copied with streaming stores, in such a run: 128 KiB.
    pub min_stream_bytes: usize,
    /// A rank's own work for a message, excluding the wait for a cache line: the time of a short
    /// message between two nearby cores, without the handover. 60 ns.
    pub own_work_ns: f64,
    /// Time that a worker takes to switch between two of its ranks, as a part of their own work for
    /// a message: 0.5. It switches without the operating system.
    pub worker_switch_share: f64,
    /// Time of a long message that one partner copies alone, in that of a shared copy: 2.
    pub lone_copy_factor: f64,
    /// Time of a long copy into memory that is no longer cached, because other messages have been
    /// copied since, in that of a calibrated copy: 2.
    pub cold_copy_factor: f64,
    /// Time per byte of data that the sender itself has just received or combined and that is still
    /// in the caches of the sender's core, in that of other data, where one partner copies a long
    /// message: 2. The lines have to be fetched from there, and the lines they overwrite are
    /// cached there, too. When ranks share cores, the other ranks evict this data.
    pub fresh_factor: f64,
    /// Size of the longest message for which `fresh_factor` counts: 1 MiB.
    pub max_fresh_bytes: u64,
}

impl Default for Tuning {
    fn default() -> Self {
        Tuning {
            cache_bytes: None,
            min_stream_bytes: 128 << 10,
            own_work_ns: 60.0,
            worker_switch_share: 0.5,
            lone_copy_factor: 2.0,
            cold_copy_factor: 2.0,
            fresh_factor: 2.0,
            max_fresh_bytes: 1 << 20,
        }
    }
}

impl Tuning {
    /// # Errors
    /// Names a time or factor that is negative, infinite or not a number.
    pub fn validate(&self) -> Result<()> {
        for (name, value) in [
            ("own_work_ns", self.own_work_ns),
            ("worker_switch_share", self.worker_switch_share),
            ("lone_copy_factor", self.lone_copy_factor),
            ("cold_copy_factor", self.cold_copy_factor),
            ("fresh_factor", self.fresh_factor),
        ] {
            if let Some(why) = refuses_cost(value) {
                return Err(Error::malformed(format!(
                    "tuning: {name} is {value:?}: {why}"
                )));
            }
        }
        Ok(())
    }

    /// Length in bytes from which on messages are copied with streaming stores, in a run whose
    /// ranks' buffers hold `total` bytes together: no message (`usize::MAX`) if they fit into the
    /// cache.
    pub(crate) fn streams_from(&self, total: usize) -> usize {
        if total < self.cache_bytes.unwrap_or_else(cache_bytes) {
            usize::MAX
        } else {
            self.min_stream_bytes
        }
    }
}
