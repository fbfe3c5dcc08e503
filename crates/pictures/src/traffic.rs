//! Traffic between ranks, drawn as a heat map of the bytes that every rank sends to every other.

use std::collections::BTreeMap;

use super::svg::{Anchor, At, GREY, LINE, MARGIN, Svg, TEXT, bytes, channel, counted, hex, width};
use super::{Caption, MAX_BOXES};
use oneport::error::{Error, Result};
use oneport::internal::numbers::truncated;
use oneport::machine::Levels;
use oneport::schedule::{Schedule, Step};

/// Traffic from one rank to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Flow {
    pub(crate) messages: usize,
    pub(crate) bytes: u64,
}

impl Flow {
    /// The flow in words, for a tooltip.
    pub(crate) fn describe(&self, from: usize, to: usize) -> String {
        let messages = counted(self.messages, "message");
        format!(
            "rank {from} to rank {to}: {messages}, {}",
            bytes(self.bytes)
        )
    }
}

/// Traffic between ranks whose innermost common group is of one level of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, schemars::JsonSchema, serde::Serialize)]
pub struct LevelTraffic {
    /// Number of non-empty messages.
    pub messages: usize,
    /// Bytes of all messages.
    pub bytes: u64,
    /// Bytes that the rank with the most of them sends.
    pub max_sent: u64,
}

/// Traffic between all pairs of ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traffic {
    ranks: usize,
    flows: BTreeMap<(usize, usize), Flow>,
    empty: usize,
}

impl Traffic {
    /// The traffic of a schedule, which need not be correct or complete.
    pub fn new(schedule: &Schedule) -> Traffic {
        let mut traffic = Traffic {
            ranks: schedule.ranks(),
            flows: BTreeMap::new(),
            empty: 0,
        };
        // The tokens of a barrier are no data.
        let element_bytes = if schedule.collective().kind().has_data() {
            schedule.element_bytes()
        } else {
            0
        };
        for (from, program) in schedule.programs().iter().enumerate() {
            for step in program {
                match step {
                    Step::Send { .. } if step.is_empty() => traffic.empty += 1,
                    Step::Send { to, .. } => {
                        let flow = traffic.flows.entry((from, *to)).or_default();
                        flow.messages += 1;
                        let bytes = (step.len() as u64).saturating_mul(element_bytes);
                        flow.bytes = flow.bytes.saturating_add(bytes);
                    }
                    _ => {}
                }
            }
        }
        traffic
    }

    /// Bytes from one rank to another, at most `u64::MAX`.
    pub fn bytes(&self, from: usize, to: usize) -> u64 {
        self.flows.get(&(from, to)).map_or(0, |f| f.bytes)
    }

    /// Number of non-empty messages from one rank to another.
    pub fn messages(&self, from: usize, to: usize) -> usize {
        self.flows.get(&(from, to)).map_or(0, |f| f.messages)
    }

    /// The traffic of each level, from the innermost to the outermost.
    ///
    /// # Panics
    /// When the levels are those of fewer ranks.
    pub fn by_level(&self, levels: &Levels) -> Vec<LevelTraffic> {
        let mut all = vec![LevelTraffic::default(); levels.count()];
        let mut sent = vec![(0, 0u64); levels.count()];
        // Flows are in the order of their senders.
        for (&(from, to), flow) in &self.flows {
            let level = levels.of(from, to);
            let (traffic, (sender, bytes)) = (&mut all[level], &mut sent[level]);
            if *sender != from {
                (*sender, *bytes) = (from, 0);
            }
            *bytes = bytes.saturating_add(flow.bytes);
            traffic.messages += flow.messages;
            traffic.bytes = traffic.bytes.saturating_add(flow.bytes);
            traffic.max_sent = traffic.max_sent.max(*bytes);
        }
        all
    }
}

/// Size of cells that show their bytes.
const LABELLED: (f64, f64) = (58.0, 26.0);

/// Draws the traffic as an SVG document: one row per sender, one column per receiver, and darker
/// cells for more bytes.
///
/// # Errors
/// When more than [`MAX_BOXES`] pairs of ranks exchange messages, or there are more than 2048
/// ranks.
pub fn traffic(traffic: &Traffic, caption: &Caption) -> Result<String> {
    const MAX_RANKS: usize = 2048;
    let (p, cells) = (traffic.ranks, traffic.flows.len());
    if p > MAX_RANKS || cells > MAX_BOXES {
        return Err(Error::usage(format!(
            "a picture of the traffic between {p} ranks, {cells} pairs of which exchange messages, is too large (at most {MAX_RANKS} ranks and {MAX_BOXES} pairs): take fewer ranks"
        )));
    }
    let labelled = p <= 16;
    let cell = if labelled {
        LABELLED
    } else {
        let side = (900.0 / p as f64).clamp(7.0, 26.0);
        (side, side)
    };
    let mut svg = Svg::default();
    let rank_width = width(&(p - 1).to_string(), 11.0);
    let left = MARGIN + LINE + rank_width + 8.0;
    let size = (cell.0 * p as f64, cell.1 * p as f64);
    let room = (left + size.0 + MARGIN).max(600.0);
    let top = svg.caption(caption, room) + 2.0 * LINE + 6.0;
    let grid = Grid {
        ranks: p,
        corner: (left, top),
        cell,
        size,
        labelled,
    };
    grid.axes(&mut svg, rank_width);
    svg.rect(grid.corner, size, "fill=\"#f3f4f6\" stroke=\"#9aa0a6\"");
    let max_bytes = traffic.flows.values().map(|f| f.bytes).max().unwrap_or(0);
    for (&(from, to), flow) in &traffic.flows {
        let part = flow.bytes as f64 / max_bytes.max(1) as f64;
        grid.flow(&mut svg, (from, to), flow, part);
    }
    let mut y = top + size.1 + 12.0;
    if max_bytes > 0 {
        y = scale(&mut svg, (left, y), max_bytes) + 4.0;
    }
    if traffic.empty > 0 {
        let text = format!("Not shown: {} empty messages.", traffic.empty);
        svg.text((left, y + 12.0), &text, Anchor::Start, TEXT, GREY);
        y += LINE;
    }
    Ok(svg.finish(room, y + MARGIN, caption))
}

/// The cells of the heat map.
struct Grid {
    ranks: usize,
    /// The upper left corner.
    corner: (f64, f64),
    cell: (f64, f64),
    /// Size of all cells together.
    size: (f64, f64),
    labelled: bool,
}

impl Grid {
    /// Draws the axes, with as many rank numbers as fit; the widest is `rank_width` wide.
    fn axes(&self, svg: &mut Svg, rank_width: f64) {
        let (left, top) = self.corner;
        let middle_of = |rank: usize, side: f64| (rank as f64 + 0.5) * side;
        let every = |side: f64, needed: f64| truncated((needed / side).ceil()).max(1);
        let (across, down) = (
            every(self.cell.0, rank_width + 6.0),
            every(self.cell.1, 14.0),
        );
        let middle = left + self.size.0 / 2.0;
        svg.text((middle, top - 22.0), "to rank", Anchor::Middle, TEXT, GREY);
        for to in (0..self.ranks).step_by(across) {
            let at = (left + middle_of(to, self.cell.0), top - 6.0);
            svg.text(at, &to.to_string(), Anchor::Middle, 11.0, "");
        }
        let (x, y) = (MARGIN + 10.0, top + self.size.1 / 2.0);
        let rotated = format!("{GREY} transform=\"rotate(-90 {} {})\"", At(x), At(y));
        svg.text((x, y), "from rank", Anchor::Middle, TEXT, &rotated);
        for from in (0..self.ranks).step_by(down) {
            let at = (left - 6.0, top + middle_of(from, self.cell.1) + 4.0);
            svg.text(at, &from.to_string(), Anchor::End, 11.0, "");
        }
    }

    /// Draws the traffic of one pair, whose bytes are the share `part` of the maximum.
    fn flow(&self, svg: &mut Svg, (from, to): (usize, usize), flow: &Flow, part: f64) {
        let ((left, top), cell) = (self.corner, self.cell);
        let at = (left + cell.0 * to as f64, top + cell.1 * from as f64);
        svg.open("class=\"flow\"", &flow.describe(from, to));
        let inner = (cell.0 - 1.0, cell.1 - 1.0);
        let fill = format!("fill=\"{}\"", shade(part));
        svg.rect((at.0 + 0.5, at.1 + 0.5), inner, &fill);
        if self.labelled {
            let at = (at.0 + cell.0 / 2.0, at.1 + cell.1 / 2.0 + 3.5);
            let ink = if part > 0.5 { "fill=\"#fff\"" } else { "" };
            svg.text(at, &bytes(flow.bytes), Anchor::Middle, 10.0, ink);
        }
        svg.close();
    }
}

/// Draws the colour scale from 0 bytes to the maximum; returns the position of its lower end.
fn scale(svg: &mut Svg, (x, y): (f64, f64), max_bytes: u64) -> f64 {
    const STEPS: usize = 24;
    svg.text((x, y + 11.0), "0", Anchor::Start, 11.0, "");
    for i in 0..STEPS {
        let fill = format!("fill=\"{}\"", shade(i as f64 / (STEPS - 1) as f64));
        svg.rect((x + 14.0 + 6.0 * i as f64, y), (6.3, 13.0), &fill);
    }
    let end = x + 14.0 + 6.0 * STEPS as f64;
    let most = bytes(max_bytes);
    svg.text((end + 6.0, y + 11.0), &most, Anchor::Start, 11.0, "");
    y + LINE
}

/// Light to dark blue; no traffic is drawn in white.
fn shade(part: f64) -> String {
    let mix = |from: f64, to: f64| channel(from + (to - from) * part.clamp(0.0, 1.0));
    hex([mix(222.0, 8.0), mix(235.0, 48.0), mix(247.0, 107.0)])
}
