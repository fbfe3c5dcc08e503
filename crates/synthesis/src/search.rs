//! The search for the fewest rounds: down from a schedule that is known, else up from the bound.

use oneport::{Error, Result, Schedule};

use crate::bounds;
use crate::build;
use crate::encode;
use crate::facts::Facts;
use crate::problem::Problem;
use crate::solver::{BatSat, Solver, Verdict};

/// What the search reports while it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The solver is asked for a schedule of this many rounds.
    Asks {
        /// Number of rounds.
        rounds: usize,
        /// Variables of the formula.
        variables: usize,
    },
    /// There is a schedule of this many rounds.
    Found(usize),
    /// There is none.
    Refuted(usize),
    /// The search was stopped before this was decided.
    Open(usize),
}

/// How to search.
#[allow(missing_debug_implementations, reason = "has closures")]
pub struct Options<'a> {
    /// The solver.
    pub solver: &'a dyn Solver,
    /// Asked now and then: whether to stop with what there is.
    pub stop: &'a dyn Fn() -> bool,
    /// Told what happens.
    pub progress: &'a dyn Fn(Step),
    /// Whether to keep the formula and the proof that no schedule is shorter.
    pub prove: bool,
    /// Decide about this number of rounds alone.
    pub rounds: Option<usize>,
    /// Refuse formulas that need more bytes, about.
    pub max_bytes: u128,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options {
            solver: &BatSat,
            stop: &|| false,
            progress: &|_| (),
            prove: false,
            rounds: None,
            max_bytes: 4 << 30,
        }
    }
}

/// Why no schedule is shorter than [`Answer::lower`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Certificate {
    /// A formula says so.
    Formula,
    /// The solver has refuted one round less.
    Refuted {
        /// That number of rounds.
        rounds: usize,
        /// The formula and its refutation, in DIMACS and DRAT form, if they were wanted: those of
        /// each way to divide the rounds among steps.
        proofs: Vec<(String, String)>,
    },
}

/// What is known when the search ends.
#[derive(Debug, Clone)]
pub struct Answer {
    /// A schedule in `upper` rounds, correct by [`Schedule::check`]; `None` if none was found.
    pub schedule: Option<Schedule>,
    /// No schedule has fewer rounds.
    pub lower: usize,
    /// Rounds of the schedule.
    pub upper: Option<usize>,
    /// Why `lower` holds.
    pub certificate: Certificate,
    /// Rounds of the best row of the registry for the same problem, if there is one.
    pub row: Option<usize>,
}

impl Answer {
    /// Whether no schedule is shorter than the one found.
    pub fn is_optimal(&self) -> bool {
        self.upper == Some(self.lower)
    }
}

/// Finds a schedule of the fewest rounds, or as few as it can before it is told to stop.
///
/// # Errors
/// [`ErrorKind::Usage`](oneport::ErrorKind::Usage) if the problem contradicts itself, a rank cannot
/// be reached, or a formula would need too much memory.
pub fn synthesize(problem: &Problem, options: &Options<'_>) -> Result<Answer> {
    problem.validate()?;
    let forwards = problem.reversed();
    let encoded = forwards.as_ref().unwrap_or(problem);
    encode::ensure_fits(encoded, 1, options.max_bytes)?;
    let search = Search {
        problem: encoded,
        is_reversed: forwards.is_some(),
        facts: Facts::new(encoded),
        options,
    };
    let row = bounds::best_row(problem);
    let (schedule, row_rounds) = row.unzip();
    let lower = bounds::lower(search.problem, &search.facts, schedule.as_ref())?;
    let lower = lower.max(problem.steps.unwrap_or(0));
    // Rows know neither links, calls nor items.
    let is_like = problem.items.is_none() && problem.links.is_none() && !problem.telephone;
    let mut answer = Answer {
        schedule: schedule.filter(|_| is_like),
        lower,
        upper: row_rounds.filter(|_| is_like),
        certificate: Certificate::Formula,
        row: row_rounds.filter(|_| is_like),
    };
    search.run(&mut answer)?;
    Ok(answer)
}

struct Search<'a> {
    /// What is encoded.
    problem: &'a Problem,
    /// Whether its schedules are to be reversed.
    is_reversed: bool,
    facts: Facts,
    options: &'a Options<'a>,
}

impl Search<'_> {
    fn run(&self, answer: &mut Answer) -> Result<()> {
        if let Some(rounds) = self.options.rounds {
            (answer.schedule, answer.upper) = (None, None);
            if rounds >= answer.lower {
                self.ask(rounds, answer)?;
            }
            return Ok(());
        }
        loop {
            let rounds = match answer.upper {
                Some(upper) if upper <= answer.lower => return Ok(()),
                Some(upper) => upper - 1,
                None => answer.lower,
            };
            if !self.ask(rounds, answer)? {
                return Ok(());
            }
        }
    }

    /// Decides about a number of rounds. Returns false if the solver was told to stop.
    fn ask(&self, rounds: usize, answer: &mut Answer) -> Result<bool> {
        let options = self.options;
        let mut proofs = Vec::new();
        let steps = self.problem.steps.unwrap_or(rounds);
        encode::ensure_fits(self.problem, steps, options.max_bytes)?;
        for division in divisions(rounds, steps) {
            let encoded = encode::encode(self.problem, &self.facts, &division);
            let variables = encoded.cnf.variables;
            (options.progress)(Step::Asks { rounds, variables });
            match options
                .solver
                .solve(&encoded.cnf, options.prove, options.stop)
            {
                Verdict::Unknown => {
                    (options.progress)(Step::Open(rounds));
                    return Ok(false);
                }
                Verdict::Unsatisfiable(proof) => {
                    proofs.extend(proof.map(|proof| (encoded.cnf.to_string(), proof)));
                }
                Verdict::Satisfiable(values) => {
                    let mut sent = encoded.messages;
                    sent.retain(|(_, literal)| values[*literal as usize - 1]);
                    let sent = sent.into_iter().map(|(message, _)| message).collect();
                    let (schedule, used) = self.schedule(sent)?;
                    let rounds = match self.problem.steps {
                        None => used.min(rounds),
                        Some(_) => rounds,
                    };
                    (answer.schedule, answer.upper) = (Some(schedule), Some(rounds));
                    (options.progress)(Step::Found(rounds));
                    return Ok(true);
                }
            }
        }
        (answer.lower, answer.certificate) = (rounds + 1, Certificate::Refuted { rounds, proofs });
        (options.progress)(Step::Refuted(rounds));
        Ok(true)
    }

    /// The schedule of these messages, proved, and its steps.
    fn schedule(&self, sent: Vec<encode::Message>) -> Result<(Schedule, usize)> {
        let backwards = self.problem.collective.reversed();
        let backwards = backwards.filter(|_| self.is_reversed);
        let (schedule, used) = build::schedule(self.problem, &self.facts, sent, backwards)?;
        let report = schedule.check();
        match report.is_correct() {
            true => Ok((schedule, used)),
            false => Err(Error::usage(format!(
                "a bug of the encoding, its schedule is wrong: {report}"
            ))),
        }
    }
}

/// All ways to divide rounds among this many steps, none of them empty, even ones first.
fn divisions(rounds: usize, steps: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for step in 0..steps {
        let longer = |part: &Vec<usize>| -> Vec<Vec<usize>> {
            let left = rounds - part.iter().sum::<usize>();
            let most = (left + step + 1).saturating_sub(steps);
            let least = if step + 1 == steps { most } else { 1 };
            (least.max(1)..=most)
                .map(|n| [&part[..], &[n]].concat())
                .collect()
        };
        all = all.iter().flat_map(longer).collect();
    }
    all.sort_by_key(|division| division.iter().map(|n| n * n).sum::<usize>());
    all
}
