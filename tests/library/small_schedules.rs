//! All schedules of few messages on few ranks, against their lower bounds.

use oneport::machine::Eager;
use oneport::{Collective, CostModel, Layout, Order, Ports, Request, Schedule, Span, Step};

use crate::support::cases::is_long;

const COST: fn() -> CostModel = || CostModel::new(7.0, 3.0).gamma(2.0);

/// A schedule that grows message by message: who has which contributions to each element.
#[derive(Clone)]
struct Growing<'c> {
    collective: &'c Collective,
    layouts: &'c [Layout],
    /// By rank and element: the ranks whose contributions it has, a bit each.
    has: Vec<Vec<u8>>,
    programs: Vec<Vec<Step>>,
}

impl Growing<'_> {
    /// Calls `found` with every schedule of at most `left` more messages that does its collective.
    /// A message carries one element or all that are of use; no rank computes apart from receiving.
    fn all(&self, left: usize, found: &mut impl FnMut(Vec<Vec<Step>>)) {
        let full = (1u8 << self.has.len()) - 1;
        let reduces = self.collective.kind().reduces();
        let done = self.layouts.iter().zip(&self.has).all(|(layout, has)| {
            let mut output = layout.output.iter().flat_map(|s| s.offset..s.end());
            output.all(|i| if reduces { has[i] == full } else { has[i] != 0 })
        });
        if done {
            return found(self.programs.clone());
        }
        let p = self.has.len();
        for (from, to) in (0..p).flat_map(|from| (0..p).map(move |to| (from, to))) {
            if from == to || left == 0 {
                continue;
            }
            // What replaces what the receiver has, and what is combined with it.
            let len = self.has[from].len();
            let new = |&i: &usize| self.has[to][i] == 0 || reduces && self.has[from][i] == full;
            let replaces =
                |&i: &usize| self.has[from][i] != 0 && self.has[to][i] != full && new(&i);
            let combines =
                |&i: &usize| self.has[from][i] & self.has[to][i] == 0 && self.has[from][i] != 0;
            let whole: Vec<usize> = (0..len).filter(replaces).collect();
            let joined: Vec<usize> = (0..len).filter(combines).filter(|_| reduces).collect();
            for (part, combine) in [(whole, false), (joined, true)] {
                let single = part.iter().map(|&i| vec![i]).filter(|_| part.len() > 1);
                for elements in single.chain([part.clone()]).filter(|e| !e.is_empty()) {
                    let spans: Vec<Span> = elements.iter().map(|&i| Span::new(i, 1)).collect();
                    let mut next = self.clone();
                    for &i in &elements {
                        next.has[to][i] |= self.has[from][i];
                    }
                    next.programs[from].push(Step::send(to, spans.clone()));
                    next.programs[to].push(if combine {
                        Step::recv_combine(from, spans, Order::MineFirst)
                    } else {
                        Step::recv(from, spans)
                    });
                    next.all(left - 1, found);
                }
            }
        }
    }
}

/// Of all schedules of few messages on up to three ranks, none is faster than its bounds, whoever
/// is late and whatever waits; where a bound is exact, one of them reaches it.
#[test]
fn no_small_schedule_is_faster_than_its_bounds() {
    let models = |p: usize| {
        let late = |arrivals: [f64; 3]| arrivals[..p].to_vec();
        [
            COST(),
            COST().latency(5.0),
            COST().latency(5.0).eager(Eager::All),
            COST().arrivals(late([0.0, 20.0, 3.0])),
            COST()
                .arrivals(late([9.0, 0.0, 31.0]))
                .latency(2.0)
                .eager(Eager::UpTo(1)),
        ]
    };
    let (mut schedules, mut exact) = (0, 0);
    for (p, messages) in [(2, 4), (3, if is_long() { 6 } else { 4 })] {
        let collectives = [
            Collective::Broadcast { root: 0 },
            Collective::Reduce { root: 1 },
            Collective::Allreduce,
            Collective::Gather { root: 0 },
            Collective::Scatter { root: 1 },
            Collective::Allgather,
            Collective::ReduceScatter,
        ];
        for collective in &collectives {
            let request = Request::new(collective.kind(), p, if p == 2 { 2 } else { 3 });
            let request = request.root(collective.root().unwrap_or(0));
            let layouts = request.plan_best(&COST()).unwrap().layout().to_vec();
            // Inputs and outputs stand at the same places of buffers of the same length.
            let len = layouts.iter().map(|l| l.len).max().unwrap();
            let layouts: Vec<_> = layouts.into_iter().map(|l| Layout { len, ..l }).collect();
            let has = layouts.iter().enumerate().map(|(rank, layout)| {
                let mut has = vec![0u8; len];
                let input = layout.input.iter().flat_map(|s| s.offset..s.end());
                input.for_each(|i| has[i] = 1 << rank);
                has
            });
            let start = Growing {
                collective,
                has: has.collect(),
                layouts: &layouts,
                programs: vec![Vec::new(); p],
            };
            for ports in [Ports::UNI, Ports::BI] {
                let mut least = models(p).map(|_| f64::INFINITY);
                let mut bounds = least;
                start.all(messages, &mut |programs| {
                    let schedule =
                        Schedule::new(ports, collective.clone(), layouts.clone(), programs);
                    let schedule = schedule.unwrap();
                    schedules += 1;
                    if schedules % 64 == 0 {
                        assert!(schedule.check().is_correct(), "{}", schedule.to_json());
                    }
                    for (i, cost) in models(p).iter().enumerate() {
                        let time = schedule.simulate(cost).unwrap().makespan();
                        bounds[i] = schedule.lower_bound(cost).largest;
                        assert!(
                            time >= bounds[i],
                            "{cost:?}: {time}: {}",
                            schedule.to_json()
                        );
                        least[i] = least[i].min(time);
                    }
                });
                exact += least.iter().zip(&bounds).filter(|(a, b)| a == b).count();
            }
        }
    }
    assert!(schedules > 3000 && exact > 40, "{schedules} {exact}");
}
