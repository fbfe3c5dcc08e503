//! `oneport synthesize --table`: the optimum of all collectives beside the best algorithm.

use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, bail};
use oneport::{Kind, Ports};
use oneport_pictures::shell::{Heading, table};
use oneport_synthesis::{Answer, Problem};

use super::{SynthesizeArgs, search};
use crate::output;
use crate::progress::WorkBar;

/// The port models of the table.
const MODELS: [(&str, Ports); 5] = [
    ("uni", Ports::UNI),
    ("bi", Ports::BI),
    ("uni, k = 2", Ports::Unidirectional { k: 2 }),
    ("uni, k = 3", Ports::Unidirectional { k: 3 }),
    ("bi, k = 2", Ports::Bidirectional { k: 2 }),
];

/// A collective under a port model: an answer for each number of ranks.
struct Line {
    kind: Kind,
    ports: &'static str,
    answers: Vec<Answer>,
}

/// Rounds that are proved, or the interval.
fn optimum(answer: &Answer) -> String {
    match answer.upper {
        Some(upper) if upper == answer.lower => upper.to_string(),
        Some(upper) => format!("{}..{upper}", answer.lower),
        None => format!("{}..", answer.lower),
    }
}

/// The optimum, with the rounds of the best algorithm if it takes more.
fn cell(answer: &Answer) -> String {
    match answer.row {
        Some(row) if answer.upper.is_some_and(|upper| row > upper) => {
            format!("{} ({row})", optimum(answer))
        }
        _ => optimum(answer),
    }
}

pub(super) fn run(
    args: &SynthesizeArgs,
    to_file: Option<&Path>,
    stopped: &AtomicBool,
    out: &mut dyn Write,
) -> Result<ExitCode> {
    let ranks = args
        .ranks
        .as_ref()
        .map_or((2..=6).collect(), |r| r.counts());
    if ranks.iter().any(|&p| p > 16) {
        bail!("the table is for at most 16 ranks");
    }
    let kinds = Kind::ALL
        .into_iter()
        .filter(|&kind| kind != Kind::Multicast);
    let kinds: Vec<Kind> = kinds.collect();
    let entries = kinds.len() * MODELS.len() * ranks.len();
    let bar = WorkBar::new(entries as u64, "{msg} {pos}/{len} {bar} {eta}");
    let mut lines = Vec::new();
    for kind in kinds {
        for (name, ports) in MODELS {
            let mut answers = Vec::new();
            for &p in &ranks {
                bar.name(&format!("{kind}, {name}, p = {p}"));
                let problem = Problem::new(kind.with_root(0), p).ports(ports);
                answers.push(search(&problem, args, false, stopped)?.0);
                bar.add(1);
            }
            lines.push(Line {
                kind,
                ports: name,
                answers,
            });
        }
    }
    bar.finish();
    let is_page = to_file.is_some_and(|file| file.extension().is_some_and(|e| e == "html"));
    let text = match is_page {
        true => page(&ranks, &lines),
        false => markdown(&ranks, &lines),
    };
    output::write_to(out, to_file, &text)?;
    Ok(match stopped.load(Ordering::Relaxed) {
        true => ExitCode::from(130),
        false => ExitCode::SUCCESS,
    })
}

fn markdown(ranks: &[usize], lines: &[Line]) -> String {
    let mut text = String::from("| collective | ports |");
    ranks.iter().for_each(|p| {
        let _ = write!(text, " p = {p} |");
    });
    let _ = writeln!(text, "\n|---|---|{}", "---|".repeat(ranks.len()));
    for line in lines {
        let _ = write!(text, "| {} | {} |", line.kind, line.ports);
        for answer in &line.answers {
            let _ = write!(text, " {} |", cell(answer));
        }
        text.push('\n');
    }
    text
}

/// A page: bars of the rounds of the best algorithm over the optimum, then the table.
fn page(ranks: &[usize], lines: &[Line]) -> String {
    let mut bars = String::new();
    for line in lines {
        let ratios = ranks.iter().zip(&line.answers).filter_map(|(&p, answer)| {
            let (row, upper) = (answer.row?, answer.upper?);
            (row > upper && upper > 0).then_some((p, row, upper))
        });
        for (p, row, upper) in ratios {
            let part = 100.0 * (row as f64 / upper as f64 - 1.0);
            let name = format!("{}, {}, p = {p}", line.kind, line.ports);
            let _ = writeln!(
                bars,
                "<tr><td style=\"text-align:left\">{name}</td><td>{row}</td><td>{upper}</td>\
                 <td><meter min=\"0\" max=\"200\" value=\"{part:.0}\" aria-label=\"{name}\"></meter> +{part:.0}%</td></tr>"
            );
        }
    }
    let figure = format!(
        "<figure><h2>Where the best algorithm takes more rounds</h2><div class=\"scroll\" tabindex=\"0\" role=\"region\" \
         aria-label=\"Rounds over the optimum\"><table><tr><th>problem</th><th>rounds</th><th>found</th><th>more</th></tr>\n{bars}</table></div></figure>\n"
    );
    let names: Vec<String> = ranks.iter().map(|p| format!("p = {p}")).collect();
    let mut columns = vec!["<collective", "<ports"];
    columns.extend(names.iter().map(String::as_str));
    let rows = lines.iter().map(|line| {
        let mut cells = vec![line.kind.to_string(), line.ports.to_string()];
        cells.extend(line.answers.iter().map(cell));
        ("", cells)
    });
    let all = table("all", "All optima", &columns, rows);
    let heading = Heading {
        title: "The fewest rounds".into(),
        summary: vec![
            ("shown".into(), "rounds of whole messages (beta = 0)".into()),
            ("2..4".into(), "between 2 and 4, open".into()),
            (
                "4 (6)".into(),
                "4 are optimal, the best algorithm takes 6".into(),
            ),
        ],
        ..Heading::default()
    };
    heading.page(&(figure + &all), &serde_json::Value::Null, "")
}
