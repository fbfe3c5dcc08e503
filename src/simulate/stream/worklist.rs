//! The ranks where something may have changed, in the order of their numbers, round and round.
//!
//! ScheduleSource of neighbouring ranks are mostly alike: when all of them go through a round before any
//! of them begins the next one, their states, and those of their partners, pass through the
//! processor's caches one after another.

const BITS: usize = u64::BITS as usize;

/// A set of ranks, with the place in it that has been reached.
#[derive(Debug)]
pub(super) struct Worklist {
    /// One bit a rank.
    ranks: Vec<u64>,
    /// One bit for each word of ranks that is not 0.
    words: Vec<u64>,
    /// The first rank to be looked at.
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

    /// Takes out the next rank: after the greatest, the smallest.
    #[inline]
    pub(super) fn take(&mut self) -> Option<usize> {
        let word = self.next / BITS;
        let here = self.ranks.get(word).map_or(0, |bits| {
            // Ranks before the next one wait for the next turn.
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

    /// The first word from `word` on that is not 0.
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

/// Words of which the first `n` bits are set.
fn ones(n: usize) -> Vec<u64> {
    let mut words = vec![u64::MAX; n.div_ceil(BITS)];
    if let (Some(last), 1..) = (words.last_mut(), n % BITS) {
        *last = (1 << (n % BITS)) - 1;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_come_round_and_round() {
        for p in [1, 63, 64, 65, 4_095, 4_096, 4_097, 10_000] {
            let mut list = Worklist::all(p);
            for rank in 0..p {
                assert_eq!(list.take(), Some(rank));
                // Behind: for the next turn. What has just been taken, too.
                list.insert(rank / 2);
                list.insert(rank);
                if rank / 2 < rank {
                    list.insert(p - 1);
                }
            }
            let again: Vec<_> = (0..p).map_while(|_| list.take()).collect();
            assert_eq!(again, (0..p).collect::<Vec<_>>(), "p={p}");
            assert_eq!(list.take(), None);
            list.insert(p / 3);
            assert_eq!((list.take(), list.take()), (Some(p / 3), None));
        }
    }
}
