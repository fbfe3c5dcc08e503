//! The page of the collectives benchmark: how long the measured times are in the model's, for each
//! collective, as a table, a picture and a list of all points. Its style is that of tune's page.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{Point, Summary, commit, machine, median, now, size};

const STYLE: &str = include_str!("../../crates/measure/src/tune/page.css");

/// Rows whose median is so many times their minimum were disturbed: half of the repetitions took
/// that much longer than the fastest.
const DISTURBED: f64 = 2.0;
/// With fewer repetitions in the time of a row, something else used the cores in all of them.
const MIN_REPETITIONS: u64 = 5;

impl Point {
    /// Whether something else used the cores meanwhile.
    fn disturbed(&self) -> bool {
        let slow = self.median_ns as f64 > DISTURBED * self.min_ns as f64;
        slow || self.repetitions < MIN_REPETITIONS
    }

    /// What makes the row's time differ from that of an idle machine with a core for each rank.
    fn flags(&self) -> String {
        let flags = [
            (self.disturbed(), "disturbed"),
            (self.oversubscribed, "oversubscribed"),
        ];
        let flags = flags.into_iter().filter(|f| f.0).map(|f| f.1);
        flags.collect::<Vec<_>>().join(", ")
    }

    fn name(&self) -> String {
        format!(
            "{} {}, {} ranks, {}, segments of {}",
            self.collective,
            self.algorithm,
            self.ranks,
            size(self.bytes),
            size(self.segment)
        )
    }
}

/// Formats the page.
pub(super) fn page(summary: &Summary<'_>) -> String {
    let mut by_collective: BTreeMap<&str, Vec<(&Point, f64)>> = BTreeMap::new();
    for point in summary.all() {
        if let Some(ratio) = point.ratio() {
            by_collective
                .entry(point.collective)
                .or_default()
                .push((point, ratio));
        }
    }
    let mut findings = String::new();
    for line in summary.findings() {
        let _ = writeln!(findings, "<p>{}</p>", escaped(line.trim()));
    }
    if !findings.is_empty() {
        findings =
            format!("<figure style=\"margin-top:18px\"><h2>Findings</h2>\n{findings}</figure>\n");
    }
    let none =
        "<p class=\"warning\">This machine could not be calibrated: there are no model times.</p>";
    let answer = match by_collective.is_empty() {
        true => none.to_string(),
        false => format!(
            "<figure><h2>Measured over model</h2>\n<p>1 is as long as in the model, 2 is twice as long. Disturbed: the median is \
             over {DISTURBED} times the minimum, or there are fewer than {MIN_REPETITIONS} repetitions, so something else used the cores. \
             Oversubscribed: more ranks than cores, so the time includes waiting for a core. Median and worst are those \
             of the points with a core for each rank that were not disturbed.</p>\n{}\n{}</figure>\n",
            table(&by_collective),
            picture(&by_collective)
        ),
    };
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>oneport: measured over model</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <h1>Collectives, measured over model</h1>\n<dl>\n<dt>machine</dt><dd>{}</dd>\n\
         <dt>commit</dt><dd>{}</dd>\n<dt>date</dt><dd>{}</dd>\n\
         <dt>elements</dt><dd>f32, sum; native clock; medians of all repetitions</dd>\n</dl>\n\
         {answer}{findings}{}</body>\n</html>\n",
        escaped(&machine()),
        escaped(&commit()),
        escaped(&now()),
        list(summary)
    )
}

/// The median ratio of each collective and its worst point, of the points that have no flags; the
/// median of those with more ranks than cores; and how many were disturbed.
fn table(by_collective: &BTreeMap<&str, Vec<(&Point, f64)>>) -> String {
    let mut text = String::from(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Ratios by collective\"><table id=\"ratios\">\n<thead><tr>\
         <th class=\"name\">collective</th><th>points</th><th>median</th><th>worst</th><th class=\"name\">at</th>\
         <th>oversubscribed</th><th>disturbed</th></tr></thead>\n<tbody>\n",
    );
    for (collective, points) in by_collective {
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
        let disturbed = points.iter().filter(|p| p.0.disturbed()).count();
        let disturbed = match disturbed {
            0 => "none".to_string(),
            n => format!("⚠ {n}"),
        };
        let _ = writeln!(
            text,
            "<tr><td class=\"name\">{collective}</td><td>{}</td><td>{}</td><td>{worst}</td><td class=\"name\">{at}</td><td>{}</td><td>{disturbed}</td></tr>",
            points.len(),
            median_of(&|p| p.flags().is_empty()),
            median_of(&|p| p.oversubscribed),
        );
    }
    text + "</tbody></table></div>"
}

/// All ratios on a logarithmic axis, a row for each collective; hollow marks are flagged.
fn picture(by_collective: &BTreeMap<&str, Vec<(&Point, f64)>>) -> String {
    const LEFT: f64 = 110.0;
    const WIDTH: f64 = 780.0;
    const ROW: f64 = 34.0;
    const TOP: f64 = 26.0;
    let all = || by_collective.values().flatten();
    let exponents = all().map(|p| p.1.log2());
    let (low, high) = exponents.fold((-1.0f64, 1.0f64), |(l, h), e| {
        (l.min(e.floor()), h.max(e.ceil()))
    });
    let x_of = |ratio: f64| LEFT + 10.0 + (ratio.log2() - low) / (high - low) * WIDTH;
    let mut ranks: Vec<usize> = all().map(|p| p.0.ranks).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let bottom = TOP + ROW * by_collective.len() as f64;
    let (width, height) = (LEFT + WIDTH + 24.0, bottom + 44.0);
    let mut svg = format!(
        "<div class=\"scroll chart\" tabindex=\"0\" role=\"region\" aria-label=\"Picture of all ratios\">\
         <svg viewBox=\"0 0 {width} {height}\" style=\"min-width:680px;max-width:{width}px;margin-top:14px\" role=\"img\" aria-label=\"Ratios of measured to model time\">\n"
    );
    for exponent in low as i32..=high as i32 {
        let (ratio, class) = (
            2f64.powi(exponent),
            if exponent == 0 { "agree" } else { "grid" },
        );
        let x = x_of(ratio);
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.1} {TOP}V{bottom}\" class=\"{class}\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{ratio}</text>",
            TOP - 8.0
        );
    }
    for (row, (collective, points)) in by_collective.iter().enumerate() {
        let middle = TOP + ROW * (row as f64 + 0.5);
        let _ = writeln!(
            svg,
            "<text x=\"{LEFT}\" y=\"{:.1}\" text-anchor=\"end\">{collective}</text>",
            middle + 4.0
        );
        for (point, ratio) in points {
            let place = ranks.iter().position(|&r| r == point.ranks).unwrap_or(0);
            let offset = (place as f64 + 0.5) / ranks.len() as f64 - 0.5;
            let flags = point.flags();
            let fill = if flags.is_empty() {
                format!("var(--s{})", place % 10)
            } else {
                "none".into()
            };
            let note = if flags.is_empty() {
                flags
            } else {
                format!(" ({flags})")
            };
            let _ = writeln!(
                svg,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" style=\"fill:{fill};stroke:var(--s{})\"><title>{}: {ratio:.2}{note}</title></circle>",
                x_of(*ratio),
                middle + offset * (ROW - 8.0),
                place % 10,
                point.name()
            );
        }
    }
    let mut x = LEFT + 10.0;
    for (place, count) in ranks.iter().enumerate() {
        let (y, colour) = (bottom + 26.0, place % 10);
        let _ = writeln!(
            svg,
            "<circle cx=\"{x}\" cy=\"{:.1}\" r=\"4\" style=\"fill:var(--s{colour})\"/><text x=\"{}\" y=\"{y}\">{count} ranks</text>",
            y - 4.0,
            x + 9.0
        );
        x += 90.0;
    }
    let y = bottom + 26.0;
    let _ = writeln!(
        svg,
        "<text x=\"{x}\" y=\"{y}\">hollow: disturbed or oversubscribed</text>"
    );
    svg + "</svg></div>"
}

/// All points.
fn list(summary: &Summary<'_>) -> String {
    let mut text = format!(
        "<details><summary>All {} points</summary>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"All points\"><table>\n<thead><tr>\
         <th class=\"name\">collective</th><th class=\"name\">algorithm</th><th>ranks</th><th>size</th><th>segment</th>\
         <th>repetitions</th><th>min µs</th><th>median µs</th><th>p99 µs</th><th>model µs</th><th>ratio</th><th class=\"name\">flags</th></tr></thead>\n<tbody>\n",
        summary.all().count()
    );
    for p in summary.all() {
        let us = |ns: f64| format!("{:.2}", ns * 1e-3);
        let number = |x: Option<String>| x.unwrap_or("-".into());
        let _ = writeln!(
            text,
            "<tr><td class=\"name\">{}</td><td class=\"name\">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>\
             <td>{}</td><td>{}</td><td>{}</td><td class=\"name\">{}</td></tr>",
            p.collective,
            p.algorithm,
            p.ranks,
            size(p.bytes),
            size(p.segment),
            p.repetitions,
            us(p.min_ns as f64),
            us(p.median_ns as f64),
            us(p.p99_ns as f64),
            number(p.model_ns.map(us)),
            number(p.ratio().map(|r| format!("{r:.2}"))),
            p.flags()
        );
    }
    text + "</tbody></table></div></details>\n"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
