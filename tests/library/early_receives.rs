//! Tests of receives that are opened early, where senders do not wait.

use oneport::internal::Sequence;
use oneport::internal::calls::{order, originals};
use oneport::plan::registry;
use oneport::rules::{LocalOrder, OrderScratch};
use oneport::schedule::Layout;
use oneport::{Collective, CostModel, Kind, Ports, Request, Schedule, Span, Step};

/// The receives that rank 0 opens before its first action, of programs on two ranks.
fn opened_at_once(programs: [Vec<Step>; 2]) -> Vec<u32> {
    let layout = || Layout {
        len: 8,
        input: Span::new(0, 4).into(),
        output: Span::new(0, 4).into(),
    };
    let layouts = vec![layout(), layout()];
    let all = Collective::Allreduce;
    let schedule = Schedule::new(Ports::BI, all, layouts, programs.into()).unwrap();
    let cost = CostModel::new(1000.0, 0.1);
    let mut sequence = sequence_of(&schedule, 0, &cost).unwrap();
    let simulation = schedule.simulate(&cost).unwrap();
    sequence.open_early(&schedule.programs()[0], &simulation, 0, 64, 4, |_| false);
    sequence.opens(0).to_vec()
}

/// The order in which a rank executes its steps when senders do not wait, if it has one.
fn sequence_of(schedule: &Schedule, rank: usize, cost: &CostModel) -> Option<Sequence> {
    let simulation = schedule.simulate(cost).unwrap();
    let (steps, ports) = (&schedule.programs()[rank], schedule.ports());
    let mut order = LocalOrder::default();
    let mut scratch = OrderScratch::default();
    order.analyse(steps, ports, false, &mut scratch).unwrap();
    Sequence::new(rank, steps, &order, &simulation, ports, 0, |i| i)
}

#[test]
fn an_answer_is_awaited_after_the_question() {
    let (here, there) = (Span::new(0, 4), Span::new(4, 4));
    let asks = vec![Step::send(1, here), Step::recv(1, there)];
    let answers = vec![
        Step::recv(0, there),
        Step::copy(there, here),
        Step::send(0, here),
    ];
    assert!(opened_at_once([asks.clone(), answers]).is_empty());
    let at_once = vec![Step::send(0, here), Step::recv(0, there)];
    assert_eq!(opened_at_once([asks, at_once]), [1]);
}

#[test]
fn two_ranks_that_exchange_both_send_first_in_calls() {
    let algorithm = registry::find(Kind::Allreduce, "circulant-rsag").unwrap();
    let schedule = algorithm.plan(&Request::allreduce(2, 8)).unwrap();
    for rank in 0..2 {
        let sequence = sequence_of(&schedule, rank, &order()).unwrap();
        let first = sequence.actions()[0].step as usize;
        assert!(schedule.programs()[rank][first].is_send(), "rank {rank}");
    }
}

/// Steps that are to find the input elsewhere read what was never written, and all that other steps
/// read of it, and the output, is copied: element by element.
#[test]
fn what_steps_find_apart_is_the_input_as_it_was() {
    let mut apart = 0;
    for (kind, p) in Kind::ALL
        .iter()
        .flat_map(|kind| [2, 3, 4, 7].map(|p| (*kind, p)))
    {
        for algorithm in registry::of(kind) {
            let request = Request::new(kind, p, 12).root(p / 2);
            if algorithm.accepts(&request).is_err() {
                continue;
            }
            let schedule = algorithm.plan(&request).unwrap();
            for rank in 0..p {
                if let Some(sequence) = sequence_of(&schedule, rank, &order()) {
                    apart += apart_steps(&schedule, rank, &sequence);
                }
            }
        }
    }
    assert!(apart > 1000, "{apart} steps");
}

fn apart_steps(schedule: &Schedule, rank: usize, sequence: &Sequence) -> usize {
    let (steps, layout) = (&schedule.programs()[rank], &schedule.layout()[rank]);
    let (found_apart, copied) = originals(steps, sequence, layout);
    let elements = |spans: &[Span]| {
        let all = spans.iter().flat_map(|span| span.offset..span.end());
        all.collect::<Vec<usize>>()
    };
    // What is in the buffer: the input that is not there, the input that is, or something else.
    let mut missing = vec![false; layout.len];
    elements(&layout.input)
        .iter()
        .for_each(|&i| missing[i] = true);
    let mut original = missing.clone();
    let in_buffer = elements(&copied.concat());
    in_buffer.iter().for_each(|&i| missing[i] = false);
    for action in sequence.actions() {
        let i = action.step as usize;
        let step = &steps[i];
        let mut read = elements(step.reads());
        if matches!(step, Step::RecvCombine { .. } | Step::Combine { .. }) {
            read.extend(elements(step.writes()));
        }
        for element in read {
            let is_right = if found_apart[i] {
                original[element]
            } else {
                !missing[element]
            };
            assert!(is_right, "rank {rank}, step {i}, element {element}");
        }
        for element in elements(step.writes()) {
            (missing[element], original[element]) = (false, false);
        }
    }
    assert!(
        elements(&layout.output).iter().all(|&i| !missing[i]),
        "rank {rank}"
    );
    found_apart.iter().filter(|&&is_apart| is_apart).count()
}
