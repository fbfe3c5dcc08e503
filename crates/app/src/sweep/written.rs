//! The files that `-o` names: a table in six forms.

use super::PaperTable;
use crate::answer::json;
use crate::prelude::*;

/// Files, by kind.
pub(crate) type FilesOf<'a> = Vec<(FileKind, &'a Path)>;

/// A table as files have it.
pub(crate) trait Written {
    /// What it is of, and the costs.
    fn comment(&self) -> String;

    /// The rows.
    fn csv(&self) -> Result<Vec<u8>>;

    /// All numbers.
    fn answered(&self) -> impl Answered;

    /// The table, as papers have it.
    fn paper(&self) -> Result<PaperTable>;

    /// What can be drawn of it, as SVG.
    fn plot(&self) -> String;

    /// A page, which is HTML.
    fn page(&self) -> String;

    /// Writes these files.
    fn write(&self, files: &[(FileKind, &Path)], caller: &Caller) -> Result<()> {
        for &(kind, path) in files {
            let content = match kind {
                FileKind::Csv => self.csv()?,
                FileKind::Json => json(&self.answered())?.into_bytes(),
                FileKind::Markdown => self.paper()?.markdown().into_bytes(),
                FileKind::Tex => {
                    let comment = format!("{}; {}", self.comment(), caller.command);
                    self.paper()?.tex(&comment).into_bytes()
                }
                FileKind::Svg => self.plot().into_bytes(),
                FileKind::Html => self.page().into_bytes(),
            };
            caller.write_named(path, &content)?;
        }
        Ok(())
    }
}

/// The kinds of files that these paths name. Fails if one is of another kind.
pub(crate) fn kinds_of(paths: &[PathBuf]) -> Result<FilesOf<'_>> {
    let files = paths.iter().map(|path| match FileKind::of(path) {
        Some(kind) => Ok((kind, &**path)),
        None => bail!(
            "{}: name FILE.csv, .md, .tex, .json, .html or .svg{}",
            path.display(),
            FileKind::converted(path)
        ),
    });
    files.collect()
}
