//! `--algorithm`: the algorithms that it names.

use anyhow::{Result, bail};
use oneport::internal::split_outside;
use oneport::plan::registry::{self, Algorithm};
use oneport::{Kind, Request};

use super::usage;
use crate::units::with_similar;

/// Whether `--algorithm` names several algorithms: then those that do not apply are left out.
pub(crate) fn names_several(names: &str) -> bool {
    matches!(names, "auto" | "all") || split_outside(names, ',').len() > 1
}

/// Returns the algorithms that `--algorithm` selects: all, or those of the list.
pub(crate) fn algorithms(kind: Kind, names: &str, request: &Request) -> Result<Vec<Algorithm>> {
    let algorithms = match names {
        "auto" | "all" => {
            let (cost, ranks) = (request.get_cost(), request.ranks());
            let all: Vec<_> = registry::candidates(kind, cost, ranks).cloned().collect();
            if all.is_empty() {
                bail!(
                    "no algorithm for {} is registered (`oneport list` shows what is)",
                    kind.name()
                );
            }
            all
        }
        names => {
            let find = |name: &str| {
                registry::find(kind, name).map_err(|error| {
                    let names: Vec<_> = registry::of(kind).map(Algorithm::name).collect();
                    let names = names.iter().map(AsRef::as_ref);
                    usage(with_similar(&error.to_string(), name, names))
                })
            };
            let mut found: Vec<Algorithm> = Vec::new();
            for name in split_outside(names, ',') {
                let algorithm = find(name)?;
                if !found.contains(&algorithm) {
                    found.push(algorithm);
                }
            }
            found
        }
    };
    // Compositions are named by the parts that they take here.
    let resolved = |a: Algorithm| a.resolved(request).unwrap_or(a);
    Ok(algorithms.into_iter().map(resolved).collect())
}
