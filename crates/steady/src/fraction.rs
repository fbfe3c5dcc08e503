//! Exact fractions: parsing, formatting and common denominators.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};
use std::str::FromStr;

use dashu_int::ops::{BitTest, Gcd, UnsignedAbs};
use dashu_int::{IBig, UBig};
use dashu_ratio::RBig;

use oneport::error::{Error, Result};

/// An exact rational number of any size.
///
/// It is read from a whole number, a decimal number or a fraction, and written as `a/b`, or `a` for
/// whole numbers.
///
/// ```
/// use oneport_steady::Fraction;
/// let price: Fraction = "0.75".parse()?;
/// assert_eq!((price + Fraction::from(1)).to_string(), "7/4");
/// # Ok::<(), oneport::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Fraction(RBig);

impl Fraction {
    /// 0.
    pub const ZERO: Fraction = Fraction(RBig::ZERO);
    /// 1.
    pub const ONE: Fraction = Fraction(RBig::ONE);

    /// Exactly `number`, or 0 if it is not finite.
    pub(crate) fn of_float(number: f64) -> Fraction {
        Fraction(RBig::try_from(number).unwrap_or_default())
    }

    /// The largest whole number that is not larger.
    pub(crate) fn floor(&self) -> IBig {
        self.0.floor()
    }

    /// The nearest whole number.
    pub(crate) fn round(&self) -> IBig {
        self.0.round()
    }

    /// The whole number `number`.
    pub(crate) fn int(number: impl Into<IBig>) -> Fraction {
        Fraction(RBig::from(number.into()))
    }

    /// The nearest floating-point number, or one next to it. Numbers that are too large become
    /// infinite.
    pub fn to_f64(&self) -> f64 {
        self.0.to_f64_fast()
    }

    /// Whether it is 0.
    pub fn is_zero(&self) -> bool {
        self.0.is_zero()
    }

    pub(crate) fn is_int(&self) -> bool {
        self.0.is_int()
    }

    pub(crate) fn numerator(&self) -> &IBig {
        self.0.numerator()
    }

    pub(crate) fn denominator(&self) -> &UBig {
        self.0.denominator()
    }
}

/// Conversions from whole numbers.
macro_rules! whole_numbers {
    ($($t:ty),*) => {
        $(
            impl From<$t> for Fraction {
                fn from(number: $t) -> Fraction {
                    Fraction::int(number)
                }
            }
        )*
    };
}

whole_numbers!(u8, i32, u32, i64, u64, usize);

impl TryFrom<&Fraction> for u64 {
    type Error = Error;

    /// # Errors
    /// If it is not a whole number of this type.
    fn try_from(value: &Fraction) -> Result<u64> {
        let number = value
            .is_int()
            .then(|| u64::try_from(value.numerator()).ok());
        number
            .flatten()
            .ok_or_else(|| Error::usage(format!("{value} is not a whole number below 2^64")))
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Fraction {
    type Err = Error;

    /// # Errors
    /// For other texts than [`parse_fraction`] reads.
    fn from_str(text: &str) -> Result<Fraction> {
        parse_fraction(text).ok_or_else(|| {
            let text: String = text.chars().take(40).collect();
            Error::malformed(format!(
                "'{text}' is not a number of at most {MAX_DIGITS} digits"
            ))
        })
    }
}

/// The operators, by value and by reference.
macro_rules! operators {
    ($($trait:ident $method:ident $assign:ident $assign_method:ident;)*) => {
        $(
            impl $trait for Fraction {
                type Output = Fraction;
                fn $method(self, other: Fraction) -> Fraction {
                    Fraction(self.0.$method(other.0))
                }
            }

            impl $trait<&Fraction> for Fraction {
                type Output = Fraction;
                fn $method(self, other: &Fraction) -> Fraction {
                    Fraction(self.0.$method(&other.0))
                }
            }

            impl $trait<Fraction> for &Fraction {
                type Output = Fraction;
                fn $method(self, other: Fraction) -> Fraction {
                    Fraction((&self.0).$method(other.0))
                }
            }

            impl $trait for &Fraction {
                type Output = Fraction;
                fn $method(self, other: &Fraction) -> Fraction {
                    Fraction((&self.0).$method(&other.0))
                }
            }

            impl $assign for Fraction {
                fn $assign_method(&mut self, other: Fraction) {
                    self.0.$assign_method(other.0);
                }
            }

            impl $assign<&Fraction> for Fraction {
                fn $assign_method(&mut self, other: &Fraction) {
                    self.0.$assign_method(&other.0);
                }
            }
        )*
    };
}

operators! {
    Add add AddAssign add_assign;
    Sub sub SubAssign sub_assign;
    Mul mul MulAssign mul_assign;
    Div div DivAssign div_assign;
}

impl Neg for Fraction {
    type Output = Fraction;
    fn neg(self) -> Fraction {
        Fraction(-self.0)
    }
}

impl Neg for &Fraction {
    type Output = Fraction;
    fn neg(self) -> Fraction {
        Fraction(-&self.0)
    }
}

impl Sum for Fraction {
    fn sum<I: Iterator<Item = Fraction>>(values: I) -> Fraction {
        values.fold(Fraction::ZERO, |sum, value| sum + value)
    }
}

impl<'a> Sum<&'a Fraction> for Fraction {
    fn sum<I: Iterator<Item = &'a Fraction>>(values: I) -> Fraction {
        values.fold(Fraction::ZERO, |sum, value| sum + value)
    }
}

/// Limit of the digits of the numerator and of the denominator of a parsed number.
pub(crate) const MAX_DIGITS: usize = 256;
/// Limit of the length of a parsed text: a fraction of the most digits, with room for signs, spaces
/// and leading zeros.
const MAX_TEXT: usize = 4 * MAX_DIGITS;

/// Parses a whole number, a decimal number (with an optional exponent) or a fraction `a/b`,
/// exactly. Returns `None` for other texts and for numbers of more than 256 digits in numerator or
/// denominator.
///
/// ```
/// use oneport_steady::parse_fraction;
/// assert_eq!(parse_fraction("0.75"), parse_fraction("3/4"));
/// assert_eq!(parse_fraction("12e-1"), parse_fraction("6/5"));
/// assert_eq!(parse_fraction("1/0"), None);
/// assert_eq!(parse_fraction("1e400"), None);
/// ```
pub fn parse_fraction(text: &str) -> Option<Fraction> {
    let text = text.trim();
    if text.len() > MAX_TEXT {
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
    is_short(&value).then_some(value)
}

/// Whether numerator and denominator have at most [`MAX_DIGITS`] digits.
pub(crate) fn is_short(value: &Fraction) -> bool {
    // A decimal digit has more than 3.3 bits, so short numbers need no comparison with a power
    // of 10.
    let is_short =
        |n: &UBig| n.bit_len() <= MAX_DIGITS * 33 / 10 || *n < UBig::from(10u8).pow(MAX_DIGITS);
    is_short(&magnitude(value.numerator())) && is_short(value.denominator())
}

/// Parses a decimal number such as `-1.25e-3`.
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
    // Zeros before and after the significant digits count as well, hence the larger limit.
    let fits = !all.is_empty() && exponent.unsigned_abs() as usize <= MAX_TEXT;
    if !fits || !all.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let number = Fraction::int(IBig::from_str_radix(&all, 10).ok()?);
    let shift = exponent - i32::try_from(part.len()).ok()?;
    let power = Fraction::int(UBig::from(10u8).pow(shift.unsigned_abs() as usize));
    let value = if shift < 0 {
        number / power
    } else {
        number * power
    };
    Some(if negative { -value } else { value })
}

/// Returns the fraction `n`.
pub(crate) fn whole(n: usize) -> Fraction {
    Fraction::from(n)
}

/// Returns the sum.
pub(crate) fn sum(values: impl IntoIterator<Item = Fraction>) -> Fraction {
    values.into_iter().fold(Fraction::ZERO, |s, v| s + v)
}

/// Returns the nearest floating-point number, or one next to it. Numbers that are too large become
/// infinite.
pub fn to_f64(value: &Fraction) -> f64 {
    value.to_f64()
}

/// Like [`to_f64`], but limited to about the square root of the largest floating-point number. For
/// numbers that only guide a search and are multiplied on the way.
pub(crate) fn to_finite(value: &Fraction) -> f64 {
    to_f64(value).clamp(-1e150, 1e150)
}

/// Formats as `a/b`, or `a` for whole numbers.
pub fn show_fraction(value: &Fraction) -> String {
    value.to_string()
}

/// Formats like [`show_fraction`] if that is short, otherwise as a decimal number.
pub fn show_short(value: &Fraction) -> String {
    let exact = show_fraction(value);
    if exact.len() <= 24 {
        exact
    } else {
        show_float(to_f64(value))
    }
}

/// Formats a floating-point number with about nine digits; very small and very large ones have an
/// exponent.
fn show_float(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 || (1e-3..1e9).contains(&size) {
        format!("{value:.9}")
    } else {
        format!("{value:.8e}")
    }
}

/// Returns the least common multiple.
pub(crate) fn lcm(a: &UBig, b: &UBig) -> UBig {
    a / a.gcd(b) * b
}

/// Returns the least common denominator of the numbers; 1 for none.
pub(crate) fn common_denominator<'a>(values: impl IntoIterator<Item = &'a Fraction>) -> UBig {
    values.into_iter().fold(UBig::ONE, |d, v| {
        if v.is_int() {
            d
        } else {
            lcm(&d, v.denominator())
        }
    })
}

/// Returns `value * denominator`, where `denominator` is a multiple of the value's own one.
pub(crate) fn scaled(value: &Fraction, denominator: &UBig) -> IBig {
    value.numerator() * IBig::from(denominator / value.denominator())
}

/// Returns the numerators over the least common denominator, and that denominator.
pub(crate) fn over_common(values: &[Fraction]) -> (Vec<IBig>, UBig) {
    let d = common_denominator(values);
    (values.iter().map(|v| scaled(v, &d)).collect(), d)
}

/// Returns the number as a `usize`, if it is one.
pub(crate) fn to_usize(value: &IBig) -> Option<usize> {
    usize::try_from(value).ok()
}

/// Returns the absolute value.
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
            ("0.00012e+5", "12"),
            ("1e99999999999", "none"),
            ("1e9/1e-9", "1000000000000000000"),
            ("1/2/3", "none"),
            ("--1", "none"),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
    }

    /// Formatted numbers are parsed back, up to the longest ones, however they are written.
    #[test]
    fn long_numbers() {
        let nines = "9".repeat(MAX_DIGITS);
        let of = |text: &str| parse_fraction(text).map(|f| show_fraction(&f));
        let longest = format!("{}8/{nines}", &nines[1..]);
        assert_eq!(of(&longest), Some(longest));
        assert_eq!(of(&nines), Some(nines.clone()));
        assert_eq!(of(&format!("{nines}0")), None);
        assert_eq!(of(&format!("1/{nines}0")), None);
        assert_eq!(of(&format!("000{nines}.000")), Some(nines.clone()));
        assert_eq!(of("1e255").map(|t| t.len()), Some(MAX_DIGITS));
        assert_eq!(of("1e256"), None);
        assert_eq!(of("1e-255").map(|t| t.len()), Some(MAX_DIGITS + 2));
        assert_eq!(of("1e-256"), None);
        assert_eq!(of("1e300/1e299"), Some("10".into()));
        assert_eq!(of(&"0".repeat(MAX_TEXT + 1)), None);
    }

    #[test]
    fn shown_fractions_are_read_back() {
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
