#!/bin/sh
# Runs the tests of executor and endpoints under the thread sanitizer (or `tests/sanitize.sh address`: the address sanitizer).
#
# Not part of `cargo test`: it builds everything once more, into its own target folder, and takes minutes. Needs no nightly
# toolchain. Fails when the sanitizer reports anything in a test, and when it does not report the fault planted in
# examples/planted_race.rs, because then its silence means nothing.
#
# The thread sanitizer does not know fences. Only the bell (src/run/bell.rs) relies on fences, and only to order two
# atomics; no data is handed over by them, so they cause no reports. tests/model checks them.
set -eu
cd "$(dirname "$0")/.."
kind=${1:-thread}
target=x86_64-unknown-linux-gnu
export RUSTC_BOOTSTRAP=1
export RUSTFLAGS="-Zsanitizer=$kind -Cunsafe-allow-abi-mismatch=sanitizer"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/sanitize-$kind"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

case $kind in
thread)
    # crossbeam-channel orders by fences, which the sanitizer does not know; the test harness reports a finished test through the standard
    # library, which is not built for it. Never suppress test functions: races in the crate would go with them.
    printf 'race:crossbeam_channel\nrace:CompletedTest\n' >"$work/suppressions"
    export TSAN_OPTIONS="suppressions=$work/suppressions halt_on_error=0 exitcode=66"
    fault=
    skip=
    ;;
address)
    export ASAN_OPTIONS="detect_leaks=1"
    fault=freed
    # What panics when dropped is leaked on purpose.
    skip="--skip a_panic_that_panics_when_dropped"
    ;;
*)
    echo "usage: tests/sanitize.sh [thread|address]" >&2
    exit 2
    ;;
esac

echo "== no pointer is made of a number"
# The lints are not stable. They run on the library alone.
cargo rustc --target "$target" --lib --profile check -- -Zcrate-attr='feature(strict_provenance_lints)' \
    -Dfuzzy_provenance_casts -Dlossy_provenance_casts

echo "== the planted fault"
cargo build --target "$target" --example planted_race
if "$CARGO_TARGET_DIR/$target/debug/examples/planted_race" $fault >"$work/canary" 2>&1; then
    cat "$work/canary"
    echo "the $kind sanitizer missed the planted fault" >&2
    exit 1
fi
grep -q 'Sanitizer' "$work/canary" || {
    cat "$work/canary"
    echo "the planted fault failed in another way" >&2
    exit 1
}
echo "caught: $(grep -m 1 'Sanitizer' "$work/canary")"

echo "== the tests"
# Two thousand threads are too many for the sanitizer, and running every algorithm takes too long. What ranks that panic at once print,
# the standard library would capture, and look up for backtraces, under locks that the sanitizer does not see.
export RUST_BACKTRACE=0
cargo test --target "$target" --test run --test endpoint --test stress -- --test-threads 1 --no-capture \
    --skip two_thousand_ranks --skip a_hundred_thousand_ranks --skip every_algorithm_runs $skip
echo "no reports"
