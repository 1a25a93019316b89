package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// Forms in which a run says where it is.
const (
	progressAuto  = "auto"  // live on a terminal, plain elsewhere
	progressLive  = "live"  // a line for each thing that happened to a cell, and one that lives for the cell under way
	progressPlain = "plain" // timestamped lines
	progressJSON  = "json"  // one JSON object a line
)

// runProgress says where a run is. What happens to cells is an event; everything else that is written, such as the output
// of a suite, is output. It is safe for concurrent use.
type runProgress struct {
	out  io.Writer
	form string
	now  func() time.Time
	wide int // columns of a live line; 0 for as many as it takes

	mutex sync.Mutex
	rest  []byte // of a line of output that is not whole
	under string // what is under way
	since time.Time
	note  string
	ended chan struct{} // ends the ticker of the live line; nil where there is none
}

// newRunProgress returns the progress of a run in a form. Close it.
func newRunProgress(out io.Writer, form string) (*runProgress, error) {
	file, isFile := out.(*os.File)
	terminal := isFile && term.IsTerminal(int(file.Fd()))
	p := &runProgress{out: out, form: form, now: time.Now}
	switch {
	case form == progressAuto && terminal:
		p.form = progressLive
	case form == progressAuto:
		p.form = progressPlain
	case form != progressLive && form != progressPlain && form != progressJSON:
		return nil, Exit(ExitUsage, fmt.Errorf("--progress %q is unknown: use auto, live, plain or json", form))
	}
	if p.form == progressLive {
		if terminal {
			p.wide, _, _ = term.GetSize(int(file.Fd())) // 0 where it is not known
		}
		p.ended = make(chan struct{})
		go p.tick(p.ended)
	}
	return p, nil
}

// tick lets the live line tell the time.
func (p *runProgress) tick(ended <-chan struct{}) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ended:
			return
		case <-ticker.C:
			p.mutex.Lock()
			p.draw()
			p.mutex.Unlock()
		}
	}
}

// Close ends the live line.
func (p *runProgress) Close() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.ended != nil {
		close(p.ended)
		p.ended = nil
		p.clear()
	}
	p.form = progressPlain
}

// Event says what happened to a cell or to the run, in one line that stays.
func (p *runProgress) Event(text string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	switch p.form {
	case progressJSON:
		p.encode("event", text)
	case progressPlain:
		p.stamp(text)
	default:
		p.clear()
		printLine(p.out, text)
		p.under, p.note, p.since = "", "", p.now()
		if word, _, _ := strings.Cut(text, " "); word == "running" || word == "redone" || word == "removing" {
			p.under = text
		}
		p.draw()
	}
}

// Write takes output. A line is said once it is whole.
func (p *runProgress) Write(data []byte) (int, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.rest = append(p.rest, data...)
	for {
		end := bytes.IndexByte(p.rest, '\n')
		if end < 0 {
			return len(data), nil
		}
		line := strings.TrimRight(string(p.rest[:end]), "\r")
		p.rest = p.rest[end+1:]
		switch {
		case strings.TrimSpace(line) == "":
		case p.form == progressJSON:
			p.encode("output", line)
		case p.form == progressPlain:
			p.stamp("| " + line)
		default:
			p.note = strings.TrimSpace(line)
			p.draw()
		}
	}
}

func (p *runProgress) stamp(text string) {
	printf(p.out, "%s %s\n", p.now().UTC().Format("2006-01-02T15:04:05Z"), text)
}

func (p *runProgress) encode(field, text string) {
	line, err := json.Marshal(map[string]string{"time": p.now().UTC().Format(time.RFC3339Nano), field: text})
	if err == nil { // strings have a JSON form
		printf(p.out, "%s\n", line)
	}
}

// draw writes the live line anew: what is under way, for how long, and the last that was heard of it.
func (p *runProgress) draw() {
	if p.form != progressLive || p.under == "" {
		return
	}
	line := fmt.Sprintf("  %s  %s", clock(p.now().Sub(p.since)), p.note)
	if p.wide > 0 && len(line) >= p.wide {
		line = line[:p.wide-1]
	}
	p.clear()
	printf(p.out, "%s", line)
}

func (p *runProgress) clear() {
	if p.form == progressLive {
		printf(p.out, "\r\x1b[K")
	}
}
