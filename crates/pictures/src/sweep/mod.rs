//! Times of algorithms over sizes and numbers of ranks: a plot for a paper, and a page to explore.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::shell::{Heading, UNPACK, chart};
use crate::svg::{Anchor, At, GREY, LINE, MARGIN, Svg, TEXT, bytes as size, width};
use crate::{Caption, Columns, Unit};

const SCRIPT: &str = include_str!("sweep.js");

/// Times of several algorithms, at one or more sizes and numbers of ranks.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// Unit of model times and bounds.
    pub unit: Unit,
    /// In any order.
    pub rows: Vec<SweepRow>,
    /// By algorithm, of a sweep of one point: the [page](crate::page()) of its schedule,
    /// [packed](crate::shell::packed()).
    pub players: BTreeMap<String, String>,
}

/// Where rows are compared: a number of ranks, a size, and perhaps the delay of one late rank.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Place {
    /// Number of ranks.
    pub ranks: usize,
    /// As [`SweepRow::bytes`].
    pub bytes: u64,
    /// As [`SweepRow::late`].
    pub late: Option<f64>,
}

/// An algorithm, or a schedule from a file, at one place. It can be read from a table that has more
/// columns.
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
}

impl SweepRow {
    /// The time to compare: measured, if it was.
    pub fn value(&self) -> f64 {
        self.median.unwrap_or(self.time)
    }

    /// Where the row is compared with others.
    pub fn place(&self) -> Place {
        Place {
            ranks: self.ranks,
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
    pub fn points(&self) -> Vec<Place> {
        let mut points: Vec<_> = self.rows.iter().map(SweepRow::place).collect();
        points.sort_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal));
        points.dedup();
        points
    }

    /// The rows at a place, fastest first.
    pub fn at(&self, place: Place) -> Vec<&SweepRow> {
        let rows = self.rows.iter().filter(|row| row.place() == place);
        let mut rows: Vec<_> = rows.collect();
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
        // Delays, and times under several arrivals, are rare.
        let has = |of: fn(&SweepRow) -> Option<f64>| self.rows.iter().any(|row| of(row).is_some());
        let dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
        let ratio =
            move |value: f64, by: f64| dash((by > 0.0).then(|| format!("{:.3}", value / by)));
        let time = |time: Option<f64>| dash(time.map(|time| self.unit.show(time)));
        let rank = |rank: Option<usize>| dash(rank.map(|rank| rank.to_string()));
        let median = |ns: Option<f64>| dash(ns.map(|ns| Unit::Nanoseconds.show(ns)));
        // A row, and the fastest one beside it.
        let columns = Columns::<(&SweepRow, &SweepRow)>::default()
            .add(">ranks", |(row, _)| row.ranks)
            .add(">size", |(row, _)| size(row.bytes))
            .add_if(has(|row| row.late), ">late", |(row, _)| time(row.late))
            .add("algorithm", |(row, _)| row.algorithm.clone())
            .add(">time", |(row, _)| self.unit.show(row.time))
            .add_if(has(|row| row.late), ">late rank", |(row, _)| {
                rank(row.late_rank)
            })
            .add_if(has(|row| row.least), ">least", |(row, _)| time(row.least))
            .add_if(has(|row| row.late), ">late rank", |(row, _)| {
                rank(row.least_rank)
            })
            .add_if(has(|row| row.p95), ">p95", |(row, _)| time(row.p95))
            .add_if(has(|row| row.worst), ">worst", |(row, _)| time(row.worst))
            .add(">x best", |(row, best)| ratio(row.value(), best.value()))
            .add(">x bound", |(row, _)| ratio(row.time, row.bound))
            .add(">median", |(row, _)| median(row.median))
            .add(">rounds", |(row, _)| row.rounds)
            .add(">segment", |(row, _)| dash(row.segment.map(size)))
            .add(">messages", |(row, _)| row.messages)
            .add(">volume", |(row, _)| size(row.volume));
        let rows = self.points().into_iter().flat_map(|point| {
            let rows = self.at(point);
            let best = rows[0];
            rows.into_iter().map(move |row| (row, best))
        });
        let all = columns.html("all", "All rows", rows, |&(row, best)| {
            std::ptr::eq(row, best)
        });
        let (open, note) = match self.players.is_empty() {
            true => ("", ""),
            false => (
                " open",
                "<p class=\"note\">An algorithm's name opens its schedule, to step through.</p>\n",
            ),
        };
        let body = format!(
            "<div class=\"charts\">\n{}</div>\n<details{open}><summary>All {} rows</summary>\n{note}{all}</details>\n",
            charts.concat(),
            self.rows.len()
        );
        let plain = self.unit() == Unit::Plain;
        let data = json!({ "rows": self.rows, "plain": plain, "players": self.players });
        heading.page(&body, &data, &format!("{UNPACK}{SCRIPT}"))
    }
}

/// Colours of lines, and the dashes of those after the last colour.
const COLORS: [&str; 10] = [
    "#0b6bcb", "#c8374b", "#1f8a4d", "#8a4fc4", "#b45f06", "#0f7d7f", "#7a5c3e", "#c2379b",
    "#4b5563", "#66740a",
];
const DASHES: [&str; 4] = ["", "6 3", "2 3", "8 3 2 3"];

/// Size of the area of the lines.
const ROOM: (f64, f64) = (420.0, 280.0);
const MIN_ROOM: f64 = 140.0;

/// An axis from `low` to `high`, drawn from `from` to `to`. It is logarithmic unless it starts at
/// 0.
struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    fn new(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Axis {
        let (mut low, mut high) = (f64::INFINITY, 0.0f64);
        for value in values.filter(|&value| value > 0.0) {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            (low, high) = (1.0, 10.0);
        }
        // A single value stands in the middle.
        let pad = if high / low < 1.3 { 1.3 } else { 1.06 };
        Axis {
            low: low / pad,
            high: high * pad,
            from,
            to,
        }
    }

    /// An axis from 0 to the largest of these values.
    fn from_zero(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Axis {
        Axis {
            low: 0.0,
            high: values.fold(0.0, f64::max).max(f64::MIN_POSITIVE),
            from,
            to,
        }
    }

    fn at(&self, value: f64) -> f64 {
        let part = match self.low {
            0.0 => value / self.high,
            low => (value.max(low) / low).ln() / (self.high / low).ln(),
        };
        self.from + part * (self.to - self.from)
    }

    /// Powers of ten, with 2 and 5 times them where there are few.
    fn decimals(&self) -> Vec<f64> {
        let (low, high) = (
            self.low.log10().floor() as i32,
            self.high.log10().ceil() as i32,
        );
        let ticks = |factors: &[f64]| -> Vec<f64> {
            let all = (low..=high).flat_map(|e| factors.iter().map(move |f| f * 10f64.powi(e)));
            all.filter(|t| (self.low..=self.high).contains(t)).collect()
        };
        match ticks(&[1.0]) {
            few if few.len() < 3 => ticks(&[1.0, 2.0, 5.0]),
            enough => enough,
        }
    }
}

/// What the horizontal axis of a plot has.
#[derive(Clone, Copy, PartialEq)]
enum Over {
    Delay,
    Size,
    Ranks,
}

/// Draws the sweep as SVG: time over the delay of one rank if there are such, over size, or over
/// the number of ranks if there is one size. Dashed verticals mark where another algorithm becomes
/// the fastest. Lines are named beside their ends; a dashed line of the same colour has the least
/// times.
///
/// Linear in the number of rows, but for the sorting of points. Of what else varies, the largest
/// value is drawn.
pub fn plot(sweep: &Sweep, caption: &Caption) -> String {
    let points = sweep.points();
    let several = |different: BTreeSet<u64>| different.len() > 1;
    let over = match () {
        () if points.iter().any(|point| point.late.is_some()) => Over::Delay,
        () if several(points.iter().map(|point| point.bytes).collect()) => Over::Size,
        () => Over::Ranks,
    };
    let most = points.iter().map(|point| point.ranks).max().unwrap_or(0);
    let largest = points.iter().map(|point| point.bytes).max().unwrap_or(0);
    let shown = |row: &&SweepRow| {
        (over == Over::Ranks || row.ranks == most) && (over == Over::Size || row.bytes == largest)
    };
    let x_of = |row: &SweepRow| match over {
        Over::Delay => row.late.unwrap_or(0.0),
        Over::Size => row.bytes as f64,
        Over::Ranks => row.ranks as f64,
    };
    let names = sweep.algorithms();
    let widths = names.iter().map(|name| width(name, TEXT));
    let labels = widths.fold(0.0, f64::max);
    let left = MARGIN + 60.0;
    let beside = labels + 12.0 + MARGIN;
    let room = caption
        .room
        .map_or(ROOM.0, |room| (room - left - beside).max(MIN_ROOM));
    let right = left + room;
    let whole = right + beside;
    let mut svg = Svg::default();
    let top = match caption.title.is_empty() && caption.lines.is_empty() {
        true => MARGIN,
        false => svg.caption(caption, whole) + 4.0,
    };
    let tall = ROOM.1.min(1.2 * room);
    let bottom = top + tall;
    let rows = || sweep.rows.iter().filter(shown);
    let x = match over {
        Over::Delay => Axis::from_zero(rows().map(x_of), left, right),
        _ => Axis::new(rows().map(x_of), left, right),
    };
    let times = rows().flat_map(|row| [Some(row.value()), row.late.and(row.least)]);
    let y = Axis::new(times.flatten(), bottom, top);
    let unit = sweep.unit();
    let grid = "stroke=\"#ddd\"";
    for tick in y.decimals() {
        svg.line((left, y.at(tick)), (right, y.at(tick)), grid);
        svg.text(
            (left - 6.0, y.at(tick) + 4.0),
            &unit.show(tick),
            Anchor::End,
            TEXT,
            GREY,
        );
    }
    let mut values: Vec<f64> = rows().map(x_of).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let mut end = f64::NEG_INFINITY;
    for &value in &values {
        let text = match over {
            Over::Delay => unit.show(value),
            Over::Size => size(value as u64),
            Over::Ranks => value.to_string(),
        };
        let (at, half) = (x.at(value), width(&text, TEXT) / 2.0);
        if at - half > end + 6.0 {
            svg.line((at, top), (at, bottom), grid);
            svg.text((at, bottom + LINE), &text, Anchor::Middle, TEXT, GREY);
            end = at + half;
        }
    }
    let what = match over {
        Over::Delay => "one rank is late by",
        Over::Size => "size",
        Over::Ranks => "ranks",
    };
    // What else varies is the largest.
    let several_ranks = points.iter().any(|point| point.ranks != most);
    let what = match over == Over::Ranks || !several_ranks {
        true => what.to_string(),
        false => format!("{what}, on {most} ranks"),
    };
    svg.text(
        ((left + right) / 2.0, bottom + 2.0 * LINE),
        &what,
        Anchor::Middle,
        TEXT,
        GREY,
    );
    svg.rect((left, top), (room, tall), "fill=\"none\" stroke=\"#999\"");
    crossovers(
        &mut svg,
        sweep,
        &|row| shown(&row).then(|| x_of(row)),
        &x,
        (top, bottom),
    );
    let mut ends = Vec::new();
    for (i, name) in names.iter().enumerate() {
        let line_of = |value: &dyn Fn(&SweepRow) -> Option<f64>| {
            let own = rows().filter(|row| row.algorithm == *name);
            let points = own.filter_map(|row| Some((x.at(x_of(row)), y.at(value(row)?))));
            let mut line: Vec<(f64, f64)> = points.collect();
            line.sort_by(|a, b| a.0.total_cmp(&b.0));
            line
        };
        let line = line_of(&|row| Some(row.value()));
        let Some(&last) = line.last() else { continue };
        let (color, dash) = (COLORS[i % 10], DASHES[i / 10 % DASHES.len()]);
        let least = line_of(&|row| row.late.and(row.least));
        for (line, width, dash) in [(&line, "1.8", dash), (&least, "0.9", "1.5 2")] {
            let points = line.iter().map(|&(x, y)| format!("{} {}", At(x), At(y)));
            let path: Vec<_> = points.collect();
            if !path.is_empty() {
                svg.raw(&format!(
                    "<path d=\"M{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"{width}\" stroke-dasharray=\"{dash}\"/>\n",
                    path.join("L")
                ));
            }
        }
        for (x, y) in line {
            let (x, y) = (At(x), At(y));
            svg.raw(&format!(
                "<circle cx=\"{x}\" cy=\"{y}\" r=\"2.4\" fill=\"{color}\"/>\n"
            ));
        }
        ends.push((last.1, last, *name, color));
    }
    // Names beside the ends of their lines, moved apart.
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let step = TEXT + 2.0;
    let lowest = bottom.max(top + step * ends.len() as f64);
    for i in (0..ends.len()).rev() {
        let limit = ends.get(i + 1).map_or(lowest, |next| next.0 - step);
        ends[i].0 = ends[i].0.min(limit);
    }
    let mut least = top;
    for (at, (_, end), name, color) in ends {
        let at = at.max(least);
        least = at + step;
        svg.line(
            (right, end),
            (right + 8.0, at),
            &format!("stroke=\"{color}\" stroke-width=\"0.8\""),
        );
        let fill = format!("fill=\"{color}\"");
        svg.text((right + 11.0, at + 4.0), name, Anchor::Start, TEXT, &fill);
    }
    let height = lowest.max(bottom + 2.0 * LINE) + MARGIN;
    svg.finish(whole, height, caption)
}

/// Marks where the fastest algorithm changes between two neighbours on the axis.
fn crossovers(
    svg: &mut Svg,
    sweep: &Sweep,
    place: &dyn Fn(&SweepRow) -> Option<f64>,
    x: &Axis,
    (top, bottom): (f64, f64),
) {
    /// Who is behind by less leads on.
    const MIN_LEAD: f64 = 1e-3;
    let mut best: Vec<(f64, &SweepRow)> = Vec::new();
    for point in sweep.points() {
        let rows = sweep.at(point);
        let Some(at) = place(rows[0]) else { continue };
        let leader = best.last().map(|(_, row)| &row.algorithm);
        let leads_on = |row: &&&SweepRow| {
            Some(&row.algorithm) == leader && row.value() <= rows[0].value() * (1.0 + MIN_LEAD)
        };
        best.push((at, rows.iter().find(leads_on).unwrap_or(&rows[0])));
    }
    for pair in best.windows(2) {
        let [(from, before), (to, after)] = pair else {
            continue;
        };
        if before.algorithm != after.algorithm {
            let at = (x.at(*from) + x.at(*to)) / 2.0;
            svg.line(
                (at, top),
                (at, bottom),
                "stroke=\"#777\" stroke-dasharray=\"4 4\"",
            );
        }
    }
}
