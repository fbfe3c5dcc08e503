//! `oneport list`: lists collectives and algorithms.

use std::borrow::Cow;
use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use oneport::Kind;
use oneport::plan::registry::{self, Algorithm};
use serde::Serialize;

use crate::args::parse_kind;
use crate::output::{self, record};
use crate::units::did_you_mean;

/// List the collectives and the algorithms that can plan them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  oneport list                the names, by collective
  oneport list reduce         the algorithms of a collective
  oneport list bine           all about an algorithm
  oneport list reduce --json

Symbols: p ranks, m elements, q segments. 'commutes' means that the algorithm needs an operator whose operands \
may be exchanged.")]
pub(crate) struct ListArgs {
    /// Only this collective, or this algorithm in full
    #[arg(value_name = "COLLECTIVE|ALGORITHM", value_parser = parse_subject)]
    subject: Option<Subject>,

    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// What is listed.
#[derive(Debug, Clone)]
enum Subject {
    Collective(Kind),
    /// The algorithms of this name: one a collective.
    Algorithms(Vec<Algorithm>),
}

fn parse_subject(text: &str) -> Result<Subject, String> {
    let error = match parse_kind(text) {
        Ok(kind) => return Ok(Subject::Collective(kind)),
        Err(error) => error,
    };
    let name = text.to_ascii_lowercase();
    let named = Kind::ALL.into_iter();
    let named: Vec<_> = named
        .filter_map(|kind| registry::find(kind, &name).ok())
        .collect();
    if !named.is_empty() {
        return Ok(Subject::Algorithms(named));
    }
    let names: Vec<_> = all().map(Algorithm::name).collect();
    match &*did_you_mean(text, names.iter().map(AsRef::as_ref)) {
        "" => Err(error),
        similar => Err(format!("unknown algorithm '{text}'{similar}")),
    }
}

/// All algorithms, grouped by collective.
fn all() -> impl Iterator<Item = &'static Algorithm> {
    Kind::ALL.into_iter().flat_map(of)
}

/// The algorithms of a collective, in the order of registration.
fn of(kind: Kind) -> impl Iterator<Item = &'static Algorithm> {
    registry::of(kind).chain(registry::compositions(kind))
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
    let subject = args.subject.as_ref();
    let algorithms: Vec<ListRow> = match subject {
        None => all().map(row).collect(),
        Some(Subject::Collective(kind)) => of(*kind).map(row).collect(),
        Some(Subject::Algorithms(named)) => named.iter().map(row).collect(),
    };
    if args.json {
        output::json(out, &record! { algorithms: algorithms })?;
        return Ok(ExitCode::SUCCESS);
    }
    match subject {
        None => {
            let name = |a: &ListRow| a.name.to_string();
            let groups = algorithms.chunk_by(|a, b| a.collective == b.collective);
            let names = groups.map(|rows| {
                let names: Vec<_> = rows.iter().map(name).collect();
                (rows[0].collective, names.join(", "))
            });
            output::wrapped_summary(out, &names.collect::<Vec<_>>())?;
            writeln!(out, "\noneport list COLLECTIVE or ALGORITHM says more.")?;
        }
        Some(Subject::Collective(kind)) if algorithms.is_empty() => {
            writeln!(out, "no algorithm for {} is registered", kind.name())?;
        }
        Some(Subject::Collective(kind)) => {
            writeln!(out, "{}:", kind.name())?;
            table(out, &algorithms)?;
        }
        Some(Subject::Algorithms(_)) => {
            for (i, row) in algorithms.iter().enumerate() {
                let gap = if i > 0 { "\n" } else { "" };
                writeln!(out, "{gap}{} {}", row.collective, row.name)?;
                output::wrapped_summary(out, &row.lines())?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl ListRow {
    /// All that is known, in lines of name and value.
    fn lines(&self) -> Vec<(&'static str, String)> {
        let segments = if self.segmented { "any number" } else { "one" };
        let mut lines = vec![
            ("  ports", self.ports.join(", ")),
            ("  operator", self.operator().into()),
            ("  segments", segments.into()),
            ("  rounds", self.rounds.into()),
            ("  volume", self.volume.into()),
            ("  source", self.source.into()),
        ];
        if !self.restrictions.is_empty() {
            lines.push(("  restrictions", self.restrictions.clone()));
        }
        lines
    }

    fn operator(&self) -> &'static str {
        match self.commutative_only {
            true => "commutes",
            false => "any",
        }
    }
}

/// Prints the algorithms of one collective, wrapped to the columns of the terminal. Narrow ones
/// have no room for the volume.
fn table(out: &mut dyn Write, algorithms: &[ListRow]) -> Result<()> {
    /// Of a name, the ports and the operator, with the gaps after them.
    const FIXED: [u16; 3] = [19, 7, 8];
    let columns = output::columns();
    let wide = columns >= 100;
    let left = columns - FIXED.iter().sum::<u16>() - 2 * (FIXED.len() as u16 + u16::from(wide) + 1);
    let mut widths = FIXED.to_vec();
    match wide {
        true => widths.extend([left * 41 / 100, left * 29 / 100, left * 30 / 100]),
        false => widths.extend([left / 2, left / 2]),
    }
    let header = match wide {
        true => "algorithm|ports|operator|rounds|volume|source",
        false => "algorithm|ports|operator|rounds|source",
    };
    let rows = algorithms.iter().map(|a| {
        let mut row = vec![
            a.name.to_string(),
            a.ports.join(", "),
            a.operator().to_string(),
            a.rounds.to_string(),
        ];
        row.extend(wide.then(|| a.volume.to_string()));
        row.push(with_restrictions(a));
        row
    });
    output::wrapped_table(out, header, rows, &widths)
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
