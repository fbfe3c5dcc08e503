//! Unit tests of transfers from memory to memory, on one thread. They have a file of their own
//! because `tests/model` compiles the source files as well.

use super::elements::{Buffer, Combiner};
use super::memory::{RankMemory, SendSpans};
use super::packed::RecvOp;
use super::protocol::{Lane, Pieces, Sent, Wire};
use super::receive::{Due, Received};
use crate::run::operator::Operator;
use crate::schedule::{Order, Span};

/// Both lanes between two ranks are on one cache line, so the line travels to the receiver with a
/// message and comes back with the reply.
#[test]
fn both_lanes_of_a_wire_are_on_one_line() {
    const LINE: usize = 64;
    let wire = Wire::new();
    let lanes = [wire.lane(0, 1), wire.lane(1, 0)].map(|lane| std::ptr::from_ref(lane).addr());
    assert!(size_of::<Lane>() <= LINE / 2);
    assert_eq!(lanes[0] / LINE, (lanes[1] + size_of::<Lane>() - 1) / LINE);
    assert_eq!(size_of::<Pieces>(), LINE);
    assert_eq!(size_of::<Wire>(), 4 * LINE);
}

#[cfg(target_pointer_width = "64")]
#[test]
fn sixteen_bytes_travel_in_a_lane() {
    assert_eq!(super::protocol::INLINE_BYTES, 16);
    assert_eq!(size_of::<Lane>(), 32);
}

#[test]
fn streamed_messages_arrive() {
    let sum = Operator::<i32>::named("sum").unwrap();
    let sum = Combiner::of(&sum);
    let due = Due {
        ready: 0.0,
        takes: 1.0,
    };
    for streams_from in [1, 2000, usize::MAX] {
        for spans in [
            vec![Span::new(3, 900)],
            vec![Span::new(5, 77), Span::new(100, 640)],
        ] {
            let wire = Wire::new();
            let mut here: Vec<i32> = (0..1000).collect();
            let mut there = vec![7i32; 1000];
            let sender = RankMemory::new(0, Buffer::of(&mut here), 1, streams_from);
            let mut receiver = RankMemory::new(1, Buffer::of(&mut there), 1, streams_from);
            for (op, each) in [
                (RecvOp::Copy, 1i32),
                (RecvOp::Reduce(sum, Order::MineFirst), 2),
            ] {
                sender.open_send(0, &wire, 1, SendSpans::Many(&spans), 0.0);
                let received = receiver.receive(&wire, 0, &spans, op, false, due);
                assert_eq!(received, Received::Done(1.0));
                assert_eq!(sender.poll_send(0, sum), Sent::Done(1.0));
                for (i, &found) in (0..).zip(receiver.data::<i32>()) {
                    let inside =
                        |s: &Span| (s.offset..s.end()).contains(&usize::try_from(i).unwrap());
                    let expected = if spans.iter().any(inside) {
                        each * i
                    } else {
                        7
                    };
                    assert_eq!(found, expected, "element {i}");
                }
            }
        }
    }
}
