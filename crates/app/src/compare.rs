//! `oneport compare`: compares all algorithms of one collective by model time, and on request by
//! measured times. `task/evaluation.rs` says how the variant of each is chosen.

mod late;
mod measured;
mod own;
mod timed;

use std::borrow::Cow;

use oneport::internal::budget::files::MAX_PLAYERS_BYTES;
use oneport::internal::budget::memory::PROVED_TRANSFER_BYTES;
use oneport::internal::budget::quick::MAX_TRANSFERS;
use oneport::plan::space::Variant;
use oneport::simulate::Timed;
use oneport_pictures::{MAX_PAGE_RANKS, Players, Shown};

use self::measured::MeasuredPart;
use self::timed::{TimedAlgorithms, time_all};
use crate::args::SameBits;
use crate::bits::ShownBits;
use crate::delays::{Lateness, Latenesses};
use crate::draw::player;
use crate::levels::{self, Level};
use crate::prelude::*;
use crate::run::WallSummary;
use crate::site;
use crate::sweep::{Findings as _, Point, SweepArgs, Times};
use crate::task::Timing;

options! {
    /// Compare all algorithms for one collective by model time.
    #[derive(Debug, Clone)]
    #[examples = "\
Examples:
  oneport compare reduce -p 64 --bytes 1MiB
  oneport compare broadcast -p 15 --bytes 64KiB --ports uni --json
  oneport compare allreduce -p 2 --bytes 64KiB --engine threads    measured, too
  mpirun -n 4 oneport compare allreduce --bytes 64KiB --dtype f32  beside the library's own
  oneport compare --schedule mine.json                                 an own schedule beside all
  oneport compare --schedule three-phase=mine.json                     by that name
  oneport compare broadcast -p 2..64 --bytes 8..1MiB -o sweep.html  a table, and a page with plots
  oneport compare reduce -p 16 --bytes 64KiB --late 0..100us -o late.html   what one late rank costs

Every algorithm gets the segment size that is best for it, unless --segment, --segments or --segment-sizes is \
given. Algorithms that cannot be used here are listed with the reason. Measured times are medians of verified runs, interleaved; over MPI the \
library's own function is a row of its own."]
    pub(crate) struct CompareArgs {
        common: Common = Group { freed: &["schedule"] },

        sweep: SweepArgs = Group,

        /// Delay one rank by each of these times, such as 0..1ms (17 of them) or 0,10us,100us;
        /// reports the worst and the best choice of that rank, counted from its arrival
        late: Option<Lateness> = Latenesses { conflicts: &["arrivals"], heading: Some("Machine") },

        /// Draw random --arrivals so often, and compare the mean, the 95th percentile and the
        /// longest time after the last arrival
        trials: Option<usize> = Count {
            requires: &["arrivals"], conflicts: &["late"], heading: Some("Machine"),
        },

        /// Measure, too: on threads, or on the processes that mpirun or srun started [default:
        /// model times alone; mpi if they did]
        engine: Option<Engine> = Engine { heading: Some("Measurement") },

        /// Number of timed repetitions of each algorithm [default: 30]
        repetitions: Option<usize> = Count {
            hidden_aliases: &["iters", "iterations", "reps"], heading: Some("Measurement"),
        },

        /// How long a rank waits for a partner before the measurement ends in an error [default:
        /// 10s]
        deadline: Option<Duration> = Deadline {
            takes_dashes: true, heading: Some("Measurement"),
        },

        inputs: InputArgs = Group { heading: Some("Measurement") },
    }
}

/// An algorithm, or a schedule from a file, timed.
#[derive(Debug)]
struct CompareRow {
    figures: SweepRow,
    info: ScheduleInfo,
    /// By level of the machine, from the innermost one: the traffic.
    levels: Option<Vec<Level>>,
    /// Measured.
    wall: Option<WallSummary>,
    /// Of a reduction that is quickly proved.
    bits: Option<ShownBits>,
    candidate: Candidate,
}

/// What a row is about.
#[derive(Debug)]
enum Candidate {
    Planned(Variant),
    Own(Schedule),
}

impl Candidate {
    fn schedule(&self, task: &PlanTask) -> oneport::Result<Cow<'_, Schedule>> {
        match self {
            Candidate::Planned(variant) => task.plan(variant).map(Cow::Owned),
            Candidate::Own(schedule) => Ok(Cow::Borrowed(schedule)),
        }
    }
}

impl CompareRow {
    /// The row of a schedule that is timed in the model.
    fn new(
        algorithm: &str,
        timed: &Timed,
        element_bytes: u64,
        info: ScheduleInfo,
        candidate: Candidate,
    ) -> CompareRow {
        CompareRow {
            figures: info.figures(algorithm, timed, element_bytes),
            info,
            levels: None,
            wall: None,
            bits: None,
            candidate,
        }
    }
}

impl Command for CompareArgs {
    fn json_forms() -> JsonForms {
        JsonForms::new()
            .of(|job: &'static CompareJob| job.json())
            .of(|times: &'static Times| times.answered(false))
    }

    fn engine(&self) -> Option<Engine> {
        self.engine
    }

    fn answer(&self, site: &mut Site) -> Result<Answer> {
        site.agree(self.sweep.writable(&site.caller, &[], None))?;
        if self.engine.is_none() {
            self.note_unmeasured(&site.caller);
        }
        if self.common.points().len() == 1 && !self.varies_arrivals() {
            let mut job = CompareJob::new(self, site);
            if let Ok(job) = &mut job {
                job.find_bits();
            }
            let players = match &job {
                Ok(job) if self.sweep.writes_page() => job.players(),
                _ => Players::default(),
            };
            let done = site.perform(job)?;
            let answer = done.answer(&site.caller)?;
            let (common, caller) = (&self.common, &site.caller);
            let times = Times::of(common, caller, done.point(), players);
            return self.sweep.experiment(common, caller, times)?.finish(answer);
        }
        let (mut common, caller) = (self.common.clone(), site.caller.clone());
        if self.varies_arrivals() {
            late::ensure(self)?;
            // What is chosen for all points is chosen for ranks that arrive together.
            common.delays.arrivals = None;
        }
        let times = Times::new(&common, &caller);
        let experiment = self.sweep.experiment(&common, &caller, times)?;
        experiment.fill(site, |site, point, stop| {
            let args = CompareArgs {
                common: point.clone(),
                ..self.clone()
            };
            if self.varies_arrivals() {
                return late::point(&args, &self.common.delays, site, stop);
            }
            Ok(site.perform(CompareJob::new(&args, site))?.point())
        })
    }
}

/// All algorithms for a task, timed in the model, and perhaps measured.
struct CompareJob<'a> {
    args: &'a CompareArgs,
    task: PlanTask,
    timed: TimedAlgorithms,
    /// What is measured, in the order of the choices.
    schedules: Option<Vec<Schedule>>,
    measured: Option<MeasuredPart>,
}

impl<'a> CompareJob<'a> {
    fn new(args: &'a CompareArgs, site: &Site) -> Result<CompareJob<'a>> {
        let (common, task) = args.task(site)?;
        CompareJob::of(args, &common, task)
    }

    fn of(args: &'a CompareArgs, common: &Common, task: PlanTask) -> Result<CompareJob<'a>> {
        let timed = time_all(args, common, &task)?;
        let measures = args.engine.is_some();
        let schedules = measures.then(|| measured::plan(&timed.rows));
        Ok(CompareJob {
            args,
            task,
            timed,
            schedules: schedules.transpose()?,
            measured: None,
        })
    }
}

impl<'a> site::Job for CompareJob<'a> {
    type Done = CompareJob<'a>;

    fn fact(&self) -> String {
        let names = self.timed.rows.iter().map(|row| &*row.figures.algorithm);
        let request = &self.task.request;
        let names = names.collect::<Vec<_>>().join(", ");
        format!(
            "measures {names} on {} ranks with {} elements",
            request.ranks(),
            request.elements()
        )
    }

    fn perform(mut self, site: &mut Site) -> Result<CompareJob<'a>> {
        if let Some(schedules) = &self.schedules {
            let (args, rows) = (self.args, &mut self.timed.rows);
            let cost = self.task.request.get_cost();
            let found = measured::measure(args, schedules, cost, rows, site)?;
            rows.sort_by_key(|row| row.wall.as_ref().map(|wall| wall.median));
            self.measured = Some(found);
        }
        Ok(self)
    }
}

impl CompareJob<'_> {
    /// Proves the reductions that are quickly proved, to say which number comes out of them: in
    /// JSON, and in the table of a type of floats.
    fn find_bits(&mut self) {
        let Common { vector, json, .. } = &self.args.common;
        if !json && vector.dtype.is_none() {
            return;
        }
        if !self.task.request.get_collective().reduces() || !ShownBits::matter(vector) {
            return;
        }
        // What does not fit into memory says nothing of its bits.
        let is_quick = |messages: usize| {
            let bytes = messages as u128 * u128::from(PROVED_TRANSFER_BYTES);
            messages <= MAX_TRANSFERS && ensure_memory("a proof", bytes, LARGE_SCHEDULE).is_ok()
        };
        let rows = self.timed.rows.iter_mut();
        for row in rows.filter(|row| is_quick(row.figures.messages)) {
            // What can be timed but not stored has no bits to show.
            if let Ok(schedule) = row.candidate.schedule(&self.task) {
                row.bits = ShownBits::of(&schedule.check(), vector, schedule.ranks());
            }
        }
    }

    /// By algorithm: the page that steps through its schedule, packed. The fastest have one, as far
    /// as one page has room for all, but what is too long to watch has none.
    fn players(&self) -> Players {
        let (task, timed) = (&self.task, &self.timed);
        let rows = timed.rows.iter();
        let rows = rows.filter(|row| row.figures.ranks <= MAX_PAGE_RANKS);
        let players = rows.filter_map(|row| {
            let name = &*row.figures.algorithm;
            let schedule = row.candidate.schedule(task).ok()?;
            let cost = task.request.get_cost();
            let shown = Shown {
                name,
                schedule: &schedule,
                cost,
            };
            Some((name.to_string(), player(shown, &row.info, task.unit)?))
        });
        Players::within(MAX_PLAYERS_BYTES, players)
    }

    /// What a sweep keeps of it.
    fn point(self) -> Point {
        let (request, timed) = (&self.task.request, self.timed);
        let rows = timed.rows.into_iter().map(|row| row.figures);
        let mut rows: Vec<SweepRow> = rows.collect();
        let mut costs = show_cost(request.get_cost(), self.task.unit);
        if let Some(measured) = &self.measured {
            costs += &measured.in_words(self.args);
            let library = rows.first().and_then(|row| measured.library_beside(row));
            rows.extend(library);
        }
        Point {
            collective: request.get_collective().name(),
            ports: request.get_ports(),
            costs,
            unit: self.task.unit,
            rows,
            skipped: timed.skipped,
            interrupted: false,
        }
    }

    /// The time of a row relative to the best row in the model, and to the lower bound.
    fn ratios(&self, row: &SweepRow) -> (f64, Option<f64>) {
        let (best, bound) = (self.timed.best, self.timed.lower_bound);
        let x_best = if best > 0.0 { row.time / best } else { 1.0 };
        (x_best, (bound > 0.0).then(|| row.time / bound))
    }

    fn last_arrival(&self) -> f64 {
        self.task.request.get_cost().last_arrival()
    }

    fn json(&self) -> impl Answered {
        let (args, request, timed) = (self.args, &self.task.request, &self.timed);
        record! {
            collective: request.get_collective().name(),
            ranks: request.ranks(),
            ports: request.get_ports().name(),
            ported: request.get_ports().k(),
            node_ports (optional): args.common.nodes.node_ports,
            vector_bytes: timed.info.vector_bytes,
            time_unit: self.task.unit.name(),
            lower_bound: Number(timed.lower_bound),
            rows: timed.rows.iter().map(|row| {
                let (figures, info) = (&row.figures, &row.info);
                let (x_best, x_bound) = self.ratios(figures);
                record! {
                    algorithm: &figures.algorithm,
                    /// The file of a schedule that was read.
                    schedule (optional): info.schedule.as_ref(),
                    root: info.root,
                    time: Number(figures.time),
                    model_time: Number(figures.time),
                    after_last_arrival (optional):
                        args.common.delays.after_last_arrival(request.get_cost(), figures.time),
                    ratio: Number(x_best),
                    x_best: Number(x_best),
                    x_bound: x_bound.map(Number),
                    rounds: figures.rounds,
                    messages: figures.messages,
                    bytes: figures.volume,
                    segments: info.segments,
                    segment: info.segment,
                    /// What the search left out because it would take too long, and may be better.
                    left_out (optional): Some(&info.left_out).filter(|all| !all.is_empty()),
                    levels (optional): row.levels.as_ref(),
                    wall (optional): row.wall.as_ref(),
                    bits (optional): row.bits.as_ref(),
                }
            }).collect::<Vec<_>>(),
            skipped: &timed.skipped,
            #[serde(flatten)]
            measured: self.measured.as_ref().map(|measured| measured.json(args)),
        }
    }

    fn answer(&self, caller: &Caller) -> Result<Answer> {
        if let Some(measured) = &self.measured {
            measured.print_warnings(caller);
        }
        answer(caller, self.args.common.json, &self.json(), |out| {
            self.print_text(out)
        })
    }

    fn print_text(&self, out: &mut Lines) -> Result<()> {
        let (args, task, timed) = (self.args, &self.task, &self.timed);
        writeln!(out, "{}", title(&timed.info, &timed.rows))?;
        let shared = timed.info.show_shared_ports();
        let shared = shared.map_or_else(String::new, |shared| format!("\nshared ports {shared}"));
        let costs = show_cost(task.request.get_cost(), task.unit);
        writeln!(out, "{costs}{shared}\n")?;
        match &self.measured {
            None => self.print_model(out)?,
            Some(measured) => {
                output::summary(out, &measured.summary(args))?;
                writeln!(out)?;
                measured.print(out, &timed.rows, task.unit, self.last_arrival())?;
            }
        }
        output::skipped(out, &timed.skipped)
    }

    fn print_model(&self, out: &mut Lines) -> Result<()> {
        let (unit, timed, last) = (self.task.unit, &self.timed, self.last_arrival());
        let late = last > 0.0;
        let mut columns = Columns::<CompareRow>::default()
            .add("algorithm", |row| row.figures.algorithm.clone())
            .add(">root", |row| or_dash(row.info.root))
            .add(">time", |row| unit.show(row.figures.time))
            .add(">x best", |row| number(self.ratios(&row.figures).0, 4))
            .add(">x bound", |row| {
                or_dash(self.ratios(&row.figures).1.map(|x| number(x, 4)))
            })
            .add(">rounds", |row| row.figures.rounds)
            .add(">segments", |row| or_dash(row.info.segments))
            .add(">segment", |row| or_dash(row.info.segment.map(show_bytes)))
            .add_traffic(|row| &row.figures)
            // Without a type, elements need not be floats.
            .add_if(
                self.args.common.vector.dtype.is_some()
                    && timed.rows.iter().any(|row| row.bits.is_some()),
                "bits",
                |row| or_dash(row.bits.as_ref().map(ShownBits::cell)),
            )
            .add_if(late, ">after last", |row| {
                unit.show(row.figures.time - last)
            });
        let levels = timed.rows.iter().filter_map(|row| row.levels.as_ref());
        for level in 0..levels.map(Vec::len).max().unwrap_or(0) {
            let cell = move |row: &CompareRow| row.levels.as_ref()?.get(level).map(levels::cell);
            columns = columns.add(format!(">level {level}"), move |row| {
                cell(row).unwrap_or_default()
            });
        }
        output::table_of_names(out, &columns, &timed.rows, output::first_is_best)?;
        if timed.lower_bound > 0.0 {
            writeln!(out, "\nlower bound  {}", unit.show(timed.lower_bound))?;
        }
        Ok(())
    }
}

impl CompareArgs {
    fn varies_arrivals(&self) -> bool {
        self.late.is_some() || self.trials.is_some()
    }

    fn repetitions(&self) -> usize {
        self.repetitions.unwrap_or(30)
    }

    /// Says which options are for measured times, where there are none.
    fn note_unmeasured(&self, caller: &Caller) {
        let given = [
            ("--repetitions", self.repetitions.is_some()),
            ("--deadline", self.deadline.is_some()),
            ("--inputs", self.inputs.inputs.kept()),
        ];
        for (option, _) in given.into_iter().filter(|(_, is_given)| *is_given) {
            caller.note(format!(
                "{option} has no effect without --engine: nothing is measured"
            ));
        }
    }

    /// The task that every process has.
    fn task(&self, site: &Site) -> Result<(Common, PlanTask)> {
        let common = match self.engine {
            None => self.common.clone(),
            Some(_) => self.common.typed().0,
        };
        let mut common = own::like_the_first(common)?;
        let Some(kind) = common.collective else {
            bail!(
                "give a COLLECTIVE (such as reduce), or --schedule FILE: compare plans all algorithms itself"
            );
        };
        if common.vector.same_bits == Some(SameBits::Tree) && !self.common.schedule.is_empty() {
            bail!("--same-bits=tree chooses among algorithms: compare has files without it");
        }
        if self.common.rules.is_some() {
            bail!("--rules chooses one algorithm: compare has all of them");
        }
        if self.engine.is_none() {
            let mut task = PlanTask::new(&common, kind, &site.caller)?;
            task.timed_only = Some(Timing::All);
            return Ok((common, task));
        }
        if self.common.nodes.node_ports.is_some() {
            bail!("--node-ports is for model times: leave --engine out");
        }
        if self.repetitions() == 0 {
            bail!("--repetitions is 0: at least one is timed");
        }
        let dtype = self.common.typed().1;
        common.vector.ensure_combines(kind, dtype)?;
        if let Some(world) = &site.world {
            common.take_ranks(world.size());
        }
        let task = PlanTask::new(&common, kind, &site.caller)?;
        let ranks = task.request.ranks();
        site.ensure_processes(ranks)?;
        site.note_spare(ranks);
        if ranks > site.max_ranks() {
            bail!(
                "{ranks} ranks are more threads than the {} that this system can hold",
                site.max_ranks()
            );
        }
        Ok((common, task))
    }
}

/// The title of the table. With a free root it lists every root chosen.
fn title(info: &ScheduleInfo, rows: &[CompareRow]) -> String {
    if info.root_choice != "free" || info.root.is_none() {
        return info.title();
    }
    let taken: BTreeSet<usize> = rows.iter().filter_map(|row| row.info.root).collect();
    let taken: Vec<String> = taken.iter().map(usize::to_string).collect();
    info.title_with_root(Some(&format!("free root ({})", taken.join(", "))))
}
