"""The engine on a GPU, by CuPy: kernels are the `.cu` files beside this, compiled when first needed and kept by CuPy.

May import: `_types`, `_messages`, and of the engine what has no loops.
"""
