//! Figures 1, 4, 5, 6, 7 and 10 of Lowery & Langou, redrawn with the printed formulas and with
//! executed times.
//!
//! Writes a CSV file and an SVG drawing of each figure into a folder (`target/figures`, or the one
//! given as argument). For each conclusion that the paper draws from a figure, it prints whether
//! the data support it.
//!
//! Run with `cargo run --release --example figures [FOLDER]`.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "sizes are rounded"
)]
#![expect(clippy::print_stdout, reason = "an example prints its results")]

mod bidirectional;
mod model;
mod plot;
mod unequal;
mod unidirectional;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A figure's data, drawing and verdicts.
pub(crate) struct Figure {
    /// The figure's number in the paper, which also names the files.
    pub(crate) number: u32,
    pub(crate) header: &'static str,
    pub(crate) rows: Vec<String>,
    pub(crate) plot: plot::Plot,
    pub(crate) verdicts: Vec<Verdict>,
}

/// Whether a statement of the paper holds, and what the data show.
pub(crate) struct Verdict {
    /// Source of the data: printed formulas or executed times.
    pub(crate) source: &'static str,
    pub(crate) holds: bool,
    pub(crate) sentence: String,
}

fn main() -> ExitCode {
    let folder = std::env::args_os()
        .nth(1)
        .map_or_else(|| PathBuf::from("target/figures"), PathBuf::from);
    match draw(&folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{}: {e}", folder.display());
            ExitCode::from(2)
        }
    }
}

fn draw(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut figures = unidirectional::figures();
    figures.extend([
        bidirectional::figure_6(),
        bidirectional::figure_7(),
        unequal::figure_10(),
    ]);
    for figure in figures {
        let path = folder.join(format!("figure{}", figure.number));
        std::fs::write(
            path.with_extension("csv"),
            format!("{}\n{}\n", figure.header, figure.rows.join("\n")),
        )?;
        figure.plot.save(&path.with_extension("svg"))?;
        for Verdict {
            source,
            holds,
            sentence,
        } in figure.verdicts
        {
            let holds = if holds { "holds" } else { "does not hold" };
            println!("Fig. {} ({source}) {holds}: {sentence}", figure.number);
        }
    }
    println!("drawn in {}", folder.display());
    Ok(())
}
