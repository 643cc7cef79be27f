"""crane 0.11: its percentile recommendation, the ladder of sizes, and the error it judges predictors by."""
