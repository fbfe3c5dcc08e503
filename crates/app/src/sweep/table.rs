//! The table of the times of algorithms.

use std::rc::Rc;

use super::Times;
use super::paper::{named, sweep_time};
use crate::prelude::*;

/// The rows at a point, fastest first, and one of them; of the leading one, how many are as fast.
type Row<'a> = (Rc<Vec<&'a SweepRow>>, &'a SweepRow, usize);

/// The first row that is slower than the leading one and those as fast.
fn second<'r, 'a>((at, leader, equals): &'r Row<'a>) -> Option<&'r &'a SweepRow> {
    let mut others = at.iter().filter(|row| row.algorithm != leader.algorithm);
    others.nth(*equals)
}

impl Times<'_> {
    /// Columns and rows of the table: a row for each point of a sweep with what is fastest there,
    /// or for each algorithm of one point.
    pub(super) fn columns(&self) -> (Columns<'_, Row<'_>>, Vec<Row<'_>>) {
        let points = self.sweep.points();
        let many_ranks = points.iter().any(|point| point.ranks != points[0].ranks);
        let many_sizes = points.iter().any(|point| point.bytes != points[0].bytes);
        let many_dists = points.iter().any(|point| point.dist != points[0].dist);
        let one_each = points.iter().all(|&point| self.sweep.at(point).len() == 1);
        let by_point = points.len() > 1 && !one_each;
        let shown = named(&self.sweep, &self.common.algorithm);

        let unit = self.sweep.unit;
        let has = |of: fn(&SweepRow) -> bool| self.sweep.rows.iter().any(of);
        let has_late = has(|row| row.late.is_some());
        let show = move |time: Option<f64>| or_dash(time.map(|time| unit.show(time)));
        let name = if by_point { "fastest" } else { "algorithm" };
        let several = by_point && shown.is_empty();
        let columns = Columns::<Row>::default()
            .add_if(many_ranks, ">ranks", |(_, row, _)| row.ranks)
            .add_if(many_dists, "blocks", |(_, row, _)| {
                or_dash(row.dist.as_ref())
            })
            .add_if(many_sizes, ">size", |(_, row, _)| show_bytes(row.bytes))
            .add_if(has_late, ">late by", move |(_, row, _)| show(row.late))
            .add(name, |(_, row, equals)| match equals {
                0 => row.algorithm.clone(),
                1 => format!("{} (and 1 other)", row.algorithm),
                _ => format!("{} (and {equals} others)", row.algorithm),
            })
            .add(">time", |(_, row, _)| sweep_time(&self.sweep, row))
            .add_if(has_late, ">late rank", |(_, row, _)| or_dash(row.late_rank))
            .add_if(!by_point, ">x best", move |(at, row, _)| {
                x_best(at, Some(row))
            })
            .add_spread(&self.sweep, |&(_, row, _)| row)
            .add_if(
                has(|row| row.bound > 0.0),
                ">x bound",
                move |(_, row, _)| over(row.time, row.bound),
            )
            .add_if(!by_point, ">rounds", |(_, row, _)| row.rounds)
            .add_if(!by_point, ">segment", |(_, row, _)| {
                or_dash(row.segment.map(show_bytes))
            });
        let columns = if by_point {
            let columns = columns
                .add_if(several, "second", |row| {
                    or_dash(second(row).map(|row| &row.algorithm))
                })
                .add_if(several, ">x best", move |row| x_best(&row.0, second(row)));
            add_named(columns, shown, has_late, unit)
        } else {
            columns.add_traffic(|&(_, row, _)| row)
        };
        (columns, self.rows(by_point))
    }

    /// A row for each point with what is fastest there, or for each algorithm.
    fn rows(&self, by_point: bool) -> Vec<Row<'_>> {
        let rows = self.sweep.leaders().into_iter().flat_map(|leader| {
            let at = Rc::new(self.sweep.at(leader.row.place()));
            let shown = if by_point {
                vec![(leader.row, leader.equals)]
            } else {
                at.iter().map(|&row| (row, 0)).collect()
            };
            let rows = shown.into_iter();
            rows.map(move |(row, equals)| (Rc::clone(&at), row, equals))
        });
        rows.collect()
    }
}

/// The quotient, where there is one.
fn over(value: f64, by: f64) -> String {
    or_dash((by > 0.0).then(|| number(value / by, 4)))
}

/// How many times longer a row takes than the fastest one at its place.
fn x_best(at: &[&SweepRow], row: Option<&&SweepRow>) -> String {
    or_dash(row.map(|row| over(row.value(), at[0].value())))
}

/// Adds columns for each of these algorithms: over the fastest, and its least time where ranks are
/// late.
fn add_named<'a>(
    mut columns: Columns<'a, Row<'a>>,
    names: Vec<&'a str>,
    has_late: bool,
    unit: Unit,
) -> Columns<'a, Row<'a>> {
    for name in names {
        let is_named = move |row: &&&SweepRow| row.algorithm == name;
        columns = columns
            .add(format!(">x {name}"), move |(at, ..)| {
                x_best(at, at.iter().find(is_named))
            })
            .add_if(has_late, format!(">least {name}"), move |(at, ..)| {
                let least = at.iter().find(is_named).and_then(|row| row.least);
                or_dash(least.map(|time| unit.show(time)))
            });
    }
    columns
}
