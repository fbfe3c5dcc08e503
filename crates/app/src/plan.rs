//! `oneport plan`: plans a schedule and prints it.

use oneport::{Order, Span, Step};
use oneport_formats::dot::{self, DotGraph};

use crate::forms::RankNumber;
use crate::levels;
use crate::prelude::*;

options! {
    /// Plan a schedule and print it.
    #[derive(Debug)]
    #[examples = "\
Examples:
  oneport plan reduce -p 8 --algorithm binomial --format rounds
  oneport plan broadcast -p 4 --bytes 16 --segments 2 --algorithm chain
  oneport plan reduce -p 8 --algorithm chain --segments 4 -o chain.json
  oneport plan --schedule chain.json --format rounds
  oneport plan broadcast -p 20 --algorithm circulant --table
  oneport plan broadcast -p 1000000007 --algorithm circulant --table --rank 12345

Spans are written [offset,length], in elements; step 3 of rank 0 on a shared port 0.3. The JSON form is what --schedule reads everywhere a \
collective is accepted; it can be written by hand as well."]
    pub(crate) struct PlanArgs {
        common: Common = Group,

        /// How to print the schedule [default: text; json with --json or for a file]
        format: Option<PlanFormat> = PlanFormat { shorts: &['f'], heading: Some("Output") },

        /// Print the base blocks, receive and send schedules of a circulant algorithm as a table, a
        /// column a rank, counted from the root
        table: bool = Switch { conflicts: &["format", "schedule"], heading: Some("Output") },

        /// The column of this rank alone: what a rank computes by itself, in microseconds, however
        /// many ranks there are
        rank: Option<usize> = RankNumber { requires: &["table"], heading: Some("Output") },

        /// Write to this file, all at once, instead of standard output
        output: Option<PathBuf> = Output { shorts: &['o'], heading: Some("Output") },
    }
}

choices! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum PlanFormat {
        /// Every rank's program, step by step.
        Text = "text",
        /// Who sends what to whom, round by round.
        Rounds = "rounds",
        /// The JSON form of the schedule.
        Json = "json",
        /// A graph of who sends to whom, for Graphviz.
        Dot = "dot",
    }
}

impl Command for PlanArgs {
    fn json_forms() -> JsonForms {
        JsonForms::new().of_file("schedule")
    }

    fn answer(&self, site: &mut Site) -> Result<Answer> {
        let caller = &site.caller;
        let to_file = output::file_of(self.output.as_deref());
        caller.writable(&[("-o", to_file)])?;
        let format = match (self.format, self.common.json) {
            (Some(format), true) if format != PlanFormat::Json => {
                bail!("--json and --format contradict each other: leave one of them out")
            }
            (Some(format), _) => format,
            (None, false) if to_file.is_none() => PlanFormat::Text,
            (None, _) => PlanFormat::Json,
        };
        if self.table {
            let text = table(&self.common, self.rank, caller)?;
            return caller.write_to(to_file, text);
        }
        let input = self.input(caller)?;
        let bytes = text_bytes(&input.schedule);
        ensure_memory("the text of the schedule", bytes, LARGE_SCHEDULE)?;
        let text = match format {
            PlanFormat::Json => input.schedule.to_json(),
            PlanFormat::Text => heading(&input) + &programs(&input.schedule),
            PlanFormat::Rounds => heading(&input) + &rounds(&input.schedule)?,
            PlanFormat::Dot => dot::write(&input.schedule, DotGraph::Tree)?.text,
        };
        caller.write_to(to_file, text)
    }

    fn input(&self, caller: &Caller) -> Result<Input> {
        let mut input = self.common.input(caller)?;
        input.print_warnings(&self.common, caller)?;
        Ok(input)
    }
}

fn text_bytes(schedule: &Schedule) -> u128 {
    /// Words and numbers of a step or a span; for a message also its entry in the order of rounds.
    const PER_STEP: usize = 160;
    const PER_SPAN: usize = 80;
    let steps = schedule.programs().iter().flatten();
    let spans = steps.map(|s| s.reads().len() + s.writes().len());
    let regions = schedule.layout().iter();
    let regions = regions.map(|l| l.input.len() + l.output.len() + 2);
    let spans: usize = spans.chain(regions).sum();
    (schedule.steps() as u128) * PER_STEP as u128 + (spans as u128) * PER_SPAN as u128
}

fn table(args: &Common, rank: Option<usize>, caller: &Caller) -> Result<String> {
    let Some(kind) = args.collective else {
        bail!("--table needs a COLLECTIVE, such as broadcast");
    };
    let (shows, ranks) = match (rank, args.ranks()?) {
        // One rank computes its own column: no limit of a plan holds.
        (Some(_), Some(ranks)) => {
            let found = registry::find(kind, &args.algorithm.to_string());
            (found.ok().and_then(|one| one.schedule_table), ranks)
        }
        _ => {
            let task = PlanTask::new(args, kind, caller)?;
            let shows = match &task.algorithms[..] {
                [one] => one.schedule_table,
                _ => None,
            };
            (shows, task.request.ranks())
        }
    };
    let Some(table) = shows else {
        let names = registry::of(kind).filter(|a| a.schedule_table.is_some());
        let names: Vec<_> = names.map(|a| a.name()).collect();
        ensure!(
            !names.is_empty(),
            "--table is for algorithms that follow circulant broadcast schedules: {} has none",
            kind.name()
        );
        let names = names.join(" or ");
        bail!("--table is for circulant schedules: choose --algorithm {names}");
    };
    let table = table(ranks, rank)?;
    if args.json {
        let mut text = serde_json::to_string_pretty(&table)?;
        text.push('\n');
        return Ok(text);
    }
    Ok(table.to_string())
}

fn heading(input: &Input) -> String {
    let info = &input.info;
    let chosen = if info.algorithm_choice == "auto" {
        " (the fastest here in the model)"
    } else {
        ""
    };
    let segments = match info.segments {
        Some(n) if n > 1 => format!(", {n} segments"),
        _ => String::new(),
    };
    let (title, by) = (info.title(), info.by());
    let mut text = format!("{title}: {by}{chosen}{segments}\n");
    let traffic = levels::traffic(&input.schedule, &input.cost);
    for (name, line) in levels::lines(traffic.as_deref().unwrap_or_default()) {
        let _ = writeln!(text, "{name:6}  {line}");
    }
    text
}

/// Formats every rank's program, one numbered step per line, and the transfers of shared ports.
fn programs(schedule: &Schedule) -> String {
    let mut text = String::new();
    for (rank, (program, layout)) in schedule
        .programs()
        .iter()
        .zip(schedule.layout())
        .enumerate()
    {
        let _ = write!(text, "\nrank {rank}: buffer of {}", layout.len);
        for (what, region) in [("input", &layout.input), ("output", &layout.output)] {
            if !region.is_empty() {
                let _ = write!(text, ", {what} {}", spans(region));
            }
        }
        text.push('\n');
        let width = program.len().saturating_sub(1).to_string().len();
        for (i, step) in program.iter().enumerate() {
            let _ = writeln!(text, "  {i:>width$}  {}", describe(step));
        }
    }
    for port in schedule.shared_ports() {
        let steps = port.steps.iter();
        let steps: Vec<_> = steps.map(|(rank, step)| format!("{rank}.{step}")).collect();
        let _ = write!(text, "\nshared port {}: {}", port.name, steps.join(" "));
    }
    if !schedule.shared_ports().is_empty() {
        text.push('\n');
    }
    text
}

fn describe(step: &Step) -> String {
    let on = |port: usize| match port {
        0 => String::new(),
        port => format!("  port {port}"),
    };
    let side = |order: Order| match order {
        Order::MineFirst => "mine first",
        Order::TheirsFirst => "theirs first",
    };
    match step {
        Step::Send { to, spans: s, port } => format!("send to {to}  {}{}", spans(s), on(*port)),
        Step::Recv {
            from,
            spans: s,
            port,
        } => {
            format!("receive from {from}  {}{}", spans(s), on(*port))
        }
        Step::RecvCombine {
            from,
            spans: s,
            order,
            port,
        } => {
            let (s, on, side) = (spans(s), on(*port), side(*order));
            format!("receive from {from} and combine  {s}  {side}{on}")
        }
        Step::Copy { src, dst } => format!("copy {} to {}", spans(src), spans(dst)),
        Step::Combine { src, dst, order } => {
            format!(
                "combine {} into {}  {}",
                spans(src),
                spans(dst),
                side(*order)
            )
        }
    }
}

fn spans(spans: &[Span]) -> String {
    let shown: Vec<_> = spans
        .iter()
        .map(|s| format!("[{},{}]", s.offset, s.len))
        .collect();
    if shown.is_empty() {
        "nothing".to_string()
    } else {
        shown.join(" ")
    }
}

/// Formats messages by round. A message's round is the number of messages on the longest chain that
/// ends with it.
pub(crate) fn rounds(schedule: &Schedule) -> Result<String> {
    let mut table: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for (round, from, step) in dot::messages_by_round(schedule)? {
        if let Step::Send { to, spans: s, .. } = step {
            table
                .entry(round)
                .or_default()
                .push(format!("{from} -> {to} {}", spans(s)));
        }
    }
    let mut text = String::new();
    let width = table.len().to_string().len();
    for (round, messages) in &table {
        let _ = write!(text, "\nround {round:>width$}:  {}", messages.join("   "));
    }
    if table.is_empty() {
        text.push_str("\nno messages");
    }
    text.push('\n');
    Ok(text)
}
