"""GIFT-Eval's `bitbrains_rnd/5T/short`: our model beside the rows that its leaderboard publishes."""
