//! The CSV file in which a sweep goes on where it stopped.

use std::hash::{DefaultHasher, Hash, Hasher};

use csv::StringRecord;

use super::Findings;
use crate::files;
use crate::output::VERSION;
use crate::prelude::*;

/// A row as it stands in the file.
pub(crate) trait StoredRow: Sized {
    /// Reads one of the fields of this header.
    fn of(record: &StringRecord, header: &StringRecord) -> csv::Result<Self>;

    /// The command line that it is from, and the digest of what that read.
    fn origin(&self) -> [&str; 2];

    /// Whether it can come from this program: what else a file may have in it reaches the terminal
    /// and the figures.
    fn is_sound(&self) -> bool;

    /// Measured times are not thrown away.
    fn is_measured(&self) -> bool;
}

/// Where the rows of a sweep are kept, if anywhere.
pub(super) struct Store<'a> {
    caller: &'a Caller,
    pub(super) path: Option<&'a Path>,
    /// The digest of what the command reads.
    pub(super) inputs: String,
}

impl<'a> Store<'a> {
    /// The file of a command at the points of `common`.
    pub(super) fn of(path: Option<&'a Path>, common: &Common, caller: &'a Caller) -> Store<'a> {
        let ranks = |point: &Common| point.ranks().ok().flatten();
        Store {
            // Only the file keeps it, so nothing is read ahead of the command without one.
            inputs: path.map_or_else(String::new, |_| {
                inputs(common, &common.points().iter().map(ranks).collect())
            }),
            caller,
            path,
        }
    }

    /// The rows that the file has of this command.
    pub(super) fn known<R: StoredRow>(&self) -> Result<Vec<R>> {
        let (inputs, caller) = (&self.inputs, self.caller);
        let there = self
            .path
            .and_then(|path| Some((path, files::existing(caller, path)?)));
        let Some((path, text)) = there else {
            return Ok(Vec::new());
        };
        let text = text.with_context(|| format!("cannot read {}", path.display()))?;
        let rows = || -> csv::Result<Vec<R>> {
            let mut reader = csv::Reader::from_reader(&*text);
            let header = reader.headers()?.clone();
            let records = reader.records();
            records.map(|record| R::of(&record?, &header)).collect()
        };
        let name = path.display();
        let other = || {
            anyhow::anyhow!(
                "{name} has something else than rows of this command: name another file, or remove it"
            )
        };
        let rows = rows().map_err(|_| other())?;
        if !rows.iter().all(R::is_sound) {
            return Err(other());
        }
        let is_own = rows.iter().all(|row| *row.origin()[0] == *caller.command);
        let is_of_inputs = rows.iter().all(|row| row.origin()[1] == inputs);
        if is_own && is_of_inputs {
            return Ok(rows);
        }
        if is_own && !rows.iter().any(R::is_measured) {
            caller.note(format!(
                "{name} is written anew: what the command reads has changed"
            ));
            return Ok(Vec::new());
        }
        Err(other())
    }

    /// Writes what there is.
    pub(super) fn save(&self, found: &impl Findings) -> Result<()> {
        match self.path {
            Some(path) => self.caller.write_file(path, &found.csv(&self.inputs)?),
            None => Ok(()),
        }
    }
}

/// Digest of the version and of the input files (`{p}` in a name expanded to these numbers of
/// ranks).
fn inputs(common: &Common, ranks: &BTreeSet<Option<usize>>) -> String {
    let mut digest = DefaultHasher::new();
    VERSION.hash(&mut digest);
    for source in common.inputs() {
        for p in ranks {
            let name = source.path().to_string_lossy();
            let family = p.filter(|_| name.contains("{p}"));
            let of_ranks = family.map(|p| Source::named(name.replace("{p}", &p.to_string())));
            // Whoever needs it reports the error.
            let content = of_ranks.as_ref().unwrap_or(&source).read();
            content.ok().hash(&mut digest);
        }
    }
    format!("{:016x}", digest.finish())
}
