//! SimGrid's time-independent traces, with a platform: a second opinion on model times, and
//! contention inside a network, which the one-port model leaves out.
//!
//! ```text
//! trace  = { RANK action NL }                                    one file for each rank
//! action = "init" | "finalize" | "compute" FLOPS
//!        | "isend" RANK TAG BYTES TYPE | "irecv" RANK TAG BYTES TYPE | "wait" SRC DST TAG
//! list   = { FILE NL }                                           hosts = { HOST NL }
//! ```
//!
//! The platform is SimGrid's XML, version 4.1. The grammar is that of
//! `src/smpi/internals/smpi_replay.cpp` in <https://framagit.org/simgrid/simgrid>; tried with
//! SimGrid 3.32, where type 6 is the byte. Other versions number types otherwise.
//!
//! A rank of a trace is one process, so its steps need one order: that in which they start in the
//! model. Before a step starts, the process waits for what the step waits for by the rules of time.
//! SMPI sends 16 bytes of its own with every message; on the crossbar the latency is less by their
//! time. With the options that [`COMMAND`] has, SimGrid then computes the model's time there; on
//! the other networks messages share links.

use std::collections::HashSet;
use std::fmt::Write as _;

use super::{computation, ensure_ideal, ensure_own_ports, tags};
use oneport::error::{Error, Result};
use oneport::internal::bytes;
use oneport::machine::CostModel;
use oneport::rules::{Event, LocalOrder, OrderScratch};
use oneport::schedule::{Schedule, Step};
use oneport::simulate::Simulation;

/// The command that replays a trace, before the number of ranks; to be run in the folder with the
/// files. Its options make SimGrid's network have the latencies and bandwidths of the platform, and
/// nothing else.
pub const COMMAND: &str = "smpirun -replay traces.txt -platform platform.xml -hostfile hosts.txt \
    --cfg=network/model:CM02 --cfg=network/latency-factor:1 --cfg=network/bandwidth-factor:1 \
    --cfg=network/TCP-gamma:0 --cfg=network/crosstraffic:0 --cfg=network/weight-S:0 \
    --cfg=smpi/async-small-thresh:0 --cfg=smpi/send-is-detached-thresh:0 --cfg=smpi/host-speed:1Gf";

/// Bytes of its own that SMPI sends with every message.
const ENVELOPE_BYTES: f64 = 16.0;

/// The type of the sizes: bytes.
const BYTE: usize = 6;

/// How the hosts are connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Network {
    /// A link from each host to each other one: no message shares a link.
    #[default]
    Crossbar,
    /// Two levels of switches; half as many links lead up from a switch as hosts down.
    FatTree,
    /// Three dimensions.
    Torus,
    /// Groups of routers with two hosts each.
    Dragonfly,
}

/// How a schedule is written.
#[derive(Debug, Clone, PartialEq)]
pub struct SimgridOptions {
    /// The network.
    pub network: Network,
    /// The costs. Between neighbours of a network that is no crossbar, messages have these as well.
    pub cost: CostModel,
    /// Seconds of one time unit of the costs.
    pub second: f64,
}

/// Writes a schedule: files with their names, `platform.xml`, `hosts.txt`, `traces.txt` and one
/// trace for each rank.
///
/// Time is that of simulating, and of sorting each rank's steps; a crossbar has a link for each
/// ordered pair of ranks.
///
/// # Errors
/// Messages without elements (SimGrid charges them a latency, the model nothing), costs in pieces,
/// links of different costs in another network than the crossbar, overlap, shared ports, and a
/// schedule that the model cannot time.
pub fn write(schedule: &Schedule, options: &SimgridOptions) -> Result<Vec<(String, String)>> {
    ensure_own_ports(schedule, "SimGrid")?;
    ensure_ideal(&options.cost, "SimGrid")?;
    let kind = schedule.collective().kind();
    let cost = kind.costs(&options.cost).into_owned();
    let options = &SimgridOptions {
        cost,
        ..options.clone()
    };
    let refuse = |why: &str| Err(Error::usage(format!("SimGrid: {why}")));
    let empty = |s: &&Step| s.peer().is_some() && s.is_empty();
    if schedule.programs().iter().flatten().any(|s| empty(&s)) {
        return refuse(
            "an empty message takes a latency there, and no time in the model (choose sizes that leave none empty)",
        );
    }
    if options.cost.size_pieces().is_some() {
        return refuse(
            "a link has one latency and one bandwidth, these costs have several (give alpha and beta)",
        );
    }
    if options.cost.links().is_some() && options.network != Network::Crossbar {
        return refuse("costs of each pair of ranks are for the crossbar");
    }
    if options.cost.overlaps() {
        return refuse(
            "a process computes or communicates, here computation overlaps communication",
        );
    }
    let less = |(alpha, beta): (f64, f64)| alpha < ENVELOPE_BYTES * beta;
    if options.network == Network::Crossbar
        && pairs(schedule.ranks(), &options.cost).any(|(_, _, c)| less(c))
    {
        return refuse(
            "its messages have 16 bytes more, which take longer than alpha here (give a larger alpha, or another \
             network, where they are not made up for)",
        );
    }
    let simulation = schedule.simulate(&options.cost)?;
    let p = schedule.ranks();
    let lines = |line: fn(usize) -> String| (0..p).map(line).collect();
    let mut files = vec![
        ("platform.xml".to_string(), platform(p, options)),
        ("hosts.txt".into(), lines(|rank| format!("host-{rank}\n"))),
        (
            "traces.txt".into(),
            lines(|rank| format!("rank-{rank}.txt\n")),
        ),
    ];
    let tags = tags(schedule);
    let (mut order, mut scratch) = (LocalOrder::default(), OrderScratch::default());
    for (rank, program) in schedule.programs().iter().enumerate() {
        order.analyse(program, schedule.ports(), false, &mut scratch)?;
        let trace = SimgridTrace {
            rank,
            program,
            tags: &tags[rank],
            order: &order,
            options,
            element_bytes: schedule.element_bytes(),
        };
        files.push((format!("rank-{rank}.txt"), trace.text(&simulation)));
    }
    Ok(files)
}

struct SimgridTrace<'a> {
    rank: usize,
    program: &'a [Step],
    tags: &'a [usize],
    order: &'a LocalOrder,
    options: &'a SimgridOptions,
    element_bytes: u64,
}

impl SimgridTrace<'_> {
    fn text(&self, simulation: &Simulation) -> String {
        let start = |event: Event| {
            let node = simulation.prepared().node(self.rank, event);
            node.map_or(0.0, |node| simulation.start(node))
        };
        // Beginnings of transfers and computations, in the order of model time.
        let mut events: Vec<(f64, Event)> = Vec::new();
        for (i, step) in self.program.iter().enumerate() {
            if step.peer().is_some() {
                events.push((start(Event::transferred(i)), Event::transferred(i)));
            }
            if step.computes() {
                events.push((start(Event::computed(i)), Event::computed(i)));
            }
        }
        events.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut text = format!("{} init\n", self.rank);
        let mut waited = HashSet::new();
        for &(_, event) in &events {
            let i = event.step();
            let step = &self.program[i];
            let before = match step.peer() {
                Some(_) if event.is_computed() => {
                    self.wait(&mut text, &mut waited, Event::transferred(i));
                    self.order.before_compute(i)
                }
                _ => self.order.before_start(i),
            };
            for &other in before {
                self.wait(&mut text, &mut waited, other);
            }
            match step.peer() {
                Some(peer) if !event.is_computed() => {
                    let what = if step.is_send() { "isend" } else { "irecv" };
                    let (tag, n) = (self.tags[i], bytes(step.len(), self.element_bytes));
                    let _ = writeln!(text, "{} {what} {peer} {tag} {n} {BYTE}", self.rank);
                }
                _ => {
                    let cost = &self.options.cost;
                    let time = computation(cost, self.rank, step, self.element_bytes);
                    let flops = time * self.options.second * 1e9;
                    if flops > 0.0 {
                        let _ = writeln!(text, "{} compute {flops}", self.rank);
                    }
                }
            }
        }
        for &(_, event) in &events {
            self.wait(&mut text, &mut waited, event);
        }
        let _ = writeln!(text, "{} finalize", self.rank);
        text
    }

    /// Waits for a transfer, once; computations are done when the process goes on.
    fn wait(&self, text: &mut String, waited: &mut HashSet<usize>, event: Event) {
        let i = event.step();
        if let Some(peer) = self.program[i].peer()
            && !event.is_computed()
            && waited.insert(i)
        {
            let (src, dst) = match self.program[i].is_send() {
                true => (self.rank, peer),
                false => (peer, self.rank),
            };
            let _ = writeln!(text, "{} wait {src} {dst} {}", self.rank, self.tags[i]);
        }
    }
}

/// A bandwidth where a byte takes no time, in bytes per second.
const NO_LIMIT: f64 = 1e18;

fn platform(p: usize, options: &SimgridOptions) -> String {
    let mut text = String::from(
        "<?xml version=\"1.0\"?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n",
    );
    // A comment in XML has no two hyphens in a row.
    let _ = writeln!(
        text,
        "<!-- {p} ranks; written by oneport, which prints the command that replays the traces -->"
    );
    text.push_str("<platform version=\"4.1\">\n");
    let bandwidth = |beta: f64| match beta * options.second {
        0.0 => NO_LIMIT,
        time => 1.0 / time,
    };
    let cluster = |text: &mut String, hosts: usize, hops: f64, topology: &str, parameters: &str| {
        let latency = options.cost.rates().alpha * options.second / hops;
        let bandwidth = bandwidth(options.cost.rates().beta);
        let _ = writeln!(
            text,
            " <cluster id=\"all\" prefix=\"host-\" suffix=\"\" radical=\"0-{}\" speed=\"1Gf\" bw=\"{bandwidth}Bps\" \
             lat=\"{latency}s\" topology=\"{topology}\" topo_parameters=\"{parameters}\"/>",
            hosts - 1
        );
    };
    match options.network {
        Network::Crossbar => crossbar(&mut text, p, options, bandwidth),
        Network::FatTree => {
            let hosts = root(p, 2);
            let switches = p.div_ceil(hosts).max(2);
            let up = (hosts / 2).max(1);
            let parameters = format!("2;{hosts},{switches};1,{up};1,1");
            cluster(&mut text, hosts * switches, 2.0, "FAT_TREE", &parameters);
        }
        Network::Torus => {
            // SimGrid aborts on a line.
            let x = root(p, 3).max(2);
            let y = root(p.div_ceil(x), 2).max(2);
            let z = p.div_ceil(x * y);
            cluster(&mut text, x * y * z, 1.0, "TORUS", &format!("{x},{y},{z}"));
        }
        Network::Dragonfly => {
            let routers = p.div_ceil(2);
            // SimGrid needs as many routers in a chassis as there are groups.
            let groups = root(routers, 3).max(2);
            let chassis = routers.div_ceil(groups * groups);
            let hosts = groups * chassis * groups * 2;
            let parameters = format!("{groups},1;{chassis},1;{groups},1;2");
            cluster(&mut text, hosts, 2.0, "DRAGONFLY", &parameters);
        }
    }
    text.push_str("</platform>\n");
    text
}

/// The smallest number whose `n`-th power is at least `p`.
fn root(p: usize, n: u32) -> usize {
    (1..)
        .find(|x: &usize| x.saturating_pow(n) >= p)
        .unwrap_or(1)
}

/// The ordered pairs of ranks that have a link, with alpha and beta.
fn pairs(p: usize, cost: &CostModel) -> impl Iterator<Item = (usize, usize, (f64, f64))> {
    let all = (0..p).flat_map(move |a| (0..p).map(move |b| (a, b)));
    let all = all.filter(|(a, b)| a != b);
    all.filter_map(move |(a, b)| match cost.links() {
        None => Some((a, b, (cost.rates().alpha, cost.rates().beta))),
        Some(links) => Some((a, b, (links.alpha[a][b]?, links.beta[a][b]?))),
    })
}

fn crossbar(text: &mut String, p: usize, options: &SimgridOptions, bandwidth: impl Fn(f64) -> f64) {
    text.push_str(" <zone id=\"all\" routing=\"Full\">\n");
    for rank in 0..p {
        let _ = writeln!(text, "  <host id=\"host-{rank}\" speed=\"1Gf\"/>");
    }
    for (a, b, (alpha, beta)) in pairs(p, &options.cost) {
        let latency = (alpha - ENVELOPE_BYTES * beta) * options.second;
        let bandwidth = bandwidth(beta);
        let _ = writeln!(
            text,
            "  <link id=\"l-{a}-{b}\" bandwidth=\"{bandwidth}Bps\" latency=\"{latency}s\"/>"
        );
    }
    for (a, b, _) in pairs(p, &options.cost) {
        let _ = writeln!(
            text,
            "  <route src=\"host-{a}\" dst=\"host-{b}\" symmetrical=\"NO\"><link_ctn id=\"l-{a}-{b}\"/></route>"
        );
    }
    text.push_str(" </zone>\n");
}
