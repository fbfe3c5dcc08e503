//! A stored schedule of a series: its platform, operation and message length, kept in the file.
//!
//! The JSON form of the schedule gets one more field, which readers of schedules ignore:
//!
//! ```json
//! { "series": {"operation": "broadcast", "elements": 2, "platform": {"nodes": 3, "edges": [...]}},
//!   "ranks": 3, ... }
//! ```

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::periodic::Periodic;
use super::platform::Platform;
use super::problem::{Operation, solve};
use super::solve::SolveMethod;
use oneport::error::{Error, Result};
use oneport::internal::{json_line, json_object};
use oneport::machine::CostModel;
use oneport::schedule::collective::{Extent, Holders};
use oneport::schedule::{Schedule, total_len};

/// What a stored schedule performs: a series of operations on a platform.
#[derive(Debug, Clone)]
pub struct Series {
    platform: Platform,
    operation: Operation,
    elements: usize,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SeriesField {
    operation: String,
    elements: usize,
    platform: Box<RawValue>,
}

/// A schedule's file as far as it is read here.
#[derive(Deserialize)]
struct SeriesFile {
    #[serde(default)]
    series: Option<SeriesField>,
}

impl Series {
    /// The series of a periodic schedule.
    pub fn of(periodic: &Periodic) -> Series {
        let solution = periodic.solution();
        Series {
            platform: solution.platform().turned_if(solution.is_reversed()),
            operation: solution.operation,
            elements: periodic.elements(),
        }
    }

    /// The JSON form of `schedule`, with the series.
    pub fn to_json(&self, schedule: &Schedule) -> String {
        let field = SeriesField {
            operation: self.operation.name().to_string(),
            elements: self.elements,
            platform: RawValue::from_string(self.platform.to_json()).unwrap_or_default(),
        };
        let field = json_line(&field);
        schedule
            .to_json()
            .replacen("{ ", &format!("{{ \"series\": {field},\n  "), 1)
    }

    /// The series in the JSON form of a schedule; `None` if it has none.
    ///
    /// # Errors
    /// When the series is not one, or those of [`Platform::parse`].
    pub fn from_json(text: &str) -> Result<Option<Series>> {
        let malformed = |why: &dyn std::fmt::Display| Error::malformed(format!("series: {why}"));
        let file: SeriesFile = json_object("series", "series, nodes and edges", text)?;
        let Some(field) = file.series else {
            return Ok(None);
        };
        let mut operations = Operation::ALL.into_iter();
        let operation = operations.find(|o| o.name() == field.operation);
        Ok(Some(Series {
            platform: Platform::parse(field.platform.get())?,
            operation: operation
                .ok_or_else(|| malformed(&format!("unknown operation {}", field.operation)))?,
            elements: match field.elements {
                0 => return Err(malformed(&"a message needs at least one element")),
                elements => elements,
            },
        }))
    }

    /// The platform.
    pub fn platform(&self) -> &Platform {
        &self.platform
    }

    /// The cost model of the platform, for elements of `element_bytes` bytes. A message of the
    /// series takes the platform's time, whatever the size of its elements.
    pub fn cost(&self, element_bytes: u64) -> Result<CostModel> {
        self.platform
            .cost_model(self.elements, 1.0 / element_bytes.max(1) as f64)
    }

    /// A lower bound of the time of `schedule` on the platform, in the platform's time units: its
    /// number of operations divided by the largest throughput. The throughput is computed again,
    /// with its proof, by [`solve`] and [`Solution::bounds`](super::Solution::bounds).
    pub fn min_time(&self, schedule: &Schedule) -> Result<f64> {
        let solution = solve(
            &self.platform,
            self.operation,
            schedule.ports(),
            SolveMethod::Ports,
        )?;
        let throughput = match solution.bounds()? {
            Some((_, above)) => above,
            None => solution.throughput,
        };
        let operations = self.elements_of_a_rank(schedule) / self.elements;
        Ok(operations as f64 / throughput.to_f64())
    }

    /// The elements that all operations together have for one rank: no more than for any other.
    fn elements_of_a_rank(&self, schedule: &Schedule) -> usize {
        let p = schedule.ranks();
        let layout = schedule.layout().iter().enumerate();
        let root = schedule.collective().root();
        let row = schedule.collective().kind().row();
        let elements = layout.filter_map(|(r, l)| {
            let (input, output) = (total_len(&l.input), total_len(&l.output));
            match row.input {
                (Holders::Root, _) => Some(output).filter(|_| Some(r) != root),
                (_, Extent::Block) => Some(input).filter(|_| Some(r) != root),
                (_, Extent::Pairs) => Some(input / p),
                _ => Some(input),
            }
        });
        elements.filter(|&n| n > 0).min().unwrap_or(0)
    }
}
