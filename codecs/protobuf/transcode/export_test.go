package transcode

import "reflect"

// Supports reports whether objects of a type are not given up for their type alone.
func Supports(t reflect.Type) bool { return planOf(nil, t) != nil }
