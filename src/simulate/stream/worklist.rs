//! The set of ranks whose state may have changed, visited cyclically in order of their numbers.
//!
//! Programs of neighbouring ranks are mostly similar. If all of them complete a round before any of
//! them starts the next one, their states, and those of their partners, pass through the
//! processor's caches one after another.

const BITS: usize = u64::BITS as usize;

/// A set of ranks with a current position.
#[derive(Debug)]
pub(super) struct Worklist {
    /// One bit per rank.
    ranks: Vec<u64>,
    /// One bit for each word of `ranks`, set if the word is not 0.
    words: Vec<u64>,
    next: usize,
}

impl Worklist {
    /// The set of all of `p` ranks.
    pub(super) fn all(p: usize) -> Worklist {
        Worklist {
            ranks: ones(p),
            words: ones(p.div_ceil(BITS)),
            next: 0,
        }
    }

    #[inline]
    pub(super) fn insert(&mut self, rank: usize) {
        let word = rank / BITS;
        self.ranks[word] |= 1 << (rank % BITS);
        self.words[word / BITS] |= 1 << (word % BITS);
    }

    /// Removes and returns the next rank; after the last rank the search continues with the first.
    #[inline]
    pub(super) fn take(&mut self) -> Option<usize> {
        let word = self.next / BITS;
        let here = self.ranks.get(word).map_or(0, |bits| {
            // Smaller ranks wait for the next pass.
            bits & (u64::MAX << (self.next % BITS))
        });
        let rank = if here != 0 {
            word * BITS + here.trailing_zeros() as usize
        } else {
            let word = self.word_from(word + 1).or_else(|| self.word_from(0))?;
            word * BITS + self.ranks[word].trailing_zeros() as usize
        };
        let word = rank / BITS;
        self.ranks[word] &= !(1 << (rank % BITS));
        if self.ranks[word] == 0 {
            self.words[word / BITS] &= !(1 << (word % BITS));
        }
        self.next = rank + 1;
        Some(rank)
    }

    /// The first non-zero word from `word` on.
    fn word_from(&self, word: usize) -> Option<usize> {
        let mut at = word / BITS;
        let mut bits = self.words.get(at)? & (u64::MAX << (word % BITS));
        while bits == 0 {
            at += 1;
            bits = *self.words.get(at)?;
        }
        Some(at * BITS + bits.trailing_zeros() as usize)
    }
}

/// Words whose first `n` bits are set.
fn ones(n: usize) -> Vec<u64> {
    let mut words = vec![u64::MAX; n.div_ceil(BITS)];
    if let (Some(last), 1..) = (words.last_mut(), n % BITS) {
        *last = (1 << (n % BITS)) - 1;
    }
    words
}
