"""Wire and state shapes: msgspec Structs, and the decoders that read them."""
