//! Solves linear systems in exact numbers by lifting.
//!
//! The inverse modulo a prime gives the digits of the solution one after the other, in the base of
//! that prime. With enough digits a fraction is determined. The time depends on the length of the
//! solution, not on that of the numbers that elimination would produce on the way.

use dashu_int::ops::DivRem;
use dashu_int::{IBig, UBig};

use crate::fraction::{Fraction, common_denominator, magnitude, scaled};
use oneport::error::{Error, Result};

/// Primes are slightly below this power of two, which makes remainders cheap.
const ABOVE_PRIMES: u64 = 1 << 61;
/// Limit of the distance of a prime from that power of two.
const MAX_BELOW: u64 = 1 << 13;
/// Entries below this are multiplied without big numbers: a sum of 2^14 products with digits stays
/// below 2^127.
const SMALL: u64 = 1 << 50;

/// A basis that is not singular, with what is needed to solve systems with it.
pub(super) struct Basis {
    size: usize,
    /// The factor of each row that makes it whole.
    scale: Vec<UBig>,
    /// Entries by column.
    columns: Vec<Vec<(usize, BasisEntry)>>,
    field: Field,
    /// The inverse modulo the prime, by rows.
    inverse: Vec<u64>,
}

enum BasisEntry {
    Small(i64),
    Large(IBig),
}

impl Basis {
    /// Builds the basis with these columns; `None` if it is singular. A determinant may be a
    /// multiple of one prime without being 0. It is 0 only if it is a multiple of more primes than
    /// its size allows.
    pub(super) fn new(size: usize, columns: &[Vec<(usize, Fraction)>]) -> Option<Basis> {
        let mut by_row: Vec<Vec<&Fraction>> = vec![Vec::new(); size];
        for (row, a) in columns.iter().flatten() {
            by_row[*row].push(a);
        }
        let common = |row: &Vec<&Fraction>| common_denominator(row.iter().copied());
        let scale: Vec<UBig> = by_row.iter().map(common).collect();
        let whole = |(row, a): &(usize, Fraction)| {
            let a = scaled(a, &scale[*row]);
            let entry = match i64::try_from(&a) {
                Ok(small) if small.unsigned_abs() < SMALL => BasisEntry::Small(small),
                _ => BasisEntry::Large(a),
            };
            (*row, entry)
        };
        let column = |entries: &Vec<_>| entries.iter().map(whole).collect();
        let columns: Vec<Vec<(usize, BasisEntry)>> = columns.iter().map(column).collect();
        let factors = determinant_bits(&columns) / 60 + 1;
        let mut inverses = Field::all()
            .take(factors)
            .map(|field| (field, inverse(size, &columns, field)));
        let (field, inverse) = inverses.find_map(|(field, inverse)| Some((field, inverse?)))?;
        Some(Basis {
            size,
            scale,
            columns,
            field,
            inverse,
        })
    }

    /// Solves `basis * x = right` for `x`.
    pub(super) fn values(&self, right: &[(usize, Fraction)]) -> Result<Vec<Fraction>> {
        let mut rows = vec![Fraction::ZERO; self.size];
        for (row, b) in right {
            rows[*row] = b * Fraction::from(self.scale[*row].clone());
        }
        self.solve(&rows, false)
    }

    /// Solves `y * basis = right` for `y`.
    pub(super) fn prices(&self, right: &[Fraction]) -> Result<Vec<Fraction>> {
        let scaled = self.solve(right, true)?;
        let scale = self.scale.iter().cloned().map(Fraction::from);
        Ok(scaled.into_iter().zip(scale).map(|(y, s)| y * s).collect())
    }

    fn solve(&self, right: &[Fraction], transposed: bool) -> Result<Vec<Fraction>> {
        let n = self.size;
        let below = common_denominator(right);
        let right: Vec<IBig> = right.iter().map(|b| scaled(b, &below)).collect();
        let mut rest = right.clone();
        let mut digits: Vec<Vec<u64>> = Vec::new();
        let mut next_try = 2;
        let most = self.max_digits(&right);
        while digits.len() < most {
            let remainders: Vec<u64> = rest.iter().map(|r| self.field.remainder(r)).collect();
            let digit = self.times_inverse(&remainders, transposed);
            let product = self.times(&digit, transposed);
            for (r, p) in rest.iter_mut().zip(product) {
                *r = (&*r - p) / IBig::from(self.field.prime());
            }
            digits.push(digit);
            let exact = rest.iter().all(IBig::is_zero);
            if digits.len() >= next_try || exact || digits.len() == most {
                next_try = digits.len() * 3 / 2 + 1;
                if let Some((above, common)) = fractions(&digits, n, self.field.prime())
                    && self.solves(&above, &common, &right, transposed)
                {
                    let common = Fraction::from(common * &below);
                    let values = above.into_iter().map(|a| Fraction::from(a) / &common);
                    return Ok(values.collect());
                }
            }
        }
        Err(Error::system("a linear system has no exact solution"))
    }

    /// Returns twice the number of digits that numerators and denominator of the solution can have,
    /// by Hadamard's bound.
    fn max_digits(&self, right: &[IBig]) -> usize {
        let determinant = determinant_bits(&self.columns);
        let right = right.iter().map(bit_len).max().unwrap_or(0) + 64;
        2 * (determinant + right) / 61 + 4
    }

    /// The entries of the matrix, or of its transpose: from which place of a vector, to which.
    fn entries(&self, transposed: bool) -> impl Iterator<Item = (usize, usize, &BasisEntry)> {
        let columns = self.columns.iter().enumerate();
        let entries = columns.flat_map(|(c, column)| column.iter().map(move |(r, e)| (c, *r, e)));
        entries.map(move |(column, row, entry)| {
            if transposed {
                (row, column, entry)
            } else {
                (column, row, entry)
            }
        })
    }

    fn times(&self, digits: &[u64], transposed: bool) -> Vec<IBig> {
        let mut small = vec![0i128; self.size];
        let mut large: Vec<(usize, IBig)> = Vec::new();
        for (from, to, entry) in self.entries(transposed) {
            match entry {
                BasisEntry::Small(a) => small[to] += i128::from(*a) * i128::from(digits[from]),
                BasisEntry::Large(a) => large.push((to, a * IBig::from(digits[from]))),
            }
        }
        let mut sums: Vec<IBig> = small.into_iter().map(IBig::from).collect();
        for (to, product) in large {
            sums[to] += product;
        }
        sums
    }

    fn times_inverse(&self, vector: &[u64], transposed: bool) -> Vec<u64> {
        let n = self.size;
        if !transposed {
            let row = |i: usize| {
                let row = &self.inverse[i * n..(i + 1) * n];
                self.field
                    .dot(row.iter().copied().zip(vector.iter().copied()))
            };
            return (0..n).map(row).collect();
        }
        let mut sums = vec![0u64; n];
        for (i, &v) in vector.iter().enumerate().filter(|(_, v)| **v != 0) {
            let row = &self.inverse[i * n..(i + 1) * n];
            for (s, &a) in sums.iter_mut().zip(row) {
                *s = self
                    .field
                    .reduce(u128::from(a) * u128::from(v) + u128::from(*s));
            }
        }
        sums
    }

    /// Whether `above / common` solves the system.
    fn solves(&self, above: &[IBig], common: &UBig, right: &[IBig], transposed: bool) -> bool {
        let mut sums = vec![IBig::ZERO; self.size];
        let entries = self.entries(transposed);
        for (from, to, entry) in entries.filter(|(from, ..)| !above[*from].is_zero()) {
            match entry {
                BasisEntry::Small(a) => sums[to] += &above[from] * IBig::from(*a),
                BasisEntry::Large(a) => sums[to] += &above[from] * a,
            }
        }
        sums.iter()
            .zip(right)
            .all(|(s, b)| *s == b * IBig::from(common.clone()))
    }
}

/// The integers modulo the prime `2^61 - below`.
#[derive(Debug, Clone, Copy)]
struct Field {
    below: u64,
}

impl Field {
    /// Iterates over the fields of the primes from `2^61 - 1` downwards.
    fn all() -> impl Iterator<Item = Field> {
        let odd = (1..MAX_BELOW).step_by(2);
        odd.map(|below| Field { below }).filter(|f| f.is_field())
    }

    fn prime(self) -> u64 {
        ABOVE_PRIMES - self.below
    }

    /// Whether the modulus is prime: the test of Miller and Rabin, with bases that suffice for
    /// numbers of 64 bits.
    fn is_field(self) -> bool {
        let last = self.prime() - 1;
        let twos = last.trailing_zeros();
        [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37]
            .into_iter()
            .all(|base| {
                let first = self.power(base, last >> twos);
                let mut squares = std::iter::successors(Some(first), |&x| Some(self.times(x, x)));
                first == 1 || squares.by_ref().take(twos as usize).any(|x| x == last)
            })
    }

    /// Returns `value` modulo the prime.
    #[inline]
    fn reduce(self, value: u128) -> u64 {
        const LOW: u128 = (ABOVE_PRIMES - 1) as u128;
        let below = u128::from(self.below);
        let folded = (value & LOW) + (value >> 61) * below;
        #[expect(clippy::cast_possible_truncation, reason = "below 2^62")]
        let folded = ((folded & LOW) + (folded >> 61) * below) as u64;
        if folded >= self.prime() {
            folded - self.prime()
        } else {
            folded
        }
    }

    fn times(self, a: u64, b: u64) -> u64 {
        self.reduce(u128::from(a) * u128::from(b))
    }

    fn dot(self, pairs: impl Iterator<Item = (u64, u64)>) -> u64 {
        pairs.fold(0, |sum, (a, b)| {
            self.reduce(u128::from(a) * u128::from(b) + u128::from(sum))
        })
    }

    fn power(self, base: u64, mut exponent: u64) -> u64 {
        let (mut square, mut result) = (base, 1);
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = self.times(result, square);
            }
            square = self.times(square, square);
            exponent >>= 1;
        }
        result
    }

    fn remainder(self, value: &IBig) -> u64 {
        let rest = u64::try_from(magnitude(value) % UBig::from(self.prime())).unwrap_or(0);
        if rest != 0 && *value < IBig::ZERO {
            self.prime() - rest
        } else {
            rest
        }
    }
}

/// By Hadamard's bound.
fn determinant_bits(columns: &[Vec<(usize, BasisEntry)>]) -> usize {
    let bits = |e: &BasisEntry| match e {
        BasisEntry::Small(a) => 64 - a.unsigned_abs().leading_zeros() as usize,
        BasisEntry::Large(a) => bit_len(a),
    };
    let column = |c: &Vec<(usize, BasisEntry)>| {
        let most = c.iter().map(|(_, e)| bits(e)).max().unwrap_or(0);
        most + (c.len().max(1).ilog2() as usize).div_ceil(2) + 1
    };
    columns.iter().map(column).sum()
}

fn bit_len(value: &IBig) -> usize {
    use dashu_int::ops::BitTest;
    magnitude(value).bit_len()
}

/// Returns the inverse modulo the prime, by rows; `None` if there is none.
fn inverse(n: usize, columns: &[Vec<(usize, BasisEntry)>], field: Field) -> Option<Vec<u64>> {
    let mut matrix = vec![0u64; n * n];
    for (place, entries) in columns.iter().enumerate() {
        for (row, entry) in entries {
            matrix[row * n + place] = match entry {
                BasisEntry::Small(a) => a.rem_euclid(field.prime().cast_signed()) as u64,
                BasisEntry::Large(a) => field.remainder(a),
            };
        }
    }
    let mut inverse = vec![0u64; n * n];
    for i in 0..n {
        inverse[i * n + i] = 1;
    }
    for k in 0..n {
        let at = (k..n).find(|&i| matrix[i * n + k] != 0)?;
        if at != k {
            for j in 0..n {
                matrix.swap(at * n + j, k * n + j);
                inverse.swap(at * n + j, k * n + j);
            }
        }
        let scale = field.power(matrix[k * n + k], field.prime() - 2);
        for j in 0..n {
            matrix[k * n + j] = field.times(matrix[k * n + j], scale);
            inverse[k * n + j] = field.times(inverse[k * n + j], scale);
        }
        let matrix_row = matrix[k * n..(k + 1) * n].to_vec();
        let inverse_row = inverse[k * n..(k + 1) * n].to_vec();
        let inverse_support: Vec<usize> = (0..n).filter(|&j| inverse_row[j] != 0).collect();
        for i in 0..n {
            let factor = matrix[i * n + k];
            if i == k || factor == 0 {
                continue;
            }
            let minus = u128::from(field.prime() - factor);
            for j in k..n {
                let m = &mut matrix[i * n + j];
                *m = field.reduce(minus * u128::from(matrix_row[j]) + u128::from(*m));
            }
            for &j in &inverse_support {
                let m = &mut inverse[i * n + j];
                *m = field.reduce(minus * u128::from(inverse_row[j]) + u128::from(*m));
            }
        }
    }
    Some(inverse)
}

/// Returns the fractions with these digits over one denominator; `None` if there are too few
/// digits.
fn fractions(digits: &[Vec<u64>], n: usize, prime: u64) -> Option<(Vec<IBig>, UBig)> {
    let modulus = UBig::from(prime).pow(digits.len());
    let half = IBig::from(&modulus >> 1);
    let root = UBig::ONE << (digits.len() * 61).saturating_sub(4).div_euclid(2);
    let signed = |value: UBig| {
        let value = IBig::from(value);
        if value > half {
            value - IBig::from(modulus.clone())
        } else {
            value
        }
    };
    let mut common = UBig::ONE;
    let mut values = Vec::with_capacity(n);
    for i in 0..n {
        let value = horner(digits, i, prime);
        let times_common = &value * &common % &modulus;
        if magnitude(&signed(times_common.clone())) >= root {
            common *= denominator(&times_common, &modulus, &root)?;
            if common >= root {
                return None;
            }
        }
        values.push(value);
    }
    let above = values.into_iter().map(|v| signed(v * &common % &modulus));
    let above: Vec<IBig> = above.collect();
    let fits = above.iter().all(|a| magnitude(a) < root);
    fits.then_some((above, common))
}

fn horner(digits: &[Vec<u64>], i: usize, prime: u64) -> UBig {
    let prime = UBig::from(prime);
    let from_top = digits.iter().rev();
    from_top.fold(UBig::ZERO, |v, digit| v * &prime + UBig::from(digit[i]))
}

/// Finds the fraction of small numerator and denominator that equals `value` modulo `modulus`, and
/// returns its denominator.
fn denominator(value: &UBig, modulus: &UBig, root: &UBig) -> Option<UBig> {
    let (mut above, mut rest) = (modulus.clone(), value.clone());
    let (mut before, mut factor) = (IBig::ZERO, IBig::ONE);
    while rest >= *root {
        let (quotient, remainder) = above.div_rem(&rest);
        above = std::mem::replace(&mut rest, remainder);
        let next = before - IBig::from(quotient) * &factor;
        before = std::mem::replace(&mut factor, next);
    }
    let denominator = magnitude(&factor);
    (denominator < *root && !denominator.is_zero()).then_some(denominator)
}
