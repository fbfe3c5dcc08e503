//! The machine that the options describe: ports, costs and cores.

use anyhow::{Context, Result, bail};
use oneport::internal::budget::memory::COST_PAIR_BYTES;
use oneport::machine::{Level, Links};
use oneport::run::{Tuning, Workers};
use oneport::{CostModel, Ports};
use oneport_measure::Profile;
use oneport_measure::estimate::CoreModel;
use serde::Deserialize;

use crate::args::MachineArgs;
use crate::files::Source;
use crate::memory::ensure_memory;
use crate::units::Unit;

/// Default costs of a fast local network, in nanoseconds and nanoseconds per byte. Computation is
/// free by default.
const DEFAULT_ALPHA: f64 = 1000.0;
const DEFAULT_BETA: f64 = 0.1;

impl MachineArgs {
    /// Returns the port model; `given` holds unless an option overrides it.
    pub(crate) fn ports(&self, given: Ports) -> Result<Ports> {
        let ports = self.ports.map_or(given, |ports| ports.with_k(given.k()));
        match self.ported {
            None => Ok(ports),
            Some(k @ 1..=Ports::MAX_K) => Ok(ports.with_k(k)),
            Some(k) => bail!(
                "--ported is {k}: a rank has 1 to {} ports of each kind",
                Ports::MAX_K
            ),
        }
    }

    /// Returns the cost model and the unit of its times, for this many ranks if a cost file does
    /// not say how many there are.
    pub(crate) fn cost(&self, ranks: Option<usize>) -> Result<(CostModel, Unit)> {
        if let Some(path) = &self.costs {
            let (cost, unit) = read_costs(path, ranks)?;
            return Ok((cost.overlap(self.overlap), unit));
        }
        if let Some(profile) = self.profile()? {
            let profile = self.overriding(profile);
            ensure_pairs_fit(&profile.levels, None)?;
            let cost = profile.cost()?.overlap(self.overlap);
            return Ok((cost, Unit::Nanoseconds));
        }
        let value = |arg: Option<crate::units::TimeArg>, default| arg.map_or(default, |t| t.value);
        let cost = CostModel::new(
            value(self.alpha, DEFAULT_ALPHA),
            value(self.beta, DEFAULT_BETA),
        )
        .gamma(value(self.gamma, 0.0))
        .gamma_copy(value(self.gamma_copy, 0.0))
        .overlap(self.overlap);
        cost.validate()?;
        let mut given = self.rates().into_iter().flatten().peekable();
        let plain = given.peek().is_some() && given.all(|t| !t.has_unit);
        let unit = if plain {
            Unit::Plain
        } else {
            Unit::Nanoseconds
        };
        Ok((cost, unit))
    }

    /// Returns the core model of a native run of `ranks` ranks on `cores` cores with these workers,
    /// if a profile has one and no option overrides its costs.
    pub(crate) fn core_model(
        &self,
        workers: Workers,
        ranks: usize,
        cores: usize,
    ) -> Result<Option<CoreModel>> {
        if self.rates().iter().any(Option::is_some) {
            return Ok(None);
        }
        let profile = self.profile()?;
        Ok(profile.and_then(|profile| profile.core_model(workers, ranks, cores)))
    }

    pub(crate) fn tuning(&self) -> Result<Tuning> {
        let profile = self.profile()?;
        Ok(profile.map_or_else(Tuning::default, |profile| profile.tuning))
    }

    /// The profile that an option names, or the built-in one.
    fn profile(&self) -> Result<Option<Profile>> {
        let Some(file) = &self.profile else {
            return Ok(self.built_in.clone());
        };
        let profile = Profile::from_json(&file.read()?);
        Ok(Some(
            profile.with_context(|| file.path().display().to_string())?,
        ))
    }

    /// Returns the profile with the costs that options override: what describes them in more detail
    /// is dropped.
    fn overriding(&self, mut profile: Profile) -> Profile {
        let pieces = profile.pieces.get_or_insert_default();
        if self.alpha.is_some() || self.beta.is_some() {
            pieces.transfer.clear();
            profile.levels.clear();
        }
        if self.gamma.is_some() {
            pieces.combine.clear();
            pieces.combine_local.clear();
        }
        if self.gamma_copy.is_some() {
            pieces.copy.clear();
        }
        for (given, cost) in [
            (self.alpha, &mut profile.alpha),
            (self.beta, &mut profile.beta),
            (self.gamma, &mut profile.gamma),
            (self.gamma_copy, &mut profile.gamma_copy),
        ] {
            *cost = given.map_or(*cost, |time| time.value);
        }
        profile
    }
}

/// Reads the costs of all pairs from a cost file or a profile, and their unit. They are for this
/// many ranks if the file does not say how many there are.
pub(crate) fn read_costs(file: &Source, ranks: Option<usize>) -> Result<(CostModel, Unit)> {
    let text = file.read()?;
    let cost = |(links, unit)| Ok((CostModel::heterogeneous(links)?, unit));
    let read = links(&text, ranks).and_then(cost);
    read.with_context(|| file.name())
}

/// Refuses levels of so many ranks that memory does not suffice for the costs of all pairs, however
/// short they are.
fn ensure_pairs_fit(levels: &[Level], ranks: Option<usize>) -> Result<()> {
    let ranks = match levels {
        [] => None,
        // What else is wrong with them is told by whoever expands them.
        levels => Level::ranks(levels).ok().or(ranks),
    };
    let ranks = ranks.unwrap_or(0) as u128;
    let what = format!("the costs of the pairs of {ranks} ranks");
    ensure_memory(
        &what,
        ranks * ranks * u128::from(COST_PAIR_BYTES),
        "describe fewer ranks",
    )
}

fn links(text: &str, ranks: Option<usize>) -> Result<(Links, Unit)> {
    let value = serde_json::from_str::<serde_json::Value>(text).ok();
    let levels = value.as_ref().and_then(|value| value.get("levels"));
    if let Some(levels) = levels.and_then(|levels| Vec::<Level>::deserialize(levels).ok()) {
        ensure_pairs_fit(&levels, ranks)?;
    }
    // A cost file has matrices where a profile has numbers.
    if value.is_some_and(|v| v.get("alpha").is_some_and(serde_json::Value::is_number)) {
        return match Profile::from_json(text)?.links()? {
            Some(links) => Ok((links, Unit::Nanoseconds)),
            None => bail!(
                "a profile with neither pairs nor levels: calibrate with --pairs, or use it as --profile"
            ),
        };
    }
    Ok((Links::for_ranks(text, ranks)?, Unit::Plain))
}
