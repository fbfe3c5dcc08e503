//! A data race on purpose: `tests/sanitize.sh` checks with it that the sanitizer would report one.
//! Run it for nothing else.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;

struct Shared(UnsafeCell<u64>);

// SAFETY: none, and that is the point.
unsafe impl Sync for Shared {}

fn add(shared: &Shared) {
    for _ in 0..100_000 {
        // SAFETY: none: two threads do this at once.
        unsafe { *shared.0.get() += 1 };
    }
}

fn main() {
    let shared = Shared(UnsafeCell::new(0));
    std::thread::scope(|s| {
        s.spawn(|| add(&shared));
        s.spawn(|| add(&shared));
    });
    // With the argument `freed` it reads freed memory as well, for the address sanitizer.
    if std::env::args().any(|a| a == "freed") {
        let freed = {
            let boxed = Box::new(7u64);
            std::ptr::from_ref(&*boxed)
        };
        // SAFETY: none: the box is gone.
        let value = unsafe { std::ptr::read_volatile(freed) };
        eprintln!("read {value} from freed memory");
    }
    eprintln!("{} additions of 200000", shared.0.into_inner());
}
