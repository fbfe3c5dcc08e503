//! Times of algorithms over sizes and numbers of ranks: a plot for a paper, and a page to explore.

mod plot;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::Unit;
use crate::shell::{Heading, chart, table};
use crate::svg::bytes as size;

pub use plot::plot;

const SCRIPT: &str = include_str!("sweep.js");

/// Times of several algorithms, at one or more sizes and numbers of ranks.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// Unit of model times and bounds.
    pub unit: Unit,
    /// In any order.
    pub rows: Vec<SweepRow>,
}

/// An algorithm, or a schedule from a file, at one number of ranks and one size. It can be read
/// from a table that has more columns.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SweepRow {
    /// Name of the algorithm.
    pub algorithm: String,
    /// Number of ranks.
    pub ranks: usize,
    /// Size of the vector, or of one rank's block; 0 of a collective without data.
    pub bytes: u64,
    /// Time in the model.
    #[serde(rename(deserialize = "model_time"))]
    pub time: f64,
    /// Lower bound of the model time; 0 if there is none.
    #[serde(rename(deserialize = "lower_bound"))]
    pub bound: f64,
    /// Median of measured times, in nanoseconds.
    #[serde(rename(deserialize = "median_ns"))]
    pub median: Option<f64>,
    /// Rounds of the schedule.
    pub rounds: usize,
    /// Number of messages.
    pub messages: usize,
    /// Bytes of all messages.
    #[serde(rename(deserialize = "volume_bytes"))]
    pub volume: u64,
    /// Bytes of the largest segment, if the vector has several.
    #[serde(rename(deserialize = "segment_bytes"))]
    pub segment: Option<u64>,
}

impl SweepRow {
    /// The time to compare: measured, if it was.
    pub fn value(&self) -> f64 {
        self.median.unwrap_or(self.time)
    }
}

impl Sweep {
    /// The algorithms, in the order of their first rows.
    pub fn algorithms(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for row in &self.rows {
            if !names.contains(&&*row.algorithm) {
                names.push(&*row.algorithm);
            }
        }
        names
    }

    /// The numbers of ranks and sizes, in order.
    pub fn points(&self) -> Vec<(usize, u64)> {
        let mut points: Vec<_> = self.rows.iter().map(|row| (row.ranks, row.bytes)).collect();
        points.sort_unstable();
        points.dedup();
        points
    }

    /// The rows at a point, fastest first.
    pub fn at(&self, (ranks, bytes): (usize, u64)) -> Vec<&SweepRow> {
        let here = |row: &&SweepRow| row.ranks == ranks && row.bytes == bytes;
        let mut rows: Vec<_> = self.rows.iter().filter(here).collect();
        rows.sort_by(|a, b| a.value().total_cmp(&b.value()));
        rows
    }

    /// The unit of the times to compare.
    fn unit(&self) -> Unit {
        match self.rows.iter().any(|row| row.median.is_some()) {
            true => Unit::Nanoseconds,
            false => self.unit,
        }
    }

    /// A self-contained HTML page: charts of time, time over the best, time over the bound and
    /// bandwidth against size or ranks, which algorithm leads where, and all numbers.
    ///
    /// Linear in the number of rows, but for the sorting of points.
    pub fn page(&self, heading: &Heading) -> String {
        let choice = |id: &str, label: &str| {
            format!("<label>{label} <select id=\"{id}\"></select></label> ")
        };
        let choices = choice("what", "Show") + &choice("against", "against") + &choice("at", "at");
        let charts = [
            chart("plot", "Algorithms compared", &choices),
            "<figure><h2>Which leads where</h2><p>The fastest, and how many times longer the second takes.</p>\
             <div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Which leads where\"><table id=\"leads\"></table></div></figure>\n"
                .to_string(),
        ];
        let columns = [
            "ranks",
            "size",
            "<algorithm",
            "time",
            "x best",
            "x bound",
            "median",
            "rounds",
            "segment",
            "messages",
            "volume",
        ];
        let dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
        let ratio = |value: f64, by: f64| dash((by > 0.0).then(|| format!("{:.3}", value / by)));
        let rows = self.points().into_iter().flat_map(|point| {
            let rows = self.at(point);
            let best = rows.first().map_or(0.0, |row| row.value());
            rows.into_iter().enumerate().map(move |(i, row)| {
                let median = row.median.map(|median| Unit::Nanoseconds.show(median));
                let cells = vec![
                    row.ranks.to_string(),
                    size(row.bytes),
                    row.algorithm.clone(),
                    self.unit.show(row.time),
                    ratio(row.value(), best),
                    ratio(row.time, row.bound),
                    dash(median),
                    row.rounds.to_string(),
                    dash(row.segment.map(size)),
                    row.messages.to_string(),
                    size(row.volume),
                ];
                (if i == 0 { "best" } else { "" }, cells)
            })
        });
        let all = table("all", "All rows", &columns, rows);
        let body = format!(
            "<div class=\"charts\">\n{}</div>\n<details><summary>All {} rows</summary>\n{all}</details>\n",
            charts.concat(),
            self.rows.len()
        );
        let plain = self.unit() == Unit::Plain;
        heading.page(&body, &json!({ "rows": self.rows, "plain": plain }), SCRIPT)
    }
}
