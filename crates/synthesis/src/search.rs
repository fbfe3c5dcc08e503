//! The search for the fewest rounds: down from a schedule that is known, else up from the bound.

use oneport::internal::numbers::truncated;
use oneport::{CostModel, Error, Result, Schedule};

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
        /// each way to divide the rounds among steps, and of each tree.
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
        facts: Facts::choices(encoded),
        options,
    };
    let row = bounds::best_row(problem);
    let (schedule, row_rounds) = row.unzip();
    let lower = bounds::lower(search.problem, &search.facts[0], schedule.as_ref())?;
    let lower = lower.max(problem.steps.unwrap_or(0));
    // Rows know neither links nor items.
    let is_like = problem.items.is_none() && problem.links.is_none();
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
    /// All choices of facts: one is to have a schedule.
    facts: Vec<Facts>,
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
        let steps = self.problem.steps.unwrap_or(rounds);
        encode::ensure_fits(self.problem, steps, options.max_bytes)?;
        let stopped = || {
            (options.progress)(Step::Open(rounds));
            Ok(false)
        };
        let mut proofs: Vec<(String, String)> = Vec::new();
        for facts in &self.facts {
            let mut divisions = Divisions::new(rounds, steps);
            while let Some(division) = divisions.next(options.stop) {
                let encoded = encode::encode(self.problem, facts, &division, options.stop);
                let Some(encoded) = encoded else {
                    return stopped();
                };
                let variables = encoded.cnf.variables;
                (options.progress)(Step::Asks { rounds, variables });
                match options
                    .solver
                    .solve(&encoded.cnf, options.prove, options.stop)
                {
                    Verdict::Unknown => return stopped(),
                    Verdict::Unsatisfiable(proof) => {
                        proofs.extend(proof.map(|proof| (encoded.cnf.to_string(), proof)));
                        let bytes: usize = proofs.iter().map(|(a, b)| a.len() + b.len()).sum();
                        if bytes as u128 > options.max_bytes {
                            return Err(Error::usage(format!(
                                "the proofs that {rounds} rounds in {steps} steps are impossible need \
                                 more than {} MiB",
                                options.max_bytes >> 20
                            )));
                        }
                    }
                    Verdict::Satisfiable(values) => {
                        let mut sent = encoded.messages;
                        sent.retain(|(_, literal)| values[literal.unsigned_abs() as usize - 1]);
                        let sent = sent.into_iter().map(|(message, _)| message).collect();
                        return match self.found(facts, sent, &division, answer)? {
                            Some(rounds) => {
                                (options.progress)(Step::Found(rounds));
                                Ok(true)
                            }
                            None => stopped(),
                        };
                    }
                }
            }
            if !divisions.is_complete {
                return stopped();
            }
        }
        (answer.lower, answer.certificate) = (rounds + 1, Certificate::Refuted { rounds, proofs });
        (options.progress)(Step::Refuted(rounds));
        Ok(true)
    }

    /// Answers with the schedule of these messages, proved to be right and to take no more than
    /// these rounds. Returns how many it takes; `None` if the solver was told to stop.
    fn found(
        &self,
        facts: &Facts,
        mut sent: Vec<encode::Message>,
        division: &[usize],
        answer: &mut Answer,
    ) -> Result<Option<usize>> {
        sent.sort_by_key(|message| message.step);
        for step in sent.chunk_by_mut(|a, b| a.step == b.step) {
            let times = division[step[0].step];
            if times == 1 {
                continue;
            }
            let (cnf, literals) = encode::rounds_of(self.problem, step, times);
            let options = self.options;
            let Verdict::Satisfiable(values) = options.solver.solve(&cnf, false, options.stop)
            else {
                return Ok(None);
            };
            for (message, literals) in step.iter_mut().zip(literals) {
                let is_in = |&literal: &i32| values[literal.unsigned_abs() as usize - 1];
                message.round = literals.iter().position(is_in).unwrap_or(0);
            }
        }
        let backwards = self.problem.collective.reversed();
        let backwards = backwards.filter(|_| self.is_reversed);
        let (schedule, used) = build::schedule(self.problem, facts, sent, backwards)?;
        let report = schedule.check();
        if !report.is_correct() {
            return Err(Error::system(format!(
                "a bug of the encoding, its schedule is wrong: {report}"
            )));
        }
        let rounds = division.iter().sum::<usize>();
        let makespan = schedule.simulate(&CostModel::new(1.0, 0.0))?.makespan();
        if makespan > rounds as f64 {
            return Err(Error::system(format!(
                "a bug of the encoding, its schedule of {rounds} rounds takes {makespan}"
            )));
        }
        // A schedule that is not the shortest may have room: messages that could be sent earlier.
        // Its makespan knows no links.
        let takes = match self.problem {
            Problem { steps: Some(_), .. } => rounds,
            Problem { links: None, .. } => truncated(makespan.round()),
            _ => used,
        };
        (answer.schedule, answer.upper) = (Some(schedule), Some(takes));
        Ok(Some(takes))
    }
}

/// All ways to divide rounds among steps, none of them empty, even ones first: by the sum of their
/// squares, then in lexicographic order. One at a time, because there may be very many.
struct Divisions {
    rounds: usize,
    steps: usize,
    /// The sum of squares of those that are visited now, and the largest one.
    squares: u128,
    max_squares: u128,
    /// The first steps' rounds, and the least number to try for the next step.
    part: Vec<usize>,
    next: usize,
    /// Whether all have been visited.
    is_complete: bool,
}

impl Divisions {
    fn new(rounds: usize, steps: usize) -> Divisions {
        let bounds = squares_of(steps, rounds);
        let (squares, max_squares) = bounds.unwrap_or((1, 0));
        Divisions {
            rounds,
            steps,
            squares,
            max_squares,
            part: Vec::new(),
            next: 1,
            is_complete: false,
        }
    }

    /// The next one; `None` if there are no more, or if it is told to stop while it looks for it.
    fn next(&mut self, stop: &dyn Fn() -> bool) -> Option<Vec<usize>> {
        while self.squares <= self.max_squares {
            if stop() {
                return None;
            }
            let rounds = self.rounds - self.part.iter().sum::<usize>();
            let squares = self.squares - self.part.iter().map(|&n| square(n)).sum::<u128>();
            if self.part.len() == self.steps && (rounds, squares) == (0, 0) {
                let found = self.part.clone();
                self.back();
                return Some(found);
            }
            // How uneven the rest can be only matters near the end, where it has no choice.
            let left = self.steps - self.part.len() - 1;
            let rest = squares.checked_sub(square(self.next));
            let possible = squares_of(left, rounds.saturating_sub(self.next));
            let fits = |((least, most), rest)| (least..=most).contains(&rest);
            if self.next + left > rounds {
                self.back();
            } else if possible.zip(rest).is_some_and(fits) {
                self.part.push(self.next);
                self.next = 1;
            } else {
                self.next += 1;
            }
        }
        self.is_complete = true;
        None
    }

    /// Goes on with more rounds of the step before, or with less even divisions.
    fn back(&mut self) {
        match self.part.pop() {
            Some(rounds) => self.next = rounds + 1,
            // A number of rounds and the sum of the squares are both even or both odd.
            None => (self.squares, self.next) = (self.squares + 2, 1),
        }
    }
}

fn square(n: usize) -> u128 {
    (n as u128).pow(2)
}

/// The least and the largest sum of squares of so many rounds in as many steps, none of them empty;
/// `None` if there are too few.
fn squares_of(steps: usize, rounds: usize) -> Option<(u128, u128)> {
    if steps == 0 || rounds < steps {
        return (steps == rounds).then_some((0, 0));
    }
    let (even, more) = (rounds / steps, rounds % steps);
    let least = (steps - more) as u128 * square(even) + more as u128 * square(even + 1);
    Some((least, square(rounds - steps + 1) + (steps - 1) as u128))
}
