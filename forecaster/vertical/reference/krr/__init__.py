"""KRR 1.29: its two strategies, and how it rounds, judges and prints what they say."""
