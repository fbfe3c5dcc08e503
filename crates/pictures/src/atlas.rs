//! The atlas: a static site of all algorithms at small numbers of ranks. Its index times every
//! schedule for an alpha and a beta that the reader chooses, and its player steps through any.
//!
//! Times are functions of alpha and beta: the page of a schedule evaluates the graph of what each
//! transfer waits for, which the rules of time give; the index the lines of its longest paths.

use oneport::error::Result;
use oneport::machine::Links;
use oneport::plan::refusal::Reason;
use oneport::plan::registry::{self, Algorithm, Nodes};
use oneport::rules::NodeKind;
use oneport::schedule::collective::Kind;
use oneport::simulate::Prepared;
use oneport::simulate::bounds::lower_bound_lines;
use oneport::{CostModel, Ports, Request, Schedule};
use serde_json::{Map, Value, json};

use crate::page::{self, data_of, document};
use crate::shell::{Heading, UNPACK, chart, packed};
use crate::{Caption, Shown, Unit};

/// The costs that schedules are planned for, and that the pages start with.
pub const COST: (f64, f64) = (200.0, 1.0);
/// Segments of what is segmented.
pub const SEGMENTS: usize = 4;
/// Bytes of a vector, which most numbers of ranks divide, and of one rank's block.
pub const VECTOR_BYTES: usize = 1680;
/// As [`VECTOR_BYTES`].
pub const BLOCK_BYTES: usize = 120;
/// The port models that algorithms are planned for; others take schedules of the first.
pub const PORTS: [Ports; 2] = [Ports::UNI, Ports::BI];

const COSTS: &str = include_str!("atlas/costs.js");
const PLAYER: &str = include_str!("atlas/player.js");
const INDEX: &str = include_str!("atlas/index.js");
const INPUTS: &str = include_str!("atlas/costs.html");

/// A schedule of the atlas.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The name of the algorithm.
    pub algorithm: String,
    /// The schedule; its elements are bytes.
    pub schedule: Schedule,
    /// Number of segments.
    pub segments: usize,
}

/// The schedules of a collective on a number of ranks.
#[derive(Debug, Clone)]
pub struct Plate {
    /// The collective.
    pub kind: Kind,
    /// The number of ranks.
    pub ranks: usize,
    /// What is there.
    pub entries: Vec<Entry>,
    /// What is not: algorithm, port model and reason.
    pub missing: Vec<(String, &'static str, String)>,
}

impl Plate {
    /// Plans all algorithms in both port models.
    pub fn new(kind: Kind, ranks: usize) -> Plate {
        let (mut entries, mut missing) = (Vec::new(), Vec::new());
        for algorithm in registry::of(kind).chain(registry::compositions(kind)) {
            for ports in PORTS {
                let segments = if algorithm.segmented { SEGMENTS } else { 1 };
                let name = algorithm.name().to_string();
                match planned(algorithm, ranks, ports, segments) {
                    Ok(schedule) => entries.push(Entry {
                        algorithm: name,
                        schedule,
                        segments,
                    }),
                    Err(reason) => missing.push((name, ports.name(), reason)),
                }
            }
        }
        Plate {
            kind,
            ranks,
            entries,
            missing,
        }
    }

    /// The name of its file in the folder `data`.
    pub fn file(&self) -> String {
        format!("{}-{}.js", self.kind.name(), self.ranks)
    }

    /// The script with all that the player shows of it, or the error of [`page()`](crate::page()).
    pub fn script(&self) -> Result<String> {
        let cost = CostModel::new(COST.0, COST.1);
        let mut all = Vec::new();
        for entry in &self.entries {
            let shown = Shown {
                name: &entry.algorithm,
                schedule: &entry.schedule,
                cost: &cost,
            };
            let mut data = data_of(shown, Unit::Plain, &mut 0)?;
            data.timed = false;
            all.push(data);
        }
        let mut data = page::json(&all);
        let schedules = data["schedules"].as_array_mut();
        for (entry, shown) in self.entries.iter().zip(schedules.into_iter().flatten()) {
            shown["ports"] = entry.schedule.ports().name().into();
            shown["portsInWords"] = entry.schedule.ports().in_words().into();
            shown["bounds"] = json!(lower_bound_lines(&entry.schedule));
            shown["startUpAlone"] = json!(!self.kind.has_data());
        }
        Ok(format!(
            "globalThis.packed = \"{}\";\n",
            packed(&data.to_string())
        ))
    }

    /// What the index says of it.
    pub fn summary(&self) -> Result<Value> {
        let rows = self.entries.iter().map(|entry| {
            let stats = entry.schedule.stats()?;
            Ok(json!({
                "name": entry.algorithm, "ports": entry.schedule.ports().name(),
                "rounds": stats.rounds, "messages": stats.messages,
                "lines": lines(&entry.schedule)?, "bounds": lower_bound_lines(&entry.schedule),
            }))
        });
        let rows = rows.collect::<Result<Value>>()?;
        Ok(
            json!({"kind": self.kind.name(), "ranks": self.ranks, "rows": rows, "missing": self.missing}),
        )
    }
}

/// Plans for `ranks` ranks; the reason, if that cannot be.
fn planned(
    algorithm: &Algorithm,
    ranks: usize,
    ports: Ports,
    segments: usize,
) -> Result<Schedule, String> {
    let kind = algorithm.collective;
    let elements = if kind.is_sized_by_block() {
        BLOCK_BYTES
    } else {
        VECTOR_BYTES
    };
    let mut cost = CostModel::new(COST.0, COST.1);
    if algorithm.nodes != Nodes::Any {
        if ranks % 2 == 1 || ranks < 4 {
            return Err("needs nodes, here two of several ranks: an even number from 4 on".into());
        }
        cost = two_nodes(ranks).map_err(|error| error.to_string())?;
    }
    let request = Request::new(kind, ranks, elements);
    let request = request.ports(ports).segment_count(segments).cost(cost);
    algorithm
        .accepts(&request)
        .map_err(|refusal| match refusal.reason {
            Reason::Ports(_) => "not for these ports".to_string(),
            _ => refusal.without_alternatives().to_string(),
        })?;
    algorithm.plan(&request).map_err(|error| error.to_string())
}

/// Costs that show two nodes, whose inner links cost a quarter.
fn two_nodes(ranks: usize) -> Result<CostModel> {
    let half = ranks / 2;
    let level = |part: f64, groups: &[Vec<usize>]| json!({"alpha": COST.0 * part, "beta": COST.1 * part, "groups": groups});
    let inner = level(0.25, &[(0..half).collect(), (half..ranks).collect()]);
    let text = json!({"levels": [inner, level(1.0, &[(0..ranks).collect()])]}).to_string();
    CostModel::heterogeneous(Links::from_json(&text)?)
}

/// The model time as a function of alpha and beta: messages and bytes of paths, the longest of
/// which it is. Each part of the function is found by its path at one point, where the paths on
/// both sides of it would meet.
fn lines(schedule: &Schedule) -> Result<Vec<[u64; 2]>> {
    let prepared = Prepared::new(schedule, false)?;
    let per_byte = u64::from(schedule.collective().kind().has_data());
    let longest = |alpha: u64, beta: u64| -> Result<[u64; 2]> {
        let simulation = prepared.simulate(&CostModel::new(alpha as f64, beta as f64))?;
        let path = simulation.critical_path().into_iter();
        let path = path.map(|node| &prepared.nodes()[node]);
        let messages = path.filter(|node| node.kind == NodeKind::Transfer && node.elements > 0);
        let bytes = messages.map(|node| node.elements * schedule.element_bytes() * per_byte);
        Ok(bytes.fold([0, 0], |sum, bytes| [sum[0] + 1, sum[1] + bytes]))
    };
    let mut found = vec![longest(1, 0)?];
    let mut open = vec![longest(0, 1)?];
    while let Some(&[messages, bytes]) = open.last() {
        let [a, b] = *found.last().unwrap_or(&[0, 0]);
        let (alpha, beta) = (bytes.saturating_sub(b), a.saturating_sub(messages));
        let between = longest(alpha, beta)?;
        if alpha * between[0] + beta * between[1] > alpha * a + beta * b {
            open.push(between);
        } else {
            found.extend(open.pop().filter(|line| *line != [a, b]));
        }
    }
    Ok(found)
}

/// The page that shows the schedules its address names.
pub fn player(source: Option<String>) -> String {
    let mut caption = Caption::new("oneport atlas");
    caption.source = source;
    let nav = format!(
        "<nav id=\"nav\"><a id=\"index\" href=\"index.html\">All algorithms</a> <label>beside <select id=\"beside\"></select></label> <span id=\"dropped\" role=\"status\"></span></nav>\n{INPUTS}"
    );
    document(&caption, &nav, "", ("", &format!("{COSTS}{PLAYER}")))
}

/// The page that all begins with.
pub fn index(plates: &[Value], source: Option<String>) -> String {
    let ranks = plates.iter().filter_map(|plate| plate["ranks"].as_u64());
    let (first, last) = ranks.fold((u64::MAX, 0), |(low, high), p| (low.min(p), high.max(p)));
    let data = format!(
        "vectors of {VECTOR_BYTES} bytes, blocks of {BLOCK_BYTES} bytes, {SEGMENTS} segments where an algorithm takes them; root 0"
    );
    let model = "a message of n bytes takes alpha + beta n and keeps a port of its sender and one of its receiver; \
                 combining takes no time";
    let planned = format!(
        "Planned for alpha {}, beta {}: other costs time the same schedules, though some algorithms would plan others. \
         Compositions (hier, lane) are planned for two nodes whose inner links cost a quarter, and timed like all others.",
        COST.0, COST.1
    );
    let mut heading = Heading {
        title: "Atlas of collective algorithms".into(),
        summary: vec![
            ("ranks", format!("{first} to {last}")),
            ("data", data),
            ("model", model.into()),
        ],
        ..Heading::default()
    };
    let made_by = source.map(|source| ("made by", source));
    heading.summary.extend(made_by);
    let select =
        |id: &str, label: &str| format!("<label>{label} <select id=\"{id}\"></select></label> ");
    let selects =
        select("kind", "Collective") + &select("ports", "ports") + &select("what", "show");
    let table = format!(
        "<figure class=\"all\"><h2 id=\"title\"></h2><p>{selects}</p>{INPUTS}<p id=\"note\"></p>\
         <div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Algorithms by number of ranks\"><table id=\"all\"></table></div>\
         <p>{planned}</p><div id=\"missing\"></div></figure>\n"
    );
    let body = format!(
        "<div class=\"charts one\">\n{table}{}</div>\n",
        chart("plot", "Against the number of ranks", "")
    );
    let models = PORTS.map(|ports| (ports.name().to_string(), ports.in_words().into()));
    let models = Map::from_iter(models);
    let data =
        json!({"packed": packed(&json!(plates).to_string()), "cost": COST, "models": models});
    heading.page(&body, &data, &format!("{UNPACK}{COSTS}{INDEX}"))
}
