//! A minimal SVG writer: boxes, lines, text, and estimates of the width of text.

use std::fmt::{self, Display, Write as _};

use super::Caption;
use oneport::internal::numbers::{signed, truncated_i64};

/// Margin around a picture.
pub const MARGIN: f64 = 16.0;
/// Font size of ordinary text.
pub const TEXT: f64 = 12.0;
/// Distance between lines of text.
pub const LINE: f64 = 17.0;
const TITLE: f64 = 16.0;
/// Font size of what made the picture.
const SOURCE: f64 = 9.0;
/// Attribute of text beside the matter.
pub(crate) const GREY: &str = "fill=\"#444\"";

/// A drawing under construction.
#[derive(Debug, Default)]
pub struct Svg {
    body: String,
    style: String,
}

/// Alignment of text relative to its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// Displays a coordinate with at most two decimals.
#[derive(Debug)]
pub struct At(pub f64);

impl Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hundredths = (self.0 * 100.0).round();
        if hundredths % 100.0 == 0.0 {
            // Adding 0 turns -0 into 0.
            write!(f, "{}", hundredths / 100.0 + 0.0)
        } else {
            write!(f, "{}", hundredths / 100.0)
        }
    }
}

/// Formats a colour: `#1e90ff`.
pub fn hex([r, g, b]: [u8; 3]) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// The part of a colour nearest to `value`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "0 to 255"
)]
pub(crate) fn channel(value: f64) -> u8 {
    value.round() as u8
}

/// Escapes text for XML and drops characters that XML does not allow.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => {}
            c if c < ' ' => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Estimated width of `text` in a sans-serif font; overestimates rather than underestimates.
pub fn width(text: &str, size: f64) -> f64 {
    let em = |c: char| match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' => 0.33,
        'f' | 't' | 'r' | 'I' | '(' | ')' | '[' | ']' | '/' | '-' => 0.43,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.95,
        '→' | '←' | '…' | '×' | '=' | '+' => 0.84,
        c if c.is_ascii_uppercase() => 0.72,
        c if c.is_ascii() => 0.62,
        // Scripts with wide characters.
        _ => 1.0,
    };
    text.chars().map(em).sum::<f64>() * size
}

/// Breaks `text` into lines of at most width `room`, at spaces where possible.
pub fn wrapped(text: &str, size: f64, room: f64) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut add = |piece: &str| {
        let last = lines.len() - 1;
        let line = &lines[last];
        if !line.is_empty() && width(line, size) + width(piece.trim_end(), size) > room {
            lines.push(piece.to_string());
        } else {
            lines[last].push_str(piece);
        }
    };
    for word in text.split_inclusive(' ') {
        if width(word, size) <= room {
            add(word);
        } else {
            word.chars().for_each(|c| add(&c.to_string()));
        }
    }
    for line in &mut lines {
        line.truncate(line.trim_end().len());
    }
    lines
}

impl Svg {
    /// Adds a rule to the style sheet.
    pub fn style(&mut self, rule: &str) {
        let _ = writeln!(self.style, "{rule}");
    }

    pub fn rect(&mut self, (x, y): (f64, f64), (w, h): (f64, f64), attributes: &str) {
        let (x, y, w, h) = (At(x), At(y), At(w), At(h));
        let _ = writeln!(
            self.body,
            r#"<rect x="{x}" y="{y}" width="{w}" height="{h}" {attributes}/>"#
        );
    }

    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), attributes: &str) {
        let (x1, y1, x2, y2) = (At(from.0), At(from.1), At(to.0), At(to.1));
        let _ = writeln!(
            self.body,
            r#"<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" {attributes}/>"#
        );
    }

    /// Adds text whose baseline starts, is centred or ends at a point.
    pub fn text(
        &mut self,
        (x, y): (f64, f64),
        text: &str,
        anchor: Anchor,
        size: f64,
        attributes: &str,
    ) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let space = if attributes.is_empty() { "" } else { " " };
        let (x, y, text) = (At(x), At(y), escape(text));
        let _ = writeln!(
            self.body,
            r#"<text x="{x}" y="{y}" font-size="{size}"{anchor}{space}{attributes}>{text}</text>"#
        );
    }

    /// Opens a group, which ends at [`Svg::close`] and shows `title` as a tooltip.
    pub fn open(&mut self, attributes: &str, title: &str) {
        let _ = write!(self.body, "<g {attributes}>");
        if !title.is_empty() {
            let _ = write!(self.body, "<title>{}</title>", escape(title));
        }
        self.body.push('\n');
    }

    pub fn close(&mut self) {
        self.body.push_str("</g>\n");
    }

    pub fn raw(&mut self, text: &str) {
        self.body.push_str(text);
    }

    /// Adds title and lines at the top of a picture of width `room`; returns the position of their
    /// lower end.
    pub fn caption(&mut self, caption: &Caption, room: f64) -> f64 {
        let mut y = MARGIN;
        let room = room - 2.0 * MARGIN;
        // Bold text is a tenth wider.
        let title = wrapped(&caption.title, TITLE * 1.1, room);
        for line in title.into_iter().filter(|line| !line.is_empty()) {
            y += 20.0;
            let bold = "font-weight=\"bold\"";
            self.text((MARGIN, y - 6.0), &line, Anchor::Start, TITLE, bold);
        }
        for line in caption.lines.iter().flat_map(|l| wrapped(l, TEXT, room)) {
            y += LINE;
            self.text((MARGIN, y - 4.0), &line, Anchor::Start, TEXT, GREY);
        }
        y + 8.0
    }

    /// Returns the whole document, with the caption's source at its foot.
    pub fn finish(mut self, width: f64, mut height: f64, caption: &Caption) -> String {
        let source = caption.source.iter();
        for line in source.flat_map(|source| wrapped(source, SOURCE, width - 2.0 * MARGIN)) {
            self.text((MARGIN, height), &line, Anchor::Start, SOURCE, GREY);
            height += 1.3 * SOURCE;
        }
        let (w, h, title) = (At(width.ceil()), At(height.ceil()), escape(&caption.title));
        let title = match &*title {
            "" => String::new(),
            title => format!("<title>{title}</title>\n"),
        };
        let style = if self.style.is_empty() {
            String::new()
        } else {
            format!("<style>\n{}</style>\n", self.style)
        };
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" \
             font-family=\"Helvetica, Arial, sans-serif\">\n{title}{style}\
             <rect width=\"{w}\" height=\"{h}\" fill=\"#fff\"/>\n{}</svg>\n",
            self.body
        )
    }
}

/// The same picture with a width such as 84 and `mm` where it is shown, and a height that keeps its
/// proportions.
///
/// ```
/// use oneport_pictures::{Caption, Traffic, traffic, wide};
/// let schedule = oneport::Request::broadcast(4, 100).plan("binomial")?;
/// let svg = traffic(&Traffic::new(&schedule), &Caption::default())?;
/// assert!(wide(&svg, 84.0, "mm").contains("width=\"84mm\""));
/// # Ok::<(), oneport::Error>(())
/// ```
pub fn wide(svg: &str, width: f64, unit: &str) -> String {
    let mut parts = svg.splitn(5, '"');
    // Before the width: the name space, and what leads to its value.
    let start: Vec<&str> = parts.by_ref().take(3).collect();
    let Some((own, rest)) = parts.next().zip(parts.next()) else {
        return svg.to_string();
    };
    let number = |text: &str| text.parse::<f64>().unwrap_or(width);
    let (before, rest) = rest.split_once('"').unwrap_or((rest, ""));
    let (height, rest) = rest.split_once('"').unwrap_or((rest, ""));
    let height = number(height) / number(own) * width;
    let start = start.join("\"");
    let (width, height) = (At(width), At(height));
    format!("{start}\"{width}{unit}\"{before}\"{height}{unit}\"{rest}")
}

/// The value with this number of significant digits.
pub fn rounded(value: f64, digits: usize) -> f64 {
    let text = format!("{value:.*e}", digits.saturating_sub(1));
    text.parse().unwrap_or(value)
}

/// The power of ten at or below `x`, which is positive: 2 for 100.
pub(crate) fn exponent(x: f64) -> i32 {
    i32::try_from(truncated_i64(x.log10().floor())).expect("a float is below 10^309")
}

/// Formats a number with about `digits` significant digits; whole numbers in full.
pub fn number(value: f64, digits: usize) -> String {
    match value.abs() {
        large if large >= 1e15 => format!("{value:e}"),
        _ if value.fract() == 0.0 => format!("{:.0}", value + 0.0),
        small if small < 1e-4 => format!("{:e}", rounded(value, digits)),
        size => {
            let decimals =
                usize::try_from(signed(digits) - 1 - i64::from(exponent(size))).unwrap_or(0);
            let text = format!("{value:.decimals$}");
            if text.contains('.') {
                text.trim_end_matches('0').trim_end_matches('.').into()
            } else {
                text
            }
        }
    }
}

/// A number of things: `1 rank`, `2 ranks`.
pub fn counted(n: usize, thing: &str) -> String {
    format!("{n} {thing}{}", if n == 1 { "" } else { "s" })
}

/// Formats a number of bytes: `64 KiB`, `100 B`.
pub fn bytes(bytes: u64) -> String {
    let names = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let power = (bytes.max(1).ilog2() / 10) as usize;
    let unit = 1u64 << (10 * power);
    format!("{} {}", number(bytes as f64 / unit as f64, 4), names[power])
}

/// The unit of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// The unit of the cost model.
    Plain,
}

impl Unit {
    /// The name in files: `ns` or `unit`.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Nanoseconds => "ns",
            Unit::Plain => "unit",
        }
    }

    /// Seconds of one: costs without a unit are microseconds where other tools need one.
    pub fn seconds(self) -> f64 {
        match self {
            Unit::Nanoseconds => 1e-9,
            Unit::Plain => 1e-6,
        }
    }

    /// Formats a time: `12.3 us`; a plain number if it has no unit.
    pub fn show(self, time: f64) -> String {
        let (divisor, name) = match self {
            Unit::Plain => return number(time, 7),
            Unit::Nanoseconds => match time {
                t if t >= 1e9 => (1e9, "s"),
                t if t >= 1e6 => (1e6, "ms"),
                t if t >= 1e3 => (1e3, "us"),
                _ => (1.0, "ns"),
            },
        };
        format!("{} {name}", number(time / divisor, 5))
    }
}

/// Scale for times of up to `max`: a divisor, and the name of the unit (empty if there is no unit).
pub fn scale(unit: Unit, max: f64) -> (f64, &'static str) {
    match unit {
        Unit::Plain => (1.0, ""),
        Unit::Nanoseconds if max >= 1e10 => (1e9, "s"),
        Unit::Nanoseconds if max >= 1e7 => (1e6, "ms"),
        Unit::Nanoseconds if max >= 1e4 => (1e3, "us"),
        Unit::Nanoseconds => (1.0, "ns"),
    }
}

/// The largest number among 1, 2, 5, 10, ... (times a power of ten) that fits at least `count`
/// times into `max`.
pub fn nice_step(max: f64, count: f64) -> f64 {
    let raw = max / count.max(1.0);
    let power = 10f64.powf(raw.log10().floor());
    let step = [5.0, 2.0, 1.0].into_iter().find(|s| s * power <= raw);
    step.unwrap_or(1.0) * power
}
