//! A self-contained HTML page on which one watches schedules: it steps through time and shows every
//! rank, its ports and what its buffer holds, the messages on their way, and the Gantt chart.
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
/// What one needs to know only beside others.
const NEXT_KEY: &str = "<dt><kbd>s</kbd></dt><dd>choose the next schedule</dd>\n";
/// The scripts in the order in which they need each other.
const SCRIPTS: [&str; 5] = [
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
    let too_large = |count: usize, what: &str, max: usize, advice: &str| {
        Err(Error::usage(format!(
            "{count} {what} are more than the {max} that a page can have: take fewer {advice}"
        )))
    };
    let advice = "ranks or segments, or write a trace (.json)";
    let (mut shown, mut nodes) = (Vec::new(), 0);
    for &Shown {
        name,
        schedule,
        cost,
    } in all
    {
        if schedule.ranks() > MAX_PAGE_RANKS {
            let advice = "ranks, or draw a Gantt chart (.svg)";
            return too_large(schedule.ranks(), "ranks", MAX_PAGE_RANKS, advice);
        }
        if !cost.clone().arrivals(Vec::new()).is_ideal() {
            return Err(Error::usage(
                "a page shows a message at one time at both ends, which latency and eager sends part: draw a Gantt chart (.svg)",
            ));
        }
        let simulation = simulated(schedule, cost)?;
        nodes += simulation.prepared().nodes().len();
        if nodes > MAX_NODES {
            return too_large(nodes, "transfers and computations", MAX_NODES, advice);
        }
        let options = Options {
            overlap: cost.overlaps(),
            ..Options::default()
        };
        let (report, history) = schedule.check_recorded(&options);
        shown.push(PageData {
            name,
            schedule,
            trace: Trace::simulated(schedule, &simulation, unit, || report.clone())?,
            simulation,
            report,
            history: history.unwrap_or_else(|| History::empty(schedule)),
            positions: Positions::of(schedule)?,
        });
    }
    let packed = compress_to_vec_zlib(data::json(&shown).to_string().as_bytes(), LEVEL);
    let packed = BASE64_STANDARD.encode(packed);
    if packed.len() > MAX_DATA {
        let what = "packed bytes of steps and contents";
        return too_large(packed.len(), what, MAX_DATA, advice);
    }
    let all_facts = all
        .iter()
        .zip(&shown)
        .map(|(of, data)| facts(data, of.cost));
    Ok(document(
        caption,
        &shown,
        &all_facts.collect::<Vec<_>>(),
        &packed,
    ))
}

/// The page around the packed data. The facts of a schedule stand beside its name: in the heading,
/// if it is the only one.
fn document(caption: &Caption, all: &[PageData], facts: &[String], packed: &str) -> String {
    let one = all.len() == 1;
    let lines = match &caption.lines[..] {
        [] => String::new(),
        lines => format!("<p>{}</p>\n", escape(&lines.join("; "))),
    };
    let source = caption.source.as_ref();
    let source = source.map(|source| format!("<footer>{}</footer>\n", escape(source)));
    let of_schedule = |part: &str, i: usize| {
        let name = escape(all[i].name);
        let suffix = match i {
            0 => String::new(),
            i => format!("-{i}"),
        };
        let [of, name, facts] = match one {
            true => [String::new(), "Messages on their way".into(), String::new()],
            false => [format!(": {name}"), name, facts[i].clone()],
        };
        let number = i.to_string();
        let values = [
            ("number", &*number),
            ("suffix", &suffix),
            ("of", &of),
            ("name", &name),
            ("facts", &facts),
        ];
        filled(part, &values)
    };
    let title = escape(&caption.title);
    let values = [
        ("title", &*title),
        ("lines", &lines),
        ("summary", if one { &*facts[0] } else { "" }),
        ("columns", &all.len().min(4).to_string()),
        ("layout", if one { "one" } else { "several" }),
        ("keys", if one { "" } else { NEXT_KEY }),
        ("source", source.as_deref().unwrap_or_default()),
    ];
    let mut body = String::new();
    // What stands between the marks is there for each schedule.
    for part in BODY.split("<!-- end -->\n") {
        let (before, each) = part.split_once("<!-- each -->\n").unwrap_or((part, ""));
        body += &filled(before, &values);
        body.extend(
            (0..all.len())
                .filter(|_| !each.is_empty())
                .map(|i| of_schedule(each, i)),
        );
    }
    let shell = Shell {
        title: &caption.title,
        body: &body,
        style: STYLE,
        data: ("application/zlib", packed),
        script: &SCRIPTS.concat(),
    };
    shell.html()
}

/// The text with values in place of their names in braces; a value may hold braces itself.
fn filled(text: &str, values: &[(&str, &str)]) -> String {
    let mut pieces = text.split('{');
    let mut result = pieces.next().unwrap_or_default().to_string();
    for piece in pieces {
        let value = piece.split_once('}').and_then(|(name, rest)| {
            let value = values.iter().find(|(known, _)| *known == name)?;
            Some([value.1, rest])
        });
        result.extend(value.unwrap_or(["{", piece]));
    }
    result
}

/// Time, lower bound, rounds, messages, and what the checker says.
fn facts(data: &PageData, cost: &CostModel) -> String {
    let (schedule, end) = (data.schedule, data.trace.end());
    let bound = schedule.lower_bound(cost).largest;
    let (divisor, name) = scale(data.trace.unit, end.max(bound));
    let time = |time: f64| {
        let name = if name.is_empty() { "time units" } else { name };
        format!("{} {name}", number(time / divisor, 7))
    };
    let completes = data.trace.waits.is_empty();
    let mut facts = vec![match completes {
        true => format!("<b>{}</b> model time", time(end)),
        false => format!("nothing moves after <b>{}</b>", time(end)),
    }];
    if bound > 0.0 {
        facts.push(format!("lower bound {}", time(bound)));
        if completes {
            facts.push(format!("<b>{}</b> x bound", number(end / bound, 3)));
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
    if data.report.is_correct() {
        let operators = match data.report.keeps_order {
            true => "",
            false => ", for operators that commute",
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
    text + "</ul>\n" + &errors(&data.report)
}

/// What the checker finds wrong.
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
