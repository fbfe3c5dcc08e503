//! Ranges and lists of sizes and counts, written alike in all options.

use anyhow::{Result, bail};

use crate::units::{parse_count, parse_size};

/// Whole numbers in increasing order, as an option lists them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ranges {
    parts: Vec<Range>,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    from: u64,
    to: u64,
    next: Next,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// By this factor, or by that of the command.
    Times(Option<u64>),
    Each,
}

/// Values that one option may list: more are a slip.
const MAX_VALUES: usize = 100_000;

/// Parses sizes: `64KiB`, `8,64KiB`, `8..4MiB` (each twice the one before), `8..4MiB*4`.
pub(crate) fn parse_sizes(text: &str) -> Result<Ranges, String> {
    parse(text, &parse_size)
}

/// Parses counts: `8`, `2,3,8`, `2..64` (each twice the one before), `2..64*4`, `5..=9` (all).
pub(crate) fn parse_counts(text: &str) -> Result<Ranges, String> {
    parse(text, &|text| parse_count(text).map(|count| count as u64))
}

fn parse(text: &str, one: &dyn Fn(&str) -> Result<u64, String>) -> Result<Ranges, String> {
    let parts = text.split(',').map(|part| parse_range(part, one));
    Ok(Ranges {
        parts: parts.collect::<Result<_, _>>()?,
        text: text.to_string(),
    })
}

fn parse_range(text: &str, one: &dyn Fn(&str) -> Result<u64, String>) -> Result<Range, String> {
    let Some((from, to)) = text.split_once("..") else {
        let value = one(text)?;
        return Ok(Range::of(value));
    };
    let (to, next) = match (to.strip_prefix('='), to.split_once('*')) {
        (Some(to), _) => (to, Next::Each),
        (None, Some((to, factor))) => {
            let least = parse_count(factor)?;
            if least < 2 {
                return Err(format!(
                    "the range {text} goes on by a factor of {factor}: take at least 2"
                ));
            }
            (to.trim_end_matches(".."), Next::Times(Some(least as u64)))
        }
        (None, None) => (to, Next::Times(None)),
    };
    if from.trim().is_empty() || to.trim().is_empty() {
        return Err(format!(
            "'{text}' is not a range: write both ends, such as 8..64 (by factors of 2) or 8..64*4"
        ));
    }
    let (from, to) = (one(from)?, one(to)?);
    if from > to {
        return Err(format!(
            "the range {text} is empty: it starts with the larger end"
        ));
    }
    if from == 0 && to > 0 && next != Next::Each {
        return Err(format!(
            "{text}: a range that goes on by a factor cannot start at 0; write 0,1..1MiB"
        ));
    }
    if next == Next::Each && to - from >= MAX_VALUES as u64 {
        return Err(format!(
            "the range {text} has more than {MAX_VALUES} values"
        ));
    }
    Ok(Range { from, to, next })
}

impl Range {
    fn of(value: u64) -> Range {
        Range {
            from: value,
            to: value,
            next: Next::Each,
        }
    }

    fn values(self, factor: u64) -> Vec<u64> {
        let factor = match self.next {
            Next::Each => return (self.from..=self.to).collect(),
            Next::Times(own) => own.unwrap_or(factor),
        };
        let next = |&value: &u64| value.checked_mul(factor).filter(|&v| v < self.to);
        let mut values: Vec<u64> = std::iter::successors(Some(self.from), next).collect();
        values.push(self.to);
        values
    }
}

impl Ranges {
    pub(crate) fn single(value: u64) -> Ranges {
        Ranges {
            parts: vec![Range::of(value)],
            text: value.to_string(),
        }
    }

    pub(crate) fn one(&self, option: &str) -> Result<u64> {
        match &self.parts[..] {
            [one] if one.from == one.to => Ok(one.from),
            _ => bail!(
                "{option} {} is more than one value: this command takes one (compare, simulate and run take several)",
                self.text
            ),
        }
    }

    pub(crate) fn are_several(&self) -> bool {
        self.one("").is_err()
    }

    /// All values in increasing order, without duplicates; ranges go on by `factor` unless they
    /// name one.
    pub(crate) fn values(&self, factor: u64) -> Vec<u64> {
        let mut values = self.parts.iter().flat_map(|part| part.values(factor));
        let mut values: Vec<u64> = values.by_ref().collect();
        values.sort_unstable();
        values.dedup();
        values
    }

    pub(crate) fn counts(&self) -> Vec<usize> {
        let counts = self.values(2).into_iter();
        counts
            .map(|n| usize::try_from(n).unwrap_or(usize::MAX))
            .collect()
    }
}
