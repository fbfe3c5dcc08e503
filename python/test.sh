#!/usr/bin/env bash
# Builds the wheel and the source distribution, installs the wheel into an empty virtual environment
# of each Python that PYTHONS names (python3), and runs the tests there, against the binary `oneport`.
# `python/test.sh sdist` installs what is built from the source distribution instead.
set -euo pipefail
cd "$(dirname "$0")"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/../target}
work=$CARGO_TARGET_DIR/python
tools=$work/tools
[ -x "$tools/bin/maturin" ] || { python3 -m venv "$tools" && "$tools/bin/pip" -q install 'maturin>=1.9,<2'; }
cargo fmt --check
cargo clippy -q -- -D warnings
# The wheel of a user is built with the profile `release`: this one takes a third of the time.
rm -rf "$work/dist"
"$tools/bin/maturin" build -q --profile dev --out "$work/dist"
"$tools/bin/maturin" sdist --out "$work/dist" >"$work/sdist.log" 2>&1 || { cat "$work/sdist.log"; exit 1; }
(cd .. && cargo build -q -p oneport-cli)
package=$(echo "$work"/dist/*.whl)
if [ "${1:-}" = sdist ]; then
    package=$(echo "$work"/dist/*.tar.gz)
    export MATURIN_PEP517_ARGS='--profile dev'
fi
for python in ${PYTHONS:-python3}; do
    rm -rf "$work/venv"
    "$python" -m venv "$work/venv"
    "$work/venv/bin/pip" -q install "$package" mypy nbclient ipykernel numpy pandas pytest
    # Not in this folder, whose `oneport` has no library.
    (cd tests && ONEPORT_COMMAND=$CARGO_TARGET_DIR/debug/oneport \
        "$work/venv/bin/python" -m pytest -q -p no:cacheprovider .)
done
