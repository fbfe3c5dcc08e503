//! The examples for beginners: they run, and each fits on a screen.

use crate::support::alone::shared;

#[path = "../../examples/endpoint_ring.rs"]
mod endpoint_ring;
#[path = "../../examples/hello_broadcast.rs"]
mod hello_broadcast;
#[path = "../../examples/my_algorithm.rs"]
mod my_algorithm;

#[test]
fn they_run() {
    let _shared = shared();
    hello_broadcast::main().unwrap();
    my_algorithm::main().unwrap();
    endpoint_ring::main().unwrap();
}

#[test]
fn they_are_short() {
    for text in [
        include_str!("../../examples/hello_broadcast.rs"),
        include_str!("../../examples/my_algorithm.rs"),
        include_str!("../../examples/endpoint_ring.rs"),
    ] {
        assert!(text.lines().count() < 40, "{text}");
    }
}
