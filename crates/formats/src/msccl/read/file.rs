//! The elements of a file, with their attributes in range.

use roxmltree::{Document, Node};

use oneport::error::{Error, Result};
use oneport::machine::Ports;
use oneport::schedule::Order;
use oneport::schedule::collective::Kind;

/// An element, with what error messages say of it.
#[derive(Clone, Copy)]
struct XmlElement<'a, 'd>(Node<'a, 'd>);

/// An error at byte `pos` of the text. Lines are counted here, because counting them for every
/// element takes quadratic time.
pub(super) fn at(text: &str, pos: usize, what: impl std::fmt::Display) -> Error {
    crate::at_line(1 + text[..pos].matches('\n').count(), what)
}

/// Attributes that an element may have: the XML library compares all of them with each other.
/// Elements of MSCCL have 13 at most, with those that oneport adds.
const MAX_ATTRIBUTES: usize = 64;
/// Namespaces that a file may declare: the library copies all of them for each further one. MSCCL
/// has none.
const MAX_NAMESPACES: usize = 64;

/// Refuses what the XML library would take quadratic time for, before it sees the text. Attributes
/// are in quotes; other text with as many between two `<` is refused, too.
pub(super) fn ensure_few_attributes(text: &str) -> Result<()> {
    let (mut open, mut namespaces) = (0, 0);
    for element in text.split_inclusive('<') {
        let quotes = element.matches(['"', '\'']).count();
        namespaces += element.matches("xmlns").count();
        let refuse = |what: &str, max: usize| {
            let what = format!("{what} than the {max} that are read");
            Err(at(text, open, what))
        };
        if quotes > 2 * MAX_ATTRIBUTES {
            return refuse("an element has more attributes", MAX_ATTRIBUTES);
        }
        if namespaces > MAX_NAMESPACES {
            return refuse("the file declares more namespaces", MAX_NAMESPACES);
        }
        open += element.len();
    }
    Ok(())
}

impl<'a> XmlElement<'a, '_> {
    fn error(self, what: impl std::fmt::Display) -> Error {
        let name = self.0.tag_name().name();
        let (text, pos) = (self.0.document().input_text(), self.0.range().start);
        at(text, pos, format!("<{name}>: {what}"))
    }

    fn text(self, name: &str) -> Result<&'a str> {
        let missing = || self.error(format!("the attribute {name} is missing"));
        self.0.attribute(name).ok_or_else(missing)
    }

    fn number(self, name: &str) -> Result<usize> {
        let text = self.text(name)?;
        text.parse()
            .map_err(|_| self.error(format!("{name}=\"{text}\" is not a number that fits")))
    }

    /// The number, or `None` for -1 or if the attribute is missing.
    fn optional(self, name: &str) -> Result<Option<usize>> {
        match self.0.attribute(name) {
            None | Some("-1") => Ok(None),
            Some(_) => self.number(name).map(Some),
        }
    }

    fn elements(self) -> impl Iterator<Item = Self> {
        let children = self.0.children();
        children.filter(|n| n.is_element()).map(XmlElement)
    }

    fn children(self, name: &'static str) -> impl Iterator<Item = Result<Self>> {
        self.elements().map(move |child| child.named(name))
    }

    fn named(self, name: &'static str) -> Result<Self> {
        if self.0.has_tag_name(name) {
            Ok(self)
        } else {
            Err(self.error(format!("only {name} elements stand here")))
        }
    }
}

pub(super) struct MscclFile<'t> {
    pub(super) text: &'t str,
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) in_place: bool,
    /// Chunks of a vector, or of all blocks together.
    pub(super) chunks: usize,
    pub(super) root: Option<usize>,
    /// As written by oneport.
    pub(super) ports: Option<Ports>,
    pub(super) gpus: Vec<Gpu>,
}

#[derive(Default)]
pub(super) struct Gpu {
    /// Chunks of input, output, scratch.
    pub(super) sizes: [usize; 3],
    pub(super) blocks: Vec<GpuBlock>,
    /// Chunks of the input, and of the output that they are copied to at first.
    pub(super) copies: Vec<(usize, usize)>,
    /// First byte of its element.
    pub(super) pos: usize,
}

pub(super) struct GpuBlock {
    pub(super) send: Option<usize>,
    pub(super) recv: Option<usize>,
    pub(super) channel: usize,
    pub(super) lines: Vec<GpuLine>,
}

#[derive(Clone, Copy)]
pub(super) struct GpuLine {
    pub(super) kind: StepKind,
    pub(super) src: (usize, usize),
    pub(super) dst: (usize, usize),
    pub(super) count: usize,
    /// Thread block and step.
    pub(super) waits: Option<(usize, usize)>,
    pub(super) n: Option<usize>,
    pub(super) port: usize,
    pub(super) order: Order,
    /// First byte of its element.
    pub(super) pos: usize,
}

/// What a step does: whether it receives, reads `src` and writes `dst` of this rank, and sends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct StepKind {
    pub(super) receives: bool,
    pub(super) reads: bool,
    pub(super) writes: bool,
    pub(super) sends: bool,
    pub(super) reduces: bool,
}

impl StepKind {
    /// Reduces what it receives, if it reads something, too.
    const fn of(receives: bool, reads: bool, writes: bool, sends: bool) -> StepKind {
        let reduces = receives && reads;
        StepKind {
            receives,
            reads,
            writes,
            sends,
            reduces,
        }
    }

    pub(super) const COPY: StepKind = StepKind::of(false, true, true, false);
    pub(super) const REDUCE: StepKind = StepKind {
        reduces: true,
        ..StepKind::COPY
    };
    pub(super) const NOP: StepKind = StepKind::of(false, false, false, false);
    const ALL: [(&'static str, StepKind); 9] = [
        ("s", StepKind::of(false, true, false, true)),
        ("r", StepKind::of(true, false, true, false)),
        ("rcs", StepKind::of(true, false, true, true)),
        ("rrs", StepKind::of(true, true, false, true)),
        ("rrc", StepKind::of(true, true, true, false)),
        ("rrcs", StepKind::of(true, true, true, true)),
        ("cpy", StepKind::COPY),
        ("re", StepKind::REDUCE),
        ("nop", StepKind::NOP),
    ];
}

/// The names of collectives: MSCCL's, and our own where another tool's writers use it.
fn collectives() -> impl Iterator<Item = (&'static str, Kind)> {
    Kind::ALL
        .into_iter()
        .flat_map(|kind| {
            let msccl = kind.row().msccl;
            let other = msccl.filter(|&name| name != kind.name());
            [msccl, other.map(|_| kind.name())].map(|name| Some((name?, kind)))
        })
        .flatten()
}

impl<'t> MscclFile<'t> {
    pub(super) fn parse(document: &Document<'t>) -> Result<MscclFile<'t>> {
        let algo = XmlElement(document.root_element());
        if !algo.0.has_tag_name("algo") {
            return Err(algo.error("an MSCCL algorithm starts with <algo>"));
        }
        // Before there was such an attribute, tools began the name with the collective.
        let name = algo.0.attribute("name").unwrap_or_default();
        let first = name.split(|c: char| !c.is_alphabetic()).next();
        let named = first.unwrap_or_default().to_lowercase();
        let coll = match algo.0.attribute("coll") {
            None if collectives().any(|(name, _)| name == named) => &named,
            _ => algo.text("coll")?,
        };
        let Some((_, kind)) = collectives().find(|(name, _)| *name == coll) else {
            let names: Vec<_> = collectives().map(|c| c.0).collect();
            return Err(algo.error(format!("coll=\"{coll}\" is none of {}", names.join(", "))));
        };
        let ranks = algo.number("ngpus")?;
        let mut gpus: Vec<Option<Gpu>> = Vec::new();
        for gpu in algo.children("gpu") {
            let gpu = gpu?;
            let id = gpu.number("id")?;
            if id >= ranks {
                return Err(gpu.error(format!("id {id} is not one of {ranks} ranks")));
            }
            // Not by `ranks`, which may be any number. Ids may be in any order, but not far beyond
            // those that are there.
            if id >= gpus.len() {
                let count = algo.0.children().filter(Node::is_element).count();
                if id >= count {
                    return Err(gpu.error(format!("id {id}, but there are {count} ranks")));
                }
                gpus.resize_with(count, || None);
            }
            if gpus[id].replace(Gpu::parse(gpu, ranks)?).is_some() {
                return Err(gpu.error(format!("rank {id} is there twice")));
            }
        }
        if gpus.len() != ranks || ranks == 0 {
            let found = gpus.len();
            return Err(algo.error(format!("ngpus=\"{ranks}\", but there are {found} ranks")));
        }
        let gpus: Vec<Gpu> = gpus.into_iter().flatten().collect();
        let largest = |g: &Gpu| g.sizes[0].max(g.sizes[1]);
        let chunks = match algo.optional("nchunksperloop")? {
            Some(chunks) => chunks,
            None => gpus.iter().map(largest).max().unwrap_or(0),
        };
        let ported = algo.optional("ported")?;
        let ports = algo.0.attribute("ports");
        let ports = match (ports.map(Ports::named), ported) {
            (Some(Some(ports)), Some(k)) => Some(ports.with_k(k)),
            (None, None) => None,
            _ => {
                let what = "ports and ported belong together: one of";
                let names = Ports::NAMES.join(", ");
                return Err(algo.error(format!("{what} {names}, and a number")));
            }
        };
        Ok(MscclFile {
            text: document.input_text(),
            name: name.to_string(),
            kind,
            in_place: algo.optional("inplace")?.unwrap_or(0) != 0,
            chunks,
            root: algo.optional("root")?,
            ports,
            gpus,
        })
    }
}

impl Gpu {
    fn parse(gpu: XmlElement, ranks: usize) -> Result<Gpu> {
        let rank = gpu.number("id")?;
        let mut parsed = Gpu {
            sizes: [
                gpu.number("i_chunks")?,
                gpu.number("o_chunks")?,
                gpu.number("s_chunks")?,
            ],
            blocks: Vec::new(),
            copies: Vec::new(),
            pos: gpu.0.range().start,
        };
        let mut peers = std::collections::HashSet::new();
        for tb in gpu.elements() {
            if tb.0.has_tag_name("copy") {
                let copied = (tb.number("i_off")?, tb.number("o_off")?);
                parsed.copies.push(copied);
                continue;
            }
            let tb = tb.named("tb")?;
            let id = tb.number("id")?;
            if id != parsed.blocks.len() {
                let next = parsed.blocks.len();
                return Err(tb.error(format!(
                    "id {id} where {next} is due: thread blocks are numbered in order"
                )));
            }
            let (send, recv) = (tb.optional("send")?, tb.optional("recv")?);
            let channel = tb.optional("chan")?.unwrap_or(0);
            for (peer, sends, what) in [(send, true, "send"), (recv, false, "recv")] {
                let Some(peer) = peer else { continue };
                if peer >= ranks || peer == rank {
                    return Err(tb.error(format!(
                        "{what}=\"{peer}\" is not another one of {ranks} ranks"
                    )));
                }
                if !peers.insert((peer, sends, channel)) {
                    return Err(tb.error(format!(
                        "a second thread block with {what}=\"{peer}\" on channel {channel}: it would be open which \
                         message is which"
                    )));
                }
            }
            let mut block = GpuBlock {
                send,
                recv,
                channel,
                lines: Vec::new(),
            };
            for step in tb.children("step") {
                let line = GpuLine::parse(step?, &block)?;
                block.lines.push(line);
            }
            parsed.blocks.push(block);
        }
        Ok(parsed)
    }
}

impl GpuLine {
    fn parse(step: XmlElement, block: &GpuBlock) -> Result<GpuLine> {
        let s = step.number("s")?;
        if s != block.lines.len() {
            let next = block.lines.len();
            return Err(step.error(format!(
                "s=\"{s}\" where {next} is due: steps are numbered in order"
            )));
        }
        let name = step.text("type")?;
        let Some(&(_, kind)) = StepKind::ALL.iter().find(|(n, _)| *n == name) else {
            let names: Vec<_> = StepKind::ALL.iter().map(|w| w.0).collect();
            return Err(step.error(format!("type=\"{name}\" is none of {}", names.join(", "))));
        };
        if kind.sends && block.send.is_none() || kind.receives && block.recv.is_none() {
            return Err(step.error(format!("{name} in a thread block without that peer")));
        }
        let buffer = |name: &str| match step.text(name)? {
            "i" => Ok(0),
            "o" => Ok(1),
            "s" => Ok(2),
            other => Err(step.error(format!("{name}=\"{other}\" is none of i, o, s"))),
        };
        let place = |used: bool, buf: &str, off: &str| -> Result<(usize, usize)> {
            if used {
                Ok((buffer(buf)?, step.number(off)?))
            } else {
                Ok((0, 0))
            }
        };
        let waits = match (step.optional("depid")?, step.optional("deps")?) {
            (Some(block), Some(step)) => Some((block, step)),
            (None, None) => None,
            _ => return Err(step.error("depid and deps belong together")),
        };
        let count = if kind == StepKind::NOP {
            0
        } else {
            step.number("cnt")?
        };
        if count == 0 && kind != StepKind::NOP {
            return Err(step.error("cnt=\"0\": a step moves a chunk at least"));
        }
        Ok(GpuLine {
            kind,
            src: place(kind.reads, "srcbuf", "srcoff")?,
            dst: place(kind.writes, "dstbuf", "dstoff")?,
            count,
            waits,
            n: step.optional("n")?,
            port: step.optional("port")?.unwrap_or(0),
            order: match step.0.attribute("order") {
                None | Some("mine_first") => Order::MineFirst,
                Some("theirs_first") => Order::TheirsFirst,
                Some(other) => return Err(step.error(format!("order=\"{other}\""))),
            },
            pos: step.0.range().start,
        })
    }
}
