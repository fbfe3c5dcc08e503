//! Uni-greedy reduction without a schedule: every rank computes its next transfer as it goes.
//!
//! - Source: Lowery & Langou, algorithm 1 and figure 2.
//! - Ports: unidirectional, one-ported.
//! - Symbols: `p` ranks, `q` segments.
//! - Rounds, volume and time: as `uni_greedy`.
//! - Computation at each rank: constant time for each of the `q (p - 1)` transfers, and memory for
//!   `p` states.
//! - Restrictions: the operator must commute.
//!
//! All ranks compute the same sequence of transfers ([`transfers`]), and each performs those that
//! name it. A rank handles the segments in order, so two buffers of one segment each are enough:
//!
//! | message | destination |
//! |---|---|
//! | the first of a segment | the first buffer; the rank's own segment is combined into it |
//! | further ones of the segment | the second buffer, which is combined into the first |
//!
//! Then the first buffer is sent or, if the rank received nothing, its own segment straight from
//! the vector. So the input of every rank but the root remains unchanged. The root combines in
//! place.

use oneport::internal::pipeline::uni_greedy::transfers;
use oneport::plan::Request;
use oneport::run::{Element, Endpoint, Unidirectional};
use oneport::schedule::{Layout, Order, Span};
use oneport::{Error, ErrorKind, Result};

/// Reduces a vector to the request's root, computing every transfer as it goes. All ranks run it.
///
/// - Buffer: the vector (`m` elements) and, except at the root, two segment buffers (twice the
///   largest segment); see [`uni_greedy_layout`]. A longer buffer is allowed.
/// - Result: at the end the root holds the result in place of its vector. The vectors of the other
///   ranks are unchanged.
/// - Request: the segments, the root, the cost model and the element size come from `request`,
///   which must be the same at all ranks. Its ports do not matter.
/// - Time: under the same cost model, without overlap of communication and computation, exactly the
///   model time of the planned uni-greedy.
///
/// # Errors
/// When the request is for another number of ranks, the operator does not commute, the request
/// keeps operands in order, the buffer is too short, or as described at [`Endpoint`].
///
/// # Example
/// ```
/// use oneport::internal::pipeline::uni_greedy;
/// use oneport::plan::Segments;
/// use oneport::distributed::{uni_greedy_layout, uni_greedy_reduce};
/// use oneport::run::{Operator, ScopeOptions, Team};
/// use oneport::{CostModel, Request};
///
/// let request = Request::reduce(5, 100).segment_elems(30).cost(CostModel::new(50.0, 1.0).gamma(0.5)).element_bytes(4);
/// let buffer = |layout: &oneport::Layout| {
///     let mut buffer = vec![2i32; 100];
///     buffer.resize(layout.len, 0);
///     buffer
/// };
/// let mut buffers: Vec<_> = uni_greedy_layout(&request)?.iter().map(buffer).collect();
/// assert_eq!((buffers[0].len(), buffers[1].len()), (100, 100 + 2 * 30));
///
/// let mut options = ScopeOptions::new(Operator::named("sum")?);
/// options.cost = request.get_cost().clone();
/// let outcome = Team::new(5)?.scope(&mut buffers, &options, |e| uni_greedy_reduce(e, &request))?;
/// assert_eq!(buffers[0], [10; 100]);
/// assert_eq!(buffers[1][..100], [2; 100]);
/// assert_eq!(Some(outcome.model_time()), uni_greedy::time(&request));
/// # Ok::<(), oneport::Error>(())
/// ```
pub(crate) fn uni_greedy_reduce<T: Element>(
    endpoint: &mut Endpoint<'_, T, Unidirectional>,
    request: &Request,
) -> Result<()> {
    validate(endpoint, request)?;
    let (ranks, root) = (request.ranks(), request.get_root());
    let me = endpoint.rank();
    let real = |v: u32| (v as usize + root) % ranks;
    let spans = request.get_segments().spans();
    let buffers = Buffers::new(request);
    // This rank's partial result for the current segment, after its first combination.
    let mut combined: Option<Span> = None;
    for t in transfers(request) {
        let (from, to) = (real(t.from), real(t.to));
        let own = spans[t.segment as usize];
        if from == me {
            endpoint.send(to, combined.take().unwrap_or(own))?;
        } else if to == me {
            let order = Order::by_rank(me, from);
            if me == root {
                endpoint.recv_combine(from, own, order)?;
            } else if let Some(combined) = combined {
                let received = buffers.second(own);
                endpoint.recv(from, received)?;
                endpoint.combine(received, combined, order)?;
            } else {
                let received = buffers.first(own);
                endpoint.recv(from, received)?;
                endpoint.combine(own, received, order)?;
                combined = Some(received);
            }
        }
    }
    Ok(())
}

/// The buffers that [`uni_greedy_reduce`] needs, by rank.
///
/// # Errors
/// When there is no rank, the root is out of range, or a buffer would be too long.
pub(crate) fn uni_greedy_layout(request: &Request) -> Result<Vec<Layout>> {
    request.validate()?;
    let vector = Span::new(0, request.elements());
    let len = Buffers::new(request).end()?;
    let layout = |rank| {
        let is_root = rank == request.get_root();
        Layout {
            len: if is_root { vector.len } else { len },
            input: vector.into(),
            output: is_root.then_some(vector).into_iter().collect(),
        }
    };
    Ok((0..request.ranks()).map(layout).collect())
}

/// The two segment buffers after the vector.
#[derive(Debug, Clone, Copy)]
struct Buffers {
    elements: usize,
    largest: usize,
}

impl Buffers {
    fn new(request: &Request) -> Buffers {
        let sizes = request.get_segments().sizes().iter().copied();
        Buffers {
            elements: request.elements(),
            largest: sizes.max().unwrap_or(0),
        }
    }

    /// End of the second buffer.
    fn end(self) -> Result<usize> {
        self.largest
            .checked_mul(2)
            .and_then(|n| n.checked_add(self.elements))
            .ok_or_else(|| usage("the vector and two segment buffers are too long"))
    }

    /// The beginning of the first buffer, as long as `segment`.
    fn first(self, segment: Span) -> Span {
        Span::new(self.elements, segment.len)
    }

    /// The beginning of the second buffer, as long as `segment`.
    fn second(self, segment: Span) -> Span {
        Span::new(self.elements + self.largest, segment.len)
    }
}

fn validate<T: Element>(
    endpoint: &mut Endpoint<'_, T, Unidirectional>,
    request: &Request,
) -> Result<()> {
    request.validate()?;
    request.get_cost().validate()?;
    let (rank, ranks) = (endpoint.rank(), endpoint.ranks());
    if request.ranks() != ranks {
        return Err(usage(format!(
            "rank {rank}: the request is for {} ranks, the team has {ranks}",
            request.ranks()
        )));
    }
    let operator = endpoint.operator();
    if request.get_keep_order() || !operator.commutes() {
        return Err(usage(format!(
            "rank {rank}: uni-greedy needs an operator that commutes{}",
            if operator.commutes() {
                ", and the request keeps operands in order".into()
            } else {
                format!(", and {} does not", operator.name())
            }
        )));
    }
    let is_root = rank == request.get_root();
    let needed = if is_root {
        request.elements()
    } else {
        Buffers::new(request).end()?
    };
    let len = endpoint.data().len();
    if len < needed {
        return Err(usage(format!(
            "rank {rank}: the buffer has {len} elements, and uni-greedy needs {needed}: the vector of {}{}",
            request.elements(),
            if is_root {
                String::new()
            } else {
                format!(
                    " and two segment buffers of {}",
                    Buffers::new(request).largest
                )
            }
        )));
    }
    Ok(())
}

/// An error of the caller's.
fn usage(message: impl Into<String>) -> Error {
    ErrorKind::Usage(message.into()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    use oneport::internal::pipeline;
    use oneport::plan::{Segments, registry};
    use oneport::run::{Operator, ScopeOptions, Team, inputs, oracle};

    use oneport::{Collective, CostModel, Kind, Ports, Schedule};

    fn request(p: usize, sizes: &[usize], root: usize) -> Request {
        Request::reduce(p, 0)
            .segments(Segments::of_sizes(sizes.to_vec()).unwrap())
            .root(root)
            .ports(Ports::UNI)
            .cost(CostModel::new(7.3, 0.9).gamma(1.7))
            .element_bytes(8)
    }

    fn options(name: &str, request: &Request) -> ScopeOptions<i64> {
        let mut options = ScopeOptions::new(Operator::named(name).unwrap());
        options.cost = request.get_cost().clone();
        options.record = true;
        options
    }

    /// Runs the reduction and verifies its data, its model time and the recorded schedule.
    fn verify(team: &mut Team, request: &Request, operator: &str) {
        let collective = Collective::Reduce {
            root: request.get_root(),
        };
        let layout = uni_greedy_layout(request).unwrap();
        let options = options(operator, request);
        let vectors = inputs(&collective, &layout, &options.operator);
        let mut buffers = vectors.clone();
        for (buffer, l) in buffers.iter_mut().zip(&layout) {
            buffer.resize(l.len, -1);
        }
        let outcome = team
            .scope(&mut buffers, &options, |e| uni_greedy_reduce(e, request))
            .unwrap();

        let m = request.elements();
        let results = oracle(&collective, &layout, &options.operator, &vectors).unwrap();
        let largest = request.get_segments().sizes().iter().max().unwrap();
        for (rank, buffer) in buffers.iter().enumerate() {
            if rank == request.get_root() {
                assert_eq!(*buffer, results[rank], "{request:?}");
            } else {
                assert_eq!(buffer[..m], vectors[rank], "rank {rank}'s input changed");
                assert_eq!(buffer.len(), m + 2 * largest);
            }
        }

        let planned = registry::find(Kind::Reduce, "uni-greedy")
            .unwrap()
            .plan(request)
            .unwrap();
        let time = |schedule: &Schedule| {
            let schedule = schedule.clone().with_element_bytes(8);
            schedule.simulate(request.get_cost()).unwrap().rank_times()
        };
        let rank_times = outcome.rank_times.clone();
        assert_eq!(rank_times, time(&planned), "{request:?}");
        // The evaluator skips whole periods, which rounds differently.
        let evaluated = pipeline::uni_greedy::time(request).unwrap();
        let difference = (outcome.model_time() - evaluated).abs();
        assert!(difference <= 1e-12 * evaluated, "{request:?}");
        let recorded = outcome.schedule(&collective, &layout).unwrap();
        assert_eq!(rank_times, time(&recorded));
        let report = recorded.check();
        assert!(report.is_correct(), "{request:?}: {:?}", report.errors);
    }

    #[test]
    fn reduces_in_the_planned_time() {
        for p in (1..=17).chain([32]) {
            let mut team = Team::new(p).unwrap();
            let segmentations: [&[usize]; 6] = [
                &[9],
                &[0],
                &[4, 4, 2],
                &[1, 5, 0, 3, 7, 2],
                &[0, 6, 0],
                &[3; 12],
            ];
            for (i, sizes) in segmentations.into_iter().enumerate() {
                let operator = ["sum", "min", "bxor"][i % 3];
                for root in [0, p / 2, p - 1] {
                    verify(&mut team, &request(p, sizes, root), operator);
                }
            }
        }
        let mut team = Team::new(6).unwrap();
        for root in 0..6 {
            verify(&mut team, &request(6, &[3, 1, 2], root), "sum");
        }
    }

    #[test]
    fn a_longer_buffer_is_allowed() {
        let r = request(3, &[2, 2], 1);
        let mut buffers = vec![vec![1i64; 50]; 3];
        Team::new(3)
            .unwrap()
            .scope(&mut buffers, &options("sum", &r), |e| {
                uni_greedy_reduce(e, &r)
            })
            .unwrap();
        assert_eq!(buffers[1][..5], [3, 3, 3, 3, 1]);
    }

    #[test]
    fn misuse_ends_in_clear_errors() {
        let mut team = Team::new(3).unwrap();
        let good = request(3, &[4, 4, 2], 1);
        let mut message = |r: &Request, operator: Operator<i64>, lens: [usize; 3]| {
            let mut options = options("sum", r);
            options.operator = operator;
            let mut buffers = lens.map(|len| vec![0i64; len]).to_vec();
            let error = team
                .scope(&mut buffers, &options, |e| uni_greedy_reduce(e, r))
                .unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Usage(_)), "{error}");
            error.to_string()
        };
        let sum = || Operator::named("sum").unwrap();
        let lens = [18, 10, 18];
        assert_eq!(
            message(&good, sum(), [18, 10, 17]),
            "rank 2: the buffer has 17 elements, and uni-greedy needs 18: the vector of 10 and two segment buffers of 4"
        );
        assert_eq!(
            message(&good, sum(), [18, 9, 18]),
            "rank 1: the buffer has 9 elements, and uni-greedy needs 10: the vector of 10"
        );
        let left = Operator::new("left", false, |a, _| a);
        assert!(message(&good, left, lens).contains("commutes, and left does not"));
        let r = good.clone().keep_order(true);
        assert!(message(&r, sum(), lens).contains("keeps operands in order"));
        let r = Request::reduce(4, 10);
        assert!(message(&r, sum(), lens).contains("for 4 ranks, the team has 3"));
        let r = good.clone().root(3);
        assert!(message(&r, sum(), lens).contains("root 3"));
        let r = good.cost(CostModel::new(7.3, -1.0));
        let mut buffers = lens.map(|len| vec![0i64; len]).to_vec();
        let options = ScopeOptions::new(sum());
        let run = team.scope(&mut buffers, &options, |e| uni_greedy_reduce(e, &r));
        assert!(run.unwrap_err().to_string().contains("beta"));
    }
}
