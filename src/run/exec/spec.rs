//! What a place is asked to run, without the element type: the checks that all places share.

use std::time::Duration;

use super::options::RunOptions;
use super::program::Program;
use crate::error::{Error, Result};
use crate::run::context::{RunContext, ensure_ends};
use crate::run::element::Element;
#[cfg(feature = "mpi")]
use crate::run::element::ElementType;
#[cfg(feature = "mpi")]
use crate::run::op::Op;
use crate::run::operator::Operator;
use crate::run::transfer::{Combiner, Copying};
use crate::run::tuning::MAX_RECORDS;
use crate::schedule::Schedule;

/// A run without its element type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunSpec<'r> {
    pub(crate) schedule: &'r Schedule,
    pub(crate) options: &'r RunOptions,
    pub(crate) combiner: Combiner<'r>,
    pub(crate) operator: OperatorSpec<'r>,
    #[cfg(feature = "mpi")]
    pub(crate) element: ElementSpec,
    /// Whether outputs are compared.
    pub(crate) verified: bool,
}

/// What is to be known of an operator besides what it computes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OperatorSpec<'r> {
    pub(crate) name: &'r str,
    #[cfg(feature = "mpi")]
    pub(crate) built_in: Option<Op>,
    #[cfg(feature = "mpi")]
    pub(crate) commutes: bool,
}

/// The names of an element type.
#[cfg(feature = "mpi")]
#[derive(Debug, Clone, Copy)]
pub(crate) struct ElementSpec {
    pub(crate) rust_name: &'static str,
    pub(crate) own: Option<ElementType>,
}

#[cfg(feature = "mpi")]
impl ElementSpec {
    pub(crate) fn of<T: Element>() -> Self {
        ElementSpec {
            rust_name: std::any::type_name::<T>(),
            own: ElementType::of::<T>(),
        }
    }

    /// Which of this crate's types they have: values of another may be addresses, which mean
    /// nothing to another process.
    pub(crate) fn own(&self) -> Result<ElementType> {
        self.own.ok_or_else(|| {
            Error::usage(format!(
                "{}: only the element types of this crate can leave a process",
                self.rust_name
            ))
        })
    }
}

impl<'r> RunSpec<'r> {
    pub(super) fn new<T: Element>(
        schedule: &'r Schedule,
        options: &'r RunOptions,
        operator: &'r Operator<T>,
        verified: bool,
    ) -> Self {
        RunSpec {
            schedule,
            options,
            combiner: Combiner::of(operator),
            operator: OperatorSpec {
                name: operator.name(),
                #[cfg(feature = "mpi")]
                built_in: operator.op(),
                #[cfg(feature = "mpi")]
                commutes: operator.commutes(),
            },
            #[cfg(feature = "mpi")]
            element: ElementSpec::of::<T>(),
            verified,
        }
    }

    /// Bytes of an element in memory; model times take [`Schedule::element_bytes`].
    pub(crate) fn element_bytes(&self) -> u64 {
        self.combiner.elements.bytes as u64
    }

    /// Refuses what no place runs.
    pub(crate) fn validate(&self) -> Result<()> {
        let RunOptions { cost, .. } = self.options;
        cost.validate()?;
        cost.covers(self.schedule.ranks())?;
        self.schedule.ensure_links(cost)?;
        ensure_ends("the last rank arrives", cost.last_arrival())?;
        if self.options.repetitions == 0 {
            return Err(Error::usage("0 repetitions"));
        }
        let (given, bytes) = (self.schedule.element_bytes(), self.element_bytes());
        if given != 1 && given != bytes {
            return Err(Error::usage(format!(
                "the schedule is for elements of {given} bytes, the elements of this run have {bytes}"
            )));
        }
        if let Some(ports) = self.options.ports {
            ports.validate()?;
        }
        if self.operator.name.is_empty() {
            return Err(Error::usage("an operator without a name"));
        }
        Ok(())
    }

    /// Number of repetitions whose buffers are filled and compared, and of those that are not
    /// timed, if the first `clocked` carry the model clock.
    pub(crate) fn filled_and_warmup(&self, clocked: usize) -> (usize, usize) {
        let warmup = self.options.warmup.max(clocked);
        if self.options.keep_inputs {
            (clocked + 1, warmup.max(clocked + 1))
        } else {
            (usize::MAX, warmup)
        }
    }

    /// The number of all repetitions, `warmup` of which are not timed, if the start and end of each
    /// can be kept for each of `count` threads or processes, as `who` says.
    pub(crate) fn repetitions(&self, warmup: usize, count: usize, who: &str) -> Result<usize> {
        let timed = self.options.repetitions;
        let all = warmup.checked_add(timed);
        let records = all.and_then(|all| all.checked_mul(count));
        match (all, records) {
            (Some(all), Some(records)) if records <= MAX_RECORDS => Ok(all),
            _ => Err(Error::usage(format!(
                "{timed} repetitions after {warmup} that are not counted are too many: of {count} {who}, {} are recorded at most",
                MAX_RECORDS / count.max(1)
            ))),
        }
    }

    /// The schedule, prepared for execution by [`Program::new`].
    pub(crate) fn program(&self) -> Result<Program<'r>> {
        Program::new(self.schedule, self.options.cost.overlaps())
    }

    /// Whether the ranks really have the ports of the schedule.
    pub(crate) fn has_own_ports(&self) -> bool {
        let ports = self.schedule.ports();
        self.options.ports.is_none_or(|p| p == ports)
    }

    /// What all ranks share, with `patience` beyond the deadline.
    pub(crate) fn context(&self, patience: Duration, copying: Copying) -> RunContext<'r> {
        let (schedule, options) = (self.schedule, self.options);
        let deadline = options.deadline.saturating_add(patience);
        RunContext {
            enforced: options.ports.unwrap_or(schedule.ports()),
            element_bytes: schedule.element_bytes(),
            ..RunContext::new(
                self.combiner,
                &options.cost,
                schedule.ports(),
                options.clock,
                deadline,
                copying,
            )
        }
    }

    /// Bytes of all ranks' buffers together.
    pub(crate) fn buffer_bytes(&self) -> usize {
        let lengths = self.schedule.layout().iter().map(|l| l.len);
        let elements = lengths.fold(0, usize::saturating_add);
        elements.saturating_mul(self.combiner.elements.bytes)
    }
}
