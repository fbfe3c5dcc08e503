//! Schedules that need not be stored: each rank's program is generated as an iterator, so that a
//! million ranks need no million lists.

use super::{Layout, Schedule, SharedPort, Step};
use crate::error::Result;
use crate::machine::Ports;
use crate::schedule::collective::Collective;

/// The programs of all ranks, rank by rank and step by step, without storing them.
///
/// A [`Schedule`] is a source, too. [`simulate::stream`](crate::simulate::stream) computes the
/// model time of any source.
///
/// Every method is a pure function: each call with the same rank gives the same result. Ranks are
/// below [`ranks`](ScheduleSource::ranks); for others a method may panic, as that of a [`Schedule`]
/// does.
///
/// ```
/// use oneport::schedule::ScheduleSource;
/// use oneport::{Collective, CostModel, Layout, Ports, Span, Step, simulate};
///
/// /// Rank 0 sends one element to each of the others in turn.
/// struct Star(usize);
///
/// impl ScheduleSource for Star {
///     type Program<'a> = Box<dyn Iterator<Item = Step> + 'a>;
///
///     fn ranks(&self) -> usize {
///         self.0
///     }
///
///     fn ports(&self) -> Ports {
///         Ports::UNI
///     }
///
///     fn collective(&self) -> Collective {
///         Collective::Broadcast { root: 0 }
///     }
///
///     fn layout_of(&self, rank: usize) -> Layout {
///         let one = Span::new(0, 1);
///         let input = (rank == 0).then_some(one);
///         Layout { len: 1, input: input.into_iter().collect(), output: one.into() }
///     }
///
///     fn program_of(&self, rank: usize) -> Self::Program<'_> {
///         let one = Span::new(0, 1);
///         match rank {
///             0 => Box::new((1..self.0).map(move |to| Step::send(to, one))),
///             _ => Box::new(std::iter::once(Step::recv(0, one))),
///         }
///     }
/// }
///
/// let timed = simulate::stream(&Star(1000), &CostModel::new(2.0, 1.0), 1, |_| ())?;
/// assert_eq!((timed.time, timed.rounds, timed.messages), (999.0 * 3.0, 999, 999));
/// assert_eq!(Star(5).materialize()?.steps(), 8);
/// # Ok::<(), oneport::Error>(())
/// ```
pub trait ScheduleSource {
    /// The steps of one rank.
    type Program<'a>: Iterator<Item = Step>
    where
        Self: 'a;

    /// Number of ranks, at least 1.
    fn ranks(&self) -> usize;

    /// The port model of every rank.
    fn ports(&self) -> Ports;

    /// The collective that the programs perform.
    fn collective(&self) -> Collective;

    /// The buffer of rank `rank`, with where its input and output are.
    fn layout_of(&self, rank: usize) -> Layout;

    /// The buffer length of rank `rank` in elements, as in its layout. Implementations can compute
    /// it without listing the layout, as this default does.
    #[doc(hidden)]
    fn buffer_len(&self, rank: usize) -> usize {
        self.layout_of(rank).len
    }

    /// The program of rank `rank`, in order. Making the iterator should take constant time.
    fn program_of(&self, rank: usize) -> Self::Program<'_>;

    /// Whether all ranks do the same, so that the times of two ranks are those of all wherever
    /// links cost the same and computation does not overlap communication: their programs differ
    /// only in their peers and in where their data are. The n-th message that a rank sends is the
    /// n-th that its partner receives. On unidirectional ports, of which there is one, each send of
    /// rank 0 comes directly before a receive; a partner may receive first and send then.
    ///
    /// Without an implementation nothing is known about that.
    fn is_uniform(&self) -> bool {
        false
    }

    /// The ports that ranks share; without an implementation there are none.
    fn shared_ports(&self) -> &[SharedPort] {
        &[]
    }

    /// Stores the source as a schedule, which can be checked, run and written. Time and memory are
    /// linear in the number of ranks, steps and spans. Errors are those of [`Schedule::new`] and
    /// [`Schedule::with_shared_ports`].
    fn materialize(&self) -> Result<Schedule> {
        let ranks = 0..self.ranks();
        Schedule::new(
            self.ports(),
            self.collective(),
            ranks.clone().map(|r| self.layout_of(r)).collect(),
            ranks.map(|r| self.program_of(r).collect()).collect(),
        )?
        .with_shared_ports(self.shared_ports().to_vec())
    }
}

/// A [`ScheduleSource`] as a trait object. What times and bounds programs takes this, so that it is
/// compiled once, and not once for each type of source.
pub trait DynScheduleSource {
    fn ranks(&self) -> usize;

    fn ports(&self) -> Ports;

    fn collective(&self) -> Collective;

    fn layout_of(&self, rank: usize) -> Layout;

    fn buffer_len(&self, rank: usize) -> usize;

    fn program_of(&self, rank: usize) -> Box<dyn Iterator<Item = Step> + '_>;

    fn is_uniform(&self) -> bool;

    fn shared_ports(&self) -> &[SharedPort];

    fn materialize(&self) -> Result<Schedule>;
}

impl<P: ScheduleSource> DynScheduleSource for P {
    fn ranks(&self) -> usize {
        ScheduleSource::ranks(self)
    }

    fn ports(&self) -> Ports {
        ScheduleSource::ports(self)
    }

    fn collective(&self) -> Collective {
        ScheduleSource::collective(self)
    }

    fn layout_of(&self, rank: usize) -> Layout {
        ScheduleSource::layout_of(self, rank)
    }

    fn buffer_len(&self, rank: usize) -> usize {
        ScheduleSource::buffer_len(self, rank)
    }

    fn program_of(&self, rank: usize) -> Box<dyn Iterator<Item = Step> + '_> {
        Box::new(ScheduleSource::program_of(self, rank))
    }

    fn is_uniform(&self) -> bool {
        ScheduleSource::is_uniform(self)
    }

    fn shared_ports(&self) -> &[SharedPort] {
        ScheduleSource::shared_ports(self)
    }

    fn materialize(&self) -> Result<Schedule> {
        ScheduleSource::materialize(self)
    }
}

impl ScheduleSource for Schedule {
    type Program<'a> = std::iter::Cloned<std::slice::Iter<'a, Step>>;

    fn ranks(&self) -> usize {
        self.programs.len()
    }

    fn ports(&self) -> Ports {
        self.ports
    }

    fn collective(&self) -> Collective {
        self.collective.clone()
    }

    fn layout_of(&self, rank: usize) -> Layout {
        self.layout[rank].clone()
    }

    fn buffer_len(&self, rank: usize) -> usize {
        self.layout[rank].len
    }

    fn program_of(&self, rank: usize) -> Self::Program<'_> {
        self.programs[rank].iter().cloned()
    }

    fn shared_ports(&self) -> &[SharedPort] {
        &self.shared_ports
    }

    fn materialize(&self) -> Result<Schedule> {
        Ok(self.clone())
    }
}
