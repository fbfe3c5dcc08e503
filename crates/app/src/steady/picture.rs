//! Draws a steady-state platform: nodes on a circle, links as arrows.

use oneport::internal::numbers::truncated;
use oneport_pictures::svg::{Anchor, MARGIN, Svg, TEXT, number};
use oneport_steady::{Fraction, Route, Solution, show_short};

use crate::draw::FrameArgs;
use crate::prelude::*;

/// Distance of opposite links from the line between their nodes.
const SIDE: f64 = 3.0;
const RADIUS: f64 = 13.0;
/// Candidate positions of a label along its link, in order of preference.
const PARTS: [f64; 11] = [0.4, 0.45, 0.35, 0.5, 0.3, 0.55, 0.25, 0.6, 0.65, 0.7, 0.75];
/// Room of a node on the circle, and least radius.
const ARC: f64 = 90.0;
const MIN_RADIUS: f64 = 130.0;
const MAX_TREES: usize = 8;
const CHARACTER: f64 = 7.8;

const ARROWHEAD: &str = "<defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" \
    markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#456\"/></marker></defs>\n";

type Position = (f64, f64);

/// Centre, half the width and height, and text of a label.
type PictureLabel = (Position, (f64, f64), String);

/// Draws the platform of a steady-state solution as an SVG document, with nodes on a circle and an
/// arrow for each link. Wider and darker arrows mark links that are busy for a larger fraction of
/// the time; thin grey arrows are unused links. The label of a used link is the number of messages
/// per time unit, and all links have details in a tooltip. The caption lists the trees and their
/// weights, if they are few. Takes time quadratic in the number of used links, whose labels must
/// not overlap.
pub(super) fn platform_svg(solution: &Solution, frame: &FrameArgs, caller: &Caller) -> String {
    let platform = solution.platform();
    let messages = messages(solution);
    let radius = platform.nodes() as f64 * ARC / std::f64::consts::TAU;
    let radius = radius.clamp(MIN_RADIUS, 2000.0);
    let width = (2.0 * (radius + 40.0 + MARGIN)).max(460.0);
    let caption = frame.caption(caption(solution, truncated(width / CHARACTER), caller));
    let mut svg = Svg::default();
    let top = svg.caption(&caption, width);
    let circle = Circle {
        nodes: platform.nodes(),
        centre: (width / 2.0, top + radius + 40.0),
        radius,
    };
    svg.raw(ARROWHEAD);
    // Draw used links above unused ones.
    let mut order: Vec<usize> = (0..platform.edges().len()).collect();
    order.sort_by(|&a, &b| messages[a].cmp(&messages[b]));
    let used = |&e: &usize| !messages[e].is_zero();
    let lines = order.iter().copied().filter(used);
    let lines: Vec<Line> = lines.map(|e| circle.line(solution.link(e))).collect();
    let mut labels: Vec<PictureLabel> = Vec::new();
    for e in order {
        draw_link(
            &mut svg,
            solution,
            (&circle, &lines),
            e,
            &messages[e],
            &mut labels,
        );
    }
    // Draw labels above all lines, with a white outline.
    for ((x, y), _, label) in &labels {
        let style = "fill=\"#124\" stroke=\"#fff\" stroke-width=\"2.5\" stroke-linejoin=\"round\" paint-order=\"stroke\"";
        svg.text((*x, y + 3.0), label, Anchor::Middle, 9.0, style);
    }
    draw_nodes(&mut svg, solution, &circle);
    let height = circle.centre.1 + radius + 40.0 + MARGIN;
    svg.finish(width, height, &caption)
}

fn messages(solution: &Solution) -> Vec<Fraction> {
    let mut messages = vec![Fraction::ZERO; solution.platform().edges().len()];
    for (route, rate) in &solution.routes {
        for (e, m) in route.loads() {
            messages[e] += rate * Fraction::from(m);
        }
    }
    messages
}

/// Returns the caption, with lines of at most `characters` characters for the trees.
fn caption(solution: &Solution, characters: usize, caller: &Caller) -> Caption {
    let mut caption = Caption::new(format!(
        "series of {}, {} ports: {} a time unit",
        solution.operation.name(),
        solution.ports.name(),
        show_short(&solution.throughput)
    ))
    .source(caller.provenance())
    .line(format!(
        "{}, {}, {}; link labels: messages a time unit",
        counted(solution.platform().nodes(), "node"),
        counted(solution.platform().edges().len(), "link"),
        counted(solution.routes.len(), "tree")
    ));
    for line in trees(solution, characters) {
        caption = caption.line(line);
    }
    caption
}

struct Circle {
    nodes: usize,
    centre: Position,
    radius: f64,
}

impl Circle {
    fn at(&self, v: usize) -> Position {
        let turn = std::f64::consts::TAU * v as f64 / self.nodes as f64;
        let angle = turn - std::f64::consts::FRAC_PI_2;
        (
            self.centre.0 + self.radius * angle.cos(),
            self.centre.1 + self.radius * angle.sin(),
        )
    }

    /// The line of a link from border to border; those of opposite links are side by side.
    fn line(&self, (from, to): (usize, usize)) -> Line {
        let (a, b) = (self.at(from), self.at(to));
        let (dx, dy) = (b.0 - a.0, b.1 - a.1);
        let length = (dx * dx + dy * dy).sqrt().max(1.0);
        let (ux, uy) = (dx / length, dy / length);
        let shift = (-uy * SIDE, ux * SIDE);
        let along = |p: Position, far: f64| (p.0 + ux * far + shift.0, p.1 + uy * far + shift.1);
        Line {
            start: along(a, RADIUS),
            end: along(b, -RADIUS - 1.0),
            along: (ux, uy),
        }
    }
}

struct Line {
    start: Position,
    end: Position,
    along: Position,
}

impl Line {
    /// Whether it crosses a box of this centre, and half this width and height.
    fn crosses(&self, (x, y): Position, half: Position) -> bool {
        let (ux, uy) = self.along;
        let (dx, dy) = (x - self.start.0, y - self.start.1);
        let length = (self.end.0 - self.start.0) * ux + (self.end.1 - self.start.1) * uy;
        let (place, away) = (dx * ux + dy * uy, dx * uy - dy * ux);
        let reach = |a: f64, b: f64| a.abs() * half.0 + b.abs() * half.1;
        let within = -reach(ux, uy)..length + reach(ux, uy);
        away.abs() < reach(uy, ux) && within.contains(&place)
    }
}

/// Draws the arrow of edge `e`, which carries `messages` per time unit, and adds its label.
fn draw_link(
    svg: &mut Svg,
    solution: &Solution,
    (circle, lines): (&Circle, &[Line]),
    e: usize,
    messages: &Fraction,
    labels: &mut Vec<PictureLabel>,
) {
    let (from, to) = solution.link(e);
    let cost = &solution.platform().edges()[e].cost;
    let busy = messages.to_f64() * cost.to_f64();
    let line = circle.line((from, to));
    let (start, end) = (line.start, line.end);
    let title = format!(
        "{from} to {to}: cost {}, {} messages a time unit, busy {}% of the time",
        show_short(cost),
        show_short(messages),
        number(100.0 * busy, 4)
    );
    svg.open("class=\"link\"", &title);
    if messages.is_zero() {
        let grey =
            "stroke=\"#d5d8dc\" stroke-width=\"0.7\" marker-end=\"url(#head)\" opacity=\"0.6\"";
        svg.line(start, end, grey);
    } else {
        let width = 0.8 + 3.2 * busy.min(1.0);
        let style =
            format!("stroke=\"#456\" stroke-width=\"{width:.2}\" marker-end=\"url(#head)\"");
        svg.line(start, end, &style);
        let label = placed(&line, width, label_of(messages), (circle, lines), labels);
        labels.push(label);
    }
    svg.close();
}

/// Places a label beside the line of a link of this width, on the side of the opposite link only if
/// it must, where it overlaps as few nodes and other labels as possible, and then as few lines.
fn placed(
    line: &Line,
    width: f64,
    text: String,
    (circle, lines): (&Circle, &[Line]),
    others: &[PictureLabel],
) -> PictureLabel {
    let half = (2.6 * text.chars().count() as f64, 4.5);
    let (nx, ny) = (-line.along.1, line.along.0);
    let away = width / 2.0 + 2.0 + nx.abs() * half.0 + ny.abs() * half.1;
    let place = |(part, away): (f64, f64)| {
        let at = |start: f64, end: f64, n: f64| start + (end - start) * part + n * away;
        (
            at(line.start.0, line.end.0, nx),
            at(line.start.1, line.end.1, ny),
        )
    };
    let overlaps = |p: &Position, q: &Position, other: Position| {
        (p.0 - q.0).abs() < half.0 + other.0 && (p.1 - q.1).abs() < half.1 + other.1
    };
    let faults = |p: &Position| {
        let labels = others.iter().filter(|(q, other, _)| overlaps(p, q, *other));
        let nodes = (0..circle.nodes).map(|v| circle.at(v));
        let nodes = nodes.filter(|q| overlaps(p, q, (RADIUS, RADIUS)));
        let crossing = lines.iter().filter(|line| line.crosses(*p, half));
        (labels.count() + nodes.count(), crossing.count())
    };
    let sides = [away, -away, away + 9.0, -away - 2.0 * SIDE];
    let places = sides.into_iter();
    let places = places.flat_map(|away| PARTS.map(|part| place((part, away))));
    let best = places.min_by_key(faults);
    (best.unwrap_or(line.start), half, text)
}

fn draw_nodes(svg: &mut Svg, solution: &Solution, circle: &Circle) {
    let platform = solution.platform();
    for v in 0..circle.nodes {
        let (x, y) = circle.at(v);
        let fill = if v == platform.source() {
            "#f3c14b"
        } else if platform.targets().contains(&v) {
            "#e8eef7"
        } else {
            "#fff"
        };
        let corner = (x - RADIUS, y - RADIUS);
        let round = format!("rx=\"{RADIUS}\" fill=\"{fill}\" stroke=\"#456\"");
        svg.rect(corner, (2.0 * RADIUS, 2.0 * RADIUS), &round);
        svg.text((x, y + 4.0), &v.to_string(), Anchor::Middle, TEXT, "");
    }
}

/// One line per tree: its weight and as many links as fit. Empty if there are many trees, or if a
/// route is more than a single tree.
fn trees(solution: &Solution, characters: usize) -> Vec<String> {
    let is_tree = |(route, _): &(Route, Fraction)| route.trees.len() == 1;
    if solution.routes.len() > MAX_TREES || !solution.routes.iter().all(is_tree) {
        return Vec::new();
    }
    let line = |(route, weight): &(Route, Fraction)| {
        let mut line = format!("{}:", label_of(weight));
        for &e in route.trees.iter().flat_map(|tree| &tree.edges) {
            let (from, to) = solution.link(e);
            let link = format!(" {from}\u{2192}{to}");
            if line.chars().count() + link.chars().count() + 4 > characters {
                line.push_str(" ...");
                break;
            }
            line.push_str(&link);
        }
        line
    };
    solution.routes.iter().map(line).collect()
}

fn label_of(value: &Fraction) -> String {
    let label = show_short(value);
    if label.len() > 9 {
        number(value.to_f64(), 3)
    } else {
        label
    }
}
