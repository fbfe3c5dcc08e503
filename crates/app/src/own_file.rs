//! The files of `--schedule`, and the names that they are given there.

use std::ffi::OsStr;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

use crate::ask::{Form, Takes, Words};
use crate::files::Source;

/// A value of `--schedule`: `mine.json`, or `three-phase=mine.json`.
#[derive(Debug, Clone)]
pub(crate) struct OwnFile {
    /// Wins over the name that stands in the file.
    pub(crate) name: Option<String>,
    pub(crate) source: Source,
}

/// The name of a schedule's file, perhaps with one for the schedule.
#[derive(Debug)]
pub(crate) struct OwnFileName;

impl Form for OwnFileName {
    type Value = OwnFile;
    const NAME: &'static str = "[NAME=]FILE";
    const WORDS: Words = Words::Mixed;
    const TAKES: Takes = Takes::Content;

    /// Splits at the first `=`, unless there is a file of the whole name, or a folder's name has
    /// the sign.
    fn parse_raw(word: &OsStr) -> Result<OwnFile, String> {
        let path = PathBuf::from(word);
        let (name, file) = match word.to_str().and_then(|text| text.split_once('=')) {
            Some((name, file)) if !name.contains('/') && !path.exists() => (name, file),
            _ => return Ok(Source::named(path).into()),
        };
        if name.is_empty() || file.is_empty() {
            return Err("a name, '=' and a file: three-phase=mine.json".into());
        }
        Ok(OwnFile {
            name: Some(name.to_string()),
            source: Source::named(file),
        })
    }

    fn of_file(source: &Source) -> Option<OwnFile> {
        Some(source.clone().into())
    }
}

impl From<Source> for OwnFile {
    fn from(source: Source) -> OwnFile {
        OwnFile { name: None, source }
    }
}

impl OwnFile {
    /// The file of a family such as `mine-{p}.json` for a number of ranks.
    pub(crate) fn of_family(&self, ranks: Option<usize>) -> Result<OwnFile> {
        let name = self.source.path().to_string_lossy();
        if !name.contains("{p}") {
            return Ok(self.clone());
        }
        let Some(ranks) = ranks else {
            bail!("{name} is a file for each number of ranks: give -p");
        };
        Ok(OwnFile {
            name: self.name.clone(),
            source: Source::named(name.replace("{p}", &ranks.to_string())),
        })
    }

    /// The files of a folder, in the order of their names, or this file.
    pub(crate) fn expanded(&self) -> Result<Vec<OwnFile>> {
        let path = self.source.path();
        if !path.is_dir() {
            return Ok(vec![self.clone()]);
        }
        let folder = self.source.name();
        ensure!(
            self.name.is_none(),
            "{folder} is a folder: a name is for one file"
        );
        let cannot = || format!("cannot read {folder}");
        let entries = std::fs::read_dir(path).with_context(cannot)?;
        let paths = entries.map(|entry| entry.map(|entry| entry.path()));
        let mut paths = paths.collect::<Result<Vec<_>, _>>().with_context(cannot)?;
        paths.retain(|path| path.is_file() && path.extension().is_some_and(|end| end == "json"));
        paths.sort_unstable();
        ensure!(
            !paths.is_empty(),
            "{folder} is a folder without .json files"
        );
        let files = paths.into_iter();
        Ok(files.map(|path| Source::named(path).into()).collect())
    }
}
