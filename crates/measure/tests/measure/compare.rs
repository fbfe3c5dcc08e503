//! Tests of `compare`: it asks what the request asks, at all numbers of ranks and sizes.

use std::collections::BTreeMap;

use oneport::schedule::Builder;
use oneport::{Collective, CostModel, Kind, Request};
use oneport_measure::compare;

fn cost() -> CostModel {
    CostModel::new(10.0, 1.0)
}

/// A multicast to two ranks takes the same time however many others there are.
#[test]
fn targets_and_a_free_root_are_kept() {
    let multicast = Request::new(Kind::Multicast, 4, 1).targets(vec![1, 2]);
    let sweep = compare(&multicast.cost(cost()), &[4, 9], &[100], &[]).unwrap();
    let times = sweep.points().into_iter().map(|point| {
        let rows = sweep.at(point).into_iter();
        let times: BTreeMap<_, _> = rows.map(|row| (&row.algorithm, row.value())).collect();
        times
    });
    let times: Vec<_> = times.collect();
    assert!(
        times.len() == 2 && times[0].len() > 3 && times[0] == times[1],
        "{times:?}"
    );

    let from_last = |p: usize, m: usize| {
        let mut b = Builder::laid_out(p, Collective::Broadcast { root: p - 1 }, m);
        for rank in 0..p - 1 {
            b.transfer(p - 1, rank, 0..m);
        }
        b.build()
    };
    let free = Request::broadcast(2, 1).free_root(true).cost(cost());
    let sweep = compare(&free, &[3], &[5], &[("last", &from_last)]).unwrap();
    assert!(sweep.rows.iter().any(|row| row.own));
}

#[test]
fn what_does_not_fit_the_points_is_an_error() {
    let blocks = Request::allgather(2, 1).blocks(vec![1, 2]);
    let targets = Request::new(Kind::Multicast, 4, 1).targets(vec![3]);
    for (request, ranks) in [(blocks, 2), (targets, 2)] {
        let error = compare(&request.cost(cost()), &[ranks], &[10], &[]).unwrap_err();
        assert!(error.is_usage(), "{error}");
    }
}

/// Segments of one element are best where messages cost almost nothing to start.
#[test]
fn rows_say_what_a_search_left_out() {
    let request = Request::broadcast(5, 1).cost(CostModel::new(1e-4, 1.0));
    let sweep = compare(&request, &[5], &[720_720], &[]).unwrap();
    let of = |name: &str| sweep.rows.iter().find(|row| row.algorithm == name).unwrap();
    assert!(!of("two-tree").left_out.is_empty());
    assert!(of("linear").left_out.is_empty());
}
