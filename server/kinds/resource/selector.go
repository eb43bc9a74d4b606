package resource

import (
	"fmt"
	"math"

	"github.com/google/cel-go/cel"
	celchecker "github.com/google/cel-go/checker"
	"github.com/google/cel-go/ext"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/version"
	limits "k8s.io/apiserver/pkg/apis/cel"
	celtypes "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/rowlock/rowlock/authx/meter"
	"github.com/rowlock/rowlock/server/release"
)

// Expressions that select devices, as the module dynamic-resource-allocation compiles them. That module compiles only
// with the other modules of its own release, which a program that requires rowlock need not have.

// selectors are the environment of these expressions, and the type of their variable.
type selectors struct {
	environment *environment.EnvSet
	device      *celtypes.DeclType
	attribute   *celtypes.DeclType // of the value of an attribute, of any type
	lists       bool               // attributes may be lists
}

// newSelectors makes the environment of a release. later means that it is newer than 1.32, shared that expressions may ask whether a device can be
// shared, and lists that attributes may be lists, with the function includes.
func newSelectors(of release.Version, later, shared, lists bool) (*selectors, error) {
	s := &selectors{attribute: sized(celtypes.AnyType, resourceapi.DeviceAttributeMaxValueLength), lists: lists}
	if lists { // a value of any type cannot be iterated over
		s.attribute = sized(celtypes.DynType, resourceapi.DeviceAttributeMaxValueLength)
	}
	domain := sized(celtypes.StringType, resourceapi.DeviceMaxDomainLength)
	id := sized(celtypes.StringType, resourceapi.DeviceMaxIDLength)
	byDomain := func(value *celtypes.DeclType) *celtypes.DeclType {
		const most = resourceapi.ResourceSliceMaxAttributesAndCapacitiesPerDevice
		return celtypes.NewMapType(domain, celtypes.NewMapType(id, value, most), most)
	}
	fields := map[string]*celtypes.DeclField{}
	for name, of := range map[string]*celtypes.DeclType{
		"driver":     sized(celtypes.StringType, resourceapi.DriverNameMaxLength),
		"attributes": byDomain(s.attribute),
		"capacity":   byDomain(celtypes.QuantityDeclType),
	} {
		fields[name] = celtypes.NewDeclField(name, of, true, nil, nil)
	}
	if shared {
		const name = "allowMultipleAllocations"
		fields[name] = celtypes.NewDeclField(name, sized(celtypes.BoolType, 1), true, nil, nil)
	}
	s.device = celtypes.NewObjectType("kubernetes.DRADevice", fields)
	options := []cel.EnvOption{cel.Variable("device", s.device.CelType()), ext.Bindings(ext.BindingsVersion(0))}
	if !later { // it was not yet among the libraries of all expressions
		options = append(options, library.SemverLib())
	}
	if lists {
		options = append(options, cel.Function("includes", cel.MemberOverload(includesOverload, []*cel.Type{cel.DynType, cel.DynType}, cel.BoolType)))
	}
	compatible := of.MinCompatibility()
	var err error
	s.environment, err = meter.Environment(version.MajorMinor(uint(compatible.Major()), uint(compatible.Minor()))).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 31),
		EnvOptions:        options,
		DeclTypes:         []*celtypes.DeclType{s.device},
	})
	if err != nil {
		return nil, fmt.Errorf("the environment of selectors: %w", err)
	}
	return s, nil
}

// sized returns a type of values of at most that many elements.
func sized(t *celtypes.DeclType, most int64) *celtypes.DeclType {
	out := *t
	out.MaxElements = most
	return &out
}

// compile returns the worst-case cost of an expression, or why it is invalid.
func (s *selectors) compile(text string, kind environment.Type) (cost uint64, fault *celtypes.Error) {
	failed := func(t celtypes.ErrorType, format string, args ...any) (uint64, *celtypes.Error) {
		return math.MaxUint64, &celtypes.Error{Type: t, Detail: fmt.Sprintf(format, args...)}
	}
	env, err := s.environment.Env(kind)
	if err != nil {
		return failed(celtypes.ErrorTypeInternal, "unexpected error loading CEL environment: %v", err)
	}
	ast, issues := env.Compile(text)
	if issues != nil {
		return failed(celtypes.ErrorTypeInvalid, "compilation failed: %v", issues)
	}
	if t := ast.OutputType(); t != cel.BoolType && t != cel.AnyType && !(s.lists && t == cel.DynType) {
		return failed(celtypes.ErrorTypeInvalid, "must evaluate to %v or the unknown type, not %v", cel.BoolType, t)
	}
	_, err = env.Program(ast,
		cel.CostLimit(resourceapi.CELSelectorExpressionMaxCost),
		cel.InterruptCheckFrequency(limits.CheckFrequency),
	)
	if err != nil {
		return failed(celtypes.ErrorTypeInternal, "program instantiation failed: %v", err)
	}
	estimate, err := env.EstimateCost(ast, &library.CostEstimator{SizeEstimator: s})
	if err != nil {
		return failed(celtypes.ErrorTypeInternal, "cost estimation failed: %v", err)
	}
	return estimate.Max, nil
}

// EstimateSize returns how large a part of the device can be.
func (s *selectors) EstimateSize(element celchecker.AstNode) *celchecker.SizeEstimate {
	path := element.Path()
	if len(path) == 0 || path[0] != "device" {
		return nil
	}
	t := s.device
	for _, name := range path[1:] {
		if t = s.below(t, name); t == nil {
			return nil
		}
	}
	return &celchecker.SizeEstimate{Min: 0, Max: uint64(t.MaxElements)}
}

// below returns the type after a step of a path, or nil.
func (s *selectors) below(t *celtypes.DeclType, name string) *celtypes.DeclType {
	switch name {
	case "@items", "@values":
		return t.ElemType
	case "@keys":
		return t.KeyType
	}
	if f, ok := t.Fields[name]; ok {
		return f.Type
	}
	if t.ElemType == s.attribute { // whatever the attribute's name
		return s.attribute
	}
	return nil
}

// includesOverload names the function that reports whether an attribute has a value, or is a list with it.
const includesOverload = "dra_includes_dyn_dyn"

// EstimateCallCost returns that of includes, which compares each value of a list. It leaves other calls to the
// library.
func (s *selectors) EstimateCallCost(_, overload string, target *celchecker.AstNode, _ []celchecker.AstNode) *celchecker.CallEstimate {
	if overload != includesOverload || target == nil {
		return nil
	}
	values := celchecker.SizeEstimate{Max: resourceapi.ResourceSliceMaxAttributeValuesPerDevice}
	return &celchecker.CallEstimate{CostEstimate: values.MultiplyByCost(celchecker.CostEstimate{Min: 1, Max: 1})}
}
