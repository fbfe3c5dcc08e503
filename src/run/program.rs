//! A schedule made ready for execution: port lists, peers' wires and dependencies resolved once.

use std::collections::HashMap;

use super::transfer::Wire;
use crate::cost::Ports;
use crate::error::{Error, Result};
use crate::schedule::matching::{Matching, NONE};
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
        let mut wires: HashMap<Ends, u32> = HashMap::new();
        let partner_ports = PartnerPorts::new(schedule)?;
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
                let next = u32::try_from(wires.len()).unwrap_or(u32::MAX);
                let mine = (rank, port);
                let theirs = (peer, partner_ports.of(rank, i as usize));
                let ends = (mine.min(theirs), mine.max(theirs));
                program.wire.push(*wires.entry(ends).or_insert(next));
            }
            ranks.push(program);
        }
        let wires = (0..wires.len()).map(|_| Wire::new()).collect();
        Ok(Program { ranks, wires })
    }
}

/// Rank and port at the two ends of a wire, the lower rank first.
///
/// A lane holds one message at a time, and a receive takes whatever lies in its lane. Between one port and one other, messages are sent and received in
/// program order; so with a wire for each two ports, and every step on the wire to the port of its partner, the `n`-th send from rank to rank meets the
/// `n`-th receive also when they use several ports.
type Ends = ((usize, usize), (usize, usize));

/// The port at the other end of every transfer.
struct PartnerPorts<'s> {
    schedule: &'s Schedule,
    /// Only where ranks have more than one port.
    matching: Option<Matching>,
}

impl<'s> PartnerPorts<'s> {
    fn new(schedule: &'s Schedule) -> Result<Self> {
        // Mismatches show when they are run.
        let matching = (schedule.ports().k() > 1).then(|| Matching::new(schedule, |_| ()));
        let matching = matching.transpose()?;
        Ok(PartnerPorts { schedule, matching })
    }

    /// For a step without a partner, a port that does not exist: it must not meet another step's partner.
    fn of(&self, rank: usize, step: usize) -> usize {
        let Some(Matching { mates, first_step }) = &self.matching else {
            return 0;
        };
        let programs = self.schedule.programs();
        let mate = mates[first_step[rank] as usize + step];
        match programs[rank][step].peer() {
            Some(peer) if mate != NONE => programs[peer][(mate - first_step[peer]) as usize].port(),
            _ => None,
        }
        .unwrap_or(usize::MAX)
    }
}
