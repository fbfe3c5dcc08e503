//! One command at several numbers of ranks and sizes: the table that it prints, and the files that
//! `-o` names.

mod table;

use std::hash::{DefaultHasher, Hash, Hasher};

use oneport::Distribution;
use oneport_pictures::shell::Heading;
use oneport_pictures::{Players, Quantity, Sweep, plot};
use serde::Deserialize;

use crate::answer::json;
use crate::ask::Named;
use crate::blocks::DEFAULT_BLOCK;
use crate::draw::FrameArgs;
use crate::files;
use crate::forms::parse_kind;
use crate::output::{VERSION, escape};
use crate::prelude::*;
use crate::units::show_ports;

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
        show: Option<Quantity> = QuantityName { heading: Some("Output") },

        /// Draw only so many algorithms in a plot (.svg), the fastest on average, besides schedules
        /// from files
        top: Option<usize> = Count { heading: Some("Output") },

        frame: FrameArgs = Group,
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

fn kind_of(path: &Path) -> Result<FileKind> {
    match FileKind::of(path) {
        Some(kind) => Ok(kind),
        None => bail!(
            "{}: name FILE.csv, .md, .tex, .json, .html or .svg{}",
            path.display(),
            FileKind::converted(path)
        ),
    }
}

/// What has been found at one number of ranks and one size.
#[derive(Debug)]
pub(crate) struct Point {
    pub(crate) collective: &'static str,
    pub(crate) ports: Ports,
    /// The costs in words, and the unit of times.
    pub(crate) costs: String,
    pub(crate) unit: Unit,
    pub(crate) rows: Vec<SweepRow>,
    pub(crate) skipped: Vec<Skipped>,
    /// Whether a signal ended it early: what there is of it is printed, but not written.
    pub(crate) interrupted: bool,
}

#[derive(Deserialize)]
struct Origin {
    collective: String,
    ports: String,
    time_unit: String,
    /// The command line, which a sweep that goes on must have, too.
    command: String,
    /// The digest of what it read.
    #[serde(default)]
    inputs: String,
}

pub(crate) struct Table<'a> {
    common: &'a Common,
    args: &'a SweepArgs,
    caller: &'a Caller,
    collective: String,
    costs: String,
    ports: String,
    /// The digest of what the command reads.
    inputs: String,
    pub(crate) sweep: Sweep,
    skipped: Vec<(Spot, Skipped)>,
}

/// A number of ranks, a size, and the distribution of sizes where several are swept.
type Spot = (usize, u64, Option<String>);

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
}

impl SweepArgs {
    pub(crate) fn writable(&self, caller: &Caller) -> Result<()> {
        let kinds = self.output.iter().map(|path| kind_of(path));
        let kinds: Vec<FileKind> = kinds.collect::<Result<_>>()?;
        let has = |kind| kinds.contains(&kind);
        (self.frame).ensure(has(FileKind::Svg), has(FileKind::Html))?;
        let for_papers = [FileKind::Svg, FileKind::Tex, FileKind::Markdown];
        if self.show.is_some() && !for_papers.into_iter().any(has) {
            bail!("--show is for plots and tables for papers: name a file FILE.svg, .tex or .md");
        }
        if self.top.is_some() && !has(FileKind::Svg) {
            bail!("--top is for a plot: name a file FILE.svg");
        }
        let outputs: Vec<_> = self
            .output
            .iter()
            .map(|path| ("-o", Some(&**path)))
            .collect();
        caller.writable(&outputs)
    }

    pub(crate) fn writes_page(&self) -> bool {
        let is_page = |path: &PathBuf| FileKind::of(path) == Some(FileKind::Html);
        self.output.iter().any(is_page)
    }

    pub(crate) fn table<'a>(&'a self, common: &'a Common, caller: &'a Caller) -> Table<'a> {
        let ranks = |point: &Common| point.ranks().ok().flatten();
        Table {
            // Only a CSV file keeps it, so nothing is read ahead of the command for others.
            inputs: self.csv().map_or_else(String::new, |_| {
                self.inputs(common, &common.points().iter().map(ranks).collect())
            }),
            common,
            args: self,
            caller,
            collective: String::new(),
            costs: String::new(),
            ports: String::new(),
            sweep: Sweep {
                unit: Unit::Plain,
                rows: Vec::new(),
                players: Players::default(),
            },
            skipped: Vec::new(),
        }
    }

    fn csv(&self) -> Option<&Path> {
        let mut paths = self.output.iter().map(|path| &**path);
        paths.find(|path| FileKind::of(path) == Some(FileKind::Csv))
    }

    /// Digest of the version and of the input files (`{p}` in a name expanded to these numbers of
    /// ranks).
    fn inputs(&self, common: &Common, ranks: &BTreeSet<Option<usize>>) -> String {
        let mut digest = DefaultHasher::new();
        VERSION.hash(&mut digest);
        for source in common.inputs() {
            for p in ranks {
                let name = source.path().to_string_lossy();
                let family = p.filter(|_| name.contains("{p}"));
                let of_ranks = family.map(|p| Source::named(name.replace("{p}", &p.to_string())));
                // Whoever needs it reports the error.
                let content = of_ranks.as_ref().unwrap_or(&source).read();
                content.ok().hash(&mut digest);
            }
        }
        format!("{:016x}", digest.finish())
    }

    fn known(&self, inputs: &str, caller: &Caller) -> Result<Vec<(Origin, SweepRow)>> {
        let there = self
            .csv()
            .and_then(|path| Some((path, files::existing(caller, path)?)));
        let Some((path, text)) = there else {
            return Ok(Vec::new());
        };
        let text = text.with_context(|| format!("cannot read {}", path.display()))?;
        let rows = || -> csv::Result<Vec<(Origin, SweepRow)>> {
            let mut reader = csv::Reader::from_reader(&*text);
            let header = Some(reader.headers()?.clone());
            let row = |record: csv::Result<csv::StringRecord>| {
                let record = record?;
                let origin = record.deserialize(header.as_ref())?;
                let mut row: SweepRow = record.deserialize(header.as_ref())?;
                row.algorithm = escape::from_csv_field(row.algorithm);
                Ok((origin, row))
            };
            reader.records().map(row).collect()
        };
        let name = path.display();
        let other = || {
            anyhow::anyhow!(
                "{name} has something else than rows of this command: name another file, or remove it"
            )
        };
        let rows = rows().map_err(|_| other())?;
        if !rows
            .iter()
            .all(|(origin, row)| origin.is_sound() && is_sound(row))
        {
            return Err(other());
        }
        let is_own = rows
            .iter()
            .all(|(origin, _)| *origin.command == *caller.command);
        let is_of_inputs = rows.iter().all(|(origin, _)| origin.inputs == inputs);
        // Measured times are not thrown away.
        let is_cheap = rows.iter().all(|(_, row)| row.median.is_none());
        if is_own && is_of_inputs {
            return Ok(rows);
        }
        if is_own && is_cheap {
            caller.note(format!(
                "{name} is written anew: what the command reads has changed"
            ));
            return Ok(Vec::new());
        }
        Err(other())
    }
}

impl Origin {
    /// Whether a row can come from this program.
    fn is_sound(&self) -> bool {
        let words = [&self.ports, &self.time_unit];
        parse_kind(&self.collective).is_ok() && words.iter().all(|word| escape::is_visible(word))
    }
}

/// Whether a row can have been timed: what else a file may have in it reaches the terminal and the
/// figures.
fn is_sound(row: &SweepRow) -> bool {
    let is_time = |time: f64| time.is_finite() && time >= 0.0;
    row.ranks > 0 && escape::is_visible(&row.algorithm) && row.times().all(is_time)
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
            None => self.points.push((show_point(point), why, 0)),
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

fn show_point(point: &Common) -> String {
    let ranks = point.ranks().ok().flatten().map(|p| format!("{p} ranks"));
    let dists = point.blocks.dist.iter().map(|dist| dist.name().to_string());
    let parts: Vec<String> = ranks
        .into_iter()
        .chain(dists)
        .chain(size_of(point).map(show_bytes))
        .collect();
    parts.join(", ")
}

/// The size of the point's vectors, or the average one of its blocks.
fn size_of(point: &Common) -> Option<u64> {
    let given = point.vector.bytes.as_ref().or(point.blocks.block.as_ref());
    given?.one("").ok()
}

fn spot(row: &SweepRow) -> Spot {
    (row.ranks, row.bytes, row.dist.clone())
}

impl Table<'_> {
    fn spot_of(&self, point: &Common) -> Option<Spot> {
        Some((point.ranks().ok()??, size_of(point)?, self.dist_of(point)))
    }

    /// The distribution of the point, where there are others.
    fn dist_of(&self, point: &Common) -> Option<String> {
        let dists = point.blocks.dist.iter();
        let mut dists = dists.filter(|_| self.common.blocks.dist.len() > 1);
        dists.next().map(|dist| dist.name().to_string())
    }

    /// The rows with their place in the sweep: with the average size of blocks in place of the
    /// largest one, if that is what is swept.
    fn placed(&self, mut found: Point, point: &Common) -> Point {
        let size = size_of(point).filter(|_| point.blocks.block.is_some());
        for row in &mut found.rows {
            row.bytes = size.unwrap_or(row.bytes);
            row.dist = self.dist_of(point);
        }
        found
    }

    /// Evaluates all points, prints the table and writes the files. A point where nothing can be
    /// had is left out with a note. Ctrl-C ends the sweep with what there is, and another one goes
    /// on there, unless ranks are processes, which might have other files and signals.
    pub(crate) fn fill(
        mut self,
        are_processes: bool,
        mut each: impl FnMut(&Common, &AtomicBool) -> Result<Point>,
    ) -> Result<Answer> {
        let (mut points, caller) = (self.common.points(), self.caller);
        Common::take_one_tree(&mut points, caller)?;
        let (known, stop) = if are_processes {
            (Vec::new(), Arc::default())
        } else {
            (self.args.known(&self.inputs, caller)?, caller.stop()?)
        };
        let bar = WorkBar::new(
            caller,
            points.len() as u64,
            "{wide_bar} {pos}/{len} points, {eta} left",
        );
        self.take_known(known, &points)?;
        let taken: BTreeSet<Spot> = self.sweep.rows.iter().map(spot).collect();
        let (mut left, mut left_out, mut partial) = (0, LeftOut::default(), None);
        for point in &points {
            if self
                .spot_of(point)
                .is_some_and(|spot| taken.contains(&spot))
            {
                continue;
            }
            if stop.load(Ordering::Relaxed) {
                left += 1;
                continue;
            }
            match each(point, &stop) {
                Ok(found) if found.interrupted => {
                    left += 1;
                    partial = Some(self.placed(found, point));
                    continue;
                }
                Ok(found) => self.add(self.placed(found, point)),
                Err(error) if points.len() == 1 => return Err(error),
                Err(error) => left_out.add(point, error),
            }
            if let Some(path) = self.args.csv() {
                caller.write_file(path, &output::csv(self.lines(Some(&self.inputs)))?)?;
            }
            bar.add(1);
        }
        bar.finish();
        left_out.note(caller, self.sweep.rows.is_empty())?;
        let complete = self.sweep.rows.clone();
        if let Some(partial) = partial {
            self.add(partial);
        }
        self.ensure_shown(&complete)?;
        let answer = answer(caller, self.common.json, &self.json(), |out| {
            self.print(out)
        })?;
        self.sweep.rows = complete;
        let answer = if left == 0 || !self.sweep.rows.is_empty() {
            answer.and(self.write())
        } else {
            answer
        };
        if left == 0 {
            return Ok(answer);
        }
        let csv = match self.args.csv() {
            Some(path) => format!("the same command continues from {}", path.display()),
            None => "with -o FILE.csv the same command could continue there".into(),
        };
        Ok(answer.interrupted(format!(
            "interrupted, {} left: {csv}",
            counted(left, "point")
        )))
    }

    /// Takes the rows of an earlier CSV file.
    fn take_known(&mut self, known: Vec<(Origin, SweepRow)>, points: &[Common]) -> Result<()> {
        if let Some((origin, _)) = known.first() {
            self.collective.clone_from(&origin.collective);
            self.ports.clone_from(&origin.ports);
            let (cost, unit) = self.common.machine.cost(points[0].ranks()?)?;
            self.costs = self.on_nodes(show_cost(&cost, unit));
            if origin.time_unit == Unit::Nanoseconds.name() {
                self.sweep.unit = Unit::Nanoseconds;
            }
            let rows = known.len();
            (self.caller).note(format!("{rows} rows are known from the CSV file"));
        }
        let known = known.into_iter().map(|(_, row)| row);
        self.sweep.rows = known.collect();
        Ok(())
    }

    /// The costs in words, with what the nodes of the machine have.
    fn on_nodes(&self, costs: String) -> String {
        match self.common.nodes.node_ports {
            None => costs,
            Some(k) => format!("{costs}; nodes have {} of each kind", counted(k, "port")),
        }
    }

    fn add(&mut self, point: Point) {
        self.collective = point.collective.into();
        self.ports = show_ports(point.ports.name(), point.ports.k());
        self.costs = self.on_nodes(point.costs);
        self.sweep.unit = point.unit;
        let first = point.rows.first().map(spot).unwrap_or_default();
        // Rows of a CSV file are replaced if only the costs or a schedule say how many ranks there
        // are.
        self.sweep.rows.retain(|row| spot(row) != first);
        let skipped = point.skipped.into_iter();
        self.skipped
            .extend(skipped.map(|skipped| (first.clone(), skipped)));
        self.sweep.rows.extend(point.rows);
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
        let points = self.sweep.points();
        let ranks = [points.first(), points.last()];
        let [low, high] = ranks.map(|point| point.map_or(0, |point| point.ranks).to_string());
        let mut title = format!("{}, {} ranks", self.collective, span(low, high));
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

    /// The rows; those of a CSV file tell what they were made from: these `inputs`.
    fn lines<'a>(&'a self, inputs: Option<&'a str>) -> impl Iterator<Item = impl Answered> {
        let over = |value: f64, by: f64| (by > 0.0).then(|| Number(value / by));
        let any_own = self.sweep.rows.iter().any(|row| row.own);
        self.sweep.points().into_iter().flat_map(move |point| {
            let rows = self.sweep.at(point);
            let best = rows.first().map_or(0.0, |row| row.value());
            rows.into_iter().map(move |row| {
                record! {
                    collective: &self.collective,
                    ports: &self.ports,
                    ranks: row.ranks,
                    bytes: row.bytes,
                    dist (optional): row.dist.as_ref(),
                    algorithm: &row.algorithm,
                    /// Whether it is a schedule from a file, where any is.
                    own (optional): any_own.then_some(row.own),
                    model_time: Number(row.time),
                    time_unit: self.sweep.unit.name(),
                    lower_bound: Number(row.bound),
                    /// Model time over the lower bound.
                    x_bound: over(row.time, row.bound),
                    /// Time over the best at this point, measured if it was.
                    x_best: over(row.value(), best).unwrap_or(Number(1.0)),
                    median_ns: row.median.map(Number),
                    rounds: row.rounds,
                    messages: row.messages,
                    volume_bytes: row.volume,
                    segment_bytes: row.segment,
                    late (optional): row.late.map(Number),
                    /// The first rank whose delay costs most, and the first whose costs least.
                    late_rank (optional): row.late.map(|_| row.late_rank),
                    least_time (optional): row.least.map(Number),
                    least_rank (optional): row.late.map(|_| row.least_rank),
                    p95_time (optional): row.p95.map(Number),
                    worst_time (optional): row.worst.map(Number),
                    command: &*self.caller.command,
                    inputs (optional): inputs,
                }
            })
        })
    }

    pub(crate) fn json(&self) -> impl Answered {
        record! {
            rows: self.lines(None).collect::<Vec<_>>(),
            skipped: self.skipped.iter().map(|((ranks, bytes, dist), skipped)| record! {
                ranks: ranks,
                bytes: bytes,
                dist (optional): dist.as_ref(),
                #[serde(flatten)]
                skipped: skipped,
            }).collect::<Vec<_>>(),
        }
    }

    /// The table of one point, which is answered: writes the files.
    pub(crate) fn finish(mut self, answer: Answer, point: Point) -> Result<Answer> {
        self.add(point);
        self.ensure_shown(&self.sweep.rows)?;
        Ok(answer.and(self.write()))
    }

    /// Refuses a quantity that no row has, before anything is printed.
    fn ensure_shown(&self, rows: &[SweepRow]) -> Result<()> {
        if let Some(show) = self.args.show {
            let value = |row| self.sweep.quantity(row, show);
            if !rows.is_empty() && !rows.iter().any(|row| value(row).is_some()) {
                bail!("no row has what --show asks for: leave it out");
            }
        }
        Ok(())
    }

    fn write(&self) -> Result<()> {
        for path in &self.args.output {
            let content = match kind_of(path)? {
                FileKind::Csv => output::csv(self.lines(Some(&self.inputs)))?,
                FileKind::Json => json(&self.json())?.into_bytes(),
                FileKind::Markdown => self.for_papers()?.markdown().into_bytes(),
                FileKind::Tex => self.tex()?.into_bytes(),
                FileKind::Svg => {
                    let mut caption = Caption::new(self.title()).line(self.costs.clone());
                    let all = self.sweep.algorithms().len();
                    if let Some(top) = self.args.top.filter(|&top| top < all) {
                        caption = caption.line(format!("the {top} fastest of {all}"));
                    }
                    let caption = caption.source(self.caller.provenance());
                    let caption = self.args.frame.caption(caption);
                    let quantity = self.args.show.unwrap_or_default();
                    let picture = plot(&self.sweep, quantity, self.args.top, &caption);
                    self.args.frame.sized(picture).into_bytes()
                }
                FileKind::Html => self.page().into_bytes(),
            };
            self.caller.write_named(path, &content)?;
        }
        Ok(())
    }

    fn page(&self) -> String {
        let mut summary = vec![("ports", self.ports.clone()), ("costs", self.costs.clone())];
        if !self.args.frame.plain {
            summary.extend(self.caller.origin(oneport_measure::now()));
        }
        self.sweep.page(&Heading {
            title: format!("oneport {}", self.title()),
            summary,
            warnings: Vec::new(),
        })
    }

    fn print(&self, out: &mut Lines) -> Result<()> {
        // A signal came before the first row.
        if self.sweep.rows.is_empty() {
            return Ok(());
        }
        writeln!(
            out,
            "{}\n{} ports, {}\n",
            self.title(),
            self.ports,
            self.costs
        )?;
        let (columns, rows) = self.columns();
        output::table(out, &columns, rows)?;
        // By algorithm: the first reason, and how often there is one.
        let mut reasons: BTreeMap<&str, (usize, &Skipped)> = BTreeMap::new();
        for (_, skipped) in &self.skipped {
            reasons.entry(&skipped.algorithm).or_insert((0, skipped)).0 += 1;
        }
        let summed = |(points, first): (usize, &Skipped)| {
            let mut skipped = first.clone();
            if points > 1 {
                skipped.reason += &format!(" (and at {})", counted(points - 1, "other point"));
            }
            skipped
        };
        let reasons: Vec<Skipped> = reasons.into_values().map(summed).collect();
        output::skipped(out, &reasons)
    }
}
