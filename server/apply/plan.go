package apply

// plans holds the compiled plans by endpoint.
type plans struct{}
