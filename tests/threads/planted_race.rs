//! A deliberate data race: `tests/sanitize.sh` uses it to check that the sanitizer reports one. It
//! has no other use.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;

struct Shared(UnsafeCell<u64>);

// SAFETY: none; the type is unsound on purpose.
unsafe impl Sync for Shared {}

fn add(shared: &Shared) {
    for _ in 0..100_000 {
        // SAFETY: none; two threads race here on purpose.
        unsafe { *shared.0.get() += 1 };
    }
}

fn main() {
    let shared = Shared(UnsafeCell::new(0));
    std::thread::scope(|s| {
        s.spawn(|| add(&shared));
        s.spawn(|| add(&shared));
    });
    // With the argument `freed` it also reads freed memory, for the address sanitizer.
    if std::env::args().any(|a| a == "freed") {
        let freed = {
            let boxed = Box::new(7u64);
            std::ptr::from_ref(&*boxed)
        };
        // SAFETY: none; the box has been freed.
        let value = unsafe { std::ptr::read_volatile(freed) };
        eprintln!("read {value} from freed memory");
    }
    eprintln!("{} additions of 200000", shared.0.into_inner());
}
