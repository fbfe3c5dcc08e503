//! A self-contained HTML page of a sweep: interactive log-log plots and tables of all numbers.

use oneport_pictures::Unit;
use oneport_pictures::shell::{Heading, chart, table};
use oneport_pictures::svg::bytes as size;
use serde_json::json;

use super::Trial;

const SCRIPT: &str = include_str!("tune.js");

/// Formats the page.
pub fn page(heading: &Heading, rows: &[Trial]) -> String {
    let select = "<label>Size of the vector: <select id=\"size\"></select></label>";
    let charts = [
        chart(
            "by-size",
            "Time over size",
            "Each algorithm with the best segment size found.",
        ),
        chart("by-segment", "Time over segment size", select),
        chart(
            "by-model",
            "Measured against model",
            "On the dashed line both agree; above it, reality is slower.",
        ),
    ];
    let best = rows.iter().filter(|row| row.best).map(|row| {
        let times = [time(row.wall.median as f64), time(row.model_time)];
        ("", names(row).into_iter().chain(times).collect())
    });
    let best = table(
        "best",
        "The best of each size",
        &["size", "<algorithm", "segment", "median", "model"],
        best,
    );
    let all = rows.iter().map(|row| {
        let w = &row.wall;
        let ns = |t: u64| time(t as f64);
        let rest = [
            row.segments.to_string(),
            ns(w.median),
            ns(w.low),
            ns(w.high),
            ns(w.min),
            ns(w.p99),
            ns(w.max),
            w.repetitions.to_string(),
            time(row.model_time),
            if row.settled { "yes" } else { "no" }.to_string(),
        ];
        let class = if row.best { "best" } else { "" };
        (class, names(row).into_iter().chain(rest).collect())
    });
    let columns = [
        "size",
        "<algorithm",
        "segment",
        "segments",
        "median",
        "95% from",
        "to",
        "min",
        "p99",
        "max",
        "repetitions",
        "model",
        "settled",
    ];
    let all = table("all", "All rows", &columns, all);
    let body = format!(
        r#"<div class="charts">
{}<figure><h2>The best of each size</h2><p>With the segment size to use.</p>{best}<p class="note">A row is settled if the repetitions establish that the best row of its size is at least as fast: the 95% confidence intervals of the medians do not touch, or differ by no more than the tolerance. The best row is settled against the other segment sizes of its algorithm and against the best of every other algorithm. Where rows are not settled, more repetitions (a larger budget) may change which is best.</p></figure>
</div>
<details><summary>All {} rows</summary>
{all}</details>
"#,
        charts.concat(),
        rows.len()
    );
    heading.page(&body, &json!({ "rows": rows }), SCRIPT)
}

/// The first cells of a row in a table.
fn names(row: &Trial) -> [String; 3] {
    [size(row.bytes), row.algorithm.clone(), size(row.segment)]
}

/// Formats a time, such as `12.34 us`.
fn time(ns: f64) -> String {
    match ns.is_nan() {
        true => "-".into(),
        false => Unit::Nanoseconds.show(ns),
    }
}
