"""The offer, and what carries it out of the computing process: table file, gauges, remote write."""
