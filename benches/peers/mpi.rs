//! Finding, building and running MPI libraries, and oneCCL over Intel MPI.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{OPS, Point, Timing};

/// An MPI library.
pub(crate) struct MpiLibrary {
    pub(crate) name: String,
    kind: Kind,
    mpiexec: PathBuf,
    /// The folder above `bin`, which Intel's tools need.
    home: PathBuf,
    driver: PathBuf,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    OpenMpi,
    Mpich,
    Intel,
    /// oneCCL, in processes of Intel MPI.
    OneCcl,
}

/// Options and environment variables of a run.
pub(crate) struct Setting {
    pub(crate) name: &'static str,
    options: &'static [&'static str],
    variables: &'static [(&'static str, &'static str)],
}

impl MpiLibrary {
    /// Returns every library whose compiler wrapper is found and builds the driver.
    pub(crate) fn all() -> Vec<MpiLibrary> {
        let mut folders = Vec::new();
        for variable in ["ONEPORT_MPI", "PATH"] {
            if let Some(paths) = std::env::var_os(variable) {
                folders.extend(std::env::split_paths(&paths));
            }
        }
        let mut seen = BTreeSet::new();
        let mut found = Vec::new();
        for folder in folders {
            for suffix in ["", ".openmpi", ".mpich"] {
                let mpicc = folder.join(format!("mpicc{suffix}"));
                let mpiexec = folder.join(format!("mpiexec{suffix}"));
                let (Ok(real), true) = (mpicc.canonicalize(), mpiexec.is_file()) else {
                    continue;
                };
                // One script under two names in the same folder is one library.
                if !seen.insert((folder.canonicalize().ok(), real)) {
                    continue;
                }
                match MpiLibrary::build(&mpicc, mpiexec, &folder, found.len()) {
                    Ok(library) => {
                        println!("{} ({})", library.name, mpicc.display());
                        let is_intel = library.kind == Kind::Intel;
                        found.push(library);
                        if is_intel {
                            match MpiLibrary::build_oneccl(&mpicc, &found[found.len() - 1]) {
                                Ok(library) => found.push(library),
                                Err(reason) => println!("oneCCL skipped: {reason}"),
                            }
                        }
                    }
                    Err(reason) => println!("{} skipped: {reason}", mpicc.display()),
                }
            }
        }
        found
    }

    fn build(
        mpicc: &Path,
        mpiexec: PathBuf,
        folder: &Path,
        number: usize,
    ) -> Result<MpiLibrary, String> {
        let home = folder.parent().unwrap_or(folder).to_path_buf();
        let version = Command::new(&mpiexec).arg("--version").output();
        let version = version.map_err(|e| e.to_string())?.stdout;
        let version = String::from_utf8_lossy(&version).into_owned();
        let number_in = |text: &str| {
            text.split_whitespace()
                .find(|w| w.starts_with(|c: char| c.is_ascii_digit()))
                .unwrap_or("")
                .trim_end_matches(',')
                .to_string()
        };
        let (kind, name) = if version.contains("Intel") {
            (Kind::Intel, "Intel MPI")
        } else if version.contains("Open MPI") || version.contains("OpenRTE") {
            (Kind::OpenMpi, "Open MPI")
        } else {
            (Kind::Mpich, "MPICH")
        };
        let driver = target()?.join(format!("driver-{number}"));
        compile(
            Command::new(mpicc)
                .env("I_MPI_ROOT", &home)
                .args(["-O3", "-o"])
                .arg(&driver)
                .arg(source("driver.c")),
        )?;
        Ok(MpiLibrary {
            name: format!("{name} {}", number_in(&version)),
            kind,
            mpiexec,
            home,
            driver,
        })
    }

    /// Builds the driver for the oneCCL that is installed beside Intel MPI.
    fn build_oneccl(mpicc: &Path, intel: &MpiLibrary) -> Result<MpiLibrary, String> {
        let (include, lib) = (intel.home.join("include"), intel.home.join("lib"));
        if !include.join("oneapi/ccl.hpp").is_file() {
            return Err(format!(
                "not beside Intel MPI in {}; install oneccl-cpu, oneccl-cpu-devel and intel-cmplr-lib-rt there",
                intel.home.display()
            ));
        }
        let target = target()?;
        let [object, driver] = ["oneccl.o", "driver-oneccl"].map(|name| target.join(name));
        compile(
            Command::new("g++")
                .args(["-O3", "-c", "-o"])
                .arg(&object)
                .arg("-I")
                .arg(&include)
                .arg(source("oneccl.cpp")),
        )?;
        // The wheel's library names this one as needed, but lacks it and takes nothing of it.
        let empty = target.join("libccl.so.2");
        compile(
            Command::new("g++")
                .args([
                    "-shared",
                    "-x",
                    "c++",
                    "/dev/null",
                    "-Wl,-soname,libccl.so.2",
                    "-o",
                ])
                .arg(&empty),
        )?;
        compile(
            Command::new(mpicc)
                .env("I_MPI_ROOT", &intel.home)
                .args(["-O3", "-DONECCL", "-o"])
                .args([&driver, &source("driver.c"), &object])
                .arg("-L")
                .arg(&lib)
                .args(["-Wl,--no-as-needed", "-lccl"])
                .arg(&empty)
                .args(["-lintlc", "-lstdc++"])
                .arg(format!("-Wl,-rpath,{}:{}", lib.display(), target.display())),
        )?;
        println!("oneCCL ({})", include.display());
        Ok(MpiLibrary {
            name: "oneCCL".into(),
            kind: Kind::OneCcl,
            mpiexec: intel.mpiexec.clone(),
            home: intel.home.clone(),
            driver,
        })
    }

    /// Returns the settings worth trying.
    #[expect(clippy::too_many_lines, reason = "a table")]
    pub(crate) fn settings(&self, oversubscribed: bool) -> Vec<Setting> {
        let setting = |name, options, variables| Setting {
            name,
            options,
            variables,
        };
        match (self.kind, oversubscribed) {
            (Kind::OpenMpi, false) => vec![
                setting("", &["--bind-to", "none"], &[]),
                setting(
                    "adapt",
                    &["--bind-to", "none", "--mca", "coll_adapt_priority", "90"],
                    &[],
                ),
            ],
            (Kind::OpenMpi, true) => vec![
                setting(
                    "yield",
                    &[
                        "--oversubscribe",
                        "--bind-to",
                        "none",
                        "--mca",
                        "mpi_yield_when_idle",
                        "1",
                    ],
                    &[],
                ),
                setting(
                    "yield, adapt",
                    &[
                        "--oversubscribe",
                        "--bind-to",
                        "none",
                        "--mca",
                        "mpi_yield_when_idle",
                        "1",
                        "--mca",
                        "coll_adapt_priority",
                        "90",
                    ],
                    &[],
                ),
            ],
            (Kind::Mpich, false) => vec![setting("", &["-bind-to", "none"], &[])],
            // MPICH does not yield. With these settings it sleeps for the shortest possible time as
            // soon as it finds nothing to do.
            (Kind::Mpich, true) => vec![setting(
                "throttle",
                &["-bind-to", "none"],
                &[
                    ("MPIR_CVAR_CH4_PROGRESS_THROTTLE", "1"),
                    ("MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT", "1"),
                ],
            )],
            (Kind::Intel, false) => vec![setting(
                "shm",
                &[],
                &[("I_MPI_PIN", "0"), ("I_MPI_FABRICS", "shm")],
            )],
            // Without offloading, the calling thread does what worker threads on the same core
            // would do.
            (Kind::OneCcl, false) => vec![setting(
                "mpi, shm, no workers",
                &[],
                &[
                    ("I_MPI_PIN", "0"),
                    ("I_MPI_FABRICS", "shm"),
                    ("CCL_ATL_TRANSPORT", "mpi"),
                    ("CCL_WORKER_OFFLOAD", "0"),
                ],
            )],
            (Kind::OneCcl, true) => vec![setting(
                "mpi, shm, yield, no workers",
                &[],
                &[
                    ("I_MPI_PIN", "0"),
                    ("I_MPI_FABRICS", "shm"),
                    ("I_MPI_THREAD_YIELD", "3"),
                    ("CCL_ATL_TRANSPORT", "mpi"),
                    ("CCL_WORKER_OFFLOAD", "0"),
                ],
            )],
            (Kind::Intel, true) => vec![setting(
                "shm, yield",
                &[],
                &[
                    ("I_MPI_PIN", "0"),
                    ("I_MPI_FABRICS", "shm"),
                    ("I_MPI_THREAD_YIELD", "3"),
                ],
            )],
        }
    }

    /// Runs all points in one start of the library.
    pub(crate) fn run(
        &self,
        setting: &Setting,
        p: usize,
        cores: &[usize],
        budget_us: u64,
        points: &[Point],
    ) -> Result<Vec<(Point, Timing)>, String> {
        let is_offered = |p: &&Point| self.kind != Kind::OneCcl || !p.op.ends_with("erv");
        let points: Vec<&Point> = points.iter().filter(is_offered).collect();
        let cores: Vec<String> = cores.iter().map(usize::to_string).collect();
        // MPICH has no setting that yields, so a point may take many times its budget.
        let limit = (60 + points.len() * 4).to_string();
        let output = Command::new("timeout")
            .arg(limit)
            .arg(&self.mpiexec)
            .env("I_MPI_ROOT", &self.home)
            .env("CCL_ROOT", &self.home)
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
            .envs(setting.variables.iter().copied())
            .args(setting.options)
            .args(["-n", &p.to_string()])
            .arg(&self.driver)
            .args([cores.join(","), budget_us.to_string()])
            .args(points.iter().map(|p| format!("{}:{}", p.op, p.bytes)))
            .output()
            .map_err(|e| e.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let timings: Vec<_> = text.lines().filter_map(timing).collect();
        if timings.len() < points.len() {
            let message = String::from_utf8_lossy(&output.stderr).into_owned();
            println!(
                "{} {} p = {p}: {} of {} points ({})",
                self.name,
                setting.name,
                timings.len(),
                points.len(),
                message.lines().next().unwrap_or("out of time")
            );
        }
        Ok(timings)
    }
}

/// The folder for what is built.
fn target() -> Result<PathBuf, String> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("oneport-peers");
    std::fs::create_dir_all(&target).map_err(|e| e.to_string())?;
    Ok(target)
}

/// A file beside this one.
fn source(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers");
    folder.join(name)
}

/// Runs a compiler; the first line of what it says if it fails.
fn compile(command: &mut Command) -> Result<(), String> {
    let built = command.output().map_err(|e| e.to_string())?;
    if built.status.success() {
        return Ok(());
    }
    let reason = String::from_utf8_lossy(&built.stderr).into_owned();
    let first = reason.lines().next();
    Err(first.unwrap_or("does not build").to_string())
}

/// Parses an output line of the driver.
fn timing(line: &str) -> Option<(Point, Timing)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [op, bytes, _, min, median, right] = words[..] else {
        return None;
    };
    let point = Point {
        op: OPS.into_iter().find(|o| *o == op)?,
        bytes: bytes.parse().ok()?,
    };
    let timing = Timing {
        min: min.parse().ok()?,
        median: median.parse().ok()?,
        right: right == "1",
    };
    Some((point, timing))
}
