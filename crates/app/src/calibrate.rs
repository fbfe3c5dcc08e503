//! `oneport calibrate`: measures alpha, beta and gamma of this machine.

use std::ops::RangeInclusive;

use oneport::ErrorKind;
use oneport::machine::{Eager, Level, Links, Piece, Pieces};
use oneport_measure::{Calibration, Point, Profile, calibrate, calibrate_on, load_warning};

use crate::prelude::*;
use crate::site;

options! {
    /// Measure what messages, combining and copying cost on this machine.
    #[derive(Debug)]
    #[examples = "\
Examples:
  oneport calibrate --quick                                 a first look, in about two seconds
  oneport calibrate --quick -o machine.json                 a profile for --profile
  mpirun -n 2 oneport calibrate --latency                   what keeps the ports, and what does not
  mpirun -n 4 oneport calibrate -o cluster.json             between processes, by level if on several hosts
  mpirun -n 4 oneport calibrate --pairs -o cluster.json     between processes, every pair: for --costs

A ping-pong between two pinned ranks, 0 B to 32 MiB (--quick: 16 MiB), in the state in which collectives run: each rank has just written \
what it sends (with --inputs kept it has been sent before, as run --inputs kept does). The line alpha + beta*n is fitted to relative errors, and disturbed samples count for nothing; where one line \
does not fit all sizes, pieces do. gamma is what combining adds to receiving. Commands that take --alpha and --beta take the profile by --profile \
FILE and then calculate in nanoseconds; simulate and the model clock of run use the pieces. The fit is refused (exit 1) where it means \
nothing: with fewer than two cores or processes, on a machine that is too busy, or where it is off by half at some size (--force takes it then)."]
    pub(crate) struct CalibrateArgs {
        /// The two cores to measure, or more with --pairs, such as 0,2 or 0-3 [default: the first
        /// two; with --pairs all]
        cores: Vec<RangeInclusive<usize>> = Core { is_list: true },

        /// Measure every pair of cores, or of processes: the profile then has matrices, which
        /// --costs takes as well
        pairs: bool = Switch,

        /// Measure, too, which part of a message's start-up time keeps no port, as half a ping-pong
        /// less what a message of a burst keeps its sender busy: alpha then leaves it out
        latency: bool = Switch,

        /// Measure between threads of this process, or between the processes that mpirun or srun
        /// started [default: mpi if started by a launcher]
        pub(crate) engine: Option<Engine> = Engine { value: "threads|mpi" },

        /// Fewer sizes, less time
        quick: bool = Switch,

        inputs: InputArgs = Group,

        /// Take the profile even if it is noisy, or off by half at some size
        force: bool = Switch,

        /// Write the profile to a file
        output: Option<PathBuf> = Output { shorts: &['o'] },

        /// Print the profile, one JSON object, instead of text
        json: bool = Switch,
    }
}

impl Command for CalibrateArgs {
    fn json_forms() -> JsonForms {
        JsonForms::new().of_file("profile")
    }

    fn engine(&self) -> Option<Engine> {
        self.engine
    }

    fn answer(&self, site: &mut Site) -> Result<Answer> {
        let files = site.caller.writable(&[("-o", self.output.as_deref())]);
        let profile = site.perform(files.map(|()| self.calibration()))?;
        if let Some(path) = &self.output {
            site.caller.write_file(path, profile.to_json().as_bytes())?;
        }
        let mut answer = answer(&site.caller, self.json, &(), |out| {
            print(out, &profile)?;
            if let Some(path) = &self.output {
                writeln!(out, "\nwritten to {}", path.display())?;
            }
            Ok(())
        })?;
        if self.json {
            answer.output = profile.to_json();
        }
        Ok(answer)
    }
}

impl CalibrateArgs {
    fn calibration(&self) -> Calibration {
        Calibration {
            cores: (!self.cores.is_empty()).then(|| self.cores.iter().cloned().flatten().collect()),
            pairs: self.pairs,
            latency: self.latency,
            quick: self.quick,
            keep_inputs: self.inputs.inputs.kept(),
            force: self.force,
        }
    }
}

impl site::Job for Calibration {
    type Done = Profile;

    fn fact(&self) -> String {
        let what = if self.pairs {
            "every pair of processes"
        } else {
            "one link of each class"
        };
        let quick = if self.quick { " quickly" } else { "" };
        let kept = if self.keep_inputs {
            ", inputs kept"
        } else {
            ""
        };
        let latency = if self.latency { ", latency too" } else { "" };
        format!("measures {what}{quick}{kept}{latency}")
    }

    fn perform(self, site: &mut Site) -> Result<Profile> {
        let cores = site.world.as_ref().map(|world| world.cores());
        if !self.quick && load_warning(cores).is_some() {
            site.caller.note(
                "the machine is busy: a first look may refuse it; stop what else is running, or take --quick",
            );
        }
        let bar = WorkBar::new(&site.caller, 0, "{bar:40} {percent}%, {eta} left");
        let profile = measure(&self, site, |done, of| bar.set(done, of));
        bar.finish();
        let mut profile = profile?;
        let close = profile.ensure_close();
        if let (true, Err(error)) = (self.force, &close) {
            profile.warnings.push(format!("taken by --force: {error}"));
        }
        site.caller.notes(&profile.warnings);
        if let (false, Err(error)) = (self.force, close) {
            let reason = format!("{error}, or take the profile all the same with --force");
            return Err(Error::from(ErrorKind::System(reason)).into());
        }
        Ok(profile)
    }
}

pub(crate) fn measure(
    options: &Calibration,
    site: &mut Site,
    progress: impl FnMut(usize, usize),
) -> oneport::Result<Profile> {
    match &mut site.world {
        None => calibrate(options, progress),
        Some(world) => {
            let hosts = world.host_names().to_vec();
            calibrate_on(world, &hosts, options, progress)
        }
    }
}

fn print(out: &mut Lines, profile: &Profile) -> Result<()> {
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

fn summary(out: &mut Lines, profile: &Profile) -> Result<()> {
    let percent = |x: f64| format!("{}%", number((1000.0 * x).round() / 10.0, 3));
    let off = |median: f64, worst: f64| {
        format!(
            "off by {} in the median, {} at worst",
            percent(median),
            percent(worst)
        )
    };
    let latency = match (profile.latency > 0.0, profile.eager) {
        (true, Eager::UpTo(bytes)) => format!(
            "{}, off by {} in the median; messages up to {} do not wait",
            show_ns(profile.latency),
            percent(profile.latency_error),
            show_bytes(bytes)
        ),
        _ => "in alpha (--latency tells them apart)".to_string(),
    };
    let machine = &profile.machine;
    let rate = |rate: f64| {
        if rate > 0.0 {
            format!(
                "{} ns/byte ({:.0} GB/s)",
                number((1e6 * rate).round() / 1e6, 4),
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
            ("inputs", profile.inputs.clone()),
            ("alpha", show_ns(profile.alpha)),
            ("latency", latency),
            ("beta", rate(profile.beta)),
            ("gamma", rate(profile.gamma)),
            ("gamma_copy", rate(profile.gamma_copy)),
            (
                "one line",
                off(profile.line_error, profile.line_error_worst),
            ),
            (
                "one core",
                match profile.shared_alpha {
                    Some(alpha) => format!(
                        "{} a message between ranks that share a core",
                        show_ns(alpha.round())
                    ),
                    None => "not measured".to_string(),
                },
            ),
            ("fit", off(profile.fit_error, profile.fit_error_worst)),
            ("noise", percent(profile.noise)),
        ],
    )
}

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

fn pieces(out: &mut Lines, pieces: &Pieces) -> Result<()> {
    writeln!(out, "\npieces, where one line does not fit:")?;
    let lists = [
        ("message", &pieces.transfer),
        ("combining", &pieces.combine),
        ("combining own", &pieces.combine_local),
        ("copy", &pieces.copy),
    ];
    let columns = Columns::<(&str, &Piece)>::default()
        .add("", |(name, _)| *name)
        .add(">from", |(_, piece)| show_bytes(piece.from))
        .add(">alpha", |(_, piece)| show_ns(piece.alpha))
        .add(">ns/byte", |(_, piece)| number(piece.beta, 4));
    let rows = lists.into_iter();
    let rows = rows.flat_map(|(name, list)| list.iter().map(move |piece| (name, piece)));
    output::table(out, &columns, rows)
}

/// Prints a table by size of measured times and model errors: messages, combining messages,
/// exchanges followed by local combining, and copies.
fn points(out: &mut Lines, profile: &Profile) -> Result<()> {
    let lists = [
        ("message", &profile.points),
        ("combined", &profile.combine_points),
        ("exchanged, combined", &profile.combine_local_points),
        ("copy", &profile.copy_points),
    ];
    let mut columns = Columns::<Point>::default().add(">size", |row| show_bytes(row.bytes));
    for (title, points) in lists {
        let of = |row: &Point| points.iter().find(|point| point.bytes == row.bytes);
        columns = columns
            .add(format!(">{title}"), move |row| {
                or_dash(of(row).map(|p| show_ns(p.time.round())))
            })
            .add(">model", move |row| {
                or_dash(of(row).map(|p| format!("{:+.0}%", 100.0 * p.residual)))
            });
    }
    output::table(out, &columns, &profile.points)
}

fn pairs(out: &mut Lines, profile: &Profile, pairs: &Links) -> Result<()> {
    let what = if profile.hosts.is_empty() {
        "cores"
    } else {
        "ranks"
    };
    writeln!(out, "\nalpha (ns) and beta (ns/byte) of pairs of {what}:")?;
    let cores = &profile.cores;
    let n = pairs.alpha.len();
    let both = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
    let cost =
        |of: &[Vec<Option<f64>>], &(i, j): &(usize, usize)| or_dash(of[i][j].map(|c| number(c, 4)));
    let columns = Columns::<(usize, usize)>::default()
        .add(what, |&(i, j)| format!("{} - {}", cores[i], cores[j]))
        .add(">alpha", |pair| cost(&pairs.alpha, pair))
        .add(">beta", |pair| cost(&pairs.beta, pair));
    output::table(out, &columns, both)
}

fn levels(out: &mut Lines, levels: &[Level]) -> Result<()> {
    if levels.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nlevels, medians over the measured pairs:")?;
    let names = ["the same host", "different hosts"];
    let columns = Columns::<(&str, &Level)>::default()
        .add("", |(name, _)| *name)
        .add(">alpha", |(_, level)| show_ns(level.alpha))
        .add(">ns/byte", |(_, level)| number(level.beta, 4))
        .add_if(
            levels.iter().any(|level| level.latency > 0.0),
            ">latency",
            |(_, level)| show_ns(level.latency),
        );
    output::table(out, &columns, names.into_iter().zip(levels))
}
