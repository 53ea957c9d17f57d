"""The optimising tier: whole kernels as LLVM IR of one lane, compiled by LLVM's AMDGPU backend.

The semantics of each instruction are read over values of one lane (:mod:`.domain`); registers are
stack slots that LLVM turns into values; control flow is the graph's.  What is not known to be right
is refused for the whole kernel (:mod:`.refusal`), and the rules' code stays.
"""
