//! The element types of vectors.

use std::fmt::{Debug, Write};
use std::hash::{DefaultHasher, Hasher};

use super::combine::BuiltIn;
use super::located::Located;
use super::op::Op;
use super::testdata::{Draw, Purpose};
use crate::error::named;

/// A type of the elements of vectors: one of [`ElementType`], or a type of the caller's own.
///
/// A type of one's own needs one method, which makes test data. Its operators are
/// [functions](crate::run::Operator::new), and it must be neither empty nor aligned to more than 8
/// bytes. Values pass through the stacks of ranks, so a type of more than 16 KiB needs larger
/// [stacks](crate::run::TeamOptions::stack_bytes).
///
/// ```
/// use oneport::Request;
/// use oneport::run::{Element, Operator, Run, Team};
///
/// #[derive(Debug, Clone, Copy, PartialEq)]
/// struct Complex {
///     re: f64,
///     im: f64,
/// }
///
/// impl Element for Complex {
///     fn test_value(bits: u64) -> Self {
///         let part = |bits: u64| f64::from((bits & 0xff) as u8);
///         Complex { re: part(bits), im: part(bits >> 8) }
///     }
/// }
///
/// let sum = Operator::new("sum", true, |a: Complex, b| Complex {
///     re: a.re + b.re,
///     im: a.im + b.im,
/// });
/// let schedule = Request::allreduce(4, 100).plan("ring")?;
/// let outcome = Run::new(&schedule).op(sum).verified().on(&mut Team::new(4)?)?;
/// assert!(outcome.is_verified());
/// # Ok::<(), oneport::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no element type",
    note = "implement `oneport::run::Element` for it: `test_value`, which makes test data, is enough"
)]
pub trait Element: Copy + PartialEq + Debug + Send + Sync + 'static {
    /// A value made from 64 scrambled bits: test inputs, and what fills a buffer before anything is
    /// written. A verified run notices wrong data as far as these values differ, and as far as
    /// the operator's results depend on each of them.
    fn test_value(bits: u64) -> Self;

    /// Feeds all that tells `values` apart to `hasher`; outputs are compared by it. Without a
    /// definition of its own this is their [`Debug`] text, which is slow, and must show everything.
    fn digest(values: &[Self], hasher: &mut impl Hasher) {
        struct Text<'h, H>(&'h mut H);
        impl<H: Hasher> Write for Text<'_, H> {
            fn write_str(&mut self, text: &str) -> std::fmt::Result {
                self.0.write(text.as_bytes());
                Ok(())
            }
        }
        let mut text = Text(hasher);
        for value in values {
            // A Debug that fails has written a part, the same part each time.
            let _ = write!(text, "{value:?};");
        }
    }

    /// A test value for the operators of `purpose`: see [`crate::run::inputs`].
    #[doc(hidden)]
    fn sample(purpose: Purpose, draw: Draw) -> Self {
        let _ = purpose;
        Self::test_value(draw.bits())
    }

    /// The initial value of buffer elements that no step has written yet, made from `bits`.
    #[doc(hidden)]
    fn poison(purpose: Purpose, bits: u64) -> Self {
        let _ = purpose;
        Self::test_value(bits)
    }

    /// What [`Operator::none`](crate::run::Operator::none) makes of two elements: a value different
    /// from both, or probably so.
    #[doc(hidden)]
    fn spoiled(a: Self, b: Self) -> Self {
        let mut hasher = DefaultHasher::new();
        Self::digest(&[a, b], &mut hasher);
        Self::test_value(hasher.finish())
    }

    /// The built-in operator `op`, if the type has it.
    #[doc(hidden)]
    fn built_in(op: Op) -> Option<BuiltIn<Self>> {
        let _ = op;
        None
    }

    /// Which of this crate's own types it is.
    ///
    /// Their messages of up to 16 bytes travel in words that both partners read as initialized
    /// memory, long ones in vector registers, and MPI is told their datatype. All of this is sound
    /// only for types without padding, which no safe trait can promise for a foreign type. So other
    /// crates cannot define this method: they cannot name its argument.
    ///
    /// ```compile_fail,E0603
    /// use oneport::run::{Element, ElementType};
    ///
    /// /// Three bytes of padding, which must never be read.
    /// #[derive(Debug, Clone, Copy, PartialEq)]
    /// struct Padded(u32, u8);
    ///
    /// impl Element for Padded {
    ///     fn test_value(bits: u64) -> Self {
    ///         Padded(bits as u32, 0)
    ///     }
    ///     fn element_type(_: oneport::run::element::sealed::Seal) -> Option<ElementType> {
    ///         Some(ElementType::U64)
    ///     }
    /// }
    /// ```
    #[doc(hidden)]
    fn element_type(_: sealed::Seal) -> Option<ElementType> {
        None
    }
}

/// Keeps other crates from defining [`Element::element_type`].
pub(super) mod sealed {
    /// An argument that other crates cannot name.
    #[derive(Debug)]
    pub struct Seal;
}

/// The list of element types: name, variant, type.
macro_rules! element_types {
    ($($(#[$cfg:meta])? $name:literal $variant:ident $t:ty,)*) => {
        /// The element types, as a value. [`with_element_type!`](crate::with_element_type) leads
        /// back to the type.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ElementType {
            $(
                #[doc = concat!("`", $name, "`")]
                $(#[$cfg])?
                $variant,
            )*
        }

        impl ElementType {
            /// All element types, in the order they are listed to users.
            pub const ALL: &[ElementType] = &[$($(#[$cfg])? ElementType::$variant,)*];

            /// The name in files and on the command line, such as `u8` or `bf16`.
            pub fn name(self) -> &'static str {
                match self {
                    $($(#[$cfg])? ElementType::$variant => $name,)*
                }
            }

            /// Bits of the significand of a float, the implicit one included.
            #[doc(hidden)]
            pub fn significand_bits(self) -> Option<u32> {
                match self {
                    #[cfg(feature = "half")]
                    ElementType::F16 => Some(half::f16::MANTISSA_DIGITS),
                    #[cfg(feature = "half")]
                    ElementType::Bf16 => Some(half::bf16::MANTISSA_DIGITS),
                    ElementType::F32 => Some(f32::MANTISSA_DIGITS),
                    ElementType::F64 => Some(f64::MANTISSA_DIGITS),
                    _ => None,
                }
            }

            /// Bytes of one element: 1, 2, 4 or 8.
            pub fn bytes(self) -> u64 {
                match self {
                    $($(#[$cfg])? ElementType::$variant => size_of::<$t>() as u64,)*
                }
            }
        }
    };
}

element_types! {
    "u8" U8 u8,
    "i8" I8 i8,
    "u16" U16 u16,
    "i16" I16 i16,
    "u32" U32 u32,
    "i32" I32 i32,
    "u64" U64 u64,
    "i64" I64 i64,
    #[cfg(feature = "half")]
    "f16" F16 half::f16,
    #[cfg(feature = "half")]
    "bf16" Bf16 half::bf16,
    "f32" F32 f32,
    "f64" F64 f64,
    "i32_i32" I32I32 Located<i32>,
    "f32_i32" F32I32 Located<f32>,
}

/// Evaluates an expression in which a name stands for the Rust type of an
/// [`ElementType`](crate::run::ElementType).
///
/// ```
/// use oneport::run::{Element, ElementType};
/// fn bits<T: Element>() -> usize {
///     8 * size_of::<T>()
/// }
/// let dtype: ElementType = "f32".parse()?;
/// assert_eq!(oneport::with_element_type!(dtype, T => bits::<T>()), 32);
/// # Ok::<(), oneport::Error>(())
/// ```
#[macro_export]
macro_rules! with_element_type {
    (@ $dtype:expr, $t:ident => $value:expr, $($variant:ident $element:ty),*) => {
        match $dtype {
            $($crate::run::ElementType::$variant => {
                type $t = $element;
                $value
            })*
        }
    };
    ($dtype:expr, $t:ident => $value:expr) => {
        $crate::__with_half_types!($dtype, $t => $value,
            U8 u8, I8 i8, U16 u16, I16 i16, U32 u32, I32 i32, U64 u64, I64 i64, F32 f32, F64 f64,
            I32I32 $crate::run::Located<i32>, F32I32 $crate::run::Located<f32>)
    };
}

/// Adds the types of the feature `half`, which has to be asked for here: in the macro itself, the
/// features of the calling crate would count.
#[doc(hidden)]
#[macro_export]
#[cfg(feature = "half")]
macro_rules! __with_half_types {
    ($($all:tt)*) => {
        $crate::with_element_type!(@ $($all)*, F16 $crate::run::f16, Bf16 $crate::run::bf16)
    };
}

#[doc(hidden)]
#[macro_export]
#[cfg(not(feature = "half"))]
macro_rules! __with_half_types {
    ($($all:tt)*) => { $crate::with_element_type!(@ $($all)*) };
}

impl ElementType {
    /// Which of them `T` is; `None` for a type of another crate.
    #[inline]
    pub fn of<T: Element>() -> Option<ElementType> {
        T::element_type(sealed::Seal)
    }

    /// The built-in operators that combine elements of this type.
    pub fn operators(self) -> impl Iterator<Item = Op> {
        let has = move |op: &Op| crate::with_element_type!(self, T => T::built_in(*op).is_some());
        Op::ALL.into_iter().filter(has)
    }
}

named!(ElementType, "element type", str::to_owned);
