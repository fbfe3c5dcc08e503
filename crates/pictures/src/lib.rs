//! Pictures of schedules and runs: Gantt charts, trees and traffic as SVG, pages that step through
//! a schedule, and traces for viewers.
//!
//! A [`Trace`] contains the activities of every rank over time, in model time ([`Trace::model`]) or
//! as recorded by a run ([`Outcome::step_times`](oneport::run::Outcome::step_times)). [`gantt()`]
//! draws it, and [`Trace::to_chrome_json`] writes it for Perfetto and similar viewers. [`tree()`]
//! and [`traffic()`] draw which rank sends to which, without times. [`page()`] makes an HTML page.
//! [`dark()`] changes the colours of a picture for a dark background, [`wide()`] its width.
//!
//! A trace takes time linear in the number of steps, apart from sorting segments; a picture, in
//! what it shows, times the lanes of a rank (charts) or the levels (trees). Pictures that are too
//! large for a viewer are refused.
//!
//! ```
//! use oneport_pictures::{Caption, Trace, Unit, gantt};
//! use oneport::{CostModel, Request};
//!
//! let schedule = Request::reduce(8, 100).plan("binomial")?;
//! let trace = Trace::model(&schedule, &CostModel::new(10.0, 1.0), Unit::Plain)?;
//! assert_eq!(trace.end(), 3.0 * 110.0);
//! let svg = gantt(&trace, &Caption::new("reduce by binomial"))?;
//! assert!(svg.starts_with("<svg"));
//! # Ok::<(), oneport::Error>(())
//! ```

#![forbid(unsafe_code)]

pub mod atlas;
mod blocks;
mod chrome;
mod columns;
mod dark;
mod gantt;
mod legend;
mod page;
pub mod shell;
#[doc(hidden)]
pub mod svg;
mod sweep;
mod trace;
mod traffic;
mod tree;

pub use chrome::MAX_EVENTS;
pub use columns::{Column, Columns};
pub use dark::dark;
pub use gantt::gantt;
pub use page::{MAX_PAGE_RANKS, Player, Players, Shown, page};
pub use svg::{Unit, wide};
pub use sweep::{Leader, Place, Quantity, Sweep, SweepRow, plot};
pub use trace::{Activity, Source, Trace, Wait, What};
pub use traffic::{LevelTraffic, Traffic, traffic};
pub use tree::{Tree, tree};

/// Maximal number of boxes of a chart: larger charts are unreadable, and viewers cannot show them.
pub const MAX_BOXES: usize = 50_000;

/// The text around a picture.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Caption {
    /// One line in bold.
    pub title: String,
    /// Lines below it; long ones are wrapped.
    pub lines: Vec<String>,
    /// What made the picture, in small type at its foot: program, date, command line.
    pub source: Option<String>,
    /// The width that a Gantt chart or a plot is to have, in pixels, of which text takes 12.
    pub room: Option<f64>,
}

impl Caption {
    /// A caption with a title only.
    pub fn new(title: impl Into<String>) -> Caption {
        Caption {
            title: title.into(),
            ..Caption::default()
        }
    }

    /// Adds a line.
    #[must_use]
    pub fn line(mut self, line: impl Into<String>) -> Caption {
        self.lines.push(line.into());
        self
    }

    /// Says what made the picture.
    #[must_use]
    pub fn source(mut self, source: impl Into<String>) -> Caption {
        self.source = Some(source.into());
        self
    }
}
