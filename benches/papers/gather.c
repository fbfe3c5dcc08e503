/* Tables 1 to 6 of Träff's adaptive gather trees, as they were made: MPI_Gatherv beside MPI_Gather
 * of as much data, and beside padding, by which all agree on the largest block and gather as if
 * all had it (the paper's guideline 2).
 *
 *     mpicc -O2 -o gather benches/papers/gather.c
 *     mpirun -n 4 -x LD_PRELOAD=$PWD/target/release/liboneport_mpi.so ./gather [BLOCK ...]
 *
 * BLOCK is the average number of integers of a rank: 1, 10, 100, 1000, 10000 without one. Under
 * liboneport_mpi.so the column `served` is MPI_Gatherv by the adaptive tree, which the processes
 * build inside the call; PMPI_Gatherv, beside it, is the library's own. Without it both are.
 *
 * Each time is that of the slowest process, after a barrier: average and least of 75 calls, after 10
 * that are not timed, in microseconds. Blocks are compared after the last call. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPETITIONS = 75, WARMUP = 10, RHO = 5, MAX_BLOCK = 1000000 };

static int rank, ranks, *sizes, *starts, largest, total, *own, *all, *padded;

/* Whole numbers from 1 to `max`, the same on all processes. */
static int uniform(int max) {
    static unsigned long state = 1;
    state = state * 6364136223846793005UL + 1442695040888963407UL;
    return 1 + (int)((state >> 33) % (unsigned long)max);
}

static int size_of(const char *name, int i, int b) {
    if (!strcmp(name, "Same")) return b;
    if (!strcmp(name, "Random")) return uniform(2 * b);
    if (!strcmp(name, "Spikes")) return uniform(RHO) == 1 ? RHO * b : 1;
    if (!strcmp(name, "Decreasing")) return (int)(2L * b * (ranks - i) / ranks) + 1;
    if (!strcmp(name, "Alternating")) return i % 2 ? b - b / 2 : b + b / 2;
    return i == 0 || i == ranks - 1 ? b : 0; /* Two blocks */
}

static void gather(void) {
    int equal = (total + ranks - 1) / ranks;
    MPI_Gather(own, equal, MPI_INT, all, equal, MPI_INT, 0, MPI_COMM_WORLD);
}

static void padding(void) {
    int most;
    MPI_Allreduce(&sizes[rank], &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Gather(own, most, MPI_INT, padded, most, MPI_INT, 0, MPI_COMM_WORLD);
}

static void library(void) {
    PMPI_Gatherv(own, sizes[rank], MPI_INT, all, sizes, starts, MPI_INT, 0, MPI_COMM_WORLD);
}

static void served(void) {
    MPI_Gatherv(own, sizes[rank], MPI_INT, all, sizes, starts, MPI_INT, 0, MPI_COMM_WORLD);
}

/* Prints average and least time of a call. */
static void measure(void (*call)(void)) {
    double sum = 0, least = 1e30;
    for (int i = 0; i < WARMUP + REPETITIONS; i++) {
        PMPI_Barrier(MPI_COMM_WORLD);
        double start = PMPI_Wtime(), mine, slowest;
        call();
        mine = PMPI_Wtime() - start;
        PMPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (i < WARMUP) continue;
        sum += slowest;
        if (slowest < least) least = slowest;
    }
    if (rank == 0) printf(" %10.2f %10.2f", 1e6 * sum / REPETITIONS, 1e6 * least);
}

static void row(const char *name, int b) {
    largest = total = 0;
    for (int i = 0; i < ranks; i++) {
        sizes[i] = size_of(name, i, b);
        starts[i] = total;
        total += sizes[i];
        if (sizes[i] > largest) largest = sizes[i];
    }
    size_t most = (size_t)largest + (size_t)(total / ranks) + 1;
    own = malloc(most * sizeof(int));
    for (size_t i = 0; i < most; i++) own[i] = rank + 1;
    all = calloc((size_t)total + (size_t)ranks, sizeof(int));
    padded = malloc(((size_t)largest * (size_t)ranks + 1) * sizeof(int));
    if (rank == 0) printf("%-11s %8d %8d %8d", name, b, total, largest * ranks);
    measure(gather);
    measure(padding);
    measure(library);
    memset(all, 0, (size_t)total * sizeof(int));
    measure(served);
    if (rank == 0) printf("\n");
    for (int r = 0; rank == 0 && r < ranks; r++)
        for (int i = 0; i < sizes[r]; i++)
            if (all[starts[r] + i] != r + 1) {
                fprintf(stderr, "wrong: block %d\n", r);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
    free(own), free(all), free(padded);
}

int main(int argc, char **argv) {
    const char *names[] = {"Same", "Random", "Spikes", "Decreasing", "Alternating", "Two blocks"};
    int blocks[16] = {1, 10, 100, 1000, 10000}, count = 5;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc > 1) count = argc - 1;
    for (int i = 1; i < argc; i++) {
        char *end = argv[i];
        long b = strtol(argv[i], &end, 10);
        if (count > 16 || end == argv[i] || *end || b < 1 || b > MAX_BLOCK) {
            if (rank == 0) fprintf(stderr, "usage: gather [BLOCK ...], at most 16, each from 1 to %d\n", MAX_BLOCK);
            MPI_Finalize();
            return 2;
        }
        blocks[i - 1] = (int)b;
    }
    sizes = calloc((size_t)ranks, sizeof(int)), starts = calloc((size_t)ranks, sizeof(int));
    const char *loaded = getenv("LD_PRELOAD");
    if (rank == 0)
        printf("%d processes, %s\n%-11s %8s %8s %8s %21s %21s %21s %21s\n", ranks,
               loaded && strstr(loaded, "liboneport_mpi") ? "served by liboneport_mpi.so" : "not served: no liboneport_mpi.so in LD_PRELOAD",
               "blocks", "b", "m", "m'", "MPI_Gather", "padding", "MPI_Gatherv", "served");
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        for (int i = 0; i < count; i++) row(names[n], blocks[i]);
    MPI_Finalize();
    return 0;
}
