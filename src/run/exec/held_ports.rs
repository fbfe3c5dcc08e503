//! The ports that a rank's open transfers hold.

use crate::machine::Ports;
use crate::schedule::Step;

/// By port that the rank really has: whether an open transfer holds it.
#[derive(Debug)]
pub(super) struct HeldPorts {
    ports: Ports,
    held: Vec<bool>,
}

impl HeldPorts {
    /// For a rank with `ports`, none of which is held.
    pub(super) fn new(ports: Ports) -> Self {
        HeldPorts {
            ports,
            held: vec![false; ports.lists()],
        }
    }

    /// Holds the port of `step`, a transfer. False if the port is held already or does not exist.
    pub(super) fn hold(&mut self, step: &Step) -> bool {
        if step.port().unwrap_or(0) >= self.ports.k() {
            return false;
        }
        let list = self.list(step);
        !std::mem::replace(&mut self.held[list], true)
    }

    /// Releases the port of `step`, which holds it.
    pub(super) fn release(&mut self, step: &Step) {
        let list = self.list(step);
        self.held[list] = false;
    }

    pub(super) fn clear(&mut self) {
        self.held.fill(false);
    }

    fn list(&self, step: &Step) -> usize {
        self.ports.list(step.is_send(), step.port().unwrap_or(0))
    }
}
