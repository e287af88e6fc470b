"""The compiler: construct graph to layout IR to engines (rows, trace, columns)."""
