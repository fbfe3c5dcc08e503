// The timed operations of driver.c with oneCCL for CPUs, in processes that Intel MPI starts.

#include <cstdio>
#include <cstring>
#include <mpi.h>
#include <oneapi/ccl.hpp>

static ccl::communicator *communicator;

extern "C" void oneccl_start(int rank, int ranks) {
    ccl::init();
    ccl::kvs::address_type address;
    ccl::shared_ptr_class<ccl::kvs> kvs;
    if (rank == 0) {
        kvs = ccl::create_main_kvs();
        address = kvs->get_address();
    }
    MPI_Bcast(address.data(), (int)address.size(), MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rank != 0) kvs = ccl::create_kvs(address);
    communicator = new ccl::communicator(ccl::create_communicator(ranks, rank, kvs));
}

extern "C" int oneccl_has(const char *op) {
    return std::strcmp(op, "gatherv") != 0 && std::strcmp(op, "scatterv") != 0;
}

extern "C" void oneccl_perform(const char *op, const float *in, float *out, size_t all, size_t share) {
    auto is = [op](const char *name) { return std::strcmp(op, name) == 0; };
    const auto type = ccl::datatype::float32;
    const auto sum = ccl::reduction::sum;
    // Broadcasts are in place: the input of the root, the output of the others.
    if (is("broadcast")) ccl::broadcast((void *)in, all, type, 0, *communicator).wait();
    else if (is("reduce")) ccl::reduce(in, out, all, type, sum, 0, *communicator).wait();
    else if (is("allreduce")) ccl::allreduce(in, out, all, type, sum, *communicator).wait();
    else if (is("allgather")) ccl::allgather(in, out, share, type, *communicator).wait();
    else if (is("reduce_scatter")) ccl::reduce_scatter(in, out, share, type, sum, *communicator).wait();
    else if (is("alltoall")) ccl::alltoall(in, out, share, type, *communicator).wait();
    else ccl::barrier(*communicator).wait();
}
