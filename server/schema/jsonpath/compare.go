package jsonpath

import (
	"cmp"
	"fmt"
)

// compare compares two values of one type.
func compare(left any, operator string, right any) (bool, error) {
	var order int
	switch l := left.(type) {
	case bool:
		r, ok := right.(bool)
		switch {
		case ok && operator == "==":
			return l == r, nil
		case ok && operator == "!=":
			return l != r, nil
		}
		return false, incomparable(left, right)
	case string:
		r, ok := right.(string)
		if !ok {
			return false, incomparable(left, right)
		}
		order = cmp.Compare(l, r)
	case int64:
		r, ok := right.(int64)
		if !ok {
			return false, incomparable(left, right)
		}
		order = cmp.Compare(l, r)
	case float64:
		r, ok := right.(float64)
		if !ok {
			return false, incomparable(left, right)
		}
		order = cmp.Compare(l, r)
	default:
		return false, incomparable(left, right)
	}
	switch operator {
	case "==":
		return order == 0, nil
	case "!=":
		return order != 0, nil
	case "<":
		return order < 0, nil
	case "<=":
		return order <= 0, nil
	case ">":
		return order > 0, nil
	case ">=":
		return order >= 0, nil
	}
	return false, fmt.Errorf("unrecognized filter operator %s", operator)
}

func incomparable(left, right any) error {
	return fmt.Errorf("%T and %T cannot be compared", left, right)
}
