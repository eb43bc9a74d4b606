package yaml

// These go once their callers are given a Codec.

func FromJSON(dst, data []byte) ([]byte, error) { return Codec{}.FromJSON(dst, data) }
