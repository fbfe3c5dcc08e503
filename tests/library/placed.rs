//! Processes that share cores, from what the system allows each.

#[path = "../../src/mpi/cores.rs"]
mod cores;

use cores::Cores;

#[test]
fn cores_that_processes_share_are_seen() {
    let placed = |processes: &[u64]| {
        let masks: Vec<[u64; 1]> = processes.iter().map(|&mask| [mask]).collect();
        let masks: Vec<&[u64]> = masks.iter().map(|mask| &mask[..]).collect();
        let Cores {
            union,
            bound,
            crowded,
        } = Cores::of(&masks);
        (union, bound, crowded)
    };
    assert_eq!(placed(&[0b01, 0b10]), (vec![0, 1], true, false));
    assert_eq!(placed(&[0b11, 0b11]), (vec![0, 1], false, false));
    // One core for two, whether it is the only one or not.
    assert_eq!(placed(&[0b10, 0b10]), (vec![1], false, true));
    assert_eq!(placed(&[0b001, 0b001, 0b110]), (vec![0, 1, 2], false, true));
    assert_eq!(placed(&[0b11, 0b11, 0b11]), (vec![0, 1], false, true));
    assert_eq!(placed(&[0b1]), (vec![0], true, false));
    // Where the system does not tell.
    assert_eq!(placed(&[0, 0]), (vec![], false, true));
}
