//! Selection rules: the algorithm and segment size to use for each vector size, as a readable JSON
//! file.
//!
//! ```json
//! { "oneport_rules": 1,
//!   "rules": [
//!     { "collective": "reduce", "ranks": 8, "ports": "bi", "ported": 1,
//!       "dtype": "f32", "ordered": false, "clock": "paced", "source": "oneport tune reduce ...",
//!       "choices": [
//!         {"up_to_bytes": 65536, "algorithm": "bi-greedy", "segment": 16384},
//!         {"up_to_bytes": 1048576, "algorithm": "chain", "segment": 65536}
//!       ] }
//!   ] }
//! ```
//!
//! A rule applies to one collective, number of ranks, kind and number of ports, element type and
//! operand order (`ordered`: kept). Its first choice with `up_to_bytes` not less than the vector
//! size is used, or the last choice for longer vectors. `segment` is in bytes, or `null` if the
//! algorithm does not segment. `clock` and `source` are for readers.
//!
//! A request uses the rule for its collective and ports whose number of ranks is nearest (the
//! smaller of two equally near ones). Among those it prefers a rule with its operand order and its
//! element type, or else takes the first.

use serde::{Deserialize, Serialize};

use super::Trial;
use oneport::error::{Error, Result};
use oneport::internal::json_object;
use oneport::machine::Ports;
use oneport::plan::registry;
use oneport::schedule::collective::Kind;
use oneport_pictures::svg::counted;

/// A file of selection rules.
#[derive(schemars::JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// The version of the form.
    #[serde(rename = "oneport_rules")]
    #[schemars(with = "u32", extend("const" = 1))]
    version: Version,
    /// The rules.
    pub rules: Vec<Rule>,
}

/// The choices for one configuration.
#[derive(schemars::JsonSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Collective.
    #[schemars(with = "String", extend("enum" = Kind::ALL.map(Kind::name)))]
    pub collective: Kind,
    /// Number of ranks.
    pub ranks: usize,
    /// The port model.
    #[schemars(extend("enum" = Ports::NAMES))]
    pub ports: String,
    /// Number of ports of each kind.
    pub ported: usize,
    /// Type of the elements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dtype: Option<String>,
    /// Whether operands were kept in rank order.
    #[serde(default)]
    pub ordered: bool,
    /// The clock of the measurements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<String>,
    /// Origin of the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The choices, by increasing size.
    pub choices: Vec<Selection>,
}

/// The algorithm and segment size up to some vector size.
#[derive(schemars::JsonSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Selection {
    /// The longest vector that it is for.
    pub up_to_bytes: u64,
    /// The algorithm.
    pub algorithm: String,
    /// Bytes of a segment, if the algorithm segments.
    pub segment: Option<u64>,
}

/// The request that an algorithm is chosen for.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// Collective.
    pub collective: Kind,
    /// Number of ranks.
    pub ranks: usize,
    /// Ports.
    pub ports: Ports,
    /// Type of the elements.
    pub dtype: Option<&'a str>,
    /// Whether operands are kept in rank order.
    pub ordered: bool,
    /// Size of the vector.
    pub bytes: u64,
}

/// The version that this program reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Version(u32);

impl Default for Version {
    fn default() -> Version {
        Version(1)
    }
}

impl Rules {
    /// Reads the JSON form.
    ///
    /// # Errors
    /// If the text is not a rules file, contains an unknown name, or its sizes do not increase.
    pub fn parse(text: &str) -> Result<Rules> {
        let what = "not a file of selection rules";
        let rules: Rules = json_object(what, "oneport_rules and rules", text)?;
        let Version(version) = rules.version;
        if version != 1 {
            return Err(Error::malformed(format!(
                "selection rules of version {version}: this program reads version 1"
            )));
        }
        for rule in &rules.rules {
            rule.validate()?;
        }
        Ok(rules)
    }

    /// Writes the JSON form.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Inserts a rule in order and replaces the rule for the same configuration.
    pub fn put(&mut self, rule: Rule) {
        self.rules.retain(|r| r.setting() != rule.setting());
        self.rules.push(rule);
        self.rules.sort_by(|a, b| a.setting().cmp(&b.setting()));
    }

    /// Returns the choice for a request, and the rule that it comes from.
    ///
    /// # Errors
    /// If there is no rule for its collective and ports, or the rule has no choices.
    pub fn choose(&self, query: &Query<'_>) -> Result<(&Rule, &Selection)> {
        let (ports, k) = (query.ports.name(), query.ports.k());
        let fits =
            |r: &&Rule| r.collective == query.collective && r.ports == ports && r.ported == k;
        let preference = |r: &&Rule| {
            (
                r.ranks.abs_diff(query.ranks),
                r.ranks,
                r.ordered != query.ordered,
                r.dtype.as_deref() != query.dtype,
            )
        };
        let rule = self.rules.iter().filter(fits).min_by_key(preference);
        let rule = rule.ok_or_else(|| {
            let settings: Vec<_> = self.rules.iter().map(Rule::name).collect();
            Error::usage(format!(
                "the rules have no choice for {} with {}: they are for {}",
                query.collective.name(),
                match k {
                    1 => format!("{ports} ports"),
                    k => format!("{k} {ports} ports each"),
                },
                if settings.is_empty() {
                    "nothing".to_string()
                } else {
                    settings.join("; ")
                }
            ))
        })?;
        let mut choices = rule.choices.iter();
        let choice = choices
            .find(|c| query.bytes <= c.up_to_bytes)
            .or(rule.choices.last())
            .ok_or_else(|| Error::malformed("a rule without choices"))?;
        Ok((rule, choice))
    }
}

impl Rule {
    /// Describes the rule, such as `reduce, 8 ranks, bi ports, f32`.
    pub fn name(&self) -> String {
        let ranks = counted(self.ranks, "rank");
        let mut name = format!("{}, {ranks}, ", self.collective.name());
        if self.ported != 1 {
            name += &format!("{} ", self.ported);
        }
        name += &format!("{} ports", self.ports);
        if let Some(dtype) = &self.dtype {
            name += &format!(", {dtype}");
        }
        if self.ordered {
            name += ", ordered";
        }
        name
    }

    /// Derives choices from measured rows: the best row of every size. Neighbouring sizes with the
    /// same choice are merged.
    pub fn choices(rows: &[Trial], segmented: impl Fn(&str) -> bool) -> Vec<Selection> {
        let mut best: Vec<&Trial> = rows.iter().filter(|row| row.best).collect();
        best.sort_by_key(|row| row.bytes);
        let mut choices: Vec<Selection> = Vec::new();
        for row in best {
            let choice = Selection {
                up_to_bytes: row.bytes,
                algorithm: row.algorithm.clone(),
                segment: segmented(&row.algorithm).then_some(row.segment),
            };
            match choices.last_mut() {
                Some(last)
                    if last.algorithm == choice.algorithm && last.segment == choice.segment =>
                {
                    *last = choice;
                }
                _ => choices.push(choice),
            }
        }
        choices
    }

    fn setting(&self) -> (Kind, usize, &str, usize, Option<&str>, bool) {
        let dtype = self.dtype.as_deref();
        (
            self.collective,
            self.ranks,
            &self.ports,
            self.ported,
            dtype,
            self.ordered,
        )
    }

    fn validate(&self) -> Result<()> {
        let fail = |what: String| {
            Err(Error::malformed(format!(
                "rule for {}: {what}",
                self.name()
            )))
        };
        if self.ranks == 0 || self.ported == 0 {
            return fail("ranks and ported are at least 1".into());
        }
        if Ports::named(&self.ports).is_none() {
            return fail(format!(
                "ports are one of {}, not '{}'",
                Ports::NAMES.join(", "),
                self.ports
            ));
        }
        if self.choices.is_empty() {
            return fail("there is no choice".into());
        }
        let sizes = self.choices.windows(2);
        if let Some(pair) = sizes
            .into_iter()
            .find(|pair| pair[0].up_to_bytes >= pair[1].up_to_bytes)
        {
            return fail(format!(
                "up_to_bytes {} does not come before {}",
                pair[0].up_to_bytes, pair[1].up_to_bytes
            ));
        }
        for choice in &self.choices {
            if choice.segment == Some(0) {
                return fail("a segment has at least one byte".into());
            }
            if let Err(error) = registry::find(self.collective, &choice.algorithm) {
                return fail(error.to_string());
            }
        }
        Ok(())
    }
}
