//! Fuzz tests of the library's readers and of the code that uses what they return.

use oneport::check::Options;
use oneport::error::ErrorKind;
use oneport::machine::Links;
use oneport::plan::registry::{self, Algorithm};
use oneport::run::Workers;
use oneport::simulate::{Prepared, stream};
use oneport::{CostModel, Error, Kind, Ports, Request, Schedule};
use oneport_formats::{Written, chakra, dot, goal, msccl, mscclpp, simgrid, teccl};
use oneport_measure::Profile;
use oneport_measure::tune::csv;
use oneport_measure::tune::rules::{Query, Rules};
use oneport_measure::tune::{Summary, Trial};
use oneport_pictures::{
    Caption, Shown, Trace, Traffic, Tree, Unit, dark, gantt, page, traffic, tree,
};
use oneport_steady::{Operation, Platform, solve};

use super::fuzz;
use crate::hand;

/// Returns an accepted value. Asserts that a refusal has a message, and is a usage error or says
/// that a readable schedule is wrong.
fn accepted<R>(result: Result<R, Error>) -> Option<R> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            let is_wrong = matches!(error.kind(), ErrorKind::Wrong(_));
            assert!(error.is_usage() || is_wrong, "{error}");
            assert!(!error.to_string().is_empty());
            None
        }
    }
}

pub(super) fn schedule_examples() -> Vec<String> {
    let mut examples: Vec<String> = Vec::new();
    for p in [2, 3] {
        examples.extend(hand::all(p).iter().map(|(_, s)| s.to_json()));
    }
    for algorithm in registry::all() {
        if let Ok(schedule) = algorithm.plan(&Request::new(algorithm.collective, 4, 6)) {
            examples.push(schedule.to_json());
        }
    }
    examples
}

#[test]
fn schedules() {
    fuzz("readers::schedules", &schedule_examples(), |text| {
        let Some(schedule) = accepted(Schedule::from_json(text)) else {
            return false;
        };
        assert_eq!(Schedule::from_json(&schedule.to_json()).unwrap(), schedule);
        let plain = serde_json::to_string(&schedule).unwrap();
        assert_eq!(Schedule::from_json(&plain).unwrap(), schedule);
        exercise(&schedule);
        true
    });
}

/// Schedules of all algorithms for 4 ranks, written by `write` if it can.
fn exported(write: impl Fn(&Schedule) -> oneport::Result<Written>) -> Vec<String> {
    let plan = |algorithm: &Algorithm| {
        let request = Request::new(algorithm.collective, 4, 8);
        write(&algorithm.plan(&request).ok()?).ok()
    };
    let written: Vec<_> = registry::all().iter().filter_map(plan).collect();
    assert!(written.len() > 10);
    written.into_iter().map(|w| w.text).collect()
}

fn goal_options() -> goal::GoalOptions {
    goal::GoalOptions {
        form: goal::GoalForm::Bytes,
        ..goal::GoalOptions::new(CostModel::new(3.0, 0.5))
    }
}

pub(super) fn goal_examples() -> Vec<String> {
    let mut examples = exported(|schedule| goal::write(schedule, &goal_options()));
    // Without comments with data they are like those of other tools.
    let bare = |text: &String| {
        let lines = text.lines().filter(|line| !line.starts_with("// {"));
        lines.map(|line| format!("{line}\n")).collect()
    };
    let bare: Vec<String> = examples.iter().map(bare).collect();
    examples.extend(bare);
    examples
}

#[test]
fn goal_files() {
    let options = goal_options();
    fuzz("readers::goal_files", &goal_examples(), |text| {
        let Some(schedule) = accepted(goal::read(text)) else {
            return false;
        };
        if let Ok(written) = goal::write(&schedule, &options) {
            assert_eq!(goal::read(&written.text).unwrap(), schedule);
        }
        exercise(&schedule);
        true
    });
}

pub(super) fn msccl_examples() -> Vec<String> {
    exported(|schedule| msccl::write(schedule, "x"))
}

#[test]
fn msccl_files() {
    fuzz("readers::msccl_files", &msccl_examples(), |text| {
        let Some(schedule) = accepted(msccl::read(text, &msccl::ReadOptions::default())) else {
            return false;
        };
        if let Ok(written) = msccl::write(&schedule, "x") {
            let again = msccl::read(&written.text, &msccl::ReadOptions::default()).unwrap();
            assert_eq!(again.check().is_correct(), schedule.check().is_correct());
        }
        exercise(&schedule);
        true
    });
}

/// A plan of MSCCL++ for two GPUs, with all that ids lead to. RANK in `ops` is that of the GPU.
fn plan(ops: &str) -> String {
    let gpu = |rank: usize| {
        let peer = 1 - rank;
        let ops = ops.replace("RANK", &rank.to_string());
        format!(
            r#"{{"id":{rank},"input_chunks":2,"output_chunks":2,"scratch_chunks":4,"threadblocks":[{{"id":0,"ops":[{ops}],
            "channels":[{{"channel_type":"memory","channel_ids":[0]}},{{"channel_type":"port","channel_ids":[0]}},
            {{"channel_type":"switch","channel_ids":[0]}}],"remote_buffer_refs":[
            {{"access_channel_type":"memory","remote_buffer_ids":[0,1]}},{{"access_channel_type":"port","remote_buffer_ids":[0]}}]}}],
            "channels":[{{"channel_type":"memory","connected_to":[{peer}]}},{{"channel_type":"port","connected_to":[{peer}]}},
            {{"channel_type":"switch","buffer_type":"i","rank_groups":[{{"size":2,"ranks":[0,1]}}]}}],
            "remote_buffers":[{{"rank":{peer},"type":"s","access_channel_types":["memory","port"]}},
            {{"rank":{peer},"type":"i","access_channel_types":["memory"]}}],"semaphores":[{{"init_value":1}}]}}"#
        )
    };
    let gpus = [0, 1].map(gpu).join(",");
    format!(
        r#"{{"name":"n","collective":"allreduce","protocol":"LL","inplace":true,"gpus":[{gpus}]}}"#
    )
}

pub(super) fn mscclpp_examples() -> Vec<String> {
    let own = r#"{"type":"i","index":0,"size":2}"#;
    let scratch = r#"{"type":"s","index":0,"size":2}"#;
    let remote = |id: usize| format!(r#"{{"buffer_id":{id},"index":0,"size":2}}"#);
    let switch = r#"{"switch_channel_id":0,"index":RANK,"size":1}"#;
    let op = |name: &str, kind: &str, src: &str, dst: &str| {
        format!(
            r#"{{"name":"{name}","src_buff":[{src}],"dst_buff":[{dst}],"channel_type":"{kind}","channel_ids":[0]}}"#
        )
    };
    let on =
        |name: &str| format!(r#"{{"name":"{name}","channel_type":"memory","channel_ids":[0]}}"#);
    let semaphore = |name: &str| format!(r#"{{"name":"{name}","semaphore_ids":[0]}}"#);
    let nop = r#"{"name":"nop"}"#;
    let both = format!("{own},{scratch}");
    let group = r#"{"name":"copy","src_buff":[{"type":"i","index":0,"size":1}],
        "dst_buff":[{"type":"s","index":1,"size":1}],"tbg_info":{"tb_id":1,"tbg_size":2}}"#;
    vec![
        plan(
            &[
                op("ppkt", "memory", own, &remote(0)),
                nop.into(),
                op("repkt", "none", &both, own),
            ]
            .join(","),
        ),
        plan(
            &[
                on("rlxsignal"),
                on("rlxwait"),
                nop.into(),
                op("put", "memory", own, &remote(0)),
                nop.into(),
                on("signal"),
                on("wait"),
                nop.into(),
                op("re", "none", &both, own),
            ]
            .join(","),
        ),
        plan(
            &[
                on("rlxsignal"),
                on("rlxwait"),
                nop.into(),
                op("pwsf", "port", own, &remote(0)),
            ]
            .join(","),
        ),
        plan(
            &[
                on("signal"),
                on("wait"),
                nop.into(),
                op("get", "memory", &remote(1), scratch),
            ]
            .join(","),
        ),
        plan(
            &[
                semaphore("sem_acquire"),
                on("rlxsignal"),
                on("rlxwait"),
                nop.into(),
                op("glres", "switch", switch, switch),
                nop.into(),
                on("signal"),
                on("wait"),
                semaphore("sem_release"),
                r#"{"name":"barrier","barrier_id":0,"num_threadblocks":1}"#.into(),
            ]
            .join(","),
        ),
        plan(&format!(
            r#"{{"name":"pipeline","iter_context":{{"unit_size":8,"num_chunks":1}},"ops":[{group},{nop}]}}"#
        )),
    ]
}

#[test]
fn mscclpp_plans() {
    fuzz("readers::mscclpp_plans", &mscclpp_examples(), |text| {
        let read = mscclpp::read(text, &msccl::ReadOptions::default());
        let Some(schedule) = accepted(read) else {
            return false;
        };
        if let Ok(written) = mscclpp::write(&schedule, "x") {
            let again = mscclpp::read(&written.text, &msccl::ReadOptions::default()).unwrap();
            assert_eq!(
                mscclpp::write(&again, "x").unwrap().text,
                written.text,
                "{text}"
            );
        }
        exercise(&schedule);
        true
    });
}

/// An allgather of two GPUs, and an alltoall with a chunk in two parts, one through a switch.
pub(super) fn teccl_examples() -> Vec<String> {
    let file = |flows: &str, paths: &str| {
        format!(
            r#"{{"1-Epoch_Duration":0.5,"3-Epochs_Required":3,"4-Collective_Finish_Time":1.5,
            "7-Flows":[{flows}],"8-Chunk paths":{{{paths}}}}}"#
        )
    };
    let gathered = file(
        r#""Chunk 0 from 0 traveled over 0->1 in epoch 0","Chunk 0 from 1 traveled over 1->0 in epoch 1""#,
        r#""Demand at 1 for chunk 0 from 0 met by epoch 0":["0->1 in epoch 0"],
        "Demand at 0 for chunk 0 from 1 met by epoch 1":["1->0 in epoch 1"]"#,
    );
    let part = |from: usize, to: usize, epoch: usize, more: &str| {
        format!("{from}->{to} with volume 0.5 in epoch {epoch}{more}")
    };
    let mut flows = Vec::new();
    let mut paths = Vec::new();
    for (from, to) in [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)] {
        let third = 3 - from - to;
        let hops = [
            part(from, to, 0, " via switches 7 -> 8"),
            part(from, third, 0, ""),
            part(third, to, 1, ""),
        ];
        let flow = |hop: &String| format!(r#""Chunk {to} from {from} traveled over {hop}""#);
        flows.extend(hops.iter().map(flow));
        let [a, b, c] = hops;
        paths.push(format!(
            r#""Demand at {to} for chunk {to} from {from} met by epoch 1":[[[0,"{a}"]],[[0,"{b}"],[1,"{c}"]]]"#
        ));
    }
    let divided = file(&flows.join(","), &paths.join(","));
    vec![gathered, divided]
}

#[test]
fn teccl_flows() {
    fuzz("readers::teccl_flows", &teccl_examples(), |text| {
        let Some(schedule) = accepted(teccl::read(text, &msccl::ReadOptions::default())) else {
            return false;
        };
        let cost = CostModel::new(0.0, 0.25).latency(0.5);
        let claim = teccl::claim(text, 8, &cost, 1.0).unwrap();
        assert!(claim.is_some_and(|claim| claim.time >= 0.0), "{text}");
        assert!(schedule.check().is_correct(), "{text}");
        exercise(&schedule);
        true
    });
}

/// The traces of two ranks, each behind its length and all as hexadecimal numbers, of which a part
/// is changed at a time.
pub(super) fn chakra_examples() -> Vec<String> {
    let cost = CostModel::new(3.0, 0.5).gamma(1000.0);
    let options = chakra::ChakraOptions { cost, second: 1e-9 };
    let hex = |(_, bytes): &(String, Vec<u8>)| -> String {
        bytes.iter().map(|byte| format!("{byte:02x} ")).collect()
    };
    let plan = |algorithm: &Algorithm| {
        let schedule = algorithm
            .plan(&Request::new(algorithm.collective, 2, 4))
            .ok()?;
        let files = chakra::write(&schedule, &options).ok()?.files;
        Some(files[..2].iter().map(hex).collect::<Vec<_>>().join("|"))
    };
    registry::all().iter().filter_map(plan).collect()
}

/// The traces of such a text.
pub(super) fn traces(text: &str) -> Vec<Vec<u8>> {
    let bytes = |part: &str| {
        let digits = part.split(' ').filter_map(|two| two.get(..2));
        let bytes = digits.filter_map(|two| u8::from_str_radix(two, 16).ok());
        bytes.collect()
    };
    text.split('|').map(bytes).collect()
}

#[test]
fn chakra_traces() {
    fuzz("readers::chakra_traces", &chakra_examples(), |text| {
        let Some(schedule) = accepted(chakra::read(&traces(text))) else {
            return false;
        };
        exercise(&schedule);
        true
    });
}

/// Makes of a schedule, right or wrong, everything that can be made of it.
fn consume(schedule: &Schedule, cost: &CostModel) {
    let caption = Caption::new("schedule");
    let name = "wrong";
    let shown = Shown {
        name,
        schedule,
        cost,
    };
    let _ = page(&[shown], Unit::Plain, &caption);
    if let Ok(trace) = Trace::model(schedule, cost, Unit::Nanoseconds) {
        let mut framed = trace.clone();
        framed.critical_path = true;
        let _ = gantt(&framed, &caption).map(|text| dark(&text));
        let _ = trace.to_chrome_json("schedule");
    }
    use goal::GoalForm::{Bytes, Timed, Uniform};
    for form in [Uniform, Timed, Bytes] {
        let options = goal::GoalOptions {
            form,
            ..goal::GoalOptions::new(cost.clone())
        };
        let _ = goal::write(schedule, &options);
    }
    // A line has 71 chunks at most: the command refuses what becomes too many.
    if schedule.layout().iter().all(|layout| layout.len < 1 << 24) {
        let _ = msccl::write(schedule, "x");
    }
    let _ = mscclpp::write(schedule, "x");
    let _ = chakra::write(
        schedule,
        &chakra::ChakraOptions {
            cost: cost.clone(),
            second: 1e-9,
        },
    );
    let graphs = [dot::DotGraph::Tree, dot::DotGraph::Rounds];
    let _ = graphs.map(|graph| dot::write(schedule, graph));
    // A crossbar has a link for each pair of ranks.
    if schedule.ranks() > 1 << 10 {
        return;
    }
    for network in [
        simgrid::Network::Crossbar,
        simgrid::Network::FatTree,
        simgrid::Network::Torus,
        simgrid::Network::Dragonfly,
    ] {
        let options = simgrid::SimgridOptions {
            network,
            cost: cost.clone(),
            second: 1e-9,
        };
        let _ = simgrid::write(schedule, &options);
    }
}

/// Checks, times, bounds, reverses and draws a schedule.
fn exercise(schedule: &Schedule) {
    let schedule = &schedule.clone().with_element_bytes(8);
    let _ = schedule.stats();
    let _ = schedule.clone().reversed();
    let flow = Traffic::new(schedule);
    let _ = traffic(&flow, &Caption::new("traffic"));
    if let Ok(Some(found)) = Tree::of(schedule) {
        let _ = tree(&found, &Caption::new("tree"));
    }
    for overlap in [false, true] {
        let options = Options {
            overlap,
            ..Options::default()
        };
        let report = schedule.check_with(&options);
        assert!(!report.to_string().is_empty());
        let cost = CostModel::new(3.0, 0.25).gamma(0.5).overlap(overlap);
        let streamed = stream(schedule, &cost, 8, |_| ());
        if !overlap {
            consume(schedule, &cost)
        } else {
            consume(schedule, &CostModel::new(1e100, 1e100).overlap(overlap))
        }
        let Ok(simulation) = schedule.simulate(&cost) else {
            assert!(!report.is_correct() && streamed.is_err());
            continue;
        };
        let time = simulation.makespan();
        assert!(time >= 0.0);
        if let Ok(streamed) = streamed {
            assert_eq!(streamed.time.to_bits(), time.to_bits());
        }
        if report.is_correct() {
            let bound = schedule.lower_bound(&cost).largest;
            assert!(bound <= time * (1.0 + 1e-9), "{bound} {time}");
        }
        let trace = Trace::model(schedule, &cost, Unit::Plain);
        if let Ok(trace) = trace {
            let _ = gantt(&trace, &Caption::new("schedule"));
            let _ = trace.to_chrome_json("schedule");
        }
    }
}

pub(super) fn cost_examples() -> Vec<String> {
    [
        r#"{"alpha": [[0,1,2],[3,0,4],[5,6,0]], "beta": [[0,1,1],[1,0,2],[1,2,0]], "gamma": [1,2,3], "gamma_copy": [0,0,1]}"#,
        r#"{"alpha": [[null,1.5],[0.25,null]], "beta": [[null,0],[1e-3,null]]}"#,
        r#"{"alpha": [[null,1,null],[1,null,1],[null,1,null]], "beta": [[null,2,null],[2,null,2],[null,2,null]], "gamma": [0,0,0]}"#,
        r#"{"levels": [{"groups": [[0, 2], [1]], "alpha": 1, "beta": 0.5}, {"groups": [[0, 1, 2]], "alpha": 9, "beta": 2}], "gamma": [1, 2, 3]}"#,
    ]
    .map(String::from)
    .to_vec()
}

#[test]
fn cost_files() {
    let binomial = registry::find(Kind::Reduce, "binomial").unwrap();
    let schedules: Vec<Schedule> = (1..=4)
        .map(|p| {
            binomial
                .plan(&Request::reduce(p, 5).element_bytes(8))
                .unwrap()
        })
        .collect();
    fuzz("readers::cost_files", &cost_examples(), |text| {
        let Ok(links) = serde_json::from_str::<Links>(text) else {
            return false;
        };
        let again: Links = serde_json::from_str(&serde_json::to_string(&links).unwrap()).unwrap();
        assert_eq!(again, links);
        let Some(cost) = accepted(CostModel::heterogeneous(links)) else {
            return false;
        };
        cost.validate().unwrap();
        for schedule in &schedules {
            let prepared = Prepared::new(schedule, false).unwrap();
            if let Some(simulation) = accepted(prepared.simulate(&cost)) {
                assert!(simulation.makespan() >= 0.0);
                let bound = schedule.lower_bound(&cost).largest;
                assert!(bound >= 0.0, "{bound}");
            }
        }
        true
    });
}

pub(super) fn profile_examples() -> Vec<String> {
    [
        r#"{"alpha": 200, "beta": 0.05, "gamma": 0.01}"#,
        r#"{"machine": {"cpu": "some", "os": "Linux", "cores": 2}, "cores": [0, 1], "date": "2025-01-31T23:59:59Z", "version": "0.1.0", "alpha": 57.5, "beta": 0.03, "gamma": 0.125, "gamma_copy": 0.0625, "shared_alpha": 500, "fit_error": 0.1, "points": [{"bytes": 8, "time": 60, "predicted": 57.7, "residual": -0.04}], "warnings": ["busy"]}"#,
        r#"{"alpha": 100, "beta": 0.1, "pieces": {"transfer": [{"from": 0, "alpha": 60, "beta": 0.5}, {"from": 1024, "alpha": 480, "beta": 0.1}], "combine": [{"from": 0, "alpha": 0, "beta": 0.2}], "combine_local": [], "copy": [{"from": 0, "alpha": 5, "beta": 0.02}]}}"#,
        r#"{"alpha": 100, "beta": 0.1, "pairs": {"alpha": [[null, 5], [7, null]], "beta": [[null, 0.5], [0.25, null]], "gamma": [0, 1], "gamma_copy": [1, 0]}}"#,
        r#"{"alpha": 100, "beta": 0.1, "gamma": 0.5, "hosts": ["a", "a", "b", "b"], "levels": [{"groups": [[0, 1], [2, 3]], "alpha": 10, "beta": 0.05}, {"alpha": 90, "beta": 0.25}]}"#,
    ]
    .map(String::from)
    .to_vec()
}

#[test]
fn profiles() {
    let schedule = registry::find(Kind::Reduce, "binomial")
        .unwrap()
        .plan(&Request::reduce(4, 500).element_bytes(8))
        .unwrap();
    let prepared = Prepared::new(&schedule, false).unwrap();
    fuzz("readers::profiles", &profile_examples(), |text| {
        let Some(profile) = accepted(Profile::from_json(text)) else {
            return false;
        };
        assert_eq!(Profile::from_json(&profile.to_json()).unwrap(), profile);
        let cost = profile.cost().unwrap();
        // Levels may describe fewer ranks.
        if let Some(simulation) = accepted(prepared.simulate(&cost)) {
            assert!(simulation.makespan() >= 0.0);
            assert!(schedule.lower_bound(&cost).largest >= 0.0);
        }
        for bytes in [0, 1, 1023, 1024, 1 << 40, u64::MAX] {
            assert!(cost.transfer(0, 1, bytes) >= 0.0);
            assert!(cost.combine(0, bytes) >= 0.0 && cost.copy(0, bytes) >= 0.0);
        }
        for workers in [Workers::Ranks, Workers::Cores] {
            let _ = profile.core_model(workers, 8, 2);
        }
        true
    });
}

pub(super) fn platform_examples() -> Vec<String> {
    [
        r#"{"nodes": 3, "source": 0, "targets": [1, 2], "edges": [{"src": 0, "dst": 1, "cost": "1/2"}, {"src": 1, "dst": 2, "cost": 1}, {"src": 0, "dst": 2, "cost": 0.75}]}"#,
        r#"{"nodes": 2, "edges": [{"src": 0, "dst": 1, "cost": 12e-1, "latency": "1/3", "drift": "1/10"}], "compute": [1, "2/3"], "overlap": true}"#,
        r#"{"nodes": 4, "source": 1, "edges": [{"src": 1, "dst": 0, "cost": 3}, {"src": 0, "dst": 2, "cost": "5/7"}, {"src": 2, "dst": 3, "cost": 1}, {"src": 1, "dst": 3, "cost": 2}, {"src": 3, "dst": 0, "cost": 1}]}"#,
    ]
    .map(String::from)
    .to_vec()
}

#[test]
fn platforms() {
    fuzz("readers::platforms", &platform_examples(), |text| {
        let Some(platform) = accepted(Platform::parse(text)) else {
            return false;
        };
        let again = Platform::parse(&platform.to_json());
        assert_eq!(again.as_ref(), Ok(&platform), "{}", platform.to_json());
        let _ = platform.reversed();
        // Only some of the small platforms are solved, to keep the test fast.
        let small = platform.nodes() <= 4 && platform.edges().len() <= 5;
        if small && text.len() % 16 == 0 {
            for operation in [Operation::Broadcast, Operation::Gather] {
                if let Ok(solution) = solve(&platform, operation, Ports::BI, Default::default()) {
                    assert!(solution.throughput > 0u8.into());
                }
            }
        }
        true
    });
}

pub(super) fn rules_examples() -> Vec<String> {
    [
        r#"{ "oneport_rules": 1, "rules": [
            { "collective": "reduce", "ranks": 8, "ports": "bi", "ported": 1, "dtype": "f32", "ordered": false,
              "clock": "paced", "source": "oneport tune reduce",
              "choices": [
                {"up_to_bytes": 65536, "algorithm": "bi-greedy", "segment": 16384},
                {"up_to_bytes": 1048576, "algorithm": "chain", "segment": 65536}] },
            { "collective": "broadcast", "ranks": 3, "ports": "uni", "ported": 1,
              "choices": [{"up_to_bytes": 0, "algorithm": "binomial", "segment": null}] } ] }"#,
        r#"{"oneport_rules": 1, "rules": []}"#,
    ]
    .map(String::from)
    .to_vec()
}

#[test]
fn rules() {
    fuzz("readers::rules", &rules_examples(), |text| {
        let Some(rules) = accepted(Rules::parse(text)) else {
            return false;
        };
        assert_eq!(Rules::parse(&rules.to_json()).unwrap(), rules);
        for (collective, ranks, bytes) in [
            (Kind::Reduce, 8, 0),
            (Kind::Reduce, 1, 65537),
            (Kind::Broadcast, usize::MAX, u64::MAX),
        ] {
            let query = Query {
                collective,
                ranks,
                ports: Ports::BI,
                dtype: Some("f32"),
                ordered: false,
                bytes,
            };
            accepted(rules.choose(&query));
        }
        let mut merged = rules.clone();
        rules.rules.into_iter().for_each(|rule| merged.put(rule));
        true
    });
}

pub(super) fn csv_examples() -> Vec<String> {
    let wall = Summary::of(&[5, 7, 9, 4, 6, 8, 30]).unwrap();
    let row = |bytes, algorithm: &str, segment: u64, model_time| Trial {
        bytes,
        algorithm: algorithm.into(),
        segment,
        segments: 4,
        wall,
        model_time,
        best: segment == 8,
        best_segment: true,
        settled: false,
    };
    let parameters = vec![
        ("collective".into(), "reduce".into()),
        ("cost".into(), "alpha 1: 2".into()),
    ];
    let rows = [
        row(64, "chain", 8, 7.25),
        row(64, "binomial", 64, 0.1),
        row(128, "chain", 8, 1e20 / 3.0),
    ];
    let mut more = parameters.clone();
    more.push(("ranks".into(), "4".into()));
    let several = csv::resume(&csv::write(&parameters, &rows, &[]), &more).unwrap();
    vec![
        csv::write(&parameters, &rows, &[]),
        csv::write(&more, &rows, &several.others),
        csv::write(&Vec::new(), &[], &[]),
    ]
}

#[test]
fn csv_files() {
    fuzz("readers::csv_files", &csv_examples(), |text| {
        let Some(blocks) = accepted(csv::read(text)) else {
            return false;
        };
        let parameters = blocks[0].parameters.clone();
        let Some(mut found) = accepted(csv::resume(text, &parameters)) else {
            return true;
        };
        found.known.sort_by_key(|row| row.bytes);
        let again = csv::write(&parameters, &found.known, &found.others);
        if let Some(again) = accepted(csv::resume(&again, &parameters)) {
            // NaN is not equal to itself.
            assert_eq!(format!("{:?}", again.known), format!("{:?}", found.known));
        }
        true
    });
}
