//! The functions that programs call, as the MPI standard declares them: with counts of 32 bits, and
//! with counts of 64.

/// Defines the functions, and the table of those of the library: `Count` is the type of counts,
/// `Place` that of displacements, and the names of the functions end with a suffix.
macro_rules! collectives {
    ($suffix:literal, $pass:ident;
     $($field:ident = $function:literal, $kind:ident, $serve:ident
        ($($argument:ident: $type:ty),*) by $describe:ident($($given:expr),*) on $communicator:ident;)*) => {
        table! {
            /// The library's own functions.
            Collectives:
            $($field = concat!("P", $function, $suffix), ($($type),*);)*
        }

        $(
            /// As the MPI standard says.
            ///
            /// # Safety
            /// As the MPI standard says.
            #[unsafe(export_name = concat!($function, $suffix))]
            pub(crate) unsafe extern "C" fn $field($($argument: $type),*) -> c_int {
                let mut arguments = Arguments::NONE;
                $(arguments.add($argument);)*
                let call = Call {
                    function: concat!($function, $suffix),
                    kind: Kind::$kind,
                    communicator: $communicator,
                    arguments,
                };
                if call.may_repeat() && repeated(&call) {
                    return 0;
                }
                // SAFETY: what the program passes is as the standard asks for.
                let describe = move |at: At<'_>| unsafe { describe::$describe(at, $($given),*) };
                let pass = move || $pass!($field, $communicator, $($argument),*);
                $serve(&call, describe, pass)
            }
        )*
    };
}

/// The functions of both kinds.
macro_rules! both {
    ($suffix:literal, $pass:ident) => {
        collectives! {
            $suffix, $pass;
            bcast = "MPI_Bcast", Broadcast, serve
                (buffer: *mut c_void, n: Count, datatype: Word, root: c_int, communicator: Word)
                by broadcast((buffer, n, datatype), root) on communicator;
            reduce = "MPI_Reduce", Reduce, serve
                (from: *const c_void, to: *mut c_void, n: Count, datatype: Word, op: Word,
                 root: c_int, communicator: Word)
                by reduce((from, to), (n, datatype, op), root) on communicator;
            allreduce = "MPI_Allreduce", Allreduce, serve
                (from: *const c_void, to: *mut c_void, n: Count, datatype: Word, op: Word,
                 communicator: Word)
                by combined(Kind::Allreduce, (from, to), (n, datatype, op)) on communicator;
            scan = "MPI_Scan", Scan, serve
                (from: *const c_void, to: *mut c_void, n: Count, datatype: Word, op: Word,
                 communicator: Word)
                by combined(Kind::Scan, (from, to), (n, datatype, op)) on communicator;
            exscan = "MPI_Exscan", Exscan, serve
                (from: *const c_void, to: *mut c_void, n: Count, datatype: Word, op: Word,
                 communicator: Word)
                by combined(Kind::Exscan, (from, to), (n, datatype, op)) on communicator;
            gather = "MPI_Gather", Gather, serve
                (from: *const c_void, n: Count, sent: Word, to: *mut c_void, m: Count,
                 received: Word, root: c_int, communicator: Word)
                by gather((from, n, sent), (to, m, received), root) on communicator;
            scatter = "MPI_Scatter", Scatter, serve
                (from: *const c_void, n: Count, sent: Word, to: *mut c_void, m: Count,
                 received: Word, root: c_int, communicator: Word)
                by scatter((from, n, sent), (to, m, received), root) on communicator;
            allgather = "MPI_Allgather", Allgather, serve
                (from: *const c_void, n: Count, sent: Word, to: *mut c_void, m: Count,
                 received: Word, communicator: Word)
                by allgather((from, n, sent), (to, m, received)) on communicator;
            allgatherv = "MPI_Allgatherv", Allgather, serve
                (from: *const c_void, n: Count, sent: Word, to: *mut c_void, m: *const Count,
                 places: *const Place, received: Word, communicator: Word)
                by allgatherv((from, n, sent), (to, m, places, received)) on communicator;
            alltoall = "MPI_Alltoall", Alltoall, serve
                (from: *const c_void, n: Count, sent: Word, to: *mut c_void, m: Count,
                 received: Word, communicator: Word)
                by alltoall((from, n, sent), (to, m, received)) on communicator;
            alltoallv = "MPI_Alltoallv", Alltoall, serve_irregular
                (from: *const c_void, n: *const Count, places_sent: *const Place, sent: Word,
                 to: *mut c_void, m: *const Count, places: *const Place, received: Word,
                 communicator: Word)
                by alltoallv((from, n, places_sent, sent), (to, m, places, received)) on communicator;
            reduce_scatter = "MPI_Reduce_scatter", ReduceScatter, serve
                (from: *const c_void, to: *mut c_void, n: *const Count, datatype: Word, op: Word,
                 communicator: Word)
                by reduce_scatter((from, to), (n, datatype, op)) on communicator;
            reduce_scatter_block = "MPI_Reduce_scatter_block", ReduceScatter, serve
                (from: *const c_void, to: *mut c_void, n: Count, datatype: Word, op: Word,
                 communicator: Word)
                by reduce_scatter_block((from, to), (n, datatype, op)) on communicator;
            gatherv = "MPI_Gatherv", Gather, serve_irregular
                (from: *const c_void, n: Count, sent: Word, to: *mut c_void, m: *const Count,
                 places: *const Place, received: Word, root: c_int, communicator: Word)
                by gatherv((from, n, sent), (to, m, places, received), root) on communicator;
            scatterv = "MPI_Scatterv", Scatter, serve_irregular
                (from: *const c_void, n: *const Count, places: *const Place, sent: Word,
                 to: *mut c_void, m: Count, received: Word, root: c_int, communicator: Word)
                by scatterv((from, n, places, sent), (to, m, received), root) on communicator;
        }
    };
}

/// Passes a call on as it is.
macro_rules! plainly {
    ($field:ident, $communicator:ident, $($argument:ident),*) => {
        // SAFETY: what the program passes is as the standard asks for.
        unsafe { (loaded().plain.$field)($($argument),*) }
    };
}

/// Passes a call on as it is; to a library that has no such function, to that with counts of 32
/// bits.
/// A program may have looked whether there is one, and found this crate's.
macro_rules! largely {
    ($field:ident, $communicator:ident, $($argument:ident),*) => {
        match &loaded().large {
            // SAFETY: what the program passes is as the standard asks for.
            Some(functions) => unsafe { (functions.$field)($($argument),*) },
            None => {
                let narrowed = || {
                    let root = [$($argument.root()),*].into_iter().flatten().next();
                    let numbers = loaded().library.numbers($communicator, root);
                    // SAFETY: lists have as many numbers where they are read.
                    $(let $argument = unsafe { $argument.narrow(numbers)? };)*
                    // SAFETY: what the program passes is as the standard asks for.
                    Some(unsafe { (loaded().plain.$field)($($argument.get()),*) })
                };
                narrowed().unwrap_or(ERR_COUNT)
            }
        }
    };
}

/// Those with counts of 32 bits.
pub(crate) mod plain {
    use std::ffi::{c_int, c_void};

    use oneport::Kind;

    use crate::call::{Arguments, Call};
    use crate::describe::{self, At};
    use crate::library::{Word, table};
    use crate::loaded;
    use crate::serve::{repeated, serve, serve_irregular};

    type Count = c_int;
    type Place = c_int;
    both!("", plainly);
}

/// Those with counts of 64 bits, since version 4 of the standard.
pub(crate) mod large {
    use std::ffi::{c_int, c_void};

    use oneport::Kind;

    use crate::call::{Arguments, Call};
    use crate::describe::{self, At};
    use crate::library::{Word, table};
    use crate::loaded;
    use crate::narrow::{Argument, ERR_COUNT, Passed};
    use crate::serve::{repeated, serve, serve_irregular};

    type Count = i64;
    type Place = isize;
    both!("_c", largely);
}
