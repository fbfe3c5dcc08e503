//! Tests of options: each has its effect, or is refused or noted.

use crate::support::run::{json, text};

/// Gathers in which the published choice of the root is up to 1.6 times slower than root 0.
const UNEVEN: &str = "gather --sizes 100KiB,1,1KiB,0,64KiB,300,20KiB,5KiB,5KiB,0,0,12KiB \
                      --alpha 10us --beta 1ns";

#[test]
fn a_free_root_is_at_least_as_good_as_root_0() {
    let rows = |options: &str| json(&format!("compare {UNEVEN} {options}"))["rows"].clone();
    let (fixed, free) = (rows("--root 0"), rows("--root free"));
    let fixed = fixed.as_array().unwrap();
    assert_eq!(fixed.len(), free.as_array().unwrap().len());
    for row in free.as_array().unwrap() {
        let same = fixed.iter().find(|f| f["algorithm"] == row["algorithm"]);
        let (free, fixed) = (row["time"].as_f64(), same.unwrap()["time"].as_f64());
        assert!(free <= fixed, "{row}");
    }
    let heading = text(&format!("compare {UNEVEN} --root free"));
    assert!(heading.starts_with("gather, free root (0, 4), 12 ranks"));
    let links = "--alpha 1 --beta 1";
    let simulated = text(&format!("simulate broadcast -p 3 --root free {links}"));
    assert!(simulated.contains("broadcast, root 0 (free), 3 ranks"));
}
