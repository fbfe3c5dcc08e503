//! Tests of pictures and traces, by their public functions.

#![allow(missing_docs)]

mod chrome;
mod dark;
mod page;
mod svg;
mod trace;
mod traffic;
