//! Selection files of MPI libraries.

use oneport::Kind;
use oneport::plan::registry;
use oneport_formats::Written;
use oneport_formats::selection::{self, Library, Origin, SelectionTable, TimedChoice};
use oneport_formats::selection::{chooses, ensure_obeyed};
use serde_json::{Value, json};

/// Rows (bytes, algorithm, segment, time).
fn table(collective: Kind, rows: &[(u64, &str, u64, f64)]) -> SelectionTable {
    let timed = |&(bytes, algorithm, segment, time): &(u64, &str, u64, f64)| TimedChoice {
        bytes,
        algorithm: algorithm.into(),
        segment: Some(segment),
        time,
        beats_library: true,
    };
    SelectionTable {
        collective,
        ranks: 4,
        rows: rows.iter().map(timed).collect(),
        origin: Origin::Modelled("by hand".into()),
        doubts: None,
    }
}

/// The file of a table in which something beats the library.
fn write(library: Library, table: &SelectionTable) -> oneport::Result<Written> {
    selection::write(library, table).map(|written| written.expect("a rule"))
}

/// Where a library has none of the algorithms, the error lists those that it knows.
#[test]
fn every_algorithm_is_registered() {
    let mut known = 0;
    for library in [Library::OpenMpi, Library::Intel, Library::Mpich] {
        for kind in Kind::ALL {
            let error = write(library, &table(kind, &[(8, "none", 8, 1.0)])).unwrap_err();
            let error = error.to_string();
            let Some((_, names)) = error.split_once("measure ") else {
                assert!(error.contains("has no selection rules"), "{error}");
                continue;
            };
            for name in names.split(", ") {
                assert!(registry::find(kind, name).is_ok(), "{kind:?} {name}");
                known += 1;
            }
        }
    }
    assert_eq!(known, 65);
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
    let expected = "# bcast over 4 ranks; times: modelled, not measured over MPI: by hand\n\
        # mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename FILE --mca coll_tuned_priority 100\n\
        1 # collectives\n7 # bcast\n1 # communicator sizes\n4 # ranks\n4 # rules\n\
        # from 0 bytes: Open MPI decides\n0 0 0 0\n\
        # from 1000 bytes: binomial, best of --bytes 1000 (binomial)\n1000 6 2 0\n\
        # from 4000 bytes: pipeline in segments of 500, best of --bytes 4000 (chain)\n4000 3 2 500\n\
        # from 8000 bytes: Open MPI decides\n8000 0 0 0\n";
    assert_eq!(written.text, expected);
    assert_eq!(
        written.notes,
        [
            "times: modelled, not measured over MPI: by hand",
            "whether Open MPI's own choice is faster than these rules is not known: it is measured \
             over MPI alone",
            "Open MPI has none of the algorithms for 8000 bytes: it decides for itself there",
            "Open MPI applies the rules to communicators of all sizes: it reads numbers of ranks as \
             lower bounds up to version 5, and as upper ones from 6 on"
        ]
    );
    let json: Value =
        serde_json::from_str(&write(Library::OpenMpiJson, &table).unwrap().text).unwrap();
    let rules = &json["collectives"]["bcast"][0]["rules"];
    assert_eq!(json["rule_file_version"], 3);
    assert_eq!(
        rules[0],
        json!({"msg_size_min": 1000, "msg_size_max": 3999, "alg": "binomial", "faninout": 2,
               "seg_size": 0, "comment": "from 1000 bytes: binomial, best of --bytes 1000 (binomial)"})
    );
    assert_eq!(rules.as_array().unwrap().len(), 2);
    let last = &rules[1];
    assert_eq!(last["msg_size_min"], 4000);
    assert_eq!(last["msg_size_max"], 7999);
    assert_eq!(
        (&last["alg"], &last["seg_size"]),
        (&json!("pipeline"), &json!(500))
    );
    let comment = json["comment"].as_str().unwrap();
    assert_eq!(comment, "times: modelled, not measured over MPI: by hand");
    let intel = write(Library::Intel, &table).unwrap().text;
    assert!(
        intel.ends_with("export I_MPI_ADJUST_BCAST=\"1:1000-3999\"\n"),
        "{intel}"
    );
}

/// The library decides where no algorithm beats its own choice, and where nothing was measured.
#[test]
fn what_does_not_beat_the_library_has_no_rule() {
    let mut table = table(
        Kind::Allreduce,
        &[
            (8, "ring", 8, 1.0),
            (64, "ring", 64, 1.0),
            (64, "dual-root", 64, 0.5),
            (512, "ring", 512, 1.0),
        ],
    );
    table.origin = Origin::Measured("by hand".into());
    table.doubts = Some("not settled at 8 B".into());
    table.rows[0].beats_library = false;
    table.rows[3].beats_library = false;
    let written = write(Library::OpenMpi, &table).unwrap();
    let rules: Vec<&str> = written.text.lines().filter(|l| !l.contains('#')).collect();
    assert_eq!(rules, ["0 0 0 0", "64 4 2 0", "512 0 0 0"]);
    assert!(
        written
            .text
            .contains("by hand; DOUBTFUL: not settled at 8 B\n")
    );
    // Doubts are told of all files at once, not in the notes of each.
    assert_eq!(written.notes[0], "times: measured over MPI: by hand");
    assert_eq!(
        written.notes[1],
        "Open MPI decides for itself at 8, 512 bytes: none of its algorithms beats its own choice there"
    );
    let json = write(Library::OpenMpiJson, &table).unwrap().text;
    let json: Value = serde_json::from_str(&json).unwrap();
    let rules = json["collectives"]["allreduce"][0]["rules"]
        .as_array()
        .unwrap();
    assert_eq!(rules.len(), 1);
    assert_eq!(
        (&rules[0]["msg_size_min"], &rules[0]["msg_size_max"]),
        (&json!(64), &json!(511))
    );
    let intel = write(Library::Intel, &table).unwrap().text;
    assert!(
        intel.ends_with("export I_MPI_ADJUST_ALLREDUCE=\"8:64-511\"\n"),
        "{intel}"
    );
    let mpich = write(Library::Mpich, &table).unwrap().text;
    assert!(mpich.contains(
        "MPIR_CVAR_DEVICE_COLLECTIVES=percoll MPIR_CVAR_ALLREDUCE_DEVICE_COLLECTIVE=0 mpiexec"
    ));
    let json = without_comments(&mpich);
    let all = &json["collective=allreduce"]["comm_type=intra"];
    let ours = &all["comm_size<=4"];
    assert!(
        ours["avg_msg_size<=511"].to_string().contains("intra_ring"),
        "{ours}"
    );
    // Beside the rules stands what holds for other numbers of ranks.
    assert_eq!(
        ours["avg_msg_size<=63"]["avg_msg_size<=8"],
        all["comm_size=any"]["avg_msg_size<=8"]
    );
    assert!(
        !ours["avg_msg_size=any"].to_string().contains("intra_ring"),
        "{ours}"
    );
    table.rows[1].beats_library = false;
    for library in [
        Library::OpenMpi,
        Library::OpenMpiJson,
        Library::Intel,
        Library::Mpich,
    ] {
        assert!(selection::write(library, &table).unwrap().is_none());
    }
}

#[test]
fn another_library_or_version_is_refused() {
    for (library, version, why) in [
        (Library::OpenMpi, "Open MPI v4.1.4", ""),
        (
            Library::OpenMpiJson,
            "Open MPI v6.0.0a1, 2 processes on 1 host",
            "",
        ),
        (Library::Mpich, "MPICH 5.0.2, 2 processes on 1 host", ""),
        (
            Library::Intel,
            "Intel(R) MPI Library 2021.18 for Linux* OS",
            "",
        ),
        (
            Library::OpenMpiJson,
            "Open MPI v5.0.11, 2 processes",
            "from version 6.0 on",
        ),
        (
            Library::Mpich,
            "MPICH 4.0.2, 2 processes",
            "from version 4.1 on",
        ),
        (
            Library::Mpich,
            "Open MPI v5.0.11",
            "rules for MPICH, but the library is Open MPI v5.0.11",
        ),
        (Library::Intel, "MPICH 5.0.2", "rules for Intel MPI, but"),
    ] {
        let error = library.ensure_reads(version).err().map(|e| e.to_string());
        let found = error.clone().unwrap_or_default();
        assert_eq!(error.is_none(), why.is_empty(), "{version}: {found}");
        assert!(found.contains(why), "{version}: {found}");
    }
}

/// A library obeys a file that is there, and that it looks at.
#[test]
fn files_that_are_missing_or_inactive_are_told() {
    const OMPI: &str = "OMPI_MCA_coll_tuned_dynamic_rules_filename=rules";
    const MPICH: &str = "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE=rules";
    for (version, environment, why) in [
        ("Open MPI v5", "HOME=/root", ""),
        (
            "Open MPI v5",
            "OMPI_MCA_coll_tuned_use_dynamic_rules=1 OMPI",
            "",
        ),
        (
            "Open MPI v5",
            "OMPI",
            "OMPI_MCA_coll_tuned_use_dynamic_rules is not 1",
        ),
        (
            "Open MPI v5",
            "OMPI_MCA_coll_tuned_use_dynamic_rules=false OMPI",
            "is not 1",
        ),
        (
            "Open MPI v5",
            "OMPI_MCA_coll_tuned_dynamic_rules_filename=none",
            "filename names none, which is not there",
        ),
        (
            "Open MPI v5",
            "MPICH",
            "Open MPI v5 does not look at MPIR_CVAR_COLL_SELECTION",
        ),
        (
            "MPICH 5.0.2",
            "MPIR_CVAR_ALLREDUCE_DEVICE_COLLECTIVE=0 MPICH",
            "",
        ),
        ("MPICH 5.0.2", "MPIR_CVAR_DEVICE_COLLECTIVES=none MPICH", ""),
        (
            "MPICH 5.0.2",
            "MPICH",
            "for allreduce: MPIR_CVAR_ALLREDUCE_DEVICE_COLLECTIVE is not 0",
        ),
        (
            "MPICH 4.0.2",
            "MPIR_CVAR_DEVICE_COLLECTIVES=none MPICH",
            "from version 4.1 on",
        ),
        (
            "MPICH 5.0.2",
            "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE=none",
            "is not there",
        ),
        (
            "Intel(R) MPI Library 2021.18",
            "I_MPI_ADJUST_ALLREDUCE=1:8-64",
            "",
        ),
        (
            "Intel(R) MPI Library 2021.18",
            "I_MPI_ADJUST_BCAST=1:8-64",
            "I_MPI_ADJUST_ALLREDUCE is not set",
        ),
        (
            "Intel(R) MPI Library 2021.18",
            "I_MPI_TUNING_BIN=none",
            "is not there",
        ),
    ] {
        let words = environment.split(' ').map(|word| match word {
            "OMPI" => OMPI,
            "MPICH" => MPICH,
            word => word,
        });
        let variables = words.filter_map(|word| word.split_once('='));
        let variables: Vec<_> = variables
            .map(|(n, v)| (n.to_string(), v.to_string()))
            .collect();
        assert!(
            variables
                .iter()
                .all(|(name, _)| chooses(name) || name == "HOME")
        );
        let exists = |file: &str| file == "rules";
        let error = ensure_obeyed(version, Kind::Allreduce, &variables, exists).err();
        let found = error.as_ref().map(ToString::to_string).unwrap_or_default();
        assert_eq!(error.is_none(), why.is_empty(), "{environment}: {found}");
        assert!(found.contains(why), "{environment}: {found}");
    }
}

/// Where a library compares the size of all blocks, sizes are multiplied.
#[test]
fn sizes_are_those_of_the_library() {
    let rows = [(10, "bruck", 10, 1.0), (100, "ring", 100, 1.0)];
    let table = table(Kind::Allgather, &rows);
    let text = write(Library::OpenMpi, &table).unwrap().text;
    assert!(
        text.contains("\n40 2 2 0\n") && text.contains("\n400 4 2 0\n"),
        "{text}"
    );
    let text = write(Library::OpenMpiJson, &table).unwrap().text;
    assert!(text.contains("\"alg\": \"bruck-k-fanout\""), "{text}");
    let text = write(Library::Intel, &table).unwrap().text;
    assert!(text.contains("\"2:10-99;3:100-100\""), "{text}");
    // Open MPI's documentation says one block, its code the blocks of all.
    let rows = [(10, "linear", 10, 1.0), (100, "oblivious", 100, 1.0)];
    let text = write(Library::OpenMpi, &self::table(Kind::Scatter, &rows))
        .unwrap()
        .text;
    assert!(text.contains("\n400 2 2 0\n"), "{text}");
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

/// The file as JSON: comments are not.
fn without_comments(text: &str) -> Value {
    let mut json = String::new();
    for (index, part) in text.split("/*").enumerate() {
        let kept = if index == 0 {
            part
        } else {
            part.split_once("*/").unwrap().1
        };
        json.push_str(kept);
    }
    serde_json::from_str(&json).unwrap_or_else(|e| panic!("{e}: {json}"))
}

#[test]
fn mpich_gets_tests_in_order_and_keeps_what_has_no_rules() {
    let table = table(Kind::Broadcast, &ROWS);
    let text = write(Library::Mpich, &table).unwrap().text;
    let rules = [
        "\"comm_type=intra\": {",
        "\"comm_size<=3\": {",
        "\"comm_size<=4\": {",
        "\"avg_msg_size<=999\": {",
        "\"avg_msg_size<=3999\": /* from 1000 bytes: binomial, best of --bytes 1000 (binomial) */",
        "{\"algorithm=MPIR_Bcast_intra_binomial\": {}},",
        "\"avg_msg_size<=7999\": /* from 4000 bytes: chain in segments of 500, best of --bytes 4000 (chain) */",
        "{\"algorithm=MPIR_Bcast_intra_pipelined_tree\": {\"tree_type=kary\": {}, \"k=1\": {}, \
         \"is_non_blocking=1\": {}, \"chunk_size=500\": {}, \"recv_pre_posted=0\": {}}}",
        "\"comm_size=any\": {",
        "\"collective=allreduce\": {",
    ];
    let mut rest = text.as_str();
    for rule in rules {
        rest = rest
            .split_once(rule)
            .unwrap_or_else(|| panic!("{rule}: {text}"))
            .1;
    }
    let json = without_comments(&text);
    assert_eq!(json.as_object().unwrap().len(), 44);
    assert_eq!(
        json["collective=igatherv"],
        json!({"algorithm=MPIR_Igatherv_allcomm_sched_linear": {}})
    );
    let bcast = &json["collective=bcast"]["comm_type=intra"];
    // In the second object the tests go on: its keys stand beside the rules.
    for key in ["comm_size<=7", "comm_size=any"] {
        assert_eq!(bcast["comm_size<=3"][key], bcast[key]);
    }
}

/// Algorithms are told apart by their names: numbers are Open MPI's and Intel's only.
#[test]
fn mpich_has_a_rule_for_each_change() {
    let rows = [
        (1, "binomial", 1, 1.0),
        (2, "van-de-geijn", 2, 1.0),
        (4, "binomial", 4, 1.0),
    ];
    let text = write(Library::Mpich, &table(Kind::Broadcast, &rows))
        .unwrap()
        .text;
    let ours =
        without_comments(&text)["collective=bcast"]["comm_type=intra"]["comm_size<=4"].clone();
    let keys: Vec<_> = ours
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        keys,
        [
            "avg_msg_size<=0",
            "avg_msg_size<=1",
            "avg_msg_size<=3",
            "avg_msg_size<=4",
            "avg_msg_size=any"
        ]
    );
}

/// MPICH ends where an algorithm lacks what it needs, or where a key is not last that must be.
#[test]
fn mpich_decides_by_itself_where_the_algorithm_cannot() {
    let rows = [(1000, "rabenseifner", 1000, 1.0)];
    let text = write(Library::Mpich, &table(Kind::Allreduce, &rows))
        .unwrap()
        .text;
    let json = without_comments(&text);
    let ours = &json["collective=allreduce"]["comm_type=intra"]["comm_size<=4"];
    let ours = &ours["avg_msg_size<=1000"];
    assert!(
        ours["is_op_built_in=no"]["avg_msg_size<=8"].is_object(),
        "{ours}"
    );
    assert_eq!(
        ours["is_op_built_in=yes"]["count=any"],
        json!({"algorithm=MPIR_Allreduce_intra_reduce_scatter_allgather": {}})
    );
    let rows = [(1000, "recursive-halving", 1000, 1.0)];
    let text = write(Library::Mpich, &table(Kind::ReduceScatter, &rows))
        .unwrap()
        .text;
    for name in ["reduce_scatter", "reduce_scatter_block"] {
        let json = &without_comments(&text)[format!("collective={name}")];
        let ours = &json["comm_type=intra"]["comm_size<=4"]["total_msg_size<=1000"];
        let ours = &ours["is_commutative=yes"];
        assert!(
            ours.to_string().contains("intra_recursive_halving"),
            "{json}"
        );
    }
}

#[test]
fn mpich_files_hold_any_origin_and_end_within_a_page() {
    for length in 0..5000 {
        let mut table = table(
            Kind::Alltoall,
            &[(8, "bruck", 8, 1.0), (9, "pairwise", 9, 1.0)],
        );
        table.origin = Origin::Measured("*/ \n\"".to_string() + &"x".repeat(length));
        let text = write(Library::Mpich, &table).unwrap().text;
        assert!(!text.len().is_multiple_of(4096));
        if length == 0 {
            assert!(text.starts_with("/* alltoall over 4 ranks; times: measured over MPI: * /"));
            without_comments(&text);
        }
    }
}

/// Sizes are 32-bit numbers there.
#[test]
fn sizes_beyond_the_library_have_no_rule() {
    let rows = [(1, "bruck", 1, 1.0), (1 << 30, "ring", 1 << 30, 1.0)];
    let table = table(Kind::Allgather, &rows);
    let written = write(Library::Mpich, &table).unwrap();
    assert!(!written.text.contains("from 4294967296"));
    let note = "MPICH compares sizes up to 2147483647: there is no rule for 1073741824 bytes";
    assert!(
        written.notes.iter().any(|n| n == note),
        "{:?}",
        written.notes
    );
    let open_mpi = write(Library::OpenMpi, &table).unwrap().text;
    assert!(open_mpi.contains("\n4294967296 4 2 0\n"), "{open_mpi}");
}
