//! How many cases tests have: few by default, many in long tests.

/// Whether tests take the many cases of `ONEPORT_LONG=1 cargo test --workspace`.
pub(crate) fn is_long() -> bool {
    std::env::var_os("ONEPORT_LONG").is_some()
}

/// `few` cases by default, `many` in long tests.
pub(crate) fn cases<N>(few: N, many: N) -> N {
    if is_long() { many } else { few }
}
