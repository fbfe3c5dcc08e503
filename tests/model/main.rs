//! Model checks of the transfer protocol, the ranks' memory and its guards, lazily made values, the
//! parker, the inbox and the barrier.
//!
//! The crate's own sources are compiled against loom, which runs every interleaving (or, where a
//! test says so, every interleaving with a bounded number of preemptions) and every value that a
//! weakly ordered load may return.
//!
//! Loom checks every access to memory that is sent or copied. In `scenarios`, loom cells replace
//! that memory; in `guards`, there is one cell for each block of elements (`buffers`). So an access
//! by the wrong side, or one that is too early, is reported as a race, and a lost wake-up as a
//! deadlock. The canaries at the end run the same sources with one planted fault (`shim`): a
//! weakened ordering, or a check that is disabled. They must fail, which shows that the models
//! detect such faults.

mod buffers;
mod shim;

/// The crate's sources, and the scenarios that two or three ranks run with them.
#[allow(dead_code, unreachable_pub, unsafe_code)]
#[path = "."]
mod sources {
    /// Replaces `src/run/sync.rs`.
    mod sync {
        pub(crate) use crate::shim::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Word};
        pub(crate) use crate::shim::{Condvar, Mutex, fence};
        pub(crate) use loom::cell::UnsafeCell;
        pub(crate) use loom::hint::spin_loop;
        pub(crate) use loom::sync::atomic::Ordering;
        pub(crate) use loom::thread::yield_now;
    }

    /// Replaces `src/run/transfer/copy.rs`.
    mod copy {
        pub(crate) use crate::buffers::{copy, copy_short, fetch};
    }

    /// The crate's `packed`, whose overlap checks a canary can disable.
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
    #[path = "../../src/run/transfer/elements.rs"]
    mod elements;
    #[path = "../../src/run/transfer/in_flight.rs"]
    mod in_flight;
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
    #[path = "../../src/run/transfer/receive.rs"]
    mod receive;
    #[path = "../../src/run/transfer/send.rs"]
    mod send;
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
    #[path = "waiting.rs"]
    pub(crate) mod waiting;
}

/// The rest of the crate, as far as the sources use it.
#[path = "."]
mod run {
    pub(crate) mod element {
        pub(crate) use oneport::run::{Element, ElementType};
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

mod machine {
    pub(crate) use oneport::machine::TransferCost;
}

use sources::{guards, scenarios, waiting};

/// Checks all interleavings of `scenario`.
fn exhaustively(scenario: fn()) {
    loom::model::Builder::new().check(scenario);
}

/// Checks all interleavings of `scenario` with at most `preemptions` preemptions. A switch where a
/// thread waits does not count as one.
fn bounded(preemptions: usize, scenario: fn()) {
    let mut model = loom::model::Builder::new();
    // A fifth preemption doubles the time of a test.
    let most = match std::env::var_os("ONEPORT_LONG") {
        Some(_) => usize::MAX,
        None => 4,
    };
    model.preemption_bound = Some(preemptions.min(most));
    model.max_branches = 10_000;
    model.check(scenario);
}

#[test]
fn an_inline_message() {
    exhaustively(scenarios::inline_message);
}

#[test]
fn eager_messages() {
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
fn two_messages_on_one_lane() {
    bounded(3, scenarios::two_messages);
}

#[test]
fn both_directions_at_once() {
    bounded(3, scenarios::exchange);
}

#[test]
fn a_retracted_inline_offer() {
    exhaustively(scenarios::retract_inline);
}

#[test]
fn a_retracted_borrowed_offer() {
    bounded(5, scenarios::retract_borrowed);
}

#[test]
fn a_sender_ends_with_a_message_in_flight() {
    bounded(5, scenarios::end_in_flight);
}

#[test]
fn refusals() {
    exhaustively(scenarios::refuse_inline);
    bounded(5, scenarios::refuse_borrowed);
}

#[test]
fn a_reply_is_not_a_head_on_send() {
    exhaustively(scenarios::reply_after_receive);
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
fn a_sender_that_poisons_its_pieces() {
    bounded(2, || scenarios::poison(2, 1));
    bounded(2, || scenarios::poison(3, 2));
}

#[test]
fn a_receiver_that_stops_copying() {
    bounded(2, || scenarios::stop_copying(2));
    bounded(2, || scenarios::stop_copying(3));
}

#[test]
fn wake_ups_are_not_lost() {
    exhaustively(waiting::wake_up);
    bounded(4, waiting::wake_up_again);
    bounded(3, waiting::two_wakers);
}

#[test]
fn an_abort_wakes_the_sleeper() {
    exhaustively(waiting::abort);
}

#[test]
fn a_barrier_holds() {
    bounded(4, || waiting::barrier(2, 2, 1));
    bounded(4, || waiting::barrier(2, 2, 2));
    bounded(4, || waiting::barrier(2, 1, 2));
}

#[test]
fn a_barrier_of_three_holds() {
    bounded(2, || waiting::barrier_polled_briefly(3, 2, 8));
    bounded(2, || waiting::barrier_polled_briefly(3, 3, 8));
    // Two levels above the cores.
    bounded(2, || waiting::barrier_polled_briefly(3, 3, 2));
}

#[test]
fn no_queued_rank_is_missed() {
    bounded(4, || waiting::queued(1));
    bounded(2, || waiting::queued(2));
}

#[test]
fn a_value_made_on_first_use() {
    exhaustively(waiting::first_use);
}

#[test]
fn spans_in_flight_are_not_written() {
    bounded(5, guards::in_flight_then_written);
    bounded(5, guards::two_spans_in_flight_then_written);
    bounded(4, guards::in_flight_then_received_into);
}

#[test]
fn memory_of_an_open_send_is_not_written() {
    bounded(5, guards::open_send_then_written);
}

#[test]
fn a_slot_is_used_again() {
    bounded(4, guards::posted_twice);
}

#[test]
fn dropped_memory_is_no_longer_accessed() {
    exhaustively(|| guards::memory_dropped(guards::Pending::InFlight));
    exhaustively(|| guards::memory_dropped(guards::Pending::OpenSend));
    bounded(5, || guards::memory_dropped(guards::Pending::SharedSend));
}

#[test]
fn a_message_of_another_length_is_refused() {
    bounded(5, guards::another_length);
}

#[test]
fn long_messages_are_copied_by_both() {
    bounded(3, || guards::shared(2, 1, false));
}

#[test]
fn longer_messages_are_copied_by_both() {
    bounded(2, || guards::shared(3, 1, true));
    bounded(1, || guards::shared(6, 1, false));
    bounded(1, || guards::shared(2, 2, true));
}

#[test]
fn a_sender_that_does_not_wait_may_help() {
    bounded(3, || guards::shared_in_flight(2));
    bounded(2, || guards::shared_in_flight(3));
}

#[test]
fn overlapping_spans_are_copied_by_one_side() {
    bounded(4, guards::shared_with_overlap);
}

#[test]
fn operators_that_panic_in_shared_messages() {
    bounded(2, || guards::sender_panics(2));
    bounded(1, || guards::sender_panics(6));
    bounded(2, || guards::receiver_panics(2));
    bounded(1, || guards::receiver_panics(6));
}

/// Tests with a planted fault: each must fail.
mod canaries {
    use super::shim::{Fault, plant};
    use super::{bounded, exhaustively, guards, scenarios, waiting};

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
    fn relaxed_load_of_a_free_lane() {
        plant(Fault::RelaxedAcquires);
        bounded(5, scenarios::eager_messages);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn relaxed_load_of_a_message() {
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
    fn parker_without_fences() {
        plant(Fault::NoFences);
        exhaustively(waiting::wake_up);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn relaxed_load_of_a_lazy_value() {
        plant(Fault::RelaxedAcquires);
        exhaustively(waiting::first_use);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn relaxed_barrier() {
        plant(Fault::RelaxedReleases);
        bounded(2, || waiting::barrier(2, 2, 1));
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn a_span_in_flight_without_its_guard() {
        plant(Fault::NoOverlap);
        exhaustively(guards::in_flight_then_written);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn two_spans_in_flight_without_their_guard() {
        plant(Fault::NoOverlap);
        exhaustively(guards::two_spans_in_flight_then_written);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn a_receive_into_a_span_in_flight_without_its_guard() {
        plant(Fault::NoOverlap);
        bounded(4, guards::in_flight_then_received_into);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn relaxed_check_of_a_span_in_flight() {
        plant(Fault::RelaxedStateLoads);
        exhaustively(guards::in_flight_then_written);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn an_open_send_without_its_guard() {
        plant(Fault::NoOverlap);
        bounded(4, guards::open_send_then_written);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn relaxed_check_of_a_used_slot() {
        plant(Fault::RelaxedStateLoads);
        bounded(4, guards::posted_twice);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn memory_that_is_never_dropped() {
        bounded(4, || {
            guards::memory_dropped(guards::Pending::InFlightNotDropped)
        });
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn relaxed_check_in_the_drop_of_memory() {
        plant(Fault::RelaxedStateLoads);
        bounded(4, || guards::memory_dropped(guards::Pending::InFlight));
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn relaxed_finish_of_pieces() {
        plant(Fault::RelaxedFinish);
        bounded(2, || guards::shared(2, 1, false));
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn relaxed_load_of_finished_pieces() {
        plant(Fault::RelaxedFinishedLoad);
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
    fn a_receiver_that_does_not_wait_for_pieces() {
        plant(Fault::NoWaitForPieces);
        bounded(2, || guards::shared(2, 1, false));
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn a_receiver_that_panics_and_does_not_wait() {
        plant(Fault::NoWaitForPieces);
        bounded(2, || guards::receiver_panics(2));
    }

    #[test]
    #[should_panic(expected = "copied in order")]
    fn overlapping_spans_that_both_copy() {
        plant(Fault::NoSelfOverlap);
        bounded(2, guards::shared_with_overlap);
    }

    #[test]
    #[should_panic(expected = "combined exactly once")]
    fn poisoned_pieces_reported_as_received() {
        plant(Fault::PoisonLost);
        bounded(2, || guards::sender_panics(2));
    }
}
