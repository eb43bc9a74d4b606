package codecs

// The lists below go once their callers ask package forms.

var (
	types           = []string{JSON, YAML, Protobuf}
	typesCBOR       = []string{JSON, YAML, Protobuf, CBOR}
	customTypes     = []string{JSON, YAML}
	customTypesCBOR = []string{JSON, YAML, CBOR}
	listTypes       = []string{JSON, YAML, Protobuf, JSON + ";stream=watch", Protobuf + ";stream=watch"}
	listTypesCBOR   = []string{JSON, YAML, Protobuf, CBOR, JSON + ";stream=watch", Protobuf + ";stream=watch", CBORSeq}
)

// Types is Forms.Types of package forms.
func Types(cbor bool) []string { return choose(cbor, typesCBOR, types) }

// CustomTypes is Forms.CustomTypes of package forms.
func CustomTypes(cbor bool) []string { return choose(cbor, customTypesCBOR, customTypes) }

// ListTypes is Forms.ListTypes of package forms.
func ListTypes(cbor bool) []string { return choose(cbor, listTypesCBOR, listTypes) }

func choose(cbor bool, with, without []string) []string {
	if cbor {
		return with
	}
	return without
}

// PatchTypes is Forms.PatchTypes of package forms.
func PatchTypes(custom, cbor bool) []string {
	list := []string{PatchJSON, PatchMerge}
	if !custom {
		list = append(list, PatchStrategic)
	}
	list = append(list, PatchApplyYAML)
	if cbor {
		list = append(list, PatchApplyCBOR)
	}
	return list
}
