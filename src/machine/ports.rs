//! The ports of a rank: how many transfers it can take part in at once, and in which directions.

use crate::error::{Error, Result};

/// How many transfers a rank can take part in at once.
///
/// A *unidirectional* rank has `k` ports, each of which either sends or receives. A *bidirectional*
/// rank has `k` ports out and `k` ports in. The one-ported model is `k = 1`: [`Ports::UNI`] and
/// [`Ports::BI`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ports {
    /// `k` ports that serve both directions.
    Unidirectional {
        /// Number of ports.
        k: usize,
    },
    /// `k` ports for sending and `k` ports for receiving.
    Bidirectional {
        /// Number of ports of each kind.
        k: usize,
    },
}

impl Ports {
    /// One port for both directions.
    pub const UNI: Ports = Ports::Unidirectional { k: 1 };
    /// One port for sending and one for receiving.
    pub const BI: Ports = Ports::Bidirectional { k: 1 };

    /// Maximal number of ports of each kind: far more than any machine has, and few enough to keep
    /// one list per port.
    pub const MAX_K: usize = 1 << 12;

    /// Verifies the number of ports. Everything that plans, builds, times or runs a schedule does.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) if there is none, or more than
    /// [`Ports::MAX_K`] of each kind.
    pub fn validate(self) -> Result<()> {
        if (1..=Ports::MAX_K).contains(&self.k()) {
            return Ok(());
        }
        Err(Error::usage(format!(
            "a rank needs at least one port and has at most {} ports of each kind, not {}",
            Ports::MAX_K,
            self.k()
        )))
    }

    /// Number of ports (of each kind, if bidirectional).
    pub fn k(self) -> usize {
        match self {
            Ports::Unidirectional { k } | Ports::Bidirectional { k } => k,
        }
    }

    /// The same kind of ports, with `k` of each.
    pub fn with_k(self, k: usize) -> Ports {
        match self {
            Ports::Unidirectional { .. } => Ports::Unidirectional { k },
            Ports::Bidirectional { .. } => Ports::Bidirectional { k },
        }
    }

    /// Whether sending and receiving use different ports.
    pub fn is_bidirectional(self) -> bool {
        matches!(self, Ports::Bidirectional { .. })
    }

    /// `"uni"` or `"bi"`, as in files and options.
    pub fn name(self) -> &'static str {
        if self.is_bidirectional() { "bi" } else { "uni" }
    }

    /// Number of port lists of a rank. The steps of one list run one after another; different lists
    /// run concurrently.
    pub fn lists(self) -> usize {
        match self {
            Ports::Unidirectional { k } => k,
            Ports::Bidirectional { k } => 2 * k,
        }
    }

    /// The port list of a send (`sends`) or a receive on port number `port`, counted from 0.
    pub fn list(self, sends: bool, port: usize) -> usize {
        match self {
            Ports::Unidirectional { .. } => port,
            Ports::Bidirectional { .. } => 2 * port + usize::from(!sends),
        }
    }
}
