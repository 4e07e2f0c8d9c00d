"""Comparisons with programs in C, or with cp, mv and find, in which no peer can take part."""
