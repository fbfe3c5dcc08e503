//! Linear programs with known optima, and random ones that the prices prove; exact bases.

use crate::exact::Basis;
use crate::fraction::{Fraction, over_common, parse_fraction, sum, whole};
use crate::lp::{Column, Pricing, maximise};
use dashu_int::{IBig, UBig};
use oneport::random::Generator;

/// Generates no columns.
#[derive(Debug)]
struct NoPricing;

impl<T> Pricing<T> for NoPricing {
    fn improve(&mut self, _: &[f64]) -> Vec<Column<T>> {
        Vec::new()
    }
    fn improve_exactly(&mut self, _: &[IBig], _: &UBig) -> Vec<Column<T>> {
        Vec::new()
    }
}

fn column(gain: &str, entries: &[(usize, &str)]) -> Column<usize> {
    let f = |t: &str| parse_fraction(t).unwrap();
    Column {
        gain: f(gain),
        entries: entries.iter().map(|(r, a)| (*r, f(a))).collect(),
        label: 0,
    }
}

fn solve(bounds: &[&str], columns: Vec<Column<usize>>) -> String {
    let bounds: Vec<Fraction> = bounds.iter().map(|t| parse_fraction(t).unwrap()).collect();
    let optimum = maximise(&bounds, columns, &mut NoPricing).unwrap();
    optimum.value.to_string()
}

#[test]
fn small_programs() {
    // x + y <= 1, x + 3y <= 2, gain 1 and 2.
    let columns = || {
        vec![
            column("1", &[(0, "1"), (1, "1")]),
            column("2", &[(0, "1"), (1, "3")]),
        ]
    };
    assert_eq!(solve(&["1", "2"], columns()), "3/2");
    assert_eq!(solve(&["0", "2"], columns()), "0");
    assert_eq!(solve(&["1/3", "2/7"], columns()), "2/7");
    assert_eq!(solve(&["1"], Vec::new()), "0");
}

/// The smallest number of 64 bits has no absolute value in 64 bits.
#[test]
fn entries_of_64_bits() {
    for entry in ["-9223372036854775808", "9223372036854775807"] {
        let entry = parse_fraction(entry).unwrap();
        let basis = Basis::new(1, &[vec![(0, entry.clone())]]).unwrap();
        let values = basis.values(&[(0, Fraction::ONE)]).unwrap();
        assert_eq!(values, [Fraction::ONE / entry]);
    }
}

/// A determinant that is a multiple of the first primes below `2^61` need not be 0.
#[test]
fn determinants_may_be_multiples_of_primes() {
    let all: Fraction = [1, 31, 45]
        .map(|below| whole((1 << 61) - below))
        .into_iter()
        .fold(Fraction::ONE, |product, prime| product * prime);
    let columns = vec![
        vec![(0, all.clone()), (1, whole(1))],
        vec![(0, all.clone()), (1, whole(2))],
    ];
    let basis = Basis::new(2, &columns).unwrap();
    let right = [(0, &all * whole(3)), (1, whole(4))];
    assert_eq!(basis.values(&right).unwrap(), [whole(2), whole(1)]);
    let columns = vec![vec![(0, all.clone()), (1, whole(1))]; 2];
    assert!(Basis::new(2, &columns).is_none());
}

#[test]
fn common_denominators() {
    let values = ["1/2", "2/3", "5"].map(|t| parse_fraction(t).unwrap());
    let (scaled, d) = over_common(&values);
    assert_eq!(d, UBig::from(6u8));
    assert_eq!(scaled, [3, 4, 30].map(IBig::from));
}

#[test]
fn degenerate_programs() {
    // Beale's example, on which the plain simplex method cycles.
    let columns = vec![
        column("3/4", &[(0, "1/4"), (1, "1/2")]),
        column("-150", &[(0, "-60"), (1, "-90")]),
        column("1/50", &[(0, "-1/25"), (1, "-1/50"), (2, "1")]),
        column("-6", &[(0, "9"), (1, "3")]),
    ];
    assert_eq!(solve(&["0", "0", "1"], columns), "1/20");
}

#[test]
fn large_numbers() {
    let columns = vec![
        column("1", &[(0, "123456789012345678901/3"), (1, "1")]),
        column("1", &[(0, "1"), (1, "98765432109876543210/7")]),
    ];
    let bounds = [whole(1), whole(1)];
    let optimum = maximise(&bounds, columns, &mut NoPricing).unwrap();
    let spent = sum(optimum.prices.iter().cloned());
    assert_eq!(optimum.value, spent);
}

/// Exact and floating-point results of random programs agree, and the prices prove them.
#[test]
fn random_programs() {
    let mut generator = Generator::new(12345);
    let mut random = |n: usize| generator.below(n);
    for _ in 0..60 {
        let rows = 1 + random(8);
        let bounds: Vec<Fraction> = (0..rows).map(|_| whole(random(3))).collect();
        let columns: Vec<Column<usize>> = (0..1 + random(12))
            .map(|i| Column {
                gain: whole(random(5)),
                entries: (0..rows)
                    .map(|r| (r, whole(random(4) + 1) / whole(random(3) + 1)))
                    .collect(),
                label: i,
            })
            .collect();
        let optimum = maximise(&bounds, columns.clone(), &mut NoPricing).unwrap();
        let mut loads = vec![Fraction::ZERO; rows];
        let mut gained = Fraction::ZERO;
        for (i, x) in &optimum.used {
            assert!(*x > Fraction::ZERO);
            gained += &columns[*i].gain * x;
            for (r, a) in &columns[*i].entries {
                loads[*r] += a * x;
            }
        }
        assert_eq!(gained, optimum.value);
        assert!(loads.iter().zip(&bounds).all(|(l, b)| l <= b));
        for c in &columns {
            let cost = sum(c.entries.iter().map(|(r, a)| a * &optimum.prices[*r]));
            assert!(cost >= c.gain);
        }
        let spent = sum(optimum.prices.iter().zip(&bounds).map(|(p, b)| p * b));
        assert_eq!(spent, optimum.value);
    }
}

/// Other units of rows and columns do not change the result.
#[test]
fn units_make_no_difference() {
    let mut generator = Generator::new(99);
    let mut random = |n: usize| generator.below(n);
    for round in 0..200 {
        let mut unit = || parse_fraction(&format!("1e{}", random(25) as i64 - 12)).unwrap();
        let (row_units, column_units): (Vec<Fraction>, Vec<Fraction>) =
            (0..9).map(|_| (unit(), unit())).unzip();
        let rows = 1 + random(6);
        let bounds: Vec<Fraction> = (0..rows).map(|_| whole(random(4))).collect();
        let mut columns: Vec<Column<usize>> = Vec::new();
        for label in 0..1 + random(9) {
            // Some columns have negative entries, as slots do, but none has only negative entries.
            let first = random(rows);
            let mut entries = vec![(first, whole(1 + random(4)))];
            for r in first + 1..rows {
                match random(5) {
                    0 | 1 => entries.push((r, whole(1 + random(4)))),
                    2 => entries.push((r, -whole(1))),
                    _ => {}
                }
            }
            let gain = whole(random(5));
            columns.push(Column {
                gain,
                entries,
                label,
            });
        }
        let plain = maximise(&bounds, columns.clone(), &mut NoPricing).unwrap();
        let scaled_bounds: Vec<Fraction> =
            bounds.iter().zip(&row_units).map(|(b, u)| b * u).collect();
        for (column, unit) in columns.iter_mut().zip(&column_units) {
            column.gain *= unit;
            for (r, a) in &mut column.entries {
                *a *= unit * &row_units[*r];
            }
        }
        let scaled = maximise(&scaled_bounds, columns, &mut NoPricing).unwrap();
        assert_eq!(plain.value, scaled.value, "round {round}");
    }
}
