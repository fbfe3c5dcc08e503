//! Test data: inputs that reveal a wrong schedule, and the outputs that every rank must hold after
//! a right one.
//!
//! - Values: a test value is a function of the data set, the rank and the index, made from 64
//!   scrambled bits. So no value tells anything about another, and nothing repeats. The operator
//!   determines how the bits become a value ([`Purpose`]).
//! - No identities: a value is never an identity of an operator (0 and 1 among them), since a
//!   contribution that is lost, or counted twice, would then change nothing.
//! - Visibility: the result shows as many contributions as possible. Sums of floats are exact,
//!   factors can be divided out again, and for minima and maxima a different rank holds the extreme
//!   value of each element.
//! - Order: exact sums do not show in which order a rank has combined. A further set of data has
//!   sums that are rounded: each output must have the bits of the schedule's own tree.
//! - Poison: the rest of a buffer holds values that no input has and that spoil whatever they are
//!   combined with.
//! - Repetitions: both inputs and poison change from repetition to repetition, so data left over
//!   from an earlier one are as wrong as data never written.
//!
//! | file | content |
//! |---|---|
//! | `values` | the values of inputs |
//! | `poison` | the values that fill the rest of a buffer |
//! | `oracle` | the right outputs, computed sequentially |
//! | `inexact` | the outputs where the order of combining decides the bits |
//! | `digest` | hashes of outputs |
//! | `run_data` | the data of a run: filling buffers, finding the first wrong element |
//! | `buffers` | a run's data without their element type: buffers of ranks, and what is wrong |

mod buffers;
mod digest;
mod inexact;
mod oracle;
mod poison;
mod run_data;
mod values;

pub(crate) use buffers::RunBuffers;
pub(crate) use inexact::trees_to_evaluate;
pub use oracle::{inputs, oracle};
pub(crate) use poison::{poison_float, poison_integer};
pub use run_data::Mismatch;
pub(crate) use run_data::{RunData, RunResults};
pub(crate) use values::{Draw, Purpose};
pub(crate) use values::{sample_float, sample_integer};
