//! A machine's measured cost parameters, as a JSON file.

mod built_in;

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::estimate::{CoreModel, choose_native, is_for};
use super::fit::FAR_OFF;
use oneport::error::{Error, Result};
use oneport::internal::numbers::refuses_cost;
use oneport::internal::{json_object, longest_copied};
use oneport::machine::{CostModel, Eager, Level, Links, Pieces};
use oneport::plan::Request;
use oneport::plan::choose::{Choice, choose};
use oneport::run::{Team, Tuning, Workers, allowed_cores};
use oneport_pictures::svg::bytes;

/// The result of [`calibrate`](super::calibrate()): times in nanoseconds, sizes in bytes.
///
/// Its JSON form is an object with these fields. Only `alpha` and `beta` are required, so a profile
/// can be written by hand.
///
/// Messages are described in up to three ways: for all pairs of ranks alike (`alpha` and `beta`, or
/// `pieces`), by `levels`, and by `pairs`. [`Profile::cost`] takes the levels if there are any, and
/// what holds for all pairs otherwise; [`Profile::links`], where each pair must have costs of its
/// own, takes the pairs, or else the levels.
///
/// ```
/// use oneport_measure::Profile;
/// let profile = Profile::from_json(r#"{"alpha": 200, "beta": 0.05, "gamma": 0.01}"#)?;
/// assert_eq!(profile.cost()?.transfer(0, 1, 1000), 250.0);
/// # Ok::<(), oneport::Error>(())
/// ```
#[derive(schemars::JsonSchema, Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// The measured machine.
    #[serde(default)]
    pub machine: Machine,
    /// Measured cores: the first two, or all of them if pairs were measured.
    #[serde(default)]
    pub cores: Vec<usize>,
    /// Date of the calibration in UTC: `2025-01-31T23:59:59Z`.
    #[serde(default)]
    pub date: String,
    /// Version of this crate that ran the calibration.
    #[serde(default)]
    pub version: String,
    /// `rewritten` before each repetition, or `kept`; empty if it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub inputs: String,
    /// Start-up time of a message, from the single line fitted to all sizes.
    #[schemars(range(min = 0.0, max = 1e100))]
    pub alpha: f64,
    /// Time per byte of a message, from the single line fitted to all sizes.
    #[schemars(range(min = 0.0, max = 1e100))]
    pub beta: f64,
    /// Additional time per byte for combining a message into the receiver's data.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1e100))]
    pub gamma: f64,
    /// Time per byte of a local copy.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1e100))]
    pub gamma_copy: f64,
    /// Part of the start-up time that keeps no port, which `alpha` leaves out. Pairs and levels
    /// have their own.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(range(min = 0.0, max = 1e100))]
    pub latency: f64,
    /// By how much the measured latency differs in the median over the sizes to 1 KiB, relative.
    #[serde(default, skip_serializing_if = "is_default")]
    pub latency_error: f64,
    /// Which messages do not wait for their receivers.
    #[serde(default, skip_serializing_if = "is_default")]
    pub eager: Eager,
    /// Start-up time of a message between two ranks that share one core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1e100))]
    pub shared_alpha: Option<f64>,
    /// Median relative error of the model over the points (of the pieces, if there are any).
    #[serde(default)]
    pub fit_error: f64,
    /// Largest relative error of the model over the points.
    #[serde(default)]
    pub fit_error_worst: f64,
    /// Median relative error of the single line `alpha + beta * n`.
    #[serde(default)]
    pub line_error: f64,
    /// Largest relative error of the single line.
    #[serde(default)]
    pub line_error_worst: f64,
    /// For each point, the relative difference between its typical and its fastest sample; this is
    /// the median over all points.
    #[serde(default)]
    pub noise: f64,
    /// Piecewise linear costs, if one line does not fit all sizes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pieces: Option<Pieces>,
    /// Of a calibration over MPI: the host of each rank. [`Profile::cores`] and
    /// [`Profile::pairs`] are ranks then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Costs between all pairs of `cores`, in the form of a cost file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs: Option<Links>,
    /// Costs by level, of ranks on several hosts: in each host, then between them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<Level>,
    /// Messages, time of one direction.
    #[serde(default)]
    pub points: Vec<Point>,
    /// Messages that the receiver combines into its data.
    #[serde(default)]
    pub combine_points: Vec<Point>,
    /// Simultaneous messages in both directions, after which each rank combines the received data
    /// into the data it sent.
    #[serde(default)]
    pub combine_local_points: Vec<Point>,
    /// Local copies.
    #[serde(default)]
    pub copy_points: Vec<Point>,
    /// Constants of the machine that differ from the default ones; written by hand.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tuning: Tuning,
    /// Warnings about the quality of the figures.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// Description of a machine.
#[derive(schemars::JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Machine {
    /// Model of the processor.
    pub cpu: String,
    /// Operating system and its version.
    pub os: String,
    /// Number of cores that this process may use.
    pub cores: usize,
}

/// A measured time and the model's prediction: sizes in bytes, times in nanoseconds.
#[derive(schemars::JsonSchema, Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Size.
    pub bytes: u64,
    /// Measured time.
    pub time: f64,
    /// Predicted time. For an empty message this is the start-up time, although schedules send no
    /// empty messages.
    pub predicted: f64,
    /// `(predicted - time) / time`.
    pub residual: f64,
}

impl Profile {
    /// Reads the JSON form.
    ///
    /// # Errors
    /// Names the field that is missing, is not a valid cost or piece, or is a constant of the
    /// machine out of range; or levels that are refused as by [`Links::of_levels`], or describe
    /// other ranks than hosts or pairs.
    pub fn from_json(text: &str) -> Result<Profile> {
        let what = "not a profile (`calibrate` makes one)";
        let profile: Profile = json_object(what, "alpha, beta and gamma", text)?;
        for (name, value) in [
            ("alpha", profile.alpha),
            ("beta", profile.beta),
            ("gamma", profile.gamma),
            ("gamma_copy", profile.gamma_copy),
            ("latency", profile.latency),
            ("shared_alpha", profile.shared_alpha.unwrap_or(0.0)),
        ] {
            if let Some(why) = refuses_cost(value) {
                return Err(Error::malformed(format!(
                    "profile: {name} is {value:?}: {why}"
                )));
            }
        }
        profile.tuning.validate()?;
        let within = |e: Error| Error::malformed(format!("profile: {e}"));
        if let Some(pieces) = &profile.pieces {
            pieces.validate().map_err(within)?;
        }
        if let Some(pairs) = &profile.pairs {
            CostModel::heterogeneous(pairs.clone()).map_err(within)?;
        }
        if !profile.levels.is_empty() {
            let ranks = Level::ranks(&profile.levels).map_err(within)?;
            let pairs = profile.pairs.as_ref().map_or(0, |pairs| pairs.alpha.len());
            for (what, n) in [("hosts", profile.hosts.len()), ("pairs", pairs)] {
                if n != 0 && n != ranks {
                    return Err(Error::malformed(format!(
                        "profile: levels of {ranks} ranks, but {what} of {n}"
                    )));
                }
            }
        }
        Ok(profile)
    }

    /// Writes the JSON form.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Returns the cost model: that of the levels if there are any, with linear costs of combining
    /// and copying; otherwise the same for all pairs of ranks, with pieces if there are any.
    ///
    /// # Errors
    /// If the costs are not valid. Those of [`Profile::from_json`] and of a calibration are.
    pub fn cost(&self) -> Result<CostModel> {
        let line = self.line();
        line.validate()?;
        match (self.links_of_levels()?, &self.pieces) {
            (Some(links), _) => CostModel::heterogeneous(links),
            (None, Some(pieces)) => line.pieces(pieces.clone()),
            (None, None) => Ok(line),
        }
    }

    /// Returns the costs of each pair of ranks: the pairs if there are any, otherwise those of the
    /// levels; `None` without either.
    ///
    /// # Errors
    /// As [`Profile::cost`].
    pub fn links(&self) -> Result<Option<Links>> {
        match &self.pairs {
            Some(pairs) => Ok(Some(pairs.clone())),
            None => self.links_of_levels(),
        }
    }

    fn links_of_levels(&self) -> Result<Option<Links>> {
        if self.levels.is_empty() {
            return Ok(None);
        }
        let links = Links::of_levels(&self.levels)?;
        let ranks = links.alpha.len();
        Ok(Some(Links {
            gamma: vec![self.gamma; ranks],
            gamma_copy: vec![self.gamma_copy; ranks],
            eager: self.eager,
            ..links
        }))
    }

    /// Returns the core model of a native run of `ranks` ranks with these workers on `cores` cores,
    /// for [`choose_native`](super::estimate::choose_native). Returns `None` if every rank has a
    /// thread and the cost of sharing a core was not measured.
    pub fn core_model(&self, workers: Workers, ranks: usize, cores: usize) -> Option<CoreModel> {
        let pieces = self.pieces.as_ref();
        let first = pieces.and_then(|p| p.transfer.first());
        let overhead = first
            .map_or(self.alpha, |piece| piece.alpha)
            .min(self.tuning.own_work_ns);
        let multiplexed = workers == Workers::Cores;
        Some(CoreModel {
            cores,
            overhead,
            switch: if multiplexed {
                overhead * self.tuning.worker_switch_share
            } else {
                self.shared_alpha?
            },
            eager: u64::MAX,
            copied: longest_copied(workers, ranks, cores),
            multiplexed,
            tuning: self.tuning,
        })
    }

    /// Returns the algorithm and segments for a native run of `request` on `team`: those that
    /// finish first by the [estimate](choose_native), or in the model of this profile's costs where
    /// an estimate would take too long or the cost of sharing a core is not known.
    ///
    /// The request's own costs are replaced. For an [MPI world](oneport::mpi::World) there is no
    /// estimate: `request.plan_best(&profile.cost()?)` chooses in the model.
    ///
    /// ```
    /// use oneport::run::{Op, Run, Team};
    /// use oneport::Request;
    /// use oneport_measure::Profile;
    /// let mut team = Team::new(2)?;
    /// let profile = Profile::built_in(&team);
    /// let choice = profile.choose(&Request::allreduce(2, 1 << 20).element_bytes(4), &team)?;
    /// let schedule = choice.plan()?;
    /// assert!(Run::<f32>::new(&schedule).op(Op::SUM).verified().on(&mut team)?.is_verified());
    /// # Ok::<(), oneport::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`choose()`]; also as [`Profile::cost`].
    pub fn choose(&self, request: &Request, team: &Team) -> Result<Choice> {
        let request = request.clone().cost(self.cost()?);
        let core_model = self.core_model(team.workers(), team.ranks(), team.cores());
        match core_model.filter(|_| is_for(&request)) {
            Some(core_model) => choose_native(&request, &core_model),
            None => choose(&request),
        }
    }

    /// Refuses a profile whose model is off by half where messages were measured.
    ///
    /// # Errors
    /// [`ErrorKind::System`](oneport::ErrorKind::System) with the worst of them.
    pub fn ensure_close(&self) -> Result<()> {
        let messages = self.points.iter().map(|point| ("a message", point));
        let combined = self.combine_points.iter();
        let combined = combined.map(|point| ("a message that is combined", point));
        let off = |(_, point): &(&str, &Point)| point.residual.abs();
        let worst = messages
            .chain(combined)
            .max_by(|a, b| off(a).total_cmp(&off(b)));
        match worst.filter(|worst| off(worst) > FAR_OFF) {
            None => Ok(()),
            Some((what, point)) => Err(Error::system(format!(
                "calibration refused: the model is off by {:.0}% for {what} of {}, {}: stop what else is running and try again",
                100.0 * point.residual.abs(),
                bytes(point.bytes),
                if point.residual < 0.0 {
                    "too short"
                } else {
                    "too long"
                }
            ))),
        }
    }

    /// Returns the cost model of the single line, without pieces or levels.
    pub fn line(&self) -> CostModel {
        CostModel::new(self.alpha, self.beta)
            .gamma(self.gamma)
            .gamma_copy(self.gamma_copy)
            .latency(self.latency)
            .eager(self.eager)
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Machine {
    /// Describes the machine that this process runs on.
    pub fn this() -> Machine {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let info = read("/proc/cpuinfo");
        let model = info
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| matches!(name.trim(), "model name" | "Model" | "cpu model"))
            .map(|(_, model)| model.trim().to_string());
        let release = read("/proc/sys/kernel/osrelease");
        Machine {
            cpu: model.unwrap_or_else(|| std::env::consts::ARCH.to_string()),
            os: format!("{} {}", std::env::consts::OS, release.trim())
                .trim()
                .to_string(),
            cores: allowed_cores().len(),
        }
    }
}

/// The current time in UTC, formatted as `2025-01-31T23:59:59Z`.
pub fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}
