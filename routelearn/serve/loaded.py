"""What service workers have in common: imported once, by the process that they are forked from."""

import gc

gc.disable()  # a pass over all that torch keeps takes longer than importing it; a worker collects when it is ready

import torch  # noqa: E402, F401

from routelearn.decoding import decode  # noqa: E402, F401
from routelearn.rounds import search as rounds_search  # noqa: E402, F401
from routelearn.search import search  # noqa: E402, F401
from routelearn.serve import answering, reading, think  # noqa: E402, F401

gc.collect()
gc.freeze()  # a collector that looks through these objects would copy the memory that workers share
