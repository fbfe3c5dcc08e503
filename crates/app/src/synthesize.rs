//! `oneport synthesize`: finds a schedule of the fewest rounds, and proves that none is shorter.

mod table;

use std::cell::Cell;
use std::ffi::OsStr;
use std::time::Instant;

use oneport::internal::json_object;
use oneport::machine::Links;
use oneport_synthesis::{Answer, Certificate, Options, Problem, Step, synthesize};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::answer;
use crate::forms::{RankNumber, ports_help};
use crate::memory::available_memory;
use crate::plan;
use crate::prelude::*;

options! {
    /// Find a schedule of the fewest rounds, and prove that none is shorter
    ///
    /// In a round every port takes part in at most one message. For few ranks a SAT solver finds
    /// the best schedule, and refutes shorter ones.
    #[derive(Debug)]
    #[examples = "\
Examples:
  oneport synthesize allgather -p 9 --ports uni                 6 rounds, optimal
  oneport synthesize broadcast -p 5 --items 3 --telephone       three items, one call at a time
  oneport synthesize allgather -p 7 --ports uni --proof gossip  gossip.cnf, gossip.drat
  oneport synthesize scan -p 8 --ports uni -o scan.json         for check, simulate, run and draw
  oneport synthesize allgather --graph cluster.json --items 1    on the links of a cost file
  oneport synthesize allreduce -p 7 --items 1 --same-bits        all ranks add in one tree
  oneport synthesize --table -p 2..=6 --budget 2s

A message carries all that its sender knows, or with --items one item of a vector or block, or one partial result of an \
allreduce or scan. A graph is a cost file (null: no link) or {\"links\": [[0, 2], [1, 0]]}: how many messages the link from each rank \
to each carries in a round. Ctrl-C and --budget end the search with what is known."]
    pub(crate) struct SynthesizeArgs {
        /// The collective: broadcast, reduce, ...
        collective: Option<Kind> = KindName { is_placed: true, or_one_of: &["table"] },

        /// Number of ranks; several, such as 2..=6, with --table [default: as many as --graph has,
        /// or 4]
        ranks: Option<Ranges> = Ranks { shorts: &['p', 'n'] },

        /// The root
        root: usize = RankNumber { default: Some("0") },

        /// Ranks that get the vector of a collective with targets, such as a multicast
        targets: Vec<usize> = RankNumber { value: "RANK,...", is_list: true },

        #[doc = ports_help!()]
        ports: Ports = PortNames { default: Some("bi") },

        /// Number of ports of each kind that a rank has
        ported: usize = Count { value: "K", default: Some("1") },

        /// As --ports telephone: a rank has one partner in a round, and both may send
        telephone: bool = Switch { conflicts: &["ports", "ported"] },

        /// Who may send to whom: a JSON file [default: all to all]
        graph: Option<Source> = File,

        /// A message carries one item, of as many as this in a vector or block [default: all that
        /// is known]
        items: Option<usize> = Count { value: "Q" },

        /// Give all ranks of an allreduce the same bits of a sum of floats: one tree of all ranks.
        /// With --items 1 trees of all shapes are tried
        same_bits: bool = Switch { conflicts: &["table", "graph"] },

        /// Decide about this number of rounds alone
        rounds: Option<usize> = Count { value: "R" },

        /// Divide the rounds among this many steps: what arrives is passed on in a later step
        /// (SCCL)
        steps: Option<usize> = Count { value: "S", requires: &["items", "rounds"] },

        /// Time for the search, for each entry with --table, such as 10s
        budget: Option<Duration> = Budget,

        /// Write the schedule, or the table (.md, .html), to this file
        output: Option<PathBuf> = Output { shorts: &['o'] },

        /// Write the formula that one round less would satisfy to NAME.cnf (DIMACS), and the proof
        /// that it cannot to NAME.drat; with --steps NAME.1.cnf and so on, for each way to divide
        /// the rounds
        proof: Option<PathBuf> = Output { value: "NAME", conflicts: &["table"] },

        /// All collectives and port models: the optimum and the best algorithm of the registry
        table: bool = Switch {
            conflicts: &["collective", "items", "rounds", "graph", "telephone", "json"],
        },

        /// Print one JSON object instead of text
        json: bool = Switch,
    }
}

impl Command for SynthesizeArgs {
    fn json_forms() -> JsonForms {
        JsonForms::new().of(|(problem, answer): (&'static _, _)| json(problem, answer, None))
    }

    fn answer(&self, site: &mut Site) -> Result<answer::Answer> {
        let caller = &site.caller;
        let to_file = output::file_of(self.output.as_deref());
        let [cnf, drat] =
            ["cnf", "drat"].map(|kind| self.proof.as_ref().map(|name| proof_file(name, kind)));
        caller.writable(&[
            ("-o", to_file),
            ("--proof", cnf.as_deref()),
            ("--proof", drat.as_deref()),
        ])?;
        let stopped = caller.stop()?;
        if self.table {
            return table::run(self, to_file, &stopped, caller);
        }
        let problem = self.problem()?;
        let (answer, seconds) = search(&problem.0, self, self.proof.is_some(), &stopped, caller)?;
        if let Some(name) = &self.proof {
            write_proof(&answer, name, caller)?;
        }
        if let (Some(path), Some(schedule)) = (to_file, &answer.schedule) {
            caller.write_named(path, schedule.to_json().as_bytes())?;
        }
        let text = |out: &mut Lines| {
            writeln!(out, "{}", verdict(&answer, self.rounds, seconds))?;
            if let Some(row) = answer.row {
                writeln!(
                    out,
                    "best algorithm of the registry: {}",
                    counted(row, "round")
                )?;
            }
            match &answer.schedule {
                Some(schedule) if to_file.is_none() => write!(out, "{}", plan::rounds(schedule)?)?,
                _ => {}
            }
            Ok(())
        };
        let schedule = answer.schedule.as_ref().map(Schedule::to_json);
        let schedule = schedule.map(RawValue::from_string).transpose()?;
        let report = json(&problem, &answer, schedule);
        Ok(answer::Answer {
            exit_code: exit_code(&stopped),
            ..answer::answer(caller, self.json, &report, text)?
        })
    }
}

fn json(
    problem: &(Problem, Kind, usize),
    answer: &Answer,
    schedule: Option<Box<RawValue>>,
) -> impl Answered + use<> {
    record! {
        collective: problem.1.name(),
        ranks: problem.2,
        /// Of the schedule; null if none was found.
        rounds: answer.upper,
        /// Fewer are impossible.
        lower: answer.lower,
        /// Whether no schedule has fewer rounds.
        optimal: answer.is_optimal(),
        /// Why fewer are impossible: by a formula, or since a formula in logic has no solution.
        lower_by: match answer.certificate {
            Certificate::Formula => "formula",
            Certificate::Refuted { .. } => "unsat",
        },
        /// Rounds of the best algorithm of the registry.
        best_algorithm_rounds: answer.row,
        schedule: schedule,
    }
}

fn exit_code(stopped: &AtomicBool) -> u8 {
    u8::from(stopped.load(Ordering::Relaxed)) * 130
}

fn verdict(answer: &Answer, asked: Option<usize>, seconds: f64) -> String {
    let fewer = match (&answer.certificate, answer.lower) {
        (_, 0) => String::new(),
        (Certificate::Formula, lower) => {
            format!("fewer than {lower} are impossible (by a formula)")
        }
        (Certificate::Refuted { rounds, .. }, _) => {
            let long = (seconds >= 1.0).then(|| format!(", in {seconds:.1} s"));
            format!(
                "{rounds} are impossible (unsat{})",
                long.unwrap_or_default()
            )
        }
    };
    match (answer.upper, asked) {
        (Some(upper), _) if answer.is_optimal() => {
            let colon = if fewer.is_empty() { "" } else { ": " };
            format!("{}, optimal{colon}{fewer}", counted(upper, "round"))
        }
        (Some(upper), Some(_)) => {
            format!("{}: there is a schedule; {fewer}", counted(upper, "round"))
        }
        (Some(upper), None) => format!(
            "{}, best so far: {fewer}; open: {}",
            counted(upper, "round"),
            match upper - 1 {
                last if last == answer.lower => last.to_string(),
                last => format!("{} to {last}", answer.lower),
            }
        ),
        (None, Some(asked)) if answer.lower > asked => {
            format!("{}: there is no schedule; {fewer}", counted(asked, "round"))
        }
        (None, _) => format!(
            "no schedule found yet: {fewer}; open: {} and more",
            answer.lower
        ),
    }
}

/// Searches until it is decided, the budget ends or Ctrl-C; also returns the seconds that it took.
fn search(
    problem: &Problem,
    args: &SynthesizeArgs,
    prove: bool,
    stopped: &AtomicBool,
    caller: &Caller,
) -> Result<(Answer, f64)> {
    let start = Instant::now();
    let late = || args.budget.is_some_and(|budget| start.elapsed() >= budget);
    // Short searches say nothing.
    let is_long = || !args.table && start.elapsed() > Duration::from_millis(500);
    let memory = Memory::new(caller);
    let asked = Cell::new(None);
    let progress = |step: Step| {
        let (rounds, what) = match step {
            Step::Asks { rounds, variables } => {
                return asked.set(Some(format!(
                    "{}: {variables} variables",
                    counted(rounds, "round")
                )));
            }
            Step::Found(rounds) => (rounds, "found"),
            Step::Refuted(rounds) => (rounds, "impossible"),
            Step::Open(rounds) => (rounds, "open, the search was stopped"),
        };
        if is_long() {
            caller.note(format!("{}: {what}", counted(rounds, "round")));
        }
    };
    let stop = || {
        if is_long()
            && let Some(asked) = asked.take()
        {
            caller.note(&asked);
        }
        stopped.load(Ordering::Relaxed) || late() || memory.is_short()
    };
    let options = Options {
        stop: &stop,
        progress: &progress,
        prove,
        rounds: args.rounds,
        max_bytes: memory.at_start.map_or(4 << 30, u128::from),
        ..Options::default()
    };
    let answer = synthesize(problem, &options)?;
    Ok((answer, start.elapsed().as_secs_f64()))
}

/// The memory that a search may use: what a solver learns and the text of its proof grow with time.
struct Memory<'a> {
    caller: &'a Caller,
    at_start: Option<u64>,
    looked: Cell<Instant>,
    is_short: Cell<bool>,
}

impl Memory<'_> {
    fn new(caller: &Caller) -> Memory<'_> {
        Memory {
            caller,
            at_start: available_memory(),
            looked: Cell::new(Instant::now()),
            is_short: Cell::new(false),
        }
    }

    /// Whether a tenth or less is left. To look takes long, so it looks some times a second.
    fn is_short(&self) -> bool {
        const EVERY: Duration = Duration::from_millis(100);
        if self.looked.get().elapsed() >= EVERY && !self.is_short.get() {
            self.looked.set(Instant::now());
            let left = available_memory().zip(self.at_start);
            self.is_short
                .set(left.is_some_and(|(now, start)| now < start / 10));
            if self.is_short.get() {
                self.caller.note("the search ends: little memory is left");
            }
        }
        self.is_short.get()
    }
}

/// Writes the formula and its refutation; with steps, those of each way to divide the rounds.
fn write_proof(answer: &Answer, name: &Path, caller: &Caller) -> Result<()> {
    let Certificate::Refuted { proofs, .. } = &answer.certificate else {
        caller.note("no proof is written: a formula gives the bound, not the solver");
        return Ok(());
    };
    for (part, (formula, proof)) in (1..).zip(proofs) {
        for (kind, text) in [("cnf", formula), ("drat", proof)] {
            let kind = match proofs.len() {
                1 => kind.to_string(),
                _ => format!("{part}.{kind}"),
            };
            caller.write_named(&proof_file(name, &kind), text.as_bytes())?;
        }
    }
    Ok(())
}

/// `NAME.cnf` for a name that may have dots, of which `NAME.cnf` itself is one.
fn proof_file(name: &Path, kind: &str) -> PathBuf {
    let ends = name.extension().and_then(OsStr::to_str);
    let mut file = match ends {
        Some("cnf" | "drat") => name.with_extension(""),
        _ => name.to_owned(),
    };
    file.as_mut_os_string().push(format!(".{kind}"));
    file
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LinksFile {
    links: Vec<Vec<usize>>,
}

impl SynthesizeArgs {
    fn problem(&self) -> Result<(Problem, Kind, usize)> {
        let given = self.ranks.as_ref().map(|ranks| ranks.one("-p"));
        let given = given.transpose()?;
        let given = given.map(usize::try_from).transpose()?;
        let links = match &self.graph {
            None => None,
            Some(file) => Some(graph(file, given).with_context(|| file.name())?),
        };
        let ranks = given.or(links.as_ref().map(Vec::len)).unwrap_or(4);
        /// The formula has a variable for each pair of ranks.
        const MAX_RANKS: usize = 64;
        ensure!(
            ranks <= MAX_RANKS,
            "synthesis is for at most {MAX_RANKS} ranks, not {ranks}: the formula has variables for all pairs"
        );
        let Some(kind) = self.collective else {
            bail!("name a COLLECTIVE");
        };
        let rooted = kind.with_root(self.root);
        if !kind.has_targets() && !self.targets.is_empty() {
            bail!("a {kind} has no targets: --targets is for a multicast");
        }
        let collective = if self.targets.is_empty() {
            rooted.with_targets(
                (0..ranks)
                    .filter(|&rank| rooted.root() != Some(rank))
                    .collect(),
            )
        } else {
            rooted.with_targets(self.targets.clone())
        };
        let ports = if self.telephone {
            Ports::TELEPHONE
        } else {
            self.ports.with_k(self.ported)
        };
        ensure!(
            !self.same_bits || kind == Kind::Allreduce,
            "--same-bits is for an allreduce: of {} no two ranks have the same sums",
            kind.name()
        );
        let problem = Problem::new(collective, ranks).ports(ports);
        let mut problem = problem.same_bits(self.same_bits);
        problem = links.into_iter().fold(problem, Problem::links);
        problem = self.items.into_iter().fold(problem, Problem::items);
        problem = self.steps.into_iter().fold(problem, Problem::steps);
        Ok((problem, kind, ranks))
    }
}

fn graph(file: &Source, ranks: Option<usize>) -> Result<Vec<Vec<usize>>> {
    let text = file.read()?;
    // A cost file has no such field.
    if text.contains("\"links\"") {
        let file: LinksFile = json_object("not a graph of links", "links", &text)?;
        return Ok(file.links);
    }
    Ok(Problem::links_of(&Links::for_ranks(&text, ranks)?))
}
