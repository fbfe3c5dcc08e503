//! MSCCL++ execution plans: thread blocks of GPUs that write and read each other's memory.
//!
//! ```text
//! {name, collective, protocol: "Simple" | "LL", inplace, reuse_resources, .., gpus: [{id,
//!   input_chunks, output_chunks, scratch_chunks,
//!   threadblocks: [{id, ops, channels: [{channel_type, channel_ids}],
//!                   remote_buffer_refs: [{access_channel_type, remote_buffer_ids}]}],
//!   channels: [{channel_type: memory | port, connected_to}
//!             | {channel_type: switch, buffer_type, rank_groups: [{size, ranks}]}],
//!   remote_buffers: [{rank, type: i | o | s, access_channel_types}],
//!   semaphores: [{init_value}]}]}
//! op = {name, src_buff, dst_buff: [{type | buffer_id | switch_channel_id, index, size}],
//!       channel_type, channel_ids, barrier_id, num_threadblocks, semaphore_ids,
//!       tbg_info: {tb_id, tbg_size}, iter_context: {unit_size, num_chunks}, ops}
//! ```
//!
//! There is no version; this is what `src/core/executor/execution_plan.cc` of
//! <https://github.com/microsoft/mscclpp> at commit 1f5f065 (2026) reads.
//!
//! The operations of a thread block start in order, each on all of its threads; `nop` and `barrier`
//! wait for all of these. An operation with several channels or semaphores uses one thread for
//! each. The n-th `wait` on a channel takes n signals of the peer's twin channel, which is the one
//! of the same number among those of this type to this rank; `sem_acquire` counts likewise. Relaxed
//! signals and waits order no memory. What a `put` on a port channel reads and writes is done
//! before later signals and flushes of that channel only. A packet is read once it is written.
//!
//! A plan is run twice around a `pipeline`: its operations on one half of the chunks, then on the
//! other.

mod graph;
mod parse;
mod program;
mod write;

use self::graph::PlanGraph;
use self::parse::Plan;
use self::program::Programs;
pub use self::write::write;
use crate::msccl::ReadOptions;
use oneport::error::Result;
use oneport::schedule::Schedule;

/// Reads a plan as a schedule for bidirectional ports, under the name of the plan.
///
/// A thread block has a port of its own, at each rank that it sends from or writes to, unless
/// [`ported`](ReadOptions::ported) gives fewer. A remote write is a message, and so is a remote
/// read, with no act of the owner of the memory. Operations of a switch become the messages of the
/// rank that starts them. Buffers follow one another: input, output, scratch, packets in scratch.
/// Of collectives that are not known (`test`, `sendrecv`) the schedule has messages without a
/// result to prove.
///
/// # Errors
/// [Malformed](oneport::error::ErrorKind::Malformed): not JSON, an unknown name, or a number out of
/// range. [Wrong](oneport::error::ErrorKind::Wrong): operations wait for each other or for what
/// never comes, or two accesses of the same chunk, at least one of which writes it, are in no
/// order. These errors name GPU, thread block and operation.
pub fn read(text: &str, options: &ReadOptions) -> Result<Schedule> {
    let plan = Plan::parse(text)?;
    let graph = PlanGraph::new(&plan)?;
    let order = graph.order()?;
    graph.ensure_no_races()?;
    graph.ensure_started(&order)?;
    Programs::new(&graph, options)?.schedule(&order)
}
