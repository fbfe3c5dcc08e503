//! Which number comes out: the verdicts of the checker beside a literal evaluator, which runs
//! schedules on real `f32` and on written expressions, and flattens nothing.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use oneport::check::Bits;
use oneport::plan::registry;
use oneport::{Collective, CostModel, Kind, Order, Ports, Request, Schedule, Span, Spans, Step};

use crate::hand;
use crate::mutants::mutants;
use crate::oracle;
use crate::random::reduction;
use crate::support::cases::cases;
use crate::support::random::Random;

const REDUCTIONS: [Kind; 5] = [
    Kind::Allreduce,
    Kind::Reduce,
    Kind::ReduceScatter,
    Kind::Scan,
    Kind::Exscan,
];

/// The schedule of an algorithm for `len` elements, on bidirectional ports if it has one for them.
fn planned(kind: Kind, name: &str, p: usize, len: usize) -> Option<Schedule> {
    let cost = CostModel::new(1000.0, 0.1);
    let request = Request::new(kind, p, len).element_bytes(4).cost(cost);
    let on = |ports| request.clone().ports(ports).plan(name).ok();
    on(Ports::BI).or_else(|| on(Ports::UNI))
}

fn bits(schedule: &Schedule) -> Bits {
    let report = schedule.check();
    assert!(report.is_correct(), "{report}");
    report.bits().expect("a reduction").clone()
}

fn names(kind: Kind) -> impl Iterator<Item = String> {
    let all = registry::all()
        .iter()
        .filter(move |row| row.collective == kind);
    all.map(|row| row.name().into_owned())
}

/// An expression in words, of two operands first the one with the least rank, and that rank.
type Expression = (String, usize);

/// What every output element is, literally: by rank, in words.
fn expressions(schedule: &Schedule) -> Vec<Vec<Expression>> {
    let known = RefCell::new(vec![("nothing".to_string(), usize::MAX)]);
    let memories = schedule.layout().iter().enumerate().map(|(rank, layout)| {
        let mut memory = vec![0; layout.len];
        known.borrow_mut().push((rank.to_string(), rank));
        for span in &layout.input {
            memory[span.offset..span.end()].fill(rank + 1);
        }
        memory
    });
    let memories: Vec<Vec<usize>> = memories.collect();
    let combined = |a: usize, b: usize| {
        let mut known = known.borrow_mut();
        let (mut a, mut b) = (known[a].clone(), known[b].clone());
        if b.1 < a.1 {
            std::mem::swap(&mut a, &mut b);
        }
        known.push((format!("({}+{})", a.0, b.0), a.1));
        known.len() - 1
    };
    let (memories, _) = oracle::execute(schedule, false, combined, memories).expect("it completes");
    let known = known.into_inner();
    let outputs = outputs(schedule, &memories).into_iter();
    outputs
        .map(|output| output.into_iter().map(|id| known[id].clone()).collect())
        .collect()
}

/// What sums of `inputs` the schedule really computes.
fn sums(schedule: &Schedule, inputs: impl Fn(usize, usize) -> f32) -> Vec<Vec<f32>> {
    let memories = schedule.layout().iter().enumerate().map(|(rank, layout)| {
        let mut memory = vec![f32::NAN; layout.len];
        let places = layout.input.iter().flat_map(|span| span.offset..span.end());
        for (index, place) in places.enumerate() {
            memory[place] = inputs(rank, index);
        }
        memory
    });
    let memories = memories.collect();
    let (memories, _) =
        oracle::execute(schedule, false, |a: f32, b| a + b, memories).expect("it completes");
    outputs(schedule, &memories)
}

fn outputs<V: Copy>(schedule: &Schedule, memories: &[Vec<V>]) -> Vec<Vec<V>> {
    let ranks = schedule.layout().iter().zip(memories);
    let output = |spans: &Spans, memory: &[V]| {
        let places = spans.iter().flat_map(|span| span.offset..span.end());
        places.map(|place| memory[place]).collect()
    };
    ranks
        .map(|(layout, memory)| output(&layout.output, memory))
        .collect()
}

fn depth(expression: &str) -> usize {
    let (mut open, mut depth) = (0, 0);
    for character in expression.chars() {
        match character {
            '(' => open += 1,
            ')' => open -= 1,
            _ => {}
        }
        depth = depth.max(open);
    }
    depth
}

/// Random numbers of exponents so different that hardly a sum is exact.
fn inexact(random: &mut Random) -> f32 {
    let mantissa = 1.0 + random.below(1 << 23) as f32 / (1 << 23) as f32;
    let scale = 2f32.powi(random.below(24) as i32 - 12);
    if random.below(2) == 0 {
        mantissa * scale
    } else {
        -mantissa * scale
    }
}

/// Compares all that is said of a correct schedule with the literal evaluator.
fn compare(what: &str, schedule: &Schedule) {
    let bits = bits(schedule);
    let outputs = expressions(schedule);
    let all: BTreeSet<&str> = outputs.iter().flatten().map(|e| e.0.as_str()).collect();
    assert_eq!(bits.trees, all.len(), "{what}: {all:?}");
    assert_eq!(
        bits.depth,
        all.iter().map(|e| depth(e)).max().unwrap_or(0),
        "{what}"
    );
    let is_allreduce = *schedule.collective() == Collective::Allreduce;
    let same_ranks = !is_allreduce || outputs.iter().all(|output| *output == outputs[0]);
    assert_eq!(bits.same_on_all_ranks, same_ranks, "{what}: {outputs:?}");
    let by_rank = matches!(schedule.collective().kind(), Kind::Scan | Kind::Exscan);
    let one_tree = |output: &Vec<Expression>| output.iter().all(|e| *e == output[0]);
    let same_places = if by_rank {
        outputs.iter().all(one_tree)
    } else {
        all.len() <= 1
    };
    assert_eq!(bits.same_at_all_places, same_places, "{what}: {all:?}");
    assert_eq!(
        bits.tree.is_some(),
        same_places && !all.is_empty(),
        "{what}"
    );
    let words = all
        .first()
        .filter(|_| all.len() == 1 && schedule.ranks() <= 16);
    assert_eq!(bits.words.as_deref(), words.copied(), "{what}");

    let seed = schedule.steps() as u64;
    let mut random = Random::new(seed);
    let len = outputs.iter().map(Vec::len).max().unwrap_or(0);
    let len = len.max(schedule.layout().iter().map(|l| l.len).max().unwrap_or(0));
    let values: Vec<Vec<f32>> = (0..schedule.ranks())
        .map(|_| (0..len).map(|_| inexact(&mut random)).collect())
        .collect();
    if is_allreduce && same_ranks {
        let sums = sums(schedule, |rank, index| values[rank][index]);
        let bits = |rank: usize| sums[rank].iter().map(|sum| sum.to_bits());
        assert!((1..sums.len()).all(|rank| bits(rank).eq(bits(0))), "{what}");
    }
    let Some(differs) = &bits.differs else { return };
    assert!(!same_ranks, "{what}");
    let [a, b] = differs.ranks;
    let at = |rank: usize| outputs[rank][differs.element].0.as_str();
    assert_eq!(differs.trees, [at(a), at(b)], "{what}");
    let before = differs.element;
    assert_eq!(outputs[a][..before], outputs[b][..before], "{what}");
    // The input of the verdict: the two ranks really have different numbers.
    let [large, negative, one] = differs.swamped;
    let sums = sums(schedule, |rank, _| match rank {
        _ if rank == large => 2f32.powi(26),
        _ if rank == negative => -2f32.powi(26),
        _ if rank == one => 1.0,
        _ => 0.0,
    });
    let found = [sums[a][before], sums[b][before]];
    assert_eq!(found, [1.0, 0.0], "{what}: {differs:?}");
}

#[test]
fn verdicts_of_all_reductions_are_those_of_a_literal_evaluator() {
    let mut count = 0;
    for kind in REDUCTIONS {
        for name in names(kind) {
            for p in cases(vec![1, 2, 3, 5, 6, 8], (1..=17).collect()) {
                for len in [p, 2 * p + 1] {
                    if let Some(schedule) = planned(kind, &name, p, len) {
                        compare(&format!("{kind} {name} p={p} {len}"), &schedule);
                        count += 1;
                    }
                }
            }
        }
    }
    assert!(count > 300, "{count}");
}

#[test]
fn verdicts_of_mutants_are_those_of_a_literal_evaluator() {
    let (mut random, mut correct) = (Random::new(12), 0);
    let mut mutate = |what: &str, schedule: &Schedule, correct: &mut usize| {
        for (mutation, rank, step, programs) in mutants(schedule, &mut random) {
            let (ports, collective) = (schedule.ports(), schedule.collective().clone());
            let mutant = Schedule::new(ports, collective, schedule.layout().to_vec(), programs);
            let Ok(mutant) = mutant else { continue };
            if mutant.check().is_correct() {
                compare(&format!("{what}, {mutation} of {rank}, {step}"), &mutant);
                *correct += 1;
            }
        }
    };
    for kind in REDUCTIONS {
        for name in names(kind) {
            for p in cases(vec![3, 4], vec![3, 4, 5, 6]) {
                if let Some(schedule) = planned(kind, &name, p, p) {
                    mutate(&format!("{kind} {name} p={p}"), &schedule, &mut correct);
                }
            }
        }
    }
    for (name, schedule) in hand::all(4) {
        if schedule.collective().kind().reduces() && schedule.check().is_correct() {
            mutate(&name, &schedule, &mut correct);
        }
    }
    assert!(correct > 200, "{correct}");
}

/// An allreduce in which all ranks exchange their inputs, and each combines each segment in a tree
/// of its own, drawn at random from `trees`.
fn random_allreduce(random: &mut Random, p: usize, sizes: &[usize], trees: usize) -> Schedule {
    let m: usize = sizes.iter().sum();
    let mut b = Schedule::builder(p, Ports::BI, Collective::Allreduce);
    let seeds: Vec<u64> = (0..trees).map(|_| random.below(1 << 40) as u64).collect();
    for r in 0..p {
        let own = Span::new(r * m, m);
        b.layout(r, p * m, [own], [own]);
        for k in 1..p {
            b.step(r, Step::send((r + k) % p, own));
            let from = (r + p - k) % p;
            b.step(r, Step::recv(from, Span::new(from * m, m)));
        }
        let mut before = 0;
        for &size in sizes {
            let mut drawn = Random::new(seeds[random.below(trees)]);
            // Slots that hold a partial result, and the ranks that name them in the drawn tree.
            let mut holders: Vec<usize> = (0..p).collect();
            while holders.len() > 1 {
                let a = holders.swap_remove(drawn.below(holders.len()));
                let i = drawn.below(holders.len());
                // A rank keeps its own slot, which is its output; operands are exchanged freely.
                let (from, to) = if a == r {
                    (holders[i], a)
                } else {
                    (a, holders[i])
                };
                holders[i] = to;
                let span = |slot: usize| Span::new(slot * m + before, size);
                let order = [Order::MineFirst, Order::TheirsFirst][random.below(2)];
                b.step(r, Step::combine(span(from), span(to), order));
            }
            before += size;
        }
    }
    b.build().expect("a schedule")
}

#[test]
fn verdicts_of_random_schedules_are_those_of_a_literal_evaluator() {
    let (mut same, mut different) = (0, 0);
    for seed in 0..cases(300, 3000) {
        let mut random = Random::new(seed);
        let p = 1 + random.below(8);
        let sizes: Vec<usize> = (0..1 + random.below(3))
            .map(|_| 1 + random.below(4))
            .collect();
        let trees = 1 + random.below(3);
        let schedule = random_allreduce(&mut random, p, &sizes, trees);
        compare(&format!("random allreduce {seed}"), &schedule);
        if bits(&schedule).same_on_all_ranks {
            same += 1
        } else {
            different += 1
        }
        let draws: Vec<u32> = (0..50).map(|_| random.below(1 << 30) as u32).collect();
        let (root, in_order) = (random.below(p), random.below(2) == 0);
        let ports = [Ports::UNI, Ports::BI][random.below(2)];
        let schedule = reduction(p, root, &sizes, ports, in_order, &draws);
        compare(&format!("random reduce {seed}"), &schedule);
    }
    assert!(same > 50 && different > 50, "{same}, {different}");
}

/// Schedules of one tree give the same bits of 10,000 random inputs, those of another tree do not.
#[test]
fn schedules_of_one_family_agree_bit_for_bit() {
    const INPUTS: usize = 10_000;
    for p in [4, 6, 7, 8] {
        let mut random = Random::new(p as u64);
        let values: Vec<Vec<f32>> = (0..p)
            .map(|_| (0..INPUTS).map(|_| inexact(&mut random)).collect())
            .collect();
        let mut families: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        let mut members = 0;
        for kind in [Kind::Allreduce, Kind::Reduce] {
            for name in names(kind) {
                let Some(schedule) = planned(kind, &name, p, INPUTS) else {
                    continue;
                };
                let bits = bits(&schedule);
                let Some(tree) = bits.tree else { continue };
                let sums = sums(&schedule, |rank, index| values[rank][index]);
                for output in sums.iter().filter(|output| !output.is_empty()) {
                    let output: Vec<u32> = output.iter().map(|sum| sum.to_bits()).collect();
                    let known = families
                        .entry(tree.clone())
                        .or_insert_with(|| output.clone());
                    assert!(*known == output, "{kind} {name} p={p} {:?}", bits.words);
                }
                members += 1;
            }
        }
        let distinct: BTreeSet<&Vec<u32>> = families.values().collect();
        assert_eq!(distinct.len(), families.len());
        assert!(
            families.len() > 1 && members > 2 * families.len(),
            "{p}: {members}"
        );
    }
}

/// Families of algorithms for vectors of `p` elements that combine in one tree.
#[test]
fn algorithms_combine_in_the_trees_of_the_table() {
    let families = [
        (
            4,
            "((0+1)+(2+3))",
            "recursive-doubling recursive-multiplying rabenseifner swing swing-doubling binomial \
             binary dual-root fibonacci-census uni-greedy out-of-order",
            "binomial bine knomial ordered binary butterfly uni-greedy out-of-order",
        ),
        (
            4,
            "((0+2)+(1+3))",
            "circulant circulant-rsag bruck",
            "bi-greedy circulant circulant-rsg van-de-geijn",
        ),
        (
            6,
            "(((0+1)+(2+3))+(4+5))",
            "recursive-doubling recursive-multiplying rabenseifner swing swing-doubling binomial \
             uni-greedy out-of-order",
            "binomial bine knomial ordered butterfly uni-greedy out-of-order",
        ),
        (
            7,
            "(((0+1)+(2+3))+((4+5)+6))",
            "recursive-doubling recursive-multiplying rabenseifner swing swing-doubling binomial",
            "binomial bine knomial ordered butterfly",
        ),
        (
            8,
            "(((0+1)+(2+3))+((4+5)+(6+7)))",
            "recursive-doubling recursive-multiplying rabenseifner binomial dual-root uni-greedy \
             out-of-order",
            "binomial knomial ordered butterfly uni-greedy out-of-order",
        ),
        (
            8,
            "(((0+4)+(2+6))+((1+5)+(3+7)))",
            "circulant circulant-rsag bruck composed",
            "bi-greedy circulant circulant-rsg van-de-geijn",
        ),
    ];
    let mut wrong = Vec::new();
    for (p, tree, allreduces, reduces) in families {
        for (kind, algorithms) in [(Kind::Allreduce, allreduces), (Kind::Reduce, reduces)] {
            for name in algorithms.split_whitespace() {
                let schedule = planned(kind, name, p, p);
                let words = schedule.and_then(|schedule| bits(&schedule).words);
                if words.as_deref() != Some(tree) {
                    wrong.push(format!("{kind} {name} p={p}: {words:?}, not {tree}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Which allreduces differ between ranks, and how many trees they have.
#[test]
fn allreduces_differ_where_the_table_says() {
    let table = [
        (
            3,
            "census one-shot gossip",
            "census 3, circulant-rsag 3, bruck 3, composed 2, ring 3, segmented-ring 3, \
             one-shot 2, two-shot 2, gossip 2, straggler 3, fibonacci 2",
        ),
        (
            5,
            "census one-shot gossip",
            "census 5, circulant-rsag 5, bruck 5, composed 3, ring 5, segmented-ring 5, \
             one-shot 4, two-shot 4, gossip 4, straggler 5, fibonacci 3",
        ),
        (
            6,
            "census one-shot gossip fibonacci-census",
            "census 3, circulant-rsag 3, bruck 6, ring 6, one-shot 5, two-shot 5, \
             fibonacci-census 3, fibonacci 3",
        ),
        (
            8,
            "census swing-doubling one-shot gossip fibonacci-census",
            "census 4, swing 2, swing-doubling 2, ring 8, segmented-ring 8, one-shot 7, \
             two-shot 7, gossip 7, straggler 7, fibonacci-census 2, fibonacci 2",
        ),
        (
            16,
            "census swing-doubling one-shot gossip fibonacci-census",
            "census 8, swing 4, swing-doubling 4, composed 8, ring 16, one-shot 15, two-shot 15, \
             straggler 15, fibonacci-census 8",
        ),
    ];
    let mut wrong = Vec::new();
    for (p, differ, several) in table {
        let schedules: BTreeMap<String, Bits> = names(Kind::Allreduce)
            .filter_map(|name| {
                let schedule = planned(Kind::Allreduce, &name, p, p)?;
                Some((name, bits(&schedule)))
            })
            .collect();
        let found: BTreeSet<&str> = schedules
            .iter()
            .filter(|(_, bits)| !bits.same_on_all_ranks)
            .map(|(name, _)| name.as_str())
            .collect();
        let expected: BTreeSet<&str> = differ.split_whitespace().collect();
        if found != expected {
            wrong.push(format!("p={p} differ: {found:?}, not {expected:?}"));
        }
        for cell in several.split(", ") {
            let (name, trees) = cell.split_once(' ').expect("a name and a number");
            let found = schedules.get(name).map(|bits| bits.trees);
            if found != trees.trim().parse().ok() {
                wrong.push(format!("p={p} {name}: {found:?} trees, not {trees}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Contributions are told by hashes where words would be long, and no tree is too deep.
#[test]
fn long_chains_have_a_hash_and_no_words() {
    let chain = planned(Kind::Reduce, "chain", 20_000, 1).expect("a chain");
    let chain = bits(&chain);
    assert_eq!((chain.trees, chain.depth, chain.words), (1, 19_999, None));
    let census = bits(&planned(Kind::Allreduce, "one-shot", 20, 20).expect("a schedule"));
    let differs = census.differs.expect("ranks differ");
    assert!(
        differs.trees.iter().all(|tree| tree.len() == 16),
        "{differs:?}"
    );
    assert_ne!(differs.trees[0], differs.trees[1]);
    assert_eq!(census.tree, None);
}

/// Broadcasts have no trees, nor have wrong reductions.
#[test]
fn only_correct_reductions_have_bits() {
    let broadcast = planned(Kind::Broadcast, "binomial", 4, 4).expect("a schedule");
    assert_eq!(broadcast.check().bits(), None);
    let reduce = planned(Kind::Reduce, "binomial", 4, 4).expect("a schedule");
    let mut programs = reduce.programs().to_vec();
    programs[0].pop();
    let (ports, collective) = (reduce.ports(), reduce.collective().clone());
    let wrong = Schedule::new(ports, collective, reduce.layout().to_vec(), programs);
    let report = wrong.expect("a schedule").check();
    assert!(!report.is_correct());
    assert_eq!(report.bits(), None);
}

/// The content of a cell that nobody has written, combined with input 0, has the hash of input 0
/// alone. Trees of different depth are never compared, so such trees end, too.
#[test]
fn trees_with_one_hash_by_chance_are_told_apart() {
    let mut b = Schedule::builder(2, Ports::BI, Collective::Allreduce);
    for rank in 0..2 {
        b.layout(rank, 5, [Span::new(0, 2)], [Span::new(2, 2)]);
        let unwritten = Span::new(4, 1);
        for (from, to) in [(0, 3), (3, 2)] {
            b.step(rank, Step::copy(Span::new(from, 1), Span::new(to, 1)));
            let step = Step::combine(unwritten, Span::new(to, 1), Order::TheirsFirst);
            b.step(rank, step);
        }
    }
    let report = b.build().unwrap().check();
    assert!(!report.is_correct());
    assert_eq!(report.bits(), None);
}

/// Of all ranks that ask for the same bits, all get them; what is refused gives some other bits.
#[test]
fn ranks_agree_where_the_request_asks_for_it() {
    let models = Ports::KINDS
        .into_iter()
        .flat_map(|ports| [1, 2, 3].map(|k| ports.with_k(k)));
    let models: Vec<Ports> = models.collect();
    let (mut agree, mut differ) = (0, BTreeMap::<String, Vec<usize>>::new());
    for p in 2..=20 {
        let cost = CostModel::new(1000.0, 0.1);
        for ports in &models {
            for m in [1, 3, 2 * p + 1] {
                let request = Request::allreduce(p, m).ports(*ports).element_bytes(4);
                let request = request.cost(cost.clone());
                let asked = request.clone().same_bits(true);
                for name in names(Kind::Allreduce) {
                    let Ok(schedule) = request.plan(&name) else {
                        continue;
                    };
                    if let Ok(schedule) = asked.plan(&name) {
                        let same = bits(&schedule).same_on_all_ranks;
                        assert!(same, "{name}, {p} ranks, {ports:?}, {m} elements");
                        agree += 1;
                    } else if !bits(&schedule).same_on_all_ranks {
                        differ.entry(name).or_default().push(p);
                    }
                }
            }
        }
    }
    assert!(agree > 5000, "{agree}");
    // On several ports recursive multiplying combines more than two vectors at once.
    let first: BTreeMap<_, _> = differ.iter().map(|(name, p)| (&**name, p[0])).collect();
    let expected = [
        ("fibonacci-census", 6),
        ("recursive-multiplying", 3),
        ("swing-doubling", 8),
    ];
    assert_eq!(first, BTreeMap::from(expected));
}

/// Algorithms whose ranks combine in different orders have a form with a common one: one-shot in as
/// much time, a census in as many rounds.
#[test]
fn a_common_order_is_had_where_it_is_asked_for() {
    let cost = CostModel::new(1000.0, 0.1).gamma(0.5);
    for p in 2..=12 {
        let in_order = (1..p).fold("0".to_string(), |sum, rank| format!("({sum}+{rank})"));
        for ports in [Ports::UNI, Ports::BI, Ports::BI.with_k(2)] {
            let request = Request::allreduce(p, 5).ports(ports).cost(cost.clone());
            let asked = request.clone().same_bits(true);
            for name in ["one-shot", "two-shot", "gossip", "census"] {
                let (Ok(free), Ok(common)) = (request.plan(name), asked.plan(name)) else {
                    continue;
                };
                let (before, after) = (bits(&free), bits(&common));
                assert_eq!(
                    before.same_on_all_ranks,
                    p == 2 || name == "two-shot",
                    "{name}"
                );
                assert!(after.same_on_all_ranks, "{name}, {p} ranks");
                assert_eq!(
                    after.words.as_deref(),
                    Some(&*in_order),
                    "{name}, {p} ranks"
                );
                let time = |schedule: &Schedule, cost: &CostModel| {
                    schedule.simulate(cost).expect("a time").makespan()
                };
                let cost = match name {
                    "census" => &CostModel::new(1.0, 0.0),
                    _ => &cost,
                };
                assert_eq!(time(&free, cost), time(&common, cost), "{name}, {p} ranks");
            }
        }
        let bi = Request::allreduce(p, 1).same_bits(true);
        assert!(bi.plan("census").is_ok() && bi.plan("one-shot").is_ok());
    }
    // A gossip is planned for at most so many ranks.
    let many = Request::allreduce(257, 1);
    assert!(many.plan("census").is_ok() && many.same_bits(true).plan("census").is_err());
}
