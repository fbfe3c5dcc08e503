//! What the processes of a run must have in common, in words.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::machine::{CostModel, Eager, Ports};
use crate::run::engine::{OperatorSpec, RunBuffers, RunOptions, RunPerformer, RunSpec};
use crate::run::{Element, ElementType, ScopeOptions};
use crate::schedule::{Schedule, total_len};

/// All that what a run does, and whether its result is right, depend on: see
/// [`World::ensure_same`](super::World::ensure_same).
pub(super) fn summary(spec: &RunSpec<'_>, buffers: &dyn RunBuffers) -> Vec<String> {
    let schedule = spec.schedule;
    let RunOptions {
        // Native and not recorded, as over MPI all runs are.
        clock: _,
        trace: _,
        cost,
        deadline,
        repetitions,
        warmup,
        ports,
        eager,
        keep_inputs,
        by,
        // Over MPI a signal ends the processes.
        stop: _,
    } = spec.options;
    let reduces = schedule.collective().kind().reduces();
    let element = spec.element.own.map_or("unknown", ElementType::name);
    vec![
        match by {
            RunPerformer::Schedule => "runs a schedule",
            RunPerformer::Library => "calls the library's own function",
            RunPerformer::IrregularLibrary => "calls the library's function for unequal blocks",
            RunPerformer::BlockingMessages => "calls the library's blocking send and receive",
        }
        .to_owned(),
        collective(schedule),
        format!(
            "has elements of {element}, {} bytes in the model",
            schedule.element_bytes()
        ),
        layout(schedule),
        format!("has {} port(s)", in_words(schedule.ports())),
        format!(
            "really has {} port(s)",
            in_words(ports.unwrap_or(schedule.ports()))
        ),
        format!(
            "has a schedule of {} steps (digest {:016x})",
            schedule.steps(),
            digest(&(schedule.programs(), schedule.shared_ports()))
        ),
        either(
            buffers.has_inputs(),
            "has inputs of its own",
            "has test data",
        ),
        either(
            spec.verified,
            "verifies its results",
            "does not verify its results",
        ),
        if reduces {
            combines(&spec.operator, buffers)
        } else {
            "combines nothing".to_owned()
        },
        format!("runs {repetitions} repetitions after {warmup} that are not timed"),
        either(
            *eager,
            "has senders that need not wait",
            "has senders that wait for their receivers",
        ),
        either(
            *keep_inputs,
            "keeps its inputs",
            "writes its inputs before each repetition",
        ),
        format!("waits {deadline:?} for a partner"),
        costs(cost),
    ]
}

/// As [`summary`], of rank programs on elements of type `element`.
pub(super) fn program_summary<T: Element>(
    options: &ScopeOptions<T>,
    ports: Ports,
    element: ElementType,
) -> Vec<String> {
    let (operator, deadline) = (&options.operator, options.deadline);
    vec![
        format!("runs a rank program on elements of {}", element.name()),
        format!("has {} port(s)", in_words(ports)),
        format!("combines by {}", operator.name()),
        format!("waits {deadline:?} for a partner"),
        either(options.record, "records its steps", "records no steps"),
        costs(&options.cost),
    ]
}

fn either(is_so: bool, yes: &str, no: &str) -> String {
    if is_so { yes } else { no }.to_owned()
}

fn in_words(ports: Ports) -> String {
    format!("{} {}", ports.k(), ports.name())
}

fn collective(schedule: &Schedule) -> String {
    let (collective, ranks) = (schedule.collective(), schedule.ranks());
    let (name, all) = (collective.kind().name(), digest(collective));
    let root = collective.root();
    let root = root.map_or_else(String::new, |root| format!(" with root {root}"));
    format!("has a {name} of {ranks} ranks{root} (digest {all:016x})")
}

fn layout(schedule: &Schedule) -> String {
    let layout = schedule.layout();
    let all = |lengths: &mut dyn Iterator<Item = usize>| lengths.fold(0, usize::saturating_add);
    let inputs = all(&mut layout.iter().map(|l| total_len(&l.input)));
    let outputs = all(&mut layout.iter().map(|l| total_len(&l.output)));
    format!(
        "has {inputs} input and {outputs} output elements in all (layout {:016x})",
        digest(&layout)
    )
}

/// A user's operator is more than its name: two of one name are told apart by whether they commute
/// and, on test data, by what they compute.
fn combines(operator: &OperatorSpec<'_>, buffers: &dyn RunBuffers) -> String {
    let name = operator.name;
    if operator.built_in.is_some() {
        return format!("combines by {name}");
    }
    let commutes = if operator.commutes {
        "commutes"
    } else {
        "does not commute"
    };
    let results = if buffers.has_inputs() {
        String::new()
    } else {
        match catch_unwind(AssertUnwindSafe(|| buffers.probe())) {
            Ok(results) => format!(", and test values give digest {results:016x}"),
            Err(_) => ", and panics on test values".to_owned(),
        }
    };
    format!("combines by an operator of the user, {name}, which {commutes}{results}")
}

/// All of the model counts: the order of a run's messages follows from it, and so may a deadlock of
/// processes whose models differ.
fn costs(cost: &CostModel) -> String {
    let rates = cost.rates();
    let (alpha, beta, gamma, copy) = (rates.alpha, rates.beta, rates.gamma, rates.gamma_copy);
    let overlaps = if cost.overlaps() {
        "with overlap"
    } else {
        "without overlap"
    };
    let delays = if cost.is_ideal() {
        String::new()
    } else {
        format!(
            ", latency {} from rank 0 to 1, {} sent eagerly, the last rank at {}",
            cost.latency_between(0, 1),
            eager_in_words(cost.sends_eagerly()),
            cost.last_arrival()
        )
    };
    format!(
        "has costs alpha {alpha}, beta {beta}, gamma {gamma}, gamma_copy {copy} {overlaps}{delays} (digest {:016x})",
        shown(cost)
    )
}

fn eager_in_words(eager: Eager) -> String {
    match eager {
        Eager::None => "no messages".to_owned(),
        Eager::UpTo(bytes) => format!("messages of up to {bytes} bytes"),
        Eager::All => "all messages".to_owned(),
    }
}

/// A hash of all that a value shows for debugging: where that is derived, no field is forgotten.
fn shown(of: &impl fmt::Debug) -> u64 {
    struct Text(DefaultHasher);
    impl fmt::Write for Text {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.write(text.as_bytes());
            Ok(())
        }
    }
    let mut text = Text(DefaultHasher::new());
    // Nothing that is derived fails.
    let _ = fmt::write(&mut text, format_args!("{of:?}"));
    text.0.finish()
}

/// A hash of what is too long for a message.
pub(super) fn digest(of: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}
