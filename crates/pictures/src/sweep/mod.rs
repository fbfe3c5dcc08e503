//! Times of algorithms over sizes and numbers of ranks: a plot for a paper, and a page to explore.

mod plot;

use std::cmp::Ordering;

use oneport::simulate::Timed;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;

use crate::page::Players;
use crate::shell::{Heading, LINK, UNPACK, chart};
use crate::svg::bytes as size;
use crate::{Columns, Unit};

pub use plot::plot;

const SCRIPT: &str = include_str!("sweep.js");

/// Times of several algorithms, at one or more sizes and numbers of ranks.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// Unit of model times and bounds.
    pub unit: Unit,
    /// In any order.
    pub rows: Vec<SweepRow>,
    /// By algorithm, of a sweep of one point.
    pub players: Players,
}

/// Where rows are compared: a number of ranks, a size, and perhaps a distribution of sizes and the
/// delay of one late rank.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Place<'a> {
    /// Number of ranks.
    pub ranks: usize,
    /// As [`SweepRow::dist`].
    pub dist: Option<&'a str>,
    /// As [`SweepRow::bytes`].
    pub bytes: u64,
    /// As [`SweepRow::late`].
    pub late: Option<f64>,
}

/// What a plot or a table shows of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Quantity {
    /// Time: measured, if it was.
    #[default]
    Time,
    /// Time over that of the best at the same place.
    Ratio,
    /// Model time over its lower bound.
    Bound,
    /// Size over time.
    Bandwidth,
}

/// The row that leads at a place.
#[derive(Debug, Clone, Copy)]
pub struct Leader<'a> {
    /// Its row.
    pub row: &'a SweepRow,
    /// How many others are as fast.
    pub equals: usize,
}

/// An algorithm, or a schedule from a file, at one place. It can be read from a table that has more
/// columns. Names in CSV and JSON have the unit, and are read here; the scripts of pages take those
/// of the fields.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SweepRow {
    /// Name of the algorithm, or of the schedule.
    pub algorithm: String,
    /// Whether it is a schedule from a file.
    #[serde(default)]
    pub own: bool,
    /// Number of ranks.
    pub ranks: usize,
    /// Size of the vector, or of one rank's block; 0 of a collective without data.
    pub bytes: u64,
    /// Name of the distribution of the sizes of blocks, in a sweep of several.
    #[serde(default)]
    pub dist: Option<String>,
    /// Time in the model; not a number of a library's function, which has a median alone.
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
    /// By how much one rank is late. The time is then the one after its arrival, if it is the rank
    /// whose delay costs most.
    #[serde(default)]
    pub late: Option<f64>,
    /// The first such rank, if one is late.
    #[serde(default)]
    pub late_rank: Option<usize>,
    /// The least time under several arrivals of the ranks.
    #[serde(default, rename(deserialize = "least_time"))]
    pub least: Option<f64>,
    /// The first rank that has this time if it is the late one.
    #[serde(default)]
    pub least_rank: Option<usize>,
    /// The time that 95% of them do not exceed.
    #[serde(default, rename(deserialize = "p95_time"))]
    pub p95: Option<f64>,
    /// The longest.
    #[serde(default, rename(deserialize = "worst_time"))]
    pub worst: Option<f64>,
    /// What the search left out, and may be better; [joined](Self::LIST) in CSV.
    #[serde(default, skip_serializing, deserialize_with = "list")]
    pub left_out: Vec<String>,
}

/// Reads a list from a field.
fn list<'de, D: Deserializer<'de>>(field: D) -> Result<Vec<String>, D::Error> {
    let field = String::deserialize(field)?;
    let all = field.split(SweepRow::LIST).filter(|one| !one.is_empty());
    Ok(all.map(str::to_owned).collect())
}

impl<R> Columns<'_, R> {
    /// Adds columns with what the schedule of a row sends.
    #[must_use]
    pub fn add_traffic(self, figures: impl Fn(&R) -> &SweepRow + Copy + 'static) -> Self {
        self.add(">messages", move |row| figures(row).messages)
            .add(">volume", move |row| size(figures(row).volume))
    }

    /// Adds columns with the times under several arrivals of the ranks, where the sweep has any.
    #[must_use]
    pub fn add_spread(
        self,
        sweep: &Sweep,
        figures: impl Fn(&R) -> &SweepRow + Copy + 'static,
    ) -> Self {
        let (rows, unit) = (&sweep.rows, sweep.unit);
        let has = |of: fn(&SweepRow) -> Option<f64>| rows.iter().any(|row| of(row).is_some());
        let show = move |time: Option<f64>| time.map_or("-".into(), |time| unit.show(time));
        let has_late = has(|row| row.late);
        self.add_if(has(|row| row.least), ">least", move |row| {
            show(figures(row).least)
        })
        .add_if(has_late, ">late rank", move |row| {
            let rank = figures(row).least_rank;
            rank.map_or("-".into(), |rank| rank.to_string())
        })
        .add_if(has(|row| row.p95), ">p95", move |row| {
            show(figures(row).p95)
        })
        .add_if(has(|row| row.worst), ">worst", move |row| {
            show(figures(row).worst)
        })
    }
}

impl SweepRow {
    /// What stands between the parts of a list in a field of CSV.
    pub const LIST: &'static str = "; ";

    /// All its times: a figure that is added is a time or none.
    pub fn times(&self) -> impl Iterator<Item = f64> {
        let SweepRow {
            time,
            bound,
            median,
            late,
            least,
            p95,
            worst,
            algorithm: _,
            own: _,
            ranks: _,
            bytes: _,
            dist: _,
            rounds: _,
            messages: _,
            volume: _,
            segment: _,
            late_rank: _,
            least_rank: _,
            left_out: _,
        } = self;
        let may_lack = [*median, *late, *least, *p95, *worst];
        may_lack.into_iter().flatten().chain([*time, *bound])
    }

    /// The row of a schedule that is timed in the model, for vectors of `bytes` bytes, without a
    /// bound.
    pub fn timed(
        algorithm: String,
        ranks: usize,
        bytes: u64,
        timed: &Timed,
        element_bytes: u64,
    ) -> SweepRow {
        SweepRow {
            algorithm,
            ranks,
            bytes,
            time: timed.time,
            rounds: timed.rounds,
            messages: timed.messages,
            volume: timed.elements as u64 * element_bytes,
            ..SweepRow::default()
        }
    }

    /// The row of something else at the same place, with this median in nanoseconds. It has no time
    /// in the model.
    pub fn beside(&self, name: &str, median: f64) -> SweepRow {
        SweepRow {
            algorithm: name.into(),
            ranks: self.ranks,
            bytes: self.bytes,
            time: f64::NAN,
            median: Some(median),
            ..SweepRow::default()
        }
    }

    /// The time to compare: measured, if it was.
    pub fn value(&self) -> f64 {
        self.median.unwrap_or(self.time)
    }

    /// Where the row is compared with others.
    pub fn place(&self) -> Place<'_> {
        Place {
            ranks: self.ranks,
            dist: self.dist.as_deref(),
            bytes: self.bytes,
            late: self.late,
        }
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

    /// The places, in order.
    pub fn points(&self) -> Vec<Place<'_>> {
        let mut points: Vec<_> = self.rows.iter().map(SweepRow::place).collect();
        points.sort_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal));
        points.dedup();
        points
    }

    /// The rows at a place, fastest first.
    pub fn at(&self, place: Place<'_>) -> Vec<&SweepRow> {
        let rows = self.rows.iter().filter(|row| row.place() == place);
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by(|a, b| a.value().total_cmp(&b.value()));
        rows
    }

    /// A quantity of a row; `None` if it has none, as a barrier has no bandwidth.
    pub fn quantity(&self, row: &SweepRow, quantity: Quantity) -> Option<f64> {
        let best = || self.at(row.place()).first().map(|best| best.value());
        let over = |value: f64, by: f64| (by > 0.0).then(|| value / by);
        let found = match quantity {
            Quantity::Time => Some(row.value()),
            Quantity::Ratio => over(row.value(), best()?),
            Quantity::Bound => over(row.time, row.bound),
            Quantity::Bandwidth => over(row.bytes as f64, row.value()),
        };
        found.filter(|&value| value > 0.0)
    }

    /// Who leads at each place, in the order of the places. Who led at the size before still leads
    /// where it is behind by less than 0.1%: a lead goes from size to size, not to other ranks or
    /// another distribution.
    ///
    /// Linear in the number of rows times that of the places.
    pub fn leaders(&self) -> Vec<Leader<'_>> {
        /// Who is behind by less is as fast.
        const MIN_LEAD: f64 = 1e-3;
        let mut last: Vec<(Place<'_>, &str)> = Vec::new();
        let lead = |place| {
            let rows = self.at(place);
            let equals = rows
                .iter()
                .take_while(|row| row.value() <= rows[0].value() * (1.0 + MIN_LEAD));
            let same_line = |p: &Place<'_>| {
                let late = |p: &Place<'_>| p.late.map(f64::to_bits);
                (p.ranks, p.dist) == (place.ranks, place.dist) && late(p) == late(&place)
            };
            let before = last.iter_mut().find(|(p, _)| same_line(p));
            let leads_on = before.as_ref().map(|(_, name)| *name);
            let row = equals.clone().find(|row| Some(&*row.algorithm) == leads_on);
            let row = *row.unwrap_or(&rows[0]);
            match before {
                Some((_, name)) => *name = &row.algorithm,
                None => last.push((place, &row.algorithm)),
            }
            Leader {
                row,
                equals: equals.count() - 1,
            }
        };
        self.points().into_iter().map(lead).collect()
    }

    /// The unit of the times to compare.
    fn unit(&self) -> Unit {
        if self.rows.iter().any(|row| row.median.is_some()) {
            Unit::Nanoseconds
        } else {
            self.unit
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
            "<figure><h2>Which leads where</h2><p>The fastest, and how many times longer the second takes; after = stands how many others are as fast.</p>\
             <div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Which leads where\"><table id=\"leads\"></table></div></figure>\n"
                .to_string(),
        ];
        let (open, note) = if self.players.is_empty() {
            ("", "")
        } else {
            (
                " open",
                "<p class=\"note\">An algorithm's name opens its schedule, to step through.</p>\n",
            )
        };
        let body = format!(
            "<div class=\"charts\">\n{}</div>\n<details{open}><summary>All {} rows</summary>\n{note}{}</details>\n",
            charts.concat(),
            self.rows.len(),
            self.table()
        );
        let plain = self.unit() == Unit::Plain;
        let number = |row: &SweepRow| self.rows.iter().position(|other| std::ptr::eq(other, row));
        let leaders = self.leaders().into_iter();
        let leaders: Vec<_> = leaders
            .map(|lead| (number(lead.row), lead.equals))
            .collect();
        let data = json!({
            "rows": self.rows, "leaders": leaders, "plain": plain, "players": self.players.json(),
        });
        heading.page(&body, &data, &format!("{UNPACK}{LINK}{SCRIPT}"))
    }

    /// All rows as a table of a page, the fastest of each place in bold.
    fn table(&self) -> String {
        // Delays, and times under several arrivals, are rare.
        let has = |of: fn(&SweepRow) -> Option<f64>| self.rows.iter().any(|row| of(row).is_some());
        let several_dists = self.rows.iter().any(|row| row.dist.is_some());
        let dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
        let ratio =
            move |value: f64, by: f64| dash((by > 0.0).then(|| format!("{:.3}", value / by)));
        let time = |time: Option<f64>| dash(time.map(|time| self.unit.show(time)));
        let rank = |rank: Option<usize>| dash(rank.map(|rank| rank.to_string()));
        let median = |ns: Option<f64>| dash(ns.map(|ns| Unit::Nanoseconds.show(ns)));
        // A row, and the fastest one beside it.
        let columns = Columns::<(&SweepRow, &SweepRow)>::default()
            .add(">ranks", |(row, _)| row.ranks)
            .add_if(several_dists, "blocks", |(row, _)| dash(row.dist.clone()))
            .add(">size", |(row, _)| size(row.bytes))
            .add_if(has(|row| row.late), ">late", |(row, _)| time(row.late))
            .add("algorithm", |(row, _)| row.algorithm.clone())
            .add(">time", |(row, _)| {
                dash((!row.time.is_nan()).then(|| self.unit.show(row.time)))
            })
            .add_if(has(|row| row.late), ">late rank", |(row, _)| {
                rank(row.late_rank)
            })
            .add_spread(self, |&(row, _)| row)
            .add(">x best", |(row, best)| ratio(row.value(), best.value()))
            .add(">x bound", |(row, _)| ratio(row.time, row.bound))
            .add(">median", |(row, _)| median(row.median))
            .add(">rounds", |(row, _)| row.rounds)
            .add(">segment", |(row, _)| dash(row.segment.map(size)))
            .add_traffic(|&(row, _)| row);
        let rows = self.points().into_iter().flat_map(|point| {
            let rows = self.at(point);
            let best = rows[0];
            rows.into_iter().map(move |row| (row, best))
        });
        columns.html("all", "All rows", rows, |&(row, best)| {
            std::ptr::eq(row, best).then_some("best")
        })
    }
}
