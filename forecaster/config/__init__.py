"""Settings of every package in one file, their faults and their text. No rule of the product lives here."""
