"""Programs: lists of steps that read records of a layout to columns, or write columns as records.

``read`` and ``write`` generate the steps from the layout IR, ``columns`` has their columns, ``passes`` remove unused
steps, and ``show`` prints steps. ``wirekit.runtime`` executes them. Nothing here imports the registry or an engine.
"""
