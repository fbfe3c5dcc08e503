//! Tests of the summary of repetitions.

use std::cmp::Ordering;

use oneport_measure::tune::Summary;

#[test]
fn settled_when_apart_or_together() {
    let of = |start: u64, width: u64| {
        let samples: Vec<u64> = (0..20).map(|i| start + i * width).collect();
        Summary::of(&samples).unwrap()
    };
    assert!(of(1000, 1).settled(&of(1100, 1), 0.0));
    assert_eq!(of(1000, 1).clearly(&of(1100, 1)), Ordering::Less);
    assert!(of(1000, 1).settled(&of(1001, 1), 0.02));
    assert!(!of(1000, 1).settled(&of(1001, 1), 0.0));
    assert!(!of(1000, 10).settled(&of(1050, 10), 0.02));
    let few = Summary::of(&[1, 2, 3]).unwrap();
    assert!(!few.settled(&of(1000, 1), 1.0));
    assert_eq!(Summary::of(&[]), None);
    assert!(of(0, 0).settled(&of(0, 0), 0.0));
}
