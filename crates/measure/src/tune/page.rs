//! A self-contained HTML page of a sweep: interactive log-log plots and tables of all numbers.

use oneport_pictures::shell::{Heading, chart};
use oneport_pictures::svg::{bytes as size, number};
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
    let disturbed: Vec<&Trial> = tuning.disturbed().collect();
    let next = |row: &Trial| {
        let others = tuning.rows.iter().filter(|other| {
            other.bytes == row.bytes && other.best_segment && other.algorithm != row.algorithm
        });
        let next = others.min_by_key(|other| other.wall.median);
        next.map_or("-".into(), |next| {
            format!("{} x {}", next.algorithm, over(next, row))
        })
    };
    let library = |row: &Trial| {
        let own = tuning.library_at(row.bytes);
        own.map_or("-".into(), |own| over(&own.trial, row))
    };
    let doubt = |row: &Trial| {
        let mut here = disturbed.iter().filter(|other| other.bytes == row.bytes);
        match here.clone().any(|other| other.algorithm == row.algorithm) {
            true => "disturbed",
            false if here.next().is_some() => "others disturbed",
            false => "",
        }
    };
    let best = named()
        .add(">median", |row| ns(row.wall.median))
        .add("next", next)
        .add_if(!tuning.library.is_empty(), ">library / best", library)
        .add(">model", |row| time(row.model_time))
        .add(">settled", settled)
        .add_if(!disturbed.is_empty(), "", doubt)
        .html("best", "The best of each size", tuning.winners(), |_| false);
    let is_disturbed = |row: &Trial| {
        let is_it =
            |other: &&&Trial| (other.bytes, &other.algorithm) == (row.bytes, &row.algorithm);
        let it = disturbed.iter().find(is_it).filter(|_| row.best_segment);
        it.map_or("", |_| "disturbed")
    };
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
        .add_if(!disturbed.is_empty(), "", is_disturbed)
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

/// The median of a row over that of the best.
fn over(row: &Trial, best: &Trial) -> String {
    number(row.wall.median as f64 / best.wall.median.max(1) as f64, 3)
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
