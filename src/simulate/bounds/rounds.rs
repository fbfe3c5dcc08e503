//! How many messages must follow each other, at least.
//!
//! **Gossip.** Let `n` of `p` ranks each need data of all the others among them (allgather,
//! reduce_scatter, allreduce, alltoall) through `k` ports that serve both directions.
//!
//! Cut time into windows as long as the shortest message. A port starts at most one transfer in a
//! window, and none of the transfers that start in it passes on what another one brings. They make
//! a matrix `I + M`: `M` has a one for each receiver and sender, and at most `k` of them in the row
//! and the column of a rank together. Let `g = (k + sqrt(k^2 + 4)) / 2`, so that `g (g - k) = 1`.
//! For vectors `x`, `y`, each entry `x_i y_j` of `x^T (I + M) y` is at most `(x_i^2 + y_j^2) / 2`
//! outside the diagonal, so `g (|x|^2 + |y|^2) / 2 - x^T (I + M) y` is at least half the sum of
//! `(g - r) x_i^2 + (g - c) y_i^2 - 2 x_i y_i` over the ranks `i`, with `r + c <= k` ones in row
//! and column. That is not negative, because `(g - r)(g - c) >= g (g - k) = 1`. So the spectral
//! norm of `I + M` is at most `g`.
//!
//! The product over all windows counts the ways of the data. It is at least 1 for each pair of the
//! `n` ranks, so its norm is at least `n`, and there are at least `log_g n` windows. For `k = 1`,
//! `g` is the golden ratio and this is `1.44 log2 n` (Entringer, Slater 1979; with norms of
//! matrices Even, Monien 1989).
//!
//! A rank with one port that receives in a window does not send in it. So if `k = 1` and
//! `n = p > 1`, at least `h = ceil(p/2)` ranks receive nothing in the last window and know
//! everything before it, and at least `h` send nothing in the first, so that their data spread
//! after it. The windows between have a product with `h` times `h` entries of at least 1, and a
//! norm of at least `h`: there are at least `2 + log_g h` windows.

use super::number;
use crate::machine::Ports;

/// `ceil(log_{k+1} n)`: messages that follow each other until `n` ranks have the data of one, with
/// `k` ports each.
pub(super) fn steps(n: usize, k: usize) -> u32 {
    let (mut reached, mut steps) = (1usize, 0);
    while reached < n {
        reached = reached.saturating_mul(k.saturating_add(1));
        steps += 1;
    }
    steps
}

/// Lower bound of the number of consecutive messages until `n` of `p` ranks know each other's data
/// through unidirectional ports. 0 for others.
pub(super) fn gossip(n: usize, p: usize, ports: Ports) -> u32 {
    if ports.can_exchange() {
        return 0;
    }
    let k = number(ports.k().max(1));
    let growth = (k + (k * k + 4.0).sqrt()) / 2.0;
    let windows = |norm: f64| {
        let (mut reached, mut windows) = (1.0, 0);
        // Rounding must not make the bound larger.
        while reached * (1.0 + 1e-9) < norm {
            reached *= growth;
            windows += 1;
        }
        windows
    };
    if n == p && n > 1 && k == 1.0 {
        2 + windows(number(p.div_ceil(2)))
    } else {
        windows(number(n))
    }
}
