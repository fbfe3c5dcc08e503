//! `--algorithm` and `--rules`: the algorithms that they name.

use anyhow::{Context, Result, ensure};
use oneport::plan::Segments;
use oneport::plan::registry::{self, Algorithm};
use oneport::plan::space::SegmentChoice;
use oneport::run::ElementType;
use oneport::{Kind, Request};
use oneport_measure::tune::rules::{Query, Rules};

use super::{AppliedRule, PlanTask, usage};
use crate::args::Common;
use crate::files::Source;
use crate::forms::AlgorithmNames;
use crate::units::{show_bytes, with_similar};

/// Applies the rules of a file to `task`. Explicitly given segments are kept.
pub(crate) fn apply(task: &mut PlanTask, args: &Common, kind: Kind, file: &Source) -> Result<()> {
    ensure!(
        args.algorithm == AlgorithmNames::Auto,
        "--rules chooses the algorithm, and so does --algorithm {}: give one of them",
        args.algorithm
    );
    let shown = file.path().display();
    let rules = Rules::parse(&file.read()?).with_context(|| shown.to_string())?;
    let request = &task.request;
    let query = Query {
        collective: kind,
        ranks: request.ranks(),
        ports: request.get_ports(),
        dtype: args.vector.dtype.map(ElementType::name),
        ordered: request.get_keep_order(),
        bytes: request.elements() as u64 * request.get_element_bytes(),
    };
    let (rule, choice) = rules.choose(&query).with_context(|| shown.to_string())?;
    let algorithm = registry::find(kind, &choice.algorithm)?;
    let algorithm = algorithm.resolved(request).unwrap_or(algorithm);
    let longest = rule.choices.last().map_or(0, |c| c.up_to_bytes);
    let mut why = format!("{shown}: {}, ", rule.name());
    why += &if query.bytes > longest {
        format!("longer than its {}", show_bytes(longest))
    } else {
        format!("up to {}", show_bytes(choice.up_to_bytes))
    };
    if rule.ranks != query.ranks {
        why += &format!("; {} ranks are the nearest measured", rule.ranks);
    }
    algorithm
        .accepts(request)
        .with_context(|| format!("the rules choose {} ({why})", algorithm.name()))?;
    let mut segments = false;
    if let (SegmentChoice::Best, Some(segment)) = (&task.segments, choice.segment) {
        // A segment measured with another element size is rounded down to whole elements.
        let elements = usize::try_from(segment / request.get_element_bytes())
            .unwrap_or(usize::MAX)
            .max(1);
        task.segments = SegmentChoice::Given(Segments::of_size(request.elements(), elements)?);
        segments = true;
    }
    task.algorithms = vec![algorithm];
    task.rule = Some(AppliedRule { why, segments });
    Ok(())
}

pub(crate) fn algorithms(
    kind: Kind,
    names: &AlgorithmNames,
    request: &Request,
) -> Result<Vec<Algorithm>> {
    let algorithms = match names {
        AlgorithmNames::Auto | AlgorithmNames::All => {
            let (cost, ranks) = (request.get_cost(), request.ranks());
            let all: Vec<_> = registry::candidates(kind, cost, ranks).cloned().collect();
            ensure!(
                !all.is_empty(),
                "no algorithm for {} is registered (`oneport list` shows what is)",
                kind.name()
            );
            all
        }
        AlgorithmNames::These(names) => {
            let find = |name: &str| {
                registry::find(kind, name).map_err(|error| {
                    let names: Vec<_> = registry::of(kind).map(Algorithm::name).collect();
                    let names = names.iter().map(AsRef::as_ref);
                    usage(with_similar(&error.to_string(), name, names))
                })
            };
            let mut found: Vec<Algorithm> = Vec::new();
            for name in names {
                let algorithm = find(name)?;
                if !found.contains(&algorithm) {
                    found.push(algorithm);
                }
            }
            found
        }
    };
    // Compositions are named by the parts that they take here; those that find none are refused
    // later, with the reason.
    let resolved = |a: Algorithm| a.resolved(request).unwrap_or(a);
    Ok(algorithms.into_iter().map(resolved).collect())
}
