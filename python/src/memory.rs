//! Memory that is shared with Python: inputs by the buffer protocol, outputs by the array interface
//! of NumPy. All unsafe code of this crate is here.
//!
//! The stable ABI has the buffer protocol from Python 3.11 on; the wheel is for 3.10, too. Each
//! CPython exports the two functions below, with the structure that 3.11 made stable, so they are
//! declared here. Addresses that an array reports (`__array_interface__`) would not do for inputs:
//! nothing keeps an array from being resized meanwhile, as an exported buffer does.

#![allow(unsafe_code)]

use std::any::Any;
use std::ffi::{CStr, c_char, c_int, c_void};

use oneport::run::{Element, ElementType};
use pyo3::ffi::{Py_ssize_t, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::errors::UsageError;

/// `Py_buffer` of `object.h`.
#[repr(C)]
struct PyBuffer {
    buf: *mut c_void,
    obj: *mut PyObject,
    len: Py_ssize_t,
    itemsize: Py_ssize_t,
    readonly: c_int,
    ndim: c_int,
    format: *mut c_char,
    shape: *mut Py_ssize_t,
    strides: *mut Py_ssize_t,
    suboffsets: *mut Py_ssize_t,
    internal: *mut c_void,
}

/// `PyBUF_C_CONTIGUOUS | PyBUF_FORMAT`.
const FLAGS: c_int = 0x20 | 0x10 | 0x08 | 0x04;

unsafe extern "C" {
    fn PyObject_GetBuffer(object: *mut PyObject, view: *mut PyBuffer, flags: c_int) -> c_int;
    fn PyBuffer_Release(view: *mut PyBuffer);
}

/// The elements of an object with the buffer protocol, which cannot go or be resized meanwhile.
/// Whoever writes them while a run reads them has undefined results, as with every C extension.
pub(crate) struct View<'py> {
    /// `None`: no elements.
    buffer: Option<Box<PyBuffer>>,
    pub(crate) dtype: Option<ElementType>,
    _attached: Python<'py>,
}

impl<'py> View<'py> {
    /// The input of `rank`.
    pub(crate) fn new(
        py: Python<'py>,
        object: Option<&Bound<'py, PyAny>>,
        rank: usize,
    ) -> PyResult<View<'py>> {
        let mut view = View {
            buffer: None,
            dtype: None,
            _attached: py,
        };
        let Some(object) = object else {
            return Ok(view);
        };
        let refused = |why: String| UsageError::new_err(format!("input of rank {rank}: {why}"));
        // SAFETY: null pointers and zeros are values of all fields.
        let mut buffer: Box<PyBuffer> = Box::new(unsafe { std::mem::zeroed() });
        // SAFETY: the object lives, this thread is attached, and the structure is writable.
        if unsafe { PyObject_GetBuffer(object.as_ptr(), &raw mut *buffer, FLAGS) } != 0 {
            let why = PyErr::fetch(py).value(py).to_string();
            return Err(refused(why));
        }
        view.buffer = Some(buffer);
        let (format, size, address) = view.described();
        let dtype = dtype(&format, size);
        let dtype =
            dtype.ok_or_else(|| refused(format!("no elements of the format '{format}'")))?;
        if !address.is_multiple_of(size) {
            return Err(refused("its elements are not aligned".into()));
        }
        view.dtype = Some(dtype);
        Ok(view)
    }

    /// Format, bytes of an element and address.
    fn described(&self) -> (String, usize, usize) {
        let Some(buffer) = &self.buffer else {
            return ("B".into(), 1, 0);
        };
        let format = if buffer.format.is_null() {
            "B".into()
        } else {
            // SAFETY: a format is a text that lives as long as the buffer is held.
            unsafe { CStr::from_ptr(buffer.format) }
                .to_string_lossy()
                .into_owned()
        };
        (format, buffer.itemsize.unsigned_abs(), buffer.buf.addr())
    }

    /// The elements.
    ///
    /// # Panics
    /// When there are some, of another type.
    pub(crate) fn elements<T: Element>(&self) -> &[T] {
        match &self.buffer {
            Some(buffer) if buffer.len > 0 => {
                assert_eq!(ElementType::of::<T>(), self.dtype);
                let count = buffer.len.unsigned_abs() / size_of::<T>();
                // SAFETY: contiguous elements of this type, aligned, which live as long as the
                // buffer is held. Every value of their bits is one.
                unsafe { std::slice::from_raw_parts(buffer.buf.cast::<T>(), count) }
            }
            _ => &[],
        }
    }
}

impl Drop for View<'_> {
    fn drop(&mut self) {
        if let Some(buffer) = &mut self.buffer {
            // SAFETY: it was got, and is released once, by a thread that is attached.
            unsafe { PyBuffer_Release(&raw mut **buffer) };
        }
    }
}

/// The element type of a format of the module `struct`.
fn dtype(format: &str, size: usize) -> Option<ElementType> {
    let native = if cfg!(target_endian = "little") {
        '<'
    } else {
        '>'
    };
    let kind = match format.trim_start_matches(['@', '=', native]) {
        "b" | "h" | "i" | "l" | "q" => 'i',
        "B" | "H" | "I" | "L" | "Q" => 'u',
        "e" | "f" | "d" => 'f',
        _ => return None,
    };
    format!("{kind}{}", 8 * size).parse().ok()
}

/// The output of a rank. NumPy makes an array of it by `asarray`, which does not copy.
#[pyclass(frozen, module = "oneport._oneport")]
pub(crate) struct Memory {
    address: usize,
    elements: usize,
    dtype: ElementType,
    element_bytes: usize,
    /// The vector, which nothing here touches any more: arrays may write it.
    _owner: Box<dyn Any + Send + Sync>,
}

impl Memory {
    pub(crate) fn new<T: Element>(mut vector: Vec<T>) -> Memory {
        Memory {
            address: vector.as_mut_ptr().expose_provenance(),
            elements: vector.len(),
            dtype: ElementType::of::<T>().unwrap_or(ElementType::U8),
            element_bytes: size_of::<T>(),
            _owner: Box::new(vector),
        }
    }
}

#[pymethods]
impl Memory {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let order = if cfg!(target_endian = "little") {
            '<'
        } else {
            '>'
        };
        let kind = &self.dtype.name()[..1];
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("shape", (self.elements,))?;
        interface.set_item("typestr", format!("{order}{kind}{}", self.element_bytes))?;
        interface.set_item("data", (self.address, false))?;
        Ok(interface)
    }

    /// A copy.
    fn tobytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let start = std::ptr::with_exposed_provenance::<u8>(self.address);
        // SAFETY: the vector lives as long as this object.
        let bytes =
            unsafe { std::slice::from_raw_parts(start, self.elements * self.element_bytes) };
        PyBytes::new(py, bytes)
    }
}
