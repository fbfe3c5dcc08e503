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
//! time. With the options of the command that [`write()`] returns, SimGrid then computes the
//! model's time there; on the other networks messages share links.
//!
//! A rank that is late computes first. A message of SimGrid whose sender waits keeps the ports of
//! both ends for its latency, too: the links have that of the model where the time is the same so.
//! Where it is not, and no rank does two things at once, a message is eager and only its latency is
//! the network's: sender and receiver then compute for as long as their ports are kept.

use std::collections::HashSet;
use std::fmt::Write as _;

use super::{WrittenFolder, computation, ensure_own_ports, events, tags};
use oneport::error::{Error, Result};
use oneport::internal::numbers::bytes;
use oneport::machine::{CostClass, CostModel};
use oneport::rules::{End, Event, LocalOrder, OrderScratch};
use oneport::schedule::{Schedule, Step};
use oneport::simulate::Simulation;

/// The command that replays a trace. Its options make SimGrid's network have the latencies and
/// bandwidths of the platform, and nothing else.
const COMMAND: &str = "smpirun -replay traces.txt -platform platform.xml -hostfile hosts.txt \
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

/// Writes a schedule: `platform.xml`, `hosts.txt`, `traces.txt` and one trace for each rank, and
/// the command that replays them.
///
/// Time is that of simulating, and of sorting each rank's steps; a crossbar has a link for each
/// ordered pair of ranks.
///
/// # Errors
/// Messages without elements (SimGrid charges them a latency, the model nothing), costs in pieces,
/// links of different costs in another network than the crossbar, overlap, shared ports, latency or
/// eager sends that SimGrid would time otherwise, and a schedule that the model cannot time.
pub fn write(schedule: &Schedule, options: &SimgridOptions) -> Result<WrittenFolder> {
    ensure_own_ports(schedule, "SimGrid")?;
    let (kind, p) = (schedule.collective().kind(), schedule.ranks());
    let cost = kind.costs(&options.cost).into_owned();
    let refuse = |why: &str| Err(Error::usage(format!("SimGrid: {why}")));
    let crossbar = options.network == Network::Crossbar;
    let why = refusal(schedule, &cost, crossbar);
    if !why.is_empty() {
        return refuse(why);
    }
    let (cost, eager) = with_latency(schedule, cost)?;
    let links = if eager {
        CostModel::new(cost.latency_between(0, 0), 0.0)
    } else {
        cost.clone()
    };
    let plain = crossbar && cost.links().is_none();
    let less = |(alpha, beta): (f64, f64)| alpha < ENVELOPE_BYTES * beta;
    if crossbar && pairs(p, &links).any(|(_, _, c)| less(c)) {
        return refuse(
            "its messages have 16 bytes more, which take longer than alpha here (give a larger alpha, or another \
             network, where they are not made up for)",
        );
    }
    let simulation = schedule.simulate(&cost)?;
    let with = |cost| SimgridOptions {
        cost,
        ..options.clone()
    };
    let (options, links) = (&with(cost), &with(links));
    let lines = |line: fn(usize) -> String| (0..p).map(line).collect();
    let mut files = vec![
        ("platform.xml".to_string(), platform(p, links)),
        ("hosts.txt".into(), lines(|r| format!("host-{r}\n"))),
        ("traces.txt".into(), lines(|r| format!("rank-{r}.txt\n"))),
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
            eager,
        };
        let Some(text) = trace.text(&simulation).filter(|_| plain || !eager) else {
            return refuse(
                "it takes another time than the model: a sender waits for its receiver and for the latency, or \
                 its rank does nothing else (leave --latency and --eager out)",
            );
        };
        files.push((format!("rank-{rank}.txt"), text));
    }
    let limit = if eager { i32::MAX } else { 0 };
    let command = COMMAND.replace("thresh:0", &format!("thresh:{limit}"));
    let files = files.into_iter();
    Ok(WrittenFolder {
        files: files
            .map(|(name, text)| (name, text.into_bytes()))
            .collect(),
        command: format!("{command} -np {p}"),
        notes: Vec::new(),
    })
}

/// The costs with ports that are kept for the latency, too, if the time is the same so; else those
/// that are given, and that messages are eager.
fn with_latency(schedule: &Schedule, cost: CostModel) -> Result<(CostModel, bool)> {
    if cost.clone().arrivals(Vec::new()).is_ideal() {
        return Ok((cost, false));
    }
    let (rates, latency) = (cost.rates(), cost.latency_between(0, 0));
    let kept = CostModel::new(rates.alpha + latency, rates.beta).gamma(rates.gamma);
    let arrivals = (0..schedule.ranks()).map(|rank| cost.arrival(rank));
    let kept = kept.gamma_copy(rates.gamma_copy);
    let kept = kept.arrivals(arrivals.collect());
    let time = |cost| Ok::<_, Error>(schedule.simulate(cost)?.makespan());
    let eager = (time(&kept)? / time(&cost)? - 1.0).abs() > 1e-12;
    Ok((if eager { cost } else { kept }, eager))
}

/// Why SimGrid cannot have the times of these costs; empty if it may.
fn refusal(schedule: &Schedule, cost: &CostModel, crossbar: bool) -> &'static str {
    let empty = |s: &Step| s.peer().is_some() && s.is_empty();
    match cost.class().0 {
        _ if schedule.programs().iter().flatten().any(empty) => {
            "an empty message takes a latency there, and no time in the model (choose sizes that leave none empty)"
        }
        CostClass::Pieces(_) => {
            "a link has one latency and one bandwidth, these costs have several (give alpha and beta)"
        }
        CostClass::Links(_) if !crossbar => "costs of each pair of ranks are for the crossbar",
        CostClass::Linear(_) | CostClass::Links(_) if cost.overlaps() => {
            "a process computes or communicates, here computation overlaps communication"
        }
        CostClass::Linear(_) | CostClass::Links(_) => "",
    }
}

struct SimgridTrace<'a> {
    rank: usize,
    program: &'a [Step],
    tags: &'a [usize],
    order: &'a LocalOrder,
    options: &'a SimgridOptions,
    element_bytes: u64,
    /// Whether no message waits, and both ends compute while their ports are kept.
    eager: bool,
}

impl SimgridTrace<'_> {
    /// The trace; none if it is eager and takes another time than the model.
    fn text(&self, simulation: &Simulation) -> Option<String> {
        let at = |event: Event, end| {
            let node = simulation.prepared().node(self.rank, event);
            node.map_or(0.0, |node| simulation.start_at(node, end))
        };
        let start = |event: Event| {
            if self.program[event.step()].is_send() {
                at(event, End::Sender)
            } else {
                at(event, End::Receiver)
            }
        };
        let steps = self.program.iter().enumerate();
        let events = steps.flat_map(|(i, step)| events(i, step, self.order));
        let mut events: Vec<(Event, Vec<Event>)> = events.collect();
        events.sort_by(|(a, _), (b, _)| start(*a).total_cmp(&start(*b)).then(a.cmp(b)));
        let mut text = format!("{} init\n", self.rank);
        let compute = |text: &mut String, time: f64| {
            let flops = time * self.options.second * 1e9;
            if flops > 0.0 {
                let _ = writeln!(text, "{} compute {flops}", self.rank);
            }
        };
        let cost = &self.options.cost;
        let mut now = cost.arrival(self.rank);
        compute(&mut text, now);
        let mut waited = HashSet::new();
        for &(event, ref before) in &events {
            let i = event.step();
            let step = &self.program[i];
            let mut time = 0.0;
            for &other in before {
                self.wait(&mut text, &mut waited, other);
            }
            match step.peer() {
                Some(peer) if !event.is_computed() => {
                    let what = if step.is_send() { "isend" } else { "irecv" };
                    let (tag, n) = (self.tags[i], bytes(step.len(), self.element_bytes));
                    let _ = writeln!(text, "{} {what} {peer} {tag} {n} {BYTE}", self.rank);
                    if self.eager && !step.is_send() {
                        self.wait(&mut text, &mut waited, event);
                        now =
                            now.max(at(event, End::Sender) + cost.latency_between(peer, self.rank));
                    }
                    if self.eager {
                        time = cost.transfer(self.rank, peer, n);
                        compute(&mut text, time);
                    }
                }
                _ => {
                    time = computation(cost, self.rank, step, self.element_bytes);
                    compute(&mut text, time);
                }
            }
            if self.eager && (now - start(event)).abs() > 1e-12 * now {
                return None;
            }
            now += time;
        }
        for &(event, _) in &events {
            self.wait(&mut text, &mut waited, event);
        }
        let _ = writeln!(text, "{} finalize", self.rank);
        Some(text)
    }

    /// Waits for a transfer, once; computations are done when the process goes on.
    fn wait(&self, text: &mut String, waited: &mut HashSet<usize>, event: Event) {
        let i = event.step();
        if let Some(peer) = self.program[i].peer()
            && !event.is_computed()
            && waited.insert(i)
        {
            let (src, dst) = if self.program[i].is_send() {
                (self.rank, peer)
            } else {
                (peer, self.rank)
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
