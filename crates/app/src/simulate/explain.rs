//! `--explain`: why a rank or a step is done no earlier, in sentences.

use crate::prelude::*;
use oneport::simulate::Simulation;
use oneport::simulate::explain::{Link, WaitReason};

/// What is to be explained: the end, a rank, or one of its steps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked(Option<(usize, Option<usize>)>);

forms! {
    /// A rank, or one of its steps.
    AskedFor: Asked = "RANK[:STEP]", by parse, Whole;
}

/// Parses `RANK` or `RANK:STEP`, or `last`.
fn parse(text: &str) -> Result<Asked, String> {
    let number = |text: &str| {
        let number = text.parse::<usize>();
        number.map_err(|_| format!("'{text}' is not RANK or RANK:STEP, such as 3 or 3:0"))
    };
    Ok(Asked(match text.split_once(':') {
        _ if text == "last" => None,
        None => Some((number(text)?, None)),
        Some((rank, step)) => Some((number(rank)?, Some(number(step)?))),
    }))
}
pub(super) struct Explained {
    /// The rank whose arrival is the end, since it has no steps, and the time.
    arrival: Option<(usize, f64)>,
    /// Each with its step, such as `send to 3`.
    links: Vec<(Link, String)>,
    /// By rank: by how much it is done before the end.
    slack: Vec<f64>,
    /// The rank that was asked for.
    rank: Option<usize>,
}

impl Asked {
    pub(super) fn explained(self, found: &(&Schedule, Simulation)) -> Result<Explained> {
        let (schedule, simulation) = found;
        let programs = schedule.programs();
        if let Some((rank, step)) = self.0 {
            let Some(program) = programs.get(rank) else {
                bail!(
                    "--explain: rank {rank} is not one of {} ranks",
                    programs.len()
                );
            };
            if step.is_some_and(|step| step >= program.len()) || program.is_empty() {
                let steps = program.len();
                bail!("--explain: rank {rank} has {steps} steps, numbered from 0");
            }
        }
        let links = simulation
            .explain(schedule, self.0)
            .into_iter()
            .map(|link| {
                let step = &programs[link.rank][link.step];
                let words = match (step.peer(), link.computes) {
                    (Some(peer), false) if step.is_send() => format!("send to {peer}"),
                    (Some(peer), false) => format!("receive from {peer}"),
                    (Some(peer), true) => format!("combining what {peer} sent"),
                    (None, _) => step.name().to_string(),
                };
                (link, words)
            });
        let links: Vec<(Link, String)> = links.collect();
        let end = simulation.makespan();
        let times = simulation.rank_times();
        let last = times.iter().position(|&time| time == end && end > 0.0);
        let arrival = last.filter(|_| links.is_empty()).map(|rank| (rank, end));
        let slack = times.into_iter().map(|time| end - time);
        Ok(Explained {
            arrival,
            links,
            slack: slack.collect(),
            rank: self.0.map(|(rank, _)| rank),
        })
    }
}

impl Explained {
    pub(super) fn json(&self) -> impl Answered {
        record! {
            /// Of a rank without steps, if that is the end.
            arrival (optional): self.arrival.map(|(rank, time)| record! {
                rank: rank,
                time: Number(time),
            }),
            chain: self.links.iter().map(|(link, words)| record! {
                rank: link.rank,
                step: link.step,
                what: words,
                ready: Number(link.ready),
                start: Number(link.start),
                end: Number(link.end),
                reason: format!("{:?}", link.reason).to_lowercase(),
            }).collect::<Vec<_>>(),
            slack: self.slack.iter().copied().map(Number).collect::<Vec<_>>(),
        }
    }

    pub(super) fn print(&self, out: &mut Lines, cost: &CostModel, unit: Unit) -> Result<()> {
        writeln!(out, "\nwhy it ends no earlier:")?;
        if let Some((rank, time)) = self.arrival {
            let time = unit.show(time);
            writeln!(out, "  rank {rank} arrives at {time} and has no steps")?;
        }
        for (i, (link, words)) in self.links.iter().enumerate() {
            let (rank, start, end) = (link.rank, unit.show(link.start), unit.show(link.end));
            let because = self.because(i, cost, unit);
            let step = link.step;
            writeln!(
                out,
                "  rank {rank}, step {step} ({words}), {start} to {end}: {because}"
            )?;
        }
        if let Some(rank) = self.rank {
            let slack = unit.show(self.slack[rank]);
            writeln!(out, "\nslack: rank {rank} is done {slack} before the end")?;
            return Ok(());
        }
        writeln!(out, "\nslack:")?;
        let columns = Columns::<usize>::default()
            .add(">rank", |rank| *rank)
            .add(">done before the end by", |&rank| {
                unit.show(self.slack[rank])
            });
        output::table(out, &columns, 0..self.slack.len())
    }

    /// Why the event of link `i` starts no earlier.
    fn because(&self, i: usize, cost: &CostModel, unit: Unit) -> String {
        let (link, words) = &self.links[i];
        let rank = link.rank;
        let before = self.links.get(i + 1);
        let (other, by) = before.map_or((rank, String::new()), |(before, words)| {
            (before.rank, format!("step {} ({words})", before.step))
        });
        let is_later = link.start > link.ready;
        let later = unit.show(link.start - link.ready);
        let ready = if is_later {
            unit.show(link.ready)
        } else {
            "then".to_string()
        };
        let mut because = match link.reason {
            WaitReason::Arrival if cost.arrival(rank) > 0.0 => {
                format!("rank {rank} arrives at {}", unit.show(cost.arrival(rank)))
            }
            WaitReason::Arrival if is_later => {
                format!("it waits for latency alone, for {later}")
            }
            WaitReason::Arrival => "it waits for nothing".to_string(),
            WaitReason::Partner if link.start == 0.0 => "it starts at once".to_string(),
            WaitReason::Partner if !is_later => format!("rank {other} is ready no earlier"),
            WaitReason::Partner if words.starts_with("send") => {
                format!("rank {other} is ready at {ready}, and heard of {later} later")
            }
            WaitReason::Partner => {
                format!("the message of rank {other} starts {later} before and is on its way")
            }
            WaitReason::Data if is_later => {
                format!("it needs the result of {by}, there at {ready}")
            }
            WaitReason::Data => format!("it needs the result of {by}"),
            WaitReason::Overwrites => format!("it overwrites what {by} uses until {ready}"),
            WaitReason::Port => format!("its port is kept until {ready} by {by}"),
            WaitReason::SharedPort if other == rank => {
                format!("a port that ranks share is kept until {ready} by {by}")
            }
            WaitReason::SharedPort => {
                format!("a port shared with rank {other} is kept until {ready} by its {by}")
            }
            _ if is_later => format!("a rank computes alone, and {by} ends at {ready}"),
            _ => format!("a rank computes alone, and {by} ends then"),
        };
        let waits_for_latency = link.reason == WaitReason::Arrival && link.ready == 0.0;
        if is_later && link.reason != WaitReason::Partner && !waits_for_latency {
            because += &format!("; word of it and the message are on their way for {later}");
        }
        because
    }
}
