"""Where Spark looks for the data source ``wirekit``; imported in every helper process, so kept light."""
