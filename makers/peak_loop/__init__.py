"""Main loops of a float32 product, written anew in machine code for sm_90."""
