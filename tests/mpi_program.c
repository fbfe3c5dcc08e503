/* A program that knows nothing of oneport, and does what programs rarely do.
 *
 *     mpi_program freed     communicators are made, used and freed again and again
 *     mpi_program errors    calls that the library refuses, under a handler that returns
 *     mpi_program operators as errors, of operators that the datatypes lack
 *     mpi_program refused   one of these, under the library's own handler
 *     mpi_program threads   calls on two communicators at once, from two threads
 *     mpi_program killed    process 1 dies while the others are in a call
 *
 * Process 0 prints `right` and a number, the same whoever serves the calls. */
#ifndef MPI_VERSION
#include <mpi.h>
#endif
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, right;

/* The sum of `value` over a communicator. */
static int sum(int value, MPI_Comm comm) {
    int all = -1;
    MPI_Allreduce(&value, &all, 1, MPI_INT, MPI_SUM, comm);
    return all;
}

/* Parts of other sizes under handles that were used before. */
static void freed(void) {
    MPI_Comm kept[3];
    for (int i = 0; i < 300; i++) {
        MPI_Comm *made = &kept[i % 3];
        if (i >= 3) MPI_Comm_free(made);
        int here = i % size, is_in = rank <= here, members;
        MPI_Comm_split(MPI_COMM_WORLD, is_in, rank, made);
        MPI_Comm_size(*made, &members);
        right += sum(1, *made) == members;
        right += sum(1, MPI_COMM_WORLD) == size;
    }
    for (int i = 0; i < 3; i++) MPI_Comm_free(&kept[i]);
}

static void errors(void) {
    int value = 1, all = 0, codes[4];
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    codes[0] = MPI_Bcast(&value, 1, MPI_INT, size + 5, MPI_COMM_WORLD);
    codes[1] = MPI_Allreduce(&value, &all, -1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    codes[2] = MPI_Reduce(&value, &all, 1, MPI_INT, MPI_SUM, -7, MPI_COMM_WORLD);
    codes[3] = MPI_Allreduce(&value, &all, 1, MPI_DATATYPE_NULL, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < 4; i++) right += codes[i] != MPI_SUCCESS;
    right += sum(1, MPI_COMM_WORLD) == size;
}

/* Which errors they are goes into the number, and that all goes on after them. */
static void operators(void) {
    struct { MPI_Op op; MPI_Datatype type; } lacking[] = {
        {MPI_BAND, MPI_DOUBLE}, {MPI_LXOR, MPI_FLOAT_INT}, {MPI_BOR, MPI_LONG_DOUBLE},
        {MPI_MAXLOC, MPI_INT}, {MPI_SUM, MPI_2INT}, {MPI_MAX, MPI_C_DOUBLE_COMPLEX}};
    char values[64] = {0}, all[64];
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (size_t i = 0; i < 3 * sizeof lacking / sizeof *lacking; i++) {
        MPI_Op op = lacking[i / 3].op;
        MPI_Datatype type = lacking[i / 3].type;
        int class = 0, code = i % 3 == 0 ? MPI_Allreduce(values, all, 1, type, op, MPI_COMM_WORLD)
            : i % 3 == 1 ? MPI_Reduce(values, all, 1, type, op, 0, MPI_COMM_WORLD)
                         : MPI_Scan(values, all, 1, type, op, MPI_COMM_WORLD);
        MPI_Error_class(code, &class);
        right = (right * 31 + class) % 1000003;
        if (class == MPI_SUCCESS || sum(1, MPI_COMM_WORLD) != size) right = -1000000;
    }
}

static void refused(void) {
    char value[64] = {0}, all[64];
    right = sum(1, MPI_COMM_WORLD);
    MPI_Allreduce(value, all, 1, MPI_LONG_DOUBLE, MPI_BOR, MPI_COMM_WORLD);
}

static void *of_thread(void *comm) {
    long found = 0;
    for (int i = 0; i < 2000; i++) {
        found += sum(i, *(MPI_Comm *)comm) == i * size;
        if (i % 100) continue;
        MPI_Comm own;
        MPI_Comm_dup(*(MPI_Comm *)comm, &own);
        found += sum(1, own) == size;
        MPI_Comm_free(&own);
    }
    return (void *)found;
}

static void threads(void) {
    pthread_t other;
    MPI_Comm comms[2];
    void *found;
    for (int i = 0; i < 2; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    pthread_create(&other, NULL, of_thread, &comms[0]);
    right += (int)(long)of_thread(&comms[1]);
    pthread_join(other, &found);
    right += (int)(long)found;
    for (int i = 0; i < 2; i++) MPI_Comm_free(&comms[i]);
}

static void killed(void) {
    right += sum(1, MPI_COMM_WORLD) == size;
    if (rank == 1) raise(SIGKILL);
    sum(1, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    const char *what = argc == 2 ? argv[1] : "";
    int provided, wanted = strcmp(what, "threads") ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE;
    MPI_Init_thread(&argc, &argv, wanted, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!strcmp(what, "freed")) freed();
    else if (!strcmp(what, "errors")) errors();
    else if (!strcmp(what, "operators")) operators();
    else if (!strcmp(what, "refused")) refused();
    else if (!strcmp(what, "threads") && provided < wanted) right = -1;
    else if (!strcmp(what, "threads")) threads();
    else if (!strcmp(what, "killed")) killed();
    else MPI_Abort(MPI_COMM_WORLD, 2);
    if (rank == 0) printf("right %d\n", right);
    MPI_Finalize();
    return 0;
}
