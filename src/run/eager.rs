//! Short messages that do not wait for their receivers.
//!
//! Where ranks share cores, a sender that waits for its receiver gives up its core twice: once for the receiver to run, once to go on. A short
//! message may as well be put down where the receiver finds it (the eager protocol, as message passing libraries call it): one buffer for
//! each direction between two partners, free again when its message has been taken in.
//!
//! Who waits for nobody but for messages can do its steps one after another: see [`one_after_another`].
//!
//! Only the wall-clock profits. What a schedule means stays what the rules of time say, so
//! * a schedule is run like that only if it cannot deadlock when everybody waits: it is proved before;
//! * the model clock, to which both ends of a transfer contribute, is carried by a repetition of its own, in which everybody waits.

use super::element::Element;
use super::executor::{Failure, Setting, overdue};
use super::program::{Program, RankProgram};
use super::transfer::{Due, INLINE_BYTES, Intake, RankMemory, Received, Slots, Wire};
use super::wait::{Stop, Waiter};
use crate::cost::CostModel;
use crate::error::ErrorKind;
use crate::schedule::{Schedule, Span, Step, total_len};
use crate::simulate::Prepared;
use crate::simulate::turns::one_after_another;

/// Longest message, in bytes, that `ranks` ranks on `cores` cores put down.
///
/// Where every rank has a core, a second copy soon takes longer than the answer. Where they share cores, it saves turns, of which each takes the longer the
/// more ranks go round; what they hold so must stay in the caches. As measured with 2, 4 and 8 ranks a core.
pub(crate) fn longest_message(ranks: usize, cores: usize) -> usize {
    const ALONE: usize = 1 << 10;
    const LEAST: usize = 8 << 10;
    const MOST: usize = 32 << 10;
    if ranks <= cores {
        return ALONE;
    }
    let each = ranks / cores.max(1);
    (each.saturating_mul(each) << 10).clamp(LEAST, MOST)
}

/// Most memory for all buffers of a run.
const MOST_BYTES: usize = 64 << 20;

/// The buffers of a run, and what each rank does with them.
#[derive(Debug)]
pub(super) struct Eager {
    slots: Slots,
    /// For each rank its steps, in the order in which it does them.
    acts: Vec<Vec<Act>>,
}

#[derive(Debug, Clone, Copy)]
struct Act {
    step: u32,
    /// Where its message is put down, if it sends one.
    slot: u32,
}

impl Eager {
    /// Buffers for `schedule`, unless a message has more than `longest` bytes, or it could deadlock.
    pub(super) fn of<T: Element>(
        schedule: &Schedule,
        program: &Program<'_>,
        cost: &CostModel,
        longest: usize,
    ) -> Option<Eager> {
        let bytes = |step: &Step| step.len().saturating_mul(size_of::<T>());
        let sends = || schedule.programs().iter().flatten().filter(|s| s.is_send());
        if sends().any(|s| bytes(s) > longest) {
            return None;
        }
        let prepared = Prepared::new(schedule, cost.overlap).ok()?;
        let simulation = prepared.try_simulate(cost, size_of::<T>() as u64).ok()?;
        // The longest message of each lane, in lines of memory.
        let mut lines = vec![[0u32; 2]; program.wires.len()];
        let lane = |rank: usize, i: usize| {
            let program = &program.ranks[rank];
            let peer = program.steps[i]
                .peer()
                .filter(|_| program.steps[i].is_send())?;
            Some((program.wire[i] as usize, usize::from(rank > peer)))
        };
        for (rank, steps) in schedule.programs().iter().enumerate() {
            for (i, step) in steps.iter().enumerate() {
                if let Some((wire, way)) = lane(rank, i)
                    && bytes(step) > INLINE_BYTES
                {
                    let needed = Slots::lines(bytes(step));
                    lines[wire][way] = lines[wire][way].max(needed);
                }
            }
        }
        let mut first = vec![[0u32; 2]; lines.len()];
        let mut end = 0u32;
        for (lines, first) in lines.iter().flatten().zip(first.iter_mut().flatten()) {
            *first = end;
            end = end.checked_add(*lines)?;
        }
        if Slots::bytes(end) > MOST_BYTES {
            return None;
        }
        let ports = schedule.ports();
        let acts = |rank: usize| {
            let program = &program.ranks[rank];
            let (steps, order) = (program.steps, &program.order);
            let wire = |i: usize| program.wire[i] as usize;
            let order = one_after_another(rank, steps, order, &simulation, ports, wire)?;
            let act = |step| Act {
                step,
                slot: lane(rank, step as usize).map_or(0, |(wire, way)| first[wire][way]),
            };
            Some(order.into_iter().map(act).collect())
        };
        Some(Eager {
            slots: Slots::new(end),
            acts: (0..schedule.ranks()).map(acts).collect::<Option<_>>()?,
        })
    }

    /// Runs the program of `rank` once; `run` numbers the repetitions of the team's life, and `at` is always the step being worked on.
    ///
    /// That a partner has left need not be looked for: a rank leaves when its program is done, and all messages that it sends stand ready then.
    pub(super) fn run<T: Element>(
        &self,
        rank: usize,
        program: &RankProgram<'_>,
        setting: &Setting<'_, T>,
        memory: &mut RankMemory<'_, '_, T>,
        run: u64,
        at: &mut usize,
    ) -> Result<(), Failure> {
        /// Who has nothing to do but to take one message, as most have in a broadcast, has begun at about the same time as who sends it: the
        /// message is likely to be there in a fraction of the time that giving up the core takes.
        const A_MOMENT: u32 = 15;
        let mut waiter = Waiter::new(setting.crowd, rank, setting.deadline, false);
        let acts = self.acts[rank].as_slice();
        for act in acts {
            let i = act.step as usize;
            *at = i;
            let step = &program.steps[i];
            let wire = || &setting.wires[program.wire[i] as usize];
            if let (Step::Recv { from, .. }, [_]) = (step, acts)
                && !setting.crowd.share_a_core(rank, *from)
            {
                let lane = wire().lane(*from, rank);
                for _ in 0..A_MOMENT {
                    if lane.is_offered() {
                        break;
                    }
                    std::hint::spin_loop();
                }
            }
            let mut wait = |stirs: &dyn Fn() -> bool| {
                waiter
                    .pause(None)
                    .map_err(|stop| stopped(stop, rank, i, step))?;
                waiter.spin(stirs);
                Ok(())
            };
            match step {
                Step::Send { to, spans, .. } => {
                    let lane = wire().lane(rank, *to);
                    while !lane.is_free() {
                        wait(&|| lane.is_free())?;
                    }
                    memory.post(lane, spans, &self.slots, act.slot);
                    setting.crowd.wake(*to);
                }
                Step::Recv { from, spans, .. } => {
                    let (wire, lane) = (wire(), wire().lane(*from, rank));
                    while !take(memory, wire, spans, Intake::Store, rank, i, *from)? {
                        wait(&|| lane.is_offered())?;
                    }
                    setting.crowd.wake(*from);
                }
                Step::RecvCombine {
                    from, spans, order, ..
                } => {
                    let (wire, lane) = (wire(), wire().lane(*from, rank));
                    let intake = Intake::Combine(setting.operator, *order);
                    while !take(memory, wire, spans, intake, rank, i, *from)? {
                        wait(&|| lane.is_offered())?;
                    }
                    setting.crowd.wake(*from);
                }
                Step::Copy { src, dst } => memory.local(dst, src, Intake::Store),
                Step::Combine { src, dst, order } => {
                    memory.local(dst, src, Intake::Combine(setting.operator, *order));
                }
            }
            waiter.moved();
        }
        setting.crowd.leave(rank, run);
        Ok(())
    }
}

/// Takes in the message of step `i`, if it stands ready.
#[inline]
fn take<T: Element>(
    memory: &mut RankMemory<'_, '_, T>,
    wire: &Wire,
    spans: &[Span],
    intake: Intake<'_, T>,
    rank: usize,
    i: usize,
    from: usize,
) -> Result<bool, Failure> {
    /// The model clock is another repetition's.
    const NO_CLOCK: Due = Due {
        ready: 0.0,
        takes: 0.0,
    };
    match memory.receive(wire, from, spans, intake, false, NO_CLOCK) {
        Received::Done(_) => Ok(true),
        Received::Nothing => Ok(false),
        // Its sender reports why.
        Received::Spoilt => Err(Failure::Aborted),
        Received::Length(found) => Err(Failure::Own(
            ErrorKind::Length {
                rank,
                step: i,
                peer: from,
                port: 0,
                expected: total_len(spans),
                found,
            }
            .into(),
        )),
    }
}

#[cold]
fn stopped(stop: Stop, rank: usize, i: usize, step: &Step) -> Failure {
    match stop {
        Stop::Aborted => Failure::Aborted,
        Stop::Deadline => Failure::Own(overdue(rank, i, step)),
    }
}
