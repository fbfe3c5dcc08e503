//! The command as a function: it answers as the process does.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use oneport_cli::Call;

use super::support::run::oneport;

#[test]
fn a_call_prints_what_the_process_prints() {
    for command in [
        "plan reduce -p 6 -a chain --segments 3",
        "check allreduce -p 8 -a all --json",
        "simulate broadcast -p 9 --bytes 1MiB --json",
        "compare scan -p 2..5 --bytes 8..4KiB*8 --json",
        "steady --generate fig3 --json",
        "synthesize allgather -p 5 --ports uni --json",
        "plan reduce -p 6 --root 6",
        "plan reduce -p 6 --segmens 2",
        "list recude",
    ] {
        let called = Call::new(command.split(' ')).answer();
        let process = oneport(command).output().unwrap();
        let [stdout, stderr] =
            [process.stdout, process.stderr].map(|t| String::from_utf8(t).unwrap());
        let said = called.notes.iter().map(|note| format!("note: {note}\n"));
        let said: String = said
            .chain(called.error.map(|error| format!("error: {error}")))
            .collect();
        assert_eq!(called.output, stdout, "{command}");
        assert!(stderr.starts_with(&said), "{command}: {said}");
        assert_eq!(
            Some(i32::from(called.exit_code)),
            process.status.code(),
            "{command}"
        );
    }
}

#[test]
fn a_call_has_its_files_in_memory() {
    let costs = r#"{"alpha": [[0, 5], [5, 0]], "beta": [[0, 1], [1, 0]], "gamma": [0, 0]}"#;
    let arrivals = r#"{"arrivals": [0, 100]}"#;
    let plan = ["plan", "broadcast", "-p", "2", "--bytes", "8"];
    let late = ["--costs", "<costs>", "--arrivals", "<arrivals>"];
    let call = Call::new(plan.into_iter().chain(late));
    let (answer, input) = call
        .file("<costs>", costs)
        .file("<arrivals>", arrivals)
        .input();
    assert_eq!((answer.error, answer.exit_code), (None, 0));
    let (schedule, cost) = input.unwrap();
    assert_eq!(schedule.simulate(&cost).unwrap().makespan(), 113.0);

    let draw = Call::new(["draw", "--schedule", "-", "-o", "<chart>.svg"]);
    let drawn = draw.file("-", schedule.to_json()).answer();
    assert!(drawn.notes.is_empty() && drawn.output.is_empty());
    assert!(drawn.files["<chart>.svg"].starts_with("<svg"));
}

#[test]
fn a_flag_ends_a_call() {
    let stop = || Arc::new(AtomicBool::new(true));
    let search = [
        "synthesize",
        "allgather",
        "-p",
        "12",
        "--ports",
        "uni",
        "--items",
        "2",
    ];
    assert_eq!(Call::new(search).stop(stop()).answer().exit_code, 130);
    let compare = Call::new(["compare", "allgather", "-p", "512"]).stop(stop());
    assert!(std::thread::spawn(|| compare.answer()).join().is_err());
}
