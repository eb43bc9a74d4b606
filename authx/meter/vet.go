package meter

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/parser"
)

// A few hundred bytes can keep the library's compiler busy for hours. optMap and optFlatMap duplicate their
// target, so that a chain of thirty of them becomes a tree of 2^30 parts; and a map whose keys have the type
// of its values has a type of twice the size, which is written out whenever it is compared. Neither can be
// interrupted.

const (
	// maxParts is the maximum number of parts of an expression, after the expansion of macros.
	maxParts = 250_000
	// maxTyping bounds the parts of an expression, times the size that a type in it can have.
	maxTyping = 1 << 20
	// maxDeep bounds the parts of an expression, times the square of the nesting depth of lists and maps if
	// that is greater than plainDepth: each of them is compared with everything in it, type by type.
	maxDeep    = 200_000
	plainDepth = 8
	// maxOpen bounds the parts of an expression, times the number of empty lists and maps: the type of their
	// elements is inferred, and kept for everything that follows.
	maxOpen = 10_000_000
	// maxInstructions bounds the compiled size of the patterns in an expression.
	maxInstructions = 100_000
	// maxLength is the limit of the library, which refuses longer texts itself.
	maxLength = 100_000
)

// Vet returns an error if compiling a text would cost more than its length suggests. The error is
// for the author of the text, in place of an error of the compiler.
func Vet(text string) error {
	// Behind a backslash can be any sign of a pattern.
	plain := !strings.ContainsAny(text, `{\`) && !strings.Contains(text, "Map") && strings.Count(text, "[") <= plainDepth
	if plain || len(text) > 4*maxLength {
		return nil
	}
	parse, err := reader()
	if err != nil {
		return err
	}
	source := common.NewTextSource(text)
	tree, errs := parse.Parse(source)
	if len(errs.GetErrors()) > 0 {
		return errors.New(errs.ToDisplayString())
	}
	var w weigher
	parts := w.of(tree.Expr())
	switch {
	case parts > maxParts:
		return fmt.Errorf("the expression is too large, with what its macros stand for")
	case parts*(1+w.nested)*math.Exp2(w.keyed) > maxTyping, w.deepest > plainDepth && parts*w.deepest*w.deepest > maxDeep, parts*w.open > maxOpen:
		return fmt.Errorf("the types of the expression are too large")
	case w.patterns > maxInstructions:
		return fmt.Errorf("the patterns of the expression are compiled to more than %d instructions", maxInstructions)
	}
	return nil
}

// reader reads expressions without their macros.
func reader() (*parser.Parser, error) { return parser.NewParser(parser.EnableOptionalSyntax(true)) }

// weigher adds up the size of a compiled expression.
type weigher struct {
	nested   float64 // functions that make types of types
	keyed    float64 // maps whose keys may be of any type
	patterns int
	open     float64 // lists and maps that are empty

	depth, deepest float64 // of lists and maps in one another
}

// inside enters a level; calling the result leaves it.
func (w *weigher) inside() (leave func()) {
	w.depth++
	w.deepest = max(w.deepest, w.depth)
	return func() { w.depth-- }
}

// partsOfMacro is about how many parts a macro adds.
const partsOfMacro = 12

// of counts the parts of an expression.
func (w *weigher) of(e ast.Expr) float64 {
	n := 1.0
	switch e.Kind() {
	case ast.CallKind:
		return w.call(e.AsCall())
	case ast.SelectKind:
		return 1 + w.of(e.AsSelect().Operand())
	case ast.ListKind:
		defer w.inside()()
		if len(e.AsList().Elements()) == 0 {
			w.open++
		}
		plain := true
		for _, item := range e.AsList().Elements() {
			plain = plain && (item.Kind() == ast.LiteralKind || item.Kind() == ast.SelectKind)
			n += w.of(item)
		}
		if !plain {
			w.nested++
		}
	case ast.MapKind:
		defer w.inside()()
		w.nested++
		if len(e.AsMap().Entries()) == 0 {
			w.open++
		}
		for _, entry := range e.AsMap().Entries() {
			key := entry.AsMapEntry().Key()
			if key.Kind() != ast.LiteralKind {
				w.keyed++
			}
			n += w.of(key) + w.of(entry.AsMapEntry().Value())
		}
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			n += 1 + w.of(field.AsStructField().Value())
		}
	}
	return n
}

// nests are the functions and macros whose result type contains that of an argument.
var nests = map[string]bool{
	"map": true, "transformList": true, "transformMap": true, "transformMapEntry": true, "type": true,
	"optional.of": true, "optional.ofNonZeroValue": true, "of": true, "ofNonZeroValue": true, "optMap": true, "optFlatMap": true,
}

func (w *weigher) call(c ast.CallExpr) float64 {
	n := 1.0
	name := c.FunctionName()
	if nests[name] {
		w.nested++
	}
	if c.IsMemberFunction() {
		before := *w
		target := w.of(c.Target())
		if name == "optMap" || name == "optFlatMap" {
			target *= 2
			w.nested += w.nested - before.nested
			w.keyed += w.keyed - before.keyed
			w.patterns += w.patterns - before.patterns
		}
		n += target
		if len(c.Args()) > 1 && c.Args()[0].Kind() == ast.IdentKind {
			n += partsOfMacro
		}
	}
	for _, arg := range c.Args() {
		n += w.of(arg)
		if patterned[name] && arg.Kind() == ast.LiteralKind {
			if s, ok := arg.AsLiteral().(types.String); ok && w.patterns <= maxInstructions {
				switch w.patterns += len(s); {
				case w.patterns > maxInstructions:
				case classes(string(s)) > maxInstructions/classSteps: // even to read it takes long
					w.patterns = maxInstructions + 1
				default:
					w.patterns += Instructions(string(s))
				}
			}
		}
	}
	return n
}

// maxDeclared bounds the size of the type of a value that other expressions use.
const maxDeclared = 100

// Declarable reports whether a type is small enough to build others from it.
func Declarable(t *cel.Type) bool {
	left := maxDeclared
	return within(t, &left)
}

func within(t *cel.Type, left *int) bool {
	if *left--; *left < 0 {
		return false
	}
	return !slices.ContainsFunc(t.Parameters(), func(of *types.Type) bool { return !within(of, left) })
}

// maxShown bounds the bytes of an error about an expression: each of a hundred errors quotes its
// line.
const maxShown = 16 << 10

// Abridge cuts an error text of the compiler to a readable length.
func Abridge(text string) string {
	if len(text) <= maxShown {
		return text
	}
	return strings.ToValidUTF8(text[:maxShown], "") + fmt.Sprintf("... (%d bytes more)", len(text)-maxShown)
}
