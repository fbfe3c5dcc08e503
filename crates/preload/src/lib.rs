//! `liboneport_mpi.so`: the collectives of any MPI program, by schedules of oneport.
//!
//! It is put before an unmodified, dynamically linked program, which then calls these functions in
//! place of the library's own. A call is served by the algorithm that selection rules choose for
//! it, or where no rule fits by a schedule from a file; everything else is passed on to the
//! library, under the profiling names.
//!
//! ```sh
//! LD_PRELOAD=liboneport_mpi.so ONEPORT_RULES=rules.json mpirun -n 16 ./app
//! ```
//!
//! All processes decide alike who serves a call, or they would wait for ever: a decision depends on
//! what MPI guarantees to be equal on all of them, such as the function, the communicator, the root
//! and the amount of data. See `choice`.
//!
//! | file | content |
//! |---|---|
//! | `collectives` | the functions that programs call |
//! | `call` | a call, and whether it is as the last one was |
//! | `describe` | what a process knows of a call |
//! | `library` | the MPI library that the program has loaded |
//! | `choice` | which schedule serves a call |
//! | `process` | this process, and what it keeps for each communicator |
//! | `narrow` | calls with counts of 64 bits, for a library that has 32 |
//! | `memory` | the program's memory of one call |
//! | `pieces` | where that memory is, found once for calls that differ in addresses alone |
//! | `serve` | serving a call |
//! | `report` | what became of the calls |
//!
//! # Why it is sound
//!
//! - The program passes handles and memory as the MPI standard asks for; they are used during the
//!   call alone, for what the standard says.
//! - Messages travel in a private duplicate of the communicator, by the carrier of
//!   `oneport::mpi`, whose unsafe code is there.
//! - No thread is started and no signal is handled.
#![allow(unsafe_code, non_snake_case)]

mod call;
mod choice;
mod collectives;
mod describe;
mod library;
mod memory;
mod narrow;
mod pieces;
mod process;
mod report;
mod serve;

use std::ffi::{c_char, c_int};
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::Result;
use oneport::Kind;
use oneport::internal::launch;

use call::{Arguments, Call};
use library::{Library, Word};
use serve::serve;

/// The library of the program, and its collectives.
struct Loaded {
    library: Library,
    plain: collectives::plain::Collectives,
    /// Those with counts of 64 bits, which not every library has.
    large: Option<collectives::large::Collectives>,
}

impl Loaded {
    fn of_program() -> Result<Loaded> {
        let (library, file) = Library::of_program()?;
        let loaded = Loaded {
            library,
            plain: collectives::plain::Collectives::of(&file)?,
            large: collectives::large::Collectives::of(&file).ok(),
        };
        // Its functions are used as long as the process lives.
        std::mem::forget(file);
        Ok(loaded)
    }
}

/// What is loaded, found at the first call.
fn loaded() -> &'static Loaded {
    static LOADED: OnceLock<Loaded> = OnceLock::new();
    LOADED.get_or_init(|| match Loaded::of_program() {
        Ok(loaded) => loaded,
        Err(error) => fail(&error),
    })
}

/// Says why the program cannot go on, without a library that could end all processes: one that
/// fails ends, and so has the launcher end those that are about to fail, too.
fn fail(error: &anyhow::Error) -> ! {
    /// How long the launcher of a busy host may take to end the others when the first one ends.
    const ENDING: Duration = Duration::from_secs(3);
    /// How much longer each waits than the one before it.
    const PRECEDENCE: Duration = Duration::from_millis(250);
    let rank = launch::rank().unwrap_or_default();
    if rank > 0 {
        let before = u32::try_from(rank.min(8)).unwrap_or_default();
        std::thread::sleep(ENDING + PRECEDENCE * before);
    }
    eprintln!("error: {error:#} (process {rank})");
    std::process::abort();
}

/// Sets this process up if the library was initialized.
fn started(code: c_int) -> c_int {
    if code == 0 {
        process::start(&loaded().library);
    }
    code
}

/// As the MPI standard says.
///
/// # Safety
/// As the MPI standard says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Init(count: *mut c_int, values: *mut *mut *mut c_char) -> c_int {
    // SAFETY: passed on as it is.
    started(unsafe { (loaded().library.functions.init)(count, values) })
}

/// As the MPI standard says.
///
/// # Safety
/// As the MPI standard says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Init_thread(
    count: *mut c_int,
    values: *mut *mut *mut c_char,
    required: c_int,
    provided: *mut c_int,
) -> c_int {
    // SAFETY: passed on as it is.
    started(unsafe { (loaded().library.functions.init_thread)(count, values, required, provided) })
}

/// As the MPI standard says.
///
/// # Safety
/// As the MPI standard says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Finalize() -> c_int {
    if let Some(process) = process::process() {
        process.end();
    }
    // SAFETY: passed on.
    unsafe { (loaded().library.functions.finalize)() }
}

/// As the MPI standard says.
///
/// # Safety
/// As the MPI standard says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Barrier(communicator: Word) -> c_int {
    let call = Call {
        function: "MPI_Barrier",
        kind: Kind::Barrier,
        communicator,
        arguments: Arguments::NONE,
    };
    // SAFETY: passed on as it is.
    let pass = || unsafe { (loaded().library.functions.barrier)(communicator) };
    serve(&call, |_| describe::barrier(), pass)
}
