//! Formulas in conjunctive normal form, and their DIMACS text.

use std::fmt;

/// A literal: the number of a variable, from 1, negative if negated.
pub(crate) type Literal = i32;

/// A formula: a conjunction of clauses.
#[derive(Debug, Clone, Default)]
pub struct Cnf {
    /// Number of variables.
    pub variables: usize,
    literals: Vec<Literal>,
    /// Where clauses end.
    ends: Vec<usize>,
}

impl Cnf {
    pub(crate) fn variable(&mut self) -> Literal {
        self.variables += 1;
        Literal::try_from(self.variables).expect("fewer variables than 2^31")
    }

    pub(crate) fn clause(&mut self, literals: impl IntoIterator<Item = Literal>) {
        self.literals.extend(literals);
        self.ends.push(self.literals.len());
    }

    /// The clauses.
    pub fn clauses(&self) -> impl Iterator<Item = &[i32]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let spans = starts.zip(&self.ends);
        spans.map(|(start, &end)| &self.literals[start..end])
    }

    /// At most `most` of the literals are true: pairs for few and `most = 1`, else a sequential
    /// counter (Sinz 2005).
    pub(crate) fn at_most(&mut self, most: usize, literals: &[Literal]) {
        const MAX_PAIRS_OF: usize = 20;
        if literals.len() <= most {
            return;
        }
        if most == 0 {
            literals.iter().for_each(|&literal| self.clause([-literal]));
        } else if most == 1 && literals.len() <= MAX_PAIRS_OF {
            for (i, &a) in literals.iter().enumerate() {
                literals[..i].iter().for_each(|&b| self.clause([-a, -b]));
            }
        } else {
            // `counted[j]`: more than `j` of the literals so far are true.
            let mut counted: Vec<Literal> = Vec::new();
            for &literal in literals {
                let next: Vec<_> = (0..most).map(|_| self.variable()).collect();
                self.clause([-literal, next[0]]);
                for (j, &before) in counted.iter().enumerate() {
                    self.clause([-before, next[j]]);
                    match next.get(j + 1) {
                        Some(&more) => self.clause([-literal, -before, more]),
                        None => self.clause([-literal, -before]),
                    }
                }
                counted = next;
            }
        }
    }
}

impl fmt::Display for Cnf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "p cnf {} {}", self.variables, self.ends.len())?;
        for clause in self.clauses() {
            clause
                .iter()
                .try_for_each(|literal| write!(f, "{literal} "))?;
            writeln!(f, "0")?;
        }
        Ok(())
    }
}
