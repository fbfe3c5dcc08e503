//! Model checks: the transfer protocol, lazily made values, the bell and the barrier, compiled from the crate's own sources against loom, which runs
//! every interleaving (or, where a test says so, all with a bounded number of preemptions) and every value that a weakly
//! ordered load may return.
//!
//! Memory that is lent or copied is stood for by loom's cells, so an access by the wrong side, or too early, is a reported
//! race. A lost wake-up is a reported deadlock. The canaries at the end compile the same sources with one kind of ordering
//! weakened, and must fail: they show that the models would notice.

mod shim;

/// The crate's sources, and the models of them, with `$release`, `$acquire` and `$fence` for these orderings.
macro_rules! sources {
    ($name:ident, $release:ident, $acquire:ident, $fence:ident) => {
        #[allow(dead_code, unreachable_pub, unsafe_code, clippy::duplicate_mod)]
        #[path = "."]
        mod $name {
            mod sync {
                pub(crate) use crate::shim::{AtomicBool, AtomicU32, AtomicUsize, Word};
                pub(crate) use crate::shim::{Condvar, Mutex, $fence as fence};
                pub(crate) use loom::cell::UnsafeCell;
                pub(crate) use loom::sync::atomic::AtomicPtr;

                #[allow(non_snake_case, non_upper_case_globals)]
                pub(crate) mod Ordering {
                    use loom::sync::atomic::Ordering as Real;

                    pub(crate) const Relaxed: Real = Real::Relaxed;
                    pub(crate) const Release: Real = Real::$release;
                    pub(crate) const Acquire: Real = Real::$acquire;
                    pub(crate) const AcqRel: Real = Real::AcqRel;
                    pub(crate) const SeqCst: Real = Real::SeqCst;
                }
            }

            #[path = "../../src/run/barrier.rs"]
            mod barrier;
            #[path = "../../src/run/bell.rs"]
            mod bell;
            #[path = "../../src/run/inbox.rs"]
            mod inbox;
            #[path = "../../src/run/transfer/lazy.rs"]
            mod lazy;
            #[path = "../../src/run/transfer/protocol.rs"]
            mod protocol;
            #[path = "scenarios.rs"]
            pub(crate) mod scenarios;
        }
    };
}

sources!(real, Release, Acquire, fence);
sources!(relaxed_release, Relaxed, Acquire, fence);
sources!(relaxed_acquire, Release, Relaxed, fence);
sources!(unfenced, Release, Acquire, no_fence);

/// What the sources use of the rest of the crate.
mod schedule {
    pub(crate) use oneport::schedule::{Order, Span};
}

use real::scenarios;

/// Checks all interleavings.
fn exhaustively(scenario: fn()) {
    loom::model::Builder::new().check(scenario);
}

/// Checks all interleavings in which threads are interrupted `preemptions` times at most, besides where they wait.
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
    bounded(4, || scenarios::told(1));
    bounded(2, || scenarios::told(2));
}

#[test]
fn a_value_made_when_first_needed() {
    exhaustively(scenarios::first_needed);
}

/// Each must fail.
mod canaries {
    use super::{bounded, exhaustively, relaxed_acquire, relaxed_release, unfenced};

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn relaxed_publication_of_an_inline_message() {
        exhaustively(relaxed_release::scenarios::inline_message);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn relaxed_publication_of_a_borrowed_message() {
        exhaustively(relaxed_release::scenarios::borrowed_message);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn relaxed_look_at_a_free_lane() {
        bounded(5, relaxed_acquire::scenarios::eager_messages);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn relaxed_look_at_a_message() {
        exhaustively(relaxed_acquire::scenarios::inline_message);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn relaxed_publication_of_pieces() {
        bounded(3, || relaxed_release::scenarios::share(2, 1));
    }

    #[test]
    #[should_panic(expected = "deadlock")]
    fn bell_without_fences() {
        exhaustively(unfenced::scenarios::wake_up);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn relaxed_look_at_a_value() {
        exhaustively(relaxed_acquire::scenarios::first_needed);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn relaxed_barrier() {
        bounded(2, || relaxed_release::scenarios::barrier(2, 2, 1));
    }
}
