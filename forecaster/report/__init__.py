"""Output for people and machines: tables, sentences, pages, pictures. Nothing here decides or computes."""
