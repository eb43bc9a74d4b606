package storetest_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// modelled runs the model's own servers: each Open is a view of one memory.
type modelled struct{ *storetest.Memory }

func (m modelled) Open(testing.TB) sqlstore.Driver { return m.Memory.Again() }

func (m modelled) Exec(testing.TB, string) {}

// The suite passes on the model, so it tests the contract and not a driver's habits.
func TestModelConforms(t *testing.T) {
	storetest.Run(t, func(testing.TB) storetest.Database { return modelled{storetest.NewMemory()} })
}
