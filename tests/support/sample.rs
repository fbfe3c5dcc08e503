//! Samples of long sweeps.

use super::cases::cases;

/// Which cases of a sweep a test takes: all in long tests, each `n`th by default. An odd `n` meets
/// every combination of the innermost loops, each beside another case of the outer ones.
#[derive(Debug)]
pub(crate) struct Sample {
    n: usize,
    seen: usize,
}

impl Sample {
    /// Each `n`th, the first one among them.
    pub(crate) fn each(n: usize) -> Sample {
        let n = cases(n, 1);
        Sample { n, seen: n - 1 }
    }

    /// Whether the next case is taken.
    pub(crate) fn takes(&mut self) -> bool {
        self.seen += 1;
        self.seen.is_multiple_of(self.n)
    }
}
