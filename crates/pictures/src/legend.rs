//! Colours of segments, box styles of activities, and the legend that explains them.

use std::collections::BTreeSet;
use std::ops::Range;

use super::blocks::ranges;
use super::svg::{Anchor, At, GREY, LINE, MARGIN, Svg, TEXT, channel, hex, width};
use super::trace::{Activity, Trace, What};

/// One colour per segment, with distinct neighbours; reused cyclically if there are more segments.
const COLORS: [[u8; 3]; 16] = [
    [0x3b, 0x78, 0xc2],
    [0xf0, 0x89, 0x2a],
    [0x43, 0xa0, 0x47],
    [0xd9, 0x48, 0x4c],
    [0x8e, 0x5b, 0xb5],
    [0xe6, 0xc2, 0x29],
    [0x2a, 0xa5, 0xa0],
    [0xee, 0x8f, 0xb5],
    [0x98, 0x67, 0x4a],
    [0xa3, 0xc6, 0x44],
    [0x34, 0x45, 0x7f],
    [0x7c, 0xc4, 0xee],
    [0xc2, 0x39, 0x8f],
    [0x8f, 0x96, 0x9c],
    [0x77, 0x75, 0x2c],
    [0xf6, 0xbf, 0x98],
];

/// The colour of activities without a segment.
const NONE: [u8; 3] = [0xa0, 0xa0, 0xa0];

/// Maximal number of segments in a legend.
const MAX_LISTED: usize = 2 * COLORS.len();

/// The style class of a segment, which sets its colour.
pub(crate) fn color(segment: Option<usize>) -> usize {
    segment.map_or(COLORS.len(), |s| s % COLORS.len())
}

fn mixed(color: [u8; 3], with: f64, part: f64) -> [u8; 3] {
    color.map(|c| channel(f64::from(c) * (1.0 - part) + with * part))
}

/// Black or white, whichever has the larger contrast with a colour: 4.58 at least.
fn ink(color: [u8; 3]) -> &'static str {
    // Relative luminance of sRGB, as the Web Content Accessibility Guidelines define it.
    let linear = color.map(|c| match f64::from(c) / 255.0 {
        c if c <= 0.04045 => c / 12.92,
        c => ((c + 0.055) / 1.055).powf(2.4),
    });
    let luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
    let (on_white, on_black) = (1.05 / (luminance + 0.05), (luminance + 0.05) / 0.05);
    if on_white > on_black { "#fff" } else { "#000" }
}

/// Background and text colour of every style class: those of the segments or blocks, and last the
/// one of activities without any.
pub(crate) fn palette() -> impl Iterator<Item = (String, &'static str)> {
    let all = COLORS.into_iter().chain([NONE]);
    all.map(|color| (hex(color), ink(color)))
}

/// Adds the style rules of some classes. For each colour `n`: `rN` is a filled box, `sN` an
/// outlined one, `kN` a dark one, and `tN` is text on a filled box.
pub(crate) fn styles(svg: &mut Svg, classes: &BTreeSet<usize>) {
    for &n in classes {
        let color = COLORS.get(n).copied().unwrap_or(NONE);
        let (full, tint) = (hex(color), hex(mixed(color, 255.0, 0.82)));
        let (dark, text) = (hex(mixed(color, 0.0, 0.5)), ink(color));
        svg.style(&format!(
            ".r{n}{{fill:{full}}} .s{n}{{fill:{tint};stroke:{full}}} .k{n}{{fill:{dark}}} .t{n}{{fill:{text}}}"
        ));
    }
}

/// The number of an activity's colour: its group, its first block or its segment.
pub(crate) fn color_number(trace: &Trace, activity: &Activity) -> Option<usize> {
    if let Some((group, _)) = trace.group(activity) {
        return Some(group);
    }
    let block = activity.blocks.map(|b| trace.blocks[b][0]);
    block.or(activity.segment)
}

/// The finest parts of the vector, for schedules whose messages carry parts that overlap: a colour
/// for each of those would mean two things where a buffer holds both.
pub(crate) struct FinestParts {
    /// Where they start, and the end of the last.
    borders: Vec<usize>,
}

impl FinestParts {
    /// `None` if segments do not overlap, or if colours mean something else.
    pub(crate) fn of(trace: &Trace) -> Option<FinestParts> {
        if !trace.blocks.is_empty() || trace.groups.is_some() || !overlap(trace.segments.iter()) {
            return None;
        }
        let spans = trace.segments.iter().flat_map(|spans| spans.iter());
        let borders = spans.flat_map(|span| [span.offset, span.end()]);
        let borders: BTreeSet<usize> = borders.chain([0]).collect();
        Some(FinestParts {
            borders: borders.into_iter().collect(),
        })
    }

    /// The parts, by number.
    pub(crate) fn parts(&self) -> Range<usize> {
        0..self.borders.len() - 1
    }

    /// The part that an element belongs to.
    pub(crate) fn part(&self, element: usize) -> usize {
        self.borders.partition_point(|&border| border <= element) - 1
    }

    /// The first part that an activity moves, and its name: `parts 0-3 (elements 0-65535)`.
    pub(crate) fn name(&self, trace: &Trace, activity: &Activity) -> Option<(usize, String)> {
        let spans = &trace.segments[activity.segment?][..];
        let parts = spans.iter();
        let parts: Vec<usize> = parts
            .flat_map(|span| self.part(span.offset)..=self.part(span.end() - 1))
            .collect();
        let s = if parts.len() > 1 { "s" } else { "" };
        let name = format!("part{s} {} ({})", ranges(&parts), elements(spans));
        Some((parts[0], name))
    }

    /// The name of a part.
    pub(crate) fn words(&self, part: usize) -> String {
        let (start, end) = (self.borders[part], self.borders[part + 1]);
        let span = oneport::schedule::Span::from((start, end - start));
        format!("part {part} ({})", elements(&[span]))
    }
}

fn elements(spans: &[oneport::schedule::Span]) -> String {
    let one = spans.len() == 1 && spans[0].len == 1;
    let elements = if one { "element" } else { "elements" };
    format!("{elements} {}", span_names(spans))
}

/// Whether two segments share an element.
fn overlap<'a>(segments: impl Iterator<Item = &'a oneport::schedule::Spans>) -> bool {
    let mut spans: Vec<_> = segments.flat_map(|spans| spans.iter().copied()).collect();
    spans.sort_unstable();
    spans.windows(2).any(|pair| pair[0].overlaps(pair[1]))
}

/// What a picture calls the parts of the vector that messages carry.
pub(crate) fn part_word(trace: &Trace) -> &'static str {
    if overlap(trace.segments.iter()) {
        "part"
    } else {
        "segment"
    }
}

/// What an activity moves or combines, in words: `segment 2 (elements 4-7)`, `block 3`,
/// `blocks 4-7`; `None` for an empty message. `word` is what segments are called.
pub(crate) fn part_name(trace: &Trace, word: &str, activity: &Activity) -> Option<String> {
    if let Some((_, name)) = trace.group(activity) {
        return Some(name.to_string());
    }
    let segment = activity.segment?;
    Some(match activity.blocks.map(|b| &trace.blocks[b][..]) {
        Some([block]) => format!("block {block}"),
        Some(blocks) => format!("blocks {}", ranges(blocks)),
        None => format!("{word} {segment} ({})", elements(&trace.segments[segment])),
    })
}

/// Draws the box of an activity.
pub(crate) fn mark(svg: &mut Svg, what: What, n: usize, (x, y): (f64, f64), (w, h): (f64, f64)) {
    match what {
        What::Send => {
            // The outline stays inside the box and takes at most a quarter of its width.
            let line = (w / 4.0).min(1.2);
            let (inner, at) = ((w - line, h - line), (x + line / 2.0, y + line / 2.0));
            let stroke = if line < 1.2 {
                format!(" stroke-width=\"{}\"", super::svg::At(line))
            } else {
                " stroke-width=\"1.2\"".to_string()
            };
            svg.rect(at, inner, &format!("class=\"s{n}\"{stroke}"));
            if w > 10.0 {
                for x in [x, x + w - 3.0] {
                    svg.rect((x, y), (3.0, h), &format!("class=\"r{n}\""));
                }
            }
        }
        What::Receive => svg.rect((x, y), (w, h), &format!("class=\"r{n}\"")),
        What::ReceiveCombine => {
            let part = (h / 4.0).round();
            svg.rect((x, y), (w, h - part), &format!("class=\"r{n}\""));
            svg.rect((x, y + h - part), (w, part), &format!("class=\"k{n}\""));
        }
        What::Combine => svg.rect((x, y), (w, h), &format!("class=\"k{n}\"")),
        What::Copy => {
            svg.rect((x, y), (w, h), &format!("class=\"k{n}\""));
            let (left, right) = ((x, y + h / 2.0), (x + w, y + h / 2.0));
            svg.line(left, right, "stroke=\"#fff\" stroke-width=\"1.5\"");
        }
    }
}

/// A place, or a size.
type Point = (f64, f64);

/// The contents of a legend: what is in the chart, and nothing else.
pub(crate) struct Legend<'t> {
    trace: &'t Trace,
    kinds: BTreeSet<What>,
    /// The numbers of the colours, which are segments or blocks.
    numbers: BTreeSet<usize>,
    /// Whether boxes on the critical path have a frame.
    critical: bool,
}

impl<'t> Legend<'t> {
    pub(crate) fn new(trace: &'t Trace, shown: impl Iterator<Item = &'t Activity> + Clone) -> Self {
        Legend {
            trace,
            kinds: shown.clone().map(|a| a.what).collect(),
            critical: trace.critical_path && shown.clone().any(|a| a.critical),
            numbers: shown.filter_map(|a| color_number(trace, a)).collect(),
        }
    }

    /// The style classes of the boxes, and of the boxes in the legend itself.
    pub(crate) fn classes(&self) -> BTreeSet<usize> {
        let numbers = self.numbers.iter().map(|&n| color(Some(n)));
        numbers.chain([COLORS.len()]).collect()
    }

    /// Draws the legend, starting at `top`, in a picture of width `room`. Returns the position of
    /// its lower end.
    pub(crate) fn draw(&self, svg: &mut Svg, top: f64, room: f64) -> f64 {
        let mut flow = EntryFlow {
            x: MARGIN,
            y: top,
            room,
        };
        let mut sample = |text: &str, draw: &dyn Fn(&mut Svg, Point, Point)| {
            let (x, y) = flow.entry(34.0 + width(text, TEXT));
            draw(svg, (x, y - 10.0), (28.0, 12.0));
            svg.text((x + 34.0, y), text, Anchor::Start, TEXT, "");
        };
        for &what in &self.kinds {
            let text = match what {
                What::Send => "send (to)",
                What::Receive => "receive (from)",
                What::ReceiveCombine => "receive and combine (from)",
                What::Combine => "combine",
                What::Copy => "copy",
            };
            let n = color(self.numbers.first().copied());
            sample(text, &|svg, at, size| mark(svg, what, n, at, size));
        }
        if self.critical {
            sample("on the critical path", &frame);
        }
        let waits = self.trace.waits.iter();
        let kinds: BTreeSet<_> = waits.map(|wait| (wait.is_cause(), wait.alone)).collect();
        for (is_cause, alone) in kinds {
            let text = match (is_cause, alone) {
                (_, true) => "waits for ever without a partner",
                (true, _) => "waits for ever in a cycle",
                (false, _) => "waits for ever",
            };
            sample(text, &|svg, at, size| wait_mark(svg, is_cause, at, size));
        }
        if !self.numbers.is_empty() {
            flow.line();
            self.colors(svg, &mut flow);
        }
        flow.y + LINE
    }

    /// Whether two of the segments share an element.
    fn overlap(&self) -> bool {
        overlap(self.numbers.iter().map(|&n| &self.trace.segments[n]))
    }

    fn colors(&self, svg: &mut Svg, flow: &mut EntryFlow) {
        let blocks = !self.trace.blocks.is_empty();
        let groups = self.trace.groups.as_ref();
        let (what, heading) = match (blocks, groups) {
            (_, Some(_)) => ("groups", "Colours:"),
            (true, _) => ("blocks", "Rank of the first block that a message carries:"),
            (false, _) if self.overlap() => (
                "parts of the vector",
                "Parts of the vector that messages carry, which overlap (first-last element):",
            ),
            (false, _) => ("segments", "Segments (first-last element):"),
        };
        let (x, y) = flow.entry(width(heading, TEXT));
        svg.text((x, y), heading, Anchor::Start, TEXT, GREY);
        for &number in self.numbers.iter().take(MAX_LISTED) {
            let text = match (blocks, groups) {
                (_, Some((names, _))) => names[number].clone(),
                (true, _) => number.to_string(),
                (false, _) => format!("{number}: {}", span_names(&self.trace.segments[number])),
            };
            let (x, y) = flow.entry(20.0 + width(&text, TEXT));
            let class = format!("class=\"r{}\"", color(Some(number)));
            svg.rect((x, y - 10.0), (14.0, 12.0), &class);
            svg.text((x + 20.0, y), &text, Anchor::Start, TEXT, "");
        }
        let (count, colors) = (self.numbers.len(), self.classes().len() - 1);
        if count > colors {
            let more = if count > MAX_LISTED { "… " } else { "" };
            let text = format!("{more}{count} {what} share {colors} colours in turn");
            let (x, y) = flow.entry(width(&text, TEXT));
            svg.text((x, y), &text, Anchor::Start, TEXT, GREY);
        }
    }
}

/// Draws a frame around the box of an activity that is on the critical path.
pub(crate) fn frame(svg: &mut Svg, (x, y): (f64, f64), (w, h): (f64, f64)) {
    let line = w.min(1.8);
    let (at, size) = ((x + line / 2.0, y + line / 2.0), (w - line, h - line));
    let style = format!("class=\"critical\" stroke-width=\"{}\"", At(line));
    svg.rect(at, size, &style);
}

/// Draws the box of a step that waits for ever, dashed; in red if it is a cause.
pub(crate) fn wait_mark(svg: &mut Svg, is_cause: bool, (x, y): (f64, f64), (w, h): (f64, f64)) {
    let (fill, line) = if is_cause {
        ("#fbe9e7", "#c62828")
    } else {
        ("#fff", "#777")
    };
    let style = format!("fill=\"{fill}\" stroke=\"{line}\" stroke-dasharray=\"4 3\"");
    svg.rect((x + 0.5, y + 0.5), (w - 1.0, h - 1.0), &style);
}

/// First and last element of each span: `0-3`, `0-3 8-11`, `0-3 8-11 …`.
pub(crate) fn span_names(spans: &[oneport::schedule::Span]) -> String {
    let mut names: Vec<String> = spans
        .iter()
        .take(2)
        .map(|s| match s.len {
            0 | 1 => s.offset.to_string(),
            len => format!("{}-{}", s.offset, s.offset.saturating_add(len - 1)),
        })
        .collect();
    if spans.len() > 2 {
        names.push("…".to_string());
    }
    names.join(" ")
}

/// Places entries one after another, in lines.
struct EntryFlow {
    x: f64,
    y: f64,
    room: f64,
}

impl EntryFlow {
    /// The start (on the baseline) of an entry of this width.
    fn entry(&mut self, width: f64) -> (f64, f64) {
        if self.x > MARGIN && self.x + width > self.room - MARGIN {
            self.line();
        }
        let at = (self.x, self.y + 12.0);
        self.x += width + 18.0;
        at
    }

    fn line(&mut self) {
        self.x = MARGIN;
        self.y += LINE;
    }
}
