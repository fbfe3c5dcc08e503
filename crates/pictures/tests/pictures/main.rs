//! Tests of pictures and traces, by their public functions.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::too_many_lines,
    reason = "numbers of tests are small, and a test tells one story"
)]
#![allow(missing_docs)]

mod chrome;
mod dark;
mod page;
mod svg;
mod trace;
mod traffic;
