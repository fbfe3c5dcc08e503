//! What the environment tells about the launch of this process, before the MPI library is loaded.

/// The rank of this process, if a launcher such as `mpirun` or `srun` started it.
pub fn rank() -> Option<usize> {
    number(&["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"])
}

/// The number of this process among those of its host, if the launcher says so.
pub fn local_rank() -> Option<usize> {
    number(&[
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "MPI_LOCALRANKID",
        "SLURM_LOCALID",
    ])
}

/// Whether a launcher started this process.
pub fn is_launched() -> bool {
    rank().is_some()
}

/// Whether a launcher started other processes beside this one, as far as it says.
pub fn has_others() -> bool {
    let size = size().or_else(|| number(&["SLURM_STEP_NUM_TASKS"]));
    is_launched() && size != Some(1)
}

/// The number of processes that the launcher started, if it says so.
pub(super) fn size() -> Option<usize> {
    number(&["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"])
}

/// Whether Open MPI's launcher started this process.
pub(super) fn is_by_open_mpi() -> bool {
    number(&["OMPI_COMM_WORLD_SIZE"]).is_some()
}

/// What a reader of times should know where the launcher has not bound each process to a core, with
/// the option that does.
pub fn unbound() -> String {
    let is_set = |name: &str| std::env::var_os(name).is_some();
    let is_intel = || {
        let mut names = std::env::vars_os().map(|(name, _)| name);
        names.any(|name| name.to_string_lossy().starts_with("I_MPI_"))
    };
    let how = if is_by_open_mpi() {
        ": mpirun --bind-to core does"
    } else if is_intel() {
        ": I_MPI_PIN=1 does"
    } else if is_set("SLURM_PROCID") {
        ": srun --cpu-bind=cores does"
    } else if is_set("PMI_RANK") {
        ": mpiexec -bind-to core does"
    } else {
        ""
    };
    format!(
        "the launcher has not bound each process to a core of its own, so that they may move and meet{how}"
    )
}

/// The number in the first of these environment variables that has one.
fn number(names: &[&str]) -> Option<usize> {
    let value = |name: &&str| std::env::var(name).ok()?.parse().ok();
    names.iter().find_map(value)
}
