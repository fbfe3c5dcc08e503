//! What makes the machine less ideal: `--latency`, `--eager` and `--arrivals`.

use anyhow::{Context, Result, bail};
use oneport::CostModel;
use oneport::machine::Eager;
use oneport::random::Generator;

use crate::ask::{Form, Takes, forms, options};
use crate::files::Source;
use crate::forms::Time;
use crate::units::{Number, TimeArg, parse_size, parse_time};

options! {
    /// Late ranks, latency, and senders that do not wait.
    #[derive(Debug, Clone, Default)]
    pub(crate) struct DelayArgs {
        /// Time from the start of a message at its sender to its start at its receiver, which keeps
        /// no port [default: 0]
        pub(crate) latency: Option<TimeArg> = Time,

        /// Messages whose senders do not wait for their receivers: none, all, or those up to a size
        /// [default: none]
        pub(crate) eager: Option<Eager> = EagerUpTo,

        /// When ranks arrive: a file ({"arrivals": [0, 10, ..]}, or a CSV with a column arrivals),
        /// last:100us (the last rank is late), RANK:TIME,..., random:exp,20us (mean) or
        /// random:uniform,0,50us, with ,seed=1 at the end if wanted [default: none, all at time 0]
        pub(crate) arrivals: Option<Arrivals> = ArrivalTimes,
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Arrivals {
    None,
    Last(f64),
    Ranks(Vec<(usize, f64)>),
    /// Independent, exponential with this mean.
    Exponential(f64, u64),
    /// Independent, uniform between these times.
    Uniform(f64, f64, u64),
    File(Source),
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct ArrivalsFile {
    arrivals: Vec<f64>,
}

forms! {
    /// No messages, all, or those up to a size.
    EagerUpTo: Eager = "none|all|SIZE", by parse_eager, Whole;
    /// By how much one rank is late.
    Latenesses: Lateness = "TIME..TIME", by parse_late, Numbers;
}

/// When ranks arrive.
#[derive(Debug)]
pub(crate) struct ArrivalTimes;

impl Form for ArrivalTimes {
    type Value = Arrivals;
    const NAME: &'static str = "FILE|none|...";
    const TAKES: Takes = Takes::Content;

    fn parse(text: &str) -> Result<Arrivals, String> {
        parse_arrivals(text)
    }

    fn of_file(source: &Source) -> Option<Arrivals> {
        Some(Arrivals::File(source.clone()))
    }
}

fn parse_eager(text: &str) -> Result<Eager, String> {
    match text {
        "none" => Ok(Eager::None),
        "all" => Ok(Eager::All),
        size => match parse_size(size) {
            Ok(bytes) => Ok(Eager::UpTo(bytes)),
            Err(why) => Err(format!("{why}; or none, or all")),
        },
    }
}

fn parse_arrivals(text: &str) -> Result<Arrivals, String> {
    let time = |text: &str| Ok::<_, String>(parse_time(text)?.value);
    if text == "none" {
        return Ok(Arrivals::None);
    }
    if let Some(late) = text.strip_prefix("last:") {
        return Ok(Arrivals::Last(time(late)?));
    }
    if let Some(random) = text.strip_prefix("random:") {
        let (law, seed) = random.rsplit_once(",seed=").unwrap_or((random, "1"));
        let seed = seed.parse();
        let seed =
            seed.map_err(|_| format!("'{random}' does not end in a whole number as seed"))?;
        let (kind, times) = law.split_once(',').unwrap_or((law, ""));
        let times = times.split(',').map(time).collect::<Result<Vec<_>, _>>();
        return match (kind, times.as_deref()) {
            ("exp", Ok(&[mean])) => Ok(Arrivals::Exponential(mean, seed)),
            ("uniform", Ok(&[from, to])) if from <= to => Ok(Arrivals::Uniform(from, to, seed)),
            _ => Err(format!(
                "'{law}' is not a law: write exp,20us, or uniform,0,50us with the earlier time first"
            )),
        };
    }
    let is_list = |(rank, _): (&str, &str)| rank.parse::<usize>().is_ok();
    if text.split_once(':').is_some_and(is_list) {
        let late = text.split(',').map(|part| {
            let (rank, at) = part.split_once(':').unwrap_or((part, ""));
            let rank = rank.parse();
            let rank = rank.map_err(|_| format!("'{part}' is not RANK:TIME"))?;
            Ok::<_, String>((rank, time(at)?))
        });
        let late: Vec<(usize, f64)> = late.collect::<Result<_, _>>()?;
        let again =
            |&(i, (rank, _)): &(usize, &(usize, f64))| late[..i].iter().any(|l| l.0 == *rank);
        return match late.iter().enumerate().find(again) {
            Some((_, (rank, _))) => Err(format!("rank {rank} arrives twice")),
            None => Ok(Arrivals::Ranks(late)),
        };
    }
    let file = Source::named(text);
    file.is_there()
        .then_some(Arrivals::File(file))
        .ok_or(format!(
            "'{text}' is no file, nor none, last:TIME, RANK:TIME,... or random:..."
        ))
}

/// The column `arrivals` of a CSV, a row a rank.
fn column_of(text: &str) -> Result<Vec<f64>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let mut titles = reader.headers()?.iter();
    let Some(column) = titles.position(|title| title.trim() == "arrivals") else {
        bail!("no column arrivals, nor {{\"arrivals\": [..]}}");
    };
    let time = |row: csv::Result<csv::StringRecord>| {
        let time = parse_time(row?.get(column).unwrap_or_default());
        Ok(time.map_err(anyhow::Error::msg)?.value)
    };
    reader.records().map(time).collect()
}

impl Arrivals {
    fn of(&self, ranks: usize) -> Result<Vec<f64>> {
        let random = |seed: &u64, draw: &dyn Fn(f64) -> f64| {
            let mut generator = Generator::new(*seed);
            (0..ranks).map(|_| draw(generator.unit())).collect()
        };
        let mut arrivals = vec![0.0; ranks];
        match self {
            Arrivals::None => return Ok(Vec::new()),
            Arrivals::Last(late) => arrivals[ranks.saturating_sub(1)] = *late,
            Arrivals::Ranks(late) => {
                for &(rank, at) in late {
                    let Some(arrival) = arrivals.get_mut(rank) else {
                        bail!(
                            "--arrivals: rank {rank} is not one of {ranks} ranks (numbered from 0)"
                        );
                    };
                    *arrival = at;
                }
            }
            Arrivals::Exponential(mean, seed) => {
                return Ok(random(seed, &|unit| -mean * (1.0 - unit).ln()));
            }
            Arrivals::Uniform(from, to, seed) => {
                return Ok(random(seed, &|unit| from + (to - from) * unit));
            }
            Arrivals::File(file) => {
                let text = file.read()?;
                let read = if text.trim_start().starts_with('{') {
                    serde_json::from_str::<ArrivalsFile>(&text)
                        .map(|file| file.arrivals)
                        .map_err(anyhow::Error::from)
                } else {
                    column_of(&text)
                };
                return read.with_context(|| format!("{}: not a file of arrivals", file.name()));
            }
        }
        Ok(arrivals)
    }
}

/// By how much one rank is late: `--late`.
#[derive(Debug, Clone)]
pub(crate) struct Lateness(pub(crate) Vec<f64>);

/// Parses delays: `0..1ms`, 17 at equal distances, or `0,10us,100us`.
fn parse_late(text: &str) -> Result<Lateness, String> {
    /// Intervals of a range.
    const STEPS: u32 = 16;
    let time = |text: &str| Ok::<_, String>(parse_time(text)?.value);
    let Some((from, to)) = text.split_once("..") else {
        let times = text.split(',').map(time);
        return Ok(Lateness(times.collect::<Result<_, _>>()?));
    };
    let (from, to) = (time(from)?, time(to)?);
    if from >= to {
        return Err(format!(
            "the range {text} does not start with its smaller end"
        ));
    }
    let at = |i| from + (to - from) * f64::from(i) / f64::from(STEPS);
    Ok(Lateness((0..=STEPS).map(at).collect()))
}

impl DelayArgs {
    /// The file of arrivals, if one is named.
    pub(crate) fn file(&self) -> Option<&Source> {
        match &self.arrivals {
            Some(Arrivals::File(file)) => Some(file),
            _ => None,
        }
    }

    /// Draw number `trial` of the random arrivals of `ranks` ranks.
    pub(crate) fn draw(&self, ranks: usize, trial: usize) -> Result<Vec<f64>> {
        let of = |seed: u64| seed.wrapping_add(trial as u64);
        match self.arrivals {
            Some(Arrivals::Exponential(mean, seed)) => {
                Arrivals::Exponential(mean, of(seed)).of(ranks)
            }
            Some(Arrivals::Uniform(from, to, seed)) => {
                Arrivals::Uniform(from, to, of(seed)).of(ranks)
            }
            _ => bail!("--trials draws arrivals: give --arrivals random:exp,20us, for example"),
        }
    }

    pub(crate) fn apply(&self, mut cost: CostModel, ranks: usize) -> Result<CostModel> {
        cost = self.of_messages(cost);
        if self.arrivals.is_some() {
            cost = cost.arrivals(self.arrivals_of(ranks)?);
        }
        cost.validate()?;
        cost.covers(ranks)?;
        Ok(cost)
    }

    /// The same costs with this latency and these eager sends.
    pub(crate) fn of_messages(&self, mut cost: CostModel) -> CostModel {
        if let Some(latency) = self.latency {
            cost = cost.latency(latency.value);
        }
        if let Some(eager) = self.eager {
            cost = cost.eager(eager);
        }
        cost
    }

    /// When this many ranks arrive; empty if all do at time 0.
    pub(crate) fn arrivals_of(&self, ranks: usize) -> Result<Vec<f64>> {
        self.arrivals
            .as_ref()
            .map_or(Ok(Vec::new()), |arrivals| arrivals.of(ranks))
    }

    /// Of what takes `time`, the time from the arrival of the last rank on, if arrivals are given:
    /// also if these are 0, so that a sweep over them has the field in all rows.
    pub(crate) fn after_last_arrival(&self, cost: &CostModel, time: f64) -> Option<Number> {
        let given = !matches!(self.arrivals, None | Some(Arrivals::None));
        given.then(|| Number(time - cost.last_arrival()))
    }

    /// Refuses the options for a command whose messages are real, or whose output has no time.
    pub(crate) fn refuse(&self, command: &str) -> Result<()> {
        let given = [
            (self.latency.is_some(), "--latency"),
            (self.eager.is_some(), "--eager"),
            (self.arrivals.is_some(), "--arrivals"),
        ];
        match given.into_iter().find(|(given, _)| *given) {
            Some((_, option)) => bail!("{option} is for model times: {command} does not take it"),
            None => Ok(()),
        }
    }
}
