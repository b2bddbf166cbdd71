"""The engine on a GPU, through CuPy. Kernels are the `.cu` files in this folder. They are compiled on first use and cached by
CuPy.

May import: `_types`, `_messages`, and the engine's modules for descriptions and threads.
"""
