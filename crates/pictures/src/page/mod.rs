//! A self-contained HTML page on which one watches a schedule: it steps through time and shows
//! every rank, its ports and what its buffer holds, the messages on their way, and the Gantt chart.
//!
//! The page loads nothing and decides nothing: times, critical path and waits are the simulator's,
//! contents are the checker's symbols. Its style and scripts are the files next to this one.

mod buffers;
mod data;
mod positions;

use std::fmt::Write as _;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use miniz_oxide::deflate::compress_to_vec_zlib;

use self::data::PageData;
use self::positions::Positions;
use super::shell::Shell;
use super::svg::{escape, number, scale};
use super::trace::simulated;
use super::{Caption, Trace, Unit};
use oneport::check::{Options, Report};
use oneport::error::{Error, Result};
use oneport::internal::History;
use oneport::machine::CostModel;
use oneport::schedule::Schedule;

/// Maximal number of ranks of a page.
pub const MAX_PAGE_RANKS: usize = 64;
/// Maximal number of transfers and computations of a page; browsers step through more with delay.
const MAX_NODES: usize = 25_000;
/// Maximal size of the packed data of a page in bytes; a page is at most a megabyte with its
/// scripts.
const MAX_DATA: usize = 950_000;
/// Level of compression: higher ones take longer and gain a few percent.
const LEVEL: u8 = 8;

const STYLE: &str = include_str!("page.css");
const BODY: &str = include_str!("page.html");
/// The scripts in the order in which they need each other.
const SCRIPTS: [&str; 5] = [
    include_str!("schedule.js"),
    include_str!("picture.js"),
    include_str!("ranks.js"),
    include_str!("chart.js"),
    include_str!("player.js"),
];

/// Makes a page of `schedule` in the times of `cost`.
///
/// The schedule need not be correct; the page says what the checker says, and shows empty buffers
/// where the check ends before the proof. Equal schedules give equal pages. Their data are
/// compressed, and unpacked by the browser. Takes the time of [`Schedule::check_recorded`] and
/// [`Schedule::simulate`], and space linear in the runs of elements that the steps write.
///
/// ```
/// use oneport_pictures::{Caption, Unit, page};
/// use oneport::{CostModel, Request};
/// let schedule = Request::broadcast(8, 100).plan("binomial")?;
/// let cost = CostModel::new(10.0, 1.0);
/// let html = page(&schedule, &cost, Unit::Plain, &Caption::new("binomial broadcast"))?;
/// assert!(html.starts_with("<!DOCTYPE html>") && html.contains("binomial broadcast"));
/// # Ok::<(), oneport::Error>(())
/// ```
///
/// # Errors
/// As [`Trace::model`], when there are more than [`MAX_PAGE_RANKS`] ranks, and when the page would
/// have more than 25 000 transfers and computations or a megabyte.
pub fn page(
    schedule: &Schedule,
    cost: &CostModel,
    unit: Unit,
    caption: &Caption,
) -> Result<String> {
    let too_large = |count: usize, what: &str, max: usize, advice: &str| {
        Err(Error::usage(format!(
            "{count} {what} are more than the {max} that a page can have: take fewer {advice}"
        )))
    };
    if schedule.ranks() > MAX_PAGE_RANKS {
        let advice = "ranks, or draw a Gantt chart (.svg)";
        return too_large(schedule.ranks(), "ranks", MAX_PAGE_RANKS, advice);
    }
    let simulation = simulated(schedule, cost)?;
    let nodes = simulation.prepared().nodes().len();
    let advice = "ranks or segments, or write a trace (.json)";
    if nodes > MAX_NODES {
        return too_large(nodes, "transfers and computations", MAX_NODES, advice);
    }
    let options = Options {
        overlap: cost.overlaps(),
        ..Options::default()
    };
    let (report, history) = schedule.check_recorded(&options);
    let trace = Trace::simulated(schedule, &simulation, unit, || report.clone())?;
    let data = PageData {
        schedule,
        simulation: &simulation,
        trace: &trace,
        report: &report,
        history: &history.unwrap_or_else(|| History::empty(schedule)),
        positions: Positions::of(schedule)?,
    };
    let packed = compress_to_vec_zlib(data.json()?.to_string().as_bytes(), LEVEL);
    let packed = BASE64_STANDARD.encode(packed);
    if packed.len() > MAX_DATA {
        let what = "packed bytes of steps and contents";
        return too_large(packed.len(), what, MAX_DATA, advice);
    }
    Ok(document(
        caption,
        &summary(&trace),
        &verdict(&report),
        &packed,
    ))
}

/// The page around the packed data.
fn document(caption: &Caption, summary: &str, verdict: &str, packed: &str) -> String {
    let mut lines = String::new();
    for line in &caption.lines {
        let _ = writeln!(lines, "<p>{}</p>", escape(line));
    }
    let body = BODY
        .replace("{title}", &escape(&caption.title))
        .replace("{lines}", &(lines + summary))
        .replace("{verdict}", verdict);
    let shell = Shell {
        title: &caption.title,
        body: &body,
        style: STYLE,
        data: ("application/zlib", packed),
        script: &SCRIPTS.concat(),
    };
    shell.html()
}

/// The makespan in words.
fn summary(trace: &Trace) -> String {
    let (unit, name) = scale(trace.unit(), trace.end());
    let space = if name.is_empty() { "" } else { " " };
    let end = number(trace.end() / unit, 7);
    format!("<p>The last rank finishes at {end}{space}{name} in the model.</p>\n")
}

/// What the checker says.
fn verdict(report: &Report) -> String {
    if report.is_correct() {
        let operators = match report.keeps_order {
            true => "",
            false => ", for operators that commute",
        };
        return format!(
            "<p class=\"correct\">Proved: every output element ends with what it should \
             hold{operators}.</p>\n"
        );
    }
    let mut text = String::from("<div class=\"wrong\" role=\"alert\"><p>Wrong:</p><ul>\n");
    for error in &report.errors {
        let _ = writeln!(text, "<li>{}</li>", escape(&error.message));
    }
    if report.more > 0 {
        let _ = writeln!(text, "<li>and {} more</li>", report.more);
    }
    text + "</ul></div>\n"
}
