package sqlstore

// FirstSecond is the first of the seconds from low to high for which reached holds, high+1 for none. reached
// must hold for all that follow. It is asked for the logarithm of their number.
func FirstSecond(low, high int64, reached func(second int64) (bool, error)) (int64, error) {
	for low <= high {
		middle := low + (high-low)/2
		ok, err := reached(middle)
		if err != nil {
			return 0, err
		}
		if ok {
			high = middle - 1
		} else {
			low = middle + 1
		}
	}
	return low, nil
}
