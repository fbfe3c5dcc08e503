//! Requests as they are given: [`Request::plan`] and [`Request::time`] keep the segments of the
//! request. Planners may search for those of their parts.
//!
//! ```text
//! Request::time
//!   registry::find                      the algorithm of this name            registry.rs
//!   Algorithm::time                     the least of all
//!     Space::variants                   uses of the ports, and roots          open.rs
//!   * Variant::time_or_infinity         as in the search, without a limit     variant.rs
//! ```
//!
//! [`Request::plan`] times them in the same way if there are several, and plans the fastest.
//! [`Request::plan_best`] searches: see `search.rs`.

use std::borrow::Cow;

use super::open::{SegmentChoice, Space, Variants, first_of_least};
use super::variant::Variant;
use crate::error::{Error, Result};
use crate::plan::Request;
use crate::plan::refusal::Refusal;
use crate::plan::registry::{self, Algorithm, Planned};
use crate::schedule::Schedule;

impl Request {
    /// Plans it by the algorithm with this name, one of those of [`registry::of`] its collective.
    /// The [planners](crate::plan) state the shapes of the buffers and the time of planning. Errors
    /// are those of [`registry::find`] and [`Algorithm::plan`].
    pub fn plan(&self, algorithm: &str) -> Result<Schedule> {
        registry::find(self.kind, algorithm)?.plan(self)
    }

    /// Model time of the algorithm with this name in the request's cost model, with the segments of
    /// the request, where [`Request::plan_best`] searches for them: [`registry::find`], then
    /// [`Algorithm::time`], which see. Up to rounding errors it is the time in a simulation of the
    /// schedule that [`Request::plan`] gives, with its root if that is free.
    ///
    /// ```
    /// use oneport::{CostModel, Request};
    /// let request = Request::broadcast(8, 1).cost(CostModel::new(1000.0, 0.1));
    /// assert_eq!(request.time("binomial")?, 3.0 * 1000.1);
    /// # Ok::<(), oneport::Error>(())
    /// ```
    pub fn time(&self, algorithm: &str) -> Result<f64> {
        registry::find(self.kind, algorithm)?.time(self)
    }
}

/// An algorithm for a request with its own segments: the use of the ports and, if it is free, the
/// root are those of the smallest model time, among those that are compared: see
/// [`LeftOut`](crate::plan::choose::LeftOut).
impl Algorithm {
    /// Plans `request` and stores the schedule, under the name of the algorithm. The
    /// [planners](crate::plan) state the shapes of the buffers and the time of planning.
    ///
    /// # Errors
    /// As [`accepts`](Self::accepts), if the root is free and the search for the best takes too
    /// long ([`Reason::FreeRoot`](crate::plan::refusal::Reason::FreeRoot)), and where the planner
    /// itself fails: a buffer would overflow, there are too many ranks for its search, or the links
    /// do not connect all ranks.
    pub fn plan(&self, request: &Request) -> Result<Schedule> {
        self.variant_to_plan(request)?.plan()
    }

    /// As [`Algorithm::plan`], but does not store the schedule if the algorithm can stream it.
    pub fn planned(&self, request: &Request) -> Result<Planned> {
        self.variant_to_plan(request)?.planned()
    }

    /// For each use of the ports, for each root. Of these an infinite time is no error here.
    fn variants_as_given(&self, request: &Request) -> Result<Variants, Refusal> {
        let space = Space {
            request: Cow::Borrowed(request),
            algorithms: vec![self.clone()],
            segments: SegmentChoice::Given(request.segments.clone()),
            shares_ports: false,
        };
        space.variants(self)
    }

    fn variant_to_plan(&self, request: &Request) -> Result<Variant> {
        let mut variants = self.variants_as_given(request)?;
        if let Some(only) = variants.only() {
            return Ok(only);
        }
        let each = variants.each;
        let timed = each.map(|variant| Ok::<_, Error>((variant.time_or_infinity()?, variant)));
        Ok(first_of_least(timed, |(time, _)| *time)?.1)
    }

    /// Model time of `request`, with its own segments: by the closed form where there is one for
    /// this request, which equals the simulated time up to rounding errors, by planning and
    /// simulation otherwise. A simulation is linear in the number of steps, planning may take
    /// longer: the [planners](crate::plan) state it. It is infinite if a message has no link.
    ///
    /// # Errors
    /// As [`Algorithm::plan`], but where a formula gives the time the planner is not asked.
    pub fn time(&self, request: &Request) -> Result<f64> {
        let each = self.variants_as_given(request)?.each;
        first_of_least(each.map(|variant| variant.time_or_infinity()), |time| *time)
    }
}
