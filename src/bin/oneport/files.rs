//! Input files.

use std::fs;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result};

/// Reads a text file, or standard input for `-`.
pub(crate) fn read_text(path: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    if path.as_os_str() == "-" {
        std::io::stdin()
            .read_to_end(&mut bytes)
            .context("cannot read standard input")?;
    } else {
        bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    }
    String::from_utf8(bytes)
        .ok()
        .with_context(|| format!("{} is not a text file", path.display()))
}
