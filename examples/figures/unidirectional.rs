//! Figures 1, 4 and 5: unidirectional ports, alpha = 10, beta = 1, gamma = 0.

use oneport::Ports;
use oneport::internal::pipeline::uni_greedy::best_uni_greedy;

use crate::model::{executed, in_parallel, printed, request};
use crate::plot::{Axis, COLORS, Mark, Panel, Plot, shade};
use crate::{Figure, Verdict};

const STANDARD: [&str; 3] = ["binomial", "binary", "chain"];
/// The paper's names of the same algorithms.
const NAMES: [&str; 3] = ["binomial", "binary", "pipeline"];
const SOURCES: [&str; 2] = ["printed formulas", "executed times"];

/// Times at one number of ranks and one message size.
#[derive(Clone, Copy)]
struct Point {
    p: usize,
    m: usize,
    /// Times of the standard algorithms, printed and executed.
    times: [[f64; 3]; 2],
    greedy: f64,
}

impl Point {
    fn of(p: usize, m: usize) -> Point {
        let r = request(p, m, Ports::UNI, 10.0, 1.0, 0.0);
        Point {
            p,
            m,
            times: [
                STANDARD.map(|a| printed(a, &r)),
                STANDARD.map(|a| executed(a, &r)),
            ],
            greedy: best_uni_greedy(p, m, usize::MAX, |s| {
                (r.transfer_time(s), r.combine_time(s))
            })
            .expect("few segments")
            .time
            .value(),
        }
    }

    /// Index of the best standard algorithm.
    fn best(times: &[f64; 3]) -> usize {
        (0..3)
            .min_by(|&a, &b| times[a].total_cmp(&times[b]))
            .unwrap_or(0)
    }

    fn ratio(&self, source: usize) -> f64 {
        self.times[source]
            .iter()
            .copied()
            .fold(f64::INFINITY, f64::min)
            / self.greedy
    }

    fn row(&self) -> String {
        let Point {
            p,
            m,
            times,
            greedy,
        } = self;
        let [[a, b, c], [d, e, f]] = times;
        format!("{p},{m},{a},{b},{c},{d},{e},{f},{greedy}")
    }
}

const HEADER: &str = "p,m,binomial_printed,binary_printed,pipeline_printed,\
                      binomial_executed,binary_executed,pipeline_executed,uni_greedy";

/// Figures 1, 4 and 5.
pub(crate) fn figures() -> Vec<Figure> {
    let grid: Vec<(usize, usize)> = (2..=10)
        .flat_map(|k| (2..=16).map(move |e| (1 << k, 1 << e)))
        .collect();
    let grid = in_parallel(&grid, |&(p, m)| Point::of(p, m));
    let sizes: Vec<usize> = (8..=64)
        .map(|e| 2f64.powf(f64::from(e) / 4.0).round() as usize)
        .collect();
    let line = in_parallel(&sizes, |&m| Point::of(64, m));
    vec![figure_1(&grid), figure_4(&line), figure_5(&grid)]
}

/// Two panels of message size (horizontal) and ranks (vertical), for cells around grid points
/// `steps` apart.
fn maps(steps: [f64; 2]) -> [Panel; 2] {
    [0, 1].map(|i| Panel {
        left: 75.0 + 440.0 * i as f64,
        top: 70.0,
        width: 350.0,
        height: 320.0,
        x: Axis::log("message size m", 2.0, 2, 16, 2).widened(steps[i]),
        y: Axis::log("ranks p", 2.0, 2, 10, 1).widened(steps[i]),
    })
}

fn around(value: f64, step: f64) -> (f64, f64) {
    (value / step.sqrt(), value * step.sqrt())
}

fn figure_1(grid: &[Point]) -> Figure {
    let mut plot = Plot::new(
        1000.0,
        460.0,
        "Fig. 1: best standard algorithm (unidirectional, alpha=10, beta=1, gamma=0)",
    );
    // The printed formulas are cheap, so their map is finer.
    let fine = 2f64.powf(0.125);
    let panels = maps([fine, 2.0]);
    let mut verdicts = Vec::new();
    let mut shares = Vec::new();
    let levels = |low: i32, high: i32, parts: i32| {
        (low * parts..=high * parts).map(move |e| 2f64.powf(f64::from(e) / f64::from(parts)))
    };
    let mut rows = Vec::new();
    for (source, panel) in panels.iter().enumerate() {
        let cells: Vec<(f64, f64, usize, usize, usize)> = if source == 0 {
            let best = |p: usize, m: usize| {
                let r = request(p, m, Ports::UNI, 10.0, 1.0, 0.0);
                Point::best(&STANDARD.map(|a| printed(a, &r)))
            };
            let at = |p: f64, m: f64| (p, m, p.round() as usize, m.round() as usize);
            levels(2, 10, 8)
                .flat_map(|p| levels(2, 16, 8).map(move |m| at(p, m)))
                .map(|(x, y, p, m)| (x, y, p, m, best(p, m)))
                .collect()
        } else {
            let cell = |q: &Point| (q.p as f64, q.m as f64, q.p, q.m, Point::best(&q.times[1]));
            grid.iter().map(cell).collect()
        };
        let step = if source == 0 { fine } else { 2.0 };
        for &(y, x, p, m, best) in &cells {
            let (x, y) = (around(x, step), around(y, step));
            panel.cell(&mut plot, (x.0, y.0), (x.1, y.1), COLORS[best]);
            rows.push(format!("{},{p},{m},{}", SOURCES[source], NAMES[best]));
        }
        panel.frame(&mut plot, SOURCES[source], false);
        // In each row the algorithms must follow in this order from small to large messages.
        let columns: Vec<&[_]> = cells.chunk_by(|a, b| a.0 == b.0).collect();
        let ordered = columns
            .iter()
            .filter(|c| c.is_sorted_by_key(|c| c.4))
            .count();
        let three = columns
            .iter()
            .filter(|c| (0..3).all(|a| c.iter().any(|x| x.4 == a)))
            .count();
        let share = |a: usize| 100 * cells.iter().filter(|c| c.4 == a).count() / cells.len();
        shares.push([share(0), share(1), share(2)]);
        verdicts.push(Verdict {
            source: SOURCES[source],
            holds: ordered == columns.len() && 2 * three > columns.len(),
            sentence: format!(
                "the best is binomial for small, binary for medium, pipeline for large messages, in this order for {ordered} of {} numbers of \
                 ranks; all three occur for {three} (shares of the map: {}%, {}%, {}%)",
                columns.len(),
                share(0),
                share(1),
                share(2)
            ),
        });
    }
    let entries = [0, 1, 2].map(|a| (COLORS[a], Mark::Box, NAMES[a]));
    plot.legend(890.0, 100.0, &entries);
    Figure {
        number: 1,
        header: "source,p,m,best",
        rows,
        plot,
        verdicts,
    }
}

fn figure_4(line: &[Point]) -> Figure {
    let mut plot = Plot::new(
        1060.0,
        460.0,
        "Fig. 4: p=64 (unidirectional, alpha=10, beta=1, gamma=0)",
    );
    let panel = |i: usize, y| Panel {
        left: 75.0 + 440.0 * i as f64,
        top: 70.0,
        width: 350.0,
        height: 320.0,
        x: Axis::log("message size m", 2.0, 2, 16, 2),
        y,
    };
    let ratios = panel(0, Axis::linear("time / time of uni-greedy", 0.8, 3.0, 0.2));
    let times = panel(1, Axis::log("time", 10.0, 1, 6, 1));
    ratios.frame(&mut plot, "ratio", true);
    times.frame(&mut plot, "time", true);
    for source in 0..2 {
        let mark = [Mark::Dashes, Mark::Line][source];
        for (a, color) in COLORS.iter().enumerate().take(3) {
            let of = |f: &dyn Fn(&Point) -> f64| {
                line.iter().map(|q| (q.m as f64, f(q))).collect::<Vec<_>>()
            };
            ratios.line(
                &mut plot,
                &of(&|q| q.times[source][a] / q.greedy),
                color,
                mark,
            );
            times.line(&mut plot, &of(&|q| q.times[source][a]), color, mark);
        }
    }
    let greedy: Vec<_> = line.iter().map(|q| (q.m as f64, q.greedy)).collect();
    times.line(&mut plot, &greedy, COLORS[5], Mark::Line);
    let ones: Vec<_> = line.iter().map(|q| (q.m as f64, 1.0)).collect();
    ratios.line(&mut plot, &ones, COLORS[5], Mark::Line);
    plot.legend(
        900.0,
        100.0,
        &[
            (COLORS[0], Mark::Line, "binomial"),
            (COLORS[1], Mark::Line, "binary, executed"),
            (COLORS[1], Mark::Dashes, "binary, printed"),
            (COLORS[2], Mark::Line, "pipeline, executed"),
            (COLORS[2], Mark::Dashes, "pipeline, printed"),
            (COLORS[5], Mark::Line, "uni-greedy"),
        ],
    );
    Figure {
        number: 4,
        header: HEADER,
        rows: line.iter().map(Point::row).collect(),
        plot,
        verdicts: verdicts_4(line),
    }
}

fn verdicts_4(line: &[Point]) -> Vec<Verdict> {
    let at = |m: usize| line.iter().find(|q| q.m >= m).expect("within the line");
    let pipeline = |q: &Point| q.times[1][2] / q.greedy;
    let equal = line.iter().take_while(|q| q.times[1][0] == q.greedy);
    let equal = equal.last().map_or(0, |q| q.m);
    let large: Vec<&Point> = line.iter().filter(|q| q.m >= 4096).collect();
    let end = at(1 << 16);
    let mut verdicts = vec![
        Verdict {
            source: "printed formulas, executed times",
            holds: 4 * at(equal + 1).m >= 64,
            sentence: format!(
                "binomial takes uni-greedy's time up to m = {equal}, {} bytes of 4-byte integers (paper: below 64 bytes)",
                4 * equal
            ),
        },
        Verdict {
            source: "executed times",
            holds: large.is_sorted_by(|a, b| pipeline(a) >= pipeline(b)) && pipeline(end) < 1.1,
            sentence: format!(
                "pipeline approaches uni-greedy for large messages: {:.3} times its time at m = {}, {:.3} at {}",
                pipeline(large[0]),
                large[0].m,
                pipeline(end),
                end.m
            ),
        },
    ];
    verdicts.extend([0, 1].map(|source| {
        let peak = line.iter().max_by(|a, b| a.ratio(source).total_cmp(&b.ratio(source)));
        let peak = peak.expect("a line");
        Verdict {
            source: SOURCES[source],
            holds: (1.4..1.7).contains(&peak.ratio(source)),
            sentence: format!(
                "the best standard algorithm takes up to {:.3} times as long as uni-greedy, at m = {} (paper: about 1.5)",
                peak.ratio(source),
                peak.m
            ),
        }
    }));
    verdicts
}

fn figure_5(grid: &[Point]) -> Figure {
    let mut plot = Plot::new(
        1000.0,
        460.0,
        "Fig. 5: best standard algorithm / uni-greedy (unidirectional, alpha=10, beta=1, gamma=0)",
    );
    let high = grid
        .iter()
        .flat_map(|q| [q.ratio(0), q.ratio(1)])
        .fold(1.0, f64::max);
    let panels = maps([2.0; 2]);
    let mut verdicts = Vec::new();
    for (source, panel) in panels.iter().enumerate() {
        for q in grid {
            let (x, y) = (around(q.m as f64, 2.0), around(q.p as f64, 2.0));
            let color = shade((q.ratio(source) - 1.0) / (high - 1.0));
            panel.cell(&mut plot, (x.0, y.0), (x.1, y.1), &color);
        }
        panel.frame(&mut plot, SOURCES[source], false);
        // Octaves of message sizes in which uni-greedy gains at least a quarter, by number of
        // ranks.
        let widths: Vec<usize> = grid
            .chunk_by(|a, b| a.p == b.p)
            .map(|row| row.iter().filter(|q| q.ratio(source) >= 1.25).count())
            .collect();
        let peak = grid
            .iter()
            .max_by(|a, b| a.ratio(source).total_cmp(&b.ratio(source)))
            .expect("a grid");
        let min_ratio = grid
            .iter()
            .map(|q| q.ratio(source))
            .fold(f64::INFINITY, f64::min);
        let gain = peak.ratio(source);
        verdicts.push(Verdict {
            source: SOURCES[source],
            holds: (1.4..1.7).contains(&gain) && min_ratio >= 1.0,
            sentence: format!(
                "no standard algorithm is faster than uni-greedy (least ratio {min_ratio:.3}), and the best takes up to {gain:.3} times as long, at p = {}, m = {} \
                 (paper: about 1.5)",
                peak.p, peak.m
            ),
        });
        verdicts.push(Verdict {
            source: SOURCES[source],
            holds: widths.is_sorted(),
            sentence: format!(
                "the range where the ratio is 1.25 and more widens with p: {} octaves of m for p = 4, 8, .., 1024",
                widths.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
            ),
        });
    }
    plot.color_bar(905.0, 100.0, 260.0, high, "ratio");
    Figure {
        number: 5,
        header: HEADER,
        rows: grid.iter().map(Point::row).collect(),
        plot,
        verdicts,
    }
}
