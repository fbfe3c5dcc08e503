//! Matchings, against brute force and their prices.

use crate::matching::maximum;
use oneport::random::Generator;

fn brute(n: usize, weights: &[i64], used: u32) -> i64 {
    let Some(v) = (0..n).find(|v| used & (1 << v) == 0) else {
        return 0;
    };
    let alone = brute(n, weights, used | 1 << v);
    (v + 1..n)
        .filter(|&u| used & (1 << u) == 0 && weights[v * n + u] > 0)
        .map(|u| weights[v * n + u] + brute(n, weights, used | 1 << v | 1 << u))
        .fold(alone, i64::max)
}

#[test]
fn matchings_are_maximal_and_proved() {
    let mut generator = Generator::new(7);
    let mut random = |n: usize| generator.below(n);
    for round in 0..3000 {
        let n = 1 + random(9);
        let most = [2, 4, 100][round % 3];
        let density = 1 + random(4);
        let mut weights = vec![0i64; n * n];
        for a in 0..n {
            for b in 0..a {
                if random(4) < density {
                    let w = random(most) as i64;
                    weights[a * n + b] = w;
                    weights[b * n + a] = w;
                }
            }
        }
        let found = maximum(n, &weights);
        let mut total = 0;
        for (v, mate) in found.mate.iter().enumerate() {
            if let Some(u) = *mate {
                assert_eq!(found.mate[u], Some(v));
                total += weights[v * n + u];
            }
        }
        assert_eq!(total / 2, brute(n, &weights, 0), "{n} {weights:?}");
        // The prices must prove it.
        assert!(found.twice_prices.iter().all(|p| *p >= 0));
        assert!(
            found
                .twice_odd
                .iter()
                .all(|(s, p)| *p > 0 && s.len() % 2 == 1)
        );
        for a in 0..n {
            for b in 0..a {
                let sets = found
                    .twice_odd
                    .iter()
                    .filter(|(s, _)| s.contains(&a) && s.contains(&b));
                let paid = found.twice_prices[a]
                    + found.twice_prices[b]
                    + sets.map(|(_, p)| p).sum::<i64>();
                assert!(paid >= 2 * weights[a * n + b]);
            }
        }
        let sets: i64 = found
            .twice_odd
            .iter()
            .map(|(s, p)| (s.len() as i64 - 1) / 2 * p)
            .sum();
        assert_eq!(found.twice_prices.iter().sum::<i64>() + sets, total);
    }
}
