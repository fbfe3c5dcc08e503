//! `oneport compare`: all algorithms for one collective, side by side.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Result, bail};
use oneport::{bounds, simulate};
use serde::Serialize;

use crate::args::Common;
use crate::output;
use crate::subject::{Subject, remarks, show_cost};
use crate::task::{Task, linked};
use crate::units::{Number, TimeUnit, show_bytes, significant};

/// Compare all algorithms for one collective by model time.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  oneport compare reduce -p 64 --bytes 1MiB
  oneport compare broadcast -p 15 --bytes 64KiB --ports uni --json

Every algorithm gets the segment size that is best for it, unless --segment, --segments or --segment-sizes is \
given. Algorithms that cannot be used here are listed with the reason.")]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
}

#[derive(Serialize)]
struct Output {
    collective: &'static str,
    ranks: usize,
    ports: &'static str,
    ported: usize,
    vector_bytes: Option<u64>,
    time_unit: &'static str,
    lower_bound: Number,
    rows: Vec<Row>,
    skipped: Vec<Skipped>,
}

#[derive(Serialize)]
struct Row {
    algorithm: String,
    root: Option<usize>,
    time: Number,
    /// Time over the best row's.
    ratio: f64,
    rounds: usize,
    messages: usize,
    bytes: u64,
    segments: Option<usize>,
    segment: Option<u64>,
}

#[derive(Serialize)]
struct Skipped {
    algorithm: &'static str,
    reason: String,
}

/// Plans, simulates and sorts.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<ExitCode> {
    let Some(kind) = args.common.collective else {
        bail!("give a COLLECTIVE (such as reduce): compare plans all algorithms itself");
    };
    if args.common.rules.is_some() {
        bail!("--rules chooses one algorithm: compare has all of them");
    }
    let task = Task::new(&args.common, kind)?;
    let mut rows = Vec::new();
    let mut skipped = Vec::new();
    let mut first = None;
    for &algorithm in &task.algorithms {
        let subject = task
            .request_for(algorithm)
            .and_then(|request| Subject::planned_by(&task, algorithm, request));
        match subject.and_then(|subject| Ok((row(&subject)?, subject))) {
            Ok((row, subject)) => {
                rows.push(row);
                first.get_or_insert(subject);
            }
            Err(error) => skipped.push(Skipped {
                algorithm: algorithm.name,
                reason: output::reason(&error),
            }),
        }
    }
    let Some(first) = first else {
        let reasons: Vec<_> = skipped
            .iter()
            .map(|s| format!("{}: {}", s.algorithm, s.reason))
            .collect();
        bail!(
            "no algorithm can be planned for this: {}",
            reasons.join("; ")
        );
    };
    remarks(&args.common, &first.schedule);
    rows.sort_by(|a, b| a.time.0.total_cmp(&b.time.0));
    let best = rows[0].time.0;
    for row in &mut rows {
        row.ratio = if best > 0.0 { row.time.0 / best } else { 1.0 };
    }
    let output = Output {
        collective: kind.name(),
        ranks: task.request.ranks,
        ports: task.request.ports.name(),
        ported: task.request.ports.k(),
        vector_bytes: first.about.vector_bytes,
        time_unit: task.unit.name(),
        lower_bound: Number(
            bounds::lower_bound_of(
                &first.schedule,
                &task.request.cost,
                task.request.element_bytes,
            )
            .largest,
        ),
        rows,
        skipped,
    };
    if args.common.json {
        output::json(out, &output)?;
    } else {
        writeln!(out, "{}", first.about.what())?;
        writeln!(out, "{}\n", show_cost(&task.request.cost, task.unit))?;
        print(out, &output, task.unit)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn row(subject: &Subject) -> Result<Row> {
    let timed = simulate::timed(&subject.schedule, &subject.cost, subject.element_bytes)?;
    let time = linked(&subject.schedule, &subject.cost, timed.time)?;
    let about = &subject.about;
    Ok(Row {
        algorithm: about.algorithm.unwrap_or_default().to_string(),
        root: about.root,
        time: Number(time),
        ratio: 1.0,
        rounds: timed.rounds,
        messages: timed.messages,
        bytes: timed.elements as u64 * subject.element_bytes,
        segments: about.segments,
        segment: about.segment,
    })
}

fn print(out: &mut dyn Write, output: &Output, unit: TimeUnit) -> Result<()> {
    let bound = output.lower_bound.0;
    let over = |time: f64| {
        if bound > 0.0 {
            significant(time / bound, 4)
        } else {
            "-".into()
        }
    };
    let rows = output.rows.iter().map(|row| {
        [
            row.algorithm.clone(),
            row.root.map_or("-".into(), |r| r.to_string()),
            unit.show(row.time.0),
            significant(row.ratio, 4),
            over(row.time.0),
            row.rounds.to_string(),
            row.segments.map_or("-".into(), |n| n.to_string()),
            row.segment.map_or("-".into(), show_bytes),
            row.messages.to_string(),
            show_bytes(row.bytes),
        ]
    });
    let header = [
        "algorithm",
        "root",
        "time",
        "x best",
        "x bound",
        "rounds",
        "segments",
        "segment",
        "messages",
        "volume",
    ];
    output::table(out, &header, rows, &[1, 2, 3, 4, 5, 6, 7, 8, 9])?;
    if bound > 0.0 {
        writeln!(out, "\nlower bound  {}", unit.show(bound))?;
    }
    output::skipped(
        out,
        output
            .skipped
            .iter()
            .map(|s| (s.algorithm, s.reason.as_str())),
    )
}
