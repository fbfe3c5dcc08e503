//! Tests of pictures and traces, by their public functions.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "the numbers of tests are small"
)]
#![allow(missing_docs)]

mod chrome;
mod dark;
mod page;
mod svg;
mod trace;
mod traffic;
