//! The subcommand `steady`: what it prints, writes and refuses.

fn oneport(args: &[&str]) -> (Option<i32>, String, String) {
    let out = assert_cmd::Command::cargo_bin("oneport")
        .unwrap()
        .args(args)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (out.status.code(), text(out.stdout), text(out.stderr))
}

#[test]
fn the_steady_command_prints_writes_and_refuses() {
    let folder = std::env::temp_dir().join(format!("oneport-steady-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str| folder.join(name).to_str().unwrap().to_string();
    let (schedule, picture, gantt) = (file("s.json"), file("p.svg"), file("g.svg"));
    let args = [
        "steady",
        "--generate",
        "fig3",
        "--ports",
        "uni",
        "--json",
        "--messages",
        "10",
    ];
    let files = [
        "-o", &schedule, "--draw", &picture, "--gantt", &gantt, "--drift", "0.1",
    ];
    let (code, out, _) = oneport(&[&args[..], &files[..]].concat());
    assert_eq!(code, Some(0));
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["throughput"]["fraction"], "2/3");
    assert_eq!(json["period"], 3);
    assert_eq!(
        json["trees"][0]["edges"],
        serde_json::json!([[0, 1], [1, 2]])
    );
    assert_eq!(json["matchings"].as_array().unwrap().len(), 2);
    assert_eq!(json["recomputed"], serde_json::json!([]));
    assert_eq!(json["drift"]["guaranteed"]["fraction"], "20/33");
    assert_eq!(oneport(&["check", "--schedule", &schedule]).0, Some(0));
    for picture in [&picture, &gantt] {
        assert!(
            std::fs::read_to_string(picture)
                .unwrap()
                .starts_with("<svg")
        );
    }
    let trace = file("g.json");
    assert_eq!(
        oneport(&[&args[..], &["--gantt", &trace]].concat()).0,
        Some(0)
    );
    let trace: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(trace).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let ends = events.iter().filter(|e| e["ph"] == "X").count();
    assert!(ends > 0 && ends.is_multiple_of(2), "{events:?}");
    for (option, name, expected) in [
        ("--gantt", "g.png", "traces as FILE.json"),
        ("--draw", "p.json", "FILE.svg"),
    ] {
        let (code, out, err) = oneport(&[&args[..], &[option, &file(name)]].concat());
        assert!(code == Some(2) && err.contains(expected), "{err}");
        assert!(out.is_empty() && !folder.join(name).exists());
    }
    // The command verifies with the polynomial program by default, with all methods by `--verify`.
    for (more, count) in [(&[][..], 1), (&["--verify"][..], 2)] {
        let args = ["steady", "--generate", "random:9:30", "--messages", "5"];
        let (code, out, _) = oneport(&[&args[..], &["--json"], more].concat());
        assert_eq!(code, Some(0));
        let json: serde_json::Value = serde_json::from_str(&out).unwrap();
        let others = json["recomputed"].as_array().unwrap();
        assert_eq!(others.len(), count);
        assert!(others.iter().all(|o| o["throughput"] == json["throughput"]));
        let (_, out, _) = oneport(&[&args[..], more].concat());
        assert!(out.contains("the same          by the polynomial program"));
    }
    // Costs of very different magnitudes, numbers with many digits, and a platform without paths
    // back to node 0, which a scan does not need.
    let platform = file("mixed.json");
    let text = r#"{"nodes": 4, "edges": [{"src": 0, "dst": 1, "cost": 1000000}, {"src": 1, "dst": 2, "cost": 1e-9},
        {"src": 2, "dst": 3, "cost": 3.00000000000000000000001e9}, {"src": 0, "dst": 3, "cost": "7/3"}]}"#;
    std::fs::write(&platform, text).unwrap();
    for ports in ["uni", "bi"] {
        for collective in ["broadcast", "multicast", "scatter", "scan"] {
            let args = ["steady", &platform, "--ports", ports, "--verify", "--json"];
            let more = ["--collective", collective, "--messages", "3", "--run"];
            let more = if collective == "scan" {
                &more[..4]
            } else {
                &more
            };
            let (code, out, error) = oneport(&[&args[..], more].concat());
            // On a busy machine the run may fall behind, and says so.
            let late =
                error.starts_with("note: the run did not keep pace") && error.lines().count() == 1;
            assert!(
                code == Some(0) && (late || error.is_empty()),
                "{collective} {ports}: {error}"
            );
            let json: serde_json::Value = serde_json::from_str(&out).unwrap();
            let others = json["recomputed"].as_array().unwrap();
            assert!(others.iter().all(|o| o["throughput"] == json["throughput"]));
        }
    }
    // The output says whether the throughput is optimal, which it is if it equals the upper bound.
    for args in [
        ["--collective", "multicast", "--generate", "star:12"],
        ["--collective", "scan", "--generate", "complete:8"],
        ["--collective", "scan", "--generate", "random:8:20"],
    ] {
        let args = [&["steady", "--messages", "3"][..], &args].concat();
        let (code, out, _) = oneport(&[&args[..], &["--json"]].concat());
        assert_eq!(code, Some(0));
        let json: serde_json::Value = serde_json::from_str(&out).unwrap();
        let gap = json["bounds"]["gap"].as_f64().unwrap();
        assert_eq!(json["optimal"], gap == 0.0, "{out}");
        let (_, out, _) = oneport(&args);
        let expected = if gap == 0.0 {
            "optimal: it"
        } else {
            "heuristic"
        };
        assert!(out.contains(expected) || json["proved"] == true, "{out}");
    }
    let platform = file("bad.json");
    for (text, expected) in [
        (
            r#"{"nodes": 3, "edges": [{"src": 0, "dst": 1, "cost": 1}]}"#,
            "node 2 cannot be reached",
        ),
        (
            r#"{"nodes": 2, "edges": [{"src": 0, "dst": 1, "cost": -1}]}"#,
            "a cost is more than 0",
        ),
        ("[]", "platform"),
    ] {
        std::fs::write(&platform, text).unwrap();
        let (code, out, error) = oneport(&["steady", &platform]);
        assert_eq!((code, out.as_str()), (Some(2), ""));
        assert!(
            error.contains(expected) && error.lines().count() == 1,
            "{error}"
        );
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn pictures_of_a_series_colour_its_trees_and_keep_labels_apart() {
    let folder = std::env::temp_dir().join(format!("oneport-steady-labels-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str| folder.join(name).to_str().unwrap().to_string();
    let (picture, gantt) = (file("p.svg"), file("g.svg"));
    let attribute = |tag: &str, name: &str| {
        let rest = tag.split_once(&format!(" {name}=\"")).unwrap().1;
        rest.split_once('"').unwrap().0.parse::<f64>().unwrap()
    };
    for options in [
        "--generate clustered:3x4 --max-period 200",
        "--generate complete:9 --collective allgather",
    ] {
        let args: Vec<&str> = "steady --draw".split(' ').chain([&*picture]).collect();
        let more = ["--gantt", &gantt].into_iter().chain(options.split(' '));
        let (code, _, error) = oneport(&args.into_iter().chain(more).collect::<Vec<_>>());
        assert_eq!(code, Some(0), "{error}");
        let text = std::fs::read_to_string(&picture).unwrap();
        let labels: Vec<(f64, f64, f64)> = text
            .lines()
            .filter(|line| line.contains("fill=\"#124\""))
            .map(|line| {
                let words = line.trim_end_matches("</text>").rsplit('>').next().unwrap();
                let half = 2.6 * words.chars().count() as f64;
                (attribute(line, "x"), attribute(line, "y"), half)
            })
            .collect();
        assert!(labels.len() > 10, "{options}: {}", labels.len());
        for (i, a) in labels.iter().enumerate() {
            for b in &labels[i + 1..] {
                let apart = (a.0 - b.0).abs() >= a.2 + b.2 - 0.1 || (a.1 - b.1).abs() >= 8.9;
                assert!(apart, "{options}: {a:?} {b:?}");
            }
        }
        let text = std::fs::read_to_string(&gantt).unwrap();
        let (_, legend) = text.split_once(">Colours:<").unwrap();
        assert!(legend.matches(" a time unit<").count() > 1, "{options}");
        assert!(!text.contains("segment"), "{options}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn few_trees_and_certificates() {
    let folder = std::env::temp_dir().join(format!("oneport-proof-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let proof = folder.join("proof.json").to_str().unwrap().to_string();
    let platform = [
        "steady",
        "--generate",
        "random:7:22",
        "--seed",
        "3",
        "--json",
    ];
    let json = |more: &[&str]| -> serde_json::Value {
        let (code, out, errors) = oneport(&[&platform[..], more].concat());
        assert_eq!(code, Some(0), "{errors}");
        serde_json::from_str(&out).unwrap()
    };
    let all = json(&["--certificate", &proof]);
    let text = std::fs::read_to_string(&proof).unwrap();
    let proof_of: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(proof_of["bound"], all["throughput"]["fraction"]);
    let check = ["check", "--certificate", &proof, "--json"];
    let (code, out, errors) = oneport(&check);
    assert_eq!(code, Some(0), "{errors}");
    let checked: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(checked["throughput"], all["throughput"]["fraction"]);
    let (code, _, errors) = oneport(&[&check[..], &["-p", "3"]].concat());
    assert_eq!(code, Some(2), "{errors}");
    let wrong = folder.join("wrong.json").to_str().unwrap().to_string();
    let changed = text.replacen("\"price\": \"", "\"price\": \"1", 1);
    std::fs::write(&wrong, changed).unwrap();
    let (code, _, errors) = oneport(&["check", "--certificate", &wrong]);
    assert_eq!(code, Some(1), "{errors}");
    let few = json(&["--max-trees", "2"]);
    assert_eq!(few["trees"].as_array().unwrap().len(), 2);
    assert_eq!(few["unlimited"], all["throughput"]);
    let [few, all] = [&few, &all].map(|found| found["throughput"]["float"].as_f64().unwrap());
    assert!(0.125 < few && few < all);
    // The best few trees found are not proved to be the best.
    let limited = ["--max-trees", "2", "--certificate", &proof];
    let (code, _, error) = oneport(&[&platform[..], &limited].concat());
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("has no certificate here"), "{error}");
    let (code, _, error) = oneport(&[&platform[..], &["--max-trees", "0"]].concat());
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("a period uses at least one tree"), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}
