"""What is measured beside programs in C, or beside cp, mv and find, and where no peer could take part."""
