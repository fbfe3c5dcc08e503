use super::*;
use crate::plan::registry;

/// Rows (bytes, algorithm, segment, time).
fn table(collective: Kind, rows: &[(u64, &str, u64, f64)]) -> Table {
    let timed = |&(bytes, algorithm, segment, time): &(u64, &str, u64, f64)| Timed {
        bytes,
        algorithm: algorithm.into(),
        segment: Some(segment),
        time,
    };
    Table {
        collective,
        ranks: 4,
        rows: rows.iter().map(timed).collect(),
        origin: "by hand".into(),
    }
}

#[test]
fn every_algorithm_is_registered() {
    for library in [Library::OpenMpi, Library::Intel] {
        for family in library.families() {
            for (.., name) in family.algorithms {
                assert!(
                    registry::find(family.kind, name).is_ok(),
                    "{:?} {name}",
                    family.kind
                );
            }
        }
    }
}

const ROWS: [(u64, &str, u64, f64); 6] = [
    (1000, "binomial", 1000, 1.0),
    (1000, "chain", 100, 2.0),
    (2000, "binomial", 2000, 2.0),
    (4000, "bi-greedy", 100, 1.0),
    (4000, "chain", 500, 3.0),
    (8000, "bi-greedy", 100, 1.0),
];

#[test]
fn golden() {
    let table = table(Kind::Broadcast, &ROWS);
    let written = write(Library::OpenMpi, &table).unwrap();
    let expected = "# bcast over 4 ranks; times: by hand\n\
        # mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename FILE\n\
        1 # collectives\n7 # bcast\n1 # communicator sizes\n4 # ranks\n2 # rules\n\
        # from 0 bytes: binomial, best of --bytes 1000 (binomial)\n0 6 0 0\n\
        # from 4000 bytes: pipeline in segments of 500, best of --bytes 4000 (chain)\n4000 3 0 500\n";
    assert_eq!(written.text, expected);
    assert_eq!(
        written.notes,
        [
            "times: by hand",
            "Open MPI has none of the algorithms for 8000 bytes: the rule before holds there"
        ]
    );
    let json: Value =
        serde_json::from_str(&write(Library::OpenMpiJson, &table).unwrap().text).unwrap();
    let rules = &json["collectives"]["bcast"][0]["rules"];
    assert_eq!(json["rule_file_version"], 3);
    assert_eq!(
        rules[0],
        json!({"msg_size_min": 0, "msg_size_max": 3999, "alg": "binomial", "seg_size": 0})
    );
    assert_eq!(
        rules[1],
        json!({"msg_size_min": 4000, "msg_size_max": "inf", "alg": "pipeline", "seg_size": 500})
    );
    let intel = write(Library::Intel, &table).unwrap().text;
    assert!(
        intel.ends_with("export I_MPI_ADJUST_BCAST=\"1:0-2147483647@4-4\"\n"),
        "{intel}"
    );
}

/// Where a library compares the size of all blocks, sizes are multiplied.
#[test]
fn sizes_are_those_of_the_library() {
    let rows = [(10, "bruck", 10, 1.0), (100, "ring", 100, 1.0)];
    let table = table(Kind::Allgather, &rows);
    let text = write(Library::OpenMpi, &table).unwrap().text;
    assert!(
        text.contains("\n0 2 0 0\n") && text.contains("\n400 4 0 0\n"),
        "{text}"
    );
    let text = write(Library::Intel, &table).unwrap().text;
    assert!(
        text.contains("\"2:0-99@4-4;3:100-2147483647@4-4\""),
        "{text}"
    );
}

#[test]
fn what_a_library_lacks_is_refused() {
    for (kind, name, why) in [
        (
            Kind::Scan,
            "chain",
            "Open MPI has no selection rules for scan here",
        ),
        (
            Kind::Broadcast,
            "bi-greedy",
            "has none of these algorithms for broadcast: measure linear, chain, ",
        ),
    ] {
        let error = write(Library::OpenMpi, &table(kind, &[(1, name, 1, 1.0)])).unwrap_err();
        assert!(
            error.is_usage() && error.to_string().contains(why),
            "{error}"
        );
    }
}
