//! `--rules FILE`: takes algorithm and segment size from a file of selection rules.

use std::path::Path;

use anyhow::{Context, Result, bail};
use oneport::Kind;
use oneport::plan::{Segments, registry};
use oneport::run::ElementType;
use oneport_measure::tune::rules::{Query, Rules};

use super::{PlanTask, SegmentChoice};
use crate::args::Common;
use crate::files::read_text;
use crate::units::show_bytes;

/// Applies the rules in `path` to `task`. Explicitly given segments are kept.
pub(crate) fn apply(task: &mut PlanTask, args: &Common, kind: Kind, path: &Path) -> Result<()> {
    if args.algorithm != "auto" {
        bail!(
            "--rules chooses the algorithm, and so does --algorithm {}: give one of them",
            args.algorithm
        );
    }
    let shown = path.display();
    let rules = Rules::parse(&read_text(path)?).with_context(|| shown.to_string())?;
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
    if let (SegmentChoice::Best, Some(segment)) = (&task.segments, choice.segment) {
        // A segment measured with another element size is rounded down to whole elements.
        let elements = usize::try_from(segment / request.get_element_bytes())
            .unwrap_or(usize::MAX)
            .max(1);
        task.segments = SegmentChoice::Rule(Segments::of_size(request.elements(), elements)?);
    }
    task.algorithms = vec![algorithm];
    task.rule = Some(why);
    Ok(())
}
