//! A call of the program, and its arguments, by which it is seen to be as the last one was.

use std::ffi::{c_int, c_void};

use oneport::Kind;

use crate::describe::Number as _;
use crate::library::{Library, Word};

/// The most numbers and handles that a function without lists has, and addresses of data.
const MAX_WORDS: usize = 6;
const MAX_PLACES: usize = 2;

/// A call of the program.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) function: &'static str,
    pub(crate) kind: Kind,
    pub(crate) communicator: Word,
    pub(crate) arguments: Arguments,
}

impl Call {
    /// Whether it can be seen to be as the last one was.
    #[inline(always)]
    pub(crate) fn may_repeat(&self) -> bool {
        !self.arguments.has_lists
    }
}

/// The arguments of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arguments {
    /// Numbers and handles.
    words: [usize; MAX_WORDS],
    next_word: usize,
    /// Where data are.
    places: [*mut c_void; MAX_PLACES],
    next_place: usize,
    /// Whether there are lists, which may be others at each call.
    has_lists: bool,
}

impl Arguments {
    pub(crate) const NONE: Arguments = Arguments {
        words: [0; MAX_WORDS],
        next_word: 0,
        places: [std::ptr::null_mut(); MAX_PLACES],
        next_place: 0,
        has_lists: false,
    };

    /// Adds one more. (In place: were it moved, it would be copied for each argument.)
    #[inline(always)]
    pub(crate) fn add(&mut self, argument: impl Argument) {
        argument.add_to(self);
    }

    /// Whether the call differs from another one of its collective in nothing but the addresses of
    /// data.
    #[inline]
    pub(crate) fn are_like(&self, other: &Arguments, library: &Library) -> bool {
        let mut words = self.words.iter().zip(&other.words);
        let mut places = self.places.iter().zip(&other.places);
        // One by one: they have just been written so.
        !self.has_lists
            && words.all(|(a, b)| a == b)
            && places.all(|(&a, &b)| library.is_in_place(a) == library.is_in_place(b))
    }

    /// Which of the addresses this is, if there can be no doubt.
    pub(crate) fn which(&self, place: *mut c_void) -> Option<usize> {
        let [first, second] = self.places;
        let found = || self.places.iter().position(|&other| other == place);
        (first != second).then(found).flatten()
    }

    /// The address of this number.
    #[inline]
    pub(crate) fn place(&self, which: usize) -> *mut c_void {
        self.places[which]
    }

    #[inline(always)]
    fn add_word(&mut self, word: usize) {
        self.words[self.next_word] = word;
        self.next_word += 1;
    }
}

/// What a function takes.
pub(crate) trait Argument {
    fn add_to(self, arguments: &mut Arguments);
}

impl Argument for *mut c_void {
    #[inline(always)]
    fn add_to(self, arguments: &mut Arguments) {
        arguments.places[arguments.next_place] = self;
        arguments.next_place += 1;
    }
}

impl Argument for *const c_void {
    #[inline(always)]
    fn add_to(self, arguments: &mut Arguments) {
        self.cast_mut().add_to(arguments);
    }
}

macro_rules! arguments {
    ($($type:ty: $arguments:ident, $argument:ident => $add:expr;)*) => {$(
        impl Argument for $type {
            #[inline(always)]
            fn add_to(self, $arguments: &mut Arguments) {
                let $argument = self;
                $add;
            }
        }
    )*};
}

arguments! {
    Word: all, word => all.add_word(word);
    c_int: all, number => all.add_word(number.get().cast_unsigned());
    i64: all, number => all.add_word(number.get().cast_unsigned());
    *const c_int: all, _list => all.has_lists = true;
    *const i64: all, _list => all.has_lists = true;
    *const isize: all, _list => all.has_lists = true;
}
