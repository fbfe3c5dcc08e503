//! Ranges and lists of vector sizes.

use anyhow::{Result, bail};

use crate::units::parse_size;

/// One size, or a range of sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    from: u64,
    to: u64,
}

/// Parses `64KiB` or `64KiB..1MiB`.
pub(crate) fn parse_sizes(text: &str) -> Result<Sizes, String> {
    let Some((from, to)) = text.split_once("..") else {
        let size = parse_size(text)?;
        return Ok(Sizes {
            from: size,
            to: size,
        });
    };
    if from.trim().is_empty() || to.trim().is_empty() {
        return Err(format!(
            "'{text}' is not a range: write both ends, such as 64KiB..1MiB"
        ));
    }
    let (from, to) = (parse_size(from)?, parse_size(to)?);
    if from > to {
        return Err(format!(
            "the range {text} is empty: it starts with the larger end"
        ));
    }
    if from == 0 && to > 0 {
        return Err(format!(
            "the range {text} starts at 0, from which no factor leads on: start at 1 or list 0 by itself"
        ));
    }
    Ok(Sizes { from, to })
}

impl Sizes {
    /// The size, if it is one; otherwise a range.
    pub(crate) fn one(self) -> Result<u64> {
        if self.from < self.to {
            bail!(
                "a range of sizes (--bytes {}..{}) is for run and tune: give one",
                self.from,
                self.to
            );
        }
        Ok(self.from)
    }

    /// A single size.
    pub(crate) fn single(bytes: u64) -> Sizes {
        Sizes {
            from: bytes,
            to: bytes,
        }
    }

    /// Whether it is a range of several sizes.
    pub(crate) fn is_range(self) -> bool {
        self.from < self.to
    }
}

/// Returns all sizes in increasing order, without duplicates.
pub(crate) fn expand(parts: &[Sizes], factor: usize) -> Result<Vec<u64>> {
    if factor < 2 && parts.iter().any(|part| part.from < part.to) {
        bail!("--factor is {factor}: a range goes on by a factor of at least 2");
    }
    let mut sizes = Vec::new();
    for part in parts {
        let next = |&size: &u64| {
            size.checked_mul(factor as u64)
                .filter(|&s| s < part.to && s > size)
        };
        sizes.extend(std::iter::successors(Some(part.from), next));
        sizes.push(part.to);
    }
    sizes.sort_unstable();
    sizes.dedup();
    Ok(sizes)
}
