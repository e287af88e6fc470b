"""Decodes captures by columns: plain connections in passes over arrays, odd flows by objects.

- ``packets`` reads a capture file into arrays of TCP segments, by the layouts of ``net`` in the columns engine;
  ``windows`` does so window by window.
- ``streams`` groups segments into flows, and joins the bytes of each plain connection.
- ``index`` finds the frames in the streams: schema, API and request of each frame, without Python code per frame.
- ``contents`` decodes the frames, and ``assembly`` makes the rows of the pipeline's tables from them.
- ``connections`` keeps connections from window to window, and ``tracking`` passes them between columns and objects.
- ``reading`` reads a window by both in turn, and ``tables`` a capture; odd flows take ``wirekit.pipeline.flows``.

A connection is plain if all of its bytes are captured, in any order or repeated. Its frames are indexed if its protocol
declares a pairing (``wirekit.conversation.pairing``), all frames decode, and every response has its request; otherwise
``wirekit.conversation`` follows its bytes. Every other flow is odd. Objects are the reference: both roads give the same
rows (docs/road.md).
"""
