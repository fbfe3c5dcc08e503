//! MSCCL XML: files are read back, obey the executor's rules, and are refused where they are
//! broken.

use oneport::{Collective, CostModel, Order, Ports, Request, Result, Schedule, Span, Step};
use oneport_formats::Written;
use oneport_formats::msccl::{ReadOptions, read, write};

use crate::grid;

fn read_default(text: &str) -> Result<Schedule> {
    read(text, &ReadOptions::default())
}

/// The file without what only oneport reads.
pub(crate) fn stripped(text: &str) -> String {
    let own = ["root", "ports", "ported", "n", "port", "order"];
    let mut text = text.to_string();
    for name in own {
        let start = format!(" {name}=\"");
        while let Some(at) = text.find(&start) {
            let end = text[at + start.len()..].find('"').unwrap();
            text.replace_range(at..at + start.len() + end + 1, "");
        }
    }
    text
}

/// Written and read back, all algorithms are right and take the same time; without oneport's own
/// attributes, they are right.
#[test]
fn written_schedules_are_read_back() {
    let cost = CostModel::new(3.0, 1.0).gamma(2.0);
    let (mut written, mut graphs) = (0, 0);
    for (name, schedule) in grid() {
        let text = match write(&schedule, "x") {
            Ok(text) => text.text,
            Err(error) => {
                let unknown = schedule.collective().kind().row().msccl.is_none();
                let empty = schedule.programs().iter().flatten().any(Step::is_empty);
                let unequal = error.to_string().contains("blocks of equal size");
                assert!(unknown || empty || unequal, "{name}: {error}");
                continue;
            }
        };
        let largest = |s: &Schedule| {
            let sends = s.programs().iter().flatten().filter(|s| s.is_send());
            sends.map(Step::len).max().unwrap_or(1)
        };
        let chunk = largest(&schedule) / largest(&read_default(&text).unwrap());
        let options = ReadOptions {
            chunk,
            ..ReadOptions::default()
        };
        let back = read(&text, &options).unwrap().with_element_bytes(4);
        let report = back.check();
        assert!(report.is_correct(), "{name}: {report}\n{text}");
        assert_eq!(report.keeps_order, schedule.check().keeps_order, "{name}");
        assert_eq!(back.ports(), schedule.ports(), "{name}");
        assert_eq!(back.collective(), schedule.collective(), "{name}");
        let time = |s: &Schedule| s.simulate(&cost).unwrap().makespan();
        assert_eq!(time(&back), time(&schedule), "{name}\n{text}");
        written += 1;
        let options = ReadOptions {
            root: schedule.collective().root(),
            ..ReadOptions::default()
        };
        let back = read(&stripped(&text), &options).unwrap();
        assert!(
            back.check().is_correct(),
            "{name}: {}\n{text}",
            back.check()
        );
        graphs += 1;
    }
    assert!(written > 400 && graphs == written, "{written} {graphs}");
}

/// What the executor demands of dependences, numbers and channels.
#[test]
fn written_files_follow_the_executors_rules() {
    for (name, schedule) in grid() {
        let Ok(Written { text, .. }) = write(&schedule, "x") else {
            continue;
        };
        let document = roxmltree::Document::parse(&text).unwrap();
        for gpu in document
            .root_element()
            .children()
            .filter(|n| n.is_element())
        {
            let number =
                |n: roxmltree::Node, name: &str| n.attribute(name).unwrap().parse::<i64>().unwrap();
            let blocks: Vec<Vec<_>> = gpu
                .children()
                .filter(|n| n.is_element())
                .map(|tb| tb.children().filter(|n| n.is_element()).collect())
                .collect();
            for steps in &blocks {
                let mut open = false;
                for &step in steps {
                    let (block, at) = (number(step, "depid"), number(step, "deps"));
                    if block >= 0 {
                        let other = blocks[block as usize][at as usize];
                        assert_eq!(number(other, "hasdep"), 1, "{name}");
                        assert!(other.attribute("type") != Some("nop"), "{name}");
                    }
                    let nop = step.attribute("type") == Some("nop");
                    assert!(
                        !open || nop || block >= 0,
                        "{name}: the step after a nop waits as well"
                    );
                    open = nop;
                    assert!(nop || (1..=71).contains(&number(step, "cnt")), "{name}");
                }
                assert!(!open, "{name}: a nop comes last");
            }
        }
    }
}

#[test]
fn golden() {
    let mut b = Schedule::reduce(2, 4);
    b.transfer_combine(1, 0, 0..4, Order::TheirsFirst);
    let written = write(&b.build().unwrap(), "a \"b\"").unwrap();
    let expected = r#"<algo name="a &quot;b&quot;" proto="Simple" nchannels="1" nchunksperloop="1" ngpus="2" coll="reduce" inplace="0" outofplace="1" minBytes="0" maxBytes="0" root="0" ports="bi" ported="1">
 <gpu id="0" i_chunks="1" o_chunks="1" s_chunks="0">
  <tb id="0" send="-1" recv="-1" chan="0">
   <step s="0" type="cpy" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="1" n="0"/>
  </tb>
  <tb id="1" send="-1" recv="1" chan="0">
   <step s="0" type="rrc" srcbuf="o" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="0" deps="0" hasdep="0" n="1" order="theirs_first"/>
  </tb>
 </gpu>
 <gpu id="1" i_chunks="1" o_chunks="0" s_chunks="0">
  <tb id="0" send="0" recv="-1" chan="0">
   <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0" n="0"/>
  </tb>
 </gpu>
</algo>
"#;
    assert_eq!(written.text, expected);
    assert_eq!(
        written.notes,
        ["MSCCL combines in any order: for operators that commute"]
    );
}

/// Messages of many chunks, many peers and messages out of several places.
#[test]
fn limits_of_the_executor_are_kept_or_noted() {
    let schedule = Request::allgather(100, 1).plan("doubling");
    let schedule = schedule
        .or_else(|_| Request::allgather(100, 1).plan("ring"))
        .unwrap();
    let written = write(&schedule, "x").unwrap();
    assert!(read_default(&written.text).unwrap().check().is_correct());
    let linear = Request::broadcast(80, 1).plan("linear").unwrap();
    let written = write(&linear, "x").unwrap();
    assert!(
        written.text.contains("nchannels=\"3\""),
        "{}",
        &written.text[..100]
    );
    let chain = Request::broadcast(3, 600)
        .segment_count(600)
        .plan("chain")
        .unwrap();
    let notes = write(&chain, "x").unwrap().notes.join("\n");
    assert!(
        notes.contains("600 steps, MSCCL's executor takes 256"),
        "{notes}"
    );
    assert!(
        notes.contains("XML nodes for a rank, MSCCL's executor takes 1024"),
        "{notes}"
    );
    let bruck = Request::alltoall(8, 1).plan("bruck").unwrap();
    let written = write(&bruck, "x").unwrap();
    assert!(
        written.notes.iter().any(|n| n.contains("several places")),
        "{:?}",
        written.notes
    );
}

#[test]
fn what_msccl_lacks_is_refused() {
    let refuse = |schedule: &Schedule, why: &str| {
        let error = write(schedule, "x").unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    };
    let scan = Request::scan(4, 8)
        .plan("doubling")
        .or_else(|_| Request::scan(4, 8).plan("chain"));
    refuse(&scan.unwrap(), "MSCCL has no scan");
    let gather = Request::gather(3, 0)
        .blocks(Some(vec![1, 2, 3]))
        .plan("linear")
        .unwrap();
    refuse(&gather, "here ranks have 1 and 2 elements");
    let empty = Request::broadcast(3, 0).plan("linear").unwrap();
    refuse(&empty, "no steps without chunks: rank 0, step 0 (send)");
    let mut b = Schedule::broadcast(2, 4);
    b.step(0, Step::send(1, Span::new(0, 4)));
    refuse(&b.build().unwrap(), "do not match");
}

fn algo(attributes: &str, gpus: &[&str]) -> String {
    let gpus: String = gpus
        .iter()
        .enumerate()
        .map(|(id, gpu)| {
            let (sizes, blocks) = gpu.split_once('|').unwrap();
            let sizes: Vec<&str> = sizes.split(' ').collect();
            format!(
                "<gpu id=\"{id}\" i_chunks=\"{}\" o_chunks=\"{}\" s_chunks=\"{}\">{blocks}</gpu>",
                sizes[0], sizes[1], sizes[2]
            )
        })
        .collect();
    format!("<algo name=\"x\" proto=\"LL\" nchannels=\"1\" {attributes}>\n{gpus}</algo>")
}

/// A thread block: its peers and its steps `TYPE SRC DST CNT [DEPID DEPS]`.
fn tb(id: usize, send: &str, recv: &str, steps: &[&str]) -> String {
    let step = |(s, step): (usize, &&str)| {
        let w: Vec<&str> = step.split(' ').collect();
        let at = |w: &str| (w[..1].to_string(), w[1..].to_string());
        let ((sb, so), (db, d)) = (at(w[1]), at(w[2]));
        let (depid, deps) = (w.get(4).unwrap_or(&"-1"), w.get(5).unwrap_or(&"-1"));
        format!(
            "<step s=\"{s}\" type=\"{}\" srcbuf=\"{sb}\" srcoff=\"{so}\" dstbuf=\"{db}\" dstoff=\"{d}\" cnt=\"{}\" \
             depid=\"{depid}\" deps=\"{deps}\" hasdep=\"0\"/>\n",
            w[0], w[3]
        )
    };
    let steps: String = steps.iter().enumerate().map(step).collect();
    format!("<tb id=\"{id}\" send=\"{send}\" recv=\"{recv}\" chan=\"0\">\n{steps}</tb>\n")
}

/// Rings of 3 ranks with the fused steps, in place.
#[test]
fn fused_steps_in_place() {
    // Chunk 0 is reduced along 0, 1, 2, 0 ... and goes round: an allreduce with one chunk.
    let ring = |middle: &str, rest: &[&str]| {
        let gpus = [
            format!(
                "1 0 0|{}",
                tb(0, "1", "2", &["s i0 i0 1", rest[0], rest[1]])
            ),
            format!("1 0 0|{}", tb(0, "2", "0", &[middle, rest[2]])),
            format!("1 0 0|{}", tb(0, "0", "1", &["rrcs i0 i0 1", rest[3]])),
        ];
        let gpus: Vec<&str> = gpus.iter().map(String::as_str).collect();
        algo(
            "ngpus=\"3\" coll=\"allreduce\" inplace=\"1\" nchunksperloop=\"1\"",
            &gpus,
        )
    };
    for middle in ["rrcs i0 i0 1", "rrs i0 i0 1"] {
        // Rank 2 has the sum; it sends it to 0 (rrcs), 0 to 1 (rcs), 1 to 2, which has it already.
        let text = ring(
            middle,
            &["r i0 i0 1", "s i0 i0 1", "r i0 i0 1", "nop i0 i0 0"],
        );
        let schedule = read_default(&text).unwrap();
        let report = schedule.check();
        assert!(report.is_correct(), "{middle}: {report}");
        assert_eq!(schedule.ports(), Ports::BI);
        assert_eq!(schedule.collective(), &Collective::Allreduce);
    }
    let text = ring(
        "rrcs i0 i0 1",
        &["rcs i0 i0 1", "nop i0 i0 0", "r i0 i0 1", "nop i0 i0 0"],
    );
    assert!(read_default(&text).unwrap().check().is_correct());
}

/// Older tools copy the input to its place in the output before all steps. In place it is there.
#[test]
fn copies_before_all_steps_are_read_in_place() {
    let gpu = |copied: usize, peer: &str, steps: &[&str]| {
        let block = tb(0, peer, peer, steps);
        format!("1 2 0|<copy i_off=\"0\" o_off=\"{copied}\"/>{block}")
    };
    let file = |second: usize, in_place: &str| {
        let gpus = [
            gpu(0, "1", &["s o0 o0 1", "r o1 o1 1"]),
            gpu(second, "0", &["s o1 o1 1", "r o0 o0 1"]),
        ];
        let gpus: Vec<&str> = gpus.iter().map(String::as_str).collect();
        algo(
            &format!("ngpus=\"2\" coll=\"allgather\" nchunksperloop=\"2\" inplace=\"{in_place}\""),
            &gpus,
        )
    };
    assert!(read_default(&file(1, "1")).unwrap().check().is_correct());
    for text in [file(0, "1"), file(1, "0")] {
        let error = read_default(&text).unwrap_err().to_string();
        assert!(
            error.contains("<copy> of chunk 0 to another place, chunk"),
            "{error}"
        );
    }
}

/// The executor reads the local operand of `rrc` at its source.
#[test]
fn operands_come_from_the_source() {
    let gpus = [
        format!("1 1 0|{}", tb(0, "-1", "1", &["rrc i0 o0 1"])),
        format!("1 0 0|{}", tb(0, "0", "-1", &["s i0 o0 1"])),
    ];
    let gpus: Vec<&str> = gpus.iter().map(String::as_str).collect();
    let text = algo("ngpus=\"2\" coll=\"reduce\" nchunksperloop=\"1\"", &gpus);
    let schedule = read_default(&text).unwrap();
    let (i, o) = (Span::new(0, 1), Span::new(1, 1));
    let expected = [Step::recv(1, o), Step::combine(i, o, Order::TheirsFirst)];
    assert_eq!(schedule.programs()[0], expected);
    let report = schedule.check();
    assert!(report.is_correct() && report.keeps_order, "{report}");
}

#[test]
fn ports_are_as_many_as_needed_or_asked_for() {
    let others: Vec<String> = (1..4)
        .map(|p| tb(p - 1, &p.to_string(), "-1", &["s i0 o0 1"]))
        .collect();
    let mut gpus = vec![format!(
        "1 1 0|{}{}",
        others.concat(),
        tb(3, "-1", "-1", &["cpy i0 o0 1"])
    )];
    gpus.extend((1..4).map(|_| format!("0 1 0|{}", tb(0, "-1", "0", &["r i0 o0 1"]))));
    let gpus: Vec<&str> = gpus.iter().map(String::as_str).collect();
    let text = algo("ngpus=\"4\" coll=\"broadcast\" nchunksperloop=\"1\"", &gpus);
    for (ported, k, rounds) in [
        (None, 3, 1.0),
        (Some(1), 1, 3.0),
        (Some(2), 2, 2.0),
        (Some(9), 9, 1.0),
    ] {
        let options = ReadOptions {
            ported,
            ..ReadOptions::default()
        };
        let schedule = read(&text, &options).unwrap();
        assert_eq!(schedule.ports(), Ports::BI.with_k(k));
        assert!(schedule.check().is_correct());
        let time = schedule
            .simulate(&CostModel::new(1.0, 0.0))
            .unwrap()
            .makespan();
        assert_eq!(time, rounds, "{ported:?}");
    }
}

#[test]
fn broken_files_are_refused() {
    let two = |a: &str, b: &str| {
        algo(
            "ngpus=\"2\" coll=\"broadcast\" nchunksperloop=\"1\"",
            &[a, b],
        )
    };
    let send = tb(0, "1", "-1", &["s i0 o0 1"]);
    let recv = tb(0, "-1", "0", &["r i0 o0 1"]);
    let good = two(
        &format!("1 1 0|{send}{}", tb(1, "-1", "-1", &["cpy i0 o0 1"])),
        &format!("0 1 0|{recv}"),
    );
    assert!(read_default(&good).unwrap().check().is_correct());
    let huge = "9".repeat(30);
    for (from, to, why) in [
        ("<algo", "<algorithm", "not XML"),
        ("</algo>", "", "not XML: "),
        (
            "coll=\"broadcast\"",
            "coll=\"scan\"",
            "<algo>: coll=\"scan\" is none of broadcast, ",
        ),
        ("coll=\"broadcast\"", "", "the attribute coll is missing"),
        (
            "ngpus=\"2\"",
            "ngpus=\"3\"",
            "ngpus=\"3\", but there are 2 ranks",
        ),
        (
            "ngpus=\"2\"",
            "ngpus=\"18446744073709551615\"",
            "but there are 2 ranks",
        ),
        (
            "ngpus=\"2\"",
            &format!("ngpus=\"{huge}\""),
            "is not a number that fits",
        ),
        ("gpu id=\"1\"", "gpu id=\"2\"", "id 2 is not one of 2 ranks"),
        (
            "type=\"r\"",
            "type=\"recv\"",
            "line 9: <step>: type=\"recv\" is none of s, r, ",
        ),
        (
            "type=\"r\"",
            "type=\"s\"",
            "s in a thread block without that peer",
        ),
        (
            "recv=\"0\"",
            "recv=\"1\"",
            "recv=\"1\" is not another one of 2 ranks",
        ),
        ("<tb id=\"1\"", "<tb id=\"7\"", "id 7 where 1 is due"),
        ("<step s=\"0\"", "<step s=\"1\"", "s=\"1\" where 0 is due"),
        ("cnt=\"1\"", "cnt=\"0\"", "a step moves a chunk at least"),
        (
            "cnt=\"1\"",
            "cnt=\"2\"",
            "receives 1 chunks, but rank 0 sends 2",
        ),
        (
            "srcoff=\"0\"",
            "srcoff=\"3\"",
            "1 chunks from 3 on leave the 1 of buffer i",
        ),
        (
            "srcoff=\"0\"",
            "srcoff=\"18446744073709551615\"",
            "leave the 1 of buffer i",
        ),
        (
            "srcbuf=\"i\"",
            "srcbuf=\"x\"",
            "srcbuf=\"x\" is none of i, o, s",
        ),
        (
            "depid=\"-1\" deps=\"-1\"",
            "depid=\"4\" deps=\"0\"",
            "waits for step 0 of thread block 4, which is not there",
        ),
        (
            "depid=\"-1\"",
            "depid=\"0\"",
            "depid and deps belong together",
        ),
        ("<step", "<stop", "only step elements stand here"),
        (
            "i_chunks=\"1\"",
            "i_chunks=\"5\"",
            "rank 0 has i_chunks=\"5\"",
        ),
        (
            "s_chunks=\"0\"",
            "s_chunks=\"18446744073709551615\"",
            "the buffer of a rank exceeds 2^64",
        ),
        (
            "nchunksperloop=\"1\"",
            "nchunksperloop=\"-5\"",
            "is not a number that fits",
        ),
    ] {
        let text = good.replacen(from, to, 1);
        assert_ne!(text, good, "{from}");
        let error = read_default(&text).unwrap_err();
        assert!(
            error.is_usage() && error.to_string().contains(why),
            "{from} {to}: {error}"
        );
    }
    let twice = "<algo coll=\"allreduce\" ngpus=\"2\">X<gpu id=\"1\" i_chunks=\"1\" o_chunks=\"1\" s_chunks=\"0\"/></algo>";
    let gpu = "<gpu id=\"1\" i_chunks=\"1\" o_chunks=\"1\" s_chunks=\"0\"/>";
    let error = read_default(&twice.replace('X', gpu))
        .unwrap_err()
        .to_string();
    assert!(error.contains("rank 1 is there twice"), "{error}");
    for cut in 0..good.len() {
        assert!(read_default(&good[..cut]).is_err());
    }
    // Two thread blocks that wait for each other.
    let text = good.replacen("depid=\"-1\" deps=\"-1\"", "depid=\"1\" deps=\"0\"", 1);
    assert!(read_default(&text).is_ok());
    let text = text.replacen("depid=\"-1\" deps=\"-1\"", "depid=\"0\" deps=\"0\"", 1);
    let error = read_default(&text).unwrap_err().to_string();
    assert!(error.contains("wait for each other in a cycle"), "{error}");
    let no_root = good.replacen("i_chunks=\"0\"", "i_chunks=\"1\"", 1);
    let error = read_default(&no_root).unwrap_err().to_string();
    assert!(error.contains("name the root"), "{error}");
}

#[test]
fn a_million_lines_take_linear_time() {
    let n = 250_000;
    let steps = |what: &str| {
        let lines = (0..n).map(|s| {
            format!("<step s=\"{s}\" type=\"{what}\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"0\" cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>\n\n")
        });
        lines.collect::<String>()
    };
    let gpu = |sizes: &str, send: &str, recv: &str, what: &str| {
        format!(
            "{sizes}|<tb id=\"0\" send=\"{send}\" recv=\"{recv}\" chan=\"0\">{}</tb>",
            steps(what)
        )
    };
    let gpus = [gpu("1 1 0", "1", "-1", "s"), gpu("0 1 0", "-1", "0", "r")];
    let text = algo(
        "ngpus=\"2\" coll=\"broadcast\" nchunksperloop=\"1\"",
        &[&gpus[0], &gpus[1]],
    );
    assert!(text.lines().count() > 1_000_000);
    assert_eq!(read_default(&text).unwrap().steps(), 2 * n);
    let deep = "<a>".repeat(100_000);
    assert!(read_default(&deep).is_err());
    let deep = deep + &"</a>".repeat(100_000);
    assert!(read_default(&deep).is_err());
}
