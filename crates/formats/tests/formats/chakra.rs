//! Chakra traces: their bytes, and their times by the rule of ASTRA-sim's analytical network, and
//! by ASTRA-sim itself where `ONEPORT_ASTRASIM` names a checkout in which
//! `build/astra_analytical/build.sh` was run.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use oneport::error::ErrorKind;
use oneport::machine::{Eager, Ports};
use oneport::plan::registry;
use oneport::schedule::{Layout, Schedule, Span, Step};
use oneport::{Collective, CostModel, Request};
use oneport_formats::WrittenFolder;
use oneport_formats::chakra::{ChakraOptions, read, write};

/// A node as a trace has it. The decoder knows nothing of the writer.
#[derive(Debug, Default, Clone)]
struct Decoded {
    id: u64,
    kind: u64,
    deps: Vec<u64>,
    micros: u64,
    attr: HashMap<String, u64>,
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for i in 0.. {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        value |= u64::from(byte & 127) << (7 * i);
        if byte < 128 {
            break;
        }
    }
    value
}

fn delimited<'a>(bytes: &mut &'a [u8]) -> &'a [u8] {
    let len = varint(bytes) as usize;
    let (part, rest) = bytes.split_at(len);
    *bytes = rest;
    part
}

/// Calls `act` with each field's number, its number or its bytes.
fn fields(mut bytes: &[u8], mut act: impl FnMut(u64, u64, &[u8])) {
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        match key & 7 {
            0 => act(key >> 3, varint(&mut bytes), &[]),
            2 => act(key >> 3, 0, delimited(&mut bytes)),
            other => panic!("wire type {other}"),
        }
    }
}

fn decoded(mut trace: &[u8]) -> Vec<Decoded> {
    let mut versions = Vec::new();
    fields(delimited(&mut trace), |field, _, text| {
        versions.push((field, text.to_vec()));
    });
    assert_eq!(versions, [(1, b"0.0.4".to_vec())]);
    let mut nodes = Vec::new();
    while !trace.is_empty() {
        let mut node = Decoded::default();
        fields(
            delimited(&mut trace),
            |field, number, mut part| match field {
                1 => node.id = number,
                2 => {}
                3 => node.kind = number,
                5 if part.is_empty() => node.deps.push(number),
                5 => {
                    while !part.is_empty() {
                        node.deps.push(varint(&mut part));
                    }
                }
                7 => node.micros = number,
                10 => {
                    let (mut name, mut value) = (String::new(), 0);
                    fields(part, |field, number, text| match field {
                        1 => name = String::from_utf8(text.to_vec()).unwrap(),
                        7 | 9 | 27 => value = number,
                        other => panic!("attribute field {other}"),
                    });
                    node.attr.insert(name, value);
                }
                other => panic!("node field {other}"),
            },
        );
        nodes.push(node);
    }
    nodes
}

const COMP: u64 = 4;
const SEND: u64 = 5;
const RECV: u64 = 6;

/// The rule of ASTRA-sim, literally: whatever waits for nothing is issued in the order of its
/// number, but one send and one computation at a time for each rank; a message arrives, and its
/// send is done, after latency and size over bandwidth, cut to whole nanoseconds; a computation
/// takes its microseconds, or one nanosecond; links are busy for size over bandwidth.
fn astra_sim(traces: &[Vec<Decoded>], latency: f64, bytes_per_ns: f64) -> u64 {
    let mut left: Vec<Vec<Decoded>> = traces.to_vec();
    let mut done: Vec<HashMap<u64, u64>> = vec![HashMap::new(); traces.len()];
    let mut busy = vec![[false; 2]; traces.len()];
    let mut events = BinaryHeap::new();
    let (mut arrived, mut posted) = (HashMap::new(), HashMap::new());
    let mut link_free: HashMap<(u64, u64), u64> = HashMap::new();
    let mut now = 0;
    // (time, rank, node, kind): what is done.
    loop {
        for rank in 0..traces.len() {
            let mut i = 0;
            while i < left[rank].len() {
                let node = &left[rank][i];
                let resource = usize::from(node.kind == COMP);
                let taken = node.kind != RECV && busy[rank][resource];
                if taken || !node.deps.iter().all(|dep| done[rank].contains_key(dep)) {
                    i += 1;
                    continue;
                }
                let node = left[rank].remove(i);
                let me = rank as u64;
                let size = node.attr.get("comm_size").copied().unwrap_or(0) as f64;
                match node.kind {
                    COMP => {
                        busy[rank][1] = true;
                        let time = (node.micros * 1000).max(1);
                        events.push(Reverse((now + time, me, node.id, COMP)));
                    }
                    SEND => {
                        busy[rank][0] = true;
                        let to = node.attr["comm_dst"];
                        let free = link_free.entry((me, to)).or_insert(0);
                        let start = now.max(*free);
                        let busy = (size / bytes_per_ns) as u64;
                        assert!(busy > 0, "ASTRA-sim stops");
                        *free = start + busy;
                        let end = start + (latency + size / bytes_per_ns) as u64;
                        events.push(Reverse((end, me, node.id, SEND)));
                        let key = (me, to, node.attr["comm_tag"]);
                        let receive = posted.remove(&key);
                        match receive {
                            Some(id) => events.push(Reverse((end, to, id, RECV))),
                            None => drop(arrived.insert(key, end)),
                        }
                    }
                    RECV => {
                        let key = (node.attr["comm_src"], me, node.attr["comm_tag"]);
                        match arrived.remove(&key) {
                            Some(end) => {
                                events.push(Reverse((now.max(end), me, node.id, RECV)));
                            }
                            None => drop(posted.insert(key, node.id)),
                        }
                    }
                    other => panic!("type {other}"),
                }
            }
        }
        let Some(Reverse((time, rank, id, kind))) = events.pop() else {
            break;
        };
        now = time;
        done[rank as usize].insert(id, now);
        if kind != RECV {
            busy[rank as usize][usize::from(kind == COMP)] = false;
        }
    }
    assert!(left.iter().all(Vec::is_empty), "{left:?}");
    now
}

/// The time that ASTRA-sim prints for the traces `NAME.RANK.et` and a network.
fn replayed(checkout: &Path, own: &Path, name: &Path, network: &str) -> u64 {
    let files = [
        ("network", network),
        (
            "system",
            r#"{"scheduling-policy": "FIFO", "local-mem-bw": 50}"#,
        ),
        ("memory", r#"{"memory-type": "NO_MEMORY_EXPANSION"}"#),
    ];
    for (file, text) in files {
        fs::write(own.join(file), text).unwrap();
    }
    let program = "build/astra_analytical/build/bin/AstraSim_Analytical_Congestion_Aware";
    let mut command = Command::new(checkout.join(program));
    let output = command
        .current_dir(own)
        .arg(format!("--workload-configuration={}", name.display()))
        .arg("--network-configuration=network")
        .arg("--system-configuration=system")
        .arg("--remote-memory-configuration=memory")
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let ends = text.lines().filter_map(|line| {
        let cycles = line.split_once("finished, ")?.1.split(' ').next()?;
        cycles.parse().ok()
    });
    ends.max().unwrap_or_else(|| panic!("{command:?}: {text}"))
}

fn replay_folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// The ring that ASTRA-sim has as an example is read, and takes the time here that it takes there,
/// with computations.
#[test]
fn astra_sims_own_traces_take_its_time() {
    let Some(checkout) = crate::checkout("ONEPORT_ASTRASIM") else {
        return;
    };
    let examples = "examples/system/custom_collectives/custom_ring_allreduce_8npus_1MB";
    let name = checkout.join(examples).join("custom_allreduce");
    let traces = (0..8).map(|rank| fs::read(format!("{}.{rank}.et", name.display())).unwrap());
    let schedule = read(&traces.collect::<Vec<_>>()).unwrap();
    assert!(schedule.check().is_correct());
    let stats = schedule.stats().unwrap();
    assert_eq!((schedule.ranks(), stats.messages), (8, 112));
    // Its gigabyte has 2^30 bytes, and a message is cut to whole nanoseconds.
    let bandwidth = 1e9 / f64::from(1 << 30);
    let network = format!(
        "topology: [ FullyConnected ]\nnpus_count: [ 8 ]\nbandwidth: [ {bandwidth:?} ]\nlatency: [ 2000.0 ]\n"
    );
    let cost = CostModel::new(2000.0, 1.0)
        .gamma_copy(1.0)
        .eager(Eager::All);
    let time = schedule.simulate(&cost).unwrap().makespan();
    let own = replay_folder("chakra_own");
    assert_eq!(time, replayed(&checkout, &own, &name, &network) as f64);
}

fn options(cost: &CostModel) -> ChakraOptions {
    ChakraOptions {
        cost: cost.clone(),
        second: 1e-9,
    }
}

/// All rows for up to 16 ranks: where the note says that the times are equal, they are, to the
/// nanosecond; and so is the time of the schedule that is read back, without computations.
#[test]
fn all_rows_take_the_time_of_the_model() {
    let (mut equal, mut other, mut judged_equal) = (0, 0, 0);
    let checkout = crate::checkout("ONEPORT_ASTRASIM");
    let folder = replay_folder("chakra_rows");
    for gamma in [0.0, 1000.0] {
        let cost = CostModel::new(1000.0, 1.0).gamma(gamma).eager(Eager::All);
        for algorithm in registry::all() {
            for p in 2..=16 {
                for ports in [Ports::BI, Ports::UNI] {
                    let request = Request::new(algorithm.collective, p, 4 * p).ports(ports);
                    let Ok(schedule) = algorithm.plan(&request) else {
                        continue;
                    };
                    let name = format!(
                        "{} {} p={p} {ports:?}",
                        schedule.collective().kind().name(),
                        algorithm.name()
                    );
                    let Ok(WrittenFolder { files, notes, .. }) = write(&schedule, &options(&cost))
                    else {
                        continue;
                    };
                    let traces: Vec<Vec<u8>> = files[..p].iter().map(|f| f.1.clone()).collect();
                    let nodes: Vec<_> = traces.iter().map(|trace| decoded(trace)).collect();
                    let network = String::from_utf8(files[p].1.clone()).unwrap();
                    let number = |name: &str| -> f64 {
                        let line = network.lines().find_map(|line| line.strip_prefix(name));
                        line.unwrap().split(' ').nth(2).unwrap().parse().unwrap()
                    };
                    let bandwidth = number("bandwidth:") * f64::from(1 << 30) / 1e9;
                    let time = astra_sim(&nodes, number("latency:"), bandwidth);
                    if let Some(checkout) = &checkout {
                        let written = folder.join("trace");
                        for (rank, trace) in traces.iter().enumerate() {
                            fs::write(format!("{}.{rank}.et", written.display()), trace).unwrap();
                        }
                        assert_eq!(
                            replayed(checkout, &folder, &written, &network),
                            time,
                            "{name}"
                        );
                    }
                    let model = schedule.simulate(&cost).unwrap().makespan();
                    let same = notes
                        .last()
                        .unwrap()
                        .starts_with("ASTRA-sim computes the model's time");
                    if same {
                        assert_eq!(time as f64, model, "{name} gamma {gamma}");
                        equal += 1;
                    } else {
                        judged_equal += usize::from(time as f64 == model);
                        other += 1;
                    }
                    let again = read(&traces).unwrap();
                    assert!(again.check().is_correct(), "{name}");
                    let cost = cost.clone().gamma_copy(1.0);
                    let reread = again.simulate(&cost).unwrap().makespan();
                    let has_data = schedule.collective().kind().has_data();
                    if same && has_data && ports == Ports::BI && gamma == 0.0 {
                        assert_eq!(reread, model, "{name}");
                    }
                }
            }
        }
    }
    // Equal times are not always foreseen.
    assert!(
        equal > 5000 && other > 2000 && judged_equal < other / 4,
        "{equal} {other} {judged_equal}"
    );
}

/// The bytes that Python's `protobuf` makes of the same messages with `et_def.proto`.
#[test]
fn bytes_are_those_of_protocol_buffers() {
    let layout = vec![
        Layout {
            len: 300,
            input: Span::new(0, 300).into(),
            output: Span::new(0, 300).into()
        };
        2
    ];
    let whole = Span::new(0, 300);
    let programs = vec![
        vec![Step::send(1, whole)],
        vec![
            Step::recv(0, whole),
            Step::copy(Span::new(0, 2), Span::new(2, 2)),
        ],
    ];
    let collective = Collective::Broadcast { root: 0 };
    let schedule = Schedule::new(Ports::BI, collective, layout, programs).unwrap();
    let cost = CostModel::new(500.0, 2.0)
        .gamma_copy(1500.0)
        .eager(Eager::All);
    let WrittenFolder { files, notes, .. } = write(&schedule, &options(&cost)).unwrap();
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let names: Vec<&str> = files.iter().map(|f| f.0.as_str()).collect();
    assert_eq!(names, ["trace.0.et", "trace.1.et", "network.yml"]);
    assert_eq!(hex(&files[0].1), SENDER);
    assert_eq!(hex(&files[1].1), RECEIVER);
    assert_eq!(
        String::from_utf8(files[2].1.clone()).unwrap(),
        "topology: [ FullyConnected ]\nnpus_count: [ 2 ]\nbandwidth: [ 0.46566128730773926 ]  # 2^30 bytes/s\n\
         latency: [ 500.0 ]  # ns\n"
    );
    assert_eq!(notes.len(), 1, "{notes:?}");
}

const SENDER: &str = "\
    070a05302e302e344c120c7374657020303a2073656e641805520e0a0969735f6370755f6f70d80100520e0a09\
    636f6d6d5f73697a6548ac02520c0a08636f6d6d5f6473743801520c0a08636f6d6d5f7461673800";
const RECEIVER: &str = "\
    070a05302e302e344c120c7374657020303a20726563761806520e0a0969735f6370755f6f70d80100520e0a09\
    636f6d6d5f73697a6548ac02520c0a08636f6d6d5f7372633800520c0a08636f6d6d5f7461673800270801120c\
    7374657020313a20636f707918042a01003803520e0a0969735f6370755f6f70d80100";

#[test]
fn what_astra_sim_has_not_is_refused() {
    let plan = |request: Request, name: &str| request.plan(name).unwrap();
    let cost = CostModel::new(1000.0, 1.0).eager(Eager::All);
    let refused = |schedule: &Schedule, cost: &CostModel, why: &str| {
        let error = write(schedule, &options(cost)).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    };
    let binomial = plan(Request::broadcast(4, 8), "binomial");
    let ported = plan(
        Request::broadcast(9, 8).ports(Ports::BI.with_k(2)),
        "knomial",
    );
    refused(&ported, &cost, "one send in flight");
    let empty = plan(Request::broadcast(4, 0), "binomial");
    refused(&empty, &cost, "one byte at least");
    refused(
        &binomial,
        &cost.clone().arrivals(vec![0.0, 1.0, 0.0, 0.0]),
        "start together",
    );
    refused(&binomial, &cost.clone().overlap(true), "take turns");
    // A message of 8 bytes that keeps its link for less than a nanosecond.
    let short = "a nanosecond at least";
    refused(&binomial, &CostModel::new(1000.0, 0.12), short);
    refused(&binomial, &CostModel::new(0.5, 0.0), short);
    // Where the link is free at once, for the last nanosecond of the latency.
    let WrittenFolder { files, .. } =
        write(&binomial, &options(&CostModel::new(1000.0, 0.0))).unwrap();
    let network = String::from_utf8(files[4].1.clone()).unwrap();
    assert!(
        network.contains("[ 999.0 ]") && network.contains("[ 7.450580596923828 ]"),
        "{network}"
    );
    // Senders that wait, and half a microsecond.
    let WrittenFolder { notes, .. } =
        write(&binomial, &options(&CostModel::new(1000.0, 1.0))).unwrap();
    assert!(notes[0].contains("computes the model's time"), "{notes:?}");
    let reduce = plan(Request::reduce(4, 8), "binomial");
    let half = cost.gamma(62.5);
    let WrittenFolder { notes, .. } = write(&reduce, &options(&half)).unwrap();
    assert!(
        notes[0].contains("rounded") && notes[1].contains("may compute"),
        "{notes:?}"
    );
}

/// The first two nodes of a ring in ASTRA-sim's own traces: every rank receives when its send is
/// done, which no message waits for there.
#[test]
fn receives_do_not_wait_for_sends_of_their_rank() {
    let pair = [
        vec![
            Step::send(1, Span::new(0, 4)),
            Step::recv(1, Span::new(4, 4)),
        ],
        vec![
            Step::send(0, Span::new(0, 4)),
            Step::recv(0, Span::new(4, 4)),
        ],
    ];
    let layout = vec![
        Layout {
            len: 8,
            input: Span::new(0, 4).into(),
            output: Span::new(0, 8).into(),
        };
        2
    ];
    let uni = Schedule::new(Ports::UNI, Collective::Allgather, layout, pair.to_vec()).unwrap();
    let cost = CostModel::new(1000.0, 1.0).eager(Eager::All);
    // In turns on one port: the receive waits for the send.
    assert!(!uni.check().is_correct());
    let bi = Schedule::new(
        Ports::BI,
        Collective::Allgather,
        uni.layout().to_vec(),
        pair.to_vec(),
    );
    let WrittenFolder { files, .. } = write(&bi.unwrap(), &options(&cost)).unwrap();
    let waiting = |trace: &[u8]| {
        let mut rest = trace;
        delimited(&mut rest);
        delimited(&mut rest);
        // The second node, with field 5: it waits for node 0.
        let head = trace.len() - rest.len();
        let node = delimited(&mut rest);
        let len = node.len() as u8 + 3;
        [&trace[..head], &[len], node, &[42, 1, 0]].concat()
    };
    let traces: Vec<Vec<u8>> = files[..2].iter().map(|f| waiting(&f.1)).collect();
    assert_eq!(decoded(&traces[0])[1].deps, [0]);
    let again = read(&traces).unwrap();
    assert!(again.check().is_correct(), "{}", again.check());
    assert_eq!(again.simulate(&cost).unwrap().makespan(), 1004.0);
}

#[test]
fn broken_traces_name_rank_and_node() {
    let schedule = Request::broadcast(2, 8).plan("binomial").unwrap();
    let cost = CostModel::new(1.0, 1.0);
    let WrittenFolder { files, .. } = write(&schedule, &options(&cost)).unwrap();
    let [first, second] = [0, 1].map(|rank| files[rank].1.clone());
    let refused = |traces: &[Vec<u8>], why: &str| {
        let error = read(traces).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Malformed(_)), "{error}");
        assert!(error.to_string().contains(why), "{error}");
    };
    refused(
        &[first.clone(), b"text".to_vec()],
        "rank 1: no Chakra trace",
    );
    refused(
        std::slice::from_ref(&first),
        "rank 0: node 0: its comm_dst is none of 1 ranks",
    );
    let twice = |trace: &[u8]| {
        let mut rest = trace;
        delimited(&mut rest);
        [trace, rest].concat()
    };
    refused(
        &[twice(&first), second.clone()],
        "rank 0: node 0: it is there twice",
    );
    refused(
        &[first[..first.len() - 1].to_vec(), second.clone()],
        "rank 0: no Chakra trace behind its first ",
    );
    // A node of an own type, and one that waits for a node that is not there: field 3 and 5.
    let node = |fields: &[u8]| {
        let mut rest = &first[..];
        delimited(&mut rest);
        let head = first.len() - rest.len();
        [&first[..head], &[fields.len() as u8], fields].concat()
    };
    refused(
        &[node(&[8, 7, 24, 7]), second.clone()],
        "rank 0: node 7: only sends, receives",
    );
    refused(
        &[node(&[8, 7, 24, 4, 40, 9]), second.clone()],
        "rank 0: node 7: it waits for node 9",
    );
    refused(&[node(&[8, 7, 24, 4, 40, 7]), second], "rank 0, node 7: ");
}
