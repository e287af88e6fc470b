"""The compiler: lowers construct graphs to the layout IR, and generates the engines from it (rows, trace, columns)."""
