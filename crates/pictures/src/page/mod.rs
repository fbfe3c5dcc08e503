//! A self-contained HTML page on which one watches schedules: it steps through time and shows every
//! rank, its ports and what its buffer holds, the messages on their way, and the Gantt chart.
//!
//! The page loads nothing and decides nothing: times, critical path and waits are the simulator's,
//! contents are the checker's symbols. Its style and scripts are the files next to this one.

mod buffers;
mod data;
mod positions;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;

pub(crate) use self::data::{PageData, json};
use self::positions::Positions;
use super::shell::{Heading, LINK, Shell, UNPACK, packed};
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
/// What helps against too much on a page.
const ADVICE: &str = "ranks or segments, or write a trace (.json)";

const STYLE: &str = include_str!("page.css");
const BODY: &str = include_str!("page.html");
/// The scripts in the order in which they need each other.
const SCRIPTS: [&str; 6] = [
    UNPACK,
    include_str!("schedule.js"),
    include_str!("picture.js"),
    include_str!("ranks.js"),
    include_str!("chart.js"),
    include_str!("player.js"),
];

/// A schedule that a page shows.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    /// What it is called beside others.
    pub name: &'a str,
    /// The schedule.
    pub schedule: &'a Schedule,
    /// The costs of its machine.
    pub cost: &'a CostModel,
}

/// Makes a page of some schedules, side by side on one clock and one time axis, in `unit`.
///
/// A schedule need not be correct; the page says what the checker says, and shows one that
/// deadlocks up to where nothing moves. Equal schedules give equal pages. Their data are
/// compressed, and unpacked by the browser. Takes the time of [`Schedule::check_recorded`] and
/// [`Schedule::simulate`], and space linear in the runs of elements that the steps write.
///
/// ```
/// use oneport_pictures::{Caption, Shown, Unit, page};
/// use oneport::{CostModel, Request};
/// let (cost, name) = (CostModel::new(10.0, 1.0), "binomial");
/// let schedule = Request::broadcast(8, 100).plan(name)?;
/// let shown = Shown { name, schedule: &schedule, cost: &cost };
/// let html = page(&[shown], Unit::Plain, &Caption::new("binomial broadcast"))?;
/// assert!(html.starts_with("<!DOCTYPE html>") && html.contains("binomial broadcast"));
/// # Ok::<(), oneport::Error>(())
/// ```
///
/// # Errors
/// As [`Trace::model`], when a schedule has more than [`MAX_PAGE_RANKS`] ranks, and when the page
/// would have more than 25 000 transfers and computations or a megabyte.
pub fn page(all: &[Shown], unit: Unit, caption: &Caption) -> Result<String> {
    let Player {
        lines,
        summary,
        data,
        ..
    } = Player::new(all, unit, caption)?;
    Ok(document(caption, &lines, &summary, (&data, "")))
}

/// What is its own of a [`page()`].
#[derive(Debug, Clone, Serialize)]
pub struct Player {
    title: String,
    lines: String,
    summary: String,
    data: String,
}

impl Player {
    /// Of some schedules.
    ///
    /// # Errors
    /// As [`page()`].
    pub fn new(all: &[Shown], unit: Unit, caption: &Caption) -> Result<Player> {
        let (mut shown, mut nodes) = (Vec::new(), 0);
        for &of in all {
            shown.push(data_of(of, unit, &mut nodes)?);
        }
        let data = packed(&json(&shown).to_string());
        if data.len() > MAX_DATA {
            let what = "packed bytes of steps and contents";
            return Err(too_large(data.len(), what, MAX_DATA, ADVICE));
        }
        let lines = match &caption.lines[..] {
            [] => String::new(),
            lines => format!("<p>{}</p>\n", escape(&lines.join("; "))),
        };
        let summary = match shown.pop() {
            Some(one) if shown.is_empty() => one.facts,
            _ => String::new(),
        };
        Ok(Player {
            title: escape(&caption.title),
            lines,
            summary,
            data,
        })
    }
}

/// Players by name. They stand in another page, which opens each as a page of its own.
#[derive(Debug, Clone, Default)]
pub struct Players(BTreeMap<String, Player>);

impl Players {
    /// The first of these, so many that together their data have at most so many bytes.
    pub fn within(max_bytes: usize, all: impl IntoIterator<Item = (String, Player)>) -> Players {
        let mut bytes = 0;
        let within = all.into_iter().take_while(|(_, player)| {
            bytes += player.data.len();
            bytes <= max_bytes
        });
        Players(within.collect())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A page of tables below a heading: what [`Columns`](crate::Columns) show first of a row opens
    /// the player of that name, and so does a `<b>`.
    pub fn page(&self, heading: &Heading, body: &str) -> String {
        let link = "linkPlayers(document.querySelectorAll(\"td:first-child, b\"), \
                    JSON.parse(element(\"data\").textContent));\n";
        heading.page(body, &self.json(), &format!("{UNPACK}{LINK}{link}"))
    }

    /// For the script `linkPlayers`: what all pages share, with the names of its own parts between
    /// marks, and those parts.
    pub(crate) fn json(&self) -> Value {
        let shell = document(
            &Caption::new("@title@"),
            "@lines@",
            "@summary@",
            ("@data@", ""),
        );
        serde_json::json!({"shell": packed(&shell), "own": self.0})
    }
}

/// What a page refuses to show, and what to do.
fn too_large(count: usize, what: &str, max: usize, advice: &str) -> Error {
    Error::usage(format!(
        "{count} {what} are more than the {max} that a page can have: take fewer {advice}"
    ))
}

/// What a page shows of a schedule. Adds its transfers and computations to `nodes`.
pub(crate) fn data_of<'a>(of: Shown<'a>, unit: Unit, nodes: &mut usize) -> Result<PageData<'a>> {
    let Shown {
        name,
        schedule,
        cost,
    } = of;
    if schedule.ranks() > MAX_PAGE_RANKS {
        let advice = "ranks, or draw a Gantt chart (.svg)";
        return Err(too_large(schedule.ranks(), "ranks", MAX_PAGE_RANKS, advice));
    }
    let simulation = simulated(schedule, cost)?;
    *nodes += simulation.prepared().nodes().len();
    if *nodes > MAX_NODES {
        let what = "transfers and computations";
        return Err(too_large(*nodes, what, MAX_NODES, ADVICE));
    }
    let options = Options {
        overlap: cost.overlaps(),
        ..Options::default()
    };
    let (report, history) = schedule.check_recorded(&options);
    let trace = Trace::simulated(schedule, &simulation, unit, || report.clone())?;
    Ok(PageData {
        name,
        schedule,
        cost,
        facts: facts(schedule, &trace, &report, cost),
        timed: true,
        trace,
        simulation,
        history: history.unwrap_or_else(|| History::empty(schedule)),
        errors: report.errors,
        positions: Positions::of(schedule)?,
    })
}

/// The page around packed data, or around what `script` loads; `lines` stand below its title. The
/// facts of a schedule stand beside its name: in the heading, if it is the only one.
pub(crate) fn document(
    caption: &Caption,
    lines: &str,
    summary: &str,
    (packed, script): (&str, &str),
) -> String {
    let source = caption.source.as_ref();
    let source = source.map(|source| format!("<footer>{}</footer>\n", escape(source)));
    let values = [
        ("{title}", &*escape(&caption.title)),
        ("{lines}", lines),
        ("{summary}", summary),
        ("{source}", source.as_deref().unwrap_or_default()),
    ];
    // A value may hold braces itself: each stands between the parts around its name.
    let (mut body, mut rest) = (String::new(), BODY);
    for (name, value) in values {
        let (before, after) = rest.split_once(name).unwrap_or((rest, ""));
        body.extend([before, value]);
        rest = after;
    }
    let shell = Shell {
        title: &caption.title,
        body: &(body + rest),
        style: STYLE,
        data: ("application/zlib", packed),
        script: &(SCRIPTS.concat() + script),
    };
    shell.html()
}

/// Time, lower bound, rounds, messages, and what the checker says. A script finds the times by
/// their classes.
fn facts(schedule: &Schedule, trace: &Trace, report: &Report, cost: &CostModel) -> String {
    let end = trace.end();
    let bound = schedule.lower_bound(cost).largest;
    let (divisor, name) = scale(trace.unit, end.max(bound));
    let time = |time: f64| {
        let name = if name.is_empty() { "time units" } else { name };
        format!("{} {name}", number(time / divisor, 7))
    };
    let completes = trace.waits.is_empty();
    let mut facts = vec![if completes {
        format!("<b class=\"time\">{}</b> model time", time(end))
    } else {
        format!("nothing moves after <b>{}</b>", time(end))
    }];
    if bound > 0.0 {
        facts.push(format!(
            "lower bound <span class=\"bound\">{}</span>",
            time(bound).trim_end_matches(" time units")
        ));
        if completes {
            let ratio = number(end / bound, 3);
            facts.push(format!("<b class=\"ratio\">{ratio}</b> x bound"));
        }
    }
    let plural = |n: usize, what: &str| {
        let s = if n == 1 { "" } else { "s" };
        format!("<b>{n}</b> {what}{s}")
    };
    if let Ok(stats) = schedule.stats() {
        facts.push(plural(stats.rounds, "round"));
        facts.push(plural(stats.messages, "message"));
    }
    if report.is_correct() {
        let operators = if report.keeps_order {
            ""
        } else {
            ", for operators that commute"
        };
        facts.push(format!(
            "<span class=\"correct\">Proved: every output element ends with what it should \
             hold{operators}.</span>"
        ));
    }
    let mut text = String::from("<ul class=\"facts\">");
    for fact in facts {
        let _ = write!(text, "<li>{fact}</li>");
    }
    text + "</ul>\n" + &errors(report)
}
fn errors(report: &Report) -> String {
    if report.is_correct() {
        return String::new();
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
