//! The page of the collectives benchmark: how long the measured times are in the model's, for each
//! collective, as a table, a chart and a list of all points.

use std::collections::BTreeMap;

use oneport_pictures::Columns;
use oneport_pictures::shell::{Heading, chart};
use oneport_pictures::svg::{bytes as size, escape};
use serde_json::json;

use super::{Point, Summary, commit, machine, median, now};

const SCRIPT: &str = include_str!("ratios.js");

/// A row was disturbed if its median is more than this multiple of its minimum.
const DISTURBED: f64 = 2.0;
/// With fewer repetitions in the time of a row, something else used the cores in all of them.
const MIN_REPETITIONS: u64 = 5;

impl Point {
    /// Whether something else used the cores meanwhile.
    pub(super) fn disturbed(&self) -> bool {
        let slow = self.median_ns as f64 > DISTURBED * self.min_ns as f64;
        slow || self.repetitions < MIN_REPETITIONS
    }

    /// What makes the row's time differ from that of an idle machine with a core for each rank.
    pub(super) fn flags(&self) -> String {
        let flags = [
            (self.disturbed(), "disturbed"),
            (self.moved, "cores moved"),
            (self.oversubscribed, "oversubscribed"),
        ];
        let flags = flags.into_iter().filter(|f| f.0).map(|f| f.1);
        flags.collect::<Vec<_>>().join(", ")
    }

    pub(super) fn name(&self) -> String {
        format!(
            "{} {}, {} ranks, {}, segments of {}",
            self.collective,
            self.algorithm,
            self.ranks,
            size(self.bytes as u64),
            size(self.segment as u64)
        )
    }
}

/// Points and their ratios of measured to model time, by collective.
type ByCollective<'a> = BTreeMap<&'a str, Vec<(&'a Point, f64)>>;

/// Formats the page.
pub(super) fn page(summary: &Summary<'_>) -> String {
    let mut by_collective = ByCollective::new();
    for point in summary.all() {
        if let Some(ratio) = point.ratio() {
            let points = by_collective.entry(point.collective).or_default();
            points.push((point, ratio));
        }
    }
    let mut warnings = summary.warnings();
    if by_collective.is_empty() {
        let none = "This machine could not be calibrated: there are no model times.";
        warnings.insert(0, none.into());
    }
    let note = format!(
        "1 is as long as in the model, 2 is twice as long. Disturbed: the median is over {DISTURBED} times the minimum, or there are \
         fewer than {MIN_REPETITIONS} repetitions, so something else used the cores. Oversubscribed: more ranks than cores, so the \
         time includes waiting for a core. Median and worst are those of the points with a core for each rank that have no such flag; \
         worst is the ratio that is farthest from 1, in either direction. Cores moved: messages before and after took differently long."
    );
    let spare = by_collective
        .values()
        .flatten()
        .filter(|(p, _)| p.oversubscribed);
    let panels = by_collective.keys().map(|collective| {
        let note =
            "The algorithm with the least model time of each size; the wide line is the model.";
        chart(&format!("time-{collective}"), collective, note)
    });
    let body = format!(
        "<div class=\"charts one\">\n<figure><h2>Measured over model</h2>{}<p>{note}</p>{}</figure>\n{}</div>\n\
         <h2>Time over size, with the model's line</h2>\n<div class=\"charts\">\n{}</div>\n\
         <details id=\"crowded\"><summary>{} points with more ranks than cores</summary>\n<div class=\"charts one\">{}</div></details>\n\
         <details><summary>All {} points</summary>\n{}</details>\n",
        paragraphs(&[summary.findings(), summary.best_segments()].concat()),
        ratios(&by_collective),
        chart(
            "by-ratio",
            "All ratios",
            "With a core for each rank. Hollow: disturbed."
        ),
        panels.collect::<String>(),
        spare.count(),
        chart(
            "by-ratio-crowded",
            "Ratios with more ranks than cores",
            "Wall-clock includes waiting for a core."
        ),
        summary.all().count(),
        list(summary)
    );
    let rows = by_collective.values().flatten().map(|(point, ratio)| {
        json!({ "collective": point.collective, "ranks": point.ranks, "ratio": ratio, "bytes": point.bytes,
                "wall": point.median_ns, "model": point.model_ns, "algorithm": point.algorithm,
                "crowded": point.oversubscribed, "name": point.name(), "flags": point.flags() })
    });
    let rows = rows.collect::<Vec<_>>();
    heading(summary, warnings).page(&body, &json!({ "rows": rows }), SCRIPT)
}

fn heading(summary: &Summary<'_>, warnings: Vec<String>) -> Heading {
    Heading {
        title: "Collectives, measured over model".into(),
        summary: [
            ("machine", machine()),
            ("commit", commit()),
            ("date", now()),
        ]
        .into_iter()
        .chain(summary.model())
        .chain([(
            "elements",
            "f32, sum; native clock; medians of all repetitions".to_string(),
        )])
        .collect(),
        warnings,
    }
}

/// A paragraph of each line.
fn paragraphs(lines: &[String]) -> String {
    let paragraph = |line: &String| format!("<p>{}</p>", escape(line.trim_start()));
    lines.iter().map(paragraph).collect()
}

/// The median ratio of each collective and its worst point, of the points that have no flags; the
/// median of those with more ranks than cores; and how many were disturbed.
fn ratios(by_collective: &ByCollective<'_>) -> String {
    let titles = [
        "collective",
        ">points",
        ">median",
        ">worst",
        "at",
        ">oversubscribed",
        ">disturbed",
    ];
    let row = |(collective, points): (&&str, &Vec<(&Point, f64)>)| {
        let median_of = |keep: &dyn Fn(&Point) -> bool| {
            let chosen = points.iter().filter(|p| keep(p.0));
            let mut ratios: Vec<f64> = chosen.map(|p| p.1).collect();
            median(&mut ratios).map_or("-".into(), |m| format!("{m:.2}"))
        };
        let factor = |ratio: f64| ratio.max(1.0 / ratio);
        let worst = points.iter().filter(|p| p.0.flags().is_empty());
        let worst = worst.max_by(|a, b| factor(a.1).total_cmp(&factor(b.1)));
        let (worst, at) = worst.map_or(("-".into(), String::new()), |(point, ratio)| {
            (format!("{ratio:.2}"), point.name())
        });
        let disturbed = match points.iter().filter(|p| p.0.disturbed()).count() {
            0 => "none".to_string(),
            n => format!("⚠ {n}"),
        };
        [
            collective.to_string(),
            points.len().to_string(),
            median_of(&|p| p.flags().is_empty()),
            worst,
            at,
            median_of(&|p| p.oversubscribed),
            disturbed,
        ]
    };
    let rows = by_collective.iter().map(row);
    let mut columns = Columns::<[String; 7]>::default();
    for (i, title) in titles.into_iter().enumerate() {
        columns = columns.add(title, move |cells| cells[i].clone());
    }
    columns.html("ratios", "Ratios by collective", rows, |_| None)
}

/// All points.
fn list(summary: &Summary<'_>) -> String {
    let us = |ns: f64| format!("{:.2}", ns * 1e-3);
    let number = |x: Option<String>| x.unwrap_or("-".into());
    Columns::<Point>::default()
        .add("collective", |p| p.collective)
        .add("algorithm", |p| p.algorithm.clone())
        .add(">ranks", |p| p.ranks)
        .add(">size", |p| size(p.bytes as u64))
        .add(">segment", |p| size(p.segment as u64))
        .add(">repetitions", |p| p.repetitions)
        .add(">min µs", |p| us(p.min_ns as f64))
        .add(">median µs", |p| us(p.median_ns as f64))
        .add(">p99 µs", |p| us(p.p99_ns as f64))
        .add(">model µs", |p| number(p.model_ns.map(us)))
        .add(">ratio", |p| number(p.ratio().map(|r| format!("{r:.2}"))))
        .add("flags", Point::flags)
        .html("all", "All points", summary.all(), |_| None)
}
