//! The part of the Python package that is Rust: calls of the command, and schedules as data. What
//! users see, and the names of all options, is in `oneport/__init__.py`.

mod memory;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use oneport::run::{Element, ElementType, Op, Operator, Run, Team};
use oneport::schedule::Builder;
use oneport::{Collective, CostModel, Kind, with_element_type};
use oneport_cli::{Answer, Call};
use oneport_pictures::{Trace, Unit};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use memory::{Memory, View};

create_exception!(
    oneport,
    Error,
    PyException,
    "What the library refuses, in its words."
);
create_exception!(oneport, UsageError, Error, "Bad usage or unreadable input.");

fn error(error: &oneport::Error) -> PyErr {
    match error.is_usage() {
        true => UsageError::new_err(error.to_string()),
        false => Error::new_err(error.to_string()),
    }
}

/// What Python gets of an answer: output, notes, files, exit code and error.
type Parts = (
    String,
    Vec<String>,
    BTreeMap<String, String>,
    u8,
    Option<String>,
);

fn parts(answer: Answer) -> Parts {
    let Answer {
        output,
        notes,
        files,
        exit_code,
        error,
    } = answer;
    (output, notes, files, exit_code, error)
}

/// Does the work on a thread of its own, so that Ctrl-C ends the wait for it at once. The work ends
/// at its next look at the flag; what never looks goes on unseen.
fn interruptible<R: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(Arc<AtomicBool>) -> R + Send + 'static,
) -> PyResult<R> {
    /// How often signals are looked for.
    const INTERVAL: Duration = Duration::from_millis(20);
    /// That of a main thread.
    const STACK_BYTES: usize = 8 << 20;
    let (sender, result) = sync_channel(1);
    let result = Mutex::new(result);
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    thread.spawn(move || sender.send(work(flag)))?;
    let wait = || Some(result.lock().ok()?.recv_timeout(INTERVAL));
    loop {
        match py.detach(wait) {
            Some(Ok(result)) => return Ok(result),
            Some(Err(RecvTimeoutError::Timeout)) => py.check_signals().inspect_err(|_| {
                stop.store(true, Ordering::Relaxed);
            })?,
            _ => {
                return Err(PyRuntimeError::new_err(
                    "a bug in oneport: please report it",
                ));
            }
        }
    }
}

fn call_of(arguments: Vec<String>, files: BTreeMap<String, String>) -> Call {
    let call = Call::new(arguments);
    files
        .into_iter()
        .fold(call, |call, (name, content)| call.file(name, content))
}

/// The command as a function.
#[pyfunction]
fn call(
    py: Python<'_>,
    arguments: Vec<String>,
    files: BTreeMap<String, String>,
) -> PyResult<Parts> {
    let call = call_of(arguments, files);
    interruptible(py, |stop| parts(call.stop(stop).answer()))
}

/// The command as a process; some errors end it.
#[pyfunction]
fn main(py: Python<'_>, arguments: Vec<String>) -> u8 {
    let code = py.detach(|| oneport_cli::main(arguments.into_iter().map(Into::into)));
    let same = |number: &u8| std::process::ExitCode::from(*number) == code;
    (0..=u8::MAX).find(same).unwrap_or_default()
}

/// The schedule and the costs that arguments of `plan` describe.
#[pyfunction]
fn plan(
    py: Python<'_>,
    arguments: Vec<String>,
    files: BTreeMap<String, String>,
) -> PyResult<(Parts, Option<Schedule>)> {
    let call = call_of(arguments, files);
    let (answer, input) = interruptible(py, |stop| call.stop(stop).input())?;
    let schedule = input.map(|(schedule, cost)| Schedule { schedule, cost });
    Ok((parts(answer), schedule))
}

/// The JSON form of a schedule without steps, with buffers laid out.
#[pyfunction]
fn laid_out(
    collective: &str,
    ranks: usize,
    elements: usize,
    root: usize,
    targets: Vec<usize>,
) -> PyResult<String> {
    let build = || {
        let collective = match collective.parse::<Kind>()?.with_root(root) {
            Collective::Multicast { root, .. } => Collective::Multicast { root, targets },
            collective => collective,
        };
        Builder::laid_out(ranks, collective, elements).build()
    };
    build()
        .map(|schedule| schedule.to_json())
        .map_err(|e| error(&e))
}

/// A schedule, and the costs that it was planned or read with.
#[pyclass(frozen, module = "oneport._oneport")]
struct Schedule {
    schedule: oneport::Schedule,
    cost: CostModel,
}

#[pymethods]
impl Schedule {
    /// The JSON form.
    fn json(&self) -> String {
        self.schedule.to_json()
    }

    #[getter]
    fn collective(&self) -> &'static str {
        self.schedule.collective().kind().name()
    }

    #[getter]
    fn ranks(&self) -> usize {
        self.schedule.ranks()
    }

    /// Number of steps.
    fn __len__(&self) -> usize {
        self.schedule.steps()
    }

    fn __eq__(&self, other: &Schedule) -> bool {
        self.schedule == other.schedule
    }

    /// The columns of a table with a row for each transfer or computation of each rank.
    fn table<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let trace = py.detach(|| Trace::model(&self.schedule, &self.cost, Unit::Plain));
        let rows = trace.map_err(|e| error(&e))?.activities;
        let columns = PyDict::new(py);
        macro_rules! columns {
            ($($name:ident $value:expr),*) => {
                $(columns.set_item(stringify!($name), rows.iter().map($value).collect::<Vec<_>>())?;)*
            };
        }
        columns!(
            rank | a | a.rank,
            step | a | a.step,
            work | a | a.what.name(),
            peer | a | a.peer,
            port | a | a.port,
            bytes | a | a.bytes,
            start | a | a.start,
            end | a | a.end,
            critical | a | a.critical
        );
        Ok(columns)
    }

    /// Runs the schedule on a thread for each rank, on the memory of these objects.
    fn run(
        &self,
        py: Python<'_>,
        inputs: Vec<Option<Bound<'_, PyAny>>>,
        op: Option<Bound<'_, PyAny>>,
        commutes: bool,
    ) -> PyResult<Vec<Memory>> {
        let views = inputs.iter().enumerate();
        let views = views.map(|(rank, input)| View::new(py, input.as_ref(), rank));
        let views = views.collect::<PyResult<Vec<View>>>()?;
        let mut dtypes = views.iter().filter_map(|view| view.dtype);
        let dtype = dtypes.next().unwrap_or(ElementType::U8);
        if let Some(other) = dtypes.find(|other| *other != dtype) {
            let message = format!("inputs of different types, {dtype} and {other}");
            return Err(UsageError::new_err(message));
        }
        let Some(op) = op else {
            return with_element_type!(dtype, T => self.typed::<T>(py, &views, None));
        };
        if let Ok(name) = op.cast::<PyString>() {
            let op: Op = name.to_str()?.parse().map_err(|e| error(&e))?;
            return with_element_type!(dtype, T => {
                let operator = Operator::<T>::named(op.name()).map_err(|e| error(&e))?;
                self.typed(py, &views, Some(operator))
            });
        }
        let failed = Arc::new(Mutex::new(None));
        macro_rules! with_callable {
            ($($dtype:ident $t:ty),*) => {
                match dtype {
                    $(ElementType::$dtype => {
                        let operator = callable::<$t>(op.unbind(), commutes, Arc::clone(&failed));
                        self.typed(py, &views, Some(operator))
                    })*
                    _ => Err(UsageError::new_err(format!("a callable cannot combine {dtype}"))),
                }
            };
        }
        let outputs = with_callable!(U8 u8, I8 i8, U16 u16, I16 i16, U32 u32, I32 i32, U64 u64,
            I64 i64, F32 f32, F64 f64);
        match failed.lock().ok().and_then(|mut failed| failed.take()) {
            Some(raised) => Err(raised),
            None => outputs,
        }
    }
}

impl Schedule {
    fn typed<T: Element>(
        &self,
        py: Python<'_>,
        views: &[View],
        operator: Option<Operator<T>>,
    ) -> PyResult<Vec<Memory>> {
        let inputs: Vec<&[T]> = views.iter().map(View::elements).collect();
        let outcome = py.detach(|| {
            let mut run = Run::new(&self.schedule).inputs(&inputs);
            if let Some(operator) = operator {
                run = run.op(operator);
            }
            run.on(&mut Team::new(self.schedule.ranks())?)
        });
        let outputs = outcome.map_err(|e| error(&e))?.outputs.into_iter();
        Ok(outputs.map(Memory::new).collect())
    }
}

/// An operator that calls a function of Python for each element. If that raises, the run ends, and
/// `failed` has what was raised first.
fn callable<T>(
    function: Py<PyAny>,
    commutes: bool,
    failed: Arc<Mutex<Option<PyErr>>>,
) -> Operator<T>
where
    T: Element + for<'py> IntoPyObject<'py> + for<'a, 'py> FromPyObject<'a, 'py>,
{
    Operator::new("callable", commutes, move |a: T, b: T| {
        let result = Python::attach(|py| {
            let result = function.call1(py, (a, b))?;
            result.extract::<T>(py).map_err(Into::into)
        });
        result.unwrap_or_else(|raised: PyErr| {
            if let Ok(mut failed) = failed.lock() {
                failed.get_or_insert(raised);
            }
            // As a panic, but without its message on standard error.
            std::panic::resume_unwind(Box::new("the operator raised an exception"))
        })
    })
}

#[pymodule]
fn _oneport(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("Error", py.get_type::<Error>())?;
    module.add("UsageError", py.get_type::<UsageError>())?;
    module.add_class::<Schedule>()?;
    module.add_class::<Memory>()?;
    module.add_function(wrap_pyfunction!(call, module)?)?;
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add_function(wrap_pyfunction!(plan, module)?)?;
    module.add_function(wrap_pyfunction!(laid_out, module)?)
}
