//! A run as its place sees it, which does not know the element type.

use std::fmt;

#[cfg(feature = "mpi")]
use super::options::RunOptions;
use super::spec::RunSpec;
use crate::error::Result;
use crate::run::testdata::RunBuffers;
use crate::schedule::Schedule;

/// A run of elements of a type that its place does not know, with room for the data that it leaves
/// behind.
#[derive(Debug)]
pub struct AnyRun<'a>(pub(crate) &'a dyn Described);

/// What a place asks of a run.
pub(crate) trait Described: fmt::Debug {
    fn schedule(&self) -> &Schedule;

    #[cfg(feature = "mpi")]
    fn options(&self) -> &RunOptions;

    /// The run of `schedule`, which is as for [`data`](Described::data), without its element type;
    /// an error if the collective combines and there is no operator.
    fn spec<'s>(&'s self, schedule: &'s Schedule) -> Result<RunSpec<'s>>;

    /// The data of `repetitions` repetitions of `schedule`, which is the run's or one that has
    /// inputs and outputs of the same lengths.
    fn data<'s>(
        &'s self,
        schedule: &'s Schedule,
        verified: bool,
        repetitions: usize,
    ) -> Result<Box<dyn RunBuffers + 's>>;
}
