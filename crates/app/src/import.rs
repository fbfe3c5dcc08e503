//! `oneport import`: reads a schedule of another tool and writes it in oneport's JSON form.

use oneport::check::Options;
use oneport_formats::{chakra, goal, msccl, mscclpp, teccl};

use crate::input::note_if_wrong;
use crate::prelude::*;

options! {
    /// Read a schedule of another tool, and write it in oneport's JSON form.
    #[derive(Debug)]
    #[examples = "\
Examples:
  oneport export msccl allgather -p 8 -a ring -o ring.xml
  oneport import msccl ring.xml --chunk 1024 -o ring.json
  oneport import msccl ring.xml --ported 1
  oneport import mscclpp plan.json -o mine.json
  oneport import teccl flows.json -o mine.json
  oneport check --schedule ring.xml
  oneport export goal reduce -p 4 -a binomial -o r.goal
  oneport import goal r.goal
  oneport import chakra traces/trace.0.et

Commands with --schedule read these formats, too, and recognise them by their content."]
    pub(crate) struct ImportArgs {}
}

options! {
    /// GOAL, the schedules of LogGOPSim: a dependency graph of each rank.
    ///
    /// It has no data: unless oneport wrote the file, the schedule proves that messages match and
    /// nothing waits for itself, and times the graph.
    #[derive(Debug)]
    pub(crate) struct ImportGoal {
        /// The file (`-` for standard input)
        file: Source = File { is_placed: true },

        /// Write to this file, all at once, instead of standard output
        output: Option<PathBuf> = Output { shorts: &['o'], heading: Some("Output") },
    }
}

options! {
    /// MSCCL XML, the algorithms of MSCCL and its tools.
    ///
    /// Every thread block has a port of its own, unless --ported gives fewer: then they share them,
    /// and a note says how many rounds that costs.
    #[derive(Debug)]
    pub(crate) struct ImportMsccl {
        from: ImportGoal = Group,

        /// Number of elements of a chunk
        chunk: usize = Count { default: Some("1") },

        /// Number of ports of each kind that a rank has [default: as many as needed]
        ported: Option<usize> = Count { value: "K" },

        /// The root, if the file does not tell
        root: Option<usize> = Count { value: "RANK" },
    }
}

options! {
    /// Execution plans of MSCCL++ (JSON), which its Python programs print.
    ///
    /// A remote write or read becomes a message. Every thread block has a port of its own, unless
    /// --ported gives fewer. A plan whose operations race, or wait for what never comes, is refused
    /// with GPU, thread block and operation.
    #[derive(Debug)]
    pub(crate) struct ImportMscclpp {
        from: ImportGoal = Group,

        /// Number of elements of a chunk (of a part of it, where thread blocks or a pipeline divide
        /// the chunks of a plan)
        chunk: usize = Count { default: Some("1") },

        /// Number of ports of each kind that a rank has [default: as many as needed]
        ported: Option<usize> = Count { value: "K" },
    }
}

options! {
    /// Schedules of TE-CCL (JSON): flows of chunks over links, epoch by epoch.
    ///
    /// Ranks are the GPUs without the switches. Every link has a port of its own, unless --ported
    /// gives fewer; --chunk counts the elements of the smallest part that is sent. A flow that
    /// starts before its chunk has come, and epochs that are not those of the flows, are refused
    /// with GPU and epoch.
    #[derive(Debug)]
    pub(crate) struct ImportTeccl {
        like: ImportMscclpp = Group,
    }
}

options! {
    /// Chakra execution traces, which ASTRA-sim replays: sends, receives and computations.
    ///
    /// They have no data: the schedule proves that messages match and nothing waits for itself, and
    /// times what waits for what. The file is the trace of rank 0, as in trace.0.et; those of the
    /// other ranks lie beside it.
    #[derive(Debug)]
    pub(crate) struct ImportChakra {
        from: ImportGoal = Group,
    }
}

impl Command for ImportGoal {
    fn answer(&self, site: &mut Site) -> Result<Answer> {
        self.write(&site.caller, goal::read)
    }
}

impl Command for ImportMsccl {
    fn answer(&self, site: &mut Site) -> Result<Answer> {
        let options = msccl::ReadOptions {
            chunk: self.chunk,
            ported: self.ported,
            root: self.root,
        };
        self.from.write_blocks(&site.caller, options, msccl::read)
    }
}

impl Command for ImportMscclpp {
    fn answer(&self, site: &mut Site) -> Result<Answer> {
        let options = self.options();
        self.from.write_blocks(&site.caller, options, mscclpp::read)
    }
}

impl ImportMscclpp {
    fn options(&self) -> msccl::ReadOptions {
        msccl::ReadOptions {
            chunk: self.chunk,
            ported: self.ported,
            root: None,
        }
    }
}

impl Command for ImportTeccl {
    fn answer(&self, site: &mut Site) -> Result<Answer> {
        let ImportMscclpp { from, .. } = &self.like;
        from.write_blocks(&site.caller, self.like.options(), teccl::read)
    }
}

impl Command for ImportChakra {
    fn answer(&self, site: &mut Site) -> Result<Answer> {
        let caller = &site.caller;
        let to_file = self.from.writable(caller)?;
        let first = self.from.file.path().to_string_lossy().into_owned();
        let Some(stem) = first.strip_suffix(".0.et") else {
            bail!(
                "{}: the trace of rank 0 is named NAME.0.et",
                self.from.file.name()
            );
        };
        let name = |rank: usize| PathBuf::from(format!("{stem}.{rank}.et"));
        let mut traces = Vec::new();
        while traces.is_empty() || name(traces.len()).exists() {
            let path = name(traces.len());
            let failed = || format!("cannot read {}", path.display());
            let bytes = std::fs::metadata(&path).with_context(failed)?.len();
            // A node has 30 bytes at least, and takes some 700 as it is read, and as a step.
            ensure_memory("the traces", u128::from(bytes) * 25, LARGE_SCHEDULE)?;
            traces.push(std::fs::read(&path).with_context(failed)?);
        }
        let schedule = chakra::read(&traces).with_context(|| self.from.file.name())?;
        self.from.write_schedule(caller, to_file, &schedule)
    }
}

fn price(schedule: &Schedule, free: &Schedule) -> String {
    let rounds = |schedule: &Schedule| {
        let time = schedule.simulate(&CostModel::new(1.0, 0.0)).ok()?;
        Some(time.makespan())
    };
    let (k, needed) = (schedule.ports().k(), free.ports().k());
    match (rounds(schedule), rounds(free)) {
        (Some(rounds), Some(free)) => {
            format!("{rounds} rounds with {k} ports of each kind, {free} with {needed}")
        }
        (None, Some(free)) => {
            format!(
                "with {k} ports of each kind the ranks wait for each other forever; {free} rounds with {needed}"
            )
        }
        (_, None) => {
            "the ranks wait for each other forever (`oneport check` names the cycle)".into()
        }
    }
}

impl ImportGoal {
    /// Writes a schedule of thread blocks, and notes what it costs that these share ports.
    fn write_blocks(
        &self,
        caller: &Caller,
        options: msccl::ReadOptions,
        read: impl Fn(&str, &msccl::ReadOptions) -> oneport::Result<Schedule>,
    ) -> Result<Answer> {
        self.write(caller, |text| {
            let schedule = read(text, &options)?;
            if options.ported.is_some() {
                let ported = None;
                let free = read(text, &msccl::ReadOptions { ported, ..options })?;
                caller.note(price(&schedule, &free));
            }
            Ok(schedule)
        })
    }

    fn writable(&self, caller: &Caller) -> Result<Option<&Path>> {
        let to_file = output::file_of(self.output.as_deref());
        caller.writable(&[("-o", to_file)])?;
        Ok(to_file)
    }

    fn write(
        &self,
        caller: &Caller,
        read: impl FnOnce(&str) -> oneport::Result<Schedule>,
    ) -> Result<Answer> {
        let to_file = self.writable(caller)?;
        let text = self.file.read()?;
        let schedule = read(&text).with_context(|| self.file.name())?;
        self.write_schedule(caller, to_file, &schedule)
    }

    fn write_schedule(
        &self,
        caller: &Caller,
        to_file: Option<&Path>,
        schedule: &Schedule,
    ) -> Result<Answer> {
        note_if_wrong(caller, schedule, || {
            schedule.check_with(&Options {
                max_errors: 1,
                ..Options::default()
            })
        });
        caller.write_to(to_file, schedule.to_json())
    }
}
