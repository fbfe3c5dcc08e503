//! Figure 10: the gain of unequal segments (uni-greedy, m = 10, beta = 1).

use oneport::internal::pipeline::uni_greedy::States;
use oneport::plan::Segments;
use oneport::plan::segments::compositions;

use crate::model::in_parallel;
use crate::plot::{Axis, Panel, Plot, shade};
use crate::{Figure, Verdict};

const ELEMENTS: usize = 10;

/// Best time with equal segments divided by best time with any segments, for two algorithms.
#[derive(Clone, Copy)]
struct Ratio {
    p: usize,
    alpha: f64,
    gamma: f64,
    greedy: f64,
    pipeline: f64,
}

/// Ratios over alpha and the number of ranks, for gamma 0 and 1.
pub(crate) fn figure_10() -> Figure {
    let mut ranks: Vec<usize> = (2..=10)
        .map(|n| 1 << n)
        .chain((1..=8).map(|n| 3 << n))
        .collect();
    ranks.sort_unstable();
    let alphas = (0..=10)
        .chain((20..=100).step_by(10))
        .chain((200..=1000).step_by(100))
        .map(f64::from);
    let cases: Vec<(usize, f64, f64)> = alphas
        .flat_map(|alpha| [0.0, 1.0].map(|gamma| (alpha, gamma)))
        .flat_map(|(alpha, gamma)| ranks.iter().map(move |&p| (p, alpha, gamma)))
        .collect();
    let ways: Vec<Vec<usize>> = compositions(ELEMENTS).collect();
    let equal: Vec<bool> = ways.iter().map(|w| is_equal(w)).collect();
    let ratios = in_parallel(&cases, |&(p, alpha, gamma)| {
        let mut states = States::new(p);
        let costs = |s: usize| (alpha + s as f64, gamma * s as f64);
        let ratio = |time: &mut dyn FnMut(&[usize]) -> f64| {
            let (mut best, mut best_equal) = (f64::INFINITY, f64::INFINITY);
            for (way, equal) in ways.iter().zip(&equal) {
                let t = time(way);
                best = best.min(t);
                if *equal {
                    best_equal = best_equal.min(t);
                }
            }
            best_equal / best
        };
        let greedy = ratio(&mut |way| {
            states.reset(p);
            for &s in way {
                let (tc, tp) = costs(s);
                states.reduce(tc, tp, 1);
            }
            states.time()
        });
        let mut free = Vec::new();
        let pipeline = ratio(&mut |way| pipeline_time(p, way.iter().map(|&s| costs(s)), &mut free));
        Ratio {
            p,
            alpha,
            gamma,
            greedy,
            pipeline,
        }
    });
    let rows = ratios.iter().map(|r| {
        format!(
            "{},{},{},{},{}",
            r.p, r.alpha, r.gamma, r.greedy, r.pipeline
        )
    });
    Figure {
        number: 10,
        header: "p,alpha,gamma,ratio_uni_greedy,ratio_pipeline",
        rows: rows.collect(),
        plot: plot(&ratios, &ranks),
        verdicts: verdicts(&ratios),
    }
}

/// A panel for each gamma, with a cell for each alpha and number of ranks.
fn plot(ratios: &[Ratio], ranks: &[usize]) -> Plot {
    let high = ratios.iter().map(|r| r.greedy).fold(1.0, f64::max);
    let mut plot = Plot::new(
        1020.0,
        500.0,
        "Fig. 10: best equal / best unequal segments (uni-greedy, m=10, beta=1)",
    );
    for (i, gamma) in [0.0, 1.0].into_iter().enumerate() {
        let panel = Panel {
            left: 75.0 + 440.0 * i as f64,
            top: 70.0,
            width: 360.0,
            height: 360.0,
            x: Axis::named("alpha", (0..=10).chain([20]).map(|a| a.to_string())),
            y: Axis::named("ranks p", ranks.iter().map(ToString::to_string)),
        };
        for r in ratios
            .iter()
            .filter(|r| r.gamma == gamma && r.alpha <= 20.0)
        {
            let x = r.alpha.min(11.0);
            let y = ranks.iter().position(|&p| p == r.p).unwrap_or(0) as f64;
            panel.cell(
                &mut plot,
                (x, y),
                (x + 1.0, y + 1.0),
                &shade((r.greedy - 1.0) / (high - 1.0)),
            );
        }
        panel.frame(&mut plot, &format!("gamma = {gamma}"), false);
    }
    plot.color_bar(925.0, 110.0, 280.0, high, "ratio");
    plot
}

fn verdicts(ratios: &[Ratio]) -> Vec<Verdict> {
    let unequal: Vec<&Ratio> = ratios.iter().filter(|r| r.greedy > 1.0).collect();
    let max = unequal
        .iter()
        .max_by(|a, b| a.greedy.total_cmp(&b.greedy))
        .expect("some gain");
    let last = unequal.iter().map(|r| r.alpha).fold(0.0, f64::max);
    let average = unequal.iter().map(|r| r.greedy - 1.0).sum::<f64>() / unequal.len() as f64;
    let pipeline = ratios.iter().filter(|r| r.pipeline > 1.0).count();
    let source = "executed times";
    vec![
        Verdict {
            source,
            holds: last <= 20.0 && unequal.len() == 61 && (max.greedy - 1.073).abs() < 5e-4,
            sentence: format!(
                "unequal segments are better in {} of {} cases (paper: 61 of 986), none with alpha above {last} (20), by {:.2}% at most (7.3%), at p = {}, alpha = {}, gamma = {}",
                unequal.len(),
                ratios.len(),
                100.0 * (max.greedy - 1.0),
                max.p,
                max.alpha,
                max.gamma
            ),
        },
        Verdict {
            source,
            holds: (average - 0.02).abs() < 5e-4,
            sentence: format!(
                "the average gain of these cases is {:.2}% (paper: 2.0%)",
                100.0 * average
            ),
        },
        Verdict {
            source,
            holds: pipeline == 0,
            sentence: format!(
                "pipeline is always best with equal segments ({pipeline} exceptions)"
            ),
        },
    ]
}

/// Whether all segments are equal except for the last, which may be smaller.
fn is_equal(sizes: &[usize]) -> bool {
    let segments = Segments::of_size(sizes.iter().sum(), sizes[0]).expect("sizes are positive");
    segments.sizes() == sizes
}

/// Time of the unidirectional chain as executed: `free[k]` is the time when rank `k` has finished
/// its last step, a send for `k > 0`.
///
/// A segment travels from the last rank to the root. Rank `k` sends it before it receives the next
/// one.
fn pipeline_time(p: usize, costs: impl Iterator<Item = (f64, f64)>, free: &mut Vec<f64>) -> f64 {
    free.clear();
    free.resize(p, 0.0);
    for (tc, tp) in costs {
        let mut here = free[p - 1];
        for k in (1..p).rev() {
            // `here` is the time when rank k holds the segment and is free; rank k - 1 must be free
            // as well.
            let start = here.max(free[k - 1]);
            free[k] = start + tc;
            here = start + tc + tp;
        }
        free[0] = here;
    }
    free[0]
}
