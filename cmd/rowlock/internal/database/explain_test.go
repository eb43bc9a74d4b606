package database_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/database"
	"github.com/rowlock/rowlock/sqlstore"
)

// TestExplainUncertain: a command that was interrupted while a commit was under way does not claim that nothing was written.
func TestExplainUncertain(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	const left = "the database is as empty as before"
	if err := database.Explain(ctx, context.Canceled, left); !strings.Contains(err.Error(), left) {
		t.Error(err)
	}
	err := database.Explain(ctx, fmt.Errorf("loading: %w", sqlstore.ErrUncertain), left)
	if strings.Contains(err.Error(), left) || !errors.Is(err, sqlstore.ErrUncertain) {
		t.Error(err)
	}
}
