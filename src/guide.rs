//! The pages of the `docs` folder: a guide to algorithms, file formats and commands.
//!
//! - [`algorithms`]: all algorithms, with their rounds, volume and sources
//! - [`nodes`]: algorithms composed for machines with nodes, and traffic by level
//! - [`bits`]: which number comes out of a reduction, on which rank and at which place
//! - [`time`]: late ranks, latency, and senders that do not wait
//! - [`schedule_format`]: the JSON form of a schedule
//! - [`write_your_own`]: an algorithm of your own, as a schedule and as a rank program
//! - [`teaching`]: exercises, and how submissions are checked
//! - [`mpi`]: runs on the processes of a cluster
//! - [`python`]: the library in Python and in notebooks
//! - [`results`]: measured figures
//! - [`optimal`]: the fewest rounds for few ranks
//! - [`papers`]: what the papers state, and the commands that show it; [`errata`]: what they err in
//! - [`commands`]: one page for each command

/// A module whose documentation is a page of `docs`. The links between pages are references; the
/// first definition of a reference counts, so these lead to modules instead of files.
macro_rules! page {
    ($name:ident, $file:literal) => {
        #[doc = "[algorithms]: crate::guide::algorithms"]
        #[doc = "[nodes]: crate::guide::nodes"]
        #[doc = "[bits]: crate::guide::bits"]
        #[doc = "[time]: crate::guide::time"]
        #[doc = "[schedule-format]: crate::guide::schedule_format"]
        #[doc = "[shared-ports]: crate::guide::schedule_format#shared-ports"]
        #[doc = "[write-your-own]: crate::guide::write_your_own"]
        #[doc = "[teaching]: crate::guide::teaching"]
        #[doc = "[mpi]: crate::guide::mpi"]
        #[doc = "[python]: crate::guide::python"]
        #[doc = "[results]: crate::guide::results"]
        #[doc = "[optimal]: crate::guide::optimal"]
        #[doc = "[papers]: crate::guide::papers"]
        #[doc = "[errata]: crate::guide::errata"]
        #[doc = "[steady]: crate::guide::commands::steady"]
        #[doc = "[atlas]: crate::guide::commands::atlas"]
        #[doc = "[calibrate]: crate::guide::commands::calibrate"]
        #[doc = "[inputs]: crate::guide::commands::run#inputs-and-other-benchmarks"]
        #[doc = "[import]: crate::guide::commands::import"]
        #[doc = "[check]: crate::guide::commands::check"]
        #[doc = "[compare]: crate::guide::commands::compare"]
        #[doc = "[draw]: crate::guide::commands::draw"]
        #[doc = "[list]: crate::guide::commands::list"]
        #[doc = "[plan]: crate::guide::commands::plan"]
        #[doc = "[run]: crate::guide::commands::run"]
        #[doc = "[simulate]: crate::guide::commands::simulate"]
        #[doc = "[synthesize]: crate::guide::commands::synthesize"]
        #[doc = "[tune]: crate::guide::commands::tune"]
        #[doc = ""]
        #[doc = include_str!(concat!("../docs/", $file, ".md"))]
        pub mod $name {}
    };
}

page!(algorithms, "algorithms");
page!(nodes, "nodes");
page!(bits, "bits");
page!(time, "time");
page!(schedule_format, "schedule-format");
page!(write_your_own, "write-your-own");
page!(teaching, "teaching");
page!(mpi, "mpi");
page!(python, "python");
page!(results, "results");
page!(optimal, "optimal");
page!(papers, "papers");
page!(errata, "errata");

/// The commands of the command line.
pub mod commands {
    page!(atlas, "commands/atlas");
    page!(bits, "commands/bits");
    page!(calibrate, "commands/calibrate");
    page!(check, "commands/check");
    page!(compare, "commands/compare");
    page!(draw, "commands/draw");
    page!(export, "commands/export");
    page!(guidelines, "commands/guidelines");
    page!(import, "commands/import");
    page!(list, "commands/list");
    page!(plan, "commands/plan");
    page!(run, "commands/run");
    page!(schema, "commands/schema");
    page!(simulate, "commands/simulate");
    page!(steady, "commands/steady");
    page!(synthesize, "commands/synthesize");
    page!(tune, "commands/tune");
}
