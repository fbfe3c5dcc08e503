//! Costs of typical machines, for choices where nothing has been measured.

use super::Profile;
use oneport::run::Place;

/// Two cores of one processor: between calibrations of two virtual machines, with their cores close
/// together and far apart. A message takes up to four times as long between cores far apart, but
/// the same algorithms are chosen nearly everywhere.
const SHARED_MEMORY: &str = r#"{
    "machine": {"cpu": "built-in costs of shared memory", "os": "", "cores": 2},
    "alpha": 170, "beta": 0.014, "gamma": 0.003, "gamma_copy": 0.01, "shared_alpha": 1600,
    "pieces": {
        "transfer": [
            {"from": 0, "alpha": 110, "beta": 1.8},
            {"from": 32, "alpha": 167, "beta": 0.025},
            {"from": 16384, "alpha": 397, "beta": 0.011},
            {"from": 4194304, "alpha": -150597, "beta": 0.047}
        ],
        "combine": [
            {"from": 0, "alpha": 0, "beta": 0.6},
            {"from": 16, "alpha": 9.6, "beta": 0.003}
        ],
        "combine_local": [
            {"from": 0, "alpha": 0, "beta": 0.045},
            {"from": 262144, "alpha": 5243, "beta": 0.025}
        ],
        "copy": [
            {"from": 0, "alpha": 0, "beta": 0.01},
            {"from": 262144, "alpha": -2621, "beta": 0.02},
            {"from": 4194304, "alpha": -212336, "beta": 0.07}
        ]
    }
}"#;

/// Processes of an MPI library on one host: between calibrations over Open MPI and over Intel MPI.
const MESSAGES_WITHIN_A_HOST: &str = r#"{
    "machine": {"cpu": "built-in costs of messages within a host", "os": "", "cores": 2},
    "alpha": 455, "beta": 0.07, "gamma": 0.015, "gamma_copy": 0.01,
    "pieces": {
        "transfer": [
            {"from": 0, "alpha": 400, "beta": 0.33},
            {"from": 8192, "alpha": 2530, "beta": 0.07}
        ],
        "combine": [{"from": 0, "alpha": 0, "beta": 0.015}],
        "combine_local": [{"from": 0, "alpha": 0, "beta": 0.06}],
        "copy": [{"from": 0, "alpha": 0, "beta": 0.01}]
    }
}"#;

/// Processes on several hosts: the default costs of the command line, those of a fast network.
/// Combining and copying take as long as within a host.
const MESSAGES_BETWEEN_HOSTS: &str = r#"{
    "machine": {"cpu": "built-in costs of messages between hosts", "os": "", "cores": 2},
    "alpha": 1000, "beta": 0.1, "gamma": 0.015, "gamma_copy": 0.01
}"#;

impl Profile {
    /// Returns typical costs of messages between the ranks of `place`, for a choice where nothing
    /// has been measured: of shared memory if they are threads, otherwise of messages within a host
    /// or between hosts. [`Machine::cpu`](super::Machine::cpu) says which.
    ///
    /// A [calibration](crate::calibrate()) knows better.
    pub fn built_in(place: &impl Place) -> Profile {
        let text = match place.processes() {
            None => SHARED_MEMORY,
            Some(processes) if processes.hosts.len() < 2 => MESSAGES_WITHIN_A_HOST,
            Some(_) => MESSAGES_BETWEEN_HOSTS,
        };
        Profile::from_json(text).expect("a valid profile")
    }
}
