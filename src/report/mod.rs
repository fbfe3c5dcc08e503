//! Pictures: Gantt charts, trees and traffic as SVG, and traces for trace viewers.
//!
//! A [`Trace`] says what every rank did when, in model time ([`Trace::model`]) or as a run recorded
//! it ([`Outcome::trace`](crate::run::Outcome::trace)). Both are drawn by [`gantt()`] and written
//! for Perfetto and its kin by [`Trace::to_chrome_json`]. [`tree()`] and [`traffic()`] draw who
//! sends to whom, without times.
//!
//! ```
//! use oneport::report::{Caption, Trace, Unit, gantt};
//! use oneport::{CostModel, Kind, Request, plan::registry};
//!
//! let schedule = registry::find(Kind::Reduce, "binomial")?.plan(&Request::new(8, 100))?;
//! let trace = Trace::model(&schedule, &CostModel::new(10.0, 1.0), 1, Unit::Plain)?;
//! assert_eq!(trace.end(), 3.0 * 110.0);
//! let svg = gantt(&trace, &Caption::new("reduce by binomial"))?;
//! assert!(svg.starts_with("<svg"));
//! # Ok::<(), oneport::Error>(())
//! ```

mod chrome;
mod gantt;
mod legend;
mod platform;
mod svg;
mod trace;
mod traffic;
mod tree;

pub use chrome::MAX_EVENTS;
pub use gantt::{MAX_BOXES, gantt};
pub use platform::platform;
pub use trace::{Activity, Source, Trace, Unit, What};
pub use traffic::{Traffic, traffic};
pub use tree::{Tree, tree};

/// What stands above a picture.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Caption {
    /// One line in bold.
    pub title: String,
    /// Lines below it; long ones are wrapped.
    pub lines: Vec<String>,
}

impl Caption {
    /// A title alone.
    pub fn new(title: impl Into<String>) -> Caption {
        Caption {
            title: title.into(),
            lines: Vec::new(),
        }
    }

    /// The same with one line more.
    #[must_use]
    pub fn line(mut self, line: impl Into<String>) -> Caption {
        self.lines.push(line.into());
        self
    }
}
