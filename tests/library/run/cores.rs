//! Tests of where ranks run: the cores of a machine and of a team, the ranks of a worker.

use oneport::{Request, Schedule, Step};

use super::placement::{Placement, Workers, first_rank, worker_of};
use super::topology::{CoreOrder, Topology};

/// The files of a machine, by the package, the cache and the physical core of each core.
fn machine(cores: usize, of: impl Fn(usize) -> [usize; 3]) -> Topology {
    let ids: Vec<usize> = (0..cores).collect();
    let sharing = |id: usize, what: usize| {
        let same = ids.iter().filter(|&&other| of(other)[what] == of(id)[what]);
        let same: Vec<_> = same.map(usize::to_string).collect();
        format!("{}\n", same.join(","))
    };
    Topology::read(&ids, cores, |path| {
        let (cpu, file) = path.strip_prefix("cpu")?.split_once('/')?;
        let id: usize = cpu.parse().ok()?;
        Some(match file {
            "topology/physical_package_id" => format!("{}\n", of(id)[0]),
            "topology/core_cpus_list" => sharing(id, 2),
            "cache/index0/level" => "1\n".into(),
            "cache/index0/shared_cpu_list" => sharing(id, 2),
            "cache/index1/level" => "3\n".into(),
            "cache/index1/shared_cpu_list" => sharing(id, 1),
            _ => return None,
        })
    })
}

/// Two sockets whose cores alternate in the system's numbers, as on many servers with Intel
/// processors; the second hardware threads have the numbers from 8 on.
fn two_sockets() -> Topology {
    machine(16, |id| [id % 2, id % 2, id % 8])
}

/// Two sockets with two caches of two cores each; the hardware threads of a physical core have
/// consecutive numbers, as in many virtual machines.
fn small_caches() -> Topology {
    machine(16, |id| [id / 8, id / 4, id / 2])
}

#[test]
fn physical_cores_come_first() {
    let compact = two_sockets().in_order(CoreOrder::Compact);
    assert_eq!(
        compact,
        [0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15]
    );
    let spread = two_sockets().in_order(CoreOrder::Spread);
    assert_eq!(spread, (0..16).collect::<Vec<_>>());

    let compact = small_caches().in_order(CoreOrder::Compact);
    assert_eq!(
        compact,
        [0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15]
    );
    // Packages in turn, then their caches, then the cores of a cache.
    let spread = small_caches().in_order(CoreOrder::Spread);
    assert_eq!(
        spread,
        [0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15]
    );
}

#[test]
fn cores_may_be_missing_or_unknown() {
    // A process that may use both hardware threads of one physical core, and one of another.
    let files = |path: &str| {
        path.ends_with("core_cpus_list").then(|| {
            if path.starts_with("cpu7") {
                "7\n"
            } else {
                "2-3\n"
            }
            .to_string()
        })
    };
    let topology = Topology::read(&[7, 3, 2], 9, files);
    assert_eq!(topology.in_order(CoreOrder::Compact), [2, 7, 3]);
    let unknown = Topology::read(&[4, 0, 1], 9, |_| None);
    assert_eq!(unknown.in_order(CoreOrder::Compact), [0, 1, 4]);
    assert_eq!(unknown.in_order(CoreOrder::Spread), [0, 1, 4]);
    // A quota of two cores.
    let quota = Topology::read(&[4, 0, 1], 2, |_| None);
    assert_eq!(quota.in_order(CoreOrder::Compact), [0, 1]);
    let none = Topology::read(&[], 1, |_| None);
    assert!(none.in_order(CoreOrder::Compact).is_empty());
    let schedule = Request::broadcast(3, 1).plan("chain").unwrap();
    assert!(none.near_partners(&schedule).is_empty());
}

/// Elements that pass between the caches of [`small_caches`]. `core_of` gives each rank's core.
fn between_caches(schedule: &Schedule, core_of: &[usize]) -> usize {
    let programs = schedule.programs().iter().enumerate();
    let steps = programs.flat_map(|(rank, program)| program.iter().map(move |s| (rank, s)));
    let apart = steps.map(|(rank, step)| match step {
        Step::Send { to, .. } if core_of[rank] / 4 != core_of[*to] / 4 => step.len(),
        _ => 0,
    });
    apart.sum()
}

#[test]
fn partners_of_a_schedule_share_caches() {
    let topology = small_caches();
    for (p, request, algorithm) in [
        (8, Request::allgather(8, 6), "recursive-doubling"),
        (8, Request::reduce(8, 6), "binomial"),
        (8, Request::alltoall(8, 6), "pairwise"),
        (16, Request::broadcast(16, 6), "chain"),
        (13, Request::gather(13, 6), "oblivious"),
        (21, Request::broadcast(21, 6), "binary"),
    ] {
        let schedule = request.plan(algorithm).unwrap();
        let core_of = topology.near_partners(&schedule);
        assert_eq!(core_of.len(), p);
        let loads: Vec<usize> = (0..16)
            .map(|id| core_of.iter().filter(|&&core| core == id).count())
            .collect();
        let most = loads.iter().max();
        assert_eq!(most, Some(&p.div_ceil(16)), "{algorithm}: {loads:?}");
        let compact = topology.in_order(CoreOrder::Compact);
        let compact: Vec<usize> = (0..p).map(|rank| compact[rank % 16]).collect();
        let near = between_caches(&schedule, &core_of);
        let far = between_caches(&schedule, &compact);
        assert!(near <= far, "{algorithm}: {near} of {far}");
    }
    // Both orders of a chain cross from cache to cache three times.
    let chain = Request::broadcast(8, 1).plan("chain").unwrap();
    let near = topology.near_partners(&chain);
    assert_eq!(between_caches(&chain, &near), 3);
    // Ranks that are far apart in number but exchange everything are placed together.
    let mut pairs = Schedule::alltoall(4, 1);
    for (a, b) in [(0, 2), (1, 3)] {
        pairs.transfer(a, b, 0..4);
    }
    let pairs = pairs.build().unwrap();
    let near = topology.near_partners(&pairs);
    assert_eq!(between_caches(&pairs, &near), 0);
    assert_eq!(near, [0, 4, 2, 6]);
}

fn place(
    ranks: usize,
    workers: Workers,
    named: Option<&[usize]>,
    granted: usize,
) -> (Vec<usize>, Vec<usize>, usize) {
    let placement = Placement::new(ranks, workers, named, &[0, 1, 4, 5], granted).unwrap();
    assert_eq!(placement.threads(), placement.pins.len());
    let pins = placement.pins.iter().map(|c| c.id).collect();
    (pins, placement.core_of, placement.cores)
}

#[test]
fn ranks_go_round_the_cores() {
    use Workers::Ranks;
    let all = place(6, Ranks, None, 4);
    assert_eq!(
        all,
        (vec![0, 1, 4, 5, 0, 1], vec![0, 1, 2, 3, 0, 1], 4),
        "all that there are"
    );
    assert_eq!(
        place(2, Ranks, Some(&[5, 4]), 4),
        (vec![5, 4], vec![0, 1], 2)
    );
    assert_eq!(
        place(2, Ranks, None, 4).2,
        2,
        "only cores with a rank count"
    );
}

#[test]
fn a_core_named_twice_counts_once() {
    use Workers::{Cores, Ranks};
    assert_eq!(
        place(2, Ranks, Some(&[1, 1]), 4),
        (vec![1, 1], vec![0, 0], 1)
    );
    // Neighbours share a core.
    let pairs = place(4, Ranks, Some(&[0, 0, 1, 1]), 4);
    assert_eq!(pairs, (vec![0, 0, 1, 1], vec![0, 0, 1, 1], 2));
    // Two ranks do not reach the second core.
    assert_eq!(
        place(2, Ranks, Some(&[0, 0, 1]), 4),
        (vec![0, 0], vec![0, 0], 1)
    );
    assert_eq!(
        place(9, Cores, Some(&[1, 1, 0]), 4),
        (vec![1, 0], vec![0, 1], 2)
    );
}

#[test]
fn a_quota_limits_the_cores() {
    use Workers::{Cores, Ranks};
    assert_eq!(
        place(4, Ranks, None, 2),
        (vec![0, 1, 0, 1], vec![0, 1, 0, 1], 2)
    );
    assert_eq!(place(4, Cores, None, 1), (vec![0], vec![0], 1));
    // Threads stay on the named cores, and share what the quota grants.
    let spread = place(4, Ranks, Some(&[0, 1, 4, 5]), 2);
    assert_eq!(spread, (vec![0, 1, 4, 5], vec![0, 1, 2, 3], 2));
    assert_eq!(
        place(4, Cores, Some(&[0, 1, 4, 5]), 2),
        (vec![0, 1], vec![0, 1], 2)
    );
}

#[test]
fn cores_may_be_unknown() {
    for workers in [Workers::Ranks, Workers::Cores] {
        let placement = Placement::new(3, workers, None, &[], 2).unwrap();
        assert!(placement.pins.is_empty());
        assert_eq!(placement.cores, 2);
    }
    let error = Placement::new(3, Workers::Ranks, Some(&[7]), &[0, 1], 2).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("core 7 is not available: this process may use 0, 1"),
        "{error}"
    );
}

#[test]
fn every_rank_has_one_worker() {
    for workers in 1..9 {
        for ranks in workers..60 {
            for worker in 0..workers {
                let first = |worker| first_rank(worker, workers, ranks);
                let own = first(worker)..first(worker + 1);
                assert!(!own.is_empty());
                assert!(
                    own.into_iter()
                        .all(|rank| worker_of(rank, workers, ranks) == worker)
                );
            }
            assert_eq!(first_rank(workers, workers, ranks), ranks);
        }
    }
}
