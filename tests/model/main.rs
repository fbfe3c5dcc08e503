//! Model checks: the transfer protocol, the ranks' memory with all that guards it, lazily made
//! values, the bell and the barrier, compiled from the crate's own sources against loom, which runs
//! every interleaving (or, where a test says so, all with a bounded number of preemptions) and
//! every value that a weakly ordered load may return.
//!
//! Loom checks every access to memory that is lent or copied: in `scenarios` its cells stand for
//! that memory, in `guards` they stand beside the elements (`buffers`). So an access by the wrong
//! side, or too early, is a reported race. A lost wake-up is a reported deadlock. The canaries at
//! the end run the same sources with one fault planted (`shim`): an ordering weakened, or a guard
//! taken away. They must fail: they show that the models would notice.

mod buffers;
mod shim;

/// The crate's sources, and what two or three ranks do with them.
#[allow(dead_code, unreachable_pub, unsafe_code)]
#[path = "."]
mod sources {
    /// In place of `src/run/sync.rs`.
    mod sync {
        pub(crate) use crate::shim::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Word};
        pub(crate) use crate::shim::{Condvar, Mutex, fence};
        pub(crate) use loom::cell::UnsafeCell;
        pub(crate) use loom::hint::spin_loop;
        pub(crate) use loom::sync::atomic::Ordering;
        pub(crate) use loom::thread::yield_now;
    }

    /// In place of `src/run/transfer/copy.rs`.
    mod copy {
        pub(crate) use crate::buffers::{copy, copy_short, fetch};
    }

    /// The crate's, where canaries may take its guards away.
    mod packed {
        pub(super) use super::whole_packed::{Packed, RecvOp};
        use crate::shim::{Fault, is_planted};
        use oneport::Span;

        pub(super) fn any_overlap(a: &[Span], b: &[Span]) -> bool {
            !is_planted(Fault::NoOverlap) && super::whole_packed::any_overlap(a, b)
        }

        pub(super) fn self_overlap(spans: &[Span]) -> bool {
            !is_planted(Fault::NoSelfOverlap) && super::whole_packed::self_overlap(spans)
        }
    }

    #[path = "../../src/run/wait/barrier.rs"]
    mod barrier;
    #[path = "../../src/run/wait/inbox.rs"]
    mod inbox;
    #[path = "../../src/run/transfer/lazy.rs"]
    mod lazy;
    #[path = "../../src/run/transfer/memory.rs"]
    mod memory;
    #[path = "../../src/run/wait/parker.rs"]
    mod parker;
    #[path = "../../src/run/transfer/protocol.rs"]
    mod protocol;
    #[path = "../../src/run/transfer/shared.rs"]
    mod shared;
    #[path = "../../src/run/transfer/slots.rs"]
    mod slots;
    #[path = "../../src/run/transfer/packed.rs"]
    mod whole_packed;

    #[path = "guards.rs"]
    pub(crate) mod guards;
    #[path = "scenarios.rs"]
    pub(crate) mod scenarios;
}

/// What the sources use of the rest of the crate.
#[path = "."]
mod run {
    pub(crate) mod element {
        pub(crate) use oneport::run::Element;
    }

    #[path = "../../src/run/tuning.rs"]
    #[allow(dead_code)]
    pub(crate) mod tuning;

    pub(crate) mod operator {
        pub(crate) use crate::buffers::Operator;
    }
}

mod schedule {
    pub(crate) use oneport::schedule::{Order, Span, total_len};
}

mod rules {
    pub(crate) fn max_time(a: f64, b: f64) -> f64 {
        a.max(b)
    }
}

use sources::{guards, scenarios};

/// Checks all interleavings.
fn exhaustively(scenario: fn()) {
    loom::model::Builder::new().check(scenario);
}

/// Checks all interleavings in which threads are interrupted `preemptions` times at most, besides
/// where they wait.
fn bounded(preemptions: usize, scenario: fn()) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.max_branches = 10_000;
    model.check(scenario);
}

#[test]
fn an_inline_message() {
    exhaustively(scenarios::inline_message);
}

#[test]
fn messages_nobody_waits_for() {
    bounded(5, scenarios::eager_messages);
}

#[test]
fn a_borrowed_message() {
    bounded(5, scenarios::borrowed_message);
}

#[test]
fn a_reply_on_the_same_wire() {
    bounded(3, scenarios::reply);
}

#[test]
fn two_messages_in_one_slot() {
    bounded(3, scenarios::two_messages);
}

#[test]
fn both_directions_at_once() {
    bounded(3, scenarios::exchange);
}

#[test]
fn an_inline_offer_taken_back() {
    exhaustively(scenarios::retract_inline);
}

#[test]
fn a_borrowed_offer_taken_back() {
    bounded(5, scenarios::retract_borrowed);
}

#[test]
fn a_message_left_behind() {
    bounded(5, scenarios::left_behind);
}

#[test]
fn refusals() {
    exhaustively(scenarios::refuse_inline);
    bounded(5, scenarios::refuse_borrowed);
}

#[test]
fn an_answer_is_not_head_on() {
    exhaustively(scenarios::answered);
}

#[test]
fn pieces_copied_by_both() {
    bounded(3, || scenarios::share(1, 1));
    bounded(2, || scenarios::share(2, 1));
    bounded(2, || scenarios::share(3, 1));
    bounded(2, || scenarios::share(3, 2));
}

#[test]
fn pieces_of_two_messages() {
    bounded(1, scenarios::share_twice);
}

#[test]
fn a_sender_that_spoils_its_pieces() {
    bounded(2, || scenarios::spoil(2, 1));
    bounded(2, || scenarios::spoil(3, 2));
}

#[test]
fn a_receiver_that_gives_up() {
    bounded(2, || scenarios::give_up(2));
    bounded(2, || scenarios::give_up(3));
}

#[test]
fn wake_ups_are_not_lost() {
    exhaustively(scenarios::wake_up);
    bounded(4, scenarios::wake_up_again);
    bounded(3, scenarios::two_wakers);
}

#[test]
fn an_abort_wakes() {
    exhaustively(scenarios::abort);
}

#[test]
fn a_barrier_holds() {
    bounded(4, || scenarios::barrier(2, 2, 1));
    bounded(4, || scenarios::barrier(2, 2, 2));
    bounded(4, || scenarios::barrier(2, 1, 2));
}

#[test]
fn a_barrier_of_three_holds() {
    bounded(2, || scenarios::glances_at_a_barrier(3, 2));
    bounded(2, || scenarios::glances_at_a_barrier(3, 3));
}

#[test]
fn nothing_told_is_missed() {
    bounded(4, || scenarios::queued(1));
    bounded(2, || scenarios::queued(2));
}

#[test]
fn a_value_made_when_first_needed() {
    exhaustively(scenarios::first_needed);
}

#[test]
fn lent_memory_is_not_written() {
    bounded(5, guards::lent_then_written);
    bounded(5, guards::lent_in_pieces_then_written);
    bounded(4, guards::lent_then_received_into);
}

#[test]
fn memory_of_an_open_send_is_not_written() {
    bounded(5, guards::sent_then_written);
}

#[test]
fn a_slot_is_used_again() {
    bounded(4, guards::posted_twice);
}

#[test]
fn lent_memory_goes_back_to_its_owner() {
    exhaustively(|| guards::left(guards::InFlight::SendSpans));
    exhaustively(|| guards::left(guards::InFlight::Sent));
    bounded(5, || guards::left(guards::InFlight::Shared));
}

#[test]
fn a_message_of_another_length_is_given_back() {
    bounded(5, guards::another_length);
}

#[test]
fn long_messages_are_copied_by_both() {
    bounded(3, || guards::shared(2, 1, false));
    bounded(2, || guards::shared(3, 1, true));
    bounded(1, || guards::shared(6, 1, false));
    bounded(1, || guards::shared(2, 2, true));
}

#[test]
fn where_spans_overlap_one_side_copies() {
    bounded(4, guards::shared_with_overlap);
}

#[test]
fn operators_that_panic_in_shared_messages() {
    bounded(2, || guards::sender_panics(2));
    bounded(1, || guards::sender_panics(6));
    bounded(2, || guards::receiver_panics(2));
    bounded(1, || guards::receiver_panics(6));
}

/// Each must fail.
mod canaries {
    use super::shim::{Fault, plant};
    use super::{bounded, exhaustively, guards, scenarios};

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn relaxed_publication_of_an_inline_message() {
        plant(Fault::RelaxedReleases);
        exhaustively(scenarios::inline_message);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn relaxed_publication_of_a_borrowed_message() {
        plant(Fault::RelaxedReleases);
        exhaustively(scenarios::borrowed_message);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn relaxed_look_at_a_free_lane() {
        plant(Fault::RelaxedAcquires);
        bounded(5, scenarios::eager_messages);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn relaxed_look_at_a_message() {
        plant(Fault::RelaxedAcquires);
        exhaustively(scenarios::inline_message);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn relaxed_publication_of_pieces() {
        plant(Fault::RelaxedReleases);
        bounded(3, || scenarios::share(2, 1));
    }

    #[test]
    #[should_panic(expected = "deadlock")]
    fn bell_without_fences() {
        plant(Fault::NoFences);
        exhaustively(scenarios::wake_up);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn relaxed_look_at_a_value() {
        plant(Fault::RelaxedAcquires);
        exhaustively(scenarios::first_needed);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn relaxed_barrier() {
        plant(Fault::RelaxedReleases);
        bounded(2, || scenarios::barrier(2, 2, 1));
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn lent_memory_without_its_guard() {
        plant(Fault::NoOverlap);
        exhaustively(guards::lent_then_written);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn lent_pieces_without_their_guard() {
        plant(Fault::NoOverlap);
        exhaustively(guards::lent_in_pieces_then_written);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn received_into_lent_memory_without_its_guard() {
        plant(Fault::NoOverlap);
        bounded(4, guards::lent_then_received_into);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn relaxed_look_at_lent_memory() {
        plant(Fault::RelaxedLooks);
        exhaustively(guards::lent_then_written);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn an_open_send_without_its_guard() {
        plant(Fault::NoOverlap);
        bounded(4, guards::sent_then_written);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn relaxed_look_at_a_used_slot() {
        plant(Fault::RelaxedLooks);
        bounded(4, guards::posted_twice);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn lent_memory_never_taken_back() {
        bounded(4, || guards::left(guards::InFlight::Forgotten));
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn relaxed_look_at_memory_that_goes_back() {
        plant(Fault::RelaxedLooks);
        bounded(4, || guards::left(guards::InFlight::SendSpans));
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn relaxed_finish_of_pieces() {
        plant(Fault::RelaxedFinish);
        bounded(2, || guards::shared(2, 1, false));
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn relaxed_look_at_finished_pieces() {
        plant(Fault::RelaxedFinished);
        bounded(2, || guards::shared(2, 1, false));
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn pieces_that_both_may_claim() {
        plant(Fault::SharedClaims);
        bounded(2, || guards::shared(2, 1, false));
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn pieces_nobody_waits_for() {
        plant(Fault::NobodyAwaited);
        bounded(2, || guards::shared(2, 1, false));
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn a_receiver_that_panics_and_does_not_wait() {
        plant(Fault::NobodyAwaited);
        bounded(2, || guards::receiver_panics(2));
    }

    #[test]
    #[should_panic(expected = "one after another")]
    fn overlapping_spans_that_both_copy() {
        plant(Fault::NoSelfOverlap);
        bounded(2, guards::shared_with_overlap);
    }

    #[test]
    #[should_panic(expected = "combined exactly once")]
    fn spoilt_pieces_passed_off_as_received() {
        plant(Fault::SpoiltUnsaid);
        bounded(2, || guards::sender_panics(2));
    }
}
