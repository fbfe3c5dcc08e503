//! The model clock of one rank's program: when its events happened.

use crate::rules::{Event, max_time};

/// Model times of the events of a program.
#[derive(Debug)]
pub(super) struct EventTimes {
    /// By event; NaN until it has happened.
    times: Vec<f64>,
    /// When the rank arrives.
    arrival: f64,
    last: f64,
}

impl EventTimes {
    /// For a program of `steps` steps, of which nothing has happened, of a rank that arrives at
    /// `arrival`.
    pub(super) fn new(steps: usize, arrival: f64) -> Self {
        EventTimes {
            times: vec![f64::NAN; 2 * steps],
            arrival,
            last: arrival,
        }
    }

    pub(super) fn clear(&mut self) {
        self.times.fill(f64::NAN);
        self.last = self.arrival;
    }

    /// `event` happens at `time`.
    #[inline]
    pub(super) fn set(&mut self, event: Event, time: f64) {
        self.times[event.index()] = time;
        self.last = max_time(self.last, time);
    }

    /// The time of `event`; NaN until it has happened.
    #[inline]
    pub(super) fn of(&self, event: Event) -> f64 {
        self.times[event.index()]
    }

    /// Whether `event` has happened.
    #[inline]
    pub(super) fn has(&self, event: Event) -> bool {
        !self.of(event).is_nan()
    }

    /// The time of the latest of `events`, if all have happened; the arrival if there are none.
    #[inline]
    pub(super) fn all(&self, events: &[Event]) -> Option<f64> {
        let mut latest = self.arrival;
        for &event in events {
            let time = self.of(event);
            if time.is_nan() {
                return None;
            }
            latest = max_time(latest, time);
        }
        Some(latest)
    }
    pub(super) fn last(&self) -> f64 {
        self.last
    }
}
