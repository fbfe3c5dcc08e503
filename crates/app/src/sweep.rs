//! One command at several numbers of ranks and sizes: its points, the files that `-o` names, and
//! how it goes on where it stopped. What is found at a point, and what is shown of it, the command
//! says ([`Findings`]).

mod paper;
mod store;
mod table;
mod times;
mod written;

use std::borrow::Cow;

use oneport::Distribution;
use oneport_pictures::shell::Heading;
use oneport_pictures::{Quantity, Sweep, plot};

pub(crate) use self::paper::PaperTable;
use self::store::Store;
pub(crate) use self::store::StoredRow;
pub(crate) use self::times::{Point, Times};
pub(crate) use self::written::{FilesOf, Written, kinds_of};
use crate::answer::{FoundWrong, exit_code};
use crate::ask::Named;
use crate::blocks::DEFAULT_BLOCK;
use crate::draw::FrameArgs;
use crate::prelude::*;

options! {
    /// Where a table of times goes besides standard output.
    #[derive(Debug, Clone)]
    pub(crate) struct SweepArgs {
        /// Write the table to FILE.csv, .md or .tex, all numbers to .json, the plot to .svg, a page
        /// with it to .html; may be repeated. With a CSV file the same command goes on where it
        /// stopped
        output: Vec<PathBuf> = Output { shorts: &['o'], heading: Some("Output") },

        /// What a plot (.svg) shows [default: time]. A table for papers (.md, .tex) has a row for
        /// each number of ranks then, a column for each size: of schedules from files, of the
        /// algorithms named by -a, or else of what leads
        pub(crate) show: Option<Quantity> = QuantityName {
            heading: Some("Output"), only_in_long_help: true,
        },

        /// Draw only so many algorithms in a plot (.svg), the fastest on average, besides schedules
        /// from files
        top: Option<usize> = Count { heading: Some("Output"), only_in_long_help: true },

        pub(crate) frame: FrameArgs = Group { only_in_long_help: true },
    }
}

const QUANTITIES: [Named<Quantity>; 4] = [
    ("time", "Time: measured, if it was", Quantity::Time),
    ("ratio", "Time over that of the best", Quantity::Ratio),
    ("bound", "Model time over its lower bound", Quantity::Bound),
    ("bandwidth", "Size over time", Quantity::Bandwidth),
];

forms! {
    /// What a table or a plot shows.
    QuantityName: Quantity = "WHAT", of QUANTITIES;
}

impl Common {
    /// These options with each number of ranks and size, of vectors or blocks, that they name.
    pub(crate) fn points(&self) -> Vec<Common> {
        let several = |ranges: &Option<Ranges>| match ranges {
            None => vec![None],
            Some(ranges) => ranges.values(2).into_iter().map(Some).collect(),
        };
        let dists = || -> Vec<Vec<Distribution>> {
            match &self.blocks.dist[..] {
                [] => vec![Vec::new()],
                several => several.iter().map(|&dist| vec![dist]).collect(),
            }
        };
        let mut blocks = several(&self.blocks.block);
        if self.blocks.dist.len() > 1 {
            // Distributions are compared at one average.
            blocks[0].get_or_insert(DEFAULT_BLOCK);
        }
        let mut points = Vec::new();
        for ranks in several(&self.ranks) {
            for dist in dists() {
                for bytes in several(&self.vector.bytes) {
                    for &block in &blocks {
                        let mut point = self.clone();
                        point.ranks = ranks.map(Ranges::single);
                        point.blocks.dist.clone_from(&dist);
                        point.vector.bytes = bytes.map(Ranges::single);
                        point.blocks.block = block.map(Ranges::single);
                        points.push(point);
                    }
                }
            }
        }
        points
    }

    /// The size of the point's vectors, or the average one of its blocks.
    pub(crate) fn point_bytes(&self) -> Option<u64> {
        let given = self.vector.bytes.as_ref().or(self.blocks.block.as_ref());
        given?.one("").ok()
    }

    /// The distribution of a point of `all`, where there are others.
    fn dist_among(&self, all: &Common) -> Option<String> {
        let dists = self.blocks.dist.iter();
        let mut dists = dists.filter(|_| all.blocks.dist.len() > 1);
        dists.next().map(|dist| dist.name().to_string())
    }

    fn show_point(&self) -> String {
        let ranks = self.ranks().ok().flatten().map(|p| format!("{p} ranks"));
        let dists = self.blocks.dist.iter().map(|dist| dist.name().to_string());
        let parts: Vec<String> = ranks
            .into_iter()
            .chain(dists)
            .chain(self.point_bytes().map(show_bytes))
            .collect();
        parts.join(", ")
    }
}

/// A number of ranks, a size, and the distribution of sizes where several are swept.
pub(crate) type Spot = (usize, u64, Option<String>);

/// What a command finds at the points of a sweep, and what is shown of it.
pub(crate) trait Findings: Clone {
    /// What it finds at one point.
    type Found;
    /// A row of its CSV file.
    type Row: StoredRow;

    /// Whether a signal ended it early: what there is of it is printed, but not written.
    fn is_cut(_: &Self::Found) -> bool {
        false
    }

    /// Takes the rows of an earlier CSV file of the same command, of which there is at least one.
    fn take_known(&mut self, rows: Vec<Self::Row>) -> Result<()>;

    /// Takes what is found at a point, in place of what was known of it. Fails if it is wrong.
    fn add(&mut self, point: &Common, found: Self::Found) -> Result<()>;

    /// What there is to say of all that was found.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// What a plot and a page show.
    fn sweep(&self) -> Cow<'_, Sweep>;

    /// What is swept, in words.
    fn collective(&self) -> &str;

    /// The ports in words.
    fn ports(&self) -> Cow<'_, str>;

    /// The costs in words, and how it was measured.
    fn costs(&self) -> &str;

    /// The rows as CSV; they tell what they were made from: these `inputs`.
    fn csv(&self, inputs: &str) -> Result<Vec<u8>>;

    /// All numbers. `has_failed` tells whether an error ended the sweep.
    fn answered(&self, has_failed: bool) -> impl Answered;

    /// The table, as papers have it.
    fn paper(&self) -> PaperTable;

    /// Prints the table, which has a row.
    fn print(&self, title: &str, out: &mut Lines) -> Result<()>;
}

/// A command at several points: what it has found so far, and where that goes.
pub(crate) struct Experiment<'a, F> {
    common: &'a Common,
    args: &'a SweepArgs,
    caller: &'a Caller,
    store: Store<'a>,
    files: FilesOf<'a>,
    found: F,
}

impl SweepArgs {
    /// Fails if the files cannot be written, or if options are for others. `others` are further
    /// outputs of the command with the names of their options, `picture` one that may be a picture.
    pub(crate) fn writable(
        &self,
        caller: &Caller,
        others: &[(&str, Option<&Path>)],
        picture: Option<(&str, &Path)>,
    ) -> Result<()> {
        let files = self.files()?;
        let has = |kind| files.iter().any(|file| file.0 == kind);
        let other = picture.and_then(|(_, path)| FileKind::of(path));
        let has_picture = has(FileKind::Svg) || other == Some(FileKind::Svg);
        self.frame.ensure(has_picture, has(FileKind::Html))?;
        let for_papers = [FileKind::Svg, FileKind::Tex, FileKind::Markdown];
        if self.show.is_some() && !for_papers.into_iter().any(has) {
            bail!("--show is for plots and tables for papers: name a file FILE.svg, .tex or .md");
        }
        if self.top.is_some() && !has(FileKind::Svg) {
            bail!("--top is for a plot: name a file FILE.svg");
        }
        let own = self.output.iter().map(|path| ("-o", Some(&**path)));
        let picture = picture.map(|(option, path)| (option, Some(path)));
        let all = own.chain(others.iter().copied()).chain(picture);
        caller.writable(&all.collect::<Vec<_>>())
    }

    /// The files, by kind.
    pub(crate) fn files(&self) -> Result<FilesOf<'_>> {
        kinds_of(&self.output)
    }

    /// Whether a file is to be written.
    pub(crate) fn writes(&self) -> bool {
        !self.output.is_empty()
    }

    pub(crate) fn writes_page(&self) -> bool {
        let is_page = |path: &PathBuf| FileKind::of(path) == Some(FileKind::Html);
        self.output.iter().any(is_page)
    }

    /// What these options say of a command at the points of `common`.
    pub(crate) fn experiment<'a, F: Findings>(
        &'a self,
        common: &'a Common,
        caller: &'a Caller,
        found: F,
    ) -> Result<Experiment<'a, F>> {
        let files = self.files()?;
        let csv = files.iter().find(|(kind, _)| *kind == FileKind::Csv);
        Ok(Experiment {
            store: Store::of(csv.map(|(_, path)| *path), common, caller),
            common,
            args: self,
            caller,
            files,
            found,
        })
    }

    /// What to show of it, drawn.
    pub(crate) fn plot(&self, sweep: &Sweep, caption: Caption, caller: &Caller) -> String {
        let all = sweep.algorithms().len();
        let caption = match self.top.filter(|&top| top < all) {
            Some(top) => caption.line(format!("the {top} fastest of {all}")),
            None => caption,
        };
        let caption = self.frame.caption(caption.source(caller.provenance()));
        let quantity = self.show.unwrap_or_default();
        self.frame.sized(plot(sweep, quantity, self.top, &caption))
    }
}

/// Points where nothing can be had.
#[derive(Default)]
struct LeftOut {
    first_error: Option<anyhow::Error>,
    /// By reason: the first point, and how many others are left out for it.
    points: Vec<(String, String, usize)>,
}

impl LeftOut {
    fn add(&mut self, point: &Common, error: anyhow::Error) {
        let why = format!("{error:#}");
        match (self.points.iter_mut()).find(|(_, reason, _)| *reason == why) {
            Some((_, _, others)) => *others += 1,
            None => self.points.push((point.show_point(), why, 0)),
        }
        self.first_error.get_or_insert(error);
    }

    /// Notes which they are, and why. Fails if they are `all` that there is.
    fn note(self, caller: &Caller, all: bool) -> Result<()> {
        if let Some(error) = self.first_error.filter(|_| all) {
            return Err(error);
        }
        for (first, why, others) in self.points {
            let others = match others {
                0 => String::new(),
                n => format!(" and {}", counted(n, "other point")),
            };
            caller.note(format!("{first}{others} left out: {why}"));
        }
        Ok(())
    }
}

/// What has come of the points of a sweep.
struct Visited<'p, F: Findings> {
    /// How many a signal has left.
    left: usize,
    left_out: LeftOut,
    /// The one that it cut short.
    cut: Option<(&'p Common, F::Found)>,
    /// What was wrong.
    failure: Option<anyhow::Error>,
    /// Whether the rows could be kept.
    saved: Result<()>,
}

fn spot(row: &SweepRow) -> Spot {
    (row.ranks, row.bytes, row.dist.clone())
}

impl<'a, F: Findings> Experiment<'a, F> {
    /// Writes the table as CSV to a file, whatever that has in it.
    pub(crate) fn with_csv(mut self, path: Option<&'a Path>) -> Self {
        self.files.extend(path.map(|path| (FileKind::Csv, path)));
        self
    }

    /// Whether rows are known at a point. Where options give no number of ranks, or no size, the
    /// costs, a file or the default do: the same again.
    fn is_taken(&self, point: &Common, taken: &BTreeSet<Spot>) -> bool {
        let (ranks, bytes) = (point.ranks().ok().flatten(), point.point_bytes());
        let dist = point.dist_among(self.common);
        taken.iter().any(|(known, size, of)| {
            ranks.is_none_or(|ranks| ranks == *known)
                && bytes.is_none_or(|bytes| bytes == *size)
                && *of == dist
        })
    }

    fn has_rows(&self) -> bool {
        !self.found.sweep().rows.is_empty()
    }

    /// Evaluates all points, prints the table and writes the files. A point where nothing can be
    /// had is left out with a note; what is wrong ends the sweep. Ctrl-C ends it with what there
    /// is, unless ranks are processes, which might have other signals; another one goes on there.
    pub(crate) fn fill(
        mut self,
        site: &mut Site,
        each: impl FnMut(&mut Site, &Common, &AtomicBool) -> Result<F::Found>,
    ) -> Result<Answer> {
        let mut points = self.common.points();
        site.agree(Common::take_one_tree(&mut points, self.caller))?;
        let visited = self.visit(&points, site, each)?;
        let failure = match visited.failure {
            Some(error) if !self.has_rows() && !error.is::<FoundWrong>() => return Err(error),
            failure => failure,
        };
        let nothing = failure.is_none() && !self.has_rows();
        visited.left_out.note(self.caller, nothing)?;
        let complete = visited.cut.map(|(point, found)| {
            let complete = self.found.clone();
            self.found.add(point, found).map(|()| complete)
        });
        let complete = complete.transpose()?;
        if failure.is_none() {
            self.ensure_shown(&complete.as_ref().unwrap_or(&self.found).sweep().rows)?;
        }
        self.caller.notes(self.found.remarks());
        let is_saved = visited.saved.is_ok();
        let answer = self.printed(failure.is_some())?.and(visited.saved);
        if let Some(complete) = complete {
            self.found = complete;
        }
        if let Some(error) = failure {
            return Ok(answer.and(Err(error)));
        }
        if !is_saved {
            return Ok(answer);
        }
        if visited.left == 0 {
            return Ok(answer.and(self.write(&self.files, self.caller)));
        }
        let answer = if self.has_rows() {
            answer.and(self.write(&self.files, self.caller))
        } else {
            answer
        };
        let csv = match self.store.path {
            Some(path) => format!("the same command continues from {}", path.display()),
            None => "with -o FILE.csv the same command could continue there".into(),
        };
        Ok(answer.interrupted(format!(
            "interrupted, {} left: {csv}",
            counted(visited.left, "point")
        )))
    }

    /// Finds what is not known of the points, and keeps it.
    fn visit<'p>(
        &mut self,
        points: &'p [Common],
        site: &mut Site,
        mut each: impl FnMut(&mut Site, &Common, &AtomicBool) -> Result<F::Found>,
    ) -> Result<Visited<'p, F>> {
        let caller = self.caller;
        // Others may have no such file.
        let known = if site.speaks() {
            self.store.known()
        } else {
            Ok(Vec::new())
        };
        let known = site.agree(known)?;
        let stop = match site.world {
            None => caller.stop()?,
            Some(_) => Arc::default(),
        };
        let bar = WorkBar::new(
            caller,
            points.len() as u64,
            "{wide_bar} {pos}/{len} points, {eta} left",
        );
        if !known.is_empty() {
            let rows = known.len();
            caller.note(format!("{rows} rows are known from the CSV file"));
            self.found.take_known(known)?;
        }
        let taken: BTreeSet<Spot> = self.found.sweep().rows.iter().map(spot).collect();
        let mut visited = Visited {
            left: 0,
            left_out: LeftOut::default(),
            cut: None,
            failure: None,
            saved: Ok(()),
        };
        for point in points {
            let is_taken = self.is_taken(point, &taken);
            if site.max(u64::from(is_taken))? > 0 {
                continue;
            }
            if stop.load(Ordering::Relaxed) {
                visited.left += 1;
                continue;
            }
            match each(site, point, &stop) {
                Ok(found) if F::is_cut(&found) => {
                    visited.left += 1;
                    visited.cut = Some((point, found));
                    continue;
                }
                Ok(found) => visited.failure = self.found.add(point, found).err(),
                Err(error) if points.len() > 1 && exit_code(&error) == 2 => {
                    visited.left_out.add(point, error);
                }
                Err(error) => visited.failure = Some(error),
            }
            if points.len() > 1 {
                let failure = visited.failure.take();
                visited.failure = failure.map(|error| error.context(point.show_point()));
            }
            if visited.failure.is_none() && visited.saved.is_ok() {
                visited.saved = self.store.save(&self.found);
            }
            // The other processes go on, and so does the one that writes.
            if visited.failure.is_some() || visited.saved.is_err() && site.world.is_none() {
                break;
            }
            bar.add(1);
        }
        bar.finish();
        Ok(visited)
    }

    fn printed(&self, has_failed: bool) -> Result<Answer> {
        let json = self.found.answered(has_failed);
        answer(self.caller, self.common.json, &json, |out| {
            // A signal may have come before the first row.
            if !self.has_rows() {
                return Ok(());
            }
            self.found.print(&self.title(), out)
        })
    }

    /// What is swept: `broadcast, 2 to 64 ranks, 64 KiB`.
    fn title(&self) -> String {
        let span = |low: String, high: String| {
            if low == high {
                low
            } else {
                format!("{low} to {high}")
            }
        };
        let sweep = self.found.sweep();
        let points = sweep.points();
        let ranks = [points.first(), points.last()];
        let [low, high] = ranks.map(|point| point.map_or(0, |point| point.ranks).to_string());
        let mut title = format!("{}, {} ranks", self.found.collective(), span(low, high));
        if self.common.blocks.dist.len() > 1 {
            title += &format!(", {} distributions", self.common.blocks.dist.len());
        }
        let sizes = points.iter().map(|point| point.bytes);
        match (sizes.clone().min(), sizes.max()) {
            (Some(low), Some(high)) if high > 0 => {
                format!("{title}, {}", span(show_bytes(low), show_bytes(high)))
            }
            _ => title,
        }
    }

    /// The table of one point, which is answered: writes the files.
    pub(crate) fn finish(self, answer: Answer) -> Result<Answer> {
        self.ensure_shown(&self.found.sweep().rows)?;
        Ok(answer.and(self.write(&self.files, self.caller)))
    }

    /// Refuses a quantity that no row has, before anything is printed.
    fn ensure_shown(&self, rows: &[SweepRow]) -> Result<()> {
        if let Some(show) = self.args.show {
            let sweep = self.found.sweep();
            let value = |row| sweep.quantity(row, show);
            if !rows.is_empty() && !rows.iter().any(|row| value(row).is_some()) {
                bail!("no row has what --show asks for: leave it out");
            }
        }
        Ok(())
    }
}

impl<F: Findings> Written for Experiment<'_, F> {
    fn comment(&self) -> String {
        format!("{}; {}", self.title(), self.found.costs())
    }

    fn csv(&self) -> Result<Vec<u8>> {
        self.found.csv(&self.store.inputs)
    }

    fn answered(&self) -> impl Answered {
        self.found.answered(false)
    }

    /// What a paper has of it: the rows of the table, without what the row above has, too; or with
    /// `--show` a row for each number of ranks.
    fn paper(&self) -> Result<PaperTable> {
        match self.args.show {
            Some(show) => {
                let algorithms = &self.common.algorithm;
                PaperTable::by_ranks_and_sizes(&self.found.sweep(), algorithms, show)
            }
            None => Ok(self.found.paper()),
        }
    }

    fn plot(&self) -> String {
        let caption = Caption::new(self.title()).line(self.found.costs().to_string());
        self.args.plot(&self.found.sweep(), caption, self.caller)
    }

    fn page(&self) -> String {
        let (ports, costs) = (self.found.ports(), self.found.costs());
        let mut summary = vec![("ports", ports.into_owned()), ("costs", costs.to_string())];
        if !self.args.frame.plain {
            summary.extend(self.caller.origin(oneport_measure::now()));
        }
        self.found.sweep().page(&Heading {
            title: format!("oneport {}", self.title()),
            summary,
            warnings: Vec::new(),
        })
    }
}
