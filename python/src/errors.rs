//! The exceptions of the package.

use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

type Class = PyOnceLock<Py<PyType>>;

/// `oneport.Error`.
pub(crate) struct Error;

/// `oneport.UsageError`, which is a `ValueError`, too.
pub(crate) struct UsageError;

impl Error {
    pub(crate) fn class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
        static CLASS: Class = PyOnceLock::new();
        let make = || {
            let doc = "What the library refuses, in its words.";
            new_class(py, "Error", doc, &[py.get_type::<PyException>()])
        };
        CLASS.get_or_try_init(py, make).map(|class| class.bind(py))
    }

    pub(crate) fn new_err(message: impl Into<String>) -> PyErr {
        raise(Error::class, message.into())
    }
}

impl UsageError {
    pub(crate) fn class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
        static CLASS: Class = PyOnceLock::new();
        let make = || {
            let doc = "Bad usage or unreadable input.";
            let bases = [Error::class(py)?.clone(), py.get_type::<PyValueError>()];
            new_class(py, "UsageError", doc, &bases)
        };
        CLASS.get_or_try_init(py, make).map(|class| class.bind(py))
    }

    pub(crate) fn new_err(message: impl Into<String>) -> PyErr {
        raise(UsageError::class, message.into())
    }
}

/// A class as a statement of Python makes it: `PyErr::new_type` takes one base.
fn new_class(
    py: Python<'_>,
    name: &str,
    doc: &str,
    bases: &[Bound<'_, PyType>],
) -> PyResult<Py<PyType>> {
    let members = PyDict::new(py);
    members.set_item("__doc__", doc)?;
    members.set_item("__module__", "oneport")?;
    let bases = PyTuple::new(py, bases)?;
    let class = py.get_type::<PyType>().call1((name, bases, members))?;
    Ok(class.cast_into::<PyType>()?.unbind())
}

fn raise(class: fn(Python<'_>) -> PyResult<&Bound<'_, PyType>>, message: String) -> PyErr {
    Python::attach(|py| match class(py) {
        Ok(class) => PyErr::from_type(class.clone(), message),
        Err(error) => error,
    })
}

/// An error of the library.
pub(crate) fn error(error: &oneport::Error) -> PyErr {
    if error.is_usage() {
        UsageError::new_err(error.to_string())
    } else {
        Error::new_err(error.to_string())
    }
}
