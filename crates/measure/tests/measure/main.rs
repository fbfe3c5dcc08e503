//! Tests of calibration, tuning, guidelines and estimates, by their public functions.

#![allow(missing_docs)]

mod csv;
mod estimate;
mod fit;
mod guidelines;
mod histogram;
mod page;
mod profile;
mod rules;
mod summary;
mod tune;
