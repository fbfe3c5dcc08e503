//! Whether a library that was launched in an environment obeys a file of rules.

use oneport::error::{Error, Result};
use oneport::schedule::collective::Kind;

use super::Library;
use super::tables::{Family, INTEL};

/// Beginnings of the names of variables that choose algorithms, by the beginning of the name that
/// their library calls itself.
const CHOOSING: [(&str, &[&str]); 3] = [
    ("Open MPI", &["OMPI_MCA_coll_"]),
    (
        "MPICH",
        &[
            "MPIR_CVAR_COLL_",
            "MPIR_CVAR_DEVICE_COLLECTIVES",
            "MPIR_CVAR_ALL",
            "MPIR_CVAR_BCAST",
            "MPIR_CVAR_GATHER",
            "MPIR_CVAR_REDUCE",
            "MPIR_CVAR_SCATTER",
        ],
    ),
    ("Intel", &["I_MPI_ADJUST_", "I_MPI_TUNING_BIN"]),
];

const OMPI_FILE: &str = "OMPI_MCA_coll_tuned_dynamic_rules_filename";
const OMPI_ACTIVE: &str = "OMPI_MCA_coll_tuned_use_dynamic_rules";
const MPICH_FILE: &str = "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE";
const MPICH_DEVICE: &str = "MPIR_CVAR_DEVICE_COLLECTIVES";
const INTEL_FILE: &str = "I_MPI_TUNING_BIN";

/// Whether a variable with this name chooses algorithms of an MPI library.
pub fn chooses(variable: &str) -> bool {
    let mut starts = CHOOSING.iter().flat_map(|(_, starts)| starts.iter());
    starts.any(|start| variable.starts_with(start))
}

/// Makes sure that the library that calls itself `version` obeys the variables of `environment`
/// that choose its algorithms for `collective`, if there are any. `exists` says whether there is a
/// file.
///
/// # Errors
/// If a file that they name is not there, or the library does not look at it, or all of them are
/// another library's.
pub fn ensure_obeyed(
    version: &str,
    collective: Kind,
    environment: &[(String, String)],
    exists: impl Fn(&str) -> bool,
) -> Result<()> {
    let get = |name: &str| {
        let found = environment.iter().find(|(n, _)| n == name);
        found
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    };
    let fail = |what: String| Err(Error::usage(what));
    let chosen = || environment.iter().filter(|(name, _)| chooses(name));
    let own = CHOOSING.iter().find(|(name, _)| version.starts_with(name));
    let is_own =
        |name: &str| own.is_none_or(|(_, s)| s.iter().any(|start| name.starts_with(start)));
    if let Some((name, _)) = chosen().next()
        && !chosen().any(|(name, _)| is_own(name))
    {
        return fail(format!("{version} does not look at {name}"));
    }
    for variable in [OMPI_FILE, MPICH_FILE, INTEL_FILE] {
        if let Some(file) = get(variable).filter(|file| is_own(variable) && !exists(file)) {
            return fail(format!("{variable} names {file}, which is not there"));
        }
    }
    if let Some(file) = get(OMPI_FILE).filter(|_| is_own(OMPI_FILE)) {
        let active = get(OMPI_ACTIVE).unwrap_or("0").to_lowercase();
        if ["0", "false", "f", "no", "n", "disabled"].contains(&&*active) {
            return fail(format!(
                "Open MPI does not look at {file}: {OMPI_ACTIVE} is not 1"
            ));
        }
        if file.ends_with(".json") {
            Library::OpenMpiJson.ensure_reads(version)?;
        }
    }
    if let Some(file) = get(MPICH_FILE).filter(|_| is_own(MPICH_FILE)) {
        Library::Mpich.ensure_reads(version)?;
        let device = get(MPICH_DEVICE).unwrap_or("percoll");
        let variables = Library::Mpich.device_variables(collective);
        let on = variables.iter().find(|variable| get(variable) != Some("0"));
        if let Some(variable) = on.filter(|_| device != "none") {
            return fail(format!(
                "MPICH does not look at {file} for {}: {variable} is not 0",
                collective.name()
            ));
        }
        if device == "all" {
            return fail(format!(
                "MPICH does not look at {file}: {MPICH_DEVICE} is all"
            ));
        }
    }
    if let Some(family) = Family::find(INTEL, collective).filter(|_| is_own("I_MPI_ADJUST_")) {
        let variable = format!("I_MPI_ADJUST_{}", family.name);
        if let Some((other, _)) = chosen().find(|(name, _)| name.starts_with("I_MPI_ADJUST_"))
            && get(&variable).or(get(INTEL_FILE)).is_none()
        {
            return fail(format!(
                "{other} is not for {}: {variable} is not set",
                collective.name()
            ));
        }
    }
    Ok(())
}
