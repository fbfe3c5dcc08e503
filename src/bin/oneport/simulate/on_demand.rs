//! Schedules too long to be stored, timed step by step.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use oneport::Kind;
use oneport::bounds::lower_bound;
use oneport::plan::segmentation::published;

use super::{Args, Output, print_facts, print_of};
use crate::output;
use crate::subject::{About, Subject};
use crate::task::{Task, closed_form, steps};
use crate::units::Number;

/// Schedules of up to this many steps are stored.
const MOST_STORED: u64 = 1 << 20;
/// Schedules over fewer ranks, too: their steps are in the segments.
const FEWEST_RANKS: usize = 1 << 10;

/// What has become of a request.
pub(super) enum Outcome {
    /// Timed and printed.
    Done(ExitCode),
    /// The schedule is to be planned and stored. The choice of the algorithm may take long, so it is not made twice.
    Stored(Box<Subject>),
    /// Nothing has been done.
    Nothing,
}

/// Times what the options ask for without storing it, where the schedule is long and the algorithm and the options allow it.
pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let common = &args.common;
    let Some(kind) = common.collective.filter(|_| common.schedule.is_none()) else {
        return Ok(Outcome::Nothing);
    };
    let machine = &common.machine;
    let piped = machine
        .profile
        .as_ref()
        .is_some_and(|path| path.as_os_str() == "-");
    let plain = common.rules.is_none() && machine.costs.is_none() && !piped;
    let few = common.ranks.is_none_or(|ranks| ranks < FEWEST_RANKS);
    if few || !plain || args.ranks_table || args.critical_path || common.algorithm == "all" {
        return Ok(Outcome::Nothing);
    }
    let mut task = Task::new(common, kind)?;
    let long = |segments| {
        let mut algorithms = task.algorithms.iter().filter(|a| a.is_on_demand());
        algorithms.any(|a| steps(a, task.request.ranks, segments) > MOST_STORED)
    };
    // The best number of segments is not known yet; with as many as there may be, the schedule may be long.
    if !long(
        task.segments
            .as_ref()
            .map_or(task.request.elements().max(1), |s| s.count()),
    ) {
        return Ok(Outcome::Nothing);
    }
    task.timed_only = true;
    let (algorithm, request) = task.choose()?;
    if !algorithm.is_on_demand()
        || steps(algorithm, request.ranks, request.segments.count()) <= MOST_STORED
    {
        return Ok(Outcome::Stored(Box::new(Subject::planned_by(
            &task, algorithm, request,
        )?)));
    }
    let rooted = matches!(kind, Kind::Broadcast | Kind::Reduce);
    if common.root.is_some() && !rooted {
        output::note(&format!("{} has no root; --root is ignored", kind.name()));
    }
    // Every step is half of a transfer.
    let transfers = steps(algorithm, request.ranks, request.segments.count()) / 2;
    let bar = bar(transfers << u32::from(request.cost.overlap));
    let timed = algorithm.timed_watched(&request, |more| {
        if bar.position() == 0 {
            // Until now, programs have been made: that says nothing about the time that is left.
            bar.reset_eta();
        }
        bar.inc(more);
    });
    bar.finish_and_clear();
    let timed = timed?;
    if !timed.time.is_finite() {
        bail!("the model time is too large to be computed");
    }
    let cost = &request.cost;
    let size = request.element_bytes;
    let (ports, ranks) = (request.ports, request.ranks);
    let bounds = lower_bound(kind, ports, ranks, request.elements(), size, cost);
    let about = About::planned(&task, algorithm, &request, rooted.then_some(request.root));
    let largest = bounds.largest;
    let output = Output {
        time: Number(timed.time),
        rounds: timed.rounds,
        messages: timed.messages,
        bytes: timed.elements as u64 * size,
        lower_bound: Number(largest),
        ratio: (largest > 0.0).then_some(timed.time / largest),
        closed_form: closed_form(algorithm, &request).map(Number),
        lower_bounds: bounds.into(),
        published: published(kind, algorithm.name, &request).map(|p| print_of(&p, size)),
        alpha: Number(cost.alpha),
        beta: Number(cost.beta),
        gamma: Number(cost.gamma),
        gamma_copy: Number(cost.gamma_copy),
        pieces: cost.size_pieces(),
        about: &about,
        rank_times: None,
        port_busy: None,
        critical_path: None,
    };
    if common.json {
        output::json(out, &output)?;
    } else {
        print_facts(out, about.facts(cost, task.unit), task.unit, &output)?;
    }
    Ok(Outcome::Done(ExitCode::SUCCESS))
}

/// A progress bar on standard error that shows up only when it takes long, and only on a terminal.
fn bar(transfers: u64) -> ProgressBar {
    let bar = ProgressBar::new(transfers);
    if let Ok(style) = ProgressStyle::with_template(
        "timing {wide_bar} {percent}% of {human_len} transfers, {eta} left",
    ) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(300));
    bar
}
