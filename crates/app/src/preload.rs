//! `oneport preload`: the library that serves the collectives of any MPI program, and how to launch
//! one with it.

use crate::prelude::*;

const NAME: &str = "liboneport_mpi.so";

options! {
    /// Show how to launch an MPI program whose collectives oneport serves.
    #[derive(Debug)]
    #[examples = "\
Examples:
  oneport preload
  LD_PRELOAD=$(oneport preload --json | jq -r .library) ONEPORT_RULES=rules.json srun -n 16 ./app

The program is not changed: a library is put before it. Rules from `oneport tune --rules` over MPI say which calls are served by which \
algorithm; where no rule fits, schedules of your own serve (ONEPORT_SCHEDULE); irregular gathers and scatters are served by the adaptive tree; everything else is the MPI library's. See docs/mpi.md."]
    pub(crate) struct PreloadArgs {
        /// Print one JSON object instead of text
        json: bool = Switch,
    }
}

impl Command for PreloadArgs {
    fn json_forms() -> JsonForms {
        JsonForms::new().of(|()| json("", &[]))
    }

    fn answer(&self, site: &mut Site) -> Result<Answer> {
        let library = library()?;
        let path = library.display().to_string();
        let launch = [
            (
                "Open MPI",
                format!("mpirun -x LD_PRELOAD={path} -x ONEPORT_RULES=rules.json -n 16 ./app"),
            ),
            (
                "MPICH, Intel MPI",
                format!(
                    "mpirun -genv LD_PRELOAD {path} -genv ONEPORT_RULES rules.json -n 16 ./app"
                ),
            ),
            (
                "Slurm",
                format!("LD_PRELOAD={path} ONEPORT_RULES=rules.json srun -n 16 ./app"),
            ),
        ];
        answer(&site.caller, self.json, &json(&path, &launch), |out| {
            let mut summary = vec![("library", path.clone())];
            summary.extend(launch.clone());
            output::summary(out, &summary)
        })
    }
}

fn json(path: &str, launch: &[(&'static str, String)]) -> impl Answered {
    record! {
        library: path,
        /// By launcher: a line that launches a program with the library.
        launch: launch.iter().cloned().collect::<BTreeMap<_, _>>(),
    }
}

/// The library beside this program, or where an installation has it.
fn library() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let folder = program.parent().unwrap_or(Path::new("."));
    let places = [folder.join(NAME), folder.join("../lib").join(NAME)];
    let found = places.into_iter().find(|path| path.is_file());
    found.with_context(|| {
        format!(
            "{NAME} is not beside {}: `cargo build --release -p oneport-preload` makes it in target/release, which is then its place",
            program.display()
        )
    })
}
