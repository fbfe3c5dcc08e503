//! Bine tree reduction and broadcast: binomial trees over shorter distances.
//!
//! - Source: De Sensi, Saillant, Huang, Hoefler, "Bine Trees: Enhancing Collective Operations by
//!   Optimizing Communication Locality" (2025).
//! - Symbols: `p` ranks, `m` elements, `n = 2^d` the largest power of two up to `p`.
//! - Time: `ceil(log2 p) (alpha + beta m)`, and as often `gamma m` for the reduction: that of the
//!   [binomial] tree. It differs where distances differ.
//! - Restrictions: operators must commute. Not segmented, because a segment could start no earlier.
//!
//! Members are numbered to base -2. In the broadcast the last `k` digits of a rank that receives in
//! the round of `2^(k-1)`, for `k = d, .., 1`, are equal, and its source is the member whose last
//! `k` digits are the opposite ones: the distance is `(2^(k+1) ± 1)/3`, two thirds of that of the
//! binomial tree. For `p != n` the neighbours `2i`, `2i + 1` are one member for the first `p - n`
//! values of `i`, in a round of their own. The reduction runs the rounds backwards.
//!
//! Example, broadcast, `p = 8`: 0→3; 0→7, 3→4; 0→1, 3→2, 4→5, 7→6.

use crate::plan::prelude::*;
use crate::plan::tree::binomial;

pub(in crate::plan) const REDUCE: Row = Row {
    commutative_only: true,
    source: "De Sensi et al. 2025 (Bine trees)",
    rounds: "ceil(log2 p)",
    ..row::planned_by("bine", Kind::Reduce, Planner::Reduction(reduction))
        .with_formula(binomial::time)
};

pub(in crate::plan) fn reduction(request: &Request) -> Reduction {
    let vector = Segments::whole(request.elements());
    Reduction::new(&request.clone().segments(vector), rounds(request.ranks))
}

fn rounds(p: usize) -> impl Iterator<Item = Vec<Transfer>> {
    let members = members_of(p.max(1), 0);
    let d = members.len().ilog2();
    let fold = (0..folded(p.max(1))).map(|i| Transfer::new(0, 2 * i + 1, 2 * i));
    let tree = (0..d).map(move |k| {
        // The senders are those whose last k+1 digits are equal, unless the next one is, too.
        let (low, next) = ((2usize << k) - 1, (4usize << k) - 1);
        let is_equal = |digits: usize, mask| digits & mask == 0 || digits & mask == mask;
        let digits = 0..members.len();
        let senders = digits.filter(|&x| is_equal(x, low) && !is_equal(x, next));
        let member = |digits| members[number(digits, members.len())];
        senders
            .map(|x| Transfer::new(0, member(x), member(x ^ low)))
            .collect()
    });
    std::iter::once(fold.collect()).chain(tree)
}

/// The number with these digits to base -2, modulo `n`, a power of two.
fn number(digits: usize, n: usize) -> usize {
    // Every second digit counts negatively.
    const NEGATIVE: usize = usize::MAX / 3 * 2;
    (digits ^ NEGATIVE).wrapping_sub(NEGATIVE) & (n - 1)
}
