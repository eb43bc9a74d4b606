// Package jsoniterator replaces the library of that name for structured-merge-diff, which reads and writes
// the managed fields with it. It has the parts that this one caller uses, and reads and writes the same JSON.
//
// The library makes its types by reflection, with a package whose types have each method of reflect.Type. One
// of those looks methods up by name, and a linker that sees it keeps every exported method of every type: a
// ninth of the binary.
//
// The replace line of rowlock's go.mod puts it in the library's place. Without the line the library is
// linked, and everything works as before; a program that imports rowlock's packages has the library.
package jsoniter

// API is a way of reading and writing. There is one.
type API struct{}

// ConfigCompatibleWithStandardLibrary reads and writes as encoding/json does.
var ConfigCompatibleWithStandardLibrary = API{}
