// Package audit counts API requests from the audit logs of API servers. It is pure: it reads bytes it is given.
//
// A request is one distinct audit id over all servers, and its time is when the server received it. Counts and the
// peak of a sliding window are exact for the events given; Set.Check says whether those events are all there were.
package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// MaxLine is the longest line of a log in bytes. The API server limits the size of a request URI well below it.
const MaxLine = 1 << 20

// Event is one request as an API server saw it.
type Event struct {
	ID          string
	Server      string
	Received    time.Time
	Seen        time.Time // the latest time stamped by the server
	Verb        string
	URI         string
	User        string
	Pod         string // name of the Pod whose token was used, where the token is bound to one
	Agent       string
	Group       string
	Resource    string
	Subresource string
	Namespace   string
	Name        string
	Code        int // 0 while the response is not known
}

// Defect is one thing that keeps a count from being proven.
type Defect struct {
	Server  string `json:"server"`
	Message string `json:"message"`
}

// Log is what one file of one API server holds.
type Log struct {
	Server  string
	Events  []Event
	Lines   int
	Defects []Defect
	// CutTail is true where the last line has no end. That is normal for a copy of a file that was being written,
	// and a defect otherwise.
	CutTail bool
}

type wireEvent struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	AuditID    string `json:"auditID"`
	Stage      string `json:"stage"`
	RequestURI string `json:"requestURI"`
	Verb       string `json:"verb"`
	User       struct {
		Username string              `json:"username"`
		Extra    map[string][]string `json:"extra"`
	} `json:"user"`
	UserAgent string `json:"userAgent"`
	ObjectRef *struct {
		Resource    string `json:"resource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		APIGroup    string `json:"apiGroup"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	ResponseStatus *struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	RequestReceivedTimestamp time.Time `json:"requestReceivedTimestamp"`
	StageTimestamp           time.Time `json:"stageTimestamp"`
}

// Parse reads the log of one server. Lines that are no audit event become defects, so that a damaged log yields a
// count that is known to be incomplete and never a smaller count. Open says that the file was copied while the
// server went on writing: then a last line without its end is not a defect. The error is that of the reader alone.
func Parse(server string, r io.Reader, open bool) (Log, error) {
	log := Log{Server: server}
	reader := bufio.NewReaderSize(r, 256<<10)
	pool := map[string]string{}
	for {
		line, whole, err := readLine(reader)
		ended := errors.Is(err, io.EOF)
		if err != nil && !ended {
			return log, fmt.Errorf("read the audit log of %s: %w", server, err)
		}
		if whole {
			log.Lines++
			log.add(line, pool)
		} else if len(line) > 0 {
			log.CutTail = true
			if !open {
				log.defect("the last line is cut")
			}
		}
		if ended {
			return log, nil
		}
	}
}

// readLine returns the next line without its end, and whether it had one. A line beyond MaxLine is returned cut
// down to its start, which no parser takes for an event.
func readLine(reader *bufio.Reader) ([]byte, bool, error) {
	var line []byte
	for {
		part, err := reader.ReadSlice('\n')
		if len(line) <= MaxLine {
			line = append(line, part...)
		}
		switch {
		case err == nil:
			return bytes.TrimSuffix(line, []byte("\n")), true, nil
		case errors.Is(err, bufio.ErrBufferFull):
		default:
			return line, false, err
		}
	}
}

func (l *Log) defect(format string, arguments ...any) {
	l.Defects = append(l.Defects, Defect{Server: l.Server, Message: fmt.Sprintf(format, arguments...)})
}

func (l *Log) add(line []byte, pool map[string]string) {
	var wire wireEvent
	if err := json.Unmarshal(line, &wire); err != nil {
		l.defect("line %d is no audit event", l.Lines)
		return
	}
	if wire.Kind != "Event" || wire.AuditID == "" || wire.Verb == "" || wire.RequestReceivedTimestamp.IsZero() || wire.StageTimestamp.IsZero() {
		l.defect("line %d lacks the kind, id, verb or time of an audit event", l.Lines)
		return
	}
	event := Event{
		ID: wire.AuditID, Server: l.Server, Received: wire.RequestReceivedTimestamp, Seen: wire.StageTimestamp,
		Verb: intern(pool, wire.Verb), URI: wire.RequestURI, User: intern(pool, wire.User.Username), Agent: intern(pool, wire.UserAgent),
	}
	if pods := wire.User.Extra["authentication.kubernetes.io/pod-name"]; len(pods) == 1 {
		event.Pod = intern(pool, pods[0])
	}
	if ref := wire.ObjectRef; ref != nil {
		event.Group, event.Resource, event.Subresource = intern(pool, ref.APIGroup), intern(pool, ref.Resource), intern(pool, ref.Subresource)
		event.Namespace, event.Name = intern(pool, ref.Namespace), intern(pool, ref.Name)
	}
	if wire.ResponseStatus != nil {
		event.Code = wire.ResponseStatus.Code
	}
	l.Events = append(l.Events, event)
}

// intern keeps one copy of each text: a log of hundreds of thousands of events repeats a few hundred of them.
func intern(pool map[string]string, text string) string {
	if known, ok := pool[text]; ok {
		return known
	}
	pool[text] = text
	return text
}
