// Package expr compiles and evaluates the expressions (CEL) of admission: match
// conditions and admission policies.
//
// It promises: nothing is built before the first expression is compiled; the cost of an
// expression is bounded; an expression that fails returns the error of a stock
// server, and never panics.
package expr

import (
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/version"
	limits "k8s.io/apiserver/pkg/apis/cel"
	celtypes "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/rowlock/rowlock/authx/meter"
	"github.com/rowlock/rowlock/server/release"
)

// The total cost of the expressions of one decision.
const (
	Budget           = limits.RuntimeCELCostBudget                // a binding with one set of parameters
	BudgetConditions = limits.RuntimeCELCostBudgetMatchConditions // the match conditions of a policy or webhook
)

// MaxMessage limits the bytes of a computed message.
const MaxMessage = limits.MaxEvaluatedMessageExpressionSizeBytes

var always = version.MajorMinor(1, 0)

// Base returns the common environment of all expressions: the language and its libraries, without variables. New
// expressions must also work on the release with which the given one is compatible, so that servers can be
// rolled back. It is made on first use.
func Base(of release.Version) (*environment.EnvSet, error) {
	compatible := of.MinCompatibility()
	made, ok := bases.Load(compatible)
	if !ok {
		made, _ = bases.LoadOrStore(compatible, sync.OnceValues(func() (*environment.EnvSet, error) { return newBase(compatible) }))
	}
	return made.(func() (*environment.EnvSet, error))()
}

// bases holds the result of newBase by release.
var bases sync.Map

func newBase(compatible release.Version) (*environment.EnvSet, error) {
	set, err := meter.Environment(version.MajorMinor(uint(compatible.Major()), uint(compatible.Minor()))).Extend(environment.VersionedOptions{
		IntroducedVersion: always,
		EnvOptions:        []cel.EnvOption{signOfQuantity()},
	})
	if err == nil {
		set, err = meter.Extend(set)
	}
	if err != nil {
		return nil, fmt.Errorf("the environment of expressions: %w", err)
	}
	return set, nil
}

// signOfQuantity makes sign a member of quantities, as it is documented. The
// library has it as a function.
func signOfQuantity() cel.EnvOption {
	return cel.Function("sign", cel.MemberOverload("quantity_member_sign", []*cel.Type{celtypes.QuantityType}, cel.IntType,
		cel.UnaryBinding(func(v ref.Val) ref.Val {
			q, ok := v.Value().(*resource.Quantity)
			if !ok {
				return types.MaybeNoSuchOverloadErr(v)
			}
			return types.Int(q.Sign())
		})))
}

// kind of environment: new expressions must work on the release before, stored ones
// may have come from a newer one.
func kindOf(stored bool) environment.Type {
	if stored {
		return environment.StoredExpressions
	}
	return environment.NewExpressions
}
