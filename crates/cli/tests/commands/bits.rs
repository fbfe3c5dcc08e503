//! Tests of what commands say about the bits of float reductions.

use serde_json::{Value, json as value};

use crate::support::run::{failure, json, oneport, text};

fn check(task: &str) -> Value {
    json(&format!("check {task}"))
}

#[test]
fn check_tells_whether_ranks_get_the_same_number() {
    let differs = check("allreduce -p 3 -a one-shot --bytes 12 --dtype f32");
    let bits = &differs["bits"];
    assert_eq!(bits["same_on_all_ranks"], false);
    assert_eq!(bits["same_at_all_places"], false);
    assert_eq!(bits["trees"], 2);
    assert_eq!(bits["tree"], Value::Null);
    assert_eq!(bits["depth"], 2);
    let found = &bits["differs"];
    assert_eq!(found["element"], 0);
    assert_ne!(found["trees"][0], found["trees"][1]);
    // The inputs give other numbers in the one tree than in the other.
    let inputs: Vec<f32> = serde_json::from_value(found["inputs"].clone()).unwrap();
    let sum = |tree: &Value| match tree.as_str().unwrap() {
        "((0+1)+2)" => (inputs[0] + inputs[1]) + inputs[2],
        "((0+2)+1)" => (inputs[0] + inputs[2]) + inputs[1],
        "(0+(1+2))" => inputs[0] + (inputs[1] + inputs[2]),
        other => panic!("{other}"),
    };
    assert_eq!(
        [sum(&found["trees"][0]), sum(&found["trees"][1])],
        [1.0, 0.0]
    );

    let same = check("allreduce -p 6 -a rabenseifner --bytes 24 --dtype f64");
    assert_eq!(same["bits"]["words"], "(((0+1)+(2+3))+(4+5))");
    assert_eq!(same["bits"]["differs"], Value::Null);
    let other = check("reduce -p 6 -a binomial --bytes 1KiB");
    assert_eq!(other["bits"]["tree"], same["bits"]["tree"]);
    let ring = check("allreduce -p 6 -a ring --bytes 24");
    let [ranks, places, trees] = ["same_on_all_ranks", "same_at_all_places", "trees"];
    let ring = [ranks, places, trees].map(|field| ring["bits"][field].clone());
    assert_eq!(ring, [value!(true), value!(false), value!(6)]);
}

#[test]
fn bits_are_told_where_the_order_of_combining_decides_them() {
    let task = "allreduce -p 4 -a one-shot --bytes 64";
    for options in [
        "--dtype i32",
        "--op max",
        "--dtype f32 --op min",
        "--op bxor",
    ] {
        assert_eq!(
            check(&format!("{task} {options}"))["bits"],
            Value::Null,
            "{options}"
        );
    }
    assert_eq!(check("broadcast -p 4 -a binomial")["bits"], Value::Null);
    // Products: infinity, or the largest power of two.
    for (dtype, large) in [("f16", 15), ("bf16", 127), ("f32", 127), ("f64", 1023)] {
        let product = check(&format!("{task} --op prod --dtype {dtype}"));
        let inputs = product["bits"]["differs"]["inputs"].clone();
        let mut inputs: Vec<f64> = serde_json::from_value(inputs).unwrap();
        inputs.sort_by(f64::total_cmp);
        // JSON has large numbers rounded.
        assert_eq!(inputs[..3], [0.25, 1.0, 4.0], "{dtype}");
        assert!((inputs[3] / 2f64.powi(large) - 1.0).abs() < 1e-9, "{dtype}");
    }
    let text = text("check allreduce -p 4 -a chain --dtype f32");
    assert!(
        text.contains("same on all ranks; one tree at all places, (0+(1+(2+3)))"),
        "{text}"
    );
}

#[test]
fn compare_and_check_all_tell_the_bits_of_each_row() {
    let task = "allreduce -p 8 --bytes 32 --dtype f32";
    let compared = json(&format!("compare {task}"));
    let checked = check(&format!("{task} -a all"));
    let of = |rows: &Value, name: &str| {
        let mut rows = rows.as_array().unwrap().iter();
        let row = rows.find(|row| row["algorithm"] == name).unwrap();
        row["bits"].clone()
    };
    for name in [
        "recursive-doubling",
        "rabenseifner",
        "ring",
        "swing-doubling",
        "one-shot",
    ] {
        let bits = of(&checked["algorithms"], name);
        assert_eq!(of(&compared["rows"], name), bits, "{name}");
        let differ = ["swing-doubling", "one-shot"].contains(&name);
        assert_eq!(bits["same_on_all_ranks"], !differ, "{name}");
    }
    let table = text(&format!("compare {task}"));
    assert!(
        table.contains("ranks differ") && table.contains("8 trees"),
        "{table}"
    );
}

#[test]
fn verified_runs_of_floats_compare_bits() {
    let task = "run allreduce -p 2 --bytes 4KiB --repetitions 2";
    let floats = json(&format!("{task} --dtype f32"));
    assert_eq!(floats["verified"], true);
    assert!(floats["compared_bits"].as_u64() > Some(0), "{floats}");
    assert_eq!(json(&format!("{task} --dtype u32"))["compared_bits"], 0);
}

#[test]
fn same_bits_are_asked_for() {
    // In the model one-shot is the fastest for 8 bytes on 3 ranks.
    let short = "allreduce -p 3 --bytes 8 --dtype f32 --ported 2";
    let fastest = json(&format!("simulate {short}"));
    assert_eq!(fastest["algorithm"], "census");
    let agrees = json(&format!("simulate {short} --same-bits"));
    let checked = check(&format!(
        "{short} --same-bits -a {}",
        agrees["algorithm"].as_str().unwrap()
    ));
    assert_eq!(checked["bits"]["same_on_all_ranks"], true);
    // Where messages cost nothing by the byte, the form that agrees is taken for floats.
    let free = "simulate allreduce -p 5 --bytes 8 --alpha 1 --beta 0";
    assert_eq!(json(&format!("{free} --dtype f32"))["algorithm"], "census");
    for (options, same) in [("--dtype f32", true), ("--dtype i32", false), ("", false)] {
        let plan = format!("plan allreduce -p 5 --bytes 8 --alpha 1 --beta 0 {options}");
        let folder = std::env::temp_dir().join(format!("oneport-form-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("census.json").display().to_string();
        text(&format!("{plan} -o {file}"));
        let bits = check(&format!("--schedule {file}"))["bits"].clone();
        assert_eq!(bits["same_on_all_ranks"], same, "{options}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
    let table = text("compare allreduce -p 8 --bytes 8 --dtype f32 --same-bits");
    assert!(
        table.contains("allreduce may give ranks different bits"),
        "{table}"
    );
    let row = |row: &Value| row["bits"]["same_on_all_ranks"] == true;
    let rows = json(&format!("compare {short} --same-bits"))["rows"].clone();
    assert!(rows.as_array().unwrap().iter().all(row), "{rows}");
    let named = "plan allreduce -p 8 --bytes 8 --dtype f32 -a swing-doubling --same-bits";
    let message = failure(&mut oneport(named), 2);
    assert!(
        message.contains("different bits of a sum of floats: choose "),
        "{message}"
    );

    for (name, restriction) in [
        ("swing-doubling", "same bits on all ranks to 7 ranks"),
        ("one-shot", "same bits on all ranks if asked for"),
        (
            "recursive-multiplying",
            "same bits on all ranks to 2 ranks on several ports",
        ),
    ] {
        let listed = text(&format!("list {name}"));
        assert!(listed.contains(restriction), "{listed}");
    }
    assert!(!text("list rabenseifner").contains("same bits"));

    // A schedule of one's own is refused, and wrong.
    let folder = std::env::temp_dir().join(format!("oneport-same-bits-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("one-shot.json").display().to_string();
    text(&format!("plan {short} -a one-shot -o {file}"));
    let options = format!("--schedule {file} --dtype f32 --same-bits");
    for command in ["simulate", "run", "plan", "draw"] {
        let message = failure(&mut oneport(&format!("{command} {options}")), 2);
        assert!(
            message.contains("same bits: RANKS DIFFER"),
            "{command}: {message}"
        );
    }
    let message = failure(&mut oneport(&format!("compare {options}")), 2);
    assert!(
        message.contains("does not give all ranks the same bits"),
        "{message}"
    );
    let wrong = oneport(&format!("check {options}")).output().unwrap();
    assert_eq!(wrong.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&wrong.stdout).contains("RANKS DIFFER"));
    text(&format!("check --schedule {file} --dtype i32 --same-bits"));

    // Algorithms that lack a link are not among those of one tree. Here a ring of ranks has links.
    let links: Vec<Vec<Option<f64>>> = (0..4)
        .map(|from| {
            (0..4)
                .map(|to| ((from + to) % 2 == 1).then_some(1.0))
                .collect()
        })
        .collect();
    let costs = folder.join("links.json");
    std::fs::write(&costs, value!({"alpha": links, "beta": links}).to_string()).unwrap();
    let ring = format!(
        "allreduce --bytes 16 --dtype f32 --costs {}",
        costs.display()
    );
    let message = failure(
        &mut oneport(&format!("plan {ring} -a recursive-doubling")),
        2,
    );
    assert!(message.contains("have no link"), "{message}");
    let planned = text(&format!("plan {ring} --same-bits=tree"));
    assert!(planned.starts_with("allreduce, 4 ranks"), "{planned}");
    std::fs::remove_dir_all(&folder).unwrap();

    for exact in [
        "allreduce -p 3 --bytes 8 --dtype i32",
        "broadcast -p 3 --bytes 8",
    ] {
        let output = oneport(&format!("simulate {exact} --same-bits"))
            .output()
            .unwrap();
        let notes = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            notes.contains("--same-bits has no effect"),
            "{exact}: {notes}"
        );
    }
}

#[test]
fn probes_reveal_the_trees_of_schedules() {
    let probed = json("bits allreduce -p 6 --bytes 8..32*4 -a rabenseifner");
    assert_eq!(probed["probes"], 15);
    let sizes = probed["sizes"].as_array().unwrap();
    assert_eq!(sizes.len(), 2);
    for size in sizes {
        let bytes = &size["bytes"];
        let proved = check(&format!(
            "allreduce -p 6 --bytes {bytes} --dtype f32 -a rabenseifner"
        ))["bits"]
            .clone();
        for (field, proved) in proved.as_object().unwrap() {
            assert_eq!(&size[field], proved, "{field}");
        }
        assert_eq!([&size["as_proved"], &size["varies"]], [true, false]);
        let same: Vec<String> = serde_json::from_value(size["same_as"].clone()).unwrap();
        let same: Vec<&str> = same.iter().map(String::as_str).collect();
        assert!(same.contains(&"recursive-doubling") && same.contains(&"rabenseifner"));
        assert!(!same.contains(&"ring") && !same.contains(&"linear"));
    }
    assert_eq!(probed["changes_at"], value!([]));

    // Of several trees, each stands at its place.
    let ring = json("bits allreduce -p 5 --bytes 40 --dtype f64 -a ring --rounds 1");
    assert_eq!(ring["sizes"][0]["trees"], 5);
    assert_eq!(
        ring["sizes"][0]["same_as"],
        value!(["ring", "segmented-ring"])
    );
    let places = ring["sizes"][0]["places"].as_array().unwrap();
    assert_eq!(places.len(), 5);
    assert_eq!(
        places[1],
        value!({
            "rank": 0, "element": 1, "elements": 1, "words": "((((0+4)+3)+2)+1)"
        })
    );
    let differs = text("bits allreduce -p 8 --bytes 32 -a swing-doubling");
    assert!(
        differs.contains("yes        ranks differ  swing-doubling\n"),
        "{differs}"
    );
    assert!(
        differs.contains("\nRANKS DIFFER, 2 trees; in element 0 rank 0 has "),
        "{differs}"
    );

    // A chain of one element is a tree that no algorithm of one size has.
    let changes = json("bits reduce -p 3 --bytes 4,8 -a two-tree --segment 4");
    assert_eq!(changes["changes_at"], value!([8]));
}

#[test]
fn what_has_no_order_of_sums_is_not_probed() {
    for (options, why) in [
        ("allreduce --op min", "min of f32 is exact in any order"),
        ("allreduce --dtype i32", "sum of i32 is exact in any order"),
        (
            "allreduce --op prod",
            "the probes are sums: leave --op prod out",
        ),
        ("allreduce --dtype bf16", "sums of f32 or f64, not of bf16"),
        ("broadcast", "broadcast adds nothing"),
        ("scan", "scan has sums of some ranks' contributions"),
        ("allreduce -p 1", "one rank has nothing to add"),
        ("allreduce --rounds 0", "--rounds is 0"),
        ("allreduce --library", "--library needs an MPI library"),
        (
            "allreduce --library -a ring",
            "cannot be used with '--algorithm",
        ),
        (
            "allreduce --library --same-bits",
            "cannot be used with '--same-bits",
        ),
    ] {
        let message = failure(&mut oneport(&format!("bits {options}")), 2);
        assert!(message.contains(why), "{options}: {message}");
    }
}

/// By size, the algorithms that the rows of a sweep have.
fn by_size(rows: &Value) -> Vec<(u64, String)> {
    let rows = rows.as_array().unwrap().iter();
    let row = |row: &Value| {
        let name = row["algorithm"].as_str().unwrap().to_string();
        (row["bytes"].as_u64().unwrap(), name)
    };
    rows.map(row).collect()
}

#[test]
fn a_sweep_has_one_tree_for_all_sizes() {
    let tree = |task: &str, bytes: u64, name: &str| {
        let task = format!("{task} --bytes {bytes} --dtype f32 --same-bits -a {name}");
        check(&task)["bits"]["tree"].clone()
    };
    let sizes = "--bytes 32,1KiB,1MiB --dtype f32";
    let free = by_size(&json(&format!("simulate allreduce -p 8 {sizes}"))["rows"]);
    let free: Vec<Value> = free
        .iter()
        .map(|(n, name)| tree("allreduce -p 8", *n, name))
        .collect();
    assert!(free.windows(2).any(|pair| pair[0] != pair[1]), "{free:?}");
    for command in ["simulate", "compare", "run"] {
        let asked = format!("{command} allreduce -p 8 {sizes} --same-bits=tree");
        let more = if command == "run" {
            " --repetitions 1"
        } else {
            ""
        };
        let rows = by_size(&json(&format!("{asked}{more}"))["rows"]);
        let trees: Vec<Value> = rows
            .iter()
            .map(|(n, name)| tree("allreduce -p 8", *n, name))
            .collect();
        assert!(
            trees[0].is_string() && trees.iter().all(|tree| *tree == trees[0]),
            "{rows:?}"
        );
        let sizes: std::collections::BTreeSet<u64> = rows.iter().map(|row| row.0).collect();
        assert_eq!(sizes.len(), 3, "{command}");
    }
    // Of one size: one tree at all places.
    let long = "allreduce -p 5 --bytes 1MiB --dtype f32";
    let fastest = json(&format!("simulate {long}"))["algorithm"].clone();
    assert_eq!(
        tree("allreduce -p 5", 1 << 20, fastest.as_str().unwrap()),
        Value::Null
    );
    let one = json(&format!("simulate {long} --same-bits=tree"))["algorithm"].clone();
    assert!(tree("allreduce -p 5", 1 << 20, one.as_str().unwrap()).is_string());
    // The word behind it is no value of it.
    let before = json("simulate --same-bits allreduce -p 3 --bytes 8 --dtype f32");
    assert_eq!(before["collective"], "allreduce");
    for (options, why) in [
        (
            "simulate allreduce --dtype f32 --same-bits=tree --rules Cargo.toml",
            "--rules chooses the algorithm, and so does --same-bits=tree",
        ),
        (
            "simulate allreduce --same-bits=all",
            "invalid value 'all' for '--same-bits",
        ),
        (
            "simulate allreduce -p 5 --bytes 40 --dtype f32 -a ring --same-bits=tree",
            "no algorithm adds all elements of all sizes in one tree",
        ),
        (
            "simulate reduce -p 20000 --bytes 8 --dtype f32 -a chain,binomial --same-bits=tree",
            "(--same-bits=tree); too long to plan and prove here: binomial, chain",
        ),
    ] {
        let message = failure(&mut oneport(options), 2);
        assert!(message.contains(why), "{options}: {message}");
    }
}

#[test]
fn algorithms_of_one_tree_are_chosen_or_given() {
    // Of those that are not named only one is proved to add in this tree.
    let open = "allreduce -p 4096 --bytes 8 --dtype f32 --same-bits=tree";
    let reduce = "reduce -p 5 --bytes 8 --ordered --dtype f32 --same-bits=tree";
    let named = format!("{reduce} -a chain");
    let several = format!("{reduce} -a chain,split-binary");
    for (asked, choice) in [(open, "auto"), (&named, "given"), (&several, "auto")] {
        let answer = json(&format!("simulate {asked}"));
        assert_eq!(answer["algorithm_choice"], choice, "{asked}");
    }
}

#[test]
fn named_algorithms_that_one_tree_leaves_out_are_noted() {
    let reduce = "simulate reduce -p 5 --bytes 8 --ordered --dtype f32 --same-bits=tree";
    let said = |asked: &str| {
        let out = oneport(asked).assert().success().get_output().clone();
        String::from_utf8(out.stderr).unwrap()
    };
    let why = "split-binary is left out: split-binary reduce needs an operator that commutes";
    let named = said(&format!("{reduce} -a chain,split-binary"));
    assert_eq!(named.matches(why).count(), 1, "{named}");
    assert!(!said(reduce).contains("left out"));
}

#[test]
fn files_and_measured_sweeps_have_one_tree() {
    let folder = std::env::temp_dir().join(format!("oneport-tree-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str| folder.join(name).display().to_string();
    let (ring, rules) = (file("ring.json"), file("rules.json"));
    text(&format!(
        "plan allreduce -p 5 --bytes 40 --dtype f32 -a ring -o {ring}"
    ));
    let schedule = format!("--schedule {ring} --dtype f32");
    text(&format!("simulate {schedule} --same-bits"));
    let message = failure(
        &mut oneport(&format!("simulate {schedule} --same-bits=tree")),
        2,
    );
    assert!(
        message.contains("does not add all in one tree: same on all ranks; 5 trees"),
        "{message}"
    );
    let wrong = oneport(&format!("check {schedule} --same-bits=tree"))
        .output()
        .unwrap();
    assert_eq!(wrong.status.code(), Some(1));

    let names = "recursive-doubling,rabenseifner,ring,linear";
    let tuned = json(&format!(
        "tune allreduce -p 4 --bytes 64,64KiB --dtype f32 -a {names} --budget 200ms \
         --same-bits=tree --rules {rules}"
    ));
    let best = tuned["rows"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["best"] == true);
    let best: Vec<&str> = best.map(|row| row["algorithm"].as_str().unwrap()).collect();
    assert_eq!(best.len(), 2);
    let families = [["recursive-doubling", "rabenseifner"], ["linear", "linear"]];
    let [of_both, of_linear] = families;
    let (tree, family) = match tuned["tree"].as_str().unwrap() {
        "((0+1)+(2+3))" => ("((0+1)+(2+3))", of_both),
        other => (other, of_linear),
    };
    assert!(
        best.iter().all(|name| family.contains(name)),
        "{best:?} in {tree}"
    );
    let rules = std::fs::read_to_string(&rules).unwrap();
    assert!(
        rules.contains(&format!("; all sizes in the tree {tree}")),
        "{rules}"
    );
    std::fs::remove_dir_all(&folder).unwrap();
}
