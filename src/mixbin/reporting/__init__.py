"""Pages: what a command left in a folder, as one HTML file that a person wants to look at."""
