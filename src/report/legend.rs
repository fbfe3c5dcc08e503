//! Colours of segments, box styles of activities, and the legend that explains them.

use super::svg::{Anchor, LINE, MARGIN, Svg, TEXT, hex, width};
use super::trace::What;
use crate::schedule::Spans;

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

/// Maximal number of segments in a legend.
const MAX_LISTED: usize = 2 * COLORS.len();

/// The style class of a segment, which sets its colour.
pub(crate) fn color(segment: Option<usize>) -> usize {
    segment.map_or(COLORS.len(), |s| s % COLORS.len())
}

fn mixed(color: [u8; 3], with: f64, part: f64) -> [u8; 3] {
    color.map(|c| (f64::from(c) * (1.0 - part) + with * part).round() as u8)
}

/// Whether white text is easier to read than black text on a colour.
fn is_dark([r, g, b]: [u8; 3]) -> bool {
    0.299 * f64::from(r) + 0.587 * f64::from(g) + 0.114 * f64::from(b) < 140.0
}

/// Adds the style rules of the first `segments` segments. For each colour `n`: `rN` is a filled
/// box, `sN` an outlined one, `kN` a dark one, and `tN` is text on a filled box.
pub(crate) fn styles(svg: &mut Svg, segments: usize) {
    let grey = [0xa0, 0xa0, 0xa0];
    let used = COLORS.iter().take(segments).copied().enumerate();
    for (n, color) in used.chain([(COLORS.len(), grey)]) {
        let (full, tint) = (hex(color), hex(mixed(color, 255.0, 0.82)));
        let dark = hex(mixed(color, 0.0, 0.5));
        let text = if is_dark(color) { "#fff" } else { "#000" };
        svg.style(&format!(
            ".r{n}{{fill:{full}}} .s{n}{{fill:{tint};stroke:{full}}} .k{n}{{fill:{dark}}} .t{n}{{fill:{text}}}"
        ));
    }
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

/// Draws the legend of box kinds and segment colours, starting at `top`, in a picture of width
/// `room`. Returns the position of its lower end.
pub(crate) fn legend(
    svg: &mut Svg,
    kinds: &[What],
    segments: &[Spans],
    top: f64,
    room: f64,
) -> f64 {
    let mut flow = Flow {
        x: MARGIN,
        y: top,
        room,
    };
    for &what in kinds {
        let text = match what {
            What::Send => "send (to)",
            What::Receive => "receive (from)",
            What::ReceiveCombine => "receive and combine (from)",
            What::Combine => "combine",
            What::Copy => "copy",
        };
        let (x, y) = flow.entry(34.0 + width(text, TEXT));
        mark(svg, what, 0, (x, y - 10.0), (28.0, 12.0));
        svg.text((x + 34.0, y), text, Anchor::Start, TEXT, "");
    }
    if segments.is_empty() {
        return flow.y + LINE;
    }
    flow.line();
    let heading = "Segments (first-last element):";
    let (x, y) = flow.entry(width(heading, TEXT));
    svg.text((x, y), heading, Anchor::Start, TEXT, "fill=\"#444\"");
    for (i, spans) in segments.iter().take(MAX_LISTED).enumerate() {
        let text = format!("{i}: {}", span_names(spans));
        let (x, y) = flow.entry(20.0 + width(&text, TEXT));
        let class = format!("class=\"r{}\"", color(Some(i)));
        svg.rect((x, y - 10.0), (14.0, 12.0), &class);
        svg.text((x + 20.0, y), &text, Anchor::Start, TEXT, "");
    }
    if segments.len() > COLORS.len() {
        let text = format!(
            "{}{} segments share {} colours in turn",
            if segments.len() > MAX_LISTED {
                "… "
            } else {
                ""
            },
            segments.len(),
            COLORS.len()
        );
        let (x, y) = flow.entry(width(&text, TEXT));
        svg.text((x, y), &text, Anchor::Start, TEXT, "fill=\"#444\"");
    }
    flow.y + LINE
}

/// First and last element of each span: `0-3`, `0-3 8-11`, `0-3 8-11 …`.
pub(crate) fn span_names(spans: &[crate::schedule::Span]) -> String {
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
struct Flow {
    x: f64,
    y: f64,
    room: f64,
}

impl Flow {
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
