//! How partial results are numbered.

use crate::partial_results::PartialResults;

/// Parts are numbered before the sets made of them, and every split of a set occurs once.
#[test]
fn parts_come_first() {
    for n in 1..=6 {
        for ordered in [true, false] {
            let owners: Vec<usize> = (0..n).collect();
            let partials = PartialResults { owners, ordered };
            let splits = partials.splits();
            assert_eq!(splits.len(), partials.count());
            let mut sizes = vec![0; splits.len()];
            for i in 0..n {
                sizes[partials.single(i)] = 1;
            }
            for (set, parts) in splits.iter().enumerate() {
                for &(a, b) in parts {
                    assert!(a < set && b < set);
                    sizes[set] = sizes[a] + sizes[b];
                }
                let of_size = if ordered {
                    sizes[set] - 1
                } else {
                    (1 << (sizes[set] - 1)) - 1
                };
                assert_eq!(parts.len(), of_size);
            }
            assert_eq!(sizes[partials.all()], n);
        }
    }
}
