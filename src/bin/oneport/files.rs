//! Input files.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};

use crate::task::available_memory;

/// Larger input files are refused: the largest schedule that can be planned is shorter.
const MAX_BYTES: u64 = 4 << 30;

/// Whether several processes read the same input.
static SHARED: AtomicBool = AtomicBool::new(false);

/// From now on standard input is refused: it reaches only one of the processes of a launch.
pub(crate) fn every_process_reads() {
    SHARED.store(true, Ordering::Relaxed);
}

/// The name of an input in messages.
pub(crate) fn name_of(path: &Path) -> String {
    match path.to_string_lossy().into_owned() {
        dash if dash == "-" => "standard input".into(),
        name => name,
    }
}

/// Reads a text file, or standard input for `-`.
pub(crate) fn read_text(path: &Path) -> Result<String> {
    // Half of the memory, because a buffer that grows is copied.
    let max = available_memory().map_or(MAX_BYTES, |bytes| MAX_BYTES.min(bytes / 2));
    let name = name_of(path);
    let source: Box<dyn Read> = if path.as_os_str() == "-" {
        if SHARED.load(Ordering::Relaxed) {
            bail!("standard input reaches one process only: name a file");
        }
        Box::new(std::io::stdin())
    } else {
        Box::new(File::open(path).with_context(|| format!("cannot read {name}"))?)
    };
    let mut bytes = Vec::new();
    source
        .take(max.saturating_add(1))
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {name}"))?;
    if bytes.len() as u64 > max {
        bail!("{name} has more than the {max} bytes that an input file can have here");
    }
    String::from_utf8(bytes)
        .ok()
        .with_context(|| format!("{} is not a text file", path.display()))
}
