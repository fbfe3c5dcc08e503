//! Reading and writing the JSON form of a schedule.

use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize};

use super::{Layout, Schedule, SharedPort, Step};
use crate::error::{Error, Result, json_object};
use crate::machine::Ports;
use crate::schedule::collective::Collective;

/// A program for every rank that together perform one collective. Spans are [offset, length] in
/// elements of a rank's buffer.
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[derive(Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "an object with ranks, ports, collective, layout and programs"
)]
pub(super) struct Input {
    /// What tables and pictures call it; none if it is left out.
    #[serde(default, deserialize_with = "some_text")]
    #[cfg_attr(
        feature = "schemars",
        schemars(with = "String", length(min = 1, max = 100))
    )]
    name: Option<String>,
    /// Number of ranks.
    #[cfg_attr(feature = "schemars", schemars(range(min = 1)))]
    ranks: usize,
    /// One port for both directions, one out and one in, or both directions but one partner at a
    /// time.
    #[serde(deserialize_with = "one_port")]
    #[cfg_attr(feature = "schemars", schemars(with = "String", extend("enum" = Ports::NAMES)))]
    ports: Ports,
    /// Number of ports of each kind; 1 if it is left out.
    #[serde(default = "one")]
    #[cfg_attr(feature = "schemars", schemars(range(min = 1, max = 4096)))]
    ported: usize,
    /// Elements of a unit of all offsets and lengths; 1 if it is left out.
    #[serde(default = "one")]
    #[cfg_attr(feature = "schemars", schemars(range(min = 1)))]
    unit: usize,
    /// What the schedule must achieve.
    collective: Collective,
    /// The buffer of each rank.
    #[cfg_attr(feature = "schemars", schemars(length(min = 1)))]
    layout: Vec<Layout>,
    /// The steps of each rank, in order.
    #[cfg_attr(feature = "schemars", schemars(length(min = 1)))]
    programs: Vec<Vec<Step>>,
    /// Ports that several ranks share; none if it is left out.
    #[serde(default)]
    shared_ports: Vec<SharedPort>,
    /// What the schedule of a series keeps beside it; not part of the schedule.
    #[serde(default, rename = "series")]
    #[cfg_attr(feature = "schemars", schemars(with = "serde_json::Value"))]
    _series: IgnoredAny,
}

#[derive(Serialize)]
struct Output<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    ranks: usize,
    ports: &'static str,
    ported: usize,
    collective: &'a Collective,
    layout: &'a [Layout],
    programs: &'a [Vec<Step>],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    shared_ports: &'a [SharedPort],
}

/// Text, not null.
fn some_text<'de, D: Deserializer<'de>>(d: D) -> Result<Option<String>, D::Error> {
    String::deserialize(d).map(Some)
}

/// One port of the kind with this name.
fn one_port<'de, D: Deserializer<'de>>(d: D) -> Result<Ports, D::Error> {
    let name = String::deserialize(d)?;
    Ports::named(&name).ok_or_else(|| D::Error::unknown_variant(&name, Ports::NAMES))
}

fn one() -> usize {
    1
}

impl Serialize for Schedule {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        Output {
            name: self.name(),
            ranks: self.ranks(),
            ports: self.ports.name(),
            ported: self.ports.k(),
            collective: &self.collective,
            layout: &self.layout,
            programs: &self.programs,
            shared_ports: &self.shared_ports,
        }
        .serialize(s)
    }
}

impl Schedule {
    /// Reads a schedule from its JSON form, which
    /// [`guide::schedule_format`](crate::guide::schedule_format) describes. A field `series`, which
    /// the schedule of a series of operations keeps beside it, is skipped.
    ///
    /// Linear in the length of the text.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`](crate::ErrorKind::Malformed), with line and column, if the text is
    /// not JSON or a field is missing, unknown or of the wrong type; also if `ranks` is not the
    /// number of programs, or [`Schedule::new`], [`Schedule::with_shared_ports`] or
    /// [`Schedule::with_name`] refuses the parts.
    pub fn from_json(text: &str) -> Result<Schedule> {
        let fields = "ranks, ports, collective, layout and programs";
        let input: Input = json_object("not a schedule", fields, text)?;
        if input.ranks != input.programs.len() {
            return Err(Error::malformed(format!(
                "not a schedule: \"ranks\" is {}, but there are {} programs",
                input.ranks,
                input.programs.len()
            )));
        }
        let schedule = Schedule::new(
            input.ports.with_k(input.ported),
            input.collective,
            input.layout,
            input.programs,
        )?
        .with_shared_ports(input.shared_ports)?
        .scaled(input.unit)?;
        (input.name.into_iter())
            .try_fold(schedule, Schedule::with_name)
            .map_err(|error| Error::malformed(format!("not a schedule: {error}")))
    }

    /// Writes the JSON form, with one layout, program or shared port per line.
    /// [`Schedule::from_json`] reads an equal schedule from it. Linear in the length of the text.
    pub fn to_json(&self) -> String {
        let list = |items: Vec<String>| items.join(",\n    ");
        let shared_ports = match self.shared_ports() {
            [] => String::new(),
            ports => {
                let ports = list(ports.iter().map(json_line).collect());
                format!(",\n  \"shared_ports\": [\n    {ports} ]")
            }
        };
        let name = self
            .name()
            .map(|name| format!("\"name\": {}, ", json_line(&name)));
        format!(
            "{{ {}\"ranks\": {}, \"ports\": \"{}\", \"ported\": {}, \"collective\": {},\n  \"layout\": [\n    {} ],\n  \"programs\": [\n    {} ]{shared_ports} }}\n",
            name.unwrap_or_default(),
            self.ranks(),
            self.ports.name(),
            self.ports.k(),
            json_line(&self.collective),
            list(self.layout.iter().map(json_line).collect()),
            list(self.programs.iter().map(json_line).collect()),
        )
    }
}

/// The steps of a program, from their JSON.
#[cfg(feature = "mpi")]
pub(crate) fn steps_from_json(text: &[u8]) -> Result<Vec<Step>> {
    serde_json::from_slice(text).map_err(|e| Error::json("not a program", &e))
}

/// The JSON of plain data in one line. Only maps whose keys are not text have none.
pub fn json_line(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain data serialises")
}
