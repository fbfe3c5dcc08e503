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

/// A list of guidelines: of each its name, its two sides, and why the left one is not slower.
macro_rules! guidelines {
    ($($name:expr, $left:expr => $right:expr, $statement:literal;)*) => {
        [$(Guideline { name: $name, left: &$left, right: &$right, statement: $statement }),*]
    };
}

/// The guidelines within one collective.
macro_rules! within {
    ($kind:ident, $name:literal, $size:ident) => {{
        const CALL: Call = best(Kind::$kind, Size::$size);
        guidelines! {
            concat!($name, "(m) <= ", $name, "(2m)"), [CALL] => [scaled(Scaling::Twice, CALL)],
                "less data does not take longer: it could be padded";
            concat!($name, "(m) <= 2 ", $name, "(m/2)"),
                [CALL] => [scaled(Scaling::FirstHalf, CALL), scaled(Scaling::SecondHalf, CALL)],
                "one call does not take longer than one call for each half of the data";
            concat!($name, "(p) <= ", $name, "(2p)"), [CALL] => [twice_the_ranks(CALL)],
                "fewer ranks do not take longer for vectors or blocks of the same size";
        }
    }};
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
const BROADCAST_OF_BLOCKS: Call = best(Kind::Broadcast, Size::Shares);
const REDUCE_OF_BLOCKS: Call = best(Kind::Reduce, Size::Shares);
const ALLREDUCE_OF_BLOCKS: Call = best(Kind::Allreduce, Size::Shares);

static BETWEEN: &[Guideline] = &guidelines! {
    "broadcast <= binomial", [BROADCAST] => [by(By::Whole("binomial"), BROADCAST)],
        "what is chosen does not take longer than the plain tree";
    "broadcast <= unsegmented chain", [BROADCAST] => [by(By::Whole("chain"), BROADCAST)],
        "what is chosen does not take longer than passing the whole vector on";
    "reduce <= binomial", [REDUCE] => [by(By::Whole("binomial"), REDUCE)],
        "what is chosen does not take longer than the plain tree";
    "reduce <= unsegmented chain", [REDUCE] => [by(By::Whole("chain"), REDUCE)],
        "what is chosen does not take longer than passing the whole vector on";
    "broadcast <= reduce", [BROADCAST] => [REDUCE],
        "a reduction run backwards is a broadcast, and combines nothing";
    "reduce, gamma = 0 <= broadcast", [free(REDUCE)] => [BROADCAST],
        "a broadcast run backwards is a reduction, which takes no longer if combining is free";
    "broadcast <= scatter + allgather", [BROADCAST] => [SCATTER, ALLGATHER],
        "the root can deal out the vector, and all ranks gather it";
    "broadcast <= allreduce", [BROADCAST] => [ALLREDUCE],
        "all ranks but the root can contribute zeros";
    "reduce <= allreduce", [REDUCE] => [ALLREDUCE],
        "all ranks but the root can drop the result";
    "reduce <= reduce_scatter + gather", [REDUCE_OF_BLOCKS] => [REDUCE_SCATTER, GATHER],
        "the root can gather the blocks of the result";
    "allreduce <= reduce + broadcast", [ALLREDUCE] => [REDUCE, BROADCAST],
        "the root can send the result to all ranks";
    "allreduce <= reduce_scatter + allgather", [ALLREDUCE_OF_BLOCKS] => [REDUCE_SCATTER, ALLGATHER],
        "all ranks can gather the blocks of the result";
    "reduce_scatter <= reduce + scatter", [REDUCE_SCATTER] => [REDUCE_OF_BLOCKS, SCATTER],
        "the root can deal out the result";
    "reduce_scatter <= allreduce", [REDUCE_SCATTER] => [ALLREDUCE_OF_BLOCKS],
        "every rank can keep its block of the result alone";
    "gather <= allgather", [GATHER] => [ALLGATHER],
        "all ranks but the root can drop the blocks";
    "gather <= reduce", [GATHER] => [REDUCE_OF_BLOCKS],
        "every rank can contribute its block among zeros";
    "scatter <= broadcast", [SCATTER] => [BROADCAST_OF_BLOCKS],
        "every rank can keep its block alone";
    "allgather <= gather + broadcast", [ALLGATHER] => [GATHER, BROADCAST_OF_BLOCKS],
        "the root can send all blocks to all ranks";
    "allgather <= alltoall", [ALLGATHER] => [ALLTOALL],
        "every rank can send the same block to all ranks";
    "allgather <= allreduce", [ALLGATHER] => [ALLREDUCE_OF_BLOCKS],
        "every rank can contribute its block among zeros";
    "gather <= gatherv", [GATHER] => [by(By::Irregular, GATHER)],
        "equal blocks can be gathered as if they were not";
    "gatherv <= allreduce(1) + gather(max)",
        [by(By::Irregular, GATHER)] => [best(Kind::Allreduce, Size::One), GATHER],
        "ranks can agree on the largest block and pad all others to its size";
    "barrier(p) <= barrier(2p)", [BARRIER] => [twice_the_ranks(BARRIER)],
        "fewer ranks do not take longer to meet";
    "barrier <= allreduce(1)", [BARRIER] => [best(Kind::Allreduce, Size::One)],
        "no rank has the result before all have entered";
    "barrier <= gather(1) + broadcast(1)",
        [BARRIER] => [best(Kind::Gather, Size::One), best(Kind::Broadcast, Size::One)],
        "one rank can hear of all others and tell them";
    "alltoall <= gather to each rank", [ALLTOALL] => [Call { for_each_rank: true, ..GATHER }],
        "the ranks can gather their blocks one after another";
    "alltoall(m) <= allgather(p m)", [ALLTOALL] => [best(Kind::Allgather, Size::Shares)],
        "all ranks can gather all blocks, and keep theirs alone";
    "alltoall <= alltoallv", [ALLTOALL] => [by(By::Irregular, ALLTOALL)],
        "equal blocks can be sent as if they were not";
    "alltoallv <= alltoall", [by(By::Irregular, ALLTOALL)] => [ALLTOALL],
        "blocks whose sizes could differ do not take longer if they are equal";
    "scan, gamma = 0 <= allgather", [free(best(Kind::Scan, Size::All))] => [ALLGATHER_OF_VECTORS],
        "all ranks can gather all vectors, and combine those that they need";
    "exscan, gamma = 0 <= allgather",
        [free(best(Kind::Exscan, Size::All))] => [ALLGATHER_OF_VECTORS],
        "all ranks can gather all vectors, and combine those that they need";
};
