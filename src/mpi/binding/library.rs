//! An MPI library, found and opened at run time.

use std::ffi::{CString, c_char, c_int};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::time::Duration;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LAZY};

use super::abi::{Abi, C_INTEGERS, Constants, Handle, Intracommunicator};
use super::functions::{Functions, ToolFunctions};
use crate::error::{Error, Result};
use crate::run::{ElementType, Op};

/// Environment variable that names the library.
const NAMED: &str = "ONEPORT_MPI_LIB";

/// Bytes that hold any text of an MPI library.
const MAX_TEXT_BYTES: usize = 8193;

/// An MPI library: its functions and constants. It stays open until the process ends.
#[derive(Debug)]
pub(crate) struct Mpi {
    pub(super) functions: Functions,
    pub(super) constants: Constants,
    abi: Abi,
    /// The name under which it was found.
    name: String,
}

/// The names to try, best first: the one that the user names, or those of the library that belongs
/// to the launcher, and all others after them. A folder stands for the libraries in it.
fn names() -> Vec<String> {
    let all = [
        "libmpi.so",
        "libmpi.so.12",
        "libmpi.so.40",
        "libmpi_abi.so.1",
        // Debian's name.
        "libmpich.so.12",
    ];
    let is_set = |name: &&str| std::env::var_os(name).is_some();
    let implied: &[&str] = if is_set(&"OMPI_COMM_WORLD_SIZE") {
        &["libmpi.so.40"]
    } else if ["PMI_RANK", "MPI_LOCALNRANKS"].iter().any(is_set) {
        &["libmpi.so.12", "libmpich.so.12"]
    } else {
        &[]
    };
    let others = all.iter().filter(|name| !implied.contains(name));
    let best_first: Vec<&str> = implied.iter().chain(others).copied().collect();
    if let Ok(named) = std::env::var(NAMED)
        && !named.is_empty()
    {
        let folder = Path::new(&named);
        let found = within(&[folder.to_owned(), folder.join("lib")], &best_first);
        return if found.is_empty() { vec![named] } else { found };
    }
    let beside = within(beside_launcher().as_slice(), implied);
    let elsewhere = best_first.into_iter().map(Into::into);
    beside.into_iter().chain(elsewhere).collect()
}

/// The paths of the files of these names in these folders.
fn within(folders: &[PathBuf], names: &[&str]) -> Vec<String> {
    let paths = folders
        .iter()
        .flat_map(|folder| names.iter().map(|name| folder.join(name)));
    let found = paths.filter(|path| path.is_file());
    found
        .filter_map(|path| path.to_str().map(Into::into))
        .collect()
}

/// Where a launcher that is installed in a folder of its own has its library: its part on this host
/// is the parent of this process.
fn beside_launcher() -> Option<PathBuf> {
    let parent = std::os::unix::process::parent_id();
    let program = std::fs::read_link(format!("/proc/{parent}/exe")).ok()?;
    Some(program.parent()?.parent()?.join("lib"))
}

impl Mpi {
    /// Finds and opens the library of this process; refuses one that lacks a function.
    pub(crate) fn open() -> Result<&'static Mpi> {
        let names = names();
        // Those that say more than that there is no file of this name.
        let mut reasons = Vec::new();
        for name in &names {
            // SAFETY: loading an MPI library runs its initializers only. It is never unloaded.
            match unsafe { Library::open(Some(name), RTLD_LAZY | RTLD_GLOBAL) } {
                Ok(library) => return Mpi::in_library(library, name),
                Err(error) => {
                    // The system's own words, which name the file.
                    let words = std::error::Error::source(&error).map(ToString::to_string);
                    let words = words.unwrap_or_else(|| format!("{name}: {error}"));
                    let is_missing = words.starts_with(&format!("{name}: cannot open shared"));
                    if names.len() == 1 || !is_missing {
                        reasons.push(words);
                    }
                }
            }
        }
        let why = if reasons.is_empty() {
            format!("neither {}", names.join(" nor "))
        } else {
            reasons.join(", ")
        };
        Err(Error::usage(format!(
            "no MPI library could be loaded ({why}): set {NAMED} to the path of the library that belongs to your launcher"
        )))
    }

    /// The library in this file, which this process has loaded.
    pub(crate) fn at(path: &str) -> Result<&'static Mpi> {
        // SAFETY: the library is open already: this finds it again. It is never unloaded.
        match unsafe { Library::open(Some(path), RTLD_LAZY) } {
            Ok(library) => Mpi::in_library(library, path),
            Err(error) => Err(Error::system(format!("{path}: {error}"))),
        }
    }

    /// All processes of the launch, once the library is initialized.
    pub(crate) fn all_processes(&self) -> Intracommunicator {
        Intracommunicator(self.constants.comm_world)
    }

    /// The element type that a datatype has, if it is one of this crate's.
    pub(crate) fn element_type(&self, datatype: usize) -> Option<ElementType> {
        let own = |&&element: &&ElementType| self.own_datatype(element) == Some(Handle(datatype));
        let integers = C_INTEGERS.iter().zip(&self.constants.c_integers);
        let of_c = || integers.clone().find(|(_, handle)| handle.0 == datatype);
        let found = ElementType::ALL.iter().find(own);
        found
            .or_else(|| of_c().map(|(element, _)| element))
            .copied()
    }

    /// Which of the standard's operators for reductions a handle is that of.
    pub(crate) fn op(&self, handle: usize) -> Option<Op> {
        let mut all = Op::ALL.iter().copied();
        all.find(|&op| self.operator_of(op) == Some(Handle(handle)))
    }

    fn in_library(library: Library, name: &str) -> Result<&'static Mpi> {
        let abi = abi_of(&library);
        let lacks = |what: &str| {
            Error::usage(format!(
                "{name} is not a complete MPI library: it lacks {what}"
            ))
        };
        let functions = Functions::of(&library).map_err(lacks)?;
        // A program may have copies of the library's objects, which are then those that count.
        let constants = Constants::of(abi, &Library::this())
            .or_else(|_| Constants::of(abi, &library))
            .map_err(lacks)?;
        // Never unloaded: the library has threads and exit handlers of its own.
        std::mem::forget(library);
        Ok(Box::leak(Box::new(Mpi {
            functions,
            constants,
            abi,
            name: name.to_owned(),
        })))
    }

    /// The name of the binary interface.
    pub(crate) fn interface(&self) -> String {
        self.abi.to_string()
    }

    /// The name under which the library was found.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Initializes the library. Only the thread that does may call it, but for [`Mpi::end_job`].
    /// Returns whether a process may have other threads, such as the watchdog. Fails when it has
    /// been initialized before, or cannot be.
    pub(crate) fn init(&self) -> Result<bool> {
        let mut before: c_int = 0;
        // SAFETY: the address of an integer.
        self.ok("MPI_Initialized", unsafe {
            (self.functions.initialized)(&raw mut before)
        })?;
        if before != 0 {
            return Err(Error::usage("this process has initialized MPI before"));
        }
        let mut provided: c_int = 0;
        let required = self.constants.thread_funneled;
        // SAFETY: MPI accepts null in place of the arguments; the last is the address of an
        // integer.
        self.ok("MPI_Init_thread", unsafe {
            (self.functions.init_thread)(null_mut(), null_mut(), required, &raw mut provided)
        })?;
        // Levels of thread support grow in every interface.
        Ok(provided >= required)
    }

    /// Ends the use of the library.
    pub(crate) fn finalize(&self) {
        // SAFETY: all communicators of this crate are closed by then, and no request is open.
        let _ = unsafe { (self.functions.finalize)() };
    }

    /// Prints an error and ends all processes with exit code 1: every failure of a process that
    /// others may be waiting for in the library ends here (docs/mpi.md, "Failure"). May be called
    /// from any thread: if the library cannot end them, ending this process lets the launcher do
    /// it.
    pub(crate) fn end_job(&self, error: &str) -> ! {
        /// How long the library may take to end all processes.
        const PATIENCE: Duration = Duration::from_secs(3);
        /// A launcher that is told to end all may drop output that it has not passed on yet.
        const PASSING_ON: Duration = Duration::from_millis(200);
        // In one piece, and at once: what is buffered here is lost.
        let _ = std::io::stderr().write_all(format!("error: {error}\n").as_bytes());
        std::thread::sleep(PASSING_ON);
        std::thread::spawn(|| {
            std::thread::sleep(PATIENCE);
            std::process::abort();
        });
        // SAFETY: a call that does not return, with a handle that always exists.
        unsafe { (self.functions.abort)(self.constants.comm_world, 1) };
        std::process::abort();
    }

    /// The library's own name and version.
    pub(crate) fn version(&self) -> String {
        let text = text(|to, length| {
            // SAFETY: a buffer of the length that the standard asks for.
            unsafe { (self.functions.get_library_version)(to, length) }
        });
        // Open MPI appends where and when it was built, MPICH its configuration.
        let line = text.lines().next().unwrap_or_default();
        let name = line.split(',').next().unwrap_or_default();
        let words = name.split_whitespace().filter(|&word| word != "Version:");
        words.collect::<Vec<_>>().join(" ")
    }

    /// The name of this process's host.
    pub(crate) fn host(&self) -> String {
        text(|to, length| {
            // SAFETY: a buffer of more than the length that the standard asks for.
            unsafe { (self.functions.get_processor_name)(to, length) }
        })
    }

    /// The error of the function `what`, unless its `code` says that it has succeeded.
    pub(super) fn ok(&self, what: &str, code: c_int) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        let reason = text(|to, length| {
            // SAFETY: a buffer of more than the length that the standard asks for.
            unsafe { (self.functions.error_string)(code, to, length) }
        });
        Err(Error::system(format!("{what} failed: {reason}")))
    }

    /// Sets a control variable of the library in this process, a whole number, and returns what it
    /// was. An error where the library has no such variable.
    pub(crate) fn swap_variable(&self, name: &str, value: c_int) -> Result<c_int> {
        let lacks = |what: &str| Error::usage(format!("{} lacks {what}", self.name));
        // SAFETY: the library is open already: this finds it again.
        let library = unsafe { Library::open(Some(&self.name), RTLD_LAZY | RTLD_GLOBAL) };
        let library = library.map_err(|_| lacks("its file"))?;
        let tools = ToolFunctions::of(&library).map_err(lacks)?;
        std::mem::forget(library);
        let done = |code: c_int| (code == 0).then_some(()).ok_or_else(|| lacks(name));
        let mut provided: c_int = 0;
        // SAFETY: the level of one thread, which every interface calls 0, and the address of an
        // integer.
        done(unsafe { (tools.init_thread)(0, &raw mut provided) })?;
        let was = self.swap_by(&tools, name, value).map_err(|()| lacks(name));
        // SAFETY: it was initialized above, and no handle is left.
        done(unsafe { (tools.finalize)() })?;
        was
    }

    fn swap_by(&self, tools: &ToolFunctions, name: &str, value: c_int) -> Result<c_int, ()> {
        let done = |code: c_int| (code == 0).then_some(()).ok_or(());
        let name = CString::new(name).map_err(|_| ())?;
        let (mut index, mut count): (c_int, c_int) = (0, 0);
        // SAFETY: a text that ends with 0, and the address of an integer.
        done(unsafe { (tools.get_index)(name.as_ptr(), &raw mut index) })?;
        let mut handle = self.constants.comm_world;
        // SAFETY: the index of a variable, no object that it is bound to, and the addresses of a
        // handle, as wide as a pointer, and an integer.
        done(unsafe { (tools.handle_alloc)(index, null_mut(), &raw mut handle, &raw mut count) })?;
        let mut was: c_int = 0;
        let mut result = Err(());
        if count == 1 {
            // SAFETY: the caller names a variable of one whole number, as large as `was`.
            result = done(unsafe { (tools.read)(handle, (&raw mut was).cast()) });
        }
        if result.is_ok() {
            // SAFETY: as above; the value is only read.
            result = done(unsafe { (tools.write)(handle, (&raw const value).cast()) });
        }
        // SAFETY: the handle that was allocated.
        done(unsafe { (tools.handle_free)(&raw mut handle) })?;
        result.map(|()| was)
    }

    /// All processes of the launch.
    pub(super) fn world(&self) -> Handle {
        self.constants.comm_world
    }
}

/// Which interface a library has.
fn abi_of(library: &Library) -> Abi {
    type GetVersion = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;
    // SAFETY: the MPI standard gives the function this signature.
    if let Ok(version) = unsafe { library.get::<GetVersion>(b"MPI_Abi_get_version") } {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: the addresses of two integers; the function may be called at any time.
        let code = unsafe { version(&raw mut major, &raw mut minor) };
        if code == 0 && major > 0 {
            return Abi::Standard;
        }
    }
    // SAFETY: only whether the object exists is used.
    match unsafe { library.get::<*mut ()>(b"ompi_mpi_comm_self") } {
        Ok(_) => Abi::OpenMpi,
        Err(_) => Abi::Mpich,
    }
}

/// The text that `write` puts into a buffer.
fn text(write: impl FnOnce(*mut c_char, *mut c_int) -> c_int) -> String {
    let mut buffer = vec![0u8; MAX_TEXT_BYTES];
    let mut length: c_int = 0;
    if write(buffer.as_mut_ptr().cast(), &raw mut length) != 0 {
        return String::new();
    }
    let length = usize::try_from(length).unwrap_or(0).min(buffer.len());
    let text = String::from_utf8_lossy(&buffer[..length]);
    text.trim_end_matches('\0').trim().to_owned()
}
