//! `oneport bits`: reveals by probes in which order a library, or a schedule, sums floats up.

use oneport::check::Report;
use oneport::run::Op;
use oneport_measure::bits::{Revealed, reveal_on};

use crate::bits::ShownBits;
use crate::forms::AlgorithmNames;
use crate::prelude::*;
use crate::site;

options! {
    /// Reveal by probes in which order an MPI library, or a schedule, sums floats up.
    #[derive(Debug)]
    #[examples = "\
Examples:
  mpirun -n 6 oneport bits allreduce --bytes 8..1MiB --library   the library's own function, by size
  oneport bits allreduce -p 6 --bytes 1KiB -a ring               a schedule, run on threads
  oneport bits --schedule mine.json --dtype f64
  oneport check allreduce -p 6 -a all --bytes 1KiB --dtype f32   what is proved of all algorithms

Whether ranks, places or sizes get the same number to the last bit is decided by the tree in which each element's contributions \
were added. Probes reveal it of whatever sums up: for each pair of ranks one contributes 2^126, the other -2^126 and all others 1. \
What is added to either of the two before they meet is lost, so that the sum tells how many ranks come later. That takes p(p-1)/2 calls for \
all elements together. For each size there are the number of different trees, the tree if there is one, and the algorithms here that have \
the same trees at all places (of --ports). A second round of probes shows libraries whose bits vary from call to call, since they \
add in the order of arrival, or change to another algorithm after some calls. Of a schedule, the probes must reveal what 'check' proves; exit code 1 if not."]
    pub(crate) struct BitsArgs {
        common: Common = Group,

        /// Probe the MPI library's own function, not a schedule: over MPI
        library: bool = Switch {
            conflicts: &[
                "schedule", "algorithm", "rules", "segment", "segments", "segment_sizes", "ordered",
                "same_bits",
            ],
            heading: Some("Probes"),
        },

        /// How often all probes are made, one round after another
        rounds: usize = Count { default: Some("2"), heading: Some("Probes") },

        /// Run ranks as threads, or as the processes that mpirun or srun started [default: mpi if
        /// they did]
        engine: Option<Engine> = Engine { heading: Some("Probes") },

        /// How long a rank waits for a partner before a probe ends in an error
        deadline: Duration = Deadline {
            default: Some("10s"), takes_dashes: true, heading: Some("Probes"),
        },
    }
}

impl Command for BitsArgs {
    fn json_forms() -> JsonForms {
        JsonForms::new()
            .of(|(job, info): (&'static BitsJob, _)| job.json(info, ElementType::F32, &[], &[]))
    }

    fn engine(&self) -> Option<Engine> {
        self.engine
    }

    fn answer(&self, site: &mut Site) -> Result<Answer> {
        let done = site.perform(BitsJob::new(self, site))?;
        if site.speaks() {
            done.answer(&site.caller)
        } else {
            Ok(Answer::default())
        }
    }
}

/// The probes of all sizes.
struct BitsJob<'a> {
    args: &'a BitsArgs,
    sizes: Vec<Size>,
    /// The processes, if the engine is MPI.
    processes: Option<Processes>,
}

/// One size of the vector.
struct Size {
    /// The options with this size.
    common: Common,
    /// What is probed, or what the library does the same as.
    input: Input,
    found: Option<Revealed>,
}

impl<'a> BitsJob<'a> {
    fn new(args: &'a BitsArgs, site: &Site) -> Result<BitsJob<'a>> {
        let mut common = args.common.clone();
        let dtype = *common.vector.dtype.get_or_insert(ElementType::F32);
        args.ensure_probed(&common, dtype)?;
        if args.library {
            ensure!(
                site.world.is_some(),
                "--library needs an MPI library: run over MPI (mpirun, --engine mpi)"
            );
            ensure!(
                !common.gives_costs() && common.delays.arrivals.is_none(),
                "--library probes the library's own function, which takes no time of the model: \
                 leave the costs out"
            );
        }
        if let Some(world) = &site.world {
            common.take_ranks(world.size());
        }
        let mut sizes = Vec::new();
        for common in common.points() {
            let input = common.input(&site.caller)?;
            let kind = input.schedule.collective().kind();
            ensure_summed(kind)?;
            let ranks = input.schedule.ranks();
            ensure!(ranks > 1, "one rank has nothing to add: probes need two");
            site.ensure_processes(ranks)?;
            if site.world.is_none() && ranks > site.max_ranks() {
                bail!(
                    "{ranks} ranks are more threads than the {} that this system can hold",
                    site.max_ranks()
                );
            }
            let report = input.check(&common, 1);
            if let Some(error) = report.errors.first().filter(|_| !args.library) {
                bail!("the schedule is wrong: {error}");
            }
            sizes.push(Size {
                common,
                input,
                found: None,
            });
        }
        if let Some(size) = sizes.last() {
            site.note_spare(size.input.schedule.ranks());
        }
        Ok(BitsJob {
            args,
            sizes,
            processes: site.processes(),
        })
    }
}

impl BitsArgs {
    /// Refuses sums that are exact in any order, and what is no sum of floats.
    fn ensure_probed(&self, common: &Common, dtype: ElementType) -> Result<()> {
        let (op, vector) = (common.vector.op(), &common.vector);
        if !ShownBits::matter(vector) {
            bail!(
                "{op} of {dtype} is exact in any order, so its results tell of none: take sums of \
                 f32 or f64"
            );
        }
        ensure!(
            op == Op::SUM,
            "the probes are sums: leave --op {op} out (it may be combined in another order)"
        );
        ensure!(
            matches!(dtype, ElementType::F32 | ElementType::F64),
            "the probes are sums of f32 or f64, not of {dtype}"
        );
        ensure!(
            self.rounds > 0,
            "--rounds is 0: each probe is made at least once"
        );
        Ok(())
    }
}

/// Refuses a collective whose outputs are no sums of what all ranks contribute.
fn ensure_summed(kind: Kind) -> Result<()> {
    let name = kind.name();
    ensure!(
        kind.reduces(),
        "{name} adds nothing, so there is no order to reveal"
    );
    ensure!(
        kind.combines_all(),
        "{name} has sums of some ranks' contributions: only sums of all are probed \
         (allreduce, reduce, reduce_scatter)"
    );
    Ok(())
}

impl<'a> site::Job for BitsJob<'a> {
    type Done = BitsJob<'a>;

    fn fact(&self) -> String {
        let args = self.args;
        let what = if args.library {
            "the library"
        } else {
            "schedules"
        };
        let sizes = self.sizes.iter().map(|size| size.input.info.vector_bytes);
        let sizes: Vec<_> = sizes.collect();
        format!("probes {what} {} times at {sizes:?} bytes", args.rounds)
    }

    fn perform(mut self, site: &mut Site) -> Result<BitsJob<'a>> {
        let length = self.sizes.len() as u64;
        let progress = WorkBar::new(&site.caller, length, "probing {wide_bar} {pos}/{len} sizes");
        for size in &mut self.sizes {
            size.found = Some(match size.common.vector.dtype {
                Some(ElementType::F64) => self.args.probe::<f64>(&size.input.schedule, site)?,
                _ => self.args.probe::<f32>(&size.input.schedule, site)?,
            });
            progress.add(1);
        }
        progress.finish();
        Ok(self)
    }
}

impl BitsArgs {
    fn probe<T: Element + From<f32> + Into<f64>>(
        &self,
        schedule: &Schedule,
        site: &mut Site,
    ) -> Result<Revealed> {
        let caller = site.caller.clone();
        Ok(reveal_on::<T, _>(site, schedule, self.rounds, |run| {
            let run = caller.stoppable(run).deadline(self.deadline);
            if self.library { run.by_library() } else { run }
        })?)
    }
}

/// What the probes say of a size.
#[derive(JsonSchema, Serialize)]
struct Row {
    bytes: Option<u64>,
    /// Of a schedule, the name of its algorithm.
    #[serde(skip_serializing_if = "Option::is_none")]
    algorithm: Option<String>,
    #[serde(flatten)]
    bits: Option<ShownBits>,
    /// Of few ranks whose elements have several trees: each run of elements of one tree.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    places: Vec<TreePart>,
    /// The algorithms that have the same trees.
    same_as: Vec<String>,
    /// Whether an earlier round of probes has found something else than the last one.
    varies: bool,
    /// Of a schedule, whether the probes reveal what is proved.
    #[serde(skip_serializing_if = "Option::is_none")]
    as_proved: Option<bool>,
}

/// Output elements of a rank, from one on, that were added up in one tree.
#[derive(JsonSchema, Serialize)]
struct TreePart {
    rank: usize,
    element: usize,
    elements: usize,
    words: String,
}

/// The places of all ranks that do not have what the rank before has.
fn places(found: &Revealed) -> Vec<TreePart> {
    /// As many ranks as a proof tells a tree of in words, and lines that fit a screen.
    const MAX_RANKS: usize = 16;
    const MAX_PLACES: usize = 64;
    let ranks = found.outputs.len();
    let mut places = Vec::new();
    for (rank, runs) in found.outputs.iter().enumerate() {
        if rank > 0 && *runs == found.outputs[rank - 1] {
            continue;
        }
        let mut element = 0;
        for &(elements, tree) in runs {
            let Some(tree) = &found.trees[tree] else {
                return Vec::new();
            };
            let mut words: Vec<String> = (0..ranks).map(|rank| rank.to_string()).collect();
            for &[into, from] in tree {
                words[into] = format!("({}+{})", words[into], words[from]);
            }
            places.push(TreePart {
                rank,
                element,
                elements,
                words: words.swap_remove(0),
            });
            element += elements;
        }
    }
    let are_told = ranks <= MAX_RANKS && (2..=MAX_PLACES).contains(&places.len());
    places.retain(|_| are_told);
    places
}

impl Row {
    fn new(size: &Size, args: &BitsArgs, caller: &Caller) -> Result<Row> {
        let (schedule, info) = (&size.input.schedule, &size.input.info);
        let found = size.found.as_ref();
        let varies = found.is_some_and(|found| found.varies);
        let revealed = match found {
            Some(found) => found.schedule(schedule.collective())?,
            None => None,
        };
        let revealed = revealed.map(|schedule| schedule.check());
        let bits = |report: &Report| ShownBits::of(report, &size.common.vector, info.ranks);
        let everywhere = revealed.as_ref().and_then(everywhere);
        let same_as = match &everywhere {
            Some(everywhere) => size.same_as(everywhere, caller)?,
            None => Vec::new(),
        };
        let is_proved = || !varies && everywhere == self::everywhere(&schedule.check());
        Ok(Row {
            bytes: info.vector_bytes,
            algorithm: info
                .algorithm
                .clone()
                .filter(|_| !args.library)
                .map(Into::into),
            bits: revealed.as_ref().and_then(bits),
            places: found.map_or_else(Vec::new, places),
            same_as,
            varies,
            as_proved: (!args.library).then(is_proved),
        })
    }

    /// What may change from size to size.
    fn kind(&self) -> (&[String], Option<String>) {
        (&self.same_as, self.bits.as_ref().map(ShownBits::cell))
    }

    fn cell(&self) -> String {
        let bits = match &self.bits {
            None => "no tree of sums".to_string(),
            Some(bits) => bits.words().unwrap_or_else(|| bits.cell()),
        };
        if self.varies {
            format!("varies from call to call, at last {bits}")
        } else {
            bits
        }
    }
}

/// What decides the bits of all outputs.
fn everywhere(report: &Report) -> Option<String> {
    report.bits().map(|bits| bits.everywhere.clone())
}

impl Size {
    /// The algorithms with these trees.
    fn same_as(&self, trees: &str, caller: &Caller) -> Result<Vec<String>> {
        let kind = self.input.schedule.collective().kind();
        let planned = Common {
            schedule: Vec::new(),
            algorithm: AlgorithmNames::Auto,
            rules: None,
            ranks: Some(Ranges::single(self.input.info.ranks as u64)),
            root: self.input.info.root.map(crate::forms::Root::Rank),
            ..self.common.clone()
        };
        let task = PlanTask::new(&planned, kind, caller)?;
        let mut names = Vec::new();
        for algorithm in &task.algorithms {
            let planned = task
                .variant_to_plan(algorithm)
                .and_then(|variant| Input::planned_by(&task, variant));
            if let Ok(input) = planned
                && everywhere(&input.schedule.check()).as_deref() == Some(trees)
            {
                names.push(algorithm.name().into_owned());
            }
        }
        Ok(names)
    }
}

impl BitsJob<'_> {
    fn answer(&self, caller: &Caller) -> Result<Answer> {
        let rows = self
            .sizes
            .iter()
            .map(|size| Row::new(size, self.args, caller));
        let rows: Vec<Row> = rows.collect::<Result<_>>()?;
        let changes = rows
            .windows(2)
            .filter(|pair| pair[0].kind() != pair[1].kind());
        let changes: Vec<Option<u64>> = changes.map(|pair| pair[1].bytes).collect();
        let Some(first) = self.sizes.first() else {
            bail!("no size is asked for");
        };
        let info = &first.input.info;
        let dtype = first.common.vector.dtype.unwrap_or(ElementType::F32);
        let json = self.json(info, dtype, &rows, &changes);
        let answer = answer(caller, self.args.common.json, &json, |out| {
            self.print(out, info, dtype, &rows, &changes)
        })?;
        Ok(match rows.iter().find(|row| row.as_proved == Some(false)) {
            None => answer,
            Some(row) => answer.but_wrong(format!(
                "at {} the probes do not reveal what is proved of the schedule",
                or_dash(row.bytes.map(show_bytes))
            )),
        })
    }

    fn json(
        &self,
        info: &ScheduleInfo,
        dtype: ElementType,
        rows: &[Row],
        changes: &[Option<u64>],
    ) -> impl Answered {
        record! {
            collective: info.collective,
            ranks: info.ranks,
            root: info.root,
            dtype: dtype.name(),
            /// Whether the library's own function is probed.
            library: self.args.library,
            engine: self.args.engine.unwrap_or(Engine::Threads).name(),
            mpi (optional): self.processes.as_ref(),
            /// Of one round.
            probes: info.ranks * (info.ranks - 1) / 2,
            rounds: self.args.rounds,
            sizes: rows,
            /// Sizes with other trees than the size before.
            changes_at: changes,
        }
    }

    fn print(
        &self,
        out: &mut Lines,
        info: &ScheduleInfo,
        dtype: ElementType,
        rows: &[Row],
        changes: &[Option<u64>],
    ) -> Result<()> {
        let probes = info.ranks * (info.ranks - 1) / 2;
        let of = if self.args.library {
            "the library's own function"
        } else {
            "a schedule"
        };
        writeln!(
            out,
            "{}, {} ranks, sums of {dtype}, {of}",
            info.collective, info.ranks
        )?;
        if let Some(processes) = &self.processes {
            output::summary(out, &site::summary(processes))?;
        }
        let (probes, rounds) = (counted(probes, "probe"), counted(self.args.rounds, "round"));
        writeln!(out, "{rounds} of {probes} at each size\n")?;
        let own = rows.iter().any(|row| row.algorithm.is_some());
        let columns = Columns::<Row>::default()
            .add(">size", |row| or_dash(row.bytes.map(show_bytes)))
            .add_if(own, "algorithm", |row| or_dash(row.algorithm.clone()))
            .add_if(own, "as proved", |row| match row.as_proved {
                Some(true) => "yes",
                _ => "NO",
            })
            .add("bits", Row::cell)
            .add("same as", |row| match &row.same_as[..] {
                [] => "-".to_string(),
                names => names.join(", "),
            });
        output::table(out, &columns, rows)?;
        let mut all = rows.iter().filter_map(|row| row.bits.as_ref());
        if let Some(bits) = all.find(|bits| bits.differ()) {
            writeln!(out, "\n{}", bits.sentence())?;
        }
        if let [Row { places, .. }] = rows
            && !places.is_empty()
        {
            let columns = Columns::<TreePart>::default()
                .add(">rank", |place| place.rank)
                .add(">from element", |place| place.element)
                .add(">elements", |place| place.elements)
                .add("tree", |place| place.words.clone());
            writeln!(out)?;
            output::table(out, &columns, places)?;
        }
        if rows.len() > 1 {
            let sizes = changes.iter().map(|bytes| or_dash(bytes.map(show_bytes)));
            let sizes = sizes.collect::<Vec<_>>().join(", ");
            let sizes = if sizes.is_empty() { "no size" } else { &sizes };
            writeln!(out, "\nchanges at  {sizes}")?;
        }
        Ok(())
    }
}
