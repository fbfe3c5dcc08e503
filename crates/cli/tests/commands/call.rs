//! The command as a function: it answers as the process does.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use oneport_app::ask::{Value, Values};
use oneport_app::{Answer, Ask, Caller, Progress, StoredSchedule, command_line, quoted};

use super::support::run::oneport;

/// What a program gets that asks for what the words of a command line say.
fn answer_to(caller: &Caller, words: &str) -> Answer {
    match oneport_cli::ask(words.split(' ')) {
        Ok(ask) => ask.answer(caller),
        Err(error) => Answer {
            exit_code: 2,
            error: Some(error),
            ..Answer::default()
        },
    }
}

/// As [`answer_to`], of a caller without files.
fn answer(words: &str) -> Answer {
    let mut caller = Caller::default();
    caller.command = quoted(words.split(' ').map(str::to_string)).into();
    answer_to(&caller, words)
}

/// What a program gets that asks for a command with options by name.
fn by_name<const N: usize>(words: &[&str], options: [(&str, Value); N]) -> anyhow::Result<Ask> {
    let options = options.map(|(name, value)| (name.to_string(), value));
    Ask::by_name(words, &options.into())
}

fn stored(words: &str) -> StoredSchedule {
    let ask = oneport_cli::ask(words.split(' ')).unwrap();
    ask.input(&Caller::default()).1.unwrap()
}

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
        let called = answer(command);
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
        "check no/such.json reduce",
        "check a.json b.json --algorithm=chain",
        "check reduce broadcast",
        "synthesize --ranks=3",
        "steady --generate=ring:3 --platform.json",
        "plan reduce --segmets=2",
        "tune reduce --repetitions=3",
        "tune reduce --algorithm=chain --algorithms=chain",
    ] {
        let line = answer(words);
        let is_name = |word: &&str| !word.starts_with("--");
        let named: Vec<&str> = words.split(' ').take_while(is_name).collect();
        let options = words.split(' ').skip(named.len());
        let options = options.map(|option| match option[2..].split_once('=') {
            Some((name, values)) if values.contains(',') => {
                let values = values.split(',').map(str::to_string);
                (name.replace('-', "_"), Value::Words(values.collect()))
            }
            Some((name, value)) => (name.to_string(), value.into()),
            None => (option[2..].to_string(), true.into()),
        });
        let options: Values = options.collect();
        let mut caller = Caller::default();
        caller.command = quoted(words.split(' ').map(str::to_string)).into();
        let by_name = match Ask::by_name(&named, &options) {
            Ok(ask) => ask.answer(&caller),
            Err(error) => Answer::failed(&error),
        };
        assert_eq!(by_name.error, line.error, "{words}");
        assert_eq!(by_name.output, line.output, "{words}");
        if line.error.is_none() {
            let again = command_line(&named, &options).unwrap();
            let again = oneport_cli::ask(again).unwrap().answer(&caller);
            assert_eq!(again.output, line.output, "{words}");
        }
    }
}

#[test]
fn a_call_has_its_files_in_memory() {
    let costs = r#"{"alpha": [[0, 5], [5, 0]], "beta": [[0, 1], [1, 0]], "gamma": [0, 0]}"#;
    let arrivals = r#"{"arrivals": [0, 100]}"#;
    let late = [
        ("ranks", 2u32.into()),
        ("bytes", 8u32.into()),
        ("costs", Value::Content(costs.into())),
        ("arrivals", Value::Content(arrivals.into())),
    ];
    let plan = by_name(&["plan", "broadcast"], late).unwrap();
    let (answer, input) = plan.input(&Caller::default());
    assert_eq!((answer.error, answer.exit_code), (None, 0));
    let stored = input.unwrap();
    let time = stored.schedule.simulate(&stored.cost).unwrap().makespan();
    assert_eq!(time, 113.0);

    let chart = [
        ("schedule", Value::Content(stored.schedule.to_json())),
        ("output", "<chart>.svg".into()),
    ];
    let drawn = by_name(&["draw"], chart)
        .unwrap()
        .answer(&Caller::default());
    assert!(drawn.notes.is_empty() && drawn.output.is_empty());
    assert!(drawn.files["<chart>.svg"].starts_with("<svg"));
}

/// All files of a sweep are in memory, the one that it goes on from, too.
#[test]
fn a_sweep_has_its_files_in_memory() {
    let names = ["<rows>.csv", "<rules>.json", "<page>.html"];
    let sweep = "tune broadcast -p 2 --bytes 8 -a chain,binomial --budget 100ms";
    let sweep = format!(
        "{sweep} --csv {} --rules {} --html {}",
        names[0], names[1], names[2]
    );
    let caller = Caller::default();
    let first = answer_to(&caller, &sweep);
    assert_eq!((first.exit_code, first.error), (0, None));
    let again = answer_to(&caller, &sweep);
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
    let stored = Arc::new(stored(plan));
    assert_eq!(stored.algorithm(), Some("chain"));
    let with = |command: &str| {
        let mut words = command.split(' ');
        let name = words.next().unwrap();
        let options = words.map(|word| match word.split_once('=') {
            Some((name, value)) => (name.to_string(), value.into()),
            None => (word.to_string(), true.into()),
        });
        let schedule = Value::Schedule(Arc::clone(&stored));
        let options = options
            .chain([("schedule".to_string(), schedule)])
            .collect();
        let mut caller = Caller::default();
        caller.command = "how it was made".into();
        Ask::by_name(&[name], &options).unwrap().answer(&caller)
    };
    let value = |json: &str| serde_json::from_str::<serde_json::Value>(json).unwrap();
    // As if it was planned again, at its own size and at another one.
    for (size, bytes) in [("", 64), (" bytes=128", 128)] {
        let mut found = value(&with(&format!("simulate json{size}")).output);
        let planned = format!("simulate reduce -p 4 -a chain --segments 4 --json --bytes {bytes}");
        let mut planned = value(&answer(&planned).output);
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
    let copy = by_name(&["plan"], [("schedule", Value::Content(text))]).unwrap();
    let own = copy.input(&Caller::default()).1.unwrap();
    assert_eq!((own.algorithm(), own.schedule.name()), (None, None));
    let (schedule, cost) = (stored.schedule.clone(), own.cost.clone());
    let copy = StoredSchedule::restored(schedule, cost, &stored.origin()).unwrap();
    assert_eq!(copy.algorithm(), Some("chain"));
    let draw = by_name(&["draw"], [("schedule", Value::Schedule(Arc::new(own)))]).unwrap();
    let drawn = draw.answer(&Caller::default());
    assert!(drawn.output.contains("reduce, own schedule, p = 4"));
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
        let [both, alone] = [&*json, command].map(answer);
        assert_eq!(both.text, alone.output, "{command}");
        assert_eq!(both.notes, alone.notes, "{command}");
        assert!(both.output.starts_with('{') && alone.text.is_empty());
    }
}

#[test]
fn a_call_says_how_far_it_is_and_what_it_does_not_know() {
    let progress = Arc::new(Progress::default());
    let mut caller = Caller::default();
    caller.progress = Some(Arc::clone(&progress));
    let done = answer_to(&caller, "compare reduce -p 2,3,4,5 --json");
    assert_eq!((done.error, progress.get().0), (None, 4));

    let wrong = |option: &str, value: &str| {
        let ask = by_name(&["plan", "reduce"], [(option, value.into())]);
        ask.map_or_else(
            |error| Answer::failed(&error),
            |ask| ask.answer(&Caller::default()),
        )
        .unknown_option
    };
    let similar = Some("segments".to_string());
    assert_eq!(wrong("segmets", "4"), Some(("segmets".into(), similar)));
    assert_eq!(wrong("frobnicate", ""), Some(("frobnicate".into(), None)));
    assert_eq!(wrong("segments", "0"), None);
    assert_eq!(wrong("ports", "chain"), None);
}

#[test]
fn a_flag_ends_a_call() {
    let mut caller = Caller::default();
    caller.stop = Arc::new(AtomicBool::new(true));
    let search = "synthesize allgather -p 12 --ports uni --items 2";
    assert_eq!(answer_to(&caller, search).exit_code, 130);
    let compare = move || answer_to(&caller, "compare allgather -p 512");
    assert!(std::thread::spawn(compare).join().is_err());
}
