//! Which algorithm here corresponds to which of a library.

use oneport::schedule::collective::Kind;

pub(super) struct Family {
    pub(super) kind: Kind,
    /// Number in Open MPI's classic file.
    pub(super) id: u32,
    pub(super) name: &'static str,
    /// Whether sizes are multiplied by the number of ranks.
    pub(super) of_all: bool,
    /// Number, name, and the algorithm here.
    pub(super) algorithms: Vec<(u32, &'static str, &'static str)>,
}

impl Family {
    /// Finds the collective in the table of a library: `KIND ID NAME [of all]`, then for each of
    /// its algorithms `  NUMBER NAME = ALGORITHM`.
    pub(super) fn find(table: &'static str, kind: Kind) -> Option<Family> {
        let mut lines = table.lines();
        let head = lines.find_map(|line| line.strip_prefix(kind.name())?.strip_prefix(' '))?;
        let (id, name) = head.split_once(' ')?;
        let algorithms = lines.map_while(|line| line.strip_prefix("  "));
        let algorithm = |line: &'static str| {
            let (number, line) = line.split_once(' ')?;
            let (name, here) = line.rsplit_once(" = ")?;
            Some((number.parse().ok()?, name, here))
        };
        Some(Family {
            kind,
            id: id.parse().ok()?,
            name: name.trim_end_matches(" of all"),
            of_all: name.ends_with(" of all"),
            algorithms: algorithms.map(algorithm).collect::<Option<_>>()?,
        })
    }
}

pub(super) const OPEN_MPI: &str = "\
broadcast 7 bcast
  1 basic_linear = linear
  3 pipeline = chain
  4 split_binary_tree = split-binary
  5 binary_tree = binary
  6 binomial = binomial
  8 scatter_allgather = van-de-geijn
  9 scatter_allgather_ring = van-de-geijn-ring
reduce 11 reduce
  1 linear = linear
  3 pipeline = chain
  4 binary = binary
  5 binomial = binomial
  7 rabenseifner = butterfly
allreduce 2 allreduce
  3 recursive_doubling = recursive-doubling
  4 ring = ring
  5 segmented_ring = segmented-ring
  6 rabenseifner = rabenseifner
allgather 0 allgather of all
  1 linear = linear
  2 bruck-k-fanout = bruck
  3 recursive_doubling = recursive-doubling
  4 ring = ring
  5 neighbor = neighbor-exchange
  7 sparbit = sparbit
reduce_scatter 12 reduce_scatter
  2 recursive_halving = recursive-halving
  3 ring = ring
alltoall 3 alltoall of all
  2 pairwise = pairwise
  3 modified_bruck = bruck
gather 9 gather of all
  1 basic_linear = linear
  2 binomial = oblivious
scatter 15 scatter of all
  1 basic_linear = linear
  2 binomial = oblivious
";

pub(super) const INTEL: &str = "\
broadcast 0 BCAST
  1 binomial = binomial
  2 recursive doubling = van-de-geijn
  3 ring = van-de-geijn-ring
reduce 0 REDUCE
  2 binomial = binomial
  5 Rabenseifner's = butterfly
allreduce 0 ALLREDUCE
  1 recursive doubling = recursive-doubling
  2 Rabenseifner's = rabenseifner
  8 ring = ring
allgather 0 ALLGATHER
  1 recursive doubling = recursive-doubling
  2 Bruck's = bruck
  3 ring = ring
reduce_scatter 0 REDUCE_SCATTER
  1 recursive halving = recursive-halving
  2 pair wise exchange = all-pairs
alltoall 0 ALLTOALL
  1 Bruck's = bruck
  3 pair wise exchange = pairwise
gather 0 GATHER
  1 binomial = oblivious
scatter 0 SCATTER
  1 binomial = oblivious
";

/// Names are expressions of [`mpich`](super::mpich): `auto` stands for what MPICH does without a
/// file, which is left to it where it needs properties that a call lacks.
pub(super) const MPICH: &str = "\
broadcast 0 bcast
  0 intra_tree tree_type=kary k=PEERS is_non_blocking=0 = linear
  0 intra_pipelined_tree tree_type=kary k=1 is_non_blocking=1 chunk_size=SEGMENT recv_pre_posted=0 = chain
  0 intra_pipelined_tree tree_type=kary k=2 is_non_blocking=1 chunk_size=SEGMENT recv_pre_posted=0 = binary
  0 intra_binomial = binomial
  0 intra_scatter_recursive_doubling_allgather = van-de-geijn
  0 intra_scatter_ring_allgather = van-de-geijn-ring
reduce 0 reduce
  0 intra_binomial = binomial
  0 is_op_built_in=no ? auto : count<pow2 ? auto : intra_reduce_scatter_gather = butterfly
allreduce 0 allreduce
  0 intra_recursive_doubling = recursive-doubling
  0 is_commutative=no ? auto : intra_ring = ring
  0 is_op_built_in=no ? auto : count<pow2 ? auto : intra_reduce_scatter_allgather = rabenseifner
allgather 0 allgather of all
  0 comm_size=pow2 ? intra_recursive_doubling : auto = recursive-doubling
  0 intra_brucks = bruck
  0 intra_ring = ring
reduce_scatter 0 reduce_scatter
  0 is_commutative=no ? auto : intra_recursive_halving = recursive-halving
  0 is_commutative=no ? auto : intra_pairwise = all-pairs
alltoall 0 alltoall
  0 is_sendbuf_inplace=yes ? auto : intra_brucks = bruck
  0 is_sendbuf_inplace=yes ? auto : intra_pairwise = pairwise
";
