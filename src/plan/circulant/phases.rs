//! Divides the rounds of a broadcast of `n` blocks into phases of `q` rounds.
//!
//! The `n - 1 + q` rounds are the last ones of the smallest sufficient number of phases; the rounds
//! left over are skipped at the start of the first phase. From phase to phase the block numbers of
//! the schedule grow by `q`. A number that is still negative then stands for no transfer. In the
//! last phase every rank's base block is the last block or beyond the end. A number beyond the end
//! stands for the last block, which no rank has received before.

#[derive(Debug, Clone, Copy)]
pub(crate) struct Phases {
    q: usize,
    n: usize,
    /// Rounds skipped at the start of the first phase.
    skipped: usize,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Round {
    pub(crate) k: usize,
    /// Offset added to the schedule's block numbers. A negative one wraps around.
    shift: usize,
    last: usize,
}

impl Phases {
    pub(crate) fn new(q: usize, n: usize) -> Phases {
        // skipped + n - 1 + q is a multiple of q.
        let skipped = if q == 0 { 0 } else { (q - (n - 1) % q) % q };
        Phases { q, n, skipped }
    }

    /// Number of rounds: `n - 1 + q`, or 0 for a single rank.
    pub(crate) fn rounds(self) -> usize {
        if self.q == 0 { 0 } else { self.n - 1 + self.q }
    }

    /// Round `i` of the broadcast; `i` must be less than [`Phases::rounds`].
    pub(crate) fn round(self, i: usize) -> Round {
        let i = self.skipped + i;
        Round {
            k: i % self.q,
            shift: (i - i % self.q).wrapping_sub(self.skipped),
            last: self.n - 1,
        }
    }
}

impl Round {
    /// The block that the schedule's number `v` stands for in this round, or `None` if there is no
    /// transfer yet.
    pub(crate) fn block(self, v: i8) -> Option<usize> {
        let place = self.shift.wrapping_add_signed(v.into());
        (place <= usize::MAX / 2).then(|| place.min(self.last))
    }

    /// The following round; `q` is the number of rounds in a phase.
    pub(crate) fn next(self, q: usize) -> Round {
        let (k, shift) = if self.k + 1 == q {
            (0, self.shift.wrapping_add(q))
        } else {
            (self.k + 1, self.shift)
        };
        Round { k, shift, ..self }
    }

    /// The preceding round; `q` is the number of rounds in a phase.
    pub(crate) fn previous(self, q: usize) -> Round {
        let (k, shift) = if self.k == 0 {
            (q - 1, self.shift.wrapping_sub(q))
        } else {
            (self.k - 1, self.shift)
        };
        Round { k, shift, ..self }
    }
}
