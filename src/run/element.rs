//! The element types of vectors.

use std::fmt::{Debug, Display};
use std::hash::DefaultHasher;

use super::testdata::{Draw, Purpose};
use crate::error::{Error, Result};

/// A type of the elements of vectors.
///
/// The trait is sealed: only this crate implements it. A transfer moves elements as bytes. A
/// message of up to 16 bytes is carried in words that both partners read as initialized memory, and
/// is combined in place there. Both are sound only for a type without padding whose alignment is
/// not stricter than that of these words. No safe trait can guarantee that for a foreign type.
///
/// ```compile_fail,E0277
/// use oneport::run::{Element, ElementType};
///
/// /// Three bytes of padding, which must never be read.
/// #[derive(Debug, Clone, Copy, Default, PartialEq, PartialOrd)]
/// struct Padded(u32, u8);
///
/// impl std::fmt::Display for Padded {
///     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
///         write!(f, "{} {}", self.0, self.1)
///     }
/// }
///
/// impl Element for Padded {
///     const TYPE: ElementType = ElementType::U64;
/// }
/// ```
pub trait Element:
    sealed::Sealed + Copy + Default + PartialEq + PartialOrd + Debug + Display + Send + Sync + 'static
{
    /// The type as a value.
    const TYPE: ElementType;

    /// A test value: see [`crate::run::inputs`].
    #[doc(hidden)]
    fn sample(purpose: Purpose, draw: Draw) -> Self;

    /// The initial value of buffer elements that no step has written yet, made from `bits`.
    #[doc(hidden)]
    fn poison(purpose: Purpose, bits: u64) -> Self;

    /// What [`Operator::none`](super::Operator::none) makes of two elements: a value different from
    /// both.
    #[doc(hidden)]
    fn spoiled(a: Self, b: Self) -> Self;

    /// Feeds all bits of `values` to `hasher`.
    #[doc(hidden)]
    fn hash(values: &[Self], hasher: &mut DefaultHasher);

    /// The built-in operator `name`, if the type has it.
    #[doc(hidden)]
    fn built_in(name: &str) -> Option<super::operator::Operator<Self>>;
}

/// Keeps other crates from implementing [`Element`].
mod sealed {
    /// A type without padding, aligned to at most 8 bytes: see [`Element`](super::Element).
    ///
    /// Types without these properties could be allowed if their messages never travelled inside a
    /// lane: such messages would stay in the sender's memory, whatever their length, and only the
    /// type itself would read its bytes.
    pub trait Sealed {}

    /// Primitive numbers, and the 16-bit floats, each of which wraps a `u16`, have no padding.
    macro_rules! seal {
        ($($t:ty),*) => {
            $(impl Sealed for $t {})*
        };
    }

    seal!(
        u8,
        i8,
        u16,
        i16,
        u32,
        i32,
        u64,
        i64,
        f32,
        f64,
        half::f16,
        half::bf16
    );
}

/// The list of element types: name, variant, type.
macro_rules! element_types {
    ($($name:literal $variant:ident $t:ty,)*) => {
        /// The element types, as a value.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "the names of the types")]
        pub enum ElementType {
            $($variant,)*
        }

        impl ElementType {
            /// All element types.
            pub const ALL: [ElementType; [$($name),*].len()] = [$(ElementType::$variant,)*];

            /// The name, as in Rust.
            pub fn name(self) -> &'static str {
                match self {
                    $(ElementType::$variant => $name,)*
                }
            }

            /// Bytes of one element.
            pub fn bytes(self) -> usize {
                match self {
                    $(ElementType::$variant => size_of::<$t>(),)*
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
    "f16" F16 half::f16,
    "bf16" Bf16 half::bf16,
    "f32" F32 f32,
    "f64" F64 f64,
}

/// Evaluates an expression in which a name stands for the Rust type of an
/// [`ElementType`](crate::run::ElementType).
///
/// ```
/// use oneport::run::{Element, ElementType};
/// fn bits<T: Element>() -> usize {
///     8 * size_of::<T>()
/// }
/// let dtype = ElementType::parse("bf16")?;
/// assert_eq!(oneport::with_element_type!(dtype, T => bits::<T>()), 16);
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
        $crate::with_element_type!(@ $dtype, $t => $value,
            U8 u8, I8 i8, U16 u16, I16 i16, U32 u32, I32 i32, U64 u64, I64 i64,
            F16 $crate::run::f16, Bf16 $crate::run::bf16, F32 f32, F64 f64)
    };
}

impl ElementType {
    /// The element type called `name`.
    ///
    /// # Errors
    /// When there is none; the message lists all names.
    pub fn parse(name: &str) -> Result<ElementType> {
        ElementType::ALL
            .into_iter()
            .find(|t| t.name() == name)
            .ok_or_else(|| {
                let names = ElementType::ALL.map(ElementType::name).join(", ");
                Error::usage(format!(
                    "unknown element type '{name}': choose one of {names}"
                ))
            })
    }
}
