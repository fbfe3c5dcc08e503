//! A sweep as a picture for a paper: lines over sizes, ranks or delays, or bars of one place.

use std::collections::BTreeSet;

use super::{Quantity, Sweep, SweepRow};
use crate::svg::{
    Anchor, At, GREY, LINE, MARGIN, Svg, TEXT, bytes as size, exponent, nice_step, number, width,
};
use crate::{Caption, Unit};
use oneport::internal::numbers::truncated;

/// Colours of lines. Fifteen lines look different in grey, too: five shapes, filled or not, and
/// dashes after the last colour.
const COLORS: [&str; 10] = [
    "#0b6bcb", "#c8374b", "#1f8a4d", "#8a4fc4", "#b45f06", "#0f7d7f", "#7a5c3e", "#c2379b",
    "#4b5563", "#66740a",
];
const DASHES: [&str; 4] = ["", "6 3", "2 3", "8 3 2 3"];

/// Size of the area of the lines.
const ROOM: (f64, f64) = (420.0, 280.0);
const MIN_ROOM: f64 = 140.0;
/// The least part of the width that the area of the lines has beside their names: where it would
/// have less, the names stand below it.
const MIN_PART: f64 = 0.62;
/// The height of a name.
const NAME: f64 = TEXT + 2.0;

/// An axis from `low` to `high`, drawn from `from` to `to`. It is logarithmic unless it starts at
/// 0.
struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    fn new(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Axis {
        let (mut low, mut high) = (f64::INFINITY, 0.0f64);
        for value in values.filter(|&value| value > 0.0) {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            (low, high) = (1.0, 10.0);
        }
        // A single value stands in the middle.
        let pad = if high / low < 1.3 { 1.3 } else { 1.06 };
        Axis {
            low: low / pad,
            high: high * pad,
            from,
            to,
        }
    }

    /// An axis from 0 to the largest of these values.
    fn from_zero(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Axis {
        Axis {
            low: 0.0,
            high: values.fold(0.0, f64::max).max(f64::MIN_POSITIVE),
            from,
            to,
        }
    }

    fn at(&self, value: f64) -> f64 {
        let part = match self.low {
            0.0 => value / self.high,
            low => (value.max(low) / low).ln() / (self.high / low).ln(),
        };
        self.from + part * (self.to - self.from)
    }

    /// Powers of ten, with 2 and 5 times them where there are few; round numbers at equal
    /// distances in a narrow range.
    fn decimals(&self) -> Vec<f64> {
        let (low, high) = (exponent(self.low), exponent(self.high) + 1);
        let ticks = |factors: &[f64]| -> Vec<f64> {
            let all = (low..=high).flat_map(|e| factors.iter().map(move |f| f * 10f64.powi(e)));
            all.filter(|t| (self.low..=self.high).contains(t)).collect()
        };
        let choices = [&[1.0][..], &[1.0, 2.0, 5.0]];
        let found = choices.into_iter().map(ticks);
        let mut enough = found.filter(|ticks| ticks.len() > 2);
        enough.next().unwrap_or_else(|| self.evenly(4.0))
    }

    /// At least `count` round numbers at equal distances.
    fn evenly(&self, count: f64) -> Vec<f64> {
        let step = nice_step(self.high - self.low, count);
        let ticks = (0u32..).map(|k| ((self.low / step).ceil() + f64::from(k)) * step);
        let limit = self.high * (1.0 + 1e-9);
        ticks.take_while(|&tick| tick <= limit).collect()
    }
}

/// What the horizontal axis of a plot has.
#[derive(Clone, Copy, PartialEq)]
enum Over {
    Delay,
    Size,
    Ranks,
}

impl Over {
    fn of(self, row: &SweepRow) -> f64 {
        match self {
            Over::Delay => row.late.unwrap_or(0.0),
            Over::Size => row.bytes as f64,
            Over::Ranks => row.ranks as f64,
        }
    }

    fn show(self, value: f64, unit: Unit) -> String {
        match self {
            Over::Delay => unit.show(value),
            Over::Size => size(truncated(value) as u64),
            Over::Ranks => value.to_string(),
        }
    }

    /// The places of ticks, and their texts: round times of delays, else values that are there,
    /// powers of two if possible, and every n-th that has room.
    fn ticks(self, mut values: Vec<f64>, axis: &Axis, unit: Unit) -> Vec<(f64, String)> {
        let named = |values: &[f64]| -> Vec<(f64, String)> {
            let named = values.iter();
            named.map(|&v| (axis.at(v), self.show(v, unit))).collect()
        };
        if self == Over::Delay {
            values = axis.evenly(((axis.to - axis.from) / 110.0).max(2.0));
        } else {
            let doubled = values.iter().copied();
            let doubled: Vec<f64> = doubled.filter(|v| v.log2().fract() == 0.0).collect();
            if doubled.len() > 2 {
                values = doubled;
            }
        }
        let fits = |ticks: &[(f64, String)]| {
            ticks.windows(2).all(|pair| {
                let [half, next] = [0, 1].map(|i| width(&pair[i].1, TEXT) / 2.0);
                pair[0].0 + half + 6.0 <= pair[1].0 - next
            })
        };
        for every in 1..values.len() {
            let some: Vec<f64> = values.iter().copied().step_by(every).collect();
            let ticks = named(&some);
            if fits(&ticks) {
                return ticks;
            }
        }
        named(&values[..values.len().min(1)])
    }
}

/// How the line of an algorithm looks.
struct Look {
    color: &'static str,
    dash: &'static str,
    shape: usize,
    is_hollow: bool,
    is_bold: bool,
}

impl Look {
    fn new(i: usize, is_bold: bool) -> Look {
        Look {
            color: COLORS[i % COLORS.len()],
            dash: DASHES[i / COLORS.len() % DASHES.len()],
            shape: i % 5,
            is_hollow: i / 5 % 2 == 1,
            is_bold,
        }
    }

    fn mark(&self, svg: &mut Svg, (x, y): (f64, f64)) {
        let r = if self.is_bold { 3.8 } else { 2.9 };
        let fill = if self.is_hollow { "#fff" } else { self.color };
        let paint = format!(
            "fill=\"{fill}\" stroke=\"{}\" stroke-width=\"1.1\"",
            self.color
        );
        let corners: &[(f64, f64)] = match self.shape {
            1 => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
            2 => &[(0.0, -1.2), (1.15, 0.9), (-1.15, 0.9)],
            3 => &[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)],
            4 => &[(0.0, 1.2), (1.15, -0.9), (-1.15, -0.9)],
            _ => {
                let (x, y, r) = (At(x), At(y), At(r));
                svg.raw(&format!(
                    "<circle cx=\"{x}\" cy=\"{y}\" r=\"{r}\" {paint}/>\n"
                ));
                return;
            }
        };
        let corners = corners.iter();
        let path = corners.map(|&(dx, dy)| format!("{} {}", At(x + dx * r), At(y + dy * r)));
        let path = path.collect::<Vec<_>>().join("L");
        svg.raw(&format!("<path d=\"M{path}Z\" {paint}/>\n"));
    }

    fn name(&self, svg: &mut Svg, at: (f64, f64), name: &str) {
        let weight = if self.is_bold {
            " font-weight=\"700\""
        } else {
            ""
        };
        let style = format!("fill=\"{}\"{weight}", self.color);
        svg.text(at, name, Anchor::Start, TEXT, &style);
    }
}

/// Draws the sweep as SVG: over the delay of one rank if there are such, over size, or over the
/// number of ranks if there is one size; of one place, bars. Dashed verticals mark where another
/// algorithm becomes the fastest. Lines are named beside their ends, or below them where there is
/// little room; those of schedules from files are bold. A dotted line of the same colour has the
/// least times. With `top`, only so many of the fastest are drawn besides schedules from files.
///
/// Quadratic in the number of rows. Of what else varies, the largest value is drawn, of
/// distributions the last name. Rows that do not have the quantity are left out.
pub fn plot(sweep: &Sweep, quantity: Quantity, top: Option<usize>, caption: &Caption) -> String {
    let drawn = Drawn::of(sweep, quantity, top);
    let places = drawn.places();
    if places.len() < 2 {
        return bars(&drawn, caption);
    }
    let mut svg = Svg::default();
    let area = Area::headed(&mut svg, &drawn, caption);
    let x = match drawn.over {
        Over::Delay => Axis::from_zero(places.iter().copied(), area.left, area.right()),
        _ => Axis::new(places.iter().copied(), area.left, area.right()),
    };
    let y = Axis::new(drawn.heights(), area.bottom(), area.top);
    frame(&mut svg, &drawn, &area, places, [&x, &y]);
    crossovers(&mut svg, &drawn, &area, &x);
    let ends = lines(&mut svg, &drawn, [&x, &y]);
    let bottom = if area.is_below {
        name_below(&mut svg, &area, ends)
    } else {
        name_beside(&mut svg, &area, ends);
        area.bottom() + 2.0 * LINE
    };
    svg.finish(area.whole, bottom + MARGIN, caption)
}

/// What is drawn of a sweep.
struct Drawn<'a> {
    sweep: &'a Sweep,
    quantity: Quantity,
    over: Over,
    /// What is drawn of that which varies, too.
    ranks: usize,
    bytes: u64,
    dist: Option<&'a str>,
    /// The rows, each with its value.
    rows: Vec<(&'a SweepRow, f64)>,
    /// The algorithms.
    names: Vec<&'a str>,
}

impl<'a> Drawn<'a> {
    fn of(sweep: &'a Sweep, quantity: Quantity, top: Option<usize>) -> Drawn<'a> {
        let points = sweep.points();
        let several = |different: BTreeSet<u64>| different.len() > 1;
        let mut drawn = Drawn {
            sweep,
            quantity,
            over: match () {
                () if points.iter().any(|point| point.late.is_some()) => Over::Delay,
                () if several(points.iter().map(|point| point.bytes).collect()) => Over::Size,
                () => Over::Ranks,
            },
            ranks: points.iter().map(|point| point.ranks).max().unwrap_or(0),
            bytes: points.iter().map(|point| point.bytes).max().unwrap_or(0),
            dist: points.iter().map(|point| point.dist).max().flatten(),
            rows: Vec::new(),
            names: Vec::new(),
        };
        let rows = sweep.rows.iter().filter(|row| drawn.has(row));
        let rows = rows.filter_map(|row| Some((row, sweep.quantity(row, quantity)?)));
        let mut rows: Vec<_> = rows.collect();
        drawn.names = fastest(sweep, &rows, top);
        rows.retain(|(row, _)| drawn.names.contains(&&*row.algorithm));
        drawn.rows = rows;
        drawn
    }

    /// Whether the row stands at a place that is drawn.
    fn has(&self, row: &SweepRow) -> bool {
        (self.over == Over::Ranks || row.ranks == self.ranks)
            && (self.over == Over::Size || row.bytes == self.bytes)
            && row.dist.as_deref() == self.dist
    }

    fn show(&self, value: f64) -> String {
        self.quantity.show(value, self.sweep.unit())
    }

    /// The different places on the horizontal axis, ascending.
    fn places(&self) -> Vec<f64> {
        let rows = self.rows.iter();
        let mut places: Vec<f64> = rows.map(|(row, _)| self.over.of(row)).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        places
    }

    /// The least time of a row, where it is drawn, too.
    fn least(&self, row: &SweepRow) -> Option<f64> {
        match self.quantity {
            Quantity::Time => row.late.and(row.least),
            _ => None,
        }
    }

    /// All values on the vertical axis.
    fn heights(&self) -> impl Iterator<Item = f64> {
        let rows = self.rows.iter();
        rows.flat_map(|&(row, value)| [Some(value), self.least(row)])
            .flatten()
    }

    /// What the horizontal axis has, and where this is drawn of what else varies.
    fn words(&self) -> String {
        let mut words = match self.over {
            Over::Delay => "one rank is late by",
            Over::Size => "size",
            Over::Ranks => "ranks",
        }
        .to_string();
        let several_ranks = self.sweep.rows.iter().any(|row| row.ranks != self.ranks);
        if self.over != Over::Ranks && several_ranks {
            words += &format!(", on {} ranks", self.ranks);
        }
        if let Some(dist) = self.dist {
            words += &format!(", blocks {dist}");
        }
        words
    }
}

/// Where the lines are drawn.
struct Area {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
    /// The width of the picture.
    whole: f64,
    /// Whether the names of the lines stand below it, not beside it.
    is_below: bool,
}

impl Area {
    /// The area below what stands above it, which is written. Labels and names have their room
    /// beside it.
    fn headed(svg: &mut Svg, drawn: &Drawn<'_>, caption: &Caption) -> Area {
        let labels = Axis::new(drawn.heights(), 0.0, 1.0).decimals();
        let labels = labels
            .into_iter()
            .map(|tick| width(&drawn.show(tick), TEXT));
        let left = MARGIN + labels.fold(0.0, f64::max) + 6.0;
        let widths = drawn.names.iter().map(|name| width(name, TEXT) * 1.05);
        let beside = widths.fold(0.0, f64::max) + 12.0 + MARGIN;
        let is_below = caption
            .room
            .is_some_and(|room| room - left - beside < MIN_PART * room);
        let beside = if is_below { MARGIN } else { beside };
        let width = caption
            .room
            .map_or(ROOM.0, |room| (room - left - beside).max(MIN_ROOM));
        let whole = left + width + beside;
        // Names beside the lines have the height of the area to stand in.
        let named = if is_below { 0 } else { drawn.names.len() };
        Area {
            left,
            top: head(svg, caption, drawn.quantity, left, whole),
            width,
            height: ROOM.1.min(0.8 * width).max(NAME * named as f64),
            whole,
            is_below,
        }
    }

    fn right(&self) -> f64 {
        self.left + self.width
    }

    fn bottom(&self) -> f64 {
        self.top + self.height
    }
}

/// Writes the caption and the title of the values, and returns where the picture goes on.
fn head(svg: &mut Svg, caption: &Caption, quantity: Quantity, left: f64, whole: f64) -> f64 {
    let top = if caption.title.is_empty() && caption.lines.is_empty() {
        MARGIN
    } else {
        svg.caption(caption, whole) + 4.0
    };
    let title = quantity.title();
    svg.text((left, top + 8.0), title, Anchor::Start, TEXT, GREY);
    top + LINE
}

/// Draws the border of the area, and its grid with the labels of both axes.
fn frame(svg: &mut Svg, drawn: &Drawn<'_>, area: &Area, places: Vec<f64>, [x, y]: [&Axis; 2]) {
    let (left, right, top, bottom) = (area.left, area.right(), area.top, area.bottom());
    let grid = "stroke=\"#ddd\"";
    for tick in y.decimals() {
        let (at, text) = (y.at(tick), drawn.show(tick));
        svg.line((left, at), (right, at), grid);
        svg.text((left - 6.0, at + 4.0), &text, Anchor::End, TEXT, GREY);
    }
    for (at, text) in drawn.over.ticks(places, x, drawn.sweep.unit()) {
        svg.line((at, top), (at, bottom), grid);
        svg.text((at, bottom + LINE), &text, Anchor::Middle, TEXT, GREY);
    }
    let middle = ((left + right) / 2.0, bottom + 2.0 * LINE);
    svg.text(middle, &drawn.words(), Anchor::Middle, TEXT, GREY);
    let size = (area.width, area.height);
    svg.rect((left, top), size, "fill=\"none\" stroke=\"#999\"");
}

/// Where a line ends, its name, and how it looks.
type End<'a> = ((f64, f64), &'a str, Look);

/// Draws a line for each algorithm, and a dotted one of its least times. The ends are returned from
/// the highest down.
fn lines<'a>(svg: &mut Svg, drawn: &Drawn<'a>, [x, y]: [&Axis; 2]) -> Vec<End<'a>> {
    let mut ends = Vec::new();
    for (i, &name) in drawn.names.iter().enumerate() {
        let rows = || drawn.rows.iter().filter(|(row, _)| row.algorithm == name);
        let look = Look::new(i, rows().any(|(row, _)| row.own));
        let line_of = |value: &dyn Fn(&SweepRow, f64) -> Option<f64>| {
            let at = |&(row, v): &(&SweepRow, f64)| {
                Some((x.at(drawn.over.of(row)), y.at(value(row, v)?)))
            };
            let mut line: Vec<(f64, f64)> = rows().filter_map(at).collect();
            line.sort_by(|a, b| a.0.total_cmp(&b.0));
            line
        };
        let line = line_of(&|_, value| Some(value));
        let Some(&last) = line.last() else { continue };
        let least = line_of(&|row, _| drawn.least(row));
        let bold = if look.is_bold { "3" } else { "1.4" };
        for (line, width, dash) in [(&line, bold, look.dash), (&least, "0.9", "1.5 2")] {
            let points = line.iter().map(|&(x, y)| format!("{} {}", At(x), At(y)));
            let path: Vec<_> = points.collect();
            if !path.is_empty() {
                svg.raw(&format!(
                    "<path d=\"M{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{width}\" stroke-dasharray=\"{dash}\"/>\n",
                    path.join("L"), look.color
                ));
            }
        }
        for at in line {
            look.mark(svg, at);
        }
        ends.push((last, name, look));
    }
    ends.sort_by(|a, b| a.0.1.total_cmp(&b.0.1));
    ends
}

/// Names the lines in rows below the area, and returns where the last row stands.
fn name_below(svg: &mut Svg, area: &Area, ends: Vec<End<'_>>) -> f64 {
    let (mut at, mut down) = (area.left, area.bottom() + 3.5 * LINE);
    for (_, name, look) in ends {
        let needed = 18.0 + width(name, TEXT) * 1.05;
        if at > area.left && at + needed > area.whole - MARGIN {
            (at, down) = (area.left, down + LINE);
        }
        look.mark(svg, (at + 5.0, down - 4.0));
        look.name(svg, (at + 13.0, down), name);
        at += needed + 8.0;
    }
    down
}

/// Names the lines beside their ends, moved apart: up from the last one, and down again where that
/// is too far.
fn name_beside(svg: &mut Svg, area: &Area, ends: Vec<End<'_>>) {
    let mut heights: Vec<f64> = ends.iter().map(|(end, ..)| end.1).collect();
    let mut limit = area.bottom();
    for at in heights.iter_mut().rev() {
        *at = at.min(limit);
        limit = *at - NAME;
    }
    let mut least = area.top;
    for ((end, name, look), at) in ends.into_iter().zip(heights) {
        let at = at.max(least);
        least = at + NAME;
        let style = format!("stroke=\"{}\" stroke-width=\"0.8\"", look.color);
        svg.line(end, (area.right() + 8.0, at), &style);
        look.name(svg, (area.right() + 11.0, at + 4.0), name);
    }
}

/// The algorithms to draw, in the order of the sweep: those that are the least times slower than
/// the best on the (geometric) average, and schedules from files.
fn fastest<'a>(sweep: &'a Sweep, rows: &[(&SweepRow, f64)], top: Option<usize>) -> Vec<&'a str> {
    let names = sweep.algorithms().into_iter().filter_map(|name| {
        let own = rows.iter().filter(|(row, _)| row.algorithm == name);
        let ratios: Vec<f64> = own
            .filter_map(|(row, _)| sweep.quantity(row, Quantity::Ratio))
            .collect();
        let behind = ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64;
        let own = rows.iter().any(|(row, _)| row.own && row.algorithm == name);
        (!ratios.is_empty()).then_some((name, own, behind))
    });
    let names: Vec<_> = names.collect();
    let rivals = names.iter().filter(|(_, own, _)| !own);
    let mut behind: Vec<f64> = rivals.map(|(.., behind)| *behind).collect();
    behind.sort_by(f64::total_cmp);
    let mut left = top.unwrap_or(names.len());
    let limit = left.checked_sub(1).and_then(|last| behind.get(last));
    let limit = limit.copied().unwrap_or(f64::INFINITY);
    let mut is_drawn = |own: bool, behind: f64| {
        let is_fast = !own && behind <= limit && left > 0;
        left -= usize::from(is_fast);
        own || is_fast
    };
    let drawn = names
        .iter()
        .filter(|(_, own, behind)| is_drawn(*own, *behind));
    drawn.map(|(name, ..)| *name).collect()
}

/// Draws a bar for each row, the fastest first.
fn bars(drawn: &Drawn<'_>, caption: &Caption) -> String {
    let mut rows = drawn.rows.clone();
    rows.sort_by(|a, b| a.0.value().total_cmp(&b.0.value()));
    let widest = |texts: &mut dyn Iterator<Item = String>| {
        texts.fold(0.0, |most: f64, text| most.max(width(&text, TEXT) * 1.05))
    };
    let left = MARGIN + 6.0 + widest(&mut rows.iter().map(|(row, _)| row.algorithm.clone()));
    let beside = 6.0 + MARGIN + widest(&mut rows.iter().map(|(_, value)| drawn.show(*value)));
    let room = caption.room.map_or(ROOM.0, |room| room - left - beside);
    let whole = left + room.max(MIN_ROOM / 2.0) + beside;
    let mut svg = Svg::default();
    let mut down = head(&mut svg, caption, drawn.quantity, left, whole);
    let values = rows.iter().map(|(_, value)| *value);
    let x = Axis::from_zero(values, left, whole - beside);
    for &(row, value) in &rows {
        let base = down + 12.0;
        let (color, weight) = if row.own {
            ("#0b6bcb", " font-weight=\"700\"")
        } else {
            ("#8fa3b8", "")
        };
        let style = format!("fill=\"#222\"{weight}");
        svg.text(
            (left - 6.0, base),
            &row.algorithm,
            Anchor::End,
            TEXT,
            &style,
        );
        let size = (x.at(value) - left, LINE - 5.0);
        svg.rect((left, down + 2.0), size, &format!("fill=\"{color}\""));
        let at = (x.at(value) + 6.0, base);
        svg.text(at, &drawn.show(value), Anchor::Start, TEXT, &style);
        down += LINE;
    }
    svg.finish(whole, down + MARGIN, caption)
}

impl Quantity {
    fn title(self) -> &'static str {
        match self {
            Quantity::Time => "time",
            Quantity::Ratio => "time over the best",
            Quantity::Bound => "time over the bound",
            Quantity::Bandwidth => "size over time",
        }
    }

    fn show(self, value: f64, unit: Unit) -> String {
        match (self, unit) {
            (Quantity::Time, _) => unit.show(value),
            (Quantity::Bandwidth, Unit::Nanoseconds) => format!("{} GB/s", number(value, 4)),
            _ => number(value, 4),
        }
    }
}

/// Marks where the fastest algorithm changes between two neighbours on the axis.
fn crossovers(svg: &mut Svg, drawn: &Drawn<'_>, area: &Area, x: &Axis) {
    let leaders = drawn.sweep.leaders().into_iter().map(|leader| leader.row);
    let leaders = leaders.filter(|row| drawn.has(row));
    let best = leaders.map(|row| (drawn.over.of(row), row));
    let mut best: Vec<_> = best.collect();
    best.sort_by(|a, b| a.0.total_cmp(&b.0));
    for pair in best.windows(2) {
        let [(from, before), (to, after)] = pair else {
            continue;
        };
        if before.algorithm != after.algorithm {
            let at = (x.at(*from) + x.at(*to)) / 2.0;
            let style = "stroke=\"#777\" stroke-dasharray=\"4 4\"";
            svg.line((at, area.top), (at, area.bottom()), style);
        }
    }
}
