//! `oneport list`: lists collectives and algorithms.

use crate::forms::parse_kind;
use crate::prelude::*;
use crate::units::did_you_mean;

options! {
    /// List the collectives and the algorithms that can plan them.
    #[derive(Debug)]
    #[examples = "\
Examples:
  oneport list                the names, by collective
  oneport list reduce         the algorithms of a collective
  oneport list bine           all about an algorithm
  oneport list reduce --json

Symbols: p ranks, m elements, q segments. 'commutes' means that the algorithm needs an operator whose operands \
may be exchanged."]
    pub(crate) struct ListArgs {
        /// Only this collective, or this algorithm in full
        subject: Option<Subject> = SubjectName { is_placed: true },

        /// Print one JSON object instead of a table
        json: bool = Switch,
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Subject {
    Collective(Kind),
    /// The algorithms of this name: one a collective.
    Algorithms(Vec<Algorithm>),
}

forms! {
    /// A collective, or an algorithm.
    SubjectName: Subject = "COLLECTIVE|ALGORITHM", by parse_subject;
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

fn all() -> impl Iterator<Item = &'static Algorithm> {
    Kind::ALL.into_iter().flat_map(of)
}

/// The algorithms of a collective, in the order of registration.
fn of(kind: Kind) -> impl Iterator<Item = &'static Algorithm> {
    registry::of(kind).chain(registry::compositions(kind))
}

impl Command for ListArgs {
    fn json_forms() -> JsonForms {
        JsonForms::new().of(json)
    }

    fn answer(&self, site: &mut Site) -> Result<Answer> {
        let caller = &site.caller;
        let subject = self.subject.as_ref();
        let algorithms: Vec<&Algorithm> = match subject {
            None => all().collect(),
            Some(Subject::Collective(kind)) => of(*kind).collect(),
            Some(Subject::Algorithms(named)) => named.iter().collect(),
        };
        answer(caller, self.json, &json(&algorithms), |out| {
            print(subject, &algorithms, out)
        })
    }
}

fn json(algorithms: &[&Algorithm]) -> impl Answered {
    let rows = algorithms.iter().map(|a| {
        record! {
            collective: a.collective.name(),
            name: a.name(),
            ports: a.ports.name().split(", ").collect::<Vec<_>>(),
            /// Where it was published.
            source: a.source,
            /// Whether the operands of its operator must be exchangeable.
            commutative_only: a.commutative_only,
            /// Whether it cuts the vector into segments.
            segmented: a.segmented,
            rounds: a.rounds,
            volume: a.volume,
            restrictions: a.restrictions(),
        }
    });
    record! { algorithms: rows.collect::<Vec<_>>() }
}

fn print(subject: Option<&Subject>, algorithms: &[&Algorithm], out: &mut Lines) -> Result<()> {
    match subject {
        None => {
            let groups = algorithms.chunk_by(|a, b| a.collective == b.collective);
            let names = groups.map(|rows| {
                let names: Vec<_> = rows.iter().map(|a| a.name()).collect();
                (rows[0].collective.name(), names.join(", "))
            });
            output::wrapped_summary(out, 0, &names.collect::<Vec<_>>())?;
            writeln!(out, "\noneport list COLLECTIVE or ALGORITHM says more.")?;
        }
        Some(Subject::Collective(kind)) if algorithms.is_empty() => {
            writeln!(out, "no algorithm for {} is registered", kind.name())?;
        }
        Some(Subject::Collective(kind)) => {
            writeln!(out, "{}:", kind.name())?;
            table(out, algorithms)?;
        }
        Some(Subject::Algorithms(_)) => {
            for (i, row) in algorithms.iter().enumerate() {
                let gap = if i > 0 { "\n" } else { "" };
                writeln!(out, "{gap}{} {}", row.collective.name(), row.name())?;
                output::wrapped_summary(out, 0, &lines(row))?;
            }
        }
    }
    Ok(())
}

fn lines(algorithm: &Algorithm) -> Vec<(&'static str, String)> {
    let segments = if algorithm.segmented {
        "any number"
    } else {
        "one"
    };
    let mut lines = vec![
        ("  ports", algorithm.ports.name().into()),
        ("  operator", operator(algorithm).into()),
        ("  segments", segments.into()),
        ("  rounds", algorithm.rounds.into()),
        ("  volume", algorithm.volume.into()),
        ("  source", algorithm.source.into()),
    ];
    let restrictions = algorithm.restrictions();
    if !restrictions.is_empty() {
        lines.push(("  restrictions", restrictions));
    }
    lines
}

fn operator(algorithm: &Algorithm) -> &'static str {
    if algorithm.commutative_only {
        "commutes"
    } else {
        "any"
    }
}

/// Prints the algorithms of one collective, wrapped to the columns of the terminal. Narrow ones
/// have no room for the volume.
fn table(out: &mut Lines, algorithms: &[&Algorithm]) -> Result<()> {
    let room = out.caller.columns();
    let wide = room > 100;
    let name = algorithms.iter().map(|a| a.name().len()).max();
    // Of a name, the ports and the operator.
    let mut widths = vec![u16::try_from(name.unwrap_or(0))?, 7, 8];
    // Between these and two columns more, or three.
    let gaps = 2 * (4 + u16::from(wide));
    let left = room - widths.iter().sum::<u16>() - gaps;
    if wide {
        widths.extend([left * 41 / 100, left * 29 / 100, left * 30 / 100])
    } else {
        widths.extend([left / 2, left / 2])
    }
    let columns = Columns::<&Algorithm>::default()
        .add("algorithm", |a| a.name())
        .add("ports", |a| a.ports.name())
        .add("operator", |a| operator(a))
        .add("rounds", |a| a.rounds)
        .add_if(wide, "volume", |a| a.volume)
        .add("source", |a| with_restrictions(a));
    output::wrapped_table(out, &columns, algorithms, &widths)
}

fn with_restrictions(algorithm: &Algorithm) -> String {
    match algorithm.restrictions() {
        none if none.is_empty() => algorithm.source.to_string(),
        restrictions => format!("{} [{restrictions}]", algorithm.source),
    }
}
