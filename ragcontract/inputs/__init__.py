"""Reading: files in, frozen records out, and everything that is wrong with them said at once."""
