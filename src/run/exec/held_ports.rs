//! The ports that a rank's open transfers hold.

use crate::machine::Ports;
use crate::rules::share_port;
use crate::schedule::Step;

/// The open transfers of a rank, on the ports that it really has.
#[derive(Debug)]
pub(super) struct HeldPorts<'r> {
    ports: Ports,
    /// By number of the port: the open receive and the open send. No other port is looked at,
    /// because a run with 64 ports takes twice as long if all are.
    held: Vec<[Option<&'r Step>; 2]>,
}

impl<'r> HeldPorts<'r> {
    /// For a rank with `ports`, none of which is held.
    pub(super) fn new(ports: Ports) -> Self {
        HeldPorts {
            ports,
            held: vec![[None; 2]; ports.k()],
        }
    }

    /// Holds the port of `step`, a transfer. False if the port does not exist, or is held by an
    /// open transfer that `step` waits for (rule 1).
    pub(super) fn hold(&mut self, step: &'r Step) -> bool {
        let Some(held) = self.held.get_mut(step.port().unwrap_or(0)) else {
            return false;
        };
        let mut open = held.iter().flatten();
        if open.any(|open| share_port(self.ports, open, step)) {
            return false;
        }
        held[usize::from(step.is_send())] = Some(step);
        true
    }

    /// Releases the port of `step`, which holds it.
    pub(super) fn release(&mut self, step: &Step) {
        self.held[step.port().unwrap_or(0)][usize::from(step.is_send())] = None;
    }

    pub(super) fn clear(&mut self) {
        self.held.fill([None; 2]);
    }
}
