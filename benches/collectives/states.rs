//! The states of the machine, each with a calibration of its own.
//!
//! A host may move two virtual cores closer together or further apart within seconds, which changes
//! the time of a message by a factor of up to four. So a short message is timed before and after
//! each batch of repetitions. If both times agree, the batch counts in the state in which that
//! message took as long, and is compared with this state's model; a state that is new is calibrated
//! first. If they do not agree, the batch is left out.

use std::cell::{Cell, RefCell};

use oneport::run::{Run, Team};
use oneport::{CostModel, Schedule};
use oneport_measure::{Calibration, Profile, calibrate};

/// Two times of the same message whose ratio is larger are of different states.
const SAME: f64 = 1.25;
/// Limit for the number of calibrations. A machine with other load has ever new states.
const MAX_CALIBRATIONS: usize = 6;
/// Bytes of the short message.
const BYTES: usize = 8;

/// A state that was calibrated.
pub(crate) struct State {
    pub(crate) profile: Profile,
    pub(crate) cost: CostModel,
    /// Half a ping-pong of the short message, in nanoseconds.
    message_ns: f64,
}

/// The states, in the order in which they were seen.
pub(crate) struct States {
    known: RefCell<Vec<State>>,
    calibrations: Cell<usize>,
    /// The state of each batch; none if the cores moved meanwhile, or the state is not known.
    batches: RefCell<Vec<Option<usize>>>,
}

impl States {
    /// Calibrates the first state; without one, there are no model times.
    pub(crate) fn new(quick: bool) -> States {
        let states = States {
            known: RefCell::default(),
            calibrations: Cell::new(0),
            batches: RefCell::default(),
        };
        if let Ok(mut team) = Team::new(2) {
            states.calibrate(&mut team, quick);
        }
        states
    }

    /// The calibration of this state, if it is known.
    pub(crate) fn with<T>(&self, state: usize, read: impl FnOnce(&State) -> T) -> Option<T> {
        self.known.borrow().get(state).map(read)
    }

    /// The state of a batch that `team` has run, before which the short message took `before_ns`.
    pub(crate) fn after(&self, team: &mut Team, before_ns: f64) -> Option<usize> {
        let after_ns = message_ns(team);
        let mut state = None;
        if is_same(before_ns, after_ns) {
            state = self.nearest(after_ns);
            if state.is_none() && self.calibrations.get() < MAX_CALIBRATIONS {
                self.calibrate(team, true);
                state = self.nearest(after_ns);
            }
        }
        self.batches.borrow_mut().push(state);
        state
    }

    /// The known state in which the short message takes about as long.
    fn nearest(&self, message_ns: f64) -> Option<usize> {
        let known = self.known.borrow();
        let near = known.iter().enumerate();
        let near = near.map(|(i, state)| (i, factor(state.message_ns, message_ns)));
        let nearest = near.min_by(|a, b| a.1.total_cmp(&b.1))?;
        (nearest.1 <= SAME).then_some(nearest.0)
    }

    /// Calibrates the present state, unless it changes meanwhile.
    fn calibrate(&self, team: &mut Team, quick: bool) {
        self.calibrations.set(self.calibrations.get() + 1);
        let options = Calibration {
            quick,
            ..Calibration::default()
        };
        let before_ns = message_ns(team);
        let calibrated = calibrate(&options, |_, _| {}).and_then(|profile| {
            let cost = profile.cost()?;
            Ok((profile, cost))
        });
        let message_ns = message_ns(team);
        match calibrated {
            Err(reason) => println!("no calibration: {reason}"),
            Ok(_) if !is_same(before_ns, message_ns) => {
                println!(
                    "no calibration: a message took {before_ns:.0} ns before it and {message_ns:.0} ns after it"
                );
            }
            // Meanwhile the machine has gone back to a state that it was in before.
            Ok(_) if self.nearest(message_ns).is_some() => {}
            Ok((profile, cost)) => self.known.borrow_mut().push(State {
                profile,
                cost,
                message_ns,
            }),
        }
    }

    /// Which states there were, and which of them each half of the run was in.
    pub(crate) fn describe(&self) -> Vec<String> {
        let (known, batches) = (self.known.borrow(), self.batches.borrow());
        if known.is_empty() || batches.is_empty() {
            return Vec::new();
        }
        let name = |state: &State| format!("{:.0} ns", state.message_ns);
        let half = |batches: &[Option<usize>]| {
            let share = |state| {
                let n = batches.iter().filter(|&&batch| batch == state).count();
                format!("{:.0}%", 100.0 * n as f64 / batches.len().max(1) as f64)
            };
            let states = known.iter().enumerate();
            let mut parts: Vec<_> = states
                .map(|(i, state)| format!("{} {}", name(state), share(Some(i))))
                .collect();
            parts.push(format!("moving {}", share(None)));
            parts.join(", ")
        };
        let (first, second) = batches.split_at(batches.len() / 2);
        vec![
            format!(
                "half a ping-pong of {BYTES} B, timed before and after each batch, took {}: each state has its own calibration",
                known.iter().map(name).collect::<Vec<_>>().join(" or ")
            ),
            format!("  batches of the first half: {}", half(first)),
            format!("  batches of the second half: {}", half(second)),
        ]
    }
}

/// Half a ping-pong of the short message between the first two ranks: the median of a few.
pub(crate) fn message_ns(team: &mut Team) -> f64 {
    const REPETITIONS: usize = 100;
    let elements = 0..BYTES / size_of::<f32>();
    // Back again from the same elements: the second message waits for the first one.
    let mut builder = Schedule::broadcast(team.ranks(), elements.len());
    builder.transfer(0, 1, elements.clone());
    builder.transfer(1, 0, elements);
    let ping_pong = builder.build().expect("two steps a rank");
    let run = Run::<f32>::new(&ping_pong)
        .repetitions(REPETITIONS)
        .warmup(10);
    let outcome = run.on(team).expect("two messages");
    outcome.wall.median_ns() as f64 / 2.0
}

fn factor(a: f64, b: f64) -> f64 {
    (a / b).max(b / a)
}

fn is_same(a: f64, b: f64) -> bool {
    factor(a, b) <= SAME
}
