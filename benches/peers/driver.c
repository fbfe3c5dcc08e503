/* Times the collectives of an MPI library in the same way as oneport times its own; see main.rs.
 *
 * driver CORES BUDGET_US OP:BYTES ...
 *
 * CORES are numbers separated by commas; rank r pins itself to the r-th of them, round-robin.
 * BUDGET_US is the time for one point, without warm-up. Each point prints one line:
 * OP BYTES REPETITIONS MIN_NS MEDIAN_NS OK. If every rank has a core, a repetition takes as long as
 * the slowest rank, otherwise from the first start to the last end. Inputs are rewritten before
 * every repetition, and results are compared after the last one, both outside the timed part.
 *
 * With -DONECCL the timed operations are those of oneccl.cpp, which has no gatherv and scatterv:
 * such a point prints nothing. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int rank, ranks;

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* Element i of rank r's input. Sums over all ranks are exact in float. */
static float element(int r, size_t i) { return (float)((r + 1) * (int)(i % 97 + 1)); }

static float sum_of(size_t i) { return (float)(ranks * (ranks + 1) / 2 * (int)(i % 97 + 1)); }

struct point {
    char op[32];
    size_t elements;    /* of the whole vector, or of all blocks together */
    int *sizes, *starts; /* of the ranks' blocks */
    float *pristine, *in, *out;
    size_t in_len, out_len;
};

static int is(const struct point *p, const char *op) { return strcmp(p->op, op) == 0; }

/* The same blocks as on oneport's side: (r mod 3) shares and the rest at the last rank, or equal
 * blocks. */
static void blocks(struct point *p) {
    size_t share = p->elements / (size_t)ranks, sum = 0;
    int irregular = is(p, "gatherv") || is(p, "scatterv");
    for (int r = 0; r < ranks; r++) {
        size_t size = irregular ? (size_t)(r % 3) * share : share;
        if (irregular && r == ranks - 1) size = 0;
        if (irregular && sum + size > p->elements) size = p->elements - sum;
        if (irregular && r == ranks - 1) size = p->elements - sum;
        p->sizes[r] = (int)size;
        p->starts[r] = (int)sum;
        sum += size;
    }
}

static void prepare(struct point *p) {
    size_t m = p->elements, mine = 0;
    blocks(p);
    mine = (size_t)p->sizes[rank];
    p->in_len = p->out_len = m;
    if (is(p, "broadcast")) p->in_len = rank == 0 ? m : 0;
    if (is(p, "allgather") || is(p, "gatherv")) p->in_len = mine;
    if (is(p, "scatterv")) p->in_len = rank == 0 ? m : 0;
    if (is(p, "scatterv") || is(p, "reduce_scatter")) p->out_len = mine;
    if ((is(p, "reduce") || is(p, "gatherv")) && rank != 0) p->out_len = 0;
    if (is(p, "barrier")) p->in_len = p->out_len = 0;
    p->pristine = malloc((p->in_len + 1) * sizeof(float));
    p->in = malloc((p->in_len + 1) * sizeof(float));
    p->out = malloc((p->out_len + 1) * sizeof(float));
    for (size_t i = 0; i < p->in_len; i++) p->pristine[i] = element(rank, i);
    memset(p->out, 0, (p->out_len + 1) * sizeof(float));
}

#ifdef ONECCL
/* See oneccl.cpp. */
void oneccl_start(int rank, int ranks);
int oneccl_has(const char *op);
void oneccl_perform(const char *op, const float *in, float *out, size_t all, size_t share);

static int has(const struct point *p) { return oneccl_has(p->op); }

static void perform(struct point *p, int n) {
    const float *in = is(p, "broadcast") && rank != 0 ? p->out : p->in;
    oneccl_perform(p->op, in, p->out, (size_t)n, (size_t)p->sizes[0]);
}
#else
static int has(const struct point *p) { return p != NULL; }

static void perform(struct point *p, int n) {
    MPI_Comm all = MPI_COMM_WORLD;
    if (is(p, "barrier")) MPI_Barrier(all);
    else if (is(p, "broadcast")) MPI_Bcast(rank == 0 ? p->in : p->out, n, MPI_FLOAT, 0, all);
    else if (is(p, "reduce")) MPI_Reduce(p->in, p->out, n, MPI_FLOAT, MPI_SUM, 0, all);
    else if (is(p, "allreduce")) MPI_Allreduce(p->in, p->out, n, MPI_FLOAT, MPI_SUM, all);
    else if (is(p, "allgather")) MPI_Allgather(p->in, p->sizes[0], MPI_FLOAT, p->out, p->sizes[0], MPI_FLOAT, all);
    else if (is(p, "gatherv")) MPI_Gatherv(p->in, p->sizes[rank], MPI_FLOAT, p->out, p->sizes, p->starts, MPI_FLOAT, 0, all);
    else if (is(p, "scatterv")) MPI_Scatterv(p->in, p->sizes, p->starts, MPI_FLOAT, p->out, p->sizes[rank], MPI_FLOAT, 0, all);
    else if (is(p, "reduce_scatter")) MPI_Reduce_scatter(p->in, p->out, p->sizes, MPI_FLOAT, MPI_SUM, all);
    else if (is(p, "alltoall")) MPI_Alltoall(p->in, p->sizes[0], MPI_FLOAT, p->out, p->sizes[0], MPI_FLOAT, all);
    else MPI_Abort(all, 2);
}
#endif

static int right(const struct point *p) {
    for (size_t i = 0; i < p->out_len; i++) {
        float expected;
        if (is(p, "broadcast")) {
            if (rank == 0) return 1;
            expected = element(0, i);
        } else if (is(p, "reduce") || is(p, "allreduce")) {
            expected = sum_of(i);
        } else if (is(p, "reduce_scatter")) {
            expected = sum_of((size_t)p->starts[rank] + i);
        } else if (is(p, "scatterv")) {
            expected = element(0, (size_t)p->starts[rank] + i);
        } else {
            int from = 0;
            while (from + 1 < ranks && (size_t)p->starts[from + 1] <= i) from++;
            size_t at = i - (size_t)p->starts[from];
            expected = element(from, is(p, "alltoall") ? at + (size_t)p->starts[rank] : at);
        }
        if (p->out[i] != expected) return 0;
    }
    return 1;
}

static int64_t span(struct point *p, int oversubscribed) {
    int64_t t[2], *all = NULL;
    /* No rank refills its buffer while others are still running the last repetition. */
    MPI_Barrier(MPI_COMM_WORLD);
    memcpy(p->in, p->pristine, p->in_len * sizeof(float));
    MPI_Barrier(MPI_COMM_WORLD);
    t[0] = now();
    perform(p, (int)p->elements);
    t[1] = now();
    if (rank == 0) all = malloc((size_t)ranks * sizeof t);
    MPI_Gather(t, 2, MPI_INT64_T, all, 2, MPI_INT64_T, 0, MPI_COMM_WORLD);
    int64_t result = 0;
    if (rank == 0) {
        int64_t first = all[0], last = all[1];
        for (int r = 0; r < ranks; r++) {
            if (all[2 * r] < first) first = all[2 * r];
            if (all[2 * r + 1] > last) last = all[2 * r + 1];
            if (all[2 * r + 1] - all[2 * r] > result) result = all[2 * r + 1] - all[2 * r];
        }
        if (oversubscribed) result = last - first;
        free(all);
    }
    return result;
}

static int ascending(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void measure(struct point *p, int64_t budget, int oversubscribed) {
    prepare(p);
    int64_t one = 0, repetitions;
    for (int i = 0; i < 3; i++) one = span(p, oversubscribed);
    repetitions = budget / (one + 1000);
    if (repetitions < 3) repetitions = 3;
    if (repetitions > 1000) repetitions = 1000;
    MPI_Bcast(&repetitions, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
    int64_t *times = malloc((size_t)repetitions * sizeof *times);
    for (int64_t i = 0; i < repetitions; i++) times[i] = span(p, oversubscribed);
    int mine = right(p), ok = 0;
    MPI_Reduce(&mine, &ok, 1, MPI_INT, MPI_LAND, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        qsort(times, (size_t)repetitions, sizeof *times, ascending);
        printf("%s %zu %lld %lld %lld %d\n", p->op, p->elements * sizeof(float), (long long)repetitions,
               (long long)times[0], (long long)times[repetitions / 2], ok);
        fflush(stdout);
    }
    free(times);
    free(p->pristine);
    free(p->in);
    free(p->out);
}

int main(int argc, char **argv) {
#ifdef ONECCL
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
#else
    MPI_Init(&argc, &argv);
#endif
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 3) MPI_Abort(MPI_COMM_WORLD, 2);
    int cores[1024], count = 0;
    for (char *c = strtok(argv[1], ","); c && count < 1024; c = strtok(NULL, ",")) cores[count++] = atoi(c);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cores[rank % count], &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) fprintf(stderr, "rank %d is not pinned\n", rank);
#ifdef ONECCL
    oneccl_start(rank, ranks);
#endif
    for (int i = 3; i < argc; i++) {
        struct point p;
        memset(&p, 0, sizeof p);
        unsigned long long bytes;
        if (sscanf(argv[i], "%31[^:]:%llu", p.op, &bytes) != 2) MPI_Abort(MPI_COMM_WORLD, 2);
        p.elements = bytes / sizeof(float);
        p.sizes = calloc((size_t)ranks, sizeof(int));
        p.starts = calloc((size_t)ranks, sizeof(int));
        if (has(&p)) measure(&p, atoll(argv[2]) * 1000, ranks > count);
        free(p.sizes);
        free(p.starts);
    }
    MPI_Finalize();
    return 0;
}
