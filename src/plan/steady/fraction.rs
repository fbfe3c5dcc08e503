//! Exact numbers: reading, showing, common denominators.

use dashu_int::ops::{BitTest, Gcd, UnsignedAbs};
use dashu_int::{IBig, UBig};

/// An exact rational number.
pub type Fraction = dashu_ratio::RBig;

/// Longest exponent that is read: `1e400` is an input error, not a number of 400 digits.
const MOST_EXPONENT: u32 = 64;
/// Longest whole number above or below the line, in bits: every quotient of two decimal numbers of
/// 64 digits and such an exponent fits. Numbers that are read can be shown and read again.
const MOST_BITS: usize = 852;
/// Digits of a whole number of so many bits.
const MOST_DIGITS: usize = 257;

/// Reads a whole number, a decimal number (with exponent, if need be) or a fraction `a/b`, exactly.
///
/// ```
/// use oneport::plan::steady::parse_fraction;
/// assert_eq!(parse_fraction("0.75"), parse_fraction("3/4"));
/// assert_eq!(parse_fraction("12e-1"), parse_fraction("6/5"));
/// assert_eq!(parse_fraction("1/0"), None);
/// ```
pub fn parse_fraction(text: &str) -> Option<Fraction> {
    let text = text.trim();
    if text.len() > 3 * MOST_DIGITS {
        return None;
    }
    let value = match text.split_once('/') {
        None => decimal(text)?,
        Some((above, below)) => {
            let (above, below) = (decimal(above.trim())?, decimal(below.trim())?);
            if below.is_zero() {
                return None;
            }
            above / below
        }
    };
    let (above, below) = (value.numerator(), value.denominator());
    let fits = above.bit_len().max(below.bit_len()) <= MOST_BITS;
    fits.then_some(value)
}

/// `-1.25e-3`.
fn decimal(text: &str) -> Option<Fraction> {
    let (negative, text) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    let (digits, exponent) = match text.split_once(['e', 'E']) {
        None => (text, 0),
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{part}");
    let fits =
        !all.is_empty() && all.len() <= MOST_DIGITS && exponent.unsigned_abs() <= MOST_EXPONENT;
    if !fits || !all.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let number = Fraction::from(IBig::from_str_radix(&all, 10).ok()?);
    let shift = exponent - i32::try_from(part.len()).ok()?;
    let power = Fraction::from(UBig::from(10u8).pow(shift.unsigned_abs() as usize));
    let value = if shift < 0 {
        number / power
    } else {
        number * power
    };
    Some(if negative { -value } else { value })
}

/// The number `n`.
pub(crate) fn whole(n: usize) -> Fraction {
    Fraction::from(n)
}

/// The sum.
pub(crate) fn sum(values: impl IntoIterator<Item = Fraction>) -> Fraction {
    values.into_iter().fold(Fraction::ZERO, |s, v| s + v)
}

/// The nearest floating-point number, or one next to it.
pub fn to_f64(value: &Fraction) -> f64 {
    value.to_f64_fast()
}

/// `a/b`, or `a` for whole numbers.
pub fn show_fraction(value: &Fraction) -> String {
    value.to_string()
}

/// As [`show_fraction`] where that is short, a decimal number otherwise.
pub fn show_short(value: &Fraction) -> String {
    let exact = show_fraction(value);
    if exact.len() <= 24 {
        exact
    } else {
        show_float(to_f64(value))
    }
}

/// A floating-point number with about nine digits, very small and very large ones with an exponent.
pub fn show_float(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 || (1e-3..1e9).contains(&size) {
        format!("{value:.9}")
    } else {
        format!("{value:.8e}")
    }
}

/// Least common multiple.
pub(crate) fn lcm(a: &UBig, b: &UBig) -> UBig {
    a / a.gcd(b) * b
}

/// The least common denominator of some numbers; 1 for none.
pub(crate) fn common_denominator<'a>(values: impl IntoIterator<Item = &'a Fraction>) -> UBig {
    values.into_iter().fold(UBig::ONE, |d, v| {
        if v.is_int() {
            d
        } else {
            lcm(&d, v.denominator())
        }
    })
}

/// `value * denominator`, for a multiple of the value's own denominator.
pub(crate) fn scaled(value: &Fraction, denominator: &UBig) -> IBig {
    value.numerator() * IBig::from(denominator / value.denominator())
}

/// Numbers as whole ones over their least common denominator.
pub(crate) fn over_common(values: &[Fraction]) -> (Vec<IBig>, UBig) {
    let d = common_denominator(values);
    (values.iter().map(|v| scaled(v, &d)).collect(), d)
}

/// The number as a `usize`, if it is one.
pub(crate) fn to_usize(value: &IBig) -> Option<usize> {
    usize::try_from(value).ok()
}

/// Absolute value.
pub(crate) fn magnitude(value: &IBig) -> UBig {
    value.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        parse_fraction(text).map_or_else(|| "none".into(), |f| show_fraction(&f))
    }

    #[test]
    fn numbers_are_read_exactly() {
        for (text, expected) in [
            ("1", "1"),
            ("0.1", "1/10"),
            (".5", "1/2"),
            ("2.", "2"),
            ("1e-3", "1/1000"),
            ("2.5E2", "250"),
            (" 3 / 6 ", "1/2"),
            ("0.3/0.6", "1/2"),
            ("-4/2", "-2"),
            ("", "none"),
            (".", "none"),
            ("1/0", "none"),
            ("nan", "none"),
            ("inf", "none"),
            ("1e999", "none"),
            ("1e-2147483648", "none"),
            ("1e2147483647", "none"),
            ("1/2/3", "none"),
            ("--1", "none"),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_shown_is_read_again() {
        let digits = "9".repeat(64);
        for text in [
            "1e64".to_string(),
            "-1.25e-64".to_string(),
            format!("{digits}e64/.{digits}e-64"),
            format!(".{digits}e-64 / {digits}e64"),
        ] {
            let value = parse_fraction(&text).unwrap();
            assert_eq!(
                parse_fraction(&show_fraction(&value)),
                Some(value),
                "{text}"
            );
        }
        let long = "9".repeat(258);
        assert_eq!(parse_fraction(&long), None);
        assert_eq!(parse_fraction(&format!("1/{long}")), None);
    }

    #[test]
    fn common_denominators() {
        let values = ["1/2", "2/3", "5"].map(|t| parse_fraction(t).unwrap());
        let (scaled, d) = over_common(&values);
        assert_eq!(d, UBig::from(6u8));
        assert_eq!(scaled, [3, 4, 30].map(IBig::from));
    }
}
