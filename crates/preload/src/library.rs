//! The MPI library that the program has loaded: its functions under their profiling names, and the
//! constants that this crate needs besides those of `oneport`.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow};
use libloading::os::unix::{Library as File, RTLD_LAZY};
use oneport::internal::calls;

/// A handle as the program passes it: an address, a small integer as wide as one, or a 32-bit
/// integer in the lower half of a register, whose upper half is undefined.
pub(crate) type Word = usize;

/// The number of the library's own datatypes that are remembered: more than programs use.
const MAX_NAMED: usize = 64;

/// The MPI library of this process.
#[derive(Debug)]
pub(crate) struct Library {
    pub(crate) own: calls::Library,
    pub(crate) functions: Functions,
    /// What is known of the library's own datatypes, which never change: the first so many that
    /// are used.
    named: [OnceLock<Datatype>; MAX_NAMED],
    envelope: Envelope,
    large_envelope: Option<LargeEnvelope>,
    constants: Constants,
}

#[derive(Debug)]
struct Constants {
    /// Whether handles are 32-bit integers.
    has_short_handles: bool,
    /// The address that stands for a buffer in place.
    in_place: usize,
    /// What `MPI_Type_get_envelope` says of a named datatype.
    named: c_int,
    /// What the root passes as the root of a call between two groups.
    is_root: c_int,
    /// The handle that stands for no communicator.
    no_communicator: Option<Word>,
}

/// Declares a table of functions of a library.
macro_rules! table {
    ($(#[$about:meta])* $table:ident: $($name:ident = $symbol:expr, ($($argument:ty),*);)*) => {
        $(#[$about])*
        #[derive(Debug)]
        pub(crate) struct $table {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) -> std::ffi::c_int,)*
        }

        impl $table {
            pub(crate) fn of(library: &libloading::os::unix::Library) -> anyhow::Result<$table> {
                Ok($table {
                    $($name: {
                        // SAFETY: the MPI standard gives every function this signature; handles are
                        // passed as whole words, of which a library reads what it needs.
                        let symbol = unsafe { library.get($symbol.as_bytes()) };
                        let lacks = |_| anyhow::anyhow!("the MPI library lacks {}", $symbol);
                        *symbol.map_err(lacks)?
                    },)*
                })
            }
        }
    };
}
pub(crate) use table;

/// `MPI_Comm_copy_attr_function`.
pub(crate) type CopyAttribute =
    unsafe extern "C" fn(Word, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int;
/// `MPI_Comm_delete_attr_function`.
pub(crate) type DeleteAttribute =
    unsafe extern "C" fn(Word, c_int, *mut c_void, *mut c_void) -> c_int;

table! {
    /// The functions besides collectives, under the names that no other library puts itself before.
    Functions:
    init = "PMPI_Init", (*mut c_int, *mut *mut *mut c_char);
    init_thread = "PMPI_Init_thread", (*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int);
    finalize = "PMPI_Finalize", ();
    barrier = "PMPI_Barrier", (Word);
    comm_size = "PMPI_Comm_size", (Word, *mut c_int);
    comm_rank = "PMPI_Comm_rank", (Word, *mut c_int);
    comm_remote_size = "PMPI_Comm_remote_size", (Word, *mut c_int);
    comm_test_inter = "PMPI_Comm_test_inter", (Word, *mut c_int);
    comm_create_keyval = "PMPI_Comm_create_keyval",
        (CopyAttribute, DeleteAttribute, *mut c_int, *mut c_void);
    comm_set_attr = "PMPI_Comm_set_attr", (Word, c_int, *mut c_void);
    type_size = "PMPI_Type_size", (Word, *mut c_int);
    type_get_extent = "PMPI_Type_get_extent", (Word, *mut isize, *mut isize);
    pack = "PMPI_Pack",
        (*const c_void, c_int, Word, *mut c_void, c_int, *mut c_int, Word);
    unpack = "PMPI_Unpack",
        (*const c_void, c_int, *mut c_int, *mut c_void, c_int, Word, Word);
    reduce_local = "PMPI_Reduce_local", (*const c_void, *mut c_void, c_int, Word, Word);
}

table! {
    /// What says how a datatype was made.
    Envelope:
    get = "PMPI_Type_get_envelope", (Word, *mut c_int, *mut c_int, *mut c_int, *mut c_int);
}

table! {
    /// The same for datatypes with counts of 64 bits, which the other function refuses.
    LargeEnvelope:
    get = "PMPI_Type_get_envelope_c",
        (Word, *mut i64, *mut i64, *mut i64, *mut i64, *mut c_int);
}

/// A datatype of the program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Datatype {
    pub(crate) handle: Word,
    /// Bytes that an item has in messages.
    pub(crate) size: usize,
    /// Bytes from one item to the next in memory.
    pub(crate) extent: isize,
    pub(crate) form: Form,
}

/// What is known of the memory of an item. (As wide as a word, so that descriptions are copied in
/// words.)
#[repr(usize)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The program has made the datatype.
    Derived,
    /// One of the library's own, such as a pair, in which there may be gaps.
    Named,
    /// One of the library's own: an item is `size` bytes at its address.
    Plain,
}

impl Datatype {
    /// Whether what moves is the memory of items: `as_items` with their gaps.
    pub(crate) fn is_memory(&self, as_items: bool) -> bool {
        as_items || self.form == Form::Plain
    }
}

impl Library {
    /// Finds the library that the program has loaded; second, where its other functions are.
    pub(crate) fn of_program() -> Result<(Library, File)> {
        let path = next_in_order()
            .or_else(mapped)
            .context("the program has loaded no MPI library")?;
        let own = calls::Library::at(&path)?;
        // SAFETY: the library is loaded already: this finds it again. It is never unloaded.
        let library = unsafe { File::open(Some(&path), RTLD_LAZY) };
        let library = library.with_context(|| path.clone())?;
        let functions = Functions::of(&library)?;
        let constants = match &*own.interface() {
            "MPICH" => Constants {
                has_short_handles: true,
                in_place: usize::MAX,
                named: 1,
                is_root: -3,
                no_communicator: Some(0x0400_0000),
            },
            "MPI 5.0" => Constants {
                has_short_handles: false,
                in_place: 1,
                named: 101,
                is_root: -4,
                no_communicator: Some(0x100),
            },
            "Open MPI" => Constants {
                has_short_handles: false,
                in_place: 1,
                named: 0,
                is_root: -4,
                // The program may have a copy of the object, which is then the one that counts.
                no_communicator: [&File::this(), &library].into_iter().find_map(|file| {
                    // SAFETY: only the address of the object is used.
                    let symbol = unsafe { file.get::<*mut ()>(b"ompi_mpi_comm_null") };
                    Some(symbol.ok()?.into_raw().expose_provenance())
                }),
            },
            other => return Err(anyhow!("the interface {other} of {path} is not known")),
        };
        let found = Library {
            own,
            functions,
            named: [const { OnceLock::new() }; MAX_NAMED],
            envelope: Envelope::of(&library)?,
            large_envelope: LargeEnvelope::of(&library).ok(),
            constants,
        };
        Ok((found, library))
    }

    /// How many numbers the lists of a call have: as many as ranks, of the other group if there are
    /// two; none where only a root, which this process is not, passes lists.
    pub(crate) fn numbers(&self, communicator: Word, root: Option<c_int>) -> usize {
        let handle = self.handle(communicator);
        let (mut size, mut rank, mut is_inter): (c_int, c_int, c_int) = (0, 0, 0);
        // SAFETY: the program passes a communicator, and the address of an integer is given.
        let mut code = unsafe { (self.functions.comm_test_inter)(handle, &raw mut is_inter) };
        let (size_of, here) = match is_inter {
            0 => (self.functions.comm_size, None),
            _ => (
                self.functions.comm_remote_size,
                Some(self.constants.is_root),
            ),
        };
        // SAFETY: as above.
        code |= unsafe { (size_of)(handle, &raw mut size) };
        // SAFETY: as above.
        code |= unsafe { (self.functions.comm_rank)(handle, &raw mut rank) };
        let is_read = root.is_none_or(|root| root == here.unwrap_or(rank));
        usize::try_from(size)
            .ok()
            .filter(|_| code == 0 && is_read)
            .unwrap_or(0)
    }

    /// The handle that a word has.
    pub(crate) fn handle(&self, word: Word) -> Word {
        if self.constants.has_short_handles {
            word & 0xffff_ffff
        } else {
            word
        }
    }

    pub(crate) fn is_in_place(&self, buffer: *const c_void) -> bool {
        buffer.addr() == self.constants.in_place
    }

    /// Whether a handle is that of an intracommunicator.
    pub(crate) fn is_one_group(&self, handle: Word) -> bool {
        if handle == 0 || Some(handle) == self.constants.no_communicator {
            return false;
        }
        let mut is_inter: c_int = 0;
        // SAFETY: the program passes a communicator, and the address of an integer is given.
        let code = unsafe { (self.functions.comm_test_inter)(handle, &raw mut is_inter) };
        code == 0 && is_inter == 0
    }

    /// What is to be known of a datatype; `None` if it is none.
    pub(crate) fn datatype(&self, word: Word) -> Option<Datatype> {
        let handle = self.handle(word);
        let mut known = self.named.iter().map_while(OnceLock::get);
        if let Some(known) = known.find(|datatype| datatype.handle == handle) {
            return Some(*known);
        }
        let mut size: c_int = 0;
        let (mut low, mut extent): (isize, isize) = (0, 0);
        // SAFETY: the program passes a datatype, and the address of an integer is given.
        let mut code = unsafe { (self.functions.type_size)(handle, &raw mut size) };
        // SAFETY: as above.
        code |= unsafe { (self.functions.type_get_extent)(handle, &raw mut low, &raw mut extent) };
        let size = usize::try_from(size).ok().filter(|_| code == 0)?;
        let form = if self.combiner(handle)? != self.constants.named {
            Form::Derived
        } else if low == 0 && usize::try_from(extent) == Ok(size) {
            Form::Plain
        } else {
            Form::Named
        };
        let found = Datatype {
            handle,
            size,
            extent,
            form,
        };
        if form != Form::Derived {
            // In the first free place; other threads may be doing the same.
            let _ = self.named.iter().find(|place| place.set(found).is_ok());
        }
        Some(found)
    }
}

impl Library {
    /// How a datatype was made.
    fn combiner(&self, handle: Word) -> Option<c_int> {
        let mut combiner: c_int = 0;
        let code = match &self.large_envelope {
            Some(envelope) => {
                let [mut a, mut b, mut c, mut d] = [0i64; 4];
                let (a, b, c, d) = (&raw mut a, &raw mut b, &raw mut c, &raw mut d);
                // SAFETY: a datatype, and the addresses of integers.
                unsafe { (envelope.get)(handle, a, b, c, d, &raw mut combiner) }
            }
            None => {
                let [mut a, mut b, mut c] = [0; 3];
                let (a, b, c) = (&raw mut a, &raw mut b, &raw mut c);
                // SAFETY: as above.
                unsafe { (self.envelope.get)(handle, a, b, c, &raw mut combiner) }
            }
        };
        (code == 0).then_some(combiner)
    }
}

/// The file of the next library that has the functions of MPI, in the order in which names are
/// found.
fn next_in_order() -> Option<String> {
    // SAFETY: a text that ends with 0; the answer is an address of code or null.
    let symbol = unsafe { libc::dlsym(libc::RTLD_NEXT, c"PMPI_Bcast".as_ptr()) };
    let mut found = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: null_mut(),
    };
    // SAFETY: the address of code, and of what is filled in.
    if symbol.is_null() || unsafe { libc::dladdr(symbol, &raw mut found) } == 0 {
        return None;
    }
    if found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the name of a loaded file, which ends with 0.
    let name = unsafe { CStr::from_ptr(found.dli_fname) };
    name.to_str().ok().map(Into::into)
}

/// The file of a library of MPI among those that are loaded: an interpreter loads its libraries so
/// that only the module finds their names.
fn mapped() -> Option<String> {
    const NAMES: [&str; 3] = ["libmpi.so", "libmpi_abi.so", "libmpich.so"];
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let mut paths = maps
        .lines()
        .filter_map(|line| Some(&line[line.find('/')?..]));
    let is_library = |path: &&str| {
        let name = path.rsplit('/').next().unwrap_or_default();
        NAMES.iter().any(|library| name.starts_with(library))
    };
    paths.find(is_library).map(Into::into)
}
