//! How much memory there is, and refusals of what does not fit.

use anyhow::Result;
use oneport::internal::system;

/// Returns the memory that this process may additionally use, if the system reports it.
pub(crate) fn available_memory() -> Option<u64> {
    system::available_memory().map(|available| available.bytes)
}

pub(crate) const LARGE_SCHEDULE: &str = "take fewer ranks or larger segments";

/// Returns an error with `advice` if `what` needs more than [`available_memory`].
pub(crate) fn ensure_memory(what: &str, bytes: u128, advice: &str) -> Result<()> {
    fits_memory(what, bytes, advice).map_err(anyhow::Error::msg)
}

/// As [`ensure_memory`]; the error is the message.
pub(crate) fn fits_memory(what: &str, bytes: u128, advice: &str) -> Result<(), String> {
    system::ensure_memory(what, bytes).map_err(|error| format!("{error}: {advice}"))
}
