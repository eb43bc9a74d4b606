package schema

// DefinitionText is the file of definitions.
func DefinitionText() string { return definitionText }

// Undescribed yields the lines of the file, by the names that documents use.
func Undescribed(yield func(name, schema string) bool) {
	for name, schema := range undescribed() {
		if !yield(packageName(name), schema) {
			return
		}
	}
}

// Made is what was made of the definitions so far, compressed.
func (d *Documents) Made() []byte { return d.packed }
