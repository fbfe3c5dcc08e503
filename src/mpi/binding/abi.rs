//! The constants of the three binary interfaces of MPI libraries.

use std::ffi::{c_int, c_long, c_void};
use std::fmt;

use libloading::os::unix::Library;

use crate::run::ElementType;

/// A status, which is always ignored.
pub(super) type Status = c_void;

/// A handle of an MPI library: a communicator, a datatype, an operator or a request.
///
/// Depending on the interface it is a 32-bit integer, the address of an object, or a small integer
/// as wide as a pointer. All three fit into a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Handle(pub(super) usize);

/// A datatype of the program.
#[derive(Debug, Clone, Copy)]
pub struct Datatype(pub(super) Handle);

impl Datatype {
    /// That of this handle, as the program's library has it.
    ///
    /// # Safety
    /// The handle is that of a datatype that exists as long as this is used.
    pub unsafe fn new(handle: usize) -> Datatype {
        Datatype(Handle(handle))
    }
}

/// An intracommunicator of the program.
#[derive(Debug, Clone, Copy)]
pub struct Intracommunicator(pub(super) Handle);

impl Intracommunicator {
    /// That of this handle, as the program's library has it.
    ///
    /// # Safety
    /// The handle is that of an intracommunicator that exists as long as this is used.
    pub unsafe fn new(handle: usize) -> Intracommunicator {
        Intracommunicator(Handle(handle))
    }
}

/// The binary interface of a library: what its constants are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Abi {
    /// The interface that MPICH and the libraries derived from it share (`libmpi.so.12`).
    Mpich,
    /// Open MPI's own (`libmpi.so.40`).
    OpenMpi,
    /// The standard one of MPI 5.0 (`libmpi_abi.so.1`).
    Standard,
}

impl fmt::Display for Abi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Abi::Mpich => "MPICH",
            Abi::OpenMpi => "Open MPI",
            Abi::Standard => "MPI 5.0",
        })
    }
}

/// The element types of C's integers: `signed char`, `short`, `int`, `long`, `long long`, then the
/// unsigned ones.
pub(super) const C_INTEGERS: [ElementType; 10] = {
    use ElementType::{I8, I16, I32, I64, U8, U16, U32, U64};
    let (long, unsigned_long) = if size_of::<c_long>() == 8 {
        (I64, U64)
    } else {
        (I32, U32)
    };
    [I8, I16, I32, long, I64, U8, U16, U32, unsigned_long, U64]
};

/// The constants of a library.
#[derive(Debug)]
pub(super) struct Constants {
    pub(super) comm_world: Handle,
    pub(super) i8: Handle,
    pub(super) i16: Handle,
    pub(super) u16: Handle,
    pub(super) u32: Handle,
    pub(super) i32: Handle,
    pub(super) i64: Handle,
    pub(super) u64: Handle,
    pub(super) u8: Handle,
    pub(super) f32: Handle,
    pub(super) f64: Handle,
    pub(super) i32_i32: Handle,
    pub(super) f32_i32: Handle,
    /// The integers of C: those of [`C_INTEGERS`].
    pub(super) c_integers: [Handle; C_INTEGERS.len()],
    pub(super) max: Handle,
    pub(super) min: Handle,
    pub(super) sum: Handle,
    pub(super) prod: Handle,
    pub(super) band: Handle,
    pub(super) bor: Handle,
    pub(super) bxor: Handle,
    pub(super) land: Handle,
    pub(super) lor: Handle,
    pub(super) lxor: Handle,
    pub(super) minloc: Handle,
    pub(super) maxloc: Handle,
    pub(super) info_null: Handle,
    pub(super) errors_return: Handle,
    /// In place of the address of a status: its value is an address that is never used.
    status_ignore: usize,
    pub(super) thread_funneled: c_int,
    pub(super) comm_type_shared: c_int,
    /// The key of the attribute that holds the largest tag.
    pub(super) tag_ub: c_int,
}

impl Constants {
    /// What is passed in place of the address of a status.
    #[inline]
    pub(super) fn status_ignore(&self) -> *mut Status {
        std::ptr::without_provenance_mut(self.status_ignore)
    }

    /// The constants of `library`, whose interface is `abi`, or the name of one that it lacks.
    pub(super) fn of(abi: Abi, library: &Library) -> Result<Constants, &'static str> {
        Ok(match abi {
            Abi::Mpich => Constants::mpich(),
            Abi::Standard => Constants::standard(),
            Abi::OpenMpi => Constants::open_mpi(library)?,
        })
    }

    fn mpich() -> Constants {
        Constants {
            comm_world: Handle(0x4400_0000),
            i8: Handle(0x4c00_0137),
            i16: Handle(0x4c00_0238),
            u16: Handle(0x4c00_023c),
            u32: Handle(0x4c00_043d),
            i32: Handle(0x4c00_0439),
            i64: Handle(0x4c00_083a),
            u64: Handle(0x4c00_083e),
            u8: Handle(0x4c00_013b),
            f32: Handle(0x4c00_040a),
            f64: Handle(0x4c00_080b),
            i32_i32: Handle(0x4c00_0816),
            f32_i32: Handle(0x8c00_0000),
            c_integers: [
                0x4c00_0118,
                0x4c00_0203,
                0x4c00_0405,
                0x4c00_0807,
                0x4c00_0809,
                0x4c00_0102,
                0x4c00_0204,
                0x4c00_0406,
                0x4c00_0808,
                0x4c00_0819,
            ]
            .map(Handle),
            max: Handle(0x5800_0001),
            min: Handle(0x5800_0002),
            sum: Handle(0x5800_0003),
            prod: Handle(0x5800_0004),
            band: Handle(0x5800_0006),
            bor: Handle(0x5800_0008),
            bxor: Handle(0x5800_000a),
            land: Handle(0x5800_0005),
            lor: Handle(0x5800_0007),
            lxor: Handle(0x5800_0009),
            minloc: Handle(0x5800_000b),
            maxloc: Handle(0x5800_000c),
            info_null: Handle(0x1c00_0000),
            errors_return: Handle(0x5400_0001),
            status_ignore: 1,
            thread_funneled: 1,
            comm_type_shared: 1,
            tag_ub: 0x6440_0001,
        }
    }

    fn standard() -> Constants {
        Constants {
            comm_world: Handle(0x101),
            i8: Handle(0x240),
            i16: Handle(0x248),
            u16: Handle(0x249),
            u32: Handle(0x251),
            i32: Handle(0x250),
            i64: Handle(0x258),
            u64: Handle(0x259),
            u8: Handle(0x241),
            f32: Handle(0x210),
            f64: Handle(0x214),
            i32_i32: Handle(0x22b),
            f32_i32: Handle(0x228),
            c_integers: [
                0x244, 0x208, 0x209, 0x20a, 0x20b, 0x245, 0x20c, 0x20d, 0x20e, 0x20f,
            ]
            .map(Handle),
            max: Handle(0x23),
            min: Handle(0x22),
            sum: Handle(0x21),
            prod: Handle(0x24),
            band: Handle(0x28),
            bor: Handle(0x29),
            bxor: Handle(0x2a),
            land: Handle(0x30),
            lor: Handle(0x31),
            lxor: Handle(0x32),
            minloc: Handle(0x38),
            maxloc: Handle(0x39),
            info_null: Handle(0x130),
            errors_return: Handle(0x143),
            status_ignore: 0,
            thread_funneled: 1024,
            comm_type_shared: 221,
            tag_ub: 501,
        }
    }

    /// Open MPI's handles are the addresses of objects that the library exports.
    fn open_mpi(library: &Library) -> Result<Constants, &'static str> {
        let object = |name: &'static str| {
            // SAFETY: only the address of the object is used, never its contents.
            let symbol = unsafe { library.get::<*mut ()>(name.as_bytes()) };
            let symbol = symbol.map_err(|_| name)?;
            Ok(Handle(symbol.into_raw().expose_provenance()))
        };
        Ok(Constants {
            comm_world: object("ompi_mpi_comm_world")?,
            i8: object("ompi_mpi_int8_t")?,
            i16: object("ompi_mpi_int16_t")?,
            u16: object("ompi_mpi_uint16_t")?,
            u32: object("ompi_mpi_uint32_t")?,
            i32: object("ompi_mpi_int32_t")?,
            i64: object("ompi_mpi_int64_t")?,
            u64: object("ompi_mpi_uint64_t")?,
            u8: object("ompi_mpi_uint8_t")?,
            f32: object("ompi_mpi_float")?,
            f64: object("ompi_mpi_double")?,
            i32_i32: object("ompi_mpi_2int")?,
            f32_i32: object("ompi_mpi_float_int")?,
            c_integers: [
                object("ompi_mpi_signed_char")?,
                object("ompi_mpi_short")?,
                object("ompi_mpi_int")?,
                object("ompi_mpi_long")?,
                object("ompi_mpi_long_long_int")?,
                object("ompi_mpi_unsigned_char")?,
                object("ompi_mpi_unsigned_short")?,
                object("ompi_mpi_unsigned")?,
                object("ompi_mpi_unsigned_long")?,
                object("ompi_mpi_unsigned_long_long")?,
            ],
            max: object("ompi_mpi_op_max")?,
            min: object("ompi_mpi_op_min")?,
            sum: object("ompi_mpi_op_sum")?,
            prod: object("ompi_mpi_op_prod")?,
            band: object("ompi_mpi_op_band")?,
            bor: object("ompi_mpi_op_bor")?,
            bxor: object("ompi_mpi_op_bxor")?,
            land: object("ompi_mpi_op_land")?,
            lor: object("ompi_mpi_op_lor")?,
            lxor: object("ompi_mpi_op_lxor")?,
            minloc: object("ompi_mpi_op_minloc")?,
            maxloc: object("ompi_mpi_op_maxloc")?,
            info_null: object("ompi_mpi_info_null")?,
            errors_return: object("ompi_mpi_errors_return")?,
            status_ignore: 0,
            thread_funneled: 1,
            comm_type_shared: 0,
            tag_ub: 0,
        })
    }
}
