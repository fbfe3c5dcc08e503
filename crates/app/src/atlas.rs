//! `oneport atlas`: makes a static site of all algorithms at small numbers of ranks.

use std::fs;

use oneport_pictures::MAX_PAGE_RANKS;
use oneport_pictures::atlas::{Plate, index, player};
use serde_json::Value;

use crate::parallel;
use crate::prelude::*;
use crate::writer::NewFolder;

options! {
    /// Make a static site of all algorithms at small numbers of ranks.
    #[derive(Debug)]
    #[examples = "\
Examples:
  oneport atlas -o atlas                    all collectives, 2 to 16 ranks: 2.3 MB
  oneport atlas broadcast -p 8,16 -o part   a part of it

Open index.html, from the disk or on any web server: it loads nothing from elsewhere. The index has rounds, and model times \
against lower bounds, for an alpha and a beta that the reader chooses; each number opens the schedule in a player."]
    pub(crate) struct AtlasArgs {
        /// Collectives [default: all]
        collectives: Vec<Kind> = KindName { is_placed: true },

        /// Numbers of ranks
        ranks: Ranges = Ranks { shorts: &['p', 'n'], default: Some("2..=16") },

        /// The folder to make; an existing one must be empty
        output: PathBuf = Output { shorts: &['o'], value: "FOLDER" },
    }
}

impl Command for AtlasArgs {
    fn answer(&self, site: &mut Site) -> Result<Answer> {
        make(self, &site.caller)?;
        Ok(Answer::default())
    }
}

fn make(args: &AtlasArgs, caller: &Caller) -> Result<()> {
    let ranks = args.ranks.counts();
    if let Some(p) = ranks.iter().find(|p| !(2..=MAX_PAGE_RANKS).contains(p)) {
        bail!("an atlas has 2 to {MAX_PAGE_RANKS} ranks, not {p}");
    }
    let folder = &args.output;
    // It is made again when there is something to write: an atlas that is interrupted leaves none.
    drop(make_folder(folder)?);
    let kinds = Kind::ALL
        .into_iter()
        .filter(|kind| match &args.collectives[..] {
            // With all ranks as targets it is another collective: a multicast is a broadcast.
            [] => !kind.has_targets() && registry::of(*kind).next().is_some(),
            given => given.contains(kind),
        });
    let plates = kinds.flat_map(|kind| ranks.iter().map(move |&p| (kind, p)));
    let plates: Vec<(Kind, usize)> = plates.collect();
    let bar = WorkBar::new(
        caller,
        plates.len() as u64,
        "{wide_bar} {pos}/{len} files, {eta} left",
    );
    let work = |&(_, p): &(Kind, usize)| (p * p * p) as u64 * 1000;
    let make = |&(kind, p): &(Kind, usize), _| -> Result<(String, String, Value)> {
        let plate = Plate::new(kind, p);
        let made = (plate.file(), plate.script()?, plate.summary()?);
        bar.add(1);
        Ok(made)
    };
    let made = parallel::map(&plates, work, make, |_| false);
    bar.finish();
    let mut summaries = Vec::new();
    let mut files = Vec::new();
    for made in made {
        let (name, script, summary) = made?;
        files.push((format!("data/{name}"), script));
        summaries.push(summary);
    }
    let source = caller.provenance();
    files.push(("player.html".into(), player(Some(source.clone()))));
    // The index comes last: a folder where it says so is not complete.
    files.push(("index.html".into(), index(&summaries, Some(source))));
    let bytes: usize = files.iter().map(|(_, content)| content.len()).sum();
    let _made = make_folder(folder)?;
    let written = write(caller, folder, &files);
    written.with_context(|| format!("{} is not complete: remove it", folder.display()))?;
    caller.note(format!(
        "written to {}: {} files, {:.1} MB",
        folder.join("index.html").display(),
        files.len(),
        bytes as f64 / 1e6
    ));
    Ok(())
}

/// Makes sure that there is an empty folder in which files can be made.
fn make_folder(folder: &Path) -> Result<NewFolder> {
    let failed = || format!("cannot write {}", folder.display());
    let made = NewFolder::make(folder)?;
    if fs::read_dir(folder).with_context(failed)?.next().is_some() {
        bail!("{} is not empty: name a new folder", folder.display());
    }
    tempfile::tempfile_in(folder).with_context(failed)?;
    Ok(made)
}

fn write(caller: &Caller, folder: &Path, files: &[(String, String)]) -> Result<()> {
    let index = folder.join("index.html");
    caller.write_file(&index, b"This atlas is not complete: remove its folder.\n")?;
    let data = folder.join("data");
    fs::create_dir(&data).with_context(|| format!("cannot write {}", data.display()))?;
    for (name, content) in files {
        caller.write_file(&folder.join(name), content.as_bytes())?;
    }
    Ok(())
}
