//! What every buffer of a page holds, and when that changes. A buffer consists of cells, between
//! whose borders all elements have the same history; an entry says what a cell holds from then on.

use std::ops::Range;

use serde_json::{Value, json};

use crate::blocks::Owners;
use crate::legend::{FinestParts, color};
use oneport::check::Finding;
use oneport::internal::numbers::signed;
use oneport::internal::{Held, History};
use oneport::schedule::Schedule;

pub(super) struct Buffers {
    ranks: Vec<RankCells>,
    /// Those of a rank one after another: of its input, and then of each of its steps.
    entries: Vec<CellEntry>,
}

struct RankCells {
    /// Where its cells start, and the end of the last.
    borders: Vec<usize>,
    /// The output as pairs: the first cell of a span, and the number of its cells.
    output: Vec<[usize; 2]>,
    /// The cells of the output that end with something else than they should.
    wrong: Vec<usize>,
    /// The number of entries of the input.
    initial: usize,
    /// By step: its number of entries.
    written: Vec<usize>,
}

struct CellEntry {
    cell: usize,
    /// Index into [`History::contents`].
    list: usize,
    /// Of the first element, in the input of the first contributing rank.
    index: usize,
    /// From the place in the buffer to `index`.
    shift: i64,
    color: usize,
}

impl Buffers {
    /// Of `errors` those of outputs are shown. With `finest` parts of the vector, cells have their
    /// colours.
    pub(super) fn new(
        schedule: &Schedule,
        history: &History,
        errors: &[Finding],
        finest: Option<&FinestParts>,
    ) -> Buffers {
        let has_blocks = schedule.collective().kind().has_blocks();
        let owners = has_blocks.then(|| Owners::of(schedule));
        let mut entries = Vec::new();
        let ranks = (0..schedule.ranks()).map(|rank| {
            let borders = borders(schedule, history, owners.as_ref(), rank);
            let mut add = |runs: &[Held]| {
                let before = entries.len();
                for run in runs {
                    add_cells(&borders, history, owners.as_ref(), run, &mut entries);
                }
                entries.len() - before
            };
            let initial = add(history.initial(rank));
            let steps = 0..schedule.programs()[rank].len();
            let written = steps.map(|i| add(history.written(rank, i))).collect();
            let cell = |at: usize| borders.partition_point(|&border| border < at);
            let output = schedule.layout()[rank].output.iter();
            let output = output.map(|s| [cell(s.offset), cell(s.end()) - cell(s.offset)]);
            let output: Vec<[usize; 2]> = output.collect();
            let of_rank = errors.iter().filter(|error| error.rank == Some(rank));
            let ranges = of_rank.filter_map(|error| {
                let first = error.element?;
                Some(first..first + error.elements?)
            });
            let ranges: Vec<Range<usize>> = ranges.collect();
            let (mut wrong, mut element) = (Vec::new(), 0);
            for cell in output
                .iter()
                .flat_map(|&[first, number]| first..first + number)
            {
                if ranges.iter().any(|range| range.contains(&element)) {
                    wrong.push(cell);
                }
                element += borders[cell + 1] - borders[cell];
            }
            RankCells {
                output,
                wrong,
                borders,
                initial,
                written,
            }
        });
        let ranks = ranks.collect();
        match (owners, finest) {
            (Some(_), _) => {}
            (None, Some(finest)) => {
                for entry in &mut entries {
                    entry.color = color(Some(finest.part(entry.index)));
                }
            }
            (None, None) => color_by_index(&mut entries),
        }
        Buffers { ranks, entries }
    }

    /// The number of cells that a step writes.
    pub(super) fn written(&self, rank: usize, step: usize) -> usize {
        self.ranks[rank].written[step]
    }

    /// By rank the lengths of the cells, the output and the number of cells of the input; and the
    /// entries in columns, `cell` and `shift` as differences to the entry before.
    pub(super) fn json(&self) -> Value {
        let of_ranks =
            |of: &dyn Fn(&RankCells) -> Value| self.ranks.iter().map(of).collect::<Value>();
        let column = |of: fn(&CellEntry) -> i64| self.entries.iter().map(of).collect::<Vec<_>>();
        let lengths = |b: &RankCells| b.borders.windows(2).map(|w| w[1] - w[0]).collect();
        json!({
            "cells": of_ranks(&lengths),
            "outputs": of_ranks(&|b| json!(b.output)),
            "wrong": of_ranks(&|b| json!(b.wrong)),
            "initial": of_ranks(&|b| json!(b.initial)),
            "cell": differences(&column(|e| signed(e.cell))),
            "shift": differences(&column(|e| e.shift)),
            "list": column(|e| signed(e.list)), "color": column(|e| signed(e.color)),
        })
    }
}

/// The first value, and by how much each is more than the one before, wrapping as places in buffers
/// of any length do.
fn differences(values: &[i64]) -> Vec<i64> {
    let first = values.first().copied();
    first
        .into_iter()
        .chain(values.windows(2).map(|w| w[1].wrapping_sub(w[0])))
        .collect()
}

/// Where the cells of a rank start, and the end of the last.
fn borders(
    schedule: &Schedule,
    history: &History,
    owners: Option<&Owners>,
    rank: usize,
) -> Vec<usize> {
    let (layout, program) = (&schedule.layout()[rank], &schedule.programs()[rank]);
    let written = (0..program.len()).flat_map(|i| history.written(rank, i));
    let held = history.initial(rank).iter().chain(written);
    let owned = held
        .clone()
        .flat_map(|run| owners.into_iter().flat_map(|owners| owners.borders(run)));
    // Senders show the parts that they send.
    let read = program.iter().flat_map(|step| step.reads());
    let spans = held.clone().map(|h| &h.span).chain(read);
    let spans = spans.chain(&layout.output);
    let mut borders: Vec<usize> = spans.flat_map(|s| [s.offset, s.end()]).collect();
    borders.extend(owned);
    borders.extend([0, layout.len]);
    borders.sort_unstable();
    borders.dedup();
    borders
}

/// Adds an entry for every cell of a run.
fn add_cells(
    borders: &[usize],
    history: &History,
    owners: Option<&Owners>,
    run: &Held,
    entries: &mut Vec<CellEntry>,
) {
    let cell = |at: usize| borders.partition_point(|&border| border < at);
    for cell in cell(run.span.offset)..cell(run.span.end()) {
        let index = run.index.wrapping_add(borders[cell] - run.span.offset);
        let held = Held {
            span: (borders[cell], borders[cell + 1] - borders[cell]).into(),
            index,
            ..*run
        };
        let owner = owners.and_then(|o| o.of_runs(history, &[held]).first().copied());
        entries.push(CellEntry {
            cell,
            list: run.content,
            index,
            shift: index.wrapping_sub(borders[cell]).cast_signed() as i64,
            color: color(owner),
        });
    }
}

/// Colours the entries in the order of their indices, where no rank owns a block.
fn color_by_index(entries: &mut [CellEntry]) {
    let mut indices: Vec<usize> = entries.iter().map(|e| e.index).collect();
    indices.sort_unstable();
    indices.dedup();
    for entry in entries {
        let place = indices.partition_point(|&i| i < entry.index);
        entry.color = color(Some(place));
    }
}
