"""The fields of answers, for type checkers and editors.

Made of the JSON Schemas of the commands: UPDATE_PYTHON=1 cargo test -p oneport-cli --test commands
python writes this file. A field that not every answer has is absent where nothing is to be said."""

from typing import Any, Literal, TypedDict

from typing_extensions import NotRequired

class ReportBest(TypedDict):
    algorithm: str
    bytes: int
    messages: int
    rounds: int
    time: float

class ReportBitsDiffers(TypedDict):
    element: int
    inputs: list[float]
    """By rank: contributions that show it."""
    ranks: list[int]
    trees: list[str]

class ReportBits(TypedDict):
    depth: int
    """The most combinations between a contribution and its output. To first order, the rounding error of a sum is at most this depth, times the unit roundoff, times the sum of the absolute values of its contributions."""
    differs: ReportBitsDiffers | None
    everywhere: str
    """A hash of the trees of all output elements on all ranks: two schedules of one collective with the same hash give the same bits at all places of a vector of this length."""
    same_at_all_places: bool
    """Whether all output elements were combined in one tree, so that their bits do not depend on their place; of a scan, all elements of each rank."""
    same_on_all_ranks: bool
    """Whether all ranks that hold an output element combined it in the same tree. Only in an allreduce does more than one rank hold it."""
    tree: str | None
    """A hash of the tree, if all places have the same: schedules with the same hash give the same bits. 16 hexadecimal digits that depend on nothing but the tree."""
    trees: int
    """Number of different trees."""
    words: str | None
    """That tree in words, for up to 16 ranks: `((0+1)+(2+3))`. A scan has none: it has a tree for each rank."""

class ReportErrorsCycle(TypedDict):
    peer: NotRequired[int]
    """The rank at the other end of the waiting step."""
    rank: int
    """The rank."""
    shared_port: NotRequired[str]
    """The name of that port."""
    step: int
    """The step that waits."""
    waits_for: str
    """That step in words."""
    waits_for_rank: NotRequired[int]
    """The rank of that step, if it waits on a shared port."""
    waits_for_step: int
    """The step that it waits for."""
    what: str
    """The waiting step in words, e.g. `recv from 3`."""

class ReportErrors(TypedDict):
    cycle: NotRequired[list[ReportErrorsCycle]]
    """The steps that wait for each other, if there is a cycle; the last waits for the first."""
    element: NotRequired[int]
    """The first wrong element of the rank's output (an index into the output, in its order)."""
    elements: NotRequired[int]
    """Number of wrong elements from that one on."""
    expected: NotRequired[str]
    """The correct value, in words."""
    found: NotRequired[str]
    """The actual value, in words."""
    kind: Literal["overlap", "local_length", "self_message", "port", "shared_port", "layout", "unmatched", "message_length", "deadlock", "two_ports", "contributions", "operand_order", "task", "too_large", "held_already", "nothing", "unused", "combined_twice", "overlap", "local_length", "self_message", "port", "shared_port", "layout", "unmatched", "message_length", "deadlock", "two_ports", "contributions", "operand_order", "task", "too_large", "held_already", "nothing", "unused", "combined_twice"]
    """The kind of error."""
    message: str
    """The whole finding in one sentence."""
    origin_rank: NotRequired[int]
    """The rank of the first step after which a wrong output is wrong where it stands, if known."""
    origin_step: NotRequired[int]
    """That step."""
    peer: NotRequired[int]
    """The rank at the other end of the step."""
    port: NotRequired[int]
    """The port that the step names."""
    position: NotRequired[int]
    """Position of that element in the rank's buffer."""
    rank: NotRequired[int]
    """The rank that has the error; `None` if the ranks together do not fit the collective."""
    step: NotRequired[int]
    """The step, an index into the rank's program; of a wrong output the last one that wrote it."""

class ReportLowerBounds(TypedDict):
    bytes: int
    messages: int
    rounds: int
    time: float

class ReportNotes(TypedDict):
    cycle: NotRequired[list[ReportErrorsCycle]]
    """The steps that wait for each other, if there is a cycle; the last waits for the first."""
    element: NotRequired[int]
    """The first wrong element of the rank's output (an index into the output, in its order)."""
    elements: NotRequired[int]
    """Number of wrong elements from that one on."""
    expected: NotRequired[str]
    """The correct value, in words."""
    found: NotRequired[str]
    """The actual value, in words."""
    kind: Literal["overlap", "local_length", "self_message", "port", "shared_port", "layout", "unmatched", "message_length", "deadlock", "two_ports", "contributions", "operand_order", "task", "too_large", "held_already", "nothing", "unused", "combined_twice"]
    """The kind of error."""
    message: str
    """The whole finding in one sentence."""
    origin_rank: NotRequired[int]
    """The rank of the first step after which a wrong output is wrong where it stands, if known."""
    origin_step: NotRequired[int]
    """That step."""
    peer: NotRequired[int]
    """The rank at the other end of the step."""
    port: NotRequired[int]
    """The port that the step names."""
    position: NotRequired[int]
    """Position of that element in the rank's buffer."""
    rank: NotRequired[int]
    """The rank that has the error; `None` if the ranks together do not fit the collective."""
    step: NotRequired[int]
    """The step, an index into the rank's program; of a wrong output the last one that wrote it."""

class ReportWholeBlocks(TypedDict):
    blocks: int
    ratio: float
    rounds: int

class ReportFields:
    """Fields of ``oneport check --json``."""

    algorithm: str
    """The name of a schedule from a file; absent if it has none."""
    algorithm_choice: str
    """`auto`, `given`, `rules` or `file`."""
    best: ReportBest
    """The fastest algorithm, if the problem is one that algorithms plan."""
    bits: ReportBits
    block_bytes: list[int]
    """Size of each rank's block, if block sizes were given."""
    bytes: int
    chosen_for: str
    """The built-in costs by which algorithm or segments were chosen, if they were."""
    claimed_time: float
    """The time that a schedule's file claims."""
    collective: str
    correct: bool
    """Whether a schedule from a file is right, if that was to be found out and could be."""
    epochs_kept: bool
    """Whether links with the costs that options give keep the epochs that the file claims."""
    errors: list[ReportErrors]
    keeps_order: bool
    """Whether it is also valid for operators that do not commute."""
    late_flow: str
    """The first flow that these links do not carry in time."""
    left_out: list[str]
    """What the search left out because it would take too long, and may be better."""
    lower_bounds: ReportLowerBounds
    messages: int
    more: int
    """Number of errors beyond these."""
    more_notes: int
    """Number of notes beyond these."""
    nodes: int
    notes: list[ReportNotes]
    """What a correct schedule does needlessly."""
    ok: bool
    """Whether there is no error."""
    ported: int
    ports: str
    ranks: int
    ratio: float
    root: int
    root_choice: str
    rounds: int
    rule: str
    """The selection rule that made the choice, if one did."""
    schedule: str | None
    segment: int
    segment_choice: str
    """`best`, `unequal`, `given` or `rules`; `unsegmented` for an algorithm that does not segment."""
    segment_sizes: list[int]
    """Bytes of each segment, if a search for unequal sizes found them."""
    segments: int
    shared_ports: int
    """Number of ports that ranks share, and of their nodes."""
    time: float
    time_unit: str
    vector_bytes: int
    """Size of the vector, or of the largest block."""
    whole_blocks: ReportWholeBlocks
    """Beside the least of all schedules that cut the vector alike, where that is more."""
    error: str

SimulationCriticalPath = TypedDict("SimulationCriticalPath", {
    "bytes": int,
    "end": float,
    "from": int,
    "start": float,
    "to": int,
    "work": str,
})

class SimulationExplainArrival(TypedDict):
    rank: int
    time: float

class SimulationExplainChain(TypedDict):
    end: float
    rank: int
    ready: float
    reason: str
    start: float
    step: int
    what: str

class SimulationExplain(TypedDict):
    arrival: NotRequired[SimulationExplainArrival]
    """Of a rank without steps, if that is the end."""
    chain: list[SimulationExplainChain]
    slack: list[float]

class SimulationLevels(TypedDict):
    bytes: int
    """Bytes of all messages."""
    max_sent: int
    """Bytes that the rank with the most of them sends."""
    messages: int
    """Number of non-empty messages."""

class SimulationLowerBoundsWholeBlocks(TypedDict):
    blocks: int
    rounds: int
    time: float

class SimulationLowerBounds(TypedDict):
    bandwidth: float
    computation: float
    latency: float
    path: float
    port: float
    series: NotRequired[float]
    whole_blocks: NotRequired[SimulationLowerBoundsWholeBlocks]
    """Of all schedules that cut the vector into so many blocks."""

SimulationPiecesCombine = TypedDict("SimulationPiecesCombine", {
    "alpha": float,
    "beta": float,
    "from": int,
})

class SimulationPieces(TypedDict):
    combine: NotRequired[list[SimulationPiecesCombine]]
    """Costs of combining."""
    combine_local: NotRequired[list[SimulationPiecesCombine]]
    """Costs of combining data that a rank holds into data that it has sent before; if empty, `combine` applies. In shared memory this is more expensive: the partner's core also holds the cache lines and gives them up one by one."""
    copy: NotRequired[list[SimulationPiecesCombine]]
    """Costs of local copies."""
    transfer: NotRequired[list[SimulationPiecesCombine]]
    """Costs of messages."""

class SimulationPublishedTerms(TypedDict):
    bandwidth: float
    computation: float
    latency: float

class SimulationPublished(TypedDict):
    best_segment: float | None
    """In bytes, not rounded."""
    best_time: float | None
    erratum: NotRequired[str]
    penalty: NotRequired[float]
    table: str
    terms: NotRequired[SimulationPublishedTerms]
    time: float

class SimulationFields:
    """Fields of ``oneport simulate --json``."""

    after_last_arrival: float
    algorithm: str | None
    """The name of a schedule from a file; absent if it has none."""
    algorithm_choice: str
    """`auto`, `given`, `rules` or `file`."""
    alpha: float
    beta: float
    block_bytes: list[int]
    """Size of each rank's block, if block sizes were given."""
    bound_by: str
    bytes: int
    chosen_for: str
    """The built-in costs by which algorithm or segments were chosen, if they were."""
    claimed_time: float
    """The time that a schedule's file claims."""
    closed_form: float | None
    collective: str
    correct: bool
    """Whether a schedule from a file is right, if that was to be found out and could be."""
    critical_path: list[SimulationCriticalPath]
    epochs_kept: bool
    """Whether links with the costs that options give keep the epochs that the file claims."""
    explain: SimulationExplain
    gamma: float
    gamma_copy: float
    late_flow: str
    """The first flow that these links do not carry in time."""
    left_out: list[str]
    """What the search left out because it would take too long, and may be better."""
    levels: list[SimulationLevels]
    lower_bound: float
    lower_bounds: SimulationLowerBounds
    """Of which `lower_bound` is the largest."""
    messages: int
    model_time: float
    nodes: int
    pieces: SimulationPieces
    """Present if the costs are not linear in the size; alpha to gamma_copy are then only an approximation."""
    port_busy: list[list[float]]
    """By rank and port."""
    ported: int
    ports: str
    published: SimulationPublished | None
    """The row of a published table."""
    rank_times: list[float]
    ranks: int
    ratio: float | None
    root: int | None
    root_choice: str
    rounds: int
    rule: str
    """The selection rule that made the choice, if one did."""
    schedule: str | None
    segment: int | None
    segment_choice: str | None
    """`best`, `unequal`, `given` or `rules`; `unsegmented` for an algorithm that does not segment."""
    segment_sizes: list[int]
    """Bytes of each segment, if a search for unequal sizes found them."""
    segments: int | None
    shared_ports: int
    """Number of ports that ranks share, and of their nodes."""
    time_unit: str
    vector_bytes: int | None
    """Size of the vector, or of the largest block."""
    x_bound: float | None

class ComparisonLibraryWall(TypedDict):
    deviation: float
    """Standard deviation."""
    high: int
    low: int
    """Ends of the median's confidence interval."""
    max: int
    mean: float
    median: int
    min: int
    outliers: int
    """Times farther from the quartiles than one and a half times their distance."""
    p99: int

class ComparisonLibrary(TypedDict):
    error: NotRequired[str]
    """The first wrong element, if there is one."""
    function: str
    ratio: float
    """Its median time in that of the schedule: above 1, the schedule is faster."""
    wall: ComparisonLibraryWall
    """In nanoseconds."""

class ComparisonMpiHosts(TypedDict):
    name: str
    """Its name."""
    processes: int
    """Number of processes."""

class ComparisonMpi(TypedDict):
    hosts: list[ComparisonMpiHosts]
    """The hosts, in order of their first ranks."""
    interface: str
    """Its binary interface."""
    library: str
    """The name under which the library was found."""
    processes: int
    """Number of processes."""
    timing: str
    """How repetitions are timed."""
    version: str
    """The library's own name and version."""

class ComparisonRows(TypedDict):
    after_last_arrival: NotRequired[float]
    algorithm: str
    bits: NotRequired[ReportBits]
    bytes: int
    left_out: NotRequired[list[str]]
    """What the search left out because it would take too long, and may be better."""
    levels: NotRequired[list[SimulationLevels]]
    messages: int
    model_time: float
    ratio: NotRequired[float]
    root: NotRequired[int]
    rounds: int
    schedule: NotRequired[str]
    """The file of a schedule that was read."""
    segment: NotRequired[int]
    segments: NotRequired[int]
    time: NotRequired[float]
    wall: NotRequired[ComparisonLibraryWall]
    x_best: float
    """Time over the best at this point, measured if it was."""
    x_bound: float | None
    """Model time over the lower bound."""
    collective: NotRequired[str]
    command: NotRequired[str]
    dist: NotRequired[str]
    inputs: NotRequired[str]
    late: NotRequired[float]
    late_rank: NotRequired[int]
    """The first rank whose delay costs most, and the first whose costs least."""
    least_rank: NotRequired[int]
    least_time: NotRequired[float]
    lower_bound: NotRequired[float]
    median_ns: NotRequired[float]
    own: NotRequired[bool]
    """Whether it is a schedule from a file, where any is."""
    p95_time: NotRequired[float]
    ports: NotRequired[str]
    ranks: NotRequired[int]
    segment_bytes: NotRequired[int]
    time_unit: NotRequired[str]
    volume_bytes: NotRequired[int]
    worst_time: NotRequired[float]

class ComparisonSkipped(TypedDict):
    algorithm: str
    reason: str
    bytes: NotRequired[int]
    dist: NotRequired[str]
    ranks: NotRequired[int]

class ComparisonFields:
    """Fields of ``oneport compare --json``."""

    collective: str
    dtype: str
    engine: str
    inputs: str
    library: ComparisonLibrary
    lower_bound: float
    mpi: ComparisonMpi
    node_ports: int
    ported: int
    ports: str
    ranks: int
    repetitions: int
    rows: list[ComparisonRows]
    skipped: list[ComparisonSkipped]
    time_unit: str
    vector_bytes: int
    warmup: int
    warnings: list[str]

class TuningLibraryForRules(TypedDict):
    high: int
    """Upper end of the median's confidence interval."""
    low: int
    """Lower end of the median's confidence interval."""
    max: int
    """Maximum."""
    min: int
    """Minimum."""
    p99: int
    """99th percentile."""
    repetitions: int
    """Number of repetitions."""
    wall: int
    """Median."""

class TuningLibrary(TypedDict):
    bytes: int
    error: NotRequired[str]
    for_rules: NotRequired[TuningLibraryForRules]
    """Its time in the state that a file of rules needs, where that differs."""
    function: str
    high: int
    """Upper end of the median's confidence interval."""
    low: int
    """Lower end of the median's confidence interval."""
    max: int
    """Maximum."""
    min: int
    """Minimum."""
    p99: int
    """99th percentile."""
    repetitions: int
    """Number of repetitions."""
    wall: int
    """Median."""

class TuningRows(TypedDict):
    algorithm: str
    """The algorithm's name."""
    best: bool
    """Whether this is the fastest of all rows of its vector size."""
    best_segment: bool
    """Whether this is the fastest of its vector size and algorithm."""
    bytes: int
    """Size of the vector."""
    high: int
    """Upper end of the median's confidence interval."""
    low: int
    """Lower end of the median's confidence interval."""
    max: int
    """Maximum."""
    min: int
    """Minimum."""
    model_time: float
    """The time in the cost model, in its unit; NaN for a library's own function."""
    p99: int
    """99th percentile."""
    repetitions: int
    """Number of repetitions."""
    segment: int
    """Bytes of a segment."""
    segments: int
    """Number of segments; the last may be smaller."""
    settled: bool
    """Whether the repetitions establish that the best row of this vector size is at least as fast. For the best row itself: whether they establish that against the other segment sizes of its algorithm and the best of every other algorithm."""
    wall: int
    """Median."""

class TuningSkipped(TypedDict):
    algorithm: str
    reason: str

class TuningFields:
    """Fields of ``oneport tune --json``."""

    budget_s: float
    budget_spent: bool
    clock: str
    collective: str
    command: str
    cores: int
    """0 where all rows are from a file."""
    date: str
    dtype: str
    elapsed_s: float
    inputs: str
    interrupted: bool
    library: list[TuningLibrary]
    """The library's own function at each size."""
    machine: str
    mpi: ComparisonMpi
    op: str | None
    oversubscribed: bool
    pinned: bool
    ported: int
    ports: str
    ranks: int
    resumed: int
    root: int
    rows: list[TuningRows]
    skipped: list[TuningSkipped]
    tree: str
    """The tree in which the best of all sizes add."""
    warnings: list[str]

class GuidelinesRows(TypedDict):
    by: str
    bytes: int
    clock: str
    excess: float
    """By how much the left side is slower, as a fraction; negative if it is faster."""
    guideline: str
    holds: bool
    left: float
    left_algorithms: list[str]
    left_interval: NotRequired[list[float]]
    ranks: int
    right: float
    right_algorithms: list[str]
    right_interval: NotRequired[list[float]]
    settled: NotRequired[bool]
    statement: str

class GuidelinesUnavailable(TypedDict):
    guideline: str
    """Its name."""
    reason: str
    """The reason."""

class GuidelinesFields:
    """Fields of ``oneport guidelines --json``."""

    compared: int
    dist: str
    holds: bool
    inputs: str
    left_out: list[str]
    """What the searches for the fastest algorithms left out, which may be faster."""
    measured_tolerance: float
    mpi: ComparisonMpi
    ports: str
    rows: list[GuidelinesRows]
    time_unit: str
    tolerance: float
    unavailable: list[GuidelinesUnavailable]
    violated: int
    warnings: list[str]

class ProfileCombineLocalPoints(TypedDict):
    bytes: int
    """Size."""
    predicted: float
    """Predicted time. For an empty message this is the start-up time, although schedules send no empty messages."""
    residual: float
    """`(predicted - time) / time`."""
    time: float
    """Measured time."""

class ProfileLevels(TypedDict):
    alpha: float
    """Start-up time of a message."""
    beta: float
    """Time per byte of a message."""
    groups: NotRequired[list[list[int]]]
    """Groups of ranks; without them, one group of all ranks."""
    latency: NotRequired[float]
    """Time from the start of a message at its sender to its start at its receiver."""

class ProfileMachine(TypedDict):
    cores: int
    """Number of cores that this process may use."""
    cpu: str
    """Model of the processor."""
    os: str
    """Operating system and its version."""

class ProfilePairs(TypedDict):
    alpha: NotRequired[list[list[float | None]]]
    """Start-up times."""
    beta: NotRequired[list[list[float | None]]]
    """Times per byte."""
    eager: NotRequired[int | Literal["none", "all"]]
    gamma: NotRequired[list[float]]
    """Time per byte combined, by rank."""
    gamma_copy: NotRequired[list[float]]
    """Time per byte copied, by rank."""
    latency: NotRequired[list[list[float]] | float]
    """Part of the start-up time that keeps no port: one number, or by pair."""
    levels: NotRequired[list[ProfileLevels]]

class ProfileTuning(TypedDict):
    cache_bytes: NotRequired[int]
    """Size of the last-level cache; by default what the system reports, or else 32 MiB. Long messages are copied with streaming stores, which bypass the caches, if the buffers of the run do not fit into it: they would only evict other lines, and reading the lines that they overwrite would be wasted."""
    cold_copy_factor: NotRequired[float]
    """Time of a long copy into memory that is no longer cached, because other messages have been copied since, in that of a calibrated copy: 2."""
    fresh_factor: NotRequired[float]
    """Time per byte of data that the sender itself has just received or combined and that is still in the caches of the sender's core, in that of other data, where one partner copies a long message: 2. The lines have to be fetched from there, and the lines they overwrite are cached there, too. When ranks share cores, the other ranks evict this data."""
    lone_copy_factor: NotRequired[float]
    """Time of a long message that one partner copies alone, in that of a shared copy: 2."""
    max_fresh_bytes: NotRequired[int]
    """Size of the longest message for which `fresh_factor` counts: 1 MiB."""
    min_stream_bytes: NotRequired[int]
    """Size of the smallest message that is copied with streaming stores, in such a run: 128 KiB."""
    own_work_ns: NotRequired[float]
    """A rank's own work for a message, excluding the wait for a cache line: the time of a short message between two nearby cores, without the handover. 60 ns."""
    worker_switch_share: NotRequired[float]
    """Time that a worker takes to switch between two of its ranks, as a part of their own work for a message: 0.5. It switches without the operating system."""

class ProfileFields:
    """Fields of ``oneport calibrate --json``."""

    alpha: float
    """Start-up time of a message, from the single line fitted to all sizes."""
    beta: float
    """Time per byte of a message, from the single line fitted to all sizes."""
    combine_local_points: list[ProfileCombineLocalPoints]
    """Simultaneous messages in both directions, after which each rank combines the received data into the data it sent."""
    combine_points: list[ProfileCombineLocalPoints]
    """Messages that the receiver combines into its data."""
    copy_points: list[ProfileCombineLocalPoints]
    """Local copies."""
    cores: list[int]
    """Measured cores: the first two, or all of them if pairs were measured."""
    date: str
    """Date of the calibration in UTC: `2025-01-31T23:59:59Z`."""
    eager: int | Literal["none", "all"]
    """Which messages do not wait for their receivers."""
    fit_error: float
    """Median relative error of the model over the points (of the pieces, if there are any)."""
    fit_error_worst: float
    """Largest relative error of the model over the points."""
    gamma: float
    """Additional time per byte for combining a message into the receiver's data."""
    gamma_copy: float
    """Time per byte of a local copy."""
    hosts: list[str]
    """Of a calibration over MPI: the host of each rank. `Profile::cores` and `Profile::pairs` are ranks then."""
    inputs: str
    """`rewritten` before each repetition, or `kept`; empty if it is not known."""
    latency: float
    """Part of the start-up time that keeps no port, which `alpha` leaves out. Pairs and levels have their own."""
    latency_error: float
    """By how much the measured latency differs in the median over the sizes to 1 KiB, relative."""
    levels: list[ProfileLevels]
    """Costs by level, of ranks on several hosts: in each host, then between them."""
    line_error: float
    """Median relative error of the single line `alpha + beta * n`."""
    line_error_worst: float
    """Largest relative error of the single line."""
    machine: ProfileMachine
    """The measured machine."""
    noise: float
    """For each point, the relative difference between its typical and its fastest sample; this is the median over all points."""
    pairs: ProfilePairs
    """Costs between all pairs of `cores`, in the form of a cost file."""
    pieces: SimulationPieces
    """Piecewise linear costs, if one line does not fit all sizes."""
    points: list[ProfileCombineLocalPoints]
    """Messages, time of one direction."""
    shared_alpha: float
    """Start-up time of a message between two ranks that share one core."""
    tuning: ProfileTuning
    """Constants of the machine that differ from the default ones; written by hand."""
    version: str
    """Version of this crate that ran the calibration."""
    warnings: list[str]
    """Warnings about the quality of the figures."""

class SynthesisFields:
    """Fields of ``oneport synthesize --json``."""

    best_algorithm_rounds: int | None
    """Rounds of the best algorithm of the registry."""
    collective: str
    lower: int
    """Fewer are impossible."""
    lower_by: str
    """Why fewer are impossible: by a formula, or since a formula in logic has no solution."""
    optimal: bool
    """Whether no schedule has fewer rounds."""
    ranks: int
    rounds: int | None
    """Of the schedule; null if none was found."""

class SteadyBoundsLower(TypedDict):
    float: float
    fraction: str

class SteadyBounds(TypedDict):
    gap: float
    lower: SteadyBoundsLower
    upper: SteadyBoundsLower

class SteadyDrift(TypedDict):
    best_guaranteed: SteadyBoundsLower
    guaranteed: SteadyBoundsLower

class SteadyLongMessage(TypedDict):
    best: bool
    """Whether no other number of packets takes less time, and how many were tried."""
    model_time: float
    packets: int
    tried: int

class SteadyMatchings(TypedDict):
    edges: list[list[int]]
    weight: str
    weight_float: float

class SteadyRecomputed(TypedDict):
    method: str
    throughput: SteadyBoundsLower

class SteadyRun(TypedDict):
    kept_pace: bool
    model_throughput: float
    """The same in model time."""
    throughput: float
    """Messages per time unit, measured over the second half of the messages."""
    time_unit_ns: float
    verified: bool
    wall: int
    """In nanoseconds."""

class SteadySchedule(TypedDict):
    checked: bool
    elements: int
    loss: float
    """Fraction of the optimum lost by rounding."""
    messages: int
    messages_per_period: int
    model_time: float
    period: SteadyBoundsLower
    reached: float
    throughput: SteadyBoundsLower

class SteadySingleTree(TypedDict):
    optimal: bool
    throughput: SteadyBoundsLower

class SteadyTreesTasksCombine(TypedDict):
    node: int
    ranks: list[int]

SteadyTreesTasksMove = TypedDict("SteadyTreesTasksMove", {
    "from": int,
    "ranks": list[int],
    "to": int,
})

class SteadyTreesTasks(TypedDict):
    combine: NotRequired[SteadyTreesTasksCombine]
    move: NotRequired[SteadyTreesTasksMove]

class SteadyTrees(TypedDict):
    edges: list[list[int]]
    messages: NotRequired[list[int]]
    tasks: NotRequired[list[SteadyTreesTasks]]
    """The contents of each message and each combination, if combining takes time or operands keep their order."""
    weight: str
    weight_float: float

class SteadyFields:
    """Fields of ``oneport steady --json``."""

    bounds: SteadyBounds
    collective: str
    drift: SteadyDrift
    edges: int
    long_message: SteadyLongMessage
    matchings: list[SteadyMatchings]
    """An edge from a node to itself means that the node combines."""
    nodes: int
    optimal: bool
    period: int | str
    """The shortest period with whole messages in every slot."""
    ports: str
    proved: bool
    """Whether a certificate of optimality was checked."""
    recomputed: list[SteadyRecomputed]
    """The same throughput, computed by other methods."""
    run: SteadyRun
    single_tree: SteadySingleTree
    throughput: SteadyBoundsLower
    """Operations per time unit."""
    trees: list[SteadyTrees]
    unlimited: SteadyBoundsLower
