//! A schedule made ready for execution: port lists, peers' wires and dependencies resolved once.

use std::collections::HashMap;

use super::transfer::Wire;
use crate::cost::Ports;
use crate::error::{Error, Result};
use crate::schedule::{LocalOrder, OrderScratch, Schedule, Step};

/// What all ranks of a team do in a run of one schedule.
#[derive(Debug)]
pub(crate) struct Program<'s> {
    pub(crate) ranks: Vec<RankProgram<'s>>,
    pub(crate) wires: Vec<Wire>,
}

/// What one rank does.
#[derive(Debug)]
pub(crate) struct RankProgram<'s> {
    pub(crate) steps: &'s [Step],
    pub(crate) order: LocalOrder,
    /// Steps of each port list, in program order.
    pub(crate) lists: Vec<Vec<u32>>,
    /// Local steps, in program order.
    pub(crate) local: Vec<u32>,
    /// For every step that is half of a transfer, the index of its wire.
    pub(crate) wire: Vec<u32>,
}

impl<'s> Program<'s> {
    /// Resolves `schedule`; `overlap` as in the cost model.
    ///
    /// # Errors
    /// When a step names a port that does not exist, or a rank as its own peer.
    pub(crate) fn new(schedule: &'s Schedule, overlap: bool) -> Result<Self> {
        let ports: Ports = schedule.ports();
        let mut scratch = OrderScratch::default();
        let mut pairs: HashMap<(usize, usize), u32> = HashMap::new();
        let mut ranks = Vec::with_capacity(schedule.ranks());
        for (rank, steps) in schedule.programs().iter().enumerate() {
            let mut order = LocalOrder::default();
            order
                .analyse(steps, ports, overlap, &mut scratch)
                .map_err(|e| Error::wrong(format!("rank {rank}: {e}")))?;
            let mut program = RankProgram {
                steps,
                order,
                lists: vec![Vec::new(); ports.lists()],
                local: Vec::new(),
                wire: Vec::with_capacity(steps.len()),
            };
            for (i, step) in (0u32..).zip(steps) {
                let (Some(peer), Some(port)) = (step.peer(), step.port()) else {
                    program.local.push(i);
                    program.wire.push(0);
                    continue;
                };
                if peer == rank {
                    return Err(Error::wrong(format!(
                        "rank {rank}, step {i} ({}): a rank cannot be its own peer",
                        step.name()
                    )));
                }
                program.lists[ports.list(step.is_send(), port)].push(i);
                let next = u32::try_from(pairs.len()).unwrap_or(u32::MAX);
                let pair = (rank.min(peer), rank.max(peer));
                program.wire.push(*pairs.entry(pair).or_insert(next));
            }
            ranks.push(program);
        }
        let wires = (0..pairs.len()).map(|_| Wire::new()).collect();
        Ok(Program { ranks, wires })
    }
}
