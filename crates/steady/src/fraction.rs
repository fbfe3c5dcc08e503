//! Exact fractions: parsing, formatting and common denominators.

use std::borrow::Borrow;
use std::fmt;
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
pub struct Fraction(pub(crate) RBig);

impl Fraction {
    /// 0.
    pub const ZERO: Fraction = Fraction(RBig::ZERO);
    /// 1.
    pub const ONE: Fraction = Fraction(RBig::ONE);

    /// Exactly `number`, or 0 if it is not finite.
    pub(crate) fn of_float(number: f64) -> Fraction {
        Fraction(RBig::try_from(number).unwrap_or_default())
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
}

impl<N: Into<IBig>> From<N> for Fraction {
    fn from(number: N) -> Fraction {
        Fraction(RBig::from(number.into()))
    }
}

impl TryFrom<&Fraction> for u64 {
    type Error = Error;

    /// Refuses other numbers than whole ones of this type.
    fn try_from(value: &Fraction) -> Result<u64> {
        let number = u64::try_from(value.0.numerator()).ok();
        number
            .filter(|_| value.0.is_int())
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

    /// Refuses other texts than [`parse_fraction`] reads.
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
            impl<R: Borrow<Fraction>> $trait<R> for Fraction {
                type Output = Fraction;
                fn $method(self, other: R) -> Fraction {
                    Fraction(self.0.$method(&other.borrow().0))
                }
            }

            impl<R: Borrow<Fraction>> $trait<R> for &Fraction {
                type Output = Fraction;
                fn $method(self, other: R) -> Fraction {
                    Fraction((&self.0).$method(&other.borrow().0))
                }
            }

            impl<R: Borrow<Fraction>> $assign<R> for Fraction {
                fn $assign_method(&mut self, other: R) {
                    self.0.$assign_method(&other.borrow().0);
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
    is_short(&magnitude(value.0.numerator())) && is_short(value.0.denominator())
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

pub(crate) fn whole(n: usize) -> Fraction {
    Fraction::from(n)
}

pub(crate) fn sum(values: impl IntoIterator<Item = Fraction>) -> Fraction {
    values.into_iter().fold(Fraction::ZERO, |s, v| s + v)
}

/// Like [`Fraction::to_f64`], but limited to about the square root of the largest floating-point
/// number. For numbers that only guide a search and are multiplied on the way.
pub(crate) fn to_finite(value: &Fraction) -> f64 {
    value.to_f64().clamp(-1e150, 1e150)
}

/// Formats as `a/b`, or `a` for whole numbers, if that is short, otherwise as a decimal number with
/// about nine digits.
pub fn show_short(value: &Fraction) -> String {
    let exact = value.to_string();
    let float = value.to_f64();
    match float.abs() {
        _ if exact.len() <= 24 => exact,
        size if size == 0.0 || (1e-3..1e9).contains(&size) => format!("{float:.9}"),
        _ => format!("{float:.8e}"),
    }
}

pub(crate) fn lcm(a: &UBig, b: &UBig) -> UBig {
    a / a.gcd(b) * b
}

/// Returns the least common denominator of the numbers; 1 for none.
pub(crate) fn common_denominator<'a>(values: impl IntoIterator<Item = &'a Fraction>) -> UBig {
    let fractions = values.into_iter().filter(|v| !v.0.is_int());
    fractions.fold(UBig::ONE, |d, v| lcm(&d, v.0.denominator()))
}

/// Returns `value * denominator`, where `denominator` is a multiple of the value's own one.
pub(crate) fn scaled(value: &Fraction, denominator: &UBig) -> IBig {
    value.0.numerator() * IBig::from(denominator / value.0.denominator())
}

/// Returns the numerators over the least common denominator, and that denominator.
pub(crate) fn over_common(values: &[Fraction]) -> (Vec<IBig>, UBig) {
    let d = common_denominator(values);
    (values.iter().map(|v| scaled(v, &d)).collect(), d)
}

pub(crate) fn magnitude(value: &IBig) -> UBig {
    value.unsigned_abs()
}
