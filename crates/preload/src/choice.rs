//! Which schedule serves a call: what all processes of its communicator decide alike, because they
//! look at nothing but what MPI guarantees to be equal on all of them. Rules come first; where none
//! fits, a schedule from a file serves, if there is one that does.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use anyhow::{Context, Result, bail, ensure};
use oneport::plan::Segments;
use oneport::plan::registry;
use oneport::run::ElementType;
use oneport::{Kind, Ports, Request, Schedule};
use oneport_measure::tune::rules::{Query, Rules};

/// The most transfers of a schedule that a call is served by: all ranks plan it, at its first call.
const MAX_TRANSFERS: usize = 1 << 18;

/// The most bytes that the root of a call that is served has: what MPI counts.
const MAX_BYTES: usize = (1 << 31) - 1;

/// A file of selection rules.
pub(crate) const RULES: &str = "ONEPORT_RULES";
/// `COLLECTIVE=FILE`, several between commas; `{p}` in a name stands for the number of ranks.
pub(crate) const SCHEDULES: &str = "ONEPORT_SCHEDULE";

/// What a call is, as far as all processes know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) kind: Kind,
    pub(crate) root: usize,
    /// Elements of the vector, or of one rank's block.
    pub(crate) elements: usize,
    /// By rank: the elements of its block, where they differ.
    pub(crate) blocks: Option<Vec<usize>>,
    pub(crate) element: Element,
}

/// What moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Element {
    Byte,
    /// An item of a named datatype, its bytes in memory, and the operator of the reduction.
    Item(usize, usize, usize),
}

impl Element {
    pub(crate) fn bytes(self) -> usize {
        match self {
            Element::Byte => 1,
            Element::Item(_, bytes, _) => bytes,
        }
    }

    pub(crate) fn is_item(self) -> bool {
        self != Element::Byte
    }
}

/// Where schedules come from.
#[derive(Debug, Default)]
pub(crate) struct Choices {
    rules: Option<Rules>,
    /// By collective: the name of a file, or a pattern of names.
    files: BTreeMap<Kind, String>,
    /// By collective, in the order of [`Kind::ALL`]: whether calls may be served at all.
    is_chosen: [bool; Kind::ALL.len()],
    /// Of all files that are named without `{p}`.
    digest: u64,
}

impl Choices {
    /// Those that the environment names.
    pub(crate) fn of_environment() -> Result<Choices> {
        let mut digest = DefaultHasher::new();
        let mut choices = Choices::default();
        if let Some(path) = variable(RULES) {
            let text = std::fs::read_to_string(&path);
            let text = text.with_context(|| format!("{RULES}: cannot read {path}"))?;
            text.hash(&mut digest);
            let rules = Rules::parse(&text).with_context(|| format!("{RULES}: {path}"))?;
            choices.rules = Some(rules);
        }
        for named in variable(SCHEDULES).iter().flat_map(|all| all.split(',')) {
            let Some((name, file)) = named.split_once('=') else {
                bail!(
                    "{SCHEDULES}: '{named}' is not COLLECTIVE=FILE, such as allreduce=mine-{{p}}.json"
                );
            };
            let kind: Kind = name.parse().with_context(|| SCHEDULES.to_string())?;
            if !file.contains("{p}") {
                read(kind, file)?.1.hash(&mut digest);
            }
            (name, file).hash(&mut digest);
            choices.files.insert(kind, file.to_string());
        }
        choices.digest = digest.finish();
        let named = choices.files.keys().copied();
        let rules = choices.rules.iter().flat_map(|rules| &rules.rules);
        for kind in named.chain(rules.map(|rule| rule.collective)) {
            choices.is_chosen[kind as usize] = true;
        }
        Ok(choices)
    }

    /// The same on processes that have the same files.
    pub(crate) fn digest(&self) -> u64 {
        self.digest
    }

    /// Whether calls of a collective may be served at all.
    pub(crate) fn serve(&self, kind: Kind) -> bool {
        self.is_chosen[kind as usize]
    }

    /// The collectives that have rules and a schedule from a file.
    pub(crate) fn named_twice(&self) -> impl Iterator<Item = Kind> {
        let rules = self.rules.iter().flat_map(|rules| &rules.rules);
        let has_rules = move |kind: &Kind| rules.clone().any(|rule| rule.collective == *kind);
        self.files.keys().copied().filter(has_rules)
    }

    /// Whether calls of a collective may be served by schedules from files.
    pub(crate) fn has_files(&self, kind: Kind) -> bool {
        self.files.contains_key(&kind)
    }

    /// The schedule that serves calls of this shape on so many ranks, its name, and a number that
    /// is the same on processes that have the same one; or why none does.
    pub(crate) fn schedule(
        &self,
        shape: &Shape,
        ranks: usize,
        element: Option<ElementType>,
    ) -> Result<(String, Schedule, u64)> {
        let blocks = if shape.kind.is_sized_by_block() {
            ranks
        } else {
            1
        };
        let bytes = shape.elements.saturating_mul(shape.element.bytes());
        ensure!(
            bytes.saturating_mul(blocks) <= MAX_BYTES,
            "more than {MAX_BYTES} bytes"
        );
        let file = self.files.get(&shape.kind);
        match (self.by_rules(shape, ranks, element), file) {
            // Rules are the same on all processes, and so is what is planned by them.
            (Ok((name, schedule)), _) => Ok((name, schedule, 1)),
            (Err(_), Some(file)) => own(shape, ranks, file),
            (Err(why), None) => Err(why),
        }
    }

    fn by_rules(
        &self,
        shape: &Shape,
        ranks: usize,
        element: Option<ElementType>,
    ) -> Result<(String, Schedule)> {
        let rules = self.rules.as_ref().context("no rules")?;
        // Rules for other numbers of ranks were not measured for these.
        let fits = |rule: &&oneport_measure::tune::rules::Rule| {
            rule.collective == shape.kind && rule.ranks == ranks
        };
        let rule = rules.rules.iter().find(fits);
        let rule = rule.with_context(|| format!("no rule for {ranks} ranks"))?;
        let ports = Ports::named(&rule.ports).context("unknown ports")?;
        let ports = ports.with_k(rule.ported);
        let bytes = shape.elements as u64 * shape.element.bytes() as u64;
        let (_, choice) = rules.choose(&Query {
            collective: shape.kind,
            ranks,
            ports,
            dtype: element.map(ElementType::name),
            ordered: rule.ordered,
            bytes,
        })?;
        let algorithm = registry::find(shape.kind, &choice.algorithm)?;
        let mut request = Request::new(shape.kind, ranks, shape.elements)
            .root(shape.root)
            .ports(ports)
            .element_bytes(shape.element.bytes() as u64)
            .blocks(shape.blocks.clone());
        if let Some(segment) = choice.segment {
            let elements = usize::try_from(segment / shape.element.bytes() as u64)?.max(1);
            let segments = Segments::of_size(request.elements(), elements)?;
            request = request.segments(segments);
        }
        algorithm.accepts(&request)?;
        ensure!(
            algorithm.transfers_for(&request) <= MAX_TRANSFERS,
            "its schedule is too long"
        );
        let schedule = algorithm.plan(&request)?;
        Ok((algorithm.name().into_owned(), schedule))
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Reads a schedule for a collective, and proves it. Its number is that of the file's text.
fn read(kind: Kind, file: &str) -> Result<(Schedule, u64)> {
    let text = std::fs::read_to_string(file);
    let text = text.with_context(|| format!("{SCHEDULES}: cannot read {file}"))?;
    let schedule = Schedule::from_json(&text).with_context(|| format!("{SCHEDULES}: {file}"))?;
    let performed = schedule.collective().kind();
    ensure!(
        performed == kind,
        "{SCHEDULES}: {file} performs {performed}, not {kind}"
    );
    let report = schedule.check();
    if let Some(error) = report.errors.first() {
        bail!("{SCHEDULES}: {file} is wrong: {error}");
    }
    let mut digest = DefaultHasher::new();
    text.hash(&mut digest);
    Ok((schedule, digest.finish() | 1))
}

/// A schedule from a file, at the size of the call.
fn own(shape: &Shape, ranks: usize, pattern: &str) -> Result<(String, Schedule, u64)> {
    let file = pattern.replace("{p}", &ranks.to_string());
    let (schedule, digest) = read(shape.kind, &file)?;
    ensure!(
        schedule.ranks() == ranks,
        "{file} is for {} ranks",
        schedule.ranks()
    );
    let request = Request::like(&schedule)?;
    if let Some(root) = schedule.collective().root() {
        ensure!(root == shape.root, "{file} has root {root}");
    }
    ensure!(
        request.get_blocks().is_none() && shape.blocks.is_none(),
        "{file} is for blocks of other sizes"
    );
    let own = request.elements();
    if own == shape.elements {
        return Ok((file, schedule, digest));
    }
    ensure!(
        own > 0 && shape.elements.is_multiple_of(own),
        "{file} scales to multiples of {own} elements"
    );
    Ok((file, schedule.scaled(shape.elements / own)?, digest))
}
