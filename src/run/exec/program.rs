//! A schedule prepared for execution: port lists, wires and dependencies are resolved once.

use std::collections::HashMap;

use crossbeam_utils::CachePadded;

use crate::error::{Error, Result};
use crate::machine::numbers::id;
use crate::machine::{self, CostModel, Ports};
use crate::rules::matching::Matching;
use crate::rules::max_time;
use crate::rules::shared::SharedOrder;
use crate::rules::{LocalOrder, OrderScratch};
use crate::run::sync::{AtomicU64, Ordering};
use crate::run::system::ensure_memory;
use crate::run::transfer::{Elements, Slots, Wire, any_overlap};
use crate::run::tuning::CACHE_LINE_BYTES;
use crate::schedule::{Schedule, Step, total_len};

/// The programs of all ranks in a run of one schedule, and their wires.
#[derive(Debug)]
pub(crate) struct Program<'s> {
    pub(crate) ranks: Vec<RankProgram<'s>>,
    pub(crate) wires: Vec<Wire>,
    pub(crate) grants: Grants,
    /// Where messages go whose senders do not wait: see [`Program::copy_to_slots`].
    pub(super) slots: Slots,
}

/// The order in which shared ports are granted, with the model clock that each grant passes on.
#[derive(Debug, Default)]
pub(crate) struct Grants {
    order: SharedOrder,
    /// By number: the bits of the end of the transfer; of NaN until it has ended. One rank writes
    /// each, and the next one polls it, so each has a line of its own.
    ends: Vec<CachePadded<AtomicU64>>,
}

impl Grants {
    fn new(schedule: &Schedule) -> Self {
        let order = SharedOrder::new(schedule.shared_ports());
        let not_yet = || CachePadded::new(AtomicU64::new(f64::NAN.to_bits()));
        Grants {
            ends: (0..order.len()).map(|_| not_yet()).collect(),
            order,
        }
    }

    /// Forgets the ends of the first `steps` steps of `rank`. No rank may be inside a repetition.
    pub(super) fn clear(&self, rank: usize, steps: usize) {
        for number in (0..steps).filter_map(|step| self.order.number(rank, step)) {
            self.ends[number].store(f64::NAN.to_bits(), Ordering::Relaxed);
        }
    }

    /// When a step that could start at `ready` may start on its shared ports; `None` if they
    /// are not granted yet.
    #[inline]
    pub(super) fn delayed(&self, rank: usize, step: usize, ready: f64) -> Option<f64> {
        let Some(number) = self.order.number(rank, step) else {
            return Some(ready);
        };
        let before = self.order.before(number).iter();
        let ends = before.map(|&n| f64::from_bits(self.ends[n].load(Ordering::Acquire)));
        ends.map(|end| (!end.is_nan()).then_some(end))
            .try_fold(ready, |start, end| Some(max_time(start, end?)))
    }

    /// The transfer of a step ended at `end`; `wake` learns of the ranks that may wait for it.
    #[inline]
    pub(super) fn ended(&self, rank: usize, step: usize, end: f64, wake: impl FnMut(usize)) {
        if let Some(number) = self.order.number(rank, step) {
            self.ends[number].store(end.to_bits(), Ordering::Release);
            self.order.then(number).iter().copied().for_each(wake);
        }
    }
}

/// The program of one rank.
#[derive(Debug)]
pub(crate) struct RankProgram<'s> {
    pub(crate) steps: &'s [Step],
    pub(crate) order: LocalOrder,
    /// Steps of each port list, in program order.
    pub(crate) lists: Vec<Vec<u32>>,
    /// Local steps, in program order.
    pub(crate) local: Vec<u32>,
    /// By step: the index of its wire if it is a transfer, otherwise 0.
    pub(crate) wire: Vec<u32>,
    /// By step: the slot of its message if its sender does not wait; empty if all senders wait.
    pub(super) slot: Vec<Option<u32>>,
}

impl<'s> Program<'s> {
    /// Prepares `schedule`; `overlap` as in the cost model.
    ///
    /// # Errors
    /// When a step names a port that does not exist, or its own rank as its peer, or a local step's
    /// source and destination overlap or differ in length.
    pub(crate) fn new(schedule: &'s Schedule, overlap: bool) -> Result<Self> {
        let ports: Ports = schedule.ports();
        let mut scratch = OrderScratch::default();
        let mut wires = Wiring::new(schedule)?;
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
                slot: Vec::new(),
            };
            for (i, step) in (0u32..).zip(steps) {
                let (Some(peer), Some(port)) = (step.peer(), step.port()) else {
                    local_is_sound(rank, i, step)?;
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
                program.wire.push(wires.wire(rank, i as usize, port, peer));
            }
            ranks.push(program);
        }
        Ok(Program {
            ranks,
            wires: wires.make(),
            grants: Grants::new(schedule),
            slots: Slots::new(0),
        })
    }

    /// Has senders not wait where `cost` says so. Each of these messages is copied to a slot of its
    /// own and has a wire of its own, so any number can be on their way between two ranks. Fails
    /// when memory does not suffice for the copies.
    pub(super) fn copy_to_slots(
        mut self,
        schedule: &Schedule,
        cost: &CostModel,
        elements: Elements,
    ) -> Result<Self> {
        // Mismatches are reported when the run reaches them.
        let matching = Matching::new(schedule, |_| ())?;
        let mut lines = 0u64;
        let mut wire = id(self.wires.len());
        for (rank, steps) in schedule.programs().iter().enumerate() {
            self.ranks[rank].slot = vec![None; steps.len()];
            for (i, step) in steps.iter().enumerate() {
                let Step::Send { to, .. } = step else {
                    continue;
                };
                let in_model = machine::bytes(step.len(), schedule.element_bytes());
                if !cost.sends_eagerly().covers(in_model) {
                    continue;
                }
                let Some(receive) = matching.partner((rank, i), *to) else {
                    continue;
                };
                let bytes = step.len().saturating_mul(elements.bytes);
                self.ranks[rank].slot[i] = u32::try_from(lines).ok();
                self.ranks[rank].wire[i] = wire;
                self.ranks[*to].wire[receive] = wire;
                wire += 1;
                lines += u64::from(Slots::lines(bytes));
            }
        }
        let bytes = u128::from(lines) * CACHE_LINE_BYTES as u128;
        ensure_memory("the copies of all messages", bytes)?;
        let lines = u32::try_from(lines).ok();
        let too_many = || Error::usage("the messages are too long to be copied");
        self.slots = Slots::new(lines.ok_or_else(too_many)?);
        let more = wire as usize - self.wires.len();
        self.wires.extend((0..more).map(|_| Wire::new()));
        Ok(self)
    }

    /// Ignores shared ports: processes do not see each other's transfers.
    #[cfg(feature = "mpi")]
    pub(crate) fn without_grants(self) -> Self {
        Program {
            grants: Grants::default(),
            ..self
        }
    }
}

/// Refuses a local step whose source and destination differ in length or overlap.
fn local_is_sound(rank: usize, i: u32, step: &Step) -> Result<()> {
    let (src, dst) = (step.reads(), step.writes());
    let fault = if total_len(src) != total_len(dst) {
        "source and destination differ in length"
    } else if any_overlap(src, dst) {
        "source and destination overlap"
    } else {
        return Ok(());
    };
    let name = step.name();
    Err(Error::wrong(format!(
        "rank {rank}, step {i} ({name}): {fault}"
    )))
}

/// Assigns wires to messages: messages between the same two ranks through the same port of each
/// share a wire.
///
/// A port has at most one open transfer, so each lane of a wire holds at most one message, and
/// messages stay in order. Ranks with several ports may have several messages to the same partner
/// in flight at once; rule 4 determines through which port of the partner each arrives.
struct Wiring<'s> {
    numbers: HashMap<[(usize, usize); 2], u32>,
    /// For ranks with several ports: which steps meet.
    several: Option<(&'s Schedule, Matching)>,
}

impl<'s> Wiring<'s> {
    fn new(schedule: &'s Schedule) -> Result<Self> {
        let several = if schedule.ports().k() > 1 {
            // Mismatches are reported when the run reaches them.
            Some((schedule, Matching::new(schedule, |_| ())?))
        } else {
            None
        };
        Ok(Wiring {
            numbers: HashMap::new(),
            several,
        })
    }

    /// The index of the wire that step `i` of `rank` uses.
    fn wire(&mut self, rank: usize, i: usize, port: usize, peer: usize) -> u32 {
        let peer_port = self.several.as_ref().map_or(0, |(schedule, matching)| {
            let partner = matching.partner((rank, i), peer);
            let port = partner.and_then(|partner| schedule.programs()[peer][partner].port());
            port.unwrap_or(usize::MAX)
        });
        let mut ends = [(rank, port), (peer, peer_port)];
        ends.sort_unstable();
        let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
        *self.numbers.entry(ends).or_insert(next)
    }

    fn make(self) -> Vec<Wire> {
        (0..self.numbers.len()).map(|_| Wire::new()).collect()
    }
}
