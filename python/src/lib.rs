//! The part of the Python package that is Rust: calls of the command, and schedules as data. What
//! users see, and the names of all options, is in `oneport/__init__.py`.

mod door;
mod errors;
mod memory;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use oneport::internal::budget::memory::PYTHON_RANK_BYTES;
use oneport::internal::system;
use oneport::run::{Element, ElementType, Op, Operator, Run, Team};
use oneport::schedule::Builder;
use oneport::{CostModel, Kind, with_element_type};
use oneport_app::ask::{Value, Values};
use oneport_app::{Ask, Caller, Progress, StoredSchedule, quoted};
use oneport_pictures::{Trace, Unit};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyDict, PyString};

use door::{attached, detached};
use errors::{Error, UsageError, error};
use memory::{Memory, View};

/// What a call has come to.
#[pyclass(frozen, get_all, module = "oneport._oneport")]
struct Answer {
    output: String,
    text: String,
    notes: Vec<String>,
    files: BTreeMap<String, String>,
    exit_code: u8,
    error: Option<String>,
    unknown_option: Option<(String, Option<String>)>,
}

impl From<oneport_app::Answer> for Answer {
    fn from(answer: oneport_app::Answer) -> Answer {
        Answer {
            output: answer.output,
            text: answer.text,
            notes: answer.notes,
            files: answer.files,
            exit_code: answer.exit_code,
            error: answer.error,
            unknown_option: answer.unknown_option,
        }
    }
}

/// How often signals are looked for while work goes on.
const INTERVAL: Duration = Duration::from_millis(20);
/// The stack of a thread that works, that of a main thread.
const STACK_BYTES: usize = 8 << 20;

fn bug() -> PyErr {
    PyRuntimeError::new_err("a bug in oneport: please report it")
}

/// Does the work on a thread of its own, so that Ctrl-C ends the wait for it at once. The work ends
/// at its next look at the flag; what never looks goes on unseen. Meanwhile `look` is called, and
/// may raise, too.
fn interruptible<R: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(Arc<AtomicBool>) -> R + Send + 'static,
    mut look: impl FnMut() -> PyResult<()>,
) -> PyResult<R> {
    let (sender, result) = sync_channel(1);
    let result = Mutex::new(result);
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    thread.spawn(move || sender.send(work(flag)))?;
    loop {
        match detached(py, || Some(result.lock().ok()?.recv_timeout(INTERVAL)))? {
            Some(Ok(result)) => return Ok(result),
            Some(Err(RecvTimeoutError::Timeout)) => {
                py.check_signals().and_then(|()| look()).inspect_err(|_| {
                    stop.store(true, Ordering::Relaxed);
                })?;
            }
            _ => return Err(bug()),
        }
    }
}

/// What an option is given.
#[derive(FromPyObject)]
enum Given {
    Schedule(Py<Schedule>),
    Switch(bool),
    Word(String),
    Content(PyBackedBytes),
    Words(Vec<String>),
}

impl From<Given> for Value {
    fn from(given: Given) -> Value {
        match given {
            Given::Schedule(schedule) => Value::Schedule(Arc::clone(&schedule.get().stored)),
            Given::Switch(is_given) => Value::Switch(is_given),
            Given::Word(word) => Value::Word(word),
            Given::Content(bytes) => Value::Content(String::from_utf8_lossy(&bytes).into_owned()),
            Given::Words(words) => Value::Words(words),
        }
    }
}

type Options = BTreeMap<String, Given>;

fn values(options: Options) -> Values {
    let options = options.into_iter();
    options.map(|(name, given)| (name, given.into())).collect()
}

/// The words of a command line that does the same as a call.
#[pyfunction]
fn command_line(words: Vec<String>, options: Options) -> PyResult<Vec<String>> {
    let line = oneport_app::command_line(&words, &values(options));
    line.map_err(|error| UsageError::new_err(error.to_string()))
}

/// Whether a command has an option.
#[pyfunction]
fn has_option(words: Vec<String>, option: &str) -> PyResult<bool> {
    let has = oneport_app::has_option(&words, option);
    has.map_err(|error| UsageError::new_err(error.to_string()))
}

/// What a caller gets who asks for a command.
fn answered<R>(
    words: &[String],
    options: &Values,
    get: impl FnOnce(&Ask) -> (Answer, Option<R>),
) -> (Answer, Option<R>) {
    match Ask::by_name(words, options) {
        Ok(ask) => get(&ask),
        Err(error) => (oneport_app::Answer::failed(&error).into(), None),
    }
}

/// The command as a function. Pages and pictures say that they are made by `command`, or else by
/// what does the same; `progress` is called with units of work that are done, of how many, and what
/// is in work.
#[pyfunction]
fn call(
    py: Python<'_>,
    words: Vec<String>,
    options: Options,
    command: Option<String>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Answer> {
    /// Calls of `progress` are further apart than looks at signals by this factor.
    const LOOKS: u32 = 5;
    let told = Arc::new(Progress::default());
    let options = values(options);
    let own = || oneport_app::command_line(&words, &options).map(quoted);
    let mut caller = Caller::default();
    caller.command = command.map_or_else(own, Ok).unwrap_or_default().into();
    caller.progress = Some(Arc::clone(&told));
    let mut looks = 0;
    let look = || {
        looks += 1;
        match &progress {
            Some(progress) if looks % LOOKS == 0 => progress.call1(py, told.get()).map(drop),
            _ => Ok(()),
        }
    };
    let work = move |stop| {
        caller.stop = stop;
        answered::<()>(&words, &options, |ask| (ask.answer(&caller).into(), None)).0
    };
    interruptible(py, work, look)
}

/// The command as a process; some errors end it.
#[pyfunction]
fn main(py: Python<'_>, arguments: Vec<String>) -> PyResult<u8> {
    let command = || oneport_cli::main(arguments.into_iter().map(Into::into));
    let code = detached(py, command)?;
    let same = |number: &u8| std::process::ExitCode::from(*number) == code;
    Ok((0..=u8::MAX).find(same).unwrap_or_default())
}

/// The schedule and the costs that options of `plan` describe.
#[pyfunction]
fn plan(py: Python<'_>, options: Options) -> PyResult<(Answer, Option<Schedule>)> {
    let options = values(options);
    let work = move |stop| {
        let mut caller = Caller::default();
        caller.stop = stop;
        answered(&["plan".into()], &options, |ask| {
            let (answer, stored) = ask.input(&caller);
            (answer.into(), stored)
        })
    };
    let (answer, stored) = interruptible(py, work, || Ok(()))?;
    Ok((answer, stored.map(Schedule::from)))
}

/// A schedule that was pickled, but for its costs: calls have theirs.
#[pyfunction]
fn restored(json: &str, origin: &str) -> PyResult<Schedule> {
    let schedule = oneport::Schedule::from_json(json).map_err(|e| error(&e))?;
    let stored = StoredSchedule::restored(schedule, CostModel::new(0.0, 0.0), origin);
    let stored = stored.ok_or_else(|| UsageError::new_err("not a pickled schedule"))?;
    Ok(stored.into())
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
        let what = format!("a builder of {ranks} ranks");
        system::ensure_memory(&what, ranks as u128 * u128::from(PYTHON_RANK_BYTES))?;
        let collective = collective.parse::<Kind>()?.with_root(root);
        let collective = collective.with_targets(targets);
        Builder::laid_out(ranks, collective, elements).build()
    };
    build()
        .map(|schedule| schedule.to_json())
        .map_err(|e| error(&e))
}

/// A schedule, and the costs that it was planned or read with.
#[pyclass(frozen, module = "oneport._oneport")]
struct Schedule {
    stored: Arc<StoredSchedule>,
    /// The first error of one that was not planned, once it has been looked for.
    first_error: OnceLock<Option<String>>,
}

impl From<StoredSchedule> for Schedule {
    fn from(stored: StoredSchedule) -> Schedule {
        Schedule {
            stored: Arc::new(stored),
            first_error: OnceLock::new(),
        }
    }
}

#[pymethods]
impl Schedule {
    /// The JSON form.
    fn json(&self) -> String {
        self.stored.schedule.to_json()
    }

    #[getter]
    fn collective(&self) -> &'static str {
        self.stored.schedule.collective().kind().name()
    }

    #[getter]
    fn ranks(&self) -> usize {
        self.stored.schedule.ranks()
    }

    #[getter]
    fn name(&self) -> Option<&str> {
        self.stored.schedule.name()
    }

    /// The algorithm, unless it was read.
    #[getter]
    fn algorithm(&self) -> Option<&str> {
        self.stored.algorithm()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String, String))> {
        let restored = py.import("oneport._oneport")?.getattr("restored")?;
        Ok((restored, (self.json(), self.stored.origin())))
    }

    /// Number of steps.
    fn __len__(&self) -> usize {
        self.stored.schedule.steps()
    }

    fn __eq__(&self, other: &Schedule) -> bool {
        self.stored.schedule == other.stored.schedule
    }

    /// The columns of a table with a row for each transfer or computation of each rank.
    fn table<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let trace = detached(py, || {
            Trace::model(&self.stored.schedule, &self.stored.cost, Unit::Plain)
        })?;
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

    /// Runs the schedule on a thread for each rank, on the memory of these objects. `dtype` is the
    /// type of its elements, if it has one; `check` proves a schedule that was not planned first.
    #[expect(
        clippy::too_many_arguments,
        reason = "the names are in the Python part"
    )]
    fn run(
        &self,
        py: Python<'_>,
        inputs: Vec<Option<Bound<'_, PyAny>>>,
        op: Option<Bound<'_, PyAny>>,
        commutes: bool,
        dtype: Option<&str>,
        deadline: Option<f64>,
        check: bool,
    ) -> PyResult<Vec<Memory>> {
        let views = inputs.iter().enumerate();
        let views = views.map(|(rank, input)| View::new(py, input.as_ref(), rank));
        let views = views.collect::<PyResult<Vec<View>>>()?;
        let own: Option<ElementType> = dtype
            .map(|name| name.parse().map_err(|e| error(&e)))
            .transpose()?;
        let mut given = views.iter().filter_map(|view| view.dtype);
        let dtype = own.or_else(|| given.clone().next());
        let dtype = dtype.unwrap_or(ElementType::U8);
        if let Some(other) = given.find(|other| *other != dtype) {
            return Err(UsageError::new_err(match own {
                Some(own) => format!(
                    "inputs of {other}, but the schedule is one of {own}: it was planned or read with this dtype"
                ),
                None => format!("inputs of different types, {dtype} and {other}"),
            }));
        }
        if check && let Some(first) = self.first_error(py)? {
            return Err(Error::new_err(format!(
                "wrong schedule: {first} (not run: check=False runs it all the same)"
            )));
        }
        let deadline = deadline.map(Duration::try_from_secs_f64).transpose();
        let deadline = deadline.map_err(|why| {
            UsageError::new_err(format!("deadline is a number of seconds: {why}"))
        })?;
        let kind = self.stored.schedule.collective().kind();
        let Some(op) = op else {
            if kind.reduces() {
                let kind = kind.name();
                return Err(UsageError::new_err(format!(
                    "{kind} combines: give op, such as op='sum', or a function of two elements"
                )));
            }
            return with_element_type!(dtype, T => {
                self.typed::<T>(py, &views, None, deadline, Arc::default())
            });
        };
        if let Ok(name) = op.cast::<PyString>() {
            let op: Op = name.to_str()?.parse().map_err(|e| error(&e))?;
            return with_element_type!(dtype, T => {
                let operator = Operator::<T>::named(op.name()).map_err(|e| error(&e))?;
                self.typed(py, &views, Some(operator), deadline, Arc::default())
            });
        }
        let failed = Arc::new(Mutex::new(None));
        let stop = Arc::new(AtomicBool::new(false));
        macro_rules! with_callable {
            ($($dtype:ident $t:ty),*) => {
                match dtype {
                    $(ElementType::$dtype => {
                        let asked = Arc::clone(&stop);
                        let failed = Arc::clone(&failed);
                        let operator = callable::<$t>(op.unbind(), commutes, failed, asked);
                        self.typed(py, &views, Some(operator), deadline, stop)
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
    /// The first error of a schedule that was not planned.
    fn first_error(&self, py: Python<'_>) -> PyResult<Option<&str>> {
        if self.stored.algorithm().is_some() {
            return Ok(None);
        }
        let find = || {
            let report = self.stored.schedule.check();
            let others = report.errors.len() + report.more;
            let first = report.errors.first()?;
            Some(match others {
                0 | 1 => first.to_string(),
                n => format!("{first} (and {} more)", n - 1),
            })
        };
        let found = detached(py, || self.first_error.get_or_init(find))?;
        Ok(found.as_deref())
    }

    /// Runs on another thread, so that this one sees Ctrl-C, which sets `stop` and ends the run.
    fn typed<T: Element>(
        &self,
        py: Python<'_>,
        views: &[View],
        operator: Option<Operator<T>>,
        deadline: Option<Duration>,
        stop: Arc<AtomicBool>,
    ) -> PyResult<Vec<Memory>> {
        let schedule = &self.stored.schedule;
        let inputs: Vec<&[T]> = views.iter().map(View::elements).collect();
        let mut run = Run::new(schedule).inputs(&inputs).stop(Arc::clone(&stop));
        if let Some(operator) = operator {
            run = run.op(operator);
        }
        if let Some(deadline) = deadline {
            run = run.deadline(deadline);
        }
        let on_team = || run.on(&mut Team::new(schedule.ranks())?);
        let outcome = detached(py, || {
            std::thread::scope(|scope| {
                let (sender, result) = sync_channel(1);
                let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
                thread.spawn_scoped(scope, move || drop(sender.send(on_team())))?;
                let mut raised = None;
                let outcome = loop {
                    match result.recv_timeout(INTERVAL) {
                        Ok(outcome) => break outcome,
                        Err(RecvTimeoutError::Disconnected) => return Err(bug()),
                        Err(RecvTimeoutError::Timeout) if raised.is_none() => {
                            raised = attached(|py| py.check_signals()).and_then(Result::err);
                            stop.store(raised.is_some(), Ordering::Relaxed);
                        }
                        Err(RecvTimeoutError::Timeout) => {}
                    }
                };
                raised.map_or(Ok(outcome), Err)
            })
        })?;
        let outcome = outcome?.map_err(|e| error(&e))?;
        Ok(outcome.outputs.into_iter().map(Memory::new).collect())
    }
}

/// An operator that calls a function of Python for each element. If that raises, the run ends, and
/// `failed` has what was raised first. It ends, too, in the middle of a message, if somebody sets
/// `stop`.
fn callable<T>(
    function: Py<PyAny>,
    commutes: bool,
    failed: Arc<Mutex<Option<PyErr>>>,
    stop: Arc<AtomicBool>,
) -> Operator<T>
where
    T: Element + for<'py> IntoPyObject<'py> + for<'a, 'py> FromPyObject<'a, 'py>,
{
    Operator::new("callable", commutes, move |a: T, b: T| {
        let go_on = !stop.load(Ordering::Relaxed);
        let result = go_on.then(|| {
            attached(|py| {
                let result = function.call1(py, (a, b))?;
                result.extract::<T>(py).map_err(Into::into)
            })
        });
        let result = match result.flatten() {
            Some(Ok(result)) => Some(result),
            Some(Err(raised)) => {
                if let Ok(mut failed) = failed.lock() {
                    failed.get_or_insert(raised);
                }
                None
            }
            // The interpreter ends, or Ctrl-C, and the run with it.
            None => None,
        };
        result.unwrap_or_else(|| {
            // As a panic, but without its message on standard error.
            std::panic::resume_unwind(Box::new("the operator raised an exception"))
        })
    })
}

#[pymodule]
fn _oneport(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    let types = ElementType::ALL.iter().map(|t| (t.name(), t.bytes()));
    module.add("element_types", types.collect::<Vec<_>>())?;
    module.add("Error", Error::class(py)?)?;
    module.add("UsageError", UsageError::class(py)?)?;
    module.add_class::<Answer>()?;
    module.add_class::<Schedule>()?;
    module.add_class::<Memory>()?;
    module.add_function(wrap_pyfunction!(door::close, module)?)?;
    module.add_function(wrap_pyfunction!(call, module)?)?;
    module.add_function(wrap_pyfunction!(command_line, module)?)?;
    module.add_function(wrap_pyfunction!(has_option, module)?)?;
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add_function(wrap_pyfunction!(plan, module)?)?;
    module.add_function(wrap_pyfunction!(restored, module)?)?;
    module.add_function(wrap_pyfunction!(laid_out, module)?)
}
