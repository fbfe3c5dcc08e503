//! The ports of a rank: how many transfers it can take part in at once, and in which directions.

use std::ops::Range;

use crate::error::{Error, Result};

/// How many transfers a rank can take part in at once.
///
/// A *unidirectional* rank has `k` ports, each of which either sends or receives. A *bidirectional*
/// rank has `k` ports out and `k` ports in. A *telephone* rank has `k` ports, each of which calls
/// one partner at a time and sends to it and receives from it at once. The one-ported model is
/// `k = 1`: [`Ports::UNI`], [`Ports::BI`] and [`Ports::TELEPHONE`].
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
    /// `k` ports for calls, in which both partners may send to each other at once.
    Telephone {
        /// Number of ports.
        k: usize,
    },
}

impl Ports {
    /// One port for both directions.
    pub const UNI: Ports = Ports::Unidirectional { k: 1 };
    /// One port for sending and one for receiving.
    pub const BI: Ports = Ports::Bidirectional { k: 1 };
    /// One port for calls.
    pub const TELEPHONE: Ports = Ports::Telephone { k: 1 };

    /// The kinds of ports, one of each.
    #[doc(hidden)]
    pub const KINDS: [Ports; 3] = [Ports::UNI, Ports::BI, Ports::TELEPHONE];

    /// Their names.
    #[doc(hidden)]
    pub const NAMES: &[&str] = &{
        let [uni, bi, telephone] = Ports::KINDS;
        [uni.name(), bi.name(), telephone.name()]
    };

    /// What help has in place of one of them.
    #[doc(hidden)]
    pub const USAGE: &str = "uni|bi|telephone";

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
            Ports::Unidirectional { k } | Ports::Bidirectional { k } | Ports::Telephone { k } => k,
        }
    }

    /// The same kind of ports, with `k` of each.
    pub fn with_k(self, k: usize) -> Ports {
        match self {
            Ports::Unidirectional { .. } => Ports::Unidirectional { k },
            Ports::Bidirectional { .. } => Ports::Bidirectional { k },
            Ports::Telephone { .. } => Ports::Telephone { k },
        }
    }

    /// Whether a rank can send to one partner and receive from another at once: sending and
    /// receiving use different ports. It can then also exchange: planners of rounds in which two
    /// ranks exchange ask this, and are offered only ports that wait by list.
    pub fn can_relay(self) -> bool {
        match self {
            Ports::Bidirectional { .. } => true,
            Ports::Unidirectional { .. } | Ports::Telephone { .. } => false,
        }
    }

    /// Whether a rank can send to a partner and receive from it at once.
    pub fn can_exchange(self) -> bool {
        match self {
            Ports::Bidirectional { .. } | Ports::Telephone { .. } => true,
            Ports::Unidirectional { .. } => false,
        }
    }

    /// Whether a transfer waits for those of its own list alone (rule 1).
    #[doc(hidden)]
    pub fn waits_by_list(self) -> bool {
        match self {
            Ports::Unidirectional { .. } | Ports::Bidirectional { .. } => true,
            Ports::Telephone { .. } => false,
        }
    }

    /// Whether programs that are planned for the ports `used` take the same time on these. They do
    /// not where a transfer waits on one of the two and need not on the other.
    pub(crate) fn times_as(self, used: Ports) -> bool {
        let frees_a_direction = self.can_exchange() && !used.can_exchange();
        self == used || (self.waits_by_list() && !frees_a_direction)
    }

    /// Whether the lists of a port wait for each other, except for steps with the same partner.
    #[doc(hidden)]
    pub fn has_calls(self) -> bool {
        match self {
            Ports::Telephone { .. } => true,
            Ports::Unidirectional { .. } | Ports::Bidirectional { .. } => false,
        }
    }

    /// `"uni"`, `"bi"` or `"telephone"`, as in files and options.
    pub const fn name(self) -> &'static str {
        match self {
            Ports::Unidirectional { .. } => "uni",
            Ports::Bidirectional { .. } => "bi",
            Ports::Telephone { .. } => "telephone",
        }
    }

    /// One port of the kind with this name: see [`Ports::name`].
    #[doc(hidden)]
    pub fn named(name: &str) -> Option<Ports> {
        let mut kinds = Ports::KINDS.into_iter();
        kinds.find(|ports| ports.name() == name)
    }

    /// `"unidirectional ports"`, `"2 telephone ports each"`.
    #[doc(hidden)]
    pub fn in_words(self) -> String {
        match self.k() {
            1 => format!("{} ports", self.adjective()),
            k => format!("{k} {} ports each", self.adjective()),
        }
    }

    pub(crate) fn adjective(self) -> &'static str {
        match self {
            Ports::Unidirectional { .. } => "unidirectional",
            Ports::Bidirectional { .. } => "bidirectional",
            Ports::Telephone { .. } => "telephone",
        }
    }

    /// Number of port lists of a rank. The steps of one list run one after another; different lists
    /// run concurrently, but for those of a port for calls, where only the two directions of one
    /// call do.
    pub fn lists(self) -> usize {
        match self {
            Ports::Unidirectional { k } => k,
            Ports::Bidirectional { k } | Ports::Telephone { k } => 2 * k,
        }
    }

    // Where each direction has its own list, those of port `n` are `2 n` (out) and `2 n + 1` (in);
    // else list `n` is that of port `n`. So it is in `list`, `may_wait_for` and `side`.

    /// The port list of a send (`sends`) or a receive on port number `port`, counted from 0.
    pub fn list(self, sends: bool, port: usize) -> usize {
        match self {
            Ports::Unidirectional { .. } => port,
            Ports::Bidirectional { .. } | Ports::Telephone { .. } => 2 * port + usize::from(!sends),
        }
    }

    /// The lists of all steps that a step of `list` may wait for (rule 1). For which of these steps
    /// it does, `rules::share_port` says.
    pub(crate) fn may_wait_for(self, list: usize) -> Range<usize> {
        match self {
            Ports::Unidirectional { .. } | Ports::Bidirectional { .. } => list..list + 1,
            Ports::Telephone { .. } => list / 2 * 2..list / 2 * 2 + 2,
        }
    }

    /// Whether sends and receives have lists of their own.
    #[doc(hidden)]
    pub fn has_sides(self) -> bool {
        self.lists() > self.k()
    }

    /// Whether a port has one direction, so that a rank has ports of two kinds.
    pub(crate) fn has_kinds(self) -> bool {
        match self {
            Ports::Bidirectional { .. } => true,
            Ports::Unidirectional { .. } | Ports::Telephone { .. } => false,
        }
    }

    /// The number of the port that a list belongs to, and the direction of the list, `"out"` or
    /// `"in"`, if it serves only one.
    #[doc(hidden)]
    pub fn side(self, list: usize) -> (usize, Option<&'static str>) {
        if self.has_sides() {
            (list / 2, Some(["out", "in"][list % 2]))
        } else {
            (list, None)
        }
    }

    /// The name of a port list: `port`, `out`, `in`, `port 2`, `out 2`, `in 2`.
    #[doc(hidden)]
    pub fn list_name(self, list: usize) -> String {
        let (number, side) = self.side(list);
        let name = side.unwrap_or("port");
        match self.k() {
            1 => name.to_string(),
            _ => format!("{name} {number}"),
        }
    }
}
