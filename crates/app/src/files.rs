//! Input files.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result, bail};
use oneport::internal::budget::files::MAX_INPUT_BYTES;

use crate::caller::Caller;
use crate::memory::{available_memory, ensure_memory};
use crate::output::escape;
use crate::stored::StoredSchedule;

/// Memory in bytes that reading a file takes, and what is done with it at once: proving a schedule,
/// or writing it in another form.
///
/// Measured as the peak of the address space (`VmPeak`) less the 12 MB of the program, for
/// `import` and `check --schedule` of files of 1 to 22 MB with as little text for a step, a rank or
/// a number as there may be, just after lists have doubled.
struct Need {
    begins: &'static [&'static str],
    /// What it has somewhere.
    has: &'static str,
    /// For each character, and for each of some characters that stand for what is stored.
    character: u128,
    marks: &'static [(u8, u128)],
}

const NEEDS: [Need; 5] = [
    // The XML library reserves 80 bytes for each < and 72 for each =; what is made of a step takes
    // 700 more at most. (Whole files: 13 to 24 times their size.)
    Need {
        begins: &["<"],
        has: "",
        character: 2,
        marks: &[(b'<', 800), (b'=', 72)],
    },
    // GOAL: 270 for `calc 1`, 260 with a label. (9 to 43 times.)
    Need {
        begins: &["num_ranks", "//", "/*"],
        has: "",
        character: 2,
        marks: &[(b'\n', 320)],
    },
    // Plans of MSCCL++: an operation takes 400 as it is read, twice 250 as nodes and steps of both
    // halves of a pipeline; a channel of it as much as a node (estimated).
    Need {
        begins: &["{"],
        has: "\"gpus\"",
        character: 10,
        marks: &[(b'{', 900), (b',', 300)],
    },
    // Flows of TE-CCL: 800 for a flow, which is a text with two quotes (5 to 10 times).
    Need {
        begins: &["{"],
        has: "\"3-Epochs_Required\"",
        character: 2,
        marks: &[(b'"', 400)],
    },
    // JSON: 7 a character in lists of spans, 13 in lists of ranks; 64 for a number of a cost file.
    // Lines of sizes and tables: 128. (7 to 18 times.)
    Need {
        begins: &[""],
        has: "",
        character: 10,
        marks: &[(b',', 48), (b'\n', 128)],
    },
];

impl Need {
    /// The memory for a text: that of the first format that it begins like.
    fn of(text: &str) -> u128 {
        let start = text.trim_start();
        let begins = |need: &&Need| need.begins.iter().any(|begin| start.starts_with(begin));
        let is_one = |need: &&Need| begins(need) && text.contains(need.has);
        let need = NEEDS.iter().find(is_one).unwrap_or(&NEEDS[4]);
        let marked = need.marks.iter().map(|&(mark, bytes)| {
            let count = text.bytes().filter(|&byte| byte == mark).count();
            count as u128 * bytes
        });
        need.character * text.len() as u128 + marked.sum::<u128>()
    }
}

/// Whether several processes read the same input.
static SHARED: AtomicBool = AtomicBool::new(false);

/// From now on standard input is refused: it reaches only one of the processes of a launch.
pub(crate) fn every_process_reads() {
    SHARED.store(true, Ordering::Relaxed);
}

/// The name of a file in texts of any form.
pub(crate) fn name_of(path: &Path) -> String {
    match &*path.to_string_lossy() {
        "-" => "standard input".into(),
        name => escape::visible(name).into_owned(),
    }
}

/// A file that is read: by its name, or what a program has in its place.
#[derive(Debug, Clone)]
pub struct Source {
    path: PathBuf,
    held: Option<Arc<StoredSchedule>>,
    /// What a program has, or what was read of something that can be read once.
    text: Arc<OnceLock<String>>,
}

impl Source {
    /// A file on the disk; `-` is standard input.
    pub fn named(path: impl Into<PathBuf>) -> Source {
        Source {
            path: path.into(),
            held: None,
            text: Arc::default(),
        }
    }

    /// A text, which messages call so.
    pub(crate) fn text(name: String, text: &str) -> Source {
        let source = Source::named(name);
        source.text.get_or_init(|| text.to_string());
        source
    }

    /// A schedule, which messages call so.
    pub(crate) fn schedule(name: String, stored: &Arc<StoredSchedule>) -> Source {
        Source {
            held: Some(Arc::clone(stored)),
            ..Source::named(name)
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Its name in texts of any form.
    pub(crate) fn name(&self) -> String {
        name_of(&self.path)
    }

    /// The schedule, of one that a program has.
    pub(crate) fn stored(&self) -> Option<&StoredSchedule> {
        self.held.as_deref()
    }

    /// Whether it has no file that a reader could look for.
    pub(crate) fn is_unnamed(&self) -> bool {
        let held = self.held.is_some() || self.text.get().is_some();
        held || self.path.as_os_str() == "-"
    }

    /// Whether there is a file, or a text in memory.
    pub(crate) fn is_there(&self) -> bool {
        self.is_unnamed() || self.path.exists()
    }

    /// Reads the text. Refuses one that would not fit into the memory that there is.
    pub(crate) fn read(&self) -> Result<String> {
        // Half of the memory, because a buffer that grows is copied.
        let max =
            available_memory().map_or(MAX_INPUT_BYTES, |bytes| MAX_INPUT_BYTES.min(bytes / 2));
        let (path, name) = (&self.path, self.name());
        if let Some(text) = self.text.get() {
            return Ok(text.clone());
        }
        if let Some(stored) = &self.held {
            return Ok(stored.schedule.to_json());
        }
        let (source, is_regular): (Box<dyn Read>, bool) = if path.as_os_str() == "-" {
            if SHARED.load(Ordering::Relaxed) {
                bail!("standard input reaches one process only: name a file");
            }
            (Box::new(std::io::stdin()), false)
        } else {
            let file = File::open(path).with_context(|| format!("cannot read {name}"))?;
            let is_regular = file.metadata().is_ok_and(|metadata| metadata.is_file());
            (Box::new(file), is_regular)
        };
        let mut bytes = Vec::new();
        source
            .take(max.saturating_add(1))
            .read_to_end(&mut bytes)
            .with_context(|| format!("cannot read {name}"))?;
        if bytes.len() as u64 > max {
            bail!("{name} has more than the {max} bytes that an input file can have here");
        }
        let mut text = String::from_utf8(bytes)
            .ok()
            .with_context(|| format!("{} is not a text file", path.display()))?;
        // Editors on Windows begin files with a mark of the encoding.
        if text.starts_with('\u{feff}') {
            text.remove(0);
        }
        let what = format!("reading {name}");
        ensure_memory(&what, Need::of(&text), "take a shorter file")?;
        // A pipe, such as `<(command)`, has nothing for whoever reads it again.
        if !is_regular {
            self.text.get_or_init(|| text.clone());
        }
        Ok(text)
    }
}

/// The content of a file that may be there, or is in the caller's memory.
pub(crate) fn existing(caller: &Caller, path: &Path) -> Option<io::Result<Vec<u8>>> {
    match caller.held(path) {
        Some(text) => Some(Ok(text.into_bytes())),
        None => path.is_file().then(|| fs::read(path)),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    Csv,
    Markdown,
    Tex,
    Json,
    Svg,
    Html,
}

impl FileKind {
    /// Of a file name that is none of these, but a picture's: what makes one; otherwise nothing.
    pub(crate) fn converted(path: &Path) -> &'static str {
        let end = path
            .extension()
            .map(|end| end.to_string_lossy().to_lowercase());
        match end.as_deref() {
            Some("pdf" | "png" | "eps" | "ps") => {
                " (rsvg-convert -f pdf, png or eps makes such a file of it)"
            }
            _ => "",
        }
    }

    pub(crate) fn of(path: &Path) -> Option<FileKind> {
        let end = path.extension()?.to_string_lossy().to_lowercase();
        Some(match &*end {
            "csv" => FileKind::Csv,
            "md" => FileKind::Markdown,
            "tex" => FileKind::Tex,
            "json" => FileKind::Json,
            "svg" => FileKind::Svg,
            "html" | "htm" => FileKind::Html,
            _ => return None,
        })
    }
}
