//! Figures 6 and 7: bidirectional ports, and the message sizes at which the butterfly wins.

use oneport::plan::registry;
use oneport::{Kind, Ports};

use crate::model::{executed, in_parallel, printed, request};
use crate::plot::{Axis, COLORS, Mark, Panel, Plot};
use crate::{Figure, Verdict};

const ALGORITHMS: [&str; 5] = ["binomial", "binary", "chain", "butterfly", "bi-greedy"];
const SOURCES: [&str; 2] = ["printed formulas", "executed times"];

/// Times at one message size, printed and executed, in the order of [`ALGORITHMS`].
struct Point {
    elements: usize,
    times: [[f64; 5]; 2],
    reference: f64,
}

impl Point {
    fn ratio(&self, source: usize, algorithm: usize) -> f64 {
        self.times[source][algorithm] / self.times[source][4]
    }

    /// Smallest ratio of binomial, binary and pipeline.
    fn standard(&self, source: usize) -> f64 {
        (0..3)
            .map(|a| self.ratio(source, a))
            .fold(f64::INFINITY, f64::min)
    }

    fn kilobytes(&self) -> f64 {
        4.0 * self.elements as f64 / 1000.0
    }
}

/// Figure 6: `p = 64`, `alpha = 50000`, `beta = 6` and `gamma = 1` per element.
///
/// The paper gives sizes in KB, and its code reduces integers of 4 bytes. With these units its
/// statements fit the formulas best.
pub(crate) fn figure_6() -> Figure {
    let (p, alpha, beta, gamma) = (64, 50_000.0, 6.0, 1.0);
    let sizes: Vec<usize> = (0..=56)
        .map(|e| (10f64.powf(3.0 + f64::from(e) / 8.0) / 4.0).round() as usize)
        .collect();
    let line = in_parallel(&sizes, |&elements| {
        let r = request(p, elements, Ports::BI, alpha, beta, gamma);
        let m = elements as f64;
        Point {
            elements,
            times: [
                ALGORITHMS.map(|a| printed(a, &r)),
                ALGORITHMS.map(|a| executed(a, &r)),
            ],
            reference: 6.0 * alpha + m * beta + 63.0 / 64.0 * m * gamma,
        }
    });
    let rows = line.iter().map(|q| {
        let times: Vec<String> = q.times.iter().flatten().map(ToString::to_string).collect();
        format!("{},{},{}", q.elements, times.join(","), q.reference)
    });
    Figure {
        number: 6,
        header: "elements,binomial_printed,binary_printed,pipeline_printed,butterfly_printed,bi_greedy_printed,\
                 binomial_executed,binary_executed,pipeline_executed,butterfly_executed,bi_greedy_executed,reference",
        rows: rows.collect(),
        plot: plot_6(&line),
        verdicts: (0..2)
            .flat_map(|source| verdicts_6(&line, source))
            .collect(),
    }
}

/// Ratios beside times.
fn plot_6(line: &[Point]) -> Plot {
    let mut plot = Plot::new(
        1080.0,
        460.0,
        "Fig. 6: p=64, elements of 4 bytes (bidirectional, alpha=50000, beta=6, gamma=1)",
    );
    let panel = |i: usize, y| Panel {
        left: 75.0 + 440.0 * i as f64,
        top: 70.0,
        width: 350.0,
        height: 320.0,
        x: Axis::log("message size in KB", 10.0, 0, 7, 1),
        y,
    };
    let ratios = panel(0, Axis::linear("time / time of bi-greedy", 0.4, 2.6, 0.2));
    let times = panel(1, Axis::log("time", 10.0, 5, 10, 1));
    ratios.frame(&mut plot, "ratio", true);
    times.frame(&mut plot, "time", true);
    for source in 0..2 {
        let mark = [Mark::Dashes, Mark::Line][source];
        for (a, color) in COLORS.iter().enumerate().take(5) {
            let of = |f: &dyn Fn(&Point) -> f64| {
                line.iter()
                    .map(|q| (q.kilobytes(), f(q)))
                    .collect::<Vec<_>>()
            };
            ratios.line(&mut plot, &of(&|q| q.ratio(source, a)), color, mark);
            times.line(&mut plot, &of(&|q| q.times[source][a]), color, mark);
        }
    }
    let reference: Vec<_> = line
        .iter()
        .map(|q| (q.kilobytes(), q.reference / q.times[1][4]))
        .collect();
    ratios.line(&mut plot, &reference, COLORS[5], Mark::Dashes);
    let reference: Vec<_> = line.iter().map(|q| (q.kilobytes(), q.reference)).collect();
    times.line(&mut plot, &reference, COLORS[5], Mark::Dashes);
    plot.legend(
        905.0,
        100.0,
        &[
            (COLORS[0], Mark::Line, "binomial"),
            (COLORS[1], Mark::Line, "binary"),
            (COLORS[2], Mark::Line, "pipeline"),
            (COLORS[3], Mark::Line, "butterfly"),
            (COLORS[4], Mark::Line, "bi-greedy"),
            (COLORS[5], Mark::Dashes, "reference"),
            ("#666666", Mark::Line, "executed"),
            ("#666666", Mark::Dashes, "printed"),
        ],
    );
    plot
}

fn verdicts_6(line: &[Point], source: usize) -> [Verdict; 4] {
    // Equal as far as a drawing shows.
    let same = line.iter().take_while(|q| q.ratio(source, 0) < 1.02);
    let binomial = same.last().map_or(0.0, Point::kilobytes);
    let large: Vec<_> = line.iter().filter(|q| q.kilobytes() > 1e5).collect();
    let pipeline: Vec<f64> = large.iter().map(|q| q.ratio(source, 2)).collect();
    let (first, last) = (pipeline[0], pipeline[pipeline.len() - 1]);
    let medium = line
        .iter()
        .filter(|q| (200.0..4000.0).contains(&q.kilobytes()));
    let gains: Vec<f64> = medium.map(|q| q.standard(source)).collect();
    let low = gains.iter().copied().fold(f64::INFINITY, f64::min);
    let high = gains.iter().copied().fold(0.0, f64::max);
    let closest = line
        .iter()
        .min_by(|a, b| a.ratio(source, 3).total_cmp(&b.ratio(source, 3)));
    let closest = closest.expect("a line");
    let butterfly = |q: &Point| q.ratio(source, 3);
    let ends = [butterfly(&line[0]), butterfly(&line[line.len() - 1])];
    let verdict = |holds, sentence| Verdict {
        source: SOURCES[source],
        holds,
        sentence,
    };
    [
        verdict(
            binomial >= 0.75 * 10.0,
            format!("binomial takes bi-greedy's time up to about {binomial:.0} KB (paper: 10 KB)"),
        ),
        verdict(
            pipeline.is_sorted_by(|a, b| a >= b) && last < 1.1,
            format!(
                "pipeline approaches bi-greedy from 100000 KB on: {first:.2} there, {last:.2} at the end"
            ),
        ),
        verdict(
            (1.0 - 1.0 / low) > 0.4 && (1.0 - 1.0 / high) < 0.6,
            format!(
                "from 200 to 4000 KB bi-greedy saves {:.0}% to {:.0}% of the time of the best of binomial, binary and pipeline (paper: about 50%)",
                100.0 * (1.0 - 1.0 / low),
                100.0 * (1.0 - 1.0 / high)
            ),
        ),
        verdict(
            (100.0..1000.0).contains(&closest.kilobytes()) && ends.iter().all(|&e| e > 1.5),
            format!(
                "butterfly comes closest to bi-greedy at {:.0} KB (paper: 300 KB), with {:.3}, and is poor at both ends: {:.2} and {:.2}",
                closest.kilobytes(),
                butterfly(closest),
                ends[0],
                ends[1]
            ),
        ),
    ]
}

/// Figure 7: the largest `beta/gamma` at which the butterfly beats bi-greedy for some message size.
pub(crate) fn figure_7() -> Figure {
    let ranks: Vec<usize> = (4..=1000).collect();
    let thresholds = in_parallel(&ranks, |&p| {
        [threshold(p, printed_times), threshold(p, executed_times)]
    });
    let mut plot = Plot::new(
        760.0,
        480.0,
        "Fig. 7: beta/gamma below which the butterfly beats bi-greedy at some message size",
    );
    let panel = Panel {
        left: 75.0,
        top: 70.0,
        width: 500.0,
        height: 330.0,
        x: Axis::linear("ranks p", 0.0, 1000.0, 100.0),
        y: Axis::linear("beta / gamma", 0.0, 8.0, 1.0),
    };
    panel.frame(&mut plot, "", true);
    let points = |source: usize| -> Vec<(f64, f64)> {
        let all = ranks.iter().zip(&thresholds);
        all.map(|(&p, t)| (p as f64, t[source])).collect()
    };
    panel.line(&mut plot, &points(0), COLORS[0], Mark::Line);
    for (x, y) in points(1).into_iter().filter(|&(_, y)| y > 0.0) {
        panel.dot(&mut plot, x, y, COLORS[1]);
    }
    let entries = [
        (COLORS[0], Mark::Line, "printed formulas"),
        (COLORS[1], Mark::Dot, "executed times,"),
    ];
    plot.text(626.0, 136.0, "0 where no dot is", "start", 12.0, "");
    plot.legend(600.0, 100.0, &entries);
    let rows = ranks
        .iter()
        .zip(&thresholds)
        .map(|(p, [a, b])| format!("{p},{a},{b}"));
    let verdicts = [0, 1].map(|source| {
        let above: Vec<_> = ranks.iter().zip(&thresholds).filter(|(_, t)| t[source] >= 5.0).collect();
        let list: Vec<_> = above.iter().map(|(p, t)| format!("p = {p}: {:.2}", t[source])).collect();
        let rest = ranks.iter().zip(&thresholds).filter(|(_, t)| t[source] < 5.0);
        let (p, max) = rest.fold((0, 0.0), |best, (&p, t)| if t[source] > best.1 { (p, t[source]) } else { best });
        Verdict {
            source: SOURCES[source],
            holds: above.is_empty(),
            sentence: format!(
                "for 4 to 1000 ranks beta/gamma must be below 5 for the butterfly to win, {}; otherwise at most {max:.2}, at p = {p}",
                if list.is_empty() { "without exception".into() } else { format!("except for {}", list.join(", ")) }
            ),
        }
    });
    Figure {
        number: 7,
        header: "p,threshold_printed,threshold_executed",
        rows: rows.collect(),
        plot,
        verdicts: verdicts.into(),
    }
}

/// Times of butterfly and bi-greedy for `p` ranks, alpha, beta, `gamma = 1` and [`elements`]
/// elements.
type Times = fn(p: usize, alpha: f64, beta: f64) -> (f64, f64);

/// A message size that the butterfly can halve evenly; only its relation to alpha matters.
fn elements(p: usize) -> usize {
    (1 << 20) << p.ilog2()
}

fn printed_times(p: usize, alpha: f64, beta: f64) -> (f64, f64) {
    let r = request(p, elements(p), Ports::BI, alpha, beta, 1.0);
    (printed("butterfly", &r), printed("bi-greedy", &r))
}

/// The registered closed forms, which describe the executed schedules. bi-greedy uses the better of
/// the two best numbers of equal segments.
fn executed_times(p: usize, alpha: f64, beta: f64) -> (f64, f64) {
    let r = request(p, elements(p), Ports::BI, alpha, beta, 1.0);
    let row = registry::find(Kind::Reduce, "butterfly").expect("butterfly is registered");
    let butterfly = row
        .closed_form(&r)
        .expect("the butterfly's closed form covers whole blocks");
    let (m, rounds) = (
        r.elements() as f64,
        f64::from(p.next_power_of_two().ilog2()),
    );
    let greedy = |q: f64| (rounds + q - 1.0) * (alpha + (beta + 1.0) * m / q);
    let best = ((rounds - 1.0) * m * (beta + 1.0) / alpha).sqrt().max(1.0);
    (butterfly, greedy(best.floor()).min(greedy(best.ceil())))
}

/// The largest beta (with `gamma = 1`) at which the butterfly wins for some alpha. Varying alpha
/// for a fixed message size is equivalent to varying the size.
fn threshold(p: usize, times: Times) -> f64 {
    let m = elements(p) as f64;
    let wins = |beta: f64| {
        // Alphas from far below to far above the value at which bi-greedy has as many segments as
        // rounds.
        (-160..=160).any(|e| {
            let alpha = m * (beta + 1.0) / f64::from(p.ilog2()) * 2f64.powf(f64::from(e) / 16.0);
            let (butterfly, greedy) = times(p, alpha, beta);
            butterfly < greedy
        })
    };
    let (mut low, mut high) = (0.0, 64.0);
    for _ in 0..24 {
        let middle = 0.5 * (low + high);
        if wins(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}
