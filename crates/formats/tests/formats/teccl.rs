//! Flows of TE-CCL: right ones are proved, wrong ones refused with the flow and its epoch.

use std::collections::{BTreeMap, BTreeSet};

use oneport::CostModel;
use oneport::error::{ErrorKind, Result};
use oneport::machine::Ports;
use oneport::schedule::Schedule;
use oneport_formats::msccl::ReadOptions;
use oneport_formats::teccl;
use serde_json::{Value, json};

/// Source, target and number of a chunk, the epoch that it is there by, and its paths.
type Demand = (usize, usize, usize, usize, Vec<Vec<String>>);

/// A file with these demands; paths of whole chunks are lists, as TE-CCL writes them.
fn file(demands: &[Demand], epochs: usize) -> Value {
    let mut flows = BTreeSet::new();
    let mut paths = BTreeMap::new();
    for (from, to, chunk, met, of) in demands {
        for hop in of.iter().flatten() {
            flows.insert(format!("Chunk {chunk} from {from} traveled over {hop}"));
        }
        let epoch = |hop: &str| {
            let behind = hop.split(" in epoch ").nth(1).unwrap();
            behind.split(' ').next().unwrap().parse::<usize>().unwrap()
        };
        let parts = of.iter().map(|path| {
            let hops = path.iter().map(|hop| json!([epoch(hop), hop]));
            hops.collect::<Vec<_>>()
        });
        let whole = of.len() == 1 && !of[0].iter().any(|hop| hop.contains("volume"));
        let key = format!("Demand at {to} for chunk {chunk} from {from} met by epoch {met}");
        let value = if whole {
            json!(of[0])
        } else {
            json!(parts.collect::<Vec<_>>())
        };
        paths.insert(key, value);
    }
    json!({
        "1-Epoch_Duration": 0.25, "2-Expected_Epoch_Duration": 0.25, "3-Epochs_Required": epochs,
        "4-Collective_Finish_Time": 0.25 * epochs as f64, "5-Algo_Bandwidth": 1.0,
        "7-Flows": flows, "8-Chunk paths": paths, "Solver_Time": 0.1
    })
}

/// An allgather over a ring of four GPUs, of which the second link leads through switch 2: a flow
/// takes one epoch, there two.
const RING: [usize; 4] = [0, 1, 3, 4];

fn ring() -> Vec<Demand> {
    let mut demands = Vec::new();
    for (source, &gpu) in RING.iter().enumerate() {
        let (mut epoch, mut path) = (0, Vec::new());
        for hop in 0..3 {
            let [from, to] = [source + hop, source + hop + 1].map(|i| RING[i % 4]);
            let (via, later) = match from {
                1 => (" via switches 2", 1),
                _ => ("", 0),
            };
            path.push(format!("{from}->{to} in epoch {epoch}{via}"));
            let met = epoch + later;
            demands.push((gpu, to, 0, met, vec![path.clone()]));
            epoch = met + 1;
        }
    }
    demands
}

/// An alltoall of three GPUs in which half of what 0 sends to 2 goes through 1.
fn triangle() -> Vec<Demand> {
    let mut demands = Vec::new();
    for (from, to) in [(0, 1), (1, 0), (1, 2), (2, 0), (2, 1)] {
        let path = vec![format!("{from}->{to} with volume 1.0 in epoch 0")];
        demands.push((from, to, to, 0, vec![path]));
    }
    let paths = vec![
        vec!["0->2 with volume 0.25 in epoch 0".to_string()],
        vec![
            "0->1 with volume 0.25 in epoch 1".to_string(),
            "1->2 with volume 0.25 in epoch 3".to_string(),
        ],
        vec!["0->2 with volume 0.5 in epoch 2".to_string()],
    ];
    demands.push((0, 2, 2, 3, paths));
    demands
}

fn read(file: &Value) -> Result<Schedule> {
    teccl::read(&file.to_string(), &ReadOptions::default())
}

#[test]
fn an_allgather_is_proved_and_timed() {
    let schedule = read(&file(&ring(), 4)).unwrap();
    assert_eq!(schedule.name(), Some("TE-CCL, 4 epochs"));
    assert_eq!((schedule.ranks(), schedule.ports()), (4, Ports::BI));
    let report = schedule.check();
    assert!(report.is_correct() && report.notes.is_empty(), "{report}");
    // Four demands share the first flow of each source.
    assert_eq!(schedule.stats().unwrap().messages, 12);
    let time = schedule.simulate(&CostModel::new(1.0, 0.0)).unwrap();
    assert_eq!(time.makespan(), 3.0);
}

#[test]
fn parts_of_chunks_take_several_paths() {
    let text = file(&triangle(), 4).to_string();
    let schedule = teccl::read(&text, &ReadOptions::default()).unwrap();
    let report = schedule.check();
    assert!(report.is_correct() && report.notes.is_empty(), "{report}");
    // A chunk is four parts; rank 1 relays one of them, and each rank copies its own block.
    let lengths: Vec<usize> = schedule.layout().iter().map(|l| l.len).collect();
    assert_eq!(lengths, [24, 25, 24]);
    assert_eq!(schedule.stats().unwrap().messages, 5 + 4);
    let options = ReadOptions {
        chunk: 3,
        ported: Some(1),
        ..ReadOptions::default()
    };
    let larger = teccl::read(&text, &options).unwrap();
    assert_eq!((larger.layout()[1].len, larger.ports().k()), (75, 1));
    assert!(larger.check().is_correct());
    // The names of older files.
    let old = text.replace("7-Flows", "6-Flows");
    let old = old.replace("8-Chunk paths", "7-chunk paths");
    let old = teccl::read(&old, &ReadOptions::default()).unwrap();
    assert_eq!(old, schedule);
}

/// What the epochs of all flows mean, literally: who has which chunk when, by the flows alone.
fn arrives(demands: &[Demand]) -> bool {
    let hops = demands.iter().flat_map(|(source, .., paths)| {
        let hops = paths.iter().flatten();
        hops.map(move |hop| {
            let (ends, rest) = hop.split_once(" in epoch ").unwrap();
            let (from, to) = ends.split_once("->").unwrap();
            let epoch: usize = rest.split(' ').next().unwrap().parse().unwrap();
            let [from, to] = [from, to].map(|n| n.parse::<usize>().unwrap());
            let via = rest.contains("via");
            (epoch, *source, from, to, epoch + usize::from(via))
        })
    });
    let flows: BTreeSet<_> = hops.collect();
    let mut there: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for (epoch, source, from, to, end) in flows {
        let has = there.get(&(source, from)).is_some_and(|&end| end < epoch);
        if from != source && !has {
            return false;
        }
        let since = there.entry((source, to)).or_insert(end);
        *since = end.min(*since);
    }
    let met = |(source, to, _, met, _): &Demand| there.get(&(*source, *to)) == Some(met);
    demands.iter().all(met)
}

/// Every flow of the ring in every other epoch, for all demands that share it: refused where the
/// literal reading refuses it, and proved where not.
#[test]
fn shifted_epochs_are_judged_as_the_flows_say() {
    let demands = ring();
    assert!(arrives(&demands));
    let hops: BTreeSet<(usize, String)> = demands
        .iter()
        .flat_map(|d| d.4[0].iter().map(|hop| (d.0, hop.clone())))
        .collect();
    let (mut judged, mut right) = (0, 0);
    for (source, hop) in hops {
        let epoch: usize = hop.split(" in epoch ").nth(1).unwrap()[..1]
            .parse()
            .unwrap();
        for other in 0..6 {
            let [old, new] = [epoch, other].map(|n| format!(" in epoch {n}"));
            let shifted = hop.replace(&old, &new);
            let mut mutant = demands.clone();
            for demand in mutant.iter_mut().filter(|d| d.0 == source) {
                for at in demand.4[0].iter_mut().filter(|at| **at == hop) {
                    at.clone_from(&shifted);
                }
            }
            let found = read(&file(&mutant, 6));
            let expected = arrives(&mutant);
            match &found {
                Ok(schedule) => assert!(schedule.check().is_correct()),
                Err(error) => assert!(matches!(error.kind(), ErrorKind::Wrong(_)), "{error}"),
            }
            assert_eq!(found.is_ok(), expected, "{hop} in epoch {other}: {found:?}");
            judged += 1;
            right += usize::from(expected);
        }
    }
    assert!(
        judged == 72 && (12..30).contains(&right),
        "{judged} {right}"
    );
}

#[test]
fn wrong_flows_are_named() {
    let refused = |file: Value, why: &str| {
        let error = read(&file).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Wrong(_)), "{error}");
        assert!(error.to_string().contains(why), "{error}\n{why}");
    };
    let changed = |old: &str, new: &str| {
        let text = file(&triangle(), 4).to_string();
        assert!(text.contains(old));
        serde_json::from_str(&text.replace(old, new)).unwrap()
    };
    // Epochs are in the lists, too, and must be the same.
    let error = read(&changed("[3,\"1->2", "[2,\"1->2"))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("1->2 with volume 0.25 in epoch 3\" is none of its texts"),
        "{error}"
    );
    refused(
        serde_json::from_str(
            &file(&triangle(), 4)
                .to_string()
                .replace(
                    "[3,\"1->2 with volume 0.25 in epoch 3\"]",
                    "[1,\"1->2 with volume 0.25 in epoch 1\"]",
                )
                .replace(
                    "over 1->2 with volume 0.25 in epoch 3",
                    "over 1->2 with volume 0.25 in epoch 1",
                ),
        )
        .unwrap(),
        "flow \"1->2 with volume 0.25 in epoch 1\" starts before the chunk is there",
    );
    refused(
        changed("volume 0.5 ", "volume 0.25 "),
        "the paths bring 0.75 of the chunk",
    );
    refused(
        changed("\"0->1 with volume 0.25", "\"0->1 with volume 0.125"),
        "traveled over 0->1 with volume 0.125 in epoch 1\" is in the paths or in the flows",
    );
    refused(
        changed(
            "0->2 with volume 0.5 in epoch 2",
            "1->2 with volume 0.5 in epoch 2",
        ),
        "flow \"1->2 with volume 0.5 in epoch 2\" starts at another GPU than 0",
    );
    refused(
        changed("1->2 with volume 0.25", "1->0 with volume 0.25"),
        "a path does not end at GPU 2",
    );
    refused(changed("met by epoch 3", "met by epoch 2"), "is later");
    let mut slow = ring();
    slow[0].3 = 1;
    refused(file(&slow, 5), "later, and another one over this link");
    refused(
        file(&triangle(), 3),
        "\"Demand at 2 for chunk 2 from 0 met by epoch 3\" is behind the 3 epochs",
    );
    refused(
        changed("\"1-Epoch_Duration\":0.25", "\"1-Epoch_Duration\":0.5"),
        "4 epochs of 5e-1 s are not 1e0 s",
    );
    let mut none = file(&triangle(), 4);
    for name in ["1-Epoch_Duration", "4-Collective_Finish_Time"] {
        none[name] = 0.into();
    }
    refused(none, "an epoch takes 0e0 s");
    // A relay before the epoch in which the relay says that it has the chunk.
    let mut late = ring();
    let over = |d: &&mut Demand| d.4[0].last().unwrap().starts_with("0->1");
    late.iter_mut().filter(over).for_each(|d| d.3 += 1);
    refused(
        file(&late, 5),
        "flow \"Chunk 0 from 0 traveled over 1->3 in epoch 1 via switches 2\": GPU 1 gets the chunk by the end of epoch 1",
    );
}

#[test]
fn other_texts_are_malformed() {
    let ring = file(&ring(), 4).to_string();
    for (text, why) in [
        (
            ring.replace("Demand at 1 ", "Demand by 1 "),
            "is none of its texts",
        ),
        (
            ring.replace("in epoch 0", "in epoch -1"),
            "is none of its texts",
        ),
        (ring.replace("0->1 ", "0->0 "), "is none of its texts"),
        (ring.replace("\"3-Epochs", "\"3-epochs"), "missing field"),
        (
            file(&ring_without_a_demand(), 4).to_string(),
            "those of no allgather and no alltoall",
        ),
    ] {
        let error = teccl::read(&text, &ReadOptions::default()).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Malformed(_)), "{error}");
        assert!(error.to_string().contains(why), "{error}");
    }
}

fn ring_without_a_demand() -> Vec<Demand> {
    let mut demands = ring();
    demands.pop();
    demands
}

/// Why the epochs of a file, of 1/4 s each, are too short over links with these costs in seconds,
/// for blocks of 4 bytes.
fn late(file: &Value, cost: &CostModel) -> Option<String> {
    let claim = teccl::claim(&file.to_string(), 4, cost, 1.0).unwrap();
    let claim = claim.unwrap();
    assert_eq!(
        claim.time,
        file["4-Collective_Finish_Time"].as_f64().unwrap()
    );
    claim.late
}

#[test]
fn epochs_are_judged_by_the_links_given() {
    // A chunk of 4 bytes in each epoch, and the link through the switch has two.
    let ring = file(&ring(), 6);
    assert_eq!(late(&ring, &CostModel::new(0.0, 0.0625)), None);
    let latency = |latency| CostModel::new(0.0, 0.0625).latency(latency);
    let first = "\"Chunk 0 from 0 traveled over 0->1 in epoch 0\" is there at 2.600e-1 s, needed at 2.500e-1 s";
    assert_eq!(late(&ring, &latency(0.01)).as_deref(), Some(first));
    // Three quarters of a chunk leave 0 for 2 in two epochs, the other one for 1 beside a whole.
    let triangle = file(&triangle(), 4);
    assert_eq!(late(&triangle, &CostModel::new(0.0, 0.0625)), None);
    let slower = late(&triangle, &CostModel::new(0.0, 0.07)).unwrap();
    assert!(
        slower.contains("with volume 1.0 in epoch 0\" is there at 2.800e-1 s"),
        "{slower}"
    );
    // In other units: 4 ns and 0.25 ns.
    let claim = teccl::claim(&ring.to_string(), 4, &CostModel::new(0.0, 6.25e7), 1e-9).unwrap();
    let claim = claim.unwrap();
    assert!(
        (claim.time - 1.5e9).abs() < 1.0 && claim.late.is_none(),
        "{claim:?}"
    );
    assert_eq!(teccl::claim("{}", 4, &latency(0.0), 1.0).unwrap(), None);
}

/// Three GPUs at a switch: each sends its chunk once, and the switch copies it.
#[test]
fn what_a_switch_copies_crosses_the_link_to_it_once() {
    let demands = |epochs: [usize; 3]| {
        let pairs = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)];
        let demand = |(from, to): (usize, usize)| {
            let epoch = epochs[from];
            let path = vec![format!("{from}->{to} in epoch {epoch} via switches 9")];
            (from, to, 0, epoch, vec![path])
        };
        pairs.map(demand)
    };
    let cost = CostModel::new(0.0, 0.0625);
    // One after the other: a link carries one chunk at a time, out or in.
    assert_eq!(late(&file(&demands([0, 1, 2]), 3), &cost), None);
    // All at once: two chunks come in over one link.
    let why = late(&file(&demands([0; 3]), 1), &cost).unwrap();
    assert!(
        why.contains("is there at 5.000e-1 s, needed at 2.500e-1 s"),
        "{why}"
    );
    // A flow of an epoch before holds the link up.
    let double = CostModel::new(0.0, 0.125);
    let why = late(&file(&demands([0, 2, 1]), 3), &double).unwrap();
    assert!(why.contains("Chunk 0 from 0"), "{why}");
}
