//! A minimal SVG writer for line charts and maps: panels with axes, lines, cells, legends, colour
//! bars.

use std::fmt::Write as _;
use std::path::Path;

/// Colours that colour-blind people can distinguish (Okabe & Ito).
pub(crate) const COLORS: [&str; 6] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#000000",
];

/// One axis of a panel.
pub(crate) struct Axis {
    label: String,
    log: bool,
    low: f64,
    high: f64,
    ticks: Vec<(f64, String)>,
}

impl Axis {
    /// A linear axis from `low` to `high` with a tick every `step`.
    pub(crate) fn linear(label: &str, low: f64, high: f64, step: f64) -> Axis {
        let count = ((high - low) / step + 1e-9) as usize;
        let ticks = (0..=count)
            .map(|i| low + i as f64 * step)
            .map(|v| (v, short(v)))
            .collect();
        Axis {
            label: label.into(),
            log: false,
            low,
            high,
            ticks,
        }
    }

    /// A logarithmic axis from `base^low` to `base^high` with a tick every `step` powers.
    pub(crate) fn log(label: &str, base: f64, low: i32, high: i32, step: usize) -> Axis {
        let ticks = (low..=high)
            .step_by(step)
            .map(|e| base.powi(e))
            .map(|v| (v, short(v)))
            .collect();
        Axis {
            label: label.into(),
            log: true,
            low: base.powi(low),
            high: base.powi(high),
            ticks,
        }
    }

    /// An axis of named rows or columns of equal width.
    pub(crate) fn named(label: &str, names: impl IntoIterator<Item = String>) -> Axis {
        let ticks: Vec<_> = names
            .into_iter()
            .enumerate()
            .map(|(i, n)| (i as f64 + 0.5, n))
            .collect();
        Axis {
            label: label.into(),
            log: false,
            low: 0.0,
            high: ticks.len() as f64,
            ticks,
        }
    }

    /// The axis, half a step wider on both sides (for cells around grid points, `factor` apart).
    pub(crate) fn widened(mut self, factor: f64) -> Axis {
        self.low /= factor.sqrt();
        self.high *= factor.sqrt();
        self
    }

    /// Position of `value` on the axis, from 0 to 1.
    fn place(&self, value: f64) -> f64 {
        let f = |v: f64| if self.log { v.ln() } else { v };
        (f(value) - f(self.low)) / (f(self.high) - f(self.low))
    }
}

/// Formats a tick: `65536`, `1.5`, `1e9`.
fn short(v: f64) -> String {
    if v != 0.0 && !(1e-3..1e5).contains(&v.abs()) {
        format!("{v:e}")
    } else {
        format!("{}", (v * 1e6).round() / 1e6)
    }
}

/// A drawing.
pub(crate) struct Plot {
    svg: String,
    width: f64,
    height: f64,
}

/// A rectangular plotting area with axes.
pub(crate) struct Panel {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
}

impl Plot {
    pub(crate) fn new(width: f64, height: f64, title: &str) -> Plot {
        let mut plot = Plot {
            svg: String::new(),
            width,
            height,
        };
        plot.text(
            width / 2.0,
            24.0,
            title,
            "middle",
            15.0,
            "font-weight=\"bold\"",
        );
        plot
    }

    pub(crate) fn text(&mut self, x: f64, y: f64, text: &str, anchor: &str, size: f64, more: &str) {
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        let _ = writeln!(
            self.svg,
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" font-size="{size}" {more}>{text}</text>"#
        );
    }

    fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, style: &str) {
        let _ = writeln!(
            self.svg,
            r#"<rect x="{x:.2}" y="{y:.2}" width="{width:.2}" height="{height:.2}" {style}/>"#
        );
    }

    fn segment(&mut self, from: (f64, f64), to: (f64, f64), style: &str) {
        let _ = writeln!(
            self.svg,
            r#"<line x1="{:.1}" y1="{:.1}" x2="{:.1}" y2="{:.1}" {style}/>"#,
            from.0, from.1, to.0, to.1
        );
    }

    /// Draws a legend; its entries are colour, mark and label.
    pub(crate) fn legend(&mut self, x: f64, y: f64, entries: &[(&str, Mark, &str)]) {
        for (i, (color, mark, label)) in entries.iter().enumerate() {
            let y = y + 18.0 * i as f64;
            match mark {
                Mark::Box => self.rect(
                    x,
                    y - 9.0,
                    14.0,
                    12.0,
                    &format!(r##"fill="{color}" stroke="#444""##),
                ),
                Mark::Dot => {
                    let _ = writeln!(
                        self.svg,
                        r#"<circle cx="{:.1}" cy="{:.1}" r="4" fill="{color}"/>"#,
                        x + 7.0,
                        y - 4.0
                    );
                }
                Mark::Line | Mark::Dashes => {
                    let style = format!(r#"stroke="{color}" stroke-width="2" {}"#, mark.dashes());
                    self.segment((x - 6.0, y - 4.0), (x + 20.0, y - 4.0), &style);
                }
            }
            self.text(x + 26.0, y, label, "start", 12.0, "");
        }
    }

    /// Draws the colour scale of [`shade`].
    pub(crate) fn color_bar(&mut self, x: f64, top: f64, height: f64, high: f64, label: &str) {
        for i in 0..50 {
            let y = top + height * (1.0 - f64::from(i + 1) / 50.0);
            let fill = format!("fill=\"{}\"", shade(f64::from(i) / 49.0));
            self.rect(x, y, 16.0, height / 50.0 + 0.5, &fill);
        }
        self.rect(x, top, 16.0, height, r##"fill="none" stroke="#444""##);
        for i in 0..=4 {
            let part = f64::from(i) / 4.0;
            let y = top + height * (1.0 - part) + 4.0;
            let value = format!("{:.3}", 1.0 + part * (high - 1.0));
            self.text(x + 22.0, y, &value, "start", 11.0, "");
        }
        self.text(x + 8.0, top - 10.0, label, "middle", 12.0, "");
    }

    pub(crate) fn save(&self, path: &Path) -> std::io::Result<()> {
        let Plot { svg, width, height } = self;
        std::fs::write(
            path,
            format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
                 font-family=\"sans-serif\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{svg}</svg>\n"
            ),
        )
    }
}

/// Symbol of a legend entry or style of a line.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Mark {
    Box,
    Dot,
    Line,
    Dashes,
}

impl Mark {
    fn dashes(self) -> &'static str {
        if self == Mark::Dashes {
            r#"stroke-dasharray="6 4""#
        } else {
            ""
        }
    }
}

/// Colour scale from white at 0 to dark blue at 1.
pub(crate) fn shade(part: f64) -> String {
    let part = part.clamp(0.0, 1.0);
    let mix = |from: f64, to: f64| (from + (to - from) * part).round();
    format!(
        "rgb({},{},{})",
        mix(255.0, 8.0),
        mix(255.0, 48.0),
        mix(255.0, 120.0)
    )
}

impl Panel {
    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (
            self.left + self.width * self.x.place(x),
            self.top + self.height * (1.0 - self.y.place(y)),
        )
    }

    /// Draws axes, ticks and labels. Cells must be drawn before it, lines after it.
    pub(crate) fn frame(&self, plot: &mut Plot, title: &str, grid: bool) {
        let Panel {
            left,
            top,
            width,
            height,
            ..
        } = *self;
        let (bottom, right) = (top + height, left + width);
        for (value, label) in &self.x.ticks {
            let x = left + width * self.x.place(*value);
            if grid {
                plot.segment((x, top), (x, bottom), r##"stroke="#ddd""##);
            }
            plot.segment((x, bottom), (x, bottom + 5.0), r##"stroke="#444""##);
            plot.text(x, bottom + 18.0, label, "middle", 11.0, "");
        }
        for (value, label) in &self.y.ticks {
            let y = top + height * (1.0 - self.y.place(*value));
            if grid {
                plot.segment((left, y), (right, y), r##"stroke="#ddd""##);
            }
            plot.segment((left - 5.0, y), (left, y), r##"stroke="#444""##);
            plot.text(left - 8.0, y + 4.0, label, "end", 11.0, "");
        }
        plot.rect(left, top, width, height, r##"fill="none" stroke="#444""##);
        plot.text(
            left + width / 2.0,
            bottom + 38.0,
            &self.x.label,
            "middle",
            12.0,
            "",
        );
        let (x, y) = (left - 52.0, top + height / 2.0);
        let turn = format!(r#"transform="rotate(-90 {x:.1} {y:.1})""#);
        plot.text(x, y, &self.y.label, "middle", 12.0, &turn);
        plot.text(left + width / 2.0, top - 10.0, title, "middle", 13.0, "");
    }

    /// Draws a line through points, clipped to the panel.
    pub(crate) fn line(&self, plot: &mut Plot, points: &[(f64, f64)], color: &str, mark: Mark) {
        let inside = |y: f64| (self.y.low..=self.y.high).contains(&y);
        let mut path = String::new();
        for pair in points.windows(2) {
            let [mut a, mut b] = [pair[0], pair[1]];
            if !inside(a.1) && !inside(b.1) {
                continue;
            }
            if !inside(a.1) {
                a = self.cut(b, a);
            } else if !inside(b.1) {
                b = self.cut(a, b);
            }
            let (a, b) = (self.at(a.0, a.1), self.at(b.0, b.1));
            let _ = write!(path, "M{:.1} {:.1}L{:.1} {:.1}", a.0, a.1, b.0, b.1);
        }
        let _ = writeln!(
            plot.svg,
            r#"<path d="{path}" fill="none" stroke="{color}" stroke-width="2" {}/>"#,
            mark.dashes()
        );
    }

    /// The point at which the line from `inside` to `outside` leaves the panel.
    fn cut(&self, inside: (f64, f64), outside: (f64, f64)) -> (f64, f64) {
        let edge = if outside.1 > self.y.high {
            self.y.high
        } else {
            self.y.low
        };
        let (from, to, at) = (
            self.y.place(inside.1),
            self.y.place(outside.1),
            self.y.place(edge),
        );
        let part = (at - from) / (to - from);
        let x = if self.x.log {
            inside.0 * (outside.0 / inside.0).powf(part)
        } else {
            inside.0 + (outside.0 - inside.0) * part
        };
        (x, edge)
    }

    /// Draws a dot.
    pub(crate) fn dot(&self, plot: &mut Plot, x: f64, y: f64, color: &str) {
        let (x, y) = self.at(x, y);
        let _ = writeln!(
            plot.svg,
            r#"<circle cx="{x:.1}" cy="{y:.1}" r="4" fill="{color}"/>"#
        );
    }

    /// Draws a filled cell between two corners.
    pub(crate) fn cell(&self, plot: &mut Plot, low: (f64, f64), high: (f64, f64), color: &str) {
        let (a, b) = (self.at(low.0, low.1), self.at(high.0, high.1));
        // No antialiasing of edges, which would show gaps between neighbours.
        let style = format!(r#"fill="{color}" shape-rendering="crispEdges""#);
        plot.rect(a.0, b.1, b.0 - a.0, a.1 - b.1, &style);
    }
}
