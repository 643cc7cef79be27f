"""Who is asking and whether they may: front proxy and tokens, reviews by the API server, and a line for each denial."""
