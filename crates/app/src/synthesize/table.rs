//! `oneport synthesize --table`: the optimum of all collectives beside the best algorithm.

use oneport_pictures::shell::Heading;
use oneport_synthesis::{Answer, Problem};

use super::{SynthesizeArgs, search};
use crate::answer;
use crate::prelude::*;

const MODELS: [(&str, Ports); 5] = [
    ("uni", Ports::UNI),
    ("bi", Ports::BI),
    ("uni, k = 2", Ports::Unidirectional { k: 2 }),
    ("uni, k = 3", Ports::Unidirectional { k: 3 }),
    ("bi, k = 2", Ports::Bidirectional { k: 2 }),
];

type Line = (Kind, &'static str, Vec<Answer>);

fn optimum(answer: &Answer) -> String {
    match answer.upper {
        Some(upper) if upper == answer.lower => upper.to_string(),
        Some(upper) => format!("{}..{upper}", answer.lower),
        None => format!("{}..", answer.lower),
    }
}

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
    caller: &Caller,
) -> Result<answer::Answer> {
    let ranks = (args.ranks.as_ref()).map_or((2..=6).collect(), |r| r.counts());
    ensure!(
        ranks.iter().all(|&p| p <= 16),
        "the table is for at most 16 ranks"
    );
    let mut kinds = Kind::ALL.to_vec();
    kinds.retain(|&kind| registry::of(kind).next().is_some());
    let entries = kinds.len() * MODELS.len() * ranks.len();
    let bar = WorkBar::new(caller, entries as u64, "{msg} {pos}/{len} {bar} {eta}");
    let mut lines = Vec::new();
    for kind in kinds {
        for (ports, model) in MODELS {
            let mut answers = Vec::new();
            for &p in &ranks {
                bar.name(&format!("{kind}, {ports}, p = {p}"));
                let problem = Problem::new(kind.with_root(0), p).ports(model);
                answers.push(search(&problem, args, false, stopped, caller)?.0);
                bar.add(1);
            }
            lines.push((kind, ports, answers));
        }
    }
    bar.finish();
    let text = if to_file.is_some_and(|file| FileKind::of(file) == Some(FileKind::Html)) {
        page(&ranks, &lines)
    } else {
        markdown(&ranks, &lines)
    };
    Ok(answer::Answer {
        exit_code: super::exit_code(stopped),
        ..caller.write_to(to_file, text)?
    })
}

/// The columns: the optimum for each number of ranks.
fn columns<'a>(ranks: &[usize]) -> Columns<'a, Line> {
    let named = Columns::<Line>::default()
        .add("collective", |(kind, ..)| kind.name())
        .add("ports", |(_, ports, _)| *ports);
    ranks.iter().enumerate().fold(named, |columns, (i, p)| {
        columns.add(format!(">p = {p}"), move |(.., answers)| cell(&answers[i]))
    })
}

fn markdown(ranks: &[usize], lines: &[Line]) -> String {
    let columns = columns(ranks);
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let rule = format!("|{}\n", "---|".repeat(columns.titles().len()));
    let rows = lines.iter().map(|line| row(columns.cells(line)));
    row(columns.titles()) + &rule + &rows.collect::<String>()
}

/// A page: bars of the rounds of the best algorithm over the optimum, then the table.
fn page(ranks: &[usize], lines: &[Line]) -> String {
    let (mut bars, mut longer, mut all) = (String::new(), 0, 0);
    for (kind, ports, answers) in lines {
        for (p, answer) in ranks.iter().zip(answers) {
            all += 1;
            let (Some(row), Some(upper)) = (answer.row, answer.upper) else {
                continue;
            };
            if row <= upper || upper == 0 {
                continue;
            }
            longer += 1;
            let part = 100 * (row - upper) / upper;
            let name = format!("{kind}, {ports}, p = {p}").replace(" = ", "\u{a0}=\u{a0}");
            let _ = writeln!(
                bars,
                "<tr><td class=\"name\" style=\"white-space:normal\">{name}</td><td>{row}</td><td>{upper}</td><td><meter \
                 style=\"width:4em\" min=\"0\" max=\"100\" value=\"{part}\" aria-label=\"{name}\"></meter></td><td>+{part}%</td></tr>"
            );
        }
    }
    let figure = format!(
        "<figure><h2>Where the best algorithm takes more rounds</h2><p>In {longer} of {all} entries of the table, of all \
         collectives; in the others it takes as few as were found.</p><div class=\"scroll\" tabindex=\"0\" role=\"region\" \
         aria-label=\"Rounds over the optimum\"><table><tr><th class=\"name\">problem</th><th>rounds</th><th>found</th>\
         <th colspan=\"2\">more</th></tr>\n{bars}</table></div></figure>\n<h2 style=\"margin-top:18px\">All optima</h2>\n"
    );
    let all = columns(ranks).html("all", "All optima", lines, |_| None);
    let heading = Heading {
        title: "The fewest rounds".into(),
        summary: vec![
            ("shown", "rounds of whole messages (beta = 0)".into()),
            ("2..4", "between 2 and 4, open".into()),
            ("4 (6)", "4 are optimal, the best algorithm takes 6".into()),
        ],
        ..Heading::default()
    };
    heading.page(&(figure + &all), &serde_json::Value::Null, "")
}
