//! SimGrid: traces are complete, networks have room for all ranks.

use std::collections::HashSet;

use oneport::machine::Eager;
use oneport::{CostModel, Ports, Request, Schedule};
use oneport_formats::simgrid::{self, Network, SimgridOptions};

use crate::grid;

fn options(network: Network) -> SimgridOptions {
    SimgridOptions {
        network,
        cost: CostModel::new(18.0, 1.0).gamma(0.5),
        second: 1e-6,
    }
}

/// The texts with their names, and the command.
fn write(
    schedule: &Schedule,
    options: &SimgridOptions,
) -> oneport::Result<(Vec<(String, String)>, String)> {
    let written = simgrid::write(schedule, options)?;
    let files = written.files.into_iter();
    let texts = files.map(|(name, text)| (name, String::from_utf8(text).unwrap()));
    Ok((texts.collect(), written.command))
}

#[test]
fn golden() {
    let mut b = Schedule::reduce(2, 2);
    b.transfer_combine(1, 0, 0..2, oneport::Order::MineFirst);
    let schedule = b.build().unwrap().with_element_bytes(4);
    let (files, command) = write(&schedule, &options(Network::Crossbar)).unwrap();
    assert!(
        command.ends_with("detached-thresh:0 --cfg=smpi/host-speed:1Gf -np 2"),
        "{command}"
    );
    let names: Vec<&str> = files.iter().map(|f| &*f.0).collect();
    assert_eq!(
        names,
        [
            "platform.xml",
            "hosts.txt",
            "traces.txt",
            "rank-0.txt",
            "rank-1.txt"
        ]
    );
    assert_eq!(files[1].1, "host-0\nhost-1\n");
    assert_eq!(files[2].1, "rank-0.txt\nrank-1.txt\n");
    assert_eq!(
        files[3].1,
        "0 init\n0 irecv 1 0 8 6\n0 wait 1 0 0\n0 compute 4000\n0 finalize\n"
    );
    assert_eq!(
        files[4].1,
        "1 init\n1 isend 0 0 8 6\n1 wait 1 0 0\n1 finalize\n"
    );
    for part in [
        "<link id=\"l-0-1\" bandwidth=\"1000000Bps\" latency=\"0.000002s\"/>",
        "<route src=\"host-1\" dst=\"host-0\" symmetrical=\"NO\"><link_ctn id=\"l-1-0\"/></route>",
    ] {
        assert!(files[0].1.contains(part), "{}", files[0].1);
    }
}

/// Latency is that of the links if ports may be kept for it, too; else messages are eager, and both
/// ends compute while their ports are kept. A late rank computes first.
#[test]
fn late_ranks_latency_and_eager_sends_are_written() {
    let written = |schedule: &Schedule, cost: CostModel| {
        let mut options = options(Network::Crossbar);
        options.cost = cost.latency(6.0).eager(Eager::All);
        write(schedule, &options)
    };
    let cost = || CostModel::new(18.0, 1.0).arrivals(vec![0.0, 3.0, 0.0]);
    let ring = Request::allgather(3, 8).plan("ring").unwrap();
    let (files, command) = written(&ring, CostModel::new(18.0, 1.0)).unwrap();
    assert!(
        files[0].1.contains("latency=\"0.000008s\""),
        "{}",
        files[0].1
    );
    assert!(command.contains("smpi/async-small-thresh:0 "), "{command}");
    let linear = Request::broadcast(3, 8).plan("linear").unwrap();
    let (files, command) = written(&linear, cost()).unwrap();
    let link = "bandwidth=\"1000000000000000000Bps\" latency=\"0.000006s\"";
    assert!(files[0].1.contains(link), "{}", files[0].1);
    assert!(
        command.contains("smpi/async-small-thresh:2147483647 "),
        "{command}"
    );
    let traces: Vec<&str> = files[3..].iter().map(|file| &*file.1).collect();
    assert_eq!(
        traces,
        [
            "0 init\n0 isend 2 0 8 6\n0 compute 26000\n0 wait 0 2 0\n0 isend 1 0 8 6\n\
             0 compute 26000\n0 wait 0 1 0\n0 finalize\n",
            "1 init\n1 compute 3000\n1 irecv 0 0 8 6\n1 wait 0 1 0\n1 compute 26000\n1 finalize\n",
            "2 init\n2 irecv 0 0 8 6\n2 wait 0 2 0\n2 compute 26000\n2 finalize\n",
        ]
    );
    // Ranks that send while they receive cannot compute for both.
    let chain = Request::broadcast(3, 8).segment_count(4).plan("chain");
    let error = written(&chain.unwrap(), cost()).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("leave --latency and --eager out"),
        "{error}"
    );
}

/// Every message is sent, received and waited for once at each end, and every process waits for
/// a message after it has started it.
#[test]
fn traces_are_complete() {
    let mut written = 0;
    for (name, schedule) in grid() {
        let Ok((files, _)) = write(&schedule, &options(Network::Torus)) else {
            continue;
        };
        written += 1;
        let (mut open, mut sent) = (HashSet::new(), Vec::new());
        for (rank, (_, text)) in files[3..].iter().enumerate() {
            for line in text.lines() {
                let words: Vec<&str> = line.split(' ').collect();
                assert_eq!(words[0], rank.to_string(), "{name}");
                let number = |i: usize| words[i].parse::<usize>().unwrap();
                match words[1] {
                    "isend" => {
                        sent.push((rank, number(2), number(3), number(4)));
                        assert!(open.insert((rank, rank, number(2), number(3))), "{name}");
                    }
                    "irecv" => {
                        assert!(open.insert((rank, number(2), rank, number(3))), "{name}")
                    }
                    "wait" => {
                        let message = (rank, number(2), number(3), number(4));
                        assert!(open.remove(&message), "{name}: {line}");
                    }
                    other => {
                        assert!(["init", "compute", "finalize"].contains(&other), "{line}")
                    }
                }
            }
        }
        assert!(open.is_empty(), "{name}");
        let sends = schedule.programs().iter().flatten().filter(|s| s.is_send());
        assert_eq!(sent.len(), sends.count(), "{name}");
    }
    assert!(written > 400, "{written}");
}

#[test]
fn networks_have_room_for_all_ranks() {
    for p in 1..70 {
        let schedule = Request::broadcast(p, 8)
            .ports(Ports::UNI)
            .plan("linear")
            .unwrap();
        for (network, name) in [
            (Network::FatTree, "FAT_TREE"),
            (Network::Torus, "TORUS"),
            (Network::Dragonfly, "DRAGONFLY"),
        ] {
            let (files, _) = write(&schedule, &options(network)).unwrap();
            assert!(files[0].1.contains(name));
            let last = files[0].1.split("radical=\"0-").nth(1).unwrap();
            let last: usize = last.split('"').next().unwrap().parse().unwrap();
            assert!((p..=3 * p + 8).contains(&(last + 1)), "{p} {name} {last}");
        }
    }
}

#[test]
fn what_simgrid_lacks_is_refused() {
    let refuse = |schedule: &Schedule, options: &SimgridOptions, why: &str| {
        let error = write(schedule, options).unwrap_err();
        assert!(
            error.is_usage() && error.to_string().contains(why),
            "{error}"
        );
    };
    let schedule = Request::broadcast(3, 4).plan("linear").unwrap();
    let empty = Request::broadcast(3, 0).plan("linear").unwrap();
    refuse(
        &empty,
        &options(Network::Crossbar),
        "an empty message takes a latency",
    );
    let mut overlap = options(Network::Crossbar);
    overlap.cost = overlap.cost.overlap(true);
    refuse(&schedule, &overlap, "overlaps communication");
    let mut short = options(Network::Crossbar);
    short.cost = CostModel::new(15.0, 1.0);
    refuse(&schedule, &short, "16 bytes more");
    let all = |cost| vec![vec![Some(cost); 3]; 3];
    let mut hetero = options(Network::Torus);
    hetero.cost = CostModel::heterogeneous(oneport::machine::Links {
        alpha: all(20.0),
        beta: all(1.0),
        gamma: Vec::new(),
        gamma_copy: Vec::new(),
        ..oneport::machine::Links::default()
    })
    .unwrap();
    refuse(&schedule, &hetero, "for the crossbar");
    hetero.network = Network::Crossbar;
    assert!(write(&schedule, &hetero).is_ok());
}
