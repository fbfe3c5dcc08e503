//! `oneport calibrate`: measures alpha, beta and gamma of this machine.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use oneport::ErrorKind;
use oneport::machine::{Level, Links, Piece, Pieces};
use oneport::mpi::World;
use oneport_measure::{Calibration, Point, Profile, calibrate, calibrate_on};

use crate::output;
use crate::site::{Engine, Site};
use crate::units::{TimeUnit, show_bytes, significant};

/// Measure what messages, combining and copying cost on this machine.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  oneport calibrate --quick                                 a first look, in about two seconds
  oneport calibrate --quick -o machine.json                 a profile for --profile
  mpirun -n 4 oneport calibrate -o cluster.json             between processes, by level if on several hosts
  mpirun -n 4 oneport calibrate --pairs -o cluster.json     between processes, every pair: for --costs

A ping-pong between two pinned ranks, 0 B to 32 MiB (--quick: 16 MiB), in the state in which collectives run: each rank has just written \
what it sends. The line alpha + beta*n is fitted to relative errors, and disturbed samples count for nothing; where one line \
does not fit all sizes, pieces do. gamma is what combining adds to receiving. Commands that take --alpha and --beta take the profile by --profile \
FILE and then calculate in nanoseconds; simulate and the model clock of run use the pieces. The fit is refused (exit 1) where it means \
nothing: with fewer than two cores or processes, on a machine that is too busy, or where it is off by half at some size (--force takes it then).")]
pub(crate) struct Args {
    /// The two cores to measure, or more with --pairs, such as 0,2 [default: the first two; with
    /// --pairs all]
    #[arg(long, value_name = "CORE,CORE,...", value_delimiter = ',')]
    cores: Vec<usize>,

    /// Measure every pair of cores, or of processes: the profile then has matrices, which --costs
    /// takes as well
    #[arg(long)]
    pairs: bool,

    /// Measure between threads of this process, or between the processes that mpirun or srun
    /// started [default: mpi if started by a launcher]
    #[arg(long, value_name = "threads|mpi")]
    engine: Option<Engine>,

    /// Fewer sizes, less time
    #[arg(long)]
    quick: bool,

    /// Take the profile even if it is noisy, or off by half at some size
    #[arg(long)]
    force: bool,

    /// Write the profile to a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Print the profile, one JSON object, instead of text
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Where the ranks run.
    pub(crate) fn engine(&self) -> Engine {
        Engine::given_or_implied(self.engine)
    }
}

/// Calibrates, saves the profile and prints it.
pub(crate) fn run(args: &Args, site: &mut Site, out: &mut dyn Write) -> Result<ExitCode> {
    site.join(args.engine())?;
    site.agree(output::writable(&[("-o", args.output.as_deref())]))?;
    let what = match args.pairs {
        true => "every pair of processes",
        false => "one link of each class",
    };
    let quick = if args.quick { " quickly" } else { "" };
    site.ensure_same(format!("measures {what}{quick}"))?;
    let options = Calibration {
        cores: (!args.cores.is_empty()).then(|| args.cores.clone()),
        pairs: args.pairs,
        quick: args.quick,
        force: args.force,
    };
    let bar = ProgressBar::new(0);
    let style = "{bar:40} {percent}%, {eta} left";
    bar.set_style(ProgressStyle::with_template(style).unwrap_or(ProgressStyle::default_bar()));
    if !site.speaks() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    let progress = |done: usize, of: usize| {
        bar.set_length(of as u64);
        bar.set_position(done as u64);
    };
    let profile = match &mut site.world {
        None => calibrate(&options, progress),
        Some(world) => between_processes(world, &options, progress),
    };
    bar.finish_and_clear();
    let profile = profile?;
    for warning in &profile.warnings {
        output::note(warning);
    }
    let refused = match args.force {
        true => Ok(()),
        false => refuse_far_off(&profile),
    };
    site.agree(refused)?;
    if let Some(path) = &args.output {
        output::write_file(path, profile.to_json().as_bytes())?;
    }
    if args.json {
        write!(out, "{}", profile.to_json())?;
    } else {
        print(out, &profile)?;
        if let Some(path) = &args.output {
            writeln!(out, "\nwritten to {}", path.display())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Measures the links between the processes.
pub(crate) fn between_processes(
    world: &mut World,
    options: &Calibration,
    progress: impl FnMut(usize, usize),
) -> oneport::Result<Profile> {
    let hosts = world.host_names().to_vec();
    calibrate_on(world, &hosts, options, progress)
}

/// Refuses a profile whose model is off by half where it was measured.
fn refuse_far_off(profile: &Profile) -> Result<()> {
    /// Largest part of a measured time by which the model may be off.
    const FAR_OFF: f64 = 0.5;
    let points = [
        ("a message", &profile.points),
        ("a message that is combined", &profile.combine_points),
    ];
    let points = points
        .iter()
        .flat_map(|(what, points)| points.iter().map(move |point| (what, point)));
    let off = |(_, point): &(_, &Point)| point.residual.abs();
    let worst = points.max_by(|a, b| off(a).total_cmp(&off(b)));
    let Some((what, point)) = worst.filter(|worst| off(worst) > FAR_OFF) else {
        return Ok(());
    };
    let reason = format!(
        "calibration refused: the model is off by {:.0}% for {what} of {}: stop what else is running and try again, or take the profile all the same with --force",
        100.0 * point.residual.abs(),
        show_bytes(point.bytes)
    );
    Err(oneport::Error::from(ErrorKind::System(reason)).into())
}

fn print(out: &mut dyn Write, profile: &Profile) -> Result<()> {
    summary(out, profile)?;
    if let Some(list) = &profile.pieces {
        pieces(out, list)?;
    }
    writeln!(out)?;
    points(out, profile)?;
    if let Some(links) = &profile.pairs {
        pairs(out, profile, links)?;
    }
    levels(out, &profile.levels)
}

/// Prints the machine, the parameters and the quality of the fits.
fn summary(out: &mut dyn Write, profile: &Profile) -> Result<()> {
    let ns = |t: f64| TimeUnit::Nanoseconds.show(t);
    let percent = |x: f64| format!("{}%", significant((1000.0 * x).round() / 10.0, 3));
    let machine = &profile.machine;
    let rate = |rate: f64| {
        if rate > 0.0 {
            format!(
                "{} ns/byte ({:.0} GB/s)",
                significant((1e6 * rate).round() / 1e6, 4),
                1.0 / rate
            )
        } else {
            "0".to_string()
        }
    };
    output::summary(
        out,
        &[
            (
                "machine",
                format!("{}, {} cores, {}", machine.cpu, machine.cores, machine.os),
            ),
            measured_between(profile),
            ("date", profile.date.clone()),
            ("alpha", ns(profile.alpha)),
            ("beta", rate(profile.beta)),
            ("gamma", rate(profile.gamma)),
            ("gamma_copy", rate(profile.gamma_copy)),
            (
                "one line",
                format!(
                    "off by {} in the median, {} at worst",
                    percent(profile.line_error),
                    percent(profile.line_error_worst)
                ),
            ),
            (
                "in turns",
                match profile.shared_alpha {
                    Some(alpha) => format!(
                        "{} a message between ranks that share a core",
                        TimeUnit::Nanoseconds.show(alpha.round())
                    ),
                    None => "not measured".to_string(),
                },
            ),
            (
                "fit",
                format!(
                    "off by {} in the median, {} at worst",
                    percent(profile.fit_error),
                    percent(profile.fit_error_worst)
                ),
            ),
            ("noise", percent(profile.noise)),
        ],
    )
}

/// What was measured: cores, or processes of hosts.
fn measured_between(profile: &Profile) -> (&'static str, String) {
    let Some(first) = profile.hosts.first() else {
        let cores: Vec<_> = profile.cores.iter().map(usize::to_string).collect();
        return ("cores", cores.join(", "));
    };
    let text = match profile.hosts.iter().position(|host| host != first) {
        None => format!("{} on {first}", profile.hosts.len()),
        Some(other) => format!(
            "{}; messages between rank 0 on {first} and rank {other} on {}",
            profile.hosts.len(),
            profile.hosts[other]
        ),
    };
    ("processes", text)
}

/// Prints the pieces of all curves that have several.
fn pieces(out: &mut dyn Write, pieces: &Pieces) -> Result<()> {
    writeln!(out, "\npieces, where one line does not fit:")?;
    let lists = [
        ("message", &pieces.transfer),
        ("combining", &pieces.combine),
        ("combining own", &pieces.combine_local),
        ("copy", &pieces.copy),
    ];
    let rows = lists
        .iter()
        .flat_map(|(name, list)| list.iter().map(move |piece| row(name, piece)));
    output::table(out, &["", "from", "alpha", "ns/byte"], rows, &[1, 2, 3])
}

fn row(name: &str, piece: &Piece) -> [String; 4] {
    [
        name.to_string(),
        show_bytes(piece.from),
        TimeUnit::Nanoseconds.show(piece.alpha),
        significant(piece.beta, 4),
    ]
}

/// Prints a table by size of measured times and model errors: messages, combining messages,
/// exchanges followed by local combining, and copies.
fn points(out: &mut dyn Write, profile: &Profile) -> Result<()> {
    let find = |points: &[Point], bytes: u64| {
        let point = points.iter().find(|p| p.bytes == bytes);
        point.map_or(["-".to_string(), "-".to_string()], |p| {
            [
                TimeUnit::Nanoseconds.show(p.time.round()),
                format!("{:+.0}%", 100.0 * p.residual),
            ]
        })
    };
    let rows = profile.points.iter().map(|p| {
        let [message, off] = find(&profile.points, p.bytes);
        let [combined, combined_off] = find(&profile.combine_points, p.bytes);
        let [own, own_off] = find(&profile.combine_local_points, p.bytes);
        let [copy, copy_off] = find(&profile.copy_points, p.bytes);
        [
            show_bytes(p.bytes),
            message,
            off,
            combined,
            combined_off,
            own,
            own_off,
            copy,
            copy_off,
        ]
    });
    let header = [
        "size",
        "message",
        "model",
        "combined",
        "model",
        "exchanged, combined",
        "model",
        "copy",
        "model",
    ];
    output::table(out, &header, rows, &[0, 1, 2, 3, 4, 5, 6, 7, 8])
}

/// Prints the line of every pair of cores or ranks.
fn pairs(out: &mut dyn Write, profile: &Profile, pairs: &Links) -> Result<()> {
    let what = match profile.hosts.is_empty() {
        true => "cores",
        false => "ranks",
    };
    writeln!(out, "\nalpha (ns) and beta (ns/byte) of pairs of {what}:")?;
    let cores = &profile.cores;
    let rows = lines(pairs).map(|([i, j], line)| {
        let cost = |c: Option<f64>| c.map_or("-".to_string(), |c| significant(c, 4));
        [
            format!("{} - {}", cores[i], cores[j]),
            cost(line.map(|l| l.0)),
            cost(line.map(|l| l.1)),
        ]
    });
    output::table(out, &[what, "alpha", "beta"], rows, &[1, 2])
}

/// Prints the medians over the pairs on one host and over those on two.
fn levels(out: &mut dyn Write, levels: &[Level]) -> Result<()> {
    if levels.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nlevels, medians over the measured pairs:")?;
    let names = ["the same host", "different hosts"];
    let rows = names.iter().zip(levels).map(|(name, level)| {
        [
            name.to_string(),
            TimeUnit::Nanoseconds.show(level.alpha),
            significant(level.beta, 4),
        ]
    });
    output::table(out, &["", "alpha", "ns/byte"], rows, &[1, 2])
}

/// Each pair with its alpha and beta.
fn lines(pairs: &Links) -> impl Iterator<Item = ([usize; 2], Option<(f64, f64)>)> {
    let n = pairs.alpha.len();
    (0..n).flat_map(move |i| {
        (i + 1..n).map(move |j| {
            let line = pairs.alpha[i][j].zip(pairs.beta[i][j]);
            ([i, j], line)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_that_is_off_by_half_is_refused() {
        let mut profile = Profile::from_json(r#"{"alpha": 1, "beta": 1}"#).unwrap();
        let point = |bytes, residual| Point {
            bytes,
            time: 1.0,
            predicted: 1.0 + residual,
            residual,
        };
        profile.points = vec![point(8, -0.5), point(16, 0.1)];
        profile.combine_points = vec![point(1 << 20, 0.4)];
        assert!(refuse_far_off(&profile).is_ok());
        profile.combine_points.push(point(4 << 20, 0.51));
        let error = refuse_far_off(&profile).unwrap_err().to_string();
        assert!(error.contains("51%") && error.contains("4 MiB"), "{error}");
        profile.points.push(point(2048, -0.8));
        let error = refuse_far_off(&profile).unwrap_err().to_string();
        assert!(error.contains("80% for a message of 2 KiB"), "{error}");
    }
}
