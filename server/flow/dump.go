package flow

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/flow/seats"
	"github.com/rowlock/rowlock/server/request"
)

const dumps = "/debug/api_priority_and_fairness/"

// Dump returns a handler for a table of the present levels, queues or requests as text, by its path; nil for
// another path. Each request for one copies all waiting or running requests; no other request waits until the
// copy is sent.
func (c *Classifier) Dump(path string) http.Handler {
	name, ok := strings.CutPrefix(path, dumps)
	if !ok || c.config.Plain {
		return nil
	}
	switch name {
	case "dump_priority_levels":
		return c.table(seats.OfLevels, levelRows)
	case "dump_queues":
		return c.table(seats.WithQueues, queueRows)
	case "dump_requests":
		return c.table(seats.WithRequests, c.requestRows)
	}
	return nil
}

// table serves rows.
func (c *Classifier) table(depth seats.Depth, rows func([]seats.State, bool) [][]string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.classes()
		states, _ := c.Seats.States(depth)
		var out bytes.Buffer
		tabs := tabwriter.NewWriter(&out, 8, 0, 1, ' ', 0)
		for _, row := range rows(states, r.URL.Query().Get("includeRequestDetails") != "") {
			fmt.Fprintln(tabs, strings.Join(row, ",\t"))
		}
		_ = tabs.Flush() // a buffer takes everything
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(out.Bytes())
	})
}

func levelRows(states []seats.State, _ bool) [][]string {
	rows := [][]string{{"PriorityLevelName", "ActiveQueues", "IsIdle", "IsQuiescing", "WaitingRequests", "ExecutingRequests", "DispatchedRequests", "RejectedRequests", "TimedoutRequests", "CancelledRequests"}}
	for _, s := range states {
		rows = append(rows, []string{
			s.Name, strconv.Itoa(s.Active), strconv.FormatBool(s.Idle), strconv.FormatBool(s.Draining), strconv.Itoa(s.Waiting), strconv.Itoa(s.Running),
			fmt.Sprint(s.Dispatched), fmt.Sprint(s.Rejected), fmt.Sprint(s.TimedOut), fmt.Sprint(s.Cancelled),
		})
	}
	return rows
}

func queueRows(states []seats.State, _ bool) [][]string {
	rows := [][]string{{"PriorityLevelName", "Index", "PendingRequests", "ExecutingRequests", "SeatsInUse", "NextDispatchR", "InitialSeatsSum", "MaxSeatsSum", "TotalWorkSum"}}
	for _, s := range states {
		for _, q := range s.Queues {
			rows = append(rows, []string{
				s.Name, strconv.Itoa(q.Index), strconv.Itoa(q.Waiting), strconv.Itoa(q.Running), strconv.Itoa(q.Used),
				seatSeconds(q.Start), strconv.Itoa(q.Seats), strconv.Itoa(q.Seats), seatSeconds(q.Work),
			})
		}
	}
	return rows
}

func seatSeconds(n float64) string { return strconv.FormatFloat(n, 'f', 8, 64) + "ss" }

// requestRows lists the waiting and the running requests.
func (c *Classifier) requestRows(states []seats.State, details bool) [][]string {
	head := []string{"PriorityLevelName", "FlowSchemaName", "QueueIndex", "RequestIndexInQueue", "FlowDistingsher", "ArriveTime", "InitialSeats", "FinalSeats", "AdditionalLatency", "StartTime"}
	if details {
		head = append(head, "UserName", "Verb", "APIPath", "Namespace", "Name", "APIVersion", "Resource", "SubResource")
	}
	rows := [][]string{head}
	now, clock := time.Now(), c.config.Now()
	at := func(moment time.Duration) string { return now.Add(moment - clock).UTC().Format(time.RFC3339Nano) }
	for _, s := range states {
		for _, q := range s.Requests {
			about, ok := q.Of.Details.(*About)
			if !ok {
				continue
			}
			began := time.Time{}.Format(time.RFC3339Nano)
			if q.Running {
				began = at(q.Ran)
			}
			row := []string{
				s.Name, about.Class.Schema, strconv.Itoa(q.Queue), strconv.Itoa(q.Place), about.flow(), at(q.Arrived),
				strconv.Itoa(q.Of.Seats), strconv.Itoa(q.Of.Extra), q.Of.ExtraFor.String(), began,
			}
			if i := about.Info; details {
				row = append(row, about.User, i.Verb, i.Path, i.Namespace, i.Name, schema.GroupVersion{Group: i.Group, Version: i.Version}.String(), i.Resource, i.Subresource)
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// About holds the Details of a request for dumps. It does not change.
type About struct {
	Class *Class
	User  string
	Info  *request.Info
}

// flow distinguishes the request's flow from others of its schema.
func (a *About) flow() string {
	switch a.Class.by {
	case "ByUser":
		return a.User
	case "ByNamespace":
		return a.Info.Namespace
	}
	return ""
}
