//! Trees of gathers and scatters.

use oneport::{CostModel, ErrorKind, Ports};
use oneport_formats::{msccl, read, tree};

/// Figure 1 of the paper on optimal trees by its equations: a rank's time is that of its slowest
/// child so far, plus the message of the next.
#[test]
fn a_tree_takes_the_time_of_the_equations() {
    // 0 receives from 3, then from 1, which receives from 2.
    let text = |collective: &str| {
        format!(
            r#"{{"collective": "{collective}", "sizes": [4, 0, 9, 20], "children": [[3, 1], [2], [], []]}}"#
        )
    };
    let cost = CostModel::new(10.0, 2.0);
    for collective in ["gather", "scatter"] {
        let schedule = read(&text(collective), &msccl::ReadOptions::default()).unwrap();
        let schedule = schedule.expect("a tree");
        assert!(schedule.check().is_correct());
        assert_eq!((schedule.ranks(), schedule.ports()), (4, Ports::BI));
        assert_eq!(schedule.collective().root(), Some(0));
        // The block of 2 is at 1 before rank 0 has received from 3.
        let by_hand = (10.0 + 40.0) + (10.0 + 18.0);
        assert_eq!(
            schedule.simulate(&cost).unwrap().makespan(),
            by_hand,
            "{collective}"
        );
    }
}

#[test]
fn what_is_no_tree_is_refused() {
    for (children, why) in [
        ("[[1], [0]]", "0 of 2 ranks hang together"),
        ("[[], []]", "1 of 2 ranks hang together"),
        ("[[1, 1], []]", "a child twice"),
        ("[[2], []]", "2 is not one of 2 ranks"),
        ("[[1]]", "1 is not one of 1 ranks"),
        ("[[1], []], \"copy\": 1", "unknown field"),
    ] {
        let text =
            format!(r#"{{"collective": "gather", "sizes": [1, 2], "children": {children}}}"#);
        let error = tree::read(&text).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Malformed(_)), "{error}");
        assert!(error.to_string().contains(why), "{error}");
    }
    // A schedule may be called so.
    let named = r#"{"name": "children", "ranks": 1}"#;
    assert!(
        read(named, &msccl::ReadOptions::default())
            .unwrap()
            .is_none()
    );
}
