//! A run's data as its place sees them: buffers of ranks, whose element type only this file knows.

use std::fmt;

#[cfg(feature = "mpi")]
use super::run_data::Mismatch;
use super::run_data::{RankOutput, RunData, Wrong, packed};
use crate::error::{Error, Result};
#[cfg(feature = "mpi")]
use crate::machine::numbers;
use crate::run::element::Element;
use crate::run::transfer::Buffer;

/// A run's data for its place: the buffers of its ranks, and the first wrong element.
pub(crate) trait RunBuffers: fmt::Debug + Sync {
    /// The buffer of `rank`, if memory suffices. The thread that calls this allocates and first
    /// touches it.
    fn of_rank(&self, rank: usize) -> Result<Box<dyn RankBuffer + '_>>;

    /// The repetition of the first wrong output of `rank`, if it has finished here.
    fn wrong_repetition(&self, rank: usize) -> Option<usize>;

    /// Finds the first wrong element of the first wrong output of `rank`, and keeps it as the run's
    /// mismatch.
    fn find_mismatch(&self, rank: usize) -> Result<()>;

    /// As [`find_mismatch`](RunBuffers::find_mismatch), for all processes: `is_own` where `rank`
    /// has finished. `share` passes an index and two elements on from there to the others, so all
    /// processes call this with the same repetition and rank.
    #[cfg(feature = "mpi")]
    fn share_mismatch(
        &self,
        repetition: usize,
        rank: usize,
        is_own: bool,
        share: &mut dyn FnMut(&mut u64, &Buffer<'_>) -> Result<()>,
    ) -> Result<()>;

    /// Whether the caller has given inputs.
    #[cfg(feature = "mpi")]
    fn has_inputs(&self) -> bool;

    /// A digest of what the operator makes of test values: operators of one name that compute
    /// different things are told apart by it.
    #[cfg(feature = "mpi")]
    fn probe(&self) -> u64;
}

/// The buffer of a rank in all repetitions of a run.
pub(crate) trait RankBuffer {
    /// Fills it for repetition `n`.
    fn fill(&mut self, n: usize);

    fn buffer(&mut self) -> Buffer<'_>;

    /// Compares the output after repetition `n` with the right one, if outputs are verified.
    fn compare(&mut self, n: usize);

    /// Keeps the output of the last repetition.
    fn finish(self: Box<Self>);
}

struct TypedBuffer<'d, T> {
    data: &'d RunData<'d, T>,
    rank: usize,
    values: Vec<T>,
    wrong: Option<Wrong<T>>,
}

impl<T: Element> RunBuffers for RunData<'_, T> {
    fn of_rank(&self, rank: usize) -> Result<Box<dyn RankBuffer + '_>> {
        let len = self.layout()[rank].len;
        let mut values = Vec::new();
        values.try_reserve_exact(len).map_err(|e| {
            Error::system(format!(
                "rank {rank}: no memory for a buffer of {len} elements: {e}"
            ))
        })?;
        values.resize(len, T::test_value(0));
        Ok(Box::new(TypedBuffer {
            data: self,
            rank,
            values,
            wrong: None,
        }))
    }

    fn wrong_repetition(&self, rank: usize) -> Option<usize> {
        self.wrong_repetition(rank)
    }

    fn find_mismatch(&self, rank: usize) -> Result<()> {
        self.keep_mismatch(self.mismatch(rank)?);
        Ok(())
    }

    #[cfg(feature = "mpi")]
    fn share_mismatch(
        &self,
        repetition: usize,
        rank: usize,
        is_own: bool,
        share: &mut dyn FnMut(&mut u64, &Buffer<'_>) -> Result<()>,
    ) -> Result<()> {
        let own = if is_own { self.mismatch(rank)? } else { None };
        let mut index = own.map_or(0, |m| m.index as u64);
        let mut values = own.map_or([T::test_value(0); 2], |m| [m.expected, m.found]);
        share(&mut index, &Buffer::of(&mut values))?;
        self.keep_mismatch(Some(Mismatch {
            repetition,
            rank,
            index: numbers::index(index),
            expected: values[0],
            found: values[1],
        }));
        Ok(())
    }

    #[cfg(feature = "mpi")]
    fn has_inputs(&self) -> bool {
        self.has_inputs()
    }

    #[cfg(feature = "mpi")]
    fn probe(&self) -> u64 {
        self.probe()
    }
}

impl<T: Element> RankBuffer for TypedBuffer<'_, T> {
    fn fill(&mut self, n: usize) {
        self.data.fill(self.rank, n, &mut self.values);
    }

    fn buffer(&mut self) -> Buffer<'_> {
        Buffer::of(&mut self.values)
    }

    fn compare(&mut self, n: usize) {
        let wrong = || self.data.wrong(self.rank, n, &self.values);
        self.wrong = self.wrong.take().or_else(wrong);
    }

    fn finish(self: Box<Self>) {
        let output = RankOutput {
            output: packed(&self.values, &self.data.layout()[self.rank].output),
            wrong: self.wrong,
        };
        self.data.keep_output(self.rank, output);
    }
}
