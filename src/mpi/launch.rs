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

/// The number in the first of these environment variables that has one.
fn number(names: &[&str]) -> Option<usize> {
    let value = |name: &&str| std::env::var(name).ok()?.parse().ok();
    names.iter().find_map(value)
}
