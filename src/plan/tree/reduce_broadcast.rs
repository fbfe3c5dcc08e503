//! Allreduce by a reduction to rank 0, then a broadcast from there along the same edges backwards.
//!
//! Source: folklore. Ports and symbols: those of the reduction. Rounds and volume: twice those of
//! the reduction. Time: the reduction's, and again without computation. The root has received
//! everything when the reduction ends, and all other ranks are done with it then, so nothing
//! overlaps. Restrictions and scratch: the reduction's; the request's root is ignored.
//!
//! Operand order is kept where the reduction keeps it: at rank 0 it needs no forwarding.
//!
//! Binomial, `p = 3`: 1→0; 2→0; 0→2; 0→1.

use super::{binary, binomial, linear, two_tree};
use crate::collective::Collective;
use crate::error::Result;
use crate::plan::Request;
use crate::plan::exchange::without_computation;
use crate::plan::pipeline::{chain, uni_greedy};
use crate::schedule::Schedule;

/// An allreduce and the time that it takes, from a reduction.
macro_rules! twice {
    ($($plan:ident, $time:ident: $reduction:ident;)*) => { $(
        #[doc = concat!("Plans the allreduce over [`", stringify!($reduction), "`].")]
        ///
        /// # Errors
        /// When the request's parts do not fit together.
        pub fn $plan(request: &Request) -> Result<Schedule> {
            both(request, $reduction::plan)
        }

        #[doc = concat!("The executed time over [`", stringify!($reduction), "`], where that has a closed form.")]
        pub fn $time(request: &Request) -> Option<f64> {
            let request = rooted(request);
            Some($reduction::time(&request)? + $reduction::time(&without_computation(&request))?)
        }
    )* };
}

twice! {
    over_binomial, over_binomial_time: binomial;
    over_linear, over_linear_time: linear;
    over_binary, over_binary_time: binary;
    over_two_trees, over_two_trees_time: two_tree;
    over_chain, over_chain_time: chain;
    over_uni_greedy, over_uni_greedy_time: uni_greedy;
}

fn rooted(request: &Request) -> Request {
    Request {
        root: 0,
        ..request.clone()
    }
}

fn both(request: &Request, reduction: fn(&Request) -> Result<Schedule>) -> Result<Schedule> {
    request.validate()?;
    let request = rooted(request);
    let up = reduction(&request)?;
    // Without computation other trees may be better.
    let down = reduction(&without_computation(&request))?.into_reversed()?;
    let mut b = Schedule::builder(request.ranks, request.ports, Collective::Allreduce);
    for (r, (first, second)) in up.layout().iter().zip(down.layout()).enumerate() {
        let len = first.len.max(second.len);
        let (input, output) = (first.input.iter(), second.output.iter());
        b.layout(r, len, input.copied(), output.copied());
    }
    for schedule in [up, down] {
        for (r, program) in schedule.into_programs().into_iter().enumerate() {
            for step in program {
                b.step(r, step);
            }
        }
    }
    b.build()
}
