"""The proof: a 2×2 experiment, {prefix cache off, on} × {speculation off, on}, that anyone can run on their own server.

It talks to servers over HTTP alone and knows nothing of the engine, so that ours is measured as any other is.
"""
