//! `oneport tune`: finds the fastest algorithm and segment size for each vector size.

mod files;
mod job;
mod report;
mod verify;

use std::ops::{ControlFlow, RangeInclusive};

use oneport::run::Op;
use oneport_formats::selection::Library;
use oneport_measure::tune::{self, Measure, TuningResult};

use crate::args::SameBits;
use crate::forms::{AlgorithmList, AlgorithmNames, Root};
use crate::prelude::*;
use crate::site;
use crate::sweep::{SweepArgs, Written as _};
use crate::task::take_measured_tree;
use files::Files;
use job::{CoreUse, TuneJob};
use verify::VerifyJob;

options! {
    /// Measure algorithms and segment sizes over a range of vector sizes, and find the best.
    #[derive(Debug)]
    #[examples = "\
Examples:
  oneport tune reduce -p 2 --bytes 1KiB..64KiB --dtype f32 --budget 1s
  oneport tune reduce -p 8 --clock paced --alpha 200us --bytes 64KiB -a chain --html r.html
  oneport tune broadcast -p 4 --bytes 4KiB..16KiB --budget 1s --csv b.csv --rules tuned.json
  oneport run broadcast -p 4 --bytes 10KiB --rules tuned.json
  oneport tune broadcast -p 4 --bytes 4KiB..16KiB --budget 1s --export openmpi=bcast.conf
  mpirun -n 4 oneport tune allreduce --bytes 8..1MiB --dtype f32 --csv c.csv --export mpich=c.json
  MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE=c.json MPIR_CVAR_ALLREDUCE_DEVICE_COLLECTIVE=0 mpirun -n 4 oneport tune allreduce \
    --bytes 8..1MiB --dtype f32 --verify c.csv --export mpich=c.json

The search starts at the segment size that is best in the model, brackets the measured optimum by factors of two (wider where it \
stands at an edge) and refines it; repetitions go where times cannot be told apart yet, until they can (95% confidence intervals of the \
medians) or differ by no more than --tolerance, or --budget is spent. Costs without a unit are nanoseconds.

Ctrl-C ends the sweep: what was measured is kept, written to -o, --csv and --html (not to --rules) and printed, and the exit code is 130. \
The same command with the same --csv FILE, or -o FILE.csv, continues there; rows in FILE are not measured again, and other sizes and numbers of ranks \
are added. If FILE has all rows, it may be from another machine: then nothing is measured, and the other files are written. \
A second Ctrl-C ends at once. SIGTERM and SIGHUP end the sweep in the same way; under nohup it goes on. Over MPI the library's own \
function is measured interleaved with the best of each algorithm, and Ctrl-C ends at once: what --csv holds is kept."]
    pub(crate) struct TuneArgs {
        /// The collective (`oneport list` shows those that can be planned)
        collective: Kind = KindName { is_placed: true },

        /// Sizes of the vector (of one rank's block of gather, scatter, allgather, alltoall): a
        /// range such as 64KiB..1MiB, by factors of --factor and with its end, a list, or both
        bytes: Ranges = Sizes { value: "SIZE..SIZE|SIZE,...", default: Some("1KiB..1MiB") },

        /// Factor from one size of a range to the next
        factor: usize = Count { value: "FACTOR", default: Some("2") },

        /// Algorithms to be measured, or `all` that can be used here
        algorithms: AlgorithmNames = AlgorithmList {
            shorts: &['a'], value: "NAME,...|all", default: Some("all"), aliases: &["algorithm"],
        },

        /// Number of ranks [default: 8, or as many as --costs describes]
        ranks: Option<Ranges> = Ranks { shorts: &['p', 'n'] },

        /// The root, or `free` to let the algorithm choose it where it can
        root: Option<Root> = RootName,

        /// Type of the elements [default: u8, or the first that --op combines]
        dtype: Option<ElementType> = TypeName,

        /// Operator of reductions; affine maps (u64) do not commute, so operand order is then kept
        /// [default: sum]
        op: Option<Op> = OpName,

        /// Keep operand order even though the operator commutes
        ordered: bool = Switch,

        /// Take only algorithms that give all ranks of an allreduce the same bits of a sum of
        /// floats; with =tree those that add all elements in one tree, the same for all sizes: the
        /// one with the least total of measured times
        same_bits: Option<SameBits> = SameBits {
            value: "ranks|tree", alone: Some("ranks"), behind_equals: true,
            only_in_long_help: true,
        },

        /// Run flat out, or at the pace of the cost model
        clock: Clock = ClockName { default: Some("native"), heading: Some("Measurement") },

        /// Time to be spent (seconds, or with a unit); each size has its share
        budget: Duration = Budget {
            default: Some("60s"), takes_dashes: true, heading: Some("Measurement"),
        },

        _repetitions: Option<()> = NoRepetitions {
            long: Some("repetitions"),
            hidden_aliases: &["reps", "iters"], is_hidden: true,
        },

        /// Difference between two times that does not matter, in percent
        tolerance: f64 = Tolerance { default: Some("2"), heading: Some("Measurement") },

        /// Sizes of segments to try, instead of those around the best: `powers`, all powers of two
        /// in elements, and the whole vector
        segments: Option<Tried> = Tried {
            value: "powers", only_in_long_help: true, heading: Some("Measurement"),
        },

        /// Run ranks as threads, or as the processes that mpirun or srun started [default: mpi if
        /// they did]
        pub(crate) engine: Option<Engine> = Engine { heading: Some("Measurement") },

        inputs: InputArgs = Group { heading: Some("Measurement") },

        /// Cores to pin the ranks to, in turn, such as 0,2,4 or 0-3 [default: all]
        cores: Vec<RangeInclusive<usize>> = Core { is_list: true, heading: Some("Measurement") },

        /// Write all rows as CSV, and continue the sweep that it holds
        csv: Option<PathBuf> = Output { heading: Some("Output") },

        /// Begin anew, whatever the CSV file holds
        restart: bool = Switch { heading: Some("Output") },

        /// Write a page with plots to hover over
        html: Option<PathBuf> = Output { heading: Some("Output") },

        sweep: SweepArgs = Group,

        /// Write which algorithm and segment size to choose when, for `--rules` of run, simulate,
        /// plan and check; rules for other settings in the file stay
        rules: Option<PathBuf> = Output { heading: Some("Output") },

        /// Write the selection file of an MPI library, from times over MPI or else model times:
        /// openmpi, openmpi-json (from version 6 on), mpich (from 4.1 on) or intel (to be sourced).
        /// Over MPI it names an algorithm only where that beats the library's own choice, as is
        /// measured, by more than --tolerance; elsewhere the library decides
        export: Vec<(Library, PathBuf)> = Selection { heading: Some("Output") },

        /// Over MPI, instead of a sweep: measure the library's own function again, in turns with
        /// the best rows of the sweep that --csv wrote to this file, and say where it has become
        /// faster or slower. Give the library the exported file, and otherwise the same options as
        /// before. With --export, the file is written again with only the rules that have made it
        /// faster
        verify: Option<Source> = File {
            conflicts: &["csv", "html", "output", "plain", "rules", "show", "top", "width"],
            heading: Some("Output"),
        },

        /// Print one JSON object instead of text
        json: bool = Switch { heading: Some("Output") },

        machine: MachineArgs = Group { heading: Some("Machine") },
    }
}

choices! {
    /// Which sizes of segments are tried.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Tried {
        Powers = "powers",
    }
}

impl Command for TuneArgs {
    fn json_forms() -> JsonForms {
        type Job = &'static TuneJob<'static>;
        JsonForms::new()
            .of(|(job, cores, tuning): (Job, _, _)| job.json(cores, tuning, &[], 0))
            .of(|job: &'static VerifyJob| job.json())
    }

    fn engine(&self) -> Option<Engine> {
        self.engine
    }

    fn answer(&self, site: &mut Site) -> Result<Answer> {
        if let Some(file) = &self.verify {
            return site.perform(VerifyJob::new(self, site, file))?.answer();
        }
        site.perform(PreparedSweep::new(self, site))?.answer()
    }
}

struct PreparedSweep<'a> {
    job: TuneJob<'a>,
    files: Files<'a>,
}

struct Tuned<'a> {
    sweep: PreparedSweep<'a>,
    threads: CoreUse,
    tuning: TuningResult,
    warnings: Vec<String>,
    /// Whether the rows could be kept.
    saved: Result<()>,
}

impl<'a> PreparedSweep<'a> {
    fn new(args: &'a TuneArgs, site: &Site) -> Result<PreparedSweep<'a>> {
        let mut job = TuneJob::new(args, site)?;
        let files = Files::open(&mut job)?;
        Ok(PreparedSweep { job, files })
    }
}

impl<'a> site::Job for PreparedSweep<'a> {
    type Done = Tuned<'a>;

    fn fact(&self) -> String {
        let sweep = &self.job.sweep;
        let names = sweep.algorithms.iter().map(|algorithm| algorithm.name());
        format!(
            "tunes {} for {:?} bytes, of which {} times are known, within {:?} to {}%",
            names.collect::<Vec<_>>().join(", "),
            sweep.bytes,
            self.files.known.len(),
            sweep.budget,
            100.0 * sweep.tolerance
        )
    }

    fn perform(self, site: &mut Site) -> Result<Tuned<'a>> {
        let job = &self.job;
        let threads = CoreUse::of(job, site)?;
        // Processes cannot stop at the same step: a signal ends them as it always does.
        let stop = match site.world {
            None => site.caller.stop()?,
            Some(_) => Arc::default(),
        };
        let (mut tuning, saved) = if job.place.is_elsewhere {
            measure(job, &self.files, &mut FromFile, &stop)?
        } else {
            measure(job, &self.files, &mut job.live(site)?, &stop)?
        };
        let sums = job.sweep.request.get_same_bits();
        if sums && job.args.same_bits == Some(SameBits::Tree) && !tuning.rows.is_empty() {
            let tree = take_measured_tree(&job.sweep, &mut tuning)?;
            tuning.tree = Some(tree);
        }
        let warnings = job.warnings(&threads, &tuning);
        Ok(Tuned {
            sweep: self,
            threads,
            tuning,
            warnings,
            saved,
        })
    }
}

impl Tuned<'_> {
    fn answer(mut self) -> Result<Answer> {
        let saved = std::mem::replace(&mut self.saved, Ok(()));
        // Results are printed even if writing a file fails.
        let written = saved.and(self.write_files());
        let (job, tuning) = (&self.sweep.job, &self.tuning);
        job.caller.notes(&self.warnings);
        let answer = answer(&job.caller, job.args.json, &self.answered(), |out| {
            report::print(out, job, &self.threads, tuning)
        })?;
        let answer = answer.and(written);
        if !tuning.interrupted {
            return Ok(answer);
        }
        Ok(answer.interrupted(format!(
            "interrupted: {} kept; {}",
            match tuning.rows.len() {
                1 => "1 row is".to_string(),
                n => format!("{n} rows are"),
            },
            match self.sweep.files.csv {
                Some(path) => format!("the same command continues from {}", path.display()),
                None => "with --csv FILE the same command could continue there".to_string(),
            }
        )))
    }
}

/// For a sweep whose rows are all known.
struct FromFile;

impl Measure for FromFile {
    fn measure(&mut self, _: &Algorithm, _: &Request, _: usize) -> oneport::Result<Vec<u64>> {
        Err(Error::usage(
            "a row is missing in the file of another place",
        ))
    }

    fn now(&self) -> Duration {
        Duration::ZERO
    }
}

/// Performs the sweep and saves rows during it. The second result tells whether saving succeeded.
fn measure(
    job: &TuneJob,
    files: &Files<'_>,
    live: &mut dyn Measure,
    stop: &AtomicBool,
) -> Result<(TuningResult, Result<()>)> {
    if job.sweep.budget.is_zero() && !job.place.is_elsewhere {
        job.caller.note(
            "with a budget of 0 each combination is measured a few times only: no winner is settled",
        );
    }
    let bar = WorkBar::new(&job.caller, 0, "{bar:16} {wide_msg}");
    let mut rows_saved = files.known.len();
    let mut saved = Ok(());
    let tuning = tune::tune(&job.sweep, &files.known, live, &mut |progress| {
        if stop.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        bar.set(progress.spent.as_millis(), progress.budget.as_millis());
        bar.name(&in_words(progress));
        if progress.measured > rows_saved {
            rows_saved = progress.measured;
            saved = files.save(&job.caller, &progress.rows());
            // The other processes go on, and so does the one that writes.
            if saved.is_err() && job.processes.is_none() {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    });
    bar.finish();
    Ok((tuning?, saved))
}

fn in_words(progress: &tune::Progress<'_>) -> String {
    let seconds = progress.budget.saturating_sub(progress.spent).as_secs();
    let left = match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m} min {s:02} s"),
        (h, m, _) => format!("{h} h {m:02} min"),
    };
    // What is measured comes first: a narrow terminal cuts the end.
    format!(
        "{} {} {}, {}/{}, {left} left",
        show_bytes(progress.bytes),
        progress.algorithm,
        show_bytes(progress.segment),
        progress.done,
        progress.points,
    )
}

const LIBRARIES: [(&str, Library); 4] = [
    ("openmpi", Library::OpenMpi),
    ("openmpi-json", Library::OpenMpiJson),
    ("mpich", Library::Mpich),
    ("intel", Library::Intel),
];

/// Whether `--export` knows a library of this name.
pub fn is_library(name: &str) -> bool {
    LIBRARIES.iter().any(|(library, _)| *library == name)
}

forms! {
    /// A library, and a file for it.
    Selection: (Library, PathBuf) = "LIBRARY=FILE", by parse_export;
    /// What a sweep has no use for.
    NoRepetitions: () = "", by no_repetitions;
}

fn parse_export(text: &str) -> Result<(Library, PathBuf), String> {
    let (name, file) = text.split_once('=').unwrap_or((text, ""));
    let library = LIBRARIES.iter().find(|l| l.0 == name);
    match library {
        Some(&(_, library)) if !file.is_empty() => Ok((library, PathBuf::from(file))),
        _ => Err(format!(
            "'{text}' is not LIBRARY=FILE, with openmpi, openmpi-json, mpich or intel as the library"
        )),
    }
}

fn no_repetitions(_: &str) -> Result<(), String> {
    Err("tune chooses the repetitions: give a longer --budget, or a --tolerance".into())
}
