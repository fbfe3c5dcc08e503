//! The ports that a rank's open transfers hold.

use crate::machine::Ports;
use crate::schedule::Step;

/// By port list that the rank really has: the partner of the open transfer that holds it.
#[derive(Debug)]
pub(super) struct HeldPorts {
    ports: Ports,
    partners: Vec<Option<usize>>,
}

impl HeldPorts {
    /// For a rank with `ports`, none of which is held.
    pub(super) fn new(ports: Ports) -> Self {
        HeldPorts {
            ports,
            partners: vec![None; ports.lists()],
        }
    }

    /// Holds the port of `step`, a transfer. False if the port is held already, in a call with
    /// another partner, or does not exist.
    pub(super) fn hold(&mut self, step: &Step) -> bool {
        if step.port().unwrap_or(0) >= self.ports.k() {
            return false;
        }
        let list = self.list(step);
        let is_called = self.ports.has_calls()
            && self.partners[Ports::opposite(list)].is_some_and(|other| step.peer() != Some(other));
        if is_called || self.partners[list].is_some() {
            return false;
        }
        self.partners[list] = step.peer();
        true
    }

    /// Releases the port of `step`, which holds it.
    pub(super) fn release(&mut self, step: &Step) {
        let list = self.list(step);
        self.partners[list] = None;
    }

    pub(super) fn clear(&mut self) {
        self.partners.fill(None);
    }

    fn list(&self, step: &Step) -> usize {
        self.ports.list(step.is_send(), step.port().unwrap_or(0))
    }
}
