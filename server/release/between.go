package release

// Between is a range of releases outside the table: from Since on, and before Gone. The zero value is all releases.
type Between struct {
	Since Version `json:"since"`
	Gone  Version `json:"gone"` // the oldest release: never
}

// Has reports whether a feature with this lifetime exists in a release.
func (b Between) Has(v Version) bool { return b.Since <= v && (b.Gone == Oldest || v < b.Gone) }

// UnmarshalText reads a release that a server can be.
func (v *Version) UnmarshalText(text []byte) error {
	read, err := Parse(string(text))
	if err == nil && !read.Known() {
		err = unknown(string(text))
	}
	if err != nil {
		return err
	}
	*v = read
	return nil
}
