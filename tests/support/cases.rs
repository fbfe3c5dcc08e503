//! How many cases tests have: few by default, many in long tests.

/// Whether tests take the many cases of `ONEPORT_LONG=1 cargo test --workspace`.
pub(crate) fn is_long() -> bool {
    std::env::var_os("ONEPORT_LONG").is_some()
}

/// `few` cases by default, `many` in long tests.
pub(crate) fn cases<N>(few: N, many: N) -> N {
    match is_long() {
        false => few,
        true => many,
    }
}

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
