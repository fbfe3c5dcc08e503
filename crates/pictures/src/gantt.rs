//! Gantt charts: the activities of every rank's ports over time.
//!
//! There is one row per rank. A unidirectional rank has one lane in its row, a bidirectional rank
//! one lane out and one lane in, and a `k`-ported rank `k` times as many. A computation fills the
//! whole row, because nothing else happens on the rank meanwhile. If computation overlaps
//! communication, computations have lanes of their own. Below the ranks there is one row per port
//! that ranks share.

use super::legend::{
    Legend, color, color_number, frame, mark, part_name, part_word, styles, wait_mark,
};
use super::svg::{
    Anchor, GREY, LINE, MARGIN, Svg, TEXT, Unit, bytes, nice_step, number, scale, width,
};
use super::trace::{Activity, Source, Trace, Wait, What};
use super::{Caption, MAX_BOXES};
use oneport::error::{Error, Result};
use oneport::internal::numbers::truncated;

/// Maximal height in pixels; many programs that show pictures stop at 2^15.
const MAX_HEIGHT: f64 = 30_000.0;

/// Size of the names of ports that ranks share.
const SHARED_NAME: f64 = 9.0;

const MIN_WIDTH: f64 = 760.0;
const MIN_ROOM: f64 = 120.0;
const MAX_WIDTH: f64 = 3600.0;
/// Width limit for runs. Their times vary so much that space for short transfers would make charts
/// too wide.
const MAX_WIDTH_OF_RUN: f64 = 1600.0;

/// Draws a trace as an SVG document, with one row per rank and one colour per segment, or per first
/// block of a message where every rank has a block. Filled boxes
/// are receives, outlined boxes with end strips are sends, and dark boxes are computations. Boxes
/// that are wide enough show the peer, and all have details in a tooltip. Steps that take no time
/// are counted below the chart instead of drawn.
///
/// # Errors
/// When the chart would have more than [`MAX_BOXES`] boxes, or its lanes would be too many for the
/// height of a picture.
pub fn gantt(trace: &Trace, caption: &Caption) -> Result<String> {
    let boxes = trace.activities.iter().filter(|a| takes_time(a)).count();
    if boxes > MAX_BOXES {
        return Err(Error::usage(format!(
            "{boxes} boxes are more than the {MAX_BOXES} that a Gantt chart can have: take fewer ranks or segments, or write a trace (.json)"
        )));
    }
    let mut chart = Chart::new(trace);
    if let Some(room) = caption.room {
        chart.width = (room - chart.left - MARGIN - 24.0).max(MIN_ROOM);
    }
    if chart.rows_height() > MAX_HEIGHT {
        return Err(Error::usage(format!(
            "a Gantt chart of {} ranks with {} lanes each is too tall ({} pixels, {MAX_HEIGHT} at most): take fewer ranks, or write a trace (.json)",
            trace.ranks,
            chart.lanes,
            chart.rows_height()
        )));
    }
    Ok(chart.draw(caption))
}

/// Whether an activity has a box in the chart.
fn takes_time(a: &Activity) -> bool {
    a.end > a.start
}

struct Chart<'t> {
    trace: &'t Trace,
    part_word: &'static str,
    lanes: usize,
    /// By activity: its compute lane, if computations have lanes of their own.
    computing: Option<Vec<Option<usize>>>,
    lane_height: f64,
    gap: f64,
    left: f64,
    width: f64,
    end: f64,
    /// The time at the right edge: later than the end if steps wait there for ever.
    edge: f64,
}

impl<'t> Chart<'t> {
    fn new(trace: &'t Trace) -> Self {
        let ports = trace.lists();
        let separate_compute_lanes = computations_overlap(trace);
        let (computing, compute_lanes) = trace.compute_lanes();
        let lanes = ports + usize::from(separate_compute_lanes) * compute_lanes;
        let (lane_height, gap) = match (lanes, trace.ranks) {
            (1, ..=32) => (18.0, 4.0),
            (1, _) => (14.0, 3.0),
            (2, ..=32) => (13.0, 6.0),
            (2, _) => (12.0, 5.0),
            _ => (12.0, 7.0),
        };
        let end = trace.end();
        let transfers = trace.activities.iter().filter(|a| a.port.is_some());
        let timed = transfers.filter(|a| takes_time(a));
        let mut times: Vec<f64> = timed.map(Activity::time).collect();
        times.sort_unstable_by(f64::total_cmp);
        // Make most transfers wide enough for their peer's number.
        let (typical, max_width) = match trace.source {
            Source::Model => (times.len() / 8, MAX_WIDTH),
            Source::Wall => (times.len() / 2, MAX_WIDTH_OF_RUN),
        };
        let typical = times.get(typical).copied().unwrap_or(end);
        let preferred_width = if typical > 0.0 {
            end / typical * 30.0
        } else {
            0.0
        };
        let mut chart = Chart {
            trace,
            part_word: part_word(trace),
            lanes,
            computing: separate_compute_lanes.then_some(computing),
            lane_height,
            gap,
            left: 0.0,
            width: preferred_width.clamp(MIN_WIDTH, max_width),
            end,
            edge: trace.shown(),
        };
        let names = chart.names_width();
        let ranks = width(&(trace.ranks - 1).to_string(), TEXT);
        let shared = trace.shared_ports.iter();
        let shared = shared.map(|(name, _)| width(name, SHARED_NAME) + 5.0);
        let rows = shared.fold(ranks + names + 14.0, f64::max);
        chart.left = MARGIN + rows.max(width("rank", TEXT) + 10.0);
        chart
    }

    fn row_height(&self) -> f64 {
        self.lanes as f64 * self.lane_height + self.gap
    }

    fn rows_height(&self) -> f64 {
        let shared = self.trace.shared_ports.len() as f64;
        self.ranks_height() + shared * self.shared_height()
    }

    fn ranks_height(&self) -> f64 {
        self.trace.ranks as f64 * self.row_height()
    }

    /// The height of the row of a port that ranks share.
    fn shared_height(&self) -> f64 {
        self.lane_height + self.gap
    }

    /// The name of a lane; empty if a row has only one.
    fn lane_name(&self, lane: usize) -> String {
        let ports = self.trace.lists();
        match lane.checked_sub(ports) {
            _ if self.lanes == 1 => String::new(),
            None => self.trace.ports.list_name(lane),
            Some(0) if self.lanes == ports + 1 => "compute".into(),
            Some(n) => format!("compute {n}"),
        }
    }

    /// The width of the longest name of a lane.
    fn names_width(&self) -> f64 {
        let names = (0..self.lanes).map(|l| width(&self.lane_name(l), 8.0));
        names.fold(0.0, f64::max)
    }

    fn x(&self, time: f64) -> f64 {
        if self.edge > 0.0 {
            self.left + self.width * (time / self.edge)
        } else {
            self.left
        }
    }

    fn draw(&self, caption: &Caption) -> String {
        let mut svg = Svg::default();
        let shown = self.trace.activities.iter().filter(|a| takes_time(a));
        let legend = Legend::new(self.trace, shown);
        styles(&mut svg, &legend.classes());
        if self.trace.critical_path {
            svg.style(".critical{fill:none;stroke:#000}");
        }
        // The label of the last tick may extend slightly beyond the end.
        let room = self.left + self.width + MARGIN + 24.0;
        let top = svg.caption(caption, room) + 2.0 * LINE;
        let bottom = top + self.rows_height();
        self.rows(&mut svg, top);
        self.axis(&mut svg, top, bottom);
        for (i, a) in self.trace.activities.iter().enumerate() {
            if takes_time(a) {
                self.activity(&mut svg, i, a, top);
            }
        }
        for wait in &self.trace.waits {
            self.wait(&mut svg, wait, top);
        }
        self.shared_ports(&mut svg, top + self.ranks_height());
        let mut y = bottom + 2.0 * LINE + 14.0;
        y = legend.draw(&mut svg, y, room);
        if let Some(note) = self.untimed() {
            for line in super::svg::wrapped(&note, TEXT, room - 2.0 * MARGIN) {
                svg.text((MARGIN, y + 12.0), &line, Anchor::Start, TEXT, GREY);
                y += LINE;
            }
        }
        svg.finish(room, y + MARGIN, caption)
    }

    /// The note on activities without a box:
    /// `Not drawn, since they take no time: 12 combine, 3 send`.
    fn untimed(&self) -> Option<String> {
        let counts: Vec<String> = What::ALL
            .into_iter()
            .filter_map(|what| {
                let untimed = |a: &&Activity| a.what == what && !takes_time(a);
                let count = self.trace.activities.iter().filter(untimed).count();
                (count > 0).then(|| format!("{count} × {}", what.name()))
            })
            .collect();
        (!counts.is_empty())
            .then(|| format!("Not drawn, since they take no time: {}.", counts.join(", ")))
    }

    fn rows(&self, svg: &mut Svg, top: f64) {
        let heading = (self.left - 12.0, top - 6.0);
        svg.text(heading, "rank", Anchor::End, TEXT, GREY);
        let names = self.names_width();
        for rank in 0..self.trace.ranks {
            let y = top + rank as f64 * self.row_height();
            if rank % 2 == 0 {
                let size = (self.width, self.row_height());
                svg.rect((self.left, y), size, "fill=\"#f3f4f6\"");
            }
            let middle = y + self.row_height() / 2.0;
            let x = self.left - 6.0 - if names > 0.0 { names + 5.0 } else { 0.0 };
            svg.text((x, middle + 4.0), &rank.to_string(), Anchor::End, TEXT, "");
            for lane in 0..self.lanes {
                let name = self.lane_name(lane);
                if !name.is_empty() {
                    let y = y + self.gap / 2.0 + (lane as f64 + 0.5) * self.lane_height + 2.5;
                    let (at, grey) = ((self.left - 5.0, y), "fill=\"#666\"");
                    svg.text(at, &name, Anchor::End, 8.0, grey);
                }
            }
        }
    }

    /// The rows of the ports that ranks share.
    fn shared_ports(&self, svg: &mut Svg, mut y: f64) {
        for (name, activities) in &self.trace.shared_ports {
            let at = (self.left - 5.0, y + self.shared_height() / 2.0 + 3.5);
            svg.text(at, name, Anchor::End, SHARED_NAME, GREY);
            for a in activities.iter().map(|&i| &self.trace.activities[i]) {
                if takes_time(a) {
                    self.mark(svg, a, y + self.gap / 2.0, 1);
                }
            }
            y += self.shared_height();
        }
    }

    fn axis(&self, svg: &mut Svg, top: f64, bottom: f64) {
        let (unit, name) = scale(self.trace.unit, self.end);
        let end = self.end / unit;
        let step = if end > 0.0 {
            nice_step(end, self.width / 90.0)
        } else {
            1.0
        };
        let count = truncated(end / step * (1.0 + 1e-12));
        // The last time is always labelled; ordinary labels make room for it.
        let last = number(end, 6);
        let label_width = |text: &str| width(text, 11.0) + 8.0;
        for i in 0..=count + 1 {
            let time = if i > count { end } else { i as f64 * step };
            let x = self.x(time * unit);
            if i <= count && end > 0.0 && time > end * (1.0 - 1e-9) {
                continue;
            }
            let style = "stroke=\"#cfd3d8\" stroke-width=\"0.7\"";
            svg.line((x, top - 4.0), (x, bottom + 4.0), style);
            // Removes the rounding error of the sum of steps.
            let label = number(format!("{time:.9e}").parse().unwrap_or(time), 6);
            let room = (label_width(&label) + label_width(&last)) / 2.0;
            if i <= count && x + room > self.x(self.end) && end > 0.0 {
                continue;
            }
            svg.text((x, top - 7.0), &label, Anchor::Middle, 11.0, "");
            svg.text((x, bottom + 15.0), &label, Anchor::Middle, 11.0, "");
        }
        let what = match (self.trace.source, self.trace.unit) {
            (Source::Model, Unit::Plain) => "model time".to_string(),
            (Source::Model, Unit::Nanoseconds) => format!("model time in {name}"),
            (Source::Wall, _) => format!("wall-clock since the start, in {name}"),
        };
        let middle = (self.left + self.width / 2.0, bottom + 32.0);
        svg.text(middle, &what, Anchor::Middle, TEXT, GREY);
    }

    fn activity(&self, svg: &mut Svg, i: usize, a: &Activity, top: f64) {
        let row = top + a.rank as f64 * self.row_height() + self.gap / 2.0;
        let (from, lanes) = match (self.trace.list(a), &self.computing) {
            (Some(list), _) => (list, 1),
            (None, None) => (0, self.lanes),
            (None, Some(lanes)) => (self.trace.lists() + lanes[i].unwrap_or(0), 1),
        };
        self.mark(svg, a, row + from as f64 * self.lane_height, lanes);
    }

    /// Draws the box of a step that waits for ever: from where its lane is idle to the right edge.
    fn wait(&self, svg: &mut Svg, wait: &Wait, top: f64) {
        let list = wait.list(self.trace.ports);
        let lanes = list.map_or(self.lanes, |_| 1) as f64;
        let row = top + wait.rank as f64 * self.row_height() + self.gap / 2.0;
        let lane = row + list.unwrap_or(0) as f64 * self.lane_height;
        let at = (self.x(wait.since), lane + 0.5);
        let size = (self.x(self.edge) - at.0, lanes * self.lane_height - 1.0);
        let cycle = if wait.in_cycle { ", in the cycle" } else { "" };
        let doing = doing(wait.what, wait.peer);
        let title = format!(
            "rank {}, step {}: {doing}, waits for ever{cycle}",
            wait.rank, wait.step
        );
        svg.open("class=\"wait\"", &title);
        wait_mark(svg, wait.is_cause(), at, size);
        let short = match (wait.peer, wait.what) {
            (Some(peer), What::Send) => format!("→{peer}"),
            (Some(peer), What::Receive) => format!("←{peer}"),
            _ => wait.what.name().to_string(),
        };
        let font = label_size(self.lane_height);
        let fits = |text: &String| width(text, font) + 4.0 <= size.0;
        if let Some(text) = [format!("{short} waits"), short].iter().find(|t| fits(t)) {
            let middle = (at.0 + size.0 / 2.0, at.1 + size.1 / 2.0 + font * 0.36);
            svg.text(middle, text, Anchor::Middle, font, "fill=\"#222\"");
        }
        svg.close();
    }

    /// Draws the box of an activity that fills `lanes` lanes from `y` on.
    fn mark(&self, svg: &mut Svg, a: &Activity, y: f64, lanes: usize) {
        let x = self.x(a.start);
        let size = (self.x(a.end) - x, lanes as f64 * self.lane_height);
        // Leave space between neighbouring lanes.
        let (y, size) = (y + 0.5, (size.0, size.1 - 1.0));
        let class = a.what.name().replace(" and ", "-");
        svg.open(&format!("class=\"{class}\""), &self.describe(a));
        let n = color(color_number(self.trace, a));
        mark(svg, a.what, n, (x, y), size);
        if let Some(label) = label(a, size.0) {
            let class = if a.what == What::Send {
                "fill=\"#222\"".to_string()
            } else {
                format!("class=\"t{n}\"")
            };
            let (font, part) = match a.what {
                // Above the dark stripe.
                What::ReceiveCombine => (label_size(self.lane_height) - 1.0, 0.38),
                _ => (label_size(self.lane_height), 0.5),
            };
            let middle = (x + size.0 / 2.0, y + size.1 * part + font * 0.36);
            svg.text(middle, &label, Anchor::Middle, font, &class);
        }
        if a.critical && self.trace.critical_path {
            frame(svg, (x, y), size);
        }
        svg.close();
    }

    fn describe(&self, a: &Activity) -> String {
        let doing = doing(a.what, a.peer);
        let mut text = format!("rank {}, step {}: {doing}", a.rank, a.step);
        text += &format!(", {}", bytes(a.bytes));
        if let Some(part) = part_name(self.trace, self.part_word, a) {
            text += &format!(", {part}");
        }
        if let (Some(port), true) = (a.port, self.trace.ports.k() > 1) {
            text += &format!(", port {port}");
        }
        let (unit, name) = scale(self.trace.unit, self.end);
        let show = |t: f64| number(t / unit, 7);
        let space = if name.is_empty() { "" } else { " " };
        let (start, end, time) = (show(a.start), show(a.end), show(a.time()));
        text + &format!(", {start} to {end}{space}{name} ({time})")
    }
}

/// A step in words: `send to 3`, `combine what came from 1`.
pub(super) fn doing(what: What, peer: Option<usize>) -> String {
    let name = what.name();
    match (peer, what) {
        (Some(peer), What::Send) => format!("{name} to {peer}"),
        (Some(peer), What::Receive | What::ReceiveCombine) => format!("{name} from {peer}"),
        (Some(peer), _) => format!("{name} what came from {peer}"),
        (None, _) => name.to_string(),
    }
}

/// Whether a computation overlaps a transfer or another computation of the same rank in time.
pub(super) fn computations_overlap(trace: &Trace) -> bool {
    let mut of_rank: Vec<Vec<&Activity>> = vec![Vec::new(); trace.ranks];
    for a in trace.activities.iter().filter(|a| takes_time(a)) {
        of_rank[a.rank].push(a);
    }
    of_rank.iter_mut().any(|activities| {
        activities.sort_by(|a, b| a.start.total_cmp(&b.start));
        // The latest ends so far, of all activities and of computations.
        let (mut any, mut computed) = (0.0, 0.0);
        activities.iter().any(|a| {
            let compute = a.port.is_none();
            let overlaps = a.start < computed || (compute && a.start < any);
            any = f64::max(any, a.end);
            if compute {
                computed = f64::max(computed, a.end);
            }
            overlaps
        })
    })
}

fn label_size(lane_height: f64) -> f64 {
    (lane_height - 3.0).min(10.0)
}

/// The label of a box: the peer with an arrow, the peer alone, or nothing, as space permits.
fn label(a: &Activity, room: f64) -> Option<String> {
    a.port?;
    let peer = a.peer?.to_string();
    let (arrow, room) = match a.what {
        What::Send => ('→', room - 8.0),
        _ => ('←', room - 3.0),
    };
    let long = format!("{arrow}{peer}");
    let font = 9.5;
    [long, peer].into_iter().find(|t| width(t, font) <= room)
}
