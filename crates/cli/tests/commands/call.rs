//! The command as a function: it answers as the process does.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use oneport_app::{Call, Progress, StoredSchedule, Value};

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

/// Values mean what words mean, and what is wrong with them is said in the same words.
#[test]
fn options_by_name_are_those_of_the_command_line() {
    for words in [
        "plan reduce --ranks=6 --algorithm=chain --segments=3",
        "plan reduce --ranks=4 --segment-sizes=6KiB,4KiB --bytes=10KiB",
        "compare scan --ranks=2..5 --json --bytes=8,64",
        "simulate gather --sizes=1,0,2 --explain",
        "guidelines scan reduce --ranks=2 --bytes=8",
        "export goal broadcast --ranks=4 --form=bytes",
        "list reduce --json",
        "plan recude --ranks=2",
        "plan reduce --bytes=much",
        "plan reduce --ports=tri",
        "plan reduce --segment=1 --segments=2",
        "plan reduce --seed=2",
        "check reduce --like=a.json",
        "synthesize --ranks=3",
        "steady --generate=ring:3 --platform.json",
        "plan reduce --segmets=2",
        "tune reduce --repetitions=3",
        "tune reduce --algorithm=chain --algorithms=chain",
    ] {
        let line = Call::new(words.split(' ')).answer();
        let is_name = |word: &&str| !word.starts_with("--");
        let named: Vec<&str> = words.split(' ').take_while(is_name).collect();
        let options = words.split(' ').skip(named.len());
        let call = options.fold(Call::new(named), |call, option| {
            match option[2..].split_once('=') {
                Some((name, values)) if values.contains(',') => {
                    let values = values.split(',').map(str::to_string);
                    call.option(name.replace('-', "_"), Value::Words(values.collect()))
                }
                Some((name, value)) => call.option(name, value),
                None => call.option(&option[2..], true),
            }
        });
        let again = call.command_line();
        let by_name = call.answer();
        assert_eq!(by_name.error, line.error, "{words}");
        assert_eq!(by_name.output, line.output, "{words}");
        assert_eq!(by_name.unknown_option, line.unknown_option, "{words}");
        if line.error.is_none() {
            let again = Call::new(again.unwrap()).answer();
            assert_eq!(again.output, line.output, "{words}");
        }
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
    let stored = input.unwrap();
    let time = stored.schedule.simulate(&stored.cost).unwrap().makespan();
    assert_eq!(time, 113.0);

    let draw = Call::new(["draw", "--schedule", "-", "-o", "<chart>.svg"]);
    let drawn = draw.file("-", stored.schedule.to_json()).answer();
    assert!(drawn.notes.is_empty() && drawn.output.is_empty());
    assert!(drawn.files["<chart>.svg"].starts_with("<svg"));
}

/// All files of a sweep are in memory, the one that it goes on from, too.
#[test]
fn a_sweep_has_its_files_in_memory() {
    let names = ["<rows>.csv", "<rules>.json", "<page>.html"];
    let sweep = "tune broadcast -p 2 --bytes 8 -a chain,binomial --budget 100ms";
    let call = || {
        let files = ["--csv", "--rules", "--html"].into_iter().zip(names);
        let files = files.flat_map(|(option, name)| [option, name]);
        Call::new(sweep.split(' ').chain(files))
    };
    let first = call().answer();
    assert_eq!((first.exit_code, first.error), (0, None));
    let again = names[..2].iter().fold(call(), |call, name| {
        call.file(*name, first.files[*name].clone())
    });
    let again = again.answer();
    assert_eq!((again.exit_code, again.error), (0, None));
    let known = |note: &String| note.contains("rows are known from the CSV file");
    assert!(again.notes.iter().any(known), "{:?}", again.notes);
    for name in names {
        assert!(again.files.contains_key(name), "{name}");
        assert!(
            !std::path::Path::new(name).exists(),
            "{name} is on the disk"
        );
    }
}

#[test]
fn a_stored_schedule_keeps_its_algorithm() {
    let plan = "plan reduce -p 4 --bytes 64 -a chain --segments 4";
    let stored = Arc::new(Call::new(plan.split(' ')).input().1.unwrap());
    assert_eq!(stored.algorithm(), Some("chain"));
    let with = |command: &str| {
        let mut words = command.split(' ');
        let call = Call::new(words.next()).option("schedule", Value::Schedule(Arc::clone(&stored)));
        let call = words.fold(call, |call, word| match word.split_once('=') {
            Some((name, value)) => call.option(name, value),
            None => call.option(word, true),
        });
        call.named("how it was made").answer()
    };
    let value = |json: &str| serde_json::from_str::<serde_json::Value>(json).unwrap();
    // As if it was planned again, at its own size and at another one.
    for (size, bytes) in [("", 64), (" bytes=128", 128)] {
        let mut found = value(&with(&format!("simulate json{size}")).output);
        let planned = format!("simulate reduce -p 4 -a chain --segments 4 --json --bytes {bytes}");
        let mut planned = value(&Call::new(planned.split(' ')).answer().output);
        // Of a request formulas are known, a schedule is checked.
        for one in [&mut found, &mut planned] {
            for field in ["closed_form", "published", "correct"] {
                one.as_object_mut().unwrap().remove(field);
            }
        }
        assert_eq!(found, planned);
    }
    let svg = with("draw").output;
    assert!(svg.contains("reduce by chain, p = 4, q = 4") && svg.contains("how it was made"));
    let compared = with("compare json").output;
    assert!(compared.contains("\"chain (this)\""), "{compared}");
    // A copy that a program makes of its JSON form, and one that is nobody's plan and has no name.
    let text = stored
        .schedule
        .to_json()
        .replace("\"name\": \"chain\", ", "");
    let call = Call::new(["plan", "--schedule", "<copy>"]);
    let own = call.file("<copy>", text).input().1.unwrap();
    assert_eq!((own.algorithm(), own.schedule.name()), (None, None));
    let (schedule, cost) = (stored.schedule.clone(), own.cost.clone());
    let copy = StoredSchedule::restored(schedule, cost, &stored.origin()).unwrap();
    assert_eq!(copy.algorithm(), Some("chain"));
    let call = Call::new(["draw"]).option("schedule", Value::Schedule(Arc::new(own)));
    assert!(call.answer().output.contains("reduce, own schedule, p = 4"));
}

#[test]
fn a_call_has_the_text_beside_the_json() {
    for command in [
        "list scan",
        "check allreduce -p 5",
        "check allreduce -p 5 -a all",
        "simulate reduce -p 5 --ranks-table",
        "compare reduce -p 3,4",
        "compare reduce -p 4",
        "guidelines -p 2 --bytes 8",
        "steady --generate fig3",
        "synthesize scan -p 3",
    ] {
        let json = format!("{command} --json");
        let both = Call::new(json.split(' ')).answer();
        let alone = Call::new(command.split(' ')).answer();
        assert_eq!(both.text, alone.output, "{command}");
        assert_eq!(both.notes, alone.notes, "{command}");
        assert!(both.output.starts_with('{') && alone.text.is_empty());
    }
}

#[test]
fn a_call_says_how_far_it_is_and_what_it_does_not_know() {
    let progress = Arc::new(Progress::default());
    let compare = Call::new("compare reduce -p 2,3,4,5 --json".split(' '));
    let done = compare.progress(Arc::clone(&progress)).answer();
    assert_eq!((done.error, progress.get().0), (None, 4));

    let wrong = |option: &str| {
        Call::new(["plan", "reduce", option])
            .answer()
            .unknown_option
    };
    let similar = Some("segments".to_string());
    assert_eq!(wrong("--segmets=4"), Some(("segmets".into(), similar)));
    assert_eq!(wrong("--frobnicate"), Some(("frobnicate".into(), None)));
    assert_eq!(wrong("--segments=0"), None);
    assert_eq!(wrong("chain"), None);
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
