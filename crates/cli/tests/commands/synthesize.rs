//! Tests of `oneport synthesize`.

use std::fs;

use crate::support::run::{failure, json, oneport, text};

#[test]
fn prints_the_optimum_its_reason_and_a_right_schedule() {
    let found = text("synthesize scan -p 6 --ports uni");
    assert!(
        found.starts_with("4 rounds, optimal: 3 are impossible (unsat)"),
        "{found}"
    );
    assert!(
        found.contains("best algorithm of the registry: 4 rounds"),
        "{found}"
    );
    let found = json("synthesize allgather -p 5 --ports uni");
    assert_eq!(
        (&found["rounds"], &found["optimal"]),
        (&5.into(), &true.into())
    );
    assert_eq!(found["lower_by"], "formula");
    assert_eq!(found["schedule"]["ranks"], 5);
    let none = text("synthesize allgather -p 5 --ports uni --ported 2 --rounds 2");
    assert!(
        none.starts_with("2 rounds: there is no schedule; 2 are impossible"),
        "{none}"
    );
}

#[test]
fn a_budget_that_ends_says_what_is_open() {
    let open = text("synthesize allgather -p 8 --ports uni --budget 0s");
    assert!(open.starts_with("6 rounds, best so far"), "{open}");
    assert!(open.contains("open: 5\n"), "{open}");
}

/// There are 7e10 ways to divide the rounds among the steps.
#[test]
fn looks_at_one_division_of_rounds_at_a_time() {
    let found = text("synthesize allgather -p 8 --items 1 --rounds 40 --steps 20 --budget 60s");
    assert!(
        found.starts_with("40 rounds: there is a schedule"),
        "{found}"
    );
}

#[test]
fn writes_schedule_formula_proof_and_table() {
    let folder = std::env::temp_dir().join(format!("oneport-synthesize-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let at = |name: &str| folder.join(name).display().to_string();
    let (schedule, proof) = (at("s.json"), at("gossip.v2"));
    text(&format!(
        "synthesize allgather -p 5 --telephone -o {schedule} --proof {proof}"
    ));
    assert!(text(&format!("check --schedule {schedule}")).contains("correct"));
    let formula = fs::read_to_string(proof.clone() + ".cnf").unwrap();
    assert!(formula.starts_with("p cnf "));
    assert!(
        fs::read_to_string(proof.clone() + ".drat")
            .unwrap()
            .ends_with("0\n")
    );
    let page = at("optimal.html");
    text(&format!("synthesize --table -p 2,3 -o {page}"));
    assert!(
        fs::read_to_string(page)
            .unwrap()
            .contains("The fewest rounds")
    );
    let table = text("synthesize --table -p 5 --budget 5s");
    assert!(table.contains("| scan | uni, k = 2 | 2 (3) |"), "{table}");
    let ring = at("ring.json");
    fs::write(&ring, r#"{"links": [[0, 1, 0], [1, 0, 0], [0, 0, 0]]}"#).unwrap();
    let error = failure(
        &mut oneport(&format!("synthesize broadcast --graph {ring}")),
        2,
    );
    assert!(error.contains("no way from rank 0 to rank 2"), "{error}");
    for (graph, reason) in [
        (r#"{"links": [[0, 1], [1, 0, 0]]}"#, "for 3 ranks, not 2"),
        (r#"{"links": [[0, -1], [1, 0]]}"#, "not a graph of links"),
    ] {
        fs::write(&ring, graph).unwrap();
        let error = failure(
            &mut oneport(&format!("synthesize broadcast --graph {ring}")),
            2,
        );
        assert!(error.contains(reason), "{error}");
    }
    // Two ways to divide three rounds among two steps.
    fs::write(&ring, r#"{"links": [[0, 1, 1], [1, 0, 1], [1, 1, 0]]}"#).unwrap();
    let none = text(&format!(
        "synthesize broadcast --graph {ring} --ported 2 --items 6 --steps 2 --rounds 3 --proof {proof}"
    ));
    assert!(none.starts_with("3 rounds: there is no schedule"), "{none}");
    for part in ["1.cnf", "1.drat", "2.cnf", "2.drat"] {
        assert!(fs::exists(format!("{proof}.{part}")).unwrap(), "{part}");
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn refuses_what_contradicts_itself() {
    for (arguments, reason) in [
        ("synthesize", "COLLECTIVE"),
        ("synthesize allgather -p 65", "at most 64 ranks"),
        ("synthesize scan -p 4 --items 2", "one partial result"),
        (
            "synthesize broadcast -p 3 --root 3",
            "rank 3 is not one of 3 ranks",
        ),
        ("synthesize alltoall -p 60 --items 9", "MiB"),
        ("synthesize broadcast -p 4 --items 1000000000", "MiB"),
    ] {
        let error = failure(&mut oneport(arguments), 2);
        assert!(error.contains(reason), "{arguments}: {error}");
    }
}
