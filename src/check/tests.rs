//! One hand-written schedule for every kind of error, with the exact words.

use super::*;

fn report(json: &str) -> Report {
    check(&Schedule::from_json(json).unwrap(), &Options::default())
}

#[test]
fn smoke() {
    use crate::plan::{Request, registry};
    for a in registry::all() {
        for p in [1, 2, 3, 5, 8, 13] {
            for ports in [Ports::UNI, Ports::BI] {
                let mut r = Request::new(p, 24);
                r.segments = crate::plan::Segments::of_count(24, 5).unwrap();
                r.ports = ports;
                r.keep_order = !a.commutative_only;
                if a.ports.allow(ports) {
                    let rep = check(&a.plan(&r).unwrap(), &Options::default());
                    assert!(rep.ok(), "{rep}");
                    assert!(rep.keeps_order || a.commutative_only);
                }
            }
        }
    }
}

#[test]
fn example() {
    let r = report(
        r#"{ "ranks": 3, "ports": "bi", "ported": 1, "collective": {"kind": "broadcast", "root": 0},
      "layout": [ {"len": 4, "input": [[0,4]], "output": [[0,4]]}, {"len": 4, "input": [], "output": [[0,4]]}, {"len": 4, "input": [], "output": [[0,4]]} ],
      "programs": [ [ {"send": {"to": 1, "spans": [[0,4]]}} ],
                    [ {"recv": {"from": 0, "spans": [[0,4]]}}, {"send": {"to": 2, "spans": [[0,3]]}} ],
                    [ {"recv": {"from": 1, "spans": [[0,3]]}} ] ] }"#,
    );
    assert!(!r.ok());
}
