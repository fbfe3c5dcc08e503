//! A self-contained HTML page of a sweep: interactive log-log plots and tables of all numbers.
//!
//! The page loads nothing from elsewhere. `page.css` and `page.js` next to this file are embedded.

use std::fmt::Write as _;

use super::Trial;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Description of the sweep at the top of the page.
#[derive(Debug, Clone, Default)]
pub struct Heading {
    /// The page's title.
    pub title: String,
    /// Names and values: machine, ranks, clock, date, command, ...
    pub summary: Vec<(String, String)>,
    /// Warnings about the quality of the figures.
    pub warnings: Vec<String>,
}

/// Formats the page.
pub fn page(heading: &Heading, rows: &[Trial]) -> String {
    let title = escaped(&heading.title);
    let entry = |name: &str| heading.summary.iter().find(|(n, _)| n == name);
    let mut window = title.clone();
    for (_, value) in ["machine", "date"].into_iter().filter_map(entry) {
        window += &format!(", {}", escaped(value));
    }
    let mut summary = String::new();
    for (name, value) in &heading.summary {
        let value = escaped(value);
        let value = if name == "command" {
            format!("<code>{value}</code>")
        } else {
            value
        };
        let _ = writeln!(summary, "<dt>{}</dt><dd>{value}</dd>", escaped(name));
    }
    let mut warnings = String::new();
    for warning in &heading.warnings {
        let _ = writeln!(warnings, "<p class=\"warning\">{}</p>", escaped(warning));
    }
    let best: Vec<&Trial> = rows.iter().filter(|row| row.best).collect();
    let all: Vec<&Trial> = rows.iter().collect();
    let (best, all) = (table("best", &best), table("all", &all));
    let count = rows.len();
    let data = data(rows);
    format!(
        r#"<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{window}</title>
<style>
{STYLE}</style>
</head>
<body>
<h1>{title}</h1>
<dl>
{summary}</dl>
{warnings}<div class="legend" id="legend"></div>
<noscript><p class="warning">The plots need scripts; the tables below have all numbers.</p></noscript>
<div class="charts">
<figure><h2>Time over size</h2><p>Each algorithm with the best segment size found.</p><div class="chart" id="by-size" tabindex="0" role="group" aria-label="Time over size: arrow keys go from point to point"></div></figure>
<figure><h2>Time over segment size</h2><p><label>Size of the vector: <select id="size"></select></label></p><div class="chart" id="by-segment" tabindex="0" role="group" aria-label="Time over segment size: arrow keys go from point to point"></div></figure>
<figure><h2>Measured against model</h2><p>On the dashed line both agree; above it, reality is slower.</p><div class="chart" id="by-model" tabindex="0" role="group" aria-label="Measured against model: arrow keys go from point to point"></div></figure>
<figure><h2>The best of each size</h2><p>With the segment size to use.</p><div class="scroll" tabindex="0" role="region" aria-label="The best of each size">{best}</div>
<p class="note">A row is settled if the repetitions establish that the best row of its size is at least as fast: the 95% confidence intervals of the medians do not touch, or differ by no more than the tolerance. The best row is settled against the other segment sizes of its algorithm and against the best of every other algorithm. Where rows are not settled, more repetitions (a larger budget) may change which is best.</p></figure>
</div>
<details><summary>All {count} rows</summary>
<div class="scroll" tabindex="0" role="region" aria-label="All rows">{all}</div>
</details>
<script type="application/json" id="data">{data}</script>
<script>
{SCRIPT}</script>
</body>
</html>
"#
    )
}

fn table(id: &str, rows: &[&Trial]) -> String {
    let mut text =
        format!("<table id=\"{id}\">\n<thead><tr><th>size</th><th class=\"name\">algorithm</th>");
    let columns = if id == "best" {
        "<th>segment</th><th>median</th><th>model</th>"
    } else {
        "<th>segment</th><th>segments</th><th>median</th><th>95% from</th><th>to</th><th>min</th><th>p99</th><th>max</th>\
         <th>repetitions</th><th>model</th><th>settled</th>"
    };
    text += columns;
    text += "</tr></thead>\n<tbody>\n";
    for row in rows {
        let w = &row.wall;
        let ns = |t: u64| time(t as f64);
        let class = if row.best && id == "all" {
            " class=\"best\""
        } else {
            ""
        };
        let _ = write!(
            text,
            "<tr{class}><td>{}</td><td class=\"name\">{}</td><td>{}</td>",
            size(row.bytes),
            escaped(&row.algorithm),
            size(row.segment)
        );
        let _ = if id == "best" {
            write!(
                text,
                "<td>{}</td><td>{}</td>",
                ns(w.median),
                time(row.model_time)
            )
        } else {
            write!(
                text,
                "<td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>",
                row.segments,
                ns(w.median),
                ns(w.low),
                ns(w.high),
                ns(w.min),
                ns(w.p99),
                ns(w.max),
                w.repetitions,
                time(row.model_time),
                if row.settled { "yes" } else { "no" }
            )
        };
        text += "</tr>\n";
    }
    text + "</tbody></table>"
}

/// Formats a number of bytes, such as `64 KiB`; in full where that would not be exact.
fn size(bytes: u64) -> String {
    let power = (bytes.max(1).trailing_zeros() / 10).min(3);
    format!(
        "{} {}",
        bytes >> (10 * power),
        ["B", "KiB", "MiB", "GiB"][power as usize]
    )
}

/// Formats a time, such as `12.34 µs`.
fn time(ns: f64) -> String {
    if ns.is_nan() {
        return "-".into();
    }
    let (unit, name) = match ns {
        t if t >= 1e9 => (1e9, "s"),
        t if t >= 1e6 => (1e6, "ms"),
        t if t >= 1e3 => (1e3, "µs"),
        _ => (1.0, "ns"),
    };
    let value = ns / unit;
    let digits = match value {
        v if v >= 100.0 => 1,
        v if v >= 10.0 => 2,
        _ => 3,
    };
    if value.fract() == 0.0 {
        format!("{value:.0} {name}")
    } else {
        format!("{value:.digits$} {name}")
    }
}

/// Formats the rows as JSON that is safe inside a script element.
fn data(rows: &[Trial]) -> String {
    let json = serde_json::to_string(&serde_json::json!({ "rows": rows }));
    json.unwrap_or_default().replace('<', "\\u003c")
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            c => escaped.push(c),
        }
    }
    escaped
}
