//! Costs that are the same for all ranks.

use super::numbers::float;

/// Costs that are the same for all ranks and linear in the size.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Linear {
    /// Start-up time of a message.
    pub alpha: f64,
    /// Time per byte of a message.
    pub beta: f64,
    /// Time per byte combined.
    pub gamma: f64,
    /// Time per byte copied locally.
    pub gamma_copy: f64,
}

impl Linear {
    /// Time of a message of `bytes` bytes.
    #[inline]
    pub(crate) fn transfer(&self, bytes: u64) -> f64 {
        if bytes == 0 {
            return 0.0;
        }
        self.alpha + self.beta * float(bytes)
    }

    /// Time to combine `bytes` bytes.
    #[inline]
    pub(crate) fn combine(&self, bytes: u64) -> f64 {
        self.gamma * float(bytes)
    }

    /// Time to copy `bytes` bytes locally.
    #[inline]
    pub(crate) fn copy(&self, bytes: u64) -> f64 {
        self.gamma_copy * float(bytes)
    }
}
