#!/bin/sh
# Runs the tests of transfers, executors and endpoints under sanitizers.
#
#   tests/sanitize.sh                  the long pass: thread sanitizer, then address sanitizer
#   tests/sanitize.sh thread|address   the long pass under one of them
#   tests/sanitize.sh quick            a short pass under the thread sanitizer, for CI
#
# ONEPORT_FAULTS=N sets the number of cases of each kind that tests/threads/faults runs. The default
# is 100 in the short pass and 1000 in the long pass.
#
# This is not part of `cargo test`, because it builds everything again into its own target folder
# and takes minutes. It needs no nightly toolchain. It fails if the sanitizer reports anything in a
# test. It also fails if the sanitizer does not report the fault that tests/threads/planted_race.rs
# contains, since then the absence of reports proves nothing. If the toolchain has no sanitizer for
# this machine, it prints a message and checks nothing.
#
# The thread sanitizer ignores fences. Only the parker (src/run/wait/parker.rs) relies on fences,
# and only to order two atomics. They publish no other data, so the sanitizer reports no false
# races. tests/model checks the parker.
set -eu
cd "$(dirname "$0")/.."
case ${1:-all} in
all)
    tests/sanitize.sh thread
    exec tests/sanitize.sh address
    ;;
quick) kind=thread quick=yes ;;
thread | address) kind=$1 quick=no ;;
*)
    echo "usage: tests/sanitize.sh [quick|thread|address]" >&2
    exit 2
    ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo "== no pointer is made of a number"
# The lints are unstable, so they are enabled here, for the library only, and without the sanitizer:
# by a wrapper, since build scripts of other packages run again wherever the variable changes.
printf '#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec "$@"\n' >"$work/unstable"
chmod +x "$work/unstable"
CARGO_INCREMENTAL=0 RUSTC_WORKSPACE_WRAPPER="$work/unstable" \
    cargo rustc -p oneport --lib --profile check -- \
    -Zcrate-attr='feature(strict_provenance_lints)' \
    -Dfuzzy_provenance_casts -Dlossy_provenance_casts

# In a folder of its own, for the same reason.
export RUSTC_BOOTSTRAP=1
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/sanitize-$kind"
export RUSTFLAGS="-Zsanitizer=$kind -Cunsafe-allow-abi-mismatch=sanitizer"
# This build is rarely repeated, so incremental compilation does not pay. Reports need line tables
# only.
export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=line-tables-only
target=$(rustc -vV | sed -n 's/^host: //p')

echo 'fn main() { std::thread::spawn(|| ()).join().unwrap(); }' >"$work/empty.rs"
# shellcheck disable=SC2086
if ! rustc $RUSTFLAGS --target "$target" -o "$work/empty" "$work/empty.rs" 2>"$work/why" ||
    ! "$work/empty" 2>"$work/why"; then
    cat "$work/why" >&2
    echo "SKIPPED: no $kind sanitizer for $target on this machine; nothing was checked" >&2
    exit 0
fi

case $kind in
thread)
    # crossbeam-channel synchronizes with fences, which the sanitizer ignores. The test harness
    # passes the result of a test through the standard library, which is not instrumented. Never
    # suppress test functions: that would also hide races in the crate.
    printf 'race:crossbeam_channel\nrace:CompletedTest\n' >"$work/suppressions"
    export TSAN_OPTIONS="suppressions=$work/suppressions halt_on_error=0 exitcode=66"
    fault=
    ;;
address)
    export ASAN_OPTIONS="detect_leaks=1"
    fault=freed
    ;;
esac

echo "== the planted fault ($kind sanitizer)"
cargo build --target "$target" -p oneport-threads --example planted_race
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

echo "== the tests ($kind sanitizer)"
# If several ranks panic at the same time, the standard library prints backtraces and captures the
# output under locks that the sanitizer does not see. So both are disabled.
export RUST_BACKTRACE=0
# The sanitizers cannot handle thousands of threads, and running every algorithm takes too long.
set -- --test-threads 1 --no-capture --skip every_algorithm \
    --skip two_thousand_ranks --skip a_hundred_thousand_ranks
if [ $kind = address ]; then
    # A team leaks a panic's payload whose drop panics, on purpose.
    set -- "$@" --skip a_panic_that_panics_when_dropped
fi
if [ $quick = yes ]; then
    tests="faults:: endpoint:: stress:: transfer::"
    export ONEPORT_FAULTS="${ONEPORT_FAULTS:-100}"
else
    tests="faults:: endpoint:: run:: stress:: transfer::"
    export ONEPORT_FAULTS="${ONEPORT_FAULTS:-1000}"
fi
# shellcheck disable=SC2086
cargo test --target "$target" -p oneport-threads --test threads -- "$@" $tests
echo "no reports ($kind sanitizer)"
