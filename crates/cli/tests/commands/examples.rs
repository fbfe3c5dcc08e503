//! Test of the examples in the help. It takes longest, and tests start in the order of their names.

use super::cli::{PAIR, folder};
use crate::support::run::{oneport, text};

#[test]
fn every_example_in_the_help_works() {
    let folder = folder("examples");
    let platform = r#"{"nodes": 3, "source": 0, "edges": [{"src": 0, "dst": 1, "cost": 1}, {"src": 1, "dst": 2, "cost": "1/2"}]}"#;
    std::fs::write(folder.join("platform.json"), platform).unwrap();
    let levels = r#"{"levels": [{"groups": [[0, 1], [2, 3]], "alpha": 300, "beta": 0.05}, {"alpha": 2000, "beta": 0.2}]}"#;
    std::fs::write(folder.join("cluster.json"), levels).unwrap();
    let profile = r#"{"alpha": 150, "beta": 0.02, "gamma": 0.03, "gamma_copy": 0.02, "pieces": {
        "transfer": [{"from": 0, "alpha": 150, "beta": 0.06}, {"from": 4096, "alpha": 320, "beta": 0.02}]}}"#;
    std::fs::create_dir_all(folder.join("answers")).unwrap();
    for file in ["task.json", "answers/first.json"] {
        std::fs::write(folder.join(file), PAIR).unwrap();
    }
    let flows = r#"{"1-Epoch_Duration": 1e-6, "3-Epochs_Required": 1, "4-Collective_Finish_Time": 1e-6,
        "7-Flows": ["Chunk 0 from 0 traveled over 0->1 in epoch 0", "Chunk 0 from 1 traveled over 1->0 in epoch 0"],
        "8-Chunk paths": {"Demand at 1 for chunk 0 from 0 met by epoch 0": ["0->1 in epoch 0"],
                          "Demand at 0 for chunk 0 from 1 met by epoch 0": ["1->0 in epoch 0"]}}"#;
    std::fs::write(folder.join("flows.json"), flows).unwrap();
    let proof = "steady --generate fig3 --certificate proof.json";
    oneport(proof).current_dir(&folder).assert().success();
    let mut commands = vec![String::new()];
    let main = text("--help");
    let listed = main
        .lines()
        .skip_while(|l| !l.starts_with("Commands:"))
        .skip(1);
    for line in listed.take_while(|l| !l.is_empty()) {
        commands.push(line.split_whitespace().next().unwrap().to_string());
    }
    let mut examples = 0;
    for command in commands.iter().filter(|c| *c != "help") {
        let help = text(&format!("{command} --help"));
        let mut command_examples = 0;
        if command == "guidelines" {
            // Costs calibrated on a busy machine may violate guidelines; this profile does not.
            std::fs::write(folder.join("machine.json"), profile).unwrap();
        }
        for line in help.lines().filter_map(|l| l.strip_prefix("  oneport ")) {
            // At least two spaces separate an example from its explanation.
            let arguments = line.split("  ").next().unwrap();
            let output = oneport(arguments).current_dir(&folder).output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            command_examples += 1;
            if arguments.starts_with("calibrate") && stderr.contains("calibration refused") {
                // Calibration needs more than one core and an idle machine.
                assert_eq!(output.status.code(), Some(1));
                continue;
            }
            if arguments == "preload"
                && stderr.contains("`cargo build --release -p oneport-preload`")
            {
                // The library is made by another package.
                assert_eq!(output.status.code(), Some(2));
                continue;
            }
            if arguments.ends_with("-o machine.json") {
                assert!(folder.join("machine.json").is_file());
            }
            let measured = arguments.contains("--native") || arguments.contains("--paced");
            if arguments.starts_with("guidelines") && measured && output.status.code() == Some(1) {
                // Times measured on a busy machine may violate guidelines.
                continue;
            }
            assert!(output.status.success(), "{line}: {stderr}");
            assert!(
                stderr.is_empty() || stderr.starts_with("note: "),
                "{line}: {stderr}"
            );
        }
        assert!(command_examples > 0, "{command} has no example:\n{help}");
        examples += command_examples;
    }
    assert!(examples > 8);
}
