//! The table of all guidelines.

use super::{By, Call, Guideline, Scaling, Size};
use oneport::schedule::collective::Kind;

/// Returns all guidelines: first those within one collective, then those between different ones.
pub fn all() -> impl Iterator<Item = &'static Guideline> {
    WITHIN.iter().flatten().chain(BETWEEN)
}

const fn best(kind: Kind, size: Size) -> Call {
    Call {
        kind,
        by: By::Best,
        size,
        scaling: Scaling::Once,
        times_ranks: 1,
        for_each_rank: false,
        free_computation: false,
    }
}

const fn scaled(scaling: Scaling, call: Call) -> Call {
    Call { scaling, ..call }
}

const fn twice_the_ranks(call: Call) -> Call {
    Call {
        times_ranks: 2,
        ..call
    }
}

const fn by(by: By, call: Call) -> Call {
    Call { by, ..call }
}

const fn free(call: Call) -> Call {
    Call {
        free_computation: true,
        ..call
    }
}

/// The guidelines within one collective.
macro_rules! within {
    ($kind:ident, $name:literal, $size:ident) => {
        [
            Guideline {
                name: concat!($name, "(m) <= ", $name, "(2m)"),
                left: &[best(Kind::$kind, Size::$size)],
                right: &[scaled(Scaling::Twice, best(Kind::$kind, Size::$size))],
                statement: "less data does not take longer: it could be padded",
            },
            Guideline {
                name: concat!($name, "(m) <= 2 ", $name, "(m/2)"),
                left: &[best(Kind::$kind, Size::$size)],
                right: &[
                    scaled(Scaling::FirstHalf, best(Kind::$kind, Size::$size)),
                    scaled(Scaling::SecondHalf, best(Kind::$kind, Size::$size)),
                ],
                statement: "one call does not take longer than one call for each half of the data",
            },
            Guideline {
                name: concat!($name, "(p) <= ", $name, "(2p)"),
                left: &[best(Kind::$kind, Size::$size)],
                right: &[twice_the_ranks(best(Kind::$kind, Size::$size))],
                statement: "fewer ranks do not take longer for vectors or blocks of the same size",
            },
        ]
    };
}

static WITHIN: [[Guideline; 3]; 10] = [
    within!(Broadcast, "broadcast", All),
    within!(Reduce, "reduce", All),
    within!(Allreduce, "allreduce", All),
    within!(Gather, "gather", Share),
    within!(Scatter, "scatter", Share),
    within!(Allgather, "allgather", Share),
    within!(ReduceScatter, "reduce_scatter", Shares),
    within!(Alltoall, "alltoall", Share),
    within!(Scan, "scan", All),
    within!(Exscan, "exscan", All),
];

const BROADCAST: Call = best(Kind::Broadcast, Size::All);
const REDUCE: Call = best(Kind::Reduce, Size::All);
const ALLREDUCE: Call = best(Kind::Allreduce, Size::All);
const GATHER: Call = best(Kind::Gather, Size::Share);
const SCATTER: Call = best(Kind::Scatter, Size::Share);
const ALLGATHER: Call = best(Kind::Allgather, Size::Share);
const REDUCE_SCATTER: Call = best(Kind::ReduceScatter, Size::Shares);
const BARRIER: Call = best(Kind::Barrier, Size::One);
const ALLTOALL: Call = best(Kind::Alltoall, Size::Share);
const ALLGATHER_OF_VECTORS: Call = best(Kind::Allgather, Size::All);

static BETWEEN: &[Guideline] = &[
    Guideline {
        name: "broadcast <= binomial",
        left: &[BROADCAST],
        right: &[by(By::Whole("binomial"), BROADCAST)],
        statement: "what is chosen does not take longer than the plain tree",
    },
    Guideline {
        name: "broadcast <= unsegmented chain",
        left: &[BROADCAST],
        right: &[by(By::Whole("chain"), BROADCAST)],
        statement: "what is chosen does not take longer than passing the whole vector on",
    },
    Guideline {
        name: "reduce <= binomial",
        left: &[REDUCE],
        right: &[by(By::Whole("binomial"), REDUCE)],
        statement: "what is chosen does not take longer than the plain tree",
    },
    Guideline {
        name: "reduce <= unsegmented chain",
        left: &[REDUCE],
        right: &[by(By::Whole("chain"), REDUCE)],
        statement: "what is chosen does not take longer than passing the whole vector on",
    },
    Guideline {
        name: "broadcast <= reduce",
        left: &[BROADCAST],
        right: &[REDUCE],
        statement: "a reduction run backwards is a broadcast, and combines nothing",
    },
    Guideline {
        name: "reduce, gamma = 0 <= broadcast",
        left: &[free(REDUCE)],
        right: &[BROADCAST],
        statement: "a broadcast run backwards is a reduction, which takes no longer if combining is free",
    },
    Guideline {
        name: "broadcast <= scatter + allgather",
        left: &[BROADCAST],
        right: &[SCATTER, ALLGATHER],
        statement: "the root can deal out the vector, and all ranks gather it",
    },
    Guideline {
        name: "broadcast <= allreduce",
        left: &[BROADCAST],
        right: &[ALLREDUCE],
        statement: "all ranks but the root can contribute zeros",
    },
    Guideline {
        name: "reduce <= allreduce",
        left: &[REDUCE],
        right: &[ALLREDUCE],
        statement: "all ranks but the root can drop the result",
    },
    Guideline {
        name: "reduce <= reduce_scatter + gather",
        left: &[best(Kind::Reduce, Size::Shares)],
        right: &[REDUCE_SCATTER, GATHER],
        statement: "the root can gather the blocks of the result",
    },
    Guideline {
        name: "allreduce <= reduce + broadcast",
        left: &[ALLREDUCE],
        right: &[REDUCE, BROADCAST],
        statement: "the root can send the result to all ranks",
    },
    Guideline {
        name: "allreduce <= reduce_scatter + allgather",
        left: &[best(Kind::Allreduce, Size::Shares)],
        right: &[REDUCE_SCATTER, ALLGATHER],
        statement: "all ranks can gather the blocks of the result",
    },
    Guideline {
        name: "reduce_scatter <= reduce + scatter",
        left: &[REDUCE_SCATTER],
        right: &[best(Kind::Reduce, Size::Shares), SCATTER],
        statement: "the root can deal out the result",
    },
    Guideline {
        name: "reduce_scatter <= allreduce",
        left: &[REDUCE_SCATTER],
        right: &[best(Kind::Allreduce, Size::Shares)],
        statement: "every rank can keep its block of the result alone",
    },
    Guideline {
        name: "gather <= allgather",
        left: &[GATHER],
        right: &[ALLGATHER],
        statement: "all ranks but the root can drop the blocks",
    },
    Guideline {
        name: "gather <= reduce",
        left: &[GATHER],
        right: &[best(Kind::Reduce, Size::Shares)],
        statement: "every rank can contribute its block among zeros",
    },
    Guideline {
        name: "scatter <= broadcast",
        left: &[SCATTER],
        right: &[best(Kind::Broadcast, Size::Shares)],
        statement: "every rank can keep its block alone",
    },
    Guideline {
        name: "allgather <= gather + broadcast",
        left: &[ALLGATHER],
        right: &[GATHER, best(Kind::Broadcast, Size::Shares)],
        statement: "the root can send all blocks to all ranks",
    },
    Guideline {
        name: "allgather <= alltoall",
        left: &[ALLGATHER],
        right: &[ALLTOALL],
        statement: "every rank can send the same block to all ranks",
    },
    Guideline {
        name: "allgather <= allreduce",
        left: &[ALLGATHER],
        right: &[best(Kind::Allreduce, Size::Shares)],
        statement: "every rank can contribute its block among zeros",
    },
    Guideline {
        name: "gather <= gatherv",
        left: &[GATHER],
        right: &[by(By::Irregular, GATHER)],
        statement: "equal blocks can be gathered as if they were not",
    },
    Guideline {
        name: "gatherv <= allreduce(1) + gather(max)",
        left: &[by(By::Irregular, GATHER)],
        right: &[best(Kind::Allreduce, Size::One), GATHER],
        statement: "ranks can agree on the largest block and pad all others to its size",
    },
    Guideline {
        name: "barrier(p) <= barrier(2p)",
        left: &[BARRIER],
        right: &[twice_the_ranks(BARRIER)],
        statement: "fewer ranks do not take longer to meet",
    },
    Guideline {
        name: "barrier <= allreduce(1)",
        left: &[BARRIER],
        right: &[best(Kind::Allreduce, Size::One)],
        statement: "no rank has the result before all have entered",
    },
    Guideline {
        name: "barrier <= gather(1) + broadcast(1)",
        left: &[BARRIER],
        right: &[
            best(Kind::Gather, Size::One),
            best(Kind::Broadcast, Size::One),
        ],
        statement: "one rank can hear of all others and tell them",
    },
    Guideline {
        name: "alltoall <= gather to each rank",
        left: &[ALLTOALL],
        right: &[Call {
            for_each_rank: true,
            ..GATHER
        }],
        statement: "the ranks can gather their blocks one after another",
    },
    Guideline {
        name: "alltoall(m) <= allgather(p m)",
        left: &[ALLTOALL],
        right: &[best(Kind::Allgather, Size::Shares)],
        statement: "all ranks can gather all blocks, and keep theirs alone",
    },
    Guideline {
        name: "alltoall <= alltoallv",
        left: &[ALLTOALL],
        right: &[by(By::Irregular, ALLTOALL)],
        statement: "equal blocks can be sent as if they were not",
    },
    Guideline {
        name: "alltoallv <= alltoall",
        left: &[by(By::Irregular, ALLTOALL)],
        right: &[ALLTOALL],
        statement: "blocks whose sizes could differ do not take longer if they are equal",
    },
    Guideline {
        name: "scan, gamma = 0 <= allgather",
        left: &[free(best(Kind::Scan, Size::All))],
        right: &[ALLGATHER_OF_VECTORS],
        statement: "all ranks can gather all vectors, and combine those that they need",
    },
    Guideline {
        name: "exscan, gamma = 0 <= allgather",
        left: &[free(best(Kind::Exscan, Size::All))],
        right: &[ALLGATHER_OF_VECTORS],
        statement: "all ranks can gather all vectors, and combine those that they need",
    },
];
