//! `oneport simulate`: computes the model time of a schedule. `task/evaluation.rs` says how the
//! schedule is chosen.

mod explain;

use oneport::internal::budget::memory::TIMED_STEP_BYTES;
use oneport::internal::numbers::id;
use oneport::plan::registry::Planned;
use oneport::plan::segments::Published;
use oneport::plan::space::Variant;
use oneport::rules::NodeKind;
use oneport::simulate::bounds::LowerBounds;
use oneport::simulate::{Simulation, Timed};
use oneport_pictures::Players;

use self::explain::{Asked, AskedFor};
use crate::levels::{self, Level};
use crate::prelude::*;
use crate::sweep::{Findings as _, Point, SweepArgs, Times};
use crate::task::{Timing, bar_length};
use crate::units::cut_into;

options! {
    /// Time a schedule exactly in the cost model.
    #[derive(Debug, Clone)]
    #[examples = EXAMPLES]
    pub(crate) struct SimulateArgs {
        common: Common = Group,

        sweep: SweepArgs = Group,

        /// Show when each rank finishes, what it sends and receives, and how long its ports are
        /// busy
        ranks_table: bool = Switch { shorts: &['v'], heading: Some("Output") },

        /// Show one longest chain of transfers and computations, with the latency between them and
        /// the arrival of its first rank: the model time is their sum
        critical_path: bool = Switch { heading: Some("Output") },

        /// Say why the last rank, or RANK, or its step STEP, is done no earlier: the chain of what
        /// waits for what, backwards, and by how much each rank is done before the end
        explain: Option<Asked> = AskedFor {
            value: "RANK[:STEP]", alone: Some("last"), heading: Some("Output"),
        },
    }
}

const EXAMPLES: &str = "\
Examples:
  oneport simulate reduce -p 16 --bytes 1MiB
  oneport simulate broadcast -p 15 --bytes 5 --segments 5 -a chain --ports uni --alpha 1 --beta 1
  oneport simulate reduce -p 4 --bytes 1KiB --dtype f64 --gamma 0.05ns --critical-path
  oneport simulate broadcast -p 2..64 --bytes 8..1MiB*4 -a circulant -o circulant.csv
  oneport simulate reduce -p 8 -a binomial --bytes 1KiB --explain

Model time follows from four rules. Ports: steps on one port run one after another. Data: a step waits for what it \
reads and what it overwrites. Compute: computing is alone on its rank (unless --overlap). Rendezvous: a transfer starts \
when both ends are ready. A transfer of n bytes takes alpha + beta*n, combining n bytes gamma*n. Where all costs are \
given as plain numbers, model times are in the same units, otherwise in nanoseconds.";

/// A piece of the critical path, which starts when the one before it ends: a transfer or a
/// computation, the latency before it, or the time until the first rank of the path arrives.
#[derive(JsonSchema, Serialize)]
struct PathLink {
    work: &'static str,
    from: u32,
    to: u32,
    bytes: u64,
    start: Number,
    end: Number,
}

/// What has been found about a schedule, which is not stored if it is long.
struct Simulated {
    input: Input<Planned>,
    timed: Timed,
    bounds: LowerBounds,
    /// The bound of a series of operations, by its best throughput.
    series: Option<f64>,
    closed_form: Option<f64>,
    published: Option<Published>,
    /// By level of the machine, from the innermost one: the traffic.
    levels: Option<Vec<Level>>,
    /// By rank: bytes sent and received, and how long each port carries a transfer.
    ranks: Option<Vec<RankTotals>>,
    critical_path: Option<Vec<PathLink>>,
    explained: Option<explain::Explained>,
}

/// What a rank sends and receives, in bytes, and how long its ports are busy.
struct RankTotals {
    sent: u64,
    received: u64,
    busy: Vec<Number>,
}

impl Command for SimulateArgs {
    fn json_forms() -> JsonForms {
        JsonForms::new()
            .of(|(found, args): (&'static Simulated, _)| found.json(args))
            .of(|times: &'static Times| times.answered(false))
    }

    fn answer(&self, site: &mut Site) -> Result<Answer> {
        let (common, caller) = (&self.common, &site.caller.clone());
        self.sweep.writable(caller, &[], None)?;
        if common.points().len() > 1 {
            if self.wants_steps() {
                bail!(
                    "--ranks-table, --critical-path and --explain are for one schedule, not a table"
                );
            }
            let times = Times::new(common, caller);
            let experiment = self.sweep.experiment(common, caller, times)?;
            return experiment.fill(site, |_, point, _| {
                let args = SimulateArgs {
                    common: point.clone(),
                    ..self.clone()
                };
                Ok(Simulated::of(&args, caller)?.point())
            });
        }
        let found = Simulated::of(self, caller)?;
        let answer = answer(caller, common.json, &found.json(self), |out| {
            found.print(self, out)
        })?;
        let times = Times::of(common, caller, found.point(), Players::default());
        self.sweep.experiment(common, caller, times)?.finish(answer)
    }
}

impl SimulateArgs {
    /// Whether more is wanted than figures of the whole.
    fn wants_steps(&self) -> bool {
        self.ranks_table || self.critical_path || self.explain.is_some()
    }
}

impl Simulated {
    /// Times the schedule that the options describe.
    fn of(args: &SimulateArgs, caller: &Caller) -> Result<Simulated> {
        let timed_only = (!args.wants_steps()).then_some(Timing::Chosen);
        let input = args.common.input_to_time(timed_only, caller)?;
        let (schedule, cost, info) = (&input.schedule, &input.cost, &input.info);
        let stored = match schedule {
            Planned::Stored(schedule) => Some(schedule),
            Planned::Streamed { .. } => None,
        };
        let progress = WorkBar::new(
            caller,
            0,
            "timing {wide_bar} {percent}% of {human_len} transfers, {eta} left",
        );
        match stored {
            Some(schedule) => {
                let needed = schedule.steps() as u128 * u128::from(TIMED_STEP_BYTES);
                ensure_memory("the times", needed, "take fewer ranks or segments")?;
                progress.begin("", schedule.steps() as u64 / 2);
            }
            None => {
                let length = input.variant.as_ref().map_or(0, bar_length);
                progress.begin("", length);
            }
        }
        let timed = schedule.timed(cost, |more| progress.add(more));
        progress.finish();
        let timed = timed?;
        let in_full = stored.filter(|_| args.wants_steps());
        let in_full =
            in_full.map(|schedule| schedule.simulate(cost).map(|times| (schedule, times)));
        let in_full = in_full.transpose()?;
        let series = input.series.as_ref().zip(stored);
        let series = series.and_then(|(series, schedule)| {
            let bound = series.min_time(schedule);
            let unknown = |e| caller.note(format!("the series has no known bound: {e}"));
            bound.map_err(unknown).ok()
        });
        // Formulas and published times are those of nodes whose ranks share no ports.
        let variant = input.variant.as_ref().filter(|_| info.shared_ports == 0);
        Ok(Simulated {
            bounds: schedule.lower_bound(cost),
            series,
            closed_form: variant.and_then(Variant::closed_form),
            published: variant.and_then(Variant::published),
            levels: stored.and_then(|schedule| levels::traffic(schedule, cost)),
            ranks: in_full
                .as_ref()
                .filter(|_| args.ranks_table)
                .map(totals)
                .transpose()?,
            critical_path: in_full
                .as_ref()
                .filter(|_| args.critical_path)
                .map(|found| path(found, cost)),
            explained: args
                .explain
                .zip(in_full.as_ref())
                .map(|(asked, found)| asked.explained(found))
                .transpose()?,
            timed,
            input,
        })
    }

    fn bytes(&self) -> u64 {
        self.timed.elements as u64 * self.input.element_bytes
    }

    /// The largest lower bound.
    fn bound(&self) -> f64 {
        self.bounds.largest.max(self.series.unwrap_or(0.0))
    }

    /// The name of the largest lower bound.
    fn bound_by(&self) -> Option<&'static str> {
        let bounds = &self.bounds;
        let named = [
            ("series", self.series.unwrap_or(0.0)),
            ("latency", bounds.latency),
            ("bandwidth", bounds.bandwidth),
            ("computation", bounds.computation),
            ("path", bounds.path),
            ("port", bounds.port),
        ];
        let largest = self.bound();
        let mut largest = named.iter().filter(|(_, bound)| *bound == largest);
        largest
            .next()
            .map(|(name, _)| *name)
            .filter(|_| self.bound() > 0.0)
    }

    /// Time divided by lower bound.
    fn x_bound(&self) -> Option<Number> {
        let bound = self.bound();
        (bound > 0.0).then(|| Number(self.timed.time / bound))
    }

    fn json(&self, args: &SimulateArgs) -> impl Answered {
        let (timed, bounds, input) = (&self.timed, &self.bounds, &self.input);
        let linear = input.cost.rates();
        let finite = |time: f64| Some(Number(time)).filter(|t| t.0.is_finite());
        let numbers = |times: &[f64]| times.iter().copied().map(Number).collect::<Vec<_>>();
        record! {
            time: Number(timed.time),
            model_time: Number(timed.time),
            rounds: timed.rounds,
            messages: timed.messages,
            bytes: self.bytes(),
            lower_bound: Number(self.bound()),
            ratio: self.x_bound(),
            x_bound: self.x_bound(),
            /// Of which `lower_bound` is the largest.
            lower_bounds: record! {
                latency: Number(bounds.latency),
                bandwidth: Number(bounds.bandwidth),
                computation: Number(bounds.computation),
                path: Number(bounds.path),
                port: Number(bounds.port),
                series (optional): self.series.map(Number),
                /// Of all schedules that cut the vector into so many blocks.
                whole_blocks (optional): (bounds.blocks > 0).then(|| record! {
                    blocks: bounds.blocks,
                    time: Number(bounds.block_time),
                    rounds: bounds.block_rounds,
                }),
            },
            bound_by (optional): self.bound_by(),
            closed_form: self.closed_form.map(Number),
            /// The row of a published table.
            published: self.published.as_ref().map(|published| record! {
                table: published.table,
                time: Number(published.time),
                /// In bytes, not rounded.
                best_segment: published.best_segment
                    .and_then(|s| finite(s * input.element_bytes as f64)),
                best_time: published.best_time.and_then(finite),
                terms (optional): published.terms.map(|[latency, bandwidth, computation]| record! {
                    latency: Number(latency),
                    bandwidth: Number(bandwidth),
                    computation: Number(computation),
                }),
                penalty (optional): published.penalty.map(Number),
                erratum (optional): published.erratum,
            }),
            alpha: Number(linear.alpha),
            beta: Number(linear.beta),
            gamma: Number(linear.gamma),
            gamma_copy: Number(linear.gamma_copy),
            /// Present if the costs are not linear in the size; alpha to gamma_copy are then only
            /// an approximation.
            pieces (optional): input.cost.size_pieces(),
            #[serde(flatten)]
            info: &input.info,
            after_last_arrival (optional):
                args.common.delays.after_last_arrival(&input.cost, timed.time),
            levels (optional): self.levels.as_ref(),
            rank_times (optional): args.ranks_table.then(|| numbers(&timed.rank_times)),
            /// By rank and port.
            port_busy (optional): self.ranks.as_ref().map(|ranks| {
                ranks.iter().map(|rank| &rank.busy).collect::<Vec<_>>()
            }),
            critical_path (optional): self.critical_path.as_ref(),
            explain (optional): self.explained.as_ref().map(explain::Explained::json),
        }
    }

    /// What a sweep keeps of it.
    fn point(&self) -> Point {
        let (input, info) = (&self.input, &self.input.info);
        let row = SweepRow {
            bound: self.bound(),
            ..info.figures(info.by(), &self.timed, input.element_bytes)
        };
        Point {
            collective: info.collective,
            ports: input.schedule.ports(),
            costs: show_cost(&input.cost, input.unit),
            unit: input.unit,
            rows: vec![row],
            skipped: Vec::new(),
            interrupted: false,
        }
    }

    fn print(&self, args: &SimulateArgs, out: &mut Lines) -> Result<()> {
        let unit = self.input.unit;
        let mut summary = self.input.summary();
        summary.push(("time", unit.show(self.timed.time)));
        summary.extend(self.input.summary_of_claim());
        summary.extend(self.input.summary_of_late(self.timed.time));
        if let Some(ratio) = self.x_bound() {
            let (bound, by) = (unit.show(self.bound()), self.bound_by().unwrap_or_default());
            summary.push((
                "lower bound",
                format!("{bound} (time is {} times that), {by}", number(ratio.0, 4)),
            ));
        }
        let bounds = &self.bounds;
        if bounds.block_time > self.bound() {
            summary.push((
                "for blocks",
                format!(
                    "{} (time is {} times that), {} rounds: of all schedules that {}",
                    unit.show(bounds.block_time),
                    number(self.timed.time / bounds.block_time, 4),
                    bounds.block_rounds,
                    cut_into(bounds.blocks),
                ),
            ));
        }
        if let Some(closed) = self.closed_form {
            summary.push(("formula", unit.show(closed)));
        }
        if let Some(published) = &self.published {
            summary.push(("published", self.show_published(published)));
        }
        summary.push(("rounds", self.timed.rounds.to_string()));
        let (messages, bytes) = (self.timed.messages, show_bytes(self.bytes()));
        summary.push(("messages", format!("{messages}, {bytes} together")));
        summary.extend(levels::lines(self.levels.as_deref().unwrap_or_default()));
        output::summary(out, &summary)?;
        if let Some(ranks) = self.ranks.as_ref().filter(|_| args.ranks_table) {
            writeln!(out)?;
            self.ranks_table(out, ranks)?;
        }
        if let Some(path) = &self.critical_path {
            writeln!(out, "\ncritical path:")?;
            let columns = Columns::<PathLink>::default()
                .add("work", |link| link.work)
                .add("ranks", |link| match link.work {
                    "transfer" | "latency" => format!("{} -> {}", link.from, link.to),
                    _ => format!("at {}", link.to),
                })
                .add(">size", |link| show_bytes(link.bytes))
                .add(">starts", |link| unit.show(link.start.0))
                .add(">ends", |link| unit.show(link.end.0));
            output::table(out, &columns, path)?;
        }
        if let Some(explained) = &self.explained {
            explained.print(out, &self.input.cost, unit)?;
        }
        Ok(())
    }

    /// Formats a row, such as `39 (Table I; ..); 37.2 with segments of 2.5 bytes, the best`.
    fn show_published(&self, published: &Published) -> String {
        let unit = self.input.unit;
        let mut text = format!("{} ({})", unit.show(published.time), published.table);
        let finite = |(_, time): &(f64, f64)| time.is_finite();
        let best = published.best_segment.zip(published.best_time);
        if let Some((segment, time)) = best.filter(finite) {
            // The formula's optimum may be longer than the vector, and its time then less than any.
            let (segment, time, of) = if segment == published.clamped.0 {
                (segment, time, "")
            } else {
                (published.clamped.0, published.clamped.1, " of this vector")
            };
            let bytes = segment * self.input.element_bytes as f64;
            text += &format!(
                "; {} with segments of {} bytes, the best{of}",
                unit.show(time),
                number(bytes, 5)
            );
        } else if let Some(time) = published.best_time.filter(|time| time.is_finite()) {
            text += &format!("; {} with the best number of segments", unit.show(time));
        }
        if let Some([latency, bandwidth, computation]) = published.terms {
            let [alpha, beta, gamma] = [latency, bandwidth, computation].map(|t| unit.show(t));
            text += &format!("; terms at least {alpha}, {beta}, {gamma} (Table II)");
        }
        if let Some(penalty) = published.penalty.filter(|&penalty| penalty > 0.0) {
            let share = 100.0 * penalty / published.time;
            let (penalty, share) = (unit.show(penalty), number(share, 3));
            text += &format!("; {penalty} of it, {share}%, because the root may wait");
        }
        if let Some(erratum) = published.erratum {
            text += &format!(" [{erratum}]");
        }
        text
    }

    fn ranks_table(&self, out: &mut Lines, ranks: &[RankTotals]) -> Result<()> {
        let (ports, unit) = (self.input.schedule.ports(), self.input.unit);
        let times = &self.timed.rank_times;
        let mut columns = Columns::<usize>::default()
            .add(">rank", |rank| *rank)
            .add(">finishes", |&rank| unit.show(times[rank]))
            .add(">sends", |&rank| show_bytes(ranks[rank].sent))
            .add(">receives", |&rank| show_bytes(ranks[rank].received));
        for list in 0..ports.lists() {
            let (number, side) = ports.side(list);
            let number = match ports.k() {
                1 => String::new(),
                _ => format!(" {number}"),
            };
            let side = side.map_or_else(String::new, |side| format!(" {side}"));
            columns = columns.add(format!(">port{number}{side} busy"), move |&rank| {
                unit.show(ranks[rank].busy[list].0)
            });
        }
        output::table(out, &columns, 0..ranks.len())
    }
}

fn totals((schedule, simulation): &(&Schedule, Simulation)) -> oneport::Result<Vec<RankTotals>> {
    let stats = schedule.stats()?;
    let bytes = |elements: usize| elements as u64 * schedule.element_bytes();
    let busy = simulation.port_busy(schedule).into_iter().enumerate();
    let totals = busy.map(|(rank, ports)| RankTotals {
        sent: bytes(stats.sent[rank]),
        received: bytes(stats.received[rank]),
        busy: ports.into_iter().map(Number).collect(),
    });
    Ok(totals.collect())
}

fn path((schedule, simulation): &(&Schedule, Simulation), cost: &CostModel) -> Vec<PathLink> {
    let reasons = simulation.reasons(schedule);
    let piece = |work, [from, to]: [u32; 2], elements, [start, end]: [f64; 2]| PathLink {
        work,
        from,
        to,
        bytes: elements * schedule.element_bytes(),
        start: Number(start),
        end: Number(end),
    };
    let arrives = |rank: usize| piece("arrival", [id(rank); 2], 0, [0.0, cost.arrival(rank)]);
    let mut pieces = Vec::new();
    for (i, end) in simulation.critical_ends() {
        let node = simulation.prepared().nodes()[i];
        let ranks = [node.from, node.to];
        let (side, _, wait) = reasons.binding(i, end);
        let ready = match wait {
            Some((before, end)) => simulation.finish_at(before, end),
            None => {
                let rank = reasons.at((i, side)).0;
                pieces.extend((cost.arrival(rank) > 0.0).then(|| arrives(rank)));
                cost.arrival(rank)
            }
        };
        let start = simulation.start_at(i, end);
        let late = (start > ready).then(|| piece("latency", ranks, 0, [ready, start]));
        pieces.extend(late);
        let work = match node.kind {
            NodeKind::Transfer => "transfer",
            NodeKind::Combine | NodeKind::CombineLocal => "combine",
            NodeKind::Copy => "copy",
        };
        let times = [start, simulation.finish_at(i, end)];
        pieces.push(piece(work, ranks, node.elements, times));
    }
    let end = simulation.makespan();
    if pieces.is_empty() && end > 0.0 {
        // A rank without steps arrives last.
        pieces.extend(
            (0..schedule.ranks())
                .find(|&r| cost.arrival(r) == end)
                .map(arrives),
        );
    }
    pieces
}
