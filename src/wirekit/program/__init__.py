"""Programs: lists of structured steps for reading a layout, which the engines render or execute.

``read`` lowers the layout IR to steps, ``columns`` lists the columns that they fill, ``passes`` remove unused steps,
and ``show`` prints the steps. Nothing here imports the registry or an engine: the caller passes a function that finds
other schemas.
"""
