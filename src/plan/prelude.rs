//! What most planners need: the words in which they are written.

pub(in crate::plan) use super::build::block_pairs::{
    AlltoallRounds, BlockPairs, BlockPart, alltoall,
};
pub(in crate::plan) use super::build::buffers::{elements_of, over_blocks, over_vector};
pub(in crate::plan) use super::build::compose::{self, Blocks, in_sequence, scratch_after};
pub(in crate::plan) use super::build::cube::{
    Cube, exchanges, fold, folded, member_of, members_of, time_of_fold, unfold,
};
pub(in crate::plan) use super::build::in_flight::{self, InFlight};
pub(in crate::plan) use super::build::reduction::{Reduction, Transfer};
pub(in crate::plan) use super::build::rounds::{
    self, Arrival, Exchange, Message, Rounds, are_equal, cyclic, doublings, equal_block,
    equal_size, joined, needs_scratch, powers, receive_first_flags, round, there_and_back,
    time_of_combining, time_of_combining_all, time_of_round,
};
pub(in crate::plan) use super::build::stream::{
    Consecutive, Reversed, StepAt, allreduce_of, broadcast_of, reduction_of, streamed,
};
pub(in crate::plan) use super::registry::{
    Algorithm, BestRoot, BestSegment, ClosedForm, MadeFor, Planner, PortModels, Row, row,
};
pub(in crate::plan) use super::segments::{Best, Method, Published, TABLE_I, TABLE_III};
pub(in crate::plan) use super::space::{Time, Variant, is_better};
pub(in crate::plan) use super::{Request, Segments, consecutive, cut_from_the_end, evenly};
pub(in crate::plan) use crate::error::{Error, Result};
pub(in crate::plan) use crate::machine::{CostModel, Ports};
pub(in crate::plan) use crate::rules::max_time;
pub(in crate::plan) use crate::schedule::collective::{Collective, Kind};
pub(in crate::plan) use crate::schedule::{
    Builder, DynScheduleSource, Layout, Order, Schedule, ScheduleSource, Span, Spans, Step,
    total_len,
};
