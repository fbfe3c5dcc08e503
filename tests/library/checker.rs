//! Tests of the checker: one hand-written schedule for every kind of error, with the exact message.

use oneport::check::{FindingKind, Options, Report};
use oneport::schedule::{Builder, Layout};
use oneport::{Collective, Kind, Order, Ports, Request, Schedule, Span, Spans, Step};

/// A schedule with the given layouts, each written as `len input output`.
fn schedule(ports: &str, collective: &str, layout: &[&str], programs: &[&str]) -> Schedule {
    let layout: Vec<String> = layout
        .iter()
        .map(|l| {
            let (len, regions) = l.split_once(' ').unwrap();
            let (input, output) = regions.split_once(' ').unwrap();
            format!(r#"{{"len": {len}, "input": {input}, "output": {output}}}"#)
        })
        .collect();
    let json = format!(
        r#"{{"ranks": {}, "ports": "{ports}", "ported": 1, "collective": {collective}, "layout": [{}], "programs": [{}]}}"#,
        programs.len(),
        layout.join(","),
        programs.join(",")
    );
    Schedule::from_json(&json).unwrap()
}

fn messages(s: &Schedule) -> Vec<String> {
    let report = s.check();
    report.errors.iter().map(ToString::to_string).collect()
}

const BROADCAST: &str = r#"{"kind": "broadcast", "root": 0}"#;
const REDUCE: &str = r#"{"kind": "reduce", "root": 0}"#;
const ALLREDUCE: &str = r#"{"kind": "allreduce"}"#;
const ALLGATHER: &str = r#"{"kind": "allgather"}"#;

/// Two ranks: rank 0 holds the vector and rank 1 must receive it.
fn two(programs: [&str; 2]) -> Schedule {
    let layout = ["4 [[0,4]] [[0,4]]", "4 [] [[0,4]]"];
    schedule("bi", BROADCAST, &layout, &programs)
}

/// Every rank has two elements, and rank 0 must end with their sum; two more elements are scratch.
fn sum(ports: &str, programs: &[&str]) -> Schedule {
    let mut layout = vec!["4 [[0,2]] [[0,2]]"];
    layout.resize(programs.len(), "4 [[0,2]] []");
    schedule(ports, REDUCE, &layout, programs)
}

#[test]
fn correct() {
    let s = two([
        r#"[{"send": {"to": 1, "spans": [[0,4]]}}]"#,
        r#"[{"recv": {"from": 0, "spans": [[0,4]]}}]"#,
    ]);
    let report = s.check();
    assert!(report.is_correct() && report.keeps_order);
    assert_eq!(report.to_string(), "correct");
    let s = sum(
        "uni",
        &[
            r#"[{"recv_combine": {"from": 1, "spans": [[0,2]], "order": "theirs_first"}}]"#,
            r#"[{"send": {"to": 0, "spans": [[0,2]]}}]"#,
        ],
    );
    let report = s.check();
    assert!(report.is_correct() && !report.keeps_order);
    assert_eq!(
        serde_json::to_string(&report).unwrap(),
        r#"{"ok":true,"errors":[],"more":0,"keeps_order":false,"notes":[],"more_notes":0}"#
    );
    assert_eq!(
        report.to_string(),
        "correct for operators that commute: operands are not combined in rank order"
    );
    let keep_order = Options {
        keep_order: true,
        ..Options::default()
    };
    let report = s.check_with(&keep_order);
    assert_eq!(
        report.to_string(),
        "1 error\n  rank 0, output elements 0 to 1 (from position 0 of its buffer): expected x0+x1 [0], found x1+x0 [0]: \
         x1 stands where x0 should, out of rank order (x0+x1 [0] is element 0 of the inputs of ranks 0 to 1)"
    );
    assert_eq!(report.errors[0].kind, FindingKind::OperandOrder);
}

#[test]
fn structure() {
    for (program, expected) in [
        (
            r#"{"copy": {"src": [0,2], "dst": [1,2]}}"#,
            "rank 0, step 1 (copy): reads and writes element 1 (spans [0, 2] and [1, 2])",
        ),
        (
            r#"{"copy": {"src": [0,2], "dst": [[2,2],[3,0],[2,1]]}}"#,
            "rank 0, step 1 (copy): writes element 2 twice (spans [2, 1] and [2, 2])",
        ),
        (
            r#"{"combine": {"src": [0,2], "dst": [2,1]}}"#,
            "rank 0, step 1 (combine): the source has 2 elements, the destination 1",
        ),
        (
            r#"{"send": {"to": 0, "spans": []}}"#,
            "rank 0, step 1 (send to 0): a rank cannot exchange messages with itself: copy instead",
        ),
        (
            r#"{"send": {"to": 1, "spans": [], "port": 1}}"#,
            "rank 0, step 1 (send to 1): port 1 does not exist: a 1-ported bidirectional rank has 1 port of each kind, numbered from 0",
        ),
        (
            r#"{"send": {"to": 1, "spans": [], "port": 18446744073709551615}}"#,
            "rank 0, step 1 (send to 1): port 18446744073709551615 does not exist: a 1-ported bidirectional rank has 1 port of each kind, numbered from 0",
        ),
    ] {
        let first = format!(r#"[{{"send": {{"to": 1, "spans": [[0,4]]}}}}, {program}]"#);
        let s = two([&first, r#"[{"recv": {"from": 0, "spans": [[0,4]]}}]"#]);
        assert_eq!(messages(&s)[0], expected);
    }
    let s = two([
        r#"[{"send": {"to": 1, "spans": [[0,4]]}}]"#,
        r#"[{"recv": {"from": 0, "spans": [[0,3],[2,1]]}}]"#,
    ]);
    assert_eq!(
        messages(&s),
        ["rank 1, step 0 (recv from 0): writes element 2 twice (spans [0, 3] and [2, 1])"]
    );
}

#[test]
fn layouts() {
    let s = schedule(
        "bi",
        BROADCAST,
        &["3 [[0,2]] [[0,2]]", "3 [] [[0,3]]"],
        &["[]", "[]"],
    );
    assert_eq!(
        messages(&s),
        ["broadcast: rank 1 has 3 output elements, expected 2"]
    );
    let s = schedule("bi", ALLGATHER, &["3 [[0,2]] [[0,2],[1,1]]"], &["[]"]);
    assert_eq!(
        messages(&s),
        [
            "rank 0: output names element 1 twice (spans [0, 2] and [1, 1])",
            "allgather: rank 0 has 3 output elements, expected 2"
        ]
    );
    // Lengths whose sum overflows are reported like any other error.
    let huge = "18446744073709551615 [[0,18446744073709551615]] []";
    let s = schedule(
        "bi",
        r#"{"kind": "gather", "root": 0}"#,
        &[huge; 2],
        &["[]", "[]"],
    );
    assert_eq!(
        messages(&s),
        ["gather: rank 0 has 0 output elements, expected 18446744073709551615"]
    );
}

#[test]
fn matching() {
    let s = two([
        r#"[{"send": {"to": 1, "spans": [[0,4]]}}, {"send": {"to": 1, "spans": [[0,1]]}}, {"recv": {"from": 1, "spans": []}}]"#,
        r#"[{"recv": {"from": 0, "spans": [[0,3]]}}]"#,
    ]);
    let report = s.check();
    assert_eq!(
        messages(&s),
        [
            "rank 0, step 2 (recv from 1): no partner: this is receive number 1 between the two, and rank 1 has no send to rank 0",
            "rank 1, step 0 (recv from 0): expects 3 elements, but rank 0 sends 4 in its step 0",
            "rank 0, step 1 (send to 1): no partner: this is send number 2 between the two, and rank 1 has only one receive from rank 0",
        ]
    );
    assert_eq!(report.errors[0].kind, FindingKind::Unmatched);
    assert_eq!(
        serde_json::to_string(&report.errors[1]).unwrap(),
        r#"{"kind":"message_length","rank":1,"step":0,"peer":0,"port":0,"expected":"3 elements","found":"4 elements","message":"rank 1, step 0 (recv from 0): expects 3 elements, but rank 0 sends 4 in its step 0"}"#
    );
}

#[test]
fn deadlock() {
    // Each rank combines into the span that it sends.
    let exchange = |peer: usize| {
        format!(
            r#"[{{"send": {{"to": {peer}, "spans": [[0,1]]}}}}, {{"recv_combine": {{"from": {peer}, "spans": [[0,1]]}}}}]"#
        )
    };
    let layout = ["1 [[0,1]] [[0,1]]"; 2];
    let s = schedule("bi", ALLREDUCE, &layout, &[&exchange(1), &exchange(0)]);
    let expected = "deadlock: rank 0 step 1 (recv_combine from 1) waits for its step 0 (send to 1); \
                    rank 1 step 1 (recv_combine from 0) waits for its step 0 (send to 0)";
    let report = s.check();
    assert_eq!(messages(&s), [expected]);
    let cycle = &report.errors[0].cycle;
    assert_eq!(
        (
            cycle.len(),
            cycle[1].rank,
            cycle[1].step,
            cycle[1].peer,
            cycle[1].waits_for_step
        ),
        (2, 1, 1, Some(0), 0)
    );
    // More ports do not resolve the deadlock, so it is not blamed on the single unidirectional
    // port.
    let s = s.with_ports(Ports::UNI).unwrap();
    assert_eq!(messages(&s), [expected]);

    // Different message lengths do not hide the cycle; steps behind an unmatched step are not part
    // of it.
    let s = schedule(
        "bi",
        ALLREDUCE,
        &["1 [[0,1]] [[0,1]]"; 3],
        &[
            r#"[{"recv": {"from": 1, "spans": [[0,1]]}}, {"send": {"to": 1, "spans": [[0,1]]}}, {"send": {"to": 2, "spans": [[0,1]]}}]"#,
            r#"[{"recv": {"from": 0, "spans": [[0,1]]}}, {"send": {"to": 0, "spans": []}}, {"recv": {"from": 2, "spans": [[0,1]]}}]"#,
            r#"[{"recv": {"from": 1, "spans": [[0,1]]}}, {"recv": {"from": 0, "spans": [[0,1]]}}]"#,
        ],
    );
    assert_eq!(
        messages(&s),
        [
            "rank 0, step 0 (recv from 1): expects 1 element, but rank 1 sends 0 in its step 1",
            "rank 1, step 2 (recv from 2): no partner: this is receive number 1 between the two, and rank 2 has no send to rank 1",
            "rank 2, step 0 (recv from 1): no partner: this is receive number 1 between the two, and rank 1 has no send to rank 2",
        ]
    );
    let s = schedule(
        "bi",
        ALLREDUCE,
        &["1 [[0,1]] [[0,1]]"; 2],
        &[
            r#"[{"recv": {"from": 1, "spans": [[0,1]]}}, {"send": {"to": 1, "spans": [[0,1]]}}]"#,
            r#"[{"recv": {"from": 0, "spans": [[0,1]]}}, {"send": {"to": 0, "spans": [[0,1]]}}]"#,
        ],
    );
    assert_eq!(
        messages(&s),
        [
            "deadlock: rank 0 step 1 (send to 1) waits for its step 0 (recv from 1); rank 1 step 1 (send to 0) waits for its step 0 (recv from 0)"
        ]
    );
}

#[test]
fn two_ports() {
    let shift = |me: usize, p: usize| {
        format!(
            r#"[{{"send": {{"to": {}, "spans": [[0,1]]}}}}, {{"recv": {{"from": {}, "spans": [[1,1]]}}}}]"#,
            (me + 1) % p,
            (me + p - 1) % p
        )
    };
    let programs: Vec<String> = (0..3).map(|r| shift(r, 3)).collect();
    let programs: Vec<&str> = programs.iter().map(String::as_str).collect();
    let s = schedule("uni", r#"{"kind": "scan"}"#, &["2 [] []"; 3], &programs);
    assert_eq!(
        messages(&s),
        [
            "rank 0 needs two ports at once: step 0 (send to 1) and step 1 (recv from 2) wait for each other, but share its one port",
            "rank 1 needs two ports at once: step 0 (send to 2) and step 1 (recv from 0) wait for each other, but share its one port",
            "rank 2 needs two ports at once: step 0 (send to 0) and step 1 (recv from 1) wait for each other, but share its one port",
        ]
    );
    assert!(s.with_ports(Ports::BI).unwrap().check().is_correct());

    // Rank 0 sends first to 1, which waits for 2, which waits for 0.
    let s = schedule(
        "bi",
        r#"{"kind": "scan"}"#,
        &["2 [] []"; 3],
        &[
            r#"[{"send": {"to": 1, "spans": [[0,1]]}}, {"send": {"to": 2, "spans": [[0,1]]}}]"#,
            r#"[{"recv": {"from": 2, "spans": [[0,1]]}}, {"recv": {"from": 0, "spans": [[1,1]]}}]"#,
            r#"[{"recv": {"from": 0, "spans": [[0,1]]}}, {"send": {"to": 1, "spans": [[0,1]]}}]"#,
        ],
    );
    assert_eq!(
        messages(&s),
        [
            "rank 0 needs two ports at once: step 0 (send to 1) and step 1 (send to 2) wait for each other, but share its one port out",
            "rank 1 needs two ports at once: step 0 (recv from 2) and step 1 (recv from 0) wait for each other, but share its one port in",
        ]
    );
}

#[test]
fn overlap_resolves_a_deadlock() {
    // Rank 0 combines before it sends, so only with overlap can the send start first.
    let s = schedule(
        "bi",
        r#"{"kind": "scan"}"#,
        &["2 [] []"; 2],
        &[
            r#"[{"recv_combine": {"from": 1, "spans": [[0,1]]}}, {"send": {"to": 1, "spans": [[1,1]]}}]"#,
            r#"[{"recv": {"from": 0, "spans": [[0,1]]}}, {"send": {"to": 0, "spans": [[0,1]]}}]"#,
        ],
    );
    assert_eq!(
        messages(&s),
        [
            "deadlock: rank 0 step 1 (send to 1) waits for its step 0 (recv_combine from 1); rank 1 step 1 (send to 0) waits for its step 0 (recv from 0)"
        ]
    );
    let overlap = Options {
        overlap: true,
        ..Options::default()
    };
    assert!(s.check_with(&overlap).is_correct());
}

#[test]
fn contributions() {
    let send = r#"[{"send": {"to": 0, "spans": [[0,2]]}}]"#;
    let twice = r#"[{"send": {"to": 0, "spans": [[0,2]]}}, {"send": {"to": 0, "spans": [[0,2]]}}]"#;
    let crossed = r#"[{"send": {"to": 0, "spans": [[1,1],[0,1]]}}]"#;
    let scratch = r#"[{"send": {"to": 0, "spans": [[1,2]]}}]"#;
    let add = |n: usize| format!(r#"{{"recv_combine": {{"from": {n}, "spans": [[0,2]]}}}}"#);
    let all = format!("[{},{}]", add(1), add(2));
    for (programs, expected) in [
        (
            [format!("[{}]", add(1)), send.into(), "[]".into()],
            "rank 0, output elements 0 to 1 (from position 0 of its buffer): expected x0..x2 [0], found x0+x1 [0]: x2 missing; written by step 0 (recv_combine from 1), sent in step 0 of rank 1 (x0..x2 [0] is element 0 of the inputs of ranks 0 to 2)",
        ),
        (
            [
                format!("[{},{}]", add(1), add(1)),
                twice.into(),
                "[]".into(),
            ],
            "rank 0, output elements 0 to 1 (from position 0 of its buffer): expected x0..x2 [0], found x0+x1+x1 [0]: x2 missing, x1 twice; written by step 1 (recv_combine from 1), sent in step 1 of rank 1 (x0..x2 [0] is element 0 of the inputs of ranks 0 to 2)",
        ),
        (
            [all.clone(), crossed.into(), send.into()],
            "rank 0, output element 0 (position 0 of its buffer): expected x0..x2 [0], found x0[0]+x1[1]+x2[0]: x1 from element 1 instead of 0; written by step 1 (recv_combine from 2), sent in step 0 of rank 2; wrong since step 0 of rank 0 (recv_combine from 1), sent in step 0 of rank 1 (x0..x2 [0] is element 0 of the inputs of ranks 0 to 2)",
        ),
        (
            [all.clone(), send.into(), scratch.into()],
            "rank 0, output element 0 (position 0 of its buffer): expected x0..x2 [0], found x0[0]+x1[0]+x2[1]: x2 from element 1 instead of 0; written by step 1 (recv_combine from 2), sent in step 0 of rank 2 (x0..x2 [0] is element 0 of the inputs of ranks 0 to 2)",
        ),
    ] {
        let s = sum("bi", &[&programs[0], &programs[1], &programs[2]]);
        assert_eq!(messages(&s)[0], expected);
    }
    let s = sum("bi", &[&all, send, scratch]);
    assert_eq!(
        messages(&s)[1],
        "rank 0, output element 1 (position 1 of its buffer): expected x0..x2 [1], found x0+x1+nothing [1]: never written, x2 missing; written by step 1 (recv_combine from 2), sent in step 0 of rank 2; rank 2, step 0 (send to 0) reads what no step has written"
    );
    let s = two(["[]", "[]"]);
    assert_eq!(
        messages(&s),
        [
            "rank 1, output elements 0 to 3 (from position 0 of its buffer): expected x0 [0], found nothing: never written, x0 missing; no step writes it (x0 [0] is element 0 of rank 0's input)"
        ]
    );
    // The blocks of an allgather are in the wrong places.
    let layout = ["4 [[0,1]] [[2,1],[3,1]]", "4 [[0,1]] [[2,2]]"];
    let program = |peer: usize, mine: usize, theirs: usize| {
        format!(
            r#"[{{"copy": {{"src": [0,1], "dst": [{mine},1]}}}}, {{"send": {{"to": {peer}, "spans": [[0,1]]}}}}, {{"recv": {{"from": {peer}, "spans": [[{theirs},1]]}}}}]"#
        )
    };
    let s = schedule(
        "bi",
        ALLGATHER,
        &layout,
        &[&program(1, 3, 2), &program(0, 3, 2)],
    );
    let report = s.check();
    assert_eq!(
        messages(&s),
        [
            "rank 0, output element 0 (position 2 of its buffer): expected x0 [0], found x1 [0]: x0 missing, x1 not wanted; written by step 2 (recv from 1), sent in step 1 of rank 1 (x0 [0] is element 0 of rank 0's input)",
            "rank 0, output element 1 (position 3 of its buffer): expected x1 [0], found x0 [0]: x1 missing, x0 not wanted; written by step 0 (copy)",
        ]
    );
    let e = &report.errors[1];
    assert_eq!((e.rank, e.element, e.position), (Some(0), Some(1), Some(3)));
    assert_eq!(e.expected.as_deref(), Some("x1 [0]"));
    assert_eq!(e.found.as_deref(), Some("x0 [0]"));
}

#[test]
fn repeated_doubling_terminates() {
    // 2^80 contributions, more than can be counted or listed.
    let mut steps = Vec::new();
    for _ in 0..40 {
        steps.push(
            r#"{"copy": {"src": [0,2], "dst": [2,2]}}, {"combine": {"src": [2,2], "dst": [0,2]}}"#,
        );
        steps.push(r#"{"copy": {"src": [0,2], "dst": [2,2]}}, {"combine": {"src": [2,2], "dst": [0,2], "order": "theirs_first"}}"#);
    }
    let s = sum("bi", &[&format!("[{}]", steps.join(","))]);
    assert_eq!(
        messages(&s),
        [format!(
            "rank 0, output elements 0 to 1 (from position 0 of its buffer): expected x0 [0], found {}+... ({} contributions) [0]: found {} contributions, expected 1; written by step 159 (combine) (x0 [0] is element 0 of rank 0's input)",
            ["x0"; 12].join("+"),
            u64::MAX,
            u64::MAX
        )]
    );
}

#[test]
fn errors_beyond_the_limit_are_only_counted() {
    let layout = ["100 [] []"; 2];
    let sends = vec![r#"{"send": {"to": 1, "spans": [[0,1]]}}"#; 30].join(",");
    let s = schedule(
        "bi",
        r#"{"kind": "scan"}"#,
        &layout,
        &[&format!("[{sends}]"), "[]"],
    );
    let report = s.check();
    assert_eq!((report.errors.len(), report.more), (20, 10));
    assert!(
        report
            .to_string()
            .starts_with("30 errors\n  rank 0, step 0 (send to 1)")
    );
    assert!(report.to_string().ends_with("\n  and 10 more"));
    let none = Options {
        max_errors: 0,
        ..Options::default()
    };
    let report = s.check_with(&none);
    assert_eq!(
        (report.errors.len(), report.more, report.is_correct()),
        (0, 30, false)
    );
}

#[test]
fn check_does_not_depend_on_the_vector_length() {
    let n = 1 << 60;
    let layout = format!("{n} [[0,{n}]] [[0,{n}]]");
    let program = |peer: usize| {
        let half = n / 2;
        format!(
            r#"[{{"send": {{"to": {peer}, "spans": [[{}, {half}]]}}}}, {{"recv_combine": {{"from": {peer}, "spans": [[{}, {half}]]}}}},
               {{"send": {{"to": {peer}, "spans": [[{}, {half}]]}}}}, {{"recv": {{"from": {peer}, "spans": [[{}, {half}]]}}}}]"#,
            half * peer,
            half * (1 - peer),
            half * (1 - peer),
            half * peer
        )
    };
    let s = schedule(
        "bi",
        ALLREDUCE,
        &[&layout, &layout],
        &[&program(1), &program(0)],
    );
    let report = s.check();
    assert!(report.is_correct(), "{report}");
}

/// The notes of a correct schedule.
fn notes(schedule: &Schedule) -> Vec<String> {
    let report = schedule.check();
    assert!(report.is_correct(), "{report}");
    report.notes.iter().map(ToString::to_string).collect()
}

#[test]
fn what_is_received_twice_or_for_nothing_is_noted() {
    let mut b = Schedule::broadcast(4, 4);
    for (from, to) in [(0, 1), (0, 2), (1, 3)] {
        b.transfer(from, to, 0..4);
    }
    assert_eq!(notes(&b.clone().build().unwrap()), [""; 0]);
    b.transfer(2, 3, 1..3);
    let twice = b.build().unwrap();
    let note = "rank 3, step 1 (recv from 2) receives elements 1 to 2 of its buffer, which it holds already";
    assert_eq!(notes(&twice), [note]);
    let options = Options {
        max_errors: 0,
        ..Options::default()
    };
    let report = twice.check_with(&options);
    assert_eq!((report.notes.len(), report.more_notes), (0, 1));
    assert_eq!(report.to_string(), "correct\n  and 1 more note");

    // Rank 1 passes on only the half that it needs not.
    let [root, mine] = [Span::new(0, 4), Span::new(0, 2)];
    let mut b = Schedule::builder(3, Ports::BI, Collective::Scatter { root: 0 });
    b.layout(0, 4, [root], [])
        .layout(1, 4, [], [mine])
        .layout(2, 2, [], [mine]);
    b.step(0, Step::send(1, root)).step(1, Step::recv(0, root));
    b.step(0, Step::send(2, Span::new(2, 2)))
        .step(2, Step::recv(0, mine));
    let note = "rank 1, step 0 (recv from 0) receives elements 2 to 3 of its buffer, which nothing uses afterwards";
    assert_eq!(notes(&b.build().unwrap()), [note]);
}

#[test]
fn partial_results_combined_twice_are_noted() {
    // Ranks 0 and 1 both add the contributions of ranks 1 and 2; rank 1 alone is asked for its sum.
    let s = sum(
        "bi",
        &[
            r#"[{"recv": {"from": 2, "spans": [[2,2]]}}, {"recv_combine": {"from": 1, "spans": [[0,2]]}}]"#,
            r#"[{"recv_combine": {"from": 2, "spans": [[0,2]]}}, {"send": {"to": 0, "spans": [[0,2]]}}]"#,
            r#"[{"send": {"to": 0, "spans": [[0,2]]}}, {"send": {"to": 1, "spans": [[0,2]]}}]"#,
        ],
    );
    let note = "rank 0, step 0 (recv from 2) receives elements 2 to 3 of its buffer, which nothing uses afterwards";
    assert_eq!(notes(&s), [note]);
    let s = sum(
        "bi",
        &[
            r#"[{"recv": {"from": 1, "spans": [[2,2]]}}, {"recv_combine": {"from": 2, "spans": [[2,2]]}},
                {"recv_combine": {"from": 1, "spans": [[0,2]]}}]"#,
            r#"[{"send": {"to": 0, "spans": [[0,2]]}}, {"recv_combine": {"from": 2, "spans": [[0,2]]}},
                {"send": {"to": 0, "spans": [[0,2]]}}]"#,
            r#"[{"send": {"to": 0, "spans": [[0,2]]}}, {"send": {"to": 1, "spans": [[0,2]]}}]"#,
        ],
    );
    let found = notes(&s);
    let both = [
        "step 1 (recv_combine from 2) combines elements 2 to 3 of its buffer, which nothing uses afterwards",
        "(recv_combine from 2) combines elements",
    ];
    assert!(
        found.iter().any(|note| note.ends_with(both[0])),
        "{found:?}"
    );
    let again = "of its buffer, to what another step has combined already";
    let again = |note: &&String| note.contains(both[1]) && note.ends_with(again);
    assert_eq!(found.iter().filter(again).count(), 1, "{found:?}");
}

/// Two ranks that both add all contributions: one of them does so needlessly where the outputs of
/// all ranks together are no longer than one vector.
#[test]
fn results_that_several_ranks_need_are_combined_at_each() {
    let [vector, received] = [Span::new(0, 2), Span::new(2, 2)];
    for kind in Kind::ALL.iter().filter(|kind| kind.combines_all()) {
        let collective = kind.with_root(0).with_targets(vec![0, 1]);
        let laid_out = Builder::laid_out(2, collective.clone(), vector.len);
        let laid_out = laid_out.build().unwrap();
        let mut b = Schedule::builder(2, Ports::BI, collective);
        for (rank, order) in [(0, Order::MineFirst), (1, Order::TheirsFirst)] {
            let Layout { input, output, .. } = laid_out.layout()[rank].clone();
            b.layout(rank, received.end(), input, output)
                .step(rank, Step::send(1 - rank, vector))
                .step(rank, Step::recv(1 - rank, received))
                .step(rank, Step::combine(received, vector, order));
        }
        let outputs = laid_out.layout().iter().flat_map(|layout| &layout.output);
        let outputs: usize = outputs.map(|span| span.len).sum();
        let again = "to what another step has combined already";
        let notes = notes(&b.build().unwrap());
        let noted = notes.iter().any(|note| note.ends_with(again));
        assert_eq!(noted, outputs <= vector.len, "{kind}: {notes:?}");
    }
}

/// What is noted of planned schedules is what their sources say.
#[test]
fn planned_schedules_waste_little() {
    let mut noted = std::collections::BTreeMap::new();
    for algorithm in oneport::plan::registry::all() {
        for p in [1, 2, 3, 4, 5, 7, 8, 12] {
            for ports in [Ports::UNI, Ports::BI] {
                let request = oneport::Request::new(algorithm.collective, p, 12)
                    .ports(ports)
                    .segment_elems(4);
                if algorithm.accepts(&request).is_err() {
                    continue;
                }
                let report = algorithm.plan(&request).unwrap().check();
                for note in report.notes {
                    let key = format!(
                        "{} {} {:?}",
                        algorithm.collective,
                        algorithm.name(),
                        note.kind
                    );
                    noted.entry(key).or_insert((0, format!("p={p} {note}"))).0 += 1;
                }
            }
        }
    }
    let found: Vec<_> = noted.keys().map(String::as_str).collect();
    let expected = [
        // Every rank gets the blocks of all.
        "alltoall gossip Unused",
        // Ranks of a scattered vector get all of it, though some pass on more than their own part.
        "broadcast butterfly HeldAlready",
        "broadcast circulant-rsg HeldAlready",
        "broadcast van-de-geijn HeldAlready",
        "broadcast van-de-geijn-ring HeldAlready",
        // Every rank gets the contributions of all.
        "exscan gossip Unused",
        // As the broadcast.
        "multicast butterfly HeldAlready",
        "scan gossip Unused",
    ];
    assert_eq!(found, expected, "{noted:#?}");
}

/// The report of a schedule with one step replaced.
fn with_step(schedule: &Schedule, rank: usize, step: usize, new: Step) -> Report {
    let mut programs = schedule.programs().to_vec();
    programs[rank][step] = new;
    let layout = schedule.layout().to_vec();
    let collective = schedule.collective().clone();
    let changed = Schedule::new(schedule.ports(), collective, layout, programs);
    changed.unwrap().check_with(&Options {
        max_errors: usize::MAX,
        ..Options::default()
    })
}

/// The receive that a send meets, where each pair of ranks has its messages in order.
fn receive_of(schedule: &Schedule, rank: usize, step: usize) -> (usize, usize) {
    let programs = schedule.programs();
    let to = programs[rank][step].peer().unwrap();
    let is_between = |s: &&Step| s.is_send() && s.peer() == Some(to);
    let nth = programs[rank][..step].iter().filter(is_between).count();
    let mut receives = programs[to].iter().enumerate();
    let is_receive = |s: &Step| !s.is_send() && s.peer() == Some(rank);
    let receive = receives.by_ref().filter(|(_, s)| is_receive(s)).nth(nth);
    (to, receive.unwrap().0)
}

#[test]
fn a_wrong_message_is_the_origin_of_all_that_it_spoils() {
    let mut found = 0;
    for (request, algorithm) in [
        (Request::allgather(5, 1), "ring"),
        (Request::allgather(7, 3), "ring"),
        (Request::broadcast(6, 6).segment_count(2), "chain"),
        (Request::broadcast(9, 9), "binomial"),
    ] {
        let schedule = request.plan(algorithm).unwrap();
        let elements = |spans: &Spans| -> Vec<usize> {
            spans.iter().flat_map(|s| s.offset..s.end()).collect()
        };
        for (rank, program) in schedule.programs().iter().enumerate() {
            let input = elements(&schedule.layout()[rank].input);
            for (i, step) in program.iter().enumerate() {
                let Step::Send { to, spans, port } = step else {
                    continue;
                };
                let packed = elements(spans);
                // The elements in the wrong order, and each replaced by one of the input.
                let mut wrong = vec![packed.iter().rev().copied().collect::<Vec<_>>()];
                let other = input.iter().find(|other| !packed.contains(other));
                for at in 0..packed.len() {
                    wrong.extend(other.map(|&other| {
                        let mut sent = packed.clone();
                        sent[at] = other;
                        sent
                    }));
                }
                let (to, port) = (*to, *port);
                let (_, receive) = receive_of(&schedule, rank, i);
                for sent in wrong {
                    let spans: Vec<Span> = sent.iter().map(|&at| Span::new(at, 1)).collect();
                    let spans = Spans::from(spans);
                    let report = with_step(&schedule, rank, i, Step::Send { to, spans, port });
                    for error in &report.errors {
                        assert_eq!(error.kind, FindingKind::Contributions, "{report}");
                        let origin = (error.origin_rank, error.origin_step);
                        assert_eq!(origin, (Some(to), Some(receive)), "{algorithm}: {report}");
                        let (rank, step) = (error.rank.unwrap(), error.step.unwrap());
                        assert!(!schedule.programs()[rank][step].writes().is_empty());
                        found += 1;
                    }
                }
            }
        }
    }
    assert!(found > 100, "{found}");
}

#[test]
fn a_contribution_counted_twice_has_the_step_that_adds_it() {
    // Rank 1 adds what rank 2 sends twice, and passes it on to rank 0.
    let mut b = Schedule::reduce(3, 4);
    for _ in 0..2 {
        b.transfer_combine(2, 1, 0..4, Order::MineFirst);
    }
    b.transfer_combine(1, 0, 0..4, Order::MineFirst);
    let report = b.build().unwrap().check();
    assert_eq!(report.errors.len(), 1, "{report}");
    assert_eq!(
        report.errors[0].message,
        "rank 0, output elements 0 to 3 (from position 0 of its buffer): expected x0..x2 [0], found \
         x0+x1+x2+x2 [0]: x2 twice; written by step 0 (recv_combine from 1), sent in step 2 of rank 1; \
         wrong since step 1 of rank 1 (recv_combine from 2), sent in step 1 of rank 2 \
         (x0..x2 [0] is element 0 of the inputs of ranks 0 to 2)"
    );
}

#[test]
fn a_message_of_what_nothing_has_written_is_named() {
    // Rank 1 passes on the second half, which it has not.
    let mut b = Schedule::broadcast(4, 4);
    b.transfer(0, 1, 0..2);
    b.transfer(1, 2, 0..4);
    b.transfer(2, 3, 0..4);
    let report = b.build().unwrap().check();
    let messages: Vec<&str> = report.errors.iter().map(|e| e.message.as_str()).collect();
    let [first, second, third] = messages[..] else {
        panic!("{report}")
    };
    assert!(
        first.ends_with("found nothing: never written, x0 missing; no step writes it (x0 [2] is element 2 of rank 0's input)"),
        "{report}"
    );
    assert!(
        second.ends_with(
            "written by step 0 (recv from 1), sent in step 1 of rank 1; rank 1, step 1 (send to 2) \
             reads what no step has written"
        ),
        "{report}"
    );
    assert!(
        third.ends_with(
            "written by step 0 (recv from 2), sent in step 1 of rank 2; wrong since step 0 of rank 2 \
             (recv from 1), sent in step 1 of rank 1; rank 1, step 1 (send to 2) reads what no step \
             has written"
        ),
        "{report}"
    );
}

#[test]
fn contributions_that_double_with_each_step_are_not_followed_for_ever() {
    let mut b = Schedule::builder(1, Ports::BI, Collective::Allreduce);
    b.layout(0, 2, [Span::new(0, 1)], [Span::new(0, 1)]);
    for _ in 0..200 {
        b.step(0, Step::copy(Span::new(0, 1), Span::new(1, 1)));
        b.step(
            0,
            Step::combine(Span::new(1, 1), Span::new(0, 1), Order::MineFirst),
        );
    }
    let report = b.build().unwrap().check();
    assert!(
        report.errors[0]
            .message
            .contains("written by step 399 (combine)"),
        "{report}"
    );
    assert_eq!(report.errors[0].origin_step, None);
}

#[test]
fn a_schedule_without_anything_says_so() {
    let b = Schedule::builder(3, Ports::BI, Collective::Allgather);
    let report = b.build().unwrap().check();
    assert!(report.is_correct());
    assert_eq!(report.notes.len(), 1, "{report}");
    assert_eq!(report.notes[0].kind, FindingKind::Nothing);
}
