//! GOAL: files are read back, graphs of other tools keep their order and times.

use oneport::machine::Eager;
use oneport::{Collective, CostModel, Layout, Ports, Request, Schedule, Span, Spans, Step};
use oneport_formats::goal::{GoalForm, GoalOptions, read, write};

use crate::grid;

fn options(form: GoalForm) -> GoalOptions {
    GoalOptions {
        form,
        ..GoalOptions::new(CostModel::new(3.0, 1.0).gamma(2.0))
    }
}

#[test]
fn written_schedules_are_read_back() {
    let (mut uniform, mut timed, mut refused) = (0, 0, 0);
    for (name, schedule) in grid() {
        let bytes = write(&schedule, &options(GoalForm::Bytes)).unwrap();
        assert_eq!(read(&bytes.text).as_ref(), Ok(&schedule), "{name}");
        match write(&schedule, &options(GoalForm::Uniform)) {
            Ok(written) => {
                assert_eq!(read(&written.text).as_ref(), Ok(&schedule), "{name}");
                uniform += 1;
            }
            Err(_) => refused += 1,
        }
        // Late ranks and the sizes of the timed form are no part of a schedule.
        let late = (0..schedule.ranks()).map(|rank| (rank % 3) as f64);
        let cost = CostModel::new(3.0, 1.0).arrivals(late.collect());
        for form in [GoalForm::Timed, GoalForm::Bytes] {
            let cost = cost.clone();
            if let Ok(written) = write(&schedule, &GoalOptions { form, cost }) {
                assert_eq!(read(&written.text).as_ref(), Ok(&schedule), "{name}");
                timed += usize::from(form == GoalForm::Timed);
            }
        }
    }
    assert!(uniform > 100 && refused > 100, "{uniform} {refused}");
    assert!(timed > 300, "{timed}");
}

/// The graph alone, as another tool would write it, keeps matching, order and times.
#[test]
fn without_comments_the_graph_is_read() {
    let cost = CostModel::new(3.0, 1.0).gamma(2.0);
    let mut same = 0;
    for (name, schedule) in grid() {
        if !schedule.ports().can_relay() {
            continue;
        }
        let GoalOptions { form, .. } = options(GoalForm::Bytes);
        let options = GoalOptions {
            form,
            ..GoalOptions::new(cost.clone())
        };
        let text = write(&schedule, &options).unwrap().text;
        let lines = text.lines().filter(|l| !l.starts_with("// {"));
        let graph = read(&lines.collect::<Vec<_>>().join("\n")).unwrap();
        assert!(graph.check().is_correct(), "{name}: {}", graph.check());
        let copies = CostModel::new(3.0, 1.0).gamma_copy(1.0);
        let times = [
            schedule.simulate(&cost).unwrap().makespan(),
            graph.simulate(&copies).unwrap().makespan(),
        ];
        // The graph may wait more, never less.
        assert!(times[0] <= times[1], "{name}: {times:?}\n{text}");
        same += usize::from(times[0] == times[1]);
    }
    assert!(same > 300, "{same}");
}

#[test]
fn golden() {
    let mut b = Schedule::reduce(2, 4);
    b.transfer_combine(1, 0, 0..4, oneport::Order::MineFirst);
    let schedule = b.build().unwrap();
    let options = GoalOptions::new(CostModel::new(1.0, 0.5).gamma(0.25));
    let written = write(&schedule, &options).unwrap();
    let expected = r#"// GOAL, written by oneport
// LogGOPSim -L 3 -g 3 -o 0 -G 0 -O 0 -S 0
// the model's time is 4; 1 here is 1 time unit of the model
// LogGOPSim computes the model's time: no sender waits for its receiver
// {"ports":"bi","ported":1,"overlap":false,"collective":{"kind":"reduce","root":0}}
num_ranks 2

rank 0 {
// {"len":4,"input":[[0,4]],"output":[[0,4]]}
// {"recv_combine":{"from":1,"spans":[[0,4]],"order":"mine_first"}}
r0: recv 1b from 1 tag 0
c0: calc 1
c0 requires r0
}

rank 1 {
// {"len":4,"input":[[0,4]],"output":[]}
// {"send":{"to":0,"spans":[[0,4]]}}
s0: send 1b to 0 tag 0
}
"#;
    assert_eq!(written.text, expected);
    assert_eq!(written.notes.len(), 1);
}

/// A late rank begins with a computation that all its steps wait for; latency is a flag.
#[test]
fn late_ranks_latency_and_eager_sends_are_written() {
    let mut b = Schedule::reduce(3, 4);
    b.transfer_combine(2, 0, 0..4, oneport::Order::MineFirst);
    b.transfer_combine(1, 0, 0..4, oneport::Order::MineFirst);
    let schedule = b.build().unwrap();
    let cost = CostModel::new(1.0, 0.5).gamma(0.25).latency(2.0);
    let written = |late: f64, cost: &CostModel| {
        let cost = cost
            .clone()
            .eager(Eager::All)
            .arrivals(vec![7.0, late, 1.5]);
        let form = GoalForm::Timed;
        write(&schedule, &GoalOptions { form, cost }).unwrap()
    };
    // Rank 0 receives from 7 to 10 what 2 sent, and from 11 to 14 what 1 sent.
    let text = written(9.0, &cost).text;
    let lines = text.lines().filter(|l| !l.starts_with("// {"));
    let expected = "// GOAL, written by oneport
// LogGOPSim -L 20 -g 0 -o 0 -G 1 -O 0 -S 2147483647
// the model's time is 150; 10 here is 1 time unit of the model
// LogGOPSim computes the model's time: all starts when it does in the model
num_ranks 3

rank 0 {
late: calc 70
r0: recv 31b from 2 tag 0
c0: calc 10
c0 requires r0
r0 requires late
r1: recv 31b from 1 tag 0
r1 requires c0
c1: calc 10
c1 requires r1
}

rank 1 {
late: calc 90
s0: send 31b to 0 tag 0
s0 requires late
}

rank 2 {
late: calc 15
s0: send 31b to 0 tag 0
s0 requires late
}";
    assert_eq!(lines.collect::<Vec<_>>().join("\n"), expected);
    assert_eq!(read(&text).unwrap(), schedule);
    // What 1 sends can come first, at the same time, or while rank 0 has yet to combine.
    for late in [0.0, 1.5, 5.0] {
        let remark = &written(late, &cost).notes[0];
        assert!(remark.contains("as they arrive"), "{late}: {remark}");
    }
    let unequal = written(9.0, &CostModel::new(1.0, 0.0)).text;
    assert!(
        unequal.contains("-L 0 ") && unequal.contains("recv 11b"),
        "{unequal}"
    );
}

/// Ports for both directions at once are those of a host that may receive while it sends; other
/// ports, and ranks that compute after they have sent, are those of one that does one thing.
#[test]
fn the_timed_form_has_all_ports_and_sizes() {
    let remark = |schedule: &Schedule, cost: &CostModel| {
        let (form, cost) = (GoalForm::Timed, cost.clone());
        let text = write(schedule, &GoalOptions { form, cost }).unwrap().text;
        let flag = text.contains("-O 1");
        (flag, text.contains("LogGOPSim computes the model's time"))
    };
    let cost = CostModel::new(10.0, 1.0).eager(Eager::All);
    let ring = Request::allgather(5, 3).plan("ring").unwrap();
    assert_eq!(remark(&ring, &cost), (false, true));
    let gather = Request::gather(7, 3).plan("oblivious").unwrap();
    assert_eq!(remark(&gather, &cost), (false, true));
    let uni = Request::broadcast(9, 6)
        .ports(Ports::UNI)
        .plan("binomial")
        .unwrap();
    assert_eq!(remark(&uni, &cost.clone().latency(4.0)), (true, true));
    let mut b = Schedule::broadcast(2, 2);
    b.transfer(0, 1, 0..2);
    let mut copied = b.build().unwrap();
    assert_eq!(remark(&copied, &cost), (false, true));
    copied = {
        let mut b = Schedule::broadcast(2, 2);
        b.transfer(0, 1, 0..2);
        b.step(0, Step::copy(Span::new(0, 1), Span::new(1, 1)));
        b.build().unwrap()
    };
    let copying = cost.clone().gamma_copy(5.0);
    assert_eq!(remark(&copied, &copying), (true, true));
    // A sender that waits for its receiver.
    let late = CostModel::new(10.0, 1.0).arrivals(vec![0.0, 50.0]);
    assert_eq!(
        remark(&Request::broadcast(2, 2).plan("binomial").unwrap(), &late),
        (false, false)
    );
}

#[test]
fn units_are_whole() {
    let schedule = Request::broadcast(4, 8).plan("binomial").unwrap();
    for (alpha, beta, flag) in [
        (1000.0, 0.1, "-L 10008 -g 10008 "),
        (1.0 / 3.0, 0.0, "-L 1 -g 1 "),
        (0.0, 1e-4, "-L 8 -g 8 "),
        (1e12, 0.0, "-L 1 -g 1 "),
    ] {
        let written = write(&schedule, &GoalOptions::new(CostModel::new(alpha, beta)));
        let text = written.unwrap().text;
        assert!(text.contains(flag), "{alpha} {beta}: {}", &text[..200]);
    }
    let schedule = Request::reduce(4, 8).plan("binomial").unwrap();
    let cost = CostModel::new(1.0 / 3.0, 0.0).gamma(0.2);
    let error = write(&schedule, &GoalOptions::new(cost))
        .unwrap_err()
        .to_string();
    assert!(error.contains("whole in no decimal unit"), "{error}");
}

#[test]
fn what_the_uniform_form_lacks_is_refused() {
    let refuse = |schedule: &Schedule, cost: CostModel, why: &str| {
        let error = write(schedule, &GoalOptions::new(cost)).unwrap_err();
        assert!(
            error.is_usage() && error.to_string().contains(why),
            "{error}"
        );
    };
    let cost = || CostModel::new(1.0, 1.0);
    let binomial = Request::broadcast(4, 8).plan("binomial").unwrap();
    let uni = binomial.clone().with_ports(Ports::UNI).unwrap();
    refuse(&uni, cost(), "unidirectional ports do not");
    refuse(&binomial, cost().overlap(true), "overlaps communication");
    refuse(&binomial, cost().latency(1.0), "the timed form");
    refuse(&binomial, cost().eager(Eager::All), "the timed form");
    let gather = Request::gather(4, 1).plan("oblivious").unwrap();
    refuse(&gather, cost(), "some have 1 elements and others 2");
    let empty = Request::broadcast(4, 0).plan("binomial").unwrap();
    refuse(&empty, cost(), "all are empty");
    let ones = vec![vec![Some(1.0); 4]; 4];
    let links = oneport::machine::Links {
        alpha: ones.clone(),
        beta: ones,
        gamma: Vec::new(),
        gamma_copy: Vec::new(),
        ..oneport::machine::Links::default()
    };
    refuse(
        &binomial,
        CostModel::heterogeneous(links).unwrap(),
        "differ between ranks",
    );
    let mut b = Schedule::broadcast(2, 1);
    b.ports(Ports::BI.with_k(2));
    b.step(0, Step::send(1, Span::new(0, 1)).on_port(1));
    b.step(1, Step::recv(0, Span::new(0, 1)));
    refuse(
        &b.build().unwrap(),
        cost(),
        "one uses port 1 and port 0 instead",
    );
}

const FOREIGN: &str = "num_ranks 2\n\
    rank 0 {\n\
    l1: calc 100 cpu 1\n\
    l2: send 10b to 1 tag 3 cpu 0 nic 0\n\
    l3: recv 4b from 1\n\
    l2 requires l1\n\
    }\n\
    /* a comment\n over lines */ rank 1 { \r\n\
    l1: recv 10b from 0 tag 3\n\
    l2: send 4b to 0 // more\n\
    l2 requires l1\n\
    }";

#[test]
fn foreign_graphs_become_spans() {
    let schedule = read(FOREIGN).unwrap();
    let (src, dst) = (Span::new(0, 100), Span::new(100, 100));
    let expected = [
        vec![
            Step::copy(src, dst),
            Step::send(1, Span::new(200, 10)),
            Step::recv(1, Span::new(210, 4)),
        ],
        vec![
            Step::recv(0, Span::new(0, 10)),
            Step::send(0, [Span::new(9, 1), Span::new(10, 3)]),
        ],
    ];
    assert_eq!(schedule.programs(), expected);
    assert_eq!(schedule.ports(), Ports::BI);
    let targets = Vec::new();
    assert_eq!(
        schedule.collective(),
        &Collective::Multicast { root: 0, targets }
    );
    let lens: Vec<usize> = schedule.layout().iter().map(|l: &Layout| l.len).collect();
    assert_eq!(lens, [214, 13]);
    assert!(schedule.check().is_correct());
    let cost = CostModel::new(5.0, 1.0).gamma_copy(1.0);
    assert_eq!(schedule.simulate(&cost).unwrap().makespan(), 124.0);
}

#[test]
fn receives_wait_for_sends() {
    let text = "num_ranks 2\nrank 0 {\na: recv 1b from 1\nb: send 1b to 1\na requires b\n}\n\
                rank 1 {\na: send 1b to 0\nb: recv 1b from 0\na requires b\n}";
    let schedule = read(text).unwrap();
    let expected = [
        vec![
            Step::send(1, Span::new(0, 1)),
            Step::recv(1, Span::new(0, 1)),
        ],
        vec![
            Step::recv(0, Span::new(0, 1)),
            Step::send(0, Span::new(0, 1)),
        ],
    ];
    assert_eq!(schedule.programs(), expected);
    assert_eq!(
        schedule
            .simulate(&CostModel::new(1.0, 0.0))
            .unwrap()
            .makespan(),
        2.0
    );
}

/// A requirement that no data express becomes an empty copy.
#[test]
fn other_requirements_are_barriers() {
    for (a, b) in [
        ("send 0b to 1", "recv 1b from 1"),
        ("send 1b to 1 nic 1", "send 1b to 1"),
    ] {
        let text =
            format!("num_ranks 2\nrank 0 {{\nb: {b}\na: {a}\na requires b\n}}\nrank 1 {{\n}}");
        let schedule = read(&text).unwrap();
        let barrier = Step::copy(Spans::new(), Spans::new());
        assert_eq!(schedule.programs()[0][1], barrier, "{text}");
    }
}

#[test]
fn broken_files_are_refused_with_the_line() {
    let ranked = |lines: &str| format!("num_ranks 1\nrank 0 {{\n{lines}\n}}\n");
    let huge = "9".repeat(60);
    for (text, why) in [
        ("".to_string(), "line 1: expected 'num_ranks', found the end of the file"),
        ("num_ranks 2".into(), "line 1: 2 ranks, of which 0 follow"),
        ("num_ranks 18446744073709551615\n".into(), "of which 0 follow"),
        ("num_ranks 2\nrank 1 {\n}".into(), "line 2: rank 1 where rank 0 is due"),
        ("num_ranks 1\nrank 0 {\n}\nrank 1 {\n}".into(), "line 4: rank 1 is none of 1 ranks"),
        ("num_ranks 1\nrank 0 {\nsend 1b to 0\n".into(), "line 4: expected send, recv, calc, a label or '}', found the end of the file"),
        ("num_ranks 1\nrank 0 {\n/* no".into(), "line 3: this comment has no end"),
        (ranked("sent 1b to 0"), "line 3: expected ':' or 'requires' after sent, found 1"),
        (ranked("send 1 to 0"), "line 3: expected 'b', found 'to'"),
        (ranked("send 1b from 0"), "line 3: expected 'to', found 'from'"),
        (ranked("send 1b to 0 nic 0 cpu 1"), "line 3: expected the end of the line, found 'cpu'"),
        (ranked("send 1b to"), "line 3: expected a rank, found the end of the line"),
        (ranked(&format!("calc {huge}")), "line 3: the number 9999999999999999999999999999999999999999... is too large"),
        (ranked("recv 1b from -1"), "line 3: a receive from any rank"),
        (ranked("a: calc 1\na: calc 1"), "line 4: label a is defined twice"),
        (ranked("a: calc 1\na requires b"), "line 4: no label b above"),
        (ranked("a: calc 1\nb: calc 1\na irequires b"), "line 5: irequires"),
        (ranked("a: calc 1\nb: calc 1\na requires b\nb requires a"), "line 3: the requirements of this operation lead back"),
        (ranked("a: jump 1"), "line 3: expected send, recv, calc, a label or '}', found 'jump'"),
        (ranked("send 1b to 7"), "line 3: rank 7 is none of 1 ranks"),
        // Before the tags of what another rank receives are found to differ.
        ("num_ranks 2\nrank 0 {\nsend 1b to 9\nsend 1b to 1 tag 1\n}\nrank 1 {\nrecv 1b from 0\n}".into(), "line 3: rank 9 is none of 2 ranks"),
        (ranked("calc 18446744073709551615"), "the buffer of a rank exceeds 2^64"),
        (ranked("send 1b to 0 nic 18446744073709551615"), "the number of nics is too large"),
        (ranked("send 1b to 0 nic 999999"), "at most 4096 ports"),
        ("num_ranks 2\nrank 0 {\nsend 1b to 1 tag 1\nsend 1b to 1 tag 2\n}\nrank 1 {\nrecv 1b from 0 tag 2\nrecv 1b from 0 tag 1\n}".into(),
         "line 7: a receive from rank 0 with tag 2, where rank 0 sends tag 1"),
        ("// {\"ports\":\"bi\"}\nnum_ranks 1\nrank 0 {\n}".into(), "line 1: missing field `ported`"),
    ] {
        let error = read(&text).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains(why), "{text}\n{error}");
    }
}

/// Sizes and partners are the checker's matter.
#[test]
fn unmatched_files_are_read_and_found_wrong() {
    for (recv, why) in [
        ("recv 2b from 0", "expects 2 elements"),
        ("calc 1", "no partner"),
    ] {
        let text = format!("num_ranks 2\nrank 0 {{\nsend 1b to 1\n}}\nrank 1 {{\n{recv}\n}}");
        let report = read(&text).unwrap().check();
        assert!(report.to_string().contains(why), "{report}");
    }
}

/// Comments that do not fit the lines are refused instead of one of both being ignored.
#[test]
fn changed_files_are_refused() {
    let schedule = Request::reduce(4, 8)
        .element_bytes(4)
        .plan("binomial")
        .unwrap();
    for form in [GoalForm::Uniform, GoalForm::Bytes] {
        let text = write(&schedule, &options(form)).unwrap().text;
        for (line, content) in text.lines().enumerate().filter(|(_, l)| !l.is_empty()) {
            let mut lines: Vec<&str> = text.lines().collect();
            lines.remove(line);
            let remark = content.starts_with("// ") && !content.starts_with("// {");
            // Without its first comment, a file is a graph.
            if !remark && !content.contains("collective") {
                let read = read(&lines.join("\n"));
                assert!(read.is_err(), "without {content}");
            }
        }
        let changed = text.replacen("requires r", "requires c", 1);
        assert!(changed != text && read(&changed).is_err());
    }
    let text = write(&schedule, &options(GoalForm::Bytes)).unwrap().text;
    let changed = text.replacen("send 32b", "send 36b", 1);
    assert!(
        changed != text
            && read(&changed)
                .unwrap_err()
                .to_string()
                .contains("not those of the step")
    );
}

#[test]
fn a_million_lines_take_linear_time() {
    let lines: String = (0..500_000)
        .map(|i| format!("a{i}: recv 1b from 1\n"))
        .collect();
    let requires: String = (1..500_000)
        .map(|i| format!("a{i} requires a{}\n", i - 1))
        .collect();
    let text = format!("num_ranks 2\nrank 0 {{\n{lines}{requires}}}\nrank 1 {{\n}}\n");
    let schedule = read(&text).unwrap();
    assert_eq!(schedule.steps(), 500_000);
    let cyclic = text.replacen("a1 requires a0", "a0 requires a499999", 1);
    assert!(read(&cyclic).is_ok());
    let cyclic = text.replacen(
        "a1 requires a0\n",
        "a1 requires a0\na0 requires a499999\n",
        1,
    );
    assert!(read(&cyclic).unwrap_err().to_string().contains("lead back"));
}
