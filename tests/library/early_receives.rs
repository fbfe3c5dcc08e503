//! Tests of receives that are opened early, where senders do not wait.

use oneport::internal::Sequence;
use oneport::rules::{LocalOrder, OrderScratch};
use oneport::schedule::Layout;
use oneport::{Collective, CostModel, Ports, Schedule, Span, Step};

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
    let simulation = schedule.simulate(&CostModel::new(1000.0, 0.1)).unwrap();
    let steps = &schedule.programs()[0];
    let mut order = LocalOrder::default();
    let mut scratch = OrderScratch::default();
    order
        .analyse(steps, Ports::BI, false, &mut scratch)
        .unwrap();
    let sequence = Sequence::new(0, steps, &order, &simulation, Ports::BI, 0, |i| i);
    let mut sequence = sequence.unwrap();
    sequence.open_early(steps, &simulation, 0, 64, 4, |_| false);
    sequence.opens(0).to_vec()
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
