"""Files in and out: formats, what is wrong with them, digests, writing them whole."""
