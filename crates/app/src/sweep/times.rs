//! The times of algorithms at the points of a sweep, as compare and simulate find them.

use std::borrow::Cow;

use csv::StringRecord;
use oneport_pictures::{Players, Sweep};
use serde::Deserialize;

use super::{Findings, PaperTable, Spot, StoredRow, spot};
use crate::forms::parse_kind;
use crate::output::escape;
use crate::prelude::*;
use crate::units::show_ports;

/// What has been found at one number of ranks and one size.
#[derive(Debug)]
pub(crate) struct Point {
    pub(crate) collective: &'static str,
    pub(crate) ports: Ports,
    /// The costs in words, and the unit of times.
    pub(crate) costs: String,
    pub(crate) unit: Unit,
    pub(crate) rows: Vec<SweepRow>,
    pub(crate) skipped: Vec<Skipped>,
    /// Whether a signal ended it early: what there is of it is printed, but not written.
    pub(crate) interrupted: bool,
}

/// What all rows of a CSV file have.
#[derive(Deserialize)]
struct Origin {
    collective: String,
    ports: String,
    time_unit: String,
    /// The command line, which a sweep that goes on must have, too.
    command: String,
    /// The digest of what it read.
    #[serde(default)]
    inputs: String,
}

/// A row of a CSV file.
pub(crate) struct TimesRow {
    origin: Origin,
    row: SweepRow,
}

impl StoredRow for TimesRow {
    fn of(record: &StringRecord, header: &StringRecord) -> csv::Result<TimesRow> {
        let mut row: SweepRow = record.deserialize(Some(header))?;
        row.algorithm = escape::from_csv_field(row.algorithm);
        let origin = record.deserialize(Some(header))?;
        Ok(TimesRow { origin, row })
    }

    fn origin(&self) -> [&str; 2] {
        [&self.origin.command, &self.origin.inputs]
    }

    fn is_sound(&self) -> bool {
        let TimesRow { origin, row } = self;
        let words = [&origin.ports, &origin.time_unit, &row.algorithm];
        let mut words = words.into_iter().chain(&row.left_out);
        let is_time = |time: f64| time.is_finite() && time >= 0.0;
        parse_kind(&origin.collective).is_ok()
            && words.all(|word| escape::is_visible(word))
            && row.ranks > 0
            && row.times().all(is_time)
    }

    fn is_measured(&self) -> bool {
        self.row.median.is_some()
    }
}

/// The times of algorithms, and what is left out, at all points so far.
#[derive(Clone)]
pub(crate) struct Times<'a> {
    pub(super) common: &'a Common,
    command: &'a str,
    collective: String,
    costs: String,
    ports: String,
    pub(super) sweep: Sweep,
    skipped: Vec<(Spot, Skipped)>,
}

impl<'a> Times<'a> {
    pub(crate) fn new(common: &'a Common, caller: &'a Caller) -> Times<'a> {
        Times {
            common,
            command: &caller.command,
            collective: String::new(),
            costs: String::new(),
            ports: String::new(),
            sweep: Sweep {
                unit: Unit::Plain,
                rows: Vec::new(),
                players: Players::default(),
            },
            skipped: Vec::new(),
        }
    }

    /// Those of one point, with the pages that step through its schedules.
    pub(crate) fn of(
        common: &'a Common,
        caller: &'a Caller,
        point: Point,
        players: Players,
    ) -> Times<'a> {
        let mut times = Times::new(common, caller);
        times.take(point);
        times.sweep.players = players;
        times
    }

    /// The costs in words, with what the nodes of the machine have.
    fn on_nodes(&self, costs: String) -> String {
        match self.common.nodes.node_ports {
            None => costs,
            Some(k) => format!("{costs}; nodes have {} of each kind", counted(k, "port")),
        }
    }

    fn take(&mut self, point: Point) {
        self.collective = point.collective.into();
        self.ports = show_ports(point.ports.name(), point.ports.k());
        self.costs = self.on_nodes(point.costs);
        self.sweep.unit = point.unit;
        let first = point.rows.first().map(spot).unwrap_or_default();
        // Rows of a CSV file are replaced if only the costs or a schedule say how many ranks there
        // are.
        self.sweep.rows.retain(|row| spot(row) != first);
        let skipped = point.skipped.into_iter();
        self.skipped
            .extend(skipped.map(|skipped| (first.clone(), skipped)));
        self.sweep.rows.extend(point.rows);
    }

    /// The rows; those of a CSV file tell what they were made from: these `inputs`. `left_out` is
    /// what they have of that.
    fn lines<'s, L: Answered>(
        &'s self,
        inputs: Option<&'s str>,
        left_out: impl Fn(&'s SweepRow) -> Option<L> + Copy,
    ) -> impl Iterator<Item = impl Answered> {
        let over = |value: f64, by: f64| (by > 0.0).then(|| Number(value / by));
        let any_own = self.sweep.rows.iter().any(|row| row.own);
        self.sweep.points().into_iter().flat_map(move |point| {
            let rows = self.sweep.at(point);
            let best = rows.first().map_or(0.0, |row| row.value());
            rows.into_iter().map(move |row| {
                record! {
                    collective: &self.collective,
                    ports: &self.ports,
                    ranks: row.ranks,
                    bytes: row.bytes,
                    dist (optional): row.dist.as_ref(),
                    algorithm: &row.algorithm,
                    /// Whether it is a schedule from a file, where any is.
                    own (optional): any_own.then_some(row.own),
                    model_time: Number(row.time),
                    time_unit: self.sweep.unit.name(),
                    lower_bound: Number(row.bound),
                    /// Model time over the lower bound.
                    x_bound: over(row.time, row.bound),
                    /// Time over the best at this point, measured if it was.
                    x_best: over(row.value(), best).unwrap_or(Number(1.0)),
                    median_ns: row.median.map(Number),
                    rounds: row.rounds,
                    messages: row.messages,
                    volume_bytes: row.volume,
                    segment_bytes: row.segment,
                    late (optional): row.late.map(Number),
                    /// The first rank whose delay costs most, and the first whose costs least.
                    late_rank (optional): row.late.map(|_| row.late_rank),
                    least_time (optional): row.least.map(Number),
                    least_rank (optional): row.late.map(|_| row.least_rank),
                    p95_time (optional): row.p95.map(Number),
                    worst_time (optional): row.worst.map(Number),
                    command: self.command,
                    inputs (optional): inputs,
                    /// What the search left out because it would take too long, and may be better.
                    left_out (optional): left_out(row),
                }
            })
        })
    }
}

impl Findings for Times<'_> {
    type Found = Point;
    type Row = TimesRow;

    fn is_cut(point: &Point) -> bool {
        point.interrupted
    }

    fn take_known(&mut self, rows: Vec<TimesRow>) -> Result<()> {
        if let Some(TimesRow { origin, row }) = rows.first() {
            self.collective.clone_from(&origin.collective);
            self.ports.clone_from(&origin.ports);
            let (cost, unit) = self.common.costs(row.ranks)?;
            self.costs = self.on_nodes(show_cost(&cost, unit));
            if origin.time_unit == Unit::Nanoseconds.name() {
                self.sweep.unit = Unit::Nanoseconds;
            }
        }
        self.sweep.rows = rows.into_iter().map(|known| known.row).collect();
        Ok(())
    }

    /// Takes the rows with their place in the sweep: with the average size of blocks in place of
    /// the largest one, if that is what is swept.
    fn add(&mut self, point: &Common, mut found: Point) -> Result<()> {
        let size = point.point_bytes();
        let size = size.filter(|_| point.blocks.block.is_some());
        for row in &mut found.rows {
            row.bytes = size.unwrap_or(row.bytes);
            row.dist = point.dist_among(self.common);
        }
        self.take(found);
        Ok(())
    }

    fn sweep(&self) -> Cow<'_, Sweep> {
        Cow::Borrowed(&self.sweep)
    }

    fn collective(&self) -> &str {
        &self.collective
    }

    fn ports(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.ports)
    }

    fn costs(&self) -> &str {
        &self.costs
    }

    fn csv(&self, inputs: &str) -> Result<Vec<u8>> {
        // All rows of a file have the same columns.
        let any = self.sweep.rows.iter().any(|row| !row.left_out.is_empty());
        output::csv(self.lines(Some(inputs), |row| {
            any.then(|| row.left_out.join(SweepRow::LIST))
        }))
    }

    fn answered(&self, _: bool) -> impl Answered {
        fn left_out(row: &SweepRow) -> Option<&Vec<String>> {
            Some(&row.left_out).filter(|all| !all.is_empty())
        }
        record! {
            rows: self.lines(None, left_out).collect::<Vec<_>>(),
            skipped: self.skipped.iter().map(|((ranks, bytes, dist), skipped)| record! {
                ranks: ranks,
                bytes: bytes,
                dist (optional): dist.as_ref(),
                #[serde(flatten)]
                skipped: skipped,
            }).collect::<Vec<_>>(),
        }
    }

    fn paper(&self) -> PaperTable {
        let (columns, rows) = self.columns();
        PaperTable::of(&columns, &rows)
    }

    fn print(&self, title: &str, out: &mut Lines) -> Result<()> {
        writeln!(out, "{title}\n{} ports, {}\n", self.ports, self.costs)?;
        let (columns, rows) = self.columns();
        output::table(out, &columns, rows)?;
        // By algorithm: the first reason, and how often there is one.
        let mut reasons: BTreeMap<&str, (usize, &Skipped)> = BTreeMap::new();
        for (_, skipped) in &self.skipped {
            reasons.entry(&skipped.algorithm).or_insert((0, skipped)).0 += 1;
        }
        let summed = |(points, first): (usize, &Skipped)| {
            let mut skipped = first.clone();
            if points > 1 {
                skipped.reason += &format!(" (and at {})", counted(points - 1, "other point"));
            }
            skipped
        };
        let reasons: Vec<Skipped> = reasons.into_values().map(summed).collect();
        output::skipped(out, &reasons)
    }
}
