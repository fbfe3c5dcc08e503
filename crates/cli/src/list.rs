//! `oneport list`: lists collectives and algorithms.

use std::borrow::Cow;
use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use oneport::Kind;
use oneport::plan::registry::{self, Algorithm};
use serde::Serialize;

use crate::args::parse_kind;
use crate::output;

/// List the collectives and the algorithms that can plan them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  oneport list
  oneport list reduce --json

Symbols: p ranks, m elements, q segments. 'commutes' means that the algorithm needs an operator whose operands \
may be exchanged.")]
pub(crate) struct ListArgs {
    /// Only this collective
    #[arg(value_parser = parse_kind)]
    collective: Option<Kind>,

    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Output {
    algorithms: Vec<ListRow>,
}

#[derive(Serialize)]
struct ListRow {
    collective: &'static str,
    name: Cow<'static, str>,
    ports: Vec<&'static str>,
    source: &'static str,
    commutative_only: bool,
    segmented: bool,
    rounds: &'static str,
    volume: &'static str,
    restrictions: String,
}

/// Prints the registered algorithms.
pub(crate) fn run(args: &ListArgs, out: &mut dyn Write) -> Result<ExitCode> {
    // Grouped by collective, each group in the order of registration.
    let algorithms: Vec<ListRow> = Kind::ALL
        .into_iter()
        .filter(|&kind| args.collective.is_none_or(|only| only == kind))
        .flat_map(|kind| registry::of(kind).chain(registry::compositions(kind)))
        .map(row)
        .collect();
    if args.json {
        output::json(out, &Output { algorithms })?;
        return Ok(ExitCode::SUCCESS);
    }
    if let (Some(kind), true) = (args.collective, algorithms.is_empty()) {
        writeln!(out, "no algorithm for {} is registered", kind.name())?;
        return Ok(ExitCode::SUCCESS);
    }
    for (i, rows) in algorithms
        .chunk_by(|a, b| a.collective == b.collective)
        .enumerate()
    {
        let gap = if i > 0 { "\n" } else { "" };
        writeln!(out, "{gap}{}:", rows[0].collective)?;
        table(out, rows)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the algorithms of one collective, wrapped to 100 columns.
fn table(out: &mut dyn Write, algorithms: &[ListRow]) -> Result<()> {
    output::wrapped_table(
        out,
        "algorithm|ports|operator|rounds|volume|source",
        algorithms.iter().map(|a| {
            let operator = if a.commutative_only {
                "commutes"
            } else {
                "any"
            };
            [
                a.name.to_string(),
                a.ports.join(", "),
                operator.to_string(),
                a.rounds.to_string(),
                a.volume.to_string(),
                with_restrictions(a),
            ]
        }),
        &[19, 7, 8, 23, 16, 17],
    )
}

fn row(algorithm: &Algorithm) -> ListRow {
    ListRow {
        collective: algorithm.collective.name(),
        name: algorithm.name(),
        ports: algorithm.ports.name().split(", ").collect(),
        source: algorithm.source,
        commutative_only: algorithm.commutative_only,
        segmented: algorithm.segmented,
        rounds: algorithm.rounds,
        volume: algorithm.volume,
        restrictions: algorithm.restrictions(),
    }
}

fn with_restrictions(row: &ListRow) -> String {
    if row.restrictions.is_empty() {
        row.source.to_string()
    } else {
        format!("{} [{}]", row.source, row.restrictions)
    }
}
