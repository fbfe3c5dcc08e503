//! A self-contained HTML page of a sweep: interactive log-log plots and tables of all numbers.

use oneport_pictures::shell::{Heading, chart};
use oneport_pictures::svg::bytes as size;
use oneport_pictures::{Columns, Unit};
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
    let named = || {
        Columns::<Trial>::default()
            .add(">size", |row| size(row.bytes))
            .add("algorithm", |row| row.algorithm.clone())
            .add(">segment", |row| size(row.segment))
    };
    let settled = |row: &Trial| if row.settled { "yes" } else { "no" };
    let best = rows.iter().filter(|row| row.best);
    let best = named()
        .add(">median", |row| ns(row.wall.median))
        .add(">model", |row| time(row.model_time))
        .add(">settled", settled)
        .html("best", "The best of each size", best, |_| false);
    let all = named()
        .add(">segments", |row| row.segments)
        .add(">median", |row| ns(row.wall.median))
        .add(">95% from", |row| ns(row.wall.low))
        .add(">to", |row| ns(row.wall.high))
        .add(">min", |row| ns(row.wall.min))
        .add(">p99", |row| row.wall.shown_p99().map_or("-".into(), ns))
        .add(">max", |row| ns(row.wall.max))
        .add(">repetitions", |row| row.wall.repetitions)
        .add(">model", |row| time(row.model_time))
        .add(">settled", settled)
        .html("all", "All rows", rows, |row| row.best);
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

fn ns(time_ns: u64) -> String {
    time(time_ns as f64)
}

/// Formats a time, such as `12.34 us`.
fn time(ns: f64) -> String {
    match ns.is_nan() {
        true => "-".into(),
        false => Unit::Nanoseconds.show(ns),
    }
}
