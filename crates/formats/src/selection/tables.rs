//! Which algorithm here corresponds to which of a library.

use oneport::schedule::collective::Kind;

/// A collective of a library, and its algorithms: number, name, and the algorithm here.
pub(super) struct Family {
    pub(super) kind: Kind,
    /// Number in Open MPI's classic file.
    pub(super) id: u32,
    pub(super) name: &'static str,
    /// Whether sizes are multiplied by the number of ranks.
    pub(super) of_all: bool,
    pub(super) algorithms: &'static [(u32, &'static str, &'static str)],
}

pub(super) const OPEN_MPI: [Family; 8] = [
    Family {
        kind: Kind::Broadcast,
        id: 7,
        name: "bcast",
        of_all: false,
        algorithms: &[
            (1, "basic_linear", "linear"),
            (3, "pipeline", "chain"),
            (4, "split_binary_tree", "split-binary"),
            (5, "binary_tree", "binary"),
            (6, "binomial", "binomial"),
            (8, "scatter_allgather", "van-de-geijn"),
            (9, "scatter_allgather_ring", "van-de-geijn-ring"),
        ],
    },
    Family {
        kind: Kind::Reduce,
        id: 11,
        name: "reduce",
        of_all: false,
        algorithms: &[
            (1, "linear", "linear"),
            (3, "pipeline", "chain"),
            (4, "binary", "binary"),
            (5, "binomial", "binomial"),
            (7, "rabenseifner", "butterfly"),
        ],
    },
    Family {
        kind: Kind::Allreduce,
        id: 2,
        name: "allreduce",
        of_all: false,
        algorithms: &[
            (3, "recursive_doubling", "recursive-doubling"),
            (4, "ring", "ring"),
            (5, "segmented_ring", "segmented-ring"),
            (6, "rabenseifner", "rabenseifner"),
        ],
    },
    Family {
        kind: Kind::Allgather,
        id: 0,
        name: "allgather",
        of_all: true,
        algorithms: &[
            (1, "linear", "linear"),
            (2, "bruck-k-fanout", "bruck"),
            (3, "recursive_doubling", "recursive-doubling"),
            (4, "ring", "ring"),
            (5, "neighbor", "neighbor-exchange"),
            (7, "sparbit", "sparbit"),
        ],
    },
    Family {
        kind: Kind::ReduceScatter,
        id: 12,
        name: "reduce_scatter",
        of_all: false,
        algorithms: &[
            (2, "recursive_halving", "recursive-halving"),
            (3, "ring", "ring"),
        ],
    },
    Family {
        kind: Kind::Alltoall,
        id: 3,
        name: "alltoall",
        of_all: true,
        algorithms: &[(2, "pairwise", "pairwise"), (3, "modified_bruck", "bruck")],
    },
    Family {
        kind: Kind::Gather,
        id: 9,
        name: "gather",
        of_all: true,
        algorithms: &[(1, "basic_linear", "linear"), (2, "binomial", "oblivious")],
    },
    Family {
        kind: Kind::Scatter,
        id: 15,
        name: "scatter",
        of_all: true,
        algorithms: &[(1, "basic_linear", "linear"), (2, "binomial", "oblivious")],
    },
];

pub(super) const INTEL: [Family; 8] = [
    Family {
        kind: Kind::Broadcast,
        id: 0,
        name: "BCAST",
        of_all: false,
        algorithms: &[
            (1, "binomial", "binomial"),
            (2, "recursive doubling", "van-de-geijn"),
            (3, "ring", "van-de-geijn-ring"),
        ],
    },
    Family {
        kind: Kind::Reduce,
        id: 0,
        name: "REDUCE",
        of_all: false,
        algorithms: &[
            (2, "binomial", "binomial"),
            (5, "Rabenseifner's", "butterfly"),
        ],
    },
    Family {
        kind: Kind::Allreduce,
        id: 0,
        name: "ALLREDUCE",
        of_all: false,
        algorithms: &[
            (1, "recursive doubling", "recursive-doubling"),
            (2, "Rabenseifner's", "rabenseifner"),
            (8, "ring", "ring"),
        ],
    },
    Family {
        kind: Kind::Allgather,
        id: 0,
        name: "ALLGATHER",
        of_all: false,
        algorithms: &[
            (1, "recursive doubling", "recursive-doubling"),
            (2, "Bruck's", "bruck"),
            (3, "ring", "ring"),
        ],
    },
    Family {
        kind: Kind::ReduceScatter,
        id: 0,
        name: "REDUCE_SCATTER",
        of_all: false,
        algorithms: &[
            (1, "recursive halving", "recursive-halving"),
            (2, "pair wise exchange", "all-pairs"),
        ],
    },
    Family {
        kind: Kind::Alltoall,
        id: 0,
        name: "ALLTOALL",
        of_all: false,
        algorithms: &[
            (1, "Bruck's", "bruck"),
            (3, "pair wise exchange", "pairwise"),
        ],
    },
    Family {
        kind: Kind::Gather,
        id: 0,
        name: "GATHER",
        of_all: false,
        algorithms: &[(1, "binomial", "oblivious")],
    },
    Family {
        kind: Kind::Scatter,
        id: 0,
        name: "SCATTER",
        of_all: false,
        algorithms: &[(1, "binomial", "oblivious")],
    },
];

/// Names are expressions of [`mpich`](super::mpich): `auto` stands for what MPICH does without a
/// file, which is left to it where it needs properties that a call lacks.
pub(super) const MPICH: [Family; 6] = [
    Family {
        kind: Kind::Broadcast,
        id: 0,
        name: "bcast",
        of_all: false,
        algorithms: &[
            (
                0,
                "intra_tree tree_type=kary k=PEERS is_non_blocking=0",
                "linear",
            ),
            (
                0,
                "intra_pipelined_tree tree_type=kary k=1 is_non_blocking=1 chunk_size=SEGMENT \
                 recv_pre_posted=0",
                "chain",
            ),
            (
                0,
                "intra_pipelined_tree tree_type=kary k=2 is_non_blocking=1 chunk_size=SEGMENT \
                 recv_pre_posted=0",
                "binary",
            ),
            (0, "intra_binomial", "binomial"),
            (
                0,
                "intra_scatter_recursive_doubling_allgather",
                "van-de-geijn",
            ),
            (0, "intra_scatter_ring_allgather", "van-de-geijn-ring"),
        ],
    },
    Family {
        kind: Kind::Reduce,
        id: 0,
        name: "reduce",
        of_all: false,
        algorithms: &[
            (0, "intra_binomial", "binomial"),
            (
                0,
                "is_op_built_in=no ? auto : count<pow2 ? auto : intra_reduce_scatter_gather",
                "butterfly",
            ),
        ],
    },
    Family {
        kind: Kind::Allreduce,
        id: 0,
        name: "allreduce",
        of_all: false,
        algorithms: &[
            (0, "intra_recursive_doubling", "recursive-doubling"),
            (0, "is_commutative=no ? auto : intra_ring", "ring"),
            (
                0,
                "is_op_built_in=no ? auto : count<pow2 ? auto : intra_reduce_scatter_allgather",
                "rabenseifner",
            ),
        ],
    },
    Family {
        kind: Kind::Allgather,
        id: 0,
        name: "allgather",
        of_all: true,
        algorithms: &[
            (
                0,
                "comm_size=pow2 ? intra_recursive_doubling : auto",
                "recursive-doubling",
            ),
            (0, "intra_brucks", "bruck"),
            (0, "intra_ring", "ring"),
        ],
    },
    Family {
        kind: Kind::ReduceScatter,
        id: 0,
        name: "reduce_scatter",
        of_all: false,
        algorithms: &[
            (
                0,
                "is_commutative=no ? auto : intra_recursive_halving",
                "recursive-halving",
            ),
            (0, "is_commutative=no ? auto : intra_pairwise", "all-pairs"),
        ],
    },
    Family {
        kind: Kind::Alltoall,
        id: 0,
        name: "alltoall",
        of_all: false,
        algorithms: &[
            (0, "is_sendbuf_inplace=yes ? auto : intra_brucks", "bruck"),
            (
                0,
                "is_sendbuf_inplace=yes ? auto : intra_pairwise",
                "pairwise",
            ),
        ],
    },
];
