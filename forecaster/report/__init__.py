"""What people and machines are shown: tables, sentences, pages, pictures. Nothing here decides or computes."""
