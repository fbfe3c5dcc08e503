//! The ports that a rank's open transfers hold.

use crate::machine::Ports;
use crate::rules::share_port;
use crate::schedule::Step;

/// The open transfers of a rank, on the ports that it really has.
#[derive(Debug)]
pub(super) struct HeldPorts<'r> {
    ports: Ports,
    /// By port list: the open transfer. Only lists that a step may wait for are looked at, because
    /// a run with 64 ports takes twice as long if all are.
    held: Vec<Option<&'r Step>>,
}

impl<'r> HeldPorts<'r> {
    /// For a rank with `ports`, none of which is held.
    pub(super) fn new(ports: Ports) -> Self {
        HeldPorts {
            ports,
            held: vec![None; ports.lists()],
        }
    }

    /// Holds the port of `step`, a transfer. False if the port does not exist, or is held by an
    /// open transfer that `step` waits for (rule 1).
    pub(super) fn hold(&mut self, step: &'r Step) -> bool {
        let list = self.list(step);
        if list >= self.held.len() {
            return false;
        }
        let mut open = self.held[self.ports.may_wait_for(list)].iter().flatten();
        if open.any(|open| share_port(self.ports, open, step)) {
            return false;
        }
        self.held[list] = Some(step);
        true
    }

    /// Releases the port of `step`, which holds it.
    pub(super) fn release(&mut self, step: &Step) {
        let list = self.list(step);
        self.held[list] = None;
    }

    pub(super) fn clear(&mut self) {
        self.held.fill(None);
    }

    fn list(&self, step: &Step) -> usize {
        self.ports.list(step.is_send(), step.port().unwrap_or(0))
    }
}
