//! Solvers of formulas behind one trait; the one in use is batsat, MiniSat in Rust.

use batsat::{Callbacks, ClauseKind, Lit, SolverInterface, SolverOpts, Var, lbool};
use std::fmt::Write;

use crate::cnf::Cnf;

/// What a solver says of a formula.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Satisfied by these values: that of variable 1 comes first.
    Satisfiable(Vec<bool>),
    /// No values satisfy it. The proof, in DRAT's text form, if it was wanted.
    Unsatisfiable(Option<String>),
    /// It was told to stop.
    Unknown,
}

/// A solver of formulas.
pub trait Solver {
    /// Solves the formula, with a proof if `prove` and there is no solution. It asks `stop` now and
    /// then, at least several times a second.
    fn solve(&self, cnf: &Cnf, prove: bool, stop: &dyn Fn() -> bool) -> Verdict;
}

/// The solver [batsat](https://github.com/c-cube/batsat), pure Rust.
#[derive(Debug, Clone, Copy, Default)]
pub struct BatSat;

/// Records learnt clauses. Deletions are left out, which checkers allow.
struct Watcher<'a> {
    proof: Option<String>,
    stop: &'a dyn Fn() -> bool,
}

impl Callbacks for Watcher<'_> {
    fn on_new_clause(&mut self, clause: &[Lit], kind: ClauseKind) {
        if kind != ClauseKind::Learnt {
            return;
        }
        if let Some(proof) = &mut self.proof {
            for literal in clause {
                let sign = if literal.sign() { "" } else { "-" };
                let _ = write!(proof, "{sign}{} ", literal.var().idx() + 1);
            }
            proof.push_str("0\n");
        }
    }

    fn stop(&self) -> bool {
        (self.stop)()
    }
}

impl Solver for BatSat {
    fn solve(&self, cnf: &Cnf, prove: bool, stop: &dyn Fn() -> bool) -> Verdict {
        let proof = prove.then(String::new);
        let mut solver = batsat::Solver::new(SolverOpts::default(), Watcher { proof, stop });
        let variables: Vec<Var> = (0..cnf.variables)
            .map(|_| solver.new_var_default())
            .collect();
        /// Adding as many clauses takes a millisecond.
        const CLAUSES: usize = 1 << 12;
        for (i, clause) in cnf.clauses().enumerate() {
            if i % CLAUSES == 0 && stop() {
                return Verdict::Unknown;
            }
            let literal = |&l: &i32| Lit::new(variables[l.unsigned_abs() as usize - 1], l > 0);
            solver.add_clause_reuse(&mut clause.iter().map(literal).collect());
        }
        let solved = solver.solve_limited(&[]);
        if solved == lbool::TRUE {
            let value = |&variable| solver.value_var(variable) == lbool::TRUE;
            Verdict::Satisfiable(variables.iter().map(value).collect())
        } else if solved == lbool::FALSE {
            let proof = solver.cb_mut().proof.take();
            Verdict::Unsatisfiable(proof.map(|proof| proof + "0\n"))
        } else {
            Verdict::Unknown
        }
    }
}
