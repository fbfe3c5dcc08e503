//! How a run is carried out.

use std::time::Duration;

use crate::machine::{CostModel, Ports};
use crate::run::sync::StopFlag;
use crate::run::tuning::DEADLINE;

/// Whether a run goes at full speed or at the pace of its cost model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Clock {
    /// As fast as the machine allows.
    #[default]
    Native,
    /// No step starts, and no rank finishes, before its model time (in nanoseconds since the common
    /// start) has passed in wall-clock time. It needs a thread for each rank.
    Paced,
}

/// How a [`Run`](super::Run) is carried out: its methods describe these.
#[derive(Debug, Clone)]
pub(crate) struct RunOptions {
    pub(crate) clock: Clock,
    pub(crate) cost: CostModel,
    pub(crate) deadline: Duration,
    pub(crate) repetitions: usize,
    pub(crate) warmup: usize,
    pub(crate) ports: Option<Ports>,
    pub(crate) trace: bool,
    pub(crate) eager: bool,
    /// Whether buffers are left as they are between timed repetitions.
    pub(crate) keep_inputs: bool,
    pub(crate) by: RunPerformer,
    /// Ends the run on threads when somebody sets it.
    pub(crate) stop: Option<StopFlag>,
}

/// Who does the work of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunPerformer {
    /// The schedule.
    Schedule,
    /// The library's own function for the collective.
    Library,
    /// Its function for blocks of different lengths, even if they are equal.
    IrregularLibrary,
    /// Its functions that send and receive one message and return when that is done.
    BlockingMessages,
}

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions {
            clock: Clock::Native,
            cost: CostModel::new(1000.0, 0.1),
            deadline: DEADLINE,
            repetitions: 1,
            warmup: 0,
            ports: None,
            trace: false,
            eager: true,
            keep_inputs: false,
            by: RunPerformer::Schedule,
            stop: None,
        }
    }
}
