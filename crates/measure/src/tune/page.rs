//! A self-contained HTML page of a sweep: interactive log-log plots and tables of all numbers.

use oneport_pictures::shell::{Heading, chart};
use oneport_pictures::svg::bytes as size;
use oneport_pictures::{Columns, Unit};
use serde_json::json;

use super::{Trial, TuningResult};

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
    let tuning = TuningResult::of_rows(rows);
    let is_disturbed = tuning.disturbed().next().is_some();
    let dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
    let best = named()
        .add(">median", |row| ns(row.wall.median))
        .add("next", |row| dash(tuning.next(row)))
        .add_if(!tuning.library.is_empty(), ">library / best", |row| {
            dash(tuning.library_over(row))
        })
        .add(">model", |row| time(row.model_time))
        .add(">settled", settled)
        .add_if(is_disturbed, "", |row| tuning.disturbance(row))
        .html("best", "The best of each size", tuning.winners(), |_| None);
    let has_p99 = rows.iter().any(|row| row.wall.shown_p99().is_some());
    let all = named()
        .add(">segments", |row| row.segments)
        .add(">median", |row| ns(row.wall.median))
        .add(">95% from", |row| ns(row.wall.low))
        .add(">to", |row| ns(row.wall.high))
        .add(">min", |row| ns(row.wall.min))
        .add_if(has_p99, ">p99", |row| {
            row.wall.shown_p99().map_or("-".into(), ns)
        })
        .add(">max", |row| ns(row.wall.max))
        .add(">repetitions", |row| row.wall.repetitions)
        .add(">model", |row| time(row.model_time))
        .add(">settled", settled)
        .add_if(is_disturbed, "", |row| match tuning.disturbance(row) {
            "disturbed" => "disturbed",
            _ => "",
        })
        .html("all", "All rows", rows, |row| row.best.then_some("best"));
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
    if ns.is_nan() {
        "-".into()
    } else {
        Unit::Nanoseconds.show(ns)
    }
}
