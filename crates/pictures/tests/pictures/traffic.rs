//! Test of the traffic by level.

use oneport::machine::Links;
use oneport::{CostModel, Request};
use oneport_pictures::Traffic;

#[test]
fn traffic_is_counted_by_level() {
    let links = Links::from_json(
        r#"{"levels": [{"groups": [[0, 1], [2, 3], [4, 5], [6, 7]], "alpha": 1, "beta": 1},
            {"groups": [[0, 1, 2, 3], [4, 5, 6, 7]], "alpha": 2, "beta": 2},
            {"alpha": 3, "beta": 3}]}"#,
    );
    let cost = CostModel::heterogeneous(links.unwrap()).unwrap();
    let levels = cost.levels(8).unwrap();
    let traffic = |name: &str| {
        let schedule = Request::broadcast(8, 5).plan(name).unwrap();
        let traffic = Traffic::new(&schedule.with_element_bytes(2)).by_level(&levels);
        let numbers = traffic
            .iter()
            .map(|t| [t.messages as u64, t.bytes, t.max_sent]);
        numbers.collect::<Vec<_>>()
    };
    // 0→4; 0→2, 4→6; 0→1, 2→3, 4→5, 6→7.
    assert_eq!(traffic("binomial"), [[4, 40, 10], [2, 20, 10], [1, 10, 10]]);
    assert_eq!(traffic("linear"), [[1, 10, 10], [2, 20, 20], [4, 40, 40]]);
}
