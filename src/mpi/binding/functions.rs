//! The functions of an MPI library that this crate calls.

use std::ffi::{c_char, c_int, c_void};

use libloading::os::unix::Library;

use super::abi::{Handle, Status};

/// Declares the table of functions.
///
/// A [`Handle`] is passed as a whole word. Where the library expects a 32-bit integer it reads the
/// low half: the calling conventions of 64-bit systems pass both in the same register or in the
/// same place on the stack.
macro_rules! functions {
    ($(#[$attribute:meta])* $table:ident:
        $($name:ident = $symbol:literal ($($argument:ty),*);)*) => {
        $(#[$attribute])*
        #[derive(Debug)]
        pub(super) struct $table {
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl $table {
            /// Finds all functions in `library`, or the name of one that it lacks.
            pub(super) fn of(library: &Library) -> Result<$table, &'static str> {
                Ok($table {
                    $($name: {
                        // SAFETY: the MPI standard gives every function this signature.
                        let symbol = unsafe { library.get($symbol.as_bytes()) };
                        *symbol.map_err(|_| $symbol)?
                    },)*
                })
            }
        }
    };
}

functions! {
    /// The functions, found once.
    Functions:
    init_thread = "MPI_Init_thread" (*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int);
    initialized = "MPI_Initialized" (*mut c_int);
    finalize = "MPI_Finalize" ();
    abort = "MPI_Abort" (Handle, c_int);
    error_string = "MPI_Error_string" (c_int, *mut c_char, *mut c_int);
    get_library_version = "MPI_Get_library_version" (*mut c_char, *mut c_int);
    get_processor_name = "MPI_Get_processor_name" (*mut c_char, *mut c_int);
    comm_rank = "MPI_Comm_rank" (Handle, *mut c_int);
    comm_size = "MPI_Comm_size" (Handle, *mut c_int);
    comm_dup = "MPI_Comm_dup" (Handle, *mut Handle);
    comm_split = "MPI_Comm_split" (Handle, c_int, c_int, *mut Handle);
    comm_split_type = "MPI_Comm_split_type" (Handle, c_int, c_int, Handle, *mut Handle);
    comm_get_attr = "MPI_Comm_get_attr" (Handle, c_int, *mut c_void, *mut c_int);
    comm_free = "MPI_Comm_free" (*mut Handle);
    comm_set_errhandler = "MPI_Comm_set_errhandler" (Handle, Handle);
    barrier = "MPI_Barrier" (Handle);
    ibarrier = "MPI_Ibarrier" (Handle, *mut Handle);
    ibcast = "MPI_Ibcast" (*mut c_void, c_int, Handle, c_int, Handle, *mut Handle);
    iallreduce = "MPI_Iallreduce"
        (*const c_void, *mut c_void, c_int, Handle, Handle, Handle, *mut Handle);
    iallgather = "MPI_Iallgather"
        (*const c_void, c_int, Handle, *mut c_void, c_int, Handle, Handle, *mut Handle);
    bcast = "MPI_Bcast" (*mut c_void, c_int, Handle, c_int, Handle);
    reduce = "MPI_Reduce"
        (*const c_void, *mut c_void, c_int, Handle, Handle, c_int, Handle);
    allreduce = "MPI_Allreduce" (*const c_void, *mut c_void, c_int, Handle, Handle, Handle);
    exscan = "MPI_Exscan" (*const c_void, *mut c_void, c_int, Handle, Handle, Handle);
    scan = "MPI_Scan" (*const c_void, *mut c_void, c_int, Handle, Handle, Handle);
    gather = "MPI_Gather"
        (*const c_void, c_int, Handle, *mut c_void, c_int, Handle, c_int, Handle);
    gatherv = "MPI_Gatherv"
        (*const c_void, c_int, Handle, *mut c_void, *const c_int, *const c_int, Handle, c_int,
         Handle);
    scatter = "MPI_Scatter"
        (*const c_void, c_int, Handle, *mut c_void, c_int, Handle, c_int, Handle);
    scatterv = "MPI_Scatterv"
        (*const c_void, *const c_int, *const c_int, Handle, *mut c_void, c_int, Handle, c_int,
         Handle);
    allgather = "MPI_Allgather"
        (*const c_void, c_int, Handle, *mut c_void, c_int, Handle, Handle);
    allgatherv = "MPI_Allgatherv"
        (*const c_void, c_int, Handle, *mut c_void, *const c_int, *const c_int, Handle, Handle);
    reduce_scatter = "MPI_Reduce_scatter"
        (*const c_void, *mut c_void, *const c_int, Handle, Handle, Handle);
    reduce_scatter_block = "MPI_Reduce_scatter_block"
        (*const c_void, *mut c_void, c_int, Handle, Handle, Handle);
    alltoall = "MPI_Alltoall"
        (*const c_void, c_int, Handle, *mut c_void, c_int, Handle, Handle);
    alltoallv = "MPI_Alltoallv"
        (*const c_void, *const c_int, *const c_int, Handle, *mut c_void, *const c_int,
         *const c_int, Handle, Handle);
    isend = "MPI_Isend" (*const c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle);
    issend = "MPI_Issend" (*const c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle);
    irecv = "MPI_Irecv" (*mut c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle);
    send = "MPI_Send" (*const c_void, c_int, Handle, c_int, c_int, Handle);
    recv = "MPI_Recv" (*mut c_void, c_int, Handle, c_int, c_int, Handle, *mut Status);
    iprobe = "MPI_Iprobe" (c_int, c_int, Handle, *mut c_int, *mut Status);
    test = "MPI_Test" (*mut Handle, *mut c_int, *mut Status);
}

functions! {
    /// The functions for the library's control variables (MPI_T). Not every library has them.
    ToolFunctions:
    init_thread = "MPI_T_init_thread" (c_int, *mut c_int);
    finalize = "MPI_T_finalize" ();
    get_index = "MPI_T_cvar_get_index" (*const c_char, *mut c_int);
    handle_alloc = "MPI_T_cvar_handle_alloc" (c_int, *mut c_void, *mut Handle, *mut c_int);
    handle_free = "MPI_T_cvar_handle_free" (*mut Handle);
    read = "MPI_T_cvar_read" (Handle, *mut c_void);
    write = "MPI_T_cvar_write" (Handle, *const c_void);
}
