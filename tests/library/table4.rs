//! Reproduces Table IV of Lowery & Langou for alpha up to 10, beyond which unequal segments never
//! win.

use oneport::internal::pipeline::uni_greedy::makespan;
use oneport::plan::Segments;
use oneport::plan::segments::{Method, best_sizes};

#[test]
fn unequal_segments_win_in_sixty_one_experiments() {
    let ranks: Vec<usize> = (2..=10)
        .map(|n| 1 << n)
        .chain((1..=8).map(|n| 3 << n))
        .collect();
    let mut gains = Vec::new();
    for (p, alpha, gamma) in ranks.iter().flat_map(|&p| {
        (0..=10)
            .map(f64::from)
            .flat_map(move |alpha| [(p, alpha, 0.0), (p, alpha, 1.0)])
    }) {
        let time = |sizes: &[usize]| {
            let costs = sizes.iter().map(|&s| (alpha + s as f64, gamma * s as f64));
            makespan(p, costs)
        };
        let (equal, start) = (1..=10)
            .map(|size| Segments::of_size(10, size).unwrap().sizes().to_vec())
            .map(|sizes| (time(&sizes), sizes))
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .unwrap();
        let best = best_sizes(&start, 512, time);
        assert_eq!(best.method, Method::Exhaustive);
        if best.time < equal {
            gains.push((equal / best.time - 1.0, p, alpha, gamma));
        }
    }
    gains.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (greatest, p, alpha, gamma) = gains.last().copied().unwrap();
    assert_eq!(gains.len(), 61);
    assert_eq!((p, alpha, gamma), (12, 0.0, 1.0));
    assert_eq!(format!("{:.2}", 100.0 * greatest), "7.32");
    let average = gains.iter().map(|g| g.0).sum::<f64>() / 61.0;
    assert_eq!(format!("{:.2}", 100.0 * average), "1.79");
}
