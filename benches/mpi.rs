//! Schedules over MPI beside the library's own collectives, under every library that
//! `tests/mpi.sh` has fetched.
//!
//! ```sh
//! tests/mpi.sh quick
//! cargo bench --bench mpi -- --ranks 2
//! cargo bench --bench mpi -- --ranks 4 --quick
//! ```
//!
//! First come ping-pongs by the library's blocking functions and by this crate: the price of a
//! short message. Then, for each collective and each size from 8 B to 4 MiB (`--quick`: every
//! fourth; `--only broadcast`: one collective), a few algorithms and segments that are fast in the
//! model are measured, and the fastest of them once more interleaved with the library's
//! function, verified. A ratio is the library's median over the schedule's: above 1, the schedule
//! is faster. The bench starts itself under each launcher; run it on an idle machine.
//!
//! MPICH's own broadcast does not use messages within a host, but shared memory. It is measured
//! twice, the second time with messages.

#![allow(clippy::print_stdout, reason = "a bench prints")]

#[allow(dead_code)]
mod terminal;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use oneport::mpi::{World, is_launched};
use oneport::plan::choose::{Choice, with_best_segments};
use oneport::plan::space::Variant;
use oneport::plan::{Segments, registry};
use oneport::run::{Op, Operator, Place, Run};
use oneport::schedule::collective::Collective;
use oneport::schedule::{Layout, Schedule, Span, Step};
use oneport::{Error, ErrorKind, Kind, Ports, Request};
use oneport_measure::{Calibration, MeasuredRun, calibrate_on, interleave};

/// The collectives: name, kind, and whether blocks differ.
const CASES: [(&str, Kind, bool); 8] = [
    ("broadcast", Kind::Broadcast, false),
    ("reduce", Kind::Reduce, false),
    ("allreduce", Kind::Allreduce, false),
    ("allgather", Kind::Allgather, false),
    ("gatherv", Kind::Gather, true),
    ("scatterv", Kind::Scatter, true),
    ("reduce_scatter", Kind::ReduceScatter, false),
    ("alltoall", Kind::Alltoall, false),
];

/// A launch: library, setting, and collective; all collectives if none is named.
type Launch = (
    &'static str,
    Option<[&'static str; 2]>,
    Option<&'static str>,
);

const LAUNCHES: [Launch; 4] = [
    ("openmpi", None, None),
    ("mpich", None, None),
    (
        "mpich",
        Some(["MPIR_CVAR_BCAST_POSIX_INTRA_ALGORITHM", "mpir"]),
        Some("broadcast"),
    ),
    ("intel", None, None),
];

/// Lengths of the messages of ping-pongs, in bytes.
const MESSAGES: [usize; 4] = [8, 64, 512, 2048];

/// Algorithms that are measured at each point.
const ALGORITHMS: usize = 4;

/// Lengths of segments that are measured besides the best in the model, in bytes.
const SEGMENTS: [usize; 3] = [4 << 10, 16 << 10, 64 << 10];

/// Exponents of the smallest and of the largest size.
const SIZES: [u32; 2] = [3, 22];

/// Ratios of shorter vectors do not count for the worst one.
const SHORT: usize = 1 << 10;

fn main() -> ExitCode {
    let done = match is_launched() {
        true => of_process(),
        false if terminal::is_bare() => {
            println!(
                "mpi: not measured; it takes `cargo bench --bench mpi -- --quick`, or --ranks 2"
            );
            Ok(())
        }
        false => of_all_libraries(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The value of an option, or whether it is given.
fn option(name: &str) -> Option<String> {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    arguments.next()?;
    Some(arguments.next().unwrap_or_default())
}

/// Starts this program under each launcher.
fn of_all_libraries() -> oneport::Result<()> {
    let ranks = option("--ranks").unwrap_or_else(|| "2".into());
    let wheels = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("mpi");
    let only = option("--only");
    for (name, setting, collective) in LAUNCHES {
        if collective.is_some_and(|one| only.as_ref().is_some_and(|only| only != one)) {
            continue;
        }
        let folder = wheels.join(name);
        if !folder.join("complete").exists() {
            println!(
                "SKIPPED {name}: tests/mpi.sh fetches it into {}",
                folder.display()
            );
            continue;
        }
        let mut command = launcher(name, &folder, &ranks);
        if let Some([variable, value]) = setting {
            println!("\n{variable}={value}");
            command.env(variable, value);
        }
        if let Some(one) = collective.filter(|_| only.is_none()) {
            command.args(["--only", one]);
        }
        let status = command.status();
        let status = status.map_err(|e| failed(format!("cannot start {name}: {e}")))?;
        if !status.success() {
            return Err(failed(format!("{name}: {status}")));
        }
    }
    Ok(())
}

/// The command that starts this program on `ranks` processes.
fn launcher(name: &str, folder: &Path, ranks: &str) -> Command {
    let (program, options): (_, &[&str]) = match name {
        "openmpi" => (
            "mpirun",
            &[
                "--map-by",
                ":OVERSUBSCRIBE",
                "--bind-to",
                "core:overload-allowed",
            ],
        ),
        "intel" => ("mpiexec.hydra", &[]),
        _ => ("mpirun", &["-bind-to", "core"]),
    };
    let libraries = ["lib", "lib/libfabric", "opt/mpi/libfabric/lib"].map(|part| folder.join(part));
    let libraries: Vec<PathBuf> = libraries.into_iter().collect();
    let mut command = Command::new(folder.join("bin").join(program));
    command.args(options).args(["-n", ranks]);
    command.arg(std::env::current_exe().unwrap_or_default());
    command.args(std::env::args().skip(1));
    command.env(
        "LD_LIBRARY_PATH",
        std::env::join_paths(libraries).unwrap_or_default(),
    );
    command
        .env("I_MPI_ROOT", folder)
        .env("I_MPI_FABRICS", "shm");
    for who in ["OMPI", "PRTE"] {
        command.env(format!("{who}_ALLOW_RUN_AS_ROOT"), "1");
        command.env(format!("{who}_ALLOW_RUN_AS_ROOT_CONFIRM"), "1");
    }
    command
}

/// Measures as one of the processes of a launch. The first one prints.
fn of_process() -> oneport::Result<()> {
    let mut world = World::join()?;
    let (speaks, ranks) = (world.rank() == 0, world.size());
    if speaks {
        let interface = world.processes().map(|p| (p.version, p.interface));
        let (version, interface) = interface.unwrap_or_default();
        println!("\n{version} ({interface} interface), {ranks} processes");
    }
    let options = Calibration {
        quick: true,
        force: true,
        ..Calibration::default()
    };
    let hosts = world.host_names().to_vec();
    let cost = calibrate_on(&mut world, &hosts, &options, |_, _| {})?.cost()?;
    let step = if option("--quick").is_some() { 4 } else { 1 };
    let only = option("--only");
    if only.as_ref().is_none_or(|only| only == "ping-pong") {
        ping_pongs(&mut world)?;
    }
    let mut all = Vec::new();
    for (name, kind, irregular) in CASES {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let mut ratios = Vec::new();
        for exponent in (SIZES[0]..=SIZES[1]).step_by(step) {
            let bytes = 1 << exponent;
            let request = request(kind, ranks, bytes, irregular).cost(cost.clone());
            let (chosen, [ours, theirs]) = measure(&mut world, &request)?;
            ratios.push((bytes, theirs / ours));
            if speaks {
                println!(
                    "  {name:14} {bytes:8} B  {ours:12.0} ns  {theirs:12.0} ns  {:.2}  {chosen}",
                    theirs / ours
                );
            }
        }
        if speaks {
            println!("{}", in_words(name, &ratios));
        }
        all.extend(ratios);
    }
    if speaks {
        println!("{}", in_words("all", &all));
    }
    Ok(())
}

fn request(kind: Kind, ranks: usize, bytes: usize, irregular: bool) -> Request {
    let elements = bytes / size_of::<f32>();
    let request = Request::new(kind, ranks, elements).element_bytes(size_of::<f32>() as u64);
    if irregular {
        request.blocks(
            (0..ranks)
                .map(|r| elements / (1 + r % 2))
                .collect::<Vec<_>>(),
        )
    } else {
        request
    }
}

/// Prints what ping-pongs between the first two ranks take, by the library's blocking functions and
/// by this crate.
fn ping_pongs(world: &mut World) -> oneport::Result<()> {
    const REPETITIONS: usize = 5000;
    for bytes in MESSAGES {
        let elements = bytes / size_of::<f32>();
        let schedule = ping_pong(world.size(), elements)?;
        let run = Run::<f32>::new(&schedule)
            .op(Op::SUM)
            .repetitions(REPETITIONS)
            .warmup(2);
        let runs = [run.clone(), run.by_blocking_messages()];
        let outcomes = interleave(world, &runs, |_, _| {})?;
        let [ours, theirs] = medians(&outcomes)?;
        if world.rank() == 0 {
            println!(
                "  {:14} {bytes:8} B  {ours:12.0} ns  {theirs:12.0} ns  {:.2}",
                "ping-pong",
                theirs / ours
            );
        }
    }
    Ok(())
}

/// A message from rank 0 to rank 1, and one back.
fn ping_pong(ranks: usize, elements: usize) -> oneport::Result<Schedule> {
    let (here, there) = (Span::new(0, elements), Span::new(elements, elements));
    let mut programs = vec![Vec::new(); ranks];
    programs[0] = vec![Step::send(1, here), Step::recv(1, there)];
    programs[1] = vec![Step::recv(0, there), Step::send(0, here)];
    let layout = Layout {
        len: 2 * elements,
        input: here.into(),
        output: here.into(),
    };
    let layouts = vec![layout; ranks];
    Schedule::new(Ports::UNI, Collective::Allreduce, layouts, programs)
}

/// The medians of the rows, in nanoseconds.
fn medians<const N: usize>(outcomes: &[MeasuredRun]) -> oneport::Result<[f64; N]> {
    let medians: Vec<f64> = outcomes
        .iter()
        .map(|outcome| outcome.wall.median_ns().max(1) as f64)
        .collect();
    medians
        .try_into()
        .map_err(|_| failed(format!("{} outcomes instead of {N}", outcomes.len())))
}

/// The algorithms and segments to be measured: those that are the fastest in the model, and the
/// same algorithms with other segments.
fn candidates(request: &Request) -> oneport::Result<Vec<Choice>> {
    let kind = request.get_collective();
    let (mut ranked, mut refusals) = (Vec::new(), Vec::new());
    for algorithm in registry::of(kind) {
        match with_best_segments(algorithm, request) {
            Ok(choice) => ranked.push(choice),
            Err(refusal) => refusals.push(refusal),
        }
    }
    if let Some(refusal) = refusals.pop().filter(|_| ranked.is_empty()) {
        return Err(refusal.into());
    }
    ranked.sort_by(|a: &Choice, b| a.time.total_cmp(&b.time));
    let mut candidates: Vec<Choice> = Vec::new();
    let add = |choice: Choice, candidates: &mut Vec<Choice>| {
        let same = |other: &Choice| {
            other.algorithm.name() == choice.algorithm.name()
                && other.request.get_segments() == choice.request.get_segments()
        };
        if !candidates.iter().any(same) {
            candidates.push(choice);
        }
    };
    let segmented = |choice: &&Choice| choice.algorithm.segmented;
    let of_segments = ranked.iter().filter(segmented).take(2);
    for choice in ranked.iter().take(ALGORITHMS).chain(of_segments.clone()) {
        add(choice.clone(), &mut candidates);
    }
    for choice in of_segments {
        for bytes in SEGMENTS {
            let size = bytes / size_of::<f32>();
            if size < request.elements() {
                let mut other = choice.clone();
                other.variant.request =
                    (other.variant.request).segments(Segments::of_size(request.elements(), size)?);
                add(other, &mut candidates);
            }
        }
    }
    Ok(candidates)
}

/// The fastest of the candidates in words, and the medians of its schedule and of the library's
/// function, in nanoseconds.
fn measure(world: &mut World, request: &Request) -> oneport::Result<(String, [f64; 2])> {
    let operator = if request.get_collective().reduces() {
        Operator::<f32>::try_from(Op::SUM)?
    } else {
        Operator::none()
    };
    let bytes = request.elements() * size_of::<f32>();
    let repetitions = ((64 << 20) / bytes.max(1)).clamp(30, 1000);
    let candidates = candidates(request)?;
    let schedules: Vec<Schedule> = candidates
        .iter()
        .map(|choice| choice.plan())
        .collect::<oneport::Result<_>>()?;
    let run = |schedule| Run::new(schedule).op(&operator).warmup(2);
    let first_look = |schedule| run(schedule).repetitions(repetitions.min(100));
    let looks: Vec<_> = schedules.iter().map(first_look).collect();
    let looks = interleave(world, &looks, |_, _| {})?;
    let fastest = (0..schedules.len()).min_by_key(|&i| looks[i].wall.median_ns());
    let fastest = fastest.unwrap_or_default();
    let run = run(&schedules[fastest]).verified().repetitions(repetitions);
    let outcomes = interleave(world, &[run.clone(), run.by_library()], |_, _| {})?;
    if let Some(mismatch) = outcomes.iter().find_map(|row| row.error.as_ref()) {
        return Err(failed(format!(
            "{}: {mismatch}",
            request.get_collective().name()
        )));
    }
    let Variant {
        algorithm, request, ..
    } = &candidates[fastest].variant;
    let count = request.get_segments().sizes().len();
    let segments = if algorithm.segmented && count > 1 {
        format!(", {count} segments")
    } else {
        String::new()
    };
    Ok((
        format!("{}{segments}", algorithm.name()),
        medians(&outcomes)?,
    ))
}

/// The geometric mean, and the smallest ratio of vectors that are not short.
fn in_words(name: &str, ratios: &[(usize, f64)]) -> String {
    let logs: f64 = ratios.iter().map(|(_, ratio)| ratio.ln()).sum();
    let mean = (logs / ratios.len() as f64).exp();
    let long = ratios.iter().filter(|(bytes, _)| *bytes >= SHORT);
    let worst = long.min_by(|a, b| a.1.total_cmp(&b.1));
    let worst = worst.map_or(String::new(), |(bytes, ratio)| {
        format!(", from 1 KiB on at least {ratio:.2} ({bytes} B)")
    });
    format!(
        "{name}: geometric mean of {} points {mean:.2}{worst}",
        ratios.len()
    )
}

fn failed(message: String) -> Error {
    ErrorKind::System(message).into()
}
