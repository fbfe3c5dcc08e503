/* An MPI library with one defect, the one that DEFECT names: it is loaded in place of the library
 * that it is linked with. A handle is passed on as a word, whatever it is. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static int has(const char *defect) {
    const char *named = getenv("DEFECT");
    return named && strcmp(named, defect) == 0;
}

/* Only one thread is allowed: MPI_THREAD_SINGLE is 0 in every interface. */
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    int (*real)(int *, char ***, int, int *) = dlsym(RTLD_NEXT, "MPI_Init_thread");
    int code = real(argc, argv, required, provided);
    if (has("threads"))
        *provided = 0;
    return code;
}

/* Requests of process 0 cannot be tested any more after a while. */
int MPI_Test(void *request, int *flag, void *status) {
    static int (*real)(void *, int *, void *);
    static int calls, fails;
    if (!real) {
        const char *rank = getenv("OMPI_COMM_WORLD_RANK");
        rank = rank ? rank : getenv("PMI_RANK");
        fails = has("test") && rank && strcmp(rank, "0") == 0;
        real = (int (*)(void *, int *, void *))dlsym(RTLD_NEXT, "MPI_Test");
    }
    return fails && ++calls > 100 ? 1 : real(request, flag, status);
}

/* Tags are 0, 1 and 2, and others are refused. */
int MPI_Comm_get_attr(void *comm, int key, void *value, int *found) {
    static int max_tag = 2;
    int (*real)(void *, int, void *, int *) = dlsym(RTLD_NEXT, "MPI_Comm_get_attr");
    int code = real(comm, key, value, found);
    if (has("tags"))
        *(int **)value = &max_tag;
    return code;
}

int MPI_Isend(const void *from, int n, void *type, int to, int tag, void *comm, void *request) {
    int (*real)(const void *, int, void *, int, int, void *, void *) = dlsym(RTLD_NEXT, "MPI_Isend");
    return has("tags") && tag > 2 ? 4 : real(from, n, type, to, tag, comm, request);
}
