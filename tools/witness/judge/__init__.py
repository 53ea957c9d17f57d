"""LLVM as judge of finished code: are waits missing, hazards open, is it well formed?

The code is given to LLVM as machine IR (`mir`), as if its own backend had written it, and LLVM's
si-insert-waitcnts, post-RA-hazard-rec and machine verifier look at it (`verdicts`): what they would
insert, our code lacks.  None of it shares anything with our passes, our model of the counters or
our decoder: the bytes are read by llvm-mc.

python -m tools.witness.judge --help
"""
