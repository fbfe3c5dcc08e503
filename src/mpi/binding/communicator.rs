//! Groups of processes, and what all processes of a group do together.

use std::ffi::c_int;
use std::marker::PhantomData;
use std::time::Duration;

use super::abi::{Handle, Intracommunicator};
use super::library::Mpi;
use crate::error::{Error, Result};
use crate::machine::numbers::id;
use crate::mpi::idle::Idle;
use crate::run::engine::Buffer;
use crate::run::{Element, ElementType, Op};
use crate::schedule::Span;

/// How long processes may take to arrive where all agree on something, unless a run says otherwise:
/// they plan, or compare their results, before.
const PATIENCE: Duration = Duration::from_secs(300);

/// A group of processes with messages of its own.
#[derive(Debug)]
pub(crate) struct Communicator {
    pub(super) mpi: &'static Mpi,
    pub(super) handle: Handle,
    rank: usize,
    size: usize,
    /// Whether the processes of a host outnumber its cores.
    oversubscribed: bool,
    /// How long processes may take to arrive where all agree on something.
    patience: Duration,
    /// It stays on the thread that initialized the library.
    thread: PhantomData<*const ()>,
}

impl Communicator {
    /// All processes of the launch.
    pub(crate) fn world(mpi: &'static Mpi) -> Result<Communicator> {
        Communicator::duplicate_of(mpi, Intracommunicator(mpi.world()))
    }

    /// The processes of a communicator of the program, with messages of their own.
    pub(crate) fn duplicate_of(mpi: &'static Mpi, of: Intracommunicator) -> Result<Communicator> {
        let mut handle = Handle(0);
        // SAFETY: a communicator that exists, and the address of a handle.
        mpi.ok("MPI_Comm_dup", unsafe {
            (mpi.functions.comm_dup)(of.0, &raw mut handle)
        })?;
        Communicator::new(mpi, handle)
    }

    fn new(mpi: &'static Mpi, handle: Handle) -> Result<Communicator> {
        let return_errors = mpi.constants.errors_return;
        // SAFETY: both handles exist.
        mpi.ok("MPI_Comm_set_errhandler", unsafe {
            (mpi.functions.comm_set_errhandler)(handle, return_errors)
        })?;
        let (mut rank, mut size): (c_int, c_int) = (0, 0);
        // SAFETY: the address of an integer.
        mpi.ok("MPI_Comm_rank", unsafe {
            (mpi.functions.comm_rank)(handle, &raw mut rank)
        })?;
        // SAFETY: the address of an integer.
        mpi.ok("MPI_Comm_size", unsafe {
            (mpi.functions.comm_size)(handle, &raw mut size)
        })?;
        let count = |n| usize::try_from(n).map_err(|_| Error::system("a negative rank"));
        Ok(Communicator {
            mpi,
            handle,
            rank: count(rank)?,
            size: count(size)?,
            oversubscribed: false,
            patience: PATIENCE,
            thread: PhantomData,
        })
    }

    /// The processes of this group that share memory with this one, with the same order of ranks.
    pub(crate) fn on_this_host(&self) -> Result<Communicator> {
        let (mpi, mut handle) = (self.mpi, Handle(0));
        let (shared, info) = (mpi.constants.comm_type_shared, mpi.constants.info_null);
        // SAFETY: the address of a handle; the other handles exist.
        mpi.ok("MPI_Comm_split_type", unsafe {
            (mpi.functions.comm_split_type)(self.handle, shared, 0, info, &raw mut handle)
        })?;
        Communicator::new(mpi, handle)
    }

    /// The group of all processes that call with the same `colour`, with the same order of ranks.
    pub(crate) fn split(&self, colour: bool) -> Result<Communicator> {
        let (mpi, mut handle) = (self.mpi, Handle(0));
        // SAFETY: the address of a handle; the other handle exists.
        mpi.ok("MPI_Comm_split", unsafe {
            (mpi.functions.comm_split)(self.handle, c_int::from(colour), 0, &raw mut handle)
        })?;
        let mut part = Communicator::new(mpi, handle)?;
        part.oversubscribed = self.oversubscribed;
        part.patience = self.patience;
        Ok(part)
    }

    /// Has processes give up their cores while they wait.
    pub(crate) fn set_oversubscribed(&mut self, oversubscribed: bool) {
        self.oversubscribed = oversubscribed;
    }

    /// Has processes wait for each other in proportion to `deadline`, the time for one message of a
    /// run: for the default as long as without a run, and never so short that planning ends it.
    pub(crate) fn set_deadline(&mut self, deadline: Duration) {
        const MESSAGES: u32 = 30;
        const MIN: Duration = Duration::from_secs(30);
        self.patience = deadline.saturating_mul(MESSAGES).max(MIN);
    }

    /// The largest tag of a message.
    pub(crate) fn max_tag(&self) -> Result<c_int> {
        /// Every library has at least as many.
        const LEAST: c_int = 32_767;
        let (mpi, mut found) = (self.mpi, 0);
        let mut value: *const c_int = std::ptr::null();
        // SAFETY: the address of a pointer, and of an integer; the world has the attribute.
        mpi.ok("MPI_Comm_get_attr", unsafe {
            let at = (&raw mut value).cast();
            (mpi.functions.comm_get_attr)(mpi.world(), mpi.constants.tag_ub, at, &raw mut found)
        })?;
        if found == 0 || value.is_null() {
            return Ok(LEAST);
        }
        // SAFETY: the library's own integer, which exists as long as the world.
        Ok(unsafe { *value })
    }

    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    /// The name of this process's host.
    pub(crate) fn host(&self) -> String {
        self.mpi.host()
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Waits for all processes, for at most `deadline`.
    pub(crate) fn barrier(&self, deadline: Duration) -> Result<()> {
        let start = |request: &mut Handle| {
            // SAFETY: the address of a request; the handle exists.
            unsafe { (self.mpi.functions.ibarrier)(self.handle, request) }
        };
        self.together("MPI_Ibarrier", deadline, start)
    }

    /// Tells process `to`, which waits in [`Communicator::await_signal`], to go on.
    pub(crate) fn signal(&self, to: usize) -> Result<()> {
        let (byte, none, to) = (self.mpi.constants.u8, std::ptr::null(), count(to)?);
        let start = |request: &mut Handle| {
            // SAFETY: no bytes are sent; the address of a request.
            unsafe { (self.mpi.functions.isend)(none, 0, byte, to, 0, self.handle, request) }
        };
        self.together("MPI_Isend", self.patience, start)
    }

    /// Waits for the signal of process `from`, however long it takes and most of the time asleep.
    pub(crate) fn await_signal(&self, from: usize) -> Result<()> {
        const NAP: Duration = Duration::from_millis(1);
        let (mpi, mut request) = (self.mpi, Handle(0));
        let (byte, none, from) = (mpi.constants.u8, std::ptr::null_mut(), count(from)?);
        // SAFETY: no bytes are received; the address of a request.
        mpi.ok("MPI_Irecv", unsafe {
            (mpi.functions.irecv)(none, 0, byte, from, 0, self.handle, &raw mut request)
        })?;
        while !self.has_ended(&mut request) {
            std::thread::sleep(NAP);
        }
        Ok(())
    }

    /// By element: the largest of all processes' values.
    pub(crate) fn max<const N: usize>(&self, values: [u64; N]) -> Result<[u64; N]> {
        let (mpi, mut result) = (self.mpi, [0u64; N]);
        let (u64, max) = (mpi.constants.u64, mpi.constants.max);
        let n = count(N)?;
        let (from, to) = (values.as_ptr().cast(), result.as_mut_ptr().cast());
        let start = |request: &mut Handle| {
            // SAFETY: `N` numbers of the datatype on either side; the address of a request.
            unsafe { (mpi.functions.iallreduce)(from, to, n, u64, max, self.handle, request) }
        };
        self.together("MPI_Iallreduce", self.patience, start)?;
        Ok(result)
    }

    /// Sends the values of process `root` to all.
    pub(crate) fn broadcast<T: Element>(&self, root: usize, values: &mut [T]) -> Result<()> {
        self.broadcast_memory(root, &Buffer::of(values), own_type::<T>())
    }

    /// As [`Communicator::broadcast`], of values that are elements of type `element`.
    ///
    /// # Panics
    /// When elements of the type have another number of bytes.
    pub(crate) fn broadcast_memory(
        &self,
        root: usize,
        values: &Buffer<'_>,
        element: ElementType,
    ) -> Result<()> {
        let (mpi, dtype) = (self.mpi, self.mpi.datatype(element));
        let (n, root) = (count(values.len())?, count(root)?);
        assert_eq!(values.element_bytes() as u64, element.bytes(), "{element}");
        let at = values.address(Span::new(0, values.len())).cast();
        let start = |request: &mut Handle| {
            // SAFETY: `n` elements as long as those of the datatype; the address of a request.
            unsafe { (mpi.functions.ibcast)(at, n, dtype, root, self.handle, request) }
        };
        self.together("MPI_Ibcast", self.patience, start)
    }

    /// Process after process, the values of all; each has as many.
    pub(crate) fn gather_to_all<T: Element>(&self, values: &[T]) -> Result<Vec<T>> {
        let (mpi, dtype) = (self.mpi, self.mpi.datatype(own_type::<T>()));
        let n = count(values.len())?;
        let mut all = vec![T::test_value(0); values.len() * self.size];
        let (from, to) = (values.as_ptr().cast(), all.as_mut_ptr().cast());
        let start = |request: &mut Handle| {
            // SAFETY: `n` elements of the datatype here, and for each process there; the address of
            // a request.
            unsafe {
                (mpi.functions.iallgather)(from, n, dtype, to, n, dtype, self.handle, request)
            }
        };
        self.together("MPI_Iallgather", self.patience, start)?;
        Ok(all)
    }

    /// Whether the library has no objection to a reduction of no elements.
    pub(crate) fn reduces(&self, datatype: usize, operator: usize) -> bool {
        let (from, mut to) = (0u64, 0u64);
        let (from, to) = ((&raw const from).cast(), (&raw mut to).cast());
        let (datatype, operator) = (Handle(datatype), Handle(operator));
        let allreduce = self.mpi.functions.allreduce;
        // SAFETY: no elements are read or written; errors return.
        unsafe { allreduce(from, to, 0, datatype, operator, self.handle) == 0 }
    }

    /// Starts a non-blocking collective and polls it: blocking would hold a core that peers need.
    fn together(
        &self,
        what: &str,
        deadline: Duration,
        start: impl FnOnce(&mut Handle) -> c_int,
    ) -> Result<()> {
        let mut request = Handle(0);
        self.mpi.ok(what, start(&mut request))?;
        let mut idle = Idle::new(self.oversubscribed, deadline);
        while !self.has_ended(&mut request) {
            if idle.has_lasted() {
                let seconds = deadline.as_secs_f64();
                self.fail(&Error::system(format!(
                    "no answer within {seconds} s from processes that have not come as far ({what})"
                )));
            }
        }
        Ok(())
    }

    /// Whether `request`, which is open, has ended. An error ends all processes: the request is
    /// open, so its memory may not be given back.
    pub(super) fn has_ended(&self, request: &mut Handle) -> bool {
        let mut ended: c_int = 0;
        let ignore = self.mpi.constants.status_ignore();
        // SAFETY: the addresses of an open request and of an integer.
        let code = unsafe { (self.mpi.functions.test)(request, &raw mut ended, ignore) };
        if code != 0
            && let Err(error) = self.mpi.ok("MPI_Test", code)
        {
            self.fail(&error);
        }
        ended != 0
    }
}

impl Communicator {
    /// Prints the error of this process and ends all processes. Processes that fail at the same
    /// time for the same reason give the first one the time to end them, so that one message is
    /// seen.
    pub(crate) fn fail(&self, error: &Error) -> ! {
        const PRECEDENCE: Duration = Duration::from_millis(250);
        const MAX_STAGGER: usize = 8;
        std::thread::sleep(PRECEDENCE * id(self.rank.min(MAX_STAGGER)));
        let (rank, size, host) = (self.rank, self.size, self.mpi.host());
        let text = format!("{error} (process {rank} of {size}, on {host})");
        self.mpi.end_job(&text);
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        // SAFETY: the handle exists, and is not used any more.
        let _ = unsafe { (self.mpi.functions.comm_free)(&raw mut self.handle) };
    }
}

impl Mpi {
    /// The operator `op` for such elements, if MPI has it.
    pub(super) fn operator(&self, op: Op, element: ElementType) -> Result<Handle> {
        let known = self.own_datatype(element).and(self.operator_of(op));
        known.ok_or_else(|| Error::usage(format!("MPI has no operator {op} for these elements")))
    }

    /// The operator `op`, if MPI has it.
    pub(super) fn operator_of(&self, op: Op) -> Option<Handle> {
        let c = &self.constants;
        Some(match op {
            Op::SUM => c.sum,
            Op::PROD => c.prod,
            Op::MIN => c.min,
            Op::MAX => c.max,
            Op::BAND => c.band,
            Op::BOR => c.bor,
            Op::BXOR => c.bxor,
            Op::LAND => c.land,
            Op::LOR => c.lor,
            Op::LXOR => c.lxor,
            Op::MINLOC => c.minloc,
            Op::MAXLOC => c.maxloc,
            _ => return None,
        })
    }

    /// The datatype that moves such elements: theirs, or an integer of their size if MPI does not
    /// know them.
    pub(super) fn datatype(&self, element: ElementType) -> Handle {
        self.own_datatype(element).unwrap_or_else(|| {
            assert_eq!(element.bytes(), 2, "{element} has a datatype");
            self.constants.i16
        })
    }

    /// MPI's own datatype of these elements, if it has one.
    pub(super) fn own_datatype(&self, element: ElementType) -> Option<Handle> {
        let c = &self.constants;
        Some(match element {
            ElementType::U8 => c.u8,
            ElementType::I8 => c.i8,
            ElementType::U16 => c.u16,
            ElementType::I16 => c.i16,
            ElementType::U32 => c.u32,
            ElementType::I32 => c.i32,
            ElementType::I64 => c.i64,
            ElementType::U64 => c.u64,
            ElementType::F32 => c.f32,
            ElementType::F64 => c.f64,
            ElementType::I32I32 => c.i32_i32,
            ElementType::F32I32 => c.f32_i32,
            #[cfg(feature = "half")]
            ElementType::F16 | ElementType::Bf16 => return None,
        })
    }
}

/// Which of this crate's types `T` is.
///
/// # Panics
/// For a type of another crate, which [`World`](crate::mpi::World) refuses.
fn own_type<T: Element>() -> ElementType {
    ElementType::of::<T>().expect("a type of this crate")
}

/// A number of elements, as MPI counts.
pub(super) fn count(n: usize) -> Result<c_int> {
    c_int::try_from(n).map_err(|_| {
        Error::usage(format!(
            "{n} elements are more than the 2^31 - 1 that MPI counts"
        ))
    })
}

/// A number that MPI can count: of elements that [`count`] has seen before, or of a process.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "asserted, and refused before"
)]
pub(super) fn counted(n: usize) -> c_int {
    debug_assert!(c_int::try_from(n).is_ok(), "{n} is more than MPI counts");
    n as c_int
}
