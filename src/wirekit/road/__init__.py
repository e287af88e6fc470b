"""Captures to frames by columns: what is usual in one pass over arrays, what is odd by objects.

- ``packets``: a capture file to arrays of TCP segments, by the layouts of ``net`` in the columns engine.
- ``streams``: segments to flows, and the bytes of each plain connection put together.
- ``pairing``: what a protocol declares, so that its frames are named and paired by joins.
- ``index``: streams to the frame index: schema, API, request of each frame, without work in Python for any of them.
- ``tables``: the index to rows of the pipeline's tables; odd flows take ``wirekit.pipeline.flows``.

A connection is plain when all of its bytes are there, in order or repeated. It is indexed when the handshake is there
too, its protocol declares its pairing, its frames decode and its responses have requests; else its bytes are followed
by ``wirekit.conversation``. Every other flow is odd. Objects are the reference: both roads give the same rows.
"""
