"""One broadcast from rank 0 by an MPI library, without a binding of its own.

    mpi_bcast.py LIBRARY BYTES SHORT

All ranks but the root pass SHORT bytes less than it: a mistake to which a library answers in a way
that tells its algorithm.
"""

import ctypes
import os
import sys

lib = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
size, short = int(sys.argv[2]), int(sys.argv[3])


def handle(number, symbol):
    """A handle: MPICH's are numbers, Open MPI's are addresses."""
    try:
        return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(lib, symbol)))
    except ValueError:
        return ctypes.c_int(number)


world = handle(0x44000000, "ompi_mpi_comm_world")
byte = handle(0x4C00010D, "ompi_mpi_byte")
lib.MPI_Init(None, None)
rank = ctypes.c_int()
lib.MPI_Comm_rank(world, ctypes.byref(rank))
count = size - short if rank.value else size
lib.MPI_Bcast(ctypes.create_string_buffer(size), count, byte, 0, world)
os.write(1, b"done\n")
lib.MPI_Finalize()
