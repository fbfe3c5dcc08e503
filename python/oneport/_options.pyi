"""The options of functions, for type checkers and editors.

Made of the options of the commands: UPDATE_PYTHON=1 cargo test -p oneport-cli --test commands python
writes this file."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from ._command import Costs, Path, Progress

class PlanMore(TypedDict, total=False):
    """Options of ``plan``."""

    alpha: float | str | None
    """Start-up time of a message [default: 1us]"""
    arrivals: Any | None
    """When ranks arrive: a file ({"arrivals": [0, 10, ..]}, or a CSV with a column arrivals), last:100us (the last rank is late), RANK:TIME,..., random:exp,20us (mean) or random:uniform,0,50us, with ,seed=1 at the end if wanted [default: none, all at time 0]"""
    beta: float | str | None
    """Time per byte of a message, or a bandwidth such as 10GB/s [default: 0.1ns]"""
    block: int | str | Sequence[int | str] | None
    """Average size of a block, for --dist; a range or list such as 1KiB..64KiB for a sweep of compare or simulate [default: 1000]"""
    dist: str | Sequence[str] | None
    """Sizes from a distribution: same, random, random-decreasing, random-increasing, bucket, spikes, decreasing, increasing, alternating, skewed, two-blocks, mod3; from several for a sweep of compare or simulate"""
    dtype: Any | None
    """Type of the elements; without it an element is one byte"""
    eager: int | str | None
    """Messages whose senders do not wait for their receivers: none, all, or those up to a size [default: none]"""
    format: Literal["text", "rounds", "json", "dot"] | None
    """How to print the schedule [default: text; json with --json or for a file]"""
    gamma: float | str | None
    """Time per byte combined [default: 0]"""
    gamma_copy: float | str | None
    """Time per byte copied locally [default: 0]"""
    latency: float | str | None
    """Time from the start of a message at its sender to its start at its receiver, which keeps no port [default: 0]"""
    node_ports: int | str | None
    """Number of ports of each kind that a node has, through which all messages between nodes pass: out and in, also where ranks have telephone ports [default: those of its ranks]"""
    nodes: int | str | None
    """Number of nodes, of consecutive ranks [default: the nodes that --costs shows]"""
    op: Literal["sum", "prod", "min", "max", "band", "bor", "bxor", "land", "lor", "lxor", "minloc", "maxloc", "affine"] | None
    """Operator of reductions; affine maps (u64) do not commute, so operand order is then kept [default: sum]"""
    ordered: bool | None
    """Keep operand order even though the operator commutes"""
    output: Path | None
    """Write to this file, all at once, instead of standard output"""
    overlap: bool | None
    """Let computation overlap communication"""
    ported: int | str | None
    """Number of ports of each kind that a rank has [default: 1]"""
    profile: Path | Mapping[str, Any] | None
    """Costs from a profile that `calibrate -o` wrote, by level if it has levels; --alpha, --beta, --gamma and --gamma-copy still override it"""
    rank: int | str | None
    """The column of this rank alone: what a rank computes by itself, in microseconds, however many ranks there are"""
    rho: int | str | None
    """How uneven: size and rarity of spikes, number of large skewed blocks, for --dist [default: 5]"""
    rules: Path | Mapping[str, Any] | None
    """Let these selection rules (from `tune --rules`) choose algorithm and segment size"""
    same_bits: bool | str | None
    """Take only schedules that give all ranks of an allreduce the same bits of a sum of floats; with =tree those that add all elements in one tree, in a sweep the same for all sizes"""
    seed: int | str | None
    """Where random sizes start from, for --dist [default: 1]"""
    segment: int | str | None
    """Size of a segment; the last may be smaller; the algorithm chosen is then one that segments, if any does [default: the best for the cost model]"""
    segment_sizes: int | str | Sequence[int | str] | None
    """Sizes of all segments, such as 6KiB,4KiB,4KiB, in the order in which a reduction takes them: a broadcast that is planned as a reduction backwards starts with the last of them"""
    sizes: int | str | Sequence[int | str] | None
    """Size of each rank's block, in rank order, such as 1KiB,0,2KiB; of an alltoall the blocks for each rank, or of each rank's blocks, such as 0,5,1/2,0,3/4,4,0"""
    sizes_file: Path | Mapping[str, Any] | None
    """The same from a file (`-` for standard input): sizes between commas or white space, of an alltoall one line for each rank"""
    table: bool | None
    """Print the base blocks, receive and send schedules of a circulant algorithm as a table, a column a rank, counted from the root"""
    targets: int | str | Sequence[int | str] | None
    """Ranks that get the vector of a collective with targets, such as 1,3,5 of a multicast [default: all]"""

class LoadOptions(TypedDict, total=False):
    """Options of ``plan``."""

    algorithm: str | None
    """The algorithm; of several, or with `auto` of all, the one with the least model time is taken"""
    alpha: float | str | None
    """Start-up time of a message [default: 1us]"""
    arrivals: Any | None
    """When ranks arrive: a file ({"arrivals": [0, 10, ..]}, or a CSV with a column arrivals), last:100us (the last rank is late), RANK:TIME,..., random:exp,20us (mean) or random:uniform,0,50us, with ,seed=1 at the end if wanted [default: none, all at time 0]"""
    beta: float | str | None
    """Time per byte of a message, or a bandwidth such as 10GB/s [default: 0.1ns]"""
    block: int | str | Sequence[int | str] | None
    """Average size of a block, for --dist; a range or list such as 1KiB..64KiB for a sweep of compare or simulate [default: 1000]"""
    bytes: int | str | Sequence[int | str] | None
    """Size of one rank's block of gather, scatter, allgather and alltoall, of the vector of the other collectives; where a command takes several, 8..4MiB doubles, 8..4MiB*4 goes on by a factor of 4, and 8,1KiB lists [default: 64KiB]"""
    costs: Costs | None
    """Costs of each pair of ranks, from a JSON file `{"alpha": [[..]], "beta": [[..]], "gamma": [..], "gamma_copy": [..]}`, null where there is no link; or from a profile with pairs (`calibrate --pairs`) or with levels"""
    dist: str | Sequence[str] | None
    """Sizes from a distribution: same, random, random-decreasing, random-increasing, bucket, spikes, decreasing, increasing, alternating, skewed, two-blocks, mod3; from several for a sweep of compare or simulate"""
    dtype: Any | None
    """Type of the elements; without it an element is one byte"""
    eager: int | str | None
    """Messages whose senders do not wait for their receivers: none, all, or those up to a size [default: none]"""
    format: Literal["text", "rounds", "json", "dot"] | None
    """How to print the schedule [default: text; json with --json or for a file]"""
    gamma: float | str | None
    """Time per byte combined [default: 0]"""
    gamma_copy: float | str | None
    """Time per byte copied locally [default: 0]"""
    latency: float | str | None
    """Time from the start of a message at its sender to its start at its receiver, which keeps no port [default: 0]"""
    node_ports: int | str | None
    """Number of ports of each kind that a node has, through which all messages between nodes pass: out and in, also where ranks have telephone ports [default: those of its ranks]"""
    nodes: int | str | None
    """Number of nodes, of consecutive ranks [default: the nodes that --costs shows]"""
    op: Literal["sum", "prod", "min", "max", "band", "bor", "bxor", "land", "lor", "lxor", "minloc", "maxloc", "affine"] | None
    """Operator of reductions; affine maps (u64) do not commute, so operand order is then kept [default: sum]"""
    ordered: bool | None
    """Keep operand order even though the operator commutes"""
    output: Path | None
    """Write to this file, all at once, instead of standard output"""
    overlap: bool | None
    """Let computation overlap communication"""
    ported: int | str | None
    """Number of ports of each kind that a rank has [default: 1]"""
    ports: Literal["uni", "bi", "telephone"] | None
    """Ports of a rank: uni (one for both directions), bi (one out, one in) or telephone (both directions, but one partner at a time) [default: bi]"""
    profile: Path | Mapping[str, Any] | None
    """Costs from a profile that `calibrate -o` wrote, by level if it has levels; --alpha, --beta, --gamma and --gamma-copy still override it"""
    rank: int | str | None
    """The column of this rank alone: what a rank computes by itself, in microseconds, however many ranks there are"""
    rho: int | str | None
    """How uneven: size and rarity of spikes, number of large skewed blocks, for --dist [default: 5]"""
    root: int | str | None
    """The root, or `free` to let the algorithm choose it where it can"""
    rules: Path | Mapping[str, Any] | None
    """Let these selection rules (from `tune --rules`) choose algorithm and segment size"""
    same_bits: bool | str | None
    """Take only schedules that give all ranks of an allreduce the same bits of a sum of floats; with =tree those that add all elements in one tree, in a sweep the same for all sizes"""
    seed: int | str | None
    """Where random sizes start from, for --dist [default: 1]"""
    segment: int | str | None
    """Size of a segment; the last may be smaller; the algorithm chosen is then one that segments, if any does [default: the best for the cost model]"""
    segment_sizes: int | str | Sequence[int | str] | None
    """Sizes of all segments, such as 6KiB,4KiB,4KiB, in the order in which a reduction takes them: a broadcast that is planned as a reduction backwards starts with the last of them"""
    segments: int | str | None
    """Number of segments, or `unequal` to search for the best sizes, unequal ones included; the algorithm chosen is then one that segments, if any does"""
    sizes: int | str | Sequence[int | str] | None
    """Size of each rank's block, in rank order, such as 1KiB,0,2KiB; of an alltoall the blocks for each rank, or of each rank's blocks, such as 0,5,1/2,0,3/4,4,0"""
    sizes_file: Path | Mapping[str, Any] | None
    """The same from a file (`-` for standard input): sizes between commas or white space, of an alltoall one line for each rank"""
    table: bool | None
    """Print the base blocks, receive and send schedules of a circulant algorithm as a table, a column a rank, counted from the root"""
    targets: int | str | Sequence[int | str] | None
    """Ranks that get the vector of a collective with targets, such as 1,3,5 of a multicast [default: all]"""
    elements: int | None
    """Number of elements, in place of bytes"""
    p: int | None
    """Number of ranks"""

class CheckOptions(TypedDict, total=False):
    """Options of ``check``."""

    algorithm: str | None
    """The algorithm; of several, or with `auto` of all, the one with the least model time is taken"""
    alpha: float | str | None
    """Start-up time of a message [default: 1us]"""
    arrivals: Any | None
    """When ranks arrive: a file ({"arrivals": [0, 10, ..]}, or a CSV with a column arrivals), last:100us (the last rank is late), RANK:TIME,..., random:exp,20us (mean) or random:uniform,0,50us, with ,seed=1 at the end if wanted [default: none, all at time 0]"""
    beta: float | str | None
    """Time per byte of a message, or a bandwidth such as 10GB/s [default: 0.1ns]"""
    block: int | str | Sequence[int | str] | None
    """Average size of a block, for --dist; a range or list such as 1KiB..64KiB for a sweep of compare or simulate [default: 1000]"""
    bytes: int | str | Sequence[int | str] | None
    """Size of one rank's block of gather, scatter, allgather and alltoall, of the vector of the other collectives; where a command takes several, 8..4MiB doubles, 8..4MiB*4 goes on by a factor of 4, and 8,1KiB lists [default: 64KiB]"""
    certificate: Path | Mapping[str, Any] | None
    """Check the certificate that `oneport steady` has written to this file instead, by sums and comparisons alone; nothing else is asked then"""
    costs: Costs | None
    """Costs of each pair of ranks, from a JSON file `{"alpha": [[..]], "beta": [[..]], "gamma": [..], "gamma_copy": [..]}`, null where there is no link; or from a profile with pairs (`calibrate --pairs`) or with levels"""
    dist: str | Sequence[str] | None
    """Sizes from a distribution: same, random, random-decreasing, random-increasing, bucket, spikes, decreasing, increasing, alternating, skewed, two-blocks, mod3; from several for a sweep of compare or simulate"""
    dtype: Any | None
    """Type of the elements; without it an element is one byte"""
    eager: int | str | None
    """Messages whose senders do not wait for their receivers: none, all, or those up to a size [default: none]"""
    gamma: float | str | None
    """Time per byte combined [default: 0]"""
    gamma_copy: float | str | None
    """Time per byte copied locally [default: 0]"""
    latency: float | str | None
    """Time from the start of a message at its sender to its start at its receiver, which keeps no port [default: 0]"""
    like: Path | Mapping[str, Any] | None
    """Demand that the files do the task of this one: its collective, root, ranks, ports and sizes; what its programs do does not matter. What differs is an error of the file"""
    max_errors: int | str | None
    """Report at most this many errors in full"""
    node_ports: int | str | None
    """Number of ports of each kind that a node has, through which all messages between nodes pass: out and in, also where ranks have telephone ports [default: those of its ranks]"""
    nodes: int | str | None
    """Number of nodes, of consecutive ranks [default: the nodes that --costs shows]"""
    op: Literal["sum", "prod", "min", "max", "band", "bor", "bxor", "land", "lor", "lxor", "minloc", "maxloc", "affine"] | None
    """Operator of reductions; affine maps (u64) do not commute, so operand order is then kept [default: sum]"""
    ordered: bool | None
    """Keep operand order even though the operator commutes"""
    output: Path | None
    """Write a row for each file to FILE.csv, too, or a page with them, FILE.html, with what is needed at least, the bits, why a file fails, and players that step through them"""
    overlap: bool | None
    """Let computation overlap communication"""
    ported: int | str | None
    """Number of ports of each kind that a rank has [default: 1]"""
    ports: Literal["uni", "bi", "telephone"] | None
    """Ports of a rank: uni (one for both directions), bi (one out, one in) or telephone (both directions, but one partner at a time) [default: bi]"""
    profile: Path | Mapping[str, Any] | None
    """Costs from a profile that `calibrate -o` wrote, by level if it has levels; --alpha, --beta, --gamma and --gamma-copy still override it"""
    rho: int | str | None
    """How uneven: size and rarity of spikes, number of large skewed blocks, for --dist [default: 5]"""
    root: int | str | None
    """The root, or `free` to let the algorithm choose it where it can"""
    rules: Path | Mapping[str, Any] | None
    """Let these selection rules (from `tune --rules`) choose algorithm and segment size"""
    same_bits: bool | str | None
    """Take only schedules that give all ranks of an allreduce the same bits of a sum of floats; with =tree those that add all elements in one tree, in a sweep the same for all sizes"""
    seed: int | str | None
    """Where random sizes start from, for --dist [default: 1]"""
    segment: int | str | None
    """Size of a segment; the last may be smaller; the algorithm chosen is then one that segments, if any does [default: the best for the cost model]"""
    segment_sizes: int | str | Sequence[int | str] | None
    """Sizes of all segments, such as 6KiB,4KiB,4KiB, in the order in which a reduction takes them: a broadcast that is planned as a reduction backwards starts with the last of them"""
    segments: int | str | None
    """Number of segments, or `unequal` to search for the best sizes, unequal ones included; the algorithm chosen is then one that segments, if any does"""
    sizes: int | str | Sequence[int | str] | None
    """Size of each rank's block, in rank order, such as 1KiB,0,2KiB; of an alltoall the blocks for each rank, or of each rank's blocks, such as 0,5,1/2,0,3/4,4,0"""
    sizes_file: Path | Mapping[str, Any] | None
    """The same from a file (`-` for standard input): sizes between commas or white space, of an alltoall one line for each rank"""
    targets: int | str | Sequence[int | str] | None
    """Ranks that get the vector of a collective with targets, such as 1,3,5 of a multicast [default: all]"""
    elements: int | None
    """Number of elements, in place of bytes"""
    p: int | None
    """Number of ranks"""
    progress: Progress
    """Whether to say how far it is, or who is told"""

class SimulateMore(TypedDict, total=False):
    """Options of ``simulate``."""

    algorithm: str | None
    """The algorithm; of several, or with `auto` of all, the one with the least model time is taken"""
    alpha: float | str | None
    """Start-up time of a message [default: 1us]"""
    beta: float | str | None
    """Time per byte of a message, or a bandwidth such as 10GB/s [default: 0.1ns]"""
    block: int | str | Sequence[int | str] | None
    """Average size of a block, for --dist; a range or list such as 1KiB..64KiB for a sweep of compare or simulate [default: 1000]"""
    bytes: int | str | Sequence[int | str] | None
    """Size of one rank's block of gather, scatter, allgather and alltoall, of the vector of the other collectives; where a command takes several, 8..4MiB doubles, 8..4MiB*4 goes on by a factor of 4, and 8,1KiB lists [default: 64KiB]"""
    critical_path: bool | None
    """Show one longest chain of transfers and computations, with the latency between them and the arrival of its first rank: the model time is their sum"""
    dist: str | Sequence[str] | None
    """Sizes from a distribution: same, random, random-decreasing, random-increasing, bucket, spikes, decreasing, increasing, alternating, skewed, two-blocks, mod3; from several for a sweep of compare or simulate"""
    dtype: Any | None
    """Type of the elements; without it an element is one byte"""
    eager: int | str | None
    """Messages whose senders do not wait for their receivers: none, all, or those up to a size [default: none]"""
    explain: bool | str | None
    """Say why the last rank, or RANK, or its step STEP, is done no earlier: the chain of what waits for what, backwards, and by how much each rank is done before the end"""
    gamma: float | str | None
    """Time per byte combined [default: 0]"""
    gamma_copy: float | str | None
    """Time per byte copied locally [default: 0]"""
    latency: float | str | None
    """Time from the start of a message at its sender to its start at its receiver, which keeps no port [default: 0]"""
    node_ports: int | str | None
    """Number of ports of each kind that a node has, through which all messages between nodes pass: out and in, also where ranks have telephone ports [default: those of its ranks]"""
    nodes: int | str | None
    """Number of nodes, of consecutive ranks [default: the nodes that --costs shows]"""
    op: Literal["sum", "prod", "min", "max", "band", "bor", "bxor", "land", "lor", "lxor", "minloc", "maxloc", "affine"] | None
    """Operator of reductions; affine maps (u64) do not commute, so operand order is then kept [default: sum]"""
    ordered: bool | None
    """Keep operand order even though the operator commutes"""
    output: Path | Sequence[Path] | None
    """Write the table to FILE.csv, .md or .tex, all numbers to .json, the plot to .svg, a page with it to .html; may be repeated. With a CSV file the same command goes on where it stopped"""
    overlap: bool | None
    """Let computation overlap communication"""
    plain: bool | None
    """Leave out the words around a picture: title, what it shows, and at its foot version, date and command line; of a page the foot only"""
    ported: int | str | None
    """Number of ports of each kind that a rank has [default: 1]"""
    ports: Literal["uni", "bi", "telephone"] | None
    """Ports of a rank: uni (one for both directions), bi (one out, one in) or telephone (both directions, but one partner at a time) [default: bi]"""
    profile: Path | Mapping[str, Any] | None
    """Costs from a profile that `calibrate -o` wrote, by level if it has levels; --alpha, --beta, --gamma and --gamma-copy still override it"""
    ranks_table: bool | None
    """Show when each rank finishes, what it sends and receives, and how long its ports are busy"""
    rho: int | str | None
    """How uneven: size and rarity of spikes, number of large skewed blocks, for --dist [default: 5]"""
    root: int | str | None
    """The root, or `free` to let the algorithm choose it where it can"""
    rules: Path | Mapping[str, Any] | None
    """Let these selection rules (from `tune --rules`) choose algorithm and segment size"""
    same_bits: bool | str | None
    """Take only schedules that give all ranks of an allreduce the same bits of a sum of floats; with =tree those that add all elements in one tree, in a sweep the same for all sizes"""
    seed: int | str | None
    """Where random sizes start from, for --dist [default: 1]"""
    segment: int | str | None
    """Size of a segment; the last may be smaller; the algorithm chosen is then one that segments, if any does [default: the best for the cost model]"""
    segment_sizes: int | str | Sequence[int | str] | None
    """Sizes of all segments, such as 6KiB,4KiB,4KiB, in the order in which a reduction takes them: a broadcast that is planned as a reduction backwards starts with the last of them"""
    segments: int | str | None
    """Number of segments, or `unequal` to search for the best sizes, unequal ones included; the algorithm chosen is then one that segments, if any does"""
    show: Literal["time", "ratio", "bound", "bandwidth"] | None
    """What a plot (.svg) shows [default: time]. A table for papers (.md, .tex) has a row for each number of ranks then, a column for each size: of schedules from files, of the algorithms named by -a, or else of what leads"""
    sizes: int | str | Sequence[int | str] | None
    """Size of each rank's block, in rank order, such as 1KiB,0,2KiB; of an alltoall the blocks for each rank, or of each rank's blocks, such as 0,5,1/2,0,3/4,4,0"""
    sizes_file: Path | Mapping[str, Any] | None
    """The same from a file (`-` for standard input): sizes between commas or white space, of an alltoall one line for each rank"""
    targets: int | str | Sequence[int | str] | None
    """Ranks that get the vector of a collective with targets, such as 1,3,5 of a multicast [default: all]"""
    top: int | str | None
    """Draw only so many algorithms in a plot (.svg), the fastest on average, besides schedules from files"""
    width: str | None
    """Width of a picture where it is shown, such as 84mm (mm, cm, in, pt or px)"""
    elements: int | None
    """Number of elements, in place of bytes"""
    p: int | None
    """Number of ranks"""
    progress: Progress
    """Whether to say how far it is, or who is told"""

class CompareOfSchedule(TypedDict, total=False):
    """Options of ``compare``."""

    algorithm: str | None
    """The algorithm; of several, or with `auto` of all, the one with the least model time is taken"""
    alpha: float | str | None
    """Start-up time of a message [default: 1us]"""
    arrivals: Any | None
    """When ranks arrive: a file ({"arrivals": [0, 10, ..]}, or a CSV with a column arrivals), last:100us (the last rank is late), RANK:TIME,..., random:exp,20us (mean) or random:uniform,0,50us, with ,seed=1 at the end if wanted [default: none, all at time 0]"""
    beta: float | str | None
    """Time per byte of a message, or a bandwidth such as 10GB/s [default: 0.1ns]"""
    block: int | str | Sequence[int | str] | None
    """Average size of a block, for --dist; a range or list such as 1KiB..64KiB for a sweep of compare or simulate [default: 1000]"""
    bytes: int | str | Sequence[int | str] | None
    """Size of one rank's block of gather, scatter, allgather and alltoall, of the vector of the other collectives; where a command takes several, 8..4MiB doubles, 8..4MiB*4 goes on by a factor of 4, and 8,1KiB lists [default: 64KiB]"""
    deadline: float | str | None
    """How long a rank waits for a partner before the measurement ends in an error [default: 10s]"""
    dist: str | Sequence[str] | None
    """Sizes from a distribution: same, random, random-decreasing, random-increasing, bucket, spikes, decreasing, increasing, alternating, skewed, two-blocks, mod3; from several for a sweep of compare or simulate"""
    dtype: Any | None
    """Type of the elements; without it an element is one byte"""
    eager: int | str | None
    """Messages whose senders do not wait for their receivers: none, all, or those up to a size [default: none]"""
    engine: Literal["threads", "mpi"] | None
    """Measure, too: on threads, or on the processes that mpirun or srun started [default: model times alone; mpi if they did]"""
    gamma: float | str | None
    """Time per byte combined [default: 0]"""
    gamma_copy: float | str | None
    """Time per byte copied locally [default: 0]"""
    inputs: Literal["rewritten", "kept"] | None
    """Write the inputs anew before each repetition, or keep them where they are, as the benchmarks of OSU and NCCL do: messages are then read from warm caches"""
    late: float | str | Sequence[float | str] | None
    """Delay one rank by each of these times, such as 0..1ms (17 of them) or 0,10us,100us; reports the worst and the best choice of that rank, counted from its arrival"""
    latency: float | str | None
    """Time from the start of a message at its sender to its start at its receiver, which keeps no port [default: 0]"""
    node_ports: int | str | None
    """Number of ports of each kind that a node has, through which all messages between nodes pass: out and in, also where ranks have telephone ports [default: those of its ranks]"""
    nodes: int | str | None
    """Number of nodes, of consecutive ranks [default: the nodes that --costs shows]"""
    op: Literal["sum", "prod", "min", "max", "band", "bor", "bxor", "land", "lor", "lxor", "minloc", "maxloc", "affine"] | None
    """Operator of reductions; affine maps (u64) do not commute, so operand order is then kept [default: sum]"""
    ordered: bool | None
    """Keep operand order even though the operator commutes"""
    output: Path | Sequence[Path] | None
    """Write the table to FILE.csv, .md or .tex, all numbers to .json, the plot to .svg, a page with it to .html; may be repeated. With a CSV file the same command goes on where it stopped"""
    overlap: bool | None
    """Let computation overlap communication"""
    plain: bool | None
    """Leave out the words around a picture: title, what it shows, and at its foot version, date and command line; of a page the foot only"""
    ported: int | str | None
    """Number of ports of each kind that a rank has [default: 1]"""
    ports: Literal["uni", "bi", "telephone"] | None
    """Ports of a rank: uni (one for both directions), bi (one out, one in) or telephone (both directions, but one partner at a time) [default: bi]"""
    profile: Path | Mapping[str, Any] | None
    """Costs from a profile that `calibrate -o` wrote, by level if it has levels; --alpha, --beta, --gamma and --gamma-copy still override it"""
    repetitions: int | str | None
    """Number of timed repetitions of each algorithm [default: 30]"""
    rho: int | str | None
    """How uneven: size and rarity of spikes, number of large skewed blocks, for --dist [default: 5]"""
    root: int | str | None
    """The root, or `free` to let the algorithm choose it where it can"""
    rules: Path | Mapping[str, Any] | None
    """Let these selection rules (from `tune --rules`) choose algorithm and segment size"""
    same_bits: bool | str | None
    """Take only schedules that give all ranks of an allreduce the same bits of a sum of floats; with =tree those that add all elements in one tree, in a sweep the same for all sizes"""
    seed: int | str | None
    """Where random sizes start from, for --dist [default: 1]"""
    segment: int | str | None
    """Size of a segment; the last may be smaller; the algorithm chosen is then one that segments, if any does [default: the best for the cost model]"""
    segment_sizes: int | str | Sequence[int | str] | None
    """Sizes of all segments, such as 6KiB,4KiB,4KiB, in the order in which a reduction takes them: a broadcast that is planned as a reduction backwards starts with the last of them"""
    segments: int | str | None
    """Number of segments, or `unequal` to search for the best sizes, unequal ones included; the algorithm chosen is then one that segments, if any does"""
    show: Literal["time", "ratio", "bound", "bandwidth"] | None
    """What a plot (.svg) shows [default: time]. A table for papers (.md, .tex) has a row for each number of ranks then, a column for each size: of schedules from files, of the algorithms named by -a, or else of what leads"""
    sizes: int | str | Sequence[int | str] | None
    """Size of each rank's block, in rank order, such as 1KiB,0,2KiB; of an alltoall the blocks for each rank, or of each rank's blocks, such as 0,5,1/2,0,3/4,4,0"""
    sizes_file: Path | Mapping[str, Any] | None
    """The same from a file (`-` for standard input): sizes between commas or white space, of an alltoall one line for each rank"""
    targets: int | str | Sequence[int | str] | None
    """Ranks that get the vector of a collective with targets, such as 1,3,5 of a multicast [default: all]"""
    top: int | str | None
    """Draw only so many algorithms in a plot (.svg), the fastest on average, besides schedules from files"""
    trials: int | str | None
    """Draw random --arrivals so often, and compare the mean, the 95th percentile and the longest time after the last arrival"""
    width: str | None
    """Width of a picture where it is shown, such as 84mm (mm, cm, in, pt or px)"""
    elements: int | None
    """Number of elements, in place of bytes"""
    p: int | None
    """Number of ranks"""
    progress: Progress
    """Whether to say how far it is, or who is told"""

class CompareMore(TypedDict, total=False):
    """Options of ``compare``."""

    alpha: float | str | None
    """Start-up time of a message [default: 1us]"""
    arrivals: Any | None
    """When ranks arrive: a file ({"arrivals": [0, 10, ..]}, or a CSV with a column arrivals), last:100us (the last rank is late), RANK:TIME,..., random:exp,20us (mean) or random:uniform,0,50us, with ,seed=1 at the end if wanted [default: none, all at time 0]"""
    beta: float | str | None
    """Time per byte of a message, or a bandwidth such as 10GB/s [default: 0.1ns]"""
    block: int | str | Sequence[int | str] | None
    """Average size of a block, for --dist; a range or list such as 1KiB..64KiB for a sweep of compare or simulate [default: 1000]"""
    deadline: float | str | None
    """How long a rank waits for a partner before the measurement ends in an error [default: 10s]"""
    dist: str | Sequence[str] | None
    """Sizes from a distribution: same, random, random-decreasing, random-increasing, bucket, spikes, decreasing, increasing, alternating, skewed, two-blocks, mod3; from several for a sweep of compare or simulate"""
    dtype: Any | None
    """Type of the elements; without it an element is one byte"""
    eager: int | str | None
    """Messages whose senders do not wait for their receivers: none, all, or those up to a size [default: none]"""
    engine: Literal["threads", "mpi"] | None
    """Measure, too: on threads, or on the processes that mpirun or srun started [default: model times alone; mpi if they did]"""
    gamma: float | str | None
    """Time per byte combined [default: 0]"""
    gamma_copy: float | str | None
    """Time per byte copied locally [default: 0]"""
    inputs: Literal["rewritten", "kept"] | None
    """Write the inputs anew before each repetition, or keep them where they are, as the benchmarks of OSU and NCCL do: messages are then read from warm caches"""
    late: float | str | Sequence[float | str] | None
    """Delay one rank by each of these times, such as 0..1ms (17 of them) or 0,10us,100us; reports the worst and the best choice of that rank, counted from its arrival"""
    latency: float | str | None
    """Time from the start of a message at its sender to its start at its receiver, which keeps no port [default: 0]"""
    node_ports: int | str | None
    """Number of ports of each kind that a node has, through which all messages between nodes pass: out and in, also where ranks have telephone ports [default: those of its ranks]"""
    nodes: int | str | None
    """Number of nodes, of consecutive ranks [default: the nodes that --costs shows]"""
    op: Literal["sum", "prod", "min", "max", "band", "bor", "bxor", "land", "lor", "lxor", "minloc", "maxloc", "affine"] | None
    """Operator of reductions; affine maps (u64) do not commute, so operand order is then kept [default: sum]"""
    ordered: bool | None
    """Keep operand order even though the operator commutes"""
    output: Path | Sequence[Path] | None
    """Write the table to FILE.csv, .md or .tex, all numbers to .json, the plot to .svg, a page with it to .html; may be repeated. With a CSV file the same command goes on where it stopped"""
    overlap: bool | None
    """Let computation overlap communication"""
    plain: bool | None
    """Leave out the words around a picture: title, what it shows, and at its foot version, date and command line; of a page the foot only"""
    ported: int | str | None
    """Number of ports of each kind that a rank has [default: 1]"""
    profile: Path | Mapping[str, Any] | None
    """Costs from a profile that `calibrate -o` wrote, by level if it has levels; --alpha, --beta, --gamma and --gamma-copy still override it"""
    repetitions: int | str | None
    """Number of timed repetitions of each algorithm [default: 30]"""
    rho: int | str | None
    """How uneven: size and rarity of spikes, number of large skewed blocks, for --dist [default: 5]"""
    rules: Path | Mapping[str, Any] | None
    """Let these selection rules (from `tune --rules`) choose algorithm and segment size"""
    same_bits: bool | str | None
    """Take only schedules that give all ranks of an allreduce the same bits of a sum of floats; with =tree those that add all elements in one tree, in a sweep the same for all sizes"""
    schedule: Path | Mapping[str, Any] | Sequence[Path | Mapping[str, Any]] | None
    """Read the schedule from a JSON file instead (`-` for standard input); with --bytes at any multiple of its size. NAME=FILE gives it a name, as the field "name" in the file does; {p} in the file's name stands for the number of ranks. Where a command takes several, list them, or give a folder of .json files. With a COLLECTIVE, the files must perform that one"""
    seed: int | str | None
    """Where random sizes start from, for --dist [default: 1]"""
    segment: int | str | None
    """Size of a segment; the last may be smaller; the algorithm chosen is then one that segments, if any does [default: the best for the cost model]"""
    segment_sizes: int | str | Sequence[int | str] | None
    """Sizes of all segments, such as 6KiB,4KiB,4KiB, in the order in which a reduction takes them: a broadcast that is planned as a reduction backwards starts with the last of them"""
    show: Literal["time", "ratio", "bound", "bandwidth"] | None
    """What a plot (.svg) shows [default: time]. A table for papers (.md, .tex) has a row for each number of ranks then, a column for each size: of schedules from files, of the algorithms named by -a, or else of what leads"""
    sizes: int | str | Sequence[int | str] | None
    """Size of each rank's block, in rank order, such as 1KiB,0,2KiB; of an alltoall the blocks for each rank, or of each rank's blocks, such as 0,5,1/2,0,3/4,4,0"""
    sizes_file: Path | Mapping[str, Any] | None
    """The same from a file (`-` for standard input): sizes between commas or white space, of an alltoall one line for each rank"""
    targets: int | str | Sequence[int | str] | None
    """Ranks that get the vector of a collective with targets, such as 1,3,5 of a multicast [default: all]"""
    top: int | str | None
    """Draw only so many algorithms in a plot (.svg), the fastest on average, besides schedules from files"""
    trials: int | str | None
    """Draw random --arrivals so often, and compare the mean, the 95th percentile and the longest time after the last arrival"""
    width: str | None
    """Width of a picture where it is shown, such as 84mm (mm, cm, in, pt or px)"""

class DrawOptions(TypedDict, total=False):
    """Options of ``draw``."""

    algorithm: str | None
    """The algorithm; of several, or with `auto` of all, the one with the least model time is taken"""
    alpha: float | str | None
    """Start-up time of a message [default: 1us]"""
    arrivals: Any | None
    """When ranks arrive: a file ({"arrivals": [0, 10, ..]}, or a CSV with a column arrivals), last:100us (the last rank is late), RANK:TIME,..., random:exp,20us (mean) or random:uniform,0,50us, with ,seed=1 at the end if wanted [default: none, all at time 0]"""
    beta: float | str | None
    """Time per byte of a message, or a bandwidth such as 10GB/s [default: 0.1ns]"""
    block: int | str | Sequence[int | str] | None
    """Average size of a block, for --dist; a range or list such as 1KiB..64KiB for a sweep of compare or simulate [default: 1000]"""
    bytes: int | str | Sequence[int | str] | None
    """Size of one rank's block of gather, scatter, allgather and alltoall, of the vector of the other collectives; where a command takes several, 8..4MiB doubles, 8..4MiB*4 goes on by a factor of 4, and 8,1KiB lists [default: 64KiB]"""
    costs: Costs | None
    """Costs of each pair of ranks, from a JSON file `{"alpha": [[..]], "beta": [[..]], "gamma": [..], "gamma_copy": [..]}`, null where there is no link; or from a profile with pairs (`calibrate --pairs`) or with levels"""
    critical_path: bool | None
    """Frame the critical path in a Gantt chart: steps that end later if one of them does"""
    dark: bool | None
    """Colours for a dark background; for pictures only, since a page follows the browser"""
    dist: str | Sequence[str] | None
    """Sizes from a distribution: same, random, random-decreasing, random-increasing, bucket, spikes, decreasing, increasing, alternating, skewed, two-blocks, mod3; from several for a sweep of compare or simulate"""
    dtype: Any | None
    """Type of the elements; without it an element is one byte"""
    eager: int | str | None
    """Messages whose senders do not wait for their receivers: none, all, or those up to a size [default: none]"""
    gamma: float | str | None
    """Time per byte combined [default: 0]"""
    gamma_copy: float | str | None
    """Time per byte copied locally [default: 0]"""
    latency: float | str | None
    """Time from the start of a message at its sender to its start at its receiver, which keeps no port [default: 0]"""
    node_ports: int | str | None
    """Number of ports of each kind that a node has, through which all messages between nodes pass: out and in, also where ranks have telephone ports [default: those of its ranks]"""
    nodes: int | str | None
    """Number of nodes, of consecutive ranks [default: the nodes that --costs shows]"""
    op: Literal["sum", "prod", "min", "max", "band", "bor", "bxor", "land", "lor", "lxor", "minloc", "maxloc", "affine"] | None
    """Operator of reductions; affine maps (u64) do not commute, so operand order is then kept [default: sum]"""
    ordered: bool | None
    """Keep operand order even though the operator commutes"""
    output: Path | None
    """Write to this file (.svg, .html for a page, or .json for a trace), all at once, instead of standard output"""
    overlap: bool | None
    """Let computation overlap communication"""
    plain: bool | None
    """Leave out the words around a picture: title, what it shows, and at its foot version, date and command line; of a page the foot only"""
    ported: int | str | None
    """Number of ports of each kind that a rank has [default: 1]"""
    ports: Literal["uni", "bi", "telephone"] | None
    """Ports of a rank: uni (one for both directions), bi (one out, one in) or telephone (both directions, but one partner at a time) [default: bi]"""
    profile: Path | Mapping[str, Any] | None
    """Costs from a profile that `calibrate -o` wrote, by level if it has levels; --alpha, --beta, --gamma and --gamma-copy still override it"""
    rho: int | str | None
    """How uneven: size and rarity of spikes, number of large skewed blocks, for --dist [default: 5]"""
    root: int | str | None
    """The root, or `free` to let the algorithm choose it where it can"""
    rules: Path | Mapping[str, Any] | None
    """Let these selection rules (from `tune --rules`) choose algorithm and segment size"""
    same_bits: bool | str | None
    """Take only schedules that give all ranks of an allreduce the same bits of a sum of floats; with =tree those that add all elements in one tree, in a sweep the same for all sizes"""
    seed: int | str | None
    """Where random sizes start from, for --dist [default: 1]"""
    segment: int | str | None
    """Size of a segment; the last may be smaller; the algorithm chosen is then one that segments, if any does [default: the best for the cost model]"""
    segment_sizes: int | str | Sequence[int | str] | None
    """Sizes of all segments, such as 6KiB,4KiB,4KiB, in the order in which a reduction takes them: a broadcast that is planned as a reduction backwards starts with the last of them"""
    segments: int | str | None
    """Number of segments, or `unequal` to search for the best sizes, unequal ones included; the algorithm chosen is then one that segments, if any does"""
    sizes: int | str | Sequence[int | str] | None
    """Size of each rank's block, in rank order, such as 1KiB,0,2KiB; of an alltoall the blocks for each rank, or of each rank's blocks, such as 0,5,1/2,0,3/4,4,0"""
    sizes_file: Path | Mapping[str, Any] | None
    """The same from a file (`-` for standard input): sizes between commas or white space, of an alltoall one line for each rank"""
    targets: int | str | Sequence[int | str] | None
    """Ranks that get the vector of a collective with targets, such as 1,3,5 of a multicast [default: all]"""
    trace: Path | None
    """Write a trace for Perfetto to this file (.json), all at once; without -o and --as there is no picture then"""
    width: str | None
    """Width of a picture where it is shown, such as 84mm (mm, cm, in, pt or px)"""
    elements: int | None
    """Number of elements, in place of bytes"""
    p: int | None
    """Number of ranks"""
    progress: Progress
    """Whether to say how far it is, or who is told"""

class TuneMore(TypedDict, total=False):
    """Options of ``tune``."""

    alpha: float | str | None
    """Start-up time of a message [default: 1us]"""
    beta: float | str | None
    """Time per byte of a message, or a bandwidth such as 10GB/s [default: 0.1ns]"""
    clock: Literal["native", "paced"] | None
    """Run flat out, or at the pace of the cost model"""
    cores: int | str | Sequence[int | str] | None
    """Cores to pin the ranks to, in turn, such as 0,2,4 or 0-3 [default: all]"""
    csv: Path | None
    """Write all rows as CSV, and continue the sweep that it holds"""
    dtype: Any | None
    """Type of the elements [default: u8, or the first that --op combines]"""
    engine: Literal["threads", "mpi"] | None
    """Run ranks as threads, or as the processes that mpirun or srun started [default: mpi if they did]"""
    export: str | Sequence[str] | None
    """Write the selection file of an MPI library, from times over MPI or else model times: openmpi, openmpi-json (from version 6 on), mpich (from 4.1 on) or intel (to be sourced). Over MPI it names an algorithm only where that beats the library's own choice, as is measured, by more than --tolerance; elsewhere the library decides"""
    factor: int | str | None
    """Factor from one size of a range to the next"""
    gamma: float | str | None
    """Time per byte combined [default: 0]"""
    gamma_copy: float | str | None
    """Time per byte copied locally [default: 0]"""
    html: Path | None
    """Write a page with plots to hover over"""
    inputs: Literal["rewritten", "kept"] | None
    """Write the inputs anew before each repetition, or keep them where they are, as the benchmarks of OSU and NCCL do: messages are then read from warm caches"""
    op: Literal["sum", "prod", "min", "max", "band", "bor", "bxor", "land", "lor", "lxor", "minloc", "maxloc", "affine"] | None
    """Operator of reductions; affine maps (u64) do not commute, so operand order is then kept [default: sum]"""
    ordered: bool | None
    """Keep operand order even though the operator commutes"""
    output: Path | Sequence[Path] | None
    """Write the table to FILE.csv, .md or .tex, all numbers to .json, the plot to .svg, a page with it to .html; may be repeated. With a CSV file the same command goes on where it stopped"""
    overlap: bool | None
    """Let computation overlap communication"""
    plain: bool | None
    """Leave out the words around a picture: title, what it shows, and at its foot version, date and command line; of a page the foot only"""
    ported: int | str | None
    """Number of ports of each kind that a rank has [default: 1]"""
    ports: Literal["uni", "bi", "telephone"] | None
    """Ports of a rank: uni (one for both directions), bi (one out, one in) or telephone (both directions, but one partner at a time) [default: bi]"""
    profile: Path | Mapping[str, Any] | None
    """Costs from a profile that `calibrate -o` wrote, by level if it has levels; --alpha, --beta, --gamma and --gamma-copy still override it"""
    restart: bool | None
    """Begin anew, whatever the CSV file holds"""
    root: int | str | None
    """The root, or `free` to let the algorithm choose it where it can"""
    rules: Path | None
    """Write which algorithm and segment size to choose when, for `--rules` of run, simulate, plan and check; rules for other settings in the file stay"""
    same_bits: bool | str | None
    """Take only algorithms that give all ranks of an allreduce the same bits of a sum of floats; with =tree those that add all elements in one tree, the same for all sizes: the one with the least total of measured times"""
    segments: Literal["powers"] | None
    """Sizes of segments to try, instead of those around the best: `powers`, all powers of two in elements, and the whole vector"""
    show: Literal["time", "ratio", "bound", "bandwidth"] | None
    """What a plot (.svg) shows [default: time]. A table for papers (.md, .tex) has a row for each number of ranks then, a column for each size: of schedules from files, of the algorithms named by -a, or else of what leads"""
    tolerance: float | str | None
    """Difference between two times that does not matter, in percent"""
    top: int | str | None
    """Draw only so many algorithms in a plot (.svg), the fastest on average, besides schedules from files"""
    verify: Path | Mapping[str, Any] | None
    """Over MPI, instead of a sweep: measure the library's own function again, in turns with the best rows of the sweep that --csv wrote to this file, and say where it has become faster or slower. Give the library the exported file, and otherwise the same options as before. With --export, the file is written again with only the rules that have made it faster"""
    width: str | None
    """Width of a picture where it is shown, such as 84mm (mm, cm, in, pt or px)"""
    elements: int | None
    """Number of elements, in place of bytes"""

class GuidelinesMore(TypedDict, total=False):
    """Options of ``guidelines``."""

    alpha: float | str | None
    """Start-up time of a message [default: 1us]"""
    arrivals: Any | None
    """When ranks arrive: a file ({"arrivals": [0, 10, ..]}, or a CSV with a column arrivals), last:100us (the last rank is late), RANK:TIME,..., random:exp,20us (mean) or random:uniform,0,50us, with ,seed=1 at the end if wanted [default: none, all at time 0]"""
    beta: float | str | None
    """Time per byte of a message, or a bandwidth such as 10GB/s [default: 0.1ns]"""
    budget: float | str | None
    """About how long to measure in all, after a calibration (seconds, or with a unit)"""
    deadline: float | str | None
    """How long a rank waits for a partner before a measurement ends in an error"""
    dist: str | None
    """Sizes of the blocks of gatherv and alltoallv, of which SIZE is the sum on average: one of the distributions of --dist of compare [default: equal blocks]"""
    eager: int | str | None
    """Messages whose senders do not wait for their receivers: none, all, or those up to a size [default: none]"""
    engine: Literal["threads", "mpi"] | None
    """Measure on threads, or on the processes that mpirun or srun started [default: mpi if they did]"""
    gamma: float | str | None
    """Time per byte combined [default: 0]"""
    gamma_copy: float | str | None
    """Time per byte copied locally [default: 0]"""
    inputs: Literal["rewritten", "kept"] | None
    """Write the inputs anew before each repetition, or keep them where they are, as the benchmarks of OSU and NCCL do: messages are then read from warm caches"""
    latency: float | str | None
    """Time from the start of a message at its sender to its start at its receiver, which keeps no port [default: 0]"""
    only: Literal["violated"] | None
    """Show only these rows"""
    output: Path | Sequence[Path] | None
    """Write what is shown to FILE.csv, .md, .tex or .json, a plot of left sides over right sides to .svg, a page with both to .html; may be repeated"""
    overlap: bool | None
    """Let computation overlap communication"""
    paced: bool | None
    """Measure too, at the pace of the cost model [default costs: 200us, 1ns per byte]"""
    ported: int | str | None
    """Number of ports of each kind that a rank has [default: 1]"""
    ports: Literal["uni", "bi", "telephone"] | None
    """Ports of a rank: uni (one for both directions), bi (one out, one in) or telephone (both directions, but one partner at a time) [default: bi]"""
    profile: Path | Mapping[str, Any] | None
    """Costs from a profile that `calibrate -o` wrote, by level if it has levels; --alpha, --beta, --gamma and --gamma-copy still override it"""
    repetitions: int | str | None
    """Repetitions of each measured call; at least 6 give confidence intervals [default: what fits into some milliseconds]"""
    rho: int | str | None
    """How uneven, for --dist [default: 5]"""
    seed: int | str | None
    """Where random sizes start from, for --dist [default: 1]"""
    tolerance: float | str | None
    """By how much a left side may be slower, in percent [default: 0 in the model, 10 when measured]"""

class CalibrateMore(TypedDict, total=False):
    """Options of ``calibrate``."""

    cores: int | str | Sequence[int | str] | None
    """The two cores to measure, or more with --pairs, such as 0,2 or 0-3 [default: the first two; with --pairs all]"""
    engine: Literal["threads", "mpi"] | None
    """Measure between threads of this process, or between the processes that mpirun or srun started [default: mpi if started by a launcher]"""
    force: bool | None
    """Take the profile even if it is noisy, or off by half at some size"""
    inputs: Literal["rewritten", "kept"] | None
    """Write the inputs anew before each repetition, or keep them where they are, as the benchmarks of OSU and NCCL do: messages are then read from warm caches"""
    latency: bool | None
    """Measure, too, which part of a message's start-up time keeps no port, as half a ping-pong less what a message of a burst keeps its sender busy: alpha then leaves it out"""
    output: Path | None
    """Write the profile to a file"""
    pairs: bool | None
    """Measure every pair of cores, or of processes: the profile then has matrices, which --costs takes as well"""

class SynthesizeOptions(TypedDict, total=False):
    """Options of ``synthesize``."""

    budget: float | str | None
    """Time for the search, for each entry with --table, such as 10s"""
    graph: Path | Mapping[str, Any] | None
    """Who may send to whom: a JSON file [default: all to all]"""
    items: int | str | None
    """A message carries one item, of as many as this in a vector or block [default: all that is known]"""
    output: Path | None
    """Write the schedule, or the table (.md, .html), to this file"""
    ported: int | str | None
    """Number of ports of each kind that a rank has"""
    ports: Literal["uni", "bi", "telephone"] | None
    """Ports of a rank: uni (one for both directions), bi (one out, one in) or telephone (both directions, but one partner at a time)"""
    proof: Path | None
    """Write the formula that one round less would satisfy to NAME.cnf (DIMACS), and the proof that it cannot to NAME.drat; with --steps NAME.1.cnf and so on, for each way to divide the rounds"""
    root: int | str | None
    """The root"""
    rounds: int | str | None
    """Decide about this number of rounds alone"""
    same_bits: bool | None
    """Give all ranks of an allreduce the same bits of a sum of floats: one tree of all ranks. With --items 1 trees of all shapes are tried"""
    steps: int | str | None
    """Divide the rounds among this many steps: what arrives is passed on in a later step (SCCL)"""
    table: bool | None
    """All collectives and port models: the optimum and the best algorithm of the registry"""
    targets: int | str | Sequence[int | str] | None
    """Ranks that get the vector of a collective with targets, such as a multicast"""
    telephone: bool | None
    """As --ports telephone: a rank has one partner in a round, and both may send"""
    progress: Progress
    """Whether to say how far it is, or who is told"""

class SteadyOptions(TypedDict, total=False):
    """Options of ``steady``."""

    bytes: int | str | None
    """With --costs, the length of a message, such as 64KiB"""
    certificate: Path | None
    """Write the certificate that no schedule is faster to this file, for anybody to check: prices of links and ports, and what proves that no operation costs less than 1"""
    costs: Costs | None
    """Make the platform of a cost file, or of a profile with pairs (calibrate --pairs) or with levels: a node for each rank"""
    draw: Path | None
    """Draw the platform, with the share of the time that each link is busy"""
    drift: float | str | None
    """By what part each cost may grow (1/10, 0.1): what throughput is still guaranteed"""
    elements: int | str | None
    """Elements of a message [default: as many as are needed to cut it exactly, 4096 at most]"""
    gantt: Path | None
    """Draw one period as a Gantt chart, or write it as a trace for Perfetto (.json)"""
    generate: str | None
    """Make a platform: complete:N, ring:N, grid:AxB, tree:N, star:N, random:N:M, clustered:AxB, fig3"""
    max_period: float | str | None
    """Longest period in time units; rates are rounded to fit"""
    max_trees: int | str | None
    """Most trees (or other routes) that a period may use: the best ones found, starting from the best single tree"""
    messages: int | str | None
    """Number of operations of the schedule [default: enough to come close to the throughput]"""
    overlap: bool | None
    """For reductions and scans, nodes combine while they communicate"""
    plain: bool | None
    """Leave out the words around a picture: title, what it shows, and at its foot version, date and command line; of a page the foot only"""
    ports: Literal["uni", "bi", "telephone"] | None
    """Ports of a node: uni (one for both directions) or bi (one out, one in)"""
    robust: bool | None
    """With --drift, the schedule that guarantees most, planned and timed with the worst costs"""
    run: bool | None
    """Run the schedule on threads with real data, at the platform's pace, and verify it"""
    seed: int | str | None
    """What is random in it"""
    size: float | str | None
    """Cut one message of this size (1: a message of the platform's costs) into packets, and find out how many are best"""
    time_unit: float | str | None
    """With --run, how long a time unit lasts in microseconds [default: long enough for the threads to keep pace]"""
    verify: bool | None
    """Compute the throughput by all other methods, too, and compare (takes longer; for broadcasts and reductions with bi ports on few nodes, the polynomial program is always compared)"""
    width: str | None
    """Width of a picture where it is shown, such as 84mm (mm, cm, in, pt or px)"""
