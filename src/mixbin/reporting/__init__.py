"""Pages: show the files that a command wrote to a folder as one HTML file for people."""
