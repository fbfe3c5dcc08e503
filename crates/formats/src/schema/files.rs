//! The fields of files, from which the schemas are derived.
//!
//! They mirror the types that read the files: those live in crates that are light without schemas,
//! and read some fields by hand. Tests compare both.
#![expect(dead_code, reason = "only the schemas of these types are used")]

use std::borrow::Cow;

use oneport::schedule::collective::Kind;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A program for every rank that together perform one collective. Spans are [offset, length] in
/// elements of a rank's buffer.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct ScheduleSchema {
    /// What tables and pictures call it; none if it is left out.
    #[schemars(default, length(min = 1, max = 100))]
    name: String,
    /// Number of ranks.
    #[schemars(range(min = 1))]
    ranks: usize,
    /// One port for both directions, or one out and one in.
    ports: PortsSchema,
    /// Number of ports of each kind; 1 if it is left out.
    #[schemars(default, range(min = 1, max = 4096))]
    ported: usize,
    /// Elements of a unit of all offsets and lengths; 1 if it is left out.
    #[schemars(default, range(min = 1))]
    unit: usize,
    /// What the schedule must achieve.
    collective: CollectiveSchema,
    /// The buffer of each rank.
    #[schemars(length(min = 1))]
    layout: Vec<LayoutSchema>,
    /// The steps of each rank, in order.
    #[schemars(length(min = 1))]
    programs: Vec<Vec<StepSchema>>,
    /// Ports that several ranks share; none if it is left out.
    #[schemars(default)]
    shared_ports: Vec<SharedPortSchema>,
    /// What the schedule of a series keeps beside it.
    #[schemars(default)]
    series: Value,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
enum PortsSchema {
    Uni,
    Bi,
    Telephone,
}

type SpanSchema = [usize; 2];

/// One span, or a list of them.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum OneOrMany {
    One(SpanSchema),
    Many(Vec<SpanSchema>),
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct LayoutSchema {
    /// Length of the buffer.
    len: usize,
    /// Where the input stands at the start.
    input: Vec<SpanSchema>,
    /// Where the output must stand at the end.
    output: Vec<SpanSchema>,
}

/// A port of a node, with the transfers that use it, in order.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct SharedPortSchema {
    /// A name for people.
    name: String,
    /// The ranks of the node.
    ranks: Vec<usize>,
    /// Whether it carries what leaves the node, enters it, or both.
    direction: DirectionSchema,
    /// Rank and step of each transfer.
    steps: Vec<[usize; 2]>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
enum DirectionSchema {
    Out,
    In,
    Both,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case", deny_unknown_fields)]
enum StepSchema {
    /// One message to rank `to`, the spans packed in order.
    Send {
        to: usize,
        spans: Vec<SpanSchema>,
        #[schemars(default)]
        port: usize,
    },
    /// A message from rank `from`, stored into the spans.
    Recv {
        from: usize,
        spans: Vec<SpanSchema>,
        #[schemars(default)]
        port: usize,
    },
    /// A message from rank `from`, combined element-wise into the spans.
    RecvCombine {
        from: usize,
        spans: Vec<SpanSchema>,
        #[schemars(default)]
        order: OrderSchema,
        #[schemars(default)]
        port: usize,
    },
    /// A local copy.
    Copy { src: OneOrMany, dst: OneOrMany },
    /// A local combination into `dst`.
    Combine {
        src: OneOrMany,
        dst: OneOrMany,
        #[schemars(default)]
        order: OrderSchema,
    },
}

/// Which operand is the left one.
#[derive(JsonSchema, Default)]
#[schemars(rename_all = "snake_case")]
enum OrderSchema {
    #[default]
    MineFirst,
    TheirsFirst,
}

/// A collective: its kind, and what that has.
struct CollectiveSchema;

impl JsonSchema for CollectiveSchema {
    fn schema_name() -> Cow<'static, str> {
        "Collective".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let rank = json!({"type": "integer", "minimum": 0});
        let ranks = json!({"type": "array", "items": rank});
        let fields = [("root", rank), ("targets", ranks)];
        let of_kind = Kind::ALL.map(|kind| {
            // The fewest fields with which the reader takes it.
            let name = kind.name();
            let values = json!({"root": 0, "targets": [0]});
            let reads = |given: &&[&str]| {
                let mut example = json!({"kind": name});
                given.iter().for_each(|&f| example[f] = values[f].clone());
                oneport::Collective::deserialize(&example).is_ok()
            };
            let subsets: [&[&str]; 4] = [&[], &["root"], &["targets"], &["root", "targets"]];
            let demanded = subsets.into_iter().find(reads).unwrap_or_default();
            let mut properties = Map::from_iter([("kind".into(), json!({"const": name}))]);
            let fields = fields.iter().filter(|(name, _)| demanded.contains(name));
            properties.extend(fields.map(|(name, schema)| ((*name).into(), schema.clone())));
            json!({
                "type": "object",
                "required": properties.keys().collect::<Vec<_>>(),
                "additionalProperties": false,
                "properties": properties
            })
        });
        json_schema!({ "anyOf": of_kind })
    }
}

/// The name of a kind of collectives.
struct KindName;

impl JsonSchema for KindName {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Kind".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "enum": Kind::ALL.map(Kind::name) })
    }
}

/// Nodes and links for series of operations. A number is a JSON number, read exactly as written, or
/// a fraction in quotes such as "1/2".
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct PlatformSchema {
    /// Number of nodes.
    nodes: usize,
    /// The source; 0 if it is left out.
    #[schemars(default)]
    source: usize,
    /// The targets; all other nodes if they are left out.
    targets: Option<Vec<usize>>,
    /// The nodes whose messages allgathers and alltoalls move; all nodes if they are left out.
    sources: Option<Vec<usize>>,
    edges: Vec<EdgeSchema>,
    /// Time of one combination, by node.
    #[schemars(default)]
    compute: Vec<NumberSchema>,
    /// Whether nodes combine while they communicate.
    #[schemars(default)]
    overlap: bool,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct EdgeSchema {
    src: usize,
    dst: usize,
    /// Time of one message.
    cost: NumberSchema,
    latency: Option<NumberSchema>,
    /// Largest relative growth of the cost.
    drift: Option<NumberSchema>,
}

#[derive(JsonSchema)]
#[schemars(untagged)]
enum NumberSchema {
    Number(f64),
    Fraction(String),
}

/// A time, or a time per byte.
#[derive(JsonSchema, Default)]
struct Cost(#[schemars(range(min = 0.0, max = 1e100))] f64);

/// Matrices with a row a sender and a column a receiver, null where there is no link; or the levels
/// of a machine, the innermost first: two ranks have the costs of the first level that has both in
/// one group, and a level without groups is one of all ranks. A message of n bytes takes
/// alpha + beta * n.
#[derive(JsonSchema, Default)]
#[schemars(
    default,
    deny_unknown_fields,
    extend("anyOf" = [{ "required": ["alpha", "beta"] }, { "required": ["levels"] }])
)]
pub(super) struct LinksSchema {
    /// Start-up times.
    alpha: Vec<Vec<Option<Cost>>>,
    /// Times per byte.
    beta: Vec<Vec<Option<Cost>>>,
    levels: Vec<LevelSchema>,
    /// Time per byte combined, by rank.
    gamma: Vec<Cost>,
    /// Time per byte copied, by rank.
    gamma_copy: Vec<Cost>,
    /// Part of the start-up time that keeps no port: one number, or by pair.
    latency: Option<LatencySchema>,
    eager: EagerSchema,
}

#[derive(JsonSchema)]
#[schemars(untagged)]
enum LatencySchema {
    All(Cost),
    Pairs(Vec<Vec<Cost>>),
}

/// Messages whose senders do not wait: none, all, or those up to a number of bytes.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum EagerSchema {
    Word(EagerWord),
    UpTo(u64),
}

#[derive(JsonSchema, Default)]
#[schemars(rename_all = "lowercase")]
enum EagerWord {
    #[default]
    None,
    All,
}

impl Default for EagerSchema {
    fn default() -> EagerSchema {
        EagerSchema::Word(EagerWord::None)
    }
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct LevelSchema {
    groups: Option<Vec<Vec<RankSchema>>>,
    alpha: Cost,
    beta: Cost,
    #[schemars(default)]
    latency: Cost,
}

#[derive(JsonSchema)]
struct RankSchema(#[schemars(range(max = 4095))] usize);

/// Times in nanoseconds, sizes in bytes. Other properties are ignored.
#[derive(JsonSchema, Default)]
#[schemars(default, extend("required" = ["alpha", "beta"]))]
pub(super) struct ProfileSchema {
    /// Start-up time of a message.
    alpha: Cost,
    /// Time per byte of a message.
    beta: Cost,
    /// Time per byte combined.
    gamma: Cost,
    /// Time per byte copied.
    gamma_copy: Cost,
    /// Part of the start-up time that keeps no port, not in alpha, and its relative error.
    latency: Cost,
    latency_error: f64,
    eager: EagerSchema,
    /// Start-up time between two ranks on one core.
    shared_alpha: Option<Cost>,
    fit_error: f64,
    fit_error_worst: f64,
    line_error: f64,
    line_error_worst: f64,
    noise: f64,
    machine: MachineSchema,
    /// The measured cores, or ranks.
    cores: Vec<usize>,
    date: String,
    version: String,
    warnings: Vec<String>,
    points: Vec<PointSchema>,
    combine_points: Vec<PointSchema>,
    combine_local_points: Vec<PointSchema>,
    copy_points: Vec<PointSchema>,
    /// Piecewise linear costs.
    pieces: Option<PiecesSchema>,
    /// The host of each rank, measured over MPI.
    hosts: Vec<String>,
    /// Costs of each pair of cores or ranks: a cost file.
    pairs: Option<LinksSchema>,
    /// Costs by level, of ranks on several hosts, the innermost first: as in a cost file.
    levels: Vec<LevelSchema>,
    /// Constants of the machine that differ from the default ones; written by hand.
    tuning: TuningSchema,
}

#[derive(JsonSchema, Default)]
struct MachineSchema {
    cpu: String,
    os: String,
    cores: usize,
}

#[derive(JsonSchema)]
struct PointSchema {
    bytes: u64,
    time: f64,
    predicted: f64,
    residual: f64,
}

#[derive(JsonSchema, Default)]
#[schemars(default, deny_unknown_fields)]
struct PiecesSchema {
    transfer: Vec<PieceSchema>,
    combine: Vec<PieceSchema>,
    combine_local: Vec<PieceSchema>,
    copy: Vec<PieceSchema>,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct PieceSchema {
    from: u64,
    alpha: f64,
    beta: f64,
}

#[derive(JsonSchema, Default)]
#[schemars(deny_unknown_fields, default)]
struct TuningSchema {
    cache_bytes: Option<u64>,
    min_stream_bytes: u64,
    own_work_ns: f64,
    worker_switch_share: f64,
    lone_copy_factor: f64,
    cold_copy_factor: f64,
    fresh_factor: f64,
    max_fresh_bytes: u64,
}

/// The algorithm and segment size to use for each size.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct RulesSchema {
    /// Version of the form.
    #[schemars(extend("const" = 1))]
    oneport_rules: u32,
    rules: Vec<RuleSchema>,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct RuleSchema {
    collective: KindName,
    ranks: usize,
    ports: PortsSchema,
    ported: usize,
    dtype: Option<String>,
    #[schemars(default)]
    ordered: bool,
    clock: Option<String>,
    source: Option<String>,
    /// By increasing size; the first that the size does not exceed holds, the last for longer ones.
    choices: Vec<SelectionSchema>,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct SelectionSchema {
    up_to_bytes: u64,
    algorithm: String,
    /// Bytes of a segment; null if the algorithm does not segment.
    segment: Option<u64>,
}
