"""Programs: lists of structured steps for reading a layout, which the engines render or execute.

``read`` makes the steps of the layout IR, ``columns`` says which columns they fill, ``passes`` shorten them, ``show``
prints them. Nothing here imports the registry or an engine: who needs another schema gives a function that finds it.
"""
