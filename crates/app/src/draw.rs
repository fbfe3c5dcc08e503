//! `oneport draw`: draws schedules as pictures and traces.

use anyhow::anyhow;
use oneport::internal::budget::memory::DRAWN_STEP_BYTES;
use oneport_pictures::{
    self, MAX_BOXES, MAX_EVENTS, MAX_PAGE_RANKS, Player, Shown, Trace, Traffic, Tree, gantt, page,
    traffic, tree, wide,
};

use crate::forms::AlgorithmNames;
use crate::prelude::*;
use crate::units::with_unit;

options! {
    /// Draw schedules: who does what when, or who sends to whom.
    #[derive(Debug)]
    #[examples = "\
Examples:
  oneport draw reduce -p 15 --bytes 5 --segments 5 -a uni-greedy --ports uni --alpha 1 --beta 1 --gamma 1 -o r.svg
  oneport draw reduce -p 8 -a bi-greedy --segments 4 -o schedule.html     step through it in a browser
  oneport draw broadcast -p 8 -a binomial,chain -o both.html             side by side, on one clock
  oneport draw broadcast -p 16 --as tree --dark -o tree.svg
  oneport draw broadcast -p 16 --as tree --plain --width 84mm -o fig.svg  for a paper
  oneport draw reduce -p 8 -a butterfly --as traffic -o traffic.svg
  oneport plan reduce -p 4 -a chain --segments 3 -o mine.json
  oneport draw --schedule mine.json -o mine.svg
  oneport draw reduce -p 64 --bytes 1MiB --trace t.json     open it at https://ui.perfetto.dev

A Gantt chart shows model time: a row a rank, a colour a segment (or a message's first block); filled boxes receive, outlined ones send, dark ones \
compute. Boxes name the peer where they are long enough; a browser shows more under the pointer. `oneport run --trace` \
draws the recorded times of a real run the same way. A page (.html) needs no network: it steps through model time and shows every \
rank, its ports and what its buffer holds, for up to 64 ranks. It shows several schedules (`-a a,b`, or several \
--schedule) side by side on one clock. What deadlocks is drawn up to where nothing moves. `rsvg-convert -f pdf` makes \
a PDF of a picture."]
    pub(crate) struct DrawArgs {
        common: Common = Group,

        /// What to draw [default: gantt; page for a .html file; trace for a .json file or with
        /// --json]
        form: Option<Picture> = Picture { value: "PICTURE", long: Some("as"), heading: Some("Output") },

        /// Frame the critical path in a Gantt chart: steps that end later if one of them does
        critical_path: bool = Switch { heading: Some("Output") },

        /// Colours for a dark background; for pictures only, since a page follows the browser
        dark: bool = Switch { heading: Some("Output") },

        frame: FrameArgs = Group,

        /// Write to this file (.svg, .html for a page, or .json for a trace), all at once, instead
        /// of standard output
        output: Option<PathBuf> = Output { shorts: &['o'], heading: Some("Output") },

        /// Write a trace for Perfetto to this file (.json), all at once; without -o and --as there
        /// is no picture then
        trace: Option<PathBuf> = Output { heading: Some("Output") },
    }
}

options! {
    /// What is around a picture.
    #[derive(Debug, Clone)]
    pub(crate) struct FrameArgs {
        /// Width of a picture where it is shown, such as 84mm (mm, cm, in, pt or px)
        width: Option<Width> = WidthOf { heading: Some("Output") },

        /// Leave out the words around a picture: title, what it shows, and at its foot version,
        /// date and command line; of a page the foot only
        pub(crate) plain: bool = Switch { heading: Some("Output") },
    }
}

impl FrameArgs {
    /// Refuses these options where there is neither a picture nor, for some, a page.
    pub(crate) fn ensure(&self, pictures: bool, pages: bool) -> Result<()> {
        if self.width.is_some() && !pictures {
            bail!("--width is for a picture: name a file FILE.svg");
        }
        if self.plain && !pictures && !pages {
            bail!("--plain is for pictures and pages: name a file FILE.svg");
        }
        Ok(())
    }

    pub(crate) fn caption(&self, caption: Caption) -> Caption {
        let caption = if self.plain {
            Caption::default()
        } else {
            caption
        };
        let pixels =
            |(width, unit): Width| width * PIXELS.iter().find(|p| p.0 == unit).map_or(1.0, |p| p.1);
        Caption {
            room: self.width.map(pixels),
            ..caption
        }
    }

    pub(crate) fn sized(&self, svg: String) -> String {
        match self.width {
            Some((width, unit)) => wide(&svg, width, unit),
            None => svg,
        }
    }
}

choices! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Picture {
        /// What every rank does when, in model time.
        Gantt = "gantt",
        /// Who sends to whom, as a tree with sizes; traffic, where it is not one.
        Tree = "tree",
        /// How much every rank sends to every other, as a map.
        Traffic = "traffic",
        /// A page on which one steps through time: ranks, ports, messages, buffers, Gantt chart.
        Page = "page",
        /// What every rank does when, as JSON for trace viewers (Perfetto, chrome://tracing).
        Trace = "trace",
    }
}

type Width = (f64, &'static str);

/// Units of width, and how many pixels each has.
const PIXELS: [(&str, f64); 5] = [
    ("mm", 96.0 / 25.4),
    ("cm", 96.0 / 2.54),
    ("in", 96.0),
    ("pt", 96.0 / 72.0),
    ("px", 1.0),
];

forms! {
    /// A width, with a unit.
    WidthOf: Width = "WIDTH", by parse_width;
}

fn parse_width(text: &str) -> Result<Width, String> {
    let units = PIXELS.map(|(unit, _)| (unit, unit));
    let width = with_unit(text, &units);
    let width = width.and_then(|(number, unit)| Some((number.trim().parse::<f64>().ok()?, unit)));
    let width = width.filter(|(number, _)| number.is_finite() && *number > 0.0);
    width
        .ok_or_else(|| format!("'{text}' is not a width: write 84mm, 8.4cm, 3.3in, 240pt or 400px"))
}

/// Content of an output file, determined by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputFile {
    Svg,
    Json,
}

impl OutputFile {
    /// Determines the content from the file extension. A pipe or a device, which has none, gets a
    /// picture.
    pub(crate) fn of(path: &Path) -> Result<OutputFile> {
        let no_file = || path.metadata().is_ok_and(|found| !found.is_file());
        match FileKind::of(path) {
            _ if path.extension().is_none() && no_file() => Ok(OutputFile::Svg),
            Some(FileKind::Svg) => Ok(OutputFile::Svg),
            Some(FileKind::Json) => Ok(OutputFile::Json),
            // Refused by the name of its option.
            _ if path.as_os_str() == "-" => Ok(OutputFile::Svg),
            _ => bail!(
                "{}: pictures are written as FILE.svg{}, traces as FILE.json",
                path.display(),
                FileKind::converted(path)
            ),
        }
    }

    /// Rejects schedules that are too large for this content before they are timed or run.
    pub(crate) fn ensure_fits_memory(self, schedule: &Schedule) -> Result<()> {
        let all = schedule.programs().iter().flatten();
        let steps = all.filter(|s| !s.is_empty()).count();
        match self {
            OutputFile::Svg if steps > MAX_BOXES => bail!(
                "{steps} steps are more than the {MAX_BOXES} boxes that a Gantt chart can have: take fewer ranks or segments, or write a trace (.json)"
            ),
            OutputFile::Json if steps > MAX_EVENTS => bail!(
                "{steps} steps are more than the {MAX_EVENTS} events that a trace can have: take fewer ranks or segments"
            ),
            _ => {}
        }
        let needed = steps as u128 * u128::from(DRAWN_STEP_BYTES);
        let advice = "take fewer ranks or segments";
        ensure_memory("the picture or trace", needed, advice)
    }

    pub(crate) fn content(self, trace: &Trace, caption: &Caption) -> Result<String> {
        Ok(match self {
            OutputFile::Svg => gantt(trace, caption)?,
            OutputFile::Json => trace.to_chrome_json(&caption.title)?,
        })
    }
}

impl Command for DrawArgs {
    fn answer(&self, site: &mut Site) -> Result<Answer> {
        let caller = &site.caller;
        let drawing = Drawing::new(self, caller)?;
        let terminal = caller.terminal.as_ref();
        let is_screen = terminal.is_some_and(|terminal| terminal.is_screen());
        let is_picture = !matches!(drawing.picture, None | Some(Picture::Trace));
        if self.output.is_none() && is_screen && is_picture {
            bail!("a picture is no text for a terminal: name a file, with -o FILE.svg or .html");
        }
        let (picture, trace) = drawing.draw()?;
        if let Some((path, trace)) = self.trace.as_ref().zip(trace) {
            caller.write_named(path, trace.as_bytes())?;
        }
        caller.write_to(drawing.to_file, picture)
    }
}

struct Drawing<'a> {
    args: &'a DrawArgs,
    caller: &'a Caller,
    picture: Option<Picture>,
    to_file: Option<&'a Path>,
}

impl Drawing<'_> {
    fn new<'a>(args: &'a DrawArgs, caller: &'a Caller) -> Result<Drawing<'a>> {
        let to_file = output::file_of(args.output.as_deref());
        let picture = match &args.trace {
            Some(trace) if OutputFile::of(trace)? == OutputFile::Svg => {
                bail!("--trace writes JSON: name the file FILE.json")
            }
            Some(_) if args.form.is_none() && args.output.is_none() && !args.common.json => None,
            _ => Some(form(args, to_file)?),
        };
        let is_picture = picture.is_some_and(|p| !matches!(p, Picture::Trace | Picture::Page));
        if args.dark && !is_picture {
            bail!("--dark changes the colours of a picture: write one, with -o FILE.svg");
        }
        args.frame
            .ensure(is_picture, picture == Some(Picture::Page))?;
        let several = args.common.files()?.len() > 1 || args.common.algorithm.names().len() > 1;
        if several && (picture != Some(Picture::Page) || args.trace.is_some()) {
            bail!(
                "several schedules are drawn side by side on a page only: write one, with -o FILE.html, or draw one"
            );
        }
        if args.critical_path && picture != Some(Picture::Gantt) {
            bail!("--critical-path is for Gantt charts: write one, with -o FILE.svg");
        }
        caller.writable(&[("--trace", args.trace.as_deref()), ("-o", to_file)])?;
        let drawing = Drawing {
            args,
            caller,
            picture,
            to_file,
        };
        drawing.ensure_ranks()?;
        Ok(drawing)
    }

    /// Rejects more ranks than a picture can have before a schedule for them is planned: every
    /// rank but one sends or receives.
    fn ensure_ranks(&self) -> Result<()> {
        let common = &self.args.common;
        let planned = common.schedule.is_empty();
        let ranks = common.ranks()?.filter(|_| planned).unwrap_or(0);
        let max = match self.picture {
            Some(Picture::Trace) | None => MAX_EVENTS,
            Some(Picture::Page) if ranks > MAX_PAGE_RANKS => bail!(
                "a page shows at most {MAX_PAGE_RANKS} ranks, not {ranks}: take fewer ranks, or draw a Gantt chart (.svg)"
            ),
            Some(Picture::Page) => return Ok(()),
            Some(Picture::Gantt | Picture::Tree | Picture::Traffic) => MAX_BOXES,
        };
        ensure!(
            ranks <= max,
            "{ranks} ranks have more steps than the {max} that this picture or trace can show: take fewer ranks"
        );
        Ok(())
    }

    /// The picture (empty without one) and the trace.
    fn draw(&self) -> Result<(String, Option<String>)> {
        let args = self.args;
        let inputs = inputs(&args.common, self.caller)?;
        let input = &inputs[0];
        let mut text = match self.picture {
            Some(Picture::Gantt) => timed(input, OutputFile::Svg, self)?,
            Some(Picture::Trace) => timed(input, OutputFile::Json, self)?,
            Some(Picture::Tree) => self.tree(input)?,
            Some(Picture::Traffic) => self.traffic(input, "traffic")?,
            Some(Picture::Page) => self.page(&inputs)?,
            None => String::new(),
        };
        if args.dark {
            text = oneport_pictures::dark(&text);
        }
        text = args.frame.sized(text);
        let trace = args.trace.is_some();
        let trace = trace.then(|| timed(input, OutputFile::Json, self));
        Ok((text, trace.transpose()?))
    }

    fn tree(&self, input: &Input) -> Result<String> {
        if let Some(found) = Tree::of(&input.schedule)? {
            let what = match found.segment() {
                None => "tree",
                Some(_) => "tree of the first segment",
            };
            let caption = self.args.frame.caption(input.caption(what, self.caller));
            return Ok(tree(&found, &caption)?);
        }
        let what = "the messages do not form one tree: traffic instead";
        self.caller
            .note(format!("{what} (--as traffic draws it without this note)"));
        self.traffic(input, what)
    }

    fn traffic(&self, input: &Input, what: &str) -> Result<String> {
        let caption = self.args.frame.caption(input.caption(what, self.caller));
        Ok(traffic(&Traffic::new(&input.schedule), &caption)?)
    }

    fn page(&self, inputs: &[Input]) -> Result<String> {
        let first = &inputs[0];
        if inputs.iter().any(|input| input.unit != first.unit) {
            bail!("the schedules have times in different units: give --alpha and --beta");
        }
        let mut titles: Vec<String> = inputs.iter().map(|input| input.info.title()).collect();
        titles.dedup();
        let unit = match first.unit {
            Unit::Plain => ", in time units",
            Unit::Nanoseconds => "",
        };
        let mut names: Vec<String> = inputs.iter().map(Input::name).collect();
        let all = names.clone();
        for (name, input) in names.iter_mut().zip(inputs) {
            let others = all.iter().filter(|other| *other == name).count() > 1;
            if let Some(file) = input
                .info
                .schedule
                .as_ref()
                .filter(|file| others && *file != name)
            {
                *name = format!("{name} ({file})");
            }
        }
        let by = match (&first.info.algorithm, &first.info.schedule) {
            (Some(_), _) => " by ",
            (None, Some(_)) => " from ",
            (None, None) => ", ",
        };
        let title = format!("{}{by}{}", first.info.collective, names.join(", "));
        let mut caption = titles.into_iter().fold(Caption::new(title), Caption::line);
        caption = caption.line(format!("{}{unit}", show_cost(&first.cost, first.unit)));
        if !self.args.frame.plain {
            caption = caption.source(self.caller.provenance());
        }
        let shown: Vec<Shown> = inputs
            .iter()
            .zip(&names)
            .map(|(input, name)| Shown {
                name,
                schedule: &input.schedule,
                cost: &input.cost,
            })
            .collect();
        Ok(page(&shown, first.unit, &caption)?)
    }
}

/// What steps through a schedule, for a page that opens it; `None` if it is too long to watch.
pub(crate) fn player(shown: Shown, info: &ScheduleInfo, unit: Unit) -> Option<Player> {
    let caption = Caption::new(format!("{} by {}", info.collective, shown.name));
    let caption = caption.line(info.title()).line(show_cost(shown.cost, unit));
    Player::new(&[shown], unit, &caption).ok()
}

/// The schedules to draw: each file, or the plan of each algorithm.
fn inputs(common: &Common, caller: &Caller) -> Result<Vec<Input>> {
    let (files, kind) = (common.files()?, common.collective);
    let mut each = vec![common.clone(); files.len().max(common.algorithm.names().len()).max(1)];
    for (one, file) in each.iter_mut().zip(files) {
        (one.schedule, one.collective) = (vec![file], kind);
    }
    for (one, name) in each.iter_mut().zip(common.algorithm.names()) {
        one.algorithm = AlgorithmNames::These(vec![name.clone()]);
    }
    let read = each.iter().map(|one| {
        let mut input = one.input(caller)?;
        input.print_warnings(one, caller)?;
        Ok(input)
    });
    read.collect()
}

/// Determines what to draw; an error if options and file name contradict each other.
fn form(args: &DrawArgs, to_file: Option<&Path>) -> Result<Picture> {
    let json = args.common.json;
    let html = |path: &Path| FileKind::of(path) == Some(FileKind::Html);
    match (args.form, to_file.is_some_and(html)) {
        (_, true) if json => bail!("--json writes a trace, not a page: name the file FILE.json"),
        (None | Some(Picture::Page), true) => return Ok(Picture::Page),
        (Some(_), true) => {
            bail!("a .html file holds a page (--as page): name the picture FILE.svg")
        }
        (Some(Picture::Page), false) if to_file.is_some_and(|path| path.extension().is_some()) => {
            bail!("--as page writes HTML: name the file FILE.html")
        }
        _ => {}
    }
    let file = to_file.map(OutputFile::of).transpose();
    let file = file.map_err(|e| anyhow!("{e}, pages as FILE.html"))?;
    match (args.form, file) {
        (_, Some(OutputFile::Svg)) if json => {
            bail!("--json writes a trace, not a picture: name the file FILE.json")
        }
        (Some(Picture::Trace), Some(OutputFile::Svg)) => {
            bail!("--as trace writes JSON: name the file FILE.json")
        }
        (Some(Picture::Trace), _) => Ok(Picture::Trace),
        (Some(_), _) if json => {
            bail!("--json writes a trace: leave it out, or take --as trace")
        }
        (Some(_), Some(OutputFile::Json)) => {
            bail!("a .json file holds a trace (--as trace): name the picture FILE.svg")
        }
        (Some(form), _) => Ok(form),
        (None, Some(OutputFile::Json)) => Ok(Picture::Trace),
        (None, _) if json => Ok(Picture::Trace),
        (None, _) => Ok(Picture::Gantt),
    }
}

/// Model time as a Gantt chart or as a trace.
fn timed(input: &Input, file: OutputFile, drawing: &Drawing) -> Result<String> {
    file.ensure_fits_memory(&input.schedule)?;
    let mut trace = Trace::model(&input.schedule, &input.cost, input.unit)?;
    trace.critical_path = drawing.args.critical_path;
    let time = input.unit.show(trace.end());
    let what = if trace.waits.is_empty() {
        "time"
    } else {
        "nothing moves after"
    };
    let caption = input
        .caption(&format!("{what} {time}"), drawing.caller)
        .line(show_cost(&input.cost, input.unit));
    let caption = match file {
        OutputFile::Svg => drawing.args.frame.caption(caption),
        OutputFile::Json => caption,
    };
    file.content(&trace, &caption)
}

impl Input {
    /// What made the schedule: an algorithm, with its segments, or a file.
    pub(crate) fn name(&self) -> String {
        let info = &self.info;
        match info.segments {
            Some(q) if q > 1 => format!("{} ({q} segments)", info.by()),
            _ => info.by().to_string(),
        }
    }

    /// A caption such as `reduce by uni-greedy, p = 15, q = 5: ...` with a line of details.
    pub(crate) fn caption(&self, what: &str, caller: &Caller) -> Caption {
        let info = &self.info;
        let by = match (&info.algorithm, &info.schedule) {
            (Some(name), _) => format!(" by {name}"),
            (None, Some(file)) => format!(" from {file}"),
            (None, None) => format!(", {}", info.by()),
        };
        let segments = match info.segments {
            Some(q) if q > 1 => format!(", q = {q}"),
            _ => String::new(),
        };
        let title = format!(
            "{}{by}, p = {}{segments}: {what}",
            info.collective, info.ranks
        );
        Caption::new(title)
            .line(info.title())
            .source(caller.provenance())
    }
}
